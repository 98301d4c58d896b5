//! From the gradient of logits to that of the hidden states.

use super::super::args::{Address, NormBackward};
use super::super::encoder::Linear;
use super::super::feed::Sent;
use super::super::product::{Matrices, Onto, Sizes};
use super::super::{Cuda, args, rows_per_block, stretches};
use super::{Fed, Layer, Memory, Outputs};
use crate::Error;

/// Where the gradient of the last hidden states goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Into {
    /// The states themselves, `[n, d]`.
    pub(crate) hidden: Address,
    /// `[n, d]`.
    pub(crate) gradient: Address,
    /// Whether a batch before has left something there.
    pub(crate) adds: bool,
}

impl Outputs {
    /// Adds the gradients of an output's parameters, given that of its logits in their place, and writes or adds that of the hidden states.
    ///
    /// # Errors
    /// When the driver refuses a launch.
    pub(crate) fn backward(
        &self,
        cuda: &mut Cuda,
        Sent { fed, base }: Sent<'_, Fed>,
        memory: &Memory,
        into: Into,
    ) -> Result<(), Error> {
        if !fed.picks.have_gradient() {
            return Ok(());
        }
        let (_, layer) = self.output(fed.task)?;
        let vectors = self.vectors(fed, memory);
        match layer {
            // The loss has left the gradient of its vectors there.
            Layer::None => {}
            Layer::Linear(linear) => self.of_logits(cuda, fed, memory, linear, [vectors, memory.back[0]])?,
            Layer::MaskedLm { .. } => self.transform(cuda, fed, memory, layer, vectors)?,
        }
        self.pooled_backward(cuda, Sent { fed, base }, memory, into)
    }

    /// Of the layer of logits over vectors x `[m, d]`, whose gradient goes to dx.
    fn of_logits(
        &self,
        cuda: &mut Cuda,
        fed: &Fed,
        memory: &Memory,
        of: &Linear,
        [x, dx]: [Address; 2],
    ) -> Result<(), Error> {
        let sizes = Sizes { n: fed.m, i: self.d, o: fed.c, stride: fed.stride };
        if of.weight.gradient != 0 {
            let of = Matrices { x, weight: of.weight.gradient, y: memory.logits };
            cuda.products.weight(&cuda.stream, sizes, of)?;
        }
        // Of the columns behind the last class the sums go where nothing is read: a parameter's slice ends at a multiple of 8.
        self.bias(cuda, [fed.m, fed.stride], [memory.logits, memory.partials], of.bias.gradient)?;
        let of = Matrices { x: dx, weight: of.weight.product, y: memory.logits };
        cuda.products.input(&cuda.stream, sizes, of, Onto::Nothing)
    }

    /// Of a bias: the sums of the columns of dy.
    pub(super) fn bias(
        &self,
        cuda: &mut Cuda,
        [m, width]: [usize; 2],
        [dy, partials]: [Address; 2],
        bias: Address,
    ) -> Result<(), Error> {
        if bias == 0 {
            return Ok(());
        }
        cuda.column_sum(m, width, dy, partials)?;
        cuda.finish(partials, [bias, 0, 0], [stretches(m), 1, width])
    }

    /// Of a masked-LM output over vectors x, whose gradient goes to the first of the memory's two.
    fn transform(
        &self,
        cuda: &mut Cuda,
        fed: &Fed,
        memory: &Memory,
        layer: &Layer,
        x: Address,
    ) -> Result<(), Error> {
        let Layer::MaskedLm { dense, norm, table, bias } = layer else { return Ok(()) };
        let (m, d, [one, other], [u, w, t]) = (fed.m, self.d, memory.back, memory.transformed);
        self.of_logits(cuda, fed, memory, &Linear { weight: *table, bias: *bias }, [t, other])?;
        let ([mean, inverse], partials) = (memory.statistics, memory.partials);
        let rows_per_block = rows_per_block(m) as u32;
        let args = NormBackward {
            dy: other,
            sum: w,
            mean,
            inverse,
            gain: norm.gain.master,
            d_sum: other,
            d_x: 0,
            partials,
            dropout: args::Dropout::NONE,
            n: m as u64,
            d: d as u32,
            rows_per_block,
        };
        cuda.norm_backward(&args)?;
        cuda.finish(partials, [norm.gain.gradient, norm.shift.gradient, 0], [stretches(m), 3, d])?;
        cuda.gelu_backward([m, d], [u, 0], [other, other, partials])?;
        cuda.finish(partials, [dense.bias.gradient, 0, 0], [stretches(m), 1, d])?;
        cuda.weight([m, d, d], dense, x, other)?;
        cuda.input([m, d, d], Matrices { x: one, weight: dense.weight.product, y: other }, Onto::Nothing)
    }
}
