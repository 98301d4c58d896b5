//! Stage `benchmark-NAME`: a benchmark of `[[benchmarks]]`, from its publisher's files to what a model is fine-tuned and tried on.

mod capr;
mod classes;
mod cop;
mod listed;
pub(crate) mod set;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use downstream::capr::read as candidates;
use downstream::example;
use downstream::example::read as examples;
use downstream::example::schema::{self as example_schema, Licence};
use downstream::funnel::Step;
use downstream::lines::INDEX;
use downstream::set::glue;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use text::file::Format;

use super::corpus::{self, Corpus};
use super::location::{self, Location, Place, Places};
use super::maps::of_texts::Marks;
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::licence::Licence as Carried;
use crate::engine::stage::{Input, Stage};

/// The folder of what is trained on, of a benchmark of retrieval.
pub(crate) const TRAIN: &str = "train";

/// The folder of what is tested on, of a benchmark of retrieval.
pub(crate) const TEST: &str = "test";

/// A benchmark's part of a config: its name, and the table that says what it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct Config {
    /// The name, in lower-case letters, digits, `-` and `_`. The table also has one of `capr`, `cop`, `set`.
    pub name: String,
    /// Keywords for each class, which can initialise label embeddings.
    #[serde(default, skip_serializing)]
    pub keywords: BTreeMap<String, Vec<String>>,
    /// The benchmark whose fine-tuned models are scored on this one's part `test`, without training again: a set with it has files for `test` alone. Left
    /// out, models are fine-tuned on this one's own part `train`.
    ///
    /// Source: none: GLUE has two tests of MNLI, and KIMERA tests one retrieval model on several sets.
    #[serde(default, skip_serializing)]
    pub trained_on: Option<String>,
    /// What an annotator (Stanza, spaCy) says of the benchmark's texts, in any format of texts: documents are called by the `id` of an example in
    /// `benchmark-NAME`, a second text by that and `/pair`, a choice by that and its number from 0 (`ID/0`); a text without a label of GLUE's task by the name of the file that
    /// is handed in and its index (`RTE/0`). With `maps.entities` or `maps.phrases = "marked"` attention by maps takes them from there; a
    /// text without a document has none. The characters must be those of the benchmark's text. For rankings, tagged words and answers in passages ids are ignored: a
    /// document is matched by its text, which must equal a passage, a question as worded, or an example's words joined by single spaces. Masked words take none: the annotator saw them.
    ///
    /// Source: KAM-BERT, section 4.1: Stanza's entities and parses.
    #[serde(default, skip_serializing)]
    pub parsed: Option<Parsed>,
    /// What it is.
    #[serde(flatten)]
    pub of: Of,
}

/// What an annotator says of texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parsed {
    /// Files, or folders, read recursively in path order for files with the format's extensions.
    pub paths: Vec<Location>,
    /// Their format, see Formats of texts.
    pub format: Format,
}

/// What a benchmark is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Of {
    /// Retrieval of the passage that answers a clinical question (KIMERA, section 3.2).
    Capr(capr::Config),
    /// Outcome prediction from admission notes (KIMERA, section 3.3).
    Cop(cop::Config),
    /// Texts with gold labels, as published.
    Set(Box<set::Config>),
}

impl Config {
    /// Whether every number is in its range.
    ///
    /// # Errors
    /// Names the first that is not.
    pub(crate) fn ranges(&self) -> anyhow::Result<()> {
        let key = format!("benchmarks.{}", self.name);
        match &self.of {
            Of::Capr(of) => of.ranges(&format!("{key}.capr")),
            Of::Cop(of) => of.ranges(&format!("{key}.cop")),
            Of::Set(of) => of.ranges(&format!("{key}.set")),
        }
    }

    /// Whether the benchmark that it is `trained_on` is there, has models of its own, and asks for the same.
    ///
    /// # Errors
    /// Names the key and what is there.
    pub(crate) fn check_trained_on(&self, all: &[Self]) -> anyhow::Result<()> {
        let Some(on) = &self.trained_on else { return Ok(()) };
        let key = format!("benchmarks.{}.trained_on", self.name);
        let names = || all.iter().map(|of| of.name.as_str()).collect::<Vec<_>>().join(", ");
        let of = all.iter().find(|of| of.name == *on);
        let of = of.with_context(|| format!("{key} is {on:?}, but [[benchmarks]] has {}", names()))?;
        anyhow::ensure!(
            of.trained_on.is_none(),
            "{key} is {on:?}, on which nothing is trained either: name the benchmark that models are fine-tuned on"
        );
        let told =
            |kind: Option<example::Kind>| kind.map_or("a ranking".to_owned(), |kind| format!("{kind:?}"));
        anyhow::ensure!(
            of.kind() == self.kind(),
            "{key} is {on:?}, which asks for {}, and {} for {}: their answers cannot be compared",
            told(of.kind()),
            self.name,
            told(self.kind())
        );
        anyhow::ensure!(
            !matches!(self.of, Of::Cop(_)),
            "{key}: notes are split into parts by patient, and patients that {on} trains on might be tested: leave it out"
        );
        Ok(())
    }

