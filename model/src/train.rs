//! Steps over batches of one task or several: losses, gradients, updates, and a state to resume from. One trainer for pretraining, retraining,
//! fine-tuning and recipes: their tasks are outputs like others ([`crate::output::shards`] has those of shards).

mod best;
pub mod collective;
mod composed;
pub mod config;
mod coverage;
mod error;
mod frozen;
pub mod heads;
pub mod lora;
mod machine;
mod micro;
#[cfg(feature = "cuda")]
mod on_cuda;
pub mod patience;
mod ranks;
pub mod record;
mod seal;
mod state;
mod step;
pub mod writer;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use base::rng::CounterRng;
use candle_core::{Device, Tensor};
use serde_json::Value;

use crate::Error;
use crate::attention::label;
use crate::checkpoint::proof::Proof;
use crate::checkpoint::stored::Stored;
use crate::checkpoint::{self, classifier, masked_lm};
use crate::head::slices::listed;
use crate::optim::head_mask::HeadMask;
use crate::params::{Params, Spec, is_of_encoder, of_outputs};
use crate::predict::{Index, Predictor};
use composed::Composed;
pub use config::{Config, Setup};
use coverage::Coverage;
use heads::Mode;
use lora::Adapters;
use machine::Machine;
use patience::Watch;
pub use ranks::Next;
use ranks::Ranks;
pub use record::{Records, StepRecord, TaskRecord};
use seal::Seal;
pub use state::Snapshot;

/// An encoder with the outputs of its tasks, their optimiser and the number of steps made.
#[derive(Debug)]
pub struct Trainer {
    setup: Setup,
    params: Params,
    /// What computes the steps.
    machine: Box<dyn Machine>,
    /// With whom it trains.
    ranks: Ranks,
    /// Parameters that do not move, with the reason.
    frozen: BTreeMap<String, &'static str>,
    /// How updates spare kept heads.
    heads: HeadMask,
    /// What moves some of the encoder's weights instead of updates of their own.
    adapters: Adapters,
    /// What everything frozen was when training began.
    seal: Seal,
    coverage: Coverage,
    /// The same parameters without gradients: what answers.
    predictor: Predictor,
    watch: Watch,
    device: Device,
}

impl Trainer {
    /// A trainer with fresh weights, drawn from `setup.train.seed`.
    ///
    /// # Errors
    /// When the settings contradict each other, the head mask or the gates.
    pub fn new(setup: Setup, device: &Device) -> Result<Self, Error> {
        setup.check()?;
        let params = Params::fresh(&setup.specs(), setup.train.seed, device)?;
        Adapters::of(&setup).begin(&params)?;
        Trainer::over(setup, params, device)
    }

    /// A trainer whose encoder comes from a checkpoint folder; outputs are fresh (one that has the name of an output there is drawn otherwise than it was),
    /// but that of a masked language model is the checkpoint's where it has one ([`masked_lm::published`]). `setup.encoder` must have the checkpoint's sizes (see
    /// [`checkpoint::load`]); its dropout rates may differ.
    ///
    /// # Errors
    /// When the settings contradict each other, the head mask, the gates or the checkpoint.
    pub fn from_checkpoint(setup: Setup, dir: &Path, device: &Device) -> Result<Self, Error> {
        setup.check()?;
        if setup.train.heads.mode == Mode::Scratch {
            return Err(Error::Misfit("train.heads.mode is scratch, which begins with fresh weights: leave the checkpoint out, or use the mode none".to_owned()));
        }
        let params = begin_with(dir, &setup, device)?;
        Adapters::of(&setup).begin(&params)?;
        Trainer::over(setup, params, device)
    }

    fn over(setup: Setup, params: Params, device: &Device) -> Result<Self, Error> {
        let train = &setup.train;
        let heads = train.heads.over(setup.mask.as_ref());
        let (adapters, frozen) = (Adapters::of(&setup), frozen::frozen(&setup, &params, &heads)?);
        let moved = adapters.moved();
        let params = params.freeze(|name| frozen.contains_key(name));
        setup.check_on(device)?;
        let chosen = setup.attention();
        let trained = |name: &str| !frozen.contains_key(name) && !moved.contains(name);
        let machine = machine(&setup, &params, trained, &heads, device)?;
        let weighs = setup.outline.tasks.iter().filter(|task| task.alpha > 0.0);
        let tasks = weighs.map(|task| task.name.clone()).collect();
        let coverage = Coverage::new(&params, trained, tasks, train.covered_by);
        let seal = Seal::of(&params, &frozen, &heads)?;
        let mut predictor = Predictor::over(&setup.encoder, &setup.outline, &chosen, &params, device)?;
        if let Some(gates) = &setup.gates {
            predictor = predictor.with_gates(gates.clone())?;
        }
        let device = device.clone();
        let watch = Watch::new();
        let ranks = Ranks::default();
        Ok(Trainer {
            setup,
            params,
            machine,
            ranks,
            frozen,
            heads,
            adapters,
            seal,
            coverage,
            predictor,
            watch,
            device,
        })
    }

