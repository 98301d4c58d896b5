//! The words that a vocabulary is trained on: the names of a graph, and the lines of files.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use anyhow::Context as _;
use kg::table::Graph;
use tasks::token::encode::Case;
use tasks::token::train::WordCounts;

use super::LONGEST_LINE;
use crate::engine::context::Context;

/// The words of a graph's names.
pub(super) fn names(triples: &Path, case: Case) -> anyhow::Result<WordCounts> {
    let mut words = WordCounts::new(case);
    let graph = Graph::read(triples)?;
    let entities = graph.entities().iter().map(|entity| &entity.text);
    entities
        .chain(graph.relations().iter().map(|relation| &relation.text))
        .try_for_each(|text| words.add(text))?;
    Ok(words)
}

/// Adds the words of a text.
pub(super) fn count_words(file: &Path, words: &mut WordCounts, context: &Context) -> anyhow::Result<()> {
    let open = File::open(file).with_context(|| format!("{}: cannot open the text", file.display()))?;
    let mut reader = BufReader::new(context.progress().reader(open));
    let (mut bytes, mut number) = (Vec::new(), 0_u64);
    loop {
        bytes.clear();
        number += 1;
        let read = reader.by_ref().take(LONGEST_LINE + 1).read_until(b'\n', &mut bytes);
        if read.with_context(|| format!("{}", file.display()))? == 0 {
            return Ok(());
        }
        anyhow::ensure!(
            bytes.len() as u64 <= LONGEST_LINE,
            "{}: line {number} has more than {LONGEST_LINE} bytes; expected plain text in lines: break it into several",
            file.display()
        );
        let line = std::str::from_utf8(&bytes).map_err(|e| {
            let column = e.valid_up_to() + 1;
            anyhow::anyhow!(
                "{}: line {number}, byte {column}: not valid UTF-8; convert the file, e.g. with `iconv -t utf-8`",
                file.display()
            )
        })?;
        words.add(line)?;
    }
}
