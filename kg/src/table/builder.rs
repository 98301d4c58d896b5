//! Gathers what sources state and merges it into one graph. Knows no source and no file.

use std::collections::{BTreeSet, HashMap};

use super::graph::{Graph, Parts};
use super::id::{EntityId, RelationId, dense};
use super::row::{Entity, Origin, Relation, SemanticType, Triple};

/// An entity while the graph is being built; not its final id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DraftEntity(u32);

/// A relation while the graph is being built; not its final id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DraftRelation(u32);

/// An origin while the graph is being built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DraftOrigin(u32);

/// The place where a source's triples begin, for [`Builder::settle`].
#[derive(Debug, Clone, Copy)]
pub struct Mark(usize);

/// How many different things a source has stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Distinct {
    /// Different (subject, relation, object).
    pub triples: u64,
    /// Different subjects.
    pub subjects: u64,
    /// Different objects.
    pub objects: u64,
}

/// A graph in the making. After an error of a source it holds a part of that source: throw it away.
#[derive(Debug)]
pub struct Builder {
    entities: Vec<Draft>,
    entity_of: HashMap<String, u32>,
    relations: Vec<Draft>,
    relation_of: HashMap<String, u32>,
    origins: Vec<Origin>,
    rows: Vec<Row>,
}

/// An entity or a relation; relations have no types.
#[derive(Debug)]
struct Draft {
    key: String,
    text: String,
    types: BTreeSet<SemanticType>,
    sources: BTreeSet<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    subject: u32,
    relation: u32,
    object: u32,
    origin: u32,
}

impl Row {
    fn triple(self) -> (u32, u32, u32) {
        (self.subject, self.relation, self.object)
    }
}

