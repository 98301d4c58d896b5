//! The stages in data-flow order, built from a config: thin adapters between the engine and the libraries.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use tasks::token::encode::Case;

use crate::config::{Config, Graph};
use crate::engine::stage::Stage;
use finetune::begin::Bases;

pub(crate) mod align;
mod asking;
pub(crate) mod audit;
pub(crate) mod benchmark;
pub(crate) mod compute;
pub(crate) mod corpus;
pub(crate) mod counts;
pub(crate) mod encoder;
pub(crate) mod finetune;
pub(crate) mod folder;
mod frozen;
pub(crate) mod graft;
pub(crate) mod lama;
pub(crate) mod link;
mod located;
pub(crate) mod location;
pub(crate) mod maps;
pub(crate) mod matrix;
pub(crate) mod memory;
pub(crate) mod mentions;
mod metrics;
mod needs;
pub(crate) mod pmi;
pub(crate) mod rank;
pub(crate) mod remote;
pub(crate) mod report;
pub(crate) mod retrain;
pub(crate) mod scores;
pub(crate) mod shards;
pub(crate) mod source;
pub(crate) mod split;
pub(crate) mod stream;
pub(crate) mod submission;
pub(crate) mod summary;
pub(crate) mod texts;
mod training;
pub(crate) mod triples;
pub(crate) mod vocabulary;
pub(crate) mod world;

/// Most tokens of a row, anywhere: far beyond any encoder's positions.
pub(crate) const LONGEST: u64 = 65_534;

/// All stages that `config` describes, in data-flow order. Relative paths of outside data count from `data`; remote ones are left
/// with `remotes`, to be brought before the stages are looked at.
///
/// # Errors
/// When the config names a place that is invalid, such as outside data without `--data`.
pub(crate) fn all(
    config: &Config,
    data: Option<&Path>,
    remotes: &Arc<remote::Remotes>,
) -> anyhow::Result<Vec<Box<dyn Stage>>> {
    let stages = described(config, data, remotes).map_err(|error| config.origin.locate(error))?;
    let origin = Arc::new(config.origin.clone());
    let located = |stage| Box::new(located::Located { stage, origin: Arc::clone(&origin) }) as Box<dyn Stage>;
    Ok(stages.into_iter().map(located).collect())
}

fn described(
    config: &Config,
    data: Option<&Path>,
    remotes: &Arc<remote::Remotes>,
) -> anyhow::Result<Vec<Box<dyn Stage>>> {
    let mut stages: Vec<Box<dyn Stage>> = Vec::new();
    if let Some(world) = &config.world {
        stages.push(Box::new(world::World { config: *world }));
    }
    let places = location::Places { data, world: config.world.is_some(), remotes };
    let graph = config.graph()?;
    if graph.is_none() && !needs::spells(config)? {
        anyhow::ensure!(
            config.vocabulary == vocabulary::Config::default(),
            "[vocabulary] is read by nothing: words are counted as counts.what.case says, without a vocabulary; leave it out"
        );
        stages.extend(on_corpus(config, None, &places)?);
        stages.extend(benchmarks(config, &places)?);
        anyhow::ensure!(
            !stages.is_empty(),
            "the config asks for nothing: add what is to be made, such as [sources] (a graph), [corpus] (texts) or [[benchmarks]] with [encoder]; `engraft init` writes one to begin with"
        );
        return Ok(stages);
    }
    let vocabulary = vocabulary::Vocabulary::new(&config.vocabulary, config.encoder.as_ref(), &places)?;
    let words = (vocabulary.source(), config.vocabulary.case);
    anyhow::ensure!(
        graph.is_some() || !vocabulary.is_trained(),
        "[vocabulary.train] learns the names of a graph, but the config has none: name a file (vocabulary.file), or add [sources] and the tables that go with it"
    );
    let shards = match graph {
        Some(graph) => {
            let (of_graph, shards) = on_graph(graph, vocabulary, &places)?;
            stages.extend(of_graph);
            Some(shards)
        }
        None => match config.shards_of_texts() {
            Some(table) => {
                let (shards, made) = shards::Shards::with_parts(table, &words, &places)?;
                stages.extend(made);
                Some(shards)
            }
            None => None,
        },
    };
    stages.extend(on_corpus(config, Some(&words), &places)?);
    stages.extend(trained(config, words, shards.as_ref(), &places)?);
    Ok(stages)
}

