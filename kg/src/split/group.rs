//! Triples that must have one part, and a stable name for each such group.

use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_128;

use super::Together;
use super::class::Classes;
use super::relation::{Orientation, Way};
use super::view::View;
use crate::table::id::dense;

/// The groups of a graph.
#[derive(Debug)]
pub(super) struct Groups {
    /// By row: its group; groups are numbered in the order of their first rows.
    pub(super) of: Vec<u32>,
    /// By group: a digest of its texts, without any id.
    pub(super) names: Vec<u128>,
}

/// A row by what it says. The order puts equal statements side by side, their smallest relation first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    texts: (u32, u32),
    statement: u32,
    relation: u32,
    way: Way,
    row: u32,
}

impl Groups {
    pub(super) fn new(view: &View, classes: &Classes, orientation: &Orientation, together: Together) -> Self {
        let mut rows: Vec<Row> = (view.triples().par_iter().enumerate())
            .map(|(row, triple)| {
                let subject = classes.entity[triple.subject.index()];
                let object = classes.entity[triple.object.index()];
                let relation = classes.relation[triple.relation.index()];
                let way = if subject > object { Way::Turned } else { Way::Straight };
                let statement = match together {
                    Together::Pair => 0,
                    // Of one text twice, both ways round read the same.
                    Together::Inverse if subject == object => orientation
                        .statement(relation, Way::Straight)
                        .min(orientation.statement(relation, Way::Turned)),
                    Together::Inverse => orientation.statement(relation, way),
                };
                let texts = (subject.min(object), subject.max(object));
                Row { texts, statement, relation, way, row: dense(row) }
            })
            .collect();
        rows.par_sort_unstable();
        let mut groups: Vec<(u32, &[Row])> = rows
            .chunk_by(|a, b| (a.texts, a.statement) == (b.texts, b.statement))
            .map(|group| (group.iter().map(|row| row.row).min().unwrap_or(0), group))
            .collect();
        groups.par_sort_unstable_by_key(|(first, _)| *first);
        let mut of = vec![0; rows.len()];
        let mut names = Vec::with_capacity(groups.len());
        for (_, group) in groups {
            group.iter().for_each(|row| of[row.row as usize] = dense(names.len()));
            names.push(name(group[0], classes, together));
        }
        Self { of, names }
    }
}

/// The digest of the two texts and, where relations tell groups apart, of the group's first relation and its direction. The two
/// texts alone would name every relation's group alike; all members together would rename a group with each new one.
fn name(first: Row, classes: &Classes, together: Together) -> u128 {
    let mut bytes = Vec::with_capacity(49);
    let texts = [first.texts.0, first.texts.1].map(|class| classes.entity_names[class as usize]);
    texts.iter().for_each(|text| bytes.extend(text.to_le_bytes()));
    if together == Together::Inverse {
        bytes.extend(classes.relation_names[first.relation as usize].to_le_bytes());
        bytes.push(u8::from(first.way == Way::Turned));
    }
    xxh3_128(&bytes)
}
