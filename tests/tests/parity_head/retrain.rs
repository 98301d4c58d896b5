//! Part d: retraining under a mask, step by step.

use anyhow::{Context, Result, bail, ensure};
use candle_core::{DType, Device, Tensor};
use engraft_tests::golden::{Golden, device, folder, json, training};
use model::attention::Chosen;
use model::checkpoint::{self};
use model::encoder::pool::Pooling;
use model::head::mask::Mask;
use model::head::slices::{self, Axis};
use model::optim::adamw::{AdamWConfig, decays};
use model::optim::head_mask::SoftOn;
use model::output::shards::{self, Alphas, OutputConfig, Sizes};
use model::output::{Decoder, Outline};
use model::train::heads::{Heads, Mode, Shared};
use model::train::{self, Setup, Trainer};
use serde_json::Value;
use std::collections::BTreeMap;

use batch::task::{Answer, Task};
use batch::{Batch, Targets};

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

/// The outputs of part e.
fn outline(losses: &Golden) -> Result<Outline> {
    let outputs = OutputConfig { pooling: Pooling::Cls, entity: Decoder::Linear, dropout: 0.0 };
    let sizes = Sizes { relations: losses.get("head.relation.weight")?.dim(0)?, tags: 0 };
    Ok(outputs.outline(&Alphas::default(), sizes))
}

/// A trainer at the first step of a variant of part d; outputs begin as part e has them.
fn trainer(golden: &Golden, losses: &Golden, hyper: &Value, name: &str) -> Result<Trainer> {
    let model = folder().join("model");
    let (heads, mask, clip_norm) = variant(golden, name)?;
    let number = |key: &str| hyper[key].as_f64().with_context(|| format!("hyper has no {key}"));
    let [beta1, beta2] = [0, 1].map(|i| hyper["betas"][i].as_f64().context("hyper has no betas"));
    let setup = Setup {
        encoder: checkpoint::load(&model, &Device::Cpu)?.config,
        outline: outline(losses)?,
        attention: Chosen::default(),
        train: train::Config {
            adamw: AdamWConfig {
                beta1: beta1?,
                beta2: beta2?,
                epsilon: number("eps")?,
                weight_decay: number("weight_decay")?,
            },
            clip_norm,
            heads,
            ..training(number("lr")?)
        },
        mask,
        gates: None,
    };
    let mut trainer = Trainer::from_checkpoint(setup, &model, &device()?)?;
    let outputs = trainer.params().iter().filter_map(|(name, _)| name.strip_prefix("outputs."));
    let with = outputs
        .map(|output| Ok((format!("outputs.{output}"), losses.get(&format!("head.{output}"))?.clone())));
    let with = with.collect::<Result<BTreeMap<_, _>>>()?;
    trainer.begin(&with)?;
    Ok(trainer)
}

/// The batches of one step: triples `picked` of the stored ones, the triplet task with their negatives after them.
fn step(losses: &Golden, picked: &[usize]) -> Result<Vec<model::output::Batch>> {
    let outline = outline(losses)?;
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
            Ok(shards::batch(&outline, &batch.one_per_row())?)
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
    let copies = trainer.params().iter().map(|(name, t)| Ok((name.to_owned(), on_cpu(t)?)));
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
                let param = &on_cpu(param)?;
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

/// A copy in main memory.
fn on_cpu(t: &Tensor) -> Result<Tensor> {
    Ok(t.detach().to_device(&Device::Cpu)?.copy()?)
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
            let now = on_cpu(&run.trainer.params().get(&name)?)?;
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
