//! What splitting and auditing look at: keys, texts, relations and triples as slices.

use std::collections::{BTreeMap, HashMap};

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::Refused;
use crate::table::id::dense;
use crate::table::{Graph, Inverse, Relation, RelationId, Triple};

/// An entity by its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named<'a> {
    /// Its identity.
    pub key: &'a str,
    /// What an encoder reads.
    pub text: &'a str,
}

/// A relation by its names and what it says the other way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worded<'a> {
    /// Its identity.
    pub key: &'a str,
    /// What an encoder reads.
    pub text: &'a str,
    /// The relation that says the same from object to subject, if it is in the same graph.
    pub inverse: Option<RelationId>,
    /// Whether it is its own inverse.
    pub symmetric: bool,
}

/// A graph as splitting and auditing see it. Every id is in range.
#[derive(Debug, Clone)]
pub struct View<'a> {
    entities: Vec<Named<'a>>,
    /// Those of the table, by id, then inverses that are in no triple: another relation may have their words.
    relations: Vec<Worded<'a>>,
    /// Relations that say the same the other way round.
    inverses: Vec<(RelationId, RelationId)>,
    triples: &'a [Triple],
}

impl<'a> View<'a> {
    /// A graph from its slices; ids are places in them.
    ///
    /// # Errors
    /// When an id is out of range.
    pub fn new(
        entities: Vec<Named<'a>>,
        relations: Vec<Worded<'a>>,
        triples: &'a [Triple],
    ) -> Result<Self, Refused> {
        let pair = |(id, relation): (u32, &Worded<'_>)| Some((RelationId(id), relation.inverse?));
        let inverses = (0..).zip(&relations).filter_map(pair).collect();
        let view = Self { entities, relations, inverses, triples };
        let known = |relation: RelationId| relation.index() < view.relations.len();
        let strange = |t: &&Triple| {
            t.subject.index().max(t.object.index()) >= view.entities.len() || !known(t.relation)
        };
        let wrong_triple = triples.iter().find(strange).map(|triple| format!("{triple:?}"));
        let wrong_inverse = view.relations.iter().find(|r| r.inverse.is_some_and(|inverse| !known(inverse)));
        match wrong_triple.or(wrong_inverse.map(|relation| format!("{relation:?}"))) {
            None => Ok(view),
            Some(what) => {
                let (entities, relations) = (view.entities.len(), view.relations.len());
                Err(Refused::new(format!(
                    "{what} names an entity or relation that is not among the {entities} entities and {relations} relations"
                )))
            }
        }
    }

    /// The view of a triple table.
    #[must_use]
    pub fn of(graph: &'a Graph) -> Self {
        let place: HashMap<&str, u32> =
            (0..).zip(graph.relations()).map(|(id, r)| (r.key.as_str(), id)).collect();
        let known = |key: &String| place.get(key.as_str()).copied().map(RelationId);
        let worded = |r: &'a Relation| {
            let inverse = r.inverse.as_ref().and_then(known);
            Worded { key: &r.key, text: &r.text, inverse, symmetric: r.symmetric }
        };
        let mut relations: Vec<Worded<'a>> = graph.relations().iter().map(worded).collect();
        let (mut inverses, mut absent) = (Vec::new(), BTreeMap::new());
        for (id, relation) in (0..).zip(graph.relations()) {
            for Inverse { key, text } in &relation.inverses {
                let other = known(key).unwrap_or_else(|| {
                    *absent.entry(key.as_str()).or_insert_with(|| {
                        relations.push(Worded { key, text, inverse: None, symmetric: false });
                        RelationId(dense(relations.len() - 1))
                    })
                });
                inverses.push((RelationId(id), other));
            }
        }
        Self {
            entities: graph.entities().iter().map(|e| Named { key: &e.key, text: &e.text }).collect(),
            relations,
            inverses,
            triples: graph.triples(),
        }
    }

    /// The entities, by id.
    #[must_use]
    pub fn entities(&self) -> &[Named<'a>] {
        &self.entities
    }

