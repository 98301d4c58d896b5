//! What a fine-tuned model says of a benchmark's parts: outputs for all rows, in batches of bounded size, and what they are worth.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Context as _;
use base::whole::write_whole;
use batch::rows::Rows;
use model::eval::cosine::{dot, unit};
use model::output::Output;
use model::predict::Predictor;
use serde::Serialize;
use tasks::downstream::example::Part;

use super::benchmark::{Benchmark, Score};
use crate::engine::context::Context;

/// Tokens that pass through an encoder together: enough to keep it busy, few enough for any memory.
const TOKENS: usize = 4096;
/// Rows that are made at a time where that takes much memory.
const SOME: usize = 16;

/// A model's outputs, those of the task of this number, for all rows of a part, `[rows][classes]`; of tags, for all tokens of the rows; of an embedding, for each
/// sample the cosines of its first row's vector with its others'.
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
    if let Output::Embedding { .. } = benchmark.output() {
        return cosines(predictor, task, benchmark, part, context);
    }
    let (samples, mut outputs) = (benchmark.samples(part), Vec::new());
    let mut rows = benchmark.framed()?;
    for sample in 0..samples {
        let numbered = benchmark.numbers(part, sample).map_or(0, |numbers| numbers.len());
        if numbered == 0 {
            benchmark.push(part, sample, &mut rows)?;
        }
        for first in (0..numbered).step_by(SOME) {
            benchmark.push_some(part, sample, first..numbered.min(first + SOME), &mut rows)?;
            if rows.rows.ids.len() >= TOKENS {
                context.check()?;
                let full = std::mem::replace(&mut rows, benchmark.framed()?);
                outputs.extend(predictor.logits(task, &full.rows)?);
            }
        }
        if rows.rows.ids.len() >= TOKENS || sample + 1 == samples && !rows.rows.is_empty() {
            context.check()?;
            let full = std::mem::replace(&mut rows, benchmark.framed()?);
            outputs.extend(predictor.logits(task, &full.rows)?);
        }
    }
    Ok(outputs)
}

/// The cosines of an embedding's outputs. Rows that are alike, as passages that are candidates of many queries, are encoded once.
fn cosines(
    predictor: &Predictor,
    task: usize,
    benchmark: &dyn Benchmark,
    part: Part,
    context: &Context,
) -> anyhow::Result<Vec<Vec<f32>>> {
    let (mut known, mut numbered, mut places) =
        (HashMap::<Vec<u32>, usize>::new(), HashMap::<u64, usize>::new(), Vec::new());
    let (mut vectors, mut waiting) = (Vec::<Vec<f32>>::new(), Rows::default());
    for sample in 0..benchmark.samples(part) {
        let (mut of_sample, count) =
            (vec![], |waiting: &Rows, vectors: &Vec<Vec<f32>>| vectors.len() + waiting.len());
        if let Some(numbers) = benchmark.numbers(part, sample) {
            for (at, number) in numbers.into_iter().enumerate() {
                if let Some(place) = numbered.get(&number) {
                    of_sample.push(*place);
                    continue;
                }
                let place = count(&waiting, &vectors);
                let mut row = benchmark.framed()?;
                benchmark.push_some(part, sample, at..at + 1, &mut row)?;
                waiting.append(row.rows);
                numbered.insert(number, place);
                of_sample.push(place);
                if waiting.ids.len() >= TOKENS {
                    context.check()?;
                    vectors.extend(predictor.logits(task, &std::mem::take(&mut waiting))?);
                }
            }
        } else {
            let mut rows = benchmark.framed()?;
            benchmark.push(part, sample, &mut rows)?;
            for ids in rows.rows.each() {
                let place = count(&waiting, &vectors);
                of_sample.push(match known.get(ids) {
                    Some(place) => *place,
                    None => {
                        known.insert(ids.to_vec(), place);
                        waiting.push(ids.iter().map(|id| (*id, 0)));
                        place
                    }
                });
            }
        }
        places.push(of_sample);
        if waiting.ids.len() >= TOKENS {
            context.check()?;
            vectors.extend(predictor.logits(task, &std::mem::take(&mut waiting))?);
        }
    }
    if !waiting.is_empty() {
        vectors.extend(predictor.logits(task, &waiting)?);
    }
    vectors.iter_mut().for_each(|vector: &mut Vec<f32>| unit(vector));
    let of_sample = |places: Vec<usize>| {
        let (first, others) = places
            .split_first()
            .map_or((&[][..], &[][..]), |(first, others)| (vectors[*first].as_slice(), others));
        others.iter().map(|other| vec![dot(first, &vectors[*other])]).collect::<Vec<_>>()
    };
    Ok(places.into_iter().flat_map(of_sample).collect())
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
    let (mut json, mut from) = (Vec::new(), 0);
    for sample in 0..benchmark.samples(part) {
        let count = benchmark.answers(part, sample)?;
        let of = outputs.get(from..from + count).context("there are not outputs for all rows")?;
        from += count;
        serde_json::to_writer(&mut json, &Said { id: benchmark.id(part, sample), outputs: of })?;
        json.push(b'\n');
    }
    Ok(write_whole(path, &json)?)
}
