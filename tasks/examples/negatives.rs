//! How many negatives a second and a core each sampler draws: `negatives [TRIPLES]`, on an invented graph with hubs.
#![allow(clippy::print_stdout, reason = "an example tells what it did")]

#[path = "measure/on_core.rs"]
mod on_core;

use std::error::Error;

use kg::canon::relation::Turn;
use kg::table::SemanticType;
use tasks::negative::{Config, Corruption, Counts, Draw, Filter, Same, Sampler};
use tasks::sample::{Corpus, Slot, Triple};
use tasks::seed::Seed;

use self::on_core::on_core;

/// Relations of the graph; KIMERA has 43.
const RELATIONS: u32 = 43;
/// Semantic types of the graph; UMLS has 127.
const TYPES: u32 = 127;

/// A number below `bound`; small ones come much more often, as hubs do.
fn skewed(seed: Seed, bound: u32) -> Result<u32, std::num::TryFromIntError> {
    let least = (0..3).map(|i| seed.at(i).below(u64::from(bound))).min().unwrap_or(0);
    u32::try_from(least)
}

fn triple(seed: Seed, entities: u32) -> Result<Triple, std::num::TryFromIntError> {
    Ok([skewed(seed.at(0), entities)?, skewed(seed.at(1), RELATIONS)?, skewed(seed.at(2), entities)?])
}

fn main() -> Result<(), Box<dyn Error>> {
    let wanted: u64 = std::env::args().nth(1).map_or(Ok(2_500_000), |n| n.parse())?;
    let entities = u32::try_from(wanted / 5)?;
    let seed = Seed::new(1);
    let draw = |i| triple(seed.named("triple").at(i), entities);
    let mut triples = (0..wanted).map(draw).collect::<Result<Vec<Triple>, _>>()?;
    triples.sort_unstable();
    triples.dedup();
    let names: Vec<String> = (0..entities).map(|i| format!("entity {i}")).collect();
    let kinds: Vec<SemanticType> = (0..TYPES)
        .map(|i| SemanticType { code: Some(format!("T{i:03}")), name: format!("type {i}") })
        .collect();
    let kind = |i: usize| std::slice::from_ref(&kinds[i % kinds.len()]);
    let corpus = Corpus {
        entities: names.iter().map(String::as_str).collect(),
        types: (0..names.len()).map(kind).collect(),
        relations: vec!["relation"; RELATIONS as usize],
        ways: (0..RELATIONS).map(|relation| (relation, Turn::Stays)).collect(),
        rows: (0..u32::try_from(triples.len())?).collect(),
        triples,
        held: Vec::new(),
    };
    println!("{} triples, {entities} entities", corpus.triples.len());
    for sampler in Corruption::ALL {
        let config = Config {
            sampler,
            slots: Slot::ALL.to_vec(),
            per_triple: 1,
            filter: Filter::Train,
            same: Same::Texts,
            draw: Draw::Fixed,
            max_draws: 1000,
        };
        let drawn = Sampler::new(&config, &corpus, seed.named("negatives"))?;
        let mut counts = Counts::default();
        let start = on_core()?;
        for index in 0..u32::try_from(corpus.triples.len())? {
            drawn.negatives(0, index, &mut counts);
        }
        let rate = counts.negatives() as f64 / (on_core()? - start) / 1e6;
        println!("{}: {rate:.2} M negatives a second and core", sampler.name());
        println!("  {}", serde_json::to_string(&counts)?);
    }
    Ok(())
}