#[allow(clippy::new_without_default, reason = "an empty graph is a beginning, no default")]
impl Builder {
    /// Starts an empty graph.
    #[must_use]
    pub fn new() -> Self {
        Self {
            entities: Vec::new(),
            entity_of: HashMap::new(),
            relations: Vec::new(),
            relation_of: HashMap::new(),
            origins: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// The entity `key`, mentioned by `source`. `text` names it if no source did before.
    pub fn entity(&mut self, source: &'static str, key: &str, text: &str) -> DraftEntity {
        DraftEntity(draft(&mut self.entities, &mut self.entity_of, source, (key, text)))
    }

    /// Says that an entity is of a type, once or more often.
    pub fn add_type(&mut self, entity: DraftEntity, semantic_type: SemanticType) {
        self.entities[entity.0 as usize].types.insert(semantic_type);
    }

    /// The relation `key`, used by `source`. `text` words it if no source did before.
    pub fn relation(&mut self, source: &'static str, key: &str, text: &str) -> DraftRelation {
        DraftRelation(draft(&mut self.relations, &mut self.relation_of, source, (key, text)))
    }

    /// An origin for one triple or many. A source asks once for each of its vocabularies, not for each row.
    pub fn origin(&mut self, origin: Origin) -> DraftOrigin {
        self.origins.push(origin);
        DraftOrigin(dense(self.origins.len() - 1))
    }

    /// States a triple; the same one may come again.
    pub fn triple(
        &mut self,
        subject: DraftEntity,
        relation: DraftRelation,
        object: DraftEntity,
        origin: DraftOrigin,
    ) {
        self.rows.push(Row { subject: subject.0, relation: relation.0, object: object.0, origin: origin.0 });
    }

    /// Where the next triple will stand.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark(self.rows.len())
    }

    /// Merges the identical rows since `mark` to save memory, and counts what is different among them.
    pub fn settle(&mut self, mark: Mark) -> Distinct {
        let rows = &mut self.rows[mark.0..];
        rows.sort_unstable();
        let different = |a: &[Row]| a[0].triple() != a[1].triple();
        let ends = |same: fn(&Row, &Row) -> bool| rows.chunk_by(same).count() as u64;
        let mut objects: Vec<u32> = rows.iter().map(|row| row.object).collect();
        objects.sort_unstable();
        objects.dedup();
        let distinct = Distinct {
            triples: u64::from(!rows.is_empty())
                + rows.windows(2).filter(|pair| different(pair)).count() as u64,
            subjects: ends(|a, b| a.subject == b.subject),
            objects: objects.len() as u64,
        };
        let mut fresh = self.rows.split_off(mark.0);
        fresh.dedup();
        self.rows.append(&mut fresh);
        distinct
    }

    /// The finished graph: entities and relations in the order of their keys, triples sorted, equal ones merged with their origins
    /// joined. If one place states a triple with several strengths, the strongest stands.
    #[must_use]
    pub fn finish(mut self) -> Graph {
        drop((self.entity_of, self.relation_of));
        let entity_id = sort_by_key(&mut self.entities);
        let relation_id = sort_by_key(&mut self.relations);
        let (origins, origin_id) = sort_origins(&self.origins);
        for row in &mut self.rows {
            *row = Row {
                subject: entity_id[row.subject as usize],
                relation: relation_id[row.relation as usize],
                object: entity_id[row.object as usize],
                origin: origin_id[row.origin as usize],
            };
        }
        self.rows.sort_unstable();
        self.rows.dedup_by(|next, kept| {
            let place = |row: &Row| &origins[row.origin as usize];
            next.triple() == kept.triple() && place(next).same_place(place(kept))
        });
        let mut parts = Parts {
            entities: self.entities.into_iter().map(entity).collect(),
            relations: self.relations.into_iter().map(relation).collect(),
            triples: Vec::new(),
            origins,
            starts: Vec::new(),
            origin_of: Vec::with_capacity(self.rows.len()),
        };
        for same in self.rows.chunk_by(|a, b| a.triple() == b.triple()) {
            let (subject, relation, object) = same[0].triple();
            parts.triples.push(Triple {
                subject: EntityId(subject),
                relation: RelationId(relation),
                object: EntityId(object),
            });
            parts.starts.push(parts.origin_of.len());
            parts.origin_of.extend(same.iter().map(|row| row.origin));
        }
        parts.starts.push(parts.origin_of.len());
        Graph::new(parts)
    }
}

fn draft(
    drafts: &mut Vec<Draft>,
    number_of: &mut HashMap<String, u32>,
    source: &'static str,
    (key, text): (&str, &str),
) -> u32 {
    let number = number_of.get(key).copied().unwrap_or_else(|| {
        let number = dense(drafts.len());
        number_of.insert(key.to_owned(), number);
        drafts.push(Draft {
            key: key.to_owned(),
            text: text.to_owned(),
            types: BTreeSet::new(),
            sources: BTreeSet::new(),
        });
        number
    });
    drafts[number as usize].sources.insert(source);
    number
}

/// Sorts the drafts and returns the new number of each old one.
fn sort_by_key(drafts: &mut [Draft]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..dense(drafts.len())).collect();
    order.sort_unstable_by(|&a, &b| drafts[a as usize].key.cmp(&drafts[b as usize].key));
    drafts.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    inverse(&order)
}

fn sort_origins(origins: &[Origin]) -> (Vec<Origin>, Vec<u32>) {
    let mut order: Vec<u32> = (0..dense(origins.len())).collect();
    order.sort_by(|&a, &b| origins[a as usize].order(&origins[b as usize]));
    let number = inverse(&order);
    (order.iter().map(|&old| origins[old as usize].clone()).collect(), number)
}

fn inverse(order: &[u32]) -> Vec<u32> {
    let mut number = vec![0; order.len()];
    for (new, &old) in order.iter().enumerate() {
        number[old as usize] = dense(new);
    }
    number
}

fn entity(draft: Draft) -> Entity {
    let origins = draft.sources.into_iter().map(str::to_owned).collect();
    Entity { key: draft.key, text: draft.text, types: draft.types.into_iter().collect(), origins }
}

