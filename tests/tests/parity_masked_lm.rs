//! Blanks filled in by a masked language model that `transformers` saved: the logits that it has there.
//!
//! `ENGRAFT_TORCH` names a Python with tests/python/requirements-torch.txt; without it the test is skipped.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use batch::rows::Rows;
use batch::task::Task;
use candle_core::Device;
use model::attention::Chosen;
use model::checkpoint;
use model::device::{ActivationDtype, Recompute};
use model::fill::Filler;
use model::optim::adamw::{AdamWConfig, Missing};
use model::optim::schedule::{Decay, Schedule};
use model::output::shards::{Alphas, OutputConfig, Sizes};
use model::output::{Batch, Targets};
use model::train::heads::Heads;
use model::train::{self, Setup, Trainer};
use serde_json::Value;

#[test]
fn what_transformers_saves_and_reads_says_the_same() -> Result<()> {
    let Some(python) = engraft_tests::python::interpreter("ENGRAFT_TORCH") else { return Ok(()) };
    // Python takes long to begin: what both ways need is made once.
    let published = tempfile::tempdir()?;
    let said = script(&python, "masked_lm.py", published.path())?;
    a_published_model_says_the_same_in_the_place_of_blanks(published.path(), said)?;
    transformers_fills_masks_with_what_engraft_trained(published.path(), &python)
}

/// What a script says of a folder.
fn script(python: &std::ffi::OsStr, name: &str, folder: &Path) -> Result<Vec<u8>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(name);
    let output = Command::new(python).arg(script).arg(folder).output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(output.stdout)
}

fn a_published_model_says_the_same_in_the_place_of_blanks(published: &Path, said: Vec<u8>) -> Result<()> {
    let text = String::from_utf8(said)?;
    let mut said: Value = serde_json::from_str(text.lines().last().context("it says nothing")?)?;
    let ids: Vec<Vec<u32>> = serde_json::from_value(said["rows"].take())?;
    let blanks: Vec<usize> = serde_json::from_value(said["blanks"].take())?;
    let logits: Vec<Vec<f32>> = serde_json::from_value(said["logits"].take())?;
    let mut rows = Rows::default();
    ids.iter().for_each(|row| rows.push(row.iter().map(|id| (*id, 0))));
    let found = Filler::load(published, &Device::Cpu)?.logits(&rows, &blanks)?;
    for (row, (found, expected)) in found.iter().zip(&logits).enumerate() {
        let far = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0_f32, f32::max);
        assert!(found.len() == 71 && far < 1e-4, "row {row}: {far}");
    }
    Ok(())
}

fn transformers_fills_masks_with_what_engraft_trained(
    published: &Path,
    python: &std::ffi::OsStr,
) -> Result<()> {
    let trained = tempfile::tempdir()?;
    // A training that begins with the published model and its output, and makes a step.
    let outputs = OutputConfig::default();
    let outline = outputs.outline(&Alphas::new([(Task::MaskedLm, 1.0)]), Sizes { relations: 2, tags: 0 });
    let task = outline.tasks.iter().position(|task| task.name == "masked_lm").context("the task")?;
    let setup = Setup {
        encoder: checkpoint::sizes(published)?,
        outline,
        attention: Chosen::default(),
        train: train::Config {
            seed: 1,
            schedule: Schedule {
                peak: 1e-3,
                warmup_steps: 0,
                total_steps: 10,
                decay: Decay::Linear,
                reference: None,
            },
            adamw: AdamWConfig::default(),
            missing: Missing::Zero,
            optimiser: None,
            clip_norm: 1.0,
            frozen: vec![],
            heads: Heads::OPEN,
            lora: None,
            accumulate: 1,
            patience: None,
            covered_by: 1,
            recompute: Recompute::None,
            dtype: ActivationDtype::F32,
        },
        mask: None,
        gates: None,
    };
    let mut trainer = Trainer::from_checkpoint(setup, published, &Device::Cpu)?;
    let mut rows = Rows::default();
    rows.push([2, 9, 4, 30, 3].map(|id| (id, 0)));
    let masked = Targets::Tokens(vec![vec![None, None, Some(17), None, None]]);
    trainer.step(0, &[Batch { task, rows: rows.clone(), targets: masked }])?;
    trainer.save_checkpoint(trained.path())?;
    let logits = Filler::load(trained.path(), &Device::Cpu)?.logits(&rows, &[2])?;
    let said: Vec<f32> = serde_json::from_slice(&script(python, "fill_mask.py", trained.path())?)?;
    let far = logits[0].iter().zip(&said).map(|(a, b)| (a - b).abs()).fold(0.0_f32, f32::max);
    assert!(said.len() == 71 && far < 1e-4, "{far}");
    Ok(())
}
