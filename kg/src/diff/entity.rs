//! What became of each entity.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::canon::fold::fold;
use crate::table::id::dense;
use crate::table::{Entity, EntityId};

use super::report::Entities;

/// What became of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// Same key, another id.
    Renumbered,
    /// Same key, another text.
    Renamed,
    /// Under a key that the old table lacks.
    Rekeyed,
    /// Joined to one that the old table had as well.
    Merged,
    /// Gone.
    Removed,
    /// New.
    Added,
}

impl Change {
    /// The word on disk.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Change::Renumbered => "renumbered",
            Change::Renamed => "renamed",
            Change::Rekeyed => "rekeyed",
            Change::Merged => "merged",
            Change::Removed => "removed",
            Change::Added => "added",
        }
    }
}

/// An entity that changed; the id in a table is none where the table lacks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// How.
    pub change: Change,
    /// Its id in the old table.
    pub old: Option<EntityId>,
    /// Its id in the new table.
    pub new: Option<EntityId>,
}

/// How an old entity was found again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Key,
    SameAs,
    Retired,
    Text,
}

/// By old entity: which new one it is now.
#[derive(Debug)]
pub(super) struct Matched {
    found: Vec<Option<(EntityId, By)>>,
    /// By new entity: whether the old table has its key.
    was_there: Vec<bool>,
}

impl Matched {
    pub(super) fn new_id(&self) -> Vec<Option<EntityId>> {
        self.found.iter().map(|found| found.map(|(id, _)| id)).collect()
    }
}

pub(super) fn matched(old: &[Entity], new: &[Entity], retired: impl Fn(&str) -> Option<String>) -> Matched {
    let mut matched = by_key(old, new);
    let joined: HashMap<&str, u32> = (0..)
        .zip(new)
        .flat_map(|(id, entity)| entity.same_as.iter().map(move |key| (key.as_str(), id)))
        .collect();
    let with_key = |key: &str| {
        let own = new.binary_search_by(|entity| entity.key.as_str().cmp(key)).ok().map(dense);
        own.or_else(|| joined.get(key).copied()).map(EntityId)
    };
    for (found, entity) in matched.found.iter_mut().zip(old).filter(|(found, _)| found.is_none()) {
        let joined = joined.get(entity.key.as_str()).map(|&id| (EntityId(id), By::SameAs));
        let successor = || retired(&entity.key).and_then(|key| with_key(&key)).map(|id| (id, By::Retired));
        *found = joined.or_else(successor);
    }
    by_text(old, new, &mut matched);
    matched
}

/// Both tables are sorted by key.
fn by_key(old: &[Entity], new: &[Entity]) -> Matched {
    let mut matched = Matched { found: vec![None; old.len()], was_there: vec![false; new.len()] };
    let (mut left, mut right) = (0, 0);
    while let (Some(before), Some(after)) = (old.get(left), new.get(right)) {
        match before.key.cmp(&after.key) {
            Ordering::Less => left += 1,
            Ordering::Greater => right += 1,
            Ordering::Equal => {
                matched.found[left] = Some((EntityId(dense(right)), By::Key));
                matched.was_there[right] = true;
                (left, right) = (left + 1, right + 1);
            }
        }
    }
    matched
}

/// Finds what has the text of exactly one lost old entity and exactly one new entity that nothing became yet.
fn by_text(old: &[Entity], new: &[Entity], matched: &mut Matched) {
    let mut taken = matched.was_there.clone();
    matched.found.iter().flatten().for_each(|(id, _)| taken[id.index()] = true);
    let lost = (0..).zip(old).filter(|&(id, _): &(u32, _)| matched.found[id as usize].is_none());
    let lost = only_with_text(lost);
    let fresh = only_with_text((0..).zip(new).filter(|&(id, _): &(u32, _)| !taken[id as usize]));
    // One after the other in the order of ids, though no two can meet.
    let mut pairs: Vec<(u32, u32)> =
        lost.iter().filter_map(|(text, lost)| Some(((*lost)?, (*fresh.get(text)?)?))).collect();
    pairs.sort_unstable();
    for (lost, fresh) in pairs {
        matched.found[lost as usize] = Some((EntityId(fresh), By::Text));
    }
}

/// By folded text: the only entity that has it, none if there are several.
fn only_with_text<'a>(entities: impl Iterator<Item = (u32, &'a Entity)>) -> HashMap<String, Option<u32>> {
    let mut only = HashMap::new();
    for (id, entity) in entities {
        only.entry(fold(&entity.text)).and_modify(|only| *only = None).or_insert(Some(id));
    }
    only
}

pub(super) fn moved(old: &[Entity], new: &[Entity], matched: &Matched) -> Vec<Moved> {
    let mut moved = Vec::new();
    let mut became = matched.was_there.clone();
    for ((id, before), found) in (0..).map(EntityId).zip(old).zip(&matched.found) {
        let mut note = |change, new| moved.push(Moved { change, old: Some(id), new });
        match *found {
            None => note(Change::Removed, None),
            Some((now, By::Key)) => {
                if now != id {
                    note(Change::Renumbered, Some(now));
                }
                if new[now.index()].text != before.text {
                    note(Change::Renamed, Some(now));
                }
            }
            Some((now, _)) => {
                became[now.index()] = true;
                let change = if matched.was_there[now.index()] { Change::Merged } else { Change::Rekeyed };
                note(change, Some(now));
            }
        }
    }
    let added = (0..).map(EntityId).zip(&became).filter(|&(_, &became)| !became);
    moved.extend(added.map(|(id, _)| Moved { change: Change::Added, old: None, new: Some(id) }));
    moved
}

pub(super) fn count(old: usize, new: usize, moved: &[Moved], matched: &Matched) -> Entities {
    let with = |change| moved.iter().filter(|moved| moved.change == change).count() as u64;
    let found = |by| matched.found.iter().flatten().filter(|found| found.1 == by).count() as u64;
    Entities {
        old: old as u64,
        new: new as u64,
        kept: found(By::Key),
        renumbered: with(Change::Renumbered),
        renamed: with(Change::Renamed),
        rekeyed: with(Change::Rekeyed),
        merged: with(Change::Merged),
        removed: with(Change::Removed),
        added: with(Change::Added),
        by_same_as: found(By::SameAs),
        by_retired: found(By::Retired),
        by_text: found(By::Text),
    }
}
