//! Label-embedding attention (Wang, Si, Wang, Zhang, Carin and Henao 2020, "Integrating Task Specific Information into Pretrained Language
//! Models for Low Resource Fine Tuning", equations 6 to 8): what the first token attends to is the most that it or any label's embedding asks of a token.
//!
//! As plain attention takes it, queries, keys and values come side by side; labels come as queries, through the projection of the layer.

mod rows;

use candle_core::{D, Result, Tensor};
use serde::{Deserialize, Serialize};

use super::plain::rows::Rows;
use super::plain::{self, Attention};
use super::{Numeric, OnNumbers};
use crate::encoder::tokens::Span;
use crate::nn::buffers::{Buffer, Buffers};
use crate::nn::{Host, at_least_single};
use rows::LabelRows;

/// Where the paper and its released code differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Scores of labels are divided by the square root of a head's width, as those of tokens are (equation 6).
    Paper,
    /// They are not, as in the released code. (That it also makes the first token attend to nothing but padding cannot happen here, where rows
    /// have none.)
    Repo,
}

impl Mode {
    /// What products of label queries and keys are multiplied by, heads being `k` numbers wide.
    fn scale(self, k: usize) -> f64 {
        match self {
            Mode::Paper => 1.0 / (k as f64).sqrt(),
            Mode::Repo => 1.0,
        }
    }
}

/// Labels that every layer of a pass attends with.
#[derive(Debug, Clone)]
pub struct Labels {
    /// Their embeddings X_L, `[m, d]`, the same in every layer.
    pub embeddings_md: Tensor,
    /// How their scores are scaled.
    pub mode: Mode,
}

/// The context of every head, heads side by side: `[n, d]`. `queries_md` are the labels' embeddings through the layer's projection of queries.
///
/// # Errors
/// When shapes do not fit, or the spans do not cover the rows of `qkv_n3d` in order.
pub(crate) fn forward(
    (how, mode): (&Attention, Mode),
    [qkv_n3d, queries_md]: [&Tensor; 2],
    spans: &[Span],
) -> Result<Tensor> {
    check(how.heads, [qkv_n3d, queries_md], spans)?;
    let parts = plain::Padded::new(qkv_n3d, spans, how)?;
    let scores_bhtt = amended(&parts, queries_md, mode)?;
    parts.context(&scores_bhtt, how)
}

/// The same within a layer that is one operation.
///
/// # Errors
/// When shapes do not fit.
pub(crate) fn on_numbers(
    (how, mode): (Attention, Mode),
    queries_md: &Tensor,
    spans: &[Span],
    buffers: &Buffers,
) -> Result<Numeric> {
    let (m, d) = queries_md.dims2()?;
    check_labels(how.heads, (m, d))?;
    let (spans, buffers) = (spans.to_vec(), buffers.clone());
    let queries = queries_md.detach().contiguous()?;
    let attention = Fused { how, mode, queries, spans, d, buffers };
    Ok(Numeric { attention: Box::new(attention), reads: vec![queries_md.clone()] })
}

/// Whether labels, tokens and rows fit each other.
fn check(heads: usize, [qkv_n3d, queries_md]: [&Tensor; 2], spans: &[Span]) -> Result<()> {
    let ((n, width), (m, d)) = (qkv_n3d.dims2()?, queries_md.dims2()?);
    if width != 3 * d {
        candle_core::bail!("{m} labels of {d} numbers, and {width} columns of queries, keys and values");
    }
    check_labels(heads, (m, d))?;
    plain::check_spans(spans, n)
}

/// Whether there are labels, as wide as some heads are.
fn check_labels(heads: usize, (m, d): (usize, usize)) -> Result<()> {
    if !d.is_multiple_of(heads) || m == 0 {
        candle_core::bail!("{m} labels of {d} numbers for {heads} heads");
    }
    Ok(())
}