/// The stages that make, split, measure and shard a graph.
fn on_graph(
    graph: Graph<'_>,
    vocabulary: vocabulary::Vocabulary,
    places: &location::Places<'_>,
) -> anyhow::Result<(Vec<Box<dyn Stage>>, shards::Shards)> {
    let Graph { sources, canon, split, summary, shards } = graph;
    let mut stages: Vec<Box<dyn Stage>> = vec![Box::new(triples::Triples::new(sources, canon, places)?)];
    let published = source::published(sources);
    let problem = source::unpublished(&published, split);
    stages.push(Box::new(split::Splitting { config: split.clone(), problem, published }));
    let (source, case) = (vocabulary.source(), vocabulary.case());
    if vocabulary.is_trained() {
        stages.push(Box::new(vocabulary));
    }
    stages.push(Box::new(summary::Summarising {
        config: summary.clone(),
        vocabulary: source.clone(),
        case,
        limits: shards.layout.limits,
    }));
    stages.push(Box::new(report::Reporting));
    let (shards, made) = shards::Shards::with_parts(shards, &(source, case), places)?;
    stages.extend(made);
    stages.push(Box::new(audit::Audit { config: split.clone() }));
    Ok((stages, shards))
}

/// The stages that make encoders, and try them.
fn trained(
    config: &Config,
    words: (vocabulary::Source, Case),
    shards: Option<&shards::Shards>,
    places: &location::Places<'_>,
) -> anyhow::Result<Vec<Box<dyn Stage>>> {
    let mut stages = benchmarks(config, places)?;
    let Some(table) = needs::begins(config)? else { return Ok(stages) };
    config.compute.check()?;
    let encoder = config.encoder.as_ref();
    let encoder =
        encoder.with_context(|| format!("[{table}] begins with the encoder of [encoder]: add that table"))?;
    let mut bases = Bases::of_encoder(encoder::Base::new(encoder, places)?);
    words.0.agrees(&bases.encoder, words.1)?;
    stages.extend(lama::stages::asking(config, &bases.encoder, &words, places)?);
    if let Some(fresh) = encoder.fresh() {
        let (vocabulary, case) = words.clone();
        stages.push(Box::new(encoder::Drawing { fresh: fresh.clone(), vocabulary, case }));
    }
    let from = |base: encoder::Base, table: &str| {
        let shards = shards.cloned().with_context(|| {
            format!("[{table}] trains on shards, but the config has none: add [sources] for those of a graph, or [shards] with tasks on texts")
        })?;
        anyhow::Ok(retrain::From { base, shards, compute: config.compute, sizes: sizes(config, places)? })
    };
    if let Some(pretrain) = &config.pretrain {
        let from = from(bases.encoder.clone(), "pretrain")?;
        let stage = retrain::Retrain::new(retrain::Which::Pretrain, pretrain, from, places)?;
        bases.pretrain = Some(encoder::Base::Stage(stage.name().to_owned()));
        stages.push(Box::new(stage));
    }
    let base = bases.pretrain.clone().unwrap_or_else(|| bases.encoder.clone());
    let retraining = match &config.retrain {
        Some(retraining) => Some((retraining, from(base.clone(), "retrain")?)),
        None => None,
    };
    if let Some(graft) = &config.graft {
        stages.extend(grafted(config, graft, retraining, base, words, places)?);
        lama::stages::are_made(config, &stages)?;
        return Ok(stages);
    }
    if let Some((retrain, from)) = retraining {
        let stage = retrain::Retrain::new(retrain::Which::Retrain, retrain, from, places)?;
        bases.retrain = Some(encoder::Base::Stage(stage.name().to_owned()));
        stages.push(Box::new(stage));
    }
    let base = bases.clone().of("align.from", config.align.as_ref().and_then(|align| align.from))?;
    if let Some((align, from)) = align::described(config, base, &words, places)? {
        let stage = align::Aligning::new(align::Which::Align, align, from, places)?;
        bases.align = Some(encoder::Base::Stage(stage.name().to_owned()));
        stages.push(Box::new(stage));
    }
    stages.extend(asking::stages(config, &bases, &words, shards, places)?);
    if let Some(finetuning) = &config.finetune {
        let base = bases.of("finetune.from", finetuning.from)?;
        stages.extend(around(config, finetuning, base, words, shards, places)?.alone()?);
    }
    lama::stages::are_made(config, &stages)?;
    Ok(stages)
}

