//! KAM-BERT's attention of differentiable operations over padded rows: for other devices and number types, and as what the attention on slices is tested
//! against.

use candle_core::{DType, Result, Tensor};

use super::super::plain::Padded;
use super::super::{Composed, Site};
use super::{Auxiliary, Before, OfLayer, Skip};

/// The attention of a layer; its map is carried on.
pub(super) fn attend(of: &mut OfLayer<'_>, at: &Site<'_>, qkv_n3d: &Tensor) -> Result<Composed> {
    let parts = Padded::new(qkv_n3d, at.spans, at.heads)?;
    let t = parts.grid.t;
    let lengths: Vec<usize> = at.spans.iter().map(|span| span.len).collect();
    let like = parts.scores()?;
    let valid_b1tt = pairs(&lengths, t, &like)?;
    let scored_b1tt = match of.settings.auxiliary {
        Auxiliary::ZeroPad => pairs(&of.knowledge.real, t, &like)?,
        Auxiliary::Qk => valid_b1tt.clone(),
    };
    let mut scores_bhtt = like.broadcast_mul(&scored_b1tt)?;
    if let Some(before) = &*of.carried {
        scores_bhtt = (scores_bhtt + before.padded()?)?;
    }
    let maps_bmtt = squares(&of.knowledge.maps, &lengths, of.settings.maps, t)?.to_dtype(like.dtype())?;
    let semantic_bhtt = match of.convolution {
        Some([weight, bias]) => {
            let [weight, bias] = [weight.to_dtype(like.dtype())?, bias.to_dtype(like.dtype())?];
            convolve(&Tensor::cat(&[&scores_bhtt, &maps_bmtt], 1)?, &weight, &bias)?
        }
        None => {
            let count = (1 + of.settings.maps) as f64;
            (scores_bhtt.broadcast_add(&maps_bmtt.sum_keepdim(1)?)? / count)?
        }
    };
    let alpha = of.settings.alpha;
    let mixed_bhtt = ((&semantic_bhtt * alpha)? + (&scores_bhtt * (1.0 - alpha))?)?;
    let found = parts.attend(&mixed_bhtt, at.heads)?;
    *of.carried = match of.settings.skip {
        Skip::PostAdd => Some(Before::Padded(found.probs_bhtt.broadcast_mul(&valid_b1tt)?)),
        Skip::PreAdd => Some(Before::Padded(mixed_bhtt.broadcast_mul(&valid_b1tt)?)),
        Skip::None => None,
    };
    Ok(Composed { merged_bhtt: Some(semantic_bhtt), ..found })
}

/// 1 where both tokens are among the first so many of a sample, `[b, 1, t, t]`.
fn pairs(lengths: &[usize], t: usize, like: &Tensor) -> Result<Tensor> {
    let cell = |len: usize, at: usize| f32::from(at / t < len && at % t < len);
    let cells: Vec<f32> = lengths.iter().flat_map(|len| (0..t * t).map(|at| cell(*len, at))).collect();
    Tensor::from_vec(cells, (lengths.len(), 1, t, t), like.device())?.to_dtype(like.dtype())
}

/// Squares one behind the other as padded ones, `[b, m, t, t]`.
fn squares(flat: &Tensor, lengths: &[usize], m: usize, t: usize) -> Result<Tensor> {
    let (mut first, mut all) = (0, vec![]);
    for &len in lengths {
        let maps = flat.narrow(0, first, m * len * len)?.reshape((1, m, len, len))?;
        all.push(maps.pad_with_zeros(2, 0, t - len)?.pad_with_zeros(3, 0, t - len)?);
        first += m * len * len;
    }
    Tensor::cat(&all, 0)
}

/// The convolution as the sum over its taps of a product with moved maps.
fn convolve(x_bctt: &Tensor, weight_oc33: &Tensor, bias_o: &Tensor) -> Result<Tensor> {
    let ((b, c, t, _), (o, ..)) = (x_bctt.dims4()?, weight_oc33.dims4()?);
    let framed = x_bctt.pad_with_zeros(2, 1, 1)?.pad_with_zeros(3, 1, 1)?;
    let mut sum = Tensor::zeros((b, o, t * t), DType::F32, x_bctt.device())?.to_dtype(x_bctt.dtype())?;
    for (dy, dx) in (0..3).flat_map(|dy| (0..3).map(move |dx| (dy, dx))) {
        let moved = framed.narrow(2, dy, t)?.narrow(3, dx, t)?.contiguous()?.reshape((b, c, t * t))?;
        let weight_oc = weight_oc33.narrow(2, dy, 1)?.narrow(3, dx, 1)?.reshape((1, o, c))?;
        sum = (sum + weight_oc.broadcast_as((b, o, c))?.contiguous()?.matmul(&moved)?)?;
    }
    sum.reshape((b, o, t, t))?.broadcast_add(&bias_o.reshape((1, o, 1, 1))?)
}
