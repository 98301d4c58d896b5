//! The names of a graph's entities, and the pairs of them that mean the same.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use base::rng::RngKey;
use downstream::encode::Texts;
use kg::table::{EntityId, Graph, TermKind, read};
use model::output::Identity;
use serde::Serialize;
use tasks::shard::index::Source;
use tasks::token::encode::Vocabulary;
use text::ner::of_graph::each_name;

use super::Config;

/// Names by number, as tokens; of an entity's names that have the same tokens there is one.
pub(super) struct Names {
    tokens: Texts,
    /// Of each name, whose it is and which of the texts above has its tokens.
    all: Vec<Name>,
    /// Of each text that is a first of its tokens and names several entities, these, rising.
    entities: HashMap<usize, Vec<EntityId>>,
    /// The names of an entity that are paired, one behind the other.
    pairs: Vec<[u32; 2]>,
    /// How many there are of what.
    pub(super) counts: Counts,
    /// How many terms of the graph each source has of them, by licence level.
    pub(super) sources: Vec<Source>,
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

/// An entity with a text that it is called by.
type Called = (EntityId, String);

/// The names of a graph, which lies in the folder `triples`, by entity, in the order of its table and then of its terms, each once; and where they come from.
fn found(graph: &Graph, triples: &Path, config: &Config) -> anyhow::Result<(Vec<Called>, Vec<Source>)> {
    let is_allowed = |id: EntityId| {
        let entity = graph.entities().get(id.index());
        entity.is_some_and(|entity| config.types.allow(&entity.types))
    };
    let mut all: Vec<Called> = vec![];
    each_name(graph, triples, |text, id| {
        if is_allowed(id) {
            all.push((id, text.to_owned()));
        }
    })?;
    let mut sources: BTreeMap<String, BTreeMap<Option<u8>, u64>> = BTreeMap::new();
    if triples.join("terms.parquet").exists() {
        read::terms(triples, |term| {
            if term.kind != TermKind::Definition && is_allowed(term.entity) {
                *sources.entry(term.origin.source).or_default().entry(term.origin.level).or_default() += 1;
            }
            Ok(())
        })?;
    }
    all.sort_by_key(|(entity, _)| *entity);
    let mut found: Vec<Called> = Vec::with_capacity(all.len());
    // Where the names of the entity begin.
    let mut first = 0;
    for name in all {
        if found.last().is_some_and(|(entity, _)| *entity != name.0) {
            first = found.len();
        }
        if !found[first..].contains(&name) {
            found.push(name);
        }
    }
    let sources = sources.into_iter().map(|(name, levels)| Source::of_levels(name, &levels));
    Ok((found, sources.collect()))
}

/// So many different numbers below `bound`, rising.
fn some_of(bound: u64, count: u64, drawn: RngKey) -> Vec<u64> {
    let mut found = BTreeSet::new();
    let mut draws = (0..).map(|at| drawn.at(at).below(bound));
    while (found.len() as u64) < count.min(bound) {
        found.extend(draws.next());
    }
    found.into_iter().collect()
}

/// A place among so many.
fn place(count: usize, drawn: RngKey) -> usize {
    usize::try_from(drawn.below(count as u64)).unwrap_or_default()
}

/// The two places of a pair by its number: those of 0 and 1, then of 0 and 2, 1 and 2, and so on.
fn pair_of(number: u64) -> [u64; 2] {
    // The largest b with b (b - 1) / 2 pairs before it, whole numbers throughout.
    let b = (1 + 8 * number).isqrt().div_ceil(2);
    [number - b * (b - 1) / 2, b]
}

impl Names {
    /// Those of a graph, which lies in the folder `triples`.
    ///
    /// # Errors
    /// When the graph's terms cannot be read, or no two of its names mean the same.
    pub(super) fn new(
        graph: &Graph,
        triples: &Path,
        config: &Config,
        vocabulary: &Vocabulary,
    ) -> anyhow::Result<Self> {
        let (found, sources) = found(graph, triples, config)?;
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
            // What the encoder sees of it: `[CLS]` and `[SEP]` take two places.
            let shown = &own[..own.len().min(config.max_tokens - 2)];
            let text = *firsts.entry(shown).or_insert(text);
            let called = entities.entry(text).or_default();
            if called.last() == Some(entity) {
                counts.same_tokens += 1;
                continue;
            }
            called.push(*entity);
            counts.of_several += usize::from(called.len() == 2);
            counts.cut += usize::from(shown.len() < own.len());
            all.push(Name { entity: *entity, text });
        }
        drop(firsts);
        // Nothing is asked of the others.
        entities.retain(|_, called| called.len() > 1);
        let mut names = Self { tokens, all, entities, pairs: vec![], counts, sources };
        names.pair(config)?;
        Ok(names)
    }

