//! What a split did, in numbers.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cover::Shown;
use super::detect::Inverse;
use super::group::Groups;
use super::part::Part;
use super::view::View;

/// Rows by part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Learnt from.
    pub train: u64,
    /// For choosing.
    pub valid: u64,
    /// For reporting.
    pub test: u64,
    /// In no part.
    pub aside: u64,
}

impl Counts {
    fn add(&mut self, part: Part) {
        *match part {
            Part::Train => &mut self.train,
            Part::Valid => &mut self.valid,
            Part::Test => &mut self.test,
            Part::Aside => &mut self.aside,
        } += 1;
    }
}

/// What is held out and never shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Uncovered {
    /// Entities of valid and test that train lacks.
    pub entities: u64,
    /// Relations of valid and test that train lacks.
    pub relations: u64,
    /// Triples of valid and test that name one of them.
    pub triples: u64,
}

/// What only the way of giving parts knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Notes {
    pub(super) moved_groups: u64,
    pub(super) moved_triples: u64,
    pub(super) stated_twice: u64,
}

/// What a split did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Triples by part.
    pub triples: Counts,
    /// Triples by relation and part; relations without triples are left out.
    pub relations: BTreeMap<String, Counts>,
    /// How many groups.
    pub groups: u64,
    /// How many groups of each size.
    pub group_sizes: BTreeMap<u32, u64>,
    /// Groups that went to train so that it shows what is held out.
    pub moved_groups: u64,
    /// Their triples.
    pub moved_triples: u64,
    /// Triples that the official split has in two parts; they count for the most held-out one.
    pub stated_twice: u64,
    /// What is held out and never shown.
    pub uncovered: Uncovered,
    /// Relations found to be inverse, without those that were declared.
    pub inverses: Vec<Inverse>,
    /// Relations that look inverse, without those.
    pub suspected: Vec<Inverse>,
}

/// Pairs of relations that nobody declared inverse.
#[derive(Debug)]
pub(super) struct Pairs {
    /// That count as inverse.
    pub(super) inverses: Vec<Inverse>,
    /// That look so.
    pub(super) suspected: Vec<Inverse>,
}

pub(super) fn report(view: &View, part: &[Part], groups: &Groups, notes: Notes, found: Pairs) -> Report {
    let mut triples = Counts::default();
    let mut by_relation = vec![Counts::default(); view.relations().len()];
    let (mut shown, mut held) = (Shown::nothing(view), Shown::nothing(view));
    for (triple, &part) in view.triples().iter().zip(part) {
        triples.add(part);
        by_relation[triple.relation.index()].add(part);
        match part {
            Part::Train => shown.add(triple),
            Part::Valid | Part::Test => held.add(triple),
            Part::Aside => {}
        }
    }
    let held_out = view.triples().iter().zip(part).filter(|(_, part)| part.is_held_out());
    let unseen = held_out.filter(|(triple, _)| !shown.has(triple)).count() as u64;
    let (entities, relations) = shown.lacks(&held);
    let mut sizes = vec![0_u32; groups.names.len()];
    groups.of.iter().for_each(|&group| sizes[group as usize] += 1);
    let mut group_sizes = BTreeMap::new();
    sizes.iter().for_each(|&size| *group_sizes.entry(size).or_default() += 1);
    let named = view.relations().iter().map(|relation| relation.key.to_owned()).zip(by_relation);
    Report {
        triples,
        relations: named.filter(|(_, counts)| *counts != Counts::default()).collect(),
        groups: groups.names.len() as u64,
        group_sizes,
        moved_groups: notes.moved_groups,
        moved_triples: notes.moved_triples,
        stated_twice: notes.stated_twice,
        uncovered: Uncovered { entities, relations, triples: unseen },
        inverses: found.inverses,
        suspected: found.suspected,
    }
}
