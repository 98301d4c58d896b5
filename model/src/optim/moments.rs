//! What optimisers remember of a parameter's gradients, and the walk over its numbers.

use candle_core::{Result, Tensor};
use rayon::prelude::{IndexedParallelIterator, ParallelIterator, ParallelSlice, ParallelSliceMut};

use crate::nn::{Host, edit, fused, single, wide};

/// First and second moment of one parameter's gradient.
#[derive(Debug, Clone)]
pub(crate) struct Moments {
    pub(crate) first: Tensor,
    pub(crate) second: Tensor,
    /// Updates that they have had.
    pub(crate) updates: u64,
}

impl Moments {
    /// Moments of a parameter that has had no update.
    pub(super) fn none(of: &Tensor) -> Result<Self> {
        Ok(Moments { first: of.zeros_like()?, second: of.zeros_like()?, updates: 0 })
    }
}

/// Numbers that one thread works on at a time.
const CHUNK: usize = 1 << 14;

/// `m = keep m + take x`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blend {
    pub(super) keep: f32,
    /// `1 - keep`, taken before rounding: in single precision 1 - 0.999 would be wrong in the fifth digit.
    pub(super) take: f32,
}

impl Blend {
    pub(super) fn new(keep: f64) -> Self {
        Self { keep: single(keep), take: single(1.0 - keep) }
    }

    /// The same for tensors.
    pub(super) fn composed(self, moment: &Tensor, x: &Tensor) -> Result<()> {
        let kept = (moment * f64::from(self.keep))?;
        overwrite(moment, &(kept + (x * f64::from(self.take))?)?)
    }
}

/// A rule by which a parameter p and its moments m and v change, given the gradient g.
pub(super) trait Rule: Sync {
    /// Changes single numbers `[p, m, v]`.
    fn number(&self, pmv: [&mut f32; 3], g: f32);

    /// Changes whole tensors `[p, m, v]`, where numbers are out of reach.
    ///
    /// # Errors
    /// When the tensor library fails.
    fn composed(&self, pmv: [&Tensor; 3], g: &Tensor) -> Result<()>;
}

/// Makes a change in the tensors' memory: parameter, first and second moment.
///
/// # Errors
/// When the gradient has another shape than the parameter.
pub(super) fn change(rule: &impl Rule, [p, m, v]: [&Tensor; 3], grad: &Tensor) -> Result<()> {
    if p.dims() != grad.dims() {
        candle_core::bail!("a gradient of shape {:?} for a parameter of shape {:?}", grad.dims(), p.dims());
    }
    if !(fused(p) && fused(grad)) {
        return rule.composed([p, m, v], grad);
    }
    let host = Host::of(grad)?;
    let g = host.get()?;
    edit(p, |p| {
        edit(m, |m| {
            edit(v, |v| {
                on_numbers(rule, [p, m, v], g);
                Ok(())
            })
        })
    })
}

fn on_numbers(rule: &impl Rule, [p, m, v]: [&mut [f32]; 3], g: &[f32]) {
    let moments = m.par_chunks_mut(CHUNK).zip(v.par_chunks_mut(CHUNK));
    p.par_chunks_mut(CHUNK).zip(moments).zip(g.par_chunks(CHUNK)).for_each(|((p, (m, v)), g)| {
        wide!({
            for ((p, g), (m, v)) in p.iter_mut().zip(g).zip(m.iter_mut().zip(v)) {
                rule.number([p, m, v], *g);
            }
        });
    });
}

/// Copies `values` over the memory of `target`.
pub(super) fn overwrite(target: &Tensor, values: &Tensor) -> Result<()> {
    target.slice_set(&values.contiguous()?, 0, 0)
}
