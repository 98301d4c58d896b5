//! What each row says, as numbers that are equal when rows say the same.

use std::collections::HashMap;

use petgraph::unionfind::UnionFind;
use rayon::prelude::*;

use super::unknown;
use crate::Refused;
use crate::canon::fold::bare;
use crate::split::{Part, View};
use crate::table::id::dense;
use crate::table::{RelationId, Triple};

/// Texts and relations as numbers.
#[derive(Debug)]
pub(super) struct Statements {
    /// By entity: the first entity of the same folded text.
    entity: Vec<u32>,
    /// By relation: the first relation of the same folded text.
    relation: Vec<u32>,
    /// By twice the relation's class, plus one for the other way round: what is said. An inverse relation joins each way of the one
    /// with the other way of the other; a symmetric one joins its two.
    said: Vec<u32>,
}

/// A row, ordered so that rows that say the same stand together, those of a part together, and among these those of the same ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Row {
    /// The texts of both entities, the smaller number first.
    pub(super) texts: (u32, u32),
    /// What is said of them in this order.
    pub(super) said: u32,
    /// The row's part.
    pub(super) part: Part,
    /// Both entities, the smaller id first.
    pub(super) ids: (u32, u32),
    /// Whether the entity with the larger id is the subject.
    pub(super) turned: bool,
    /// Text of the relation.
    pub(super) wording: u32,
    /// The relation.
    pub(super) relation: u32,
    /// Place in the triple table.
    pub(super) row: u32,
    /// Whether it is said of the second of the texts.
    pub(super) of_second: bool,
}

impl Row {
    /// What rows that say the same have in common.
    pub(super) fn statement(&self) -> ((u32, u32), u32) {
        (self.texts, self.said)
    }
}

impl Statements {
    pub(super) fn new(view: &View, inverses: &[(RelationId, RelationId)]) -> Result<Self, Refused> {
        let entity = first_alike(view.entities().par_iter().map(|e| bare(e.text)).collect());
        let relation = first_alike(view.relations().par_iter().map(|r| bare(r.text)).collect());
        let mut ways: UnionFind<u32> = UnionFind::new(2 * relation.len());
        let mut join = |one: u32, other: u32| {
            ways.union(2 * one, 2 * other + 1);
            ways.union(2 * one + 1, 2 * other);
        };
        for (worded, &one) in view.relations().iter().zip(&relation) {
            if worded.symmetric {
                join(one, one);
            }
        }
        for &(one, other) in view.inverses() {
            join(relation[one.index()], relation[other.index()]);
        }
        for &(one, other) in inverses {
            let class = |id: RelationId| relation.get(id.index()).copied().ok_or(id);
            match (class(one), class(other)) {
                (Ok(one), Ok(other)) => join(one, other),
                (Err(id), _) | (_, Err(id)) => {
                    return Err(unknown("relation", id.0, relation.len()));
                }
            }
        }
        Ok(Self { entity, relation, said: ways.into_labeling() })
    }

    /// The texts that a triple is about, the smaller number first, and what it says of them.
    pub(super) fn said(&self, triple: &Triple) -> ((u32, u32), u32) {
        let (subject, object) = (self.entity[triple.subject.index()], self.entity[triple.object.index()]);
        let wording = self.relation[triple.relation.index()];
        let [straight, turned] = [2 * wording, 2 * wording + 1].map(|way| self.said[way as usize]);
        let said = match subject.cmp(&object) {
            std::cmp::Ordering::Less => straight,
            std::cmp::Ordering::Greater => turned,
            // One text twice: both ways round read the same.
            std::cmp::Ordering::Equal => straight.min(turned),
        };
        ((subject.min(object), subject.max(object)), said)
    }

    /// Whether two wordings are known to say the same the other way round.
    pub(super) fn are_inverse(&self, one: u32, other: u32) -> bool {
        self.said[2 * one as usize] == self.said[2 * other as usize + 1]
    }

    /// The rows that have a part, sorted.
    pub(super) fn rows(&self, view: &View, part: impl Fn(usize) -> Option<Part> + Sync) -> Vec<Row> {
        let mut rows: Vec<Row> = (view.triples().par_iter().enumerate())
            .filter_map(|(row, triple)| {
                let part = part(row)?;
                let (subject_id, object_id) = (triple.subject.0, triple.object.0);
                let (texts, said) = self.said(triple);
                Some(Row {
                    texts,
                    said,
                    part,
                    ids: (subject_id.min(object_id), subject_id.max(object_id)),
                    turned: subject_id > object_id,
                    wording: self.relation[triple.relation.index()],
                    relation: triple.relation.0,
                    row: dense(row),
                    of_second: self.entity[triple.subject.index()] > self.entity[triple.object.index()],
                })
            })
            .collect();
        rows.par_sort_unstable();
        rows
    }
}

/// For each text the place of the first equal one.
fn first_alike(texts: Vec<String>) -> Vec<u32> {
    let mut first =
        HashMap::with_capacity_and_hasher(texts.len(), ahash::RandomState::with_seeds(1, 2, 3, 4));
    texts.into_iter().zip(0..).map(|(text, place)| *first.entry(text).or_insert(place)).collect()
}
