//! Terms that are written nearly so: those that share most of their trigrams with words of a text.
//!
//! As in QuickUMLS (Soldaini and Goharian 2016), a window of words names a term when the Jaccard index of their sets of three characters that
//! follow one another reaches a threshold. Windows and terms are compared as dictionaries spell words, with spaces between. What is found is all that
//! there is: sets whose index reaches the threshold share one of their few rarest members (prefix filtering), so that only terms
//! that do are compared.

mod trigrams;
mod windows;

use std::ops::Range;

use base::setting::InvalidSetting;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use self::trigrams::{Known, Trigrams};
pub(super) use self::windows::{NearWords, Windows, nears};
use super::dictionary::{Dictionary, Error, TermId};
use super::filters::Possessives;
use super::stop_words;

/// Which words may stand for a term that is written otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Near {
    /// The least share of common trigrams among all trigrams of words and term (Jaccard index), above 0, at most 1.
    ///
    /// Source: ours: lower ones find little more in BC5CDR, and more often something else (docs/benchmarks.md).
    pub threshold: f32,
    /// Minimum letters and digits of words and terms that are compared; short ones differ by too little.
    ///
    /// Source: ours: because names of five letters and less differ from others by one.
    pub min_letters: usize,
    /// Maximum words that are compared with terms, from 1; every punctuation mark is a word.
    ///
    /// Source: ours: because longer names that are misspelled are rare, and each word more is as many comparisons.
    pub max_words: usize,
}

impl Default for Near {
    fn default() -> Self {
        Self { threshold: 0.8, min_letters: 6, max_words: 6 }
    }
}

impl Near {
    /// Whether every setting is in its range.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        if !(self.threshold > 0.0 && self.threshold <= 1.0) {
            return Err(InvalidSetting::new("threshold", self.threshold, "above 0 and at most 1"));
        }
        if !(1..=MOST_WORDS).contains(&self.max_words) {
            return Err(InvalidSetting::new("max_words", self.max_words, "from 1 to 32"));
        }
        Ok(())
    }
}

/// More words than any name has that could be told from another by its trigrams.
const MOST_WORDS: usize = 32;

/// The terms of a dictionary by their trigrams.
#[derive(Debug, Clone)]
pub struct Approximate {
    settings: Near,
    possessives: Possessives,
    known: Known,
    /// The trigrams of each term that is compared, rarest first.
    trigrams: Vec<u32>,
    ends: Vec<u32>,
    terms: Vec<TermId>,
    /// Of each term, what tells most of those apart that are not near.
    marks: Vec<Mark>,
    /// By number of trigrams, how many terms have fewer.
    fewer: Vec<u32>,
    /// By trigram, the places in `terms` of those that have it among their rarest, those with the fewest trigrams first.
    postings: Vec<u32>,
    posting_ends: Vec<u32>,
}

/// Words that terms are looked for to.
#[derive(Debug, Clone, Copy)]
struct Wanted<'w> {
    /// Their trigrams that any term has, rarest first.
    trigrams: &'w [u32],
    /// How many others they have.
    unknown: usize,
    /// Which of them must be the same.
    telling: u64,
}

/// What tells most terms apart that are not near, without a look at their trigrams.
#[derive(Debug, Clone, Copy)]
struct Mark {
    /// A bit for each trigram, the same one for several.
    bits: u128,
    /// The words that must be the same.
    telling: u64,
}

/// A term that is near to words, and how near.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// The term.
    pub term: TermId,
    /// The Jaccard index, above 0, at most 1.
    pub score: f32,
}

impl Approximate {
    /// The terms of `dictionary` that may be written otherwise: not those that are looked for in upper case alone.
    ///
    /// # Errors
    /// When a setting is out of its range, or there are 2^32 trigrams.
    pub fn new(dictionary: &Dictionary, settings: Near) -> Result<Self, Error> {
        settings.check()?;
        let mut known = Trigrams::default();
        let terms: Vec<TermId> = dictionary
            .in_any_case()
            .filter(|&term| compared(dictionary.text(term), settings.min_letters))
            .collect();
        for &term in &terms {
            known.count(dictionary.text(term));
        }
        let known = known.ranked();
        let mut all: Vec<(u32, TermId)> = Vec::with_capacity(terms.len());
        let mut set = Vec::new();
        for term in terms {
            known.of(dictionary.text(term), &mut set);
            all.push((number(set.len())?, term));
        }
        // Places ascend with the number of trigrams, and so do postings.
        all.sort_unstable();
        let terms: Vec<TermId> = all.into_iter().map(|(_, term)| term).collect();
        let mut index = Self {
            settings,
            possessives: dictionary.possessives(),
            known,
            trigrams: Vec::new(),
            ends: Vec::with_capacity(terms.len()),
            marks: Vec::with_capacity(terms.len()),
            fewer: Vec::new(),
            terms,
            postings: Vec::new(),
            posting_ends: Vec::new(),
        };
        for &term in &index.terms {
            index.known.of(dictionary.text(term), &mut set);
            index.trigrams.extend_from_slice(&set);
            index.ends.push(number(index.trigrams.len())?);
            index.marks.push(Mark { bits: bits(&set), telling: telling(dictionary.text(term).split(' ')) });
        }
        for place in 0..index.terms.len() {
            let size = index.set(place).len();
            index.fewer.resize(index.fewer.len().max(size + 1), number(place)?);
        }
        index.post()?;
        Ok(index)
    }

