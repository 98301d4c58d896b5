//! Model folders: damage, numbers that are none, weights in several files, padded tables, and sizes that lie, as `predict`, `encode` and training meet
//! them.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use engraft_tests::{Engraft, Ran, json};
use serde_json::Value;

const TABLE: &str = "embeddings.word_embeddings.weight";
const FRESH: &str = "[encoder]\nfrom = \"fresh\"\nseed = 1\nhidden_size = 16\nnum_hidden_layers = 1\nnum_attention_heads = 2\n\
    intermediate_size = 16\nmax_position_embeddings = 16\nhidden_dropout_prob = 0.0\nattention_probs_dropout_prob = 0.0\n";

/// A set of 40 texts of two kinds, its vocabulary, and a config that fine-tunes the encoder of `encoder` on it.
fn config(folder: &Path, encoder: &str) {
    let mut rows = "note,kind\n".to_owned();
    for i in 0..40 {
        let kind = if i % 2 == 0 { "fever" } else { "pain" };
        writeln!(rows, "\"today {kind}\",{kind}").unwrap();
    }
    let words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nfever\npain\ntoday\n";
    let config = [
        "version = 5\n[vocabulary]\ncase = \"uncased\"\nfile = \"vocab.txt\"\n",
        encoder,
        "[[benchmarks]]\nname = \"kinds\"\n[benchmarks.set]\n\
         format = { separated = { between = \"commas\", fields = { text = \"note\", answer = { class = \"kind\" } } } }\n\
         train = [\"kinds.csv\"]\ndrawn = { seed = 1, dev = 0.2, mask_search = 0.0, test = 0.2 }\nlicence = \"free\"\n\
         [finetune]\nseeds = [1]\nlearning_rate = 1e-2\nepochs = 2\nbatch = 8\ndropout = 0.0\n\
         max_tokens = 8\npatience = { evaluations = 20 }\ncheckpoint_every = 3\n",
    ]
    .concat();
    for (name, text) in [("kinds.csv", &*rows), ("vocab.txt", words), ("kinds.toml", &config)] {
        base::whole::write_whole(&folder.join(name), text.as_bytes()).unwrap();
    }
}

fn run(folder: &Path) -> Ran {
    Engraft::own(&["run", "scores"], &folder.join("kinds.toml"), &folder.join("out")).output()
}

/// A fine-tuned model below `folder`, and the fresh encoder that it began with.
fn made(folder: &Path) -> [PathBuf; 2] {
    config(folder, FRESH);
    let ran = run(folder);
    assert_eq!(ran.code(), Some(0), "{}", ran.text());
    ["out/finetune-base-kinds-1/model", "out/encoder/model"].map(|model| folder.join(model))
}

/// What a model says of a text.
fn ask(verb: &str, model: &Path) -> Ran {
    let asked = model.with_file_name("asked.txt");
    base::whole::write_whole(&asked, b"fever today\n").unwrap();
    let pooling: &[&str] = if verb == "encode" { &["--pooling", "cls"] } else { &[] };
    let verb = [&[verb, model.to_str().unwrap(), asked.to_str().unwrap()], pooling].concat();
    Engraft::plain(&verb, model).output()
}

/// What it says if it says it, and no number is left out of it.
fn said(verb: &str, model: &Path) -> String {
    let ran = ask(verb, model);
    assert_eq!(ran.code(), Some(0), "{}", ran.text());
    assert!(!ran.text().contains("null"), "{}", ran.text());
    ran.text()
}

/// Why a model is not asked, which must name every one of `parts`.
fn refused(verb: &str, model: &Path, parts: &[&str]) {
    let ran = ask(verb, model);
    let text = ran.text();
    assert_eq!(ran.code(), Some(2), "{verb}: {text}");
    assert!(parts.iter().all(|part| text.contains(part)), "{verb}: {parts:?}: {text}");
    assert!(!text.contains("panicked") && text.len() < 3000, "{verb}: {text}");
}

fn write(path: &Path, bytes: &[u8]) {
    base::whole::write_whole(path, bytes).unwrap();
}

