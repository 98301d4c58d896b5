//! Phrases of a sentence from its dependencies: the largest subtrees of few words.
//!
//! A word's subtree is the word and all that depend on it, directly or not. A subtree makes a phrase if it has at most so many words
//! and no gap. A word belongs to the largest such subtree that it is in; where there is none (its own is too large, or has a gap, and
//! so have those above it) it is a phrase by itself. Of two subtrees one is in the other or they are apart, so that every word is in
//! exactly one phrase and none of these phrases can be made larger.

use std::num::NonZeroUsize;
use std::ops::Range;

/// What is said of them.
pub(crate) const CIRCLE: &str = "the word's dependencies go round in a circle";

/// The words whose dependencies lead to no root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cycle {
    /// The first of them, from 0.
    pub word: usize,
}

/// The subtree of a word: how many words, the first and the last.
#[derive(Debug, Clone, Copy)]
struct Subtree {
    words: usize,
    first: usize,
    last: usize,
}

/// The phrases of a sentence, in order; together they hold every word once. `governors` has for each word the number of the word on
/// which it depends, from 0, and `None` for a root, of which there may be several. Governors that are no word count as none. O(words).
///
/// # Errors
/// When words depend on each other in a circle.
pub fn phrases(governors: &[Option<usize>], most: NonZeroUsize) -> Result<Vec<Range<usize>>, Cycle> {
    let governor = |word: usize| governors[word].filter(|&above| above < governors.len());
    let mut trees: Vec<Subtree> =
        (0..governors.len()).map(|word| Subtree { words: 1, first: word, last: word }).collect();
    let mut below = vec![0_usize; governors.len()];
    (0..governors.len()).filter_map(governor).for_each(|above| below[above] += 1);
    // From the leaves upwards: a word is counted into what is above it once all below it are in it.
    let mut order: Vec<usize> = (0..governors.len()).filter(|&word| below[word] == 0).collect();
    let mut next = 0;
    while let Some(&word) = order.get(next) {
        next += 1;
        let Some(above) = governor(word) else { continue };
        let tree = trees[word];
        let into = &mut trees[above];
        into.words += tree.words;
        into.first = into.first.min(tree.first);
        into.last = into.last.max(tree.last);
        below[above] -= 1;
        if below[above] == 0 {
            order.push(above);
        }
    }
    // What is below a circle has been counted, what is in it or above it has not.
    if let Some(word) = below.iter().position(|&waiting| waiting > 0) {
        return Err(Cycle { word });
    }
    let mut phrase: Vec<Option<usize>> = vec![None; governors.len()];
    for &word in order.iter().rev() {
        let tree = trees[word];
        let whole = tree.last - tree.first + 1 == tree.words && tree.words <= most.get();
        phrase[word] = governor(word).and_then(|above| phrase[above]).or(whole.then_some(word));
    }
    let mut phrases = Vec::new();
    let mut word = 0;
    while word < governors.len() {
        let end = phrase[word].map_or(word, |top| trees[top].last) + 1;
        phrases.push(word..end);
        word = end;
    }
    Ok(phrases)
}

/// Phrases in bytes. The `n`-th written word stands at `places[n]` and for the words from `firsts[n]` to the next; where these are in
/// several phrases, it is where the first of them is.
#[must_use]
pub fn in_bytes(phrases: &[Range<usize>], firsts: &[usize], places: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut bytes = Vec::with_capacity(phrases.len());
    for phrase in phrases {
        let from = firsts.partition_point(|&first| first < phrase.start);
        let end = firsts.partition_point(|&first| first < phrase.end);
        if let Some([first, .., last]) = places.get(from..end) {
            bytes.push(first.start..last.end);
        } else if let Some([only]) = places.get(from..end) {
            bytes.push(only.clone());
        }
    }
    bytes
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "lists of one place")]
mod tests {
    use super::*;
    use base::rng::RngKey;

    fn most(words: usize) -> NonZeroUsize {
        NonZeroUsize::new(words).unwrap()
    }

