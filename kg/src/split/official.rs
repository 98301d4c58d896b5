//! The parts that a source published, as its origins name them.

use super::part::Part;
use crate::Refused;
use crate::table::Graph;

/// What happens to a triple of a less held-out part that says the same as a more held-out one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaky {
    /// It stays where it was published; the audit finds it.
    Keep,
    /// It is put aside, so that no part gives another away.
    Aside,
}

/// Parts as published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Official {
    /// By row: the part in which the source states it; none if it does not.
    stated: Vec<Option<Part>>,
    /// Rows that it states in two parts or more.
    twice: u64,
    leaky: Leaky,
}

impl Official {
    /// The parts of `source`, which stand in its origins' vocabulary: `train`, `dev` or `valid` or `validation`, `test`. A triple that
    /// the source states in several parts (after inverses were folded, say) belongs to the most held-out one, and is counted.
    ///
    /// # Errors
    /// When the source states nothing, or something without a part.
    pub fn read(graph: &Graph, source: &str, leaky: Leaky) -> Result<Self, Refused> {
        let mut official = Self { stated: Vec::with_capacity(graph.triples().len()), twice: 0, leaky };
        for row in 0..graph.triples().len() {
            let mut stated: Option<Part> = None;
            let mut twice = false;
            for origin in graph.origins(row).filter(|origin| origin.source == source) {
                let part = origin.vocabulary.as_deref().and_then(published).ok_or_else(|| {
                    let found = origin.vocabulary.as_ref().map_or_else(|| "none".to_owned(), |v| format!("`{v}`"));
                    Refused::new(format!(
                        "triple {row} of source `{source}` has the part {found}; expected train, dev, valid or test, so read the source with its official parts or split by ratio"
                    ))
                })?;
                twice |= stated.is_some_and(|before| before != part);
                stated = stated.max(Some(part));
            }
            official.twice += u64::from(twice);
            official.stated.push(stated);
        }
        if official.stated.iter().all(Option::is_none) {
            let mut there: Vec<String> =
                graph.entities().iter().flat_map(|entity| entity.origins.clone()).collect();
            there.sort_unstable();
            there.dedup();
            return Err(Refused::new(format!(
                "the source `{source}` states no triple of this table; sources there are: {}",
                there.join(", ")
            )));
        }
        Ok(official)
    }

    pub(super) fn len(&self) -> usize {
        self.stated.len()
    }

    /// The part in which each row is published, train for what the source does not state; none if there is another number of rows.
    pub(super) fn stated_parts(&self, rows: usize) -> Option<Vec<Part>> {
        (self.stated.len() == rows)
            .then(|| self.stated.iter().map(|stated| stated.unwrap_or(Part::Train)).collect())
    }

    pub(super) fn twice(&self) -> u64 {
        self.twice
    }

    /// The part of every row, given every row's group; none if there is another number of rows.
    pub(super) fn parts(&self, group: &[u32]) -> Option<Vec<Part>> {
        let mut part = self.stated_parts(group.len())?;
        if self.leaky == Leaky::Aside {
            let groups = group.iter().max().map_or(0, |&last| last as usize + 1);
            let mut most = vec![Part::Train; groups];
            for (&part, &group) in part.iter().zip(group) {
                most[group as usize] = most[group as usize].max(part);
            }
            for (part, &group) in part.iter_mut().zip(group) {
                if *part < most[group as usize] {
                    *part = Part::Aside;
                }
            }
        }
        Some(part)
    }
}

/// The part that a source's word for it means.
#[must_use]
pub fn published(vocabulary: &str) -> Option<Part> {
    match vocabulary {
        "train" => Some(Part::Train),
        "dev" | "valid" | "validation" => Some(Part::Valid),
        "test" => Some(Part::Test),
        _ => None,
    }
}
