//! Single operations on the tensor library's own memory: what `cuda_fwd` and the backward passes of [`crate::nn`] launch.

use std::sync::{Mutex, PoisonError};

use candle_core::backend::{BackendDevice, BackendStorage};
use candle_core::cuda_backend::cudarc::driver::DevicePtr;
use candle_core::cuda_backend::{CudaDevice, CudaStorage, DeviceId};
use candle_core::op::BackpropOp;
use candle_core::{DType, Error as TensorError, Layout, Result, Shape, Storage, Tensor};

use super::args::{
    Address, Args, AttentionBackward, AttentionDelta, AttentionForward, ColumnsFinish, NormBackward,
    NormForward,
};
use super::{Cuda, Launch, Numbers, rows_per_block, stretches};
use crate::Error;
use crate::device::ActivationDtype;

/// Kernels of each device that was asked.
static SHARED: Mutex<Vec<(DeviceId, Cuda)>> = Mutex::new(vec![]);

/// Runs `f` on a device's kernels.
fn on<R>(device: &CudaDevice, f: impl FnOnce(&mut Cuda) -> std::result::Result<R, Error>) -> Result<R> {
    let mut all = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let at = match all.iter().position(|(id, _)| *id == device.id()) {
        Some(at) => at,
        None => {
            all.push((device.id(), Cuda::new(device, ActivationDtype::F32).map_err(TensorError::wrap)?));
            all.len() - 1
        }
    };
    f(&mut all[at].1).map_err(TensorError::wrap)
}

/// Memory of an operation.
struct Taken {
    storage: CudaStorage,
    address: Address,
}

impl Taken {
    fn new(dtype: DType, device: &CudaDevice, count: usize) -> Result<Self> {
        let shape = Shape::from(count);
        // SAFETY: kernels write all of what is read of it.
        let storage = unsafe { device.alloc_uninit(&shape, dtype) }?;
        let address = address(&storage, &Layout::contiguous(shape))?;
        Ok(Taken { storage, address })
    }

    fn into_tensor(self, shape: &Shape) -> Tensor {
        Tensor::from_storage(Storage::Cuda(self.storage), shape.clone(), BackpropOp::none(), false)
    }
}

/// Where numbers that lie one behind the other begin.
fn address(storage: &CudaStorage, layout: &Layout) -> Result<Address> {
    let Some((first, _)) = layout.contiguous_offsets() else {
        candle_core::bail!("numbers that do not lie one behind the other")
    };
    let (begin, bytes) = match &storage.slice {
        candle_core::cuda_backend::CudaStorageSlice::F32(slice) => (slice.device_ptr(slice.stream()).0, 4),
        candle_core::cuda_backend::CudaStorageSlice::BF16(slice) => (slice.device_ptr(slice.stream()).0, 2),
        _ => candle_core::bail!("kernels compute in f32 and bf16"),
    };
    Ok(begin + (first * bytes) as u64)
}

fn address_of(tensor: &Tensor) -> Result<Address> {
    let (storage, layout) = tensor.storage_and_layout();
    match &*storage {
        Storage::Cuda(storage) => address(storage, layout),
        _ => candle_core::bail!("a tensor that is not on a CUDA device"),
    }
}

fn device_of(tensor: &Tensor) -> Result<CudaDevice> {
    tensor.device().as_cuda_device().cloned()
}

/// Rows of 128 columns for operations on numbers by themselves: their shape does not matter.
const WIDTH: usize = 128;

/// GELU of f32 numbers.
///
/// # Errors
/// When the driver refuses a launch.
pub(crate) fn gelu(x: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
    let (device, count) = (x.device.clone(), layout.shape().elem_count());
    let from = address(x, layout)?;
    let y = Taken::new(DType::F32, &device, count.next_multiple_of(4))?;
    // Whole rows, then what is left as a row of its own.
    for (first, rows, width) in pieces(count) {
        let (x, y) = (from + 4 * first as u64, y.address + 4 * first as u64);
        on(&device, |cuda| cuda.gelu_forward([rows, width], 0, [x, y]))?;
    }
    Ok((y.storage, layout.shape().clone()))
}

/// Rows of [`WIDTH`] numbers from the first on, and a shorter one behind them: where each begins, how many, how wide.
fn pieces(count: usize) -> Vec<(usize, usize, usize)> {
    let (rows, left) = (count / WIDTH, count % WIDTH);
    let all = [(0, rows, WIDTH), (rows * WIDTH, 1, left)];
    all.into_iter().filter(|(_, rows, width)| rows * width > 0).collect()
}

