//! Optimisers and schedules against golden numbers computed with PyTorch (part k).
//!
//! The folder is `ENGRAFT_GOLDENS`, or `tests/fixtures/golden`.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use candle_core::Tensor;
use engraft_tests::golden::{Golden, json};
use model::optim::adamw::{AdamW, AdamWConfig, Update};
use model::optim::bert::{BertOptimiser, Config, Kind};
use model::optim::schedule::ReferencePace;
use model::params::{Init, Params, Spec};
use serde_json::Value;

const SCHEDULES: [(&str, ReferencePace); 3] = [
    ("const", ReferencePace::Constant),
    ("warmup_linear_061", ReferencePace::Linear061),
    ("warmup_linear_062", ReferencePace::Linear062),
];

/// The optimisers by their golden names, with the key of their constants.
const KINDS: [(&str, &str, Option<Kind>); 4] = [
    ("adamax_mtdnn", "adamax_mtdnn", Some(Kind::Adamax)),
    ("bertadam", "bertadam", Some(Kind::BertAdam)),
    ("bertadam_no_decay_where_grad_is_0", "bertadam", Some(Kind::BertAdamSparing)),
    ("adamw_torch", "adamw_torch", None),
];

fn number(of: &Value, key: &str) -> Result<f64> {
    of[key].as_f64().with_context(|| format!("{key} is a number"))
}

/// Any of the optimisers.
enum Optimiser {
    AdamW(AdamW),
    Bert(BertOptimiser),
}

impl Optimiser {
    fn new(hyper: &Value, key: &str, kind: Option<Kind>, params: &Params) -> Result<Self> {
        let (epsilon, weight_decay) = (number(&hyper["eps"], key)?, number(hyper, "weight_decay")?);
        let [beta1, beta2] = [0, 1].map(|at| hyper["betas"][at].as_f64().unwrap_or(f64::NAN));
        let Some(kind) = kind else {
            let config = AdamWConfig { beta1, beta2, epsilon, weight_decay };
            return Ok(Optimiser::AdamW(AdamW::new(config, params, |_| true)?));
        };
        let clip_norm = hyper["per_parameter_max_grad_norm"][key].as_f64();
        let config = Config { kind, beta1, beta2, epsilon, weight_decay, clip_norm };
        Ok(Optimiser::Bert(BertOptimiser::new(config, params, |_| true)?))
    }

    fn step(&mut self, params: &Params, grads: BTreeMap<String, Tensor>, rate: f64) -> Result<()> {
        let update = Update { rate, scale: 1.0 };
        match self {
            Optimiser::AdamW(of) => of.step(params, grads, update)?,
            Optimiser::Bert(of) => of.step(params, grads, update)?,
        }
        Ok(())
    }
}

#[test]
fn updates_of_every_optimiser_under_every_schedule() -> Result<()> {
    let (mut golden, hyper) = (Golden::open("k_optim")?, json("k_optim")?["hyper"].clone());
    let (first, grads) = (golden.get("w0")?.clone(), golden.get("grads")?.clone());
    let steps = grads.dim(0)?;
    for (name, key, kind) in KINDS {
        for (schedule, released) in SCHEDULES {
            // The update is made in place: each run needs memory of its own.
            let of = BTreeMap::from([("w".to_owned(), first.copy()?)]);
            let params = Params::from_tensors(&[Spec::new("w", first.dims(), Init::Zeros)], of)?;
            let mut optimiser = Optimiser::new(&hyper, key, kind, &params)?;
            for step in 0..steps {
                let done = step as f64 / number(&hyper, "t_total")?;
                let rate = number(&hyper, "lr")? * released.factor(done, number(&hyper, "warmup")?);
                optimiser.step(
                    &params,
                    BTreeMap::from([("w".to_owned(), grads.get(step)?.copy()?)]),
                    rate,
                )?;
                let stored = format!("{name}.{schedule}.step{}", step + 1);
                if golden.get(&stored).is_ok() {
                    golden.compare_all(&stored, &params.get("w")?)?;
                }
            }
        }
    }
    golden.complete(|name| name.contains(".step"));
    Ok(())
}

#[test]
fn factors_of_the_released_schedules() -> Result<()> {
    let all = json("k_optim")?;
    let (factors, warmup) =
        (&all["schedule_multiplier_at_step_over_total"], number(&all["hyper"], "warmup")?);
    let done: Vec<f64> = serde_json::from_value(factors["x"].clone())?;
    for (name, released) in &SCHEDULES[1..] {
        let of = factors.as_object().context("an object")?.iter().find(|(key, _)| key.starts_with(name));
        let expected: Vec<f64> = serde_json::from_value(of.context(*name)?.1.clone())?;
        ensure!(expected.len() == done.len() && !done.is_empty());
        for (done, expected) in done.iter().zip(expected) {
            let found = released.factor(*done, warmup);
            ensure!((found - expected).abs() < 1e-12, "{name} at {done}: {found}, not {expected}");
        }
    }
    Ok(())
}
