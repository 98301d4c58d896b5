//! A step from the batch to the weights: one copy up, the launches, one copy down.

use std::collections::BTreeMap;

use base::rng::CounterRng;
use candle_core::cuda_backend::CudaDevice;
use candle_core::{DType, Device, Tensor};

use super::arenas::{Arenas, IsTrained};
use super::args::Ring;
use super::encoder::{self, Encoder, Keep, Pass};
use super::feed::{Base, Feed, Sent};
use super::flight::{Flights, Waits};
use super::memory::{Arena, Block, Bump};
use super::outputs::{self, Into, Outputs, Slot};
use super::update::{Places, Rule, Updates};
use super::{Cuda, error};
use crate::Error;
use crate::attention::Chosen;
use crate::device::{ActivationDtype, Recompute};
use crate::encoder::config::Config;
use crate::encoder::tokens::Tokens;
use crate::head::mask::Mask;
use crate::optim::head_mask::HeadMask;
use crate::optim::moments::Moments;
use crate::output::{Batch, Outline};
use crate::params::Params;

/// A model on the device.
#[derive(Debug)]
pub(crate) struct Model {
    pub(super) cuda: Cuda,
    pub(super) arenas: Arenas,
    pub(super) encoder: Encoder,
    pub(super) outputs: Outputs,
    pub(super) config: Config,
    /// Gates of the passes of a training, `[l, h]`.
    pub(super) gates_lh: Option<Vec<f32>>,
    pub(super) memory: Arena,
    /// What goes up of a pass that is waited for.
    pub(super) input: Arena,
    /// What a training's forward pass leaves for the backward pass.
    keep: Keep,
}

/// What a model is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Of<'a> {
    pub(crate) config: &'a Config,
    pub(crate) outline: &'a Outline,
    /// What tokens attend by.
    pub(crate) attention: &'a Chosen,
    pub(crate) params: &'a Params,
    /// Gates of the forward pass.
    pub(crate) gates: Option<&'a Mask>,
    pub(crate) dtype: ActivationDtype,
    pub(crate) recompute: Recompute,
}

/// One micro-batch of a step.
#[derive(Debug)]
pub(crate) struct Micro<'a> {
    /// Tokens of its batches, in main memory.
    pub(crate) tokens: Tokens,
    pub(crate) batches: Vec<&'a Batch>,
    pub(crate) dropout: CounterRng,
    /// What its losses count.
    pub(crate) share: f64,
}

/// What a step has left.
#[derive(Debug)]
pub(crate) struct Landed {
    /// Loss and hits of each batch of each micro-batch.
    pub(crate) losses: Vec<[f64; 2]>,
    /// Norm of all gradients before clipping.
    pub(crate) norm: f64,
    /// The first parameter whose gradient's norm is not finite; nothing was then updated.
    pub(crate) wild: Option<String>,
    /// The norm of each parameter's gradient, by name.
    pub(crate) norms: BTreeMap<String, f64>,
}

/// How steps are made.
#[derive(Debug)]
pub(crate) struct Stepping {
    pub(crate) rule: Rule,
    pub(crate) clip_norm: f64,
    /// Batches that a step can have.
    pub(crate) most: usize,
}

/// A step under way.
#[derive(Debug)]
struct UnderWay {
    batches: usize,
}

/// A training on the device.
#[derive(Debug)]
pub(crate) struct Tape {
    model: Model,
    updates: Updates,
    flights: Flights<UnderWay>,
    /// Batches that a step can have.
    most: usize,
}

/// A micro-batch as it is fed.
pub(super) struct Fed {
    pub(super) encoder: encoder::Fed,
    pub(super) outputs: Vec<outputs::Fed>,
}

/// Memory of a micro-batch.
pub(super) struct Memory {
    pub(super) encoder: encoder::Memory,
    pub(super) outputs: Vec<outputs::Memory>,
}

