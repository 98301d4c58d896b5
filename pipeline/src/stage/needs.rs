//! What tables of a config need of one another before stages are made of them.

use super::{benchmark, graft};
use crate::config::Config;

/// Whether anything but a graph is made of words as a vocabulary spells them: words are counted, and benchmarks read, without one.
pub(super) fn spells(config: &Config) -> anyhow::Result<bool> {
    let is_named = config.vocabulary.from.is_some() || config.encoder.is_some();
    let of_texts = config.shards_of_texts().is_some() || config.maps.is_some();
    Ok(is_named || of_texts || begins(config)?.is_some())
}

/// Refuses parser output of a benchmark that nothing attends by.
pub(super) fn parsed_is_read(config: &Config) -> anyhow::Result<()> {
    let parsed = config.benchmarks.iter().find(|of| of.parsed.is_some());
    if let Some(of) = parsed.filter(|_| config.attentions.iter().all(|attention| !attention.has_maps())) {
        anyhow::bail!(
            "benchmarks.{}.parsed is read by nothing: no table of [[attentions]] goes by maps; add one with `knowledge`, or leave it out",
            of.name
        );
    }
    Ok(())
}

/// The first table that begins with an encoder, if there is any.
pub(super) fn begins(config: &Config) -> anyhow::Result<Option<&'static str>> {
    anyhow::ensure!(
        (config.recipes.is_empty() && config.attentions.is_empty()) || config.finetune.is_some(),
        "[[recipes]] and [[attentions]] take seeds and what no recipe chooses from [finetune]: add that table"
    );
    let tables = [
        ("pretrain", config.pretrain.is_some()),
        ("retrain", config.retrain.is_some()),
        ("align", config.align.is_some()),
        ("graft", config.graft.is_some()),
        ("finetune", config.finetune.is_some()),
        ("lama", config.lama.is_some()),
        ("rank", config.rank.is_some()),
        ("link", config.link.is_some()),
    ];
    Ok(tables.into_iter().find_map(|(table, there)| there.then_some(table)))
}

/// Whether the benchmark that masks are searched on has a part for it.
pub(super) fn can_be_masked(config: &Config, graft: &graft::Config) -> anyhow::Result<()> {
    anyhow::ensure!(
        !graft.mask_benchmark.is_empty(),
        "graft.mask_benchmark is left out, and no benchmark has a part `mask_search`: give one a share for it"
    );
    let on = config.benchmarks.iter().find(|benchmark| benchmark.name == graft.mask_benchmark);
    anyhow::ensure!(
        on.is_none_or(benchmark::Config::has_mask_search),
        "graft.mask_benchmark is {:?}, whose mask_search is 0: give it a share",
        graft.mask_benchmark
    );
    Ok(())
}
