//! Which of several references is meant: the one to what bears the name of what refers to it.
//!
//! An ontology refers to two codes of a vocabulary from one term, or to one code from many terms; none of these can be taken for the same. Where names tell
//! them apart, just one of the codes being called as the term is, and just one of the terms as the code, these two are the same.

use std::collections::{BTreeMap, BTreeSet};

use super::crosswalk::namespace;
use super::fold::fold;
use crate::table::builder::Statements;
use crate::table::id::dense;

/// The namespaces in which sources meet, the one that all others lead to first.
pub(crate) const MEETING: [&str; 6] = ["umls", "mesh", "snomed", "omim", "rxnorm", "doid"];

/// Place of a key's namespace among those in which sources meet.
pub(super) fn place(key: &str) -> usize {
    MEETING.iter().position(|known| *known == namespace(key)).unwrap_or(MEETING.len())
}

/// Keys, what each of them was supposed to mean and does by its name, and what it is not then though its source is clear of it (or nothing), sorted.
pub(super) fn by_name(all: &Statements) -> Vec<(&str, &str, &str)> {
    let name = |key: &str| {
        let number = all.entities.keyed.find(key)?;
        (!all.entities.is_nameless(number)).then(|| fold(all.entities.text(number)))
    };
    let stated = (0..dense(all.supposed.len())).step_by(3);
    let stated = stated.map(|at| [0, 1, 2].map(|of| all.supposed.get(at + of)));
    let is_alike = |[key, other, clear]: &[&str; 3]| {
        name(clear).is_none() && name(key).is_some_and(|one| name(other) == Some(one))
    };
    let alike: BTreeSet<[&str; 3]> = stated.filter(is_alike).collect();
    let mut times = BTreeMap::<(&str, &str), u32>::new();
    for [key, other, _] in &alike {
        *times.entry((key, namespace(other))).or_default() += 1;
        *times.entry((other, namespace(key))).or_default() += 1;
    }
    let is_one = |[key, other, _]: &[&str; 3]| {
        times[&(*key, namespace(other))] == 1 && times[&(*other, namespace(key))] == 1
    };
    alike.into_iter().filter(is_one).map(|[key, other, clear]| (key, other, clear)).collect()
}
