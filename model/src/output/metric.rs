//! The loss of a metric: rows that name the same are drawn together, others pushed apart (SapBERT: Liu et al. 2021).

use candle_core::{DType, Result, Tensor};

use super::in_batch::unit;
use super::targets::Identity;
use crate::nn::on_cpu;
use crate::nn::pair_loss::{Pair, PairLoss, pair_loss};

/// The loss of vectors `[m, d]`, no axes, over all pairs of rows, or the hard ones among them ([`hard`]).
///
/// # Errors
/// When there is not one row for each vector.
pub(super) fn loss(
    vectors_md: &Tensor,
    rows: &[Identity],
    loss: PairLoss,
    margin: Option<f64>,
) -> Result<Tensor> {
    if rows.len() != vectors_md.dim(0)? {
        candle_core::bail!("{} vectors, but {} rows", vectors_md.dim(0)?, rows.len());
    }
    let unit_md = unit(vectors_md)?;
    let cosines_mm = unit_md.matmul(&unit_md.t()?.contiguous()?)?;
    let mut kept = pairs(rows);
    if let Some(margin) = margin {
        let cosines: Vec<f64> = on_cpu(&cosines_mm)?.to_dtype(DType::F64)?.flatten_all()?.to_vec1()?;
        kept.chunks_mut(rows.len()).zip(cosines.chunks(rows.len())).for_each(|(kept, cosines)| {
            hard(kept, cosines, margin);
        });
    }
    pair_loss(&cosines_mm, kept, loss)
}

/// What each two rows are to each other, row by row.
fn pairs(rows: &[Identity]) -> Vec<Pair> {
    let may_be = |one: &Identity, other: &Identity| one.also.binary_search(&other.class).is_ok();
    let pair = |a: usize, b: usize| match (&rows[a], &rows[b]) {
        _ if a == b => Pair::None,
        (one, other) if one.class == other.class => Pair::Positive,
        (one, other) if may_be(one, other) || may_be(other, one) => Pair::None,
        _ => Pair::Negative,
    };
    (0..rows.len()).flat_map(|a| (0..rows.len()).map(move |b| pair(a, b))).collect()
}

/// Leaves of an anchor's pairs those that are in a hard triplet: one whose negative is nearer to the anchor than its positive, or farther by at most `margin`. Distances are those
/// of vectors of length 1 (SapBERT's `metric_learning.py`: `TripletMarginMiner`).
fn hard(kept: &mut [Pair], cosines: &[f64], margin: f64) {
    let distance = |at: usize| (2.0 - 2.0 * cosines[at]).max(0.0).sqrt();
    let of = |kept: &[Pair], wanted: Pair| {
        let all = (0..kept.len()).filter(|at| kept[*at] == wanted);
        all.map(distance).collect::<Vec<f64>>()
    };
    let farthest = of(kept, Pair::Positive).into_iter().fold(f64::NEG_INFINITY, f64::max);
    let nearest = of(kept, Pair::Negative).into_iter().fold(f64::INFINITY, f64::min);
    for (at, pair) in kept.iter_mut().enumerate() {
        let is_hard = match pair {
            Pair::None => continue,
            Pair::Positive => nearest - distance(at) <= margin,
            Pair::Negative => distance(at) - farthest <= margin,
        };
        if !is_hard {
            *pair = Pair::None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::check::{gradients, numbers, randn};

    const LOSS: PairLoss = PairLoss::MultiSimilarity { alpha: 1.0, beta: 10.0, base: 0.5 };

    fn rows() -> Vec<Identity> {
        let of = |class, also: &[u32]| Identity { class, also: also.to_vec() };
        vec![of(0, &[]), of(1, &[2]), of(0, &[]), of(2, &[]), of(1, &[]), of(3, &[])]
    }

    /// Triplets as they are written: each pair that is in one of them.
    fn written(vectors: &[Vec<f64>], margin: f64) -> Vec<Pair> {
        let all = pairs(&rows());
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let unit = |a: &[f64]| a.iter().map(|x| x / dot(a, a).sqrt()).collect::<Vec<f64>>();
        let far = |a: usize, b: usize| {
            let (a, b) = (unit(&vectors[a]), unit(&vectors[b]));
            a.iter().zip(&b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
        };
        let mut kept = vec![Pair::None; 36];
        for (a, p, n) in (0..216).map(|at| (at / 36, at / 6 % 6, at % 6)) {
            if all[a * 6 + p] == Pair::Positive
                && all[a * 6 + n] == Pair::Negative
                && far(a, n) <= far(a, p) + margin
            {
                (kept[a * 6 + p], kept[a * 6 + n]) = (Pair::Positive, Pair::Negative);
            }
        }
        kept
    }

    #[test]
    fn pairs_are_those_of_hard_triplets() {
        for (seed, margin) in [(1, 0.0), (2, 0.2), (3, 0.5), (4, 2.0)] {
            let vectors_md = randn(seed, &[6, 4]);
            let vectors: Vec<Vec<f64>> = vectors_md.to_dtype(DType::F64).unwrap().to_vec2().unwrap();
            let kept = written(&vectors, margin);
            let found = numbers(&loss(&vectors_md, &rows(), LOSS, Some(margin)).unwrap())[0];
            let unit_md = unit(&vectors_md).unwrap();
            let cosines_mm = unit_md.matmul(&unit_md.t().unwrap()).unwrap();
            let exact = numbers(&pair_loss(&cosines_mm, kept.clone(), LOSS).unwrap())[0];
            assert!((found - exact).abs() < 1e-6, "{margin}: {found} {exact}");
            let count = |kept: &[Pair]| kept.iter().filter(|pair| **pair != Pair::None).count();
            assert!(count(&kept) > 0 && (margin == 2.0 || count(&kept) < count(&pairs(&rows()))), "{margin}");
        }
    }

    #[test]
    fn a_row_that_may_be_another_is_told_from_none_of_its_rows() {
        let all = pairs(&rows());
        assert_eq!(
            (all[2], all[10], all[7], all[1]),
            (Pair::Positive, Pair::Positive, Pair::None, Pair::Negative)
        );
        // Row 1 may name what row 3 does; row 4 of the same class may not.
        assert_eq!((all[6 + 3], all[3 * 6 + 1], all[4 * 6 + 3]), (Pair::None, Pair::None, Pair::Negative));
    }

    #[test]
    fn gradients_are_the_numerical_ones() {
        let x = randn(4, &[6, 4]).to_dtype(DType::F64).unwrap();
        for margin in [None, Some(0.3)] {
            for of in [LOSS, PairLoss::InfoNce { temperature: 0.2 }] {
                gradients(|a| loss(&a[0], &rows(), of, margin), std::slice::from_ref(&x), 1e-6, 1e-5);
            }
        }
        assert!(loss(&x, &rows()[1..], LOSS, None).is_err());
    }
}
