//! The canonical graph as rows, in memory or on the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use rayon::slice::ParallelSliceMut;

use super::merge::{Canon, TermRow, UNUSED};
use super::{Error, fold::tidy};
use crate::table::builder::DraftTerm;
use crate::table::graph::Parts;
use crate::table::id::dense;
use crate::table::row::{Entity, Inverse, Negative, Relation, SemanticType, Term, Triple};
use crate::table::write::{self, CrosswalkRow, RetiredRow};
use crate::table::{EntityId, Graph, RelationId};

impl Canon {
    /// The graph in memory, without terms and crosswalk.
    ///
    /// # Errors
    /// When rows on the disk cannot be read back.
    pub fn graph(&self) -> Result<Graph, Error> {
        let mut parts = Parts::empty();
        self.entities(|entity| {
            parts.entities.push(entity);
            Ok(())
        })?;
        parts.relations = self.relation_rows();
        parts.origins.clone_from(&self.origins);
        self.each(|triple, origins| {
            parts.triples.push(row(triple));
            parts.origin_of.extend(origins.iter().map(|(origin, _)| origin));
            parts.direction_of.extend(origins.iter().map(|(_, direction)| direction));
            parts.starts.push(parts.origin_of.len());
            Ok(())
        })?;
        Ok(Graph::new(parts))
    }