    /// Governors as CoNLL-U has them: from 1, 0 for a root.
    fn cut(heads: &[usize], words: usize) -> Result<Vec<Range<usize>>, Cycle> {
        let governors: Vec<Option<usize>> = heads.iter().map(|head| head.checked_sub(1)).collect();
        phrases(&governors, most(words))
    }

    #[test]
    fn the_largest_subtrees_of_few_words_are_phrases() {
        // The old heart of the patient fails suddenly .
        let heads = [3, 3, 7, 6, 6, 3, 0, 7, 7];
        assert_eq!(cut(&heads, 3).unwrap(), [0..1, 1..2, 2..3, 3..6, 6..7, 7..8, 8..9]);
        assert_eq!(cut(&heads, 6).unwrap(), [0..6, 6..7, 7..8, 8..9]);
        assert_eq!(cut(&heads, 9).unwrap(), [0..9]);
        assert_eq!(cut(&heads, 1).unwrap().len(), 9);
        assert!(cut(&[], 3).unwrap().is_empty());
        assert_eq!(cut(&[0, 0, 2], 3).unwrap(), [0..1, 1..3], "two roots");
    }

    #[test]
    fn a_subtree_with_a_gap_is_no_phrase_but_those_above_and_below_may_be() {
        // 3 depends on 1, whose subtree then has a gap at 2; all depend on 4.
        let heads = [4, 4, 1, 0];
        assert_eq!(cut(&heads, 2).unwrap(), [0..1, 1..2, 2..3, 3..4]);
        assert_eq!(cut(&heads, 4).unwrap(), [0..4]);
    }

    #[test]
    fn several_words_written_as_one_are_where_the_first_is() {
        // `du` stands for the words 1 and 2.
        let (firsts, places) = ([0, 1, 3], [0..7, 8..10, 11..16]);
        assert_eq!(in_bytes(&[0..2, 2..4], &firsts, &places), [0..10, 11..16]);
        assert_eq!(in_bytes(&[0..1, 1..2, 2..3, 3..4], &firsts, &places), places);
        assert_eq!(in_bytes(&[0..4], &firsts, &places), [0..16]);
    }

    #[test]
    fn circles_are_found() {
        assert_eq!(cut(&[0, 3, 4, 2, 2], 3), Err(Cycle { word: 1 }));
        assert_eq!(cut(&[1], 3), Err(Cycle { word: 0 }));
    }

    #[test]
    fn long_chains_do_not_overflow() {
        let heads: Vec<usize> = (0..200_000).collect();
        let phrases = cut(&heads, 10).unwrap();
        assert_eq!((phrases.len(), phrases.last().cloned()), (200_000 - 9, Some(199_990..200_000)));
    }

    /// Against the definition, word by word.
    #[test]
    fn it_is_what_the_definition_says() {
        for case in 0..300 {
            let below = |n, bound| usize::try_from(RngKey::new(case).at(n).below(bound)).unwrap();
            let count = below(0, 9) + 1;
            let governors: Vec<Option<usize>> = (0..count)
                .map(|word| Some(below(word as u64 + 1, count as u64)).filter(|&above| above < word))
                .collect();
            let limit = most(below(99, 9) + 1);
            let above = |word| std::iter::successors(Some(word), |&w: &usize| governors[w]);
            let subtree = |top| (0..count).filter(|&w| above(w).any(|a| a == top)).collect::<Vec<_>>();
            let phrase = |word: usize| {
                let whole = |top: &usize| {
                    let words = subtree(*top);
                    words.len() <= limit.get() && words[words.len() - 1] - words[0] + 1 == words.len()
                };
                above(word).filter(whole).map(subtree).max_by_key(Vec::len).unwrap_or_else(|| vec![word])
            };
            let found = phrases(&governors, limit).unwrap();
            assert_eq!(found.iter().map(Range::len).sum::<usize>(), count);
            for range in found {
                for word in range.clone() {
                    assert_eq!(phrase(word), range.clone().collect::<Vec<_>>(), "{governors:?} {limit}");
                }
            }
        }
    }
}