    /// The model as it is after the steps made so far, without gradients; it follows later ones.
    #[must_use]
    pub fn predictor(&self) -> &Predictor {
        &self.predictor
    }

    /// Gives the labels that it attends with other embeddings `[m, d]` than those drawn, before the first step; see
    /// [`label::begin`].
    ///
    /// # Errors
    /// When it attends with no labels or other ones, or has made a step.
    pub fn begin_labels(&mut self, embeddings_md: &Tensor) -> Result<(), Error> {
        self.begin(&BTreeMap::from([(label::name(), embeddings_md.clone())]))
    }

    /// Gives parameters other numbers than those drawn or loaded, before the first step.
    ///
    /// # Errors
    /// When it has no such parameter or one of another shape, or has made a step.
    pub fn begin(&mut self, with: &BTreeMap<String, Tensor>) -> Result<(), Error> {
        if let (Some(name), 1..) = (with.keys().next(), self.steps()) {
            return Err(Error::Misfit(format!(
                "after {steps} steps {name} cannot begin anew; set it before the first step",
                steps = self.steps()
            )));
        }
        for (name, numbers) in with {
            self.params.set(name, &numbers.to_device(&self.device)?)?;
        }
        self.adapters.begin(&self.params)?;
        self.machine.weights_were_set()?;
        // What is frozen is frozen as it is now.
        self.seal = Seal::of(&self.params, &self.frozen, &self.heads)?;
        Ok(())
    }

    /// Steps made so far.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.machine.updates()
    }

    /// Bytes of a GPU that activations and their gradients took in the last step or evaluation, in its largest micro-batch; none on the CPU, where nobody counts them.
    #[must_use]
    pub fn activation_bytes(&self) -> Option<usize> {
        self.machine.activation_bytes()
    }

    /// All parameters: the encoder's, the outputs' under `outputs.TASK.`, and those of adapters under `adapters.`.
    #[must_use]
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Parameters that do not move, with the reason. Those of which only some heads do not are
    /// [`Trainer::frozen_heads`].
    #[must_use]
    pub fn frozen(&self) -> &BTreeMap<String, &'static str> {
        &self.frozen
    }

    /// Parameters that are trained but for some heads, with the heads that are frozen. In the account of what had a gradient, those
    /// slices count as frozen: one that is trained must have had one somewhere else.
    #[must_use]
    pub fn frozen_heads(&self) -> BTreeMap<&str, Vec<usize>> {
        let partly = self.heads.partly_frozen().into_iter();
        partly.filter(|(name, _)| !self.frozen.contains_key(*name)).collect()
    }

    /// [`Trainer::frozen`] and [`Trainer::frozen_heads`] formatted, and what adapters move: what is not trained of each parameter, and why.
    #[must_use]
    pub fn frozen_reasons(&self) -> BTreeMap<String, String> {
        let whole = self.frozen.iter().map(|(name, why)| (name.clone(), (*why).to_owned()));
        let partly = self.frozen_heads().into_iter().map(|(name, heads)| {
            let why =
                format!("the head mask keeps heads {} (from 0); the others are trained", listed(&heads));
            (name.to_owned(), why)
        });
        let moved = self.adapters.moved().into_iter().map(|name| (name, lora::MOVED.to_owned()));
        whole.chain(partly).chain(moved).collect()
    }

    /// Whether everything frozen, to the bit, is what training began with. [`Trainer::save_checkpoint`] asks it as well.
    ///
    /// # Errors
    /// Names the first parameter, and its head, that is not.
    pub fn check_frozen(&self) -> Result<(), Error> {
        match self.seal.broken(&self.params, &self.heads)? {
            Some((parameter, head)) => Err(Error::Misfit(format!(
                "{parameter}{} is frozen, but after step {step} it is not what training began with; nothing of this training can be relied on, report it",
                head.map_or(String::new(), |head| format!(", head {head} (from 0),")),
                step = self.steps()
            ))),
            None => Ok(()),
        }
    }

    /// Writes the state to resume from into `dir`, which is made if only it is missing, with what the caller keeps `along` with it; that is
    /// handed back by [`Trainer::resume`]. A crash leaves the old state or the new one.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn save_state(&self, dir: &Path, along: &Value) -> Result<(), Error> {
        Snapshot::of(self, dir, along.clone(), |tensor| Ok(tensor.clone()))?.write()
    }

    /// The same state with copies of parameters and moments in main memory: a [`writer::Writer`] writes it while further steps are made.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn snapshot(&self, dir: &Path, along: &Value) -> Result<Snapshot, Error> {
        let copy = |tensor: &Tensor| match tensor.device() {
            Device::Cpu => tensor.copy(),
            _ => tensor.to_device(&Device::Cpu),
        };
        Snapshot::of(self, dir, along.clone(), copy)
    }

    /// A trainer as it was when its state was written, with what was given as `along`. The same batches then give the
    /// same bits on the same machine.
    ///
    /// # Errors
    /// When there is no whole state in `dir`, any of its files is not what was written, or it was made with other settings, another head mask or
    /// other gates than `setup` has.
    pub fn resume(setup: Setup, dir: &Path, device: &Device) -> Result<(Self, Value), Error> {
        setup.check()?;
        let (loaded, params) = state::load(dir, &setup.run()?, &setup.specs(), device)?;
        let mut trainer = Trainer::over(setup, params, device)?;
        let along = loaded.restore(&mut trainer)?;
        Ok((trainer, along))
    }

    /// Writes a folder that [`Predictor::load`] and `transformers` read: the encoder, the outputs beside it and what they are
    /// ([`checkpoint::OUTPUTS_FILE`]); adapters are added to the weights, and lie beside them as well ([`checkpoint::adapters`]). It takes the place of a checkpoint in `dir` as a whole; other files there stay. Nothing is written when
    /// something frozen has moved.
    ///
    /// # Errors
    /// When a file cannot be written, or [`Trainer::check_frozen`] has an error.
    pub fn save_checkpoint(&self, dir: &Path) -> Result<(), Error> {
        self.finished(self.params.clone())?.save(dir)
    }

    /// The checkpoint of now, whose numbers are those of `params`.
    fn finished(&self, params: Params) -> Result<checkpoint::Finished, Error> {
        self.idle()?;
        self.check_frozen()?;
        let index = Index {
            version: checkpoint::OUTPUTS_VERSION,
            step: self.steps(),
            outputs: self.setup.outline.clone(),
            gates: self.setup.gates.clone(),
        };
        let index = state::to_json(Path::new(checkpoint::OUTPUTS_FILE), &index)?;
        let classifier = match self.setup.gates {
            None => classifier::of(&self.setup.outline, &self.setup.encoder, &params)?,
            Some(_) => None,
        };
        let is_trained = |name: &str| !self.frozen.contains_key(name);
        let adapters = self.adapters.adapted(&params, is_trained)?;
        Ok(checkpoint::Finished { config: self.setup.encoder.clone(), params, classifier, adapters, index })
    }
}

