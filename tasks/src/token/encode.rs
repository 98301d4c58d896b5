//! A vocabulary, and texts to token ids: BERT's WordPiece from `vocab.txt` or `tokenizer.json`, RoBERTa's byte-level BPE from `vocab.json` with
//! `merges.txt` or from `tokenizer.json`.
//!
//! What stands in a text never becomes a special token: `[SEP]` or `<mask>` in it is text like any other, with any kind of file
//! (in `transformers`: `split_special_tokens=True`). Entries that a `tokenizer.json` adds without calling them special are looked for.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use base::read::ReadError;
use batch::family::Family;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use serde::{Deserialize, Serialize};
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{Model, Tokenizer};

pub use text::word::Case;

use super::align::Subword;
use super::rule::Rule;
use super::special::read;
pub use super::special::{SPECIAL, Special, names_of_special};
use super::{bpe, json};
use crate::Error;

/// The bytes of the vocabulary at `path` as one file: what is there, or the `tokenizer.json` of a `vocab.json` and its `merges.txt`.
///
/// # Errors
/// When a file cannot be read, or is none of its kind.
pub fn one_file(path: &Path) -> Result<Vec<u8>, Error> {
    let bytes =
        read(path).map_err(|error| Error::at(path, format!("cannot read the vocabulary: {error}"), ""))?;
    if bpe::is_in_two_files(path) { bpe::whole(path, &bytes) } else { Ok(bytes) }
}

/// Ids with a hole or a repetition; `id` is the first that is not the next.
pub(super) fn numbers(path: &Path, id: u32) -> Error {
    let problem =
        format!("token ids must run from 0 without a hole or a repetition, but around {id} they do not");
    Error::at(path, problem, "")
}

/// A text that the tokenizer refuses.
fn refused(text: &str, problem: &dyn std::fmt::Display) -> Error {
    Error::Unfit(format!("cannot encode {text:?}: {problem}"))
}

/// A vocabulary ready to encode.
#[derive(Debug, Clone)]
pub struct Vocabulary {
    tokenizer: Tokenizer,
    special: Special,
    size: usize,
    rule: Rule,
    /// The case of BERT's words, where texts are split into those and into nothing else.
    splits: Option<Case>,
    /// What byte-level BPE spells by besides its entries.
    spelling: Option<blake3::Hash>,
}