    /// Lists the terms under their rarest trigrams.
    fn post(&mut self) -> Result<(), Error> {
        let mut counts = vec![0_u32; self.known.len()];
        for place in 0..self.terms.len() {
            for &trigram in self.rarest(place) {
                counts[trigram as usize] += 1;
            }
        }
        let mut end = 0_usize;
        let mut starts = Vec::with_capacity(counts.len());
        for count in &counts {
            starts.push(end);
            end += *count as usize;
            self.posting_ends.push(number(end)?);
        }
        let mut postings = vec![0; end];
        for place in 0..self.terms.len() {
            for &trigram in self.rarest(place) {
                let next = &mut starts[trigram as usize];
                postings[*next] = number(place)?;
                *next += 1;
            }
        }
        self.postings = postings;
        Ok(())
    }

    fn set(&self, place: usize) -> &[u32] {
        range(&self.ends, place).and_then(|range| self.trigrams.get(range)).unwrap_or_default()
    }

    /// The trigrams of a term of which words that are near enough have one among their own rarest.
    fn rarest(&self, place: usize) -> &[u32] {
        let set = self.set(place);
        &set[..self.reach(set.len())]
    }

    /// How many of the rarest of so many trigrams must be looked at: were none of them shared, too few would be left.
    fn reach(&self, trigrams: usize) -> usize {
        let shared = up(self.least() * trigrams as f64).max(1);
        (trigrams + 1).saturating_sub(shared).min(trigrams)
    }

    /// The threshold, a little below: what reaches it exactly may miss it by rounding.
    fn least(&self) -> f64 {
        f64::from(self.settings.threshold) * (1.0 - 1e-6)
    }

    fn listed(&self, trigram: u32) -> &[u32] {
        range(&self.posting_ends, trigram as usize)
            .and_then(|range| self.postings.get(range))
            .unwrap_or_default()
    }

    /// The terms that are near enough to `wanted`, those with the highest scores first, then by number. `found` is emptied before.
    fn near(&self, wanted: &Wanted<'_>, found: &mut Vec<Neighbour>) {
        found.clear();
        let Wanted { trigrams, unknown, telling } = *wanted;
        let size = trigrams.len() + unknown;
        // Those that no term has are the rarest of all.
        let Some(reach) = self.reach(size).checked_sub(unknown) else { return };
        let (fewest, most) = self.sizes(size);
        let places = self.smaller_than(fewest)..self.smaller_than(most.saturating_add(1));
        let bits = bits(trigrams);
        for (at, &trigram) in trigrams.iter().enumerate().take(reach) {
            let listed = self.listed(trigram);
            let first = listed.partition_point(|&place| place < places.start);
            for &place in listed[first..].iter().take_while(|&&place| place < places.end) {
                let mark = self.marks[place as usize];
                let set = self.set(place as usize);
                // So many at least are in one of the two sets alone; those that no term has are, too.
                let apart = (bits ^ mark.bits).count_ones() as usize + unknown;
                if mark.telling != telling || self.is_too_far(apart, size + set.len()) {
                    continue;
                }
                // Found under an earlier one already, if they share one.
                let rarest = self.rarest(place as usize);
                if trigrams[..at].iter().any(|earlier| rarest.contains(earlier)) {
                    continue;
                }
                let shared = shared(trigrams, set);
                let score = shared as f64 / (size + set.len() - shared) as f64;
                if score >= self.least() {
                    #[allow(clippy::cast_possible_truncation, reason = "a share")]
                    let score = score as f32;
                    found.push(Neighbour { term: self.terms[place as usize], score });
                }
            }
        }
        found.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.term.cmp(&b.term)));
    }

    /// Whether two sets of so many together share too few where so many are in one of them alone: with `s` shared ones and `d` others the index is `s / (s + d)`,
    /// and they have `2 s + d` together.
    fn is_too_far(&self, apart: usize, together: usize) -> bool {
        let shared = (together as f64 - apart as f64) / 2.0;
        shared < self.least() * (shared + apart as f64)
    }

    /// How many terms have fewer trigrams than that; places ascend with them.
    fn smaller_than(&self, trigrams: usize) -> u32 {
        let all = u32::try_from(self.terms.len()).unwrap_or(u32::MAX);
        self.fewer.get(trigrams).copied().unwrap_or(all)
    }

    /// The fewest and the most trigrams that a term near to so many can have.
    fn sizes(&self, size: usize) -> (usize, usize) {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
        let most = (size as f64 / self.least()) as usize;
        (up(self.least() * size as f64), most)
    }
}

