//! What a fine-tuned model says of a benchmark's parts: outputs for all rows, in batches of bounded size, and what they are worth.

use std::path::Path;

use anyhow::Context as _;
use base::whole::write_whole;
use model::predict::Predictor;
use serde::Serialize;
use tasks::downstream::example::Part;

use super::benchmark::{Benchmark, Score};
use crate::engine::context::Context;

/// Tokens that pass through an encoder together: enough to keep it busy, few enough for any memory.
const TOKENS: usize = 4096;

/// A model's outputs, those of the task of this number, for all rows of a part, `[rows][classes]`; of tags, for all tokens of the rows.
///
/// # Errors
/// When the model does not fit, or the run is asked to stop.
pub(crate) fn outputs(
    predictor: &Predictor,
    task: usize,
    benchmark: &dyn Benchmark,
    part: Part,
    context: &Context,
) -> anyhow::Result<Vec<Vec<f32>>> {
    let (samples, mut outputs) = (benchmark.samples(part), Vec::new());
    let mut rows = benchmark.framed()?;
    for sample in 0..samples {
        benchmark.push(part, sample, &mut rows)?;
        if rows.rows.ids.len() >= TOKENS || sample + 1 == samples {
            context.check()?;
            outputs.extend(predictor.logits(task, &rows.rows)?);
            rows = benchmark.framed()?;
        }
    }
    Ok(outputs)
}

/// How good a model's task of this number is on a part.
///
/// # Errors
/// When the model does not fit, the metric is undefined, or the run is asked to stop.
pub(crate) fn score(
    predictor: &Predictor,
    task: usize,
    benchmark: &dyn Benchmark,
    part: Part,
    context: &Context,
) -> anyhow::Result<Score> {
    measured(benchmark, part, &outputs(predictor, task, benchmark, part, context)?)
}

/// How good outputs for all rows of a part are.
///
/// # Errors
/// When the metric is undefined: with the part, and what makes it larger.
pub(crate) fn measured(benchmark: &dyn Benchmark, part: Part, outputs: &[Vec<f32>]) -> anyhow::Result<Score> {
    let name = part.name();
    benchmark.score(part, outputs).with_context(|| {
        let samples = benchmark.samples(part);
        format!("part {name}, {samples} samples: raise finetune.max_examples.{name} or the part's share")
    })
}

/// A sample's outputs.
#[derive(Serialize)]
struct Said<'a> {
    id: String,
    outputs: &'a [Vec<f32>],
}

/// Writes what a model said of the samples of a part, one a line: a list of numbers for each of its rows, or, of tags, of their tokens.
///
/// # Errors
/// When the disk refuses, or there are not outputs for all rows.
pub(crate) fn write(
    path: &Path,
    benchmark: &dyn Benchmark,
    part: Part,
    outputs: &[Vec<f32>],
) -> anyhow::Result<()> {
    let (mut json, mut from, output) = (Vec::new(), 0, benchmark.output());
    for sample in 0..benchmark.samples(part) {
        let mut rows = benchmark.framed()?;
        benchmark.push(part, sample, &mut rows)?;
        let count = output.answers(&rows.rows);
        let of = outputs.get(from..from + count).context("there are not outputs for all rows")?;
        from += count;
        serde_json::to_writer(&mut json, &Said { id: benchmark.id(part, sample), outputs: of })?;
        json.push(b'\n');
    }
    Ok(write_whole(path, &json)?)
}
