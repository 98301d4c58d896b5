//! Trainings on the device beside the same ones on the CPU, and beside themselves: ahead of the host, killed and resumed.

use std::error::Error;
use std::path::Path;
use std::process::Command;

use model::device::ActivationDtype;
use model::train::{StepRecord, Trainer};
use model::{Device, Tensor};
use serde_json::{Value, json};

use crate::toy::{Size, Toy};

type Found<T> = Result<T, Box<dyn Error>>;

/// Steps of a training that is compared, and of one on the mock driver.
const STEPS: u64 = 20;
const FEW: u64 = 3;
/// How far f32 may be from the CPU's: loss, norm and each parameter.
const SINGLE: f64 = 1e-4;
/// How far bf16 may be from the CPU's f32: loss, and norm of the gradients.
const HALF: [f64; 2] = [0.02, 0.06];

/// Both machines' largest differences.
#[derive(Debug, Default)]
struct Apart {
    loss: f64,
    norm: f64,
    parameters: f64,
    /// The parameter that is furthest away.
    furthest: String,
    /// Hidden states of rows, as the trained models answer them.
    answers: f64,
}

/// Numbers of all parameters, by name.
fn numbers(trainer: &Trainer) -> Found<Vec<(String, Vec<f32>)>> {
    let values = |tensor: &Tensor| tensor.to_device(&Device::Cpu)?.flatten_all()?.to_vec1::<f32>();
    trainer.params().iter().map(|(name, tensor)| Ok((name.to_owned(), values(tensor)?))).collect()
}

/// The bits of all parameters.
fn bits(trainer: &Trainer) -> Found<Vec<u32>> {
    Ok(numbers(trainer)?.into_iter().flat_map(|(_, numbers)| numbers).map(f32::to_bits).collect())
}

/// The distance of two lists by norm, over the norm of the first.
fn distance(a: &[f32], b: &[f32]) -> f64 {
    let norm = |each: &mut dyn Iterator<Item = f64>| each.map(|x| x * x).sum::<f64>().sqrt();
    let apart = norm(&mut a.iter().zip(b).map(|(a, b)| f64::from(a - b)));
    apart / norm(&mut a.iter().map(|a| f64::from(*a))).max(1e-12)
}

/// The larger of two, what is no number being the largest.
fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

fn relative(a: f64, b: f64) -> f64 {
    ((a - b) / a).abs()
}

/// Steps `first` to `last` of a training, each waited for.
fn steps(trainer: &mut Trainer, toy: &Toy, first: u64, last: u64) -> Found<Vec<StepRecord>> {
    (first..=last).map(|step| Ok(trainer.accumulated(0, &toy.micro(step)?)?)).collect()
}

/// So many steps on a device.
fn trained(toy: &Toy, device: &Device, last: u64) -> Found<(Trainer, Vec<StepRecord>)> {
    let mut trainer = Trainer::new(toy.setup.clone(), device)?;
    let records = steps(&mut trainer, toy, 1, last)?;
    Ok((trainer, records))
}

/// A training on the CPU in f32 beside the same one on a device in its own numbers.
fn apart(toy: &Toy, device: &Device, last: u64) -> Found<Apart> {
    let mut single = toy.clone();
    single.setup.train.dtype = ActivationDtype::F32;
    let (cpu, expected) = trained(&single, &Device::Cpu, last)?;
    let (other, found) = trained(toy, device, last)?;
    other.check_frozen()?;
    let mut apart = Apart::default();
    for (a, b) in expected.iter().zip(&found) {
        apart.loss = larger(apart.loss, relative(a.loss, b.loss));
        apart.norm = larger(apart.norm, relative(a.grad_norm, b.grad_norm));
    }
    for ((of, a), (_, b)) in numbers(&cpu)?.iter().zip(&numbers(&other)?) {
        let far = distance(a, b);
        // What a softmax does not go by has no gradient but rounding's, which Adam makes as large as any other.
        let rounding = [".attention.self.key.bias", "pool_attn.bias"].iter().any(|end| of.ends_with(end))
            && far.is_finite();
        if !rounding && (far > apart.parameters || far.is_nan()) {
            (apart.parameters, apart.furthest) = (larger(apart.parameters, far), of.clone());
        }
    }
    let rows = &toy.micro(last + 1)?[0][0].rows;
    let hidden = |of: &Trainer| Ok::<_, model::Error>(of.predictor().hidden(rows)?.concat());
    apart.answers = distance(&hidden(&cpu)?, &hidden(&other)?);
    Ok(apart)
}

/// What is told of a comparison.
fn told(toy: &Toy, device: &Device, steps: u64) -> Found<(Value, bool)> {
    let of = apart(toy, device, steps)?;
    let half = toy.setup.train.dtype != ActivationDtype::F32;
    // Bits of bf16 go other ways within a few steps; its parameters are only held to be numbers.
    let [loss, norm] = if half { HALF } else { [SINGLE; 2] };
    let far = larger(of.parameters, of.answers);
    let near = if half { far.is_finite() } else { far < SINGLE };
    let passed = of.loss < loss && of.norm < norm && near;
    let told = json!({
        "dtype": toy.setup.train.dtype, "steps": steps, "loss": of.loss, "norm": of.norm, "parameters": of.parameters,
        "furthest": of.furthest, "answers": of.answers, "limits": [loss, norm],
    });
    Ok((told, passed))
}

