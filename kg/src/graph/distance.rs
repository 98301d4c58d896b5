//! How far entities are from each other, in triples, whatever the direction.
//!
//! From 64 entities at a time (Then et al. 2014, "The More the Merrier"): a bit for each of them travels over the graph, and only
//! entities that a bit newly reached pass bits on. The work is at most 64 breadth-first searches, however deep the graph is.

use rayon::prelude::{IntoParallelRefIterator, ParallelIterator, ParallelSlice};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::adjacency::Adjacency;
use super::distribution::share;
use crate::table::{Entity, Triple};

/// Entities that travel together, one bit each.
const TOGETHER: usize = 64;

/// Distances that are counted one by one; farther ones are counted together.
const LISTED: usize = 64;

/// From where to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// Seed of the sample of entities that distances are measured from: those whose keys have the smallest hashes under this seed.
    ///
    /// Source: ours: because any number does.
    pub seed: u64,
    /// How many entities to measure distances from, up to 1,000,000. With at least as many as the graph has, all distances are measured.
    ///
    /// Source: ours: because distances are searched from 64 entities at a time: this takes four passes over the graph.
    pub sample: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 1, sample: 256 }
    }
}

/// Distances from a sample of the entities that have a neighbour to all entities that can be reached from them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Entities that were measured from.
    pub sampled: u64,
    /// Pairs of a sampled entity and another that can be reached from it.
    pub reached: u64,
    /// Pairs of a sampled entity and another that cannot.
    pub unreachable: u64,
    /// Mean distance of the pairs that can be reached.
    pub mean: f64,
    /// The distance within which 90 % of these pairs lie, interpolated between whole distances (Leskovec et al. 2005).
    pub effective_diameter: f64,
    /// The largest distance that was found.
    pub longest: u64,
    /// Pairs at distance 1, 2, 3, ...; at most 64 of them.
    pub pairs: Vec<u64>,
    /// Pairs that are farther apart.
    pub farther: u64,
}

/// The distances between `entities`.
#[must_use]
pub fn report(entities: &[Entity], triples: &[Triple], options: &Options) -> Report {
    let links = triples.iter().filter(|triple| triple.subject != triple.object);
    let both = links.flat_map(|t| [(t.subject.0, t.object.0), (t.object.0, t.subject.0)]);
    let neighbours = Adjacency::new(entities.len(), both);
    let sample = sample(entities, &neighbours, options);
    let counted: Vec<Vec<u64>> =
        sample.par_chunks(TOGETHER).map(|sources| search(&neighbours, sources)).collect();
    let mut at = vec![0u64; counted.iter().map(Vec::len).max().unwrap_or(0)];
    for counts in &counted {
        at.iter_mut().zip(counts).for_each(|(all, some)| *all += some);
    }
    summed(sample.len() as u64, entities.len() as u64, &at)
}

/// The entities to measure from: they do not depend on what else is in the graph, unless it comes before them.
fn sample(entities: &[Entity], neighbours: &Adjacency, options: &Options) -> Vec<u32> {
    let with_neighbour: Vec<u32> = (0..crate::table::id::dense(entities.len()))
        .filter(|&id| !neighbours.of(id as usize).is_empty())
        .collect();
    let hash = |&id: &u32| (xxh3_64_with_seed(entities[id as usize].key.as_bytes(), options.seed), id);
    let mut hashed: Vec<(u64, u32)> = with_neighbour.par_iter().map(hash).collect();
    hashed.sort_unstable();
    hashed.iter().take(options.sample).map(|&(_, id)| id).collect()
}

/// The sources whose bits are at an entity; side by side, because they are looked at together.
#[derive(Clone, Copy, Default)]
struct Bits {
    /// Were here before or are here now.
    seen: u64,
    /// Came in this round and go on in the next.
    travelling: u64,
    /// Will come in the next round.
    coming: u64,
}

/// Pairs at distance 1, 2, 3, ... from at most 64 sources.
fn search(neighbours: &Adjacency, sources: &[u32]) -> Vec<u64> {
    let mut at = vec![Bits::default(); neighbours.nodes()];
    for (place, &source) in sources.iter().enumerate() {
        let bit = 1 << place;
        at[source as usize] = Bits { seen: bit, travelling: bit, coming: 0 };
    }
    let (mut reached, mut next) = (sources.to_vec(), Vec::new());
    let mut counts = Vec::new();
    loop {
        for &from in &reached {
            let travelling = at[from as usize].travelling;
            for &to in neighbours.of(from as usize) {
                let bits = &mut at[to as usize];
                let fresh = travelling & !bits.seen;
                if fresh != 0 && bits.coming == 0 {
                    next.push(to);
                }
                bits.coming |= fresh;
            }
        }
        if next.is_empty() {
            return counts;
        }
        let mut pairs = 0;
        for &to in &next {
            let bits = &mut at[to as usize];
            pairs += u64::from(bits.coming.count_ones());
            *bits = Bits { seen: bits.seen | bits.coming, travelling: bits.coming, coming: 0 };
        }
        counts.push(pairs);
        std::mem::swap(&mut reached, &mut next);
        next.clear();
    }
}

