//! From hidden states to logits and losses.

use super::super::args::{
    Address, AnchorBackward, AnchorCrossEntropy, Anchors, BinaryCrossEntropy, CrossEntropy,
    GroupCrossEntropy, InverseNorms, LossFinish, Metric, MetricBackward, MetricLoss, MetricPairs,
    NormForward, Ring, SquaredError,
};
use super::super::feed::Sent;
use super::super::product::{Matrices, Sizes};
use super::super::{Cuda, Launch, args};
use super::asked::{self, Asked};
use super::{Fed, Layer, Losses, Memory, Outputs};
use crate::Error;
use crate::nn::single;
use crate::output::PairLoss;

/// Threads that a row of so many classes is worth.
fn threads(c: usize) -> u32 {
    match c {
        ..=64 => 32,
        65..=1024 => 256,
        _ => 1024,
    }
}

fn any_classes(
    [logits, d_logits, scale, losses]: [Address; 4],
    [set_starts, set_classes, positive]: [Address; 3],
    m: u64,
    [c, stride]: [u32; 2],
) -> BinaryCrossEntropy {
    BinaryCrossEntropy { logits, d_logits, set_starts, set_classes, positive, scale, losses, m, c, stride }
}

/// Where a loss goes: numbers of a slot on the device, and the place of this one among them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    pub(crate) numbers: Address,
    pub(crate) width: usize,
    pub(crate) field: usize,
}

impl Outputs {
    /// The logits of a batch's rows, given the last hidden states `[n, d]`.
    ///
    /// # Errors
    /// When the driver refuses a launch.
    pub(crate) fn logits(
        &self,
        cuda: &mut Cuda,
        Sent { fed, base }: Sent<'_, Fed>,
        hidden: Address,
        memory: &Memory,
    ) -> Result<(), Error> {
        self.pooled(cuda, Sent { fed, base }, hidden, memory)?;
        self.last(cuda, fed, memory)
    }

    /// What goes into the layer of logits.
    pub(super) fn vectors(&self, fed: &Fed, memory: &Memory) -> Address {
        match (self.pooler_of(fed), memory.pooled) {
            (None, _) => memory.picked,
            (Some(_), [t, 0]) => t,
            (Some(_), [_, dropped]) => dropped,
        }
    }

    fn last(&self, cuda: &mut Cuda, fed: &Fed, memory: &Memory) -> Result<(), Error> {
        let (m, d, x) = (fed.m, self.d, self.vectors(fed, memory));
        let sizes = Sizes { n: m, i: d, o: fed.c, stride: fed.stride };
        let (_, layer) = self.output(fed.task)?;
        let (x, weight, bias) = match layer {
            Layer::None => return Ok(()),
            Layer::Linear(linear) => (x, linear.weight, linear.bias),
            Layer::MaskedLm { dense, norm, table, bias } => {
                let [u, w, t] = memory.transformed;
                cuda.product(m, [d, d], Matrices { x, weight: dense.weight.product, y: u }, 0)?;
                cuda.gelu_forward([m, d], dense.bias.master, [u, w])?;
                let [mean, inverse] = memory.statistics;
                let args = NormForward {
                    x: w,
                    bias: 0,
                    residual: 0,
                    gain: norm.gain.master,
                    shift: norm.shift.master,
                    sum: w,
                    y: t,
                    mean,
                    inverse,
                    dropout: args::Dropout::NONE,
                    n: m as u64,
                    d: d as u32,
                    epsilon: self.epsilon,
                };
                cuda.norm_forward(&args)?;
                (t, *table, *bias)
            }
        };
        let of = Matrices { x, weight: weight.product, y: memory.logits };
        cuda.products.forward(&cuda.stream, sizes, of, bias.product)
    }

    /// The loss of a batch and, where it is wanted, the gradient of its logits in their place; loss and hits go to a slot.
    ///
    /// # Errors
    /// When the driver refuses a launch.
    pub(crate) fn loss(
        &self,
        cuda: &mut Cuda,
        sent: Sent<'_, Fed>,
        memory: &Memory,
        slot: Slot,
    ) -> Result<(), Error> {
        let Sent { fed, base } = sent;
        let Some(of) = &fed.asked else { return Ok(()) };
        self.losses(cuda, sent, of, memory)?;
        let hits = if of.asked.has_hits() { memory.hits } else { 0 };
        let numbers = slot.numbers;
        let ring = Ring { numbers, slot: base.of(of.zero), width: slot.width as u32, unused: 0 };
        let (losses, share) = (memory.losses, base.of(of.scales[1]));
        let (m, field) = (of.asked.losses(fed.m) as u64, slot.field as u32);
        let args = LossFinish { losses, hits, share, ring, m, field, unused: 0 };
        cuda.launch("loss_finish", Launch::of(1, 256), &args)
    }

