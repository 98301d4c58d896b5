//! Memory that one step of a training hands to the next.
//!
//! A step takes and frees the same large vectors as the one before it; the system would clear their pages every time anew.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle_core::{CpuStorage, Device, InplaceOp1, Layout, Result, Shape, Tensor};

/// Vectors that nobody uses at the moment. Clones share them.
#[derive(Debug, Clone)]
pub struct Buffers(Arc<Mutex<Shelf>>);

#[derive(Debug, Default)]
struct Shelf {
    /// By capacity. Lengths that change leave few behind: what is a little too small is given up when a larger one is made.
    free: BTreeMap<usize, Vec<Vec<f32>>>,
    /// Where the memory of tensors begins that was taken from here.
    lent: BTreeSet<usize>,
}

/// Numbers in such a vector; dropped, they go back.
#[derive(Debug)]
pub struct Buffer {
    numbers: Vec<f32>,
    home: Buffers,
}

impl Buffers {
    /// No vectors at first.
    #[must_use]
    pub(crate) fn new() -> Self {
        Buffers(Arc::default())
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many numbers, each of them whatever it was last: to be overwritten.
    pub(crate) fn any(&self, count: usize) -> Buffer {
        let found = self.shelf().take(count);
        let mut numbers = found.unwrap_or_default();
        if numbers.capacity() < count {
            numbers = vec![0.0; count];
        }
        numbers.resize(count, 0.0);
        Buffer { numbers, home: self.clone() }
    }

    /// Takes back the memory of a tensor that [`Buffer::into_tensor`] made and nobody looks at any more; leaves any other tensor as it is.
    ///
    /// # Errors
    /// When the tensor library fails.
    pub(crate) fn give_back(&self, tensor: &Tensor) -> Result<()> {
        if tensor.device().is_cpu() { tensor.inplace_op1(&GiveBack(self)) } else { Ok(()) }
    }
}

impl Shelf {
    /// The smallest vector with room for so many numbers, unless it is more than twice as large. Where there is none, one that is a little
    /// too small is given up for the one that will be made: lengths that grow would else leave a set behind each time.
    fn take(&mut self, count: usize) -> Option<Vec<f32>> {
        let fits = self.free.range(count..=count.saturating_mul(2)).next().map(|(&capacity, _)| capacity);
        let outgrown = self.free.range(count / 2..count).next_back().map(|(&capacity, _)| capacity);
        let capacity = fits.or(outgrown)?;
        let same = self.free.get_mut(&capacity)?;
        let found = same.pop();
        if same.is_empty() {
            self.free.remove(&capacity);
        }
        found.filter(|_| fits.is_some())
    }

    fn put(&mut self, numbers: Vec<f32>) {
        self.free.entry(numbers.capacity()).or_default().push(numbers);
    }
}

impl Buffer {
    /// Makes it so many numbers long, each of them whatever it was last.
    pub(crate) fn resize(&mut self, count: usize) {
        if self.numbers.capacity() < count {
            *self = self.home.any(count);
        }
        self.numbers.resize(count, 0.0);
    }

    /// The same numbers as a tensor; [`Buffers::give_back`] takes the memory back.
    pub(crate) fn into_tensor(mut self, shape: &Shape) -> Result<Tensor> {
        self.home.shelf().lent.insert(self.numbers.as_ptr().addr());
        Tensor::from_vec(std::mem::take(&mut self.numbers), shape, &Device::Cpu)
    }
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.numbers
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.numbers
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.numbers.capacity() > 0 {
            self.home.shelf().put(std::mem::take(&mut self.numbers));
        }
    }
}

struct GiveBack<'a>(&'a Buffers);

impl InplaceOp1 for GiveBack<'_> {
    fn name(&self) -> &'static str {
        "give-back"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, _: &Layout) -> Result<()> {
        if let CpuStorage::F32(numbers) = storage {
            let mut shelf = self.0.shelf();
            if shelf.lent.remove(&numbers.as_ptr().addr()) {
                shelf.put(std::mem::take(numbers));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_dropped_or_given_back_is_used_again() {
        let buffers = Buffers::new();
        let first = buffers.any(100);
        let place = first.as_ptr();
        drop(first);
        let second = buffers.any(60);
        assert_eq!((second.len(), second.as_ptr()), (60, place));
        let tensor = second.into_tensor(&Shape::from((6, 10))).unwrap();
        assert_eq!(tensor.dims(), [6, 10]);
        buffers.give_back(&tensor).unwrap();
        assert_ne!(buffers.any(49).as_ptr(), place, "far too large");
        assert_eq!(buffers.any(99).as_ptr(), place);
    }

    #[test]
    fn lengths_that_grow_leave_nothing_behind() {
        let buffers = Buffers::new();
        for count in 100..400 {
            drop((buffers.any(count), buffers.any(3 * count)));
        }
        let left: usize = buffers.shelf().free.values().map(Vec::len).sum();
        assert!(left <= 4, "{left} vectors");
    }

    #[test]
    fn a_tensor_from_elsewhere_keeps_its_numbers() {
        let buffers = Buffers::new();
        let tensor = Tensor::new(&[1.0_f32, 2.0], &Device::Cpu).unwrap();
        buffers.give_back(&tensor).unwrap();
        assert_eq!(tensor.to_vec1::<f32>().unwrap(), [1.0, 2.0]);
    }
}