    /// What is asked of its examples; of a ranking nothing of the kind.
    #[must_use]
    pub(crate) fn kind(&self) -> Option<example::Kind> {
        match &self.of {
            Of::Capr(_) => None,
            Of::Cop(of) => Some(of.outcome.kind()),
            Of::Set(of) => Some(of.format.set().kind()),
        }
    }

    /// What is marked in texts of it that maps are made of.
    #[must_use]
    pub(crate) fn marks(&self) -> Marks<'_> {
        match self.kind() {
            Some(example::Kind::MaskedWords) => Marks::Hidden,
            _ => Marks::Parsed(self.parsed.as_ref().map(|parsed| &parsed.format)),
        }
    }

    /// What an annotator says of its texts.
    ///
    /// # Errors
    /// When it names a place that is invalid.
    pub(crate) fn parsed(&self, places: &Places<'_>) -> anyhow::Result<Option<Corpus>> {
        let Some(Parsed { paths, format }) = &self.parsed else { return Ok(None) };
        let key = format!("benchmarks.{}.parsed", self.name);
        let texts = corpus::Texts {
            name: self.name.clone(),
            paths: paths.clone(),
            format: format.clone(),
            licence: None,
        };
        Ok(Some(Corpus::of(&key, &texts, places)?))
    }

    /// The task of GLUE whose predictions are to be handed in.
    #[must_use]
    pub(crate) fn handed_in(&self) -> Option<glue::Task> {
        match &self.of {
            Of::Set(of) if !of.unlabelled.is_empty() => of.glue(),
            _ => None,
        }
    }

    /// Whether it has a part on which a head mask can be searched.
    #[must_use]
    pub(crate) fn has_mask_search(&self) -> bool {
        match &self.of {
            Of::Capr(of) => of.held_out.mask_search > 0.0,
            Of::Cop(of) => of.mask_search > 0.0,
            Of::Set(of) => of.has_mask_search(),
        }
    }
}

/// The stage.
#[derive(Debug)]
pub(crate) struct Benchmark {
    /// `benchmark-NAME`.
    stage: String,
    config: Config,
    source: Source,
}

/// Where its texts come from.
#[derive(Debug)]
enum Source {
    Capr(capr::Source),
    Cop(cop::Source),
    Set(set::Source),
}

/// Whether stages can be called by a name of a config.
pub(super) fn can_name_a_stage(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    !name.is_empty() && name.chars().all(fits)
}

impl Benchmark {
    /// The stage for `config`, its files below `places`.
    ///
    /// # Errors
    /// When the name is none, or a setting or place is invalid.
    pub(crate) fn new(config: &Config, places: &Places<'_>) -> anyhow::Result<Self> {
        let (name, key) = (&config.name, format!("benchmarks.{}", config.name));
        anyhow::ensure!(
            can_name_a_stage(name),
            "benchmarks.name = {name:?}: expected lower-case letters, digits, - and _, for the stage is called benchmark-NAME"
        );
        let source = match &config.of {
            Of::Capr(capr) => {
                Source::Capr(capr::Source::new(capr, config.trained_on.as_deref(), &key, places)?)
            }
            Of::Cop(cop) => Source::Cop(cop::Source::new(cop, &key, places)?),
            Of::Set(set) => Source::Set(set::Source::new(set, config.trained_on.as_deref(), &key, places)?),
        };
        Ok(Self { stage: format!("benchmark-{name}"), config: config.clone(), source })
    }

    fn places(&self) -> Vec<&Place> {
        match &self.source {
            Source::Capr(capr) => capr.places(),
            Source::Cop(cop) => cop.places(),
            Source::Set(set) => set.places(),
        }
    }
}

impl Stage for Benchmark {
    fn name(&self) -> &str {
        &self.stage
    }

    fn version(&self) -> u32 {
        5
    }

    fn describe(&self, to: &mut dyn Describe) {
        describe::config(to, "benchmark", &self.config);
        self.places().into_iter().for_each(|place| place.describe(to));
    }

    fn inputs(&self) -> Vec<Input> {
        location::inputs(self.places())
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        match &self.source {
            Source::Capr(capr) => capr.write(&self.config.name, context),
            Source::Cop(cop) => cop.write(&self.config.name, context),
            Source::Set(set) => set.write(&self.config.name, context),
        }
    }