/// The stages that read benchmarks.
fn benchmarks(config: &Config, places: &location::Places<'_>) -> anyhow::Result<Vec<Box<dyn Stage>>> {
    let mut stages: Vec<Box<dyn Stage>> = Vec::new();
    for benchmark in &config.benchmarks {
        stages.push(Box::new(benchmark::Benchmark::new(benchmark, places)?));
    }
    needs::parsed_is_read(config)?;
    Ok(stages)
}

/// The stages of a comparison of encoders.
fn grafted(
    config: &Config,
    graft: &graft::Config,
    retraining: Option<(&retrain::Config, retrain::From)>,
    base: encoder::Base,
    words: (vocabulary::Source, Case),
    places: &location::Places<'_>,
) -> anyhow::Result<Vec<Box<dyn Stage>>> {
    let finetuning =
        config.finetune.as_ref().context("[graft] fine-tunes by the table [finetune]: add it")?;
    needs::can_be_masked(config, graft)?;
    let aligning = align::described(config, base.clone(), &words, places)?;
    let around = around(config, finetuning, base, words, None, places)?;
    graft.stages(&graft::Around { retraining, aligning, own_masks: &graft.own_masks, ..around }, places)
}

/// What fine-tunings of an encoder are made of.
fn around<'c>(
    config: &'c Config,
    finetuning: &'c finetune::config::Config,
    base: encoder::Base,
    words: (vocabulary::Source, Case),
    shards: Option<&'c shards::Shards>,
    places: &location::Places<'_>,
) -> anyhow::Result<graft::Around<'c>> {
    let mapping = match &config.corpus {
        Some(corpus) if !config.attentions.is_empty() => {
            mapping(config, &corpus::Corpus::new(corpus, places)?, words.clone())?.map(Arc::new)
        }
        _ => None,
    };
    let parsed =
        config.benchmarks.iter().map(|of| Ok(of.parsed(places)?.map(|parsed| (of.name.clone(), parsed))));
    let parsed = parsed.collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().collect();
    let sizes = sizes(config, places)?;
    frozen::check("finetune.frozen", &finetuning.fixed.frozen, sizes.as_ref(), &["outputs."])?;
    Ok(graft::Around {
        benchmarks: config.benchmarks.iter().map(|benchmark| benchmark.name.clone()).collect(),
        tables: &config.benchmarks,
        finetuning,
        attentions: &config.attentions,
        mapping,
        parsed,
        recipes: &config.recipes,
        retraining: None,
        aligning: None,
        own_masks: &[],
        shards,
        base,
        sizes,
        words,
        compute: config.compute,
    })
}

/// Sizes of the encoder, where the config draws a fresh one, or its checkpoint lies on this machine.
fn sizes(
    config: &Config,
    places: &location::Places<'_>,
) -> anyhow::Result<Option<model::encoder::config::Config>> {
    config.encoder.as_ref().map_or(Ok(None), |encoder| encoder.sizes(places))
}

