//! Vocabularies and Parquet files through the binary: what a model's own files say decides, and no hostile one takes the memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray};
use engraft_tests::{Engraft, binary, json};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};

const SPECIAL: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
const UNCASED: [&str; 10] = ["pain", "fever", "cafe", "café", "[", "]", "sep", "mask", "helps", "often"];
const CASED: [&str; 10] = ["pain", "fever", "Pain", "Fever", "[", "]", "Cafe", "Café", "helps", "often"];

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    base::whole::write_whole(path, text.as_bytes()).unwrap();
}

fn lines(words: &[&str]) -> String {
    SPECIAL.iter().chain(words).map(|word| format!("{word}\n")).collect()
}

/// A config that draws an encoder for `vocab.txt` in `folder`, or fine-tunes a checkpoint, on a small set.
fn config(folder: &Path, encoder: &str) -> PathBuf {
    let rows: String = (0..24)
        .map(|i| format!("{},{}\n", ["pain often", "fever helps"][i % 2], ["yes", "no"][i % 2]))
        .collect();
    write(&folder.join("kinds.csv"), &format!("note,kind\n{rows}"));
    let config = [
        "version = 5\n[vocabulary]\ncase = \"uncased\"\nfile = \"model/vocab.txt\"\n",
        encoder,
        "[[benchmarks]]\nname = \"kinds\"\n[benchmarks.set]\n\
         format = { separated = { between = \"commas\", fields = { text = \"note\", answer = { class = \"kind\" } } } }\n\
         train = [\"kinds.csv\"]\ndrawn = { seed = 1, dev = 0.2, mask_search = 0.0, test = 0.2 }\nlicence = \"free\"\n\
         [finetune]\nseeds = [1]\n\
         learning_rate = 1e-2\nepochs = 1\nbatch = 8\ndropout = 0.0\n\
         max_tokens = 16\npatience = { evaluations = 20 }\ncheckpoint_every = 3\n",
    ];
    let path = folder.join("config.toml");
    write(&path, &config.concat());
    path
}

const FRESH: &str = "[encoder]\nfrom = \"fresh\"\nseed = 1\nhidden_size = 32\nnum_hidden_layers = 1\nnum_attention_heads = 2\n\
    intermediate_size = 32\nmax_position_embeddings = 32\nhidden_dropout_prob = 0.0\nattention_probs_dropout_prob = 0.0\n";

fn engraft(verb: &[&str], folder: &Path, out: &str) -> Engraft {
    Engraft::own(verb, &folder.join("config.toml"), &folder.join(out))
}

/// The vectors of some texts.
fn vectors(model: &Path, texts: &[&str]) -> Vec<Value> {
    let asked = tempfile::tempdir().unwrap();
    let file = asked.path().join("texts.txt");
    write(&file, &(texts.join("\n") + "\n"));
    let verb = ["encode", model.to_str().unwrap(), file.to_str().unwrap()];
    let said = Engraft::plain(&verb, model).ok();
    said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["vector"].clone()).collect()
}

/// A folder with an encoder that was drawn for `words`, which is `out/encoder/model`.
fn drawn(folder: &Path, words: &[&str]) -> PathBuf {
    write(&folder.join("model/vocab.txt"), &lines(words));
    config(folder, FRESH);
    engraft(&["run", "encoder"], folder, "out").ok();
    folder.join("out/encoder/model")
}

/// The same encoder as a folder that nothing says digests of, as published ones are.
fn published(folder: &Path, model: &Path) -> PathBuf {
    let to = folder.join("published");
    fs::create_dir_all(&to).unwrap();
    for name in ["config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json"] {
        fs::copy(model.join(name), to.join(name)).unwrap();
    }
    to
}

