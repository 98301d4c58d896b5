//! Sums over the GPUs of several ranks, by NCCL. The library is looked for when ranks meet: whoever trains alone does not need it.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::sync::Arc;

use candle_core::cuda_backend::cudarc::driver::{CudaStream, sys};
use libloading::Library;

use super::args::Address;
use super::error;
use crate::Error;
use crate::train::collective::Collective;

/// What the library is called.
const LIBRARY: &str = "libnccl.so.2";
/// Bytes of the name that ranks meet under.
const NAME: usize = 128;
/// `ncclFloat32`, `ncclFloat64`, `ncclSum`, `ncclSuccess` and `ncclInProgress` of nccl.h.
const F32: c_int = 7;
const F64: c_int = 8;
const SUM: c_int = 0;
const SUCCESS: c_int = 0;
const IN_PROGRESS: c_int = 7;

/// `ncclUniqueId`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Name([c_char; NAME]);

type Communicator = *mut c_void;

/// The functions that are called, as nccl.h declares them.
struct Functions {
    unique_id: unsafe extern "C" fn(*mut Name) -> c_int,
    init: unsafe extern "C" fn(*mut Communicator, c_int, Name, c_int) -> c_int,
    #[allow(clippy::type_complexity, reason = "nccl.h's own")]
    all_reduce: unsafe extern "C" fn(
        *const c_void,
        *mut c_void,
        usize,
        c_int,
        c_int,
        Communicator,
        *mut c_void,
    ) -> c_int,
    async_error: unsafe extern "C" fn(Communicator, *mut c_int) -> c_int,
    destroy: unsafe extern "C" fn(Communicator) -> c_int,
    abort: unsafe extern "C" fn(Communicator) -> c_int,
    text: unsafe extern "C" fn(c_int) -> *const c_char,
    version: unsafe extern "C" fn(*mut c_int) -> c_int,
    _library: Library,
}

/// One GPU among those of all ranks.
pub(crate) struct Group {
    functions: Functions,
    communicator: Communicator,
    stream: Arc<CudaStream>,
    ranks: Arc<dyn Collective>,
}

// SAFETY: the library binds a communicator to no thread; whoever has the group keeps others away.
unsafe impl Send for Group {}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("ranks", &self.ranks).finish_non_exhaustive()
    }
}

impl Functions {
    fn load() -> Result<Self, Error> {
        let lacking = |error: libloading::Error| {
            Error::Misfit(format!(
                "several ranks on CUDA add their gradients by NCCL, and {LIBRARY} cannot be used ({error}): install it (`pip install nvidia-nccl-cu13` has it in nvidia/nccl/lib) and name its folder in LD_LIBRARY_PATH, or take the device cpu"
            ))
        };
        // SAFETY: what runs when NCCL is loaded is NVIDIA's; the types are those of nccl.h, which have not changed since version 2.4.
        unsafe {
            let library = Library::new(LIBRARY).map_err(lacking)?;
            macro_rules! function {
                ($name:literal) => {
                    *library.get($name).map_err(lacking)?
                };
            }
            Ok(Functions {
                unique_id: function!("ncclGetUniqueId"),
                init: function!("ncclCommInitRank"),
                all_reduce: function!("ncclAllReduce"),
                async_error: function!("ncclCommGetAsyncError"),
                destroy: function!("ncclCommDestroy"),
                abort: function!("ncclCommAbort"),
                text: function!("ncclGetErrorString"),
                version: function!("ncclGetVersion"),
                _library: library,
            })
        }
    }

