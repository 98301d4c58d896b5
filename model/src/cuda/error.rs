//! What the driver and its libraries say, as sentences.

use candle_core::cuda_backend::cudarc::cublaslt::result::CublasError;
use candle_core::cuda_backend::cudarc::driver::DriverError;

use crate::Error;

/// A launch that the driver refuses.
pub(super) fn kernel(name: &str, source: DriverError) -> Error {
    Error::Misfit(format!("kernel {name}: {source}"))
}

/// A launch with more blocks than a grid has.
pub(super) fn grid(name: &str, grid: [usize; 3]) -> Error {
    Error::Misfit(format!(
        "kernel {name}: a grid of {grid:?} blocks is beyond what a launch can have: make batches smaller"
    ))
}

/// A product that cuBLASLt refuses.
pub(super) fn product(source: CublasError) -> Error {
    Error::Misfit(format!("cuBLASLt: {source:?}"))
}

/// A plan that was made and is not there.
pub(super) fn no_plan() -> Error {
    Error::Misfit("a product without a plan; report it".to_owned())
}

/// A capture that came to nothing.
pub(super) fn no_graph() -> Error {
    Error::Misfit("a step without launches; report it".to_owned())
}

/// Memory that the device does not have.
pub(super) fn memory(bytes: usize, source: DriverError) -> Error {
    Error::Misfit(format!("the GPU does not give {} MiB of memory: {source}", bytes.div_ceil(1 << 20)))
}

/// A step for which there is no memory: nothing was launched.
pub(super) fn no_room(tokens: usize, error: &Error) -> Error {
    Error::Misfit(format!(
        "a step of {tokens} tokens: {error}; make it smaller by `batch` (on shards `stream.batching.items` or `stream.batching.tokens`) and several of them to a step by `accumulate`, or take `compute.recompute = \"layers\"` or `compute.dtype = \"bf16\"`"
    ))
}

/// A copy or an event that failed.
pub(super) fn driver(what: &str, source: DriverError) -> Error {
    Error::Misfit(format!("{what}: {source}"))
}
