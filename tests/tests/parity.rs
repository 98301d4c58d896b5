//! The encoder and the task losses against golden numbers computed with PyTorch (parts a and e).
//!
//! The folder is `ENGRAFT_GOLDENS`, or `tests/fixtures/golden`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use batch::task::{Answer, Task};
use batch::{Batch, Targets};
use candle_core::{DType, Device, Tensor};
use engraft_tests::golden::{Golden, folder, tokens};
use model::attention::Composed;
use model::attention::plain::Plain;
use model::checkpoint;
use model::encoder::config::Config;
use model::encoder::pool::{Pool, Pooling};
use model::encoder::{Encoder, Gates, Pass};
use model::output::shards::{self, Alphas, OutputConfig, Sizes};
use model::output::{Decoder, Loss, Outputs};
use model::params::Params;

/// The rows of a `[b, t, ...]` tensor at the cells `real`, one after the other.
fn real_rows(golden: &Tensor, real: &[u32]) -> Result<Tensor> {
    Ok(golden.flatten(0, 1)?.index_select(&Tensor::new(real, golden.device())?, 0)?)
}

#[test]
fn encoder_with_and_without_gates() -> Result<()> {
    let mut golden = Golden::open("a_encoder")?;
    let checkpoint::Checkpoint { config, params, .. } =
        checkpoint::load(&folder().join("model"), &Device::Cpu)?;
    let encoder = Encoder::new(&config, &params)?;
    let pooler = Pool::new(Pooling::LearnedPooler, &params, "")?;
    let batch = golden.batch("", Task::Relation, Targets::Classes(vec![]))?;
    let tokens = tokens(&[&batch], &config)?;
    let real: Vec<u32> =
        (0..).zip(&batch.attention_mask).filter_map(|(cell, mask)| (*mask == 1).then_some(cell)).collect();
    for (variant, gates) in
        [("plain", None), ("hardmask", Some("head_mask.hard")), ("softmask", Some("head_mask.soft"))]
    {
        let gates_lh = gates.map(|name| golden.get(name).cloned()).transpose()?;
        let gates = gates_lh.as_ref().map_or(Gates::Open, Gates::Shared);
        let hidden = encoder.forward(&config, &tokens, &Pass { gates, ..Pass::PLAIN })?;
        for (i, x_nd) in hidden.iter().enumerate() {
            let name = format!("{variant}.hidden.{i}");
            let expected = real_rows(golden.get(&name)?, &real)?;
            golden.compare(&name, x_nd, &expected)?;
        }
        let last = hidden.last().context("an encoder has hidden states")?;
        golden.compare_all(&format!("{variant}.pooled"), &pooler.forward(last, &tokens.spans)?)?;
        if variant == "plain" {
            let layers = encoder.inspect(&hidden[..config.num_hidden_layers], &tokens, &Plain)?;
            for (l, Composed { probs_bhtt, .. }) in layers.iter().enumerate() {
                compare_probabilities(
                    &mut golden,
                    &format!("plain.attention_probs.{l}"),
                    probs_bhtt,
                    &batch,
                )?;
            }
        }
    }
    golden.complete(|name| {
        name.contains(".hidden.") || name.contains(".pooled") || name.contains("attention_probs")
    });
    Ok(())
}

/// Compares what real tokens pay to real tokens, and asserts that the golden pays nothing to padding.
fn compare_probabilities(golden: &mut Golden, name: &str, probs_bhtt: &Tensor, batch: &Batch) -> Result<()> {
    for row in 0..batch.rows {
        let mask = &batch.attention_mask[row * batch.width..(row + 1) * batch.width];
        let real: Vec<u32> = (0..).zip(mask).filter_map(|(t, m)| (*m == 1).then_some(t)).collect();
        let index = Tensor::new(real.as_slice(), &Device::Cpu)?;
        let expected_htt = golden.get(name)?.get(row)?.index_select(&index, 1)?;
        let padding: f32 = expected_htt.sum_all()?.to_scalar::<f32>()?
            - expected_htt.index_select(&index, 2)?.sum_all()?.to_scalar::<f32>()?;
        ensure!(padding.abs() < 1e-3, "{name}: row {row} attends to padding");
        let found_htt = probs_bhtt.get(row)?.narrow(1, 0, real.len())?.narrow(2, 0, real.len())?;
        golden.compare(name, &found_htt, &expected_htt.index_select(&index, 2)?)?;
    }
    Ok(())
}

/// The model of part e with one way to pool and one to predict entities.
struct Scene {
    config: Config,
    params: Params,
    encoder: Encoder,
    outputs: Outputs,
}

impl Scene {
    fn new(golden: &Golden, pooling: Pooling, entity: Decoder) -> Result<Self> {
        let checkpoint::Checkpoint { config, params, .. } =
            checkpoint::load(&folder().join("model"), &Device::Cpu)?;
        let choice = OutputConfig { pooling, entity, dropout: 0.0 };
        let sizes = Sizes { relations: golden.get("head.relation.weight")?.dim(0)?, tags: 0 };
        let outline = choice.outline(&Alphas::default(), sizes);
        let specs = outline.specs(&config);
        let stored = |name: &str| {
            golden.get(&name.replace("outputs.", "head.").replace("masked_lm.", "mlm.")).cloned()
        };
        let tensors = specs.iter().map(|s| Ok((s.name.clone(), stored(&s.name)?))).collect::<Result<_>>()?;
        let params = params.with(Params::from_tensors(&specs, tensors)?);
        let (encoder, outputs) = (Encoder::new(&config, &params)?, Outputs::new(&outline, &config, &params)?);
        Ok(Scene { config, params, encoder, outputs })
    }

