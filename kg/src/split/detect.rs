//! Inverses that nobody declared: relations whose triples occur inverted under another.

use std::collections::HashMap;

use rayon::prelude::*;
use serde::Serialize;

use super::class::Classes;
use super::part::Part;
use super::view::View;
use crate::table::RelationId;

/// Two texts with more relations than this between them are left out: they would cost their square, and say little.
const RELATIONS_OF_A_PAIR: usize = 256;

/// When relations look inverse or symmetric though nobody declared them so.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Suspicion {
    /// The share of a relation's triples (above 0, at most 1) that must occur inverted under another for them to suggest that other; and the
    /// share of a relation's held-out triples that must be shown inverted under another for that other to suggest it.
    pub share: f64,
    /// How many must, at least: on a few triples chance looks like a rule.
    pub support: u64,
}

impl Suspicion {
    /// Whether `reversed` of `triples` are enough.
    #[must_use]
    pub fn suggests(&self, reversed: u64, triples: u64) -> bool {
        reversed >= self.support.max(1) && reversed as f64 >= self.share * triples as f64
    }

    /// Whether `reversed` of a relation's `held` triples in a held-out part of `part` triples are enough. A part may be small, and what it holds
    /// of one relation smaller still: two are then enough, and never more than a hundredth of the part is asked for.
    #[must_use]
    pub fn suggests_held(&self, reversed: u64, held: u64, part: u64) -> bool {
        let least = self.support.min((part / 100).max(2));
        reversed >= least && reversed as f64 >= self.share * held as f64
    }
}

/// A pair of relations found to be inverse; twice the same if it is symmetric.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Inverse {
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
}

/// The same while it has no names yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) classes: (u32, u32),
    triples: (u64, u64),
    reversed: u64,
}

impl Found {
    pub(super) fn report(self, view: &View, one: RelationId, other: RelationId) -> Inverse {
        Inverse {
            relation: view.relations()[one.index()].key.to_owned(),
            inverse: view.relations()[other.index()].key.to_owned(),
            triples: self.triples.0,
            inverse_triples: self.triples.1,
            reversed: self.reversed,
        }
    }
}

/// How often each relation is used, and each two the opposite ways round over the same two texts.
#[derive(Debug)]
pub(super) struct Counts {
    triples: Vec<u64>,
    reversed: HashMap<(u32, u32), u64>,
}

/// Counts triples that differ by text and do not lead from a text to itself.
pub(super) fn count(view: &View, classes: &Classes) -> Counts {
    let mut rows: Vec<(u32, u32, u32, bool)> = (view.triples().par_iter())
        .map(|triple| {
            let subject = classes.entity[triple.subject.index()];
            let object = classes.entity[triple.object.index()];
            let relation = classes.relation[triple.relation.index()];
            (subject.min(object), subject.max(object), relation, subject > object)
        })
        .filter(|(first, second, ..)| first != second)
        .collect();
    rows.par_sort_unstable();
    rows.dedup();
    let mut counts = Counts { triples: vec![0; classes.relation_names.len()], reversed: HashMap::new() };
    rows.iter().for_each(|row| counts.triples[row.2 as usize] += 1);
    for pair in rows.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        if pair.len() > RELATIONS_OF_A_PAIR {
            continue;
        }
        for (place, &(_, _, one, turned)) in pair.iter().enumerate() {
            for &(_, _, other, _) in pair[place + 1..].iter().filter(|row| row.3 != turned) {
                // Of a symmetric relation both triples occur inverted.
                *counts.reversed.entry((one, other)).or_default() += 1 + u64::from(one == other);
            }
        }
    }
    counts
}

/// The pairs of classes where at least `share` of both sides occur inverted, in order.
pub(super) fn inverses(counts: &Counts, share: f64) -> Vec<Found> {
    let enough = |reversed: u64, class: u32| reversed as f64 >= share * counts.triples[class as usize] as f64;
    counts.pairs(|reversed, one, other| enough(reversed, one) && enough(reversed, other))
}

/// The pairs of classes of which one suggests the other, in order.
pub(super) fn suspects(counts: &Counts, suspicion: &Suspicion) -> Vec<Found> {
    let suggests = |reversed, class: u32| suspicion.suggests(reversed, counts.triples[class as usize]);
    counts.pairs(|reversed, one, other| suggests(reversed, one) || suggests(reversed, other))
}

/// The pairs of classes of which one shows the held-out triples of the other inverted, in order; `stated` has each row's part.
pub(super) fn held_suspects(
    view: &View,
    classes: &Classes,
    stated: &[Part],
    suspicion: &Suspicion,
    counts: &Counts,
) -> Vec<Found> {
    let mut rows: Vec<(u32, u32, Part, u32, bool)> = (view.triples().par_iter().zip(stated))
        .map(|(triple, &part)| {
            let subject = classes.entity[triple.subject.index()];
            let object = classes.entity[triple.object.index()];
            let relation = classes.relation[triple.relation.index()];
            (subject.min(object), subject.max(object), part, relation, subject > object)
        })
        .filter(|(first, second, ..)| first != second)
        .collect();
    rows.par_sort_unstable();
    rows.dedup();
    let mut held: HashMap<(Part, u32), u64> = HashMap::new();
    let mut mirrored: HashMap<(Part, u32, u32), u64> = HashMap::new();
    for pair in rows.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        for &(_, _, part, one, turned) in pair.iter().filter(|row| row.2.is_held_out()) {
            *held.entry((part, one)).or_default() += 1;
            if pair.len() > RELATIONS_OF_A_PAIR {
                continue;
            }
            let mut by: Vec<u32> = pair
                .iter()
                .filter(|row| row.4 != turned && part.is_held_out_from(row.2))
                .map(|row| row.3)
                .collect();
            by.sort_unstable();
            by.dedup();
            by.into_iter().for_each(|other| *mirrored.entry((part, one, other)).or_default() += 1);
        }
    }
    let in_part = |part: Part| stated.iter().filter(|&&of| of == part).count() as u64;
    let sizes = [(Part::Valid, in_part(Part::Valid)), (Part::Test, in_part(Part::Test))];
    let mut found: Vec<(u32, u32)> = (mirrored.iter())
        .filter(|&(&(part, one, _), &reversed)| {
            let size = sizes.iter().find(|(of, _)| *of == part).map_or(0, |(_, size)| *size);
            suspicion.suggests_held(reversed, held.get(&(part, one)).copied().unwrap_or_default(), size)
        })
        .map(|(&(_, one, other), _)| (one.min(other), one.max(other)))
        .collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(|classes| counts.found(classes)).collect()
}

impl Counts {
    fn found(&self, classes: (u32, u32)) -> Found {
        Found {
            classes,
            triples: (self.triples[classes.0 as usize], self.triples[classes.1 as usize]),
            reversed: self.reversed.get(&classes).copied().unwrap_or_default(),
        }
    }

    fn pairs(&self, are: impl Fn(u64, u32, u32) -> bool) -> Vec<Found> {
        let mut found: Vec<Found> = (self.reversed.iter())
            .filter(|&(&(one, other), &reversed)| are(reversed, one, other))
            .map(|(&classes, _)| self.found(classes))
            .collect();
        found.sort_unstable_by_key(|found| found.classes);
        found
    }
}
