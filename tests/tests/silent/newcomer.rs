//! What a config of one's own once got without a word: vectors pooled in another way than the model was trained, leaks that only tokens show, maps with nothing in them.

use std::path::Path;

use engraft_tests::{Engraft, json};
use serde_json::Value;

use super::put;

const ENCODER: &str = "[vocabulary.train]\nsize = 120\nmin_frequency = 1\n\
    [encoder]\nfrom = \"fresh\"\nhidden_size = 16\nintermediate_size = 32\nnum_hidden_layers = 2\nnum_attention_heads = 2\n";

/// Terms of an ontology, each with two names.
fn ontology(folder: &Path) {
    let mut text = "format-version: 1.2\n\n[Term]\nid: X:0\nname: disease\n".to_owned();
    for (number, name) in ["fever", "cough", "migraine", "stroke", "common cold"].iter().enumerate() {
        text += &format!(
            "\n[Term]\nid: X:1{number}\nname: {name}\nsynonym: \"{name} of old\" EXACT []\nis_a: X:0 ! disease\n"
        );
    }
    put(folder, "x.obo", &text);
}

#[test]
fn vectors_are_pooled_as_the_model_was_trained_or_as_sentence_transformers_would() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ontology(folder);
    let own = format!(
        "version = 5\n[sources.obo]\npath = \"x.obo\"\n{ENCODER}[align]\npooling = \"mean\"\nmax_steps = 2\nbatch = 4\n"
    );
    put(folder, "c.toml", &own);
    let out = folder.join("out");
    Engraft::own(&["run", "align"], &folder.join("c.toml"), &out).ok();
    put(folder, "texts.txt", "a fever of old\n");
    let texts = folder.join("texts.txt");
    let vector = |model: &Path, pooling: &[&str]| {
        let verb = [&["encode", model.to_str().unwrap(), texts.to_str().unwrap()], pooling].concat();
        Engraft::plain(&verb, &out).output().text()
    };
    let model = out.join("align/model");
    let [told, mean, cls] =
        [&[][..], &["--pooling", "mean"], &["--pooling", "cls"]].map(|pooling| vector(&model, pooling));
    assert_eq!(told, mean);
    assert_ne!(told, cls);
    assert!(vector(&model, &["--max-tokens", "3"]).contains("--max-tokens is 3, expected at least 5"));
    let into = folder.join("sentences");
    Engraft::export(&model, "sentence-transformers", &into).ok();
    assert_eq!(vector(&into, &[]), mean);
    // Newer versions have one key, and poolings that engraft has not.
    put(&into, "1_Pooling/config.json", "{\"embedding_dimension\": 16, \"pooling_mode\": \"mean\"}");
    assert_eq!(vector(&into, &[]), mean);
    for other in [
        "\"pooling_mode\": \"lasttoken\"",
        "\"pooling_mode_lasttoken\": true",
        "\"pooling_mode\": [\"cls\", \"mean\"]",
    ] {
        put(&into, "1_Pooling/config.json", &format!("{{{other}}}"));
        let refused = vector(&into, &[]);
        assert!(refused.contains("which engraft does not: say --pooling"), "{other}: {refused}");
    }
    std::fs::remove_dir_all(into.join("1_Pooling")).unwrap();
    let guessed = vector(&into, &[]);
    assert!(guessed.contains("nothing says how its vectors are pooled"), "{guessed}");
}

#[test]
fn names_that_differ_in_no_token_are_the_same_to_split_and_audit() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut rows = "subject\trelation\tobject\n".to_owned();
    for number in 0..40 {
        let (one, other) = (format!("heart-pain ({number})"), format!("Heart - pain ( {number} )"));
        rows += &format!("{one}\thas\tsign {number}\n{other}\thas\tsign\u{ad} {number}\n");
    }
    put(folder, "g.tsv", &rows);
    let own = "version = 5\nvocabulary.train = { size = 120, min_frequency = 1 }\nsources.triples.own.table = { files = [{ path = \"g.tsv\" }] }\n\
        split.parts.ratio = { train = 0.6, valid = 0.1, test = 0.3 }\n";
    put(folder, "c.toml", own);
    let out = folder.join("out");
    Engraft::own(&["run", "audit"], &folder.join("c.toml"), &out).ok();
    let said = Engraft::plain(&["query", "select subject, part from split", "--json"], &out);
    let mut parts = std::collections::BTreeMap::new();
    for line in said.ok().lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let letters = |c: &char| c.is_alphanumeric();
        let name: String = row["subject"].as_str().unwrap().to_lowercase().chars().filter(letters).collect();
        let part = row["part"].as_str().unwrap().to_owned();
        assert_eq!(*parts.entry(name).or_insert(part.clone()), part, "{row}");
    }
    assert_eq!(parts.len(), 40);
    assert_eq!(json(out.join("audit/audit.json"))["leaks"], 0);
}

