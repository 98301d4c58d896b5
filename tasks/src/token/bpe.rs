//! Byte-level BPE, the vocabulary of RoBERTa: what of a `tokenizer.json` is read, and one made of `vocab.json` and `merges.txt`.

use std::path::Path;

use base::read::ReadError;
use batch::family::Family;
use serde_json::{Map, Value, json};
use tokenizers::models::ModelWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{Decoder as _, Tokenizer};

use super::special::{names_of_special, read};
use crate::Error;

/// The file of entries; merges stand in [`MERGES_FILE`] beside it.
pub const ENTRIES_FILE: &str = "vocab.json";
/// The file of merges, the first one first.
pub const MERGES_FILE: &str = "merges.txt";
/// What `transformers` says of the tokenizer besides.
const SETTINGS_FILE: &str = "tokenizer_config.json";

/// Whether the vocabulary at `path` has its merges in a file of their own.
#[must_use]
pub fn is_in_two_files(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == ENTRIES_FILE)
}

/// Whose vocabulary a tokenizer has.
pub(super) fn family(tokenizer: &Tokenizer) -> Family {
    match tokenizer.get_model() {
        ModelWrapper::BPE(_) => Family::Roberta,
        _ => Family::Bert,
    }
}

/// The `tokenizer.json` of the entries in `bytes`, of the merges beside them, and of `add_prefix_space` in the `tokenizer_config.json` there, if any.
///
/// # Errors
/// When a file cannot be read, or is none of its kind.
pub(super) fn whole(path: &Path, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let bad = |path: &Path, problem: String| Error::at(path, problem, "");
    let vocab: Map<String, Value> = serde_json::from_slice(bytes).map_err(|error| {
        bad(path, format!("no entries with their ids, as RoBERTa's vocab.json has them: {error}"))
    })?;
    let file = path.with_file_name(MERGES_FILE);
    let text = read(&file)
        .map_err(|error| bad(&file, format!("cannot read the merges of {}: {error}", path.display())))?;
    let text = String::from_utf8(text).map_err(|error| bad(&file, format!("invalid UTF-8: {error}")))?;
    let mut merges = Vec::new();
    for (number, line) in text.lines().enumerate().skip(usize::from(text.starts_with("#version"))) {
        if line.is_empty() {
            continue;
        }
        let Some((first, second)) = line.split_once(' ').filter(|(_, second)| !second.contains(' ')) else {
            let place = format!("{}: line {}", file.display(), number + 1);
            let found = format!("found {line:?}");
            return Err(ReadError::new(
                place,
                found,
                "two entries with a space between, as in RoBERTa's merges.txt",
                "",
            )
            .into());
        };
        merges.push(json!([first, second]));
    }
    let special = |name: &str| vocab.get(name).cloned().unwrap_or(Value::Null);
    let names = names_of_special(Family::Roberta);
    let [_, _, cls, sep, blank] = names;
    let added: Vec<Value> = names
        .iter()
        .filter(|name| vocab.contains_key(**name))
        .map(|name| {
            json!({"id": special(name), "content": name, "single_word": false, "lstrip": *name == blank, "rstrip": false,
                   "normalized": false, "special": true})
        })
        .collect();
    let space = prefix_space(&path.with_file_name(SETTINGS_FILE))?;
    let whole = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": space, "trim_offsets": true, "use_regex": true},
        "post_processor": {"type": "RobertaProcessing", "sep": [sep, special(sep)], "cls": [cls, special(cls)],
                           "trim_offsets": true, "add_prefix_space": space},
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "",
                  "end_of_word_suffix": "", "fuse_unk": false, "vocab": vocab, "merges": merges},
    });
    serde_json::to_vec(&whole).map_err(|error| bad(path, error.to_string()))
}

/// The two entries of a merge, which newer files have as a list.
fn parts(merge: &Value) -> Option<(&str, &str)> {
    match merge {
        Value::String(line) => line.split_once(' '),
        Value::Array(pair) => match &pair[..] {
            [Value::String(first), Value::String(second)] => Some((first, second)),
            _ => None,
        },
        _ => None,
    }
}

/// A digest of what texts are spelt by besides the entries: merges in their order, and whether texts get a space in front; of a `tokenizer.json`.
pub(super) fn spelling(whole: &[u8]) -> Option<blake3::Hash> {
    let whole: Value = serde_json::from_slice(whole).ok()?;
    let mut digest = blake3::Hasher::new();
    for merge in whole["model"]["merges"].as_array()? {
        let (first, second) = parts(merge)?;
        digest.update(format!("{first} {second}\n").as_bytes());
    }
    digest.update(&[u8::from(whole["pre_tokenizer"]["add_prefix_space"] == true)]);
    Some(digest.finalize())
}

/// What an entry's bytes write, without white space in front.
pub(super) fn written(entry: &str) -> String {
    let decoded = ByteLevel::default().decode(vec![entry.to_owned()]);
    decoded.unwrap_or_default().trim_start().to_owned()
}

