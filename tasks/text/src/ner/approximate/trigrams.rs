//! Three characters that follow one another, numbered from the rarest on.

use std::collections::HashMap;

/// Three characters.
type Trigram = u64;

/// Bits of a character.
const BITS: u32 = 21;

/// How many terms have each trigram.
#[derive(Debug, Default)]
pub(super) struct Trigrams {
    counts: HashMap<Trigram, u32, ahash::RandomState>,
    set: Vec<Trigram>,
}

impl Trigrams {
    /// Counts those of a term, each once.
    pub(super) fn count(&mut self, text: &str) {
        self.set.clear();
        self.set.extend(of(text));
        self.set.sort_unstable();
        self.set.dedup();
        for &trigram in &self.set {
            *self.counts.entry(trigram).or_insert(0) += 1;
        }
    }

    /// Numbers them, the rarest first, equally rare ones by their characters.
    pub(super) fn ranked(self) -> Known {
        let mut all: Vec<(u32, Trigram)> = self.counts.into_iter().map(|(of, count)| (count, of)).collect();
        all.sort_unstable();
        Known { numbers: (0..).zip(all).map(|(number, (_, trigram))| (trigram, number)).collect() }
    }
}

/// The numbers of trigrams.
#[derive(Debug, Clone)]
pub(super) struct Known {
    numbers: HashMap<Trigram, u32, ahash::RandomState>,
}

impl Known {
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    pub(super) fn find(&self, trigram: Trigram) -> Option<u32> {
        self.numbers.get(&trigram).copied()
    }

    /// Those of a text that are numbered, the rarest first, each once.
    pub(super) fn of(&self, text: &str, set: &mut Vec<u32>) {
        set.clear();
        set.extend(of(text).filter_map(|trigram| self.find(trigram)));
        set.sort_unstable();
        set.dedup();
    }
}

/// The trigrams of a text, in order; none of one with fewer than three characters.
pub(super) fn of(text: &str) -> impl Iterator<Item = Trigram> + '_ {
    let mut rolling = Rolling::default();
    text.chars().filter_map(move |c| rolling.push(c))
}

/// The last characters of a text that is gone through.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rolling {
    last: Trigram,
    seen: usize,
}

impl Rolling {
    /// The trigram that the character ends, if it is the third or a later one.
    pub(super) fn push(&mut self, c: char) -> Option<Trigram> {
        self.last = (self.last << BITS | u64::from(u32::from(c))) & ((1 << (3 * BITS)) - 1);
        self.seen += 1;
        (self.seen >= 3).then_some(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rarest_have_the_smallest_numbers() {
        let mut counted = Trigrams::default();
        ["abc", "abcd", "bcx", "ab", "xxxx"].iter().for_each(|text| counted.count(text));
        let known = counted.ranked();
        assert_eq!(known.len(), 4);
        let mut set = Vec::new();
        known.of("abcdabcx", &mut set);
        // bcd, bcx, abc; cda and dab are no term's.
        assert_eq!(set, [0, 1, 3]);
        known.of("éab", &mut set);
        assert!(set.is_empty() && of("ab").next().is_none());
    }
}
