//! How many tokens names have, and what a limit cuts.

use serde::{Deserialize, Serialize};

use super::distribution::{Distribution, share};
use crate::table::Triple;

/// Lengths of all names in tokens, before cutting.
#[derive(Debug, Clone, Copy)]
pub struct Lengths<'a> {
    /// Tokens of each entity's text.
    pub entities: &'a [u32],
    /// Tokens of each relation's text.
    pub relations: &'a [u32],
    /// Most tokens of an entity (KIMERA: 100).
    pub node_tokens: u32,
    /// Most tokens of a relation (KIMERA: 10).
    pub edge_tokens: u32,
}

/// What the limits cut.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Entities.
    pub entities: Cut,
    /// Relations.
    pub relations: Cut,
    /// Triples of which any text is cut.
    pub triples_cut: u64,
    /// Their share of all triples.
    pub triples_cut_share: f64,
}

/// What a limit cuts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cut {
    /// Most tokens.
    pub limit: u32,
    /// Texts that are longer.
    pub cut: u64,
    /// Their share of all texts.
    pub cut_share: f64,
    /// How lengths are spread.
    pub lengths: Distribution,
    /// Texts by length, the shortest first.
    pub counts: Vec<Length>,
}

/// Texts of a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Length {
    /// Tokens.
    pub tokens: u32,
    /// Texts.
    pub texts: u64,
}

/// What the limits cut from the texts of `triples`. The lengths are as many as the graph has entities and relations.
#[must_use]
pub fn report(triples: &[Triple], lengths: &Lengths<'_>) -> Report {
    let long_entity: Vec<bool> =
        lengths.entities.iter().map(|&tokens| tokens > lengths.node_tokens).collect();
    let long_relation: Vec<bool> =
        lengths.relations.iter().map(|&tokens| tokens > lengths.edge_tokens).collect();
    let cut = |triple: &&Triple| {
        long_entity[triple.subject.index()]
            || long_entity[triple.object.index()]
            || long_relation[triple.relation.index()]
    };
    let triples_cut = triples.iter().filter(cut).count() as u64;
    Report {
        entities: Cut::of(lengths.entities, lengths.node_tokens),
        relations: Cut::of(lengths.relations, lengths.edge_tokens),
        triples_cut,
        triples_cut_share: share(triples_cut, triples.len() as u64),
    }
}

impl Cut {
    fn of(tokens: &[u32], limit: u32) -> Self {
        let mut sorted = tokens.to_vec();
        sorted.sort_unstable();
        let cut = (sorted.len() - sorted.partition_point(|&tokens| tokens <= limit)) as u64;
        let counts = sorted.chunk_by(|a, b| a == b);
        Self {
            limit,
            cut,
            cut_share: share(cut, sorted.len() as u64),
            counts: counts.map(|same| Length { tokens: same[0], texts: same.len() as u64 }).collect(),
            lengths: Distribution::of(sorted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::summary::testing::triples;

    #[test]
    fn a_triple_is_cut_when_any_of_its_texts_is() {
        let all = triples(&[(0, 0, 1), (1, 0, 2), (1, 1, 1), (2, 1, 0)]);
        let lengths =
            Lengths { entities: &[101, 100, 3], relations: &[10, 11], node_tokens: 100, edge_tokens: 10 };
        let found = report(&all, &lengths);
        assert_eq!((found.entities.cut, found.relations.cut, found.triples_cut), (1, 1, 3));
        assert!((found.triples_cut_share - 0.75).abs() < 1e-15);
        assert!((found.entities.cut_share - 1.0 / 3.0).abs() < 1e-15);
        let counts: Vec<_> = found.entities.counts.iter().map(|count| (count.tokens, count.texts)).collect();
        assert_eq!(counts, [(3, 1), (100, 1), (101, 1)]);
    }
}
