//! What a reader of graphs should be told, though nothing failed: rows that were left out, names that nobody states.

use std::collections::BTreeSet;

use base::funnel::Tally;

use super::funnel::Funnel;
use super::{Config, Entry};
use crate::canon;

/// Rows that were left out although they say something, and that no setting of the source asks to leave out.
const WARNED_OF: [(&str, &str); 6] = [
    ("unfit", "do not fit and are left out"),
    ("inactive", "are inactive and left out"),
    ("repeated_header", "repeat the names of the columns and are left out"),
    ("no_node", "name a node that the files lack and are left out"),
    (
        "no_name",
        "are of entities without a name in the languages and vocabularies asked for and are left out",
    ),
    ("unknown_descriptor", "name a descriptor that is not there and are left out"),
];

impl Funnel {
    /// Rows that were left out, and columns that nobody asked for.
    #[must_use]
    pub fn left_out(&self) -> Vec<String> {
        let (source, mut warnings) = (&self.source, Vec::new());
        for tally in std::iter::once(&self.triples).chain(&self.supporting) {
            let Tally { file, read, dropped, columns_not_used, .. } = tally;
            if !columns_not_used.is_empty() {
                let columns = columns_not_used.join(", ");
                warnings.push(format!("{source}: nothing asks for these columns of {file}: {columns}"));
            }
            for (reason, what) in WARNED_OF {
                let rows = dropped.get(reason).copied().unwrap_or_default();
                if rows > 0 {
                    warnings.push(format!("{source}: {rows} of {read} rows of {file} {what}"));
                }
            }
        }
        warnings
    }

    /// Says of a source that nothing of it is left, and why.
    #[must_use]
    pub fn nothing_kept(&self) -> Option<String> {
        let Tally { file, read, dropped, kept, .. } = &self.triples;
        let reasons =
            dropped.iter().filter(|(_, rows)| **rows > 0).map(|(why, rows)| format!("{why} {rows}"));
        let reasons: Vec<String> = reasons.collect();
        let why = if reasons.is_empty() { "it has none".to_owned() } else { reasons.join(", ") };
        (*kept == 0).then(|| format!("{}: none of the {read} rows of {file} is kept ({why})", self.source))
    }
}

impl Config {
    /// What is said of the merged graph, and of relations that no source states: a misspelt name would otherwise do nothing, unseen. A graph may well state only one
    /// of two inverses, so pairs `declared` for all sources are told where neither is there.
    #[must_use]
    pub fn unstated(&self, merged: &canon::Report, declared: &BTreeSet<[String; 2]>) -> Vec<String> {
        let mut stated: BTreeSet<&str> = BTreeSet::new();
        for one in &merged.relations {
            if one.rows > one.turned || one.symmetric && one.rows > 0 {
                stated.insert(&one.relation);
            }
            stated.extend(one.inverse.as_deref().filter(|_| one.turned > 0));
        }
        let is_stated = |name: &String| stated.contains(name.as_str());
        let neither = declared.iter().filter(|pair| !pair.iter().any(is_stated));
        let mut warnings = merged.warnings.clone();
        warnings.extend(
            neither.map(|[one, other]| format!("canon.declared: no source states {one:?} or {other:?}")),
        );
        for Entry { key, source, .. } in self.entries() {
            let names = source.inverses().iter().flatten().filter(|name| !is_stated(name));
            warnings.extend(names.map(|name| format!("{key}.inverses: no source states {name:?}")));
        }
        warnings
    }
}
