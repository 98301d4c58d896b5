//! Head importance, the mask search and retraining under a mask against golden numbers computed with PyTorch (parts b, c and d).
//! Knows no number of any golden set: shapes, settings, lists and tolerances come from the folder; what the folder has no tolerance for
//! (losses, norms, the evidence) is held to the bounds stated here.
//!
//! The folder is `ENGRAFT_GOLDENS`, or `tests/fixtures/golden`.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use candle_core::{DType, Device, Tensor};
use engraft_tests::golden::{Golden, folder, json};
use model::checkpoint::{self, CONFIG_FILE, WEIGHTS_FILE};
use model::encoder::config::Config;
use model::encoder::pool::{Pool, Pooling};
use model::encoder::tokens::Tokens;
use model::encoder::{Encoder, Gates, Pass};
use model::head::importance::{AcrossLayers, Each, Importance, Method, Probe, WithinLayer};
use model::head::mask::Mask;
use model::head::search::{self, Kind, Outcome, Selection, StepRule};
use model::head::slices::{self, Axis};
use model::nn::cross_entropy::cross_entropy;
use model::nn::linear::linear;
use model::optim::adamw::{AdamWConfig, decays};
use model::optim::head_mask::SoftOn;
use model::optim::schedule::Schedule;
use model::output::{EntityOutput, OutputConfig, Sizes};
use model::train::Trainer;
use model::train::config::{self as train, Alphas, Setup};
use model::train::heads::{Heads, Mode, Shared};
use serde_json::Value;
use tasks::stream::batch::{Batch, Targets};
use tasks::task::{Answer, Task};

/// A classifier on the pooled output of an encoder that needs no gradients of its weights.
struct Classifier {
    config: Config,
    encoder: Encoder,
    pooler: Pool,
    weight_cd: Tensor,
    bias_c: Tensor,
}

impl Classifier {
    fn new(golden: &Golden, checkpoint: checkpoint::Checkpoint) -> Result<Self> {
        let checkpoint::Checkpoint { config, params, .. } = checkpoint;
        let params = params.freeze(|_| true);
        Ok(Classifier {
            encoder: Encoder::new(&config, &params)?,
            pooler: Pool::new(Pooling::LearnedPooler, &params, "")?,
            config,
            weight_cd: golden.get("classifier.weight")?.clone(),
            bias_c: golden.get("classifier.bias")?.clone(),
        })
    }

    fn shape(&self) -> [usize; 2] {
        [self.config.num_hidden_layers, self.config.num_attention_heads]
    }

    fn probe<'a>(&'a self, mask: &'a Mask) -> Probe<'a> {
        Probe { encoder: &self.encoder, config: &self.config, mask }
    }

    fn logits(&self, x_nd: &Tensor, tokens: &Tokens) -> candle_core::Result<Tensor> {
        linear(&self.pooler.forward(x_nd, &tokens.spans)?, &self.weight_cd, &self.bias_c)
    }

    /// The sum of all samples' losses.
    fn loss(&self, x_nd: &Tensor, Labelled(tokens, classes): &Labelled) -> candle_core::Result<Tensor> {
        cross_entropy(&self.logits(x_nd, tokens)?, classes)? * classes.len() as f64
    }

    fn measure(&self, importance: &mut Importance, mask: &Mask, batch: &Labelled) -> Result<()> {
        Ok(importance.add(&self.probe(mask), &batch.0, |x_nd| self.loss(x_nd, batch))?)
    }

    /// The logits of a batch under the gates of a mask.
    fn gated(&self, mask: &Mask, batch: &Labelled) -> Result<Tensor> {
        let gates = mask.gates(&Device::Cpu)?;
        let pass = Pass { gates: Gates::Shared(&gates), dropout: None };
        let hidden = self.encoder.forward(&self.config, &batch.0, &pass)?;
        Ok(self.logits(hidden.last().context("an encoder has hidden states")?, &batch.0)?)
    }
}