/// The scores `[b, h, t, t]` of padded rows, those of each first token raised to the labels'. What a token asks of itself stays.
fn amended(parts: &plain::Padded, queries_md: &Tensor, mode: Mode) -> Result<Tensor> {
    let scores_bhtt = parts.scores()?;
    let ((b, h, t, k), (m, _)) = (parts.k_bhtk.dims4()?, queries_md.dims2()?);
    if t == 1 {
        return Ok(scores_bhtt);
    }
    let queries_hmk = queries_md.reshape((m, h, k))?.transpose(0, 1)?.contiguous()?;
    let queries_bhmk = queries_hmk.unsqueeze(0)?.broadcast_as((b, h, m, k))?.contiguous()?;
    let labels_bhmt = queries_bhmk.matmul(&parts.k_bhtk.transpose(2, 3)?.contiguous()?)?;
    let labels_bhmt = (at_least_single(&labels_bhmt)? * mode.scale(k))?;
    let first_bh1t = scores_bhtt.narrow(2, 0, 1)?;
    // The gradient goes to one of them; candle's maximum would hand it to each of several that are alike.
    let all_bhut = Tensor::cat(&[&first_bh1t, &labels_bhmt], 2)?;
    let most_bh1t = all_bhut.gather(&all_bhut.detach().argmax_keepdim(2)?, 2)?;
    let first_bh1t =
        Tensor::cat(&[&first_bh1t.narrow(D::Minus1, 0, 1)?, &most_bh1t.narrow(D::Minus1, 1, t - 1)?], 3)?;
    Tensor::cat(&[&first_bh1t, &scores_bhtt.narrow(2, 1, t - 1)?], 2)
}

/// The attention probabilities `[b, h, t, t]`, rows padded to the longest.
///
/// # Errors
/// When shapes do not fit.
pub(crate) fn probabilities(
    (how, mode): (&Attention, Mode),
    [qkv_n3d, queries_md]: [&Tensor; 2],
    spans: &[Span],
) -> Result<Tensor> {
    check(how.heads, [qkv_n3d, queries_md], spans)?;
    let parts = plain::Padded::new(qkv_n3d, spans, how)?;
    parts.probabilities(&amended(&parts, queries_md, mode)?)
}

/// The attention on f32 slices.
struct Fused {
    how: Attention,
    mode: Mode,
    /// `[m, d]`.
    queries: Tensor,
    spans: Vec<Span>,
    d: usize,
    buffers: Buffers,
}

impl Fused {
    fn rows<'a>(&'a self, queries: &'a [f32]) -> LabelRows<'a> {
        let plain = Rows { how: &self.how, spans: &self.spans, d: self.d, buffers: &self.buffers };
        LabelRows { scale: crate::nn::single(self.mode.scale(plain.k())), plain, queries }
    }
}

impl OnNumbers for Fused {
    fn context(&self, qkv: &[f32]) -> Result<Buffer> {
        Ok(self.rows(Host::of(&self.queries)?.get()?).context(qkv))
    }

    fn gradient(&self, qkv: &[f32], d_context: &[f32]) -> Result<(Buffer, Vec<Tensor>)> {
        let (d_qkv, d_queries) = self.rows(Host::of(&self.queries)?.get()?).gradient(qkv, d_context);
        Ok((d_qkv, vec![Tensor::from_vec(d_queries, self.queries.shape(), self.queries.device())?]))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Var};

    use super::*;
    use crate::nn::check::{distance, gradients, randn};
    use crate::nn::dropout::Dropout;
    use base::rng::CounterRng;

    const SPANS: [Span; 3] =
        [Span { start: 0, len: 3 }, Span { start: 3, len: 1 }, Span { start: 4, len: 6 }];

    fn attend(how: &Attention, mode: Mode, a: &[Tensor]) -> Result<Tensor> {
        forward((how, mode), [&a[0], &a[1]], &SPANS)
    }

    #[test]
    fn gradients_are_the_numerical_ones() {
        for mode in [Mode::Paper, Mode::Repo] {
            for dropout in [None, Some(Dropout::new(CounterRng::new(1), 0.3))] {
                let how = Attention { heads: 2, dropout, seen: None };
                let at = [randn(1, &[10, 18]), randn(2, &[3, 6])];
                gradients(|a| attend(&how, mode, a), &at, (3e-3, 1e-2));
            }
        }
    }