/// What computes the steps on a device.
fn machine(
    setup: &Setup,
    params: &Params,
    trained: impl Fn(&str) -> bool,
    heads: &HeadMask,
    device: &Device,
) -> Result<Box<dyn Machine>, Error> {
    #[cfg(feature = "cuda")]
    if device.is_cuda() {
        return Ok(Box::new(on_cuda::OnCuda::new(setup, params, trained, heads, device)?));
    }
    Ok(Box::new(Composed::new(setup, params, trained, heads, device)?))
}

/// The parameters of an encoder of the setup's sizes from a checkpoint folder, and fresh ones of outputs; that of masked words is the checkpoint's
/// where it has one.
fn begin_with(dir: &Path, setup: &Setup, device: &Device) -> Result<Params, Error> {
    let seed = setup.train.seed;
    let (loaded, stored) = checkpoint::load_with_outputs(dir, device)?;
    let checkpoint::Checkpoint { params, fresh, .. } = loaded;
    let mut tensors: BTreeMap<String, Tensor> =
        params.iter().map(|(name, tensor)| (name.to_owned(), tensor.clone())).collect();
    // A pooler that the checkpoint lacks is as new as an output: another seed, another one.
    let specs = setup.specs();
    let drawn: Vec<Spec> = specs
        .iter()
        .filter(|spec| fresh.contains(&spec.name) || !is_of_encoder(&spec.name))
        .cloned()
        .collect();
    for (name, tensor) in draw(&drawn, seed, dir, device)?.iter() {
        tensors.insert(name.to_owned(), tensor.clone());
    }
    if setup.outline.has_masked_lm() && masked_lm::lacking(&stored).is_none() {
        let output = masked_lm::read(&stored, device)?.into_iter();
        tensors.extend(output.map(|(name, tensor)| (of_outputs(&name), tensor)));
    }
    Params::from_tensors(&specs, tensors)
}

/// Fresh parameters, each drawn by the seed and its name. Where the encoder in `dir` has learnt with an output of that name, a new one is drawn otherwise: begun
/// as the old one was, it would be half learnt already, and what it comes to would say little of the encoder.
fn draw(specs: &[Spec], seed: u64, dir: &Path, device: &Device) -> Result<Params, Error> {
    let path = dir.join(checkpoint::OUTPUTS_WEIGHTS_FILE);
    let known: BTreeSet<String> = match path.exists() {
        true => Stored::open(&path)?.names().map(of_outputs).collect(),
        false => BTreeSet::new(),
    };
    let (again, new): (Vec<Spec>, Vec<Spec>) =
        specs.iter().cloned().partition(|spec| known.contains(&spec.name));
    if again.is_empty() {
        return Params::fresh(&new, seed, device);
    }
    let proof = Proof::of_file(&path).map_err(Error::file(&path))?;
    let other = CounterRng::new(seed).named(&proof.blake3).key();
    Ok(Params::fresh(&new, seed, device)?.with(Params::fresh(&again, other, device)?))
}

#[cfg(test)]
pub(crate) mod tests;