/// Samples and their classes.
struct Labelled(Tokens, Vec<Option<u32>>);

impl Labelled {
    /// The samples `rows` of the `[b, t]` matrices of a batch.
    fn new(config: &Config, [ids, mask, types]: [&Tensor; 3], labels: &Tensor) -> Result<Self> {
        let numbers = |t: &Tensor| -> Result<Vec<u32>> {
            let values = t.flatten_all()?.to_vec1::<i64>()?;
            values.into_iter().map(|v| Ok(u32::try_from(v)?)).collect()
        };
        let (rows, width) = ids.dims2()?;
        let batch = Batch {
            task: Task::Relation,
            rows,
            width,
            input_ids: numbers(ids)?,
            attention_mask: numbers(mask)?,
            token_type_ids: numbers(types)?,
            position_ids: vec![],
            segment_ids: vec![],
            samples: vec![],
            targets: Targets::Classes(vec![]),
        };
        let tokens = Tokens::new(&[&batch.one_per_row()], config, &Device::Cpu)?;
        Ok(Labelled(tokens, numbers(labels)?.into_iter().map(Some).collect()))
    }
}

fn tensor(values: &[f64], shape: [usize; 2]) -> Result<Tensor> {
    Ok(Tensor::from_slice(values, (shape[0], shape[1]), &Device::Cpu)?)
}

/// The batches of part b.
fn batches_of_b(golden: &Golden, config: &Config) -> Result<Vec<Labelled>> {
    let part = |name: &str, i: usize| Ok::<_, anyhow::Error>(golden.get(name)?.get(i)?);
    let batch = |i: usize| {
        let [ids, mask, types] = ["input_ids", "attention_mask", "token_type_ids"].map(|name| part(name, i));
        Labelled::new(config, [&ids?, &mask?, &types?], &part("labels", i)?)
    };
    (0..golden.get("labels")?.dim(0)?).map(batch).collect()
}

const METHODS: [(&str, Method); 4] = [
    ("per_sample", Method::PerSample),
    ("per_batch", Method::PerBatch),
    ("hf_accumulated_grad_bug", Method::Accumulated),
    ("michel_token_level", Method::TokenLevel),
];

#[test]
fn importances_by_every_method_and_normalisation() -> Result<()> {
    let mut golden = Golden::open("b_importance")?;
    let classifier = Classifier::new(&golden, checkpoint::load(&folder().join("model"), &Device::Cpu)?)?;
    let batches = batches_of_b(&golden, &classifier.config)?;
    let ones = Mask::all_kept(classifier.shape());
    for (name, method) in METHODS {
        let mut importance = Importance::new(method, classifier.shape());
        batches.iter().try_for_each(|batch| classifier.measure(&mut importance, &ones, batch))?;
        for (kind, within, across) in [
            ("raw", WithinLayer::Raw, AcrossLayers::Raw),
            ("layer_l2", WithinLayer::L2, AcrossLayers::Raw),
            ("layer_l2_minmax", WithinLayer::L2, AcrossLayers::MinMax),
        ] {
            let values = importance.finish(within, across)?;
            golden
                .compare_all(&format!("importance.{name}.{kind}"), &tensor(&values, classifier.shape())?)?;
        }
        ranking(&golden, name, &importance.finish(WithinLayer::L2, AcrossLayers::MinMax)?)?;
    }
    golden.complete(|name| name.starts_with("importance."));
    Ok(())
}

/// Asserts that the heads rank as the golden ones do, as far as these are apart.
fn ranking(golden: &Golden, method: &str, values: &[f64]) -> Result<()> {
    let lists = json("b_importance")?;
    let order =
        lists.pointer(&format!("/order_least_to_most_important(flat index = layer*heads+head)/{method}"));
    let order: Vec<usize> =
        serde_json::from_value(order.with_context(|| format!("no order of {method}"))?.clone())?;
    let slack = 2.0 * golden.tolerance(&format!("importance.{method}.layer_l2_minmax"))?;
    ensure!(order.len() == values.len(), "{method}: {} heads are ranked", order.len());
    for pair in order.windows(2) {
        ensure!(
            values[pair[0]] <= values[pair[1]] + slack,
            "{method}: head {} is above head {}",
            pair[0],
            pair[1]
        );
    }
    Ok(())
}

