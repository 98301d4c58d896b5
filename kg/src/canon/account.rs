//! Puts what merging counted into its report.

use std::collections::{BTreeMap, BTreeSet};

use super::crosswalk::namespace;
use super::merge::{Canon, Counts};
use super::report::{Crossing, RelationCount, Report, Stated};

impl Stated {
    /// Statements that are not dropped whatever else there is.
    pub(super) fn left(&self) -> u64 {
        self.rows - self.self_loops - self.unnamed
    }
}

impl Report {
    /// Of nothing.
    pub(super) fn empty() -> Self {
        Self {
            sources: BTreeMap::new(),
            relations: Vec::new(),
            conflicting_inverses: Vec::new(),
            crosswalk: Vec::new(),
            merged_across_sources: 0,
            entities: 0,
            unused_entities: 0,
            terms: 0,
            triples: 0,
            warnings: Vec::new(),
        }
    }
}

impl Canon {
    pub(super) fn relation_counts(&self, counts: &Counts, triples: &[u64]) -> Vec<RelationCount> {
        let sources = &self.stated.sources;
        let count = |(place, key): (usize, &String)| {
            let stated = &counts.stated[place * sources.len()..(place + 1) * sources.len()];
            let inverse = self.inverses.inverse(key);
            let distinct = sources.iter().zip(stated).filter(|(_, one)| one.rows > 0);
            RelationCount {
                relation: key.clone(),
                inverse: inverse.filter(|inverse| inverse != key).map(str::to_owned),
                symmetric: inverse == Some(key),
                rows: stated.iter().map(|one| one.left()).sum(),
                unnamed: stated.iter().map(|one| one.unnamed).sum(),
                turned: stated.iter().map(|one| one.turned + one.exchanged).sum(),
                distinct: distinct.map(|(name, one)| (name.clone(), one.distinct)).collect(),
                triples: triples[place],
            }
        };
        self.relations.iter().enumerate().map(count).collect()
    }

    pub(super) fn fill_report(&mut self, counts: &Counts) {
        for (source, name) in self.stated.sources.iter().enumerate() {
            let total = self.report.sources.entry(name.clone()).or_default();
            for relation in 0..self.relations.len() {
                let one = &counts.stated[relation * counts.sources + source];
                let stays = self.stays[relation * counts.sources + source];
                let distinct = if stays { one.distinct } else { 0 };
                total.rows += one.rows;
                total.turned += one.turned;
                total.exchanged += one.exchanged;
                total.self_loops += one.self_loops;
                total.unnamed += one.unnamed;
                total.below_min_relation_count += one.below_min_relation_count;
                total.distinct += distinct;
                total.merged += one.left() - one.below_min_relation_count - distinct;
            }
        }
        self.report.conflicting_inverses = self.inverses.conflicts().to_vec();
        self.report.crosswalk = self.crossings();
        let drafted: BTreeSet<u32> = self.target.iter().copied().collect();
        self.report.unused_entities = drafted.len() as u64 - self.report.entities;
        self.report.terms = self.terms.len() as u64;
        self.report.warnings = self.warnings();
    }

    fn crossings(&self) -> Vec<Crossing> {
        let mut counts: BTreeMap<(String, String, &'static str), (u64, u64)> = BTreeMap::new();
        let keyed = &self.stated.entities.keyed;
        let ids = self.ids();
        for link in &self.links {
            let means = self.target[link.entity as usize];
            let [from, to] = [link.entity, means].map(|draft| namespace(keyed.key(draft)).to_owned());
            let count = counts.entry((from, to, link.how.name())).or_default();
            count.0 += 1;
            count.1 += u64::from(ids[means as usize].is_some());
        }
        let crossing = |((from, to, how), (keys, used))| Crossing { from, to, how, keys, used };
        counts.into_iter().map(crossing).collect()
    }
}
