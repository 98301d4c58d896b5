//! What every negative must be, whatever the graph, the sampler and the filter. Judged here by reading the texts, one triple after the
//! other: knows no index of statements.
use std::collections::BTreeMap;

use base::rng::RngKey;
use kg::canon::fold::bare;
use kg::canon::relation::Turn;
use kg::table::SemanticType;
use tasks::negative::{Config, Corruption, Counts, Draw, Filter, Negative, Same, Sampler, Verdict};
use tasks::sample::{Corpus, Slot, Triple};

const CONFIG: fn() -> Config = || Config {
    sampler: Corruption::Uniform,
    slots: Slot::ALL.to_vec(),
    per_triple: 1,
    filter: Filter::Train,
    same: Same::Texts,
    draw: Draw::Fixed,
    max_draws: 50,
};

/// A small graph. Relation 0 is symmetric, 2 is the inverse of 1, 3 and 4 have none.
struct World {
    names: Vec<String>,
    types: Vec<Vec<SemanticType>>,
    triples: Vec<Triple>,
    held: Vec<Triple>,
}

fn number(seed: RngKey, bound: usize) -> u32 {
    u32::try_from(seed.below(bound as u64)).unwrap()
}

impl World {
    /// Some entities share a name but for case and accents, or a type; some have none; some stand in held-out triples only.
    fn random(seed: RngKey) -> Self {
        let entities = 4 + number(seed.named("size"), 12) as usize;
        let names = (0..entities as u64).map(|i| {
            let name = ["Fever", "fever", "f\u{e9}ver", "Flu", "cough ", "Cough"];
            let place = number(seed.named("name").at(i), 2 * name.len()) as usize;
            name.get(place).map_or_else(|| format!("name {i}"), |name| (*name).to_owned())
        });
        let kinds = ["drug", "hormone", "finding", "symptom", "disease"].map(|name| SemanticType {
            code: (!SemanticType::ROLES.contains(&name)).then(|| format!("T-{name}")),
            name: name.to_owned(),
        });
        let types = (0..entities as u64).map(|i| {
            let one = |k: u64| seed.named("type").at(i).at(k).below(3) == 0;
            kinds.iter().zip(0..).filter(|(_, k)| one(*k)).map(|(kind, _)| kind.clone()).collect()
        });
        let (names, types) = (names.collect(), types.collect());
        let mut triples: Vec<Triple> = (0..5 + seed.named("triples").below(30))
            .map(|i| {
                let seed = seed.named("triple").at(i);
                [number(seed.at(0), entities), number(seed.at(1), 5), number(seed.at(2), entities)]
            })
            .collect();
        triples.sort_unstable();
        triples.dedup();
        seed.named("part").shuffle(&mut triples);
        let held = triples.split_off(triples.len() - triples.len() / 4);
        Self { names, types, triples, held }
    }