#[test]
fn gate_gradients_of_every_sample_in_one_backward() -> Result<()> {
    let mut golden = Golden::open("b_importance")?;
    let classifier = Classifier::new(&golden, checkpoint::load(&folder().join("model"), &Device::Cpu)?)?;
    let ones = Mask::all_kept(classifier.shape());
    for (i, batch) in batches_of_b(&golden, &classifier.config)?.iter().enumerate() {
        let per_sample = "gate_grad.per_sample";
        let gradients_slh = classifier
            .probe(&ones)
            .gradients(&batch.0, Each::Sample, |x_nd| classifier.loss(x_nd, batch))?
            .context("the loss depends on the gates")?;
        let expected = golden.get(per_sample)?.get(i)?;
        golden.compare(per_sample, &gradients_slh, &expected)?;
        let expected = golden.get("gate_grad.batch_mean")?.get(i)?;
        golden.compare("gate_grad.batch_mean", &gradients_slh.mean(0)?, &expected)?;
        let logits_sc = classifier.gated(&ones, batch)?;
        let expected = golden.get("loss.batch_mean")?.get(i)?;
        golden.compare("loss.batch_mean", &cross_entropy(&logits_sc, &batch.1)?, &expected)?;
        for (s, class) in batch.1.iter().enumerate() {
            let expected = golden.get("loss.per_sample")?.get(i)?.get(s)?;
            golden.compare(
                "loss.per_sample",
                &cross_entropy(&logits_sc.narrow(0, s, 1)?, &[*class])?,
                &expected,
            )?;
        }
    }
    golden.complete(|name| name.starts_with("gate_grad.") || name.starts_with("loss."));
    Ok(())
}

/// Samples measured together; importances are sums over samples, so any number serves.
const BATCH: usize = 16;

/// The classifier of part c and its samples.
fn scene_of_c(golden: &Golden) -> Result<(Classifier, Vec<Labelled>)> {
    let dir = tempfile::tempdir()?;
    let model = folder().join("model");
    std::fs::copy(model.join(CONFIG_FILE), dir.path().join(CONFIG_FILE))?;
    std::fs::copy(model.join("model_finetuned.safetensors"), dir.path().join(WEIGHTS_FILE))?;
    let classifier = Classifier::new(golden, checkpoint::load(dir.path(), &Device::Cpu)?)?;
    let (ids, mask, labels) =
        (golden.get("input_ids")?, golden.get("attention_mask")?, golden.get("labels")?);
    let types = ids.zeros_like()?;
    let count = ids.dim(0)?;
    let batch = |start: usize| {
        let part = |t: &Tensor| t.narrow(0, start, BATCH.min(count - start));
        Labelled::new(&classifier.config, [&part(ids)?, &part(mask)?, &part(&types)?], &part(labels)?)
    };
    let batches = (0..count).step_by(BATCH).map(batch).collect::<Result<_>>()?;
    Ok((classifier, batches))
}

/// The search that a run of part c is named for.
fn config_of(name: &str, run: &Value) -> Result<search::Config> {
    let number = |key: &str| run[key].as_f64().with_context(|| format!("{name}: no {key}"));
    let mut words = name.split('.');
    let kind = match words.next() {
        Some("hard") => Kind::Hard,
        Some("soft") => Kind::Soft,
        other => bail!("{name}: kind {other:?}"),
    };
    let step_rule = match words.next() {
        Some("fixed_floor") => StepRule::FixedFloor,
        Some("ceil_remaining") => StepRule::CeilRemaining,
        other => bail!("{name}: step rule {other:?}"),
    };
    let (tau, rho) = (number("tau")?, number("rho")?);
    Ok(search::Config { kind, step_rule, selection: Selection::SelectOnce, tau, rho, keep_per_layer: 0 })
}

