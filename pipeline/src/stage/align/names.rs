//! The names of a graph's entities, and the pairs of them that mean the same.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use base::rng::RngKey;
use kg::table::{EntityId, Graph};
use model::output::Identity;
use serde::Serialize;
use tasks::downstream::encode::Texts;
use tasks::token::encode::Vocabulary;
use text::ner::of_graph::each_name;

use super::Config;

/// Names by number, as tokens; of an entity's names that have the same tokens there is one.
pub(super) struct Names {
    tokens: Texts,
    /// Of each name, whose it is and which of the texts above has its tokens.
    all: Vec<Name>,
    /// Of each text that is a first of its tokens, the entities that are called so, rising.
    entities: HashMap<usize, Vec<EntityId>>,
    /// The names of an entity that are paired, one behind the other.
    pairs: Vec<[u32; 2]>,
    /// How many there are of what.
    pub(super) counts: Counts,
}

#[derive(Debug, Clone, Copy)]
struct Name {
    entity: EntityId,
    text: usize,
}

/// How many names there are, and what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    /// Different names of an entity, as the graph has them, of entities of the types that are asked for.
    pub(super) names: usize,
    /// Of these, names that the vocabulary has no token for, which are left out.
    pub(super) unknown: usize,
    /// Of the others, names whose tokens are those of another name of the entity.
    pub(super) same_tokens: usize,
    /// Of the others, names that are cut.
    pub(super) cut: usize,
    /// Names that several entities have.
    pub(super) of_several: usize,
    /// Entities that have names.
    pub(super) entities: usize,
    /// Of these, entities that have one name alone.
    pub(super) with_one_name: usize,
    /// Pairs of names that mean the same.
    pub(super) pairs: usize,
    /// Pairs that were not drawn, since their entity has too many.
    pub(super) pairs_left_out: usize,
}

impl Names {
    /// Those of the graph in the folder `triples`.
    ///
    /// # Errors
    /// When the graph cannot be read, or no two of its names mean the same.
    pub(super) fn new(triples: &Path, config: &Config, vocabulary: &Vocabulary) -> anyhow::Result<Self> {
        let graph = Graph::read(triples)?;
        let mut found: Vec<(EntityId, String)> = vec![];
        each_name(&graph, triples, |text, id| {
            let entity = graph.entities().get(id.index());
            if entity.is_some_and(|entity| config.types.allow(&entity.types)) {
                found.push((id, text.to_owned()));
            }
        })?;
        // By entity, in the order of the graph's table and then of its terms, each once.
        found.sort_by_key(|(entity, _)| *entity);
        let mut seen: HashSet<(EntityId, String)> = HashSet::new();
        found.retain(|name| seen.insert(name.clone()));
        drop(seen);
        let texts: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
        let tokens = Texts::new(vocabulary, &texts, config.max_tokens)?;
        let unknown = vocabulary.special().unknown;
        let mut counts = Counts { names: found.len(), ..Counts::default() };
        let mut firsts: HashMap<&[u32], usize> = HashMap::new();
        let mut entities: HashMap<usize, Vec<EntityId>> = HashMap::new();
        let mut all: Vec<Name> = Vec::with_capacity(found.len());
        for (text, (entity, _)) in found.iter().enumerate() {
            let own = tokens.get(text);
            if own.iter().all(|token| *token == unknown) {
                counts.unknown += 1;
                continue;
            }
            let text = *firsts.entry(own).or_insert(text);
            let called = entities.entry(text).or_default();
            if called.last() == Some(entity) {
                counts.same_tokens += 1;
                continue;
            }
            called.push(*entity);
            counts.of_several += usize::from(called.len() == 2);
            // `[CLS]` and `[SEP]` take two places.
            counts.cut += usize::from(own.len() > config.max_tokens - 2);
            all.push(Name { entity: *entity, text });
        }
        drop(firsts);
        let mut names = Self { tokens, all, entities, pairs: vec![], counts };
        names.pair(config)?;
        Ok(names)
    }

    /// Pairs each entity's names with each other, up to a limit.
    fn pair(&mut self, config: &Config) -> anyhow::Result<()> {
        let drawn = RngKey::new(config.seed).named("pairs");
        let mut first = 0_u32;
        for of_entity in self.all.chunk_by(|a, b| a.entity == b.entity) {
            let count = u32::try_from(of_entity.len())?;
            let mut pairs: Vec<[u32; 2]> =
                (0..count).flat_map(|a| (a + 1..count).map(move |b| [first + a, first + b])).collect();
            if pairs.len() > config.pairs_per_entity {
                let entity = of_entity[0].entity;
                drawn.at(u64::from(entity.0)).shuffle(&mut pairs);
                self.counts.pairs_left_out += pairs.len() - config.pairs_per_entity;
                pairs.truncate(config.pairs_per_entity);
                pairs.sort_unstable();
            }
            self.counts.entities += 1;
            self.counts.with_one_name += usize::from(count == 1);
            self.pairs.append(&mut pairs);
            first += count;
        }
        self.counts.pairs = self.pairs.len();
        anyhow::ensure!(
            !self.pairs.is_empty(),
            "[align] has nothing to learn: none of {} entities that align.types allows has two names of different tokens; add a source with synonyms",
            self.counts.entities
        );
        Ok(())
    }

    /// How many pairs there are.
    pub(super) fn pairs(&self) -> usize {
        self.pairs.len()
    }

    /// The two names of a pair, each with what it names.
    pub(super) fn pair_of(&self, pair: usize) -> impl Iterator<Item = (&[u32], Identity)> {
        self.pairs[pair].iter().map(|&name| {
            let Name { entity, text } = self.all[name as usize];
            let called = self.entities.get(&text).into_iter().flatten();
            let also = called.filter(|other| **other != entity).map(|other| other.0).collect();
            (self.tokens.get(text), Identity { class: entity.0, also })
        })
    }
}
