//! Between which semantic types the triples of a relation run, and which triples do not.
//!
//! Every triple whose ends both have types shows one pair of types for each type of its subject with each of its object, and counts in
//! full for each of these pairs. A pair belongs to the **signature** of the relation when its share of these typed triples is at least
//! `min_share`, unless it is the exchange of a pair that is far more frequent (at most `max_reversed` of that one's triples). A triple
//! then is
//!
//! - `oriented` when one of its pairs is in the signature and none of the exchanged pairs is: the types tell subject from object,
//! - `either_way` when both are: the types cannot tell,
//! - `reversed` when only an exchanged pair is: it looks like a turned triple,
//! - `rare` when none is,
//! - `untyped` when an end has no type.
//!
//! For a symmetric relation a pair and its exchange are the same: there nothing is reversed.

use std::collections::{BTreeMap, BTreeSet};

use ahash::AHashMap;
use serde::{Deserialize, Serialize};

use super::Options;
use crate::Refused;
use crate::graph::distribution::share;
use crate::graph::tally;
use crate::graph::types::label;
use crate::table::id::dense;
use crate::table::{Entity, Graph, Relation, SemanticType, Triple};

/// Types of one entity that are looked at; more would let a small file make a large table of pairs. UMLS has at most 5.
const TYPES: usize = 16;

/// What the types say of one triple.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// They tell subject from object, and it is as it should be.
    Oriented,
    /// They are lawful both ways round.
    EitherWay,
    /// They are lawful only the other way round.
    Reversed,
    /// They are lawful neither way.
    Rare,
    /// An end has none.
    Untyped,
}

/// Triples of a relation by what their types say; they sum to its triples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fits {
    /// The types tell subject from object, and it is as it should be.
    pub oriented: u64,
    /// The types are lawful both ways round.
    pub either_way: u64,
    /// The types are lawful only the other way round.
    pub reversed: u64,
    /// The types are lawful neither way.
    pub rare: u64,
    /// An end has no type.
    pub untyped: u64,
}

impl Fits {
    fn add(&mut self, fit: Fit, triples: u64) {
        match fit {
            Fit::Oriented => self.oriented += triples,
            Fit::EitherWay => self.either_way += triples,
            Fit::Reversed => self.reversed += triples,
            Fit::Rare => self.rare += triples,
            Fit::Untyped => self.untyped += triples,
        }
    }

    /// Triples whose ends both have types.
    #[must_use]
    pub fn typed(&self) -> u64 {
        self.oriented + self.either_way + self.reversed + self.rare
    }
}

/// A pair of types of the signature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TypePair {
    /// Type of the subject: `Pharmacologic Substance (T121)`.
    pub subject: String,
    /// Type of the object.
    pub object: String,
    /// Triples that show the pair.
    pub triples: u64,
    /// Their share of the relation's typed triples.
    pub share: f64,
}

/// What the types say of one relation.
#[derive(Debug, Clone, PartialEq)]
pub struct Signature {
    /// Its pairs, the most frequent first.
    pub pairs: Vec<TypePair>,
    /// Its triples.
    pub fits: Fits,
}

/// What the types say of all relations and of each triple.
#[derive(Debug)]
pub struct Signatures {
    /// By relation.
    pub relations: Vec<Signature>,
    set_of: Vec<u32>,
    fit_of: AHashMap<[u32; 3], Fit>,
}

impl Signatures {
    /// What the types say of the triple at place `row` of `graph`, which is the graph that the signatures are of.
    #[must_use]
    pub fn fit(&self, graph: &Graph, row: usize) -> Fit {
        let triple = graph.triples()[row];
        let sets = [self.set_of[triple.subject.index()], self.set_of[triple.object.index()]];
        self.fit_of.get(&[triple.relation.0, sets[0], sets[1]]).copied().unwrap_or(Fit::Untyped)
    }
}

/// The signatures of all relations of `graph`.
///
/// # Errors
/// When memory ends.
pub fn signatures(graph: &Graph, options: &Options) -> Result<Signatures, Refused> {
    let kinds = Kinds::of(graph.entities());
    let sets = |end: fn(&Triple) -> usize| -> Vec<u32> {
        graph.triples().iter().map(|triple| kinds.set_of[end(triple)]).collect()
    };
    let relations = graph.triples().iter().map(|triple| triple.relation.0).collect();
    let groups = tally::rows([relations, sets(|t| t.subject.index()), sets(|t| t.object.index())])?;
    let mut by_relation: Vec<&[Group]> = vec![&[]; graph.relations().len()];
    for same in groups.chunk_by(|a, b| a.0[0] == b.0[0]) {
        by_relation[same[0].0[0] as usize] = same;
    }
    let mut fit_of = AHashMap::with_capacity(groups.len());
    let mut relations = Vec::with_capacity(by_relation.len());
    for (relation, groups) in graph.relations().iter().zip(by_relation) {
        let pairs = Pairs::of(groups, &kinds, relation);
        let lawful = pairs.lawful(options);
        let mut fits = Fits::default();
        for (group, triples) in groups {
            let fit = fit(&kinds.pairs(*group, relation), &lawful);
            fits.add(fit, *triples);
            fit_of.insert(*group, fit);
        }
        relations.push(Signature { pairs: pairs.listed(&lawful, &kinds), fits });
    }
    Ok(Signatures { relations, set_of: kinds.set_of, fit_of })
}

