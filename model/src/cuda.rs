//! Training and answering on CUDA: the kernels of `model/cuda` and cuBLASLt's products, launched over memory that a step hands to the next.
//!
//! A step is a tape: embeddings, layers, outputs, and back. What the host has to say of it goes up in one copy before the first launch; what the device has to
//! say, losses and norms, comes down when somebody asks, steps later. Between the two nothing is allocated and nothing is waited for. Weights are the tensor
//! library's variables, device and stream are its [`CudaDevice`].
#![allow(unsafe_code)] // Launches and copies are the driver's, which Rust cannot see into.
#![allow(
    clippy::cast_possible_truncation,
    reason = "kernels count in 32 bits: what comes from batches is checked by `feed::number`, the rest are sizes of models"
)]

mod answer;
pub(crate) mod arenas;
pub(crate) mod args;
pub(crate) mod encoder;
mod error;
pub(crate) mod feed;
pub(crate) mod flight;
pub(crate) mod graphs;
mod group;
pub(crate) mod memory;
pub(crate) mod model;
pub(crate) mod ops;
pub(crate) mod outputs;
pub(crate) mod product;
pub(crate) mod tape;
pub(crate) mod update;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use candle_core::cuda_backend::cudarc::cublaslt::sys::cudaDataType;
use candle_core::cuda_backend::cudarc::driver::{
    CudaContext, CudaFunction, CudaModule, CudaStream, LaunchConfig, PushKernelArg,
};
use candle_core::cuda_backend::cudarc::nvrtc::Ptx;
use candle_core::cuda_backend::{CudaDevice, WrapErr};
use candle_core::{Device, Storage, Tensor};

use crate::Error;
use crate::device::ActivationDtype;
pub(crate) use group::version as nccl_version;

use args::{Address, Args, Fill, GeluBackward, GeluForward, NormBackward, NormForward};
use graphs::Signature;
use memory::Block;
use product::{Products, WORKSPACE};

/// The kernels, compiled for the capability 9.0, and as instructions that the driver compiles for any from 8.0 on.
const CUBIN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/engraft.cubin"));
const PTX: &str = include_str!(concat!(env!("OUT_DIR"), "/engraft.ptx"));

/// The numbers of activations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Numbers {
    F32,
    Bf16,
}

impl Numbers {
    /// Those of a training.
    pub(crate) fn of(dtype: ActivationDtype) -> Self {
        match dtype {
            ActivationDtype::F32 | ActivationDtype::Tf32 => Numbers::F32,
            ActivationDtype::Bf16 => Numbers::Bf16,
        }
    }

    /// Bytes of one.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Numbers::F32 => 4,
            Numbers::Bf16 => 2,
        }
    }

    /// What names of kernels end in.
    fn suffix(self) -> &'static str {
        match self {
            Numbers::F32 => "f32",
            Numbers::Bf16 => "bf16",
        }
    }

    fn cuda_type(self) -> cudaDataType {
        match self {
            Numbers::F32 => cudaDataType::CUDA_R_32F,
            Numbers::Bf16 => cudaDataType::CUDA_R_16BF,
        }
    }
}

/// A grid of blocks and the threads of each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Launch {
    pub(crate) grid: [usize; 3],
    pub(crate) threads: u32,
    /// Bytes of dynamic shared memory.
    pub(crate) shared: usize,
}

impl Launch {
    /// So many blocks side by side.
    pub(crate) fn of(blocks: usize, threads: u32) -> Self {
        Launch { grid: [blocks, 1, 1], threads, shared: 0 }
    }

    /// A block for each stretch of n rows and 128 columns.
    pub(crate) fn stretches(n: usize, width: usize) -> Self {
        Launch { grid: [stretches(n), width.div_ceil(128), 1], threads: 256, shared: 0 }
    }

    /// A block for each stretch of n rows `d` wide, whose warps add up `groups` sums of columns in shared memory.
    pub(crate) fn sums(n: usize, groups: usize, d: usize) -> Self {
        Launch { grid: [stretches(n), 1, 1], threads: 128, shared: 4 * groups * d * size_of::<f32>() }
    }

    /// A block for each 8 rows and 128 columns.
    pub(crate) fn tiles(rows: usize, d: usize) -> Self {
        Launch { grid: [rows.div_ceil(8), d.div_ceil(128), 1], threads: 256, shared: 0 }
    }
}

/// Stretches of rows whose partial sums are added in order, at most.
const STRETCHES: usize = 512;

/// Rows of a stretch, a multiple of the warps of a block.
pub(crate) fn rows_per_block(n: usize) -> usize {
    n.max(1).div_ceil(STRETCHES).next_multiple_of(8)
}

/// How many stretches there are.
pub(crate) fn stretches(n: usize) -> usize {
    n.max(1).div_ceil(rows_per_block(n))
}