    fn licence(&self, folder: &Path) -> anyhow::Result<Carried> {
        Ok(licence(folder)?.into())
    }

    fn inspect(&self, file: &Path) -> anyhow::Result<Vec<String>> {
        inspect(file)
    }
}

/// What the artifact of such a stage holds.
#[derive(Debug)]
pub(crate) enum Read {
    /// Retrieval.
    Capr {
        /// What is trained on, and its part for development; none where nothing is.
        train: Option<Box<candidates::Folder>>,
        /// What is tested on, and its part for the search of a head mask.
        test: Box<candidates::Folder>,
    },
    /// Examples.
    Examples(Box<examples::Folder>),
}

/// Reads the artifact of a stage `benchmark-NAME`.
///
/// # Errors
/// When the folder holds neither, or a file is missing or damaged.
pub(crate) fn read(folder: &Path) -> anyhow::Result<Read> {
    let (train, test) = (folder.join(TRAIN), folder.join(TEST));
    if train.is_dir() || test.is_dir() {
        let read = |folder: &Path| candidates::read(folder).map(Box::new);
        let train = train.is_dir().then(|| read(&train)).transpose()?;
        return Ok(Read::Capr { train, test: read(&test)? });
    }
    Ok(Read::Examples(Box::new(examples::read(folder)?)))
}

impl From<Option<Licence>> for Carried {
    /// Terms of use as artifacts carry them; those that nothing is said of are free.
    fn from(terms: Option<Licence>) -> Self {
        match terms {
            Some(Licence::Restricted) => Self::Restricted,
            Some(Licence::Free) | None => Self::None,
        }
    }
}

/// What may be done with the texts of a benchmark, as its artifact says; collections of passages do not say it.
///
/// # Errors
/// When the artifact's index cannot be read.
pub(crate) fn licence(folder: &Path) -> anyhow::Result<Option<Licence>> {
    #[derive(Deserialize)]
    struct Says {
        licence: Option<Licence>,
    }
    let path = folder.join(INDEX);
    if !path.is_file() {
        return Ok(None);
    }
    let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
    let says: Says = serde_json::from_slice(&bytes).with_context(|| path.display().to_string())?;
    Ok(says.licence)
}

/// Lines about a file of the artifact: what an index says, how many lines another file has.
fn inspect(file: &Path) -> anyhow::Result<Vec<String>> {
    if file.extension().is_some_and(|end| end == "jsonl") {
        let bytes = std::fs::read(file)?;
        let rows = bytes.iter().filter(|&&byte| byte == b'\n').count();
        return Ok(vec![format!("{rows} rows")]);
    }
    if file.file_name().is_none_or(|name| name != INDEX) {
        return Ok(Vec::new());
    }
    let index: Value = serde_json::from_slice(&std::fs::read(file)?)?;
    let text =
        |key: &str| index.get(key).map_or_else(String::new, |value| value.to_string().replace('"', ""));
    if text("format") != example_schema::FORMAT {
        let [name, documents, passages, queries] = ["name", "documents", "passages", "queries"].map(text);
        return Ok(vec![format!("{name}: {documents} documents, {passages} passages, {queries} queries")]);
    }
    let index: example_schema::Index = serde_json::from_value(index.clone())
        .with_context(|| format!("{}: no index of examples", file.display()))?;
    let parts = index.parts.iter().map(|counts| format!("{} {}", counts.examples, counts.part.name()));
    let classes = index.classes.len();
    Ok(vec![format!(
        "{}: {}, {classes} classes, {}; {}",
        index.name,
        text("kind"),
        text("licence"),
        parts.collect::<Vec<_>>().join(", ")
    )])
}

/// Leaves funnels as facts, those of each source of `of` under its name.
fn record(context: &Context, of: &[(&str, &[Step])]) {
    let steps = of.iter().flat_map(|(name, steps)| steps.iter().map(move |step| (name, step)));
    let row = |(name, step): (&&str, &Step)| json!({"texts": name, "of": step.of, "read": step.read, "dropped": step.read - step.kept, "kept": step.kept});
    context.record("funnel", steps.clone().map(row).collect::<Vec<_>>());
    let fixed = steps.clone().flat_map(|(name, step)| {
        let row =
            move |(how, count)| json!({"texts": name, "of": step.of, "fixed_because": how, "number": count});
        step.mended.iter().map(row)
    });
    context.record("fixed", fixed.collect::<Vec<_>>());
    let reasons = steps.flat_map(|(name, step)| {
        let dropped = step.dropped.iter().filter(|(_, count)| **count > 0);
        dropped.map(move |(reason, count)| {
            json!({"texts": name, "of": step.of, "dropped_because": reason, "number": count})
        })
    });
    context.record("dropped", reasons.collect::<Vec<_>>());
}

#[cfg(test)]
mod tests;