#[test]
fn a_map_with_nothing_in_it_is_told_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ontology(folder);
    let texts: String = (0..24).map(|n| format!("row {n} says {}\t{}\n", n % 5, n % 2)).collect();
    put(folder, "set.tsv", &format!("text\tlabel\n{texts}"));
    put(folder, "own.txt", "a fever\nand a cough\n");
    let own = format!(
        "version = 5\nextends = \"kam-bert\"\n[sources.obo]\npath = \"x.obo\"\n{ENCODER}\
         [corpus]\ntexts = [{{ name = \"own\", paths = [\"own.txt\"], format.text = \"line\" }}]\n\
         [[benchmarks]]\nname = \"own\"\nset = {{ format.separated = {{ between = \"tabs\", fields = {{ text = \"text\", answer.class = \"label\" }} }}, train = [\"set.tsv\"] }}\n\
         [finetune]\nepochs = 1\nseeds = [1]\nclass_weights = \"balanced\"\n"
    );
    put(folder, "c.toml", &own);
    let run = |set: &str| {
        let engraft = Engraft::own(&["run", "maps-own"], &folder.join("c.toml"), &folder.join("out"));
        engraft.set(set).output()
    };
    let ran = run("pmi.min_count=1");
    assert_eq!(ran.code(), Some(0), "{}", ran.text());
    for part in
        ["maps.entities: none of 24 texts mentions", "maps.terms: none of 24", "maps.phrases: none of 24"]
    {
        assert!(ran.text().contains(part), "{part}: {}", ran.text());
    }
    let none = run("maps.entities.dictionary.types.only=[\"Nothing\"]");
    assert_ne!(none.code(), Some(0), "{}", none.text());
    assert!(none.text().contains("no name of the graph passes maps.entities.dictionary"), "{}", none.text());
}

#[test]
fn words_are_counted_without_a_vocabulary_and_one_of_the_wrong_case_is_refused_by_plan() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    put(folder, "texts.txt", "Fever is a symptom of influenza. Cough is a symptom.\n\nFever and cough.\n");
    put(
        folder,
        "c.toml",
        "version = 5\n[corpus]\ntexts = [{ name = \"own\", paths = [\"texts.txt\"], format.text = \"paragraph\" }]\n[counts]\n[pmi]\n",
    );
    let out = folder.join("out");
    Engraft::own(&["run"], &folder.join("c.toml"), &out).ok();
    let words =
        Engraft::plain(&["query", "select word, occurrences from words where word = 'symptom'"], &out).ok();
    assert!(words.contains("symptom"), "{words}");
    let unread =
        Engraft::own(&["plan"], &folder.join("c.toml"), &out).set("vocabulary.case=\"cased\"").output();
    assert!(
        unread.code() == Some(2) && unread.text().contains("[vocabulary] is read by nothing"),
        "{}",
        unread.text()
    );
    // Maps are made of words as a vocabulary spells them.
    let run = Engraft::own(&["plan"], &folder.join("c.toml"), &out).set("maps={}").output();
    assert!(run.code() == Some(2) && run.text().contains("name a vocab.txt"), "{}", run.text());
    // BioBERT's release has no tokenizer_config.json: its entries alone say that it keeps case.
    let cased: String = ["Fever", "Cough", "Flu", "##Ing"].iter().map(|word| format!("{word}\n")).collect();
    put(folder, "vocab.txt", &format!("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n{cased}"));
    let plan = |more: &str| {
        let run = Engraft::own(&["plan"], &folder.join("c.toml"), &folder.join("other"));
        run.set("maps={ entities = \"none\" }").set("vocabulary.file=\"vocab.txt\"").set(more).output()
    };
    let refused = plan("counts={}");
    assert!(
        refused.code() == Some(2) && refused.text().contains("set vocabulary.case = \"cased\""),
        "{}",
        refused.text()
    );
    for fine in ["vocabulary.contradiction=\"config_decides\"", "vocabulary.case=\"cased\""] {
        let said = plan(fine);
        assert!(!said.text().contains("capitals"), "{}", said.text());
    }
}
