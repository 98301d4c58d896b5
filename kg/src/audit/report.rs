//! An audit in numbers and in words. Knows leaks, not how they were found.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use super::Audit;
use super::kind::Leak;
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
}

/// A split leaks.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{leaks} held-out triples are given away ({kinds}):\n{listing}split by ratio, or put leaks of an official split aside"
)]
pub struct Found {
    /// How many.
    pub leaks: u64,
    /// How many of each kind between which parts.
    pub kinds: String,
    /// The first of them, in words.
    pub listing: String,
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
    pub fn prove(&self, view: &View) -> Result<(), Found> {
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
        Err(Found { leaks: self.report.leaks, kinds: between.collect::<Vec<_>>().join(", "), listing })
    }
}
