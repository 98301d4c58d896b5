//! Stage `audit`: proof, from the shards as they are on the disk, that no task learns from what the split or another task holds out.

use std::path::Path;

use base::whole::write_whole;
use batch::task::Material;
use kg::audit::{self, NameLeak, Shown, ShownName, TaskLeak};
use kg::split::{self, Part, View};
use kg::table::{Graph, Term, read};
use serde_json::{Value, json};
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

/// A leak in words.
struct Line<'a> {
    held: String,
    held_part: Part,
    by: String,
    shown_part: Part,
    shown_by: &'a str,
}

/// The first leaks as an error, if there are any.
fn refuse(what: &str, leaks: &[Line<'_>]) -> anyhow::Result<()> {
    let lines = leaks.iter().take(SPELT_OUT).map(|Line { held, held_part, by, shown_part, shown_by }| {
        format!("{held}: held out as {held_part}{by}, shown in {shown_part} by {shown_by}")
    });
    anyhow::ensure!(
        leaks.is_empty(),
        "{} {what} are shown while they are held out:\n  {}\ndelete the shards (`engraft clean shards`) and run again; if it stays, this is a bug",
        leaks.len(),
        lines.collect::<Vec<_>>().join("\n  ")
    );
    Ok(())
}

/// What the tasks show.
#[derive(Default)]
struct Uses {
    /// How much of it, by task and part.
    counts: Vec<Value>,
    triples: Vec<Shown>,
    names: Vec<ShownName>,
}

impl Uses {
    /// Reads it from the shards below `folder`.
    fn read(context: &Context, folder: &Path, index: &Index) -> anyhow::Result<Self> {
        let mut uses = Self::default();
        for (task, entry) in index.tasks.iter().zip(0..) {
            for part in &task.parts {
                context.check()?;
                let (of, part, files) = (task.task, part.part, &part.files);
                match of.made_of() {
                    Material::Triples => {
                        let triples = shown::triples(folder, files)?;
                        uses.counts.push(json!({"task": of, "part": part, "triples": triples.len()}));
                        let shown = triples.into_iter().map(|triple| Shown { task: entry, part, triple });
                        uses.triples.extend(shown);
                    }
                    Material::Names => {
                        let names = shown::names(folder, files)?;
                        uses.counts.push(json!({"task": of, "part": part, "names": names.len()}));
                        let shown = names.into_iter().map(|term| ShownName { term, part, task: entry });
                        uses.names.extend(shown);
                    }
                    Material::Texts => {}
                }
            }
        }
        Ok(uses)
    }
}

/// The table of terms.
fn terms(context: &Context) -> anyhow::Result<Vec<Term>> {
    let mut terms = Vec::new();
    read::terms(context.artifact("triples")?, |term| {
        terms.push(term);
        Ok(())
    })?;
    Ok(terms)
}

impl Stage for Audit {
    fn name(&self) -> &'static str {
        "audit"
    }

    fn version(&self) -> u32 {
        3
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
        let Uses { counts, triples, names } = Uses::read(context, folder, &index)?;
        let options =
            audit::Options { together: self.config.together(), inverses: &stored.detected, suspicion: None };
        let leaks = audit::tasks(&view, &stored.part, triples.into_iter(), &options)?;
        let mut report = json!({"tasks": counts, "leaks": leaks.len(), "list": leaks});
        let (terms, of_names) = if names.is_empty() {
            (vec![], vec![])
        } else {
            let terms = terms(context)?;
            let leaks = audit::names(&view, &stored.part, &terms, &names)?;
            report["names"] = json!({"leaks": leaks.len(), "list": leaks});
            (terms, leaks)
        };
        write_whole(&context.out().join(FILE), &serde_json::to_vec_pretty(&report)?)?;
        context.record("tasks", counts);
        context.record("leaks", leaks.len() + of_names.len());
        if self.config.on_leak == OnLeak::Report {
            return Ok(());
        }
        let task =
            |number: u32| index.tasks.get(number as usize).map_or("the split", |task| task.task.name());
        let of_triple = |leak: &TaskLeak| Line {
            held: view.words(leak.held),
            held_part: leak.held_part,
            by: format!(" by {}", task(leak.held_task)),
            shown_part: leak.shown_part,
            shown_by: task(leak.shown_task),
        };
        let of_name = |leak: &NameLeak| Line {
            held: terms.get(leak.held as usize).map_or_else(String::new, |term| format!("{:?}", term.text)),
            held_part: leak.held_part,
            by: String::new(),
            shown_part: leak.shown_part,
            shown_by: task(leak.task),
        };
        refuse("triples", &leaks.iter().map(of_triple).collect::<Vec<_>>())?;
        refuse("names", &of_names.iter().map(of_name).collect::<Vec<_>>())
    }
}
