//! Words of a text that follow one another, as terms may be written there.

use std::ops::Range;

use super::trigrams::Rolling;
use super::{Approximate, Neighbour, Wanted, telling};
use crate::ner::filters::Possessives;
use crate::ner::stop_words;
use crate::word::Words;

/// No term has the trigram.
const UNKNOWN: u32 = u32::MAX;

/// A text's words as trigrams; its buffers are kept from text to text.
#[derive(Debug, Clone, Default)]
pub(in crate::ner) struct Windows {
    /// Of the words with spaces between, the trigram that ends at each character from the third on, and its number.
    trigrams: Vec<u64>,
    numbers: Vec<u32>,
    /// Of each word: its first character, and the one behind its last.
    words: Vec<Range<usize>>,
    /// Of each word.
    about: Vec<About>,
    set: Vec<u32>,
    unknown: Vec<u64>,
    found: Vec<Neighbour>,
}

/// What is asked of a word.
#[derive(Debug, Clone, Copy)]
struct About {
    /// Letters and digits.
    letters: usize,
    /// Whether a name may begin or end with it.
    edge: bool,
    part: Part,
}

/// Whether a word is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Compared,
    /// It belongs to a possessive that dictionaries skip.
    Skipped,
}

/// Words that are near to terms.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::ner) struct NearWords {
    /// Of those of the text.
    pub(in crate::ner) words: Range<usize>,
    /// The terms, the nearest first.
    pub(in crate::ner) neighbours: Vec<Neighbour>,
}

impl Windows {
    fn take(&mut self, words: &Words, index: &Approximate) {
        let Self { trigrams, numbers, words: places, about, .. } = self;
        trigrams.clear();
        numbers.clear();
        places.clear();
        about.clear();
        let (mut rolling, mut at) = (Rolling::default(), 0);
        let mut push = |c: char, at: &mut usize| {
            let trigram = rolling.push(c);
            if let Some(trigram) = trigram {
                trigrams.push(trigram);
                numbers.push(index.known.find(trigram).unwrap_or(UNKNOWN));
            }
            *at += 1;
        };
        let mut skipped = 0;
        for (number, word) in words.iter().enumerate() {
            if number > 0 && index.possessives == Possessives::Drop && is_possessive(words, number) {
                skipped = number + 2;
            }
            if number < skipped {
                places.push(at..at);
                about.push(About { letters: 0, edge: false, part: Part::Skipped });
                continue;
            }
            if number > 0 {
                push(' ', &mut at);
            }
            let start = at;
            word.letters.chars().for_each(|c| push(c, &mut at));
            places.push(start..at);
            let letters = word.letters.chars().filter(|c| c.is_alphanumeric()).count();
            let edge = letters > 0 && !stop_words::is_english(word.letters);
            about.push(About { letters, edge, part: Part::Compared });
        }
    }

    /// Begins with no words.
    fn begin(&mut self) {
        self.set.clear();
        self.unknown.clear();
    }

    /// Adds the trigrams that a word ends, of words from `first` on.
    fn add(&mut self, first: usize, word: usize) {
        let (Some(start), Some(end)) = (self.words.get(first), self.words.get(word)) else { return };
        let before = word.checked_sub(1).and_then(|before| self.words.get(before));
        // The trigram that ends at the third character of all words is at the first place.
        let from = before.filter(|_| word > first).map_or(start.start, |before| before.end);
        for place in from.max(start.start + 2)..end.end {
            let (number, trigram) = (self.numbers[place - 2], self.trigrams[place - 2]);
            if number == UNKNOWN {
                insert(&mut self.unknown, trigram);
            } else {
                insert(&mut self.set, number);
            }
        }
    }
}

/// Whether the words from `at` on are `'s`.
fn is_possessive(words: &Words, at: usize) -> bool {
    let letters = |word: usize| words.get(word).map(|word| word.letters);
    matches!(letters(at), Some("'" | "\u{2019}")) && letters(at + 1) == Some("s")
}

/// Adds a member to an ascending list, unless it is there.
fn insert<T: Ord + Copy>(list: &mut Vec<T>, member: T) {
    if let Err(place) = list.binary_search(&member) {
        list.insert(place, member);
    }
}

/// Hands on the words of a text, in `sentences` of its words, that are near to terms.
pub(in crate::ner) fn nears(
    windows: &mut Windows,
    words: &Words,
    sentences: &[Range<usize>],
    index: &Approximate,
    found: &mut Vec<NearWords>,
) {
    let settings = index.settings;
    windows.take(words, index);
    found.clear();
    for sentence in sentences {
        for start in sentence.clone() {
            if !windows.about[start].edge {
                continue;
            }
            let most = sentence.end.min(start + settings.max_words);
            let mut letters = 0;
            windows.begin();
            for end in start + 1..=most {
                let last = windows.about[end - 1];
                letters += last.letters;
                windows.add(start, end - 1);
                if !last.edge || letters < settings.min_letters {
                    continue;
                }
                let range = start..end;
                let compared = range.clone().filter(|&word| windows.about[word].part == Part::Compared);
                let telling = telling(compared.filter_map(|word| words.get(word)).map(|word| word.letters));
                index.near(
                    &Wanted { trigrams: &windows.set, unknown: windows.unknown.len(), telling },
                    &mut windows.found,
                );
                if !windows.found.is_empty() {
                    found.push(NearWords { words: range, neighbours: windows.found.clone() });
                }
            }
        }
    }
}