/// What measuring fails with: a search wants an error of the standard library's kind.
#[derive(Debug)]
struct Measure(anyhow::Error);

impl std::fmt::Display for Measure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for Measure {}

fn searched(config: &search::Config, classifier: &Classifier, batches: &[Labelled]) -> Result<Outcome> {
    let importance = |mask: &Mask| -> Result<Vec<f64>> {
        let mut importance = Importance::new(Method::PerSample, classifier.shape());
        batches.iter().try_for_each(|batch| classifier.measure(&mut importance, mask, batch))?;
        Ok(importance.finish(WithinLayer::L2, AcrossLayers::MinMax)?)
    };
    let accuracy = |mask: &Mask| -> Result<f64> {
        let (mut hits, mut all) = (0, 0);
        for batch in batches {
            let best = classifier.gated(mask, batch)?.argmax(1)?.to_vec1::<u32>()?;
            hits += best.iter().zip(&batch.1).filter(|(a, b)| Some(**a) == **b).count();
            all += best.len();
        }
        Ok(hits as f64 / all as f64)
    };
    let found = search::search(
        config,
        classifier.shape(),
        |mask| importance(mask).map_err(Measure),
        |mask| accuracy(mask).map_err(Measure),
    );
    Ok(found?)
}

#[test]
fn searches_take_the_same_heads_and_end_for_the_same_reason() -> Result<()> {
    let mut golden = Golden::open("c_masking")?;
    let (classifier, batches) = scene_of_c(&golden)?;
    let lists = json("c_masking")?;
    let runs = lists["runs"].as_object().context("c_masking.json has no runs")?;
    ensure!(!runs.is_empty(), "c_masking.json has no runs");
    for (name, run) in runs {
        let config = config_of(name, run)?;
        let found = searched(&config, &classifier, &batches)?;
        let stop = serde_json::to_value(found.stop)?;
        ensure!(stop == run["stop"], "{name}: stopped by {stop}, expected {}", run["stop"]);
        ensure!(run["original_score"] == found.original_score, "{name}: score {}", found.original_score);
        let selected: Vec<_> = found.iterations.iter().map(|i| i.selected.clone()).collect();
        ensure!(
            serde_json::to_value(&selected)? == run["selected_flat_per_iteration"],
            "{name}: {selected:?}"
        );
        let scores: Vec<f64> = found.iterations.iter().map(|i| i.score).collect();
        ensure!(serde_json::to_value(&scores)? == run["score_after_per_iteration"], "{name}: {scores:?}");
        ensure!(run["n_masked_in_final"] == found.mask.vacant(), "{name}: {} masked", found.mask.vacant());
        compare_gates(&mut golden, name, &found, config.kind)?;
    }
    golden.complete(|name| runs.keys().any(|run| name.starts_with(&format!("{run}."))));
    Ok(())
}

/// The numbers of a search; hard masks exactly.
fn compare_gates(golden: &mut Golden, name: &str, found: &Outcome, kind: Kind) -> Result<()> {
    let last = format!("{name}.final_mask");
    golden.compare_all(&last, &found.mask.gates(&Device::Cpu)?)?;
    if kind == Kind::Hard {
        let expected = golden.get(&last)?.flatten_all()?.to_vec1::<f32>()?;
        ensure!(found.mask.values() == expected, "{last}: {:?}", found.mask.values());
    }
    let gates =
        found.iterations.iter().map(|i| i.gates_after.gates(&Device::Cpu)).collect::<Result<Vec<_>, _>>()?;
    let shape = found.mask.shape();
    let before =
        found.iterations.iter().map(|i| tensor(&i.importance_before, shape)).collect::<Result<Vec<_>>>()?;
    if !gates.is_empty() {
        golden.compare_all(&format!("{name}.gate_after"), &Tensor::stack(&gates, 0)?)?;
        golden.compare_all(&format!("{name}.importance_before"), &Tensor::stack(&before, 0)?)?;
    }
    Ok(())
}

