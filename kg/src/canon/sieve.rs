//! Statements that are left out for what they are about.

use std::collections::BTreeSet;

use super::policy::{Policy, SelfLoops};
use super::report::Stated;
use crate::table::bits::Bits;
use crate::table::builder::Statements;
use crate::table::id::dense;

/// Which statements are left out.
pub(super) struct Sieve {
    self_loops: SelfLoops,
    /// What has no name.
    places: Bits,
    /// By source: the relations that it calls by codes.
    relations: BTreeSet<(usize, u32)>,
}

impl Sieve {
    /// One that leaves out what the sources have given up, as far as none has named it.
    pub(super) fn new(
        all: &Statements,
        policy: &Policy,
        target: &[u32],
        place: &[u32],
        relations: &[String],
    ) -> Self {
        let mut places = Bits::new(place.len());
        let nameless = all.unnamed.iter().filter(|&&draft| all.entities.is_nameless(target[draft as usize]));
        nameless.for_each(|&draft| places.set(place[draft as usize]));
        let relation = |(source, key): &(String, String)| {
            let source = all.sources.iter().position(|known| known == source)?;
            Some((source, dense(relations.binary_search(key).ok()?)))
        };
        let relations = all.unnamed_relations.iter().filter_map(relation).collect();
        Self { self_loops: policy.self_loops, places, relations }
    }

    /// Whether a statement of a source stays, counted in `count`.
    pub(super) fn keeps(&self, ends: (u32, u32), relation: u32, source: usize, count: &mut Stated) -> bool {
        let is_loop = ends.0 == ends.1 && self.self_loops == SelfLoops::Drop;
        let is_unnamed = self.places.get(ends.0)
            || self.places.get(ends.1)
            || self.relations.contains(&(source, relation));
        count.rows += 1;
        count.self_loops += u64::from(is_loop);
        count.unnamed += u64::from(is_unnamed && !is_loop);
        !is_loop && !is_unnamed
    }
}
