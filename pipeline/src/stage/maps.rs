//! Stage `maps`: the semantic attention maps of a corpus, as spans and sparse pairs.

pub(crate) mod benchmark;
pub(crate) mod empty;
pub(crate) mod hidden;
mod joining;
mod judge;
mod names;
pub(crate) mod of_texts;
mod piece;
pub(crate) mod placed;
mod told;
pub(crate) mod tools;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use kg::split::Part;
use serde::{Deserialize, Serialize};
use tasks::maps::generators::Limits;
use tasks::maps::hub;
use tasks::maps::index::{Index, Options};
use tasks::maps::write::{Target, Writer};
use tasks::shard::file::Size;
use tasks::shard::index::Tokenizer;
use tasks::token::encode::{Case, Vocabulary};
use text::file::Format;
use text::ner::Filters;
use text::phrase;

use self::piece::Piece;
pub(super) use self::told::told;
use self::told::{record, told_of};
use self::tools::Tools;
use super::LONGEST;
use super::corpus::Corpus;
use super::vocabulary::Source;
use crate::config::range::{MANY, whole};
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::stage::{Input, Stage};

/// The maps' part of a config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// The unit of a sample; units without words are skipped. Sentences as for `counts.what.within`.
    ///
    /// Source: KAM-BERT, section 3.4: auxiliary terms are added sentence by sentence.
    pub unit: Unit,
    /// How long samples may be.
    pub limits: Limits,
    /// Where entities come from. Of mentions that share a word, the one with the most words is kept, then the first. Where files annotate entities
    /// and a dictionary matches them, `engraft inspect maps` shows `against_marks`: for each of `[[corpus.texts]]` whose format annotates entities,
    /// per annotated kind, how many are annotated and found, with precision and recall by exact boundaries and by overlap. Everything the
    /// dictionary finds in any document of these texts counts as found, annotated or not: matches annotated as another kind, or not at all, lower
    /// precision. Kinds that the texts do not annotate are not evaluated.
    ///
    /// Source: `dictionary`, ours: most corpora are not annotated (KAM-BERT uses Stanza's tagger).
    pub entities: Entities,
    /// Where phrases come from.
    ///
    /// Source: `neighbours`, ours: they need no parser (KAM-BERT uses Stanza's).
    pub phrases: Phrases,
    /// Relevance of words to each other, and auxiliary terms.
    ///
    /// Source: KAM-BERT, equation 7.
    pub terms: Terms,
    /// Whether mentions are related when a triple connects their entities.
    ///
    /// Source: KAM-BERT: the three other maps; this one is named as an extension (equation 8).
    pub graph: Graph,
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
        Self {
            unit: Unit::default(),
            limits: Limits::default(),
            entities: Entities::Dictionary(Filters::default()),
            phrases: Phrases::Neighbours(phrase::Config::default()),
            terms: Terms::default(),
            graph: Graph::default(),
            size: Size::Bytes(64 << 20),
            items_per_group: 256,
        }
    }
}

impl Config {
    /// Whether every setting is in its range.
    ///
    /// # Errors
    /// Names the first that is not.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.limits.check().map_err(|error| anyhow::anyhow!("maps.limits.{error}"))?;
        whole("maps.limits.terms", self.limits.terms as u64, 0..=LONGEST)?;
        whole("maps.items_per_group", self.items_per_group as u64, 1..=MANY)?;
        whole("maps.size", self.size.most(), 1..=u64::MAX)?;
        if let Entities::Dictionary(filters) = &self.entities {
            filters.check().map_err(|error| anyhow::anyhow!("maps.entities.dictionary.{error}"))?;
        }
        if let Phrases::Neighbours(phrases) = &self.phrases {
            phrases.check().map_err(|error| anyhow::anyhow!("maps.phrases.neighbours.{error}"))?;
        }
        Ok(())
    }

    /// Whether entities or their neighbours are looked up in the triple table.
    fn needs_graph(&self) -> bool {
        self.entities != Entities::None || self.graph == Graph::Adjacent
    }
}

/// What a sample is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    /// A sentence.
    #[default]
    Sentence,
    /// A document.
    Document,
}

/// Where entities come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Entities {
    /// None.
    None,
    /// Those annotated in the corpus files.
    Marked,
    /// Names and synonyms from the graph, matched in the texts.
    Dictionary(Filters),
}

/// Where phrases come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phrases {
    /// Every word is a phrase.
    None,
    /// Those annotated in the corpus files.
    Marked,
    /// Chains of neighbours; needs `[counts]` with `adjacent = "count"`.
    Neighbours(phrase::Config),
}

/// Whether words are related.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Terms {
    /// Neither relevance nor auxiliary terms.
    None,
    /// Both, from `[pmi]`.
    #[default]
    Relevance,
}

/// Whether entities are related.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Graph {
    /// They are not.
    #[default]
    None,
    /// They are.
    Adjacent,
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
#[derive(Debug)]
pub(crate) struct Mapping {
    name: String,
    /// How maps are made.
    config: Config,
    corpus: Corpus,
    vocabulary: (Source, Case),
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
        if matches!(config.phrases, Phrases::Neighbours(_)) {
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
                config.entities == Entities::Marked,
                "entities",
                Format::has_spans as fn(&Format) -> bool,
                "entities",
            ),
            (config.phrases == Phrases::Marked, "phrases", Format::has_phrases, "phrases"),
        ] {
            anyhow::ensure!(
                !wanted || corpus.formats().chain(around.parsed.iter().copied()).any(marks),
                "maps.{field} = \"marked\", but no format of [[corpus.texts]] or of benchmarks.parsed marks {what}: find them otherwise, or bring files that mark them"
            );
        }
        if config.terms == Terms::Relevance {
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
        Ok(Self { name: NAME.to_owned(), config: config.clone(), corpus: corpus.clone(), vocabulary })
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
        self.config.limits
    }

    /// The stages whose artifacts samples are made with, besides the vocabulary.
    #[must_use]
    pub(crate) fn inputs_of_tools(&self) -> Vec<Input> {
        let mut inputs = vec![];
        if self.config.needs_graph() {
            inputs.push(Input::artifact("triples"));
        }
        if matches!(self.config.phrases, Phrases::Neighbours(_)) {
            inputs.push(Input::artifact("counts"));
        }
        if self.config.terms == Terms::Relevance {
            inputs.push(Input::artifact("pmi"));
        }
        inputs
    }

    /// Describes how samples are made of words; not how many words they have.
    pub(crate) fn describe_tools(&self, to: &mut dyn Describe) {
        let Config { limits, entities, phrases, terms, graph, .. } = &self.config;
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
        Tools::load(&self.config, vocabulary, self.vocabulary.1, artifact)
    }
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
        describe::config(to, "vocabulary.case", &self.vocabulary.1);
        self.vocabulary.0.describe(to);
        self.corpus.describe(to);
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
        let mut judge = tools.judge();
        let labels = self.corpus.each(context, |texts, document| {
            if texts.format.has_spans() {
                judge.document(&texts.name, document);
            }
            Ok(writer.push(tools.piece(document))?)
        })?;
        let (part, counts) = writer.finish()?;
        context.check()?;
        let (vocabulary, [relevance, graph]) = (tools.vocabulary(), tools.digests(context)?);
        let tokenizer =
            Tokenizer { blake3: digest.clone(), size: vocabulary.size(), special: vocabulary.special() };
        let options = Options { limits: self.config.limits, relevance, graph };
        record(context, &counts, part.tokens);
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
