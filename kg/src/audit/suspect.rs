//! Relations that nobody declared inverse or symmetric though the data look as if they were, and what they would give away.
//!
//! S suggests R the other way round when of the triples of S at least [`Suspicion::share`] occur inverted under R, and at least
//! [`Suspicion::support`] of them do; R may have many others. It also does when as large a share of the triples of R that a part holds out
//! is shown inverted under S, however much else S says ([`Suspicion::suggests_held`]). A held-out triple of R *would leak* if a shown triple
//! of S runs the other way between the same two texts and it does not leak anyway. With S = R the question is whether R is symmetric. Triples
//! that differ by text are counted, also those aside; those that lead from a text to itself say nothing of a direction.

use std::collections::{BTreeMap, BTreeSet, HashMap};

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
    /// How many of either occur inverted under the other.
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
    /// Held-out triples, by part, whose two texts stand inverted in a shown triple of whatever relation; most of them where relations are
    /// suspect, some where chance or another fact put them there.
    pub inverted: BTreeMap<&'static str, u64>,
    /// Pairs of texts with too many relations between them to be looked at.
    pub crowded: u64,
    /// The held-out triples that would leak, by row; sorted.
    #[serde(skip)]
    pub rows: Vec<u32>,
}

/// How often relations of one wording are used, and two of them the opposite ways round over the same texts.
#[derive(Debug, Default)]
struct Counts {
    /// By wording.
    triples: Vec<u64>,
    reversed: HashMap<(u32, u32), u64, ahash::RandomState>,
    crowded: u64,
}

/// By held-out part: its triples that do not leak anyway, by wording, and those of them that are shown inverted, by that wording and the other.
#[derive(Debug, Default)]
struct Held {
    triples: BTreeMap<Part, HashMap<u32, u64>>,
    inverted: BTreeMap<Part, HashMap<(u32, u32), u64>>,
    any: BTreeMap<&'static str, u64>,
}

/// A wording and whether it is said of the second text of a pair.
type Said = (u32, bool);

/// Finds suspects among `rows`, which are sorted, and what they would give away besides `leaks`.
pub(super) fn suspects(
    view: &View,
    statements: &Statements,
    rows: &[Row],
    leaks: &[Leak],
    suspicion: &Suspicion,
) -> Suspects {
    let counts = count(rows, view.relations().len());
    let held = held(rows, leaks);
    let sizes: BTreeMap<Part, u64> = [Part::Valid, Part::Test]
        .map(|part| (part, rows.iter().filter(|row| row.part == part).count() as u64))
        .into();
    let found = found(&counts, &held, &sizes, statements, suspicion);
    let mut would: BTreeMap<(u32, u32), BTreeMap<&'static str, u64>> = BTreeMap::new();
    let mut suspects = Suspects { crowded: counts.crowded, inverted: held.any, ..Suspects::default() };
    if !found.is_empty() {
        each_pair(rows, |pair| {
            give(pair, &found, leaks, |held, by| {
                let part = held.part;
                suspects.rows.push(held.row);
                *suspects.would_leak.entry(part.name()).or_default() += 1;
                for &pair in by {
                    *would.entry(pair).or_default().entry(part.name()).or_default() += 1;
                }
            });
        });
    }
    suspects.rows.sort_unstable();
    let relation = |wording: u32| view.relations()[RelationId(wording).index()].key.to_owned();
    let pairs: BTreeSet<(u32, u32)> =
        found.iter().map(|&(one, other, _)| (one.min(other), one.max(other))).collect();
    suspects.pairs = (pairs.into_iter())
        .map(|(one, other)| Suspect {
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
                // Of a symmetric relation both triples occur inverted.
                *counts.reversed.entry((one.min(other), one.max(other))).or_default() +=
                    1 + u64::from(one == other);
            }
        }
    });
    counts
}

/// What is held out, and how much of it is shown inverted.
fn held(rows: &[Row], leaks: &[Leak]) -> Held {
    let mut found = Held::default();
    let (mut held, mut shown, mut by) = (Vec::new(), Vec::new(), Vec::new());
    each_pair(rows, |pair| {
        for part in [Part::Valid, Part::Test] {
            said(pair, |row| row.part == part && !leaks_anyway(row, leaks), &mut held);
            if held.is_empty() {
                continue;
            }
            let triples = found.triples.entry(part).or_default();
            held.iter().for_each(|&(one, _)| *triples.entry(one).or_default() += 1);
            said(pair, |row| part.is_held_out_from(row.part), &mut shown);
            if shown.len() > CROWD {
                continue;
            }
            let inverted = found.inverted.entry(part).or_default();
            for &(one, of_second) in &held {
                by.clear();
                by.extend(shown.iter().filter(|shown| shown.1 != of_second).map(|&(other, _)| other));
                *found.any.entry(part.name()).or_default() += u64::from(!by.is_empty());
                by.iter().for_each(|&other| *inverted.entry((one, other)).or_default() += 1);
            }
        }
    });
    found.any.retain(|_, triples| *triples > 0);
    found
}

/// (R, S, held-out part) where S suggests R the other way round.
type Found = BTreeSet<(u32, u32, Part)>;

#[expect(
    clippy::iter_over_hash_type,
    reason = "what is found is put into an ordered set, whatever the order"
)]
fn found(
    counts: &Counts,
    held: &Held,
    sizes: &BTreeMap<Part, u64>,
    statements: &Statements,
    suspicion: &Suspicion,
) -> Found {
    let mut found = Found::new();
    for (&(one, other), &reversed) in &counts.reversed {
        if statements.are_inverse(one, other) {
            continue;
        }
        for (suggested, by) in [(one, other), (other, one)] {
            if suspicion.suggests(reversed, counts.triples[by as usize]) {
                found.extend(sizes.keys().map(|&part| (suggested, by, part)));
            }
        }
    }
    for (&part, inverted) in &held.inverted {
        let (triples, size) = (&held.triples[&part], sizes.get(&part).copied().unwrap_or_default());
        for (&(one, other), &shown) in inverted {
            let all = triples.get(&one).copied().unwrap_or_default();
            if !statements.are_inverse(one, other) && suspicion.suggests_held(shown, all, size) {
                found.insert((one, other, part));
            }
        }
    }
    found
}

/// Hands on each held-out row of a pair that would leak, and the pairs of wordings by which, the smaller first.
fn give(pair: &[Row], found: &Found, leaks: &[Leak], mut take: impl FnMut(&Row, &[(u32, u32)])) {
    if pair.iter().all(|row| !row.part.is_held_out()) {
        return;
    }
    let (mut shown, mut by) = (Vec::new(), Vec::new());
    for held_part in [Part::Valid, Part::Test] {
        said(pair, |row| held_part.is_held_out_from(row.part), &mut shown);
        if shown.is_empty() || shown.len() > CROWD {
            continue;
        }
        for held in pair.iter().filter(|row| row.part == held_part && !leaks_anyway(row, leaks)) {
            by.clear();
            for &(other, of_second) in &shown {
                let one = held.wording;
                if of_second != held.of_second && found.contains(&(one, other, held_part)) {
                    by.push((one.min(other), one.max(other)));
                }
            }
            if !by.is_empty() {
                take(held, &by);
            }
        }
    }
}

fn leaks_anyway(held: &Row, leaks: &[Leak]) -> bool {
    leaks.binary_search_by(|leak| leak.held.cmp(&held.row)).is_ok()
}
