//! The map of a layer out of scores, maps of knowledge and the map before, f32 numbers on the CPU: the heads of a sample at once. Knows no values.

use candle_core::{CpuStorage, CustomOp1, CustomOp3, DType, Device, Layout, Result, Shape, Tensor};
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use super::super::plain::Attention;
use super::super::plain::rows::{Head, Rows, Scratch};
use super::convolve::{Framed, Order, TAPS, Weights, add_weight_gradient, convolve};
use super::mix::squares;
use super::{Auxiliary, OfLayer, Settings, Skip};
use crate::encoder::tokens::Span;
use crate::nn::buffers::Buffers;
use crate::nn::gradients::{Slot, Tickets};
use crate::nn::softmax::{gradient_of_rows, softmax_row};
use crate::nn::{Host, read, single, wide};

/// The layer's map, `[h, t, t]` of each sample one behind the other: probabilities, or with [`Skip::PreAdd`] the mixed scores.
pub(super) fn map(
    of: &OfLayer<'_>,
    how: &Attention,
    (qkv_n3d, spans): (&Tensor, &[Span]),
    buffers: &Buffers,
) -> Result<Tensor> {
    let convolution: Vec<&Tensor> = of.convolution.into_iter().flatten().collect();
    let Tickets { argument_p, slots } = Tickets::new(&convolution)?;
    let op = Semantic {
        how: how.clone(),
        settings: of.settings.clone(),
        spans: spans.to_vec(),
        real: of.knowledge.real.clone(),
        maps: of.knowledge.maps.clone(),
        convolution: convolution.iter().map(|tensor| tensor.detach().contiguous()).collect::<Result<_>>()?,
        slots,
        carries: of.carried.is_some(),
        d: qkv_n3d.dim(1)? / 3,
        buffers: buffers.clone(),
    };
    let carried = match &*of.carried {
        Some(carried) => carried.contiguous()?,
        None => Tensor::zeros(1, DType::F32, &Device::Cpu)?,
    };
    qkv_n3d.contiguous()?.apply_op3(&carried, &argument_p, op)
}

/// The operation.
struct Semantic {
    how: Attention,
    settings: Settings,
    spans: Vec<Span>,
    real: Vec<usize>,
    maps: Tensor,
    /// Weights and biases, or nothing.
    convolution: Vec<Tensor>,
    slots: Vec<Option<Slot>>,
    /// Whether there is a map of the layer before.
    carries: bool,
    d: usize,
    buffers: Buffers,
}

/// What the operation reads, as numbers.
struct Numbers<'a> {
    qkv: &'a [f32],
    carried: Option<&'a [f32]>,
    maps: &'a [f32],
    /// Weights and biases of the convolution.
    convolution: Option<[&'a [f32]; 2]>,
}

/// One sample's place in everything.
#[derive(Clone, Copy)]
struct Sample {
    row: usize,
    span: Span,
    real: usize,
    /// The first of its squares of heads, and of its maps.
    first: usize,
    map: usize,
}

/// Gradients of one sample.
struct Gradients {
    qkv: Vec<f32>,
    carried: Vec<f32>,
    weight: Vec<f32>,
    bias: Vec<f32>,
}

