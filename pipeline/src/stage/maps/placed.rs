//! Questions beside passages, with the places of the passage's words: where in a row an answer stands, and what answer a model's logits say.

use std::ops::Range;

use batch::maps::sample::{NO_WORD, Sample};
use model::output::Ends;
use rayon::iter::ParallelIterator;
use rayon::slice::ParallelSlice;
use tasks::Error;
use tasks::maps::generators::{From, Generator, Limits};
use tasks::maps::reader::Reader;
use tasks::maps::tools::Tools;
use text::word::Word as Written;

/// Pairs of one thread at a time.
const PAIRS: usize = 16;
/// Texts of one thread at a time.
const TEXTS: usize = 64;

/// A word of a text, before it is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Where it stands, in bytes.
    pub bytes: Range<usize>,
    /// How many tokens it has.
    pub tokens: usize,
}

/// How a question and a passage share rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Tokens that both have room for.
    pub room: usize,
    /// Tokens that the rows of a passage share.
    pub overlap: usize,
    /// Most tokens of a question; of it and the half of a row the smaller number counts.
    pub question: usize,
}

/// As much of a question as rows show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Fitted {
    /// Its words.
    pub words: usize,
    /// Where the last one ends.
    pub bytes: usize,
    /// Its tokens.
    pub tokens: usize,
}

/// A part of a text.
#[derive(Debug, Clone)]
pub(crate) struct Part<'t> {
    /// The text.
    pub text: &'t str,
    /// The part, in bytes.
    pub bytes: Range<usize>,
}

/// A row of a question and a passage.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Placed {
    /// The row.
    pub sample: Sample,
    /// The words of the passage that it has room for, each with its tokens in the row.
    words: Vec<Word>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    bytes: Range<usize>,
    tokens: Range<usize>,
}

/// What a model takes for the answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Best {
    /// Where it stands in the passage, in bytes.
    pub bytes: Range<usize>,
    /// Its logit, that of both ends, above that of no answer.
    pub score: f32,
}

/// The words of each text.
///
/// # Errors
/// When the tokenizer refuses a text: its number.
pub(crate) fn counted(tools: &Tools, texts: &[&str]) -> Result<Vec<Vec<Counted>>, (usize, Error)> {
    let some = |texts: &[&str]| {
        let mut reader = Reader::new(tools);
        let mut of = |(number, text): (usize, &&str)| {
            reader.read_unmarked(text).map_err(|error| (number, error))?;
            let word = |(number, word): (usize, Written<'_>)| Counted {
                tokens: reader.spelt().get(number).map_or(0, |(_, ids)| ids.len()),
                bytes: word.bytes,
            };
            Ok(reader.words().iter().enumerate().map(word).collect())
        };
        texts.iter().enumerate().map(&mut of).collect::<Result<Vec<_>, _>>()
    };
    joined(texts.par_chunks(TEXTS).map(some).collect(), TEXTS)
}

