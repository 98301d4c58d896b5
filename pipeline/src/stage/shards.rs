//! Stage `shards`: the triple table as encoded samples of the KIMERA tasks. Knows no trainer.

use std::path::Path;

use anyhow::Context as _;
use kg::split::{self, Part, View};
use kg::table::Graph;
use serde::{Deserialize, Serialize};
use tasks::negative::uniform;
use tasks::sample::Corpus;
use tasks::shard::index::{Index, Limits};
use tasks::shard::write;
use tasks::task::Task;
use tasks::token::encode::{Case, Vocabulary};

use super::vocabulary::Source;
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::stage::{Input, Stage};

/// The shards' part of a config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Seed of negatives.
    pub seed: u64,
    /// Tasks to build.
    pub tasks: Vec<Task>,
    /// Most tokens of an entity; longer names are cut and counted.
    pub node_tokens: usize,
    /// Most tokens of a relation.
    pub edge_tokens: usize,
    /// How negatives of the triplet task are drawn.
    pub negatives: uniform::Config,
    /// Triples behind one file.
    pub triples_per_shard: usize,
    /// Triples behind a row group.
    pub triples_per_group: usize,
}

impl Config {
    /// Where texts are cut.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits { node: self.node_tokens, edge: self.edge_tokens }
    }
}

/// The stage.
#[derive(Debug)]
pub struct Shards {
    /// How to build.
    pub config: Config,
    /// The vocabulary to encode with.
    pub vocabulary: Source,
    /// Whether a `vocab.txt` keeps case.
    pub case: Case,
}

impl Stage for Shards {
    fn name(&self) -> &'static str {
        "shards"
    }

    fn version(&self) -> u32 {
        2
    }

    fn describe(&self, to: &mut dyn Describe) {
        describe::config(to, "shards", &self.config);
        describe::config(to, "vocabulary.case", &self.case);
        if let Source::File(place) = &self.vocabulary {
            place.describe(to);
        }
    }

    fn inputs(&self) -> Vec<Input> {
        vec![Input::artifact("triples"), Input::artifact("split"), self.vocabulary.input()]
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let graph = Graph::read(context.artifact("triples")?)?;
        let path = self.vocabulary.path(context)?;
        let vocabulary = Vocabulary::load(&path, self.case)?;
        let digest = blake3::hash(&std::fs::read(&path)?).to_hex().to_string();
        let view = View::of(&graph);
        let parts = split::read::read(context.artifact("split")?, &view)?.part;
        let corpus = corpus(&graph, &view, &parts)?;
        let config = self.write_config();
        let progress = context.progress();
        let rows = config.tasks.iter().map(|&task| if task == Task::Triplet { 2 } else { 1 }).sum::<u64>();
        progress.total_rows(rows * corpus.triples.len() as u64);
        let index = write::write(context.out(), &corpus, (&vocabulary, &digest), &config, &|rows| {
            progress.add_rows(rows);
            Ok(progress.check()?)
        })?;
        record(context, &index);
        Ok(())
    }

    fn inspect(&self, file: &Path) -> anyhow::Result<Vec<String>> {
        super::triples::inspect_parquet(file)
    }
}

/// The triples to learn from, over the texts of the whole graph.
fn corpus<'g>(graph: &'g Graph, view: &View<'_>, parts: &[Part]) -> anyhow::Result<Corpus<'g>> {
    let shown = graph.triples().iter().zip(0..).zip(parts).filter(|(_, part)| **part == Part::Train);
    let (triples, rows): (Vec<_>, Vec<_>) =
        shown.map(|((t, row), _)| ([t.subject.0, t.relation.0, t.object.0], row)).unzip();
    anyhow::ensure!(
        !triples.is_empty() || graph.triples().is_empty(),
        "the split leaves no triple to learn from: mend split.parts"
    );
    Ok(Corpus {
        entities: graph.entities().iter().map(|entity| entity.text.as_str()).collect(),
        relations: graph.relations().iter().map(|relation| relation.text.as_str()).collect(),
        ways: split::ways(view, graph.relations().len()),
        triples,
        rows,
    })
}

impl Shards {
    /// Whether every setting is in its range, so that nobody waits for earlier stages to learn that it is not.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn check(&self) -> anyhow::Result<()> {
        self.write_config().check().context("[shards]")
    }

    fn write_config(&self) -> write::Config {
        let mut tasks = self.config.tasks.clone();
        tasks.sort();
        write::Config {
            tasks,
            limits: self.config.limits(),
            negatives: self.config.negatives.clone(),
            seed: self.config.seed,
            triples_per_shard: self.config.triples_per_shard,
            triples_per_group: self.config.triples_per_group,
        }
    }
}

/// Leaves the counts of every step for `inspect` and the ledger.
fn record(context: &Context, index: &Index) {
    let tasks = index.tasks.iter().map(|task| {
        serde_json::json!({
            "task": task.task,
            "rows": task.rows,
            "tokens": task.tokens,
            "longest": task.longest,
            "files": task.files.len(),
        })
    });
    context.record("tasks", tasks.collect::<Vec<_>>());
    for (key, counts) in [("entity_texts", &index.entity_texts), ("relation_texts", &index.relation_texts)] {
        let counts = serde_json::json!({
            "texts": counts.texts,
            "truncated": counts.truncated,
            "empty": counts.empty,
            "with_unknown": counts.with_unknown,
            "longest": counts.lengths.keys().next_back(),
        });
        context.record(key, counts);
    }
    let negatives = &index.negatives;
    let kept = negatives.kept.iter().map(|(slot, n)| (slot.name().to_owned(), serde_json::json!(n)));
    let mut facts = serde_json::json!({
        "proposed": negatives.proposed,
        "refused_unchanged": negatives.unchanged,
        "refused_known": negatives.known,
        "other_slot": negatives.other_slot,
        "gave_up": negatives.gave_up,
    });
    if let Some(table) = facts.as_object_mut() {
        table.extend(kept.map(|(slot, n)| (format!("kept_{slot}"), n)));
    }
    context.record("negatives", facts);
}
