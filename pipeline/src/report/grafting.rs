//! The page about a grafting: scores, heads, searches and losses of all its variants. Knows what was measured, not how.
//!
//! [`page()`] is a pure function of [`Facts`]; parts that were not measured yet say what would fill them. [`results`] has the table of
//! scores as Markdown and CSV too. Needs nothing from elsewhere: no script, no font, no picture.

mod change;
mod curve;
pub mod facts;
mod heat;
mod page;
pub mod results;
mod search;
mod table;
#[cfg(test)]
mod tests;

pub use facts::Facts;
pub use page::page;
