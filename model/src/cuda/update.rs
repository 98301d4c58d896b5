//! Norm, clipping and update of all parameters: three launches, and no number of them comes to the host before the next step is under way.

use std::sync::Arc;

use candle_core::cuda_backend::cudarc::driver::CudaStream;

use super::arenas::Arenas;
use super::args::{Address, ClipFactor, Ring, SegmentStep, SquaredNorm, Update};
use super::memory::Block;
use super::{Cuda, Launch, Numbers};
use crate::Error;
use crate::nn::single;
use crate::optim::adamw::{self, AdamWConfig, Missing};
use crate::optim::bert::{self, Kind};

/// The rule of an update.
#[derive(Debug, Clone)]
pub(crate) enum Rule {
    AdamW { config: AdamWConfig, missing: Missing },
    Reference(bert::Config),
}

/// What updates parameters.
#[derive(Debug)]
pub(crate) struct Updates {
    rule: Rule,
    clip_norm: f64,
    /// Updates that each parameter has had, in the order of the segments.
    counts: Vec<u64>,
    scales: Block,
    finite: Block,
    partials: Block,
}

/// Where the norm of a step goes, and what the device reads of the step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places {
    /// What is done with each segment.
    pub(crate) steps: Address,
    pub(crate) ring: Ring,
    /// The norm's place among the ring's numbers, the first segment whose norm is not finite behind it.
    pub(crate) field: usize,
    /// The square of each segment's norm.
    pub(crate) norms: Address,
}

impl Updates {
    /// Updates by a rule.
    ///
    /// # Errors
    /// When the device does not have the memory.
    pub(crate) fn new(
        stream: &Arc<CudaStream>,
        arenas: &Arenas,
        rule: Rule,
        clip_norm: f64,
    ) -> Result<Self, Error> {
        let segments = arenas.count();
        Ok(Updates {
            rule,
            clip_norm,
            counts: vec![0; segments],
            scales: Block::zeros(stream, 4 * segments)?,
            finite: Block::zeros(stream, 4)?,
            partials: Block::zeros(stream, 8 * arenas.training()?.chunk_count)?,
        })
    }

    /// Updates that each parameter has had, in the order of the segments.
    pub(crate) fn counts(&mut self) -> &mut Vec<u64> {
        &mut self.counts
    }

    /// Counts a step, and says what it does with each parameter; `has_gradient` is asked of those that are trained.
    pub(crate) fn next(
        &mut self,
        arenas: &Arenas,
        rate: f64,
        has_gradient: impl Fn(&str) -> bool,
    ) -> Vec<SegmentStep> {
        let mut steps = vec![];
        for ((name, _, trained), count) in arenas.iter().zip(&mut self.counts) {
            let skips = !matches!(self.rule, Rule::AdamW { missing: Missing::Zero, .. });
            if !trained || (skips && !has_gradient(name)) {
                steps.push(SegmentStep { decay: 1.0, pace: 0.0, inverse_root: 1.0, active: 0 });
                continue;
            }
            *count += 1;
            steps.push(self.rule.step(name, rate, *count));
        }
        steps
    }

    /// Launches an update from the gradients in the arenas, which are then 0.
    ///
    /// # Errors
    /// When the driver refuses a launch.
    pub(crate) fn launch(&self, cuda: &mut Cuda, arenas: &Arenas, places: Places) -> Result<(), Error> {
        let of = arenas.training()?;
        let Places { steps, ring, field, norms } = places;
        let [gradient, segments, chunks, shares] =
            [&of.gradient, &of.segments, &of.chunks, &of.shares].map(Block::address);
        let partials = self.partials.address();
        let norm = SquaredNorm { gradient, segments, steps, chunks, shares, partials };
        cuda.launch("squared_norm", Launch::of(of.chunk_count, 256), &norm)?;
        let (scales, finite) = (self.scales.address(), self.finite.address());
        let clip = ClipFactor {
            partials,
            segments,
            limit: self.clip_norm,
            segment_limit: self.rule.segment_limit(),
            norms,
            scales,
            finite,
            ring,
            field: field as u32,
            count: arenas.count() as u32,
        };
        cuda.launch("clip_factor", Launch::of(1, 1024), &clip)?;
        let (rule, [beta1, beta2, epsilon]) = self.rule.constants();
        let update = Update {
            gradient,
            first: of.first.address(),
            second: of.second.address(),
            shadow: arenas.shadow(),
            segments,
            steps,
            chunks,
            shares,
            scales,
            finite,
            keep1: single(beta1),
            take1: single(1.0 - beta1),
            keep2: single(beta2),
            take2: single(1.0 - beta2),
            epsilon: single(epsilon),
            rule,
            clear: 1,
            shadow_is_f32: u32::from(cuda.numbers == Numbers::F32),
        };
        cuda.launch("update", Launch::of(of.chunk_count, 256), &update)
    }
}

impl Rule {
    /// Its number in `kernels_optim.h`, both betas and epsilon.
    fn constants(&self) -> (u32, [f64; 3]) {
        match self {
            Rule::AdamW { config: AdamWConfig { beta1, beta2, epsilon, .. }, .. } => {
                (0, [*beta1, *beta2, *epsilon])
            }
            Rule::Reference(bert::Config { kind, beta1, beta2, epsilon, .. }) => {
                let rule = match kind {
                    Kind::Adamax => 1,
                    Kind::BertAdam => 2,
                    Kind::BertAdamSparing => 3,
                };
                (rule, [*beta1, *beta2, *epsilon])
            }
        }
    }

    /// Largest norm of one parameter's gradient, 0 without a limit.
    fn segment_limit(&self) -> f64 {
        match self {
            Rule::AdamW { .. } => 0.0,
            Rule::Reference(config) => config.clip_norm.unwrap_or(0.0),
        }
    }

    /// What a parameter's update number `t` is made with; in f64, rounded once, as the CPU has it.
    fn step(&self, name: &str, rate: f64, t: u64) -> SegmentStep {
        let decays = adamw::decays(name);
        match self {
            Rule::AdamW { config: AdamWConfig { beta1, beta2, weight_decay, .. }, .. } => {
                let t = i32::try_from(t).unwrap_or(i32::MAX);
                SegmentStep {
                    decay: single(if decays { 1.0 - rate * weight_decay } else { 1.0 }),
                    pace: single(rate / (1.0 - beta1.powi(t))),
                    inverse_root: single(1.0 / (1.0 - beta2.powi(t)).sqrt()),
                    active: 1,
                }
            }
            Rule::Reference(config) => SegmentStep {
                decay: if decays { single(config.weight_decay) } else { 0.0 },
                pace: single(rate),
                inverse_root: 1.0,
                active: 1,
            },
        }
    }
}
