//! Held-out triples that shown ones give away, or seem to: how many there are stands before the scores.

use std::collections::BTreeMap;

use kg::audit;
use kg::split::{self, View};
use tasks::sample::Triple;

use crate::engine::context::Context;
use crate::stage::shards::Made;
use crate::stage::split::Config;

/// What gives a triple away whose relation nobody declared inverse or symmetric.
pub(super) const SUSPECTED: &str = "suspected";

/// How each held-out row is given away that is.
///
/// # Errors
/// When the parts cannot be read.
pub(super) fn found(
    context: &Context,
    made: &Made,
    config: &Config,
) -> anyhow::Result<BTreeMap<u32, &'static str>> {
    let view = View::of(&made.graph);
    let stored = split::read::read(context.artifact("split")?, &view)?;
    let suspicion = Some(config.suspicion());
    let options = audit::Options { together: config.together(), inverses: &stored.detected, suspicion };
    let audit = audit::audit(&view, &stored.part, &options)?;
    let mut found: BTreeMap<u32, &'static str> =
        audit.report.suspected.rows.iter().map(|&row| (row, SUSPECTED)).collect();
    // A row may leak to two parts; the plainest kind is told.
    for leak in audit.leaks.iter().rev() {
        found.insert(leak.held, leak.kind.name());
    }
    Ok(found)
}

/// Says how many of the triples that are asked for are given away, if any are.
pub(super) fn warn(
    context: &Context,
    asked: &[(Triple, u32)],
    found: &BTreeMap<u32, &'static str>,
    config: &super::Config,
) {
    let Some(words) = words(&counts(asked, found)) else { return };
    let others = if asked.iter().all(|(_, row)| found.contains_key(row)) {
        "there are no others that a score could be of"
    } else if config.slots.is_empty() {
        "scores have them among the others"
    } else {
        "not_given_away has the scores of the others"
    };
    context.warn(format!("of {} triples of {} {words}: {others}", asked.len(), config.part.part()));
}

/// How many are given away, in words; nothing where none is.
pub(super) fn words(counts: &BTreeMap<&'static str, u64>) -> Option<String> {
    let seem = counts.get(SUSPECTED).copied().unwrap_or_default();
    let sure = counts.values().sum::<u64>() - seem;
    let seem = format!(
        "{seem} seem to be (a shown triple has them the other way round, under a relation that looks inverse or symmetric)"
    );
    match (sure, counts.contains_key(SUSPECTED)) {
        (0, false) => None,
        (0, true) => Some(seem.replace("seem to be", "seem to be given away")),
        (sure, false) => Some(format!("{sure} can be read off shown ones")),
        (sure, true) => Some(format!("{sure} can be read off shown ones, and {seem}")),
    }
}

/// How many triples are given away, by how.
pub(super) fn counts(
    asked: &[(Triple, u32)],
    found: &BTreeMap<u32, &'static str>,
) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    for kind in asked.iter().filter_map(|(_, row)| found.get(row)) {
        *counts.entry(*kind).or_default() += 1;
    }
    counts
}
