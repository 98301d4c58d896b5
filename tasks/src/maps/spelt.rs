//! The words of a text with the subwords of each, and what stands in it by words: mentions and phrases.

use std::ops::Range;

use kg::table::EntityId;

use crate::Error;
use crate::token::align::Aligned;
use crate::token::encode::Vocabulary;
use text::Entity;
use text::lexicon::Lexicon;
use text::ner::dictionary::Dictionary;
use text::ner::tagger;
use text::word::{Word, Words};

/// Words of one text and their subwords, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spelt {
    /// The words' letters, one word behind the other.
    letters: String,
    /// Ids of their subwords, likewise.
    ids: Vec<u32>,
    /// Where the letters and the subwords of each word end.
    ends: Vec<(usize, usize)>,
}

/// Spells words, each only once.
#[derive(Debug)]
pub struct Speller<'v> {
    vocabulary: &'v Vocabulary,
    words: Lexicon,
    /// Where the subwords of each word end.
    ends: Vec<usize>,
    ids: Vec<u32>,
}

/// Bytes of words and subwords that are remembered; with more, all are forgotten and begun anew.
const REMEMBERED: usize = 32 << 20;

impl<'v> Speller<'v> {
    /// Ready to spell.
    #[must_use]
    pub fn new(vocabulary: &'v Vocabulary) -> Self {
        Self { vocabulary, words: Lexicon::default(), ends: Vec::new(), ids: Vec::new() }
    }

    /// Ids of the subwords of one of BERT's words.
    ///
    /// # Errors
    /// When the tokenizer refuses the word.
    pub fn spell(&mut self, word: &str) -> Result<&[u32], Error> {
        if self.words.bytes() + 8 * self.ends.len() + 4 * self.ids.len() > REMEMBERED {
            *self = Self::new(self.vocabulary);
        }
        let known = match self.words.find(word) {
            Some(known) => known as usize,
            None => {
                // What is refused is not remembered.
                let before = self.ids.len();
                let spelt = self.vocabulary.spell(word, &mut self.ids);
                spelt.inspect_err(|_| self.ids.truncate(before))?;
                self.words.add(word, 1);
                self.ends.push(self.ids.len());
                self.ends.len() - 1
            }
        };
        let start = known.checked_sub(1).map_or(0, |before| self.ends[before]);
        Ok(&self.ids[start..self.ends[known]])
    }
}

/// A word in whose place other subwords are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hidden {
    /// Its number in the text.
    pub word: usize,
    /// What is shown.
    pub shown: Vec<u32>,
}

/// A mention of an entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// The words that name it: one piece, or several where it is discontinuous; in order and apart, none empty.
    pub words: Vec<Range<usize>>,
    /// The entities of the triple table that it may mean; none where it has no place there.
    pub entities: Vec<EntityId>,
}

impl Mention {
    /// A term of a dictionary, found among the same words.
    #[must_use]
    pub fn tagged(found: &tagger::Mention, dictionary: &Dictionary) -> Self {
        Self { words: vec![found.words.clone()], entities: dictionary.entities(found.term).to_vec() }
    }
}

impl Spelt {
    /// Forgets all words.
    pub fn clear(&mut self) {
        self.letters.clear();
        self.ids.clear();
        self.ends.clear();
    }

    /// Adds a word.
    ///
    /// # Errors
    /// When it has no subword.
    pub fn push(&mut self, word: &str, ids: &[u32]) -> Result<(), Error> {
        if ids.is_empty() {
            let problem = "has no subword, expected at least one: a word that cannot be spelt is [UNK]";
            return Err(Error::Unfit(format!("{word:?} {problem}")));
        }
        self.letters.push_str(word);
        self.ids.extend_from_slice(ids);
        self.ends.push((self.letters.len(), self.ids.len()));
        Ok(())
    }

