//! The stages of the table `[lama]` among the others of a config.

use std::sync::Arc;

use downstream::example::Kind;
use tasks::token::encode::Case;

use super::{Asking, Which};
use crate::config::Config;
use crate::engine::stage::Stage;
use crate::stage::{benchmark, corpus, encoder, finetune, location, mapping, sizes, vocabulary};

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
        encoder::room("lama", lama.max_tokens, sizes.max_position_embeddings)?;
    }
    let maps = |name: &str| {
        let is_of = |row: &str| name.starts_with(&format!("finetune-{row}-"));
        let by_maps = |of: &finetune::attention::Config| {
            let mut recipes =
                config.recipes.iter().filter(|recipe| recipe.attention.as_ref() == Some(&of.name));
            of.has_maps() && (is_of(&of.name) || recipes.any(|recipe| is_of(&recipe.name)))
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
    let Some(lama) = &config.lama else { return Ok(()) };
    let masked = |of: &&benchmark::Config| of.kind() == Some(Kind::MaskedWords) && of.trained_on.is_none();
    let masked: Vec<String> =
        config.benchmarks.iter().filter(masked).map(|of| format!("-{}", of.name)).collect();
    let on = |name: &str| {
        let row = name.rsplit_once('-').map_or("", |(row, _)| row);
        name.starts_with("finetune-") && masked.iter().any(|end| row.ends_with(end))
    };
    let names: Vec<&str> = stages.iter().map(|stage| stage.name()).filter(|name| on(name)).collect();
    for (place, name) in lama.finetuned.iter().enumerate() {
        anyhow::ensure!(
            names.contains(&name.as_str()),
            "lama.finetuned has {name:?}, which is no fine-tuning on masked words of this config; it has {}",
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        );
        anyhow::ensure!(
            !lama.finetuned[..place].contains(name),
            "lama.finetuned has {name:?} twice: leave one out"
        );
    }
    Ok(())
}
