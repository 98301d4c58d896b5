//! Blanks filled in by a masked language model that `transformers` saved: the logits that it has there.
//!
//! `ENGRAFT_TORCH` names a Python with tests/python/requirements-torch.txt; without it the test is skipped.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use batch::rows::Rows;
use candle_core::Device;
use model::fill::Filler;
use serde_json::Value;

#[test]
fn a_published_model_says_the_same_in_the_place_of_blanks() -> Result<()> {
    #[expect(clippy::disallowed_methods, reason = "the interpreter is the test's one setting")]
    let Some(python) = std::env::var_os("ENGRAFT_TORCH") else {
        eprintln!("skipped: ENGRAFT_TORCH does not name a Python with tests/python/requirements-torch.txt");
        return Ok(());
    };
    let folder = tempfile::tempdir()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/masked_lm.py");
    let output = Command::new(python).arg(script).arg(folder.path()).output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    let mut said: Value = serde_json::from_str(text.lines().last().context("it says nothing")?)?;
    let ids: Vec<Vec<u32>> = serde_json::from_value(said["rows"].take())?;
    let blanks: Vec<usize> = serde_json::from_value(said["blanks"].take())?;
    let logits: Vec<Vec<f32>> = serde_json::from_value(said["logits"].take())?;
    let mut rows = Rows::default();
    ids.iter().for_each(|row| rows.push(row.iter().map(|id| (*id, 0))));
    let found = Filler::load(folder.path(), &Device::Cpu)?.logits(&rows, &blanks)?;
    for (row, (found, expected)) in found.iter().zip(&logits).enumerate() {
        let far = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0_f32, f32::max);
        assert!(found.len() == 71 && far < 1e-4, "row {row}: {far}");
    }
    Ok(())
}
