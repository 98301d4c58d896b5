//! Proof that no held-out triple can be read off a shown one, or the list of those that can.
//!
//! Valid and test are held out from train, and test from valid. A held-out row leaks if a row of the other part says the same; see
//! [`Kind`]. Rows that are [`Part::Aside`] neither leak nor are leaked to. What would leak if relations were what the data suggest is counted
//! apart ([`suspect`]).

mod find;
pub mod kind;
pub mod name;
pub mod published;
pub mod report;
pub mod schema;
mod statement;
pub mod suspect;
pub mod task;
pub mod write;

pub use kind::{Kind, Leak};
pub use name::{NameLeak, ShownName, names};
pub use published::{Published, published};
pub use report::{Report, Suspicious};
pub use suspect::{Suspect, Suspects};
pub use task::{Shown, TaskLeak, tasks};

use crate::Refused;
use crate::split::{Part, Suspicion, Together, View};
use crate::table::RelationId;
use statement::Statements;

/// What counts as a leak.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options<'a> {
    /// With [`Together::Pair`], any triple over the same two texts gives another away.
    pub together: Together,
    /// Pairs of relations that count as inverse besides those that are declared; a symmetric one with itself.
    pub inverses: &'a [(RelationId, RelationId)],
    /// What makes other relations suspect; none: nothing does.
    pub suspicion: Option<Suspicion>,
}

/// What an audit found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    /// By held-out row and part; at most one for each held-out row and other part.
    pub leaks: Vec<Leak>,
    /// The same in numbers.
    pub report: Report,
}

/// Parts of another graph.
fn other_parts(view: &View, found: usize) -> Refused {
    let expected = view.triples().len();
    Refused::new(format!(
        "{found} parts for {expected} triples; audit a split with the triple table that it was made of"
    ))
}

/// A row or relation that the graph lacks.
fn unknown(what: &str, number: u32, there: usize) -> Refused {
    Refused::new(format!(
        "{what} {number} is not in this triple table, which has {there}; audit with the table that it was made of"
    ))
}

/// Looks for every leak between the parts.
///
/// # Errors
/// When parts or relations are those of another graph.
pub fn audit(view: &View, part: &[Part], options: &Options) -> Result<Audit, Refused> {
    if part.len() != view.triples().len() {
        return Err(other_parts(view, part.len()));
    }
    let statements = Statements::new(view, options.inverses)?;
    let rows = statements.rows(view, |row| part.get(row).copied());
    let leaks = find::leaks(&rows, options.together);
    let mut report = report::report(part, &leaks);
    if let Some(suspicion) = &options.suspicion {
        report.suspected = suspect::suspects(view, &statements, &rows, &leaks, suspicion);
    }
    Ok(Audit { leaks, report })
}
