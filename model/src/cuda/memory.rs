//! Memory of the device that lasts, and memory of the host that the device copies from and to by itself.

use std::sync::Arc;

use candle_core::cuda_backend::cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, DevicePtr, DeviceRepr, PinnedHostSlice, result,
};

use super::args::Address;
use super::error;
use crate::Error;

/// Bytes at which slices of an arena begin.
pub(crate) const ALIGNED: usize = 256;

/// One allocation of the device.
#[derive(Debug)]
pub(crate) struct Block {
    slice: CudaSlice<u8>,
    address: Address,
    stream: Arc<CudaStream>,
}

impl Block {
    /// So many bytes, whatever they are.
    ///
    /// # Errors
    /// When the device does not have them.
    pub(crate) fn new(stream: &Arc<CudaStream>, bytes: usize) -> Result<Self, Error> {
        // SAFETY: nothing reads it before it is written: kernels are tested on memory that is NaN.
        let slice = unsafe { stream.alloc::<u8>(bytes.max(1)) }.map_err(|e| error::memory(bytes, e))?;
        let address = {
            let (address, _reads) = slice.device_ptr(stream);
            address
        };
        Ok(Block { slice, address, stream: stream.clone() })
    }

    /// So many bytes, all 0.
    ///
    /// # Errors
    /// As [`Block::new`].
    pub(crate) fn zeros(stream: &Arc<CudaStream>, bytes: usize) -> Result<Self, Error> {
        let mut block = Block::new(stream, bytes)?;
        stream.memset_zeros(&mut block.slice).map_err(|e| error::driver("clearing memory", e))?;
        Ok(block)
    }

    /// A copy of these numbers.
    ///
    /// # Errors
    /// As [`Block::new`].
    pub(crate) fn of<T: DeviceRepr>(stream: &Arc<CudaStream>, numbers: &[T]) -> Result<Self, Error> {
        let block = Block::new(stream, size_of_val(numbers))?;
        block.put(0, numbers)?;
        Ok(block)
    }

    /// Where it begins.
    pub(crate) fn address(&self) -> Address {
        self.address
    }

    /// How many bytes it has.
    pub(crate) fn bytes(&self) -> usize {
        self.slice.len()
    }

    /// Copies numbers over what stands `at` so many bytes from its beginning, and waits until that is done.
    ///
    /// # Errors
    /// When they do not fit, or the copy fails.
    pub(crate) fn put<T: DeviceRepr>(&self, at: usize, numbers: &[T]) -> Result<(), Error> {
        self.holds(at, size_of_val(numbers))?;
        let failed = |e| error::driver("a copy to the GPU", e);
        // Whichever thread asks.
        self.stream.context().bind_to_thread().map_err(failed)?;
        // SAFETY: so many bytes are there; the host waits, so the numbers live as long as they are read.
        unsafe { result::memcpy_htod_async(self.address + at as u64, numbers, self.stream.cu_stream()) }
            .map_err(failed)?;
        self.stream.synchronize().map_err(failed)
    }

    /// The numbers from so many bytes on, once everything before is done.
    ///
    /// # Errors
    /// As [`Block::put`].
    pub(crate) fn get<T: DeviceRepr + Clone>(&self, at: usize, into: &mut [T]) -> Result<(), Error> {
        self.holds(at, size_of_val(into))?;
        let failed = |e| error::driver("a copy from the GPU", e);
        self.stream.context().bind_to_thread().map_err(failed)?;
        // SAFETY: as in `put`.
        unsafe { result::memcpy_dtoh_async(into, self.address + at as u64, self.stream.cu_stream()) }
            .map_err(failed)?;
        self.stream.synchronize().map_err(failed)
    }

    fn holds(&self, at: usize, bytes: usize) -> Result<(), Error> {
        if at.checked_add(bytes).is_some_and(|end| end <= self.bytes()) {
            return Ok(());
        }
        Err(Error::Misfit(format!("a copy of {bytes} bytes at {at} of {}; report it", self.bytes())))
    }
}

/// Slices of an arena, taken one behind the other. Taken from nothing, they say how much is needed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bump {
    base: Address,
    taken: usize,
}

