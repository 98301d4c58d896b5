//! Which words of a text are masked and asked for: whole words, as in BERT's whole word masking (Devlin et al. 2019, section 3.1, and `create_pretraining_data.py`).
//!
//! Of the tokens that may be asked for, `round(0.15 n)` are, one at least. Words are taken in random order; one that would exceed that number is skipped, and where all
//! are skipped the shortest is taken. Of ten words asked for, eight become `[MASK]`, one becomes other tokens, one stays; that is drawn for a word, where BERT draws it for each of its tokens. Words with `[UNK]` are never asked for.

use base::rng::RngKey;

use tasks::builder::masked_lm::{Rates, wanted};
use tasks::maps::spelt::Spelt;
use tasks::token::encode::Special;

/// A word that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Its number in the text.
    pub word: usize,
    /// Its tokens.
    pub right: Vec<u32>,
    /// As many tokens that are shown in their place; none where it stays.
    pub shown: Option<Vec<u32>>,
}

/// The words of a text that are asked for, of those that fit into `most` tokens, in their order. The vocabulary has `size` entries. The same key gives the same words.
#[must_use]
pub fn draw(spelt: &Spelt, most: usize, special: Special, size: usize, key: RngKey) -> Vec<Asked> {
    let mut never = special.all();
    never.sort_unstable();
    let ids = |word: usize| spelt.get(word).map_or(&[][..], |(_, ids)| ids);
    let may_ask = |word: &usize| !ids(*word).iter().any(|id| never.contains(id));
    let fit = (0..spelt.len()).take_while(|word| spelt.subwords(word + 1) <= most);
    let mut words: Vec<usize> = fit.filter(may_ask).collect();
    let tokens: usize = words.iter().map(|word| ids(*word).len()).sum();
    if tokens == 0 {
        return vec![];
    }
    key.named("words").shuffle(&mut words);
    let (rates, mut left) = (Rates::default(), wanted(Rates::default().rate, tokens));
    let mut taken = vec![];
    for &word in &words {
        if ids(word).len() <= left {
            left -= ids(word).len();
            taken.push(word);
        }
    }
    if taken.is_empty() {
        taken.extend(words.iter().copied().min_by_key(|word| ids(*word).len()));
    }
    taken.sort_unstable();
    let drawable = size.saturating_sub(never.len()) as u64;
    // Counting past each special id in order leaves out exactly those.
    let other = |key: RngKey| {
        let drawn = u32::try_from(key.below(drawable.max(1))).unwrap_or(special.unknown);
        never.iter().fold(drawn, |id, special| id + u32::from(id >= *special))
    };
    let asked = taken.into_iter().map(|word| {
        let (right, key) = (ids(word).to_vec(), key.named("shown").at(word as u64));
        const PARTS: u64 = 1 << 32;
        let share = key.below(PARTS) as f64 / PARTS as f64;
        let shown = if share < rates.mask {
            Some(vec![special.blank; right.len()])
        } else if share < rates.mask + rates.random {
            Some((0..right.len() as u64).map(|token| other(key.named("token").at(token))).collect())
        } else {
            None
        };
        Asked { word, right, shown }
    });
    asked.collect()
}

#[cfg(test)]
mod tests {
    use batch::family::Family;

    use super::*;

    const SPECIAL: Special =
        Special { padding: 0, unknown: 1, cls: 2, sep: 3, blank: 4, family: Family::Bert };

    /// Words of one to three tokens; every seventh cannot be spelt.
    fn text(words: u32) -> Spelt {
        let mut spelt = Spelt::default();
        for word in 0..words {
            let ids: Vec<u32> =
                if word % 7 == 6 { vec![1] } else { (0..=word % 3).map(|n| 10 + 3 * word + n).collect() };
            spelt.push(&format!("w{word}"), &ids).unwrap();
        }
        spelt
    }

    #[test]
    fn a_share_of_the_tokens_is_asked_for_and_whole_words() {
        let spelt = text(60);
        let (mut kept, mut masked, mut random) = (0, 0, 0);
        for turn in 0..200 {
            let key = RngKey::new(turn);
            let asked = draw(&spelt, 90, SPECIAL, 300, key);
            assert_eq!(asked, draw(&spelt, 90, SPECIAL, 300, key));
            assert!(asked.is_sorted_by(|a, b| a.word < b.word));
            let tokens: usize = asked.iter().map(|of| of.right.len()).sum();
            // 90 tokens are 45 words, of which six cannot be spelt: 84 are left, and 0.15 of them is 13.
            assert!((12..=13).contains(&tokens), "{tokens}");
            for of in &asked {
                assert_eq!(of.right, spelt.get(of.word).unwrap().1);
                assert!(spelt.subwords(of.word + 1) <= 90 && of.word % 7 != 6);
                match &of.shown {
                    None => kept += 1,
                    Some(shown) if shown.iter().all(|id| *id == SPECIAL.blank) => masked += 1,
                    Some(shown) => {
                        assert!(
                            shown.len() == of.right.len() && shown.iter().all(|id| (5..300).contains(id))
                        );
                        random += 1;
                    }
                }
            }
        }
        let all = f64::from(kept + masked + random);
        let share = |of: i32| f64::from(of) / all;
        assert!(
            (share(masked) - 0.8).abs() < 0.04 && (share(random) - 0.1).abs() < 0.03,
            "{masked} {random} {kept}"
        );
    }

    #[test]
    fn a_short_text_is_asked_for_its_shortest_word_and_one_without_words_for_none() {
        let mut long = Spelt::default();
        long.push("long", &[20, 21, 22]).unwrap();
        long.push("longer", &[20, 21, 22, 23]).unwrap();
        let asked = draw(&long, 99, SPECIAL, 300, RngKey::new(1));
        assert_eq!(asked.iter().map(|of| of.word).collect::<Vec<_>>(), [0]);
        assert!(draw(&long, 2, SPECIAL, 300, RngKey::new(1)).is_empty(), "nothing fits");
        let mut unknown = Spelt::default();
        unknown.push("?", &[1]).unwrap();
        assert!(draw(&unknown, 99, SPECIAL, 300, RngKey::new(1)).is_empty());
    }
}