impl Model {
    /// A model over parameters on a device; a training's where `trained` says what of them moves.
    ///
    /// # Errors
    /// When memory is lacking, or the model has something that kernels do not compute.
    pub(crate) fn new(
        device: &CudaDevice,
        of: Of<'_>,
        heads: &HeadMask,
        trained: Option<IsTrained<'_>>,
    ) -> Result<Self, Error> {
        let Of { config, outline, attention, params, gates, dtype, recompute } = of;
        let Some(attention) = attention.sibling().on_cuda() else {
            return Err(Error::Misfit(
                "this attention has no kernels for CUDA: take the device cpu, or write them".to_owned(),
            ));
        };
        let mut cuda = Cuda::new(device, dtype)?;
        let arenas = Arenas::new(&mut cuda, params, heads, trained)?;
        let gates_lh = gates.map(flat);
        let encoder = Encoder::new(cuda.numbers, &arenas, config, &attention)?;
        let outputs = Outputs::new(&arenas, outline, config)?;
        Ok(Model {
            cuda,
            arenas,
            encoder,
            outputs,
            config: config.clone(),
            gates_lh,
            memory: Arena::new(),
            input: Arena::new(),
            keep: match recompute {
                Recompute::None => Keep::All,
                Recompute::Layers => Keep::Inputs,
            },
        })
    }

    fn feed(
        &self,
        feed: &mut Feed,
        tokens: &Tokens,
        batches: &[&Batch],
        dropout: Option<CounterRng>,
        share: Option<f64>,
    ) -> Result<Fed, Error> {
        let tables = if share.is_some() { self.encoder.trained_tables() } else { [false; 3] };
        let pass = Pass { dropout, tables, gates_lh: self.gates_lh.as_deref() };
        let encoder = self.encoder.feed(feed, &self.config, tokens, pass)?;
        let each = batches.iter().enumerate();
        let outputs = each.map(|(at, batch)| self.outputs.feed(feed, tokens, at, batch, dropout, share));
        let mut outputs = outputs.collect::<Result<Vec<_>, _>>()?;
        if let (Some(share), Some(labels)) = (share, self.encoder.labels()) {
            outputs.push(self.outputs.feed_labels(feed, labels, share)?);
        }
        Ok(Fed { encoder, outputs })
    }

    fn lay_out(&self, bump: &mut Bump, fed: &Fed, keep: Keep) -> Memory {
        let encoder = encoder::Memory::new(bump, &self.encoder, &fed.encoder, keep);
        let bytes = self.cuda.numbers.bytes();
        let outputs = fed.outputs.iter().map(|fed| self.outputs.memory(bump, fed, bytes)).collect();
        Memory { encoder, outputs }
    }

    /// Memory for the largest of some micro-batches; all begin at the same place.
    pub(super) fn memory(&mut self, feds: &[Fed], keep: Keep) -> Result<Vec<Memory>, Error> {
        let measured = feds.iter().map(|fed| {
            let mut bump = Bump::new(None);
            self.lay_out(&mut bump, fed, keep);
            bump.taken()
        });
        let bytes = measured.max().unwrap_or(0);
        let tokens = feds.iter().map(|fed| fed.encoder.rows.n).max().unwrap_or(0);
        let base =
            self.memory.fit(&self.cuda.stream, bytes).map_err(|error| error::no_room(tokens, &error))?;
        Ok(feds.iter().map(|fed| self.lay_out(&mut Bump::new(Some(base)), fed, keep)).collect())
    }

    /// Hidden states, logits and losses of a micro-batch; losses go to a slot's numbers from `first` on.
    pub(super) fn forward(
        &mut self,
        fed: &Fed,
        base: Base,
        memory: &Memory,
        slot: Option<Slot>,
    ) -> Result<(), Error> {
        self.encoder.forward(&mut self.cuda, Sent { fed: &fed.encoder, base }, &memory.encoder)?;
        let labels = self.encoder.labels().map_or(0, |labels| labels.embeddings.product);
        for (at, (of, of_output)) in fed.outputs.iter().zip(&memory.outputs).enumerate() {
            let hidden = if of.of_labels { labels } else { memory.encoder.hidden() };
            self.outputs.logits(&mut self.cuda, Sent { fed: of, base }, hidden, of_output)?;
            if let Some(slot) = slot {
                let slot = Slot { field: slot.field + 2 * at, ..slot };
                self.outputs.loss(&mut self.cuda, Sent { fed: of, base }, of_output, slot)?;
            }
        }
        Ok(())
    }