    fn corpus(&self) -> Corpus<'_> {
        Corpus {
            entities: self.names.iter().map(String::as_str).collect(),
            types: self.types.iter().map(Vec::as_slice).collect(),
            relations: vec!["interacts with", "treats", "treated by", "causes", "finds"],
            ways: vec![
                (0, Turn::Sorts),
                (1, Turn::Stays),
                (1, Turn::Exchanges),
                (2, Turn::Stays),
                (3, Turn::Stays),
            ],
            triples: self.triples.clone(),
            rows: (0..u32::try_from(self.triples.len()).unwrap()).collect(),
            held: self.held.clone(),
        }
    }

    /// Whether two triples say the same.
    fn same(&self, same: Same, one: Triple, other: Triple) -> bool {
        let entity = |a: u32, b: u32| match same {
            Same::Ids => a == b,
            Same::Texts => bare(&self.names[a as usize]) == bare(&self.names[b as usize]),
        };
        let straight = entity(one[0], other[0]) && entity(one[2], other[2]);
        let turned = entity(one[0], other[2]) && entity(one[2], other[0]);
        match (one[1], other[1]) {
            (0, 0) => straight || turned,
            (1, 2) | (2, 1) => turned,
            (a, b) => a == b && straight,
        }
    }

    fn among(&self, same: Same, triples: &[Triple], triple: Triple) -> bool {
        triples.iter().any(|stated| self.same(same, *stated, triple))
    }

    /// Whether two entities share a semantic type.
    fn share_a_type(&self, one: u32, other: u32) -> bool {
        let theirs = &self.types[other as usize];
        self.types[one as usize].iter().any(|kind| !kind.is_role() && theirs.contains(kind))
    }

    /// Asserts what holds for a negative of `stated` whatever the other negatives are.
    fn check(&self, config: &Config, stated: Triple, negative: &Negative) {
        let Negative { triple, slot, sampler, donor, verdict } = *negative;
        let at = slot as usize;
        assert!(config.slots.contains(&slot));
        assert!((0..3).all(|column| (stated[column] != triple[column]) == (column == at)));
        assert!(!self.same(config.same, stated, triple), "{triple:?} reads as {stated:?}");
        let shown = self.among(config.same, &self.triples, triple);
        let held = self.among(config.same, &self.held, triple);
        let expected = match config.filter {
            Filter::None => (Verdict::Unjudged, false, false),
            Filter::Train => (Verdict::Absent, shown, false),
            Filter::All => (Verdict::AbsentEverywhere, shown, held),
        };
        assert_eq!((verdict, false, false), expected, "{triple:?} is stated");
        if let Some(donor) = donor {
            assert_eq!(self.triples[donor as usize][at], triple[at]);
        }
        let entity = slot != Slot::Relation;
        match config.sampler {
            Corruption::AnyEntity if entity => {
                assert!(self.triples.iter().any(|t| t[0] == triple[at] || t[2] == triple[at]));
                assert_eq!(donor, None);
            }
            Corruption::TypedByType if entity => {
                assert!(self.share_a_type(stated[at], triple[at]));
                assert!(self.triples.iter().any(|t| t[0] == triple[at] || t[2] == triple[at]));
            }
            Corruption::TypedByRange if entity => {
                let ranges = |t: &Triple| t[1] == stated[1] && t[at] == triple[at];
                assert!(ranges(&self.triples[donor.unwrap() as usize]));
            }
            _ => assert!(donor.is_some()),
        }
        let uniform = !entity && config.sampler != Corruption::Bernoulli;
        assert_eq!(sampler, if uniform { Corruption::Uniform } else { config.sampler });
    }
}

/// Every sampler with every filter, comparing texts or ids.
fn configs() -> Vec<Config> {
    let mut configs = Vec::new();
    for sampler in Corruption::ALL {
        for filter in [Filter::None, Filter::Train, Filter::All] {
            for same in [Same::Ids, Same::Texts] {
                configs.push(Config { sampler, filter, same, per_triple: 3, draw: Draw::Fresh, ..CONFIG() });
            }
        }
    }
    configs
}

/// The negatives of all triples in `epoch`.
fn all(sampler: &Sampler, triples: usize, epoch: u64) -> (Vec<Vec<Negative>>, Counts) {
    let mut counts = Counts::default();
    let each = (0..u32::try_from(triples).unwrap()).map(|i| sampler.negatives(epoch, i, &mut counts));
    (each.collect(), counts)
}

