//! Label-embedding attention (Wang, Si, Wang, Zhang, Carin and Henao 2020, "Integrating Task Specific Information into Pretrained Language
//! Models for Low Resource Fine Tuning", equations 6 to 9): what the first token attends to is the most that it or any label's embedding asks of a token.
//!
//! Labels come as queries, through the projection of the layer. Their embeddings are parameters, which a loss of their own holds each to its class.

pub mod begin;
mod rows;

use std::sync::Arc;

use base::setting::InvalidSetting;
use candle_core::{D, Result, Tensor};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::plain::Padded;
use super::plain::rows::Rows;
use super::{Attention, AttentionPass, Composed, Heads, Numeric, OnCuda, OnNumbers, Sibling, Site};
use crate::encoder::config::Config;
use crate::encoder::tokens::{Span, Tokens};
use crate::nn::buffers::{Buffer, Buffers};
use crate::nn::cross_entropy::cross_entropy;
use crate::nn::{Host, at_least_single, single};
use crate::params::{self, Init, Params, Spec};
use rows::LabelRows;

/// What its parameters are called among the outputs.
pub(crate) const NAME: &str = "label_attention";

/// Where the paper and its reference code differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Label scores are divided by the square root of a head's width, like those of tokens (equation 6), and the label loss is a sum over labels
    /// (equation 9).
    #[default]
    Paper,
    /// As in the reference code: label scores are not scaled, and the label loss is a mean. (That code also makes the first token attend to nothing
    /// but padding; that cannot happen here, where rows have none.)
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

/// Attention with the labels of a model's one task.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelAttention {
    /// Where the paper and its reference code differ.
    pub mode: Mode,
    /// What the labels' loss weighs beside the task's (lambda; published: 3). With `repo` it is a mean over the labels, with `paper` a sum. The
    /// task's alpha scales both.
    pub lambda: f64,
}

impl LabelAttention {
    /// What the mean loss of m labels is multiplied by: lambda, and with the paper a sum.
    pub(crate) fn weight(&self, m: usize) -> f64 {
        match self.mode {
            Mode::Paper => self.lambda * m as f64,
            Mode::Repo => self.lambda,
        }
    }
}

/// The same, of a task with so many classes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfClasses {
    pub(crate) settings: LabelAttention,
    pub(crate) classes: usize,
}

/// The name of the labels' embeddings, `[m, d]`.
pub(crate) fn name() -> String {
    params::of_outputs(&format!("{NAME}.embeddings"))
}

impl Sibling for OfClasses {
    fn to_json(&self) -> serde_json::Result<Value> {
        Ok(json!({ "labels": self.settings, "classes": self.classes }))
    }

    fn check(&self) -> std::result::Result<(), InvalidSetting> {
        let lambda = self.settings.lambda;
        if lambda >= 0.0 && lambda.is_finite() {
            return Ok(());
        }
        Err(InvalidSetting::new("labels.lambda", lambda, "0 or above"))
    }

    /// The labels' embeddings as they begin without anything known of the labels.
    fn specs(&self, encoder: &Config) -> Vec<Spec> {
        vec![Spec::new(name(), &[self.classes, encoder.hidden_size], Init::Normal(encoder.initializer_range))]
    }

    fn build(&self, _: &Config, params: &Params) -> Result<Arc<dyn Attention>> {
        Ok(Arc::new(Labels { embeddings_md: params.get(&name())?, settings: self.settings }))
    }

    fn on_cuda(&self) -> Option<OnCuda> {
        Some(OnCuda::Labels { settings: self.settings, classes: self.classes })
    }
}

/// Labels that every layer of a pass attends with.
#[derive(Debug, Clone)]
pub struct Labels {
    /// Their embeddings X_L, `[m, d]`, the same in every layer.
    pub embeddings_md: Tensor,
    /// How they are attended with.
    pub settings: LabelAttention,
}

impl Attention for Labels {
    fn begin<'a>(&'a self, _: &Tensor, tokens: &'a Tokens) -> Result<Box<dyn AttentionPass + 'a>> {
        tokens.check_unpadded()?;
        tokens.check_unknown()?;
        Ok(Box::new(self))
    }

    /// Label m is of class m (equation 9).
    fn own_loss(&self, logits: &dyn Fn(&Tensor) -> Result<Tensor>) -> Result<Option<Tensor>> {
        let logits_mm = logits(&self.embeddings_md)?;
        let m = logits_mm.dim(0)?;
        let classes: Vec<Option<u32>> = (0..).take(m).map(Some).collect();
        (cross_entropy(&logits_mm, &classes)? * self.settings.weight(m)).map(Some)
    }
}

impl Labels {
    /// What they ask of a layer's tokens, `[m, d]`, in the numbers of the layer.
    fn queries(&self, at: &Site<'_>) -> Result<Tensor> {
        let (m, d) = self.embeddings_md.dims2()?;
        if d != at.d || !d.is_multiple_of(at.heads.count) || m == 0 {
            candle_core::bail!(
                "{m} labels of {d} numbers for {} heads and rows of {} numbers",
                at.heads.count,
                at.d
            );
        }
        at.query.forward(&self.embeddings_md.to_dtype(at.dtype)?)
    }
}

impl AttentionPass for &Labels {
    fn composed(&mut self, at: &Site<'_>, qkv_n3d: &Tensor) -> Result<Composed> {
        at.check(qkv_n3d)?;
        let queries_md = self.queries(at)?;
        let parts = Padded::new(qkv_n3d, at.spans, at.heads)?;
        parts.attend(&amended(&parts, &queries_md, self.settings.mode)?, at.heads)
    }

