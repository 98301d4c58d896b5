//! Encoders in and out as Hugging Face folders: `config.json` and `model.safetensors`.

pub mod adapters;
pub(crate) mod classifier;
mod config_file;
pub mod digests;
pub(crate) mod error;
pub mod masked_lm;
mod names;
mod pickle;
mod place;
pub mod proof;
mod published;
pub(crate) mod stored;
pub(crate) mod swap;
pub(crate) mod whole;
mod zip;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use serde_json::Value;

use crate::Error;
use crate::encoder::config::Config;
use crate::encoder::embedding::{POSITION, TOKEN};
use crate::encoder::{Encoder, pool};
use crate::params::OUTPUTS;
use crate::params::{self, Params};
use adapters::Adapted;
use classifier::Classifier;
use stored::Stored;
pub use swap::remove_leftovers;
pub use whole::read_settings;

/// The file of sizes in a checkpoint folder.
pub const CONFIG_FILE: &str = "config.json";
/// The file of weights in a checkpoint folder.
pub const WEIGHTS_FILE: &str = "model.safetensors";
/// The list of files in folders whose weights are in several; it is read where [`WEIGHTS_FILE`] is not there.
pub const SHARDS_FILE: &str = "model.safetensors.index.json";
/// The file of weights in folders that were published before safetensors; it is read where neither of the others is there.
pub const PICKLE_FILE: &str = "pytorch_model.bin";

/// The file in a checkpoint folder that says what the outputs are; written last.
pub const OUTPUTS_FILE: &str = "outputs.json";
/// The file of the outputs' weights in a checkpoint folder.
pub const OUTPUTS_WEIGHTS_FILE: &str = "outputs.safetensors";
/// The version of [`OUTPUTS_FILE`].
pub const OUTPUTS_VERSION: u32 = 3;

/// A table of token embeddings may have fewer than this many rows more than there are tokens: it was padded to a multiple of some power of 2.
/// More would rather be another model's.
pub const PADDING: usize = 128;

/// An encoder read from a folder.
#[derive(Debug)]
pub struct Checkpoint {
    /// Its sizes.
    pub config: Config,
    /// Its parameters, under the names of [`Encoder::specs`].
    pub params: Params,
    /// Names in the file that belong to outputs of the publisher and were left out.
    pub left_out: Vec<String>,
    /// Parameters of the encoder that the file lacks and that were drawn anew: the pooler's, or none.
    pub fresh: Vec<String>,
}

/// Reads an encoder from a folder with [`CONFIG_FILE`] and [`WEIGHTS_FILE`], [`SHARDS_FILE`] or [`PICKLE_FILE`]. Names may carry the prefix `bert.`
/// or `roberta.` and the old endings `gamma` and `beta`. RoBERTa computes what BERT does; of its table of positions the first rows, which no token
/// has, are left out, so that positions count from 0. A folder with digests must be what was written.
///
/// A table of token embeddings may have some rows more than the configuration says (see [`PADDING`]): the configuration then has as many, and what is
/// saved has them too.
///
/// # Errors
/// Names the file and what is wrong: what differs from the digests, parameters that are missing or unexpected, the first number that is not finite.
pub fn load(dir: &Path, device: &Device) -> Result<Checkpoint, Error> {
    load_with_outputs(dir, device).map(|(checkpoint, _)| checkpoint)
}

/// An encoder read from a folder, and whatever else its file of weights holds.
#[derive(Debug)]
pub struct Whole {
    /// The encoder.
    pub checkpoint: Checkpoint,
    /// The tensors of the publisher's outputs, which [`Checkpoint::left_out`] names, under the names in the file.
    pub outputs: BTreeMap<String, Tensor>,
}

/// As [`load`], with the tensors of outputs.
///
/// # Errors
/// As [`load`].
pub fn load_whole(dir: &Path, device: &Device) -> Result<Whole, Error> {
    let (checkpoint, stored) = load_with_outputs(dir, device)?;
    // A table of numbers from 0, which old files have, is no weight.
    let weights = checkpoint.left_out.iter().filter(|name| !name.ends_with("position_ids"));
    let outputs = weights.map(|name| Ok((name.clone(), stored.read(name, device)?)));
    let outputs = outputs.collect::<Result<_, Error>>()?;
    Ok(Whole { checkpoint, outputs })
}

/// As [`load`], with the file that the tensors of outputs, which [`Checkpoint::left_out`] names, can be read from.
pub(crate) fn load_with_outputs(dir: &Path, device: &Device) -> Result<(Checkpoint, Stored), Error> {
    digests::verify(dir)?;
    load_verified(dir, device)
}

