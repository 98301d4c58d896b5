//! Samples with semantic maps of a corpus of one sentence a line, written and expanded: one side of the maps in `benches/maps.py`.
//!
//! `maps FILE COUNTED TERMS VOCABULARY FOLDER`. COUNTED is what the example `count` wrote of FILE with neighbours; TERMS has one term a line;
//! VOCABULARY is a `vocab.txt` of BERT, or `-` to train one on FILE. Maps are entity, phrase and term; samples go to FOLDER as Parquet and are
//! read again, then expanded in batches of 32, each as wide as its longest. Times are of the processor, so that other work on
//! the machine does not count; set `RAYON_NUM_THREADS`. Prints one JSON object, with the sum and the number of values above 0 for each map.
#![allow(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use base::whole::write_whole;
use batch::Place;
use batch::maps::expand::{Map, expand_into};
use batch::maps::sample::{Row, Sample};
use kg::split::Part;
use kg::table::EntityId;
use serde_json::{Value, json};
use tasks::maps::generators::{Counts, From, Generator, Limits, Text};
use tasks::maps::index::{Index, Options};
use tasks::maps::read::{Group, Maps};
use tasks::maps::spelt::{Mention, Speller, Spelt};
use tasks::maps::write::{Target, Writer};
use tasks::shard::file::Size;
use tasks::shard::index::Tokenizer;
use tasks::token::encode::{Case, Vocabulary};
use tasks::token::train::{self, WordCounts};
use text::count::Read;
use text::ner::filters::{Ambiguous, Inverted, Numbers, Plurals, Possessives, StopWords, Types};
use text::ner::{Dictionary, Entry, Filters, Tagger};
use text::phrase::{self, Phrases};
use text::pmi::{self, Matrix};
use text::word::Words;

use crate::process::processor;

/// The maps; without a graph there is no fourth.
const MAPS: [Map; 3] = [Map::Entity, Map::Phrase, Map::Term];
const LIMITS: Limits = Limits { tokens: 128, terms: 5, auxiliary: 16 };
const BATCH: usize = 32;
/// Rounds of reading and of expanding; one is too short for hundredths of a second.
const ROUNDS: usize = 5;

/// What the first lines of this file say.
pub(crate) fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [file, counted, terms, vocabulary, folder] = arguments else {
        return Err("usage: maps FILE COUNTED TERMS VOCABULARY FOLDER".into());
    };
    let (counted, folder) = (Path::new(counted), Path::new(folder));
    fs::create_dir_all(folder)?;
    let text = fs::read_to_string(file)?;
    let vocabulary = match vocabulary.as_str() {
        "-" => trained(&text, folder)?,
        path => PathBuf::from(path),
    };
    let terms = fs::read_to_string(terms)?;
    let entries =
        terms.lines().zip(0..).map(|(text, line)| Entry { text, entity: EntityId(line), types: &[] });
    let neighbours =
        phrase::Config { min_count: 5, threshold: 0.5, max_words: 4, connectors: vec!["-".to_owned()] };
    let made = Made {
        vocabulary: Vocabulary::load(&vocabulary, Case::Uncased)?,
        dictionary: Dictionary::build(entries, &filters())?,
        phrases: Phrases::of(&Read::open(&counted.join("counts"))?, &neighbours)?,
        matrix: Matrix::open(&counted.join("pmi").join(pmi::MATRIX))?,
    };
    let start = processor()?;
    let index = made.write(&text, &vocabulary, folder)?;
    let writing = processor()? - start;
    let start = processor()?;
    let mut groups = Vec::new();
    for _ in 0..ROUNDS {
        groups = read(folder, &index)?;
    }
    let reading = processor()? - start;
    let mut told = expanded(&groups)?;
    let counts = index.texts.get(&Part::Train).ok_or("there is no sample")?;
    let bytes: u64 = index.files().map(|file| file.bytes).sum();
    let all = told.as_object_mut().ok_or("no object")?;
    all.extend([
        ("samples".to_owned(), json!(counts.samples)),
        ("counts".to_owned(), serde_json::to_value(counts)?),
        ("bytes".to_owned(), json!(bytes)),
        ("maps".to_owned(), json!(MAPS)),
        ("write_seconds".to_owned(), json!(writing)),
        ("read_seconds".to_owned(), json!(reading / ROUNDS as f64)),
    ]);
    println!("{told}");
    Ok(())
}

/// Terms as a corpus of words in lower case has them.
fn filters() -> Filters {
    Filters {
        min_letters: 3,
        max_words: 8,
        numbers: Numbers::Drop,
        stop_words: StopWords::English,
        common_words: Vec::new(),
        ambiguous: Ambiguous::Keep,
        types: Types::All,
        plurals: Plurals::Both,
        inverted: Inverted::Both,
        possessives: Possessives::Drop,
        upper_case: None,
    }
}

/// A vocabulary of 8,000 entries of this text, in `folder`.
fn trained(text: &str, folder: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let mut words = WordCounts::new(Case::Uncased);
    for line in text.lines() {
        words.add(line)?;
    }
    let config = train::Config { size: 8000, min_frequency: 2, case: Case::Uncased };
    let path = folder.join("vocab.txt");
    write_whole(&path, (train::train(&config, &words)?.join("\n") + "\n").as_bytes())?;
    Ok(path)
}

