//! What is nearest to a query by the cosine of vectors, found by comparing it with every vector there is.
//!
//! An approximate index (HNSW) takes several times as long to be made as thousands of queries take here, and misses some; `just bench-nearest` has both.

use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::{ParallelSlice, ParallelSliceMut};

use super::Error;
use crate::nn::buffers::Buffers;
use crate::nn::product::{BLOCK, Left, Out, Packed, Start, multiply};

/// Vectors that all queries are compared with before the next ones: the cosines with a block of queries stay in a processor's cache.
const TILE: usize = 1024;

/// Of each query what is nearest, the nearest first, each thing once, with the cosine of its nearest vector; of equal cosines the lower number comes first.
pub type Found = Vec<Vec<(u32, f32)>>;

/// Queries, with what was nearest to them among the vectors that they were compared with: these may be many more than there is memory for.
#[derive(Debug)]
pub struct Nearest {
    /// One after the other, of length 1.
    queries: Vec<f32>,
    width: usize,
    most: usize,
    best: Found,
    buffers: Buffers,
}

impl Nearest {
    /// Before any vector is looked at: of each query, `width` numbers of length 1, the `most` nearest things are wanted.
    #[must_use]
    pub fn new(queries: Vec<f32>, width: usize, most: usize) -> Self {
        let width = width.max(1);
        Self { best: vec![vec![]; queries.len() / width], queries, width, most, buffers: Buffers::new() }
    }

    /// Compares all queries with these vectors, of length 1 and one after the other; `of` says which things each of them stands for.
    ///
    /// # Errors
    /// When there are more or fewer vectors than `of` has entries.
    pub fn compare<T: AsRef<[u32]> + Sync>(&mut self, vectors: &[f32], of: &[T]) -> Result<(), Error> {
        if vectors.len() != of.len() * self.width {
            let (found, expected) = (vectors.len(), of.len() * self.width);
            return Err(Error::Lengths { what: "vectors", found, expected, of: "the things they stand for" });
        }
        let (width, most) = (self.width, self.most);
        for (vectors, of) in vectors.chunks(TILE * width).zip(of.chunks(TILE)) {
            let vector = |number: usize| &vectors[number * width..(number + 1) * width];
            let packed = Packed::of_columns(&self.buffers, [width, of.len()], vector);
            let queries = self.queries.par_chunks(BLOCK * width);
            let blocks = self.best.par_chunks_mut(BLOCK).zip(queries);
            blocks.for_each_init(Vec::new, |cosines, (best, queries)| {
                cosines.resize(best.len() * of.len(), 0.0);
                let out = Out { values: cosines.as_mut_slice(), stride: of.len() };
                multiply(Left::Rows(queries, width), &packed, Start::Zero, out);
                for (best, cosines) in best.iter_mut().zip(cosines.chunks(of.len())) {
                    for (&cosine, things) in cosines.iter().zip(of) {
                        if best.len() == most && best.last().is_some_and(|worst| cosine < worst.1) {
                            continue;
                        }
                        things.as_ref().iter().for_each(|&thing| offer(best, most, (thing, cosine)));
                    }
                }
            });
        }
        Ok(())
    }

    /// What was found of each query.
    #[must_use]
    pub fn found(self) -> Found {
        self.best
    }
}

/// Puts a thing and its cosine among the best, in their order, each thing once.
fn offer(best: &mut Vec<(u32, f32)>, most: usize, new: (u32, f32)) {
    if let Some(at) = best.iter().position(|found| found.0 == new.0) {
        if best[at].1 >= new.1 {
            return;
        }
        best.remove(at);
    }
    let place = best.partition_point(|found| found.1 > new.1 || found.1 == new.1 && found.0 < new.0);
    if place < most {
        best.insert(place, new);
        best.truncate(most);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use base::rng::CounterRng;

    use super::super::cosine::unit;
    use super::*;

    const WIDTH: usize = 3;

    /// Vectors of length 1, of few values, so that cosines are often the same.
    fn vectors(numbers: std::ops::Range<u64>) -> Vec<f32> {
        let rng = CounterRng::new(5);
        let vector = |number: u64| {
            let value = |at: u64| match rng.branch(number).uniform(at) {
                uniform if uniform < 0.3 => -1.0,
                uniform if uniform < 0.6 => 0.0,
                _ => 1.0,
            };
            let mut vector: Vec<f32> = (0..WIDTH as u64).map(value).collect();
            unit(&mut vector);
            vector
        };
        numbers.flat_map(vector).collect()
    }

    #[test]
    fn what_is_nearest_is_what_looking_at_all_finds_in_blocks_of_any_size() {
        const MOST: usize = 5;
        let (all, queries) = (vectors(0..2_500), vectors(5_000..5_150));
        let things: Vec<Vec<u32>> = (0..2_500).map(|number| vec![number / 2, number % 700]).collect();
        let of_blocks = |size: usize| {
            let mut nearest = Nearest::new(queries.clone(), WIDTH, MOST);
            for (vectors, things) in all.chunks(size * WIDTH).zip(things.chunks(size)) {
                nearest.compare(vectors, things).unwrap();
            }
            nearest.found()
        };
        let whole = of_blocks(2_500);
        assert_eq!((of_blocks(7), of_blocks(1_025)), (whole.clone(), whole.clone()));
        for (query, found) in queries.chunks(WIDTH).zip(whole) {
            let mut best: HashMap<u32, f32> = HashMap::new();
            for (vector, things) in all.chunks(WIDTH).zip(&things) {
                let cosine: f32 = vector.iter().zip(query).map(|(a, b)| a * b).sum();
                for thing in things {
                    let score = best.entry(*thing).or_insert(f32::MIN);
                    *score = score.max(cosine);
                }
            }
            let mut sorted: Vec<f32> = best.values().copied().collect();
            sorted.sort_by(|a, b| b.total_cmp(a));
            assert_eq!(found.len(), MOST);
            for ((thing, cosine), expected) in found.iter().zip(&sorted) {
                assert!((cosine - expected).abs() < 1e-6 && (best[thing] - cosine).abs() < 1e-6);
            }
            assert!(found.windows(2).all(|pair| pair[0].1 > pair[1].1 || pair[0].0 < pair[1].0));
        }
    }

    #[test]
    fn vectors_without_things_are_refused_and_none_find_none() {
        let mut nearest = Nearest::new(vectors(0..2), WIDTH, 5);
        assert!(nearest.compare(&vectors(0..2), &[[1_u32]]).is_err());
        nearest.compare::<Vec<u32>>(&[], &[]).unwrap();
        assert_eq!(nearest.found(), [[], []]);
    }
}
