//! A document as rows will show it: its tokens, its mentions, and where it is cut.
//!
//! A cut goes where it hurts least: between sentences, else between words, else inside an entity, and inside a word only if that
//! word alone is longer than a row. Of equally good places in the later half of a row the last is taken; a better place in the
//! earlier half is taken only if the later half has nothing but entities and words that would be cut.

use std::ops::{AddAssign, Range};

use crate::Error;
use crate::token::align::{Aligned, Mention, MentionCounts, Subword};
use crate::token::encode::{Special, Vocabulary};
use text::{Document, sentence};

/// A subword of a document, as rows show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// Its id in the vocabulary.
    pub id: u32,
    /// Number of its word in the document, from 0 and without gaps.
    pub word: u32,
}

/// A document in tokens, cut into chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// All tokens.
    pub tokens: Vec<Token>,
    /// The marked spans, in order.
    pub mentions: Vec<Mention>,
    /// The tokens of each chunk; together they are all tokens.
    pub chunks: Vec<Range<usize>>,
    /// Ids of the special tokens.
    pub special: Special,
}

/// What became of documents on their way to chunks.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Counts {
    /// Documents.
    pub documents: u64,
    /// Of those, documents without a subword, which have no chunk.
    pub empty: u64,
    /// Subwords.
    pub subwords: u64,
    /// Spans.
    pub mentions: MentionCounts,
    /// Chunks.
    pub chunks: u64,
    /// Cuts between two chunks, by where they fell.
    pub cuts: Cuts,
}

/// Cuts by where they fell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Cuts {
    /// Between two sentences.
    pub between_sentences: u64,
    /// Between two words of a sentence.
    pub between_words: u64,
    /// Between two words of an entity: no better place was left.
    pub in_entity: u64,
    /// Inside a word that alone is longer than a row.
    pub in_word: u64,
}

impl Counts {
    /// Adds another count.
    pub fn add(&mut self, other: &Counts) {
        let Counts { documents, empty, subwords, mentions, chunks, cuts } = other;
        self.documents += documents;
        self.empty += empty;
        self.subwords += subwords;
        self.mentions.add(mentions);
        self.chunks += chunks;
        let Cuts { between_sentences, between_words, in_entity, in_word } = cuts;
        self.cuts.between_sentences += between_sentences;
        self.cuts.between_words += between_words;
        self.cuts.in_entity += in_entity;
        self.cuts.in_word += in_word;
    }
}

impl AddAssign<Border> for Cuts {
    fn add_assign(&mut self, border: Border) {
        let count = match border {
            Border::Sentence => &mut self.between_sentences,
            Border::Word => &mut self.between_words,
            Border::Entity => &mut self.in_entity,
            Border::Inside => &mut self.in_word,
        };
        *count += 1;
    }
}

impl Passage {
    /// Encodes a document and cuts it into chunks that, with `[CLS]` and `[SEP]`, have at most `max_tokens` tokens.
    ///
    /// # Errors
    /// When the tokenizer refuses the text, or a row has no room for text.
    pub fn new(
        vocabulary: &Vocabulary,
        document: &Document,
        max_tokens: usize,
        counts: &mut Counts,
    ) -> Result<Self, Error> {
        let room = max_tokens.checked_sub(2).filter(|room| *room > 0).ok_or_else(|| {
            let problem =
                "have no room for text beside [CLS] and [SEP]; expected 3 at least: raise max_tokens";
            Error::Unfit(format!("rows of {max_tokens} tokens {problem}"))
        })?;
        let aligned = Aligned::new(vocabulary, &document.text, &document.words)?;
        let mentions = aligned.mentions(&document.spans, &mut counts.mentions);
        let length = aligned.subwords().len();
        let mut chunks = Vec::new();
        if length > room {
            let borders = borders(&aligned, &mentions, &sentence::of(&document.text, &document.sentences));
            let mut start = 0;
            while length - start > room {
                let end = choose(&borders, start, room);
                counts.cuts += borders[end];
                chunks.push(std::mem::replace(&mut start, end)..end);
            }
            chunks.push(start..length);
        } else if length > 0 {
            chunks.push(0..length);
        }
        counts.documents += 1;
        counts.empty += u64::from(length == 0);
        counts.subwords += length as u64;
        counts.chunks += chunks.len() as u64;
        let token = |subword: &Subword| {
            let word = u32::try_from(subword.word);
            let word = word.map_err(|_| Error::unfit("a document has more than 4,294,967,295 words"))?;
            Ok(Token { id: subword.id, word })
        };
        let tokens = aligned.subwords().iter().map(token).collect::<Result<_, Error>>()?;
        Ok(Self { tokens, mentions, chunks, special: vocabulary.special() })
    }

    /// The tokens of that chunk; none where the passage has no such chunk.
    pub(super) fn chunk(&self, chunk: usize) -> Range<usize> {
        self.chunks.get(chunk).cloned().unwrap_or(0..0)
    }

    /// The mentions that have a subword in a chunk.
    pub(super) fn mentions_in(&self, chunk: &Range<usize>) -> &[Mention] {
        let first = self.mentions.partition_point(|mention| mention.subwords.end <= chunk.start);
        let last = self.mentions.partition_point(|mention| mention.subwords.start < chunk.end);
        &self.mentions[first..last.max(first)]
    }
}

/// What a cut in front of a subword would part, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Border {
    Inside,
    Entity,
    Word,
    Sentence,
}