    #[test]
    fn both_forms_agree_in_values_gradients_and_dropout() {
        for mode in [Mode::Paper, Mode::Repo] {
            for dropout in [None, Some(Dropout::new(CounterRng::new(1), 0.3))] {
                let how = Attention { heads: 2, dropout, seen: None };
                // Two labels are alike: the gradient of what they ask goes to the first.
                let (qkv, labels) = (randn(1, &[10, 18]), randn(2, &[3, 6]));
                let labels = Tensor::cat(&[&labels, &labels.narrow(0, 0, 1).unwrap()], 0).unwrap();
                let slice = |t: &Tensor| t.flatten_all().unwrap().to_vec1::<f32>().unwrap();
                let Numeric { attention, .. } =
                    on_numbers((how.clone(), mode), &labels, &SPANS, &Buffers::new()).unwrap();
                let y = Tensor::new(&*attention.context(&slice(&qkv)).unwrap(), qkv.device()).unwrap();
                let y = y.reshape((10, 6)).unwrap();
                let (d_qkv, others) = attention.gradient(&slice(&qkv), &slice(&y.cos().unwrap())).unwrap();
                let d_qkv = Tensor::new(&*d_qkv, qkv.device()).unwrap().reshape((10, 18)).unwrap();
                let run = |dtype| {
                    let var = |t: &Tensor| Var::from_tensor(&t.to_dtype(dtype).unwrap()).unwrap();
                    let vars = [var(&qkv), var(&labels)];
                    let y = attend(&how, mode, &vars.each_ref().map(|v| v.as_tensor().clone())).unwrap();
                    let grads = y.sin().unwrap().sum_all().unwrap().backward().unwrap();
                    (y, vars.map(|var| grads.get(&var).unwrap().clone()))
                };
                for dtype in [DType::F32, DType::F64] {
                    let (exact, [of_qkv, of_labels]) = run(dtype);
                    for (a, b) in [(&y, &exact), (&d_qkv, &of_qkv), (&others[0], &of_labels)] {
                        assert!(distance(a, b) < 1e-5, "{mode:?} {dropout:?}: {}", distance(a, b));
                    }
                }
                // In bf16 another label may win where two are close: values are near all the same.
                let (c, _) = run(DType::BF16);
                assert!(c.dtype() == DType::BF16 && distance(&y, &c) < 0.15, "{}", distance(&y, &c));
            }
        }
    }

    #[test]
    fn labels_that_ask_for_nothing_change_only_what_no_token_asks_for() {
        // Scores of labels of 0 are 0: the first token's are then raised to 0, all others' stay.
        let (qkv, none) = (randn(1, &[10, 18]), Tensor::zeros((2, 6), DType::F32, &candle_core::Device::Cpu));
        let how = Attention { heads: 2, dropout: None, seen: None };
        let with = attend(&how, Mode::Paper, &[qkv.clone(), none.unwrap()]).unwrap();
        let plain = how.forward(&qkv, &SPANS).unwrap();
        let rows = |t: &Tensor| t.to_vec2::<f32>().unwrap();
        let (with, plain) = (rows(&with), rows(&plain));
        for (at, (with, plain)) in with.iter().zip(&plain).enumerate() {
            let first = SPANS.iter().any(|span| span.start == at && span.len > 1);
            assert_eq!(with != plain, first, "token {at}");
        }
    }

    #[test]
    fn shapes_that_do_not_fit_are_errors() {
        let how = Attention { heads: 2, dropout: None, seen: None };
        let text = attend(&how, Mode::Paper, &[randn(1, &[10, 18]), randn(2, &[3, 5])]).unwrap_err();
        assert!(text.to_string().contains("3 labels of 5 numbers, and 18 columns"), "{text}");
        let text = on_numbers((how.clone(), Mode::Paper), &randn(2, &[3, 5]), &SPANS, &Buffers::new()).err();
        assert!(text.is_some_and(|text| text.to_string().contains("3 labels of 5 numbers for 2 heads")));
        let text = attend(&how, Mode::Paper, &[randn(1, &[9, 18]), randn(2, &[3, 6])]).unwrap_err();
        assert!(text.to_string().contains("do not cover the 9 tokens"), "{text}");
    }
}