    /// The words of `text` as `words` has split it, spelt by a vocabulary; those before are forgotten. Words that an entry of byte-level BPE has
    /// parts of, as `).`, become one.
    ///
    /// # Errors
    /// When the tokenizer refuses the text, or splits it into other words.
    pub fn read(&mut self, speller: &mut Speller<'_>, text: &str, words: &mut Words) -> Result<(), Error> {
        match speller.vocabulary.splits() {
            None if !speller.vocabulary.special().family.is_bert() => {
                self.bytes(speller.vocabulary, text, words)
            }
            None => self.aligned(speller.vocabulary, text, words),
            Some(vocabulary) if vocabulary != words.case() => {
                let words = words.case();
                let problem = format!("words are {words:?} and the vocabulary is {vocabulary:?}");
                Err(Error::Unfit(format!("{problem}, expected the same case of both")))
            }
            Some(_) => {
                self.clear();
                words.iter().try_for_each(|word| self.push(word.letters, speller.spell(word.letters)?))
            }
        }
    }

    /// The same for byte-level BPE. What stands in no word, as a second space, belongs to the word behind it, or to the last.
    fn bytes(&mut self, vocabulary: &Vocabulary, text: &str, words: &mut Words) -> Result<(), Error> {
        self.clear();
        let subwords = vocabulary.encode_placed(text)?;
        let mut goes_on = vec![false; words.len()];
        let mut covers = Vec::with_capacity(subwords.len());
        for subword in &subwords {
            let cover = cover(words, &subword.bytes);
            goes_on[(cover.start + 1).min(cover.end)..cover.end].fill(true);
            covers.push(cover);
        }
        words.join(|word| goes_on[word]);
        // The number that each word has now.
        let now: Vec<usize> = goes_on
            .iter()
            .scan(0, |number, goes_on| {
                *number += usize::from(!goes_on);
                Some(*number - 1)
            })
            .collect();
        let mut ids = vec![vec![]; words.len()];
        let mut word = words.len().saturating_sub(1);
        for (subword, cover) in subwords.iter().zip(&covers).rev() {
            word = if cover.is_empty() { word } else { now[cover.start] };
            if let Some(ids) = ids.get_mut(word) {
                ids.push(subword.id);
            }
        }
        for (word, ids) in words.iter().zip(&mut ids) {
            ids.reverse();
            self.push(word.letters, ids)?;
        }
        Ok(())
    }

    /// The same for a vocabulary of which it is not known how it splits texts.
    fn aligned(&mut self, vocabulary: &Vocabulary, text: &str, words: &Words) -> Result<(), Error> {
        self.clear();
        let places: Vec<Range<usize>> = words.iter().map(|word| word.bytes).collect();
        let aligned = Aligned::new(vocabulary, text, &places)?;
        let mut ids = Vec::new();
        for number in 0..places.len().max(aligned.words().len()) {
            let (word, subwords) = (words.get(number), aligned.words().get(number));
            let found = subwords.and_then(|subwords| aligned.bytes(subwords)).unwrap_or_default();
            let split = |word: Option<&Word<'_>>| {
                let found = text.get(found.clone()).unwrap_or_default();
                let expected = word.map_or("", |word| word.letters);
                Error::Unfit(format!(
                    "word {number} of the text: the vocabulary's tokenizer finds {found:?} there, expected {expected:?} as BERT's splits; use a vocabulary with BERT's normaliser and the same case"
                ))
            };
            let (Some(word), Some(subwords)) = (&word, subwords) else { return Err(split(word.as_ref())) };
            if found.start >= word.bytes.end || word.bytes.start >= found.end {
                return Err(split(Some(word)));
            }
            ids.clear();
            ids.extend(aligned.subwords()[subwords.clone()].iter().map(|subword| subword.id));
            self.push(word.letters, &ids)?;
        }
        Ok(())
    }

    /// Shows other subwords in the place of some words, as many as they have, and gives them letters that no other word has: nothing is known of them.
    ///
    /// # Errors
    /// When a word is shown as nothing.
    pub fn hide(&mut self, hidden: &[Hidden]) -> Result<(), Error> {
        if hidden.is_empty() {
            return Ok(());
        }
        let before = std::mem::take(self);
        for word in 0..before.len() {
            let (letters, ids) = before.get(word).unwrap_or_default();
            match hidden.iter().find(|of| of.word == word) {
                Some(of) => self.push(&format!("\0{word}"), &of.shown)?,
                None => self.push(letters, ids)?,
            }
        }
        Ok(())
    }

    /// Number of words.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The word number `word` and its subwords.
    #[must_use]
    pub fn get(&self, word: usize) -> Option<(&str, &[u32])> {
        let &(letters, ids) = self.ends.get(word)?;
        let before = word.checked_sub(1).and_then(|before| self.ends.get(before));
        let &(first_letter, first_id) = before.unwrap_or(&(0, 0));
        Some((&self.letters[first_letter..letters], &self.ids[first_id..ids]))
    }

    /// Subwords of the first `words` words.
    #[must_use]
    pub fn subwords(&self, words: usize) -> usize {
        let last = words.min(self.len()).checked_sub(1);
        last.and_then(|last| self.ends.get(last)).map_or(0, |&(_, ids)| ids)
    }
}

