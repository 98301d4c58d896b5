//! The stages of the table `[lama]` among the others of a config.

use std::sync::Arc;

use tasks::token::encode::Case;

use super::{Asking, Which, room};
use crate::config::Config;
use crate::engine::stage::Stage;
use crate::stage::{corpus, encoder, finetune, location, mapping, sizes, vocabulary};

/// The stages that ask masked language models for facts.
pub(crate) fn asking(
    config: &Config,
    encoder: &encoder::Base,
    words: &(vocabulary::Source, Case),
    places: &location::Places<'_>,
) -> anyhow::Result<Vec<Box<dyn Stage>>> {
    let Some(lama) = &config.lama else { return Ok(vec![]) };
    let stage = |there: bool, name: &str| there.then(|| encoder::Base::Stage(name.to_owned()));
    let bases = |which: Which| match which {
        Which::Base => matches!(encoder, encoder::Base::Checkpoint(_)).then(|| encoder.clone()),
        Which::Pretrain => stage(config.pretrain.is_some(), "pretrain"),
        Which::Retrain => stage(config.retrain.is_some() && config.graft.is_none(), "retrain"),
    };
    if let Some(sizes) = sizes(config, places)? {
        room(lama.max_tokens, sizes.max_position_embeddings)?;
    }
    let maps = |name: &str| {
        let by_maps = |of: &finetune::attention::Config| {
            of.has_maps() && name.starts_with(&format!("finetune-{}-", of.name))
        };
        match &config.corpus {
            Some(corpus) if config.attentions.iter().any(by_maps) => {
                Ok(mapping(config, &corpus::Corpus::new(corpus, places)?, words.clone())?.map(Arc::new))
            }
            _ => Ok(None),
        }
    };
    let stages = Asking::all(lama, &bases, &maps, words, config.compute, places)?;
    Ok(stages.into_iter().map(|stage| Box::new(stage) as Box<dyn Stage>).collect())
}

/// Whether the fine-tunings that are to be asked are among the stages.
///
/// # Errors
/// Names one that is not, and those that are.
pub(crate) fn are_made(config: &Config, stages: &[Box<dyn Stage>]) -> anyhow::Result<()> {
    for name in config.lama.iter().flat_map(|lama| &lama.finetuned) {
        let made = |of: &&str| of.starts_with("finetune-");
        let names: Vec<&str> = stages.iter().map(|stage| stage.name()).filter(made).collect();
        anyhow::ensure!(
            names.contains(&name.as_str()),
            "lama.finetuned has {name:?}, which the config does not make; its fine-tunings are {}",
            names.join(", ")
        );
    }
    Ok(())
}
