//! Scores of several output folders side by side.

use std::path::PathBuf;

use super::exit::Exit;
use super::print::{self, Format};
use crate::compare::Comparison;

/// The examples of `compare`.
pub(super) const HELP: &str = "\
Examples:
  engraft compare out-bert out-biobert out-retrained
  engraft compare out-bert out-biobert --json     one object for each benchmark (or kind of ranks)
                                                  and folder

Scores are those of the stages `scores` (benchmarks), `results` (the rows of a grafting) and `rank`
(link prediction). Benchmarks that have other examples in another folder, and ranks of other
questions, are left out, with a word.";

/// Prints the scores of output folders beside those of the first one; what is not compared, and why, goes to standard error.
pub(super) fn compare(outs: &[PathBuf], format: Format) -> anyhow::Result<Exit> {
    let found = Comparison::of(outs)?;
    print::result(format, || found.table(), || found.json())?;
    found.stale.iter().for_each(|what| print::note(what));
    found.left_out.iter().for_each(|why| print::note(&format!("left out: {why}")));
    Ok(if found.is_sound { Exit::Ok } else { Exit::Failed })
}