    fn losses(
        &self,
        cuda: &mut Cuda,
        Sent { fed, base }: Sent<'_, Fed>,
        of: &Losses,
        memory: &Memory,
    ) -> Result<(), Error> {
        let scale = base.of(of.scales[0]);
        let (m, c, stride, logits) = (fed.m, fed.c as u32, fed.stride as u32, memory.logits);
        let d_logits = if fed.picks.have_gradient() { logits } else { 0 };
        let Memory { losses, hits, .. } = *memory;
        match &of.asked {
            Asked::One { classes, weights } => {
                let (classes, weights) = (base.of(*classes), base.of_some(*weights));
                let args = CrossEntropy {
                    logits,
                    d_logits,
                    classes,
                    weights,
                    scale,
                    losses,
                    hits,
                    m: m as u64,
                    c,
                    stride,
                };
                cuda.launch_on_numbers("cross_entropy", Launch::of(m, threads(fed.c)), &args)?;
            }
            Asked::Any { starts, classes, positive } => {
                let (set_starts, set_classes) = (base.of(*starts), base.of(*classes));
                let (positive, m) = (base.of_some(*positive), m as u64);
                let how = Launch::of(fed.m, if fed.c > 64 { 128 } else { 32 });
                let sets = [set_starts, set_classes, positive];
                let args = any_classes([logits, d_logits, scale, losses], sets, m, [c, stride]);
                cuda.launch_on_numbers("binary_cross_entropy", how, &args)?;
            }
            Asked::Score { targets } => {
                let (scores, d_scores, targets) = (logits, d_logits, base.of(*targets));
                let args =
                    SquaredError { scores, d_scores, targets, scale, losses, m: m as u64, stride, unused: 0 };
                cuda.launch_on_numbers("squared_error", Launch::of(m.div_ceil(128), 128), &args)?;
            }
            Asked::Groups { starts, rights, count } => {
                let (starts, groups) = (base.of(*starts), *count as u32);
                for (column, right) in rights.iter().enumerate() {
                    let of_column = |scores: Address| match scores {
                        0 => 0,
                        _ => scores + (column * cuda.numbers.bytes()) as Address,
                    };
                    let args = GroupCrossEntropy {
                        scores: of_column(logits),
                        d_scores: of_column(d_logits),
                        starts,
                        right: base.of(*right),
                        scale,
                        losses: losses + (column * count * size_of::<f64>()) as Address,
                        hits: hits + (column * count * size_of::<u32>()) as Address,
                        groups,
                        stride,
                    };
                    cuda.launch_on_numbers("group_cross_entropy", Launch::of(count.div_ceil(4), 128), &args)?;
                }
            }
            Asked::Anchors(anchors) => self.of_anchors(cuda, Sent { fed, base }, of, *anchors, memory)?,
            Asked::Metric(metric) => self.of_metric(cuda, Sent { fed, base }, of, *metric, memory)?,
        }
        Ok(())
    }

    /// The losses of an embedding's samples, and the gradient of its vectors where one is wanted.
    fn of_anchors(
        &self,
        cuda: &mut Cuda,
        Sent { fed, base }: Sent<'_, Fed>,
        of: &Losses,
        anchors: asked::Anchors,
        memory: &Memory,
    ) -> Result<(), Error> {
        let [inverse, cosines, gradients] = memory.cosines;
        let all = Anchors {
            vectors: memory.logits,
            starts: base.of(anchors.starts),
            samples: base.of(anchors.samples),
            left_starts: base.of(anchors.left_starts),
            left_rows: base.of(anchors.left_rows),
            inverse,
            cosines,
            gradients,
            m: fed.m as u64,
            anchors: anchors.count as u32,
            d: self.d as u32,
            alone: of.alone.into(),
            scale: anchors.scale,
        };
        let (share, losses) = (base.of(of.scales[0]), memory.losses);
        self.inverse_norms(cuda, fed, memory)?;
        let args = AnchorCrossEntropy { of: all, share, losses };
        cuda.launch_on_numbers("anchor_cross_entropy", Launch::of(anchors.count, 256), &args)?;
        if !fed.picks.have_gradient() {
            return Ok(());
        }
        let args = AnchorBackward { of: all, d_vectors: memory.back[0] };
        cuda.launch_on_numbers("anchor_backward", Launch::of(fed.m, 256), &args)
    }

    /// Of each row's vector 1 over its norm.
    fn inverse_norms(&self, cuda: &mut Cuda, fed: &Fed, memory: &Memory) -> Result<(), Error> {
        let args = InverseNorms {
            x: memory.logits,
            inverse: memory.cosines[0],
            m: fed.m as u64,
            d: self.d as u32,
            unused: 0,
        };
        cuda.launch_on_numbers("inverse_norms", Launch::of(fed.m.div_ceil(8), 256), &args)
    }

    /// The losses of a metric's rows, and the gradient of its vectors where one is wanted.
    fn of_metric(
        &self,
        cuda: &mut Cuda,
        Sent { fed, base }: Sent<'_, Fed>,
        of: &Losses,
        metric: asked::Metric,
        memory: &Memory,
    ) -> Result<(), Error> {
        let [inverse, cosines, gradients] = memory.cosines;
        let [bounds, counts] = memory.hard;
        let (kernel, [alpha, beta, turn]) = match metric.loss {
            PairLoss::MultiSimilarity { alpha, beta, base } => {
                ("metric_multi_similarity", [alpha, beta, base].map(single))
            }
            PairLoss::InfoNce { temperature } => ("metric_info_nce", [temperature, 0.0, 0.0].map(single)),
        };
        let all = Metric {
            vectors: memory.logits,
            classes: base.of(metric.classes),
            also_starts: base.of(metric.also_starts),
            also_classes: base.of(metric.also_classes),
            inverse,
            cosines,
            gradients,
            bounds,
            counts,
            m: fed.m as u64,
            d: self.d as u32,
            unused: 0,
            margin: metric.margin,
            alpha,
            beta,
            base: turn,
        };
        self.inverse_norms(cuda, fed, memory)?;
        let each = Launch::of(fed.m, 256);
        cuda.launch_on_numbers("metric_pairs", each, &MetricPairs { of: all })?;
        let (share, losses) = (base.of(of.scales[0]), memory.losses);
        cuda.launch(kernel, each, &MetricLoss { of: all, share, losses })?;
        if !fed.picks.have_gradient() {
            return Ok(());
        }
        let args = MetricBackward { of: all, d_vectors: memory.back[0] };
        cuda.launch_on_numbers("metric_backward", each, &args)
    }
}