impl Bump {
    /// Slices from an address on; `None` only measures.
    pub(crate) fn new(base: Option<Address>) -> Self {
        Bump { base: base.unwrap_or(0), taken: 0 }
    }

    /// The next so many bytes.
    pub(crate) fn take(&mut self, bytes: usize) -> Address {
        let at = self.base + self.taken as u64;
        self.taken += bytes.next_multiple_of(ALIGNED);
        at
    }

    /// Bytes taken so far.
    pub(crate) fn taken(&self) -> usize {
        self.taken
    }
}

/// Memory of the device that grows to what the largest step needs and stays.
#[derive(Debug)]
pub(crate) struct Arena {
    block: Option<Block>,
    /// Bytes that were last asked for.
    asked: usize,
}

impl Arena {
    /// Nothing so far.
    pub(crate) fn new() -> Self {
        Arena { block: None, asked: 0 }
    }

    /// Where at least so many bytes begin. What a larger step needs is allocated with an eighth to spare, for the next one that is a little larger.
    ///
    /// # Errors
    /// When the device does not have them.
    pub(crate) fn fit(&mut self, stream: &Arc<CudaStream>, bytes: usize) -> Result<Address, Error> {
        self.asked = bytes;
        match &self.block {
            Some(block) if block.bytes() >= bytes => Ok(block.address()),
            _ => {
                // The old memory first: both together may be more than there is.
                self.block = None;
                let block = Block::new(stream, bytes + bytes / 8)?;
                Ok(self.block.insert(block).address())
            }
        }
    }
}

impl Arena {
    /// Copies numbers to its beginning, and waits until that is done.
    ///
    /// # Errors
    /// When there is no room made for them ([`Arena::fit`]), or the copy fails.
    pub(crate) fn put<T: DeviceRepr>(&self, numbers: &[T]) -> Result<(), Error> {
        self.block()?.put(0, numbers)
    }

    /// Copies the numbers at an address within it, once everything before is done.
    ///
    /// # Errors
    /// When they are not there, or the copy fails.
    pub(crate) fn get<T: DeviceRepr + Clone>(&self, at: Address, into: &mut [T]) -> Result<(), Error> {
        let block = self.block()?;
        block.get(at.saturating_sub(block.address()) as usize, into)
    }

    /// Bytes that were last asked for.
    pub(crate) fn asked(&self) -> usize {
        self.asked
    }

    fn block(&self) -> Result<&Block, Error> {
        self.block.as_ref().ok_or_else(|| Error::Misfit("an arena without memory; report it".to_owned()))
    }
}

/// Memory of the host that stays where it is, so that the device can copy without the host.
#[derive(Debug)]
pub(crate) struct Pinned {
    slice: PinnedHostSlice<u8>,
    first: *mut u8,
}

// SAFETY: the memory is this value's alone.
unsafe impl Send for Pinned {}

impl Pinned {
    /// So many bytes.
    ///
    /// # Errors
    /// When the system does not pin them.
    pub(crate) fn new(context: &Arc<CudaContext>, bytes: usize) -> Result<Self, Error> {
        let failed = |e| error::driver("memory that the GPU copies from", e);
        // SAFETY: it is filled below. Without flags it is cached, as what comes back is read from it.
        let mut slice = unsafe { context.alloc_pinned_with_flags::<u8>(bytes.max(1), 0) }.map_err(failed)?;
        let first = slice.as_mut_ptr().map_err(failed)?;
        // SAFETY: so many bytes were allocated.
        unsafe { first.write_bytes(0, slice.len()) };
        Ok(Pinned { slice, first })
    }

    /// How many bytes it has.
    pub(crate) fn bytes(&self) -> usize {
        self.slice.len()
    }

    /// Its bytes. Nobody may have asked the device to copy from or to it without having waited since.
    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: allocated and filled by `new`; whoever began a copy waits for its event first (`flight`).
        unsafe { std::slice::from_raw_parts(self.first, self.slice.len()) }
    }

    /// As [`Pinned::as_slice`].
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.first, self.slice.len()) }
    }
}
