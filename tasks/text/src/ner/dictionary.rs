//! The terms of a graph as a tagger looks for them, and what became of those that it does not look for.

use std::collections::BTreeMap;

use base::setting::InvalidSetting;
use kg::table::{EntityId, SemanticType};
use serde::Serialize;

use super::draft::Draft;
use super::filters::{Filters, Possessives};
use super::lexicon::{Lexicon, NONE};
use super::possessive::Possessive;
use super::trie::Trie;

/// Why a spelling of a term is not looked for; the first that applies.
const REASONS: [&str; 9] = [
    "semantic_type",
    "no_words",
    "too_many_words",
    "too_few_letters",
    "numbers_only",
    "stop_words",
    "repeated",
    "another_term",
    "ambiguous",
];

/// A term of an entity.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The term as its source writes it.
    pub text: &'a str,
    /// What it names.
    pub entity: EntityId,
    /// The semantic types of the entity.
    pub types: &'a [SemanticType],
}

/// Number of a term in its dictionary: one sequence of words, in any case or in upper case alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TermId(pub u32);

impl TermId {
    /// The id as a place in a slice.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Why no dictionary can be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A filter that nothing passes.
    #[error(transparent)]
    InvalidSetting(#[from] InvalidSetting),
    /// More than ids can number.
    #[error("the dictionary has more than {NONE} {0}; drop terms by semantic type or by max_words")]
    TooMany(&'static str),
}

/// What became of spellings, each with its entity. `read` = the sum of `dropped` + `kept`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Spellings offered.
    pub read: u64,
    /// Spellings that are not looked for, by the first reason that applied; all reasons are listed, also those with 0. `repeated`: the
    /// same words were offered for the same entity before. `another_term`: they are a term that is written so, or is nearer to it.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Spellings that are looked for.
    pub kept: u64,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self { read: 0, dropped: REASONS.iter().map(|&reason| (reason, 0)).collect(), kept: 0 }
    }

    /// How many were dropped for each reason, as a sentence has it.
    #[must_use]
    pub fn told(&self) -> String {
        let dropped = self.dropped.iter().filter(|(_, count)| **count > 0);
        dropped.map(|(why, count)| format!("{why} {count}")).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn drop(&mut self, reason: &'static str) {
        *self.dropped.entry(reason).or_insert(0) += 1;
    }
}

/// What became of terms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Terms as they are written.
    pub written: Tally,
    /// Inverted terms put right ([`super::filters::Inverted`]).
    pub turned: Tally,
    /// Terms in the other number ([`super::filters::Plurals`]).
    pub other_number: Tally,
    /// Terms looked for, all spellings counted.
    pub terms: u64,
    /// Entities with a term that is looked for.
    pub entities: u64,
    /// Types that [`Filters::types`] names and no entity with a term has.
    #[serde(skip)]
    pub unknown_types: Vec<String>,
}

/// Terms, and which entities each names.
#[derive(Debug, Clone)]
pub struct Dictionary {
    pub(super) lexicon: Lexicon,
    pub(super) trie: Trie,
    pub(super) possessive: Possessive,
    pub(super) entities: Vec<EntityId>,
    pub(super) entity_ends: Vec<usize>,
    pub(super) texts: String,
    pub(super) text_ends: Vec<usize>,
    pub(super) report: Report,
}

impl Dictionary {
    /// Takes the terms that pass `filters`. Numbers of terms depend on the order of `entries`; nothing else does.
    ///
    /// # Errors
    /// When nothing can pass the filters, or there are 2^32 words or terms.
    pub fn build<'a>(entries: impl IntoIterator<Item = Entry<'a>>, filters: &Filters) -> Result<Self, Error> {
        filters.check()?;
        let mut draft = Draft::new(filters);
        for entry in entries {
            draft.take(&entry)?;
        }
        draft.finish()
    }

    /// Number of terms.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entity_ends.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entity_ends.is_empty()
    }

    /// The entities that a term names, by id; none for a term of another dictionary.
    #[must_use]
    pub fn entities(&self, term: TermId) -> &[EntityId] {
        slice(&self.entity_ends, term).and_then(|range| self.entities.get(range)).unwrap_or_default()
    }

    /// The words of a term as they are compared, with spaces between.
    #[must_use]
    pub fn text(&self, term: TermId) -> &str {
        slice(&self.text_ends, term).and_then(|range| self.texts.get(range)).unwrap_or_default()
    }

    /// The terms that are looked for in any case, in no particular order.
    pub fn in_any_case(&self) -> impl Iterator<Item = TermId> + '_ {
        self.trie.nodes().map(|node| node.any_case).filter(|&term| term != NONE).map(TermId)
    }

    /// Whether `'s` behind a word is skipped.
    #[must_use]
    pub fn possessives(&self) -> Possessives {
        self.possessive.setting()
    }

    /// What became of the terms.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }
}