/// The stages on a corpus; without `words` the config has nothing that is made of them.
fn on_corpus(
    config: &Config,
    words: Option<&(vocabulary::Source, Case)>,
    places: &location::Places<'_>,
) -> anyhow::Result<Vec<Box<dyn Stage>>> {
    let corpus = config.corpus.as_ref().map(|corpus| corpus::Corpus::new(corpus, places)).transpose()?;
    let texts = |table: &str| {
        corpus
            .as_ref()
            .with_context(|| format!("[{table}] reads the texts of [corpus]: add [[corpus.texts]]"))
    };
    let cut = corpus.as_ref().map_or(Ok(corpus::Cut::Whole), corpus::Corpus::cut)?;
    let merges = config.counts.as_ref().is_some_and(|counts| counts.merge.is_some());
    anyhow::ensure!(
        matches!(cut, corpus::Cut::Whole) || !merges || config.maps.is_some(),
        "counts.merge puts shards together, so that nothing reads the parts of [corpus.parts]: leave one of them out"
    );
    let mut stages: Vec<Box<dyn Stage>> = Vec::new();
    if let Some(counts) = &config.counts {
        let made = match (&counts.merge, cut.in_place_of(counts::NAME)) {
            (Some(folders), _) => {
                let shards = counts::Counted::shards(folders, places)?;
                vec![Box::new(counts::Counting::new(counts, shards)?) as Box<dyn Stage>]
            }
            (None, Some(uncut)) => vec![uncut],
            (None, None) => {
                let made = counts::Counting::of_corpus(counts, texts("counts")?, cut.parts())?;
                made.into_iter().map(|stage| Box::new(stage) as _).collect()
            }
        };
        stages.extend(made);
    }
    if let Some(pmi) = &config.pmi {
        anyhow::ensure!(config.counts.is_some(), "[pmi] scores the counts of [counts]: add that table");
        stages.push(Box::new(pmi::Scoring::new(pmi)?));
    }
    if let (Some(_), Some(words)) = (&config.maps, words)
        && let Some(maps) = mapping(config, texts("maps")?, words.clone())?
    {
        stages.extend(match cut.in_place_of(maps::NAME) {
            Some(uncut) => vec![uncut],
            None => maps.stages(cut.parts()),
        });
    }
    if let (Some(tag), Some(corpus), Some(_)) = (&config.tag, &corpus, &config.sources) {
        stages.extend(match cut.in_place_of(mentions::NAME) {
            Some(uncut) => vec![uncut],
            None => mentions::Mentions::new(tag, corpus, places)?.stages(cut.parts()),
        });
    }
    Ok(stages)
}

fn mapping(
    config: &Config,
    corpus: &corpus::Corpus,
    vocabulary: (vocabulary::Source, Case),
) -> anyhow::Result<Option<maps::Mapping>> {
    let parsed: Vec<_> =
        config.benchmarks.iter().filter_map(|of| Some(&of.parsed.as_ref()?.format)).collect();
    let around = maps::Around { counts: config.counts.as_ref(), pmi: config.pmi.as_ref(), parsed: &parsed };
    config.maps.as_ref().map(|maps| maps::Mapping::new(maps, corpus, vocabulary, around)).transpose()
}

/// Stage `maps` alone: for the maps of one text, or of questions to a model that attends by them.
///
/// # Errors
/// When the config describes no maps, or as [`all`].
pub(crate) fn maps_alone(
    config: &Config,
    data: Option<&Path>,
    remotes: &Arc<remote::Remotes>,
) -> anyhow::Result<maps::Mapping> {
    let places = location::Places { data, world: config.world.is_some(), remotes };
    let vocabulary = vocabulary::Vocabulary::new(&config.vocabulary, config.encoder.as_ref(), &places)?;
    let corpus = config.corpus.as_ref().map(|corpus| corpus::Corpus::new(corpus, &places)).transpose()?;
    let found = match corpus {
        Some(corpus) => mapping(config, &corpus, (vocabulary.source(), config.vocabulary.case))?,
        None => None,
    };
    found.ok_or_else(|| {
        anyhow::anyhow!("the config has no [maps]: add that table, or give a config that has it")
    })
}

#[cfg(test)]
mod tests;
