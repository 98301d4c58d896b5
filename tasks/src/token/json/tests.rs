//! Tests of what a `tokenizer.json` may have.

use serde_json::{Value, json};

use super::super::align::Aligned;
use super::super::encode::{Case, SPECIAL, Vocabulary};
use super::super::rule::Rule;
use crate::Error;

const LINES: &str =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nback\npain\n##ful\n,\n[\n]\nsep\nmask\né\n中\n文\n中文\n";

fn load(contents: &[u8], name: &str) -> Result<Vocabulary, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    base::whole::write_whole(&path, contents).unwrap();
    Vocabulary::load(&path, Case::Uncased)
}

/// BERT's own, as `BertTokenizerFast` saves it.
fn bert() -> Value {
    let vocab: serde_json::Map<String, Value> =
        LINES.lines().zip(0..).map(|(token, id)| (token.to_owned(), Value::from(id))).collect();
    let added: Vec<Value> = SPECIAL
        .iter()
        .map(|token| {
            json!({"id": vocab[*token], "content": token, "single_word": false, "lstrip": false, "rstrip": false,
                   "normalized": false, "special": true})
        })
        .collect();
    let of = |token: &str, id: u32| json!({"id": token, "ids": [id], "tokens": [token]});
    let piece = |token: &str| json!({"SpecialToken": {"id": token, "type_id": 0}});
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added,
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [piece("[CLS]"), {"Sequence": {"id": "A", "type_id": 0}}, piece("[SEP]")],
            "pair": [piece("[CLS]"), {"Sequence": {"id": "A", "type_id": 0}}, piece("[SEP]")],
            "special_tokens": {"[CLS]": of("[CLS]", 2), "[SEP]": of("[SEP]", 3)},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": vocab},
    })
}

fn read(json: &Value) -> Result<Vocabulary, Error> {
    load(json.to_string().as_bytes(), "tokenizer.json")
}

fn with(pointer: &str, value: Value) -> Value {
    let mut json = bert();
    *json.pointer_mut(pointer).unwrap() = value;
    json
}

#[test]
fn silent_15_special_tokens_in_a_text_are_text_with_both_kinds_of_file() {
    let lines = load(LINES.as_bytes(), "vocab.txt").unwrap();
    let mut unmarked = bert();
    for token in unmarked["added_tokens"].as_array_mut().unwrap() {
        // Some files forget to say that a token is special.
        token["special"] = false.into();
    }
    for json in [bert(), unmarked] {
        let json = read(&json).unwrap();
        for text in ["back [SEP] pain", "[MASK]", "pain[sep]ful", "[CLS][PAD]", "a [SEP"] {
            let ids = json.encode(text).unwrap();
            assert_eq!(ids, lines.encode(text).unwrap(), "{text:?}");
            assert!(
                !ids.iter().any(|id| [0, 2, 3, 4].contains(id)),
                "{text:?} made a special token: {ids:?}"
            );
            // Words stand where they were written, too.
            assert_eq!(
                Aligned::new(&json, text, &[]).unwrap(),
                Aligned::new(&lines, text, &[]).unwrap(),
                "{text:?}"
            );
        }
        assert_eq!(json.encode("back [SEP] pain").unwrap(), [5, 9, 11, 10, 6]);
    }
}