/// A device with its stream, our kernels on it, and products.
#[derive(Debug)]
pub(crate) struct Cuda {
    pub(crate) stream: Arc<CudaStream>,
    module: Arc<CudaModule>,
    functions: HashMap<String, CudaFunction>,
    pub(crate) numbers: Numbers,
    pub(crate) products: Products,
    /// Where only what would be launched is asked for.
    signature: Option<Signature>,
    _workspace: Block,
}

impl Cuda {
    /// Kernels and products on a device, for activations of this dtype.
    ///
    /// # Errors
    /// When the driver refuses the kernels, or cuBLASLt does not begin.
    pub(crate) fn new(device: &CudaDevice, dtype: ActivationDtype) -> Result<Self, Error> {
        let stream = device.cuda_stream();
        let module = load(stream.context())?;
        let workspace = Block::new(&stream, WORKSPACE)?;
        let products = Products::new(dtype, workspace.address())?;
        let numbers = Numbers::of(dtype);
        let functions = HashMap::new();
        Ok(Cuda { stream, module, functions, numbers, products, signature: None, _workspace: workspace })
    }

    /// Launches a kernel.
    ///
    /// # Errors
    /// When there is no such kernel, or the driver refuses the launch.
    pub(crate) fn launch<A: Args>(&mut self, kernel: &str, how: Launch, args: &A) -> Result<(), Error> {
        if how.grid.contains(&0) {
            return Ok(());
        }
        if let Some(signature) = &mut self.signature {
            signature.put(kernel.as_bytes());
            let [x, y, z] = how.grid;
            signature.put_numbers([x, y, z, how.threads as usize, how.shared].map(|number| number as u64));
            signature.put(args.bytes());
            return Ok(());
        }
        if !self.functions.contains_key(kernel) {
            let function =
                self.module.load_function(kernel).map_err(|source| error::kernel(kernel, source))?;
            self.functions.insert(kernel.to_owned(), function);
        }
        let side = |blocks: usize| u32::try_from(blocks).map_err(|_| error::grid(kernel, how.grid));
        let config = LaunchConfig {
            grid_dim: (side(how.grid[0])?, side(how.grid[1])?, side(how.grid[2])?),
            block_dim: (how.threads, 1, 1),
            shared_mem_bytes: u32::try_from(how.shared).map_err(|_| error::grid(kernel, how.grid))?,
        };
        let Some(function) = self.functions.get(kernel) else { return Ok(()) };
        // SAFETY: `Args` are the kernel's own structure; the tape hands in addresses that hold what it reads and writes.
        unsafe { self.stream.launch_builder(function).arg(args).launch(config) }
            .map(drop)
            .map_err(|source| error::kernel(kernel, source))
    }

    /// From now on nothing is launched; what would be is put together.
    pub(crate) fn begin_signature(&mut self) {
        self.signature = Some(Signature::default());
        self.products.signature = Some(Signature::default());
    }

    /// What would have been launched since [`Cuda::begin_signature`]. Products stand behind kernels, in an order of their own: between which kernels one stands follows
    /// from the sizes of both.
    pub(crate) fn end_signature(&mut self) -> Signature {
        let (mut all, products) =
            (self.signature.take().unwrap_or_default(), self.products.signature.take().unwrap_or_default());
        all.append(&products);
        all
    }

    /// As [`Cuda::launch`], of the kernel for these activations.
    pub(crate) fn launch_on_numbers<A: Args>(
        &mut self,
        kernel: &str,
        how: Launch,
        args: &A,
    ) -> Result<(), Error> {
        self.launch(&format!("{kernel}_{}", self.numbers.suffix()), how, args)
    }

    /// Sets so many f32 numbers.
    ///
    /// # Errors
    /// When the driver refuses the launch.
    pub(crate) fn fill(&mut self, x: Address, count: usize, value: f32) -> Result<(), Error> {
        let args = Fill { x, count: count as u64, value, unused: 0 };
        self.launch("fill_f32", Launch::of(count.div_ceil(1024), 256), &args)
    }

    /// `y = GELU(x + bias)` of `[n, width]`, x then with the bias; a null bias is none.
    ///
    /// # Errors
    /// When the driver refuses the launch.
    pub(crate) fn gelu_forward(
        &mut self,
        [n, width]: [usize; 2],
        bias: Address,
        [x, y]: [Address; 2],
    ) -> Result<(), Error> {
        let rows_per_block = rows_per_block(n) as u32;
        let args = GeluForward { x, bias, y, n: n as u64, width: width as u32, rows_per_block };
        self.launch_on_numbers("gelu_forward", Launch::stretches(n, width), &args)
    }

    /// The gradient dx of x `[n, width]`, which may be dy, with partial sums of its columns; GELU's values go to y unless it is null.
    ///
    /// # Errors
    /// When the driver refuses the launch.
    pub(crate) fn gelu_backward(
        &mut self,
        [n, width]: [usize; 2],
        [x, y]: [Address; 2],
        [dy, dx, partials]: [Address; 3],
    ) -> Result<(), Error> {
        let rows_per_block = rows_per_block(n) as u32;
        let args = GeluBackward { x, dy, y, dx, partials, n: n as u64, width: width as u32, rows_per_block };
        self.launch_on_numbers("gelu_backward", Launch::stretches(n, width), &args)
    }