/// A training whose steps nobody waits for, beside one whose steps are waited for.
fn ahead(toy: &Toy, device: &Device) -> Found<(Value, bool)> {
    let (whole, expected) = trained(toy, device, 9)?;
    let mut trainer = Trainer::new(toy.setup.clone(), device)?;
    let mut records = vec![];
    for step in 1..=9 {
        records.extend(trainer.advance(0, &toy.micro(step)?)?);
    }
    records.extend(trainer.settle()?);
    let (same_records, same_bits) = (records == expected, bits(&trainer)? == bits(&whole)?);
    Ok((json!({ "records": same_records, "bits": same_bits }), same_records && same_bits))
}

/// The part of [`killed`] that another process does: three steps, a state, then two that are under way when it is killed.
pub(crate) fn until_killed(dir: &Path, dtype: &str, device: &Device) -> Found<()> {
    let toy = of_dtype(if dtype == "bf16" { ActivationDtype::Bf16 } else { ActivationDtype::F32 });
    let (mut trainer, _) = trained(&toy, device, 3)?;
    trainer.save_state(dir, &json!({ "at": 3 }))?;
    for step in 4..=5 {
        trainer.advance(0, &toy.micro(step)?)?;
    }
    std::process::abort()
}

fn of_dtype(dtype: ActivationDtype) -> Toy {
    let mut toy = Toy::halves(Size::Tiny).swap_remove(0);
    toy.setup.train.dtype = dtype;
    toy
}

/// A training that was killed and resumed, beside one that was not.
fn killed(dtype: ActivationDtype, device: &Device) -> Found<(Value, bool)> {
    let toy = of_dtype(dtype);
    let (whole, all) = trained(&toy, device, 6)?;
    let dir = tempfile::tempdir()?;
    let mut other = Command::new(std::env::current_exe()?);
    let name = if dtype == ActivationDtype::Bf16 { "bf16" } else { "f32" };
    let ended = other.arg("until-killed").arg(dir.path()).arg(name).output()?;
    if ended.status.code().is_some() {
        return Err(format!("{:?}: {}", ended.status, String::from_utf8_lossy(&ended.stderr)).into());
    }
    let (mut second, along) = Trainer::resume(toy.setup.clone(), dir.path(), device)?;
    let from = second.steps();
    let rest = steps(&mut second, &toy, from + 1, 6)?;
    second.check_frozen()?;
    let same_records = rest == all[3..] && along == json!({ "at": 3 });
    let same_bits = bits(&second)? == bits(&whole)?;
    let told = json!({ "dtype": dtype, "resumed_at": from, "records": same_records, "bits": same_bits });
    Ok((told, same_records && same_bits))
}

/// What is frozen is looked at over and over, each time by all threads, while steps are under way that change all else.
fn sealed(dtype: ActivationDtype, device: &Device) -> Found<(Value, bool)> {
    let mut toy = of_dtype(dtype);
    toy.setup.train.frozen = vec!["embeddings.".to_owned(), "encoder.layer.0.".to_owned()];
    let mut trainer = Trainer::new(toy.setup.clone(), device)?;
    let frozen = trainer.frozen().len();
    let before = bits(&trainer)?;
    let mut looked = 0;
    for step in 1..=20 {
        trainer.advance(0, &toy.micro(step)?)?;
        for _ in 0..4 {
            trainer.check_frozen()?;
            looked += 1;
        }
    }
    trainer.settle()?;
    trainer.check_frozen()?;
    let moved = bits(&trainer)? != before;
    Ok((json!({ "dtype": dtype, "frozen": frozen, "looked": looked, "moved": moved }), moved && frozen > 0))
}

/// All trainings; `tell` is called behind each with its name, what was found and whether it passed. Gives the number of those that did not.
pub(crate) fn all(
    device: &Device,
    size: Size,
    mut tell: impl FnMut(&str, Found<(Value, bool)>) -> Found<bool>,
) -> Found<usize> {
    let (mut passed, steps) = (vec![], if matches!(size, Size::Tiny) { FEW } else { STEPS });
    for toy in Toy::singles(size)? {
        passed.push(tell(toy.name, told(&toy, device, steps))?);
    }
    for toy in Toy::halves(size) {
        passed.push(tell(toy.name, told(&toy, device, steps))?);
    }
    for dtype in [ActivationDtype::F32, ActivationDtype::Bf16] {
        passed.push(tell("ahead of the host", ahead(&of_dtype(dtype), device))?);
        passed.push(tell("killed and resumed", killed(dtype, device))?);
        passed.push(tell("what is frozen, under way", sealed(dtype, device))?);
    }
    Ok(passed.into_iter().filter(|passed| !passed).count())
}

/// Two steps in each dtype, for whoever watches a step's kernels: a sanitizer, a profiler.
pub(crate) fn few(device: &Device) -> Found<()> {
    for dtype in [ActivationDtype::F32, ActivationDtype::Bf16] {
        trained(&of_dtype(dtype), device, 2)?;
    }
    Ok(())
}
