//! Stage `maps`: the semantic attention maps of a corpus, as spans and sparse pairs.

pub(crate) mod benchmark;
pub(crate) mod empty;
mod joining;
mod judge;
pub(crate) mod of_texts;
pub(crate) mod placed;
mod told;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use kg::split::Part;
use serde::{Deserialize, Serialize};
use tasks::maps::config::{Config as Samples, Entities, Phrases};
use tasks::maps::folders::Folders;
use tasks::maps::generators::Limits;
use tasks::maps::hub;
use tasks::maps::index::{Index, Options};
use tasks::maps::piece::Piece;
use tasks::maps::tools::Tools;
use tasks::maps::write::{Target, Writer};
use tasks::shard::file::Size;
use tasks::shard::index::Tokenizer;
use tasks::token::encode::{Case, Vocabulary};
use text::file::Format;

use self::judge::Judge;
use self::told::{Linked, record, told_of, warn_of_nothing, warn_of_types};
use super::corpus::Corpus;
use super::vocabulary::Source;
use crate::config::range::{MANY, whole};
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::licence::Licence;
use crate::engine::stage::{Input, Stage};
use crate::tag::has_names;

/// The maps' part of a config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// How samples are made of texts.
    #[serde(flatten)]
    pub samples: Samples,
    /// Maximum size of a file.
    ///
    /// Source: `{ bytes = 67108864 }`, ours, as `shards.size`.
    pub size: Size,
    /// Documents per row group, the unit in which a stream reads; up to 1,000,000.
    ///
    /// Source: ours: fewer than triples, since a document has many samples.
    pub items_per_group: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { samples: Samples::default(), size: Size::Bytes(64 << 20), items_per_group: 256 }
    }
}

impl Config {
    /// Whether every setting is in its range.
    ///
    /// # Errors
    /// Names the first that is not.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.samples.check().map_err(|error| anyhow::anyhow!("maps.{error}"))?;
        whole("maps.items_per_group", self.items_per_group as u64, 1..=MANY)?;
        whole("maps.size", self.size.most(), 1..=u64::MAX)?;
        Ok(())
    }
}

/// What a config has besides `[maps]` that maps need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Around<'a> {
    /// How words are counted, if they are.
    pub counts: Option<&'a super::counts::Config>,
    /// Whether counts are scored.
    pub pmi: Option<&'a text::pmi::Config>,
    /// Formats of what is said of benchmarks' texts.
    pub parsed: &'a [&'a Format],
}

/// The version of how samples are made of words; it rises when the same texts give others.
const VERSION: u32 = 2;
/// That of the stage, which rises, too, when documents are cut into other texts.
const STAGE_VERSION: u32 = 4;

/// The stage's name, and what those of its parts begin with.
pub(crate) const NAME: &str = "maps";

/// The stage.
#[derive(Debug, Clone)]
pub(crate) struct Mapping {
    name: String,
    /// How maps are made.
    config: Config,
    corpus: Corpus,
    vocabulary: (Source, Case),
    /// What an annotator says of texts that a benchmark puts together.
    parsed: Option<Corpus>,
}

impl Mapping {
    /// The stage for `config`.
    ///
    /// # Errors
    /// When a setting is invalid, or needs a stage that the config lacks.
    pub(crate) fn new(
        config: &Config,
        corpus: &Corpus,
        vocabulary: (Source, Case),
        around: Around<'_>,
    ) -> anyhow::Result<Self> {
        if config.samples.needs_counts() {
            let counts = around
                .counts
                .context("maps.phrases = neighbours needs the counts of [counts]: add that table")?;
            anyhow::ensure!(
                counts.what.neighbours().is_some(),
                "counts.what.adjacent is \"leave\", but maps.phrases = neighbours are chains of adjacent words: set it to \"count\""
            );
        }
        for (wanted, field, marks, what) in [
            (
                config.samples.entities == Entities::Marked,
                "entities",
                Format::has_spans as fn(&Format) -> bool,
                "entities",
            ),
            (config.samples.phrases == Phrases::Marked, "phrases", Format::has_phrases, "phrases"),
        ] {
            anyhow::ensure!(
                !wanted || corpus.formats().chain(around.parsed.iter().copied()).any(marks),
                "maps.{field} = \"marked\", but no format of [[corpus.texts]] or of benchmarks.parsed marks {what}: find them otherwise, or bring files that mark them"
            );
        }
        if config.samples.needs_scores() {
            anyhow::ensure!(
                around.pmi.is_some(),
                "maps.terms = \"relevance\" needs the scores of [pmi]: add that table"
            );
        }
        if let Some(counts) = around.counts {
            anyhow::ensure!(
                counts.what.case == vocabulary.1,
                "counts.what.case is {:?}, but vocabulary.case is {:?}: maps look words up as the vocabulary spells them, so set both alike",
                counts.what.case,
                vocabulary.1
            );
        }
        Ok(Self {
            name: NAME.to_owned(),
            config: config.clone(),
            corpus: corpus.clone(),
            vocabulary,
            parsed: None,
        })
    }

    /// Loads what samples are made with, outside of a run. `artifact` says where a stage's artifact lies.
    ///
    /// # Errors
    /// When something is missing or damaged.
    pub(crate) fn tools(&self, artifact: &dyn Fn(&str) -> PathBuf) -> anyhow::Result<Tools> {
        let vocabulary = self.vocabulary.0.load_from(artifact, self.vocabulary.1)?;
        self.load(vocabulary, &|name| Ok(artifact(name)))
    }

    /// How long samples of the corpus may be.
    #[must_use]
    pub(crate) fn limits(&self) -> Limits {
        self.config.samples.limits
    }