impl Vocabulary {
    /// Reads `vocab.txt` (one token per line; `rule`, or that of a case, decides on lower-casing) or, if the name ends in `.json`, a
    /// `tokenizer.json`, or `vocab.json` with the `merges.txt` beside it (which bring their own rule; `rule` is then not used, and
    /// [`Vocabulary::rule`] says what it is).
    ///
    /// # Errors
    /// When the file cannot be read, is no vocabulary, or lacks a special token.
    pub fn load(path: &Path, rule: impl Into<Rule>) -> Result<Self, Error> {
        let bytes = one_file(path)?;
        let is_json = path.extension().is_some_and(|e| e == "json");
        let (tokenizer, rule) = if is_json {
            let tokenizer = json::tokenizer(path, &bytes)?;
            let rule = Rule::of(&tokenizer);
            (tokenizer, rule)
        } else {
            let rule = rule.into();
            (from_lines(path, &bytes, rule)?, rule)
        };
        let splits = Some(rule.case()).filter(|case| !is_json && Rule::from(*case) == rule);
        let family = bpe::family(&tokenizer);
        let names = names_of_special(family);
        let id = |token: &'static str| {
            let missing = || {
                let problem = format!("the vocabulary has no {token}");
                Error::at(path, problem, format!("the special tokens {names:?} must all be entries of it"))
            };
            tokenizer.token_to_id(token).ok_or_else(missing)
        };
        let [padding, unknown, cls, sep, blank] = names;
        let special = Special {
            padding: id(padding)?,
            unknown: id(unknown)?,
            cls: id(cls)?,
            sep: id(sep)?,
            blank: id(blank)?,
            family,
        };
        let mut ids: Vec<u32> = tokenizer.get_vocab(true).into_values().collect();
        ids.sort_unstable();
        if let Some((_, id)) = (0..).zip(ids.iter().copied()).find(|(expected, id)| expected != id) {
            return Err(numbers(path, id));
        }
        let spelling = if family.is_bert() { None } else { bpe::spelling(&bytes) };
        let vocabulary = Self { tokenizer, special, size: ids.len(), rule, splits, spelling };
        if is_json {
            json::check_texts(path, &vocabulary)?;
        }
        Ok(vocabulary)
    }

    /// How texts are normalised.
    #[must_use]
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// The share of entries that no text can have, since they have capitals and texts are lower-cased. Entries in brackets, such as
    /// `[UNK]`, do not count.
    #[must_use]
    pub fn out_of_reach(&self) -> f64 {
        let capital = |c: char| c.to_lowercase().ne(std::iter::once(c));
        let names = (0..self.size).filter_map(|id| self.token(u32::try_from(id).ok()?));
        let lost = names.filter(|name| !name.starts_with(['[', '<']) && name.contains(capital)).count();
        if self.rule.lowercase { lost as f64 / self.size as f64 } else { 0.0 }
    }

    /// The first id that is another token in `other`; `None` where the two are one.
    #[must_use]
    pub fn differs(&self, other: &Self) -> Option<u32> {
        let ids = 0..u32::try_from(self.size.max(other.size)).unwrap_or(u32::MAX);
        ids.into_iter().find(|id| self.token(*id) != other.token(*id))
    }

    /// Whether merges and the space in front of texts are those of `other`; BERT's vocabularies spell by entries alone.
    #[must_use]
    pub fn spells_as(&self, other: &Self) -> bool {
        self.spelling == other.spelling
    }

    /// Ids of the special tokens.
    #[must_use]
    pub fn special(&self) -> Special {
        self.special
    }

    /// The entry of an id, `##` in front of one that goes on a word.
    #[must_use]
    pub fn token(&self, id: u32) -> Option<String> {
        self.tokenizer.id_to_token(id)
    }

    /// Number of entries (V).
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Ids of one text, without `[CLS]` and `[SEP]`.
    ///
    /// # Errors
    /// When the tokenizer refuses the text.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, Error> {
        let encoding = self.tokenizer.encode_fast(text, false);
        let encoding = encoding.map_err(|error| refused(text, &error))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// The case of the words that texts are split into, where those are BERT's ([`text::word::Words`]) for certain; a `tokenizer.json` may
    /// have any rule, and entries that it looks for before words.
    #[must_use]
    pub fn splits(&self) -> Option<Case> {
        self.splits
    }

    /// A word as it stands behind another: byte-level BPE takes the space in front for a part of it.
    #[must_use]
    pub fn within<'w>(&self, word: &'w str) -> Cow<'w, str> {
        match self.special.family {
            Family::Bert => Cow::Borrowed(word),
            Family::Roberta => Cow::Owned(format!(" {word}")),
        }
    }

    /// What an entry writes: without `##` or the space in front of it, and bytes that are no characters as U+FFFD.
    #[must_use]
    pub fn written(&self, id: u32) -> Option<String> {
        let token = self.token(id)?;
        Some(match self.special.family {
            Family::Bert => token.strip_prefix("##").unwrap_or(&token).to_owned(),
            Family::Roberta if self.special.all().contains(&id) => token,
            Family::Roberta => bpe::written(&token),
        })
    }

    /// Ids of one of BERT's words, as [`Vocabulary::encode`] spells it within a text, into `ids`.
    ///
    /// # Errors
    /// When the tokenizer refuses the word.
    pub fn spell(&self, word: &str, ids: &mut Vec<u32>) -> Result<(), Error> {
        if self.splits.is_none() {
            ids.extend(self.encode(word)?);
            return Ok(());
        }
        let subwords = self.tokenizer.get_model().tokenize(word);
        let subwords = subwords.map_err(|error| refused(word, &error))?;
        ids.extend(subwords.iter().map(|subword| subword.id));
        Ok(())
    }

    /// The subwords of one text as the tokenizer places them, without `[CLS]` and `[SEP]`; a word is what it cut off before looking
    /// into the vocabulary, and numbers of words may have gaps. [`super::align::Aligned`] fills in what it leaves out.
    pub(crate) fn encode_placed(&self, text: &str) -> Result<Vec<Subword>, Error> {
        let encoding = self.tokenizer.encode(text, false);
        let encoding = encoding.map_err(|error| refused(text, &error))?;
        let places = encoding.get_ids().iter().zip(encoding.get_offsets()).zip(encoding.get_word_ids());
        let subword = |((&id, &(start, end)), word): ((&u32, &(usize, usize)), &Option<u32>)| {
            let mut bytes = start..end;
            if self.special.family == Family::Roberta {
                // The space in front of a word is a part of its first subword, but not of the word.
                let written = text.get(bytes.clone()).unwrap_or_default();
                bytes.start += written.len() - written.trim_start_matches(' ').len();
            }
            Subword { id, word: word.map_or(0, |word| word as usize), bytes }
        };
        Ok(places.map(subword).collect())
    }

    /// Ids of many texts, each cut to `limit` tokens. The result does not depend on the number of threads.
    ///
    /// # Errors
    /// When the tokenizer refuses a text.
    pub fn encode_all(&self, texts: &[&str], limit: usize) -> Result<EncodedTexts, Error> {
        let ids: Result<Vec<Vec<u32>>, Error> = texts.par_iter().map(|text| self.encode(text)).collect();
        Ok(EncodedTexts::new(&ids?, limit, self.special.unknown))
    }
}

