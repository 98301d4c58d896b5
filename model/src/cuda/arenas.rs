//! Where everything of a parameter stands: its weights, which are the tensor library's, and its slices of the arenas of gradients, moments and what products read.

use std::collections::BTreeMap;
use std::sync::Arc;

use candle_core::cuda_backend::cudarc::driver::CudaStream;

use super::args::{Address, CHUNK_NUMBERS, Cast, Chunk, NO_SHARES, ScaledAdd, Segment};
use super::memory::Block;
use super::{Cuda, Launch, Numbers, address};
use crate::Error;
use crate::head::slices::Axis;
use crate::optim::head_mask::HeadMask;
use crate::params::Params;

/// Whether a gradient is wanted of a parameter.
pub(crate) type IsTrained<'a> = &'a dyn Fn(&str) -> bool;

/// Numbers at a multiple of which a parameter's slices begin: 256 bytes of bf16, for which cuBLASLt has its fastest products.
const ALIGNED: usize = 128;

/// One parameter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameter {
    /// Its f32 weights.
    pub(crate) master: Address,
    /// Its weights as products read them.
    pub(crate) product: Address,
    /// Its gradient, f32, which is added to; null where none is wanted.
    pub(crate) gradient: Address,
}

/// Where a parameter stands, and whether it is trained.
#[derive(Debug, Clone, Copy)]
struct Place {
    segment: Segment,
    trained: bool,
}

/// The arenas, with the table of what stands where.
#[derive(Debug)]
pub(crate) struct Arenas {
    /// By name, in the order of the segments.
    places: BTreeMap<String, Place>,
    numbers: Numbers,
    /// The weights as products read them; none of a model that only answers in f32, whose products read the weights themselves.
    shadow: Option<Block>,
    /// What is there only of a training.
    training: Option<Training>,
}

/// Arenas of f32 numbers, and the tables of what stands in them.
#[derive(Debug)]
pub(crate) struct Training {
    pub(crate) gradient: Block,
    pub(crate) first: Block,
    pub(crate) second: Block,
    pub(crate) segments: Block,
    pub(crate) chunks: Block,
    pub(crate) shares: Block,
    pub(crate) chunk_count: usize,
}

/// Names in the order in which their slices stand: weights of queries, keys and values of a layer side by side, and so their biases, as one product reads them.
fn in_order(params: &Params) -> Vec<(&str, usize)> {
    let side_by_side = |name: &str| {
        let (at, part) = ["query", "key", "value"].iter().enumerate().find_map(|(at, part)| {
            let (layer, kind) = name.split_once(&format!(".attention.self.{part}."))?;
            Some((at, format!("{layer}.attention.self.{kind}")))
        })?;
        Some((part, at))
    };
    let mut all: Vec<(String, usize, &str, usize)> = vec![];
    for (name, tensor) in params.iter() {
        let (group, at) = side_by_side(name).unwrap_or((name.to_owned(), 0));
        all.push((group, at, name, tensor.elem_count()));
    }
    all.sort();
    all.into_iter().map(|(_, _, name, count)| (name, count)).collect()
}

impl Arenas {
    /// Arenas of parameters on the device; those of a training where `trained` says what of them is.
    ///
    /// # Errors
    /// When the device does not have the memory, or a parameter is elsewhere.
    pub(crate) fn new(
        cuda: &mut Cuda,
        params: &Params,
        heads: &HeadMask,
        trained: Option<IsTrained<'_>>,
    ) -> Result<Self, Error> {
        let stream = cuda.stream.clone();
        let (mut starts, mut end) = (BTreeMap::new(), 0_usize);
        let mut before = "";
        for (name, count) in in_order(params) {
            // Within one layer's three nothing lies between.
            let goes_on = [("query", "key"), ("key", "value")].iter().any(|(one, next)| {
                before.replacen(&format!(".self.{one}."), &format!(".self.{next}."), 1) == name
                    && before != name
            });
            let start = if goes_on { end } else { end.next_multiple_of(ALIGNED) };
            starts.insert(name.to_owned(), start);
            end = start + count;
            before = name;
        }
        let count = end.next_multiple_of(ALIGNED);
        let mut table = Table::default();
        let mut places = BTreeMap::new();
        for (name, tensor) in params.iter() {
            let master = address(tensor, &stream)?;
            let start = starts.get(name).copied().unwrap_or(0);
            let segment = table.push(tensor.dims(), [master, start as u64], heads.shares(name));
            let trained = trained.is_some_and(|trained| trained(name));
            places.insert(name.to_owned(), Place { segment, trained });
        }
        let training = trained.map(|_| table.training(&stream, count)).transpose()?;
        let numbers = cuda.numbers;
        let own = training.is_some() || numbers == Numbers::Bf16;
        let shadow = own.then(|| Block::zeros(&stream, count * numbers.bytes())).transpose()?;
        let arenas = Arenas { places, numbers, shadow, training };
        arenas.refresh(cuda)?;
        Ok(arenas)
    }

