//! Which subword stands where in its text, and to which word it belongs.
//!
//! What a normaliser leaves out (accents, marks, control characters) belongs to the subword whose word it stands in, so that all
//! subwords of a word together cover the word as written. A character that a normaliser takes apart may lie in two subwords.

use std::ops::Range;

use super::encode::Vocabulary;
use crate::Error;
use text::characters::Characters;
use text::{Label, Span};

/// One subword of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subword {
    /// Its id in the vocabulary.
    pub id: u32,
    /// Number of its word, from 0 and without gaps.
    pub word: usize,
    /// Where it stands, in bytes; never turned round, and neither end is before that of the subword in front of it.
    pub bytes: Range<usize>,
}

/// A text's subwords in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aligned {
    subwords: Vec<Subword>,
    /// The subwords of each word.
    words: Vec<Range<usize>>,
}

/// A span in subwords: whole words, never empty, apart from all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// Its subwords.
    pub subwords: Range<usize>,
    /// What it is.
    pub label: Label,
}

/// What became of spans on their way to subwords.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct MentionCounts {
    /// Spans that became a mention.
    pub kept: u64,
    /// Of those, spans that began or ended inside a word, and now have all of it.
    pub widened: u64,
    /// Of those, spans that lost words to the span in front of them, which has a part of the same word.
    pub narrowed: u64,
    /// Spans whose words all went to the span in front of them.
    pub taken: u64,
    /// Spans over white space or characters that the normaliser leaves out: no subword is there.
    pub vanished: u64,
}

impl MentionCounts {
    /// Adds another count.
    pub(crate) fn add(&mut self, other: &MentionCounts) {
        let MentionCounts { kept, widened, narrowed, taken, vanished } = other;
        self.kept += kept;
        self.widened += widened;
        self.narrowed += narrowed;
        self.taken += taken;
        self.vanished += vanished;
    }
}

impl Aligned {
    /// Encodes `text`. Its words are those of `words` (bytes; in order and apart), or, where that is empty, those that the
    /// vocabulary's own rule finds, which takes punctuation for words of its own.
    ///
    /// # Errors
    /// When the tokenizer refuses the text.
    pub fn new(vocabulary: &Vocabulary, text: &str, words: &[Range<usize>]) -> Result<Self, Error> {
        let mut subwords = vocabulary.encode_placed(text)?;
        spread(text, &mut subwords);
        if !words.is_empty() {
            group(&mut subwords, words);
        }
        let mut found: Vec<Range<usize>> = Vec::new();
        let mut last = None;
        for (at, subword) in subwords.iter_mut().enumerate() {
            match found.last_mut().filter(|_| last == Some(subword.word)) {
                Some(word) => word.end = at + 1,
                None => found.push(at..at + 1),
            }
            last = Some(subword.word);
            subword.word = found.len() - 1;
        }
        Ok(Self { subwords, words: found })
    }

    /// The subwords, in order.
    #[must_use]
    pub fn subwords(&self) -> &[Subword] {
        &self.subwords
    }

    /// The subwords of each word; together they are all subwords.
    #[must_use]
    pub fn words(&self) -> &[Range<usize>] {
        &self.words
    }

    /// Where each subword stands in `text`, which must be the text that was encoded, in Unicode characters. `None` for another.
    #[must_use]
    pub fn characters(&self, text: &str) -> Option<Vec<Range<usize>>> {
        let characters = Characters::new(text);
        self.subwords.iter().map(|subword| characters.range(&subword.bytes)).collect()
    }

    /// The subwords that share a character with a piece of the text; an empty range where none does.
    #[must_use]
    pub fn cover(&self, bytes: &Range<usize>) -> Range<usize> {
        let first = self.subwords.partition_point(|subword| subword.bytes.end <= bytes.start);
        let last = self.subwords.partition_point(|subword| subword.bytes.start < bytes.end);
        first..last.max(first)
    }

    /// The bytes from the first to the last of some subwords; `None` for an empty range or one beyond the text.
    #[must_use]
    pub fn bytes(&self, subwords: &Range<usize>) -> Option<Range<usize>> {
        let subwords = self.subwords.get(subwords.clone())?;
        Some(subwords.first()?.bytes.start..subwords.last()?.bytes.end)
    }

    /// The smallest range of whole words that holds these subwords, which must not be empty.
    fn whole_words(&self, subwords: &Range<usize>) -> Option<Range<usize>> {
        let word = |at: usize| self.words.get(self.subwords.get(at)?.word);
        Some(word(subwords.start)?.start..word(subwords.end.checked_sub(1)?)?.end)
    }