fn slice(ends: &[usize], term: TermId) -> Option<std::ops::Range<usize>> {
    let end = *ends.get(term.index())?;
    let start = term.index().checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    Some(start..end)
}

#[cfg(test)]
mod tests {
    use super::super::filters::{Ambiguous, Inverted, Numbers, Plurals, StopWords, Types};
    use super::*;

    fn build(terms: &[(&str, u32)], filters: &Filters) -> Dictionary {
        let entry = |&(text, entity)| Entry { text, entity: EntityId(entity), types: &[] };
        Dictionary::build(terms.iter().map(entry), filters).unwrap()
    }

    /// Every term with its entities, in order of its words.
    fn all(dictionary: &Dictionary) -> Vec<(String, Vec<u32>)> {
        let term = |term| {
            let ids = dictionary.entities(term).iter().map(|entity| entity.0).collect();
            (dictionary.text(term).to_owned(), ids)
        };
        let mut all: Vec<_> =
            (0..u32::try_from(dictionary.len()).unwrap()).map(|i| term(TermId(i))).collect();
        all.sort();
        for tally in [&dictionary.report.written, &dictionary.report.turned, &dictionary.report.other_number]
        {
            assert_eq!(tally.read, tally.kept + tally.dropped.values().sum::<u64>());
        }
        assert_eq!(dictionary.report.terms, all.len() as u64);
        all
    }

    fn named(terms: &[(&str, &[u32])]) -> Vec<(String, Vec<u32>)> {
        terms.iter().map(|(text, ids)| ((*text).to_owned(), ids.to_vec())).collect()
    }

    #[test]
    fn spellings_of_the_same_words_are_one_term_of_all_their_entities() {
        let terms = [("Heart Attack", 3), ("heart  attack", 1), ("HEART ATTACK", 3), ("Ménière", 2)];
        let dictionary = build(&terms, &Filters::as_written());
        assert_eq!(all(&dictionary), named(&[("heart attack", &[1, 3]), ("meniere", &[2])]));
        assert_eq!((dictionary.report().written.dropped["repeated"], dictionary.report().entities), (1, 3));
        let backwards: Vec<_> = terms.iter().rev().copied().collect();
        assert_eq!(all(&build(&backwards, &Filters::as_written())), all(&dictionary));
        assert_eq!(dictionary.entities(TermId(2)), []);
        assert_eq!(dictionary.text(TermId(2)), "");
        assert!(!dictionary.is_empty() && build(&[], &Filters::as_written()).is_empty());
    }

    #[test]
    fn what_is_dropped_is_counted_under_its_reason() {
        let filters = Filters {
            min_letters: 2,
            max_words: 3,
            numbers: Numbers::Drop,
            stop_words: StopWords::English,
            common_words: vec!["Disease".into()],
            ..Filters::as_written()
        };
        let terms = [
            ("of the", 0),
            ("The disease 2", 1),
            ("heart disease", 2),
            ("\u{0}", 3),
            ("I", 4),
            ("12.5", 5),
            ("1 2 3 4", 6),
            ("vitamin A", 7),
        ];
        let dictionary = build(&terms, &filters);
        assert_eq!(all(&dictionary), named(&[("heart disease", &[2]), ("vitamin a", &[7])]));
        let dropped = &dictionary.report().written.dropped;
        assert_eq!((dropped["stop_words"], dropped["no_words"], dropped["too_few_letters"]), (2, 1, 1));
        assert_eq!((dropped["numbers_only"], dropped["too_many_words"], dropped["ambiguous"]), (1, 1, 0));
    }

