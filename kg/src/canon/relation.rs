//! Which of two inverse relations stays.

use std::collections::{BTreeMap, BTreeSet};

/// What becomes of the statements of a relation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fate {
    /// Key of the relation that they become statements of.
    pub key: String,
    /// Whether subject and object are exchanged on the way.
    pub turn: Turn,
}

/// Whether subject and object are exchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Never.
    Stays,
    /// Always.
    Exchanges,
    /// Where the subject's key is larger than the object's: the relation is symmetric.
    Sorts,
}

/// The declared inverses, made consistent.
#[derive(Debug)]
pub struct Inverses {
    inverse_of: BTreeMap<String, String>,
    preferred: BTreeSet<String>,
    conflicts: Vec<(String, Vec<String>)>,
}

impl Inverses {
    /// Takes declarations (both ways round: with (a, b) also (b, a)) and the relations that are to stay. Where a relation has several declared
    /// inverses that differ, none of them counts and the conflict is listed.
    #[must_use]
    pub fn new(declared: &BTreeSet<(String, String)>, preferred: &BTreeSet<String>) -> Self {
        let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (key, inverse) in declared {
            all.entry(key).or_default().insert(inverse);
        }
        let (mut inverse_of, mut conflicts) = (BTreeMap::new(), Vec::new());
        for (key, inverses) in &all {
            if inverses.len() > 1 {
                conflicts
                    .push(((*key).to_owned(), inverses.iter().map(|&inverse| inverse.to_owned()).collect()));
            } else if let Some(&inverse) = inverses.first()
                && all.get(inverse).is_some_and(|back| back.len() == 1)
            {
                inverse_of.insert((*key).to_owned(), inverse.to_owned());
            }
        }
        Self { inverse_of, preferred: preferred.clone(), conflicts }
    }

    /// Relations with several declared inverses, and those.
    #[must_use]
    pub fn conflicts(&self) -> &[(String, Vec<String>)] {
        &self.conflicts
    }

    /// The relation that says the same the other way round, if one was declared; of a symmetric relation itself.
    #[must_use]
    pub fn inverse(&self, key: &str) -> Option<&str> {
        self.inverse_of.get(key).map(String::as_str)
    }

    /// What becomes of the statements of `key`.
    #[must_use]
    pub fn fate(&self, key: &str) -> Fate {
        let (key, turn) = match self.inverse(key) {
            None => (key, Turn::Stays),
            Some(inverse) if inverse == key => (key, Turn::Sorts),
            Some(inverse) if self.rank(inverse) < self.rank(key) => (inverse, Turn::Exchanges),
            Some(_) => (key, Turn::Stays),
        };
        Fate { key: key.to_owned(), turn }
    }

    /// The smaller of two inverses stays: one that is preferred, is not called `inverse_...`, is active (`treats`, not `treated_by`),
    /// starts from the thing that has (`has_part`, not `part_of`), is first in the order of letters. A rule by name and not by
    /// count, so that more data turn nothing round; words are told whatever is between them and in whatever case (`TREATED_BY`, `treated by`, `treatedBy`).
    fn rank<'a>(&self, key: &'a str) -> (bool, bool, bool, bool, &'a str) {
        let words = words(key);
        let is = |at: Option<&String>, of: &[&str]| at.is_some_and(|word| of.contains(&word.as_str()));
        let (first, last) = (words.first(), words.last().filter(|_| words.len() > 1));
        let inner = words.iter().skip(1);
        let passive = is(last, &["by"])
            || (words.len() > 1 && is(first, &["be"]))
            || inner.take(words.len().saturating_sub(2)).any(|word| word == "by" || word == "be");
        let inverse = words.len() > 1 && is(first, &["inverse"]);
        (!self.preferred.contains(key), inverse, passive, is(last, &["of", "from"]), key)
    }
}

/// The words of a relation's key, in lower case; of an IRI, those of its last part.
fn words(key: &str) -> Vec<String> {
    let local = key.trim_end_matches(['#', '/', ':']).rsplit(['#', '/', ':']).next().unwrap_or(key);
    let (mut words, mut before) = (vec![String::new()], ' ');
    for c in local.chars() {
        let begins = before.is_lowercase() && c.is_uppercase();
        if (begins || !c.is_alphanumeric()) && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inverses(pairs: &[(&str, &str)], preferred: &[&str]) -> Inverses {
        let both =
            pairs.iter().flat_map(|&(a, b)| [(a.to_owned(), b.to_owned()), (b.to_owned(), a.to_owned())]);
        Inverses::new(&both.collect(), &preferred.iter().map(|&key| key.to_owned()).collect())
    }

    #[test]
    fn names_decide_which_of_two_stays() {
        for (stays, goes) in [
            ("may_treat", "may_be_treated_by"),
            ("isa", "inverse_isa"),
            ("has_part", "part_of"),
            ("has_finding_site", "finding_site_of"),
            ("CHD", "PAR"),
            ("causes", "caused_by"),
            ("TREATS", "TREATED_BY"),
            ("treats", "treated by"),
            ("treats", "treatedBy"),
            ("hasPart", "isPartOf"),
            ("Zhas_part", "Part Of"),
            ("zz:may_treat", "http://x/aa#may-be-treated-by"),
            ("isa", "inverse isa"),
        ] {
            let inverses = inverses(&[(stays, goes)], &[]);
            assert_eq!(inverses.fate(stays), Fate { key: stays.to_owned(), turn: Turn::Stays });
            assert_eq!(inverses.fate(goes), Fate { key: stays.to_owned(), turn: Turn::Exchanges });
        }
        let asked = inverses(&[("may_treat", "may_be_treated_by")], &["may_be_treated_by"]);
        assert_eq!(asked.fate("may_treat").key, "may_be_treated_by");
    }

    #[test]
    fn symmetric_and_unknown_relations_keep_their_key() {
        let inverses = inverses(&[("SIB", "SIB")], &[]);
        assert_eq!(inverses.fate("SIB"), Fate { key: "SIB".to_owned(), turn: Turn::Sorts });
        assert_eq!(inverses.fate("has_symptom").turn, Turn::Stays);
    }

    #[test]
    fn contradicting_declarations_turn_nothing_round() {
        let inverses = inverses(&[("a", "b"), ("b", "c"), ("d", "e")], &[]);
        assert_eq!(inverses.conflicts(), [("b".to_owned(), vec!["a".to_owned(), "c".to_owned()])]);
        for key in ["a", "b", "c"] {
            assert_eq!(inverses.fate(key), Fate { key: key.to_owned(), turn: Turn::Stays });
        }
        assert_eq!(inverses.fate("e").key, "d");
    }
}
