//! Finds a dictionary's terms in texts.

use std::ops::Range;

use super::dictionary::{Dictionary, TermId};
use super::lexicon::NONE;
use crate::word::Case;
use crate::word::Words;

/// A term where a text has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// Its words, of those of the text.
    pub words: Range<usize>,
    /// Where it stands in the text, in bytes, with the marks behind its last letter; the ends lie between characters.
    pub bytes: Range<usize>,
    /// The term.
    pub term: TermId,
}

/// Finds the terms of a dictionary; keeps its buffers from text to text. What it finds in one does not depend on those before, so that
/// each thread may have its own.
#[derive(Debug, Clone)]
pub struct Tagger<'d> {
    dictionary: &'d Dictionary,
    words: Words,
    /// The words of a text as the dictionary numbers them.
    numbers: Vec<u32>,
}

impl<'d> Tagger<'d> {
    /// Ready to tag texts.
    #[must_use]
    pub fn new(dictionary: &'d Dictionary) -> Self {
        Self { dictionary, words: Words::new(Case::Uncased), numbers: Vec::new() }
    }

    /// Puts the mentions in `text` into `mentions`, which is emptied before: in order, without overlaps, leftmost first and the longest
    /// of those that begin at a word.
    pub fn tag(&mut self, text: &str, mentions: &mut Vec<Mention>) {
        let mut words = std::mem::replace(&mut self.words, Words::new(Case::Uncased));
        words.split(text);
        self.tag_words(text, &words, mentions);
        self.words = words;
    }

    /// As [`Tagger::tag`], where `words` has split `text` already; it must be one of [`Case::Uncased`].
    pub fn tag_words(&mut self, text: &str, words: &Words, mentions: &mut Vec<Mention>) {
        mentions.clear();
        self.number(words);
        self.tag_range(text, words, 0..self.numbers.len(), mentions);
    }

    /// As [`Tagger::tag_words`], in each of `ranges` of the words by itself: none of the mentions leaves one. Ranges are in order and do not overlap.
    pub fn tag_ranges(
        &mut self,
        text: &str,
        words: &Words,
        ranges: impl Iterator<Item = Range<usize>>,
        mentions: &mut Vec<Mention>,
    ) {
        mentions.clear();
        self.number(words);
        ranges.for_each(|range| self.tag_range(text, words, range, mentions));
    }

    fn number(&mut self, words: &Words) {
        let lexicon = &self.dictionary.lexicon;
        self.numbers.clear();
        self.numbers.extend(words.iter().map(|word| lexicon.find(word.letters)));
    }

    fn tag_range(&self, text: &str, words: &Words, range: Range<usize>, mentions: &mut Vec<Mention>) {
        let mut at = range.start;
        while at < range.end {
            let found = self.longest(text, words, at..range.end);
            let next = found.as_ref().map_or(at + 1, |mention| mention.words.end);
            mentions.extend(found);
            at = next;
        }
    }

    /// The term that `text` is as a whole.
    pub fn whole(&mut self, text: &str) -> Option<TermId> {
        let mut mentions = Vec::new();
        self.tag(text, &mut mentions);
        let words = self.numbers.len();
        mentions.first().filter(|only| only.words == (0..words)).map(|only| only.term)
    }

    /// The longest term that begins with the first word of `within` and does not leave it.
    #[inline]
    fn longest(&self, text: &str, words: &Words, within: Range<usize>) -> Option<Mention> {
        let Dictionary { trie, possessive, .. } = self.dictionary;
        let at = within.start;
        let numbers = &self.numbers[..within.end];
        let mut number = trie.begin(*numbers.get(at)?);
        let mut longest = None;
        let mut end = at + 1;
        while let Some(node) = trie.get(number) {
            if node.upper_case != NONE && is_upper_case(text, words, at..end) {
                longest = Some((end, node.upper_case));
            } else if node.any_case != NONE {
                longest = Some((end, node.any_case));
            }
            let mut rest = numbers.get(end..).unwrap_or_default();
            while possessive.begins(rest) {
                rest = &rest[2..];
            }
            let Some(&word) = rest.first() else { break };
            number = trie.step(number, node, word);
            end = numbers.len() - rest.len() + 1;
        }
        let (end, term) = longest?;
        Some(Mention { words: at..end, bytes: bytes(words, &(at..end))?, term: TermId(term) })
    }
}

/// Where words stand.
pub(super) fn bytes(words: &Words, range: &Range<usize>) -> Option<Range<usize>> {
    let (first, last) = (words.get(range.start)?, words.get(range.end.checked_sub(1)?)?);
    Some(first.bytes.start..last.bytes.end)
}

/// Whether the words are written without a letter in lower case: since they are those of a term in upper case but for case, they are
/// then written as the term is.
fn is_upper_case(text: &str, words: &Words, range: Range<usize>) -> bool {
    let written = bytes(words, &range).and_then(|bytes| text.get(bytes));
    written.is_some_and(|written| !written.chars().any(char::is_lowercase))
}

#[cfg(test)]
mod tests {
    use daachorse::{DoubleArrayAhoCorasickBuilder, MatchKind};
    use kg::table::EntityId;

    use super::super::dictionary::Entry;
    use super::super::filters::{Filters, Possessives};
    use super::*;
    use base::rng::RngKey;

    fn dictionary(terms: &[&str], filters: &Filters) -> Dictionary {
        let entry = |(text, entity)| Entry { text, entity: EntityId(entity), types: &[] };
        Dictionary::build(terms.iter().copied().zip(0..).map(entry), filters).unwrap()
    }