/// As [`load_with_outputs`] without the digests.
pub(crate) fn load_verified(dir: &Path, device: &Device) -> Result<(Checkpoint, Stored), Error> {
    let mut config = config_file::read(&dir.join(CONFIG_FILE))?;
    let (path, stored) = weights(dir)?;
    let (mut origins, mut left_out) = (BTreeMap::new(), vec![]);
    let has_own_pooler = stored.names().any(|name| name.starts_with(classifier::OWN));
    for name in stored.names() {
        let known = names::encoder_name(name);
        // What stands in the place of the encoder's own pooler is a part of the output.
        let known =
            known.filter(|known| !has_own_pooler || !pool::has(known) || name.starts_with(classifier::OWN));
        let Some(known) = known else {
            left_out.push(name.to_owned());
            continue;
        };
        if let Some(first) = origins.insert(known, name) {
            return Err(error::twice(&path, first, name));
        }
    }
    let rows = origins.get(TOKEN).and_then(|name| stored.shape(name)?.first().copied());
    config.vocab_size = rows.filter(|rows| is_padded(config.vocab_size, *rows)).unwrap_or(config.vocab_size);
    // `transformers` saves models for token tasks without the pooler, which is then as new as a task's output.
    let pooler = pool::pooler_specs(&config);
    let lacking = pooler.iter().all(|spec| !origins.contains_key(spec.name.as_str()));
    let unused = published::unused_positions(&config);
    let specs_of = |config: &Config| {
        let mut specs = Encoder::specs(config);
        specs.retain(|spec| !lacking || !pooler.contains(spec));
        specs
    };
    let specs = specs_of(&config);
    let in_file =
        Config { max_position_embeddings: config.max_position_embeddings + unused, ..config.clone() };
    let wrong = |source: Error| error::in_file(&path, source);
    // Before any of them is read: what does not fit may be of any size.
    let shapes = origins.iter().filter_map(|(known, name)| Some((known.as_str(), stored.shape(name)?)));
    params::check(&specs_of(&in_file), shapes).map_err(wrong)?;
    let mut tensors = BTreeMap::new();
    for (known, name) in &origins {
        let mut tensor = stored.read(name, device)?;
        if known == POSITION && unused > 0 {
            tensor = tensor.narrow(0, unused, config.max_position_embeddings)?.copy()?;
        }
        tensors.insert(known.clone(), tensor);
    }
    let mut params = Params::from_tensors(&specs, tensors).map_err(wrong)?;
    let mut fresh = vec![];
    if lacking {
        params = params.with(Params::fresh(&pooler, 0, device).map_err(wrong)?);
        fresh = pooler.iter().map(|spec| spec.name.clone()).collect();
        fresh.sort();
    }
    Ok((Checkpoint { config, params, left_out, fresh }, stored))
}

/// Whether a table of so many rows is one of so many tokens, padded.
#[must_use]
pub fn is_padded(tokens: usize, rows: usize) -> bool {
    (tokens..tokens.saturating_add(PADDING)).contains(&rows)
}

/// The file of weights in a folder, and what is in it.
fn weights(dir: &Path) -> Result<(PathBuf, Stored), Error> {
    let [path, shards, pickle] = [WEIGHTS_FILE, SHARDS_FILE, PICKLE_FILE].map(|name| dir.join(name));
    match [&path, &shards, &pickle].map(|path| path.symlink_metadata().is_ok()) {
        [false, true, _] => Stored::sharded(&shards).map(|stored| (shards, stored)),
        [false, false, true] => Stored::pickled(&pickle).map(|stored| (pickle, stored)),
        _ => Stored::open(&path).map(|stored| (path, stored)),
    }
}

/// The sizes of the encoder in a folder, without its weights.
///
/// # Errors
/// Names the file and what is wrong.
pub fn sizes(dir: &Path) -> Result<Config, Error> {
    config_file::read(&dir.join(CONFIG_FILE))
}

/// Whether a folder has sizes, and weights whose list can be read: what can be told without reading the weights.
///
/// # Errors
/// Names the file and what is wrong.
pub fn foresee(dir: &Path) -> Result<(), Error> {
    sizes(dir)?;
    weights(dir).map(drop)
}

/// Writes an encoder's folder so that `transformers.AutoModel.from_pretrained` reads it: first the sizes, then the
/// weights, each file whole. `tensors` carry the names of [`Encoder::specs`].
///
/// # Errors
/// When a file cannot be written.
pub fn save<'a>(
    dir: &Path,
    config: &Config,
    tensors: impl Iterator<Item = (&'a str, &'a Tensor)>,
) -> Result<(), Error> {
    save_as(dir, config, None, tensors)
}

