//! A step from the batch to the weights: one copy up, the launches, one copy down.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::rng::CounterRng;
use candle_core::cuda_backend::CudaDevice;
use candle_core::{DType, Device, Tensor};

use super::arenas::IsTrained;
use super::args::Ring;
use super::encoder::Keep;
use super::feed::{Feed, Sizes};
use super::flight::{Flights, Waits};
use super::graphs::{GRAPHED, Graphs};
use super::group::Group;
use super::memory::Block;
use super::model::{Model, Of, Share};
use super::outputs::Slot;
use super::update::{Places, Rule, Updates};
use crate::Error;
use crate::encoder::tokens::Tokens;
use crate::optim::head_mask::HeadMask;
use crate::optim::moments::Moments;
use crate::output::Batch;
use crate::params::Params;
use crate::train::collective::Collective;

/// One micro-batch of a step.
#[derive(Debug)]
pub(crate) struct Micro<'a> {
    /// Tokens of its batches, in main memory.
    pub(crate) tokens: Tokens,
    pub(crate) batches: Vec<(&'a Batch, Share)>,
    pub(crate) dropout: CounterRng,
    /// What the loss of the labels counts, where tokens attend with some.
    pub(crate) of_labels: Share,
    /// Its number among those of the step.
    pub(crate) number: usize,
}

/// What a step has left.
#[derive(Debug)]
pub(crate) struct Landed {
    /// Of each micro-batch loss and hits of every task, by its number, and of the labels. What was not asked for is anything.
    pub(crate) losses: Vec<Vec<[f64; 2]>>,
    /// Norm of all gradients before clipping.
    pub(crate) norm: f64,
    /// The first parameter whose gradient's norm is not finite; nothing was then updated.
    pub(crate) wild: Option<String>,
    /// The norm of each parameter's gradient, by name.
    pub(crate) norms: BTreeMap<String, f64>,
}

/// How long to wait before looking whether the other ranks are there.
const LOOK: Duration = Duration::from_micros(200);

/// How steps are made.
#[derive(Debug)]
pub(crate) struct Stepping {
    pub(crate) rule: Rule,
    pub(crate) clip_norm: f64,
    /// Micro-batches that a step can have.
    pub(crate) micros: usize,
}

/// A training on the device.
#[derive(Debug)]
pub(crate) struct Tape {
    model: Model,
    updates: Updates,
    /// The other ranks, if there are some. It goes before the steps under way, which may be waiting for them.
    group: Option<Group>,
    flights: Flights<()>,
    graphs: Graphs,
    /// Micro-batches that a step can have.
    micros: usize,
}