/// Whether texts get a space in front, by a file that may not be there.
fn prefix_space(path: &Path) -> Result<bool, Error> {
    match read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => {
            Err(Error::at(path, format!("cannot read what the model's tokenizer does: {error}"), ""))
        }
        Ok(bytes) => {
            let all: Value = serde_json::from_slice(&bytes)
                .map_err(|error| Error::at(path, format!("no settings of a tokenizer: {error}"), ""))?;
            Ok(all["add_prefix_space"].as_bool().unwrap_or(false))
        }
    }
}

/// The first thing about a model of a `tokenizer.json` that is not RoBERTa's: its place, what is there, and what was expected.
pub(super) fn fault(model: &Value) -> Option<(String, Value, String)> {
    let wrong = |place: &str, found: &Value, expected: &str| {
        Some((format!("model{place}"), found.clone(), expected.to_owned()))
    };
    for (key, read) in [
        ("dropout", &[Value::Null, json!(0.0)][..]),
        ("unk_token", &[Value::Null, json!("<unk>")]),
        ("continuing_subword_prefix", &[Value::Null, json!("")]),
        ("end_of_word_suffix", &[Value::Null, json!("")]),
        ("fuse_unk", &[Value::Null, json!(false)]),
        ("byte_fallback", &[Value::Null, json!(false)]),
        ("ignore_merges", &[Value::Null, json!(false)]),
    ] {
        if !read.contains(&model[key]) {
            let expected: Vec<String> = read.iter().map(Value::to_string).collect();
            return wrong(&format!(".{key}"), &model[key], &expected.join(" or "));
        }
    }
    let Some(vocab) = model["vocab"].as_object() else {
        return wrong(".vocab", &model["vocab"], "entries with their ids");
    };
    if vocab.contains_key("") {
        return wrong(".vocab", &json!(""), "entries of a character or more");
    }
    // Without an entry for it, a byte of a text would be left out and nobody told.
    let mut bytes: Vec<char> = ByteLevel::alphabet().into_iter().collect();
    bytes.sort_unstable();
    if let Some(lacking) =
        bytes.into_iter().find(|byte| !vocab.contains_key(byte.encode_utf8(&mut [0; 4]) as &str))
    {
        return wrong(
            ".vocab",
            &json!(format!("no entry {lacking:?}")),
            "an entry for each of the 256 bytes, as byte-level BPE has",
        );
    }
    let Some(merges) = model["merges"].as_array() else {
        return wrong(".merges", &model["merges"], "a list of pairs of entries");
    };
    for (at, merge) in merges.iter().enumerate() {
        // Of a merge to no entry the library may panic.
        let is_known = |(first, second): &(&str, &str)| {
            [*first, *second, &format!("{first}{second}")].iter().all(|entry| vocab.contains_key(*entry))
        };
        if !parts(merge).as_ref().is_some_and(is_known) {
            return wrong(
                &format!(".merges[{at}]"),
                merge,
                "two entries of the vocabulary that make a third",
            );
        }
    }
    None
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::encode::{self, Case, Vocabulary};
    use super::*;
    use base::whole::write_whole;
    use tempfile::TempDir;

    /// A small vocabulary in two files: the special tokens, all bytes, and some merges.
    pub(crate) fn folder() -> TempDir {
        let merges = ["p a", "i n", "pa in", "Ġ pain", ") .", "' t", "u l", "f ul"];
        let mut bytes: Vec<char> = ByteLevel::alphabet().into_iter().collect();
        bytes.sort_unstable();
        let entries = names_of_special(Family::Roberta).map(str::to_owned).into_iter();
        let entries = entries.chain(bytes.iter().map(char::to_string));
        let entries = entries.chain(merges.map(|merge| merge.replace(' ', "")));
        let vocab: Map<String, Value> =
            entries.zip(0..).map(|(entry, id)| (entry, Value::from(id))).collect();
        let folder = tempfile::tempdir().unwrap();
        write(&folder, ENTRIES_FILE, &Value::Object(vocab).to_string());
        write(&folder, MERGES_FILE, &format!("#version: 0.2\n{}\n", merges.join("\n")));
        folder
    }

    fn write(folder: &TempDir, name: &str, text: &str) {
        write_whole(&folder.path().join(name), text.as_bytes()).unwrap();
    }

    pub(crate) fn load(folder: &TempDir) -> Result<Vocabulary, Error> {
        Vocabulary::load(&folder.path().join(ENTRIES_FILE), Case::Cased)
    }

    fn spelt(vocabulary: &Vocabulary, text: &str) -> Vec<String> {
        vocabulary.encode(text).unwrap().into_iter().map(|id| vocabulary.token(id).unwrap()).collect()
    }

    #[test]
    fn two_files_are_one_tokenizer_and_words_take_the_space_in_front() {
        let folder = folder();
        let vocabulary = load(&folder).unwrap();
        assert_eq!(spelt(&vocabulary, "pain pain"), ["pain", "Ġpain"]);
        assert_eq!(spelt(&vocabulary, &vocabulary.within("painful")), ["Ġpain", "ful"]);
        assert_eq!(spelt(&vocabulary, "é <s>"), ["Ã", "©", "Ġ", "<", "s", ">"]);
        assert_eq!(vocabulary.special().family, Family::Roberta);
        let written = |text: &str| vocabulary.written(vocabulary.encode(text).unwrap()[0]).unwrap();
        assert_eq!((written(" pain").as_str(), written("é").as_str()), ("pain", "\u{fffd}"));
        assert_eq!(vocabulary.written(vocabulary.special().blank).unwrap(), "<mask>");
        let path = folder.path().join("tokenizer.json");
        write_whole(&path, &encode::one_file(&folder.path().join(ENTRIES_FILE)).unwrap()).unwrap();
        let one = Vocabulary::load(&path, Case::Uncased).unwrap();
        assert_eq!((one.differs(&vocabulary), one.rule()), (None, vocabulary.rule()));
        assert!(one.spells_as(&vocabulary));
        write(&folder, SETTINGS_FILE, "{\"add_prefix_space\": true}");
        let spaced = load(&folder).unwrap();
        assert_eq!(spelt(&spaced, "pain pain"), ["Ġpain", "Ġpain"]);
        assert!(spaced.differs(&vocabulary).is_none() && !spaced.spells_as(&vocabulary));
    }

    #[test]
    fn what_is_not_robertas_is_named() {
        let refused = |name: &str, from: &str, to: &str| {
            let folder = folder();
            let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
            assert!(text.contains(from), "{text}");
            write(&folder, name, &text.replacen(from, to, 1));
            load(&folder).unwrap_err().to_string()
        };
        let text = refused(MERGES_FILE, "i n", "i  n");
        assert!(text.contains("merges.txt: line 3: found \"i  n\", expected two entries"), "{text}");
        let text = refused(MERGES_FILE, "p a\n", "p q\n");
        assert!(text.contains("model.merges[0]: found [\"p\",\"q\"], expected two entries"), "{text}");
        let text = refused(ENTRIES_FILE, "\"Ġ\"", "\"x y\"");
        assert!(text.contains("an entry for each of the 256 bytes"), "{text}");
        let text = refused(ENTRIES_FILE, "\"<mask>\"", "\"<blank>\"");
        assert!(text.contains("the vocabulary has no <mask>"), "{text}");
        assert!(refused(ENTRIES_FILE, "{", "[").contains("no entries with their ids"));
        let folder = folder();
        std::fs::remove_file(folder.path().join(MERGES_FILE)).unwrap();
        assert!(load(&folder).unwrap_err().to_string().contains("merges.txt: cannot read the merges"));
    }

    #[test]
    fn parts_of_a_tokenizer_json_that_read_otherwise_are_refused() {
        let folder = folder();
        let whole = encode::one_file(&folder.path().join(ENTRIES_FILE)).unwrap();
        let whole: Value = serde_json::from_slice(&whole).unwrap();
        let path = folder.path().join("tokenizer.json");
        let refused = |pointer: &str, value: Value| {
            let mut json = whole.clone();
            *json.pointer_mut(pointer).unwrap() = value;
            write_whole(&path, json.to_string().as_bytes()).unwrap();
            Vocabulary::load(&path, Case::Cased).map(|_| ()).map_err(|error| error.to_string())
        };
        for (pointer, value, part) in [
            ("/model/dropout", json!(0.1), "model.dropout"),
            ("/model/end_of_word_suffix", json!("</w>"), "model.end_of_word_suffix"),
            ("/model/merges", json!({}), "model.merges"),
            ("/model/merges/1", json!(["i"]), "model.merges[1]"),
            ("/model/merges/1", json!(["in", "pain"]), "model.merges[1]"),
            ("/normalizer", json!({"type": "NFC"}), "normalizer"),
            ("/pre_tokenizer/use_regex", json!(false), "pre_tokenizer"),
            ("/pre_tokenizer", json!({"type": "Whitespace"}), "pre_tokenizer"),
            ("/decoder", json!({"type": "WordPiece"}), "decoder"),
            ("/post_processor/cls/1", json!(7), "post_processor"),
            (
                "/post_processor",
                json!({"type": "BertProcessing", "cls": ["[CLS]", 1], "sep": ["[SEP]", 2]}),
                "post_processor",
            ),
        ] {
            let text = refused(pointer, value).unwrap_err();
            assert!(text.contains(&format!("tokenizer.json: {part}: found")), "{pointer}: {text}");
        }
        let mut untyped = whole.clone();
        untyped["model"].as_object_mut().unwrap().remove("type");
        write_whole(&path, untyped.to_string().as_bytes()).unwrap();
        let old = Vocabulary::load(&path, Case::Cased).unwrap();
        assert!(old.special().family == Family::Roberta && old.spells_as(&load(&folder).unwrap()));
        for pointer in ["/post_processor", "/decoder"] {
            refused(pointer, Value::Null).unwrap();
        }
        let old = whole["model"]["merges"].as_array().unwrap().iter();
        let old = old.map(|pair| format!("{} {}", pair[0].as_str().unwrap(), pair[1].as_str().unwrap()));
        refused("/model/merges", old.collect()).unwrap();
        refused(
            "/post_processor",
            json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true}),
        )
        .unwrap();
    }
}
