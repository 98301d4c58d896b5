//! Tags a text with a list of terms, on one thread: `tag TERMS TEXT [MENTIONS]`. TERMS has one term a line, which names the entity with the
//! number of its line; TEXT one text a line. Prints how long the dictionary took and how fast the text was tagged, as JSON, in seconds of the
//! processor (Linux); MENTIONS, if asked for, is written with the line, the beginning and the end (bytes) of each mention, tabs between.
#![allow(clippy::print_stdout, reason = "an example tells what it did")]

use std::error::Error;
use std::fs::{File, read_to_string};
use std::io::{BufWriter, Write};

use kg::table::EntityId;
use text::ner::{Dictionary, Entry, Filters, Tagger};

use crate::process::on_core;

/// How often the text is tagged; the fastest counts.
const RUNS: usize = 5;

/// What the first lines of this file say.
pub(crate) fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let (terms, text, out) = match arguments {
        [terms, text] => (terms, text, None),
        [terms, text, mentions] => (terms, text, Some(mentions)),
        _ => return Err("usage: tag TERMS TEXT [MENTIONS]".into()),
    };
    let (terms, text) = (read_to_string(terms)?, read_to_string(text)?);
    let start = on_core()?;
    let entries =
        terms.lines().zip(0..).map(|(text, line)| Entry { text, entity: EntityId(line), types: &[] });
    let dictionary = Dictionary::build(entries, &Filters::as_written())?;
    let build = on_core()? - start;
    let mut tagger = Tagger::new(&dictionary);
    let (mut mentions, mut found, mut fastest) = (Vec::new(), 0, f64::INFINITY);
    for _ in 0..RUNS {
        let start = on_core()?;
        found = 0;
        for line in text.lines() {
            tagger.tag(line, &mut mentions);
            found += mentions.len();
        }
        fastest = fastest.min(on_core()? - start);
    }
    if let Some(out) = out {
        let mut out = BufWriter::new(File::create(out)?);
        for (number, line) in text.lines().enumerate() {
            tagger.tag(line, &mut mentions);
            for mention in &mentions {
                writeln!(out, "{number}\t{}\t{}", mention.bytes.start, mention.bytes.end)?;
            }
        }
        out.flush()?;
    }
    println!(
        "{{\"terms\": {}, \"build_seconds\": {build:.3}, \"seconds\": {fastest:.4}, \"megabytes_per_second\": {:.1}, \"mentions\": {found}}}",
        dictionary.len(),
        text.len() as f64 / 1e6 / fastest
    );
    Ok(())
}
