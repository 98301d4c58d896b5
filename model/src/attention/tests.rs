//! A sibling that is known to this file alone: scores fall with the distance of two tokens, by a slope that each head of each layer learns (as ALiBi, Press,
//! Smith and Lewis 2022, whose slopes are fixed). It shows what the trait asks of a new attention, and that training, states and checkpoints ask nothing more.

use base::rng::CounterRng;
use candle_core::{Device, Var};

use super::check::{Alone, attend};
use super::plain::Padded;
use super::plain::rows::{Head, Rows, Scratch};
use super::*;
use crate::checkpoint::{OUTPUTS_WEIGHTS_FILE, stored};
use crate::encoder::config::tests::tiny;
use crate::nn::Host;
use crate::nn::check::{distance, gradients, numbers, randn};
use crate::params::{Init, of_outputs};
use crate::train::Trainer;
use crate::train::tests::{batches, bits, run, setup};

/// The settings: slopes begin at random with this deviation.
#[derive(Debug)]
struct Distance {
    deviation: f64,
}

fn name(l: usize) -> String {
    of_outputs(&format!("distance.layer.{l}.slope"))
}

impl Sibling for Distance {
    fn to_json(&self) -> serde_json::Result<Value> {
        Ok(serde_json::json!({ "distance": self.deviation }))
    }

    fn specs(&self, encoder: &Config) -> Vec<Spec> {
        let slope = |l| Spec::new(name(l), &[encoder.num_attention_heads], Init::Normal(self.deviation));
        (0..encoder.num_hidden_layers).map(slope).collect()
    }

    fn build(&self, encoder: &Config, params: &Params) -> Result<Arc<dyn Attention>> {
        let slopes = (0..encoder.num_hidden_layers).map(|l| params.get(&name(l)));
        Ok(Arc::new(Slopes(slopes.collect::<Result<_>>()?)))
    }
}

/// The slopes of each layer, `[h]`.
#[derive(Debug)]
struct Slopes(Vec<Tensor>);

impl Attention for Slopes {
    fn begin<'a>(&'a self, _: &Tensor, tokens: &'a Tokens) -> Result<Box<dyn AttentionPass + 'a>> {
        tokens.check_unpadded()?;
        tokens.check_unknown()?;
        Ok(Box::new(self))
    }
}

impl AttentionPass for &Slopes {
    fn composed(&mut self, at: &Site<'_>, qkv_n3d: &Tensor) -> Result<Composed> {
        at.check(qkv_n3d)?;
        let parts = Padded::new(qkv_n3d, at.spans, at.heads)?;
        let (t, scores_bhtt) = (parts.grid.t, parts.scores()?);
        let far: Vec<f32> = (0..t * t).map(|cell| (cell / t).abs_diff(cell % t) as f32).collect();
        let far_11tt =
            Tensor::from_vec(far, (1, 1, t, t), qkv_n3d.device())?.to_dtype(scores_bhtt.dtype())?;
        let slope_1h11 = self.0[at.layer].to_dtype(scores_bhtt.dtype())?.reshape((1, (), 1, 1))?;
        parts.attend(&scores_bhtt.broadcast_sub(&slope_1h11.broadcast_mul(&far_11tt)?)?, at.heads)
    }

    fn on_numbers(&mut self, at: &Site<'_>) -> Result<Numeric> {
        let slope = &self.0[at.layer];
        let attention = OnSlices {
            slope: slope.detach(),
            heads: at.heads.clone(),
            spans: at.spans.to_vec(),
            d: at.d,
            buffers: at.buffers.clone(),
        };
        Ok(Numeric { attention: Box::new(attention), reads: vec![slope.clone()] })
    }
}

struct OnSlices {
    slope: Tensor,
    heads: Heads,
    spans: Vec<Span>,
    d: usize,
    buffers: Buffers,
}

/// Takes `slope * |i - j|` from the scores of one head.
fn fall(scores: &mut [f32], t: usize, slope: f32) {
    scores.iter_mut().enumerate().for_each(|(at, score)| *score -= slope * (at / t).abs_diff(at % t) as f32);
}

impl OnSlices {
    fn rows(&self) -> Rows<'_> {
        Rows { heads: &self.heads, spans: &self.spans, d: self.d, buffers: &self.buffers }
    }
}

impl OnNumbers for OnSlices {
    fn context(&self, qkv: &[f32]) -> Result<Buffer> {
        let (rows, host) = (self.rows(), Host::of(&self.slope)?);
        let (slope, mut context) = (host.get()?, self.buffers.any(qkv.len() / 3));
        rows.each(&mut context, self.d, |row, span, out| {
            let qkv = &qkv[3 * self.d * span.start..][..3 * self.d * span.len];
            let mut scratch = Scratch::new(&self.buffers, span.len);
            for (head, slope) in slope.iter().enumerate() {
                let at = Head { row, head, t: span.len };
                rows.scores(at, qkv, &mut scratch);
                fall(&mut scratch.probs, span.len, *slope);
                rows.context_of(at, qkv, &mut scratch, out);
            }
        });
        Ok(context)
    }

