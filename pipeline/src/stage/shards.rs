//! Stage `shards`: the triple table as encoded samples of the KIMERA tasks.

mod told;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use batch::family::Family;
use batch::task::{Material, Task};
use kg::split::{self, Part, View};
use kg::table::Graph;
use serde::{Deserialize, Serialize};
use tasks::builder::{Form, Layout, Limits};
use tasks::names::Names;
use tasks::negative::{self, Draw};
use tasks::sample::{Corpus, Held};
use tasks::shard::file::Size;
use tasks::shard::index::{Index, Source, TOKENIZER};
use tasks::shard::text::TextItems;
use tasks::shard::write::{self, From};
use tasks::stream::redraw::{Fresh, Redraw};
use tasks::task::has_negatives;
use tasks::token::encode::{Case, EncodeCounts, Vocabulary};
use tasks::token::folder;

use super::corpus::Told;
use super::location::{self, Places};
use super::texts::passages::{Encoding, Origin};
use super::texts::{MaskedLmConfig, TaggingConfig, TextTask};
use super::vocabulary;
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::licence::Licence;
use crate::engine::stage::{Input, Stage};

/// The stage's name.
const NAME: &str = "shards";

/// The shards' part of a config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Seed of all that is drawn: negatives, masked words, pairs of names, texts that are held out.
    ///
    /// Source: ours: any number would do.
    pub seed: u64,
    /// The tasks to build samples of: four on triples, and on text `masked_lm` and `tagging`. Left out, the four, and those on text whose tables
    /// are there. With tasks on text alone no graph is read, and none is needed.
    ///
    /// Source: KIMERA, section 2.2: its four tasks.
    pub tasks: Vec<Task>,
    /// How the columns of a triple become a row, and where they are truncated.
    pub layout: Layout,
    /// Masked language modelling on texts; together with `masked_lm` among the tasks.
    pub masked_lm: Option<MaskedLmConfig>,
    /// Tagging of annotated texts; together with `tagging` among the tasks.
    pub tagging: Option<TaggingConfig>,
    /// How negatives of the triplet task are sampled.
    pub negatives: negative::Config,
    /// Maximum size of a file, which ends after the last row group that fits.
    ///
    /// Source: `{ bytes = 67108864 }`, ours: 64 MiB, quick to fetch and to verify.
    pub size: Size,
    /// Triples per row group, the unit in which a stream reads; up to 1,000,000.
    ///
    /// Source: ours: small enough to shuffle many together, large enough to compress well.
    pub items_per_group: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: 1,
            tasks: vec![Task::Subject, Task::Object, Task::Relation, Task::Triplet],
            layout: Layout::default(),
            masked_lm: None,
            tagging: None,
            negatives: negative::Config::default(),
            size: Size::Bytes(64 << 20),
            items_per_group: 2048,
        }
    }
}

