//! What all formats of texts have in common: how their files end, what is marked in them, and a reader of documents.

use std::fmt::Debug;
use std::io::BufRead;
use std::path::Path;

use super::{Counts, Document, Labels, SpanTally, flatten};

/// The bytes of a file, unpacked.
pub type Bytes<'f> = Box<dyn BufRead + 'f>;

/// What files of a format say of their texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    /// Nothing.
    Nothing,
    /// Which entities are in them.
    Entities,
    /// Which phrases are in them.
    Phrases,
    /// Both.
    EntitiesAndPhrases,
}

/// A format, with its settings.
pub trait TextFormat: Debug {
    /// How the names of its files end.
    fn endings(&self) -> &'static [&'static str];

    /// What its files say of their texts.
    fn marks(&self) -> Marks {
        Marks::Nothing
    }

    /// Whether what is read with a file lies in another one.
    fn is_in_several_files(&self) -> bool {
        false
    }

    /// A reader of `bytes`, the contents of `file`, which messages name. Formats that are not read from the beginning on open the file themselves.
    ///
    /// # Errors
    /// When the file is none of this format at first sight.
    fn reader<'f>(&'f self, bytes: Bytes<'f>, file: &'f Path) -> Result<Box<dyn Reader + 'f>, ReadError>;
}

/// Reads document after document.
pub trait Reader {
    /// Fills `document` with the next one; false behind the last.
    ///
    /// # Errors
    /// When the file is damaged, or none of the format.
    fn next(&mut self, document: &mut Document, labels: &mut Labels) -> Result<bool, ReadError>;

    /// What became of what was read so far.
    fn counts(&self) -> Counts;
}

/// Why a file cannot be read: its format's word, which names the place, what was found and expected, and what to do.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ReadError(Box<dyn std::error::Error + Send + Sync>);

impl ReadError {
    /// Hands on what a format says.
    pub fn of(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self(Box::new(error))
    }
}

/// Counts of documents in which nothing is marked.
pub(super) fn without_spans(documents: base::funnel::Tally) -> Counts {
    Counts { documents, spans: SpanTally::default() }
}

/// A reader of documents with entities, of which the longest become spans where some overlap.
pub(super) struct Flattened<R> {
    inner: R,
    flat: SpanTally,
}

impl<R> Flattened<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, flat: SpanTally::default() }
    }
}

impl<R: Reader> Reader for Flattened<R> {
    fn next(&mut self, document: &mut Document, labels: &mut Labels) -> Result<bool, ReadError> {
        let found = self.inner.next(document, labels)?;
        if found {
            let flat = flatten::longest(&document.entities, flatten::Discontinuous::Drop);
            document.spans = flat.spans;
            self.flat.kept += flat.tally.kept;
            for (why, spans) in flat.tally.dropped {
                *self.flat.dropped.entry(why).or_insert(0) += spans;
            }
        }
        Ok(found)
    }

    fn counts(&self) -> Counts {
        let mut counts = self.inner.counts();
        counts.spans.dropped.extend(self.flat.dropped.clone());
        counts.spans.kept = self.flat.kept;
        counts
    }
}

/// A reader of a file that is one document, or none: `fill` fills it and says what became of the file.
pub(super) struct Only<F> {
    fill: Option<F>,
    counts: Counts,
}

impl<F> Only<F> {
    /// One of `file`.
    pub(super) fn new(file: &Path, fill: F) -> Self {
        Self { fill: Some(fill), counts: without_spans(base::funnel::Tally::new(file, &[])) }
    }
}

impl<F: FnOnce(&mut Document, &mut Labels) -> Result<Counts, ReadError>> Reader for Only<F> {
    fn next(&mut self, document: &mut Document, labels: &mut Labels) -> Result<bool, ReadError> {
        let Some(fill) = self.fill.take() else { return Ok(false) };
        self.counts = fill(document, labels)?;
        Ok(self.counts.documents.kept > 0)
    }

    fn counts(&self) -> Counts {
        self.counts.clone()
    }
}
