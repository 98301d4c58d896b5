//! Steps that the device has not finished: what went up for each, and what comes back of it.

use std::collections::VecDeque;
use std::sync::Arc;

use candle_core::cuda_backend::cudarc::driver::{CudaEvent, CudaStream, result};

use super::args::Address;
use super::error;
use super::feed::{Base, Feed};
use super::memory::{Arena, Block, Pinned};
use crate::Error;

/// Steps that the host may be ahead.
const DEPTH: usize = 4;

/// Whether to wait for a step that is not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    Yes,
    No,
}

/// One place for a step in flight.
#[derive(Debug)]
struct Place {
    up: Option<Pinned>,
    /// Where its numbers come to.
    down: Pinned,
    done: CudaEvent,
}

/// Steps in flight, oldest first.
#[derive(Debug)]
pub(crate) struct Flights<T> {
    places: Vec<Place>,
    /// The place of each, with what the host keeps of it.
    under_way: VecDeque<(usize, T)>,
    next: usize,
    input: Arena,
    /// f64 numbers on the device, those of the step that runs: they are copied before the next one begins.
    numbers: Block,
    stream: Arc<CudaStream>,
}

/// A step about to begin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begun {
    place: usize,
    /// Where its feed stands on the device.
    pub(crate) base: Base,
    /// Where it leaves its numbers.
    pub(crate) numbers: Address,
}

impl<T> Flights<T> {
    /// None so far; each will leave so many f64 numbers.
    ///
    /// # Errors
    /// When memory is lacking.
    pub(crate) fn new(stream: &Arc<CudaStream>, numbers: usize) -> Result<Self, Error> {
        let context = stream.context();
        let place = || {
            Ok(Place {
                up: None,
                down: Pinned::new(context, 8 * numbers)?,
                done: context.new_event(None).map_err(|e| error::driver("an event", e))?,
            })
        };
        let places = (0..DEPTH).map(|_| place()).collect::<Result<_, Error>>()?;
        Ok(Flights {
            places,
            under_way: VecDeque::new(),
            next: 0,
            input: Arena::new(),
            numbers: Block::zeros(stream, 8 * numbers)?,
            stream: stream.clone(),
        })
    }

    /// Whether another step has to wait for the oldest.
    pub(crate) fn is_full(&self) -> bool {
        self.under_way.len() == DEPTH
    }

    /// Sends a step's feed up, in one copy. There is a place for it: see [`Flights::is_full`].
    ///
    /// # Errors
    /// When memory is lacking or the copy fails.
    pub(crate) fn begin(&mut self, feed: &Feed) -> Result<Begun, Error> {
        let (stream, bytes) = (self.stream.clone(), feed.bytes());
        stream.context().bind_to_thread().map_err(|e| error::driver("a step on the GPU", e))?;
        self.make_room(bytes.len())?;
        let room = self.places.get_mut(self.next).filter(|_| self.under_way.len() < DEPTH);
        let Some(up) = room.and_then(|place| place.up.as_mut()) else {
            return Err(Error::Misfit("more steps under way than there are places; report it".to_owned()));
        };
        up.as_mut_slice()[..bytes.len()].copy_from_slice(bytes);
        let address = self.input.fit(&stream, bytes.len())?;
        // SAFETY: the device's memory is large enough; the host's stays until `done` says that it was read.
        unsafe { result::memcpy_htod_async(address, &up.as_slice()[..bytes.len()], stream.cu_stream()) }
            .map_err(|e| error::driver("a copy to the GPU", e))?;
        Ok(Begun { place: self.next, base: Base(address), numbers: self.numbers.address() })
    }

    /// Gives each place that no step uses memory for so much, if the next one lacks it: all at once, so that the steps behind it allocate nothing.
    fn make_room(&mut self, bytes: usize) -> Result<(), Error> {
        let lacks = |place: &Place| place.up.as_ref().is_none_or(|up| up.bytes() < bytes);
        if !self.places.get(self.next).is_some_and(lacks) {
            return Ok(());
        }
        for (at, place) in self.places.iter_mut().enumerate() {
            if lacks(place) && !self.under_way.iter().any(|(used, _)| *used == at) {
                place.up = Some(Pinned::new(self.stream.context(), bytes + bytes / 4)?);
            }
        }
        Ok(())
    }

    /// A step is launched: what it leaves comes down behind it. `of` is what the host keeps of it.
    ///
    /// # Errors
    /// When the copy fails.
    pub(crate) fn launched(&mut self, begun: Begun, of: T) -> Result<(), Error> {
        let failed = |e| error::driver("a copy from the GPU", e);
        let place = &mut self.places[begun.place];
        let (from, stream) = (self.numbers.address(), &self.stream);
        // SAFETY: both have so many bytes, and the host looks at its own only behind `done`.
        unsafe { result::memcpy_dtoh_async(place.down.as_mut_slice(), from, stream.cu_stream()) }
            .map_err(failed)?;
        place.done.record(stream).map_err(failed)?;
        self.under_way.push_back((begun.place, of));
        self.next = (self.next + 1) % DEPTH;
        Ok(())
    }

    /// Whether the oldest step is done, or there is none.
    ///
    /// # Errors
    /// When it has failed on the device.
    pub(crate) fn is_done(&self) -> Result<bool, Error> {
        let failed = |e| error::driver("a step on the GPU", e);
        let Some((place, _)) = self.under_way.front() else { return Ok(true) };
        self.stream.context().bind_to_thread().map_err(failed)?;
        self.places[*place].done.try_is_complete().map_err(failed)
    }

    /// The oldest step with the numbers that it left, if it is done or waited for. None where none is under way, or it is not done.
    ///
    /// # Errors
    /// When a step has failed on the device.
    pub(crate) fn landed(&mut self, waits: Waits) -> Result<Option<(T, Vec<f64>)>, Error> {
        let failed = |e| error::driver("a step on the GPU", e);
        let Some((place, _)) = self.under_way.front() else { return Ok(None) };
        self.stream.context().bind_to_thread().map_err(failed)?;
        let place = &self.places[*place];
        if !place.done.try_is_complete().map_err(failed)? {
            if waits == Waits::No {
                return Ok(None);
            }
            place.done.synchronize().map_err(failed)?;
        }
        let each = place.down.as_slice().chunks_exact(8);
        let numbers = each.filter_map(|bytes| bytes.try_into().ok().map(f64::from_ne_bytes)).collect();
        Ok(self.under_way.pop_front().map(|(_, of)| (of, numbers)))
    }
}

impl<T> Drop for Flights<T> {
    /// The device may still be copying to and from the host's memory, which goes with this.
    fn drop(&mut self) {
        let _ended = self.stream.synchronize();
    }
}
