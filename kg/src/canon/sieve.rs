//! Statements that are left out for what they are about.

use super::policy::{Policy, SelfLoops};
use super::report::Stated;
use crate::table::bits::Bits;
use crate::table::builder::Statements;

/// Which statements are left out.
pub(super) struct Sieve {
    self_loops: SelfLoops,
    /// What has no name.
    places: Bits,
    relations: Vec<bool>,
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
        let relations = relations.iter().map(|key| all.unnamed_relations.contains(key)).collect();
        Self { self_loops: policy.self_loops, places, relations }
    }

    /// Whether a statement stays, counted in `count`.
    pub(super) fn keeps(&self, ends: (u32, u32), relation: u32, count: &mut Stated) -> bool {
        let is_loop = ends.0 == ends.1 && self.self_loops == SelfLoops::Drop;
        let is_unnamed =
            self.places.get(ends.0) || self.places.get(ends.1) || self.relations[relation as usize];
        count.rows += 1;
        count.self_loops += u64::from(is_loop);
        count.unnamed += u64::from(is_unnamed && !is_loop);
        !is_loop && !is_unnamed
    }
}