    /// Spans, in order and without overlaps, as mentions of whole words. A word that two spans have a part of goes to the first.
    pub fn mentions(&self, spans: &[Span], counts: &mut MentionCounts) -> Vec<Mention> {
        let mut mentions: Vec<Mention> = Vec::with_capacity(spans.len());
        for Span { bytes, label } in spans {
            let cover = self.cover(bytes);
            let Some(mut subwords) = self.whole_words(&cover).filter(|_| !cover.is_empty()) else {
                counts.vanished += 1;
                continue;
            };
            let own = subwords.clone();
            subwords.start = subwords.start.max(mentions.last().map_or(0, |before| before.subwords.end));
            if subwords.is_empty() {
                counts.taken += 1;
                continue;
            }
            let inside = self.bytes(&own).is_some_and(|all| all.start < bytes.start || bytes.end < all.end);
            counts.kept += 1;
            counts.widened += u64::from(inside);
            counts.narrowed += u64::from(own != subwords);
            mentions.push(Mention { subwords, label: *label });
        }
        mentions
    }
}

/// Gives what lies between subwords and is no white space to the one that it touches, the one in front first, and puts ends in
/// order.
fn spread(text: &str, subwords: &mut [Subword]) {
    let mut before = 0;
    for at in 0..=subwords.len() {
        let next = subwords.get(at).map_or(text.len(), |subword| subword.bytes.start);
        if let Some(gap) = text.get(before..next).filter(|gap| !gap.is_empty()) {
            let behind = gap.find(char::is_whitespace).unwrap_or(gap.len());
            let touching =
                |text: &str| text.chars().rev().take_while(|c| !c.is_whitespace()).map(char::len_utf8).sum();
            if let Some(left) = at.checked_sub(1) {
                subwords[left].bytes.end = before + behind;
            }
            let ahead: usize = if at > 0 && behind == gap.len() { 0 } else { touching(gap) };
            if let Some(right) = subwords.get_mut(at) {
                right.bytes.start = next - ahead;
            }
        }
        if let Some(subword) = subwords.get_mut(at) {
            subword.bytes.end = subword.bytes.end.max(subword.bytes.start).max(before);
            before = subword.bytes.end;
        }
    }
    // A start may lie before that of the subword in front only where the normaliser moved characters.
    for at in 1..subwords.len() {
        let start = subwords[at].bytes.start.max(subwords[at - 1].bytes.start);
        subwords[at].bytes.start = start.min(subwords[at].bytes.end);
    }
}