/// Many encoded texts in one buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedTexts {
    starts: Vec<usize>,
    ids: Vec<u32>,
    /// What was cut and what could not be spelt.
    pub counts: EncodeCounts,
}

/// What happened to texts on their way to token ids.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EncodeCounts {
    /// Texts encoded.
    pub texts: u64,
    /// Texts longer than the limit, which were cut to it.
    pub truncated: u64,
    /// Texts that became no token at all; they stand as one `[UNK]`.
    pub empty: u64,
    /// Texts with at least one `[UNK]`.
    pub with_unknown: u64,
    /// How many texts have each length in tokens, before cutting.
    pub lengths: BTreeMap<usize, u64>,
}

impl EncodedTexts {
    fn new(texts: &[Vec<u32>], limit: usize, unknown: u32) -> Self {
        let mut counts = EncodeCounts { texts: texts.len() as u64, ..EncodeCounts::default() };
        let (mut starts, mut ids) = (vec![0], Vec::new());
        for text in texts {
            *counts.lengths.entry(text.len()).or_default() += 1;
            counts.truncated += u64::from(text.len() > limit);
            counts.empty += u64::from(text.is_empty());
            counts.with_unknown += u64::from(text.contains(&unknown));
            if text.is_empty() {
                ids.push(unknown); // a column without a token could be neither shown nor asked for
            }
            ids.extend_from_slice(&text[..text.len().min(limit)]);
            starts.push(ids.len());
        }
        Self { starts, ids, counts }
    }

    /// The ids of text `index`.
    ///
    /// # Panics
    /// When there is no such text.
    #[must_use]
    pub fn get(&self, index: usize) -> &[u32] {
        &self.ids[self.starts[index]..self.starts[index + 1]]
    }
}