    fn backward(&mut self, fed: &Fed, base: Base, memory: &Memory) -> Result<(), Error> {
        for (at, (of, of_output)) in fed.outputs.iter().zip(&memory.outputs).enumerate() {
            let gradient = if of.of_labels { of_output.of_labels } else { memory.encoder.gradient };
            let into = Into { hidden: memory.encoder.hidden(), gradient, adds: at > 0 && !of.of_labels };
            self.outputs.backward(&mut self.cuda, Sent { fed: of, base }, of_output, into)?;
            if of.of_labels {
                let encoder = Sent { fed: &fed.encoder, base };
                self.encoder.add_to_labels(&mut self.cuda, encoder, &memory.encoder, gradient)?;
            }
        }
        self.encoder.backward(&mut self.cuda, Sent { fed: &fed.encoder, base }, &memory.encoder)
    }
}

/// The numbers of a mask, `[l, h]`.
pub(super) fn flat(mask: &Mask) -> Vec<f32> {
    (0..mask.shape()[0]).flat_map(|l| mask.layer(l).to_vec()).collect()
}

impl Tape {
    /// A training of a model.
    ///
    /// # Errors
    /// As [`Model::new`].
    pub(crate) fn new(
        device: &CudaDevice,
        of: Of<'_>,
        heads: &HeadMask,
        trained: IsTrained<'_>,
        stepping: Stepping,
    ) -> Result<Self, Error> {
        let Stepping { rule, clip_norm, most } = stepping;
        let model = Model::new(device, of, heads, Some(trained))?;
        let stream = model.cuda.stream.clone();
        let updates = Updates::new(&stream, &model.arenas, rule, clip_norm)?;
        let flights = Flights::new(&stream, 2 * most + 2 + model.arenas.count())?;
        Ok(Tape { model, updates, flights, most })
    }

