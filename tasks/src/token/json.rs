//! A `tokenizer.json` of Hugging Face, checked part by part before `tokenizers` makes anything of it.
//!
//! That library panics or takes all memory on some files (pieces of length 0, a damaged character map, replacements that grow with each
//! of their kind). So only parts that BERT's and RoBERTa's tokenizers are made of are let through, each in a bounded size. Truncation and padding are
//! left out: rows are cut and filled by engraft alone. The post-processor is left out too, once it is found to do what engraft's rows do.

use std::path::Path;

use base::read::ReadError;
use batch::family::Family;
use serde_json::{Map, Value, json};
use tokenizers::Tokenizer;

use super::bpe;
use super::encode::{self, Vocabulary, names_of_special};
use crate::Error;

/// Normalisers that are read. None makes a text many times longer.
const NORMALIZERS: [&str; 8] =
    ["BertNormalizer", "Lowercase", "StripAccents", "Strip", "NFC", "NFD", "NFKC", "NFKD"];
/// Ways to cut a text into words that are read.
const PRE_TOKENIZERS: [&str; 5] =
    ["BertPreTokenizer", "Whitespace", "WhitespaceSplit", "Punctuation", "Digits"];
/// Most steps of a sequence.
const STEPS: usize = 16;
/// Most characters of a word, of which time takes the square; BERT's have 100.
const LONGEST_WORD: u64 = 1000;

/// Parts of a file, and where it lies.
struct Parts<'a> {
    path: &'a Path,
    all: Map<String, Value>,
    family: Family,
}

/// A part of the file that is not read.
fn unsupported(path: &Path, part: &str, found: &str, expected: &str) -> Error {
    let remedy = "engraft reads the tokenizers of BERT and RoBERTa: name the model's vocab.txt (vocab.json), or write the file anew with these parts alone";
    ReadError::new(format!("{}: {part}", path.display()), format!("found {found}"), expected, remedy).into()
}

/// The tokenizer in `bytes`.
pub(super) fn tokenizer(path: &Path, bytes: &[u8]) -> Result<Tokenizer, Error> {
    let bad = |problem: String| Error::at(path, format!("not a tokenizer.json: {problem}"), "");
    let all = serde_json::from_slice(bytes).map_err(|e| bad(e.to_string()))?;
    let Value::Object(all) = all else { return Err(bad("expected an object".to_owned())) };
    // Old files do not say which model it is; only BPE has merges.
    let is_bpe = all.get("model").is_some_and(|model| {
        model["type"] == "BPE" || model.get("type").is_none() && model.get("merges").is_some()
    });
    let family = if is_bpe { Family::Roberta } else { Family::Bert };
    let mut parts = Parts { path, all, family };
    parts.model()?;
    match family {
        Family::Bert => {
            parts.steps("normalizer", "normalizers", &NORMALIZERS)?;
            parts.steps("pre_tokenizer", "pretokenizers", &PRE_TOKENIZERS)?;
        }
        Family::Roberta => parts.bytes()?,
    }
    parts.decoder()?;
    parts.post_processor()?;
    let added = parts.added()?;
    let mut take = |name: &str| parts.all.remove(name).unwrap_or(Value::Null);
    let known = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added,
        "normalizer": take("normalizer"), "pre_tokenizer": take("pre_tokenizer"),
        "post_processor": null, "decoder": null, "model": take("model"),
    });
    let known = serde_json::to_vec(&known).map_err(|e| bad(e.to_string()))?;
    let mut tokenizer = Tokenizer::from_bytes(known).map_err(|e| bad(e.to_string()))?;
    for token in added.as_array().into_iter().flatten() {
        let (content, id) = (token["content"].as_str().unwrap_or_default(), token["id"].as_u64());
        let found = tokenizer.token_to_id(content).map(u64::from);
        if found != id {
            let problem = format!(
                "added token {content:?} has the id {}, but {found:?} is its place behind the others",
                token["id"]
            );
            return Err(bad(problem));
        }
    }
    tokenizer.set_encode_special_tokens(true);
    Ok(tokenizer)
}