fn save_as<'a>(
    dir: &Path,
    config: &Config,
    classifier: Option<&Classifier>,
    tensors: impl Iterator<Item = (&'a str, &'a Tensor)>,
) -> Result<(), Error> {
    config_file::write(&dir.join(CONFIG_FILE), config, classifier)?;
    let mut tensors: Vec<(&str, Cow<'_, Tensor>)> =
        tensors.map(|(name, tensor)| (name, Cow::Borrowed(tensor))).collect();
    if published::unused_positions(config) > 0 {
        for (_, table) in tensors.iter_mut().filter(|(name, _)| name.ends_with(POSITION)) {
            *table = Cow::Owned(published::with_unused(config, table)?);
        }
    }
    whole::write_tensors(
        &dir.join(WEIGHTS_FILE),
        tensors.iter().map(|(name, tensor)| (*name, tensor.as_ref())),
    )?;
    Ok(())
}

/// A finished training.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Sizes of the encoder.
    pub(crate) config: Config,
    /// All parameters.
    pub(crate) params: Params,
    /// The output as `transformers` has it, where it has it.
    pub(crate) classifier: Option<Classifier>,
    /// What was added to the encoder's weights, if anything was.
    pub(crate) adapters: Option<Adapted>,
    /// What [`OUTPUTS_FILE`] says.
    pub(crate) index: Value,
}

impl Finished {
    /// Writes it so that it takes the place of whatever checkpoint lies in `dir` as a whole: the encoder as [`save`] does, the outputs, whose names begin
    /// with `outputs.`, in [`OUTPUTS_WEIGHTS_FILE`], adapters as [`adapters`] says, and the digests of all in [`digests::DIGESTS_FILE`].
    pub(crate) fn save(&self, dir: &Path) -> Result<(), Error> {
        let Finished { config, params, classifier, adapters, index } = self;
        let classifier = classifier.as_ref();
        swap::replace(dir, |work| {
            let named = named(config, params, classifier);
            save_as(work, config, classifier, named.iter().map(|(name, tensor)| (name.as_str(), *tensor)))?;
            let outputs =
                params.iter().filter_map(|(name, tensor)| Some((name.strip_prefix(OUTPUTS)?, tensor)));
            whole::write_tensors(&work.join(OUTPUTS_WEIGHTS_FILE), outputs)?;
            if let Some(adapters) = adapters {
                adapters.write(work)?;
            }
            whole::write_json(&work.join(OUTPUTS_FILE), index)?;
            digests::seal(work)
        })
    }
}

/// The encoder's parameters as `BertModel` or `RobertaModel` has them; where there is an output of masked words, with it and as `BertForMaskedLM` or
/// `RobertaForMaskedLM` has them; where there is a classifier, with it and as its class has them.
fn named<'p>(
    config: &Config,
    params: &'p Params,
    classifier: Option<&'p Classifier>,
) -> BTreeMap<String, &'p Tensor> {
    let outputs = params.iter().filter_map(|(name, tensor)| Some((name.strip_prefix(OUTPUTS)?, tensor)));
    let of_masked = outputs.filter_map(|(name, tensor)| {
        Some((masked_lm::published_name(name, config.family)?.to_owned(), tensor))
    });
    let mut named: BTreeMap<String, &Tensor> = of_masked.collect();
    named.extend(
        classifier.iter().flat_map(|of| of.tensors.iter().map(|(name, tensor)| (name.clone(), tensor))),
    );
    let prefix = if named.is_empty() { "" } else { published::of(config.family).prefix };
    let moved = classifier.is_some_and(|of| of.has_pooler);
    let encoder = params.iter().filter(|(name, _)| params::is_of_encoder(name));
    named.extend(encoder.map(|(name, tensor)| {
        let prefix = if moved && pool::has(name) { classifier::OWN } else { prefix };
        (format!("{prefix}{name}"), tensor)
    }));
    named
}

/// What `transformers` loads the output of a folder as, behind `AutoModelFor`; nothing where it has no class for it.
///
/// # Errors
/// When its `config.json` cannot be read.
pub fn loaded_as(dir: &Path) -> Result<Option<String>, Error> {
    Ok(class(&config(dir)?).map(str::to_owned))
}

fn config(dir: &Path) -> Result<Value, Error> {
    let path = dir.join(CONFIG_FILE);
    serde_json::from_slice(&read_settings(&path)?).map_err(|source| error::json(&path, &source))
}

fn class(config: &Value) -> Option<&str> {
    Some(config["architectures"][0].as_str()?.split_once("For")?.1)
}

/// Says in the `config.json` of a folder how the classes of its output are called and, of whole rows, what kind of problem it is (`id2label` and
/// `problem_type` of `transformers`). Does nothing where `transformers` has no class for the output.
///
/// # Errors
/// When a file has changed since it was written, or cannot be read or written.
pub fn name_classes(dir: &Path, names: &[String], problem: Option<&str>) -> Result<(), Error> {
    let mut config = config(dir)?;
    if !class(&config).is_some_and(|class| class.ends_with("Classification")) {
        return Ok(());
    }
    let of_names = || names.iter().enumerate();
    config["id2label"] =
        of_names().map(|(class, name)| (class.to_string(), Value::from(name.as_str()))).collect();
    config["label2id"] = of_names().map(|(class, name)| (name.clone(), Value::from(class))).collect();
    if let Some(problem) = problem {
        config["problem_type"] = problem.into();
    }
    digests::rewrite(dir, CONFIG_FILE, format!("{config:#}\n").as_bytes())
}

#[cfg(test)]
mod tests;
