//! Ranks that are processes, joined by TCP: rank 0 adds what the others send, in their order, and sends the sum back. A training is a conversation of frames
//! ([`base::frame`]).

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::ops::AddAssign;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::cancel::CancelToken;
use base::frame::{Head, Kind, coming, wait};
use pulp::bytemuck::{Pod, cast_slice, cast_slice_mut};

use super::{Collective, add, stopped};
use crate::Error;

/// A rank of a training, with its connections: rank 0 has one to each other rank, in their order, another one to rank 0.
#[derive(Debug)]
pub struct Peer {
    rank: usize,
    world: usize,
    training: u32,
    peers: Mutex<Vec<TcpStream>>,
    /// Set when somebody asks to stop.
    cancel: CancelToken,
}

/// A number as it is sent: its bytes in memory, which all machines that engraft runs on order alike.
trait Sent: Pod + AddAssign + Send + Sync {}

impl Sent for f32 {}
impl Sent for f64 {}

impl Peer {
    /// A rank of the training of this number, the same on all ranks and higher than that of any before over the same connections. `peers` are those to ranks
    /// 1 and up, in their order; of another rank than 0 the one to rank 0.
    #[must_use]
    pub fn new(rank: usize, world: usize, training: u32, peers: Vec<TcpStream>) -> Self {
        Peer { rank, world, training, peers: Mutex::new(peers), cancel: CancelToken::NEVER }
    }

    /// The same, which waits no longer once somebody asks to stop.
    #[must_use]
    pub fn until(mut self, cancel: CancelToken) -> Self {
        self.cancel = cancel;
        self
    }

    fn peers(&self) -> MutexGuard<'_, Vec<TcpStream>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add<T: Sent>(&self, numbers: &mut [T]) -> Result<(), Error> {
        let mut peers = self.peers();
        if self.rank > 0 {
            let Some(first) = peers.first_mut() else { return Err(stopped(0, self.world)) };
            self.send(first, numbers).map_err(|error| lost(0, self.world, &error))?;
            let sum: Vec<T> = self.receive(first, 0, numbers.len())?;
            numbers.copy_from_slice(&sum);
            return Ok(());
        }
        for (rank, peer) in (1..).zip(peers.iter_mut()) {
            let brought: Vec<T> = self.receive(peer, rank, numbers.len())?;
            add(numbers, rank, &brought)?;
        }
        for (rank, peer) in (1..).zip(peers.iter_mut()) {
            self.send(peer, numbers).map_err(|error| lost(rank, self.world, &error))?;
        }
        Ok(())
    }

    fn send<T: Sent>(&self, to: &mut TcpStream, numbers: &[T]) -> std::io::Result<()> {
        let bytes: &[u8] = cast_slice(numbers);
        Head { kind: Kind::Numbers, conversation: self.training, bytes: bytes.len() as u64 }.write(to)?;
        to.write_all(bytes)
    }

    fn receive<T: Sent>(&self, from: &mut TcpStream, rank: usize, count: usize) -> Result<Vec<T>, Error> {
        let gone = |error: std::io::Error| lost(rank, self.world, &error);
        let head = loop {
            wait(from, &self.cancel).map_err(gone)?;
            let head = Head::read(from).map_err(gone)?;
            // What was sent in a training before has nobody who waits for it.
            if head.conversation >= self.training {
                break head;
            }
            head.skip(from).map_err(gone)?;
        };
        if head.kind != Kind::Numbers || head.conversation != self.training {
            return Err(stopped(rank, self.world));
        }
        let mut numbers = vec![T::zeroed(); count];
        let bytes: &mut [u8] = cast_slice_mut(&mut numbers);
        if head.bytes != bytes.len() as u64 {
            return Err(Error::Misfit(format!(
                "rank {rank} sends {} bytes to a sum of {count} numbers of {} bytes: the ranks were started with different settings, or by different versions of engraft",
                head.bytes,
                size_of::<T>()
            )));
        }
        from.read_exact(bytes).map_err(gone)?;
        Ok(numbers)
    }
}

/// What to say of a connection that is broken.
fn lost(rank: usize, world: usize, error: &std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => stopped(rank, world),
        _ => Error::Misfit(format!("the connection to rank {rank} of {world} is broken: {error}")),
    }
}

impl Collective for Peer {
    fn rank(&self) -> usize {
        self.rank
    }

    fn world(&self) -> usize {
        self.world
    }

    fn sum(&self, numbers: &mut [f64]) -> Result<(), Error> {
        self.add(numbers)
    }

    fn sum_gradients(&self, numbers: &mut [f32]) -> Result<(), Error> {
        self.add(numbers)
    }

