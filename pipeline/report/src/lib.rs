//! The report: one page about a graph, one about a grafting, with their plots.
//!
//! [`page()`] is a pure function of what was measured; [`write()`] puts its result on the disk. The page needs nothing from elsewhere: no
//! script, no font, no picture.

pub mod bars;
pub mod chart;
mod draft;
pub mod funnel;
pub mod grafting;
pub mod lines;
pub mod matrix;
pub mod number;
pub mod overview;
mod page;
pub mod paired;
pub mod pairs;
pub mod plots;
pub mod scale;
pub mod svg;
mod table;
pub mod tables;
pub mod tagged;

use std::io;
use std::path::{Path, PathBuf};

use base::whole::write_whole;
use kg::certificate::Certificate;
use kg::graph::Summary;
use serde_json::Value;

pub use draft::{MADE_BY, Page};
pub use page::page;

/// Fewer seeds say nothing of chance: tables have no interval and no colour.
pub const FEWEST_SEEDS: usize = 3;

/// Name of the page.
pub const PAGE: &str = "index.html";

/// What the page is about.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The page's title.
    pub title: &'a str,
    /// The measures.
    pub summary: &'a Summary,
    /// The directions, if they were judged.
    pub certificate: Option<&'a Certificate>,
    /// The contents of `funnel.json`.
    pub funnel: Option<&'a Value>,
    /// The contents of `split.json`.
    pub split: Option<&'a Value>,
    /// The contents of the split's `audit.json`.
    pub audit: Option<&'a Value>,
}

/// A file of the report could not be written; what stood under its name before is still there.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot write it: {source}; make sure that its folder is writable and run again", file.display())]
pub struct Error {
    /// The file.
    pub file: PathBuf,
    /// The operating system's word.
    pub source: io::Error,
}

/// Writes the plots as `NAME.svg` and then the page as [`PAGE`] into `folder`, each whole.
///
/// # Errors
/// When the folder is missing or the disk refuses.
pub fn write(page: &Page, folder: &Path) -> Result<(), Error> {
    for plot in &page.plots {
        put(folder, &format!("{}.svg", plot.name), &plot.file())?;
    }
    put(folder, PAGE, &page.html)
}

fn put(folder: &Path, name: &str, contents: &str) -> Result<(), Error> {
    let file = folder.join(name);
    write_whole(&file, contents.as_bytes()).map_err(|source| Error { file, source })
}
