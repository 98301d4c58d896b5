//! What all formats of texts have in common: a reader of documents.

use std::fmt::Debug;
use std::io::BufRead;
use std::path::Path;

use base::funnel::Tally;
use base::read::ReadError;

use super::{Counts, Document, Labels, SpanTally, flatten};

/// The bytes of a file, unpacked.
pub type Bytes<'f> = Box<dyn BufRead + 'f>;

/// A reader of a file's documents, unless the file is none of the format at first sight.
pub type Opened<'f> = Result<Box<dyn DocumentReader + 'f>, ReadError>;

/// A format, with its settings; [`super::file::Format`] lists them all.
pub trait TextFormat: Debug {
    /// A reader of `bytes`, the contents of `file`, which messages name. Formats that are not read from the beginning on open the file themselves.
    ///
    /// # Errors
    /// When the file is none of this format at first sight.
    fn reader<'f>(&'f self, bytes: Bytes<'f>, file: &'f Path) -> Opened<'f>;
}

/// Reads document after document.
pub trait DocumentReader {
    /// Fills `document` with the next one; false behind the last.
    ///
    /// # Errors
    /// When the file is damaged, or none of the format.
    fn read(&mut self, document: &mut Document, labels: &mut Labels) -> Result<bool, ReadError>;

    /// What became of what was read so far.
    fn counts(&self) -> Counts;
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

impl<R: DocumentReader> DocumentReader for Flattened<R> {
    fn read(&mut self, document: &mut Document, labels: &mut Labels) -> Result<bool, ReadError> {
        let found = self.inner.read(document, labels)?;
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
        Self { fill: Some(fill), counts: Counts::of(Tally::new(file, &[])) }
    }
}

impl<F: FnOnce(&mut Document, &mut Labels) -> Result<Counts, ReadError>> DocumentReader for Only<F> {
    fn read(&mut self, document: &mut Document, labels: &mut Labels) -> Result<bool, ReadError> {
        let Some(fill) = self.fill.take() else { return Ok(false) };
        self.counts = fill(document, labels)?;
        Ok(self.counts.documents.kept > 0)
    }

    fn counts(&self) -> Counts {
        self.counts.clone()
    }
}