/// Relation, set of the subject's types, set of the object's types; and the triples that have them.
type Group = ([u32; 3], u64);

fn fit(pairs: &[(u32, u32)], lawful: &BTreeSet<(u32, u32)>) -> Fit {
    let forward = pairs.iter().any(|pair| lawful.contains(pair));
    let backward = pairs.iter().any(|&(subject, object)| lawful.contains(&(object, subject)));
    match (pairs.is_empty(), forward, backward) {
        (true, _, _) => Fit::Untyped,
        (_, true, false) => Fit::Oriented,
        (_, true, true) => Fit::EitherWay,
        (_, false, true) => Fit::Reversed,
        (_, false, false) => Fit::Rare,
    }
}

/// The different types and sets of types; numbers follow the sorted types.
struct Kinds<'a> {
    types: Vec<&'a SemanticType>,
    sets: Vec<Vec<u32>>,
    set_of: Vec<u32>,
}

impl<'a> Kinds<'a> {
    fn of(entities: &'a [Entity]) -> Self {
        // A role is the column in which a source has an entity: it would prove the column by itself.
        let looked_at = |entity: &'a Entity| {
            entity.types.iter().filter(|semantic_type| !semantic_type.is_role()).take(TYPES)
        };
        let types: BTreeSet<&SemanticType> = entities.iter().flat_map(looked_at).collect();
        let types: Vec<&SemanticType> = types.into_iter().collect();
        let (mut sets, mut number_of) = (Vec::new(), AHashMap::new());
        let set_of = entities.iter().map(|entity| {
            let place = |semantic_type| types.binary_search(&semantic_type).map_or(0, dense);
            let mut set: Vec<u32> = looked_at(entity).map(place).collect();
            set.sort_unstable();
            set.dedup();
            *number_of.entry(set).or_insert_with_key(|set| {
                sets.push(set.clone());
                dense(sets.len() - 1)
            })
        });
        let set_of = set_of.collect();
        Self { types, sets, set_of }
    }

    /// The pairs of types that triples of a group show; none if an end has no type.
    fn pairs(&self, [_, subjects, objects]: [u32; 3], relation: &Relation) -> Vec<(u32, u32)> {
        let (subjects, objects) = (&self.sets[subjects as usize], &self.sets[objects as usize]);
        let all = subjects.iter().flat_map(|&subject| objects.iter().map(move |&object| (subject, object)));
        let mut pairs: Vec<_> = all
            .map(|(one, other)| if relation.symmetric && other < one { (other, one) } else { (one, other) })
            .collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }
}

/// The pairs of one relation.
struct Pairs {
    triples: BTreeMap<(u32, u32), u64>,
    typed: u64,
}

impl Pairs {
    fn of(groups: &[Group], kinds: &Kinds<'_>, relation: &Relation) -> Self {
        let mut found = Self { triples: BTreeMap::new(), typed: 0 };
        for (group, triples) in groups {
            let pairs = kinds.pairs(*group, relation);
            found.typed += if pairs.is_empty() { 0 } else { *triples };
            for pair in pairs {
                *found.triples.entry(pair).or_insert(0) += triples;
            }
        }
        found
    }

    fn lawful(&self, options: &Options) -> BTreeSet<(u32, u32)> {
        let frequent = |triples: u64| share(triples, self.typed) >= options.min_share;
        let turned = |(subject, object): (u32, u32), triples: u64| {
            let exchanged = self.triples.get(&(object, subject)).copied().unwrap_or(0);
            exchanged > triples && share(triples, exchanged) <= options.max_reversed
        };
        let lawful = self.triples.iter().filter(|&(&pair, &count)| frequent(count) && !turned(pair, count));
        lawful.map(|(&pair, _)| pair).collect()
    }

    fn listed(&self, lawful: &BTreeSet<(u32, u32)>, kinds: &Kinds<'_>) -> Vec<TypePair> {
        let mut pairs: Vec<_> =
            lawful.iter().map(|pair| (self.triples.get(pair).copied().unwrap_or(0), *pair)).collect();
        pairs.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        let name = |number: u32| label(kinds.types[number as usize]);
        let pair = |(triples, (subject, object))| TypePair {
            subject: name(subject),
            object: name(object),
            triples,
            share: share(triples, self.typed),
        };
        pairs.into_iter().map(pair).collect()
    }
}
