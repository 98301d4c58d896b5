//! Leaks between the names that tasks show: what a held-out entity is called, shown where its triples are not.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::Serialize;

use super::{other_parts, unknown};
use crate::Refused;
use crate::canon::fold::bare;
use crate::split::{Part, View};
use crate::table::Term;

/// A task's use of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShownName {
    /// Row of the name in the table of terms.
    pub term: u32,
    /// The part in which the task uses it.
    pub part: Part,
    /// Number of the task in the caller's list.
    pub task: u32,
}

/// A name that one part shows and another holds out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct NameLeak {
    /// Row of the name of a held-out entity in the table of terms.
    pub held: u32,
    /// The part of that entity's triples.
    pub held_part: Part,
    /// Row of a name that reads the same, perhaps itself.
    pub shown: u32,
    /// The part that shows it.
    pub shown_part: Part,
    /// By which task.
    pub task: u32,
}

/// Every name that is shown in another part than that of the first triples of its entity, and, one for each text and two parts, every text that two
/// parts show. `terms` are those of the table in their order.
///
/// # Errors
/// When parts or terms are those of another graph.
pub fn names(
    view: &View,
    part: &[Part],
    terms: &[Term],
    shown: &[ShownName],
) -> Result<Vec<NameLeak>, Refused> {
    if part.len() != view.triples().len() {
        return Err(other_parts(view, part.len()));
    }
    let mut first: BTreeMap<u32, Part> = BTreeMap::new();
    for (triple, &part) in view.triples().iter().zip(part) {
        for entity in [triple.subject.0, triple.object.0] {
            first.entry(entity).and_modify(|first| *first = part.min(*first)).or_insert(part);
        }
    }
    let mut leaks = Vec::new();
    for &ShownName { term, part, task } in shown {
        let name = terms.get(term as usize).ok_or_else(|| unknown("term", term, terms.len()))?;
        let held_part = first.get(&name.entity.0).copied().unwrap_or(Part::Aside);
        if held_part != part {
            leaks.push(NameLeak { held: term, held_part, shown: term, shown_part: part, task });
        }
    }
    let read: Vec<String> = shown.par_iter().map(|shown| bare(&terms[shown.term as usize].text)).collect();
    let mut by_text: Vec<(&str, ShownName)> =
        read.iter().map(String::as_str).zip(shown.iter().copied()).collect();
    by_text.par_sort_unstable();
    for same in by_text.chunk_by(|one, other| one.0 == other.0) {
        // The first of each part.
        let mut firsts: BTreeMap<Part, ShownName> = BTreeMap::new();
        for (_, shown) in same {
            firsts.entry(shown.part).or_insert(*shown);
        }
        for held in firsts.values() {
            let earlier = firsts.values().filter(|shown| held.part.is_held_out_from(shown.part));
            leaks.extend(earlier.map(|shown| NameLeak {
                held: held.term,
                held_part: held.part,
                shown: shown.term,
                shown_part: shown.part,
                task: shown.task,
            }));
        }
    }
    leaks.sort_unstable();
    Ok(leaks)
}