/// Numbers subwords by given words instead of the tokenizer's. What is in none stays a word of the tokenizer.
fn group(subwords: &mut [Subword], words: &[Range<usize>]) {
    let mut at = 0;
    for subword in subwords {
        while words.get(at).is_some_and(|word| word.end <= subword.bytes.start) {
            at += 1;
        }
        let inside = words.get(at).is_some_and(|word| word.start < subword.bytes.end);
        // Even and odd numbers never meet, so a word of one kind is not taken for one of the other.
        subword.word = if inside { 2 * at } else { 2 * subword.word + 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::encode::Case;
    use base::rng::RngKey;
    use text::Labels;

    fn vocabulary(case: Case) -> Vocabulary {
        let letters = "abcdefghijklmnopqrstuvwxyzABCéÉ中文0123456789.,-()İß𝔾";
        let mut tokens: Vec<String> =
            ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "ab", "##bc", "pain", "##ful"]
                .map(str::to_owned)
                .into();
        tokens.extend(letters.chars().map(String::from));
        tokens.extend(letters.chars().map(|c| format!("##{c}")));
        // Jamo: what a normaliser makes of Hangul.
        tokens.extend("\u{1112}\u{1161}\u{11ab}".chars().flat_map(|c| [c.to_string(), format!("##{c}")]));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vocab.txt");
        base::whole::write_whole(&path, (tokens.join("\n") + "\n").as_bytes()).unwrap();
        Vocabulary::load(&path, case).unwrap()
    }

    fn aligned(text: &str, case: Case) -> Aligned {
        Aligned::new(&vocabulary(case), text, &[]).unwrap()
    }

    fn words(text: &str, case: Case) -> Vec<&str> {
        let aligned = aligned(text, case);
        aligned.words().iter().map(|word| &text[aligned.bytes(word).unwrap()]).collect()
    }

    #[test]
    fn words_cover_what_was_written() {
        let text = "Painful É\u{301}e\u{301}, 中文 a\u{200b}b 한국☃☃ \u{301}ab";
        let expected = ["Painful", "É\u{301}e\u{301}", ",", "中", "文", "a\u{200b}b", "한국☃☃", "\u{301}ab"];
        assert_eq!(words(text, Case::Uncased), expected);
        assert_eq!(words(text, Case::Cased), expected);
        let aligned = aligned("painful éé", Case::Uncased);
        let places: Vec<_> = aligned.subwords().iter().map(|s| (s.word, s.bytes.clone())).collect();
        assert_eq!(places, [(0, 0..4), (0, 4..7), (1, 8..10), (1, 10..12)]);
        assert_eq!(aligned.characters("painful éé").unwrap(), [0..4, 4..7, 8..9, 9..10]);
    }

    #[test]
    fn a_character_taken_apart_lies_in_all_its_subwords() {
        let aligned = aligned("한a", Case::Uncased);
        let places: Vec<_> = aligned.subwords().iter().map(|s| s.bytes.clone()).collect();
        assert_eq!(places, [0..3, 0..3, 0..3, 3..4]);
        assert_eq!((aligned.cover(&(0..3)), aligned.cover(&(3..4))), (0..3, 3..4));
    }

    /// A text of random words, and where its words are: runs of letters and marks, and single characters of other kinds.
    fn random_text(seed: RngKey) -> (String, Vec<Range<usize>>) {
        const PIECES: [&str; 16] = [
            "a",
            "bc",
            "Pain",
            "é",
            "e\u{301}",
            "İ",
            "ß",
            "𝔾",
            "한",
            "☃",
            "b\u{200b}",
            "B\u{308}\u{323}",
            "0",
            "ﬁ",
            "ful",
            "σΣ",
        ];
        const BETWEEN: [&str; 7] = [" ", "\t", "\u{a0}", "  \n", " \u{fffd} ", "\u{3000}", " "];
        const ALONE: [&str; 6] = [",", "-", "中", "(", "。", "文"];
        let pick =
            |from: &[&'static str], at: RngKey| from[usize::try_from(at.below(from.len() as u64)).unwrap()];
        let (mut text, mut words) = (String::new(), Vec::new());
        for number in 0..seed.named("words").below(12) {
            let word = seed.at(number);
            let start = text.len();
            if word.named("alone").below(4) == 0 {
                text.push_str(pick(&ALONE, word));
            } else {
                (0..1 + word.named("long").below(6)).for_each(|i| text.push_str(pick(&PIECES, word.at(i))));
            }
            words.push(start..text.len());
            let alone = |word: &Range<usize>, text: &str| ALONE.contains(&&text[word.clone()]);
            // Punctuation and CJK characters need no space beside them, but a space is always right.
            if !alone(&words[words.len() - 1], &text) || word.named("space").below(2) == 0 {
                text.push_str(pick(&BETWEEN, word.named("between")));
            }
        }
        (text, words)
    }

    #[test]
    fn every_span_of_whole_words_is_covered_exactly() {
        let mut checked = 0;
        for case in [Case::Cased, Case::Uncased] {
            let vocabulary = vocabulary(case);
            for number in 0..3_000 {
                let (text, words) = random_text(RngKey::new(number));
                let aligned = Aligned::new(&vocabulary, &text, &[]).unwrap();
                let own: Vec<_> = aligned.words().iter().map(|word| aligned.bytes(word).unwrap()).collect();
                assert_eq!(own, words, "{text:?}");
                let given = Aligned::new(&vocabulary, &text, &words).unwrap();
                assert_eq!(given, aligned, "{text:?}");
                assert!(aligned.characters(&text).is_some(), "every end lies between characters: {text:?}");
                let ids: Vec<u32> = aligned.subwords().iter().map(|s| s.id).collect();
                assert_eq!(ids, vocabulary.encode(&text).unwrap(), "{text:?}");
                for first in 0..words.len() {
                    for last in first..words.len() {
                        let span = words[first].start..words[last].end;
                        let cover = aligned.cover(&span);
                        assert_eq!(aligned.bytes(&cover), Some(span), "{text:?}");
                        assert_eq!(aligned.subwords()[cover.start].word, first);
                        assert_eq!(aligned.subwords()[cover.end - 1].word, last);
                        checked += 1;
                    }
                }
            }
        }
        assert!(checked > 50_000, "{checked}");
    }

    #[test]
    fn given_words_hold_the_tokenizers() {
        let text = "ab-12 painful \u{200b}";
        let aligned = Aligned::new(&vocabulary(Case::Cased), text, &[0..5, 6..13, 14..17]).unwrap();
        let words: Vec<&str> =
            aligned.words().iter().map(|word| &text[aligned.bytes(word).unwrap()]).collect();
        assert_eq!(words, ["ab-12", "painful"], "a word of nothing but a control character has no subword");
        assert_eq!(Aligned::new(&vocabulary(Case::Cased), "", &[]).unwrap(), Aligned::default());
    }

    #[test]
    fn spans_become_whole_words_apart_from_each_other() {
        let mut labels = Labels::default();
        let label = labels.intern("X").unwrap();
        let spans = [0..2, 2..3, 4..6, 6..12, 12..13].map(|bytes| Span { bytes, label });
        let aligned = aligned("5mg ab pain  ", Case::Cased);
        assert_eq!(aligned.words().len(), 3);
        let mut counts = MentionCounts::default();
        let mentions = aligned.mentions(&spans, &mut counts);
        let found: Vec<_> = mentions.iter().map(|m| aligned.bytes(&m.subwords).unwrap()).collect();
        assert_eq!(found, [0..3, 4..6, 7..11]);
        assert_eq!(counts, MentionCounts { kept: 3, widened: 1, narrowed: 0, taken: 1, vanished: 1 });
        let spans = [0..5, 5..11].map(|bytes| Span { bytes, label });
        let mut counts = MentionCounts::default();
        assert_eq!(aligned.mentions(&spans, &mut counts).len(), 2);
        assert_eq!((counts.widened, counts.narrowed), (2, 1));
    }
}