    fn check(&self) -> Result<(), Error> {
        let first = usize::from(self.rank == 0);
        for (rank, peer) in (first..).zip(self.peers().iter()) {
            match coming(peer) {
                Ok(Some(head)) if head.kind == Kind::End && head.conversation == self.training => {
                    return Err(stopped(rank, self.world));
                }
                Ok(_) => {}
                Err(error) => return Err(lost(rank, self.world, &error)),
            }
        }
        Ok(())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        for peer in self.peers().iter_mut() {
            // Whoever waits for a sum of this training waits no longer.
            let end = Head { kind: Kind::End, conversation: self.training, bytes: 0 };
            if end.write(peer).is_err() {
                let _ = peer.shutdown(Shutdown::Both);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use base::frame::{hear, tell};

    use super::*;

    /// Connections of so many ranks: those of rank 0, and those of each other one to it.
    fn connected(world: usize) -> (Vec<TcpStream>, Vec<TcpStream>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        (1..world)
            .map(|_| {
                let out = TcpStream::connect(address).unwrap();
                (listener.accept().unwrap().0, out)
            })
            .unzip()
    }

    #[test]
    fn processes_add_as_threads_do() {
        let numbers = [1.0e8_f32, 3.0, -1.0e8, 7.0e-3];
        let expected = numbers.iter().copied().reduce(|a, b| a + b).unwrap();
        let (first, others) = connected(numbers.len());
        let ranks = std::iter::once(first).chain(others.into_iter().map(|stream| vec![stream]));
        std::thread::scope(|scope| {
            let ranks = ranks.enumerate().map(|(rank, mut streams)| {
                scope.spawn(move || {
                    let peers = |streams: &[TcpStream]| {
                        streams.iter().map(|peer| peer.try_clone().unwrap()).collect()
                    };
                    for training in 1..=3 {
                        for stream in streams.iter_mut().filter(|_| rank == 0) {
                            tell(stream, training, &format!("training {training}")).unwrap();
                        }
                        for stream in streams.iter_mut().filter(|_| rank > 0) {
                            assert_eq!(hear(stream).unwrap(), format!("training {training}"));
                        }
                        let peer = Peer::new(rank, numbers.len(), training, peers(&streams));
                        let mut gradients = vec![numbers[rank]; (1 << 18) + 5];
                        peer.sum_gradients(&mut gradients).unwrap();
                        assert!(gradients.iter().all(|number| number.to_bits() == expected.to_bits()));
                        let mut counts = [rank as f64, 1.0];
                        peer.sum(&mut counts).unwrap();
                        assert_eq!(counts, [6.0, 4.0]);
                    }
                    drop(streams);
                })
            });
            ranks.collect::<Vec<_>>().into_iter().for_each(|rank| rank.join().unwrap());
        });
    }

    #[test]
    fn what_a_training_leaves_behind_is_not_the_next_ones() {
        let (mut first, mut others) = connected(2);
        let peer = |rank, training, stream: &TcpStream| {
            Peer::new(rank, 2, training, vec![stream.try_clone().unwrap()])
        };
        // Rank 1 sends to a sum that rank 0 never makes.
        std::thread::scope(|scope| {
            let other = peer(1, 1, &others[0]);
            let sent = scope.spawn(move || other.sum_gradients(&mut vec![1.0; 1 << 19]));
            drop(peer(0, 1, &first[0]));
            // What is sent is read with the next training, so that rank 1 can hear that there is no sum.
            let next = peer(0, 2, &first[0]);
            let mut numbers = [1.0];
            let read = scope.spawn(move || next.sum(&mut numbers).map(|()| numbers));
            let said = sent.join().unwrap().unwrap_err().to_string();
            assert!(said.contains("rank 0 of 2 has stopped"), "{said}");
            let mut other = [2.0];
            peer(1, 2, &others[0]).sum(&mut other).unwrap();
            assert_eq!((read.join().unwrap().unwrap(), other), ([3.0], [3.0]));
        });
        tell(&mut first[0], 3, "what comes next").unwrap();
        assert_eq!(hear(&mut others[0]).unwrap(), "what comes next");
    }

    #[test]
    fn whoever_has_gone_is_named() {
        let (first, others) = connected(2);
        let peer = Peer::new(0, 2, 1, first);
        peer.check().unwrap();
        drop(others);
        assert!(peer.check().is_err());
        let gone = peer.sum(&mut [1.0]).unwrap_err().to_string();
        assert!(gone.contains("rank 1 of 2 has stopped"), "{gone}");
        let (first, others) = connected(2);
        std::thread::scope(|scope| {
            let first =
                scope.spawn(move || Peer::new(0, 2, 1, first).sum(&mut [1.0; 3]).unwrap_err().to_string());
            let other = Peer::new(1, 2, 1, others).sum_gradients(&mut [1.0]).unwrap_err().to_string();
            let said = first.join().unwrap();
            assert!(said.contains("rank 1 sends 4 bytes to a sum of 3 numbers of 8 bytes"), "{said}");
            assert!(other.contains("rank 0 of 2 has stopped"), "{other}");
        });
    }
}