    /// Pairs of relations that are declared to say the same the other way round.
    #[must_use]
    pub fn inverses(&self) -> &[(RelationId, RelationId)] {
        &self.inverses
    }

    /// The relations, by id; after those of the table, inverses of them that are in no triple.
    #[must_use]
    pub fn relations(&self) -> &[Worded<'a>] {
        &self.relations
    }

    /// The triples, by row.
    #[must_use]
    pub fn triples(&self) -> &'a [Triple] {
        self.triples
    }

    /// A digest of the keys of the relations and of every triple in the order of rows: tables with the same relations and triples
    /// have the same one, whatever else stands in them.
    #[must_use]
    pub fn digest(&self) -> u128 {
        let entities: Vec<[u8; 16]> = self.entities.iter().map(|e| name(e.key)).collect();
        let relations: Vec<[u8; 16]> = self.relations.iter().map(|r| name(r.key)).collect();
        let mut state = Xxh3::new();
        relations.iter().for_each(|relation| state.update(relation));
        for triple in self.triples {
            state.update(&entities[triple.subject.index()]);
            state.update(&relations[triple.relation.index()]);
            state.update(&entities[triple.object.index()]);
        }
        state.digest128()
    }

    /// The triple of a row in words, for messages.
    #[must_use]
    pub fn words(&self, row: u32) -> String {
        let Some(triple) = self.triples.get(row as usize) else {
            return format!("row {row}");
        };
        let relation = self.relations[triple.relation.index()].key;
        let [subject, object] = [triple.subject, triple.object].map(|id| self.entities[id.index()]);
        format!("{} ({}) {relation} {} ({})", subject.key, subject.text, object.key, object.text)
    }
}

fn name(key: &str) -> [u8; 16] {
    xxh3_128(key.as_bytes()).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::EntityId;
    use crate::table::graph::Parts;

    #[test]
    fn ids_out_of_range_are_refused() {
        let entities = vec![Named { key: "a", text: "A" }];
        let relation = Worded { key: "r", text: "r", inverse: None, symmetric: false };
        let triples = [Triple { subject: EntityId(0), relation: RelationId(0), object: EntityId(1) }];
        let error = View::new(entities.clone(), vec![relation], &triples).unwrap_err().to_string();
        assert!(error.contains("EntityId(1)") && error.contains("1 entities"), "{error}");
        let relation = Worded { inverse: Some(RelationId(3)), ..relation };
        let error = View::new(entities, vec![relation], &[]).unwrap_err().to_string();
        assert!(error.contains("RelationId(3)"), "{error}");
    }

    #[test]
    fn inverses_of_a_table_are_found_by_key_where_they_are_in_it() {
        let relation = |key: &str, inverse: Option<&str>| Relation {
            key: key.to_owned(),
            text: key.to_owned(),
            inverse: inverse.map(str::to_owned),
            inverses: inverse
                .map(|key| Inverse { key: key.to_owned(), text: key.to_owned() })
                .into_iter()
                .collect(),
            symmetric: inverse.is_none(),
            origins: Vec::new(),
        };
        let relations = vec![
            relation("isa", Some("inverse_isa")),
            relation("part_of", Some("whole_of")),
            relation("sib", None),
        ];
        let mut parts = Parts { relations, ..Parts::empty() };
        parts.relations.push(relation("whole_of", Some("part_of")));
        let graph = Graph::new(parts);
        let view = View::of(&graph);
        let told: Vec<_> = view.relations().iter().map(|r| (r.inverse.map(|id| id.0), r.symmetric)).collect();
        // The last is the inverse that is in no triple: another relation might have its words.
        assert_eq!(told, [(None, false), (Some(3), false), (None, true), (Some(1), false), (None, false)]);
        let pairs: Vec<_> = view.inverses().iter().map(|(one, other)| (one.0, other.0)).collect();
        assert_eq!((pairs, view.relations()[4].key), (vec![(0, 4), (1, 3), (3, 1)], "inverse_isa"));
    }
}