    /// Writes the seven files into `folder`, each whole: entities, terms, relations, triples, crosswalk, negatives, and keys that were given up, in this order. Equal statements give equal bytes.
    ///
    /// # Errors
    /// When the folder is missing or the disk refuses.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        let mut sink = write::entities(folder)?;
        self.entities(|entity| Ok(sink.push(entity)?))?;
        sink.finish()?;
        let mut sink = write::terms(folder)?;
        let origins = self.stated.term_origins.values();
        for row in &self.terms {
            let text = self.stated.term_texts.get(row.text).to_owned();
            let origin = origins[row.origin as usize].clone();
            sink.push(Term { entity: EntityId(row.entity), kind: row.kind, text, origin })?;
        }
        sink.finish()?;
        let mut sink = write::relations(folder)?;
        self.relation_rows().into_iter().try_for_each(|relation| sink.push(relation))?;
        sink.finish()?;
        let mut sink = write::triples(folder)?;
        self.each(|triple, origins| {
            let origins = origins.iter().map(|&(origin, way)| (&self.origins[origin as usize], way));
            Ok(sink.push((row(triple), origins.collect()))?)
        })?;
        sink.finish()?;
        let mut sink = write::crosswalk(folder)?;
        self.crosswalk(|row| Ok(sink.push(row)?))?;
        sink.finish()?;
        let mut sink = write::negatives(folder)?;
        self.negatives(|negative| Ok(sink.push(negative)?))?;
        sink.finish()?;
        let mut sink = write::retired(folder)?;
        self.retired().into_iter().try_for_each(|row| sink.push(row))?;
        Ok(sink.finish()?)
    }

    /// What sources publish as false, each once for each source and part, sorted.
    fn negatives(&self, mut take: impl FnMut(Negative) -> Result<(), Error>) -> Result<(), Error> {
        let entities = &self.stated.entities;
        let (mut last, mut failed) = (None, None);
        let each = self.negatives.each(|[subject, relation, object, origin]| {
            // Whichever way round it was stated, and however strongly, it is one.
            let origin = &self.origins[(origin >> 2) as usize];
            let this = (subject, relation, object, &origin.source, &origin.vocabulary);
            if last.replace(this) == Some(this) {
                return Ok(());
            }
            let [subject, object] = [subject, object].map(|place| self.order[place as usize]);
            let relation = &self.relations[relation as usize];
            let [subject_key, object_key] =
                [subject, object].map(|draft| entities.keyed.key(draft).to_owned());
            let [subject, object] = [subject, object].map(|draft| tidy(entities.text(draft)));
            take(Negative {
                keys: [subject_key, relation.clone(), object_key],
                texts: [subject, self.words(relation), object],
                source: origin.source.clone(),
                part: origin.vocabulary.clone(),
            })
            .map_err(|error| {
                failed = Some(error);
                io::Error::other("")
            })
        });
        each.map_err(|error| failed.take().unwrap_or(Error::Rows(error)))
    }

    /// The entities of the table in the order of their ids.
    fn entities(&self, mut take: impl FnMut(Entity) -> Result<(), Error>) -> Result<(), Error> {
        let drafts = &self.stated.entities;
        let mut same_as: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for link in &self.links {
            let means = self.target[link.entity as usize];
            if means != link.entity {
                same_as.entry(means).or_default().push(drafts.keyed.key(link.entity).to_owned());
            }
        }
        let typed = self.types();
        let mut typed = typed.iter().peekable();
        for (place, &draft) in self.order.iter().enumerate() {
            let mut types: Vec<SemanticType> = Vec::new();
            while let Some(&&(_, kind)) = typed.peek().filter(|typed| typed.0 <= dense(place)) {
                types.push(drafts.types.values()[kind as usize].clone());
                typed.next();
            }
            if self.id_of_place[place] == UNUSED {
                continue;
            }
            types.sort_unstable();
            let sources = self.stated.sources.iter().zip(&self.mentioned);
            let origins: BTreeSet<&String> =
                sources.filter(|(_, mentioned)| mentioned.get(dense(place))).map(|(name, _)| name).collect();
            take(Entity {
                key: drafts.keyed.key(draft).to_owned(),
                text: tidy(drafts.text(draft)),
                level: drafts.level(draft),
                types,
                same_as: same_as.remove(&draft).unwrap_or_default(),
                origins: origins.into_iter().cloned().collect(),
            })?;
        }
        Ok(())
    }

    /// (place, type) of all entities, sorted, each once.
    fn types(&self) -> Vec<(u32, u32)> {
        let mut place = vec![0; self.order.len()];
        for (at, &draft) in self.order.iter().enumerate() {
            place[draft as usize] = dense(at);
        }
        let typed = &self.stated.entities.typed;
        let mut typed: Vec<(u32, u32)> =
            typed.iter().map(|&(draft, kind)| (place[self.target[draft as usize] as usize], kind)).collect();
        typed.sort_unstable();
        typed.dedup();
        typed
    }

    fn relation_rows(&self) -> Vec<Relation> {
        let used =
            self.relations.iter().enumerate().filter(|(place, _)| self.id_of_relation[*place] != UNUSED);
        let relation = |(place, key): (usize, &String)| {
            let inverse = self.inverses.inverse(key);
            let sources = self.stated.sources.iter().zip(&self.uses);
            let origins: BTreeSet<&String> =
                sources.filter(|(_, uses)| uses.contains(&place)).map(|(name, _)| name).collect();
            let of = |set: &BTreeSet<(String, String)>| -> Vec<String> {
                let from = set.range((key.clone(), String::new())..);
                from.take_while(|(of, _)| of == key).map(|(_, inverse)| inverse.clone()).collect()
            };
            let declared: BTreeSet<String> =
                of(&self.stated.inverses).into_iter().chain(of(&self.stated.noted)).collect();
            let declared = declared.into_iter().filter(|inverse| inverse != key);
            let inverses = declared.map(|key| Inverse { text: self.words(&key), key }).collect();
            Relation {
                key: key.clone(),
                text: self.words(key),
                inverses,
                inverse: inverse.filter(|inverse| inverse != key).map(str::to_owned),
                symmetric: inverse == Some(key),
                origins: origins.into_iter().cloned().collect(),
            }
        };
        used.map(relation).collect()
    }

    /// The words of a relation. One that only its inverse's statements lead to, or that nobody uses, may have none of its own.
    fn words(&self, key: &str) -> String {
        let drafted = self.stated.relations.find(key).map(|draft| self.stated.relations.text(draft));
        drafted.map_or_else(|| key.replace('_', " "), tidy)
    }

    /// The terms of the table's entities, sorted, each once.
    pub(super) fn sorted_terms(&self) -> Vec<TermRow> {
        let ids = self.ids();
        let origins = self.stated.term_origins.values();
        let mut by_value: Vec<usize> = (0..origins.len()).collect();
        by_value.sort_unstable_by_key(|&origin| &origins[origin]);
        let mut rank = vec![0; origins.len()];
        by_value.iter().enumerate().for_each(|(at, &origin)| rank[origin] = at);
        let term = |(text, term): (usize, &DraftTerm)| {
            let entity = ids[self.target[term.entity as usize] as usize]?;
            Some(TermRow { entity, kind: term.kind, text: dense(text), origin: term.origin })
        };
        let mut rows: Vec<TermRow> = self.stated.terms.iter().enumerate().filter_map(term).collect();
        let text = |row: &TermRow| self.stated.term_texts.get(row.text);
        let order = |row: &TermRow| (row.entity, row.kind, text(row), rank[row.origin as usize]);
        rows.par_sort_unstable_by(|a, b| order(a).cmp(&order(b)));
        rows.dedup_by(|a, b| order(a) == order(b));
        rows
    }

    /// Keys that sources gave up and that are in no triple, in their order, each with the entity that took its place in the end. Of two that are said to have done
    /// so neither is known to be the same.
    fn retired(&self) -> Vec<RetiredRow> {
        let (given_up, ids) = (&self.stated.retired, self.ids());
        let mut means: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for pair in (0..dense(given_up.len())).step_by(2) {
            means.entry(given_up.get(pair)).or_default().insert(given_up.get(pair + 1));
        }
        let entity = |key: &str| {
            let target = self.target[self.stated.entities.keyed.find(key)? as usize];
            ids[target as usize].map(|id| (target, id))
        };
        let end = |key: &str| {
            let mut seen = BTreeSet::from([key]);
            let mut here = key;
            loop {
                let next = means.get(here).filter(|means| means.len() == 1)?;
                here = next.first().filter(|next| seen.insert(next))?;
                if let Some(found) = entity(here) {
                    return Some(found);
                }
            }
        };
        let row = |key: &str| {
            let (target, entity) = end(key)?;
            let means = self.stated.entities.keyed.key(target).to_owned();
            Some(RetiredRow { key: key.to_owned(), means, entity })
        };
        means.keys().filter(|key| entity(key).is_none()).filter_map(|key| row(key)).collect()
    }

    /// What became of keys, in their order.
    fn crosswalk(&self, mut take: impl FnMut(CrosswalkRow) -> Result<(), Error>) -> Result<(), Error> {
        let keyed = &self.stated.entities.keyed;
        let ids = self.ids();
        for link in &self.links {
            let means = self.target[link.entity as usize];
            take(CrosswalkRow {
                key: keyed.key(link.entity).to_owned(),
                means: keyed.key(means).to_owned(),
                entity: ids[means as usize],
                how: link.how.name(),
                candidates: link.candidates.clone(),
            })?;
        }
        Ok(())
    }
}

fn row([subject, relation, object]: [u32; 3]) -> Triple {
    Triple { subject: EntityId(subject), relation: RelationId(relation), object: EntityId(object) }
}
