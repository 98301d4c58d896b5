//! What the rows of edge lists and tables of nodes say of a thing.

use std::collections::BTreeSet;

use crate::source::ontology::{Scope, Synonym, Term};
use crate::table::SemanticType;

/// What is said of a thing.
#[derive(Default)]
pub(super) struct Said {
    name: Option<String>,
    others: BTreeSet<String>,
    kinds: BTreeSet<String>,
    /// Whether a table of nodes has an inactive row of it, or one that is not.
    pub(super) rows: [bool; 2],
    /// A name that a later row gives it and no row before has.
    renamed: Option<String>,
}

impl Said {
    /// Takes the names of a row; the first of all rows stands.
    pub(super) fn name<'n>(&mut self, names: impl Iterator<Item = &'n str> + Clone) {
        if self.renamed.is_none() && self.name.is_some() && !names.clone().any(|name| self.knows(name)) {
            self.renamed = names.clone().next().map(str::to_owned);
        }
        for name in names {
            match &self.name {
                None => self.name = Some(name.to_owned()),
                Some(known) if known != name => {
                    self.others.insert(name.to_owned());
                }
                Some(_) => {}
            }
        }
    }

    /// Takes the kinds of a row.
    pub(super) fn kinds<'n>(&mut self, kinds: impl Iterator<Item = &'n str>) {
        for kind in kinds {
            if !self.kinds.contains(kind) {
                self.kinds.insert(kind.to_owned());
            }
        }
    }

    fn knows(&self, name: &str) -> bool {
        let same = |known: &str| known.to_lowercase() == name.to_lowercase();
        self.name.as_deref().is_some_and(same) || self.others.iter().any(|other| same(other))
    }

    /// Its name, and another one that a later row gives it, if any does.
    pub(super) fn renamed(&self) -> Option<[&String; 2]> {
        Some([self.name.as_ref()?, self.renamed.as_ref()?])
    }

    pub(super) fn term(self, key: String) -> Term {
        let Said { name, others, kinds, rows, .. } = self;
        let types = kinds.into_iter().map(|name| SemanticType { code: None, name });
        let synonyms = others.into_iter().map(|text| Synonym { text, scope: Scope::Exact });
        Term {
            key,
            name,
            types: types.collect(),
            synonyms: synonyms.collect(),
            is_obsolete: rows == [true, false],
            ..Term::default()
        }
    }
}