/// The next whole number.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of trigrams")]
fn up(share: f64) -> usize {
    share.ceil() as usize
}

/// A bit for each of a set of trigrams.
fn bits(trigrams: &[u32]) -> u128 {
    trigrams.iter().fold(0, |bits, trigram| bits | 1 << (trigram % u128::BITS))
}

/// How many members two ascending lists share.
fn shared(one: &[u32], other: &[u32]) -> usize {
    let (mut a, mut b, mut both) = (0, 0, 0);
    while let (Some(x), Some(y)) = (one.get(a), other.get(b)) {
        match x.cmp(y) {
            std::cmp::Ordering::Less => a += 1,
            std::cmp::Ordering::Greater => b += 1,
            std::cmp::Ordering::Equal => {
                both += 1;
                a += 1;
                b += 1;
            }
        }
    }
    both
}

fn range(ends: &[u32], place: usize) -> Option<Range<usize>> {
    let end = *ends.get(place)? as usize;
    let start = place.checked_sub(1).and_then(|before| ends.get(before)).map_or(0, |&end| end as usize);
    Some(start..end)
}

fn number(count: usize) -> Result<u32, Error> {
    u32::try_from(count).map_err(|_| Error::TooMany("trigrams of terms"))
}

/// What the words that tell names of one kind apart come to, in whatever order they stand: numbers and single letters (`type 1 diabetes`, `hepatitis B`).
fn telling<'w>(words: impl Iterator<Item = &'w str>) -> u64 {
    let is_single = |word: &str| {
        let mut characters = word.chars();
        characters.next().is_some_and(char::is_alphabetic) && characters.next().is_none()
    };
    let hash = |word: &str| xxh3_64(word.as_bytes());
    let tells = words.filter(|word| is_single(word) || word.chars().any(char::is_numeric));
    tells.fold(0, |sum, word| sum.wrapping_add(hash(word)))
}

