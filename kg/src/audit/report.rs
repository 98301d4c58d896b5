//! An audit in numbers and in words.

use std::collections::BTreeMap;
use std::fmt::Write;

use base::share::Share;
use serde::Serialize;

use super::Audit;
use super::kind::Leak;
use super::published::Published;
use super::suspect::{Suspect, Suspects};
use crate::Refused;
use crate::split::{Part, View};

/// Leaks that a message spells out.
const SPELT_OUT: usize = 10;

/// An audit in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Rows by part.
    pub rows: BTreeMap<&'static str, u64>,
    /// All leaks; 0 is the proof.
    pub leaks: u64,
    /// Leaks by the parts between which they are (`train-test`) and by kind.
    pub kinds: BTreeMap<String, BTreeMap<&'static str, u64>>,
    /// By the same: pairs of rows, of which the second gives the first away.
    pub pairs: BTreeMap<String, BTreeMap<&'static str, u64>>,
    /// What would leak as well if relations were inverse or symmetric that look so.
    pub suspected: Suspects,
    /// What sources publish as false; none where nothing was looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<Published>,
}

/// More of a held-out part than is accepted can be read off shown triples, if relations are what the data suggest.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(
    "{would_leak} of {held} triples of {part} ({:.1} %) could be read off shown ones if relations nobody declared inverse or symmetric are what the data suggest; at most {:.1} % are accepted:\n{listing}",
    100.0 * share(.would_leak, .held), 100.0 * .accepted
)]
pub struct Suspicious {
    /// The part.
    pub part: &'static str,
    /// How many of its triples would leak.
    pub would_leak: u64,
    /// How many it has.
    pub held: u64,
    /// The share that is accepted.
    pub accepted: f64,
    /// The first of the pairs, in words.
    pub listing: String,
}

impl Suspicious {
    /// The least share that accepts the split as it is, in thousandths.
    #[must_use]
    pub fn least(&self) -> f64 {
        Share::least(self.would_leak, self.held, 3)
    }
}

fn share(some: &u64, all: &u64) -> f64 {
    *some as f64 / (*all).max(1) as f64
}

pub(super) fn report(part: &[Part], leaks: &[Leak]) -> Report {
    let mut report = Report { leaks: leaks.len() as u64, ..Report::default() };
    part.iter().for_each(|part| *report.rows.entry(part.name()).or_default() += 1);
    for leak in leaks {
        let between = format!("{}-{}", leak.shown_part, leak.held_part);
        let pairs = report.pairs.entry(between.clone()).or_default();
        *pairs.entry(leak.kind.name()).or_default() += u64::from(leak.times);
        *report.kinds.entry(between).or_default().entry(leak.kind.name()).or_default() += 1;
    }
    report
}

impl Audit {
    /// The proof: nothing if there are no leaks, otherwise the first few in words and the number of all.
    ///
    /// # Errors
    /// When there is a leak.
    pub fn prove(&self, view: &View) -> Result<(), Refused> {
        if self.leaks.is_empty() {
            return Ok(());
        }
        let between = self.report.kinds.iter().flat_map(|(between, kinds)| {
            kinds.iter().map(move |(kind, count)| format!("{between} {kind}: {count}"))
        });
        let mut listing = String::new();
        for leak in self.leaks.iter().take(SPELT_OUT) {
            let (held, shown) = (view.words(leak.held), view.words(leak.shown));
            let (held_part, shown_part, kind) = (leak.held_part, leak.shown_part, leak.kind.name());
            // Writing to a string cannot fail.
            let _ = writeln!(
                listing,
                "  {held_part} row {}: {held}\n    {kind} in {shown_part} row {}: {shown}",
                leak.held, leak.shown
            );
        }
        if self.leaks.len() > SPELT_OUT {
            let _ = writeln!(listing, "  and {} more", self.leaks.len() - SPELT_OUT);
        }
        let (leaks, kinds) = (self.report.leaks, between.collect::<Vec<_>>().join(", "));
        Err(Refused::new(format!(
            "{leaks} held-out triples are given away ({kinds}):\n{listing}split by ratio, or put leaks of an official split aside"
        )))
    }

    /// Whether relations that look inverse or symmetric give away no more than the share `accepted` of a held-out part.
    ///
    /// # Errors
    /// When they would give away more of a part; the one of which they do most is told.
    pub fn suspect(&self, accepted: f64) -> Result<(), Suspicious> {
        let held = |part: &str| self.report.rows.get(part).copied().unwrap_or_default();
        let parts = self.report.suspected.would_leak.iter().map(|(&part, &would)| (part, would, held(part)));
        let above = parts.filter(|&(_, would, held)| share(&would, &held) > accepted);
        let worst = above.max_by(|a, b| (a.1 * b.2).cmp(&(b.1 * a.2)));
        let Some((part, would_leak, held)) = worst else { return Ok(()) };
        let mut pairs: Vec<&Suspect> = self.report.suspected.pairs.iter().collect();
        pairs.sort_by_key(|pair| std::cmp::Reverse(pair.would_leak.get(part).copied()));
        let lines: Vec<String> = pairs.iter().filter_map(|pair| pair.words(part)).collect();
        let mut listing = lines.iter().take(SPELT_OUT).cloned().collect::<Vec<_>>().join("\n");
        if lines.len() > SPELT_OUT {
            // Writing to a string cannot fail.
            let _ = write!(listing, "\n  and {} more pairs of relations", lines.len() - SPELT_OUT);
        }
        Err(Suspicious { part, would_leak, held, accepted, listing })
    }
}

impl Suspect {
    /// What it would give away of a part, in a line; nothing where that is nothing.
    fn words(&self, part: &str) -> Option<String> {
        let Self { relation, inverse, triples, inverse_triples, reversed, would_leak } = self;
        let would = would_leak.get(part)?;
        Some(if relation == inverse {
            format!(
                "  {would} would leak if {relation:?} were symmetric: {reversed} of its {triples} triples occur turned round"
            )
        } else {
            format!(
                "  {would} would leak if {relation:?} were the inverse of {inverse:?}: {reversed} triples of {triples} and {inverse_triples} occur turned round under the other"
            )
        })
    }
}