/// The border in front of each subword; that in front of the first is never asked for.
fn borders(aligned: &Aligned, mentions: &[Mention], sentences: &[usize]) -> Vec<Border> {
    let subwords = aligned.subwords();
    let mut borders = vec![Border::Inside; subwords.len()];
    for word in aligned.words() {
        borders[word.start] = Border::Word;
    }
    for start in sentences {
        // The subword that begins with the sentence, or the first one behind that place.
        let at = subwords.partition_point(|subword| subword.bytes.start < *start);
        if let Some(border) = borders.get_mut(at).filter(|border| **border == Border::Word) {
            *border = Border::Sentence;
        }
    }
    for Mention { subwords, .. } in mentions {
        for border in &mut borders[subwords.start + 1..subwords.end] {
            *border = (*border).min(Border::Entity);
        }
    }
    borders
}

/// Where the chunk that begins at `start` ends.
fn choose(borders: &[Border], start: usize, room: usize) -> usize {
    let best =
        |from: usize| (from..=start + room).max_by_key(|at| (borders[*at], *at)).unwrap_or(start + room);
    let late = best(start + 1 + room / 2);
    if borders[late] >= Border::Word { late } else { best(start + 1) }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::OnceLock;

    use super::*;
    use crate::token::encode::Case;
    use text::{Labels, Span};

    /// Letters are subwords, so `abc` is a word of three.
    pub(crate) fn vocabulary() -> &'static Vocabulary {
        static VOCABULARY: OnceLock<Vocabulary> = OnceLock::new();
        VOCABULARY.get_or_init(|| {
            let mut tokens: Vec<String> = crate::token::encode::SPECIAL.map(str::to_owned).into();
            tokens.extend(('a'..='z').flat_map(|c| [c.to_string(), format!("##{c}")]));
            tokens.push(".".to_owned());
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("vocab.txt");
            base::whole::write_whole(&path, (tokens.join("\n") + "\n").as_bytes()).unwrap();
            Vocabulary::load(&path, Case::Uncased).unwrap()
        })
    }

    /// A document in which `[...]` marks entities of kind `X` and `{...}` of kind `Y`.
    pub(crate) fn document(marked: &str, labels: &mut Labels) -> Document {
        let kinds = ["X", "Y"].map(|name| labels.intern(name).unwrap());
        let mut document = Document::default();
        let mut open = 0;
        for c in marked.chars() {
            match c {
                '[' | '{' => open = document.text.len(),
                ']' | '}' => document
                    .spans
                    .push(Span { bytes: open..document.text.len(), label: kinds[usize::from(c == '}')] }),
                _ => document.text.push(c),
            }
        }
        document
    }

    fn cut(marked: &str, max_tokens: usize) -> (Vec<String>, Counts) {
        let document = document(marked, &mut Labels::default());
        let mut counts = Counts::default();
        let passage = Passage::new(vocabulary(), &document, max_tokens, &mut counts).unwrap();
        let aligned = Aligned::new(vocabulary(), &document.text, &document.words).unwrap();
        let text = |chunk| document.text[aligned.bytes(chunk).unwrap()].to_owned();
        (passage.chunks.iter().map(text).collect(), counts)
    }

    #[test]
    fn a_document_is_cut_where_it_hurts_least() {
        let (chunks, counts) = cut("Ab cd. Ef ghi. J kl mn op qrstuvwx yz", 10);
        assert_eq!(chunks, ["Ab cd.", "Ef ghi.", "J kl mn op", "qrstuvwx", "yz"]);
        assert_eq!(counts.cuts, Cuts { between_sentences: 2, between_words: 2, in_entity: 0, in_word: 0 });
        assert_eq!((counts.chunks, counts.documents, counts.subwords), (5, 1, 28));
        let (chunks, counts) = cut("ab cd [ef gh] ij", 8);
        assert_eq!(chunks, ["ab cd", "ef gh ij"], "an entity stays whole");
        assert_eq!(counts.cuts.between_words, 1);
        let (chunks, counts) = cut("a [bc de fg hi] j", 7);
        assert_eq!(chunks, ["a", "bc de", "fg hi j"], "an entity longer than a row is cut between its words");
        assert_eq!((counts.cuts.between_words, counts.cuts.in_entity), (1, 1));
        let (chunks, counts) = cut("abcdefg hi", 5);
        assert_eq!((chunks, counts.cuts.in_word), (["abc", "def", "g hi"].map(str::to_owned).into(), 2));
    }

    #[test]
    fn short_and_empty_documents_are_not_cut() {
        let (chunks, counts) = cut("Ab. Cd.", 8);
        assert_eq!((chunks.len(), counts.cuts), (1, Cuts::default()));
        let (chunks, counts) = cut(" ", 8);
        assert_eq!((chunks.len(), counts.empty, counts.chunks), (0, 1, 0));
    }

    #[test]
    fn chunks_are_the_document_and_never_too_long() {
        let text = "Pain of the back. It is [very common] in adults. No cause is known, but [long sitting at work] is one.";
        for max_tokens in 3..120 {
            let mut counts = Counts::default();
            let document = document(text, &mut Labels::default());
            let passage = Passage::new(vocabulary(), &document, max_tokens, &mut counts).unwrap();
            assert!(passage.chunks.iter().all(|c| !c.is_empty() && c.len() + 2 <= max_tokens));
            let joined: Vec<usize> = passage.chunks.iter().cloned().flatten().collect();
            assert_eq!(joined, (0..passage.tokens.len()).collect::<Vec<_>>());
            let Cuts { between_sentences, between_words, in_entity, in_word } = counts.cuts;
            assert_eq!(between_sentences + between_words + in_entity + in_word + 1, counts.chunks);
            if max_tokens > 22 {
                assert_eq!((in_entity, in_word), (0, 0), "{max_tokens}: both entities fit a row");
            }
        }
        let error = Passage::new(vocabulary(), &Document::default(), 2, &mut Counts::default()).unwrap_err();
        assert!(error.to_string().contains("rows of 2 tokens have no room"), "{error}");
    }
}