impl Tape {
    /// Bytes that activations and their gradients took in the last step or evaluation.
    pub(crate) fn activation_bytes(&self) -> usize {
        self.model.memory.asked()
    }

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
        let Stepping { rule, clip_norm, micros } = stepping;
        let model = Model::new(device, of, heads, Some(trained))?;
        let stream = model.cuda.stream.clone();
        let updates = Updates::new(&stream, &model.arenas, rule, clip_norm)?;
        let flights = Flights::new(&stream, 2 + micros * model.outputs.places() + model.arenas.count())?;
        Ok(Tape { model, updates, group: None, flights, graphs: Graphs::default(), micros })
    }

    /// From now on gradients and losses are summed over the GPUs of all ranks.
    ///
    /// # Errors
    /// As [`Group::new`].
    pub(crate) fn join(&mut self, ranks: &Arc<dyn Collective>) -> Result<(), Error> {
        self.group = Some(Group::new(&self.model.cuda.stream, ranks)?);
        Ok(())
    }

    /// Numbers that a step says of its micro-batches, two of all of them first.
    fn width(&self) -> usize {
        2 + self.micros * self.model.outputs.places()
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
        let (width, model) = (self.width(), &mut self.model);
        if let Some(micro) = micros.iter().find(|micro| micro.number >= self.micros) {
            return Err(Error::Misfit(format!(
                "micro-batch {} of a step, at most {} were said; report it",
                micro.number + 1,
                self.micros
            )));
        }
        let tokens: usize = micros.iter().map(|micro| micro.tokens.count()).sum();
        let is_graph = tokens <= GRAPHED && self.group.is_none();
        let sizes = if is_graph && model.encoder.is_plain() { Sizes::Rounded } else { Sizes::Exact };
        let mut feed = Feed::of(sizes);
        let mut feds = vec![];
        for Micro { tokens, batches, dropout, of_labels, .. } in micros {
            let more = (sizes == Sizes::Rounded).then(|| tokens.rounded(&model.config)).transpose()?;
            let tokens = more.as_ref().unwrap_or(tokens);
            feds.push(model.feed(&mut feed, tokens, batches, Some(*dropout), Some(*of_labels))?);
        }
        let memories = model.memory(&feds, model.keep)?;
        let steps = feed.put(&self.updates.next(&model.arenas, rate, has_gradient));
        let zero = feed.put(&[0_u32]);
        let begun = self.flights.begin(&feed)?;
        let (base, numbers) = (begun.base, begun.numbers);
        let ring = Ring { numbers, slot: base.of(zero), width: width as u32, unused: 0 };
        let places = Places { steps: base.of(steps), ring, field: 0, norms: numbers + 8 * width as u64 };
        let passes = |model: &mut Model| {
            for ((fed, memory), micro) in feds.iter().zip(&memories).zip(micros) {
                let field = 2 + micro.number * model.outputs.places();
                model.forward(fed, base, memory, Some(Slot { numbers, width, field }))?;
                model.backward(fed, base, memory)?;
            }
            Ok::<_, Error>(())
        };
        let updates = &self.updates;
        let update = |model: &mut Model| updates.launch(&mut model.cuda, &model.arenas, places);
        match &self.group {
            None if is_graph => self.graphs.launch(model, |model| {
                passes(model)?;
                update(model)
            })?,
            None => {
                passes(model)?;
                update(model)?;
            }
            Some(group) => {
                // What this rank has no batch of is 0 in the sum.
                model.cuda.fill(numbers, 2 * width, 0.0)?;
                passes(model)?;
                let gradients = &model.arenas.training()?.gradient;
                group.sum_f32(gradients.address(), gradients.bytes() / size_of::<f32>())?;
                group.sum_f64(numbers, width)?;
                update(model)?;
            }
        }
        self.flights.launched(begun, ())
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
        if let (Some(group), Waits::Yes) = (&self.group, waits) {
            // A sum over ranks ends only if all of them are there.
            while !self.flights.is_done()? {
                group.check()?;
                std::thread::park_timeout(LOOK);
            }
        }
        let Some(((), numbers)) = self.flights.landed(waits)? else { return Ok(None) };
        let (of_batches, squares) = numbers.split_at(self.width());
        let of_micro = |numbers: &[f64]| numbers.chunks_exact(2).map(|both| [both[0], both[1]]).collect();
        let losses = of_batches[2..].chunks_exact(self.model.outputs.places()).map(of_micro).collect();
        let names: Vec<&str> = self.model.arenas.iter().map(|(name, _, _)| name).collect();
        let wild = usize::try_from(of_batches[1] as i64).ok().and_then(|at| names.get(at).copied());
        let norms =
            names.iter().zip(squares).map(|(name, square)| ((*name).to_owned(), square.sqrt())).collect();
        let wild = wild.map(str::to_owned);
        Ok(Some(Landed { losses, norm: of_batches[0], wild, norms }))
    }

    /// Loss and hits of every task, by its number, of some batches without dropout and without an update; of tasks without a batch anything.
    ///
    /// # Errors
    /// When memory is lacking or the driver refuses a launch.
    pub(crate) fn evaluate(&mut self, tokens: &Tokens, batches: &[&Batch]) -> Result<Vec<[f64; 2]>, Error> {
        let (model, mut feed) = (&mut self.model, Feed::default());
        let batches: Vec<(&Batch, Share)> = batches.iter().map(|batch| (*batch, Share::ALL)).collect();
        let fed = model.feed(&mut feed, tokens, &batches, None, None)?;
        let (fed, memory, base) = model.ready(&feed, fed, Keep::Nothing)?;
        let (found, slot) = model.losses()?;
        model.forward(&fed, base, &memory, Some(slot))?;
        let mut numbers = vec![0.0_f64; slot.width];
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
