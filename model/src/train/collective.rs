//! What the ranks of a data-parallel training tell one another: sums over all of them. Each rank has a trainer of its own and its share of every batch; what
//! they add up is the same on all of them, so that all make the same update.

pub mod peers;

use std::fmt::Debug;
use std::ops::AddAssign;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rayon::prelude::{IndexedParallelIterator, ParallelIterator, ParallelSlice, ParallelSliceMut};

use crate::Error;

/// Numbers that one thread adds at a time.
const BLOCK: usize = 1 << 16;

/// One rank among those that train a model together.
///
/// Every rank calls the same functions in the same order with as many numbers. A rank that stops says so when it is dropped: the others then have an error
/// instead of waiting for it.
pub trait Collective: Debug + Send + Sync {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;

    /// How many ranks there are.
    fn world(&self) -> usize;

    /// Puts the sum over all ranks, added in their order, in the place of each number.
    ///
    /// # Errors
    /// When a rank has stopped, or gives another count of numbers.
    fn sum(&self, numbers: &mut [f64]) -> Result<(), Error>;

    /// As [`Collective::sum`], of gradients.
    ///
    /// # Errors
    /// As there.
    fn sum_gradients(&self, numbers: &mut [f32]) -> Result<(), Error>;

    /// Whether a rank is known to have stopped, without waiting for any.
    ///
    /// # Errors
    /// When one has.
    fn check(&self) -> Result<(), Error>;
}

/// The only rank of a training.
#[derive(Debug, Clone, Copy)]
pub struct Solo;

impl Collective for Solo {
    fn rank(&self) -> usize {
        0
    }

    fn world(&self) -> usize {
        1
    }

    fn sum(&self, _: &mut [f64]) -> Result<(), Error> {
        Ok(())
    }

