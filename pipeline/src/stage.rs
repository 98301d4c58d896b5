//! The stages in data-flow order, built from a config: thin adapters between the engine and the libraries. Knows no terminal.

use std::path::Path;
use std::sync::Arc;

use crate::config::Config;
use crate::engine::stage::Stage;

pub mod audit;
mod folder;
pub mod location;
mod metrics;
pub mod remote;
pub mod report;
pub mod retrain;
pub mod shards;
pub mod source;
pub mod split;
pub mod stream;
pub mod summary;
pub mod texts;
pub mod triples;
pub mod vocabulary;
pub mod world;

/// All stages that `config` describes, in data-flow order. Relative paths of outside data count from `data`; remote ones are left
/// with `remotes`, to be brought before the stages are looked at.
///
/// # Errors
/// When the config names a place that cannot be meant, such as outside data without `--data`.
pub fn all(
    config: &Config,
    data: Option<&Path>,
    remotes: &Arc<remote::Remotes>,
) -> anyhow::Result<Vec<Box<dyn Stage>>> {
    let mut stages: Vec<Box<dyn Stage>> = Vec::new();
    if let Some(world) = &config.world {
        stages.push(Box::new(world::World { config: *world }));
    }
    let places = location::Places { data, world: config.world.is_some(), remotes };
    stages.push(Box::new(triples::Triples::new(&config.sources, &config.canon, &places)?));
    config.split.check()?;
    stages.push(Box::new(split::Splitting { config: config.split.clone() }));
    let vocabulary = vocabulary::Vocabulary::new(&config.vocabulary, &places)?;
    let (vocabulary_source, case) = (vocabulary.source(), config.vocabulary.case);
    if vocabulary.is_trained() {
        stages.push(Box::new(vocabulary));
    }
    config.summary.check()?;
    stages.push(Box::new(summary::Summarising {
        config: config.summary.clone(),
        vocabulary: vocabulary_source.clone(),
        case,
        limits: config.shards.layout.limits,
    }));
    stages.push(Box::new(report::Reporting));
    let shards = shards::Shards::new(&config.shards, (vocabulary_source, case), &places)?;
    stages.push(Box::new(shards.clone()));
    stages.push(Box::new(audit::Audit { config: config.split.clone() }));
    if let Some(retrain) = &config.retrain {
        stages.push(Box::new(retrain::Retrain::new(retrain, shards, &places)?));
    }
    Ok(stages)
}
