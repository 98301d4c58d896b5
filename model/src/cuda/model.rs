//! A model on the device: hidden states, logits, losses, and back, in launches.

use base::rng::CounterRng;
use candle_core::cuda_backend::CudaDevice;

use super::arenas::{Arenas, IsTrained};
use super::encoder::{self, Asks, Encoder, Keep, Pass};
use super::feed::{Base, Feed, Sent};
use super::memory::{Arena, Block, Bump};
use super::outputs::{self, Asking, Counting, Into, Outputs, Slot, Wanted};
use super::{Cuda, error};
use crate::Error;
use crate::attention::Chosen;
use crate::device::{ActivationDtype, Recompute};
use crate::encoder::config::Config;
use crate::encoder::tokens::Tokens;
use crate::head::mask::Mask;
use crate::optim::head_mask::HeadMask;
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
    pub(super) keep: Keep,
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

/// What the mean loss of a batch counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    /// In the gradient of a step.
    pub(crate) gradient: f64,
    /// In the loss that is told of its task: less than 1 of a rank among others.
    pub(crate) loss: f64,
}

impl Share {
    /// Of a batch by itself.
    pub(super) const ALL: Share = Share { gradient: 1.0, loss: 1.0 };
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

    pub(super) fn feed(
        &self,
        feed: &mut Feed,
        tokens: &Tokens,
        batches: &[(&Batch, Share)],
        dropout: Option<CounterRng>,
        of_labels: Option<Share>,
    ) -> Result<Fed, Error> {
        let wanted = if of_labels.is_some() { Wanted::Gradient } else { Wanted::Answers };
        let tables = if of_labels.is_some() { self.encoder.trained_tables() } else { [false; 3] };
        let pass = Pass { dropout, tables, gates_lh: self.gates_lh.as_deref(), of_gates: Asks::Nothing };
        let encoder = self.encoder.feed(feed, &self.config, tokens, pass)?;
        let each = batches.iter().enumerate();
        let outputs = each.map(|(at, (batch, share))| {
            let counting = Counting::Mean(*share);
            self.outputs.feed(feed, tokens, Asking { at, batch, counting, wanted }, dropout)
        });
        let mut outputs = outputs.collect::<Result<Vec<_>, _>>()?;
        if let (Some(share), Some(labels)) = (of_labels, self.encoder.labels()) {
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

    /// Memory for a pass that is waited for, and what the host says of it, which goes up.
    pub(super) fn ready(&mut self, feed: &Feed, fed: Fed, keep: Keep) -> Result<(Fed, Memory, Base), Error> {
        let fed = [fed];
        let memory = self.memory(&fed, keep)?.pop();
        let base = Base(self.input.fit(&self.cuda.stream, feed.bytes().len())?);
        self.input.put(feed.bytes())?;
        let [fed] = fed;
        let memory = memory.ok_or_else(|| Error::Misfit("no memory; report it".to_owned()))?;
        Ok((fed, memory, base))
    }

    /// Where the losses of a pass that is waited for go, zeros at first.
    pub(super) fn losses(&self) -> Result<(Block, Slot), Error> {
        let width = self.outputs.places();
        let losses = Block::zeros(&self.cuda.stream, 8 * width)?;
        let slot = Slot { numbers: losses.address(), width, field: 0 };
        Ok((losses, slot))
    }

    /// Hidden states, logits and losses of a micro-batch; losses go to a slot's numbers, those of a task where its number says.
    pub(super) fn forward(
        &mut self,
        fed: &Fed,
        base: Base,
        memory: &Memory,
        slot: Option<Slot>,
    ) -> Result<(), Error> {
        self.encoder.forward(&mut self.cuda, Sent { fed: &fed.encoder, base }, &memory.encoder)?;
        let labels = self.encoder.labels().map_or(0, |labels| labels.embeddings.product);
        for (of, of_output) in fed.outputs.iter().zip(&memory.outputs) {
            let hidden = if of.of_labels { labels } else { memory.encoder.hidden() };
            self.outputs.logits(&mut self.cuda, Sent { fed: of, base }, hidden, of_output)?;
            if let Some(slot) = slot {
                let slot = Slot { field: slot.field + 2 * self.outputs.place(of), ..slot };
                self.outputs.loss(&mut self.cuda, Sent { fed: of, base }, of_output, slot)?;
            }
        }
        Ok(())
    }

    pub(super) fn backward(&mut self, fed: &Fed, base: Base, memory: &Memory) -> Result<(), Error> {
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