/// A copy of a model's folder without its digests, as somebody else's.
fn copied(model: &Path, to: PathBuf) -> PathBuf {
    fs::create_dir_all(&to).unwrap();
    for entry in fs::read_dir(model).unwrap().flatten() {
        if entry.file_name() != "digests.json" {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
    to
}

fn tensors(model: &Path) -> HashMap<String, Tensor> {
    candle_core::safetensors::load(model.join("model.safetensors"), &Device::Cpu).unwrap()
}

fn store(tensors: &HashMap<String, Tensor>, path: &Path) {
    candle_core::safetensors::save(tensors, path).unwrap();
}

#[test]
fn silent_05_a_flipped_bit_anywhere_in_a_model_folder_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let [model, encoder] = made(folder.path());
    said("predict", &model);
    for (verb, model) in [("predict", &model), ("encode", &model), ("encode", &encoder)] {
        for entry in fs::read_dir(model).unwrap().flatten() {
            let (name, whole) = (entry.file_name(), fs::read(entry.path()).unwrap());
            // The card is for people to read and to edit: it changes no answer.
            if name == "README.md" {
                continue;
            }
            for at in [0, whole.len() / 2, whole.len() - 1] {
                let mut damaged = whole.clone();
                damaged[at] ^= 1;
                write(&entry.path(), &damaged);
                refused(verb, model, &[name.to_str().unwrap()]);
            }
            write(&entry.path(), &whole);
        }
    }
    // Without the digests a fine-tuned model is nobody's; an encoder without them is as downloaded.
    fs::remove_file(model.join("digests.json")).unwrap();
    refused("predict", &model, &["task.json", "digests.json", "fine-tune again"]);
    refused("encode", &model, &["task.json", "digests.json"]);
    said("encode", &copied(&encoder, folder.path().join("copy")));
}

#[test]
fn silent_05_training_does_not_begin_with_a_damaged_model() {
    let folder = tempfile::tempdir().unwrap();
    let [_, encoder] = made(folder.path());
    let base = folder.path().join("base");
    fs::rename(encoder, &base).unwrap();
    config(folder.path(), "[encoder]\nfrom = \"checkpoint\"\npath = \"base\"\n");
    let path = base.join("model.safetensors");
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    write(&path, &bytes);
    let ran = run(folder.path());
    assert_eq!(ran.code(), Some(1), "{}", ran.text());
    assert!(
        ran.text().contains("model.safetensors: its contents are not what was written"),
        "{}",
        ran.text()
    );
    bytes[last] ^= 1;
    write(&path, &bytes);
    assert_eq!(run(folder.path()).code(), Some(0));
}

#[test]
fn silent_05_numbers_that_are_none_are_said_to_be_none() {
    let folder = tempfile::tempdir().unwrap();
    let [_, encoder] = made(folder.path());
    let model = copied(&encoder, folder.path().join("copy"));
    let name = "encoder.layer.0.output.dense.weight";
    for (number, parts) in [
        (f32::NAN, &["model.safetensors", name, "[0, 0] is NaN"][..]),
        (f32::INFINITY, &["model.safetensors", name, "[0, 0] is inf"]),
        (1e38, &["line 1", "no answer"]),
    ] {
        let mut all = tensors(&model);
        all.insert(name.to_owned(), Tensor::full(number, (16, 16), &Device::Cpu).unwrap());
        store(&all, &model.join("model.safetensors"));
        refused("encode", &model, parts);
    }
}

#[test]
fn silent_17_several_files_and_padded_tables_are_what_one_file_is() {
    let folder = tempfile::tempdir().unwrap();
    let [_, encoder] = made(folder.path());
    let expected = said("encode", &encoder);
    let several = copied(&encoder, folder.path().join("several"));
    let mut list = serde_json::Map::new();
    let (one, other): (HashMap<_, _>, HashMap<_, _>) =
        tensors(&encoder).into_iter().partition(|(name, _)| name.starts_with("encoder"));
    for (file, part) in
        [("model-00001-of-00002.safetensors", one), ("model-00002-of-00002.safetensors", other)]
    {
        list.extend(part.keys().map(|name| (name.clone(), Value::from(file))));
        store(&part, &several.join(file));
    }
    fs::remove_file(several.join("model.safetensors")).unwrap();
    let index = serde_json::json!({"metadata": {"total_size": 0}, "weight_map": list}).to_string();
    write(&several.join("model.safetensors.index.json"), index.as_bytes());
    assert_eq!(said("encode", &several), expected);

    let padded = copied(&encoder, folder.path().join("padded"));
    let mut all = tensors(&encoder);
    let rows = Tensor::ones((6, 16), DType::F32, &Device::Cpu).unwrap();
    all.insert(TABLE.to_owned(), Tensor::cat(&[&all[TABLE], &rows], 0).unwrap());
    store(&all, &padded.join("model.safetensors"));
    assert_eq!(said("encode", &padded), expected, "config.json says 8, the table has 14");
    let sizes = fs::read_to_string(padded.join("config.json")).unwrap();
    write(&padded.join("config.json"), sizes.replace("\"vocab_size\": 8", "\"vocab_size\": 14").as_bytes());
    assert_eq!(said("encode", &padded), expected);
    // What is fine-tuned of it has the rows too, and says how many there are.
    config(folder.path(), "[encoder]\nfrom = \"checkpoint\"\npath = \"padded\"\n");
    let ran = run(folder.path());
    assert_eq!(ran.code(), Some(0), "{}", ran.text());
    let model = folder.path().join("out/finetune-base-kinds-1/model");
    assert_eq!(json(model.join("config.json"))["vocab_size"], 14);
    assert_eq!(tensors(&model)[&format!("bert.{TABLE}")].dims(), [14, 16]);
    let ledger = fs::read_to_string(folder.path().join("out/ledger.jsonl")).unwrap();
    assert!(ledger.contains("\"padded_rows\":6"), "{ledger}");
    said("predict", &model);
}

#[test]
fn silent_18_sizes_and_names_that_lie_end_with_a_short_message() {
    let folder = tempfile::tempdir().unwrap();
    let [_, encoder] = made(folder.path());
    let model = copied(&encoder, folder.path().join("copy"));
    let sizes = json(model.join("config.json"));
    for field in ["num_hidden_layers", "hidden_size", "vocab_size", "intermediate_size"] {
        for size in [1_u64 << 31, 1 << 62, u64::MAX] {
            let mut lying = sizes.clone();
            lying[field] = size.into();
            write(&model.join("config.json"), lying.to_string().as_bytes());
            refused("encode", &model, &["config.json", field]);
        }
    }
    write(&model.join("config.json"), sizes.to_string().as_bytes());
    let mut all = tensors(&encoder);
    let nothing = Tensor::zeros(0, DType::F32, &Device::Cpu).unwrap();
    all.extend((0..100_000).map(|i| (format!("\u{1b}[31mx{i}"), nothing.clone())));
    store(&all, &model.join("model.safetensors"));
    refused("encode", &model, &["unexpected [\\u001b[31mx0, ", "and 99992 more"]);
}

#[test]
fn models_compute_where_they_are_asked_to_or_say_why_not() {
    let folder = tempfile::tempdir().unwrap();
    let [tuned, _] = made(folder.path());
    for verb in ["predict", "encode"] {
        let by_itself = said(verb, &tuned);
        let asked = tuned.with_file_name("asked.txt");
        let on = |device: &str| {
            let verb = [verb, tuned.to_str().unwrap(), asked.to_str().unwrap(), "--device", device];
            let engraft = Engraft::plain(&verb, &tuned);
            if verb[0] == "encode" { engraft.arg("--pooling").arg("cls").output() } else { engraft.output() }
        };
        let by_cpu = on("cpu");
        assert_eq!(by_cpu.code(), Some(0), "{}", by_cpu.text());
        // A build with CUDA says which device it is, and a GPU rounds otherwise.
        let has_cuda = on("cuda:0").code() == Some(0) || by_itself.contains("computed on");
        assert!(has_cuda || by_cpu.text() == by_itself, "{by_itself} {}", by_cpu.text());
        let unknown = on("gpu");
        assert_eq!(unknown.code(), Some(2));
        assert!(unknown.text().contains("expected auto, cpu or cuda:N"), "{}", unknown.text());
        // Beyond any machine, whether this build has CUDA or not.
        let absent = on("cuda:99");
        assert_eq!(absent.code(), Some(2));
        assert!(absent.text().contains("device cuda:99: "), "{}", absent.text());
    }
}
