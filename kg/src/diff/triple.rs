//! Which triples came and went.

use std::collections::{BTreeMap, HashMap};

use crate::table::id::dense;
use crate::table::{EntityId, Graph, Relation, RelationId, Triple};

use super::report::{self, Delta};

/// By old relation: the new one that says it, and whether the other way round.
#[derive(Debug)]
pub(super) struct Relations {
    now: Vec<Option<(RelationId, bool)>>,
}

/// Triples in numbers.
#[derive(Debug, Default)]
pub(super) struct Compared {
    pub(super) total: report::Triples,
    pub(super) by_relation: BTreeMap<String, Delta>,
    pub(super) by_source: BTreeMap<String, Delta>,
}

/// A relation is found by its key, or else by the key of its inverse as either table knows it.
pub(super) fn relations(old: &Graph, new: &Graph) -> Relations {
    let place = |key: &str| {
        new.relations().binary_search_by(|relation| relation.key.as_str().cmp(key)).ok().map(dense)
    };
    let inverse: HashMap<&str, u32> = (0..)
        .zip(new.relations())
        .filter_map(|(id, relation)| Some((relation.inverse.as_deref()?, id)))
        .collect();
    let find = |relation: &Relation| {
        let turned = || {
            let told = relation.inverse.as_deref().and_then(place);
            told.or_else(|| inverse.get(relation.key.as_str()).copied())
        };
        let straight = place(&relation.key).map(|id| (RelationId(id), false));
        straight.or_else(|| turned().map(|id| (RelationId(id), true)))
    };
    Relations { now: old.relations().iter().map(find).collect() }
}

impl Relations {
    pub(super) fn report(&self, old: &Graph, new: &Graph) -> report::Relations {
        let mut report = report::Relations::default();
        let mut there = vec![false; new.relations().len()];
        for (relation, now) in old.relations().iter().zip(&self.now) {
            match *now {
                None => report.removed.push(relation.key.clone()),
                Some((_, true)) => report.turned.push(relation.key.clone()),
                Some((id, false)) => {
                    there[id.index()] = true;
                    if new.relations()[id.index()].text != relation.text {
                        report.reworded.push(relation.key.clone());
                    }
                }
            }
        }
        let added = new.relations().iter().zip(&there).filter(|&(_, &there)| !there);
        report.added = added.map(|(relation, _)| relation.key.clone()).collect();
        report
    }

    /// The place of an old triple in the new table, and whether it was inverted.
    fn find(&self, new: &Graph, new_id: &[Option<EntityId>], triple: &Triple) -> Option<(usize, bool)> {
        let (relation, turned) = self.now[triple.relation.index()]?;
        let (subject, object) = (new_id[triple.subject.index()]?, new_id[triple.object.index()]?);
        let place = |turned: bool| {
            let (subject, object) = if turned { (object, subject) } else { (subject, object) };
            new.triples().binary_search(&Triple { subject, relation, object }).ok()
        };
        let straight = place(turned).map(|place| (place, turned));
        let both_ways = new.relations().get(relation.index()).is_some_and(|relation| relation.symmetric);
        straight.or_else(|| place(!turned).filter(|_| both_ways).map(|place| (place, !turned)))
    }
}

pub(super) fn compare(
    old: &Graph,
    new: &Graph,
    new_id: &[Option<EntityId>],
    relations: &Relations,
) -> Compared {
    let mut compared = Compared::default();
    let total = &mut compared.total;
    (total.old, total.new) = (old.triples().len() as u64, new.triples().len() as u64);
    // (new row, old row) of what is in both.
    let mut pairs: Vec<(usize, usize)> = Vec::with_capacity(old.triples().len());
    for (row, triple) in old.triples().iter().enumerate() {
        if let Some((place, turned)) = relations.find(new, new_id, triple) {
            total.turned += u64::from(turned);
            pairs.push((place, row));
        } else {
            total.removed += 1;
            delta(&mut compared.by_relation, relation_of(old, triple)).removed += 1;
            for source in sources(old, [row].into_iter()) {
                delta(&mut compared.by_source, source).removed += 1;
            }
        }
    }
    pairs.sort_unstable();
    let in_both = pairs.len() as u64;
    let mut rest = pairs.as_slice();
    for (row, triple) in new.triples().iter().enumerate() {
        let (before, after) = rest.split_at(rest.partition_point(|pair| pair.0 == row));
        rest = after;
        if before.is_empty() {
            total.added += 1;
            delta(&mut compared.by_relation, relation_of(new, triple)).added += 1;
        } else {
            total.kept += 1;
        }
        let was = sources(old, before.iter().map(|pair| pair.1));
        let now = sources(new, [row].into_iter());
        for source in now.iter().filter(|source| !was.contains(source)) {
            delta(&mut compared.by_source, source).added += 1;
        }
        for source in was.iter().filter(|source| !now.contains(source)) {
            delta(&mut compared.by_source, source).removed += 1;
        }
    }
    compared.total.merged = in_both - compared.total.kept;
    compared
}

fn relation_of<'a>(graph: &'a Graph, triple: &Triple) -> &'a str {
    &graph.relations()[triple.relation.index()].key
}

/// The sources that state any of these rows, each once, sorted.
fn sources(graph: &Graph, rows: impl Iterator<Item = usize>) -> Vec<&str> {
    let mut sources: Vec<&str> =
        rows.flat_map(|row| graph.origins(row)).map(|origin| origin.source.as_str()).collect();
    sources.sort_unstable();
    sources.dedup();
    sources
}

fn delta<'a>(deltas: &'a mut BTreeMap<String, Delta>, key: &str) -> &'a mut Delta {
    deltas.entry(key.to_owned()).or_default()
}