fn relation(draft: Draft) -> Relation {
    let origins = draft.sources.into_iter().map(str::to_owned).collect();
    Relation { key: draft.key, text: draft.text, origins }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(source: &str, weight: Option<f64>) -> Origin {
        Origin { source: source.to_owned(), vocabulary: None, weight, count: None }
    }

    fn state(builder: &mut Builder, source: &'static str, names: [&str; 3], weight: Option<f64>) {
        let subject = builder.entity(source, names[0], &names[0].to_uppercase());
        let relation = builder.relation(source, names[1], names[1]);
        let object = builder.entity(source, names[2], names[2]);
        let origin = builder.origin(origin(source, weight));
        builder.triple(subject, relation, object, origin);
    }

    fn weights(graph: &Graph, triple: usize) -> Vec<(&str, Option<f64>)> {
        graph.origins(triple).map(|origin| (origin.source.as_str(), origin.weight)).collect()
    }

    #[test]
    fn ids_follow_keys_and_triples_are_sorted() {
        let mut builder = Builder::new();
        state(&mut builder, "b", ["z", "r2", "m"], None);
        state(&mut builder, "b", ["a", "r1", "z"], None);
        state(&mut builder, "b", ["a", "r1", "m"], None);
        let graph = builder.finish();
        let keys: Vec<&str> = graph.entities().iter().map(|e| e.key.as_str()).collect();
        assert_eq!(keys, ["a", "m", "z"]);
        let triples: Vec<_> =
            graph.triples().iter().map(|t| (t.subject.0, t.relation.0, t.object.0)).collect();
        assert_eq!(triples, [(0, 0, 1), (0, 0, 2), (2, 1, 1)]);
        assert_eq!(graph.relations()[1].key, "r2");
    }

    #[test]
    fn the_order_of_statements_does_not_matter() {
        let statements = [["z", "r2", "m"], ["a", "r1", "z"], ["a", "r1", "m"], ["z", "r2", "m"]];
        let build = |order: [usize; 4]| {
            let mut builder = Builder::new();
            order.iter().for_each(|&i| state(&mut builder, "s", statements[i], Some(i as f64)));
            let graph = builder.finish();
            let origins: Vec<_> = (0..3).map(|t| graph.origins(t).cloned().collect::<Vec<_>>()).collect();
            (graph.entities().to_vec(), graph.triples().to_vec(), origins)
        };
        assert_eq!(build([0, 1, 2, 3]), build([3, 2, 1, 0]));
    }

    #[test]
    fn sources_are_joined_and_the_strongest_of_one_place_stands() {
        let mut builder = Builder::new();
        state(&mut builder, "two", ["a", "r", "b"], Some(0.5));
        state(&mut builder, "one", ["a", "r", "b"], None);
        state(&mut builder, "two", ["a", "r", "b"], Some(0.75));
        let graph = builder.finish();
        assert_eq!(graph.triples().len(), 1);
        assert_eq!(weights(&graph, 0), [("one", None), ("two", Some(0.75))]);
        assert_eq!(graph.entities()[0].origins, ["one", "two"]);
        assert_eq!(graph.entities()[0].text, "A");
    }

    #[test]
    fn the_first_source_gives_the_text() {
        let mut builder = Builder::new();
        builder.entity("one", "name:fever", "Fever");
        builder.entity("two", "name:fever", "fever");
        assert_eq!(builder.finish().entities()[0].text, "Fever");
    }

    #[test]
    fn settle_counts_one_source_and_merges_only_there() {
        let mut builder = Builder::new();
        assert_eq!(builder.settle(builder.mark()), Distinct { triples: 0, subjects: 0, objects: 0 });
        state(&mut builder, "one", ["a", "r", "b"], None);
        let mark = builder.mark();
        let (a, b) = (builder.entity("two", "a", ""), builder.entity("two", "b", ""));
        let (r, o) = (builder.relation("two", "r", ""), builder.origin(origin("two", None)));
        for (subject, object) in [(a, b), (b, a), (a, b), (a, a)] {
            builder.triple(subject, r, object, o);
        }
        assert_eq!(builder.settle(mark), Distinct { triples: 3, subjects: 2, objects: 2 });
        assert_eq!(builder.rows.len(), 4, "one of the five rows was a repetition");
    }
}