/// What a variant of part d is named for.
fn variant(golden: &Golden, name: &str) -> Result<(Heads, Option<Mask>, f64)> {
    let (base, shared) = match name.strip_suffix("_freezeshared") {
        Some(base) => (base, Shared::Freeze),
        None => (name, Shared::Train),
    };
    // Without clipping: a norm that no gradient has.
    let (mode, mask, soft_on, clip) = match base {
        "none" => (Mode::None, None, SoftOn::Step, f64::MAX),
        "hard" => (Mode::Hard, Some("hard"), SoftOn::Step, f64::MAX),
        "hard_clip1" => (Mode::Hard, Some("hard"), SoftOn::Step, 1.0),
        "soft" => (Mode::Soft, Some("soft"), SoftOn::Step, f64::MAX),
        "soft_gradscaled" => (Mode::Soft, Some("soft"), SoftOn::Gradient, f64::MAX),
        "bf" => (Mode::Forward, Some("hard"), SoftOn::Step, f64::MAX),
        _ => bail!("d_retrain has a variant {name} that this test does not know"),
    };
    let read = |kind: &str| {
        let mask_lh = golden.get(&format!("mask.{kind}"))?;
        Ok::<_, anyhow::Error>(Mask::new(mask_lh.dims2()?.into(), mask_lh.flatten_all()?.to_vec1()?)?)
    };
    Ok((Heads { mode, shared, soft_on }, mask.map(read).transpose()?, clip))
}

/// A trainer at the first step of a variant of part d; outputs begin as part e has them.
fn trainer(golden: &Golden, losses: &Golden, hyper: &Value, name: &str) -> Result<Trainer> {
    let model = folder().join("model");
    let (heads, mask, clip_norm) = variant(golden, name)?;
    let number = |key: &str| hyper[key].as_f64().with_context(|| format!("hyper has no {key}"));
    let [beta1, beta2] = [0, 1].map(|i| hyper["betas"][i].as_f64().context("hyper has no betas"));
    let setup = Setup {
        encoder: checkpoint::load(&model, &Device::Cpu)?.config,
        outputs: OutputConfig { pooling: Pooling::Cls, entity: EntityOutput::Linear, dropout: 0.0 },
        sizes: Sizes { relations: losses.get("head.relation.weight")?.dim(0)? },
        train: train::Config {
            seed: 0,
            // So long that the rate is the same in all steps, in f32.
            schedule: Schedule { peak: number("lr")?, warmup_steps: 0, total_steps: 1 << 40 },
            adamw: AdamWConfig {
                beta1: beta1?,
                beta2: beta2?,
                epsilon: number("eps")?,
                weight_decay: number("weight_decay")?,
            },
            clip_norm,
            alphas: Alphas { subject: 1.0, object: 1.0, relation: 1.0, triplet: 1.0 },
            frozen: vec![],
            heads,
            patience: None,
            covered_by: 1,
        },
        mask,
    };
    let trainer = Trainer::from_checkpoint(setup, &model, &Device::Cpu)?;
    for (name, param) in trainer.params().iter() {
        if let Some(output) = name.strip_prefix("outputs.") {
            param.slice_set(losses.get(&format!("head.{output}"))?, 0, 0)?;
        }
    }
    Ok(trainer)
}

