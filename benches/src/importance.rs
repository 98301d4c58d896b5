//! Head importance over many samples, measured, for `just bench-importance`.
//!
//! `importance weights SHAPE FILE` writes fresh weights of a classifier as safetensors; `importance measure SHAPE FILE SAMPLES BATCH THREADS` reads them
//! and measures the importance of every head over all samples, BATCH of them at a time: the absolute gradient of each sample's own loss.
//! SHAPE is `{"layers": 6, "hidden": 384, "heads": 12, "feed_forward": 1536, "vocabulary": 30522, "dropout": 0.0}`, SAMPLES a JSON file
//! `{"ids": [[101, 7, 102]], "classes": [1]}`. The classifier is a linear layer on BERT's pooler. Prints one JSON object.
#![allow(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;

use batch::task::Task;
use batch::{Batch, Targets};
use candle_core::{Device, Tensor, safetensors};
use model::attention::plain::Plain;
use model::encoder::pool::{Pool, Pooling};
use model::encoder::tokens::Tokens;
use model::encoder::{Encoder, Read};
use model::head::importance::{AcrossLayers, Importance, Method, Probe, WithinLayer};
use model::head::mask::Mask;
use model::nn::cross_entropy::cross_entropy;
use model::nn::linear::Linear;
use model::params::{Params, Spec};
use serde::Deserialize;
use serde_json::json;

use crate::process::{peak_mib, processor_ms};
use crate::shape::Shape;

/// Classes of the classifier.
const CLASSES: usize = 2;

/// What is measured over.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Samples {
    ids: Vec<Vec<u32>>,
    classes: Vec<u32>,
}

/// What the first lines of this file say.
pub(crate) fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["weights", shape, file] => weights(&serde_json::from_str(shape)?, Path::new(file)),
        ["measure", shape, file, samples, batch, threads] => {
            rayon::ThreadPoolBuilder::new().num_threads(threads.parse()?).build_global()?;
            let samples: Samples = serde_json::from_slice(&fs::read(samples)?)?;
            measure(&serde_json::from_str(shape)?, Path::new(file), &samples, batch.parse()?)
        }
        _ => Err("usage: importance weights SHAPE FILE | measure SHAPE FILE SAMPLES BATCH THREADS".into()),
    }
}

fn specs(shape: &Shape) -> Vec<Spec> {
    let config = shape.config();
    [Encoder::specs(&config), Spec::linear("output", [CLASSES, config.hidden_size], 0.02).to_vec()].concat()
}

fn weights(shape: &Shape, file: &Path) -> Result<(), Box<dyn Error>> {
    let params = Params::fresh(&specs(shape), 1, &Device::Cpu)?;
    let tensors = params.iter().map(|(name, tensor)| (name.to_owned(), tensor.clone()));
    Ok(safetensors::save(&tensors.collect(), file)?)
}

fn measure(shape: &Shape, file: &Path, samples: &Samples, batch: usize) -> Result<(), Box<dyn Error>> {
    let config = shape.config();
    let tensors: BTreeMap<String, Tensor> = safetensors::load(file, &Device::Cpu)?.into_iter().collect();
    let params = Params::from_tensors(&specs(shape), tensors)?.freeze(|_| true);
    let (encoder, pool) = (Encoder::new(&config, &params)?, Pool::new(Pooling::LearnedPooler, &params, "")?);
    let output = Linear::new(&params, "output")?;
    let heads = [config.num_hidden_layers, config.num_attention_heads];
    let mask = Mask::all_kept(heads);
    let probe = Probe { encoder: &encoder, config: &config, attention: &Plain, mask: &mask, read: Read::All };
    let (start, before) = (Instant::now(), processor_ms()?);
    let mut importance = Importance::new(Method::PerSample, heads);
    for (ids, classes) in samples.ids.chunks(batch).zip(samples.classes.chunks(batch)) {
        let tokens = Tokens::new(&[("rows", &together(ids).ragged()?.0)], &config, &Device::Cpu)?;
        let classes: Vec<Option<u32>> = classes.iter().copied().map(Some).collect();
        importance.add(&probe, &tokens, |x_nd| {
            let logits_sc = output.forward(&pool.forward(x_nd, &tokens.spans)?)?;
            cross_entropy(&logits_sc, &classes)? * classes.len() as f64
        })?;
    }
    let found = importance.finish(WithinLayer::Raw, AcrossLayers::Raw)?;
    let (seconds, spent) = (start.elapsed().as_secs_f64(), processor_ms()? - before);
    let rows: Vec<&[f64]> = found.chunks(heads[1]).collect();
    println!(
        "{}",
        json!({ "seconds": seconds, "processor": spent / 1e3, "peak_mib": peak_mib()?, "importances": rows })
    );
    Ok(())
}

/// Some samples as a batch, a row each.
fn together(ids: &[Vec<u32>]) -> Batch {
    let width = ids.iter().map(Vec::len).max().unwrap_or(0);
    let cells = |of: &dyn Fn(Option<&u32>) -> u32| {
        ids.iter().flat_map(|row| (0..width).map(|at| of(row.get(at)))).collect::<Vec<_>>()
    };
    Batch {
        task: Task::Relation,
        rows: ids.len(),
        width,
        input_ids: cells(&|id| id.copied().unwrap_or(0)),
        attention_mask: cells(&|id| u32::from(id.is_some())),
        token_type_ids: cells(&|_| 0),
        position_ids: vec![],
        segment_ids: vec![],
        samples: vec![],
        targets: Targets::Classes(vec![]),
    }
    .one_per_row()
}
