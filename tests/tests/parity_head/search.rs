//! Part c: the mask search, hard and soft.

use anyhow::{Context, Result, bail, ensure};
use candle_core::{Device, Tensor};
use engraft_tests::golden::{Golden, folder, json};
use model::checkpoint::{self, CONFIG_FILE, WEIGHTS_FILE};
use model::head::importance::{AcrossLayers, Importance, Method, WithinLayer};
use model::head::mask::Mask;
use model::head::search::{self, Kind, Outcome, Selection, StepRule};
use serde_json::Value;

use super::{Classifier, Labelled, tensor};

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
