//! Small graphs that own their names, and chance for tests.

use kg::audit::{self, Audit, Kind, audit};
use kg::split::view::{Named, Worded};
use kg::split::{ByRatio, Cover, Mode, Options, Part, Ratios, Together, View};
use kg::table::{EntityId, RelationId, Triple};

/// A graph that owns its names.
#[derive(Debug, Clone, Default)]
pub(super) struct Toy {
    pub(super) entities: Vec<(String, String)>,
    pub(super) relations: Vec<(String, String, Option<u32>, bool)>,
    pub(super) triples: Vec<Triple>,
}

impl Toy {
    /// Entities with their own texts, and relations without inverses.
    pub(super) fn new(entities: u32, relations: u32) -> Toy {
        Toy {
            entities: (0..entities).map(|i| (format!("key:{i}"), format!("Entity {i}"))).collect(),
            relations: (0..relations)
                .map(|i| (format!("r{i}"), format!("relates {i}"), None, false))
                .collect(),
            triples: Vec::new(),
        }
    }

    pub(super) fn state(mut self, triples: &[(u32, u32, u32)]) -> Toy {
        self.triples.extend(triples.iter().map(|&(s, r, o)| triple(s, r, o)));
        self
    }

    pub(super) fn view(&self) -> View<'_> {
        let entities = self.entities.iter().map(|(key, text)| Named { key, text }).collect();
        let relations = self.relations.iter().map(|(key, text, inverse, symmetric)| Worded {
            key,
            text,
            inverse: inverse.map(RelationId),
            symmetric: *symmetric,
        });
        View::new(entities, relations.collect(), &self.triples).unwrap()
    }

    /// Triples distinct and sorted, as in a table.
    pub(super) fn sorted(mut self) -> Toy {
        self.triples.sort_unstable();
        self.triples.dedup();
        self
    }
}

pub(super) fn triple(subject: u32, relation: u32, object: u32) -> Triple {
    Triple { subject: EntityId(subject), relation: RelationId(relation), object: EntityId(object) }
}

pub(super) fn count<T>(things: &[T]) -> u32 {
    u32::try_from(things.len()).unwrap()
}

/// Chance for tests: SplitMix64.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        u32::try_from((x ^ (x >> 31)) >> 33).unwrap() % bound
    }
}

/// A graph in which texts collide, inverses chain and symmetric relations occur.
pub(super) fn wild(seed: u64) -> Toy {
    let mut dice = Dice(seed);
    let (entities, relations) = (3 + dice.below(10), 1 + dice.below(7));
    let mut toy = Toy::new(entities, relations);
    for entity in &mut toy.entities {
        entity.1 = format!("{}Entity  {}", ["", " "][dice.below(2) as usize], dice.below(entities));
        if dice.below(2) == 0 {
            entity.1.make_ascii_uppercase();
        }
    }
    for place in 0..relations as usize {
        let alike = dice.below(relations);
        let inverse = Some(dice.below(relations)).filter(|_| dice.below(3) == 0);
        let relation = &mut toy.relations[place];
        if dice.below(3) == 0 {
            relation.1 = format!("relates {alike}");
        }
        (relation.2, relation.3) = (inverse, dice.below(6) == 0);
    }
    let triples = 1 + dice.below(60);
    for _ in 0..triples {
        toy.triples.push(triple(dice.below(entities), dice.below(relations), dice.below(entities)));
    }
    toy.sorted()
}

pub(super) fn by_ratio(together: Together, seed: u64, cover: Cover) -> Options {
    let ratios = Ratios::new(0.5, 0.25, 0.25).unwrap();
    Options {
        together,
        detect_inverses: None,
        suspicion: None,
        mode: Mode::Ratio(ByRatio { ratios, seed, cover }),
    }
}

pub(super) fn audited(toy: &Toy, part: &[Part], together: Together) -> Audit {
    audit(&toy.view(), part, &audit::Options { together, inverses: &[], suspicion: None }).unwrap()
}

pub(super) fn naive(seed: u64, rows: usize) -> Vec<Part> {
    let mut dice = Dice(seed);
    (0..rows).map(|_| Part::ALL[dice.below(3) as usize]).collect()
}

/// The kinds found, as (held, shown, kind).
pub(super) fn found(audit: &Audit) -> Vec<(u32, u32, Kind)> {
    audit.leaks.iter().map(|leak| (leak.held, leak.shown, leak.kind)).collect()
}
