//! What is said of the things that both tables have: their texts, types and other keys.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use base::read::ReadError;
use xxhash_rust::xxh3::xxh3_128;

use super::report::Delta;
use crate::table::{Entity, EntityId, TermKind, read};

/// The kinds of texts, as reports call them.
const KINDS: [TermKind; 3] = [TermKind::Preferred, TermKind::Synonym, TermKind::Definition];

/// Different texts of entities, by kind, each by what it and its entity come to in 128 bits.
type Texts = [HashSet<u128>; 3];

/// The texts of a table: `now` says under which id of the new table those of an entity count, if they do.
fn of(folder: &Path, now: impl Fn(EntityId) -> Option<EntityId>) -> Result<Texts, ReadError> {
    let mut texts = Texts::default();
    read::terms(folder, |term| {
        if let Some(EntityId(id)) = now(term.entity) {
            let own = [&id.to_le_bytes(), term.text.as_bytes()].concat();
            let place = KINDS.iter().position(|kind| *kind == term.kind).unwrap_or_default();
            texts[place].insert(xxh3_128(&own));
        }
        Ok(())
    })?;
    Ok(texts)
}

/// Texts added and removed, by kind, of what both tables have; `new_id` is by old entity.
///
/// # Errors
/// When the terms of a table cannot be read.
pub(super) fn texts(
    old: &Path,
    new: &Path,
    new_id: &[Option<EntityId>],
) -> Result<BTreeMap<&'static str, Delta>, ReadError> {
    let there: HashSet<EntityId> = new_id.iter().flatten().copied().collect();
    let before = of(old, |id| new_id.get(id.index()).copied().flatten())?;
    let after = of(new, |id| there.contains(&id).then_some(id))?;
    let deltas = KINDS.iter().zip(before.iter().zip(&after));
    let deltas = deltas.map(|(kind, (before, after))| {
        let added = after.difference(before).count() as u64;
        (kind.name(), Delta { added, removed: before.difference(after).count() as u64 })
    });
    Ok(deltas.filter(|(_, delta)| *delta != Delta::default()).collect())
}

/// Values added and removed of what both tables have, such as types.
pub(super) fn values<T: Ord>(
    old: &[Entity],
    new: &[Entity],
    new_id: &[Option<EntityId>],
    of: impl Fn(&Entity) -> &[T],
) -> Delta {
    // Several old entities may be one now.
    let mut before: BTreeMap<EntityId, Vec<&T>> = BTreeMap::new();
    for (entity, now) in old.iter().zip(new_id) {
        if let Some(now) = now {
            before.entry(*now).or_default().extend(of(entity));
        }
    }
    let mut delta = Delta::default();
    for (now, before) in &before {
        let after = new.get(now.index()).map_or(&[][..], &of);
        delta.added += after.iter().filter(|value| !before.contains(value)).count() as u64;
        delta.removed += before.iter().filter(|value| !after.contains(value)).count() as u64;
    }
    delta
}