fn summed(sampled: u64, entities: u64, at: &[u64]) -> Report {
    let reached: u64 = at.iter().sum();
    let weighted: u64 = at.iter().zip(1..).map(|(pairs, distance)| pairs * distance).sum();
    let listed = at.len().min(LISTED);
    Report {
        sampled,
        reached,
        unreachable: sampled * entities.saturating_sub(1) - reached,
        mean: share(weighted, reached),
        effective_diameter: within(at, reached as f64 * 0.9),
        longest: at.len() as u64,
        pairs: at[..listed].to_vec(),
        farther: at[listed..].iter().sum(),
    }
}

/// The distance within which `wanted` pairs lie.
fn within(at: &[u64], wanted: f64) -> f64 {
    let mut before = 0.0;
    for (distance, &pairs) in at.iter().enumerate() {
        let pairs = pairs as f64;
        if before + pairs >= wanted {
            return distance as f64 + (wanted - before) / pairs;
        }
        before += pairs;
    }
    at.len() as f64
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::graph::summary::testing::{entities, random, triples};

    const ALL: Options = Options { seed: 1, sample: usize::MAX };

    /// Breadth-first search from every entity.
    fn plain(count: usize, triples: &[Triple]) -> Vec<u64> {
        let mut at = Vec::new();
        for source in 0..count {
            let mut distance = vec![usize::MAX; count];
            let mut queue = VecDeque::from([source]);
            distance[source] = 0;
            while let Some(from) = queue.pop_front() {
                for triple in triples {
                    for (one, other) in [(triple.subject, triple.object), (triple.object, triple.subject)] {
                        if one.index() == from && distance[other.index()] == usize::MAX {
                            distance[other.index()] = distance[from] + 1;
                            at.resize(at.len().max(distance[from] + 1), 0);
                            at[distance[from]] += 1;
                            queue.push_back(other.index());
                        }
                    }
                }
            }
        }
        at
    }

    #[test]
    fn distances_are_those_of_plain_searches() {
        for seed in 0..12u8 {
            let (count, links) = (20 + usize::from(seed) * 17, 25 + usize::from(seed) * 12);
            let graph = random(seed.into(), count, links);
            let found = report(&entities(count), &graph, &ALL);
            assert_eq!(found.pairs, plain(count, &graph), "seed {seed}");
            assert_eq!(found.reached + found.unreachable, found.sampled * (count as u64 - 1));
        }
    }

    #[test]
    fn a_long_chain_is_measured_to_its_end() {
        let chain: Vec<(u32, u32, u32)> = (0..2_999).map(|i| (i, 0, i + 1)).collect();
        let found = report(&entities(3_000), &triples(&chain), &ALL);
        assert_eq!((found.longest, found.sampled, found.unreachable), (2_999, 3_000, 0));
        assert_eq!(found.pairs.len(), 64);
        assert_eq!(found.pairs.iter().sum::<u64>() + found.farther, 3_000 * 2_999);
    }

    #[test]
    fn ninety_percent_lie_within_the_effective_diameter() {
        assert!((within(&[50, 50], 90.0) - 1.8).abs() < 1e-12);
        assert!((within(&[90, 10], 90.0) - 1.0).abs() < 1e-12);
        assert_eq!(within(&[], 0.0), 0.0);
    }

    #[test]
    fn the_sample_is_a_function_of_seed_and_keys() {
        let graph = random(3, 500, 2_000);
        let some = |seed, threads| {
            let options = Options { seed, sample: 100 };
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| report(&entities(500), &graph, &options))
        };
        assert_eq!(some(1, 1), some(1, 5));
        assert_eq!(some(1, 1).sampled, 100);
        assert_ne!(some(1, 1).pairs, some(2, 1).pairs);
    }

    #[test]
    fn nothing_is_no_distance_from_nothing() {
        let found = report(&entities(3), &triples(&[(1, 0, 1)]), &ALL);
        assert_eq!((found.sampled, found.reached, found.unreachable, found.longest), (0, 0, 0, 0));
    }
}
