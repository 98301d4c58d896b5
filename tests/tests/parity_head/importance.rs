//! Part b: importances by every method, and gate gradients of every sample.

use anyhow::{Context, Result, ensure};
use candle_core::Device;
use engraft_tests::golden::{Golden, folder, json};
use model::checkpoint::{self};
use model::encoder::config::Config;
use model::head::importance::{AcrossLayers, Each, Importance, WithinLayer};
use model::head::mask::Mask;
use model::nn::cross_entropy::cross_entropy;

use super::{Classifier, Labelled, tensor};
use crate::parity_machine::METHODS;

/// The batches of part b.
fn batches_of_b(golden: &Golden, config: &Config) -> Result<Vec<Labelled>> {
    let part = |name: &str, i: usize| Ok::<_, anyhow::Error>(golden.get(name)?.get(i)?);
    let batch = |i: usize| {
        let [ids, mask, types] = ["input_ids", "attention_mask", "token_type_ids"].map(|name| part(name, i));
        Labelled::new(config, [&ids?, &mask?, &types?], &part("labels", i)?)
    };
    (0..golden.get("labels")?.dim(0)?).map(batch).collect()
}

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
