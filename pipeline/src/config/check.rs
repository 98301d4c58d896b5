//! Every setting of a config against its range, before anything is done: what a stage would refuse hours later, `plan` refuses at once. The
//! ranges are those of the libraries that use the settings.

use super::Config;
use super::range::whole;
use crate::stage;
use crate::stage::split::Parts;
use base::setting::shown;

/// Refuses the first setting that is outside its range. What contradicts another table, or names a place that is not there, is refused where
/// stages are made.
///
/// # Errors
/// Names the setting, its value and its range; the name comes first.
pub(super) fn check(config: &Config) -> anyhow::Result<()> {
    if let Some(world) = &config.world {
        world.check()?;
    }
    graph(config)?;
    words(config)?;
    config.tag.as_ref().map_or(Ok(()), stage::mentions::Config::check)?;
    if let Some(fresh) = config.encoder.as_ref().and_then(stage::encoder::Config::fresh) {
        fresh.check()?;
    }
    for (table, training) in [("pretrain", &config.pretrain), ("retrain", &config.retrain)] {
        if let Some(training) = training {
            training.ranges(table)?;
        }
    }
    config.align.as_ref().map_or(Ok(()), stage::align::Config::ranges)?;
    if let Some(rank) = &config.rank {
        rank.check()?;
    }
    if let Some(link) = &config.link {
        link.check()?;
    }
    if let Some(lama) = &config.lama {
        whole("lama.max_tokens", lama.max_tokens as u64, 8..=stage::LONGEST)?;
    }
    config.benchmarks.iter().try_for_each(stage::benchmark::Config::ranges)?;
    if let Some(finetune) = &config.finetune {
        finetune.ranges()?;
    }
    together(config)?;
    config.attentions.iter().try_for_each(stage::finetune::attention::Config::ranges)?;
    config.recipes.iter().try_for_each(stage::finetune::together::Config::ranges)?;
    if let Some(graft) = &config.graft {
        graft.importance.check()?;
        graft.search.check()?;
        graft.retrain_search.as_ref().map_or(Ok(()), |search| search.check())?;
    }
    Ok(())
}

/// The tables that make a graph and its samples.
fn graph(config: &Config) -> anyhow::Result<()> {
    if let Some(sources) = &config.sources {
        sources.check()?;
    }
    whole("canon.rows_in_memory", config.canon.rows_in_memory as u64, 1..=1 << 40)?;
    config.split.check()?;
    config.summary.check()?;
    config.shards.check()
}

/// Settings of one table that another one makes impossible.
fn together(config: &Config) -> anyhow::Result<()> {
    let all = config.split.parts == Parts::All;
    for (table, training) in [("pretrain", &config.pretrain), ("retrain", &config.retrain)] {
        // Tasks on texts have a part `valid` of their own, or refuse `patience` themselves.
        let asks_graph = training.as_ref().is_some_and(|training| training.asks_graph(&config.shards));
        anyhow::ensure!(
            !(all && asks_graph),
            "{table}.patience evaluates on the part `valid`, and split.parts is \"all\", which has none: leave {table}.patience out, or split"
        );
    }
    if let Some(finetune) = &config.finetune {
        let is_ranking = |of: &stage::benchmark::Of| matches!(of, stage::benchmark::Of::Capr(_));
        let rankings = config.benchmarks.iter().map(|of| (of.name.as_str(), is_ranking(&of.of)));
        finetune.check_untrained(&rankings.collect::<Vec<_>>())?;
        anyhow::ensure!(
            finetune.settings.epochs > 0 || config.attentions.is_empty(),
            "finetune.epochs is 0, which [[attentions]] have too: give at least 1 epoch"
        );
    }
    anyhow::ensure!(
        config.link.is_none() || config.graft.is_none(),
        "[link] compares single encoders, and [graft] makes many: leave [link] out, or link in a config of its own"
    );
    if let (Some(align), Some(link)) = (&config.align, &config.link) {
        link.of_aligned(align.pooling)?;
    }
    if let (Some(align), Some(rank)) = (&config.align, &config.rank) {
        rank.of_aligned(align.pooling)?;
    }
    if let Some(rank) = &config.rank {
        if config.sources.is_some() {
            rank.of_split(&config.split)?;
        }
        anyhow::ensure!(
            config.graft.is_none(),
            "[rank] ranks by one model, and [graft] makes several: leave one of the tables out"
        );
    }
    Ok(())
}

/// The tables that count and spell words.
fn words(config: &Config) -> anyhow::Result<()> {
    if let Some(train) = config.vocabulary.train() {
        whole("vocabulary.train.size", train.size as u64, 6..=stage::vocabulary::LARGEST)?;
        whole("vocabulary.train.min_frequency", train.min_frequency, 1..=u64::MAX)?;
    }
    if let Some(counts) = &config.counts {
        counts.check()?;
    }
    if let Some(pmi) = &config.pmi {
        pmi.check().map_err(|error| anyhow::anyhow!("pmi.{error}"))?;
        let shift = pmi.shift;
        anyhow::ensure!(shift <= 1e6, "pmi.shift is {}, expected from 1 to 1e6", shown(shift));
        whole("pmi.max_words", pmi.max_words.unwrap_or(1) as u64, 1..=u64::MAX)?;
    }
    config.maps.as_ref().map_or(Ok(()), stage::maps::Config::check)
}
