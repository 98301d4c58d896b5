//! The stages that ask encoders without training them further.

use anyhow::Context as _;
use tasks::token::encode::Case;

use super::finetune::begin::Bases;
use super::{link, location, rank, shards, vocabulary};
use crate::config::Config;
use crate::engine::stage::Stage;

/// Those of a config, of the encoders that it has.
pub(super) fn stages(
    config: &Config,
    bases: &Bases,
    words: &(vocabulary::Source, Case),
    shards: Option<&shards::Shards>,
    places: &location::Places<'_>,
) -> anyhow::Result<Vec<Box<dyn Stage>>> {
    let mut stages: Vec<Box<dyn Stage>> = Vec::new();
    if let Some(rank) = &config.rank {
        stages.push(Box::new(ranking(config, rank, bases.clone(), shards)?));
    }
    if let Some(link) = &config.link {
        anyhow::ensure!(
            config.sources.is_some(),
            "[link] links to the entities of a graph, but the config has none: add [sources]"
        );
        stages.push(Box::new(link::Linking::new(link, bases, words, config.compute, places)?));
    }
    Ok(stages)
}

/// The stage that ranks held-out triples.
fn ranking(
    config: &Config,
    rank: &rank::Config,
    bases: Bases,
    shards: Option<&shards::Shards>,
) -> anyhow::Result<rank::Ranking> {
    let shards = shards.filter(|_| config.sources.is_some()).cloned().context(
        "[rank] asks for triples of a graph, but the config has none: add [sources] and the tables that go with it",
    )?;
    // An aligned encoder has no output for triples.
    let align = bases.align.clone().filter(|_| rank.from.is_some() || rank.by.task().is_none());
    let base = Bases { align, ..bases }.of("rank.from", rank.from)?;
    rank.trained(&base, config.pretrain.as_ref(), config.retrain.as_ref())?;
    Ok(rank::Ranking {
        config: rank.clone(),
        base,
        shards,
        split: config.split.clone(),
        compute: config.compute,
    })
}