#[test]
fn silent_15_a_tokenizer_json_says_its_own_rule() {
    let rule = |lowercase, strip_accents, chinese| Rule { lowercase, strip_accents, chinese };
    assert_eq!(read(&bert()).unwrap().rule(), rule(true, true, true));
    let kept = with("/normalizer/strip_accents", false.into());
    let kept = read(&kept).unwrap();
    assert_eq!(kept.rule(), rule(true, false, true));
    assert_eq!(kept.encode("É").unwrap(), [13]);
    assert_eq!(read(&with("/normalizer/lowercase", false.into())).unwrap().rule(), rule(false, false, true));
    let joined = read(&with("/normalizer/handle_chinese_chars", false.into())).unwrap();
    assert_eq!((joined.rule(), joined.encode("中文").unwrap()), (rule(true, true, false), vec![16]));
    let steps = json!({"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "Lowercase"}, {"type": "StripAccents"}]});
    assert_eq!(read(&with("/normalizer", steps)).unwrap().rule(), rule(true, true, false));
    assert_eq!(read(&with("/normalizer", Value::Null)).unwrap().rule(), rule(false, false, false));
    // Another rule than BERT's words are split by: words of counts are looked for by their places.
    assert_eq!(kept.splits(), None);
}

#[test]
fn silent_18_truncation_and_padding_of_a_tokenizer_json_change_no_row() {
    let plain = read(&bert()).unwrap();
    let truncations = [
        json!({"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}),
        json!({"direction": "Left", "max_length": 1, "strategy": "LongestFirst", "stride": 5}),
        json!({"direction": "Right", "max_length": 0, "strategy": "OnlyFirst", "stride": 0}),
    ];
    let paddings = [
        json!({"strategy": {"Fixed": 1_000_000_000_000_u64}, "direction": "Right", "pad_to_multiple_of": null,
               "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}),
        json!({"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": 0,
               "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}),
    ];
    let files = truncations.map(|it| with("/truncation", it)).into_iter();
    for file in files.chain(paddings.map(|it| with("/padding", it))) {
        let read = read(&file).unwrap();
        assert_eq!(read.encode("back, painful pain").unwrap(), plain.encode("back, painful pain").unwrap());
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a list of cases")]
fn silent_18_parts_that_no_tokenizer_of_bert_has_are_refused_by_name() {
    let replace = json!({"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaaaa"});
    let nested =
        (0..9).fold(json!({"type": "Lowercase"}), |it, _| json!({"type": "Sequence", "normalizers": [it]}));
    let far = json!([{"id": 4_000_000_000_u32, "content": "new", "single_word": false, "lstrip": false, "rstrip": false,
                      "normalized": false, "special": false}]);
    let cases = [
        ("/pre_tokenizer", json!({"type": "FixedLength", "length": 0}), "FixedLength"),
        (
            "/pre_tokenizer",
            json!({"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": false}),
            "Split",
        ),
        (
            "/pre_tokenizer",
            json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}),
            "ByteLevel",
        ),
        (
            "/pre_tokenizer",
            json!({"type": "Sequence", "pretokenizers": [{"type": "CharDelimiterSplit", "delimiter": " "}]}),
            "CharDelimiterSplit",
        ),
        ("/pre_tokenizer", Value::Null, "null"),
        (
            "/normalizer",
            json!({"type": "Precompiled", "precompiled_charsmap": "AQAAAP////8AAAAA"}),
            "Precompiled",
        ),
        (
            "/normalizer",
            json!({"type": "Precompiled", "precompiled_charsmap": "//////////8="}),
            "Precompiled",
        ),
        ("/normalizer", replace.clone(), "Replace"),
        (
            "/normalizer",
            json!({"type": "Sequence", "normalizers": vec![replace; 9]}),
            "normalizer.normalizers[0]: found \"Replace\"",
        ),
        (
            "/normalizer",
            json!({"type": "Sequence", "normalizers": vec![json!({"type": "NFD"}); 17]}),
            "17 steps",
        ),
        ("/normalizer", nested, "Sequence"),
        ("/normalizer", json!({"type": "Prepend", "prepend": "a "}), "Prepend"),
        ("/model", json!({"type": "Unigram", "vocab": {}, "merges": []}), "\"BPE\""),
        ("/model/unk_token", json!("nope"), "nope"),
        ("/model/continuing_subword_prefix", json!(""), "model.continuing_subword_prefix"),
        ("/model/max_input_chars_per_word", json!(u64::MAX), "max_input_chars_per_word"),
        ("/model/max_input_chars_per_word", json!(0), "max_input_chars_per_word"),
        ("/model/vocab/back", json!(u32::MAX), "without a hole"),
        ("/model/vocab/back", json!(0), "without a hole"),
        ("/model/vocab/back", json!(-1), "not a tokenizer.json"),
        (
            "/decoder",
            json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}),
            "decoder",
        ),
        (
            "/post_processor",
            json!({"type": "RobertaProcessing", "sep": ["</s>", 3], "cls": ["<s>", 2], "trim_offsets": true, "add_prefix_space": true}),
            "RobertaProcessing",
        ),
        ("/post_processor/special_tokens/[CLS]/ids", json!([99_999_999]), "post_processor"),
        ("/post_processor/single", json!([]), "post_processor"),
        ("/added_tokens/1/content", json!(""), "added_tokens[1]"),
        ("/added_tokens/1/id", json!(77), "added token \"[UNK]\" has the id 77"),
        ("/added_tokens", far, "has the id 4000000000"),
    ];
    for (pointer, value, expected) in cases {
        let file = with(pointer, value);
        let error = read(&file).err().map(|error| error.to_string());
        let error =
            error.unwrap_or_else(|| format!("{pointer} was read: {}", file.pointer(pointer).unwrap()));
        assert!(error.contains(expected), "{pointer}: {error}");
    }
    let mut whole_words = with("/normalizer/lowercase", false.into());
    whole_words["pre_tokenizer"] = json!({"type": "WhitespaceSplit"});
    let error = read(&whole_words).unwrap_err().to_string();
    assert!(error.contains("makes a special token of the text \"[PAD]\""), "{error}");
    let deep = format!("{{\"normalizer\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(
        load(deep.as_bytes(), "tokenizer.json").unwrap_err().to_string().contains("not a tokenizer.json")
    );
}

#[test]
fn tokens_that_are_added_without_being_special_are_looked_for() {
    let mut json = bert();
    let id = LINES.lines().count();
    json["added_tokens"].as_array_mut().unwrap().push(json!({
        "id": id, "content": "covid-19", "single_word": false, "lstrip": false, "rstrip": false, "normalized": true, "special": false
    }));
    assert_eq!(read(&json).unwrap().encode("back COVID-19").unwrap(), [5, u32::try_from(id).unwrap()]);
}

#[test]
fn a_folder_says_which_inputs_its_model_has() {
    let folder = tempfile::tempdir().unwrap();
    let (file, into) = (folder.path().join("tokenizer.json"), folder.path().join("model"));
    std::fs::create_dir(&into).unwrap();
    base::whole::write_whole(&file, bert().to_string().as_bytes()).unwrap();
    let vocabulary = Vocabulary::load(&file, Case::Uncased).unwrap();
    crate::token::folder::add(&into, &file, &vocabulary, Some(64)).unwrap();
    let said: Value =
        serde_json::from_slice(&std::fs::read(into.join("tokenizer_config.json")).unwrap()).unwrap();
    assert_eq!(said["model_input_names"], json!(["input_ids", "token_type_ids", "attention_mask"]));
}
