//! The page about a grafting: scores, heads, searches and losses of all its variants.
//!
//! [`page()`] is a pure function of [`Facts`]; parts that were not measured yet say what would fill them. [`results`] has the table of
//! scores as Markdown and CSV too. Needs nothing from elsewhere: no script, no font, no picture.

mod change;
pub(crate) mod curve;
pub mod facts;
mod heat;
mod page;
pub mod results;
mod search;
pub mod settings;
mod table;
#[cfg(test)]
mod tests;

use std::path::Path;

use super::{Error, put};

pub use facts::Facts;
pub use page::page;

/// Writes all about `facts` into `folder`, each file whole: the plots, [`results::MARKDOWN`], [`results::CSV`], and the page last. Gives
/// the number of plots.
///
/// # Errors
/// When the folder is missing or the disk refuses.
pub fn write(facts: &Facts, folder: &Path) -> Result<usize, Error> {
    put(folder, results::MARKDOWN, &results::readme(facts))?;
    put(folder, results::CSV, &results::csv(facts))?;
    let page = page(facts);
    super::write(&page, folder)?;
    Ok(page.plots.len())
}