    /// Normalises rows.
    ///
    /// # Errors
    /// When the driver refuses the launch.
    pub(crate) fn norm_forward(&mut self, args: &NormForward) -> Result<(), Error> {
        self.launch_on_numbers("norm_forward", Launch::of(args.n.div_ceil(4) as usize, 128), args)
    }

    /// The gradient of [`Cuda::norm_forward`], with partial sums of gain, shift and bias.
    ///
    /// # Errors
    /// When the driver refuses the launch.
    pub(crate) fn norm_backward(&mut self, args: &NormBackward) -> Result<(), Error> {
        self.launch_on_numbers("norm_backward", Launch::sums(args.n as usize, 3, args.d as usize), args)
    }
}

/// The kernels as the device takes them.
fn load(context: &Arc<CudaContext>) -> Result<Arc<CudaModule>, Error> {
    let capability = context.compute_capability().w()?;
    let image = match capability {
        (9, 0) => Ptx::from_binary(CUBIN.to_vec()),
        (major, _) if major >= 8 => Ptx::from_src(PTX),
        (major, minor) => {
            return Err(Error::Misfit(format!(
                "this GPU has the compute capability {major}.{minor}, expected 8.0 or later (A100, RTX 30 and what came after); take the device cpu"
            )));
        }
    };
    Ok(context.load_module(image).w()?)
}

/// Readies a device that was just opened: memory that was freed stays with this process, and no event is made of each allocation, since one stream orders all
/// uses.
///
/// # Errors
/// When the driver refuses it.
pub(crate) fn set_up(device: &CudaDevice) -> candle_core::Result<()> {
    use candle_core::cuda_backend::cudarc::driver::{result, sys};
    let (stream, keep) = (device.cuda_stream(), u64::MAX);
    let context = stream.context();
    if context.has_async_alloc() {
        // SAFETY: the pool is the device's own, and the driver reads one number.
        unsafe {
            let pool = result::device::get_default_mem_pool(context.cu_device()).w()?;
            let which = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
            result::mem_pool::set_attribute(pool, which, std::ptr::from_ref(&keep).cast_mut().cast()).w()?;
        }
    }
    // SAFETY: this process has one stream on the device, `device::cuda` sees to it.
    unsafe { device.disable_event_tracking() };
    Ok(())
}

/// What is to be known of a device.
///
/// # Errors
/// When the driver does not answer.
pub(crate) fn facts(device: &CudaDevice) -> Result<BTreeMap<&'static str, String>, Error> {
    use candle_core::cuda_backend::cudarc::{cublaslt, driver};
    let stream = device.cuda_stream();
    let context = stream.context();
    let (major, minor) = context.compute_capability().w()?;
    let mut driver_version = 0;
    // SAFETY: the driver writes one number.
    unsafe { driver::sys::cuDriverGetVersion(&raw mut driver_version) }.result().w()?;
    // SAFETY: it asks for nothing.
    let cublaslt = unsafe { cublaslt::sys::cublasLtGetVersion() };
    let mut facts = BTreeMap::from([
        ("name", context.name().w()?),
        ("capability", format!("{major}.{minor}")),
        ("memory_mib", (context.total_mem().w()? >> 20).to_string()),
        ("cuda_of_driver", format!("{}.{}", driver_version / 1000, driver_version % 1000 / 10)),
        ("cublaslt", cublaslt.to_string()),
    ]);
    // No function of CUDA has the driver's own version; on Linux its kernel module does.
    if let Ok(version) = std::fs::read_to_string("/sys/module/nvidia/version") {
        facts.insert("driver", version.trim().to_owned());
    }
    Ok(facts)
}

/// The CUDA device behind a device.
///
/// # Errors
/// When it is another kind.
pub(crate) fn device(device: &Device) -> Result<&CudaDevice, Error> {
    match device {
        Device::Cuda(cuda) => Ok(cuda),
        _ => Err(Error::Misfit("a device that is no CUDA device; report it".to_owned())),
    }
}

/// Where the f32 numbers of a variable begin. It stays there as long as the variable lives.
///
/// # Errors
/// When it is not on a CUDA device, or its numbers do not lie one behind the other.
pub(crate) fn address(tensor: &Tensor, stream: &Arc<CudaStream>) -> Result<Address, Error> {
    use candle_core::cuda_backend::cudarc::driver::DevicePtr;
    let (storage, layout) = tensor.storage_and_layout();
    match (&*storage, layout.contiguous_offsets()) {
        (Storage::Cuda(cuda), Some((first, _))) => {
            let slice = cuda.as_cuda_slice::<f32>()?;
            let (address, _reads) = slice.device_ptr(stream);
            Ok(address + first as u64 * 4)
        }
        _ => Err(Error::Misfit("a parameter that is not on the CUDA device; report it".to_owned())),
    }
}

#[cfg(test)]
mod tests;