/// The words that share a character with a piece of the text; an empty range where none does.
#[must_use]
pub fn cover(words: &Words, bytes: &Range<usize>) -> Range<usize> {
    let count = |past: &dyn Fn(&Range<usize>) -> bool| {
        let (mut low, mut high) = (0, words.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if words.get(middle).is_some_and(|word| past(&word.bytes)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    };
    let first = count(&|word| word.end <= bytes.start);
    first..count(&|word| word.start < bytes.end).max(first)
}

/// What an annotation file says of entities, by words. `meant` tells which entities of the triple table it may mean; an annotation
/// over white space alone is no mention.
pub fn mentions(
    words: &Words,
    annotated: &[Entity],
    mut meant: impl FnMut(&Entity) -> Vec<EntityId>,
) -> Vec<Mention> {
    let mention = |of: &Entity| {
        let mut pieces: Vec<Range<usize>> = Vec::new();
        for piece in of.pieces.iter().map(|bytes| cover(words, bytes)).filter(|piece| !piece.is_empty()) {
            match pieces.last_mut().filter(|last| last.end >= piece.start) {
                Some(last) => last.end = last.end.max(piece.end),
                None => pieces.push(piece),
            }
        }
        (!pieces.is_empty()).then(|| Mention { words: pieces, entities: meant(of) })
    };
    annotated.iter().filter_map(mention).collect()
}

/// What an annotation file says of phrases, by words: in order and apart, none empty. A word that two phrases have a part of goes to the
/// first.
#[must_use]
pub fn phrases(words: &Words, annotated: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut end = 0;
    let phrase = |bytes: &Range<usize>| {
        let mut phrase = cover(words, bytes);
        phrase.start = phrase.start.max(end);
        end = end.max(phrase.end);
        (!phrase.is_empty()).then_some(phrase)
    };
    annotated.iter().filter_map(phrase).collect()
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "most mentions have one piece")]
pub(crate) mod tests {
    use super::*;
    use crate::token::bpe;
    use crate::token::encode::Case;
    use text::Labels;

    /// A vocabulary of these words and all letters.
    pub(crate) fn vocabulary(words: &[&str]) -> Vocabulary {
        cased(words, Case::Uncased)
    }

    fn cased(words: &[&str], case: Case) -> Vocabulary {
        let letters = "abcdefghijklmnopqrstuvwxyz0123456789.,-";
        let mut tokens: Vec<String> = crate::token::encode::SPECIAL.map(str::to_owned).into();
        tokens.extend(words.iter().map(|&word| word.to_owned()));
        tokens.extend(letters.chars().flat_map(|c| [c.to_string(), format!("##{c}")]));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vocab.txt");
        base::whole::write_whole(&path, (tokens.join("\n") + "\n").as_bytes()).unwrap();
        Vocabulary::load(&path, case).unwrap()
    }

    fn split(text: &str, case: Case) -> Words {
        let mut words = Words::new(case);
        words.split(text);
        words
    }

    #[test]
    fn words_are_spelt_as_the_tokenizer_spells_the_text() {
        let vocabulary = vocabulary(&["chest", "pain", "##ful"]);
        let text = "Chest-painful \u{301}É\u{301}!, ab ☃\u{a0}中 \u{200b}ab";
        let mut spelt = Spelt::default();
        let mut speller = Speller::new(&vocabulary);
        spelt.read(&mut speller, text, &mut split(text, Case::Uncased)).unwrap();
        let words: Vec<&str> = (0..spelt.len()).map(|word| spelt.get(word).unwrap().0).collect();
        assert_eq!(words, ["chest", "-", "painful", "e", "!", ",", "ab", "☃", "中", "ab"]);
        let ids: Vec<u32> = (0..spelt.len()).flat_map(|word| spelt.get(word).unwrap().1.to_vec()).collect();
        assert_eq!(ids, vocabulary.encode(text).unwrap());
        assert_eq!((spelt.get(2).unwrap().1.len(), spelt.subwords(3), spelt.subwords(0)), (2, 4, 0));
        assert_eq!(spelt.subwords(99), ids.len());
        let mut aligned = Spelt::default();
        aligned.aligned(&vocabulary, text, &split(text, Case::Uncased)).unwrap();
        assert_eq!(spelt, aligned);
        spelt.read(&mut speller, " ", &mut split(" ", Case::Uncased)).unwrap();
        assert!(spelt.is_empty() && spelt.get(0).is_none());
    }

    #[test]
    fn of_a_hidden_word_nothing_is_left_but_its_place() {
        let mut spelt = Spelt::default();
        for (word, ids) in [("a", &[7][..]), ("bc", &[8, 9]), ("a", &[7]), ("d", &[5])] {
            spelt.push(word, ids).unwrap();
        }
        let hide = |word, shown: &[u32]| Hidden { word, shown: shown.to_vec() };
        let whole = spelt.clone();
        spelt.hide(&[]).unwrap();
        assert_eq!(spelt, whole);
        spelt.hide(&[hide(0, &[4]), hide(1, &[4, 4])]).unwrap();
        let ids: Vec<&[u32]> = (0..4).map(|word| spelt.get(word).unwrap().1).collect();
        assert_eq!(ids, [&[4][..], &[4, 4], &[7], &[5]]);
        let letters: Vec<&str> = (0..4).map(|word| spelt.get(word).unwrap().0).collect();
        assert!(
            letters[0] != letters[1] && letters[..2].iter().all(|of| of.starts_with('\0')),
            "{letters:?}"
        );
        assert_eq!(letters[2..], ["a", "d"]);
        assert!(spelt.hide(&[hide(2, &[])]).is_err());
    }

    #[test]
    fn every_character_is_spelt_as_the_tokenizer_spells_it() {
        for case in [Case::Uncased, Case::Cased] {
            let vocabulary = cased(&["aé", "##É", "ß", "İ", "中"], case);
            let (mut speller, mut spelt) = (Speller::new(&vocabulary), Spelt::default());
            // Beyond these nothing is assigned but what is for private use; of ideographs and Hangul, all of one kind, a part.
            let alike = [
                '\u{3400}'..'\u{9fe0}',
                '\u{ac00}'..'\u{d7a0}',
                '\u{e000}'..'\u{f8f0}',
                '\u{17000}'..'\u{18cf0}',
                '\u{20000}'..'\u{32390}',
            ];
            let is_one =
                |c: &char| u32::from(*c).is_multiple_of(61) || !alike.iter().any(|block| block.contains(c));
            for chunk in ('\0'..='\u{323af}').filter(is_one).collect::<Vec<_>>().chunks(64) {
                let text: String = chunk.iter().map(|c| format!("a{c}b {c}{c}é{c}\u{301}. ")).collect();
                spelt.read(&mut speller, &text, &mut split(&text, case)).unwrap();
                assert_eq!(spelt.ids, vocabulary.encode(&text).unwrap(), "{text:?} {case:?}");
            }
        }
    }

    #[test]
    fn what_was_forgotten_is_spelt_anew() {
        let vocabulary = vocabulary(&["chest"]);
        let mut speller = Speller::new(&vocabulary);
        let expected = speller.spell("chesta").unwrap().to_vec();
        for n in 0..1_200_000 {
            speller.spell(&n.to_string()).unwrap();
        }
        assert!(speller.words.len() < 1_000_000 && speller.words.bytes() < REMEMBERED);
        assert_eq!((speller.spell("chesta").unwrap(), expected.len()), (&expected[..], 2));
    }

    #[test]
    fn other_words_than_the_tokenizers_are_refused() {
        let vocabulary = vocabulary(&["chest", "pain"]);
        let mut spelt = Spelt::default();
        // Words of another text.
        let error =
            spelt.aligned(&vocabulary, "chest pain", &split("chest", Case::Uncased)).unwrap_err().to_string();
        assert!(error.contains("word 1") && error.contains("\"pain\"") && error.contains("case"), "{error}");
        let error = spelt.aligned(&vocabulary, "chest", &split("chest pain", Case::Uncased)).unwrap_err();
        assert!(error.to_string().contains("expected \"pain\""), "{error}");
        let mut speller = Speller::new(&vocabulary);
        let error =
            spelt.read(&mut speller, "chest", &mut split("chest", Case::Cased)).unwrap_err().to_string();
        assert!(error.contains("words are Cased and the vocabulary is Uncased"), "{error}");
        assert!(spelt.push("x", &[]).unwrap_err().to_string().contains("\"x\""));
    }

    #[test]
    fn annotations_become_words() {
        let text = "pain in the  left arm, and leg";
        let words = split(text, Case::Uncased);
        assert_eq!(
            (cover(&words, &(5..8)), cover(&words, &(11..13)), cover(&words, &(14..15))),
            (1..2, 3..3, 3..4)
        );
        let label = Labels::default().intern("X").unwrap();
        let entity =
            |pieces: &[Range<usize>]| Entity { pieces: pieces.to_vec(), label, concepts: Vec::new() };
        let annotated = [entity(&[0..4, 27..30]), entity(&[11..12]), entity(&[13..15, 15..21])];
        let mut asked = 0;
        let mut number = |_: &Entity| {
            asked += 1;
            if asked == 2 { vec![EntityId(5), EntityId(3)] } else { Vec::new() }
        };
        let found = mentions(&words, &annotated, &mut number);
        let expected = [
            Mention { words: vec![0..1, 7..8], entities: Vec::new() },
            Mention { words: vec![3..5], entities: vec![EntityId(5), EntityId(3)] },
        ];
        assert_eq!(found, expected);
        assert_eq!(phrases(&words, &[0..6, 6..10, 12..13, 13..30]), [0..2, 2..3, 3..8]);
    }

    #[test]
    fn words_that_an_entry_crosses_are_one() {
        let vocabulary = bpe::tests::load(&bpe::tests::folder()).unwrap();
        let mut speller = Speller::new(&vocabulary);
        let mut spelt = Spelt::default();
        let mut read = |text: &str| {
            let mut words = split(text, Case::Cased);
            spelt.read(&mut speller, text, &mut words).unwrap();
            let tokens = |ids: &[u32]| {
                ids.iter().map(|id| vocabulary.token(*id).unwrap()).collect::<Vec<_>>().join(" ")
            };
            let found: Vec<(String, String)> = (0..spelt.len())
                .map(|word| spelt.get(word).map(|(letters, ids)| (letters.to_owned(), tokens(ids))).unwrap())
                .collect();
            let places: Vec<_> = words.iter().map(|word| text[word.bytes].to_owned()).collect();
            assert_eq!(places.len(), spelt.len());
            let all: Vec<u32> =
                (0..spelt.len()).flat_map(|word| spelt.get(word).unwrap().1.to_vec()).collect();
            assert!(spelt.is_empty() || all == vocabulary.encode(text).unwrap(), "{text:?}");
            found
                .into_iter()
                .zip(places)
                .map(|((letters, tokens), place)| format!("{letters}|{tokens}|{place}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(read("(pain)."), ["(|(|(", "pain|pain|pain", ").|).|)."]);
        assert_eq!(read("pain't  pain \n"), ["pain|pain|pain", "'t|'t|'t", "pain|Ġ Ġpain Ġ Ċ|pain"]);
        assert_eq!(read("a\u{200b}é"), ["aé|a â Ģ ĭ Ã ©|a\u{200b}é"]);
        assert_eq!(read(" \n"), [""; 0]);
        assert_eq!(read("\u{2028} a"), ["a|â Ģ ¨ Ġ a|a"]);
    }
}
