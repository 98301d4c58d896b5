//! The loss of an embedding: each anchor's match among the rows of the batch that are no anchors.

use candle_core::{D, Result, Tensor};

use super::tag::gather;
use super::targets::Anchor;
use crate::nn;

/// Added to squared norms: a vector of zeros has the cosine 0 with all.
const EPSILON: f64 = 1e-12;
/// Logit of what is not to be told from a match: its share is 0, and so is its gradient.
const LEFT_OUT: f32 = -1e30;

/// Vectors `[m, d]` divided by their norms, in f32 at least.
pub(super) fn unit(vectors_md: &Tensor) -> Result<Tensor> {
    let vectors_md = nn::at_least_single(vectors_md)?;
    let squares_m1 = vectors_md.sqr()?.sum_keepdim(D::Minus1)?;
    vectors_md.broadcast_div(&(squares_m1 + EPSILON)?.sqrt()?)
}

/// Mean over anchors of `-log softmax(scale cos(anchor, row))[its match]`, no axes, over all rows of the batch that are no anchors but those that match the anchor as
/// well (Humeau et al. 2020, section 4.2: the other samples of the batch are negatives). The samples of `anchors` stand one behind the other in `vectors_md`.
///
/// # Errors
/// When they have not as many rows as there are vectors, or there are none.
pub(super) fn cross_entropy(vectors_md: &Tensor, anchors: &[Anchor], scale: f64) -> Result<Tensor> {
    let (rows, _) = vectors_md.dims2()?;
    let expected: usize = anchors.iter().map(Anchor::rows).sum();
    if anchors.is_empty() || rows != expected {
        candle_core::bail!("{rows} vectors, but {} anchors have {expected} rows", anchors.len());
    }
    let (mut firsts, mut others, mut next) = (vec![], vec![], 0_u32);
    for anchor in anchors {
        firsts.push(next);
        let end = next + u32::try_from(anchor.rows()).map_err(candle_core::Error::wrap)?;
        others.extend(next + 1..end);
        next = end;
    }
    // Where a row stands among those that are no anchors: as many as there are anchors before it stand before it no more.
    let place = |row: usize| row - firsts.partition_point(|first| *first as usize <= row);
    let mut left_out = vec![0.0_f32; anchors.len() * others.len()];
    let mut matches = vec![];
    for (at, (anchor, first)) in anchors.iter().zip(&firsts).enumerate() {
        matches.push(Some(u32::try_from(place(*first as usize + 1)).map_err(candle_core::Error::wrap)?));
        for row in &anchor.also_match {
            left_out[at * others.len() + place(*row)] = LEFT_OUT;
        }
    }
    let unit_md = unit(vectors_md)?;
    let (anchors_qd, others_cd) = (gather(&unit_md, &firsts)?, gather(&unit_md, &others)?);
    let logits_qc = (anchors_qd.matmul(&others_cd.t()?.contiguous()?)? * scale)?;
    let logits_qc = match left_out.iter().any(|of| *of < 0.0) {
        false => logits_qc,
        true => {
            let left_out_qc = Tensor::from_vec(left_out, (anchors.len(), others.len()), logits_qc.device())?;
            (logits_qc + left_out_qc.to_dtype(unit_md.dtype())?)?
        }
    };
    nn::cross_entropy::cross_entropy(&logits_qc, &matches)
}

#[cfg(test)]
mod tests {
    use candle_core::DType;

    use super::*;
    use crate::nn::check::{gradients, numbers, randn};

    fn anchors() -> Vec<Anchor> {
        let of = |negatives, also_match: &[usize]| Anchor { negatives, also_match: also_match.to_vec() };
        vec![of(1, &[4, 7]), of(0, &[]), of(2, &[1])]
    }

    /// The loss as it is written, from the vectors' numbers.
    fn written(vectors_md: &Tensor, anchors: &[Anchor], scale: f64) -> f64 {
        let all: Vec<Vec<f64>> = vectors_md.to_dtype(DType::F64).unwrap().to_vec2().unwrap();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let cos = |a: &[f64], b: &[f64]| dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
        let mut firsts = vec![0];
        anchors.iter().for_each(|anchor| firsts.push(firsts.last().unwrap() + 2 + anchor.negatives));
        let of = |(anchor, first): (&Anchor, &usize)| {
            let shares = (0..all.len())
                .filter(|row| !firsts.contains(row) && !anchor.also_match.contains(row))
                .map(|row| (scale * cos(&all[*first], &all[row])).exp());
            shares.sum::<f64>().ln() - scale * cos(&all[*first], &all[first + 1])
        };
        anchors.iter().zip(&firsts).map(of).sum::<f64>() / anchors.len() as f64
    }

    #[test]
    fn it_is_the_softmax_over_the_batch_without_anchors_and_other_matches() {
        let vectors_md = randn(3, &[9, 5]);
        for scale in [1.0, 20.0] {
            let exact = written(&vectors_md, &anchors(), scale);
            let found = numbers(&cross_entropy(&vectors_md, &anchors(), scale).unwrap())[0];
            assert!((found - exact).abs() < 1e-5 * exact, "{found} {exact}");
            let none: Vec<Anchor> =
                anchors().into_iter().map(|anchor| Anchor { also_match: vec![], ..anchor }).collect();
            assert!(written(&vectors_md, &none, scale) > exact + 1e-3, "what is left out counted");
        }
    }

    #[test]
    fn gradients_are_the_numerical_ones() {
        let x = randn(4, &[9, 5]).to_dtype(DType::F64).unwrap();
        gradients(|a| cross_entropy(&a[0], &anchors(), 3.0), &[x], 1e-6, 1e-6);
    }

    #[test]
    fn a_vector_of_zeros_is_no_fault_of_numbers_and_rows_must_fit() {
        let zeros = Tensor::zeros((4, 3), DType::F32, &candle_core::Device::Cpu).unwrap();
        let two = vec![Anchor::default(), Anchor::default()];
        let loss = numbers(&cross_entropy(&zeros, &two, 20.0).unwrap())[0];
        assert!((loss - 2.0_f64.ln()).abs() < 1e-6, "{loss}");
        let text = cross_entropy(&zeros, &two[..1], 20.0).unwrap_err().to_string();
        assert!(text.contains("4 vectors, but 1 anchors have 2 rows"), "{text}");
        assert!(cross_entropy(&zeros, &[], 20.0).is_err());
    }
}
