//! MRDOC: which relations are inverses of each other, and the words for them.

use std::collections::{BTreeMap, BTreeSet};

use base::funnel::Tally;
use base::read::ReadError;

use super::count::{Counts, Reason};
use super::file::File;
use crate::table::Builder;

const KEY: usize = 0;
const VALUE: usize = 1;
const TYPE: usize = 2;
const TEXT: usize = 3;

/// The broad relations, worded so that `CUI2 words CUI1` reads right, and their inverses.
const BROAD: [(&str, &str, &str); 14] = [
    ("AQ", "QB", "allowed qualifier of"),
    ("CHD", "PAR", "child of"),
    ("DEL", "DEL", "deleted from"),
    ("PAR", "CHD", "parent of"),
    ("QB", "AQ", "can be qualified by"),
    ("RB", "RN", "broader than"),
    ("RL", "RL", "similar to"),
    ("RN", "RB", "narrower than"),
    ("RO", "RO", "related to"),
    ("RQ", "RQ", "possibly synonymous with"),
    ("RU", "RU", "related to, unspecified"),
    ("SIB", "SIB", "sibling of"),
    ("SY", "SY", "synonym of"),
    ("XR", "XR", "not related to"),
];

/// Letters of a documented text that still serves as the words of a relation; longer ones are explanations.
const LONGEST_WORDS: usize = 60;

/// Inverses and words of relations.
#[derive(Debug)]
pub(super) struct Documentation {
    /// Inverse of each RELA, both ways.
    rela: BTreeMap<String, String>,
    /// Inverse of each REL, both ways.
    rel: BTreeMap<String, String>,
    words: BTreeMap<String, String>,
    /// Pairs that rows state and other rows contradict.
    contradicted: Vec<(String, String)>,
}

/// Pairs of a relation and its inverse as rows state them, with the number of rows.
type Stated = BTreeMap<(String, String), u64>;

impl Documentation {
    /// What is known without MRDOC.
    pub(super) fn built_in() -> Self {
        let rel = BROAD.map(|(rel, inverse, _)| (rel.to_owned(), inverse.to_owned()));
        Self { rela: BTreeMap::new(), rel: rel.into(), words: BTreeMap::new(), contradicted: Vec::new() }
    }

    /// Reads MRDOC. Inverses that contradict each other are left out and counted.
    pub(super) fn read(source: &File<'_>, tallies: &mut Vec<Tally>) -> Result<Self, ReadError> {
        let (mut known, mut counts) = (Self::built_in(), Counts::default());
        let (mut rela, mut rel) = (Stated::new(), Stated::new());
        let totals = source.scan::<4, _>(
            |rows| {
                let mut found = Vec::new();
                while let Some(row) = rows.next_record()? {
                    found.push([KEY, VALUE, TYPE, TEXT].map(|column| row.field(column).to_owned()));
                }
                Ok(found)
            },
            |found| {
                for [key, value, kind, text] in found {
                    match (key.as_str(), kind.as_str()) {
                        ("RELA", "rela_inverse") | ("REL", "rel_inverse")
                            if !value.is_empty() && !text.is_empty() =>
                        {
                            let stated = if key == "REL" { &mut rel } else { &mut rela };
                            *stated.entry((value, text)).or_insert(0) += 1;
                        }
                        ("RELA", "expanded_form") if !value.is_empty() => {
                            if let Some(words) = sensible(&text) {
                                let best = known.words.entry(value).or_insert_with(|| words.clone());
                                // Should there be several, the order of rows must not decide.
                                if words < *best {
                                    *best = words;
                                }
                            }
                            counts.keep();
                        }
                        _ => counts.drop(Reason::OtherKey),
                    }
                }
                Ok(())
            },
        )?;
        known.contradicted = settle(&rela, &mut known.rela, &mut counts);
        known.contradicted.extend(settle(&rel, &mut known.rel, &mut counts));
        let reasons = [Reason::OtherKey, Reason::ContradictedInverse];
        tallies.push(counts.tally(&source.label, &reasons, totals));
        Ok(known)
    }

    /// Tells `builder` which relations are inverses.
    pub(super) fn declare(&self, builder: &mut Builder) {
        for (key, inverse) in self.rela.iter().chain(&self.rel) {
            builder.declare_inverse(key, inverse);
        }
        for (key, inverse) in &self.contradicted {
            builder.note_inverse(key, inverse);
        }
    }

    /// The inverse of a RELA.
    pub(super) fn inverse_rela(&self, rela: &str) -> Option<&str> {
        self.rela.get(rela).map(String::as_str)
    }

