//! Finds phrases in a corpus of one sentence a line and cuts all of it into them, on one thread: one side of the phrases in `benches/maps.py`.
//!
//! `phrases FILE FOLDER MEMORY_MIB MIN_COUNT THRESHOLD`. Neighbours are counted, in order and to disk (FOLDER); those with MIN_COUNT and
//! an NPMI of THRESHOLD are phrases of two words. Finding them includes reading FILE and splitting it into words; cutting is timed with the splitting
//! and without. Times are of the processor, so that other work on the machine does not count. Prints one JSON object.
#![allow(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::Path;

use base::cancel::CancelToken;
use serde_json::json;
use tasks::token::encode::Case;
use text::count::{self, Adjacent, Config, Counting, Distance, Order, Read, Room, Weight, Within};
use text::phrase::{self, Phrases};
use text::word::Words;

use crate::process::processor;

/// Neighbours in order, and nothing else.
const COUNTING: Config = Config {
    case: Case::Uncased,
    within: Within::Document,
    pairs: Counting::Distance(Distance { window: 1, weight: Weight::Equal, order: Order::Directed }),
    adjacent: Adjacent::Leave,
    min_count: 1,
    max_words: None,
    max_distinct: None,
};

/// What the first lines of this file say.
pub(crate) fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [file, folder, memory, min_count, threshold] = arguments else {
        return Err("usage: phrases FILE FOLDER MEMORY_MIB MIN_COUNT THRESHOLD".into());
    };
    let (file, folder) = (Path::new(file), Path::new(folder));
    fs::create_dir_all(folder)?;
    let config = phrase::Config {
        min_count: min_count.parse()?,
        threshold: threshold.parse()?,
        max_words: 2,
        connectors: Vec::new(),
    };
    let start = processor()?;
    let room = Room {
        memory: memory.parse::<usize>()? << 20,
        threads: 1,
        folder: folder.to_owned(),
        cancel: CancelToken::NEVER,
    };
    let tokens = counted(file, &room)?;
    let phrases = Phrases::of(&Read::open(folder)?, &config)?;
    let build = processor()? - start;

    let text = fs::read_to_string(file)?;
    let (mut words, mut found, mut joined) = (Words::new(Case::Uncased), Vec::new(), 0);
    let start = processor()?;
    for line in text.lines() {
        words.split(line);
        phrases.segment(words.iter().map(|word| word.letters), &mut found);
        joined += saved(&found);
    }
    let with_splitting = processor()? - start;
    let split: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
    let start = processor()?;
    let mut again = 0;
    for line in &split {
        phrases.segment(line.iter().copied(), &mut found);
        again += saved(&found);
    }
    let alone = processor()? - start;
    if joined != again {
        return Err(
            "the corpus is not split at single spaces: write letters and digits only, in lower case".into()
        );
    }
    println!(
        "{}",
        json!({
            "tokens": tokens, "phrases": phrases.len(), "joined": joined, "build_seconds": build,
            "split_and_apply_seconds": with_splitting, "apply_seconds": alone,
        })
    );
    Ok(())
}

/// Counts the neighbours of `file` into the room's folder; the number of its words.
fn counted(file: &Path, room: &Room) -> Result<u64, Box<dyn Error>> {
    let counted = count::count(&COUNTING, count::Share::Whole, room, |feed| {
        let (mut lines, mut line) = (BufReader::with_capacity(1 << 20, File::open(file)?), String::new());
        while lines.read_line(&mut line)? > 0 {
            feed.text(&line)?;
            line.clear();
        }
        Ok::<(), Box<dyn Error>>(())
    })?;
    Ok(counted.write(&room.folder)?.occurrences)
}

/// Words less once phrases are one word each.
fn saved(phrases: &[Range<usize>]) -> usize {
    phrases.iter().map(|phrase| phrase.len() - 1).sum()
}