impl Semantic {
    fn rows(&self) -> Rows<'_> {
        Rows { how: &self.how, spans: &self.spans, d: self.d, buffers: &self.buffers }
    }

    fn samples(&self) -> Vec<Sample> {
        let (squares, m) = (squares(&self.spans, self.how.heads), self.settings.maps);
        let of = |row: usize| {
            let first = squares[row];
            let map = first / self.how.heads * m;
            Sample { row, span: self.spans[row], real: self.real[row], first, map }
        };
        (0..self.spans.len()).map(of).collect()
    }

    /// Runs `f` on what is read besides the arguments.
    fn with<R>(&self, qkv: &[f32], carried: &[f32], f: impl FnOnce(&Numbers<'_>) -> R) -> Result<R> {
        let maps = Host::of(&self.maps)?;
        let hosts = self.convolution.iter().map(Host::of).collect::<Result<Vec<_>>>()?;
        let numbers = hosts.iter().map(Host::get).collect::<Result<Vec<_>>>()?;
        let convolution = match numbers.as_slice() {
            [weight, bias] => Some([*weight, *bias]),
            _ => None,
        };
        let carried = self.carries.then_some(carried);
        Ok(f(&Numbers { qkv, carried, maps: maps.get()?, convolution }))
    }

    /// Scores of all heads, then maps, in frames: what the convolution reads.
    fn inputs(&self, numbers: &Numbers<'_>, of: Sample, framed: &mut Framed, scratch: &mut Scratch) {
        let (rows, h, t, m) = (self.rows(), self.how.heads, of.span.len, self.settings.maps);
        let qkv = &numbers.qkv[3 * self.d * of.span.start..][..3 * self.d * t];
        framed.resize(h + m, t);
        for head in 0..h {
            rows.scores(Head { row: of.row, head, t }, qkv, scratch);
            self.screen(of, &mut scratch.probs);
            if let Some(carried) = numbers.carried {
                let carried = &carried[of.first + head * t * t..][..t * t];
                wide(|| scratch.probs.iter_mut().zip(carried).for_each(|(score, x)| *score += x));
            }
            framed.put(head, &scratch.probs);
        }
        for (map, numbers) in numbers.maps[of.map..].chunks_exact(t * t).take(m).enumerate() {
            framed.put(h + map, numbers);
        }
    }

    /// Makes cells 0 that have no score of their own.
    fn screen(&self, of: Sample, cells: &mut [f32]) {
        if self.settings.auxiliary == Auxiliary::ZeroPad && of.real < of.span.len {
            for (i, row) in cells.chunks_exact_mut(of.span.len).enumerate() {
                row[if i < of.real { of.real } else { 0 }..].fill(0.0);
            }
        }
    }

    fn weights<'a>(&self, numbers: &'a [f32]) -> Weights<'a> {
        let (h, m) = (self.how.heads, self.settings.maps);
        let (by_output, by_input) = ((h + m) * TAPS, TAPS);
        Weights { numbers, outputs: h, inputs: h + m, by_output, by_input, order: Order::Forward }
    }

    /// The map of one sample, `[h, t, t]`.
    fn forward(&self, numbers: &Numbers<'_>, of: Sample, out: &mut [f32]) {
        let (h, t, m) = (self.how.heads, of.span.len, self.settings.maps);
        let (mut framed, mut scratch) = (Framed::default(), Scratch::new(&self.buffers, t));
        self.inputs(numbers, of, &mut framed, &mut scratch);
        if let Some([weight, bias]) = numbers.convolution {
            convolve(&framed, &self.weights(weight), Some(bias), out);
        } else {
            for (at, row) in out.chunks_exact_mut(t).enumerate() {
                row.copy_from_slice(framed.row(at / t, at % t));
                for map in 0..m {
                    row.iter_mut().zip(framed.row(h + map, at % t)).for_each(|(x, map)| *x += map);
                }
                row.iter_mut().for_each(|x| *x /= single((1 + m) as f64));
            }
        }
        let (alpha, rest) = (single(self.settings.alpha), single(1.0 - self.settings.alpha));
        wide(|| {
            for (at, row) in out.chunks_exact_mut(t).enumerate() {
                let scores = framed.row(at / t, at % t);
                row.iter_mut().zip(scores).for_each(|(x, score)| *x = alpha * *x + rest * score);
                if self.settings.skip != Skip::PreAdd {
                    softmax_row(row);
                }
            }
        });
    }

    /// The gradients of one sample, given its map and that map's gradient.
    fn backward(&self, numbers: &Numbers<'_>, of: Sample, [map, g]: [&[f32]; 2]) -> Gradients {
        let (rows, h, t, m) = (self.rows(), self.how.heads, of.span.len, self.settings.maps);
        let (alpha, rest) = (single(self.settings.alpha), single(1.0 - self.settings.alpha));
        let mut mixed = g[of.first..][..h * t * t].to_vec();
        if self.settings.skip != Skip::PreAdd {
            wide(|| gradient_of_rows(&map[of.first..][..h * t * t], &mut mixed, (t, 1.0)));
        }
        let (mut framed, mut scratch) = (Framed::default(), Scratch::new(&self.buffers, t));
        let mut carried = vec![0.0; mixed.len()];
        let [mut weight, mut bias] = [vec![], vec![]];
        if let Some([numbers_of_weight, _]) = numbers.convolution {
            self.inputs(numbers, of, &mut framed, &mut scratch);
            let mut merged = Framed::default();
            merged.resize(h, t);
            for (at, row) in mixed.chunks_exact(t).enumerate() {
                let into = merged.row_mut(at / t, at % t);
                into.iter_mut().zip(row).for_each(|(x, g)| *x = alpha * g);
            }
            // Gradients of the scores alone: maps are given.
            let back = Weights {
                inputs: h,
                by_output: TAPS,
                by_input: (h + m) * TAPS,
                order: Order::Backward,
                ..self.weights(numbers_of_weight)
            };
            convolve(&merged, &back, None, &mut carried);
            if self.slots.first().is_some_and(Option::is_some) {
                weight = vec![0.0; h * (h + m) * TAPS];
                add_weight_gradient(&framed, &merged, &mut weight);
            }
            bias = mixed.chunks_exact(t * t).map(|g| alpha * g.iter().sum::<f32>()).collect();
        } else {
            let share = alpha / single((1 + m) as f64);
            carried.iter_mut().zip(&mixed).for_each(|(x, g)| *x = share * g);
        }
        wide(|| carried.iter_mut().zip(&mixed).for_each(|(x, g)| *x += rest * g));
        let here = &numbers.qkv[3 * self.d * of.span.start..][..3 * self.d * t];
        let mut qkv = vec![0.0; here.len()];
        for head in 0..h {
            let scale = rows.scale();
            let of_scores = carried[head * t * t..][..t * t].iter();
            scratch.d_probs.iter_mut().zip(of_scores).for_each(|(out, g)| *out = g * scale);
            self.screen(of, &mut scratch.d_probs);
            rows.gradient_of_products(Head { row: of.row, head, t }, here, &mut scratch, &mut qkv);
        }
        Gradients { qkv, carried, weight, bias }
    }
}