impl Config {
    /// Whether every setting is in its range, and goes with the others of the table.
    ///
    /// # Errors
    /// Names the first that is not.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let texts = self.texts();
        for task in Task::ALL.into_iter().filter(|task| task.made_of() == Material::Texts) {
            let name = task.name();
            anyhow::ensure!(
                texts.contains_key(&task) == self.tasks.contains(&task),
                "shards.tasks and [shards.{name}] go together: give both, or neither"
            );
        }
        self.layout.check().map_err(|error| anyhow::anyhow!("shards.layout.{error}"))?;
        texts.values().try_for_each(|of| of.check())?;
        self.write().check().map_err(|error| anyhow::anyhow!("shards.{error}"))
    }

    /// Whether a task is made of a graph.
    #[must_use]
    pub(crate) fn is_of_graph(&self) -> bool {
        self.tasks.iter().any(|task| task.made_of() != Material::Texts)
    }

    /// The tasks with a part `valid`: all of a graph, as far as its split goes, and those on texts of which some are held out.
    #[must_use]
    pub(crate) fn held_out(&self) -> Vec<Task> {
        let texts = self.texts();
        let has = |task: &&Task| texts.get(*task).is_none_or(|of| of.files().valid > 0.0);
        self.tasks.iter().filter(has).copied().collect()
    }

    /// The tables of the tasks on texts.
    fn texts(&self) -> BTreeMap<Task, &dyn TextTask> {
        let tables = [
            (Task::MaskedLm, self.masked_lm.as_ref().map(|of| of as &dyn TextTask)),
            (Task::Tagging, self.tagging.as_ref().map(|of| of as &dyn TextTask)),
        ];
        tables.into_iter().filter_map(|(task, of)| Some((task, of?))).collect()
    }

    fn write(&self) -> write::Config {
        let mut tasks = self.tasks.clone();
        tasks.sort();
        let Self { layout, seed, size, items_per_group, .. } = *self;
        write::Config { tasks, layout, negatives: self.negatives.clone(), seed, size, items_per_group }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Shards {
    /// How to build.
    pub config: Config,
    /// The vocabulary to encode with.
    pub vocabulary: vocabulary::Source,
    /// Whether a `vocab.txt` keeps case.
    pub case: Case,
    /// Where the passages of each task on texts come from.
    texts: BTreeMap<Task, Origin>,
}

impl Stage for Shards {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> u32 {
        6
    }

    fn describe(&self, to: &mut dyn Describe) {
        describe::config(to, "shards", &self.config);
        describe::config(to, "vocabulary.case", &self.case);
        self.texts.values().for_each(|origin| origin.describe(to));
        self.vocabulary.describe(to);
        self.vocabulary.describe_written(to);
    }

    fn licence(&self, _: &Path) -> anyhow::Result<Licence> {
        Ok(self.texts.values().map(Origin::licence).fold(Licence::None, Licence::with))
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = location::once(self.texts.values().flat_map(Origin::inputs));
        if self.config.is_of_graph() {
            inputs.extend([Input::artifact("triples"), Input::artifact("split")]);
        }
        inputs.extend(self.vocabulary.inputs());
        inputs
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let made = Made::read(context, self)?;
        let (corpus, held) = made.corpus()?;
        let config = self.config.write();
        let progress = context.progress();
        let negatives = |task| if has_negatives(task) { config.negatives.per_triple } else { 0 };
        let of_triples = config.tasks.iter().filter(|task| task.made_of() == Material::Triples);
        let rows = of_triples.map(|&task| 1 + u64::from(negatives(task))).sum::<u64>();
        let triples = corpus.triples.len() + held.iter().map(|held| held.triples.len()).sum::<usize>();
        let sources = sources(&made.graph, &corpus);
        let texts = self.text_items(&made.vocabulary, context)?;
        let texts: Vec<&dyn TextItems> = texts.iter().map(|of| &**of).collect();
        let names = made.names(context, &config.tasks)?;
        let of_texts = texts.iter().map(|of| of.len()).sum::<usize>();
        progress.total_rows(rows * triples as u64 + of_texts as u64);
        let from = From {
            vocabulary: &made.vocabulary,
            vocabulary_digest: &made.digest,
            sources: &sources,
            texts: &texts,
            names: names.as_ref(),
        };
        let tokenizer = context.out().join(TOKENIZER);
        std::fs::create_dir_all(&tokenizer)?;
        folder::add(&tokenizer, &self.vocabulary.path(context)?, &made.vocabulary, None)?;
        let index = write::write(context.out(), &corpus, &held, from, &config, &|rows| {
            progress.add_rows(rows);
            Ok(progress.check()?)
        })?;
        told::record(context, &index);
        told::warn_of_few_negatives(context, &index, &self.config.negatives)
    }

    fn inspect(&self, file: &Path) -> anyhow::Result<Vec<String>> {
        super::triples::inspect_parquet(file)
    }
}

/// What shards are made of.
pub(super) struct Made {
    pub(super) graph: Graph,
    parts: Vec<Part>,
    pub(super) vocabulary: Vocabulary,
    /// BLAKE3 of the vocabulary's file.
    digest: String,
}

impl Made {
    /// Reads it, and no graph where no task is made of one.
    ///
    /// # Errors
    /// When an artifact or the vocabulary cannot be read.
    fn read(context: &Context, shards: &Shards) -> anyhow::Result<Self> {
        if shards.config.is_of_graph() {
            return Self::of_graph(context, shards);
        }
        Self::with(Graph::empty(), Vec::new(), context, shards)
    }

    /// Reads it with the graph, whatever the tasks are made of.
    ///
    /// # Errors
    /// When an artifact or the vocabulary cannot be read.
    pub(super) fn of_graph(context: &Context, shards: &Shards) -> anyhow::Result<Self> {
        let graph = Graph::read(context.artifact("triples")?)?;
        let split = split::read::read(context.artifact("split")?, &View::of(&graph))?;
        Self::with(graph, split.part, context, shards)
    }

    fn with(graph: Graph, parts: Vec<Part>, context: &Context, shards: &Shards) -> anyhow::Result<Self> {
        let path = shards.vocabulary.path(context)?;
        let vocabulary = shards.vocabulary.load(context, shards.case)?;
        let digest = blake3::hash(&std::fs::read(&path)?).to_hex().to_string();
        Ok(Self { graph, parts, vocabulary, digest })
    }

    /// The names of all entities, if a task is made of them.
    fn names(&self, context: &Context, tasks: &[Task]) -> anyhow::Result<Option<Names>> {
        if !tasks.iter().any(|task| task.made_of() == Material::Names) {
            return Ok(None);
        }
        Ok(Some(Names::read(context.artifact("triples")?, &self.graph, &self.parts)?))
    }

    /// The triples to learn from and those that are held out.
    ///
    /// # Errors
    /// When there is nothing to learn from.
    pub(super) fn corpus(&self) -> anyhow::Result<(Corpus<'_>, Vec<Held>)> {
        Ok(Corpus::new(&self.graph, &self.parts)?)
    }
}

/// Tokens of the longest row that any three of these names make, one behind the other.
pub(super) fn longest_packed(
    limits: Limits,
    entities: &EncodeCounts,
    relations: &EncodeCounts,
    family: Family,
) -> usize {
    let most = |of: &EncodeCounts, limit: usize| {
        of.lengths.keys().next_back().map_or(1, |&length| length.clamp(1, limit))
    };
    2 * most(entities, limits.node) + most(relations, limits.edge) + family.special_tokens(3)
}

/// What stands in for a source: the names of subjects and objects may have a higher level than what is stated of them.
const NAMES: &str = "names of subjects and objects";

/// Where the shown triples come from, and under which licence levels they and their names are.
pub(super) fn sources(graph: &Graph, corpus: &Corpus<'_>) -> Vec<Source> {
    let mut levels: BTreeMap<&str, BTreeMap<String, u64>> = BTreeMap::new();
    let level_of = |level: Option<u8>| level.map_or_else(|| "none".to_owned(), |level| level.to_string());
    for (&row, [subject, _, object]) in corpus.rows.iter().zip(&corpus.triples) {
        let names = [subject, object].map(|&id| graph.entities()[id as usize].level);
        let highest = level_of(names.into_iter().flatten().max());
        *levels.entry(NAMES).or_default().entry(highest).or_default() += 1;
        for origin in graph.origins(row as usize) {
            *levels.entry(&origin.source).or_default().entry(level_of(origin.level)).or_default() += 1;
        }
    }
    levels.into_iter().map(|(name, levels)| Source { name: name.to_owned(), levels }).collect()
}

impl Shards {
    /// Tokens of the longest row that a trainer can be shown: of the shards, and of negatives that later epochs may draw.
    #[must_use]
    pub(crate) fn longest(&self, index: &Index) -> usize {
        if !self.draws_anew() || index.layout.form == Form::Slotted {
            return index.longest();
        }
        let family = index.tokenizer.special.family;
        longest_packed(index.layout.limits, &index.entity_texts, &index.relation_texts, family)
            .max(index.longest())
    }

    /// The artifacts that whoever trains on them reads: the shards, and the audit where they show a graph, so that nothing is trained on shards that leak; then what they
    /// were made of, for the negatives of later epochs.
    pub(crate) fn trained_on(&self) -> Vec<Input> {
        let audit = self.config.is_of_graph().then_some("audit");
        let artifacts = ["shards"].into_iter().chain(audit).map(Input::artifact);
        artifacts.chain(self.inputs()).collect()
    }

    /// Whether later epochs have negatives of their own.
    fn draws_anew(&self) -> bool {
        self.config.negatives.draw == Draw::Fresh && self.config.tasks.iter().any(|&task| has_negatives(task))
    }

    /// Draws the negatives of later epochs as those in the shards were drawn; none if all epochs have those.
    ///
    /// # Errors
    /// When what the shards were made of cannot be read.
    pub(crate) fn redraw(&self, context: &Context, index: &Index) -> anyhow::Result<Option<Arc<dyn Redraw>>> {
        if !self.draws_anew() {
            return Ok(None);
        }
        let made = Made::read(context, self)?;
        Ok(Some(Arc::new(Fresh::new(index, &made.graph, &made.parts, &made.vocabulary)?)))
    }

    /// The rows of the tasks on texts, in task order. What became of their files is left as a fact.
    fn text_items(
        &self,
        vocabulary: &Vocabulary,
        context: &Context,
    ) -> anyhow::Result<Vec<Box<dyn TextItems>>> {
        let tables = self.config.texts();
        let (mut items, mut told) = (Vec::new(), Vec::new());
        for (task, of) in &tables {
            let Some(origin) = self.texts.get(task) else { continue };
            let read = origin.read(of.files(), vocabulary, context)?;
            told.push(read.told);
            let key = format!("shards.{}.files", task.name());
            for texts in of.files().by_part(&key, read.texts, self.config.seed)? {
                items.push(of.build(texts, &read.labels, vocabulary, self.config.seed)?);
            }
        }
        if !told.is_empty() {
            Told::joined(told).record(context);
        }
        Ok(items)
    }

    /// The stage for `config`, and the stages that make it: those of parts of texts, then itself.
    ///
    /// # Errors
    /// Names the first setting that is out of its range, so that nobody waits for earlier stages to learn that it is.
    pub(crate) fn with_parts(
        config: &Config,
        words: &(vocabulary::Source, Case),
        places: &Places<'_>,
    ) -> anyhow::Result<(Self, Vec<Box<dyn Stage>>)> {
        let mut shards = Self {
            config: config.clone(),
            vocabulary: words.0.clone(),
            case: words.1,
            texts: BTreeMap::new(),
        };
        let (mut stages, mut uncut): (Vec<Box<dyn Stage>>, _) = (Vec::new(), None);
        for (task, of) in config.texts() {
            let files = of.files();
            let corpus = files.corpus(&format!("shards.{}.files", task.name()), task.name(), places)?;
            let cut = corpus.cut()?;
            uncut = uncut.or_else(|| cut.in_place_of(NAME));
            let origin = Origin::new(task.name(), corpus, &cut);
            let parts = origin.stages().iter().zip(cut.parts().unwrap_or_default());
            stages.extend(parts.map(|(name, part)| {
                let encoding = Encoding {
                    name: name.clone(),
                    corpus: part.clone(),
                    vocabulary: words.0.clone(),
                    case: words.1,
                    max_tokens: files.max_tokens,
                };
                Box::new(encoding) as Box<dyn Stage>
            }));
            shards.texts.insert(task, origin);
        }
        stages.push(uncut.unwrap_or_else(|| Box::new(shards.clone())));
        Ok((shards, stages))
    }
}
