//! A model's folder in use: a fine-tuned model predicts line by line, any encoder turns lines into vectors, and either shows what it attends to.

pub(crate) mod answer;
pub(crate) mod attention;
pub(crate) mod card;
pub(crate) mod export;
pub(crate) mod fill;
pub(crate) mod known;
pub(crate) mod lines;
pub(crate) mod opened;
pub(crate) mod spans;
mod tags;
pub(crate) mod task_file;
pub(crate) mod vectors;

use downstream::encode::Framed;
use tasks::token::encode::Vocabulary;

use crate::stage::finetune::quirks::PairOrder;
use lines::Input;

/// Tokens that pass through an encoder together: enough to keep it busy, few enough for any memory.
const TOKENS: usize = 4096;

/// Lines that are read together.
const LINES: usize = 64;

/// The same where maps are made of them, which takes threads some lines each.
const MAPPED: usize = 1024;

/// Says which lines passed through an encoder together.
fn asked_together(lines: impl Iterator<Item = u64>) -> String {
    let (first, last) = lines.fold((u64::MAX, 0), |(first, last), line| (first.min(line), last.max(line)));
    if first == last { format!("line {first}") } else { format!("lines {first} to {last}") }
}

/// Adds the row of an input.
fn push(vocabulary: &Vocabulary, line: &Input, order: PairOrder, rows: &mut Framed) -> anyhow::Result<()> {
    let text = vocabulary.encode(&line.text)?;
    match &line.pair {
        None => rows.single(&text),
        Some(pair) => {
            let pair = vocabulary.encode(pair)?;
            order.push(&text, &pair, rows);
        }
    }
    Ok(())
}