impl CustomOp3 for Semantic {
    fn name(&self) -> &'static str {
        "kam-map"
    }

    fn cpu_fwd(
        &self,
        qkv: &CpuStorage,
        layout: &Layout,
        carried: &CpuStorage,
        layout_of_carried: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (qkv, carried) = (read(qkv, layout)?, read(carried, layout_of_carried)?);
        let samples = self.samples();
        let h = self.how.heads;
        let count: usize = self.spans.iter().map(|span| h * span.len * span.len).sum();
        let mut out = vec![0.0; count];
        self.with(qkv, carried, |numbers| {
            let (mut parts, mut left) = (vec![], out.as_mut_slice());
            for of in samples {
                let (part, rest) = left.split_at_mut(h * of.span.len * of.span.len);
                parts.push((of, part));
                left = rest;
            }
            parts.into_par_iter().for_each(|(of, part)| self.forward(numbers, of, part));
        })?;
        Ok((CpuStorage::F32(out), Shape::from(count)))
    }

    fn bwd(
        &self,
        qkv: &Tensor,
        carried: &Tensor,
        tickets: &Tensor,
        map: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let grad = grad.contiguous()?;
        let hosts = [Host::of(qkv)?, Host::of(carried)?, Host::of(map)?, Host::of(&grad)?];
        let of_map = [hosts[2].get()?, hosts[3].get()?];
        let found: Vec<Gradients> = self.with(hosts[0].get()?, hosts[1].get()?, |numbers| {
            self.samples().into_par_iter().map(|of| self.backward(numbers, of, of_map)).collect()
        })?;
        for (which, slot) in self.slots.iter().enumerate() {
            if let Some(slot) = slot {
                let each = found.iter().map(|of| if which == 0 { &of.weight } else { &of.bias });
                let shape = self.convolution[which].shape();
                slot.put(Tensor::from_vec(added(each, shape.elem_count()), shape, qkv.device())?);
            }
        }
        let joined = |part: fn(&Gradients) -> &Vec<f32>, like: &Tensor| {
            let mut numbers = Vec::with_capacity(like.elem_count());
            found.iter().for_each(|of| numbers.extend_from_slice(part(of)));
            Tensor::from_vec(numbers, like.shape(), like.device())
        };
        let d_carried = self.carries.then(|| joined(|of| &of.carried, carried)).transpose()?;
        let d_tickets = tickets.track_op().then(|| tickets.zeros_like()).transpose()?;
        Ok((Some(joined(|of| &of.qkv, qkv)?), d_carried, d_tickets))
    }
}

/// The sum of vectors, in their order.
fn added<'a>(each: impl Iterator<Item = &'a Vec<f32>>, count: usize) -> Vec<f32> {
    let mut sum = vec![0.0; count];
    each.for_each(|of| sum.iter_mut().zip(of).for_each(|(sum, x)| *sum += x));
    sum
}

/// Probabilities of mixed scores, `[h, t, t]` of each sample one behind the other.
pub(super) fn softmax(mixed: &Tensor, (heads, spans): (usize, &[Span])) -> Result<Tensor> {
    mixed.apply_op1(Softmax { heads, spans: spans.to_vec() })
}

/// The operation.
struct Softmax {
    heads: usize,
    spans: Vec<Span>,
}

impl Softmax {
    /// Runs `f(length of a sample's rows, its squares)` for each sample.
    fn each(&self, mut numbers: &mut [f32], mut f: impl FnMut(usize, &mut [f32])) {
        for span in &self.spans {
            let (part, rest) = numbers.split_at_mut(self.heads * span.len * span.len);
            f(span.len, part);
            numbers = rest;
        }
    }
}

impl CustomOp1 for Softmax {
    fn name(&self) -> &'static str {
        "kam-softmax"
    }

    fn cpu_fwd(&self, mixed: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let mut probs = read(mixed, layout)?.to_vec();
        self.each(&mut probs, |t, part| wide(|| part.chunks_exact_mut(t).for_each(softmax_row)));
        Ok((CpuStorage::F32(probs), layout.shape().clone()))
    }

    fn bwd(&self, mixed: &Tensor, probs: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let grad = grad.contiguous()?;
        let hosts = [Host::of(probs)?, Host::of(&grad)?];
        let (probs, mut gradient) = (hosts[0].get()?, hosts[1].get()?.to_vec());
        let mut first = 0;
        self.each(&mut gradient, |t, part| {
            let probs = &probs[first..first + part.len()];
            wide(|| gradient_of_rows(probs, part, (t, 1.0)));
            first += part.len();
        });
        Tensor::from_vec(gradient, mixed.shape(), mixed.device()).map(Some)
    }
}
