//! Stage `audit`: proof, from the shards as they are on the disk, that no task learns from what the split or another task holds out.

use base::whole::write_whole;
use kg::audit::{self, Shown};
use kg::split::{self, View};
use kg::table::Graph;
use serde_json::json;
use tasks::shard::index::Index;
use tasks::shard::shown;

use super::split::{Config, OnLeak};
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::stage::{Input, Stage};

/// The file with what was found.
const FILE: &str = "audit.json";

/// Leaks that a message spells out.
const SPELT_OUT: usize = 10;

#[derive(Debug)]
pub(crate) struct Audit {
    /// How the graph was split.
    pub config: Config,
}

impl Stage for Audit {
    fn name(&self) -> &'static str {
        "audit"
    }

    fn version(&self) -> u32 {
        2
    }

    fn describe(&self, to: &mut dyn Describe) {
        describe::config(to, "split.together", &self.config.together);
        describe::config(to, "split.on_leak", &self.config.on_leak);
    }

    fn inputs(&self) -> Vec<Input> {
        ["triples", "split", "shards"].map(Input::artifact).to_vec()
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let graph = Graph::read(context.artifact("triples")?)?;
        let view = View::of(&graph);
        let stored = split::read::read(context.artifact("split")?, &view)?;
        let folder = context.artifact("shards")?;
        let index = Index::read(folder)?;
        let mut all = Vec::new();
        let mut counts = Vec::new();
        for (task, entry) in index.tasks.iter().filter(|task| task.task.is_graph()).zip(0..) {
            for part in &task.parts {
                context.check()?;
                let triples = shown::triples(folder, &part.files)?;
                counts.push(json!({"task": task.task, "part": part.part, "triples": triples.len()}));
                all.extend(triples.into_iter().map(|triple| Shown { task: entry, part: part.part, triple }));
            }
        }
        let options =
            audit::Options { together: self.config.together(), inverses: &stored.detected, suspicion: None };
        let leaks = audit::tasks(&view, &stored.part, all.into_iter(), &options)?;
        let report = json!({"tasks": counts, "leaks": leaks.len(), "list": leaks});
        write_whole(&context.out().join(FILE), &serde_json::to_vec_pretty(&report)?)?;
        context.record("tasks", counts);
        context.record("leaks", leaks.len());
        if leaks.is_empty() || self.config.on_leak == OnLeak::Report {
            return Ok(());
        }
        let task =
            |number: u32| index.tasks.get(number as usize).map_or("the split", |task| task.task.name());
        let lines: Vec<String> = leaks
            .iter()
            .take(SPELT_OUT)
            .map(|leak| {
                let held = view.words(leak.held);
                let (by, shown_by) = (task(leak.held_task), task(leak.shown_task));
                format!(
                    "{held}: held out as {} by {by}, shown in {} by {shown_by}",
                    leak.held_part.name(),
                    leak.shown_part.name()
                )
            })
            .collect();
        anyhow::bail!(
            "{} triples are shown while they are held out:\n  {}\ndelete the shards (`engraft clean shards`) and run again; if it stays, this is a bug",
            leaks.len(),
            lines.join("\n  ")
        )
    }
}
