//! A corpus handed to threads that split it into words and spool those.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::{io, mem, thread};

use super::corpus::Corpus;
use super::part::Share;
use super::pass::{self, Counts, Of};
use super::spool::Spool;
use super::{Config, Error, Room, Within};
use crate::lexicon::Lexicon;
use crate::word::Words;
use crate::{Document, sentence};

/// Text that a thread takes at a time.
const BATCH: usize = 1 << 18;

/// Documents, one behind the other.
#[derive(Debug, Default)]
struct Batch {
    text: String,
    /// Where sentences begin, of documents whose files say so.
    sentences: Vec<usize>,
    ends: Vec<End>,
}

/// Where a document ends: its text, and its own sentences.
#[derive(Debug)]
struct End {
    text: usize,
    sentences: usize,
}

/// Takes documents.
#[derive(Debug)]
pub struct Feed<'t> {
    batch: Batch,
    sender: SyncSender<Batch>,
    failed: &'t AtomicBool,
    share: Share,
    /// Documents of the corpus so far, those of other shards included.
    met: u64,
    /// Documents that are counted.
    documents: u64,
    /// What tells the corpus from others: all of its documents in order, those of other shards included.
    corpus: Corpus,
}

impl Feed<'_> {
    /// Counts a document of the corpus, if it is the shard's.
    ///
    /// # Errors
    /// When a thread has failed; [`count`] then returns its error.
    pub fn document(&mut self, document: &Document) -> Result<(), Error> {
        self.add(&document.text, &document.sentences)
    }

    /// Counts a text whose sentences are found by rule, as [`Feed::document`] does.
    ///
    /// # Errors
    /// As of [`Feed::document`].
    pub fn text(&mut self, text: &str) -> Result<(), Error> {
        self.add(text, &[])
    }

    fn add(&mut self, text: &str, sentences: &[usize]) -> Result<(), Error> {
        self.corpus.push(text, sentences);
        let mine = self.share.takes(self.met);
        self.met += 1;
        if !mine {
            return Ok(());
        }
        self.documents += 1;
        self.batch.text.push_str(text);
        self.batch.sentences.extend_from_slice(sentences);
        self.batch.ends.push(End { text: self.batch.text.len(), sentences: self.batch.sentences.len() });
        if self.batch.text.len() >= BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        let batch = mem::take(&mut self.batch);
        if self.failed.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        self.sender.send(batch).map_err(|_| Error::Cancelled)
    }
}

/// Counts the documents that `documents` hands over: those of the whole corpus, of which a shard takes its own, or those of a part.
///
/// # Errors
/// When `documents` fails, the words alone do not fit into memory, a count is beyond 64 bits, or the disk refuses.
pub fn count<E: From<Error>>(
    config: &Config,
    share: Share,
    room: &Room,
    documents: impl FnOnce(&mut Feed<'_>) -> Result<(), E>,
) -> Result<Counts, E> {
    config.check()?;
    room.check()?;
    let (failed, used) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (sender, receiver) = sync_channel(room.threads * 2);
    let receiver = Arc::new(Mutex::new(receiver));
    let counted = thread::scope(|scope| {
        let workers: io::Result<Vec<_>> = (0..room.threads)
            .map(|_| {
                let (receiver, failed, used) = (Arc::clone(&receiver), &failed, &used);
                thread::Builder::new().spawn_scoped(scope, move || {
                    let worked = Spooled::new(config, &room.folder)
                        .and_then(|worker| worker.run(&receiver, room, used));
                    failed.fetch_or(worked.is_err(), Ordering::Relaxed);
                    worked
                })
            })
            .collect();
        // Threads that are gone must not leave a channel that nobody empties.
        drop(receiver);
        let workers = workers.map_err(Error::Thread)?;
        let mut feed = Feed {
            batch: Batch::default(),
            sender,
            failed: &failed,
            share,
            met: 0,
            documents: 0,
            corpus: Corpus::EMPTY,
        };
        let fed = documents(&mut feed).and_then(|()| feed.flush().map_err(E::from));
        let of = Of { corpus: feed.corpus, share, documents: feed.documents };
        drop(feed);
        let joined = workers.into_iter().map(|worker| match worker.join() {
            Ok(worked) => worked,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        Ok::<_, Error>((joined.collect::<Result<Vec<Spooled>, Error>>(), fed, of))
    });
    let (spooled, fed, of) = counted?;
    let spooled = spooled?;
    fed?;
    Ok(pass::pairs(config, room, spooled, of)?)
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
        room: &Room,
        used: &AtomicUsize,
    ) -> Result<Self, Error> {
        let (mut held, most) = (0, room.memory / 4);
        loop {
            let next = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(batch) = next else { return Ok(self) };
            room.cancel.check()?;
            let (mut start, mut first) = (0, 0);
            for End { text, sentences } in batch.ends {
                self.document(&batch.text[start..text], &batch.sentences[first..sentences])?;
                (start, first) = (text, sentences);
            }
            let bytes = self.lexicon.bytes();
            let all = used.fetch_add(bytes - held, Ordering::Relaxed) + bytes - held;
            held = bytes;
            if all > most {
                return Err(Error::Words { words: self.lexicon.len(), bytes: all, memory: most * 4 });
            }
        }
    }

    fn document(&mut self, text: &str, sentences: &[usize]) -> Result<(), Error> {
        if self.within == Within::Document {
            return self.segment(text);
        }
        let mut start = 0;
        for end in sentence::of(text, sentences).iter().copied().chain([text.len()]) {
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