    /// What is found: the text of each mention, and the first entity.
    fn found<'t>(dictionary: &Dictionary, text: &'t str) -> Vec<(&'t str, u32)> {
        let mut mentions = Vec::new();
        Tagger::new(dictionary).tag(text, &mut mentions);
        mentions.iter().map(|m| (&text[m.bytes.clone()], dictionary.entities(m.term)[0].0)).collect()
    }

    #[test]
    fn mentions_are_leftmost_longest_and_of_whole_words() {
        let terms =
            ["heart", "heart failure", "heart failure with oedema of", "failure", "art", "Ménière's disease"];
        let dictionary = dictionary(&terms, &Filters::as_written());
        let text = "Heart-failure: HEART  FAILURE with oedema, hearts, Me\u{301}niere's Disease; heart";
        assert_eq!(
            found(&dictionary, text),
            [
                ("Heart", 0),
                ("failure", 3),
                ("HEART  FAILURE", 1),
                ("Me\u{301}niere's Disease", 5),
                ("heart", 0)
            ]
        );
        assert_eq!(found(&dictionary, ""), []);
    }

    #[test]
    fn short_terms_in_upper_case_are_found_in_upper_case_alone() {
        let filters = Filters { upper_case: Some(4), ..Filters::as_written() };
        let dictionary = dictionary(&["ALL", "HIV-1", "ms", "MS", "all of it"], &filters);
        let text = "All of ALL, all HIV-1 and hiv-1; MS, Ms, ALL OF IT.";
        let expected = [("ALL", 0), ("HIV-1", 1), ("MS", 3), ("Ms", 2), ("ALL OF IT", 4)];
        assert_eq!(found(&dictionary, text), expected);
    }

    #[test]
    fn possessives_are_passed_over_in_terms_and_texts() {
        let filters = Filters { possessives: Possessives::Drop, ..Filters::as_written() };
        let terms = [
            "Parkinson Disease",
            "Crohn's Disease",
            "Crohn's",
            "'s Gravenhage",
            "5'-nucleotidase",
            "Bell's palsy",
        ];
        let text = "Parkinson's disease, Parkinson disease. Crohn’s disease; Crohn disease, Crohn's: 's Gravenhage 5'-nucleotidase palsy s";
        let expected = [
            ("Parkinson's disease", 0),
            ("Parkinson disease", 0),
            ("Crohn’s disease", 1),
            ("Crohn disease", 1),
            ("Crohn", 2),
            ("'s Gravenhage", 3),
            ("5'-nucleotidase", 4),
        ];
        assert_eq!(found(&dictionary(&terms, &filters), text), expected);
        assert_eq!(found(&dictionary(&["a b"], &filters), "a's's b"), [("a's's b", 0)]);
        let kept = Filters { possessives: Possessives::Keep, ..filters };
        assert_eq!(
            found(&dictionary(&terms, &kept), "Parkinson's disease, Crohn's disease"),
            [("Crohn's disease", 1)]
        );
    }

    #[test]
    fn words_split_before_give_the_same_and_nothing_is_left_of_the_text_before() {
        let dictionary = dictionary(&["b c", "a"], &Filters::as_written());
        let mut tagger = Tagger::new(&dictionary);
        let (mut mentions, mut again, mut words) = (Vec::new(), Vec::new(), Words::new(Case::Uncased));
        for text in ["a b c a", "b", "x c b c", ""] {
            tagger.tag(text, &mut mentions);
            words.split(text);
            Tagger::new(&dictionary).tag_words(text, &words, &mut again);
            assert_eq!(mentions, again);
            assert!(mentions.iter().all(|m| words.get(m.words.start).unwrap().bytes.start == m.bytes.start));
        }
        tagger.tag("x B C", &mut mentions);
        assert_eq!(mentions, [Mention { words: 1..3, bytes: 2..5, term: TermId(0) }]);
    }

    /// Terms and texts of so few words that terms overlap in all ways, against an independent automaton.
    #[test]
    fn an_aho_corasick_automaton_finds_the_same() {
        let mut seed = 0;
        let mut draw = |bound| {
            seed += 1;
            usize::try_from(RngKey::new(5).at(seed).below(bound)).unwrap()
        };
        let alphabet = ["a", "b", "ab", "longer-word", "longest"];
        for _ in 0..200 {
            let mut sentence = |length: usize| {
                let words: Vec<&str> = (0..length).map(|_| alphabet[draw(alphabet.len() as u64)]).collect();
                words.join(" ")
            };
            let mut terms: Vec<String> = (0..12).map(|n| sentence(1 + n % 5)).collect();
            terms.sort();
            terms.dedup();
            let text = sentence(300);
            // A separator in front of every word and behind the last keeps the automaton at the bounds of words; a word's
            // separator belongs to one term alone.
            let joined = |text: &str| text.replace('-', " - ").replace(' ', "|") + "|";
            let patterns: Vec<String> = terms.iter().map(|term| joined(term)).collect();
            let automaton = DoubleArrayAhoCorasickBuilder::new()
                .match_kind(MatchKind::LeftmostLongest)
                .build::<_, _, u32>(&patterns)
                .unwrap();
            let haystack = joined(&text);
            let mut expected = Vec::new();
            // A match in the middle of a word would hide others, so it is looked for at the bounds of words only.
            let mut at = 0;
            while at < haystack.len() {
                let best = automaton.leftmost_find_iter(&haystack[at..]).next().filter(|m| m.start() == 0);
                let step = haystack[at..].find('|').unwrap() + 1;
                expected.extend(best.as_ref().map(|m| m.value()));
                at += best.map_or(step, |m| m.end());
            }
            let terms: Vec<&str> = terms.iter().map(String::as_str).collect();
            let entities: Vec<u32> = found(&dictionary(&terms, &Filters::as_written()), &text)
                .iter()
                .map(|(_, entity)| *entity)
                .collect();
            assert_eq!(entities, expected);
            assert!(entities.len() > 20);
        }
    }
}
