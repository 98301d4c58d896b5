//! Entities and relations that read the same.

use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_128;

use super::view::View;
use crate::canon::fold::bare;
use crate::table::RelationId;
use crate::table::id::dense;

/// Classes of equal folded text; a class's number is the rank of its text, so order by class is order by text.
#[derive(Debug)]
pub(super) struct Classes {
    /// By entity.
    pub(super) entity: Vec<u32>,
    /// Digest of the text, by class of entities.
    pub(super) entity_names: Vec<u128>,
    /// By relation.
    pub(super) relation: Vec<u32>,
    /// Digest of the text, by class of relations.
    pub(super) relation_names: Vec<u128>,
}

impl Classes {
    pub(super) fn of(view: &View) -> Self {
        let (entity, entity_names) = rank(view.entities().par_iter().map(|e| bare(e.text)).collect());
        let (relation, relation_names) = rank(view.relations().par_iter().map(|r| bare(r.text)).collect());
        Self { entity, entity_names, relation, relation_names }
    }

    /// The first relation of each class.
    pub(super) fn smallest_relations(&self) -> Vec<RelationId> {
        let mut smallest = vec![RelationId(0); self.relation_names.len()];
        for (relation, &class) in self.relation.iter().enumerate().rev() {
            smallest[class as usize] = RelationId(dense(relation));
        }
        smallest
    }
}

/// The rank of each text among the different ones, and their digests by rank.
fn rank(texts: Vec<String>) -> (Vec<u32>, Vec<u128>) {
    let mut order: Vec<(String, u32)> = texts.into_iter().zip(0..).collect();
    order.par_sort_unstable();
    let (mut ranks, mut names) = (vec![0; order.len()], Vec::new());
    for same in order.chunk_by(|a, b| a.0 == b.0) {
        for (_, number) in same {
            ranks[*number as usize] = dense(names.len());
        }
        names.push(xxh3_128(same[0].0.as_bytes()));
    }
    (ranks, names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_follow_texts() {
        let (ranks, names) = rank(["b", "a", "b", "c"].map(str::to_owned).to_vec());
        assert_eq!((ranks, names.len()), (vec![1, 0, 1, 2], 3));
        assert_eq!(names[0], xxh3_128(b"a"));
    }
}