#[test]
fn whatever_the_graph_negatives_are_none_that_the_filter_knows_and_all_is_counted() {
    let mut totals = Counts::default();
    for world in 0..60 {
        let seed = RngKey::new(world);
        let world = World::random(seed);
        let corpus = world.corpus();
        for config in configs() {
            let sampler = match Sampler::new(&config, &corpus, seed.named("negatives")) {
                Ok(sampler) => sampler,
                Err(error)
                    if error.to_string().contains("no entity of the shown triples has a semantic type") =>
                {
                    continue;
                }
                Err(error) => panic!("{error}"),
            };
            let (negatives, counts) = all(&sampler, world.triples.len(), 1);
            for (stated, negatives) in world.triples.iter().zip(&negatives) {
                assert!(negatives.len() <= 3);
                for (place, negative) in negatives.iter().enumerate() {
                    world.check(&config, *stated, negative);
                    let differs = |other: &Negative| !world.same(config.same, other.triple, negative.triple);
                    assert!(negatives[..place].iter().all(differs), "twice the same");
                }
            }
            let count = |test: &dyn Fn(&Negative) -> bool| {
                negatives.iter().flatten().filter(|negative| test(negative)).count() as u64
            };
            let shown = |n: &Negative| world.among(config.same, &world.triples, n.triple);
            let held = |n: &Negative| world.among(config.same, &world.held, n.triple);
            assert_eq!(counts.known_kept, count(&shown));
            assert_eq!(counts.held_kept, count(&|n| held(n) && !shown(n)));
            let slots = Slot::ALL.map(|slot| (slot, count(&|n| n.slot == slot)));
            let kept: BTreeMap<_, _> = slots.into_iter().filter(|(_, n)| *n > 0).collect();
            assert_eq!(counts.kept, kept);
            assert_eq!(counts.negatives() + counts.gave_up, 3 * world.triples.len() as u64);
            let Counts { unchanged, known, held, repeated, .. } = counts;
            assert_eq!(counts.proposed, counts.negatives() + unchanged + known + held + repeated);
            totals.add(&counts);
        }
    }
    let Counts { known, held, repeated, known_kept, held_kept, no_candidate, other_slot, .. } = totals;
    let met = [known, held, repeated, known_kept, held_kept, no_candidate, other_slot, totals.gave_up];
    assert!(met.iter().all(|n| *n > 50), "the graphs show every case: {totals:?}");
}

#[test]
fn negatives_are_a_pure_function_of_seed_epoch_and_triple() {
    let world = World::random(RngKey::new(11));
    let corpus = world.corpus();
    for config in configs() {
        let fresh = Sampler::new(&config, &corpus, RngKey::new(5)).unwrap();
        let again = Sampler::new(&config, &corpus, RngKey::new(5)).unwrap();
        let n = world.triples.len();
        let epochs = [0, 1, 7].map(|epoch| all(&fresh, n, epoch).0);
        for (epoch, place) in [(7, 2), (0, 0), (1, 1)] {
            for index in (0..u32::try_from(n).unwrap()).rev() {
                let alone = again.negatives(epoch, index, &mut Counts::default());
                assert_eq!(alone, epochs[place][index as usize], "in any order");
            }
        }
        assert!(epochs[0] != epochs[1] && epochs[1] != epochs[2] && epochs[0] != epochs[2]);
        let other = Sampler::new(&config, &corpus, RngKey::new(6)).unwrap();
        assert_ne!(all(&other, n, 0).0, epochs[0], "another seed");

        let fixed =
            Sampler::new(&Config { draw: Draw::Fixed, ..config.clone() }, &corpus, RngKey::new(5)).unwrap();
        for epoch in [0, 1, 7] {
            assert_eq!(all(&fixed, n, epoch).0, epochs[0], "a fixed draw is that of epoch 0");
        }
        let fewer = Sampler::new(&Config { per_triple: 1, ..config }, &corpus, RngKey::new(5)).unwrap();
        for (one, three) in all(&fewer, n, 1).0.iter().zip(&epochs[1]) {
            assert!(three.starts_with(one) || one.is_empty(), "asking for more changes no earlier negative");
        }
    }
}

#[test]
fn bernoulli_replaces_the_side_with_fewer_partners_seldom() {
    // One subject with nine objects: tph = 9, hpt = 1.
    let world = World {
        names: (0..20).map(|i| format!("e{i}")).collect(),
        types: vec![vec![]; 20],
        triples: (0..9).map(|i| [0, 3, 1 + i]).chain((10..20).map(|i| [i, 4, i - 10])).collect(),
        held: vec![],
    };
    let corpus = world.corpus();
    let entities = vec![Slot::Subject, Slot::Object];
    let share = |slots: Vec<Slot>| {
        let (filter, draw) = (Filter::None, Draw::Fresh);
        let config = Config { sampler: Corruption::Bernoulli, slots, filter, draw, ..CONFIG() };
        let sampler = Sampler::new(&config, &corpus, RngKey::new(1)).unwrap();
        let mut counts = Counts::default();
        for epoch in 0..20_000 {
            sampler.negatives(epoch, 4, &mut counts);
        }
        assert_eq!((counts.negatives(), counts.other_slot), (20_000, 0));
        Slot::ALL.map(|slot| counts.kept.get(&slot).copied().unwrap_or_default())
    };
    let [subject, relation, object] = share(entities);
    assert!(subject.abs_diff(18_000) < 200 && relation == 0 && object.abs_diff(2_000) < 200, "{subject}");
    let [subject, relation, object] = share(Slot::ALL.to_vec());
    assert!(relation.abs_diff(6_667) < 300, "{relation}");
    assert!(subject.abs_diff(12_000) < 300 && object.abs_diff(1_333) < 200, "{subject} {object}");
}