#[test]
fn silent_15_a_cased_vocabulary_under_uncased_is_refused_unless_the_config_is_to_decide() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(&folder.join("model/vocab.txt"), &lines(&UNCASED));
    write(&folder.join("model/tokenizer_config.json"), "{\"do_lower_case\": false}");
    config(folder, FRESH);
    for verb in [&["plan"][..], &["run", "encoder"]] {
        let ran = engraft(verb, folder, "out").output();
        let text = ran.text();
        assert_ne!(ran.code(), Some(0), "{text}");
        assert!(text.contains("tokenizer_config.json: do_lower_case = false"), "{text}");
        assert!(text.contains("vocabulary.case") && text.contains("config_decides"), "{text}");
    }
    engraft(&["run", "encoder"], folder, "out").set("vocabulary.contradiction=config_decides").ok();
    let said = json(folder.join("out/encoder/model/tokenizer_config.json"));
    assert_eq!(said["do_lower_case"], true);
    engraft(&["run", "encoder"], folder, "out").set("vocabulary.case=cased").ok();
    assert_eq!(json(folder.join("out/encoder/model/tokenizer_config.json"))["do_lower_case"], false);
    // A model that says nothing, as Bio_ClinicalBERT's: its vocabulary is full of capitals.
    fs::remove_file(folder.join("model/tokenizer_config.json")).unwrap();
    write(&folder.join("model/vocab.txt"), &lines(&CASED));
    let ran = engraft(&["run", "encoder"], folder, "other").output();
    assert_ne!(ran.code(), Some(0));
    assert!(ran.text().contains("% of the entries have capitals"), "{}", ran.text());
}

#[test]
fn silent_15_a_checkpoint_that_was_trained_otherwise_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let model = published(folder, &drawn(folder, &UNCASED));
    config(folder, &format!("[encoder]\nfrom = \"checkpoint\"\npath = {:?}\n", model.to_str().unwrap()));
    let refused = |text: &str| {
        let ran = engraft(&["run", "finetune-base-kinds-1"], folder, "fine").output();
        assert_ne!(ran.code(), Some(0), "{}", ran.text());
        assert!(ran.text().contains(text), "{}", ran.text());
    };
    let said = model.join("tokenizer_config.json");
    let own = fs::read_to_string(&said).unwrap();
    write(&said, &own.replace("\"do_lower_case\": true", "\"do_lower_case\": false"));
    refused("tokenizer_config.json: do_lower_case = false");
    write(&said, "{\"strip_accents\": false}");
    refused("strip_accents = false, but the vocabulary is read with true");
    write(&said, &own);
    // As many entries, in another order: every id would be another word.
    let mut words = UNCASED;
    words.swap(0, 1);
    write(&model.join("vocab.txt"), &lines(&words));
    refused("vocab.txt: id 5 is \"fever\" there and \"pain\" in the vocabulary that is used");
    write(&model.join("vocab.txt"), &lines(&UNCASED));
    engraft(&["run", "finetune-base-kinds-1"], folder, "fine").ok();
}

#[test]
fn silent_15_accents_stay_where_the_model_keeps_them_from_the_first_file_to_the_last() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let model = drawn(folder, &UNCASED);
    let of = |model: &Path| vectors(model, &["café helps", "cafe helps"]);
    assert_eq!(of(&model)[0], of(&model)[1], "accents are stripped where nothing is said");
    assert_eq!(json(model.join("tokenizer_config.json")).get("strip_accents"), None);
    write(&folder.join("model/tokenizer_config.json"), "{\"do_lower_case\": true, \"strip_accents\": false}");
    let model = drawn(folder, &UNCASED);
    assert_eq!(json(model.join("tokenizer_config.json"))["strip_accents"], false);
    assert_ne!(of(&model)[0], of(&model)[1]);
    // The fine-tuned model says so too.
    engraft(&["run", "finetune-base-kinds-1"], folder, "out").ok();
    let said = json(folder.join("out/finetune-base-kinds-1/model/tokenizer_config.json"));
    assert_eq!((&said["strip_accents"], &said["do_lower_case"]), (&json!(false), &json!(true)));
}

/// What `BertTokenizerFast` saves for these words.
fn tokenizer_json(words: &[&str]) -> Value {
    let vocab: serde_json::Map<String, Value> = SPECIAL
        .iter()
        .chain(words)
        .zip(0..)
        .map(|(token, id)| ((*token).to_owned(), Value::from(id)))
        .collect();
    let added = SPECIAL.iter().zip(0..).map(|(token, id)| {
        json!({"id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false,
               "normalized": false, "special": true})
    });
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added.collect::<Vec<_>>(),
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": vocab},
    })
}

#[test]
fn silent_15_a_special_token_in_a_text_means_the_same_with_both_kinds_of_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let model = published(folder, &drawn(folder, &UNCASED));
    let texts = ["pain [SEP] fever", "[MASK] helps", "pain [ sep ] fever"];
    let lines = vectors(&model, &texts);
    assert_eq!(lines[0], lines[2], "it is text like any other");
    fs::remove_file(model.join("vocab.txt")).unwrap();
    write(&model.join("tokenizer.json"), &tokenizer_json(&UNCASED).to_string());
    assert_eq!(vectors(&model, &texts), lines);
}