    /// The losses of all four batches of a layout, in one pass.
    fn losses(&self, golden: &Golden, layout: &str) -> Result<BTreeMap<Task, Loss>> {
        let batch = |task: Task| {
            let prefix = format!("{layout}.{}.", task.name());
            let targets = match task {
                _ if task.answer() == Answer::Tokens => {
                    Targets::Tokens(golden.integers(&format!("{prefix}mlm_labels"))?)
                }
                _ => Targets::Classes(golden.integers(&format!("{prefix}labels"))?),
            };
            golden.batch(&prefix, task, targets)
        };
        let batches = Task::GRAPH.into_iter().map(batch).collect::<Result<Vec<_>>>()?;
        let batches: Vec<&Batch> = batches.iter().collect();
        let tokens = tokens(&batches, &self.config)?;
        let hidden = self.encoder.forward(&self.config, &tokens, &Pass::PLAIN)?;
        let x_nd = hidden.last().context("an encoder has hidden states")?;
        let each = batches.iter().enumerate();
        each.map(|(i, padded)| {
            let batch = shards::batch(self.outputs.outline(), padded)?;
            let rows = self.outputs.rows(&tokens, i, batch.task);
            Ok((padded.task, self.outputs.loss(x_nd, rows, &batch, None)?))
        })
        .collect()
    }
}

/// The layouts that the file holds.
fn layouts(golden: &Golden) -> BTreeSet<String> {
    golden.tensors.keys().filter_map(|name| Some(name.split_once(".loss.")?.0.to_owned())).collect()
}

#[test]
fn losses_and_logits_for_every_layout_and_pooling() -> Result<()> {
    let mut golden = Golden::open("e_kg_losses")?;
    for layout in layouts(&golden) {
        for pooling in Pooling::ALL {
            let losses = Scene::new(&golden, pooling, Decoder::Linear)?.losses(&golden, &layout)?;
            for (task, loss) in losses {
                let name = match task {
                    _ if task.answer() == Answer::Tokens => task.name().to_owned(),
                    _ => format!("{}.{}", task.name(), pooling.name()),
                };
                golden.compare_all(&format!("{layout}.loss.{name}"), &loss.loss)?;
                if matches!(task, Task::Relation | Task::Triplet) {
                    golden.compare_all(&format!("{layout}.logits.{name}"), &loss.logits_mc)?;
                }
            }
        }
        let losses = Scene::new(&golden, Pooling::Cls, Decoder::MaskedLm)?.losses(&golden, &layout)?;
        for task in [Task::Subject, Task::Object] {
            golden.compare_all(&format!("{layout}.loss.{}_hf_mlm_head", task.name()), &losses[&task].loss)?;
        }
    }
    golden.complete(|name| name.contains(".loss.") || name.contains(".logits."));
    Ok(())
}

/// The sum of the losses whose digit in `alphas` (in the order of [`Task::GRAPH`]) is not 0.
fn total(losses: &BTreeMap<Task, Loss>, alphas: &str) -> Result<Tensor> {
    let mut total = Tensor::zeros((), DType::F32, &Device::Cpu)?;
    ensure!(alphas.len() == Task::GRAPH.len(), "alphas {alphas}");
    for (task, alpha) in Task::GRAPH.iter().zip(alphas.chars()) {
        let alpha = f64::from(alpha.to_digit(10).with_context(|| format!("alphas {alphas}"))?);
        total = (total + (&losses[task].loss * alpha)?)?;
    }
    Ok(total)
}

#[test]
fn totals_and_their_gradients() -> Result<()> {
    let mut golden = Golden::open("e_kg_losses")?;
    let names: Vec<String> = golden.tensors.keys().cloned().collect();
    for layout in layouts(&golden) {
        let scene = Scene::new(&golden, Pooling::Cls, Decoder::Linear)?;
        let losses = scene.losses(&golden, &layout)?;
        for name in &names {
            if let Some(alphas) = name.strip_prefix(&format!("{layout}.total_cls.alpha")) {
                golden.compare_all(name, &total(&losses, alphas)?)?;
            }
        }
        // The stored gradients are those of all four losses with weight 1.
        let grads = total(&losses, &"1".repeat(Task::GRAPH.len()))?.backward()?;
        for name in &names {
            let Some(parameter) = name.strip_prefix(&format!("{layout}.grad_total_cls.")) else { continue };
            let ours = parameter.replace("head.", "outputs.");
            let Some((_, param)) = scene.params.iter().find(|(n, _)| *n == ours) else {
                bail!("the model has no parameter {ours}")
            };
            let grad = grads.get(param).cloned().map_or_else(|| param.zeros_like(), Ok)?;
            golden.compare_all(name, &grad)?;
        }
    }
    golden.complete(|name| name.contains("total_cls"));
    Ok(())
}