    /// With scores S = Q K^T / sqrt k - s D: dQ and dK follow from dS as those of plain attention do, and ds = - sum of dS D.
    fn gradient(&self, qkv: &[f32], d_context: &[f32]) -> Result<(Buffer, Vec<Tensor>)> {
        let (rows, host) = (self.rows(), Host::of(&self.slope)?);
        let (slope, mut d_qkv) = (host.get()?, self.buffers.any(qkv.len()));
        let of_rows = rows.each(&mut d_qkv, 3 * self.d, |row, span, out| {
            let (first, count, t) = (self.d * span.start, self.d * span.len, span.len);
            let (qkv, d_context) = (&qkv[3 * first..][..3 * count], &d_context[first..][..count]);
            let mut scratch = Scratch::new(&self.buffers, t);
            let mut d_slope = vec![0.0; slope.len()];
            for (head, slope) in slope.iter().enumerate() {
                let at = Head { row, head, t };
                rows.scores(at, qkv, &mut scratch);
                fall(&mut scratch.probs, t, *slope);
                rows.gradient_of_scores(at, [qkv, d_context], &mut scratch, out);
                // The gradient comes multiplied by 1 / sqrt k, as that of Q K^T is.
                let cells = scratch.d_probs.iter().enumerate();
                let sum: f32 = cells.map(|(at, g)| g * (at / t).abs_diff(at % t) as f32).sum();
                d_slope[head] = -sum / rows.scale();
                rows.gradient_of_products(at, qkv, &mut scratch, out);
            }
            d_slope
        });
        let mut d_slope = vec![0.0_f32; slope.len()];
        for row in of_rows {
            d_slope.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
        }
        Ok((d_qkv, vec![Tensor::new(d_slope, &Device::Cpu)?]))
    }
}

const SPANS: [Span; 3] = [Span { start: 0, len: 3 }, Span { start: 3, len: 1 }, Span { start: 4, len: 6 }];

fn forward(dropout: Option<Dropout>, a: &[Tensor]) -> Result<Tensor> {
    let heads = Heads { count: 2, dropout, seen: None };
    attend(&mut &Slopes(vec![a[1].clone()]), &Alone::new(&heads, &SPANS), &a[0])
}

#[test]
fn gradients_are_the_numerical_ones_and_both_forms_agree() {
    for dropout in [None, Some(Dropout::new(CounterRng::new(1), 0.3))] {
        let at = [randn(1, &[10, 18]), randn(2, &[2])];
        gradients(|a| forward(dropout, a), &at, 1e-2, 1e-2);
        let run = |dtype| {
            let vars = at.each_ref().map(|t| Var::from_tensor(&t.to_dtype(dtype).unwrap()).unwrap());
            let y = forward(dropout, &vars.each_ref().map(|v| v.as_tensor().clone())).unwrap();
            let grads = y.sin().unwrap().sum_all().unwrap().backward().unwrap();
            (y, vars.map(|var| grads.get(&var).unwrap().clone()))
        };
        let ((a, of_a), (b, of_b)) = (run(DType::F32), run(DType::F64));
        assert!(distance(&a, &b) < 1e-5, "{}", distance(&a, &b));
        for (a, b) in of_a.iter().zip(&of_b) {
            assert!(distance(a, b) < 1e-5, "{}", distance(a, b));
        }
    }
}

#[test]
fn slopes_of_nothing_are_plain_attention() {
    let qkv = randn(1, &[10, 18]);
    let heads = Heads { count: 2, dropout: None, seen: None };
    let none = Tensor::zeros(2, DType::F32, &Device::Cpu).unwrap();
    let plain = attend(&mut plain::Plain, &Alone::new(&heads, &SPANS), &qkv).unwrap();
    assert_eq!(numbers(&forward(None, &[qkv, none]).unwrap()), numbers(&plain));
}

#[test]
fn it_is_trained_resumed_and_saved_like_any_other() {
    let distant =
        || crate::train::config::Setup { attention: Chosen::new(Distance { deviation: 0.1 }), ..setup() };
    let start = || Trainer::new(distant(), &Device::Cpu).unwrap();
    let slopes = |trainer: &Trainer| {
        (0..tiny().num_hidden_layers)
            .flat_map(|l| numbers(&trainer.params().get(&name(l)).unwrap()))
            .collect::<Vec<_>>()
    };
    let mut whole_run = start();
    let before = slopes(&whole_run);
    let records = run(&mut whole_run, 1..=60);
    assert!(records[59].loss < 0.8 * records[0].loss, "{} {}", records[0].loss, records[59].loss);
    assert!(before.iter().zip(slopes(&whole_run)).all(|(before, after)| *before != after));
    // Interrupted, it comes to the same bits; with other settings it is refused.
    let (mut first, dir) = (start(), tempfile::tempdir().unwrap());
    run(&mut first, 1..=30);
    first.save_state(dir.path(), &Value::Null).unwrap();
    let (mut second, _) = Trainer::resume(distant(), dir.path(), &Device::Cpu).unwrap();
    run(&mut second, 31..=60);
    assert_eq!(bits(&second), bits(&whole_run));
    assert!(Trainer::resume(setup(), dir.path(), &Device::Cpu).is_err());
    // A checkpoint has the slopes among the outputs.
    let out = tempfile::tempdir().unwrap();
    second.save_checkpoint(out.path()).unwrap();
    let stored = stored::read_tensors(&out.path().join(OUTPUTS_WEIGHTS_FILE), &Device::Cpu).unwrap();
    let stored: Vec<f64> = stored
        .iter()
        .filter(|(name, _)| name.starts_with("distance."))
        .flat_map(|(_, t)| numbers(t))
        .collect();
    assert_eq!(stored, slopes(&second));
    // The one operation and the composed layers say the same of a batch.
    assert!(second.evaluate(&batches(99)).unwrap().values().all(|record| record.loss.is_finite()));
}
