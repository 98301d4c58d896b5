//! The loss of a translation: a subject moved by its relation is nearer to its object than to another row, by a margin (TransE: Bordes et al. 2013). Between the
//! vectors of names it is the term of relations in CODER (Yuan et al. 2022, whose `pretrain/trans.py` it is).

use candle_core::{Result, Tensor};

use super::tag::gather;
use super::targets::ROWS_OF_LINK;
use crate::nn::at_least_single;

/// Added to squared distances: at 0 a root has no derivative.
const EPSILON: f64 = 1e-12;

/// Mean over samples of `max(0, margin + |s + r - o| - |s + r - x|)`, no axes, of the vectors `[3 q, d]` of subjects s, objects o and other rows x, one sample behind the
/// other, and those of relations `[r, d]`. Vectors are not brought to one length.
///
/// # Errors
/// When there are not three rows for each relation in `links`, or none.
pub(super) fn loss(vectors_md: &Tensor, moves_rd: &Tensor, links: &[u32], margin: f64) -> Result<Tensor> {
    let (rows, d) = vectors_md.dims2()?;
    if rows != ROWS_OF_LINK * links.len() || rows == 0 {
        candle_core::bail!("{rows} vectors, but {} samples of three", links.len());
    }
    let vectors_q3d = at_least_single(vectors_md)?.reshape((links.len(), ROWS_OF_LINK, d))?;
    let of = |place: usize| vectors_q3d.narrow(1, place, 1)?.squeeze(1);
    let moves_qd = gather(moves_rd, links)?.to_dtype(vectors_q3d.dtype())?;
    let moved_qd = (of(0)? + moves_qd)?;
    let far = |other_qd: &Tensor| (((&moved_qd - other_qd)?.sqr()?.sum(1)? + EPSILON)?).sqrt();
    let wrong_q = (far(&of(1)?)? - far(&of(2)?)?)?;
    (wrong_q + margin)?.relu()?.mean_all()
}

#[cfg(test)]
mod tests {
    use candle_core::DType;

    use super::*;
    use crate::nn::check::{gradients, numbers, randn};

    #[test]
    fn it_is_the_mean_of_what_objects_are_too_far() {
        let [vectors, moves] = [randn(1, &[9, 4]), randn(2, &[3, 4])];
        let links = [2, 0, 2];
        let [v, r]: [Vec<Vec<f64>>; 2] =
            [&vectors, &moves].map(|of| of.to_dtype(DType::F64).unwrap().to_vec2().unwrap());
        let far = |s: usize, relation: u32, o: usize| {
            let r = &r[relation as usize];
            (0..4).map(|i| (v[s][i] + r[i] - v[o][i]).powi(2)).sum::<f64>().sqrt()
        };
        for margin in [0.5, 4.0] {
            let of = |(q, relation): (usize, &u32)| {
                (margin + far(3 * q, *relation, 3 * q + 1) - far(3 * q, *relation, 3 * q + 2)).max(0.0)
            };
            let expected = links.iter().enumerate().map(of).sum::<f64>() / 3.0;
            let found = numbers(&loss(&vectors, &moves, &links, margin).unwrap())[0];
            assert!((found - expected).abs() < 1e-5 && expected > 0.0, "{found} {expected}");
        }
        assert!(loss(&vectors, &moves, &links[..2], 1.0).is_err());
    }

    #[test]
    fn gradients_are_the_numerical_ones() {
        let all = [randn(3, &[6, 4]), randn(4, &[3, 4])].map(|of| of.to_dtype(DType::F64).unwrap());
        gradients(|of| loss(&of[0], &of[1], &[1, 0], 3.0), &all, 1e-6, 1e-6);
        let zeros = randn(5, &[3, 4]).zeros_like().unwrap();
        let flat = numbers(&loss(&zeros, &zeros, &[1], 1.0).unwrap())[0];
        assert!((flat - 1.0).abs() < 1e-6, "{flat}");
    }
}
