//! Dropout whose mask is a pure function of seed, step and place. Knows no layer.

use candle_core::{Result, Tensor};
use rayon::prelude::{IndexedParallelIterator, ParallelIterator, ParallelSliceMut};

use super::math::single;
use crate::chance::Chance;

/// Which numbers are dropped at one place of the model in one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dropout {
    key: Chance,
    rate: f64,
}

impl Dropout {
    /// Drops each number with probability `rate` (0 <= rate < 1), as decided by `key`.
    #[must_use]
    pub fn new(key: Chance, rate: f64) -> Self {
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

    /// The tensor with some numbers set to 0 and the others scaled up.
    ///
    /// # Errors
    /// When the tensor library fails.
    pub fn apply(self, x: &Tensor) -> Result<Tensor> {
        if self.rate <= 0.0 {
            return Ok(x.clone());
        }
        let mut mask = vec![0.0_f32; x.elem_count()];
        mask.par_chunks_mut(1 << 14).enumerate().for_each(|(i, chunk)| {
            let first = (i as u64) << 14;
            chunk.iter_mut().zip(first..).for_each(|(m, index)| *m = self.factor(index));
        });
        x.mul(&Tensor::from_vec(mask, x.shape(), x.device())?.to_dtype(x.dtype())?)
    }

    /// Whether it drops anything.
    #[must_use]
    pub fn is_active(self) -> bool {
        self.rate > 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::{gradients, numbers, randn};
    use super::*;

    fn dropout(step: u64, rate: f64) -> Dropout {
        Dropout::new(Chance::new(3).branch(step), rate)
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
    fn gradients_are_the_numerical_ones() {
        gradients(|a| dropout(1, 0.5).apply(&a[0]), &[randn(2, &[5, 6])], (1e-2, 5e-3));
    }
}
