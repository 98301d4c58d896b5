//! Configs: what a training begins with, settings outside their ranges, deep keys, credentials.

use std::path::{Path, PathBuf};

use engraft_tests::{Engraft, json};

fn whole() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/whole.toml")
}

fn engraft(verb: &[&str], out: &Path) -> Engraft {
    Engraft::plain(verb, out).arg("--config").arg(whole())
}

#[test]
fn silent_01_fine_tuning_begins_with_what_was_retrained_and_the_scores_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    let plan = engraft(&["plan"], out).ok();
    for stage in ["finetune-base-questions-1", "finetune-kam-questions-1", "recipe-mt-1"] {
        assert!(plan.contains(&format!("{stage} <- retrain ")), "{stage}: {plan}");
    }
    let quick = |verb: &[&str]| {
        engraft(verb, out).set("pretrain.max_steps=2").set("retrain.max_steps=2").set("attentions=[]")
    };
    quick(&["run", "scores"]).ok();
    let scores = json(out.join("scores/scores.json"));
    let lines = scores.as_array().unwrap();
    assert!(
        lines.len() >= 4 && lines.iter().all(|line| line["began_with"] == serde_json::json!(["retrain"])),
        "{scores}"
    );
    let table = std::fs::read_to_string(out.join("scores/scores.md")).unwrap();
    assert!(table.contains("| began with |") && table.contains("| questions | alone | retrain |"), "{table}");
    // Another beginning makes another model, and the table names it.
    quick(&["run", "scores"]).set("finetune.from=encoder").ok();
    let scores = json(out.join("scores/scores.json"));
    assert_eq!(scores[0]["began_with"], serde_json::json!(["encoder"]));
}

#[test]
fn silent_18_deep_keys_are_refused_without_an_abort() {
    let folder = tempfile::tempdir().unwrap();
    let (out, deep) = (folder.path().join("out"), vec!["a"; 60_000].join("."));
    let ran = engraft(&["plan"], &out).set(&format!("{deep}=1")).output();
    assert_eq!(ran.code(), Some(2), "{}", ran.text());
    assert!(ran.text().contains("the key has 60000 parts, expected at most 32"), "{}", ran.text());
    let (mut value, key) = ("1".to_owned(), vec!["a"; 79].join("."));
    for _ in 0..70 {
        value = format!("{{ {key} = {value} }}");
    }
    let (config, catalogue) = (folder.path().join("deep.toml"), folder.path().join("datasets.toml"));
    for text in [
        format!("version = 5\ndeep = {value}\n"),
        format!("{deep} = 1\n"),
        format!("a = {}", "[".repeat(60_000)),
    ] {
        base::whole::write_whole(&config, text.as_bytes()).unwrap();
        base::whole::write_whole(&catalogue, text.replace("version = 5", "version = 1").as_bytes()).unwrap();
        let ran = Engraft::plain(&["plan"], &out).arg("--config").arg(&config).output();
        assert_eq!(ran.code(), Some(2), "{}", ran.text());
        let ran = Engraft::plain(&["fetch", "--catalog"], &out).arg(&catalogue).output();
        assert_eq!(ran.code(), Some(2), "{}", ran.text());
    }
}

#[test]
fn silent_20_no_message_holds_a_secret_and_no_folder_is_made_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    for url in [
        "s3://AKIA:hunter2@bucket/x",
        " https://me:hunter2@host/x",
        "gs://me:hun/hunter2@b/x",
        "\tS3://AKIA:hunter2@b/x",
    ] {
        let location = format!("vocabulary={{ case = \"cased\", file = \"{}\" }}", url.replace('\t', "\\t"));
        let runs = [
            engraft(&["plan"], &out).set(&location),
            engraft(&["plan"], &out).set(&location).arg("--json").arg("--verbose"),
            engraft(&["run"], &out).arg("--data").arg(url),
            engraft(&["run"], &out).arg("--cache").arg(url),
            engraft(&["run", url], &out),
            engraft(&["plan"], &out).set(&format!("vocabulary.flie={url}")),
            Engraft::plain(&["plan"], &out).arg("--config").arg(url),
            Engraft::plain(&["run"], Path::new(url)),
            Engraft::plain(&["fetch", "hsdn", "--into", url], &out),
            Engraft::plain(&["predict", url], &out),
            Engraft::plain(&["plan", "--jobs", url], &out),
        ];
        for (number, run) in runs.into_iter().enumerate() {
            let ran = run.output();
            assert_eq!(ran.code(), Some(2), "{number} {url}: {}", ran.text());
            assert!(!ran.text().contains("hunter2"), "{number} {url}: {}", ran.text());
        }
    }
    let made = std::fs::read_dir(".")
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    assert!(!made.into_iter().any(|name| name.contains(':')), "a folder was made of a URL");
}

#[test]
fn silent_25_plan_refuses_what_run_would() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    for (set, told) in [
        (
            "encoder.num_attention_heads=5",
            "encoder.num_attention_heads is 5, expected a divisor of hidden_size",
        ),
        ("retrain.adamw.beta2=-1.0", "retrain.adamw.beta2 is -1, expected at least 0 and below 1"),
        ("finetune.dropout=255.0", "finetune.dropout is 255, expected from 0 to 0.95"),
        ("world.scale=1000.0", "world.scale is 1000, expected from 0.01 to 500"),
        ("sources.umls.languages=[]", "sources.umls.languages is [], which keeps nothing"),
        ("sources.umls.rels=[]", "sources.umls.rels is [], which keeps nothing"),
        ("retrain.frozen=[\"\"]", "retrain.frozen has an empty name"),
        ("finetune.frozen=[\" \"]", "finetune.frozen has an empty name"),
        (
            "split.parts={ratio={train=0.0,valid=0.5,test=0.5,seed=1,cover=\"leave\"}}",
            "split.parts.ratio.train is 0",
        ),
    ] {
        let ran = engraft(&["plan"], out).set(set).output();
        assert_eq!(ran.code(), Some(2), "{}", ran.text());
        assert!(
            ran.text().contains(told) && ran.text().contains(&format!("--set {set}: ")),
            "{}",
            ran.text()
        );
    }
}