    /// Makes what products read of the weights as they are now. An update does it by itself.
    ///
    /// # Errors
    /// When the driver refuses a launch.
    pub(crate) fn refresh(&self, cuda: &mut Cuda) -> Result<(), Error> {
        if self.shadow.is_none() {
            return Ok(());
        }
        for Place { segment, .. } in self.places.values() {
            let (x, y, count) = (segment.master, self.product_of(segment), segment.count);
            let how = Launch::of((count as usize).div_ceil(4096).min(1024), 256);
            match self.numbers {
                Numbers::Bf16 => cuda.launch("cast_to_bf16", how, &Cast { x, y, count })?,
                Numbers::F32 => {
                    cuda.launch("scaled_add_f32", how, &ScaledAdd { x, y, count, a: 1.0, b: 0.0 })?;
                }
            }
        }
        Ok(())
    }

    /// Where a parameter stands.
    ///
    /// # Errors
    /// When there is none of the name.
    pub(crate) fn parameter(&self, name: &str) -> Result<Parameter, Error> {
        let Some(Place { segment, trained }) = self.places.get(name) else {
            return Err(Error::Misfit(format!("the model has no parameter named {name}; report it")));
        };
        let gradient = match &self.training {
            Some(training) if *trained => training.gradient.address() + 4 * segment.start,
            _ => 0,
        };
        Ok(Parameter { master: segment.master, product: self.product_of(segment), gradient })
    }

    fn product_of(&self, segment: &Segment) -> Address {
        let of = |shadow: &Block| shadow.address() + segment.start * self.numbers.bytes() as u64;
        self.shadow.as_ref().map_or(segment.master, of)
    }

    /// Names and segments in the table's order, and whether each is trained.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Segment, bool)> {
        self.places.iter().map(|(name, of)| (name.as_str(), &of.segment, of.trained))
    }

    /// How many parameters there are.
    pub(crate) fn count(&self) -> usize {
        self.places.len()
    }

    /// What products read.
    pub(crate) fn shadow(&self) -> Address {
        self.shadow.as_ref().map_or(0, Block::address)
    }

    /// What a training has.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn training(&self) -> Result<&Training, Error> {
        self.training
            .as_ref()
            .ok_or_else(|| Error::Misfit("a step of a model that only answers; report it".to_owned()))
    }
}

/// The tables while they are filled.
#[derive(Default)]
struct Table {
    segments: Vec<Segment>,
    chunks: Vec<Chunk>,
    shares: Vec<f32>,
}

impl Table {
    /// The next parameter, `[o, width]` or `[o]`: where its weights begin, and its slices.
    fn push(
        &mut self,
        shape: &[usize],
        [master, start]: [u64; 2],
        divided: Option<(Axis, [Vec<f32>; 2])>,
    ) -> Segment {
        let count: usize = shape.iter().product();
        let (rows, width) = (shape.first().copied().unwrap_or(1), shape.iter().skip(1).product::<usize>());
        let chunks = count.div_ceil(CHUNK_NUMBERS);
        let mut segment = Segment {
            master,
            start,
            count: count as u64,
            first_chunk: self.chunks.len() as u32,
            chunks: chunks as u32,
            shares: NO_SHARES,
            axis: 0,
            width: width as u32,
            head_width: 0,
            heads: 0,
            unused: 0,
        };
        if let Some((axis, [of_gradient, of_step])) = divided {
            let heads = of_gradient.len();
            let side = if axis == Axis::Rows { rows } else { width };
            (segment.axis, segment.heads) = (u32::from(axis == Axis::Columns), heads as u32);
            (segment.head_width, segment.shares) = ((side / heads) as u32, self.shares.len() as u32);
            self.shares.extend(of_gradient.into_iter().chain(of_step));
        }
        let number = self.segments.len() as u32;
        self.chunks.extend((0..chunks as u32).map(|index| Chunk { segment: number, index }));
        self.segments.push(segment);
        segment
    }

    fn training(&self, stream: &Arc<CudaStream>, count: usize) -> Result<Training, Error> {
        let zeros = || Block::zeros(stream, 4 * count);
        Ok(Training {
            gradient: zeros()?,
            first: zeros()?,
            second: zeros()?,
            segments: Block::of(stream, &self.segments)?,
            chunks: Block::of(stream, &self.chunks)?,
            shares: Block::of(stream, &self.shares)?,
            chunk_count: self.chunks.len(),
        })
    }
}
