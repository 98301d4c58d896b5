//! Moves groups to train until training shows whatever is held out.

use super::group::Groups;
use super::part::Part;
use super::view::View;
use crate::table::Triple;
use crate::table::id::dense;

/// What training shows: by entity, by relation.
#[derive(Debug)]
pub(super) struct Shown {
    entities: Vec<bool>,
    relations: Vec<bool>,
}

impl Shown {
    pub(super) fn nothing(view: &View) -> Self {
        Self { entities: vec![false; view.entities().len()], relations: vec![false; view.relations().len()] }
    }

    pub(super) fn add(&mut self, triple: &Triple) {
        self.entities[triple.subject.index()] = true;
        self.entities[triple.object.index()] = true;
        self.relations[triple.relation.index()] = true;
    }

    pub(super) fn has(&self, triple: &Triple) -> bool {
        self.entities[triple.subject.index()]
            && self.entities[triple.object.index()]
            && self.relations[triple.relation.index()]
    }

    /// How many entities and relations of `held` are not shown.
    pub(super) fn lacks(&self, held: &Shown) -> (u64, u64) {
        let count = |shown: &[bool], held: &[bool]| {
            shown.iter().zip(held).filter(|&(&shown, &held)| held && !shown).count() as u64
        };
        (count(&self.entities, &held.entities), count(&self.relations, &held.relations))
    }
}

/// Gives held-out groups to train, in the order of `order`, each if it names something that train does not show by then. Train only
/// grows, so after one pass every group that stayed is covered. Returns how many groups and triples moved.
pub(super) fn move_to_train<K: Ord>(
    view: &View,
    groups: &Groups,
    part: &mut [Part],
    order: impl Fn(u32) -> K,
) -> (u64, u64) {
    let mut shown = Shown::nothing(view);
    let mut held: Vec<(u32, u32)> = Vec::new();
    for (row, (triple, &group)) in view.triples().iter().zip(&groups.of).enumerate() {
        if part[group as usize] == Part::Train {
            shown.add(triple);
        } else {
            held.push((group, dense(row)));
        }
    }
    held.sort_unstable();
    let mut by_group: Vec<&[(u32, u32)]> = held.chunk_by(|a, b| a.0 == b.0).collect();
    by_group.sort_by_cached_key(|rows| order(rows[0].0));
    let mut moved = (0, 0);
    for rows in by_group {
        let triples = || rows.iter().map(|&(_, row)| &view.triples()[row as usize]);
        if !triples().all(|triple| shown.has(triple)) {
            triples().for_each(|triple| shown.add(triple));
            part[rows[0].0 as usize] = Part::Train;
            moved = (moved.0 + 1, moved.1 + rows.len() as u64);
        }
    }
    moved
}