    /// The stages whose artifacts samples are made with, besides the vocabulary.
    #[must_use]
    pub(crate) fn inputs_of_tools(&self) -> Vec<Input> {
        let mut inputs = vec![];
        if self.config.samples.needs_graph() {
            inputs.push(Input::artifact("triples"));
        }
        if self.config.samples.needs_counts() {
            inputs.push(Input::artifact("counts"));
        }
        if self.config.samples.needs_scores() {
            inputs.push(Input::artifact("pmi"));
        }
        inputs.extend(self.parsed.iter().flat_map(Corpus::inputs));
        inputs
    }

    /// The same, by what an annotator says of the texts that are mapped.
    #[must_use]
    pub(crate) fn with_parsed(&self, parsed: Option<Corpus>) -> Self {
        Self { parsed, ..self.clone() }
    }

    /// What an annotator says of texts, if anything is brought.
    #[must_use]
    pub(crate) fn parsed(&self) -> Option<&Corpus> {
        self.parsed.as_ref()
    }

    /// Describes how samples are made of words; not how many words they have.
    pub(crate) fn describe_tools(&self, to: &mut dyn Describe) {
        let Samples { limits, entities, phrases, terms, graph, .. } = &self.config.samples;
        describe::config(to, "maps.version", &VERSION);
        describe::config(to, "maps.limits.terms", &limits.terms);
        describe::config(to, "maps.limits.auxiliary", &limits.auxiliary);
        describe::config(to, "maps.entities", entities);
        describe::config(to, "maps.phrases", phrases);
        describe::config(to, "maps.terms", terms);
        describe::config(to, "maps.graph", graph);
    }

    fn load(
        &self,
        vocabulary: Vocabulary,
        artifact: &dyn Fn(&str) -> anyhow::Result<PathBuf>,
    ) -> anyhow::Result<Tools> {
        load(&self.config.samples, vocabulary, self.vocabulary.1, artifact)
    }
}

/// Loads what samples are made with as `samples` asks for it.
fn load(
    samples: &Samples,
    vocabulary: Vocabulary,
    case: Case,
    artifact: &dyn Fn(&str) -> anyhow::Result<PathBuf>,
) -> anyhow::Result<Tools> {
    let of = |is_needed: bool, stage: &str| is_needed.then(|| artifact(stage)).transpose();
    let folders = Folders {
        triples: of(samples.needs_graph(), "triples")?,
        counts: of(samples.needs_counts(), "counts")?,
        pmi: of(samples.needs_scores(), "pmi")?,
    };
    let tools = Tools::load(samples, vocabulary, case, &folders)?;
    tools.dictionary().map_or(Ok(()), |dictionary| has_names(dictionary, "maps.entities.dictionary"))?;
    Ok(tools)
}

/// The digests of the relevance matrix, and of the table of triples, which stands for the graph, where they are used.
fn digests(tools: &Tools, context: &Context) -> anyhow::Result<[Option<String>; 2]> {
    let of = |path: Option<&Path>| {
        let digest = path.map(|path| context.digest(path)).transpose()?;
        anyhow::Ok(digest.map(|digest| digest.to_string()))
    };
    Ok([of(tools.relevance())?, of(tools.table())?])
}

impl Stage for Mapping {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        STAGE_VERSION
    }

    fn describe(&self, to: &mut dyn Describe) {
        describe::config(to, "maps", &self.config);
        self.vocabulary.0.describe_with(self.vocabulary.1, to);
        self.corpus.describe(to);
    }

    fn licence(&self, _: &Path) -> anyhow::Result<Licence> {
        Ok(self.corpus.licence())
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = self.corpus.inputs();
        inputs.extend(self.vocabulary.0.inputs());
        inputs.extend(self.inputs_of_tools());
        inputs
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let path = self.vocabulary.0.path(context)?;
        let vocabulary = self.vocabulary.0.load(context, self.vocabulary.1)?;
        let tools = self.load(vocabulary, &|name| Ok(context.artifact(name)?.to_owned()))?;
        let digest = blake3::hash(&std::fs::read(&path)?).to_hex().to_string();
        let target = Target {
            folder: context.out(),
            part: Part::Train,
            tokenizer: &digest,
            size: self.config.size,
            items_per_group: self.config.items_per_group,
        };
        let build = |first: u32, pieces: &[Piece]| tools.samples(first, pieces);
        let mut writer = Writer::new(target, &build)?;
        let mut judge = Judge::new(tools.dictionary());
        let labels = self.corpus.each(context, |texts, document| {
            if texts.format.has_spans() {
                judge.document(&texts.name, document);
            }
            Ok(writer.push(tools.piece(document))?)
        })?;
        let (part, counts) = writer.finish()?;
        context.check()?;
        let (vocabulary, [relevance, graph]) = (tools.vocabulary(), digests(&tools, context)?);
        let tokenizer =
            Tokenizer { blake3: digest.clone(), size: vocabulary.size(), special: vocabulary.special() };
        let options = Options { limits: self.config.samples.limits, relevance, graph };
        record(context, &counts, part.tokens);
        warn_of_types(context, &tools);
        if !self.corpus.is_part() {
            warn_of_nothing(context, tools.config(), &counts, Linked::by(&tools));
        }
        let mut marks = judge.marks(&labels);
        marks.dictionary = told_of(&tools);
        marks.record(context);
        if self.corpus.is_part() {
            marks.write(context.out())?;
        }
        let mut index = Index::new(options, tokenizer, vec![(part, counts)]);
        hub::write(context.out(), &index)?;
        index.write(context.out())?;
        Ok(())
    }

    fn inspect(&self, file: &Path) -> anyhow::Result<Vec<String>> {
        super::triples::inspect_parquet(file)
    }
}