#[test]
fn a_complete_graph_gives_up_and_says_so() {
    let world = World {
        names: ["a", "A"].map(str::to_owned).into(),
        types: vec![vec![]; 2],
        triples: [0, 1, 2, 3].map(|i| [i / 2, 3, i % 2]).into(),
        held: vec![],
    };
    let corpus = world.corpus();
    let drawn = |config: Config| {
        let sampler = Sampler::new(&config, &corpus, RngKey::new(1)).unwrap();
        let (negatives, counts) = all(&sampler, 1, 0);
        assert_eq!(negatives, [vec![]]);
        counts
    };
    let texts = drawn(CONFIG());
    assert_eq!((texts.gave_up, texts.proposed, texts.unchanged, texts.known), (1, 150, 150, 0));
    let ids = drawn(Config { same: Same::Ids, ..CONFIG() });
    assert_eq!((ids.gave_up, ids.proposed, ids.unchanged + ids.known), (1, 150, 150));
    assert!(ids.known > 20);
    let config = Config { sampler: Corruption::TypedByType, ..CONFIG() };
    let error = Sampler::new(&config, &corpus, RngKey::new(1)).unwrap_err().to_string();
    assert!(error.contains("no entity of the shown triples has a semantic type"), "{error}");
    let relations = drawn(Config { slots: vec![Slot::Relation], ..config });
    assert_eq!((relations.proposed, relations.no_candidate), (50, 0));
}

#[test]
fn where_there_is_no_candidate_another_column_is_replaced() {
    // The range of relation 3 is one object.
    let world = World {
        names: (0..6).map(|i| format!("e{i}")).collect(),
        types: vec![vec![]; 6],
        triples: vec![[0, 3, 5], [1, 3, 5], [0, 4, 2]],
        held: vec![],
    };
    let corpus = world.corpus();
    let config = Config { sampler: Corruption::TypedByRange, draw: Draw::Fresh, ..CONFIG() };
    let sampler = Sampler::new(&config, &corpus, RngKey::new(1)).unwrap();
    let mut counts = Counts::default();
    for epoch in 0..3_000 {
        assert!(sampler.negatives(epoch, 1, &mut counts).iter().all(|n| n.slot == Slot::Relation));
    }
    assert_eq!(counts.kept, BTreeMap::from([(Slot::Relation, 3_000)]), "0 is known, 5 has no other");
    assert!(counts.other_slot.abs_diff(2_000) < 100, "{counts:?}");
    assert!(
        counts.no_candidate.abs_diff(1_500) < 100,
        "before the relation in half of all orders: {counts:?}"
    );
}

#[test]
fn the_first_draws_of_a_seed_stay_what_they_are() {
    let world = World {
        names: (0..50).map(|i| format!("e{i}")).collect(),
        types: vec![vec![]; 50],
        triples: (0..300).map(|i| [i % 20, i % 3 + 2, 20 + (i * 7) % 30]).collect(),
        held: vec![],
    };
    let corpus = world.corpus();
    let sampler = Sampler::new(&CONFIG(), &corpus, RngKey::new(1).named("negatives")).unwrap();
    let drawn: Vec<_> = (0..8)
        .flat_map(|index| sampler.negatives(0, index, &mut Counts::default()))
        .map(|negative| (negative.slot as usize, negative.donor.unwrap()))
        .collect();
    assert_eq!(drawn, [(0, 238), (0, 240), (0, 140), (0, 260), (0, 145), (2, 171), (0, 130), (1, 51)]);
}