/// Refuses a tokenizer that makes special tokens of texts.
pub(super) fn check_texts(path: &Path, vocabulary: &Vocabulary) -> Result<(), Error> {
    let special = vocabulary.special();
    for token in names_of_special(special.family) {
        for text in [token.to_owned(), format!("a {token} b"), format!("a{token}b")] {
            let ids = vocabulary.encode(&text)?;
            if ids.iter().any(|id| *id != special.unknown && special.all().contains(id)) {
                let found = format!("one that makes a special token of the text {text:?}");
                let expected = "one that cuts punctuation off, as BertPreTokenizer and ByteLevel do";
                return Err(unsupported(path, "pre_tokenizer", &found, expected));
            }
        }
    }
    Ok(())
}

impl Parts<'_> {
    fn unsupported<T>(&self, place: &str, found: &Value, expected: &str) -> Result<T, Error> {
        let written = match found.get("type").filter(|kind| kind.is_string()) {
            Some(kind) => kind.to_string(),
            None => found.to_string(),
        };
        let mut start: String = written.chars().take(80).collect();
        if start.len() < written.len() {
            start.push_str(" ...");
        }
        Err(unsupported(self.path, place, &start, expected))
    }

    fn get(&self, name: &str) -> &Value {
        self.all.get(name).unwrap_or(&Value::Null)
    }

    /// WordPiece with BERT's names of its parts, or byte-level BPE.
    fn model(&self) -> Result<(), Error> {
        let model = self.get("model");
        let known = model.is_object() && matches!(model["type"].as_str(), None | Some("WordPiece" | "BPE"));
        if !known || !model["vocab"].is_object() {
            return self.unsupported("model", model, "\"WordPiece\" or \"BPE\" with its vocab");
        }
        let entries = model["vocab"].as_object().map_or(0, Map::len);
        let all = entries + self.get("added_tokens").as_array().map_or(0, Vec::len);
        // The library counts on from the highest id.
        let ids = model["vocab"].as_object().into_iter().flat_map(Map::values).filter_map(Value::as_u64);
        if let Some(id) = ids.max().filter(|id| *id >= all as u64) {
            let id = u32::try_from(id).unwrap_or(u32::MAX);
            return Err(encode::numbers(self.path, id));
        }
        if self.family == Family::Roberta {
            return match bpe::fault(model) {
                None => Ok(()),
                Some((place, found, expected)) => self.unsupported(&place, &found, &expected),
            };
        }
        for (key, expected) in [("unk_token", "[UNK]"), ("continuing_subword_prefix", "##")] {
            if model[key].as_str() != Some(expected) {
                return self.unsupported(&format!("model.{key}"), &model[key], &format!("{expected:?}"));
            }
        }
        let longest = &model["max_input_chars_per_word"];
        if longest.as_u64().is_none_or(|most| !(1..=LONGEST_WORD).contains(&most)) {
            let expected = format!("a number from 1 to {LONGEST_WORD}");
            return self.unsupported("model.max_input_chars_per_word", longest, &expected);
        }
        Ok(())
    }

    /// One step of those in `known`, or a sequence of them.
    fn steps(&self, name: &str, list: &str, known: &[&str]) -> Result<(), Error> {
        let part = self.get(name);
        let one = |place: &str, step: &Value| {
            let is_known = step["type"].as_str().is_some_and(|kind| known.contains(&kind));
            let expected = format!("one of {}, or a flat Sequence of at most {STEPS}", known.join(", "));
            if is_known { Ok(()) } else { self.unsupported(place, step, &expected) }
        };
        if part.is_null() && name == "normalizer" {
            return Ok(());
        }
        match part["type"].as_str().filter(|kind| *kind == "Sequence").and(part[list].as_array()) {
            None => one(name, part),
            Some(steps) if (1..=STEPS).contains(&steps.len()) => {
                let mut places = steps.iter().enumerate();
                places.try_for_each(|(at, step)| one(&format!("{name}.{list}[{at}]"), step))
            }
            Some(steps) => {
                let found = Value::from(format!("{} steps", steps.len()));
                self.unsupported(name, &found, &format!("1 to {STEPS} steps"))
            }
        }
    }

    /// Texts are cut as GPT-2 cuts them, and are not normalised.
    fn bytes(&self) -> Result<(), Error> {
        let (normalizer, pre) = (self.get("normalizer"), self.get("pre_tokenizer"));
        if !normalizer.is_null() {
            return self.unsupported("normalizer", normalizer, "null, as RoBERTa has it");
        }
        if pre["type"] != "ByteLevel" || pre["use_regex"] == false {
            return self.unsupported("pre_tokenizer", pre, "\"ByteLevel\" with use_regex");
        }
        Ok(())
    }

    fn decoder(&self) -> Result<(), Error> {
        let decoder = self.get("decoder");
        let expected = match self.family {
            Family::Bert => "WordPiece",
            Family::Roberta => "ByteLevel",
        };
        if decoder.is_null() || decoder["type"] == expected {
            return Ok(());
        }
        self.unsupported("decoder", decoder, &format!("{expected:?}, or null"))
    }

    /// None, or one that makes `[CLS] text [SEP]`: rows are laid out so here, and `transformers` follows the file.
    fn post_processor(&self) -> Result<(), Error> {
        let post = self.get("post_processor");
        let [_, _, cls, sep, _] = names_of_special(self.family);
        let added = |token: &str| {
            let mut added = self.get("added_tokens").as_array().into_iter().flatten();
            added.find(|one| one["content"] == token).map_or(&Value::Null, |one| &one["id"])
        };
        let id = |token: &str| self.get("model")["vocab"].get(token).unwrap_or_else(|| added(token));
        let fits = match post["type"].as_str() {
            None => post.is_null(),
            Some("BertProcessing" | "RobertaProcessing") => [("cls", cls), ("sep", sep)]
                .iter()
                .all(|(key, token)| post[*key] == json!([token, id(token)])),
            // It moves places of tokens, and adds none.
            Some("ByteLevel") => self.family == Family::Roberta,
            Some("TemplateProcessing") => {
                let piece = |item: &Value| {
                    let name = item.pointer("/SpecialToken/id").or_else(|| item.pointer("/Sequence/id"));
                    name.and_then(Value::as_str).unwrap_or_default().to_owned()
                };
                let single = post["single"].as_array();
                let single: Option<Vec<String>> = single.map(|items| items.iter().map(piece).collect());
                single.is_some_and(|single| single == [cls, "A", sep])
                    && [cls, sep]
                        .iter()
                        .all(|token| post["special_tokens"][*token]["ids"] == json!([id(token)]))
            }
            Some(_) => false,
        };
        if fits {
            return Ok(());
        }
        self.unsupported(
            "post_processor",
            post,
            &format!("null, or a BertProcessing, RobertaProcessing or TemplateProcessing that makes \"{cls} text {sep}\" with the vocabulary's ids"),
        )
    }

    /// The added tokens, the special ones marked as special whatever the file says: texts must not make them.
    fn added(&self) -> Result<Value, Error> {
        let mut added = match self.get("added_tokens") {
            Value::Null => return Ok(json!([])),
            Value::Array(added) => added.clone(),
            other => return self.unsupported("added_tokens", other, "a list of tokens"),
        };
        for (at, token) in added.iter_mut().enumerate() {
            let content = token["content"].as_str().unwrap_or_default();
            if content.trim().is_empty() || !token["id"].is_u64() {
                let expected = "an object with an id and a content that is not blank";
                return self.unsupported(&format!("added_tokens[{at}]"), token, expected);
            }
            if names_of_special(self.family).contains(&content) {
                token["special"] = true.into();
            }
        }
        Ok(added.into())
    }
}

#[cfg(test)]
mod tests;