    /// The inverse of a REL.
    pub(super) fn inverse_rel(&self, rel: &str) -> Option<&str> {
        self.rel.get(rel).map(String::as_str)
    }

    /// Whether a relation is one of the broad ones (REL), whose inverses are known without MRDOC.
    pub(super) fn is_broad(key: &str) -> bool {
        BROAD.iter().any(|(rel, _, _)| *rel == key)
    }

    /// The words of a relation for an encoder.
    pub(super) fn words(&self, key: &str) -> String {
        let broad = BROAD.iter().find(|(rel, _, _)| *rel == key).map(|(_, _, words)| (*words).to_owned());
        broad.or_else(|| self.words.get(key).cloned()).unwrap_or_else(|| key.replace('_', " "))
    }
}

/// Puts the inverses that nothing contradicts into `known`, both ways, and counts their rows and the others, which it returns.
fn settle(
    stated: &Stated,
    known: &mut BTreeMap<String, String>,
    counts: &mut Counts,
) -> Vec<(String, String)> {
    let mut contradicted = Vec::new();
    let mut partners: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (one, other) in stated.keys() {
        partners.entry(one).or_default().insert(other);
        partners.entry(other).or_default().insert(one);
    }
    let has_one = |key: &String| partners.get(key.as_str()).is_some_and(|found| found.len() == 1);
    for ((one, other), &rows) in stated {
        if has_one(one) && has_one(other) {
            known.insert(one.clone(), other.clone());
            known.insert(other.clone(), one.clone());
            counts.keep_rows(rows);
        } else {
            counts.drop_rows(Reason::ContradictedInverse, rows);
            contradicted.push((one.clone(), other.clone()));
        }
    }
    contradicted
}

/// A documented text as the words of a relation: "May treat" as "may treat".
fn sensible(text: &str) -> Option<String> {
    let text = crate::canon::fold::tidy(text);
    let mut letters = text.chars();
    let (first, second) = (letters.next()?, letters.next());
    if text.chars().count() > LONGEST_WORDS || text.contains([';', '(', ':']) {
        return None;
    }
    // An abbreviation stays as it is.
    let is_word = second.is_none_or(|second| !second.is_uppercase());
    let rest = &text[first.len_utf8()..];
    Some(if is_word { first.to_lowercase().chain(rest.chars()).collect() } else { text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::umls::testing::source;

    const DOC: &str = "\
        RELA|may_treat|expanded_form|May treat|\n\
        RELA|may_treat|rela_inverse|may_be_treated_by|\n\
        RELA|may_be_treated_by|rela_inverse|may_treat|\n\
        RELA|isa|rela_inverse|inverse_isa|\n\
        RELA||rela_inverse||\n\
        RELA|a|rela_inverse|b|\n\
        RELA|b|rela_inverse|c|\n\
        RELA|x|rela_inverse|z|\n\
        RELA|y|rela_inverse|z|\n\
        RELA|long|expanded_form|Something; with an explanation|\n\
        REL|RO|rel_inverse|RO|\n\
        TTY|MH|expanded_form|Main heading|\n";

    #[test]
    fn inverses_hold_both_ways_unless_they_are_contradicted() {
        let mut tallies = Vec::new();
        let doc = Documentation::read(&source("MRDOC.RRF", DOC), &mut tallies).unwrap();
        let tally = &tallies[0];
        let found = ["may_treat", "may_be_treated_by", "isa", "inverse_isa", "a", "b", "c", "x", "z"];
        let wanted = [
            Some("may_be_treated_by"),
            Some("may_treat"),
            Some("inverse_isa"),
            Some("isa"),
            None,
            None,
            None,
            None,
            None,
        ];
        assert_eq!(found.map(|rela| doc.inverse_rela(rela)), wanted);
        assert_eq!(["PAR", "RO", "ZZ"].map(|rel| doc.inverse_rel(rel)), [Some("CHD"), Some("RO"), None]);
        assert_eq!((tally.read, tally.kept), (12, 6));
        assert_eq!((tally.dropped["contradicted_inverse"], tally.dropped["other_key"]), (4, 2));
    }

    #[test]
    fn words_come_from_the_documentation_if_they_are_words() {
        let doc = Documentation::read(&source("MRDOC.RRF", DOC), &mut Vec::new()).unwrap();
        let words = ["may_treat", "isa", "long", "has_part", "RN"].map(|key| doc.words(key));
        assert_eq!(words, ["may treat", "isa", "long", "has part", "narrower than"]);
        assert_eq!(sensible("RxCUI of").as_deref(), Some("rxCUI of"));
        assert_eq!(sensible("MTH relation").as_deref(), Some("MTH relation"));
        assert_eq!(sensible(" "), None);
    }
}
