//! A corpus handed to threads that split it into words and spool those. Knows no pair.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::{mem, thread};

use super::pass::{self, Counts};
use super::spool::Spool;
use super::{Config, Error, Room, Within};
use crate::corpus::lexicon::Lexicon;
use crate::corpus::sentence;
use crate::corpus::word::Words;

/// Text that a thread takes at a time.
const BATCH: usize = 1 << 18;

/// Documents, one behind the other.
#[derive(Debug, Default)]
struct Batch {
    text: String,
    ends: Vec<usize>,
}

/// Takes documents.
#[derive(Debug)]
pub struct Feed<'t> {
    batch: Batch,
    sender: SyncSender<Batch>,
    failed: &'t AtomicBool,
    documents: u64,
}

impl Feed<'_> {
    /// Counts a document.
    ///
    /// # Errors
    /// When a thread has failed; [`count`] then returns its error.
    pub fn document(&mut self, text: &str) -> Result<(), Error> {
        self.documents += 1;
        self.batch.text.push_str(text);
        self.batch.ends.push(self.batch.text.len());
        if self.batch.text.len() >= BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        let batch = mem::take(&mut self.batch);
        if self.failed.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        self.sender.send(batch).map_err(|_| Error::Stopped)
    }
}

/// Counts the documents that `documents` hands over.
///
/// # Errors
/// When `documents` fails, the words alone do not fit into memory, a count is beyond 64 bits, or the disk refuses.
pub fn count<E: From<Error>>(
    config: &Config,
    room: &Room,
    documents: impl FnOnce(&mut Feed<'_>) -> Result<(), E>,
) -> Result<Counts, E> {
    config.check()?;
    room.check()?;
    let (failed, used) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (sender, receiver) = sync_channel(room.threads * 2);
    let receiver = Arc::new(Mutex::new(receiver));
    let (spooled, fed, read) = thread::scope(|scope| {
        let workers: Vec<_> = (0..room.threads)
            .map(|_| {
                let (receiver, failed, used) = (Arc::clone(&receiver), &failed, &used);
                scope.spawn(move || {
                    let worked = Spooled::new(config, &room.folder)
                        .and_then(|worker| worker.run(&receiver, (room, used)));
                    failed.fetch_or(worked.is_err(), Ordering::Relaxed);
                    worked
                })
            })
            .collect();
        // Threads that are gone must not leave a channel that nobody empties.
        drop(receiver);
        let mut feed = Feed { batch: Batch::default(), sender, failed: &failed, documents: 0 };
        let fed = documents(&mut feed).and_then(|()| feed.flush().map_err(E::from));
        let read = feed.documents;
        drop(feed);
        let joined = workers.into_iter().map(|worker| match worker.join() {
            Ok(worked) => worked,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        (joined.collect::<Result<Vec<Spooled>, Error>>(), fed, read)
    });
    let spooled = spooled?;
    fed?;
    Ok(pass::pairs(config, room, spooled, read)?)
}

/// What one thread has made of its documents.
#[derive(Debug)]
pub(super) struct Spooled {
    within: Within,
    words: Words,
    pub(super) lexicon: Lexicon,
    pub(super) spool: Spool,
    pub(super) segments: u64,
    /// The numbers of the words of a segment.
    numbers: Vec<u32>,
}

impl Spooled {
    fn new(config: &Config, folder: &Path) -> Result<Self, Error> {
        Ok(Self {
            within: config.within,
            words: Words::new(config.case),
            lexicon: Lexicon::default(),
            spool: Spool::new(folder).map_err(Error::temporary(folder))?,
            segments: 0,
            numbers: Vec::new(),
        })
    }

    fn run(
        mut self,
        receiver: &Mutex<Receiver<Batch>>,
        (room, used): (&Room, &AtomicUsize),
    ) -> Result<Self, Error> {
        let (mut held, most) = (0, room.memory / 4);
        loop {
            let next = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(batch) = next else { return Ok(self) };
            room.stop.check()?;
            let mut start = 0;
            for end in batch.ends {
                self.document(&batch.text[start..end])?;
                start = end;
            }
            let bytes = self.lexicon.bytes();
            let all = used.fetch_add(bytes - held, Ordering::Relaxed) + bytes - held;
            held = bytes;
            if all > most {
                return Err(Error::Words { words: self.lexicon.len(), bytes: all, memory: most * 4 });
            }
        }
    }

    fn document(&mut self, text: &str) -> Result<(), Error> {
        if self.within == Within::Document {
            return self.segment(text);
        }
        let mut start = 0;
        for end in sentence::starts(text).into_iter().chain([text.len()]) {
            self.segment(&text[start..end])?;
            start = end;
        }
        Ok(())
    }

    fn segment(&mut self, text: &str) -> Result<(), Error> {
        self.words.split(text);
        if self.words.is_empty() {
            return Ok(());
        }
        let lexicon = &mut self.lexicon;
        self.numbers.clear();
        self.numbers.extend(self.words.iter().map(|word| lexicon.add(word.letters, 1)));
        self.segments += 1;
        self.spool.push(&self.numbers).map_err(|source| Error::Io {
            path: "the spool".into(),
            done: "cannot be written",
            source,
        })
    }
}
