//! Stage `vocabulary`: trains a WordPiece vocabulary on entity names and text, where the config brings none of its own.
//! Knows no sample.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use kg::table::Graph;
use kg::whole::write_whole;
use serde::{Deserialize, Serialize};
use tasks::token::encode::Case;
use tasks::token::train::{self, WordCounts};

use super::folder;
use super::location::{self, Location, Place, Places};
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::stage::{Input, Stage};

/// The name of the file in the artifact.
pub const FILE: &str = "vocab.txt";

/// Most entries of a vocabulary that is trained.
pub const LARGEST: u64 = 10_000_000;

/// The vocabulary's part of a config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Whether case is kept. A `tokenizer.json` brings its own rule, and this one is not used then.
    pub case: Case,
    /// A `vocab.txt` or `tokenizer.json` to use as it is.
    #[serde(skip_serializing)]
    pub file: Option<Location>,
    /// How to train one instead.
    pub train: Option<Train>,
}

/// How to train a vocabulary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Train {
    /// Entries, special tokens included.
    pub size: usize,
    /// A piece must occur this often to be merged.
    pub min_frequency: u64,
    /// Plain text (UTF-8), files or folders of `.txt` files, in addition to the names of all entities and relations.
    #[serde(skip_serializing)]
    pub text: Vec<Location>,
}

/// Where the vocabulary of later stages comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// The artifact of this stage.
    Trained,
    /// A file of the user's.
    File(Place),
}

impl Source {
    /// The input that a later stage declares.
    #[must_use]
    pub fn input(&self) -> Input {
        match self {
            Source::Trained => Input::artifact("vocabulary"),
            Source::File(place) => place.input(),
        }
    }

    /// Describes which it is, as far as its contents do not say it.
    pub fn describe(&self, to: &mut dyn Describe) {
        if let Source::File(place) = self {
            place.describe(to);
        }
    }

    /// Where the file lies while a later stage runs.
    ///
    /// # Errors
    /// When that stage did not declare it.
    pub fn path(&self, context: &Context) -> anyhow::Result<PathBuf> {
        match self {
            Source::Trained => Ok(context.artifact("vocabulary")?.join(FILE)),
            Source::File(place) => place.path(context),
        }
    }
}

/// The stage.
#[derive(Debug)]
pub struct Vocabulary {
    config: Config,
    source: Source,
    text: Vec<Place>,
}

impl Vocabulary {
    /// The stage for `config`.
    ///
    /// # Errors
    /// When the config names both a file and a training, or neither, or a place that cannot be meant.
    pub fn new(config: &Config, places: &Places<'_>) -> anyhow::Result<Self> {
        let (source, text) = match (&config.file, &config.train) {
            (Some(file), None) => (Source::File(file.place("vocabulary.file", places)?), Vec::new()),
            (None, Some(train)) => {
                let text = train.text.iter().enumerate();
                let text = text.map(|(i, text)| text.place(&format!("vocabulary.train.text.{i}"), places));
                (Source::Trained, text.collect::<anyhow::Result<_>>()?)
            }
            _ => {
                anyhow::bail!("[vocabulary] needs either `file` or a table `train`, not both and not neither")
            }
        };
        Ok(Self { config: config.clone(), source, text })
    }

    /// Whether it keeps case.
    #[must_use]
    pub fn case(&self) -> Case {
        self.config.case
    }

    /// Where later stages find the vocabulary.
    #[must_use]
    pub fn source(&self) -> Source {
        self.source.clone()
    }

    /// Whether there is anything to train, so that the stage has work to do.
    #[must_use]
    pub fn is_trained(&self) -> bool {
        self.source == Source::Trained
    }
}

impl Stage for Vocabulary {
    fn name(&self) -> &'static str {
        "vocabulary"
    }

    fn version(&self) -> u32 {
        1
    }

    fn describe(&self, to: &mut dyn Describe) {
        describe::config(to, "vocabulary", &self.config);
        self.text.iter().for_each(|place| place.describe(to));
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = location::inputs(&self.text);
        inputs.push(Input::artifact("triples"));
        inputs
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let settings = self.config.train.as_ref().context("there is nothing to train")?;
        let mut words = WordCounts::new(self.config.case);
        let graph = Graph::read(context.artifact("triples")?)?;
        for entity in graph.entities() {
            words.add(&entity.text)?;
        }
        for relation in graph.relations() {
            words.add(&relation.text)?;
        }
        for place in &self.text {
            for file in folder::ending(&place.path(context)?, &[".txt"])? {
                count_words(&file, &mut words, context)?;
            }
        }
        let config = train::Config {
            size: settings.size,
            min_frequency: settings.min_frequency,
            case: self.config.case,
        };
        let tokens = train::train(&config, &words)?;
        context.record("entries", tokens.len());
        context.record("distinct_words", words.distinct());
        write_whole(&context.out().join(FILE), (tokens.join("\n") + "\n").as_bytes())?;
        Ok(())
    }
}

fn count_words(file: &Path, words: &mut WordCounts, context: &Context) -> anyhow::Result<()> {
    let open = File::open(file).with_context(|| format!("{}: cannot open the text", file.display()))?;
    let mut reader = BufReader::new(context.progress().reader(open));
    let (mut bytes, mut number) = (Vec::new(), 0_u64);
    loop {
        bytes.clear();
        number += 1;
        if reader.read_until(b'\n', &mut bytes).with_context(|| format!("{}", file.display()))? == 0 {
            return Ok(());
        }
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