    /// Pairs each entity's names with each other, up to a limit.
    fn pair(&mut self, config: &Config) -> anyhow::Result<()> {
        let drawn = RngKey::new(config.seed).named("pairs");
        let (mut first, mut with_pairs) = (0_u32, 0);
        for of_entity in self.all.chunk_by(|a, b| a.entity == b.entity) {
            let count = u64::try_from(of_entity.len())?;
            let (pairs, most) = (count * (count - 1) / 2, config.pairs_per_entity as u64);
            let numbers: Vec<u64> = match pairs <= most {
                true => (0..pairs).collect(),
                false => some_of(pairs, most, drawn.at(u64::from(of_entity[0].entity.0))),
            };
            self.counts.pairs_left_out += usize::try_from(pairs)? - numbers.len();
            self.counts.entities += 1;
            self.counts.with_one_name += usize::from(count == 1);
            with_pairs += usize::from(count > 1);
            for number in numbers {
                let [a, b] = pair_of(number);
                self.pairs.push([first + u32::try_from(a)?, first + u32::try_from(b)?]);
            }
            first = u32::try_from(u64::from(first) + count)?;
        }
        self.counts.pairs = self.pairs.len();
        anyhow::ensure!(
            with_pairs > 1,
            "[align] has nothing to learn: of {} entities that align.types allows, {with_pairs} has two names of different tokens, expected two at least; add a source with synonyms",
            self.counts.entities
        );
        Ok(())
    }

    /// How many pairs there are.
    pub(super) fn pairs(&self) -> usize {
        self.pairs.len()
    }

    /// The names of an entity.
    fn of(&self, entity: EntityId) -> &[Name] {
        let first = self.all.partition_point(|name| name.entity < entity);
        let count = self.all[first..].partition_point(|name| name.entity == entity);
        &self.all[first..first + count]
    }

    /// Whether an entity has a name.
    pub(super) fn has(&self, entity: EntityId) -> bool {
        !self.of(entity).is_empty()
    }

    /// How many names there are of all entities.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The place of one of them.
    pub(super) fn place(&self, drawn: RngKey) -> usize {
        place(self.all.len(), drawn)
    }

    /// The entity of the name at a place.
    pub(super) fn entity(&self, place: usize) -> EntityId {
        self.all[place].entity
    }

    /// One of the names of an entity that has some.
    pub(super) fn one_of(&self, entity: EntityId, drawn: RngKey) -> &[u32] {
        let names = self.of(entity);
        self.tokens.get(names[place(names.len(), drawn)].text)
    }

    /// One of the names of an entity that two others do not have, if it has one.
    pub(super) fn one_of_without(
        &self,
        entity: EntityId,
        others: [EntityId; 2],
        drawn: RngKey,
    ) -> Option<&[u32]> {
        let is_own = |name: &&Name| {
            let called = self.entities.get(&name.text);
            others.iter().all(|other| called.is_none_or(|called| called.binary_search(other).is_err()))
        };
        let own: Vec<&Name> = self.of(entity).iter().filter(is_own).collect();
        (!own.is_empty()).then(|| self.tokens.get(own[place(own.len(), drawn)].text))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_have_numbers_and_some_are_drawn_each_once() {
        let pairs: Vec<[u64; 2]> = (0..10).map(pair_of).collect();
        let all: Vec<[u64; 2]> = (1..5).flat_map(|b| (0..b).map(move |a| [a, b])).collect();
        assert_eq!(pairs, all);
        let large = 20_000 * 19_999 / 2;
        assert_eq!((pair_of(large - 1), pair_of(large)), ([19_998, 19_999], [0, 20_000]));
        let drawn = RngKey::new(1).named("pairs");
        let some = some_of(large, 50, drawn.at(3));
        assert!(
            some.len() == 50 && some.is_sorted_by(|a, b| a < b) && some.iter().all(|number| *number < large)
        );
        assert_eq!(
            (some_of(large, 50, drawn.at(3)) == some, some_of(large, 50, drawn.at(4)) == some),
            (true, false)
        );
        assert_eq!(some_of(3, 50, drawn), [0, 1, 2]);
    }
}
