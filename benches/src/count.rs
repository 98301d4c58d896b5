//! Counts a corpus of one document a line and scores it, for `just bench-maps` and for anyone who wants to see what a setting costs.
//!
//! `count FILE FOLDER MEMORY_MIB THREADS CONTEXT [adjacent] [unscored]`, CONTEXT being `presence`, `inverse:N` or `equal:N` (N: window);
//! `adjacent` counts neighbours too. Counts lie in FOLDER/counts, scores in FOLDER/pmi, unless `unscored` is said. Prints one JSON object;
//! the processor's seconds do not count what else the machine does, and the peak is that of counting.
#![allow(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use std::error::Error;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Instant;

use base::cancel::CancelToken;
use serde_json::{Map, Value, json};
use tasks::token::encode::Case;
use text::count::{self, Adjacent, Config, Counting, Distance, Order, Room, Weight, Within};
use text::pmi::{self, Matrix, Measure, Relevance};
use text::word::Words;

use crate::process::processor;

/// What the first lines of this file say.
pub(crate) fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [file, folder, memory, threads, context, rest @ ..] = arguments else {
        return Err("expected FILE FOLDER MEMORY_MIB THREADS CONTEXT [adjacent] [unscored]".into());
    };
    if let Some(other) = rest.iter().find(|word| !["adjacent", "unscored"].contains(&word.as_str())) {
        return Err(format!("{other}: expected adjacent or unscored").into());
    }
    let said = |word: &str| rest.iter().any(|other| other == word);
    let config = Config {
        case: Case::Uncased,
        within: Within::Document,
        pairs: context_of(context)?,
        adjacent: if said("adjacent") { Adjacent::Count } else { Adjacent::Leave },
        min_count: 1,
        max_words: None,
        max_distinct: None,
    };
    let counts = Path::new(folder).join("counts");
    fs::create_dir_all(&counts)?;
    let room = Room {
        memory: memory.parse::<usize>()? << 20,
        threads: threads.parse()?,
        folder: counts.clone(),
        cancel: CancelToken::NEVER,
    };
    let start = Instant::now();
    let counted = count::count(&config, count::Share::Whole, &room, |feed| {
        let (mut lines, mut line) = (BufReader::with_capacity(1 << 20, File::open(file)?), String::new());
        while lines.read_line(&mut line)? > 0 {
            feed.text(&line)?;
            line.clear();
        }
        Ok::<(), Box<dyn Error>>(())
    })?;
    let index = counted.write(&counts)?;
    let mut told = json!({
        "tokens": index.occurrences, "words": index.words, "pairs": index.pairs.rows, "count": index.pairs.count,
        "weight_unit": index.weight_unit, "counting_s": start.elapsed().as_secs_f64(), "counting_processor_s": processor()?,
        "peak_mib": peak_mib(),
    });
    if !said("unscored") {
        let scores = Path::new(folder).join("pmi");
        let more = scored(Path::new(file), &counts, &scores)?;
        told.as_object_mut().ok_or("no object")?.extend(more);
    }
    println!("{told}");
    Ok(())
}

/// Scores what was counted and looks scores up; what there is to say of it.
fn scored(file: &Path, counts: &Path, scores: &Path) -> Result<Map<String, Value>, Box<dyn Error>> {
    fs::create_dir_all(scores)?;
    let config = pmi::Config {
        min_count: 5,
        max_words: None,
        words: pmi::Words::Lettered,
        min_pair_count: 5,
        measure: Measure::Ppmi,
        smoothing: 1.0,
        shift: 1.0,
        relevance: Relevance::Max,
        top_k: None,
    };
    let (start, before) = (Instant::now(), processor()?);
    let scored = pmi::score(&count::Read::open(counts)?, &config, scores)?;
    let (scoring, processor) = (start.elapsed().as_secs_f64(), processor()? - before);
    let (per_second, hits) = look_ups(file, &Matrix::open(&scores.join(pmi::MATRIX))?)?;
    let told = [
        ("scoring_s", json!(scoring)),
        ("scoring_processor_s", json!(processor)),
        ("scored_pairs", json!(scored.pairs.kept)),
        ("look_ups_per_s", json!(per_second)),
        ("hits", json!(hits)),
    ];
    Ok(told.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn context_of(text: &str) -> Result<Counting, Box<dyn Error>> {
    let (name, window) = text.split_once(':').unwrap_or((text, "0"));
    let weight = match name {
        "presence" => return Ok(Counting::Presence),
        "inverse" => Weight::Inverse,
        "equal" => Weight::Equal,
        _ => return Err(format!("{text}: expected presence, inverse:N or equal:N").into()),
    };
    Ok(Counting::Distance(Distance { window: window.parse()?, weight, order: Order::Symmetric }))
}

/// Look-ups a second of the processor, and the share of them that finds a score: of every two words of a document, document after document.
fn look_ups(file: &Path, matrix: &Matrix) -> Result<(f64, f64), Box<dyn Error>> {
    const PAIRS: usize = 10_000_000;
    const ROUNDS: usize = 10;
    let (mut lines, mut line) = (BufReader::new(File::open(file)?), String::new());
    let (mut words, mut pairs) = (Words::new(Case::Uncased), Vec::new());
    while pairs.len() < PAIRS && lines.read_line(&mut line)? > 0 {
        words.split(&line);
        let ids: Vec<u32> = words.iter().filter_map(|word| matrix.id(word.letters)).collect();
        for (at, &left) in ids.iter().enumerate() {
            pairs.extend(ids[at + 1..].iter().map(|&right| (left, right)));
        }
        line.clear();
    }
    let (start, mut hits) = (processor()?, 0);
    for _ in 0..ROUNDS {
        hits += pairs.iter().filter(|(a, b)| black_box(matrix.relevance(*a, *b)) > 0.0).count();
    }
    let all = (pairs.len() * ROUNDS).max(1) as f64;
    Ok((all / (processor()? - start).max(0.01), hits as f64 / all))
}

/// The most memory that this process has held, or 0 where the system does not say.
fn peak_mib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix("kB"))
        .and_then(|kib| kib.trim().parse::<u64>().ok())
        .unwrap_or(0)
        / 1024
}