/// The batches of one step: triples `picked` of the stored ones, the triplet task with their negatives after them.
fn step(losses: &Golden, picked: &[usize]) -> Result<Vec<Batch>> {
    Task::GRAPH
        .into_iter()
        .map(|task| {
            let prefix = format!("packed.{}.", task.name());
            let triples = losses.get("packed.relation.labels")?.dim(0)?;
            let mut rows: Vec<u32> = picked.iter().map(|i| Ok(u32::try_from(*i)?)).collect::<Result<_>>()?;
            if task == Task::Triplet {
                let negatives = picked.iter().map(|i| Ok(u32::try_from(i + triples)?));
                rows.extend(negatives.collect::<Result<Vec<u32>>>()?);
            }
            let rows = Tensor::new(rows.as_slice(), &Device::Cpu)?;
            let part = |field: &str| -> Result<Vec<i64>> {
                let matrix = losses.get(&format!("{prefix}{field}"))?.index_select(&rows, 0)?;
                Ok(matrix.flatten_all()?.to_vec1()?)
            };
            let small = |field: &str| -> Result<Vec<u32>> {
                part(field)?.into_iter().map(|v| Ok(u32::try_from(v)?)).collect()
            };
            let targets = if task.answer() == Answer::Tokens {
                Targets::Tokens(part("mlm_labels")?)
            } else {
                Targets::Classes(small("labels")?)
            };
            let rows = rows.dim(0)?;
            let input_ids = small("input_ids")?;
            let batch = Batch {
                task,
                rows,
                width: input_ids.len() / rows,
                input_ids,
                attention_mask: small("attention_mask")?,
                token_type_ids: small("token_type_ids")?,
                position_ids: vec![],
                segment_ids: vec![],
                samples: vec![],
                targets,
            };
            Ok(batch.one_per_row())
        })
        .collect()
}

/// What a run of part d left: the trainer and the parameters that it began with.
struct Run {
    trainer: Trainer,
    before: BTreeMap<String, Tensor>,
}

/// Trains a variant and compares what is stored of it.
fn retrained(golden: &mut Golden, losses: &Golden, lists: &Value, name: &str) -> Result<Run> {
    let hyper = &lists["hyper"];
    let mut trainer = trainer(golden, losses, hyper, name)?;
    let copies = trainer.params().iter().map(|(name, t)| Ok((name.to_owned(), t.detach().copy()?)));
    let before = copies.collect::<Result<BTreeMap<_, _>>>()?;
    let batches = &hyper["batches(triplet indices per step)"];
    let batches: Vec<Vec<usize>> = serde_json::from_value(batches.clone())?;
    for (i, picked) in batches.iter().enumerate() {
        let record = trainer.step(0, &step(losses, picked)?)?;
        for (found, key) in [(record.loss, "losses"), (record.grad_norm, "grad_norm_seen_by_clip")] {
            let expected =
                lists["variants"][name][key][i].as_f64().with_context(|| format!("{name}: {key} {i}"))?;
            ensure!(
                (found / expected - 1.0).abs() < 1e-4,
                "{name}, step {}: {key} {found}, not {expected}",
                i + 1
            );
        }
        let stored = format!("{name}.step{}.", i + 1);
        if golden.tensors.keys().any(|tensor| tensor.starts_with(&stored)) {
            for (parameter, param) in trainer.params().iter() {
                let tensor = format!("{stored}{}", parameter.replace("outputs.", "head."));
                if golden.tensors.contains_key(&tensor) {
                    let sensitive =
                        sensitivity(golden, losses, hyper, (name, parameter, &before[parameter]))?;
                    compare_step(golden, (&tensor, i + 1), param, &sensitive)?;
                } else {
                    ensure!(bits(param)? == bits(&before[parameter])?, "{name}: {parameter} moved");
                }
            }
        }
    }
    trainer.check_frozen()?;
    Ok(Run { trainer, before })
}

