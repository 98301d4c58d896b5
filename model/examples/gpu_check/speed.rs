//! Tokens a second of training steps, measured whenever the other side of the pipe asks: it lets PyTorch take turns.

use std::error::Error;
use std::io::BufRead;
use std::time::Instant;

use base::rng::CounterRng;
use batch::rows::Rows;
use model::Device;
use model::attention::Chosen;
use model::device::ActivationDtype;
use model::encoder::pool::Pooling;
use model::output::{Batch, Outline, Output, OutputDropout, Targets, Task};
use model::train::{Setup, Trainer};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::toy;

/// A line of the input.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Asked {
    /// Another model takes the place of the last one.
    Model(Model),
    /// Batches, each of rows of so many tokens, which steps take in turns.
    Batches(Vec<Vec<usize>>),
    /// Steps for about so many seconds.
    Seconds(f64),
    /// So many steps.
    Steps(u64),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Model {
    layers: usize,
    hidden: usize,
    heads: usize,
    feed_forward: usize,
    vocabulary: usize,
    longest: usize,
    dropout: f64,
    dtype: ActivationDtype,
}

/// Labels of a row.
const CLASSES: u32 = 2;

/// A training with its batches.
struct Training {
    trainer: Trainer,
    vocabulary: usize,
    batches: Vec<[Vec<Batch>; 1]>,
    /// Tokens of each batch.
    tokens: Vec<usize>,
    layers: usize,
    /// Steps made.
    made: usize,
}

impl Training {
    /// Fresh weights below one output: the class of a row, of its first token.
    fn new(of: &Model, device: &Device) -> Result<Self, Box<dyn Error>> {
        let Model { layers, hidden, heads, vocabulary, longest, .. } = *of;
        let sizes = toy::Sizes { layers, hidden, heads, vocabulary, rows: 0, longest };
        let output = Output::OneClass { classes: CLASSES as usize, weights: None };
        let outline = Outline {
            tasks: vec![Task { name: "class".to_owned(), output, alpha: 1.0 }],
            pooling: Pooling::Cls,
            dropout: of.dropout,
            thinned: OutputDropout::ElementWise,
            labels: None,
            knowledge: None,
        };
        let mut encoder = toy::encoder(sizes, of.feed_forward, of.dropout);
        encoder.initializer_range = 0.02;
        let mut train = toy::train(1e-4);
        train.dtype = of.dtype;
        let setup = Setup { encoder, outline, attention: Chosen::default(), train, mask: None, gates: None };
        let trainer = Trainer::new(setup, device)?;
        Ok(Training { trainer, vocabulary, batches: vec![], tokens: vec![], layers, made: 0 })
    }

    fn take(&mut self, batches: &[Vec<usize>]) -> Result<(), Box<dyn Error>> {
        let key = CounterRng::new(1).named("ids");
        (self.batches, self.tokens, self.made) = (vec![], vec![], 0);
        let mut drawn = 0;
        for lengths in batches {
            let mut rows = Rows::default();
            for length in lengths {
                let ids = (drawn..).take(*length).map(|i| key.bits(i) % self.vocabulary as u64);
                let ids: Vec<u32> = ids.map(u32::try_from).collect::<Result<_, _>>()?;
                rows.push(ids.into_iter().map(|id| (id, 0)));
                drawn += *length as u64;
            }
            let classes = (0..CLASSES).cycle().take(lengths.len()).collect();
            self.batches.push([vec![Batch { task: 0, rows, targets: Targets::Classes(classes) }]]);
            self.tokens.push(lengths.iter().sum());
        }
        Ok(())
    }

    /// Steps as long as `goes_on` says of those made and the seconds since the first one; waits for the last.
    fn run(&mut self, goes_on: impl Fn(u64, f64) -> bool) -> Result<Value, Box<dyn Error>> {
        if self.batches.is_empty() {
            return Err("there are no batches yet".into());
        }
        let (begun, mut steps, mut tokens, mut loss) = (Instant::now(), 0, 0, 0.0);
        while goes_on(steps, begun.elapsed().as_secs_f64()) {
            let at = self.made % self.batches.len();
            let records = self.trainer.advance(0, &self.batches[at])?;
            loss = records.last().map_or(loss, |record| record.loss);
            (steps, tokens, self.made) = (steps + 1, tokens + self.tokens[at], self.made + 1);
        }
        let launched = begun.elapsed().as_secs_f64();
        loss = self.trainer.settle()?.last().map_or(loss, |record| record.loss);
        let seconds = begun.elapsed().as_secs_f64();
        let last = self.tokens[self.made.wrapping_sub(1) % self.tokens.len()];
        let bytes = self.trainer.activation_bytes().map(|bytes| bytes / (last * self.layers).max(1));
        Ok(json!({
            "steps": steps, "tokens": tokens, "seconds": seconds, "launched": launched, "loss": loss,
            "bytes_a_token_and_layer": bytes,
        }))
    }
}

/// Answers each line of the input with one line.
pub(crate) fn serve(
    device: &Device,
    input: impl BufRead,
    mut tell: impl FnMut(&Value) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let mut training = None;
    for line in input.lines() {
        match answer(&mut training, device, &line?) {
            Ok(value) => tell(&value)?,
            Err(error) => tell(&json!({ "error": error.to_string() }))?,
        }
    }
    Ok(())
}

fn answer(training: &mut Option<Training>, device: &Device, line: &str) -> Result<Value, Box<dyn Error>> {
    let asked: Asked = serde_json::from_str(line)?;
    if let Asked::Model(of) = &asked {
        // The old one first: both together may be more than there is.
        *training = None;
        *training = Some(Training::new(of, device)?);
        return Ok(json!({ "model": "ready" }));
    }
    let Some(of) = training else { return Err("there is no model yet".into()) };
    match asked {
        Asked::Model(_) => Err("a model twice".into()),
        Asked::Batches(batches) => {
            of.take(&batches)?;
            Ok(json!({ "batches": batches.len() }))
        }
        Asked::Seconds(most) => of.run(|_, seconds| seconds < most),
        Asked::Steps(most) => of.run(|steps, _| steps < most),
    }
}
