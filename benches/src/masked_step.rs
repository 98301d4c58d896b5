//! A retraining step under a head mask, measured, for `just bench-masked`.
//!
//! `masked_step '{"shape": {...}, "rows": 16, "length": 64, "kept": 5, "heads": "open", "warmup": 2, "steps": 6, "threads": 2}'`: relation classification of
//! rows of random tokens. `heads` is `open` (no mask), `train` or `freeze`: a hard mask that keeps the first `kept` heads of every layer, with everything
//! that belongs to no head trained or frozen. Prints one JSON object: milliseconds of each step, and how many numbers are trained.
#![allow(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use std::error::Error;
use std::time::Instant;

use base::rng::CounterRng;
use batch::rows::Rows;
use batch::task::Task;
use candle_core::Device;
use model::attention::Chosen;
use model::encoder::pool::Pooling;
use model::head::mask::Mask;
use model::optim::adamw::{AdamWConfig, Missing};
use model::optim::head_mask::SoftOn;
use model::optim::schedule::{Decay, Schedule};
use model::output::shards::{Alphas, OutputConfig, Sizes};
use model::output::{Batch, Decoder, Targets};
use model::train::heads::{Heads, Mode, Shared};
use model::train::{Config, Setup, Trainer};
use serde::Deserialize;
use serde_json::json;

use crate::process::{peak_mib, processor_ms};
use crate::shape::Shape;

/// What to measure.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    shape: Shape,
    rows: usize,
    length: usize,
    kept: usize,
    heads: Masked,
    warmup: usize,
    steps: usize,
    threads: usize,
}

/// What is masked.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Masked {
    Open,
    Train,
    Freeze,
}

const RELATIONS: u32 = 2;

/// What the first lines of this file say.
pub(crate) fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let of: Settings = serde_json::from_str(arguments.first().ok_or("expected one JSON object")?)?;
    rayon::ThreadPoolBuilder::new().num_threads(of.threads).build_global()?;
    let mut trainer = Trainer::new(setup(&of)?, &Device::Cpu)?;
    let batches = [batch(&of)?];
    let (mut times, mut spent, mut losses) = (vec![], vec![], vec![]);
    for step in 0..of.warmup + of.steps {
        let (start, before) = (Instant::now(), processor_ms()?);
        losses.push(trainer.step(0, &batches)?.loss);
        if step >= of.warmup {
            times.push(start.elapsed().as_secs_f64() * 1e3);
            spent.push(processor_ms()? - before);
        }
    }
    trainer.check_frozen()?;
    println!(
        "{}",
        json!({ "total": times, "processor": spent, "losses": losses, "trained": trained(&trainer), "frozen": trainer.frozen().len(), "peak_mib": peak_mib()? })
    );
    Ok(())
}

/// How many numbers belong to parameters that are trained, be it only in some heads.
fn trained(trainer: &Trainer) -> usize {
    let free = trainer.params().iter().filter(|(name, _)| !trainer.frozen().contains_key(*name));
    free.map(|(_, tensor)| tensor.elem_count()).sum()
}

fn setup(of: &Settings) -> Result<Setup, Box<dyn Error>> {
    let encoder = of.shape.config();
    let shape = [encoder.num_hidden_layers, encoder.num_attention_heads];
    let keep: Vec<f32> =
        (0..shape[0] * shape[1]).map(|at| f32::from(u8::from(at % shape[1] < of.kept))).collect();
    let hard = |shared| Heads { mode: Mode::Hard, shared, soft_on: SoftOn::Step };
    let (heads, mask) = match of.heads {
        Masked::Open => (Heads::OPEN, None),
        Masked::Train => (hard(Shared::Train), Some(Mask::new(shape, keep)?)),
        Masked::Freeze => (hard(Shared::Freeze), Some(Mask::new(shape, keep)?)),
    };
    let outputs = OutputConfig { pooling: Pooling::Mean, entity: Decoder::MaskedLm, dropout: 0.0 };
    let alphas = Alphas::new([(Task::Relation, 1.0)]);
    Ok(Setup {
        attention: Chosen::default(),
        encoder,
        outline: outputs.outline(&alphas, Sizes { relations: RELATIONS as usize, tags: 0 }),
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
            heads,
            lora: None,
            accumulate: 1,
            patience: None,
            covered_by: 1,
            recompute: model::device::Recompute::None,
            dtype: model::device::ActivationDtype::F32,
        },
        mask,
        gates: None,
    })
}

/// Rows of random tokens of one length.
fn batch(of: &Settings) -> Result<Batch, Box<dyn Error>> {
    let (chance, vocabulary) = (CounterRng::new(1), of.shape.config().vocab_size as u64);
    let cells = 0..(of.rows * of.length) as u64;
    let ids =
        cells.map(|cell| u32::try_from(chance.bits(cell) % vocabulary)).collect::<Result<Vec<_>, _>>()?;
    let mut rows = Rows::default();
    ids.chunks(of.length).for_each(|row| rows.push(row.iter().map(|id| (*id, 0))));
    // Of KIMERA's tasks, the third.
    let classes = (0..RELATIONS).cycle().take(of.rows).collect();
    Ok(Batch { task: 2, rows, targets: Targets::Classes(classes) })
}