/// How much the first step of each number of a parameter changes when its gradient is off by rounding.
///
/// Adam's first step goes `u = g / (|g| + epsilon)` of the rate, so an error `e` of the gradient becomes one of
/// `e (1 - |u|)^2 / epsilon`: nothing where gradients are much larger than epsilon, as nearly everywhere, but the whole error of a
/// gradient where they are alike. The listed tolerance is that of the reference's own run, which may be lucky at such a number:
/// nowhere else is more allowed.
fn sensitivity(
    golden: &Golden,
    losses: &Golden,
    hyper: &Value,
    (name, parameter, before): (&str, &str, &Tensor),
) -> Result<Vec<f64>> {
    let number = |key: &str| hyper[key].as_f64().with_context(|| format!("hyper has no {key}"));
    let (rate, epsilon, decay) = (number("lr")?, number("eps")?, number("weight_decay")?);
    let decay = if decays(parameter) { decay } else { 0.0 };
    let stored = parameter.replace("outputs.", "head.");
    let rounding = losses.rounding(&format!("packed.grad_total_cls.{stored}"))?;
    let numbers = |t: &Tensor| t.to_dtype(DType::F64)?.flatten_all()?.to_vec1::<f64>();
    let after = numbers(golden.get(&format!("{name}.step1.{stored}"))?)?;
    let shares = shares(golden, name, (parameter, before))?;
    let each = numbers(before)?.into_iter().zip(after).zip(shares).map(|((before, after), share)| {
        let u = ((before * (1.0 - share * rate * decay) - after) / (rate * share)).abs();
        // A number without a gradient has no rounding either. Twice, since the batch of a step is smaller than that of part e.
        if share > 0.0 && u > 1e-3 && u < 1.0 {
            rate * share * (1.0 - u).powi(2) / epsilon * 2.0 * rounding
        } else {
            0.0
        }
    });
    Ok(each.collect())
}

/// The share of a step that each number of a parameter goes.
fn shares(golden: &Golden, name: &str, (parameter, like): (&str, &Tensor)) -> Result<Vec<f64>> {
    let (heads, mask, _) = variant(golden, name)?;
    let mut shares_h = vec![1.0; 1];
    let mut axis = Axis::Rows;
    if let Some(mask) = mask {
        let parts =
            (0..mask.shape()[0]).flat_map(|l| slices::of_layer(l).into_iter().map(move |part| (l, part)));
        for (l, (_, found)) in parts.filter(|(_, (of_head, _))| of_head == parameter) {
            let share = |keep: f32| match heads.soft_on {
                SoftOn::Step => 1.0 - f64::from(keep),
                SoftOn::Gradient => f64::from(u8::from(keep < 1.0)),
            };
            shares_h = mask.layer(l).iter().map(|keep| share(*keep)).collect();
            axis = found;
        }
    }
    let (rows, width) = (like.dim(0)?, like.elem_count() / like.dim(0)?);
    let side = if axis == Axis::Rows { rows } else { width };
    let place = |at: usize| if axis == Axis::Rows { at / width } else { at % width };
    Ok((0..rows * width).map(|at| shares_h[place(at) * shares_h.len() / side]).collect())
}

/// Compares a parameter after so many steps at the listed tolerance, but for numbers whose gradient is as small as Adam's epsilon.
fn compare_step(
    golden: &mut Golden,
    (tensor, steps): (&str, usize),
    param: &Tensor,
    sensitive: &[f64],
) -> Result<()> {
    let tolerance = golden.tolerance(tensor)?;
    let numbers = |t: &Tensor| t.detach().to_dtype(DType::F64)?.flatten_all()?.to_vec1::<f64>();
    let (found, expected) = (numbers(param)?, numbers(golden.get(tensor)?)?);
    ensure!(found.len() == expected.len(), "{tensor}: {} numbers, expected {}", found.len(), expected.len());
    let mut excused = 0;
    for (i, (a, b)) in found.iter().zip(&expected).enumerate() {
        let off = (a - b).abs();
        let allowed = tolerance + steps as f64 * sensitive[i];
        // Written so that a NaN is too far as well.
        ensure!(off <= allowed, "{tensor}[{i}] is {a}, expected {b} within {allowed}");
        excused += usize::from(off > tolerance);
    }
    ensure!(excused <= 1 + found.len() / 500, "{tensor}: {excused} of {} numbers are off", found.len());
    golden.note(tensor);
    Ok(())
}

