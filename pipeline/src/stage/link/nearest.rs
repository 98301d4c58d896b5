//! The entities whose names are nearest to a mention.

use std::collections::HashMap;

use anyhow::Context as _;
use model::eval::cosine::dot;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefMutIterator, ParallelIterator};

/// How many entities are found.
pub(super) const BEST: usize = 5;

/// Names that all mentions are compared with before the next ones: their vectors stay in a processor's cache.
const TILE: usize = 256;

/// Names of entities, each pair once; those of one text stand together, since they have one vector.
#[derive(Debug, Default)]
pub(super) struct Names {
    texts: Vec<String>,
    /// Of each text, those that it names, rising.
    entities: Vec<Vec<u32>>,
    places: HashMap<String, usize>,
}

impl Names {
    /// Adds a name of an entity; case makes no difference.
    pub(super) fn push(&mut self, text: &str, entity: u32) {
        let folded = fold(text);
        let next = self.texts.len();
        let place = *self.places.entry(folded).or_insert(next);
        if place == next {
            self.texts.push(text.to_owned());
            self.entities.push(vec![entity]);
        } else if let Err(at) = self.entities[place].binary_search(&entity) {
            self.entities[place].insert(at, entity);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Different texts.
    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }

    /// The texts in blocks of this many, each with the place of its first.
    pub(super) fn blocks(&self, size: usize) -> impl Iterator<Item = (usize, Vec<&str>)> {
        let blocks = self.texts.chunks(size).enumerate();
        blocks.map(move |(number, block)| (number * size, block.iter().map(String::as_str).collect()))
    }

    /// The entities that have the very name, in the order of their keys.
    pub(super) fn exactly(&self, text: &str) -> Vec<(u32, f32)> {
        let entities = self.places.get(&fold(text)).and_then(|&place| self.entities.get(place));
        entities.into_iter().flatten().take(BEST).map(|&entity| (entity, 1.0)).collect()
    }
}

fn fold(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Of each mention the entities with the nearest names, the nearest first, each with the cosine of its nearest name; of equal ones the first by key.
pub(super) type Found = Vec<Vec<(u32, f32)>>;

/// Mentions, with the entities whose names were nearest among those that were looked at: these may be many more than there is memory for vectors of.
#[derive(Debug)]
pub(super) struct Nearest {
    /// Of length 1.
    mentions: Vec<Vec<f32>>,
    best: Found,
}

impl Nearest {
    /// Before any name is looked at; `mentions` are their vectors, of length 1.
    pub(super) fn new(mentions: Vec<Vec<f32>>) -> Self {
        Self { best: vec![vec![]; mentions.len()], mentions }
    }

    /// Compares all mentions with the names from `first` on that have these vectors, of length 1.
    ///
    /// # Errors
    /// When there are more vectors than names.
    pub(super) fn look_at(
        &mut self,
        names: &Names,
        first: usize,
        vectors: &[Vec<f32>],
    ) -> anyhow::Result<()> {
        let entities = names.entities.get(first..first + vectors.len());
        let entities = entities.with_context(|| {
            format!("{} vectors of names from {first} of {} on; report it", vectors.len(), names.len())
        })?;
        for (vectors, entities) in vectors.chunks(TILE).zip(entities.chunks(TILE)) {
            self.best.par_iter_mut().zip(&self.mentions).for_each(|(best, mention)| {
                for (name, entities) in vectors.iter().zip(entities) {
                    let score = dot(name, mention);
                    if best.len() == BEST && best.last().is_some_and(|worst| score < worst.1) {
                        continue;
                    }
                    entities.iter().for_each(|&entity| offer(best, entity, score));
                }
            });
        }
        Ok(())
    }

    /// What was found of each mention.
    pub(super) fn found(self) -> Found {
        self.best
    }
}

/// Puts an entity among the best, in their order, each once.
fn offer(best: &mut Vec<(u32, f32)>, entity: u32, score: f32) {
    if let Some(at) = best.iter().position(|(other, _)| *other == entity) {
        if best[at].1 >= score {
            return;
        }
        best.remove(at);
    }
    let place = best.partition_point(|&(other, before)| before > score || before == score && other < entity);
    if place < BEST {
        best.insert(place, (entity, score));
        best.truncate(BEST);
    }
}

#[cfg(test)]
mod tests {
    use base::rng::CounterRng;

    use super::*;

    #[test]
    fn the_nearest_names_are_those_that_looking_at_all_finds() {
        let mut names = Names::default();
        for name in 0..300_u32 {
            names.push(&format!("Name  {}", name % 250), name / 2);
            names.push(&format!("name {}", name % 250), name / 2);
        }
        assert_eq!(names.len(), 250);
        let rng = CounterRng::new(5);
        let vector = |number: u64| -> Vec<f32> {
            // Few values, so that cosines are often the same.
            let value = |uniform: f64| {
                if uniform < 0.3 {
                    -1.0
                } else if uniform < 0.6 {
                    0.0
                } else {
                    1.0
                }
            };
            (0..3).map(|at| value(rng.branch(number).uniform(at))).collect()
        };
        let unit = |mut vector: Vec<f32>| {
            model::eval::cosine::unit(&mut vector);
            vector
        };
        let vectors: Vec<Vec<f32>> = (0..250).map(|number| unit(vector(number))).collect();
        let asked: Vec<Vec<f32>> = (1_000..1_050).map(|number| unit(vector(number))).collect();
        let of_blocks = |size: usize| {
            let mut nearest = Nearest::new(asked.clone());
            for (first, texts) in names.blocks(size) {
                nearest.look_at(&names, first, &vectors[first..first + texts.len()]).unwrap();
            }
            nearest.found()
        };
        let whole = of_blocks(250);
        assert_eq!((of_blocks(7), of_blocks(1)), (whole.clone(), whole.clone()));
        for (asked, found) in asked.iter().zip(whole) {
            let length = |v: &[f32]| v.iter().map(|x| x * x).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
            let mut best: HashMap<u32, f32> = HashMap::new();
            for (vector, entities) in vectors.iter().zip(&names.entities) {
                let product: f32 = vector.iter().zip(asked).map(|(a, b)| a * b).sum();
                let cosine = product / length(vector) / length(asked);
                for entity in entities {
                    let score = best.entry(*entity).or_insert(f32::MIN);
                    *score = score.max(cosine);
                }
            }
            let mut all: Vec<f32> = best.values().copied().collect();
            all.sort_by(|a, b| b.total_cmp(a));
            assert_eq!(found.len(), BEST);
            for ((entity, score), expected) in found.iter().zip(&all) {
                assert!((score - expected).abs() < 1e-6 && (best[entity] - score).abs() < 1e-6);
            }
            assert!(found.windows(2).all(|pair| pair[0].1 > pair[1].1 || pair[0].0 < pair[1].0));
        }
        assert!(Nearest::new(asked).look_at(&names, 249, &vectors[..2]).is_err());
    }

    #[test]
    fn the_very_name_names_all_its_entities() {
        let mut names = Names::default();
        for (text, entity) in [("Heart  Attack", 4), ("heart attack", 2), ("Fever", 1)] {
            names.push(text, entity);
        }
        assert_eq!(names.exactly(" HEART attack"), [(2, 1.0), (4, 1.0)]);
        assert_eq!(names.exactly("attack"), []);
    }
}