    fn sum_gradients(&self, _: &mut [f32]) -> Result<(), Error> {
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// A rank that is a thread of this process.
#[derive(Debug)]
pub struct Thread {
    rank: usize,
    all: Arc<All>,
}

/// What the threads of a training share.
#[derive(Debug)]
struct All {
    world: usize,
    numbers: Meeting<f64>,
    gradients: Meeting<f32>,
}

/// Where the threads meet to add numbers.
#[derive(Debug)]
struct Meeting<T> {
    round: Mutex<Round<T>>,
    changed: Condvar,
}

/// One sum. It begins when all have taken the one before.
#[derive(Debug)]
struct Round<T> {
    /// What each rank brings.
    brought: Vec<Option<Vec<T>>>,
    /// The sum, until all ranks have taken it.
    sum: Option<Arc<Vec<T>>>,
    taken: usize,
    /// The first rank that has stopped.
    stopped: Option<usize>,
}

impl<T: Copy + AddAssign + Send + Sync> Meeting<T> {
    fn new(world: usize) -> Self {
        let brought = (0..world).map(|_| None).collect();
        let round = Round { brought, sum: None, taken: 0, stopped: None };
        Meeting { round: Mutex::new(round), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Round<T>> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something holds, or a rank has stopped.
    fn wait<'a>(
        &self,
        round: MutexGuard<'a, Round<T>>,
        holds: impl Fn(&Round<T>) -> bool,
    ) -> Result<MutexGuard<'a, Round<T>>, Error> {
        let round = self
            .changed
            .wait_while(round, |round| !holds(round) && round.stopped.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        match round.stopped {
            // What is there already can still be taken.
            Some(rank) if !holds(&round) => Err(stopped(rank, round.brought.len())),
            _ => Ok(round),
        }
    }

    fn sum(&self, rank: usize, numbers: &mut [T]) -> Result<(), Error> {
        let mut round = self.wait(self.lock(), |round| round.sum.is_none())?;
        round.brought[rank] = Some(numbers.to_vec());
        if round.brought.iter().all(Option::is_some) {
            let mut brought = round.brought.iter_mut().filter_map(Option::take);
            let mut sum = brought.next().unwrap_or_default();
            for (rank, numbers) in (1..).zip(brought) {
                add(&mut sum, rank, &numbers)?;
            }
            round.sum = Some(Arc::new(sum));
            round.taken = 0;
            self.changed.notify_all();
        }
        let mut round = self.wait(round, |round| round.sum.is_some())?;
        if let Some(sum) = round.sum.clone() {
            numbers.copy_from_slice(&sum);
        }
        round.taken += 1;
        if round.taken == round.brought.len() {
            round.sum = None;
            self.changed.notify_all();
        }
        Ok(())
    }

    fn stop(&self, rank: usize) {
        self.lock().stopped.get_or_insert(rank);
        self.changed.notify_all();
    }
}

/// Adds what a rank has brought to the sum of those before it.
fn add<T: Copy + AddAssign + Send + Sync>(sum: &mut [T], rank: usize, numbers: &[T]) -> Result<(), Error> {
    if numbers.len() != sum.len() {
        return Err(Error::Misfit(format!(
            "rank {rank} brings {} numbers to a sum, and rank 0 {}: they were started with different settings",
            numbers.len(),
            sum.len()
        )));
    }
    let blocks = sum.par_chunks_mut(BLOCK).zip(numbers.par_chunks(BLOCK));
    blocks.for_each(|(sum, more)| sum.iter_mut().zip(more).for_each(|(sum, one)| *sum += *one));
    Ok(())
}

fn stopped(rank: usize, world: usize) -> Error {
    Error::Misfit(format!("rank {rank} of {world} has stopped: see its own output for the reason"))
}

impl Thread {
    /// As many ranks as asked for, each to be given to a thread of its own.
    #[must_use]
    pub fn ranks(world: usize) -> Vec<Thread> {
        let all = Arc::new(All { world, numbers: Meeting::new(world), gradients: Meeting::new(world) });
        (0..world).map(|rank| Thread { rank, all: Arc::clone(&all) }).collect()
    }
}

impl Collective for Thread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn world(&self) -> usize {
        self.all.world
    }

    fn sum(&self, numbers: &mut [f64]) -> Result<(), Error> {
        self.all.numbers.sum(self.rank, numbers)
    }

    fn sum_gradients(&self, numbers: &mut [f32]) -> Result<(), Error> {
        self.all.gradients.sum(self.rank, numbers)
    }

    fn check(&self) -> Result<(), Error> {
        self.all.numbers.lock().stopped.map_or(Ok(()), |rank| Err(stopped(rank, self.all.world)))
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.all.numbers.stop(self.rank);
        self.all.gradients.stop(self.rank);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each<T: Send>(world: usize, of: impl Fn(Thread) -> T + Sync) -> Vec<T> {
        std::thread::scope(|scope| {
            let threads = Thread::ranks(world).into_iter().map(|rank| scope.spawn(|| of(rank)));
            threads.collect::<Vec<_>>().into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn sums_are_added_in_the_order_of_the_ranks() {
        // Of which other orders give other bits.
        let numbers = [1.0e8_f32, 3.0, -1.0e8, 7.0e-3, 2.5];
        let expected = numbers.iter().copied().reduce(|a, b| a + b).unwrap();
        for world in 1..=numbers.len() {
            let expected = if world == numbers.len() {
                expected
            } else {
                numbers[..world].iter().copied().reduce(|a, b| a + b).unwrap()
            };
            for _ in 0..50 {
                let found = each(world, |rank| {
                    let mut own = vec![numbers[rank.rank()]; 3 * BLOCK + 1];
                    let mut count = [1.0, rank.rank() as f64];
                    for _ in 0..3 {
                        rank.sum(&mut count).unwrap();
                    }
                    rank.sum_gradients(&mut own).unwrap();
                    (own, count)
                });
                for (own, count) in found {
                    assert!(own.iter().all(|number| number.to_bits() == expected.to_bits()));
                    let ranks = world as f64;
                    assert_eq!(count, [ranks.powi(3), (0..world).sum::<usize>() as f64 * ranks.powi(2)]);
                }
            }
        }
    }

    #[test]
    fn a_rank_that_stops_keeps_nobody_waiting() {
        let found = each(3, |rank| {
            let mut numbers = [1.0];
            rank.sum(&mut numbers).unwrap();
            match rank.rank() {
                1 => Ok(()),
                _ => rank.sum(&mut numbers).inspect_err(|_| assert!(rank.check().is_err())),
            }
        });
        for rank in [0, 2] {
            let said = found[rank].as_ref().unwrap_err().to_string();
            assert!(said.contains("rank 1 of 3 has stopped"), "{said}");
        }
    }

    #[test]
    fn ranks_of_other_settings_are_found() {
        let found = each(2, |rank| rank.sum_gradients(&mut vec![1.0; 4 + rank.rank()]));
        assert!(
            found
                .iter()
                .any(|found| found.as_ref().is_err_and(|said| said.to_string().contains("rank 1 brings 5")))
        );
    }
}
