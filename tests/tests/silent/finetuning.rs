//! What came out behind a training, or never: classes that nobody shows, texts in two parts, labels that are places, parts of one class, checkpoints that cannot be read, rates that never rise.

use std::path::Path;

use engraft_tests::{Engraft, Ran};

use super::{put, says};

/// Lines of a text and its class, which stands behind each of `texts`.
fn rows(texts: &[&str]) -> String {
    let rows = texts.iter().map(|row| row.replace('|', "\t") + "\n");
    std::iter::once("text\tkind\n".to_owned()).chain(rows).collect()
}

/// What stage `benchmark-x` says of a set; `train.tsv` and `dev.tsv` of two classes are there.
fn benchmark(folder: &Path, set: &str) -> Ran {
    put(folder, "train.tsv", &rows(&["cough|lung", "wheeze|lung", "palpitations|heart", "murmur|heart"]));
    put(folder, "dev.tsv", &rows(&["a cough at night|lung", "a heart that races|heart"]));
    put(folder, "c.toml", &format!("version = 5\n[[benchmarks]]\nname = \"x\"\nset = {{ {set} }}\n"));
    Engraft::own(&["run", "benchmark-x"], &folder.join("c.toml"), &folder.join("out")).output()
}

const CLASS: &str = "format.separated = { between = \"tabs\", fields = { text = \"text\", answer.class = \"kind\" } }, train = [\"train.tsv\"], dev = [\"dev.tsv\"], test = [\"test.tsv\"]";

#[test]
fn classes_that_train_lacks_and_texts_that_it_shares_are_told() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "test.tsv", &rows(&["cough|lung", "rash|skin"]));
    let words = [
        "test has a class that train never shows, such as \"skin\"",
        "1 of 2 examples of test have texts that train has, too",
    ];
    says(&benchmark(folder.path(), CLASS), 0, &words);
    put(folder.path(), "test.tsv", &rows(&["a dry cough|lung", "a murmur|heart"]));
    let clean = benchmark(folder.path(), CLASS);
    says(&clean, 0, &[]);
    assert!(
        !clean.text().contains("never shows") && !clean.text().contains("train has, too"),
        "{}",
        clean.text()
    );
}

#[test]
fn kinds_of_entities_that_no_text_has_are_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let tags = "fever\tB-sign\n.\tO\n\nan\tO\nachy\tB-sign\nback\tB-site\n\n";
    for file in ["train.conll", "dev.conll", "test.conll"] {
        put(folder.path(), file, tags);
    }
    let of = |kinds: &str| {
        let format = "{ format.conll = { scheme = \"bio\", separator = \"tab\" }, kinds = ";
        let set = format!(
            "format.tagged = {format}{kinds} }}, train = [\"train.conll\"], dev = [\"dev.conll\"], test = [\"test.conll\"]"
        );
        benchmark(folder.path(), &set)
    };
    says(
        &of("[\"sign\", \"sites\"]"),
        0,
        &[
            "tagged.kinds asks for sites, and no text has such an entity; of the kinds asked for there are sign",
        ],
    );
    let clean = of("[\"sign\", \"site\"]");
    says(&clean, 0, &[]);
    assert!(!clean.text().contains("no text has such"), "{}", clean.text());
}

#[test]
fn what_another_benchmark_trains_on_is_shown_by_that_one() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "test.tsv", &rows(&["a dry cough|lung", "a murmur|heart"]));
    let fields =
        "format.separated = { between = \"tabs\", fields = { text = \"text\", answer.class = \"kind\" } }";
    let other = format!(
        "[[benchmarks]]\nname = \"y\"\ntrained_on = \"x\"\nset = {{ {fields}, test = [\"test.tsv\"] }}\n"
    );
    put(
        folder.path(),
        "c.toml",
        &format!("version = 5\n[[benchmarks]]\nname = \"x\"\nset = {{ {CLASS} }}\n{other}"),
    );
    let ran =
        Engraft::own(&["run", "benchmark-y"], &folder.path().join("c.toml"), &folder.path().join("out"))
            .output();
    says(&ran, 0, &[]);
    assert!(!ran.text().contains("warning"), "{}", ran.text());
}

