//! Opens the files of a source, plain or packed.

use std::fs::File;
use std::io::BufRead;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::engine::context::Context;
use crate::stage::location::Place;

/// A file that is being read, and counted while it is.
pub(super) type Reader = Box<dyn BufRead + Send>;

/// Opens a file; gzip is seen by its first bytes.
pub(super) fn open(path: &Path, context: &Context) -> anyhow::Result<Reader> {
    let file = File::open(path).with_context(|| format!("{}: cannot open it", path.display()))?;
    let reader = base::gz::reader(context.progress().reader(file));
    Ok(Box::new(reader.with_context(|| format!("{}: cannot read it", path.display()))?))
}

/// The path of a place as messages name it, and its reader.
pub(super) fn at(place: &Place, context: &Context) -> anyhow::Result<(PathBuf, Reader)> {
    let path = place.path(context)?;
    let reader = open(&path, context)?;
    Ok((place.shown(&path), reader))
}

/// The same for a place that a config may leave out.
pub(super) fn maybe(place: Option<&Place>, context: &Context) -> anyhow::Result<Option<(PathBuf, Reader)>> {
    place.map(|place| at(place, context)).transpose()
}

/// As readers take a file: the bytes, and the name for messages.
pub(super) fn labelled((path, reader): &mut (PathBuf, Reader)) -> (&mut Reader, &Path) {
    (reader, path)
}