/// The gradient of [`gelu`].
///
/// # Errors
/// When the driver refuses a launch, or numbers are no multiple of 4.
pub(crate) fn gelu_gradient(x: &Tensor, grad: &Tensor) -> Result<Tensor> {
    let (device, count) = (device_of(x)?, x.elem_count());
    let (from, dy) = (address_of(x)?, address_of(grad)?);
    let dx = Taken::new(DType::F32, &device, count)?;
    for (first, rows, width) in pieces(count) {
        let partials = Taken::new(DType::F32, &device, stretches(rows) * width)?;
        let [x, dy, dx] = [from, dy, dx.address].map(|at| at + 4 * first as u64);
        let back = [dy, dx, partials.address];
        on(&device, |cuda| cuda.gelu_backward([rows, width], [x, 0], back))?;
    }
    Ok(dx.into_tensor(x.shape()))
}

/// Rows, their gain and shift, and what is added to variances.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NormOf {
    pub(crate) x: Address,
    pub(crate) gain: Address,
    pub(crate) shift: Address,
    pub(crate) n: usize,
    pub(crate) d: usize,
    pub(crate) epsilon: f32,
}

impl NormOf {
    /// The addresses of storages.
    ///
    /// # Errors
    /// When they are not f32 numbers one behind the other, or of sizes that kernels do not take.
    pub(crate) fn new(
        x: (&CudaStorage, &Layout),
        gain: (&CudaStorage, &Layout),
        shift: (&CudaStorage, &Layout),
        epsilon: f32,
    ) -> Result<Self> {
        let (d, count) = (gain.1.shape().elem_count(), x.1.shape().elem_count());
        if d == 0 || !d.is_multiple_of(4) || d > 1024 || !count.is_multiple_of(d) {
            candle_core::bail!("layer norm of {d} numbers: kernels take multiples of 4 up to 1024");
        }
        let [x, gain, shift] = [address(x.0, x.1)?, address(gain.0, gain.1)?, address(shift.0, shift.1)?];
        Ok(NormOf { x, gain, shift, n: count / d, d, epsilon })
    }

    fn forward(&self, device: &CudaDevice, [y, mean, inverse]: [Address; 3]) -> Result<()> {
        let args = NormForward {
            x: self.x,
            bias: 0,
            residual: 0,
            gain: self.gain,
            shift: self.shift,
            sum: 0,
            y,
            mean,
            inverse,
            dropout: super::args::Dropout::NONE,
            n: self.n as u64,
            d: self.d as u32,
            epsilon: self.epsilon,
        };
        on(device, |cuda| cuda.norm_forward(&args))
    }
}

/// Layer normalisation of f32 rows.
///
/// # Errors
/// When the driver refuses a launch.
pub(crate) fn layer_norm(device: &CudaDevice, of: NormOf, shape: &Shape) -> Result<(CudaStorage, Shape)> {
    let y = Taken::new(DType::F32, device, of.n * of.d)?;
    let statistics = Taken::new(DType::F32, device, 2 * of.n)?;
    of.forward(device, [y.address, statistics.address, statistics.address + 4 * of.n as u64])?;
    Ok((y.storage, shape.clone()))
}

/// The gradients of [`layer_norm`]: of rows, gain and shift.
///
/// # Errors
/// When the driver refuses a launch.
pub(crate) fn layer_norm_gradient(
    x: &Tensor,
    gain: &Tensor,
    grad: &Tensor,
    epsilon: f32,
) -> Result<[Tensor; 3]> {
    let (device, d) = (device_of(x)?, gain.elem_count());
    let n = x.elem_count() / d.max(1);
    let of = NormOf { x: address_of(x)?, gain: address_of(gain)?, shift: address_of(gain)?, n, d, epsilon };
    let dx = Taken::new(DType::F32, &device, n * d)?;
    let statistics = Taken::new(DType::F32, &device, 2 * n)?;
    let (mean, inverse) = (statistics.address, statistics.address + 4 * n as u64);
    // The statistics again; what is normalised is thrown away.
    of.forward(&device, [dx.address, mean, inverse])?;
    let partials = Taken::new(DType::F32, &device, 3 * stretches(n) * d)?;
    let args = NormBackward {
        dy: address_of(grad)?,
        sum: of.x,
        mean,
        inverse,
        gain: of.gain,
        d_sum: dx.address,
        d_x: 0,
        partials: partials.address,
        dropout: super::args::Dropout::NONE,
        n: n as u64,
        d: d as u32,
        rows_per_block: rows_per_block(n) as u32,
    };
    let (d_gain, d_shift) = (Taken::new(DType::F32, &device, d)?, Taken::new(DType::F32, &device, d)?);
    let finish = ColumnsFinish {
        partials: partials.address,
        out: [d_gain.address, d_shift.address, 0],
        parts: stretches(n) as u32,
        groups: 3,
        width: d as u32,
        accumulate: 0,
    };
    on(&device, |cuda| {
        cuda.norm_backward(&args)?;
        cuda.launch("columns_finish", Launch::of((3 * d).div_ceil(32), 256), &finish)
    })?;
    Ok([dx.into_tensor(x.shape()), d_gain.into_tensor(gain.shape()), d_shift.into_tensor(gain.shape())])
}

