//! Rows of masked language modelling from plain text, on one thread: `masked_lm VOCABULARY TEXT [EPOCHS]`. Prints what was cut and hidden,
//! and tokens per second of encoding and of masking.
#![allow(clippy::print_stdout, reason = "an example tells what it did")]

use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::Instant;

use tasks::builder::Sample;
use tasks::builder::masked_lm::{Masker, Rates, Turn, Unit};
use tasks::builder::passage::{Counts, Passage};
use tasks::corpus::{Document, text};
use tasks::seed::Seed;
use tasks::token::encode::{Case, Vocabulary};

/// The most tokens of a row, as many as BERT has positions.
const MAX_TOKENS: usize = 512;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (vocabulary, file, epochs) = match arguments.as_slice() {
        [vocabulary, file] => (vocabulary, file, 1),
        [vocabulary, file, epochs] => (vocabulary, file, epochs.parse()?),
        _ => return Err("usage: masked_lm VOCABULARY TEXT [EPOCHS]".into()),
    };
    let vocabulary = Vocabulary::load(Path::new(vocabulary), Case::Uncased)?;
    let file = Path::new(file);
    let mut reader = text::Reader::new(BufReader::new(File::open(file)?), file, text::Unit::Paragraph);
    let (mut document, mut passages, mut counts) = (Document::default(), Vec::new(), Counts::default());
    let start = Instant::now();
    while reader.read(&mut document)? {
        passages.push(Passage::new(&vocabulary, &document, MAX_TOKENS, &mut counts)?);
    }
    let encoding = start.elapsed().as_secs_f64();
    let rates = Rates { rate: 0.15, blank: 0.8, random: 0.1 };
    let mut masker = Masker::new(&vocabulary, rates, Unit::Words, Seed::new(1))?;
    let (mut row, mut tokens) = (Sample::default(), 0);
    let start = Instant::now();
    for epoch in 0..epochs {
        for (document, passage) in (0..).zip(&passages) {
            for chunk in 0..passage.chunks.len() {
                if masker.build(&mut row, passage, Turn { epoch, document, chunk }) {
                    tokens += row.input_ids.len();
                }
            }
        }
    }
    let masking = start.elapsed().as_secs_f64();
    println!("{counts:?}\n{:?}", masker.counts);
    println!("encoding {:.0} tokens/s", counts.subwords as f64 / encoding);
    println!("masking {:.0} tokens/s", tokens as f64 / masking);
    Ok(())
}