    fn done(&self, what: &str, status: c_int) -> Result<(), Error> {
        if status == SUCCESS {
            return Ok(());
        }
        // SAFETY: the library gives a text of its own for every number.
        let text = unsafe { (self.text)(status) };
        let text = if text.is_null() {
            format!("error {status}")
        } else {
            // SAFETY: a text that ends.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        };
        Err(Error::Misfit(format!("NCCL, {what}: {text}; NCCL_DEBUG=INFO makes it say more")))
    }
}

/// The version of NCCL that ranks on this machine would add by, as the library writes it: 22803 is 2.28.3.
///
/// # Errors
/// When there is none.
pub(crate) fn version() -> Result<String, Error> {
    let (functions, mut version) = (Functions::load()?, 0);
    // SAFETY: the library writes one number.
    functions.done("its version", unsafe { (functions.version)(&raw mut version) })?;
    Ok(version.to_string())
}

impl Group {
    /// Meets the other ranks, each with a GPU of its own. All of them come here.
    ///
    /// # Errors
    /// When there is no NCCL, a rank has stopped, or two of them have one GPU.
    pub(crate) fn new(stream: &Arc<CudaStream>, ranks: &Arc<dyn Collective>) -> Result<Self, Error> {
        let functions = Functions::load()?;
        let mut name = Name([0; NAME]);
        if ranks.rank() == 0 {
            // SAFETY: the library writes so many bytes.
            functions.done("a name to meet under", unsafe { (functions.unique_id)(&raw mut name) })?;
        }
        // Rank 0's name, as the others have brought nothing; and whoever has no library has not come so far.
        let mut bytes = name.0.map(f64::from);
        ranks.sum(&mut bytes)?;
        #[allow(clippy::cast_possible_truncation, reason = "whole numbers of a byte")]
        let name = Name(bytes.map(|byte| byte as c_char));
        stream.context().bind_to_thread().map_err(|e| error::driver("a rank's GPU", e))?;
        let number = |number: usize| c_int::try_from(number).unwrap_or(c_int::MAX);
        let mut communicator = std::ptr::null_mut();
        // SAFETY: the library writes one pointer.
        let met = unsafe {
            (functions.init)(&raw mut communicator, number(ranks.world()), name, number(ranks.rank()))
        };
        functions.done("ranks meet, each with a GPU of its own", met)?;
        let (stream, ranks) = (stream.clone(), Arc::clone(ranks));
        Ok(Group { functions, communicator, stream, ranks })
    }

    /// Puts the sums over all ranks in the place of so many f32 numbers, once everything launched before is done.
    ///
    /// # Errors
    /// When a rank has stopped.
    pub(crate) fn sum_f32(&self, at: Address, count: usize) -> Result<(), Error> {
        self.sum(at, count, F32)
    }

    /// The same of f64 numbers.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn sum_f64(&self, at: Address, count: usize) -> Result<(), Error> {
        self.sum(at, count, F64)
    }

    fn sum(&self, at: Address, count: usize, of: c_int) -> Result<(), Error> {
        self.stream.context().bind_to_thread().map_err(|e| error::driver("a sum over ranks", e))?;
        let (from, to) = (at as *const c_void, at as *mut c_void);
        // SAFETY: the tape hands in memory of so many numbers, and the stream orders its uses.
        let status = unsafe {
            (self.functions.all_reduce)(
                from,
                to,
                count,
                of,
                SUM,
                self.communicator,
                self.stream.cu_stream().cast(),
            )
        };
        // Whoever has stopped is named by the ranks, not by the library.
        if status != SUCCESS {
            self.ranks.check()?;
        }
        self.functions.done("a sum over ranks", status)
    }

    /// Whether the others are there, as far as is known.
    ///
    /// # Errors
    /// When one has stopped, or a connection is broken.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.ranks.check()?;
        let mut status = SUCCESS;
        // SAFETY: the library writes one number.
        let asked = unsafe { (self.functions.async_error)(self.communicator, &raw mut status) };
        self.functions.done("asked how it is", asked)?;
        if status == IN_PROGRESS { Ok(()) } else { self.functions.done("a sum over ranks", status) }
    }
}

impl Drop for Group {
    /// Sums that are still under way wait for ranks that may be gone: they are broken off.
    fn drop(&mut self) {
        // Whatever thread this is; if it cannot be bound, the stream counts as busy.
        let _ = self.stream.context().bind_to_thread();
        // SAFETY: the stream is the group's own, and nobody uses the communicator any longer.
        unsafe {
            let idle = sys::cuStreamQuery(self.stream.cu_stream()) == sys::CUresult::CUDA_SUCCESS;
            let leave = if idle { self.functions.destroy } else { self.functions.abort };
            let _ = leave(self.communicator);
        }
    }
}
