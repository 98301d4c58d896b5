//! Stage `summary`: what the graph is like, and whether its relations run the way they say.

use std::path::Path;

use base::whole::write_whole;
use kg::certificate::{self, Certificate, violation};
use kg::graph::Summary;
use kg::graph::length::Lengths;
use kg::graph::summary::{Options, summarize};
use kg::table::Graph;
use model::range::{BELOW_ONE, SHARE};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tasks::shard::index::Limits;
use tasks::token::encode::Case;

use super::vocabulary::Source;
use crate::config::range::{MANY, number, whole};
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::stage::{Input, Stage};

/// The file with the measures of the graph.
pub(crate) const SUMMARY: &str = "summary.json";

/// The file with the directions of relations.
pub(crate) const CERTIFICATE: &str = "certificate.json";

/// The summary's part of a config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
pub(crate) struct Config {
    /// What is measured of the graph.
    pub graph: Options,
    /// How the direction of relations is judged by the semantic types that they connect.
    pub certificate: certificate::Options,
}

impl Config {
    /// Whether every setting makes sense.
    ///
    /// # Errors
    /// Names the first that does not.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let (rank, certificate) = (&self.graph.rank, &self.certificate);
        number("summary.graph.rank.damping", rank.damping, &BELOW_ONE)?;
        number("summary.graph.rank.tolerance", rank.tolerance, &SHARE)?;
        number("summary.certificate.min_share", certificate.min_share, &SHARE)?;
        number("summary.certificate.max_reversed", certificate.max_reversed, &SHARE)?;
        whole("summary.graph.rank.rounds", rank.rounds.into(), 1..=MANY)?;
        whole("summary.graph.hubs", self.graph.hubs as u64, 0..=MANY)?;
        whole("summary.graph.distance.sample", self.graph.distance.sample as u64, 0..=MANY)?;
        whole("summary.certificate.examples", certificate.examples as u64, 0..=MANY)
    }
}

#[derive(Debug)]
pub(crate) struct Summarising {
    /// What to measure.
    pub config: Config,
    /// The vocabulary that names are measured with.
    pub vocabulary: Source,
    /// Whether a `vocab.txt` keeps case.
    pub case: Case,
    /// Where shards cut names.
    pub limits: Limits,
}

impl Stage for Summarising {
    fn name(&self) -> &'static str {
        "summary"
    }

    fn version(&self) -> u32 {
        1
    }

    fn describe(&self, to: &mut dyn Describe) {
        describe::config(to, "summary", &self.config);
        describe::config(to, "vocabulary.case", &self.case);
        describe::config(to, "shards.limits", &self.limits);
        self.vocabulary.describe(to);
    }

    fn inputs(&self) -> Vec<Input> {
        std::iter::once(Input::artifact("triples")).chain(self.vocabulary.inputs()).collect()
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let graph = Graph::read(context.artifact("triples")?)?;
        let vocabulary = self.vocabulary.load(context, self.case)?;
        let lengths = |texts: Vec<&str>| -> anyhow::Result<Vec<u32>> {
            let encoded = vocabulary.encode_all(&texts, usize::MAX)?;
            (0..texts.len()).map(|text| Ok(u32::try_from(encoded.get(text).len())?)).collect()
        };
        let entities = lengths(graph.entities().iter().map(|entity| entity.text.as_str()).collect())?;
        let relations = lengths(graph.relations().iter().map(|relation| relation.text.as_str()).collect())?;
        context.check()?;
        let lengths = Lengths {
            entities: &entities,
            relations: &relations,
            node_tokens: u32::try_from(self.limits.node)?,
            edge_tokens: u32::try_from(self.limits.edge)?,
        };
        let summary = summarize(&graph, &self.config.graph, Some(&lengths))?;
        context.check()?;
        let (certificate, violations) = certificate::certify(&graph, &self.config.certificate)?;
        violation::write(&violations, &graph, context.out())?;
        write_whole(&context.out().join(CERTIFICATE), &serde_json::to_vec_pretty(&certificate)?)?;
        write_whole(&context.out().join(SUMMARY), &serde_json::to_vec_pretty(&summary)?)?;
        record(context, &summary, &certificate);
        Ok(())
    }

    fn inspect(&self, file: &Path) -> anyhow::Result<Vec<String>> {
        super::triples::inspect_parquet(file)
    }
}

fn record(context: &Context, summary: &Summary, certificate: &Certificate) {
    context.record(
        "graph",
        json!({"entities": summary.entities, "relations": summary.relations, "triples": summary.triples,
               "self_loops": summary.self_loops}),
    );
    if let Some(lengths) = &summary.lengths {
        let cut = [("entity", &lengths.entities), ("relation", &lengths.relations)].map(|(what, cut)| {
            json!({"texts": what, "limit": cut.limit, "cut": cut.cut, "cut_share": cut.cut_share})
        });
        context.record("cut_texts", cut.to_vec());
        context.record(
            "cut_triples",
            json!({"cut": lengths.triples_cut, "cut_share": lengths.triples_cut_share}),
        );
    }
    let relations =
        certificate.relations.iter().map(|one| json!({"relation": one.relation, "verdict": one.verdict}));
    context.record("directions", relations.collect::<Vec<_>>());
}
