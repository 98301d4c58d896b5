//! What a split says of itself: in facts, and in warnings of what may not have been meant.

use kg::audit;
use kg::split::{Counts, Split};
use serde_json::json;

use super::{Parts, Splitting};
use crate::engine::context::Context;

impl Splitting {
    /// Says which published splits are not taken, and which parts have no triple though they were to have some.
    pub(super) fn doubt(&self, context: &Context, found: Counts) {
        let (taken, how) = match &self.config.parts {
            Parts::All => (None, "split.parts is \"all\""),
            Parts::Ratio { .. } => (None, "split.parts.ratio draws another"),
            Parts::Official { source, .. } => (Some(source), "split.parts.official takes another source's"),
        };
        for source in self.published.iter().filter(|source| Some(*source) != taken) {
            context.warn(format!(
                "source {source} has a published split, which is not used ({how}): what it holds out may be learnt from; \
                 split.parts = {{ official = {{ source = {source:?} }} }} takes it"
            ));
        }
        let shares = match self.config.parts {
            Parts::All => [0.0; 3],
            Parts::Official { .. } => [1.0, 0.0, 0.0],
            Parts::Ratio { train, valid, test, .. } => [train, valid, test],
        };
        let parts = [("train", found.train), ("valid", found.valid), ("test", found.test)];
        for (part, _) in parts.into_iter().zip(shares).filter(|(part, share)| *share > 0.0 && part.1 == 0) {
            context.warn(format!(
                "the part {} has no triple: the graph has too few for these parts, or none is published as such",
                part.0
            ));
        }
    }
}

/// Says at the end of the run what of the held-out parts can be read off, though the config takes it so.
pub(super) fn warn(context: &Context, report: &audit::Report) {
    if report.leaks > 0 {
        context.warn(format!(
            "{} held-out triples are given away by shown ones; leaks.parquet lists them",
            report.leaks
        ));
    }
    for (part, would) in &report.suspected.would_leak {
        let held = report.rows.get(part).copied().unwrap_or_default();
        context.warn(format!(
            "{would} of {held} triples of {part} would leak if relations nobody declared inverse or symmetric are what the data suggest"
        ));
    }
}

pub(super) fn record(context: &Context, split: &Split, audit: &audit::Audit) {
    let report = &split.report;
    context.record("triples", json!(report.triples));
    context.record(
        "groups",
        json!({"groups": report.groups, "moved_groups": report.moved_groups, "moved_triples": report.moved_triples,
               "stated_twice": report.stated_twice}),
    );
    context.record("uncovered", json!(report.uncovered));
    context.record("detected_inverses", json!(report.inverses));
    context.record("leaks", audit.report.leaks);
    let kinds = audit.report.kinds.iter().flat_map(|(between, kinds)| {
        kinds.iter().map(move |(kind, leaks)| json!({"between": between, "kind": kind, "leaks": leaks}))
    });
    context.record("leaks_by_kind", kinds.collect::<Vec<_>>());
    let suspected = &audit.report.suspected;
    let pairs = suspected.pairs.iter().map(|pair| {
        let inverse = if pair.relation == pair.inverse { "symmetric" } else { pair.inverse.as_str() };
        json!({"relation": pair.relation, "looks_inverse_to": inverse, "triples": pair.triples,
               "inverse_triples": pair.inverse_triples, "reversed": pair.reversed, "would_leak": pair.would_leak})
    });
    context.record("suspected", pairs.collect::<Vec<_>>());
    context.record("would_leak", json!(suspected.would_leak));
    context.record("inverted", json!(suspected.inverted));
    if suspected.crowded > 0 {
        context.record("crowded_pairs_not_looked_at", suspected.crowded);
    }
    if let Some(published) = &audit.report.published {
        context.record("published_negatives", json!(published));
    }
}
