//! What a fine-tuned model says of a benchmark's parts: outputs for all rows, in batches of bounded size, and what they are worth.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Context as _;
use base::whole::write_whole;
use batch::rows::Rows;
use downstream::example::Part;
use model::eval::cosine::{dot, unit};
use model::output::{Batch, Output, Targets};
use model::predict::Predictor;
use serde::Serialize;

use super::benchmark::{Benchmark, Score};
use super::measure;
use crate::engine::context::Context;

/// Tokens that pass through an encoder together: enough to keep it busy, few enough for any memory.
pub(super) const TOKENS: usize = 4096;
/// Rows that are made at a time where that takes much memory.
const SOME: usize = 16;

/// A model's outputs, those of the task of this number, for all rows of a part, `[rows][classes]`; of tags, for all tokens of the rows; of masked words, for each token that is
/// asked for whether the most likely one is right (1 or 0) and the right one's loss; of spans, for each row the best one's score above the null score, its passage's number, and where it begins and ends there; of an embedding, for each sample the cosines of its first row's vector with its others'.
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
    if let Output::Vocabulary { .. } = benchmark.output() {
        return masked_words(predictor, task, benchmark, part, context);
    }
    if *benchmark.output() == Output::Span {
        let mut ask = |rows: &Rows| {
            context.check()?;
            Ok(predictor.logits(task, rows)?)
        };
        return benchmark.best_spans(part, &mut ask);
    }
    let mut passed = Passed { predictor, task, context, outputs: vec![] };
    let mut rows = benchmark.framed()?;
    for sample in 0..benchmark.samples(part) {
        match benchmark.numbers(part, sample) {
            None => benchmark.push(part, sample, &mut rows)?,
            Some(numbers) => {
                for first in (0..numbers.len()).step_by(SOME) {
                    let some = first..numbers.len().min(first + SOME);
                    benchmark.push_some(part, sample, some, &mut rows)?;
                    passed.pass(&mut rows.rows, TOKENS)?;
                }
            }
        }
        passed.pass(&mut rows.rows, TOKENS)?;
    }
    passed.pass(&mut rows.rows, 1)?;
    Ok(passed.outputs)
}

/// Samples of masked words that pass through an encoder together: each token asked for has the logits of a whole vocabulary.
const TEXTS: usize = 16;

/// What is said of the masked words of a part.
fn masked_words(
    predictor: &Predictor,
    task: usize,
    benchmark: &dyn Benchmark,
    part: Part,
    context: &Context,
) -> anyhow::Result<Vec<Vec<f32>>> {
    let (mut said, samples) = (vec![], benchmark.samples(part));
    for first in (0..samples).step_by(TEXTS) {
        context.check()?;
        let Batch { rows, targets, .. } = benchmark.probe(part, first..samples.min(first + TEXTS))?;
        let Targets::Tokens(targets) = targets else { anyhow::bail!("words of no tokens; report it") };
        let of_row = |row: &Vec<Option<u32>>| (0..row.len()).filter(|token| row[*token].is_some()).collect();
        let asked: Vec<Vec<usize>> = targets.iter().map(of_row).collect();
        let logits = predictor.at(task, &rows, &asked)?;
        for (logits, right) in logits.iter().zip(targets.iter().flatten().flatten()) {
            said.push(hit_and_loss(logits, *right as usize).to_vec());
        }
    }
    Ok(said)
}

/// Whether the most likely entry of a vocabulary is the right one (1 or 0), and the right one's loss.
#[expect(clippy::cast_possible_truncation, reason = "answers are stored in this precision")]
fn hit_and_loss(logits: &[f32], right: usize) -> [f32; 2] {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    // f32 would lose the most of tens of thousands of small terms.
    let sum: f64 = logits.iter().map(|logit| f64::from(logit - top).exp()).sum();
    let loss = f64::from(top - logits[right]) + sum.ln();
    [f32::from(u8::from(measure::best(logits) == right)), loss as f32]
}

/// Outputs of rows that have passed through a predictor.
struct Passed<'a> {
    predictor: &'a Predictor,
    task: usize,
    context: &'a Context,
    outputs: Vec<Vec<f32>>,
}

impl Passed<'_> {
    /// Passes rows on once they have so many tokens.
    fn pass(&mut self, rows: &mut Rows, least: usize) -> anyhow::Result<()> {
        if rows.is_empty() || rows.ids.len() < least {
            return Ok(());
        }
        self.context.check()?;
        self.outputs.extend(self.predictor.logits(self.task, &std::mem::take(rows))?);
        Ok(())
    }
}

/// The cosines of an embedding's outputs. Rows that are alike, as passages that are candidates of many queries, are encoded once.
fn cosines(
    predictor: &Predictor,
    task: usize,
    benchmark: &dyn Benchmark,
    part: Part,
    context: &Context,
) -> anyhow::Result<Vec<Vec<f32>>> {
    let mut passed = Passed { predictor, task, context, outputs: vec![] };
    let (mut by_ids, mut by_number) = (HashMap::<Vec<u32>, usize>::new(), HashMap::<u64, usize>::new());
    let (mut places, mut waiting) = (Vec::new(), Rows::default());
    for sample in 0..benchmark.samples(part) {
        let mut of_sample = vec![];
        if let Some(numbers) = benchmark.numbers(part, sample) {
            for (at, number) in numbers.into_iter().enumerate() {
                let next = passed.outputs.len() + waiting.len();
                let place = *by_number.entry(number).or_insert(next);
                of_sample.push(place);
                if place == next {
                    let mut row = benchmark.framed()?;
                    benchmark.push_some(part, sample, at..at + 1, &mut row)?;
                    waiting.append(row.rows);
                    passed.pass(&mut waiting, TOKENS)?;
                }
            }
        } else {
            let mut rows = benchmark.framed()?;
            benchmark.push(part, sample, &mut rows)?;
            for ids in rows.rows.each() {
                let next = passed.outputs.len() + waiting.len();
                let place = by_ids.get(ids).copied().unwrap_or(next);
                of_sample.push(place);
                if place == next {
                    by_ids.insert(ids.to_vec(), place);
                    waiting.push(ids.iter().map(|id| (*id, 0)));
                }
            }
        }
        places.push(of_sample);
        passed.pass(&mut waiting, TOKENS)?;
    }
    passed.pass(&mut waiting, 1)?;
    let mut vectors = passed.outputs;
    vectors.iter_mut().for_each(|vector| unit(vector));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_of_a_likely_word_counts_all_unlikely_ones() {
        let mut logits = vec![4.0; 30_522];
        logits[7] = 20.0;
        let others = (30_521.0 * (-16.0_f64).exp()).ln_1p();
        let [hit, loss] = hit_and_loss(&logits, 7);
        assert!(hit == 1.0 && (f64::from(loss) - others).abs() < 1e-8, "{loss} {others}");
        let [hit, loss] = hit_and_loss(&logits, 8);
        assert!(hit == 0.0 && (f64::from(loss) - 16.0 - others).abs() < 1e-6, "{loss}");
    }
}
