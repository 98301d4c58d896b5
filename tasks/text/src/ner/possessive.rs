//! The `'s` behind a word, where it is skipped.

use super::filters::Possessives;
use super::lexicon::{Lexicon, NONE};

/// The words of a possessive that is skipped, as the lexicon numbers them; none where it is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Possessive {
    apostrophes: [u32; 2],
    s: u32,
}

impl Possessive {
    pub(super) fn new(setting: Possessives, lexicon: &mut Lexicon) -> Self {
        match setting {
            Possessives::Keep => Self { apostrophes: [NONE; 2], s: NONE },
            Possessives::Drop => Self {
                apostrophes: ["'", "\u{2019}"].map(|apostrophe| lexicon.intern(apostrophe)),
                s: lexicon.intern("s"),
            },
        }
    }

    pub(super) fn setting(&self) -> Possessives {
        if self.s == NONE { Possessives::Keep } else { Possessives::Drop }
    }

    /// Whether `words` begin with it.
    #[inline]
    pub(super) fn begins(&self, words: &[u32]) -> bool {
        match *words {
            [first, second, ..] => self.s != NONE && second == self.s && self.apostrophes.contains(&first),
            _ => false,
        }
    }

    /// Leaves it out wherever a word stands in front of it.
    pub(super) fn remove(&self, words: &mut Vec<u32>) {
        let mut at = 1;
        while at < words.len() {
            if self.begins(&words[at..]) {
                words.drain(at..at + 2);
            } else {
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_left_out_behind_words_alone() {
        let mut lexicon = Lexicon::new();
        let possessive = Possessive::new(Possessives::Drop, &mut lexicon);
        let mut numbers =
            |text: &str| -> Vec<u32> { text.split(' ').map(|word| lexicon.intern(word)).collect() };
        for (written, left) in [
            ("a ' s b", "a b"),
            ("a \u{2019} s", "a"),
            ("' s a ' s ' s", "' s a"),
            ("a ' b s", "a ' b s"),
            ("a '", "a '"),
            ("s", "s"),
        ] {
            let mut words = numbers(written);
            possessive.remove(&mut words);
            assert_eq!(words, numbers(left), "{written}");
        }
        let kept = Possessive::new(Possessives::Keep, &mut lexicon);
        assert!(!kept.begins(&[NONE, NONE]));
    }
}
