//! Dropout whose mask is a pure function of seed, step and place.

use base::rng::CounterRng;
use candle_core::{DType, Result, Tensor};
use rayon::prelude::{IndexedParallelIterator, ParallelIterator, ParallelSliceMut};

use super::form::in_single;
use super::math::single;

/// Which numbers are dropped at one place of the model in one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dropout {
    key: CounterRng,
    rate: f64,
}

impl Dropout {
    /// Drops each number with probability `rate` (0 <= rate < 1), as decided by `key`.
    #[must_use]
    pub fn new(key: CounterRng, rate: f64) -> Self {
        Dropout { key, rate }
    }

    /// What the number with this index is multiplied by: 0, or 1 / (1 - rate) so that the mean stays.
    #[must_use]
    #[inline(always)]
    pub fn factor(self, index: u64) -> f32 {
        // 24 random bits against the rate: exact in f32.
        let draw = (self.key.bits(index) >> 40) as f32 * (1.0 / (1_u32 << 24) as f32);
        if draw < single(self.rate) { 0.0 } else { single(1.0 / (1.0 - self.rate)) }
    }

    /// The same for kernels: the key; the bound, in 24 bits, below which a number is dropped; and what the others are multiplied by. A draw of 24 bits
    /// over 2^24 is below the rate if the draw is below the rate times 2^24, which is exact, or its next whole number.
    #[cfg(feature = "cuda")]
    pub(crate) fn for_kernels(self) -> (u64, u32, f32) {
        let bound = (f64::from(single(self.rate)) * f64::from(1_u32 << 24)).ceil();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 2^24")]
        let bound = bound as u32;
        (self.key.key(), bound, single(1.0 / (1.0 - self.rate)))
    }

    /// The tensor with some numbers set to 0 and the others scaled up; number `i` has index `i`.
    ///
    /// # Errors
    /// When the tensor library fails.
    pub fn apply(self, x: &Tensor) -> Result<Tensor> {
        self.apply_at(x, |place| place as u64)
    }

    /// As [`Dropout::apply`], with `index(i)` the index of number `i`.
    ///
    /// # Errors
    /// When the tensor library fails.
    pub(crate) fn apply_at(self, x: &Tensor, index: impl Fn(usize) -> u64 + Sync) -> Result<Tensor> {
        if self.rate <= 0.0 {
            return Ok(x.clone());
        }
        in_single(x, |x| {
            let factors =
                if x.device().is_cpu() { self.factors(x, index) } else { self.sent_factors(x, index) };
            x.mul(&factors?.to_dtype(x.dtype())?)
        })
    }

    /// What each number of `like` is multiplied by.
    fn factors(self, like: &Tensor, index: impl Fn(usize) -> u64 + Sync) -> Result<Tensor> {
        let factors = numbered(like.elem_count(), |place| self.factor(index(place)));
        Tensor::from_vec(factors, like.shape(), like.device())
    }

    /// The same, made on the CPU and sent as one byte each: the tensor library has no operations that could make 64-bit random numbers on
    /// another device. Nothing comes back, so that no step waits for an answer.
    fn sent_factors(self, like: &Tensor, index: impl Fn(usize) -> u64 + Sync) -> Result<Tensor> {
        let kept = numbered(like.elem_count(), |place| u8::from(self.factor(index(place)) > 0.0));
        let kept = Tensor::from_vec(kept, like.shape(), like.device())?.to_dtype(DType::F32)?;
        kept * f64::from(single(1.0 / (1.0 - self.rate)))
    }

    /// Whether it drops anything.
    #[must_use]
    pub fn is_active(self) -> bool {
        self.rate > 0.0
    }
}

/// `f(i)` of so many places.
fn numbered<T: Clone + Default + Send>(count: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
    const CHUNK: usize = 1 << 14;
    let mut all = vec![T::default(); count];
    all.par_chunks_mut(CHUNK).enumerate().for_each(|(i, chunk)| {
        chunk.iter_mut().zip(i * CHUNK..).for_each(|(out, place)| *out = f(place));
    });
    all
}

#[cfg(test)]
mod tests {
    use super::super::check::{forms_agree, gradients, numbers, randn};
    use super::*;

    fn dropout(step: u64, rate: f64) -> Dropout {
        Dropout::new(CounterRng::new(3).branch(step), rate)
    }

    #[test]
    fn mask_follows_the_key_and_keeps_the_mean() {
        let ones = randn(1, &[40_000]).ones_like().unwrap();
        let apply = |step| numbers(&dropout(step, 0.25).apply(&ones).unwrap());
        assert_eq!(apply(1), apply(1));
        assert_ne!(apply(1), apply(2));
        let kept = apply(1).iter().filter(|&&x| x > 0.0).count() as f64 / 40_000.0;
        assert!((kept - 0.75).abs() < 0.01, "kept {kept}");
        assert!(apply(1).iter().all(|&x| x == 0.0 || (x - 4.0 / 3.0).abs() < 1e-6));
        assert_eq!(numbers(&dropout(1, 0.0).apply(&ones).unwrap()), numbers(&ones));
    }

    #[test]
    fn what_is_sent_to_other_devices_is_the_same_mask() {
        let like = randn(1, &[300, 70]);
        let odd = |place: usize| (place as u64) << 20 | 1;
        for rate in [0.1, 0.5] {
            let [here, sent] =
                [dropout(1, rate).factors(&like, odd), dropout(1, rate).sent_factors(&like, odd)];
            assert_eq!(numbers(&here.unwrap()), numbers(&sent.unwrap()));
        }
    }

    #[test]
    fn half_precision_drops_the_same_and_is_rounded_once() {
        let x = randn(1, &[1000]).to_dtype(DType::BF16).unwrap();
        let y = dropout(1, 0.1).apply(&x).unwrap();
        assert_eq!(y.dtype(), DType::BF16);
        let exact = dropout(1, 0.1).apply(&x.to_dtype(DType::F32).unwrap()).unwrap();
        assert_eq!(numbers(&y), numbers(&exact.to_dtype(DType::BF16).unwrap()));
    }

    #[test]
    fn forms_agree_in_values_and_gradients() {
        forms_agree(|a| dropout(1, 0.3).apply(&a[0]), &[randn(1, &[130, 3])], 1e-5);
    }

    #[test]
    fn gradients_are_the_numerical_ones() {
        gradients(|a| dropout(1, 0.5).apply(&a[0]), &[randn(2, &[5, 6])], 1e-2, 5e-3);
    }
}