/// Rows of tokens that attend to each other.
#[derive(Debug, Clone)]
pub(crate) struct AttentionOf {
    /// Where rows begin, and the end of the last.
    pub(crate) starts: Vec<i32>,
    pub(crate) longest: usize,
    pub(crate) heads: usize,
    pub(crate) d: usize,
}

impl AttentionOf {
    fn n(&self) -> usize {
        self.starts.last().map_or(0, |end| end.cast_unsigned() as usize)
    }

    fn k(&self) -> usize {
        self.d / self.heads
    }

    fn forward(&self, qkv: Address, [row_starts, context, lse]: [Address; 3]) -> AttentionForward {
        AttentionForward {
            qkv,
            row_starts,
            seen: 0,
            gates: super::args::Gates { values: 0, of: super::args::GATES_OF_ALL, unused: 0 },
            context,
            gated: 0,
            lse,
            dropout: super::args::Dropout::NONE,
            n: self.n() as u64,
            heads: self.heads as u32,
            k: self.k() as u32,
            scale: super::encoder::scale(self.k()),
            unused: 0,
        }
    }

    fn launch<A: Args>(&self, device: &CudaDevice, kernel: &str, numbers: Numbers, args: &A) -> Result<()> {
        let (suffix, tile) = super::encoder::kernels(numbers, self.k());
        let grid = [self.starts.len() - 1, self.heads, self.longest.div_ceil(tile)];
        let how = Launch { grid, threads: 128, shared: 0 };
        on(device, |cuda| cuda.launch(&format!("{kernel}_{suffix}"), how, args))
    }
}

fn numbers_of(dtype: DType) -> Result<Numbers> {
    match dtype {
        DType::F32 => Ok(Numbers::F32),
        DType::BF16 => Ok(Numbers::Bf16),
        _ => candle_core::bail!("kernels compute in f32 and bf16, not in {dtype:?}"),
    }
}

/// Contexts `[n, d]` of queries, keys and values `[n, 3 d]`, f32 or bf16.
///
/// # Errors
/// When the driver refuses a launch.
pub(crate) fn attention(
    of: &AttentionOf,
    qkv: &CudaStorage,
    layout: &Layout,
) -> Result<(CudaStorage, Shape)> {
    let (device, dtype, n) = (qkv.device.clone(), qkv.dtype(), of.n());
    let from = address(qkv, layout)?;
    let (context, lse) =
        (Taken::new(dtype, &device, n * of.d)?, Taken::new(DType::F32, &device, of.heads * n)?);
    let starts = device.clone_htod(&of.starts)?;
    let row_starts = starts.device_ptr(starts.stream()).0;
    let args = of.forward(from, [row_starts, context.address, lse.address]);
    of.launch(&device, "attention_forward", numbers_of(dtype)?, &args)?;
    Ok((context.storage, Shape::from((n, of.d))))
}

/// The gradient of [`attention`]: contexts are computed again for what was not kept.
///
/// # Errors
/// When the driver refuses a launch.
pub(crate) fn attention_gradient(of: &AttentionOf, qkv: &Tensor, grad: &Tensor) -> Result<Tensor> {
    let (device, dtype, n) = (device_of(qkv)?, qkv.dtype(), of.n());
    let (from, d_out, numbers) = (address_of(qkv)?, address_of(grad)?, numbers_of(dtype)?);
    let (context, lse) =
        (Taken::new(dtype, &device, n * of.d)?, Taken::new(DType::F32, &device, of.heads * n)?);
    let (d_qkv, delta) =
        (Taken::new(dtype, &device, 3 * n * of.d)?, Taken::new(DType::F32, &device, of.heads * n)?);
    let starts = device.clone_htod(&of.starts)?;
    let row_starts = starts.device_ptr(starts.stream()).0;
    let forward = of.forward(from, [row_starts, context.address, lse.address]);
    of.launch(&device, "attention_forward", numbers, &forward)?;
    let AttentionForward { gates, n: tokens, heads, k, scale, dropout, .. } = forward;
    let of_delta = AttentionDelta {
        context: context.address,
        d_out,
        row_starts,
        gates,
        each: 0,
        delta: delta.address,
        n: tokens,
        rows: of.starts.len() as u32 - 1,
        heads,
        k,
        unused: 0,
    };
    let kernel = format!("attention_delta_{}", numbers.suffix());
    on(&device, |cuda| cuda.launch(&kernel, Launch::of(n.div_ceil(4), 128), &of_delta))?;
    let args = AttentionBackward {
        qkv: from,
        row_starts,
        seen: 0,
        gates,
        d_out,
        lse: lse.address,
        delta: delta.address,
        d_qkv: d_qkv.address,
        dropout,
        n: tokens,
        heads,
        k,
        scale,
        unused: 0,
    };
    of.launch(&device, "attention_backward_q", numbers, &args)?;
    of.launch(&device, "attention_backward_kv", numbers, &args)?;
    Ok(d_qkv.into_tensor(qkv.shape()))
}
