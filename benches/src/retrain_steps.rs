//! Retraining steps on a stream of shards, measured, for `just bench-retrain`.
//!
//! `retrain_steps prepare SETTINGS FOLDER` writes what a peer needs to make the same steps: the first weights (`model.safetensors`,
//! `outputs.safetensors`) and the batches (`batches.jsonl`, a line a step). `retrain_steps measure SETTINGS` makes them: reads
//! and collates shards ahead of time, one pass for all tasks of a step without padding, losses, gradients, clipping, AdamW. SETTINGS is
//! `{"shape": {...}, "shards": FOLDER, "items": 32, "warmup": 2, "steps": 10, "threads": 2}`, `items` being the triples of a step; with `"lora": {}` adapters are
//! trained in the encoder's place, as `[retrain.lora]` has them, and `prepare` writes the first ones too. Both print a JSON object.
#![allow(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use batch::{Batch, Targets};
use candle_core::Device;
use model::attention::Chosen;
use model::encoder::pool::Pooling;
use model::optim::adamw::{AdamWConfig, Missing};
use model::optim::schedule::{Decay, Schedule};
use model::output::Decoder;
use model::output::shards::{self, Alphas, OutputConfig, Sizes};
use model::train::heads::Heads;
use model::train::{Config, Setup, Trainer, lora};
use serde::Deserialize;
use serde_json::{Value, json};
use tasks::shard::index::Index;
use tasks::stream::Stream;
use tasks::stream::collate::Fill;
use tasks::stream::lane::Batching;
use tasks::stream::order::Shuffle;
use tasks::stream::prefetch::Prefetched;
use tasks::stream::schedule;
use tasks::stream::steps::{self, Shards, Worker};
use tasks::stream::window::Ahead;

use crate::process::{peak_mib, processor_ms};
use crate::shape::Shape;

/// What to measure.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    shape: Shape,
    shards: PathBuf,
    items: usize,
    warmup: usize,
    steps: usize,
    threads: usize,
    lora: Option<lora::Config>,
}

/// What the first lines of this file say.
pub(crate) fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["prepare", settings, folder] => prepare(&serde_json::from_str(settings)?, Path::new(folder)),
        ["measure", settings] => measure(&serde_json::from_str(settings)?),
        _ => Err("usage: retrain_steps prepare SETTINGS FOLDER | measure SETTINGS".into()),
    }
}

fn prepare(of: &Settings, folder: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    let index = Index::read(&of.shards)?;
    Trainer::new(setup(of, &index), &Device::Cpu)?.save_checkpoint(folder)?;
    let mut stream = stream(of, &index)?;
    let mut out = BufWriter::new(File::create(folder.join("batches.jsonl"))?);
    let (mut tokens, mut cells) = (0, 0);
    for _ in 0..of.warmup + of.steps {
        let batches = stream.next_step()?;
        tokens += batches.iter().map(Batch::tokens).sum::<usize>();
        cells += batches.iter().map(|batch| batch.rows * batch.width).sum::<usize>();
        let told: Vec<Value> = batches.iter().map(told).collect();
        writeln!(out, "{}", Value::from(told))?;
    }
    out.flush()?;
    println!("{}", json!({ "tokens": tokens, "padding": 1.0 - tokens as f64 / cells as f64 }));
    Ok(())
}

/// A batch as rows of ids, without what follows from them.
fn told(batch: &Batch) -> Value {
    let rows =
        |matrix: &[u32]| -> Vec<Vec<u32>> { matrix.chunks(batch.width).map(<[u32]>::to_vec).collect() };
    let targets = match &batch.targets {
        Targets::Tokens(labels) => json!(labels.chunks(batch.width).collect::<Vec<_>>()),
        Targets::Classes(classes) => json!(classes),
    };
    json!({ "task": batch.task.name(), "ids": rows(&batch.input_ids), "real": rows(&batch.attention_mask), "targets": targets })
}

fn measure(of: &Settings) -> Result<(), Box<dyn Error>> {
    rayon::ThreadPoolBuilder::new().num_threads(of.threads).build_global()?;
    let index = Index::read(&of.shards)?;
    let setup = setup(of, &index);
    let mut trainer = Trainer::new(setup.clone(), &Device::Cpu)?;
    let mut stream = Prefetched::new(stream(of, &index)?, 2)?;
    let (mut times, mut spent, mut tokens, mut losses) = (vec![], vec![], vec![], vec![]);
    for step in 0..of.warmup + of.steps {
        let (start, before) = (Instant::now(), processor_ms()?);
        let batches = stream.next_step()?;
        let batches = batches.iter().map(|batch| shards::batch(&setup.outline, batch));
        let record = trainer.step(0, &batches.collect::<Result<Vec<_>, _>>()?)?;
        losses.push(record.loss);
        if step >= of.warmup {
            times.push(start.elapsed().as_secs_f64() * 1e3);
            spent.push(processor_ms()? - before);
            tokens.push(record.tokens);
        }
    }
    println!(
        "{}",
        json!({ "total": times, "processor": spent, "tokens": tokens, "losses": losses, "peak_mib": peak_mib()? })
    );
    Ok(())
}

fn stream(of: &Settings, index: &Index) -> Result<Stream, Box<dyn Error>> {
    let parts = index.tasks.iter().flat_map(|task| &task.parts).map(|part| part.part);
    let config = steps::Config {
        part: parts.min_by_key(|part| part.name() != "train").ok_or("the shards have no part")?,
        seed: 1,
        schedule: schedule::Schedule::Kimera,
        batching: Batching::Items(of.items),
        shuffle: Shuffle::Window(16),
        fill: Fill::One,
        ahead: Ahead { windows: 1, threads: 1 },
    };
    Ok(Stream::new(&Shards::in_folder(&of.shards, index), &config, Worker::ONLY)?)
}

fn setup(of: &Settings, index: &Index) -> Setup {
    let outputs = OutputConfig { pooling: Pooling::Cls, entity: Decoder::Linear, dropout: 0.0 };
    Setup {
        attention: Chosen::default(),
        encoder: of.shape.config(),
        outline: outputs.outline(&Alphas::default(), Sizes { relations: index.relations.len(), tags: 0 }),
        train: Config {
            seed: 1,
            schedule: Schedule {
                peak: 1e-4,
                warmup_steps: 0,
                total_steps: 1 << 40,
                decay: Decay::Linear,
                reference: None,
            },
            adamw: AdamWConfig { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.01 },
            missing: Missing::Zero,
            optimiser: None,
            clip_norm: 1.0,
            frozen: vec![],
            heads: Heads::OPEN,
            lora: of.lora.clone(),
            accumulate: 1,
            patience: None,
            covered_by: 1,
            recompute: model::device::Recompute::None,
            dtype: model::device::ActivationDtype::F32,
        },
        mask: None,
        gates: None,
    }
}