fn bits(t: &Tensor) -> Result<Vec<u32>> {
    Ok(t.detach().flatten_all()?.to_vec1::<f32>()?.into_iter().map(f32::to_bits).collect())
}

/// The slices of a mask's heads whose number `wanted` accepts, now and before: `f(parameter, now, before)`.
fn each_slice(
    run: &Run,
    mask: &Mask,
    wanted: impl Fn(f32) -> bool,
    mut f: impl FnMut(&str, &Tensor, &Tensor) -> Result<()>,
) -> Result<()> {
    let [layers, heads] = mask.shape();
    for (l, h) in
        (0..layers).flat_map(|l| (0..heads).map(move |h| (l, h))).filter(|(l, h)| wanted(mask.layer(*l)[*h]))
    {
        for (name, axis) in slices::of_layer(l) {
            let now = run.trainer.params().get(&name)?.detach();
            let axis = if axis == Axis::Rows { 0 } else { 1 };
            let k = now.dim(axis)? / heads;
            let part = |t: &Tensor| t.narrow(axis, h * k, k)?.contiguous();
            f(&name, &part(&now)?, &part(&run.before[&name])?)?;
        }
    }
    Ok(())
}

#[test]
fn retraining_under_every_mask_is_that_of_the_reference() -> Result<()> {
    let mut golden = Golden::open("d_retrain")?;
    let (losses, lists) = (Golden::open("e_kg_losses")?, json("d_retrain")?);
    for name in lists["variants"].as_object().context("d_retrain.json has no variants")?.keys() {
        let run = retrained(&mut golden, &losses, &lists, name)?;
        if let (_, Some(mask), _) = variant(&golden, name)? {
            each_slice(
                &run,
                &mask,
                |keep| keep == 1.0,
                |parameter, now, before| {
                    ensure!(bits(now)? == bits(before)?, "{name}: a frozen head of {parameter} moved");
                    Ok(())
                },
            )?;
        }
    }
    golden.complete(|name| name.contains(".step"));
    Ok(())
}

#[test]
fn a_soft_mask_on_the_gradient_slows_no_head_down_and_one_on_the_step_does() -> Result<()> {
    let mut golden = Golden::open("d_retrain")?;
    let (losses, lists) = (Golden::open("e_kg_losses")?, json("d_retrain")?);
    let (_, mask, _) = variant(&golden, "soft")?;
    let mask = mask.context("soft has a mask")?;
    // How far the heads that are more kept than vacant have gone; without the key's bias, which moves by rounding alone.
    let mut gone = |name: &str| -> Result<f64> {
        let run = retrained(&mut golden, &losses, &lists, name)?;
        let mut sum = 0.0;
        each_slice(
            &run,
            &mask,
            |keep| keep > 0.5 && keep < 1.0,
            |parameter, now, before| {
                if !parameter.ends_with("key.bias") {
                    sum += f64::from((now - before)?.abs()?.sum_all()?.to_scalar::<f32>()?);
                }
                Ok(())
            },
        )?;
        Ok(sum)
    };
    let [none, soft, wrong] = [gone("none")?, gone("soft")?, gone("soft_gradscaled")?];
    let evidence = lists["evidence_soft_mask_under_adam"].as_object().context("no evidence")?;
    let expected =
        |ending: &str| evidence.iter().find(|(key, _)| key.ends_with(ending)).and_then(|(_, v)| v.as_f64());
    for (found, ending) in [(soft / none, "update-scaled"), (wrong / none, "gradient-scaled")] {
        let expected = expected(ending).with_context(|| format!("no evidence {ending}"))?;
        ensure!((found - expected).abs() < 1e-3, "{ending}: {found}, expected {expected}");
    }
    Ok(())
}
