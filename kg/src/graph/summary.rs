//! All measures of a graph in one report.

use serde::{Deserialize, Serialize};

use super::cardinality::{self, Cardinality};
use super::degree::{self, Degrees};
use super::hub::{Crowd, Hub};
use super::length::{self, Lengths};
use super::{component, distance, level, overlap, rank, types};
use crate::Refused;
use crate::table::Graph;

/// What to measure and how finely.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// How many entities to list by highest degree, and by highest PageRank: 0 to 1,000,000.
    ///
    /// Source: ours: because twenty of each fit on a page.
    pub hubs: usize,
    /// PageRank: the damping factor, and when the iteration stops.
    pub rank: rank::Options,
    /// Which entities distances are measured from; all distances of a large graph would take too long.
    pub distance: distance::Options,
}

impl Default for Options {
    fn default() -> Self {
        Self { hubs: 20, rank: rank::Options::default(), distance: distance::Options::default() }
    }
}

/// What a graph is like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// What was asked for.
    pub options: Options,
    /// Entities.
    pub entities: u64,
    /// Relations.
    pub relations: u64,
    /// Triples.
    pub triples: u64,
    /// Triples whose subject is their object.
    pub self_loops: u64,
    /// Triples of each entity.
    pub degrees: degree::Report,
    /// Entities with most triples, the largest first.
    pub hubs: Vec<Hub>,
    /// Entities that hang together.
    pub components: component::Report,
    /// How PageRank was reached, and who is highest.
    pub rank: Ranking,
    /// How far entities are from each other.
    pub distances: distance::Report,
    /// What sources have in common.
    pub overlap: overlap::Report,
    /// Each relation, sorted by key.
    pub cardinalities: Vec<OfRelation>,
    /// Entities by type.
    pub types: types::Report,
    /// Rows by licence level.
    pub levels: level::Report,
    /// What limits cut, if lengths were given.
    pub lengths: Option<length::Report>,
}

/// PageRank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranking {
    /// Rounds that were needed.
    pub rounds: u32,
    /// Change of all ranks together in the last round.
    pub change: f64,
    /// Entities of highest rank, the highest first.
    pub top: Vec<Hub>,
}

/// A relation and what it joins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OfRelation {
    /// Its key.
    pub relation: String,
    /// What it joins.
    #[serde(flatten)]
    pub cardinality: Cardinality,
}

/// Measures `graph`; with `lengths` also what limits cut.
///
/// # Errors
/// When an option is invalid, the lengths are of another graph, or memory ends.
pub fn summarize(
    graph: &Graph,
    options: &Options,
    lengths: Option<&Lengths<'_>>,
) -> Result<Summary, Refused> {
    check(graph, options, lengths)?;
    let (entities, relations, triples) = (graph.entities(), graph.relations(), graph.triples());
    let degrees = Degrees::of(entities.len(), triples);
    let ranks = rank::pagerank(entities.len(), triples, &options.rank);
    let crowd = Crowd { entities, degrees: &degrees, ranks: &ranks.values };
    let cardinalities = cardinality::of(relations.len(), triples)?;
    Ok(Summary {
        options: *options,
        entities: entities.len() as u64,
        relations: relations.len() as u64,
        triples: triples.len() as u64,
        self_loops: triples.iter().filter(|triple| triple.subject == triple.object).count() as u64,
        degrees: degrees.report(),
        hubs: crowd.largest(options.hubs),
        components: component::report(entities.len(), triples),
        rank: Ranking { rounds: ranks.rounds, change: ranks.change, top: crowd.highest(options.hubs) },
        distances: distance::report(entities, triples, &options.distance),
        overlap: overlap::report(graph),
        cardinalities: relations
            .iter()
            .zip(cardinalities)
            .map(|(relation, cardinality)| OfRelation { relation: relation.key.clone(), cardinality })
            .collect(),
        types: types::report(entities),
        levels: level::report(graph),
        lengths: lengths.map(|lengths| length::report(triples, lengths)),
    })
}

fn check(graph: &Graph, options: &Options, lengths: Option<&Lengths<'_>>) -> Result<(), Refused> {
    if !(0.0..1.0).contains(&options.rank.damping) {
        let found = options.rank.damping;
        let why = format!("rank.damping is {found}; expected a number from 0 to below 1, such as 0.85");
        return Err(Refused::new(why));
    }
    let Some(lengths) = lengths else { return Ok(()) };
    let counts = [
        ("entities", graph.entities().len(), lengths.entities.len()),
        ("relations", graph.relations().len(), lengths.relations.len()),
    ];
    match counts.into_iter().find(|(_, expected, found)| expected != found) {
        Some((what, expected, found)) => Err(Refused::new(format!(
            "the graph has {expected} {what}, but {found} lengths were given; measure the names of this graph"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Small graphs for the tests of the measures.

    use crate::table::{Entity, EntityId, RelationId, Triple};
    use xxhash_rust::xxh3::xxh3_64_with_seed;

    /// Sorted, different triples of these numbers.
    pub(crate) fn triples(numbers: &[(u32, u32, u32)]) -> Vec<Triple> {
        let mut triples: Vec<Triple> = numbers
            .iter()
            .map(|&(subject, relation, object)| Triple {
                subject: EntityId(subject),
                relation: RelationId(relation),
                object: EntityId(object),
            })
            .collect();
        triples.sort_unstable();
        triples.dedup();
        triples
    }

    /// Triples of one relation that `seed` chooses.
    pub(crate) fn random(seed: u64, entities: usize, links: usize) -> Vec<Triple> {
        let draw = |i: usize| {
            let place = xxh3_64_with_seed(&i.to_le_bytes(), seed) % entities as u64;
            u32::try_from(place).unwrap()
        };
        let numbers: Vec<_> = (0..links).map(|i| (draw(2 * i), 0, draw(2 * i + 1))).collect();
        triples(&numbers)
    }

    /// Entities with the keys k00000, k00001, ...
    pub(crate) fn entities(count: usize) -> Vec<Entity> {
        let entity = |i: usize| Entity {
            key: format!("k{i:05}"),
            text: format!("entity {i}"),
            level: None,
            types: Vec::new(),
            same_as: Vec::new(),
            origins: vec!["s".to_owned()],
        };
        (0..count).map(entity).collect()
    }
}