/// Whether a term has enough letters to be told from others, and does not begin or end with a function word as no window of words does.
fn compared(text: &str, min_letters: usize) -> bool {
    let ends = |word: Option<&str>| word.is_some_and(stop_words::is_english);
    let mut words = text.split(' ');
    text.chars().filter(|c| c.is_alphanumeric()).take(min_letters).count() == min_letters
        && !ends(words.next())
        && !ends(words.next_back())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use base::rng::RngKey;
    use kg::table::EntityId;

    use super::super::dictionary::Entry;
    use super::super::filters::Filters;
    use super::*;
    use crate::word::{Case, Words};

    fn dictionary(terms: &[String]) -> Dictionary {
        let entry = |(text, id): (&String, u32)| (text.clone(), EntityId(id));
        let entries: Vec<_> = terms.iter().zip(0..).map(entry).collect();
        let entries = entries.iter().map(|(text, entity)| Entry { text, entity: *entity, types: &[] });
        Dictionary::build(entries, &Filters::as_written()).unwrap()
    }

    /// Words of the text that are near to terms: the words, the term, and its score in hundredths.
    fn found(dictionary: &Dictionary, near: Near, text: &str) -> BTreeSet<(String, String, u32)> {
        let index = Approximate::new(dictionary, near).unwrap();
        let mut words = Words::new(Case::Uncased);
        words.split(text);
        let (mut windows, mut all) = (Windows::default(), Vec::new());
        let whole = 0..words.len();
        nears(&mut windows, &words, std::slice::from_ref(&whole), &index, &mut all);
        let mut found = BTreeSet::new();
        for near in all {
            let letters: Vec<_> = near.words.map(|word| words.get(word).unwrap().letters).collect();
            for Neighbour { term, score } in near.neighbours {
                let hundredths = format!("{:.0}", score * 100.0).parse().unwrap();
                assert!(found.insert((letters.join(" "), dictionary.text(term).to_owned(), hundredths)));
            }
        }
        found
    }

    /// The same by comparing all words with all terms.
    fn compared_with_all(terms: &[String], near: Near, text: &str) -> BTreeSet<(String, String, u32)> {
        let words: Vec<&str> = text.split(' ').collect();
        let set = |text: &str| -> BTreeSet<Vec<char>> {
            text.chars().collect::<Vec<_>>().windows(3).map(<[char]>::to_vec).collect()
        };
        let mut found = BTreeSet::new();
        for start in 0..words.len() {
            for end in start + 1..=words.len().min(start + near.max_words) {
                let window = words[start..end].join(" ");
                for term in terms.iter().filter(|term| compared(term, near.min_letters)) {
                    let (one, other) = (set(&window), set(term));
                    let shared = one.intersection(&other).count();
                    let score = shared as f64 / one.union(&other).count() as f64;
                    let same = telling(window.split(' ')) == telling(term.split(' '));
                    let long = window.chars().filter(|c| *c != ' ').count() >= near.min_letters;
                    if score >= f64::from(near.threshold) - 1e-6 && same && long {
                        let hundredths = format!("{:.0}", score * 100.0).parse().unwrap();
                        found.insert((window.clone(), term.clone(), hundredths));
                    }
                }
            }
        }
        found
    }

    #[test]
    fn all_that_reach_the_threshold_are_found_and_no_others() {
        let draw = RngKey::new(3);
        let mut number = 0;
        let mut below = |bound: u64| {
            number += 1;
            usize::try_from(draw.at(number).below(bound)).unwrap()
        };
        let word = |below: &mut dyn FnMut(u64) -> usize| -> String {
            (0..3 + below(12)).map(|_| char::from(b'p' + u8::try_from(below(4)).unwrap())).collect()
        };
        let mut seen = 0;
        for threshold in [0.3, 0.5, 0.6, 0.7, 0.8, 1.0] {
            let mut terms: Vec<String> = (0..300)
                .map(|_| (0..1 + below(3)).map(|_| word(&mut below)).collect::<Vec<_>>().join(" "))
                .collect();
            terms.sort();
            terms.dedup();
            let near = Near { threshold, min_letters: 4, max_words: 3 };
            let dictionary = dictionary(&terms);
            for _ in 0..20 {
                let mut text = terms[below(terms.len() as u64)].clone();
                text.replace_range(1..2, "q");
                text = format!("{} {text} {}", word(&mut below), word(&mut below));
                let expected = compared_with_all(&terms, near, &text);
                seen += expected.len();
                assert_eq!(found(&dictionary, near, &text), expected, "{text:?} at {threshold}");
            }
        }
        assert!(seen > 100, "{seen}");
    }

    #[test]
    fn misspelled_names_are_near_and_numbers_must_be_the_same() {
        let terms = ["hyperthyroidism", "type 1 diabetes mellitus", "hepatitis b", "of the liver", "ache"];
        let dictionary = dictionary(&terms.map(str::to_owned));
        let near = Near { threshold: 0.7, ..Near::default() };
        let names = |text: &str| -> Vec<String> {
            found(&dictionary, near, text)
                .into_iter()
                .map(|(words, term, _)| format!("{words}={term}"))
                .collect()
        };
        assert_eq!(names("A hyperthyroidisms?"), ["hyperthyroidisms=hyperthyroidism"]);
        assert_eq!(names("Type 1 diabetis mellitus"), ["type 1 diabetis mellitus=type 1 diabetes mellitus"]);
        assert_eq!(names("type 2 diabetes mellitus, hepatitis C of the livers, aches"), Vec::<String>::new());
        assert_eq!(names("hypothyroidism"), Vec::<String>::new());
    }

    #[test]
    fn settings_out_of_their_ranges_are_refused() {
        for (near, setting) in [
            (Near { threshold: 0.0, ..Near::default() }, "threshold"),
            (Near { threshold: f32::NAN, ..Near::default() }, "threshold"),
            (Near { max_words: 0, ..Near::default() }, "max_words"),
            (Near { max_words: 33, ..Near::default() }, "max_words"),
        ] {
            assert_eq!(near.check().unwrap_err().setting, setting);
        }
        assert_eq!(Near::default().check(), Ok(()));
    }
}