    /// Launches a step. It may wait for one four steps before, whose numbers are then there to be taken ([`Tape::landed`]): whoever calls this takes what has
    /// landed first.
    ///
    /// # Errors
    /// When memory is lacking, before anything is launched; or when the driver refuses a launch.
    pub(crate) fn step(
        &mut self,
        rate: f64,
        micros: &[Micro<'_>],
        has_gradient: impl Fn(&str) -> bool,
    ) -> Result<(), Error> {
        let model = &mut self.model;
        let mut feed = Feed::default();
        let mut feds = vec![];
        for Micro { tokens, batches, dropout, share } in micros {
            feds.push(model.feed(&mut feed, tokens, batches, Some(*dropout), Some(*share))?);
        }
        let batches = feds.iter().map(|fed| fed.outputs.len()).sum();
        if batches > self.most {
            return Err(Error::Misfit(format!(
                "a step of {batches} batches, at most {} were said; report it",
                self.most
            )));
        }
        let memories = model.memory(&feds, model.keep)?;
        let steps = feed.put(&self.updates.next(&model.arenas, rate, has_gradient));
        let zero = feed.put(&[0_u32]);
        let begun = self.flights.begin(&feed)?;
        let (base, width) = (begun.base, 2 * self.most + 2);
        let mut field = 2;
        for (fed, memory) in feds.iter().zip(&memories) {
            model.forward(fed, base, memory, Some(Slot { numbers: begun.numbers, width, field }))?;
            model.backward(fed, base, memory)?;
            field += 2 * fed.outputs.len();
        }
        let ring = Ring { numbers: begun.numbers, slot: base.of(zero), width: width as u32, unused: 0 };
        let norms = begun.numbers + 8 * width as u64;
        let places = Places { steps: base.of(steps), ring, field: 0, norms };
        self.updates.launch(&mut model.cuda, &model.arenas, places)?;
        self.flights.launched(begun, UnderWay { batches })
    }

    /// Whether the oldest step has to land before the next one.
    pub(crate) fn is_full(&self) -> bool {
        self.flights.is_full()
    }

    /// What the oldest step has left, if it is done or waited for. None where none is under way, or it is not done.
    ///
    /// # Errors
    /// When a step has failed on the device.
    pub(crate) fn landed(&mut self, waits: Waits) -> Result<Option<Landed>, Error> {
        let Some((UnderWay { batches }, numbers)) = self.flights.landed(waits)? else { return Ok(None) };
        let (of_batches, squares) = numbers.split_at(2 * self.most + 2);
        let losses = of_batches[2..].chunks_exact(2).take(batches).map(|both| [both[0], both[1]]).collect();
        let names: Vec<&str> = self.model.arenas.iter().map(|(name, _, _)| name).collect();
        let wild = usize::try_from(of_batches[1] as i64).ok().and_then(|at| names.get(at).copied());
        let norms =
            names.iter().zip(squares).map(|(name, square)| ((*name).to_owned(), square.sqrt())).collect();
        let wild = wild.map(str::to_owned);
        Ok(Some(Landed { losses, norm: of_batches[0], wild, norms }))
    }

    /// Loss and hits of some batches without dropout and without an update.
    ///
    /// # Errors
    /// When memory is lacking or the driver refuses a launch.
    pub(crate) fn evaluate(&mut self, tokens: &Tokens, batches: &[&Batch]) -> Result<Vec<[f64; 2]>, Error> {
        let (model, mut feed) = (&mut self.model, Feed::default());
        let fed = [model.feed(&mut feed, tokens, batches, None, None)?];
        let memory = model.memory(&fed, Keep::Nothing)?;
        let base = Base(model.input.fit(&model.cuda.stream, feed.bytes().len())?);
        model.input.put(feed.bytes())?;
        let found = Block::zeros(&model.cuda.stream, 16 * batches.len())?;
        let slot = Slot { numbers: found.address(), width: 2 * batches.len(), field: 0 };
        model.forward(&fed[0], base, &memory[0], Some(slot))?;
        let mut numbers = vec![0.0_f64; 2 * batches.len()];
        found.get(0, &mut numbers)?;
        Ok(numbers.chunks_exact(2).map(|both| [both[0], both[1]]).collect())
    }

    /// Both moments of each parameter that is trained, in main memory, with the updates that it has had.
    ///
    /// # Errors
    /// When a copy fails.
    pub(crate) fn moments(&mut self, shapes: &Params) -> Result<BTreeMap<String, Moments>, Error> {
        let of = self.model.arenas.training()?;
        let counts = self.updates.counts();
        let mut all = BTreeMap::new();
        for (((name, segment, trained), updates), (_, tensor)) in
            self.model.arenas.iter().zip(counts).zip(shapes.iter())
        {
            let take = |arena: &Block| {
                let mut numbers = vec![0.0_f32; segment.count as usize];
                arena.get(4 * segment.start as usize, &mut numbers)?;
                Ok::<_, Error>(Tensor::from_vec(numbers, tensor.shape(), &Device::Cpu)?)
            };
            if trained {
                let (first, second) = (take(&of.first)?, take(&of.second)?);
                all.insert(name.to_owned(), Moments { first, second, updates: *updates });
            }
        }
        Ok(all)
    }

    /// Puts moments back as [`Tape::moments`] gave them.
    ///
    /// # Errors
    /// When a copy fails.
    pub(crate) fn restore(&mut self, moments: &BTreeMap<String, Moments>) -> Result<(), Error> {
        let of = self.model.arenas.training()?;
        let counts = self.updates.counts();
        for ((name, segment, _), count) in self.model.arenas.iter().zip(counts) {
            let Some(moments) = moments.get(name) else { continue };
            for (arena, tensor) in [(&of.first, &moments.first), (&of.second, &moments.second)] {
                let numbers = tensor.to_device(&Device::Cpu)?.to_dtype(DType::F32)?.flatten_all()?;
                arena.put(4 * segment.start as usize, &numbers.to_vec1::<f32>()?)?;
            }
            *count = moments.updates;
        }
        Ok(())
    }

    /// Weights were set from outside: makes what products read anew.
    ///
    /// # Errors
    /// When the driver refuses a launch.
    pub(crate) fn refresh(&mut self) -> Result<(), Error> {
        self.model.arenas.refresh(&mut self.model.cuda)
    }
}