/// What samples are made with.
struct Made {
    vocabulary: Vocabulary,
    dictionary: Dictionary,
    phrases: Phrases,
    matrix: Matrix,
}

impl Made {
    /// Writes a sample for each line.
    fn write(&self, text: &str, vocabulary: &Path, folder: &Path) -> Result<Index, Box<dyn Error>> {
        let blake3 = blake3::hash(&fs::read(vocabulary)?).to_hex().to_string();
        let target = Target {
            folder,
            part: Part::Train,
            tokenizer: &blake3,
            size: Size::Bytes(64 << 20),
            items_per_group: 4096,
        };
        let build = |first: u32, lines: &[&str]| self.samples(first, lines);
        let mut writer = Writer::new(target, &build)?;
        for line in text.lines() {
            writer.push(line)?;
        }
        let written = writer.finish()?;
        let (size, special) = (self.vocabulary.size(), self.vocabulary.special());
        // Nothing but a benchmark asks what these maps were made of.
        let options = Options { limits: LIMITS, relevance: None, graph: None };
        let mut index = Index::new(options, Tokenizer { blake3, size, special }, vec![written]);
        index.write(folder)?;
        Ok(index)
    }

    fn samples(&self, first: u32, lines: &[&str]) -> Result<(Vec<Sample>, Counts), tasks::Error> {
        let spell = |word: &str| self.vocabulary.encode(word);
        let terms: (&dyn tasks::maps::auxiliary::Relevance, _) = (&self.matrix, &spell as _);
        let from =
            From { special: self.vocabulary.special(), limits: LIMITS, terms: Some(terms), graph: None };
        let (mut generator, mut tagger) = (Generator::new(from)?, Tagger::new(&self.dictionary));
        let (mut words, mut spelt) = (Words::new(Case::Uncased), Spelt::default());
        let mut speller = Speller::new(&self.vocabulary);
        let (mut found, mut phrases, mut samples) = (Vec::new(), Vec::new(), Vec::new());
        for (line, document) in lines.iter().zip(first..) {
            words.split(line);
            spelt.read(&mut speller, line, &mut words)?;
            tagger.tag_words(line, &words, &mut found);
            self.phrases.segment(words.iter().map(|word| word.letters), &mut phrases);
            let mentions: Vec<Mention> =
                found.iter().map(|found| Mention::tagged(found, &self.dictionary)).collect();
            let text = Text { spelt: &spelt, mentions: &mentions, phrases: &phrases };
            samples.push(Sample { document, ..generator.build(text, None)? });
        }
        Ok((samples, generator.counts))
    }
}

fn read(folder: &Path, index: &Index) -> Result<Vec<Group>, Box<dyn Error>> {
    let mut groups = Vec::new();
    for file in index.files() {
        let maps = Maps::open(folder, file)?;
        for group in 0..maps.groups() {
            groups.push(maps.group(group)?);
        }
    }
    Ok(groups)
}

/// Expands all samples in batches, some rounds for the time and one for the sums.
fn expanded(groups: &[Group]) -> Result<Value, Box<dyn Error>> {
    let rows: Vec<Row<'_>> = groups.iter().flat_map(Group::rows).collect();
    let (mut cells, mut batches) = (Vec::new(), Vec::new());
    for batch in rows.chunks(BATCH) {
        let width = batch.iter().map(Row::tokens).max().unwrap_or(0);
        let placed =
            batch.iter().enumerate().map(|(row, &of)| (Place { row, start: 0, len: of.tokens() }, of));
        batches.push((placed.collect::<Vec<_>>(), width));
        cells.resize(cells.len().max(batch.len() * MAPS.len() * width * width), 0.0_f32);
    }
    let start = processor()?;
    for _ in 0..ROUNDS {
        for (batch, width) in &batches {
            let size = batch.len() * MAPS.len() * width * width;
            expand_into(&mut cells[..size], batch, &MAPS, batch.len(), *width)?;
        }
    }
    let seconds = (processor()? - start) / ROUNDS as f64;
    let (mut sums, mut above, mut numbers) = ([0.0_f64; MAPS.len()], [0_u64; MAPS.len()], 0);
    for (batch, width) in &batches {
        let size = batch.len() * MAPS.len() * width * width;
        expand_into(&mut cells[..size], batch, &MAPS, batch.len(), *width)?;
        for (square, values) in cells[..size].chunks(width * width).enumerate() {
            sums[square % MAPS.len()] += values.iter().copied().map(f64::from).sum::<f64>();
            above[square % MAPS.len()] += values.iter().filter(|&&value| value > 0.0).count() as u64;
        }
        numbers += size as u64;
    }
    // As squares, each sample would have as many numbers as tokens, squared, for each map, if nothing is padded.
    let dense: u64 = rows.iter().map(|row| (row.tokens() as u64).pow(2)).sum();
    Ok(json!({
        "expand_seconds": seconds, "numbers": numbers, "sums": sums, "above": above,
        "dense_bytes": dense * (MAPS.len() * size_of::<f32>()) as u64,
    }))
}