    #[test]
    fn types_choose_the_entities() {
        let finding = [SemanticType { code: Some("T184".into()), name: "Sign or Symptom".into() }];
        let entries = [
            Entry { text: "fever", entity: EntityId(0), types: &finding },
            Entry { text: "aspirin", entity: EntityId(1), types: &[] },
        ];
        let filters = Filters { types: Types::Only(vec!["T184".into()]), ..Filters::as_written() };
        let dictionary = Dictionary::build(entries, &filters).unwrap();
        assert_eq!(all(&dictionary), named(&[("fever", &[0])]));
        assert_eq!(dictionary.report().written.dropped["semantic_type"], 1);
        assert!(dictionary.report().unknown_types.is_empty());
        // A name in another spelling among others.
        for types in [Types::Only as fn(Vec<String>) -> Types, Types::AllBut] {
            let types = types(vec!["T184".into(), "Pharmacologic substance".into()]);
            let dictionary = Dictionary::build(entries, &Filters { types, ..Filters::as_written() }).unwrap();
            assert_eq!(dictionary.report().unknown_types, ["Pharmacologic substance"]);
        }
    }

    #[test]
    fn ambiguous_terms_are_kept_cut_or_dropped() {
        let terms = [("cold", 2), ("cold", 1), ("cold", 0), ("flu", 1), ("flu", 2), ("pox", 3)];
        let with = |ambiguous| build(&terms, &Filters { ambiguous, ..Filters::as_written() });
        let pox: (&str, &[u32]) = ("pox", &[3]);
        assert_eq!(all(&with(Ambiguous::Keep)), named(&[("cold", &[0, 1, 2]), ("flu", &[1, 2]), pox]));
        assert_eq!(all(&with(Ambiguous::First(1))), named(&[("cold", &[0]), ("flu", &[1]), pox]));
        let dropped = with(Ambiguous::Drop(2));
        assert_eq!(all(&dropped), named(&[("flu", &[1, 2]), pox]));
        assert_eq!(dropped.report().written.dropped["ambiguous"], 3);
        assert_eq!(dropped.report().entities, 3);
        assert_eq!(with(Ambiguous::First(1)).report().written.dropped["ambiguous"], 3);
    }

    #[test]
    fn other_spellings_are_added_unless_they_are_terms_themselves() {
        let filters = Filters { plurals: Plurals::Both, inverted: Inverted::Both, ..Filters::as_written() };
        let terms = [("Fractures, Hip", 0), ("hip fracture", 1), ("burns", 2), ("Crossing over", 3)];
        let dictionary = build(&terms, &filters);
        let expected: [(&str, &[u32]); 7] = [
            ("burn", &[2]),
            ("burns", &[2]),
            ("crossing over", &[3]),
            ("crossing overs", &[3]),
            ("fractures , hip", &[0]),
            ("hip fracture", &[1]),
            // Put right is nearer than in the other number.
            ("hip fractures", &[0]),
        ];
        assert_eq!(all(&dictionary), named(&expected));
        let report = dictionary.report();
        assert_eq!((report.turned.read, report.turned.kept), (1, 1));
        assert_eq!((report.other_number.read, report.other_number.dropped["another_term"]), (4, 2));
    }

    #[test]
    fn short_terms_in_upper_case_are_terms_of_their_own() {
        let filters = Filters {
            upper_case: Some(4),
            stop_words: StopWords::English,
            plurals: Plurals::Both,
            ..Filters::as_written()
        };
        let terms = [("ALL", 0), ("Aid", 1), ("AIDS", 2), ("FEVER", 3), ("HIV-1", 4), ("all", 5)];
        let dictionary = build(&terms, &filters);
        assert_eq!(
            all(&dictionary),
            named(&[("aid", &[1]), ("aids", &[2]), ("all", &[0]), ("fever", &[3]), ("hiv - 1", &[4])])
        );
        let kept = Filters { stop_words: StopWords::None, ..filters };
        assert_eq!(all(&build(&[("ALL", 0), ("all", 5)], &kept)), named(&[("all", &[0]), ("all", &[5])]));
    }

    #[test]
    fn filters_that_nothing_passes_are_refused() {
        let filters = Filters { max_words: 0, ..Filters::as_written() };
        assert!(matches!(Dictionary::build([], &filters), Err(Error::InvalidSetting(_))));
    }
}
