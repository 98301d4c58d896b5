//! Softmax cross entropy of the one right row among the rows of a group: a query's candidates (Humeau et al. 2020).

use candle_core::{CpuStorage, CustomOp1, D, Layout, Result, Shape, Tensor};

use super::cross_entropy::{gradient_of_row, of_row};
use super::form::{at_least_single, fused};
use super::host::{Host, read, wide};
use super::math::single;

/// Mean over groups of `-log softmax(scores of the group)[right]`, as a tensor without axes. The groups `(rows, right)` stand one behind the
/// other in `scores_m`; `right` counts from 0 within its group.
///
/// # Errors
/// When the groups do not have as many rows as there are scores, one has none or its right row lies outside, or there is no group.
pub fn group_cross_entropy(scores_m: &Tensor, groups: &[(usize, usize)]) -> Result<Tensor> {
    let (scores, rows) = (scores_m.dims1()?, groups.iter().map(|(rows, _)| rows).sum::<usize>());
    if groups.is_empty() {
        candle_core::bail!("a loss over no groups");
    }
    if scores != rows {
        candle_core::bail!("{scores} scores, but the groups have {rows} rows");
    }
    if let Some((rows, right)) = groups.iter().find(|(rows, right)| right >= rows) {
        candle_core::bail!("a group of {rows} rows has no row {right} (from 0)");
    }
    let op = GroupCrossEntropy { groups: groups.to_vec() };
    let scores_m = at_least_single(scores_m)?;
    if fused(&scores_m) { scores_m.contiguous()?.apply_op1(op) } else { op.composed(&scores_m) }
}

/// Groups of a step are few and short, so one thread goes through them.
struct GroupCrossEntropy {
    groups: Vec<(usize, usize)>,
}

impl GroupCrossEntropy {
    /// Where each group begins, how many rows it has and which is right.
    fn places(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        self.groups.iter().scan(0, |first, &(rows, right)| {
            let start = *first;
            *first += rows;
            Some((start, rows, right))
        })
    }

    fn composed(&self, scores_m: &Tensor) -> Result<Tensor> {
        let mut losses = vec![];
        for (start, rows, right) in self.places() {
            let scores_g = scores_m.narrow(0, start, rows)?;
            let shifted_g = scores_g.broadcast_sub(&scores_g.max_keepdim(D::Minus1)?.detach())?;
            let log_sum = shifted_g.exp()?.sum_all()?.log()?;
            losses.push((log_sum - shifted_g.get(right)?)?);
        }
        Tensor::stack(&losses, 0)?.mean_all()
    }
}

impl CustomOp1 for GroupCrossEntropy {
    fn name(&self) -> &'static str {
        "group-cross-entropy"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let x = read(x, layout)?;
        let losses = self.places().map(|(start, rows, right)| of_row(&x[start..start + rows], right));
        let mean = losses.sum::<f64>() / self.groups.len() as f64;
        Ok((CpuStorage::F32(vec![single(mean)]), Shape::from(())))
    }

    fn bwd(&self, arg: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let scale = grad.to_scalar::<f32>()? / self.groups.len() as f32;
        let host = Host::of(arg)?;
        let x = host.get()?;
        let mut dx = vec![0.0; x.len()];
        for (start, rows, right) in self.places() {
            let (x, dx) = (&x[start..start + rows], &mut dx[start..start + rows]);
            wide!(gradient_of_row(x, right, scale, dx));
        }
        Ok(Some(Tensor::from_vec(dx, arg.shape(), arg.device())?))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::DType;

    use super::super::check::{forms_agree, gradients, numbers, randn};
    use super::super::cross_entropy::cross_entropy;
    use super::*;

    const GROUPS: [(usize, usize); 4] = [(3, 2), (1, 0), (5, 0), (2, 1)];

    #[test]
    fn forms_agree_in_values_and_gradients() {
        forms_agree(|a| group_cross_entropy(&a[0], &GROUPS), &[randn(1, &[11])], 1e-5);
    }

    #[test]
    fn gradients_are_the_numerical_ones() {
        let x = randn(1, &[11]);
        gradients(|a| group_cross_entropy(&a[0], &GROUPS), std::slice::from_ref(&x), 1e-2, 5e-3);
        gradients(|a| group_cross_entropy(&a[0], &GROUPS), &[x.to_dtype(DType::F64).unwrap()], 1e-5, 1e-7);
    }

    #[test]
    fn it_is_the_mean_of_each_group_alone() {
        let x = (randn(2, &[11]) * 40.0).unwrap();
        let alone = [(0, 3, 2), (3, 1, 0), (4, 5, 0), (9, 2, 1)].map(|(start, rows, right)| {
            let group_1c = x.narrow(0, start, rows).unwrap().reshape((1, rows)).unwrap();
            numbers(&cross_entropy(&group_1c, &[Some(right)]).unwrap())[0]
        });
        let exact = alone.iter().sum::<f64>() / 4.0;
        for x in [x.clone(), x.to_dtype(DType::F64).unwrap()] {
            let found = numbers(&group_cross_entropy(&x, &GROUPS).unwrap())[0];
            assert!((found - exact).abs() < 1e-5 * exact, "{found} {exact}");
        }
    }

    #[test]
    fn bad_groups_are_errors() {
        let x = randn(1, &[3]);
        let text = |groups: &[(usize, usize)]| group_cross_entropy(&x, groups).unwrap_err().to_string();
        assert!(text(&[]).contains("over no groups"));
        assert!(text(&[(2, 0)]).contains("3 scores, but the groups have 2 rows"));
        assert!(text(&[(3, 3)]).contains("a group of 3 rows has no row 3"));
        assert!(text(&[(3, 0), (0, 0)]).contains("a group of 0 rows has no row 0"));
    }
}
