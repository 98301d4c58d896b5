//! Writes examples: files whole, the index last, the same bytes for the same input.

use std::path::Path;

use base::self_check::{self, SelfChecked};
use tasks::Error;

use super::schema::{Counts, EXAMPLES, FORMAT, Index, Licence, VERSION};
use super::{Examples, Part};
use crate::funnel::Step;
use crate::lines::{self, INDEX};

/// Writes a folder of examples into `folder`, which exists, with what may be done with them and how they came about.
///
/// # Errors
/// When the examples are no benchmark ([`Examples::check`]), the funnel does not end with them, or the disk refuses.
pub fn write(folder: &Path, examples: &Examples, licence: Licence, funnel: &[Step]) -> Result<Index, Error> {
    examples.check()?;
    ends(funnel, examples.examples.len() as u64).map_err(|why| Error::at(folder, why, ""))?;
    let files = vec![lines::write(folder, Index::KIND, EXAMPLES, &examples.examples)?];
    let mut index = Index {
        format: FORMAT.to_owned(),
        version: VERSION,
        xxh3: String::new(),
        name: examples.name.clone(),
        kind: examples.kind,
        classes: examples.classes.clone(),
        measure: examples.measure,
        negative_class: examples.negative_class,
        licence,
        funnel: funnel.to_vec(),
        parts: counts(examples),
        files,
    };
    self_check::write(&folder.join(INDEX), &mut index)?;
    Ok(index)
}

/// The examples of each part.
#[must_use]
pub fn counts(examples: &Examples) -> Vec<Counts> {
    let of = |part| Counts { part, examples: examples.of(part).len() as u64, classes: examples.counts(part) };
    Part::ALL.map(of).into()
}

/// Whether each step of a funnel adds up, and the last one keeps so many examples.
pub(super) fn ends(funnel: &[Step], examples: u64) -> Result<(), String> {
    if let Some(step) = funnel.iter().find(|step| !step.adds_up()) {
        return Err(format!(
            "the funnel's step of {} reads {}, expected what it drops and keeps together",
            step.of, step.read
        ));
    }
    match funnel.last().map_or(0, |step| step.kept) {
        kept if kept == examples && !funnel.is_empty() => Ok(()),
        kept => Err(format!("the funnel ends with {kept} examples, expected {examples}")),
    }
}
