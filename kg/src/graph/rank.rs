//! PageRank of entities (Brin and Page 1998).

use rayon::prelude::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator, ParallelSlice};
use serde::{Deserialize, Serialize};

use super::adjacency::Adjacency;
use crate::table::Triple;

/// Entities whose fractions are summed in one go. Fixed, so that sums round alike for any number of threads.
const CHUNK: usize = 1 << 12;

/// When PageRank stops, and how far it follows links.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// Share of the rank that follows links, the damping factor: 0 to below 1.
    ///
    /// Source: NetworkX, `pagerank` (`alpha`).
    pub damping: f64,
    /// Stop when the ranks of all entities together, which sum to 1, change by less than this in an iteration: 0 to 1.
    ///
    /// Source: ours: because NetworkX's 1e-6 per entity adds up to all of the rank there is in a graph of a million entities.
    pub tolerance: f64,
    /// Stop after this many iterations at the latest: 1 to 1,000,000.
    ///
    /// Source: NetworkX, `pagerank` (`max_iter`).
    pub rounds: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { damping: 0.85, tolerance: 1e-9, rounds: 100 }
    }
}

/// Ranks, and how they were reached.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranks {
    /// By entity; they sum to 1.
    pub values: Vec<f64>,
    /// Rounds that were needed.
    pub rounds: u32,
    /// Change of all ranks together in the last round.
    pub change: f64,
}

/// The ranks of `entities` entities. Entities without outgoing triples give their rank to all alike.
#[must_use]
pub fn pagerank(entities: usize, triples: &[Triple], options: &Options) -> Ranks {
    let mut ranks = Ranks { values: vec![1.0 / entities as f64; entities], rounds: 0, change: 0.0 };
    let subjects = Adjacency::new(entities, triples.iter().map(|triple| (triple.object.0, triple.subject.0)));
    let mut links = vec![0u32; entities];
    triples.iter().for_each(|triple| links[triple.subject.index()] += 1);
    while entities > 0 && ranks.rounds < options.rounds {
        let next = round(&ranks.values, &subjects, &links, options.damping);
        ranks.change = sum(entities, |entity| (next[entity] - ranks.values[entity]).abs());
        ranks.values = next;
        ranks.rounds += 1;
        if ranks.change < options.tolerance {
            break;
        }
    }
    ranks
}

fn round(ranks: &[f64], subjects: &Adjacency, links: &[u32], damping: f64) -> Vec<f64> {
    let entities = ranks.len();
    let idle = sum(entities, |entity| if links[entity] == 0 { ranks[entity] } else { 0.0 });
    let everywhere = (1.0 - damping + damping * idle) / entities as f64;
    // What flows along one link of each entity, divided once instead of at every link.
    let flow: Vec<f64> = ranks
        .par_chunks(CHUNK)
        .zip(links.par_chunks(CHUNK))
        .flat_map_iter(|(ranks, links)| {
            ranks.iter().zip(links).map(|(rank, &links)| rank / f64::from(links.max(1)))
        })
        .collect();
    (0..entities)
        .into_par_iter()
        .with_min_len(CHUNK)
        .map(|entity| {
            let received: f64 = subjects.of(entity).iter().map(|&subject| flow[subject as usize]).sum();
            everywhere + damping * received
        })
        .collect()
}

/// A sum whose rounding does not depend on the number of threads.
fn sum(entities: usize, value: impl Fn(usize) -> f64 + Sync) -> f64 {
    let chunk = |chunk: usize| (chunk * CHUNK..entities.min((chunk + 1) * CHUNK)).map(&value).sum::<f64>();
    let chunks: Vec<f64> = (0..entities.div_ceil(CHUNK)).into_par_iter().map(chunk).collect();
    chunks.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::summary::testing::{random, triples};

    const OPTIONS: Options = Options { damping: 0.85, tolerance: 1e-12, rounds: 200 };

    /// The definition with a dense matrix.
    fn dense(entities: usize, triples: &[Triple], damping: f64) -> Vec<f64> {
        let mut matrix = vec![vec![0.0; entities]; entities];
        for triple in triples {
            matrix[triple.subject.index()][triple.object.index()] += 1.0;
        }
        for row in &mut matrix {
            let links: f64 = row.iter().sum();
            for cell in row.iter_mut() {
                let follow = if links == 0.0 { 1.0 / entities as f64 } else { *cell / links };
                *cell = damping * follow + (1.0 - damping) / entities as f64;
            }
        }
        let mut ranks = vec![1.0 / entities as f64; entities];
        for _ in 0..300 {
            ranks = (0..entities)
                .map(|to| (0..entities).map(|from| ranks[from] * matrix[from][to]).sum())
                .collect();
        }
        ranks
    }

    #[test]
    fn ranks_are_those_of_the_dense_definition() {
        for seed in 0..20u8 {
            let (entities, links) = (3 + usize::from(seed) * 3, 10 + usize::from(seed) * 5);
            let graph = random(seed.into(), entities, links);
            let ranks = pagerank(entities, &graph, &OPTIONS);
            for (found, expected) in ranks.values.iter().zip(dense(entities, &graph, 0.85)) {
                assert!((found - expected).abs() < 1e-10, "seed {seed}: {found} for {expected}");
            }
            assert!(ranks.change < 1e-12 && (ranks.values.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn any_number_of_threads_gives_the_same_bits() {
        let graph = random(7, 20_000, 60_000);
        let bits = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let ranks = pool.install(|| pagerank(20_000, &graph, &OPTIONS));
            (ranks.rounds, ranks.values.iter().map(|rank| rank.to_bits()).collect::<Vec<_>>())
        };
        let one = bits(1);
        assert_eq!(one, bits(2));
        assert_eq!(one, bits(7));
    }

    #[test]
    fn it_stops_and_nothing_has_no_rank() {
        let ring = triples(&[(0, 0, 1), (1, 0, 2), (2, 0, 0), (0, 1, 2)]);
        assert_eq!(pagerank(3, &ring, &Options { rounds: 3, ..OPTIONS }).rounds, 3);
        assert_eq!(pagerank(3, &ring, &Options { rounds: 0, ..OPTIONS }).values, [1.0 / 3.0; 3]);
        assert!(pagerank(0, &[], &OPTIONS).values.is_empty());
        let even = pagerank(3, &[], &OPTIONS);
        assert!(even.values.iter().all(|rank| (rank - 1.0 / 3.0).abs() < 1e-15));
    }
}