#[test]
fn areas_of_one_class_are_refused_before_the_training() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "test.tsv", &rows(&["a dry cough|lung", "a wheeze|lung"]));
    let ran = benchmark(folder.path(), &format!("{CLASS}, measure = \"auroc\""));
    says(&ran, 1, &["all 2 examples of test are of one class", "another measure"]);
    says(&benchmark(folder.path(), CLASS), 0, &[]);
}

#[test]
fn places_of_classes_are_no_names() {
    let folder = tempfile::tempdir().unwrap();
    let set = "format.jsonl = { text = \"text\", answer.classes = { field = \"labels\", between = \",\" } }, train = [\"train.jsonl\"], dev = [\"dev.jsonl\"], test = [\"test.jsonl\"]";
    for name in ["dev.jsonl", "test.jsonl"] {
        put(folder.path(), name, "{\"text\": \"a rash\", \"labels\": [\"lung\"]}\n");
    }
    put(
        folder.path(),
        "train.jsonl",
        "{\"text\": \"cough\", \"labels\": [0, 1, 1]}\n{\"text\": \"murmur\", \"labels\": [1, 0, 0]}\n",
    );
    says(&benchmark(folder.path(), set), 1, &["train.jsonl", "line 1", "[0, 1, 1] as \"labels\"", "one-hot"]);
    put(
        folder.path(),
        "train.jsonl",
        "{\"text\": \"cough\", \"labels\": [\"lung\", \"throat\"]}\n{\"text\": \"murmur\", \"labels\": [1]}\n",
    );
    says(&benchmark(folder.path(), set), 0, &[]);
}

#[test]
fn the_plan_says_which_checkpoints_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    put(
        folder,
        "c.toml",
        "version = 5\n[encoder]\nfrom = \"checkpoint\"\npath = \"bert-base-uncased\"\n[[benchmarks]]\nname = \"x\"\nset = { format = \"medrqe\", train = [\"t.xml\"] }\n[finetune]\n",
    );
    let plan = || Engraft::own(&["plan"], &folder.join("c.toml"), &folder.join("out")).output();
    says(&plan(), 2, &["there is no folder at", "Names on the Hub are not looked up", "hf download"]);
    std::fs::create_dir(folder.join("bert-base-uncased")).unwrap();
    put(folder, "bert-base-uncased/vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
    let config = |kind: &str| {
        let sizes = "\"vocab_size\": 6, \"hidden_size\": 8, \"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"intermediate_size\": 8, \"max_position_embeddings\": 512, \"type_vocab_size\": 2, \"hidden_act\": \"gelu\", \"hidden_dropout_prob\": 0.1, \"attention_probs_dropout_prob\": 0.1, \"initializer_range\": 0.02, \"layer_norm_eps\": 1e-12";
        put(folder, "bert-base-uncased/config.json", &format!("{{\"model_type\": \"{kind}\", {sizes}}}"));
    };
    config("distilbert");
    says(
        &plan(),
        1,
        &[
            "finetune-base-x-1",
            "cannot run",
            "encoder.path",
            "model_type is \"distilbert\", expected \"bert\" or \"roberta\"",
        ],
    );
    config("bert");
    says(&plan(), 1, &["cannot run", "encoder.path", "model.safetensors"]);
}

#[test]
fn a_rate_that_never_comes_to_its_peak_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let run = |warmup: &str| {
        let run = Engraft::small(&["run", "retrain"], folder.path()).set("retrain.max_steps=2");
        run.set(&format!("retrain.warmup_steps={warmup}")).output()
    };
    let told = "its learning rate never comes to";
    says(&run("1000"), 0, &["retrain.warmup_steps is 1000, and the training has 2 steps", told]);
    let risen = run("1");
    says(&risen, 0, &[]);
    assert!(!risen.text().contains(told), "{}", risen.text());
}