#[test]
fn silent_18_no_tokenizer_json_makes_the_binary_panic_or_abort() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let model = published(folder, &drawn(folder, &UNCASED));
    let replace = json!({"type": "Replace", "pattern": {"String": "a"}, "content": "a".repeat(10)});
    let cases = [
        (
            "pre_tokenizer",
            json!({"type": "FixedLength", "length": 0}),
            "pre_tokenizer: found \"FixedLength\"",
        ),
        (
            "normalizer",
            json!({"type": "Precompiled", "precompiled_charsmap": "//////////8="}),
            "normalizer: found \"Precompiled\"",
        ),
        (
            "normalizer",
            json!({"type": "Sequence", "normalizers": vec![replace; 9]}),
            "normalizers[0]: found \"Replace\"",
        ),
    ];
    for (part, value, expected) in cases {
        let mut file = tokenizer_json(&UNCASED);
        file[part] = value;
        write(&model.join("tokenizer.json"), &file.to_string());
        let texts = folder.join("texts.txt");
        write(&texts, "a fever\n");
        let ran =
            Engraft::plain(&["encode", model.to_str().unwrap(), texts.to_str().unwrap()], folder).output();
        let text = ran.text();
        assert!(ran.code().is_some_and(|code| code != 0 && code != 101), "{:?} {text}", ran.code());
        assert!(text.contains(expected) && !text.contains("panicked"), "{text}");
    }
}

#[test]
fn silent_18_a_vocabulary_of_any_size_is_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let ran =
        Engraft::small(&["plan"], folder.path()).set("vocabulary.train.size=9223372036854775807").output();
    let text = ran.text();
    assert!(ran.code().is_some_and(|code| code != 0 && code != 101), "{:?} {text}", ran.code());
    assert!(text.contains("vocabulary.train.size") && text.contains("9223372036854775807"), "{text}");
    assert!(text.replace([',', '_'], "").contains("1000000"), "{text}");
}

/// A Parquet file of 340 rows of 4 MB of white space, stored once, and one of text.
fn repeated() -> Vec<u8> {
    let keys: Int32Array = (0..341).map(|row| i32::from(row == 340)).collect();
    let blank = " ".repeat(4 << 20);
    let column: DictionaryArray<Int32Type> =
        DictionaryArray::new(keys, Arc::new(StringArray::from(vec![blank.as_str(), "pain helps often"])));
    let batch = RecordBatch::try_from_iter([("text", Arc::new(column) as ArrayRef)]).unwrap();
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_dictionary_page_size_limit(1 << 30)
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn silent_18_a_small_parquet_file_does_not_take_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let file = repeated();
    assert!(file.len() < 20_000, "{} bytes hold 1.4 GB", file.len());
    base::whole::write_whole(&folder.join("in.parquet"), &file).unwrap();
    write(
        &folder.join("config.toml"),
        "version = 5\n[vocabulary]\ncase = \"uncased\"\nfile = \"vocab.txt\"\n\
         [[corpus.texts]]\nname = \"texts\"\npaths = [\"in.parquet\"]\nformat = { parquet = { column = \"text\" } }\n\
         [counts]\nmemory = \"256MiB\"\n[counts.what]\ncase = \"uncased\"\nwithin = \"document\"\n\
         pairs = \"presence\"\nadjacent = \"leave\"\nmin_count = 1\n",
    );
    write(&folder.join("vocab.txt"), &lines(&UNCASED));
    // 1.64 GB of addresses: the decoded rows alone would take 1.4, and the program itself a third of one. Allocators would reserve one or two without using them.
    let ran = Command::new("bash")
        .args(["-c", "ulimit -v 1600000; exec \"$@\"", "bash"])
        .arg(binary())
        .args(["run", "counts", "--jobs", "2", "--config", "config.toml", "--data", ".", "--out", "out"])
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .env("MIMALLOC_ARENA_RESERVE", "65536")
        .env("MALLOC_ARENA_MAX", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&ran.stderr).into_owned() + &String::from_utf8_lossy(&ran.stdout);
    assert_eq!(ran.status.code(), Some(0), "{text}");
}
