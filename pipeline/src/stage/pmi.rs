//! Stage `pmi`: how related words are, from how often they occur together.

use std::path::Path;

use serde_json::{Value, json};
use text::count::Read;
use text::pmi::{self, Config, MATRIX, Matrix};

use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::stage::{Input, Stage};

/// The stage.
#[derive(Debug)]
pub(crate) struct Scoring {
    config: Config,
}

impl Scoring {
    /// The stage for `config`.
    ///
    /// # Errors
    /// When a setting is invalid.
    pub(crate) fn new(config: &Config) -> anyhow::Result<Self> {
        Ok(Self { config: config.clone() })
    }
}

impl Stage for Scoring {
    fn name(&self) -> &'static str {
        "pmi"
    }

    fn version(&self) -> u32 {
        4
    }

    fn describe(&self, to: &mut dyn Describe) {
        describe::config(to, "pmi", &self.config);
    }

    fn inputs(&self) -> Vec<Input> {
        vec![Input::artifact("counts")]
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let counts = Read::open(context.artifact("counts")?)?.until(context.progress().cancel_token());
        if let Some(shard) = counts.index.shard.map(String::from) {
            context.warn(format!(
                "the counts are of shard {shard} of the documents, and so are the scores: count all shards, and put them together by counts.merge"
            ));
        }
        let index = pmi::score(&counts, &self.config, context.out());
        // Whoever was interrupted says that and nothing else.
        context.check()?;
        let index = index?;
        let funnel = |what: &str, funnel: &pmi::Funnel| {
            let mut row = json!({"what": what, "read": funnel.read, "kept": funnel.kept});
            if let Value::Object(row) = &mut row {
                row.extend(funnel.dropped.iter().map(|(reason, rows)| (reason.clone(), json!(rows))));
            }
            row
        };
        context.record("words", vec![funnel("words", &index.words)]);
        context.record("pairs", vec![funnel("pairs", &index.pairs)]);
        context.record("matrix", json!({"entries": index.entries, "scale": index.scale}));
        for (what, funnel) in [("word", &index.words), ("pair", &index.pairs)] {
            if funnel.kept == 0 {
                let why: Vec<String> =
                    funnel.dropped.iter().map(|(why, rows)| format!("{why} {rows}")).collect();
                context.warn(format!(
                    "no {what} has a score: of {} none is kept ({}); count more texts, or lower what [pmi] asks for",
                    funnel.read,
                    why.join(", ")
                ));
            }
        }
        Ok(())
    }

    fn inspect(&self, file: &Path) -> anyhow::Result<Vec<String>> {
        if file.file_name().is_some_and(|name| name == MATRIX) {
            let matrix = Matrix::open(file)?;
            return Ok(vec![format!("relevance of {} words for each other", matrix.len())]);
        }
        super::triples::inspect_parquet(file)
    }
}