/// The rows of questions and passages within `limits`.
///
/// # Errors
/// When the tokenizer refuses a text: the number of its pair.
pub(crate) fn placed(
    tools: &Tools,
    limits: Limits,
    pairs: &[[Part<'_>; 2]],
) -> Result<Vec<Placed>, (usize, Error)> {
    joined(pairs.par_chunks(PAIRS).map(|pairs| some_placed(tools, limits, pairs)).collect(), PAIRS)
}

fn some_placed(
    tools: &Tools,
    limits: Limits,
    pairs: &[[Part<'_>; 2]],
) -> Result<Vec<Placed>, (usize, Error)> {
    let spell = |word: &str| tools.vocabulary().encode(&tools.vocabulary().within(word));
    let from = From { limits, ..tools.from(&spell) };
    let mut generator = Generator::new(from).map_err(|error| (0, error.into()))?;
    let (mut first, mut second) = (Reader::new(tools), Reader::new(tools));
    let mut one = |[question, passage]: &[Part<'_>; 2]| {
        first.read_part(question.text, question.bytes.clone())?;
        second.read_part(passage.text, passage.bytes.clone())?;
        let sample = generator.build(first.text(), Some(second.text()))?;
        let words = words_of_second(&sample).into_iter().zip(second.words().iter());
        let words = words.map(|(tokens, word)| Word { bytes: word.bytes, tokens }).collect();
        Ok(Placed { sample, words })
    };
    let numbered = pairs.iter().enumerate();
    numbered.map(|(number, pair)| one(pair).map_err(|error| (number, error))).collect()
}

/// Chunks of so many, one behind the other, or the first error with its number among all.
fn joined<T>(chunks: Vec<Result<Vec<T>, (usize, Error)>>, of: usize) -> Result<Vec<T>, (usize, Error)> {
    let mut all = vec![];
    for (number, chunk) in chunks.into_iter().enumerate() {
        all.extend(chunk.map_err(|(at, error)| (number * of + at, error))?);
    }
    Ok(all)
}

/// The tokens of each word of a pair's second text.
fn words_of_second(sample: &Sample) -> Vec<Range<usize>> {
    let words = &sample.words[..usize::from(sample.real)];
    // Behind the first text stands what is in no word, as before it.
    let first = 1 + words[1..].iter().take_while(|word| **word != NO_WORD).count();
    let mut found: Vec<Range<usize>> = vec![];
    let mut last = NO_WORD;
    for (token, &word) in words.iter().enumerate().skip(first).filter(|(_, word)| **word != NO_WORD) {
        match found.last_mut().filter(|_| word == last) {
            Some(tokens) => tokens.end = token + 1,
            None => found.push(token..token + 1),
        }
        last = word;
    }
    found
}

impl Placed {
    /// The tokens of an answer at these bytes of the passage, those of whole words; of none the first of the row, as of an answer beyond it.
    pub(crate) fn ends(&self, answer: Option<&Range<usize>>) -> Ends {
        let tokens = self.sample.input_ids.len();
        let found = answer.and_then(|answer| {
            let first = self.words.iter().find(|word| word.bytes.end > answer.start)?;
            let last = self.words.iter().rfind(|word| word.bytes.start < answer.end)?;
            let whole = first.bytes.start < answer.end && self.words.last()?.bytes.end >= answer.end;
            whole.then(|| Ends { tokens, first: first.tokens.start, last: last.tokens.end - 1 })
        });
        found.unwrap_or(Ends { tokens, first: 0, last: 0 })
    }

    /// The `most` spans of whole words of the passage, each of at most `longest` tokens or one word, with the largest logits of both ends, those of each token being `logits`, the
    /// best one in front; of equal ones the first. None where the row has no word of it.
    pub(crate) fn best(&self, logits: &[Vec<f32>], longest: usize, most: usize) -> Vec<Best> {
        let none = logits[0][0] + logits[0][1];
        let mut best: Vec<Best> = vec![];
        for (at, first) in self.words.iter().enumerate() {
            for (further, last) in self.words[at..].iter().enumerate() {
                if further > 0 && last.tokens.end - first.tokens.start > longest {
                    break;
                }
                let score = logits[first.tokens.start][0] + logits[last.tokens.end - 1][1] - none;
                let place = best.partition_point(|other| other.score >= score);
                if place < most {
                    best.truncate(most - 1);
                    best.insert(place, Best { bytes: first.bytes.start..last.bytes.end, score });
                }
            }
        }
        best
    }
}

impl Layout {
    /// As much of a question as fits.
    pub(crate) fn question(&self, words: &[Counted]) -> Fitted {
        let mut fitted = Fitted::default();
        for word in words {
            if fitted.tokens + word.tokens > self.question.min(self.room / 2) {
                break;
            }
            let (words, tokens) = (fitted.words + 1, fitted.tokens + word.tokens);
            fitted = Fitted { words, bytes: word.bytes.end, tokens };
        }
        fitted
    }

    /// The windows of a passage beside a question, in bytes: each but the first begins where the word in front ends, since byte-level BPE takes the space for a part of the word.
    pub(crate) fn windows(&self, question: &Fitted, words: &[Counted]) -> Vec<Range<usize>> {
        let of_words = windows(words, self.room - question.tokens, self.overlap).into_iter();
        let start =
            |word: usize| word.checked_sub(1).map_or(words[0].bytes.start, |before| words[before].bytes.end);
        of_words.map(|window| start(window.start)..words[window.end - 1].bytes.end).collect()
    }
}

/// The words of each of the windows that a passage is cut into: as many as have `room` tokens together, each window but the first beginning with words of the one before,
/// of up to `overlap` tokens.
fn windows(words: &[Counted], room: usize, overlap: usize) -> Vec<Range<usize>> {
    let (mut all, mut start) = (vec![], 0);
    while start < words.len() {
        let (mut end, mut filled) = (start, 0);
        while end < words.len() && (end == start || filled + words[end].tokens <= room) {
            filled += words[end].tokens;
            end += 1;
        }
        all.push(start..end);
        if end == words.len() {
            break;
        }
        // A word more than before must have room beside what is shown again.
        let most = overlap.min(room.saturating_sub(words[end].tokens));
        let (mut next, mut shared) = (end, 0);
        while next > start + 1 && shared + words[next - 1].tokens <= most {
            next -= 1;
            shared += words[next].tokens;
        }
        start = next;
    }
    all
}

#[cfg(test)]
mod tests {
    use tasks::token::encode::{Case, Vocabulary};

    use super::*;

    fn tools() -> Tools {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vocab.txt");
        let entries = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nwhere\n?\nin\nghent\n##s\n,\nnee\n";
        base::whole::write_whole(&path, entries.as_bytes()).unwrap();
        Tools::plain(Vocabulary::load(&path, Case::Uncased).unwrap(), Case::Uncased).unwrap()
    }

    const LIMITS: Limits = Limits { tokens: 12, terms: 0, auxiliary: 0 };

    fn asked(passage: &str) -> [Part<'_>; 2] {
        ["Where?", passage].map(|text| Part { text, bytes: 0..text.len() })
    }

    #[test]
    fn an_answer_stands_at_the_tokens_of_its_words() {
        let passage = "Née in  Ghents, Ghent";
        let placed = placed(&tools(), LIMITS, &[asked(passage)]).unwrap().remove(0);
        // [CLS] where ? [SEP] nee in ghent ##s , ghent [SEP]
        assert_eq!(placed.sample.input_ids, [2, 5, 6, 3, 11, 7, 8, 9, 10, 8, 3]);
        let at = |text: &str| {
            let start = passage.find(text).unwrap();
            let Ends { first, last, .. } = placed.ends(Some(&(start..start + text.len())));
            (first, last)
        };
        assert_eq!(
            (at("Née"), at("Ghents"), at("in  Ghents,"), at("hent")),
            ((4, 4), (6, 7), (5, 8), (6, 7))
        );
        assert_eq!(placed.ends(None), Ends { tokens: 11, first: 0, last: 0 });
        assert_eq!((placed.ends(Some(&(4..5))).last, placed.ends(Some(&(30..31))).last), (0, 0));
        let short =
            super::placed(&tools(), Limits { tokens: 8, ..LIMITS }, &[asked(passage)]).unwrap().remove(0);
        // Ghents has no room: an answer that ends there does not stand in the row.
        assert_eq!((short.sample.cut, short.ends(Some(&(0..4))).first), (4, 4));
        assert_eq!((short.ends(Some(&(0..15))).last, short.ends(Some(&(9..15))).last), (0, 0));
    }

    #[test]
    fn the_best_span_has_both_ends_in_the_passage_and_is_not_too_long() {
        let passage = "Née in Ghents, Ghent";
        let placed = placed(&tools(), LIMITS, &[asked(passage)]).unwrap().remove(0);
        let mut logits = vec![vec![0.0, 0.0]; 11];
        logits[0] = vec![1.0, 0.5];
        logits[1] = vec![9.0, 9.0];
        logits[4][0] = 3.0;
        logits[7][1] = 4.0;
        logits[9][1] = 5.0;
        let best = |longest| {
            let Best { bytes, score } = placed.best(&logits, longest, 1).remove(0);
            (passage[bytes].to_owned(), score)
        };
        assert_eq!(best(6), (passage.to_owned(), 6.5));
        assert_eq!(best(4), ("Née in Ghents".to_owned(), 5.5));
        // A word is an answer however many tokens it has, and of equal ones the first counts.
        assert_eq!(best(1), ("Ghent".to_owned(), 3.5));
        logits[9][1] = 4.0;
        let two = placed.best(&logits, 1, 2);
        assert_eq!((two[0].bytes.clone(), two[1].bytes.clone(), two.len()), (8..14, 16..21, 2));
    }

    /// A byte-level BPE by which a word behind a space is one token, and at the beginning of a text five.
    fn bytes() -> Tools {
        let printable = |byte: &u32| (33..127).contains(byte) || (161..173).contains(byte) || *byte > 173;
        let (own, other): (Vec<u32>, Vec<u32>) = (0..256).partition(|byte| printable(byte));
        let letters = own.into_iter().chain((256..).take(other.len()));
        let letters = letters.map(|letter| char::from_u32(letter).unwrap().to_string());
        let merges = ["Ġ g", "Ġg h", "Ġgh e", "Ġghe n", "Ġghen t"];
        let special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"].map(str::to_owned);
        let entries = special.into_iter().chain(letters).chain(merges.map(|merge| merge.replace(' ', "")));
        let entries: serde_json::Map<_, _> =
            entries.zip(0..).map(|(entry, id)| (entry, serde_json::Value::from(id))).collect();
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: String| {
            base::whole::write_whole(&folder.path().join(name), text.as_bytes()).unwrap();
        };
        write("vocab.json", serde_json::Value::Object(entries).to_string());
        write("merges.txt", format!("#version: 0.2\n{}\n", merges.join("\n")));
        let vocabulary = Vocabulary::load(&folder.path().join("vocab.json"), Case::Cased).unwrap();
        Tools::plain(vocabulary, Case::Cased).unwrap()
    }

    #[test]
    fn windows_keep_the_space_in_front_that_byte_level_bpe_counts_with_a_word() {
        let (tools, passage) = (bytes(), vec!["ghent"; 40].join(" "));
        let counted = counted(&tools, &["a b", &passage]).unwrap();
        assert_eq!((counted[1][0].tokens, counted[1][1].tokens), (5, 1));
        for overlap in [0, 3, 6] {
            let layout = Layout { room: 16, overlap, question: 64 };
            let question = layout.question(&counted[0]);
            let windows = layout.windows(&question, &counted[1]);
            let pairs = windows.iter().map(|window| {
                [Part { text: "a b", bytes: 0..3 }, Part { text: &passage, bytes: window.clone() }]
            });
            let pairs: Vec<[Part<'_>; 2]> = pairs.collect();
            let placed = placed(&tools, Limits { tokens: 20, terms: 0, auxiliary: 0 }, &pairs).unwrap();
            let mut until = 0;
            for (window, placed) in windows.iter().zip(&placed) {
                assert!(placed.sample.cut == 0 && window.start <= until + 1, "{overlap}: {windows:?}");
                until = window.start + placed.words.last().unwrap().bytes.end;
                assert_eq!(until, window.end);
            }
            assert_eq!(until, passage.len());
        }
    }

    #[test]
    fn windows_overlap_and_lose_no_word() {
        let words = |tokens: &[usize]| -> Vec<Counted> {
            tokens.iter().map(|&tokens| Counted { bytes: 0..0, tokens }).collect()
        };
        assert_eq!(windows(&words(&[1, 2, 1, 1, 3, 1]), 4, 2), [0..3, 2..4, 3..5, 5..6]);
        assert_eq!(windows(&words(&[1, 9, 1]), 4, 3), [0..1, 1..2, 2..3]);
        assert!(windows(&[], 4, 2).is_empty());
        for (room, overlap) in (1..9).flat_map(|room| (0..room).map(move |overlap| (room, overlap))) {
            let words = words(&[1, 3, 1, 1, 2, 5, 1, 1, 1, 4, 1]);
            let found = windows(&words, room, overlap);
            assert_eq!((found[0].start, found.last().unwrap().end), (0, words.len()));
            for pair in found.windows(2) {
                assert!(
                    pair[0].start < pair[1].start
                        && pair[1].start <= pair[0].end
                        && pair[0].end < pair[1].end
                );
                let shared: usize = words[pair[1].start..pair[0].end].iter().map(|word| word.tokens).sum();
                assert!(shared <= overlap);
            }
        }
    }
}