    fn on_numbers(&mut self, at: &Site<'_>) -> Result<Numeric> {
        let queries_md = self.queries(at)?;
        let (heads, spans, buffers) = (at.heads.clone(), at.spans.to_vec(), at.buffers.clone());
        let (mode, queries) = (self.settings.mode, queries_md.detach().contiguous()?);
        let attention = Fused { heads, mode, queries, spans, d: at.d, buffers };
        Ok(Numeric { attention: Box::new(attention), reads: vec![queries_md] })
    }
}

/// The scores `[b, h, t, t]` of padded rows, those of each first token raised to the labels'. What a token asks of itself stays.
fn amended(parts: &Padded, queries_md: &Tensor, mode: Mode) -> Result<Tensor> {
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

/// The attention on f32 slices.
struct Fused {
    heads: Heads,
    mode: Mode,
    /// `[m, d]`.
    queries: Tensor,
    spans: Vec<Span>,
    d: usize,
    buffers: Buffers,
}

impl Fused {
    fn rows<'a>(&'a self, queries: &'a [f32]) -> LabelRows<'a> {
        let plain = Rows { heads: &self.heads, spans: &self.spans, d: self.d, buffers: &self.buffers };
        LabelRows { scale: single(self.mode.scale(plain.k())), plain, queries }
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

    use super::super::check::{Alone, attend};
    use super::super::plain::Plain;
    use super::*;
    use crate::nn::check::{distance, gradients, randn};
    use crate::nn::dropout::Dropout;
    use base::rng::CounterRng;

    const SPANS: [Span; 3] =
        [Span { start: 0, len: 3 }, Span { start: 3, len: 1 }, Span { start: 4, len: 6 }];
    const HEADS: Heads = Heads { count: 2, dropout: None, seen: None };

    /// The contexts of queries, keys and values and of what labels ask.
    fn forward(heads: &Heads, mode: Mode, a: &[Tensor]) -> Result<Tensor> {
        let settings = LabelAttention { mode, lambda: 0.0 };
        let labels = Labels { embeddings_md: a[1].clone(), settings };
        attend(&mut &labels, &Alone::new(heads, &SPANS), &a[0])
    }

    #[test]
    fn gradients_are_the_numerical_ones() {
        for mode in [Mode::Paper, Mode::Repo] {
            for dropout in [None, Some(Dropout::new(CounterRng::new(1), 0.3))] {
                let heads = Heads { dropout, ..HEADS };
                let at = [randn(1, &[10, 18]), randn(2, &[3, 6])];
                gradients(|a| forward(&heads, mode, a), &at, 3e-3, 1e-2);
            }
        }
    }

    #[test]
    fn both_forms_agree_in_values_gradients_and_dropout() {
        for mode in [Mode::Paper, Mode::Repo] {
            for dropout in [None, Some(Dropout::new(CounterRng::new(1), 0.3))] {
                let heads = Heads { dropout, ..HEADS };
                // Two labels are alike: the gradient of what they ask goes to the first.
                let (qkv, labels) = (randn(1, &[10, 18]), randn(2, &[3, 6]));
                let labels = Tensor::cat(&[&labels, &labels.narrow(0, 0, 1).unwrap()], 0).unwrap();
                let run = |dtype| {
                    let var = |t: &Tensor| Var::from_tensor(&t.to_dtype(dtype).unwrap()).unwrap();
                    let vars = [var(&qkv), var(&labels)];
                    let given = vars.each_ref().map(|v| v.as_tensor().clone());
                    let y = forward(&heads, mode, &given).unwrap();
                    let grads = y.sin().unwrap().sum_all().unwrap().backward().unwrap();
                    (y, vars.map(|var| grads.get(&var).unwrap().clone()))
                };
                let (y, [d_qkv, d_labels]) = run(DType::F32);
                let (exact, [of_qkv, of_labels]) = run(DType::F64);
                for (a, b) in [(&y, &exact), (&d_qkv, &of_qkv), (&d_labels, &of_labels)] {
                    assert!(distance(a, b) < 1e-5, "{mode:?} {dropout:?}: {}", distance(a, b));
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
        let with = forward(&HEADS, Mode::Paper, &[qkv.clone(), none.unwrap()]).unwrap();
        let plain = attend(&mut Plain, &Alone::new(&HEADS, &SPANS), &qkv).unwrap();
        let rows = |t: &Tensor| t.to_vec2::<f32>().unwrap();
        let (with, plain) = (rows(&with), rows(&plain));
        for (at, (with, plain)) in with.iter().zip(&plain).enumerate() {
            let first = SPANS.iter().any(|span| span.start == at && span.len > 1);
            assert_eq!(with != plain, first, "token {at}");
        }
    }

    #[test]
    fn shapes_that_do_not_fit_are_errors() {
        for dtype in [DType::F32, DType::F64] {
            let of = |seed, shape: &[usize]| randn(seed, shape).to_dtype(dtype).unwrap();
            let text = forward(&HEADS, Mode::Paper, &[of(1, &[10, 18]), of(2, &[3, 5])]).unwrap_err();
            let expected = "3 labels of 5 numbers for 2 heads and rows of 6 numbers";
            assert!(text.to_string().contains(expected), "{text}");
        }
        let of = |seed, shape: &[usize]| randn(seed, shape).to_dtype(DType::F64).unwrap();
        let text = forward(&HEADS, Mode::Paper, &[of(1, &[9, 18]), of(2, &[3, 6])]).unwrap_err();
        assert!(text.to_string().contains("do not cover the 9 tokens"), "{text}");
    }
}