fn from_lines(path: &Path, bytes: &[u8], rule: Rule) -> Result<Tokenizer, Error> {
    let bad = |line: usize, problem: String| {
        let place = format!("{}: line {}", path.display(), line + 1);
        let expected = "one token per line, as in BERT's vocab.txt";
        Error::from(ReadError::new(place, problem, expected, ""))
    };
    let mut vocabulary = BTreeMap::new();
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    for (number, line) in body.split(|&b| b == b'\n').enumerate() {
        let token = std::str::from_utf8(line).map_err(|e| bad(number, format!("invalid UTF-8: {e}")))?;
        let token = token.strip_suffix('\r').unwrap_or(token);
        if token.is_empty() {
            return Err(bad(number, "an empty token".to_owned()));
        }
        let id = u32::try_from(number).map_err(|_| bad(number, "too many tokens".to_owned()))?;
        if let Some(first) = vocabulary.insert(token.to_owned(), id) {
            return Err(bad(number, format!("token {token:?} stands already on line {}", first + 1)));
        }
    }
    let model = WordPiece::builder()
        .vocab(vocabulary.into_iter().collect::<ahash::AHashMap<String, u32>>())
        .unk_token("[UNK]".to_owned())
        .continuing_subword_prefix("##".to_owned())
        .build()
        .map_err(|e| bad(0, e.to_string()))?;
    let mut tokenizer = Tokenizer::new(model);
    tokenizer.with_normalizer(Some(rule.normalizer())).map_err(|e| bad(0, e.to_string()))?;
    tokenizer.with_pre_tokenizer(Some(BertPreTokenizer));
    Ok(tokenizer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(contents: &[u8], name: &str, case: Case) -> Result<Vocabulary, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        base::whole::write_whole(&path, contents).unwrap();
        Vocabulary::load(&path, case)
    }

    const LINES: &[u8] = b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nback\npain\n##ful\n,\nBack\n";

    #[test]
    fn words_become_pieces_as_in_bert() {
        let vocabulary = load(LINES, "vocab.txt", Case::Uncased).unwrap();
        assert_eq!(vocabulary.encode("Back, painful!").unwrap(), [5, 8, 6, 7, 1]);
        assert_eq!(vocabulary.size(), 10);
        assert_eq!(load(LINES, "vocab.txt", Case::Cased).unwrap().encode("Back back").unwrap(), [9, 5]);
    }

    #[test]
    fn a_tokenizer_json_encodes_as_its_vocabulary_does_and_keeps_no_limit() {
        let mut vocabulary = load(LINES, "vocab.txt", Case::Uncased).unwrap();
        let limit = tokenizers::TruncationParams { max_length: 2, ..Default::default() };
        vocabulary.tokenizer.with_truncation(Some(limit)).unwrap();
        let json = vocabulary.tokenizer.to_string(false).unwrap();
        let again = load(json.as_bytes(), "tokenizer.json", Case::Cased).unwrap();
        assert_eq!(again.encode("Back, painful!").unwrap(), [5, 8, 6, 7, 1]);
        assert_eq!(again.special(), vocabulary.special());
    }

    #[test]
    fn texts_are_cut_and_counted() {
        let vocabulary = load(LINES, "vocab.txt", Case::Uncased).unwrap();
        let texts = vocabulary.encode_all(&["back pain", "", "back back back back", "zzz"], 3).unwrap();
        assert_eq!(texts.get(2), [5, 5, 5]);
        assert_eq!(texts.get(1), [1]);
        let counts = &texts.counts;
        assert_eq!((counts.texts, counts.truncated, counts.empty, counts.with_unknown), (4, 1, 1, 1));
        assert_eq!(counts.lengths, BTreeMap::from([(0, 1), (1, 1), (2, 1), (4, 1)]));
    }

    #[test]
    fn bad_vocabularies_are_refused_with_their_line() {
        let refuse = |bytes: &[u8], name: &str| load(bytes, name, Case::Cased).unwrap_err().to_string();
        assert!(refuse(b"[PAD]\n\nback\n", "vocab.txt").contains("line 2: an empty token"));
        assert!(refuse(b"[PAD]\nback\nback\n", "vocab.txt").contains("line 3"));
        assert!(refuse(b"[PAD]\n\xff\xfe\n", "vocab.txt").contains("line 2: invalid UTF-8"));
        assert!(refuse(b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n", "vocab.txt").contains("no [MASK]"));
        assert!(refuse(b"{}", "tokenizer.json").contains("model: found null, expected \"WordPiece\""));
        assert!(refuse(b"[]", "tokenizer.json").contains("not a tokenizer.json"));
    }
}
