//! Relations that nobody declared inverse or symmetric though the data look as if they were, and what they would give away.
//!
//! S suggests R the other way round when of the triples of S at least [`Suspicion::share`] occur turned round under R, and at least
//! [`Suspicion::support`] of them do; R may have many others. A held-out triple of R *would leak* if a shown triple of S runs the other way
//! between the same two texts and it does not leak anyway. With S = R the question is whether R is symmetric. Triples that differ by text are
//! counted, also those aside; those that lead from a text to itself say nothing of a direction.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::kind::Leak;
use super::statement::{Row, Statements};
use crate::split::{Part, Suspicion, View};
use crate::table::RelationId;

/// Two texts with more relations than this between them are left out and counted: they would cost their square.
const CROWD: usize = 256;

/// Relations that look inverse; twice the same if it looks symmetric.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Suspect {
    /// The one.
    pub relation: String,
    /// The other.
    pub inverse: String,
    /// Different triples of the one.
    pub triples: u64,
    /// Different triples of the other.
    pub inverse_triples: u64,
    /// How many of either occur turned round under the other.
    pub reversed: u64,
    /// Held-out triples that would leak, by part; one that several pairs give away counts for each.
    pub would_leak: BTreeMap<&'static str, u64>,
}

/// All suspects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Suspects {
    /// By pair of relations, those that would give most away first.
    pub pairs: Vec<Suspect>,
    /// Held-out triples that would leak, by part, each counted once.
    pub would_leak: BTreeMap<&'static str, u64>,
    /// Pairs of texts with too many relations between them to be looked at.
    pub crowded: u64,
}

/// How often relations of one wording are used, and two of them the opposite ways round over the same texts.
#[derive(Debug, Default)]
struct Counts {
    /// By wording.
    triples: Vec<u64>,
    reversed: HashMap<(u32, u32), u64, ahash::RandomState>,
    crowded: u64,
}

/// A wording and whether it is said of the second text of a pair.
type Said = (u32, bool);

/// Finds suspects among `rows`, which are sorted, and what they would give away besides `leaks`.
pub(super) fn suspects(
    view: &View,
    statements: &Statements,
    (rows, leaks): (&[Row], &[Leak]),
    suspicion: &Suspicion,
) -> Suspects {
    let counts = count(rows, view.relations().len());
    let found = found(&counts, statements, suspicion);
    let mut would: BTreeMap<(u32, u32), BTreeMap<&'static str, u64>> = BTreeMap::new();
    let mut suspects = Suspects { crowded: counts.crowded, ..Suspects::default() };
    if !found.is_empty() {
        each_pair(rows, |pair| {
            give(pair, (&found, leaks), |part, by| {
                *suspects.would_leak.entry(part.name()).or_default() += 1;
                for &pair in by {
                    *would.entry(pair).or_default().entry(part.name()).or_default() += 1;
                }
            });
        });
    }
    let relation = |wording: u32| view.relations()[RelationId(wording).index()].key.to_owned();
    suspects.pairs = (found.keys().filter(|(one, other)| one <= other))
        .map(|&(one, other)| Suspect {
            relation: relation(one),
            inverse: relation(other),
            triples: counts.triples[one as usize],
            inverse_triples: counts.triples[other as usize],
            reversed: counts.reversed.get(&(one, other)).copied().unwrap_or_default(),
            would_leak: would.remove(&(one, other)).unwrap_or_default(),
        })
        .collect();
    let most = |suspect: &Suspect| std::cmp::Reverse(suspect.would_leak.values().sum::<u64>());
    suspects
        .pairs
        .sort_by_cached_key(|suspect| (most(suspect), suspect.relation.clone(), suspect.inverse.clone()));
    suspects
}

/// Hands on the rows over each pair of different texts.
fn each_pair<'r>(rows: &'r [Row], take: impl FnMut(&'r [Row])) {
    rows.chunk_by(|a, b| a.texts == b.texts).filter(|pair| pair[0].texts.0 != pair[0].texts.1).for_each(take);
}

/// What is said over a pair of texts, each once, sorted.
fn said(pair: &[Row], of: impl Fn(&Row) -> bool, into: &mut Vec<Said>) {
    into.clear();
    into.extend(pair.iter().filter(|row| of(row)).map(|row| (row.wording, row.of_second)));
    into.sort_unstable();
    into.dedup();
}

fn count(rows: &[Row], wordings: usize) -> Counts {
    let mut counts = Counts { triples: vec![0; wordings], ..Counts::default() };
    let mut all = Vec::new();
    each_pair(rows, |pair| {
        said(pair, |_| true, &mut all);
        for &(wording, _) in &all {
            counts.triples[wording as usize] += 1;
        }
        if all.len() > CROWD {
            counts.crowded += 1;
            return;
        }
        for &(one, _) in all.iter().filter(|(_, of_second)| !of_second) {
            for &(other, _) in all.iter().filter(|(_, of_second)| *of_second) {
                // Of a symmetric relation both triples occur turned round.
                *counts.reversed.entry((one.min(other), one.max(other))).or_default() +=
                    1 + u64::from(one == other);
            }
        }
    });
    counts
}

/// (R, S) where S suggests R the other way round, and for each also the two in their order. The value says whether the first is suggested.
#[expect(
    clippy::iter_over_hash_type,
    reason = "what is found is put into an ordered map, whatever the order"
)]
fn found(counts: &Counts, statements: &Statements, suspicion: &Suspicion) -> BTreeMap<(u32, u32), bool> {
    let mut found = BTreeMap::new();
    for (&(one, other), &reversed) in &counts.reversed {
        if statements.are_inverse(one, other) {
            continue;
        }
        let suggests = |wording: u32| suspicion.suggests(reversed, counts.triples[wording as usize]);
        let (of_one, of_other) = (suggests(other), suggests(one));
        if of_one || of_other {
            found.insert((one, other), of_one);
            found.insert((other, one), if one == other { of_one } else { of_other });
        }
    }
    found
}

/// Hands on the part of each held-out row of a pair that would leak, and the pairs of wordings by which, the smaller first.
fn give(
    pair: &[Row],
    (found, leaks): (&BTreeMap<(u32, u32), bool>, &[Leak]),
    mut take: impl FnMut(Part, &[(u32, u32)]),
) {
    if pair.iter().all(|row| !row.part.is_held_out()) {
        return;
    }
    let (mut shown, mut by) = (Vec::new(), Vec::new());
    for held_part in [Part::Valid, Part::Test] {
        // Test is held out from valid, too.
        let shows = |part: Part| part == Part::Train || (part == Part::Valid && held_part == Part::Test);
        said(pair, |row| shows(row.part), &mut shown);
        if shown.is_empty() || shown.len() > CROWD {
            continue;
        }
        for held in pair.iter().filter(|row| row.part == held_part && !leaks_anyway(row, leaks)) {
            by.clear();
            for &(other, of_second) in &shown {
                let one = held.wording;
                if of_second != held.of_second && found.get(&(one, other)).is_some_and(|suggested| *suggested)
                {
                    by.push((one.min(other), one.max(other)));
                }
            }
            if !by.is_empty() {
                take(held_part, &by);
            }
        }
    }
}

fn leaks_anyway(held: &Row, leaks: &[Leak]) -> bool {
    leaks.binary_search_by(|leak| leak.held.cmp(&held.row)).is_ok()
}
