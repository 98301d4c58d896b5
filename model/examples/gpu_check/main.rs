//! What `scripts/gpu-check.sh` asks of the trainer on a GPU: is a step what the CPU's is, and how fast is it?
//!
//! `gpu_check train [tiny]` compares trainings and prints a line of JSON for each; `tiny` leaves out those of real sizes and makes few steps, for the mock driver. `gpu_check few` makes a few steps and says
//! nothing. `gpu_check speed` reads lines of JSON and answers each with one (module `speed`). Needs no kernel but engraft's own.

mod speed;
mod toy;
mod train;

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use model::Device;
use model::device::Wanted;
use serde_json::{Value, json};
use toy::Size;

fn main() -> ExitCode {
    match run() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(io::stderr(), "gpu_check: {error}");
            ExitCode::from(2)
        }
    }
}

/// Does what the command line says; how many comparisons failed.
fn run() -> Result<usize, Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["train"] => compare(&device()?, Size::Real),
        ["train", "tiny"] => compare(&device()?, Size::Tiny),
        ["until-killed", dir, dtype] => train::until_killed(Path::new(dir), dtype, &device()?).map(|()| 0),
        ["few"] => train::few(&device()?).map(|()| 0),
        ["speed"] => speed::serve(&device()?, io::stdin().lock(), tell).map(|()| 0),
        _ => Err("expected `train`, `train tiny`, `few` or `speed`".into()),
    }
}

fn device() -> Result<Device, Box<dyn Error>> {
    Ok(Wanted::Cuda(0).device()?)
}

fn compare(device: &Device, size: Size) -> Result<usize, Box<dyn Error>> {
    train::all(device, size, |name, found| {
        let mut line = json!({ "case": name });
        let passed = match found {
            Ok((found, passed)) => {
                line["found"] = found;
                passed
            }
            Err(error) => {
                line["error"] = json!(error.to_string());
                false
            }
        };
        line["passed"] = json!(passed);
        tell(&line)?;
        Ok(passed)
    })
}

/// One line on standard output, at once.
fn tell(line: &Value) -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}
