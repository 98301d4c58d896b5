//! GLUE as its download lays it out, with label embeddings beside plain attention: trained, scored on MNLI's two tests by one training, and predicted for the leaderboard.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use base::whole::write_whole;
use engraft_tests::{Engraft, json};
use serde_json::{Value, json as object};

mod by_preset;

const CONFIG: &str = r#"version = 5
extends = ["label-embedding-tables", "world"]
data = "data"

[encoder]
hidden_size = 16
num_hidden_layers = 1
intermediate_size = 32

[finetune]
on = ["mrpc", "stsb", "mnli", "mnli-mm"]
seeds = [1, 2]
epochs = 1
max_tokens = 32
"#;

/// Writes a file, in a folder that may not be there yet.
fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    write_whole(path, bytes).unwrap();
}

/// Rows of one file: a header, and `row` by number.
fn file(data: &Path, name: &str, header: &str, row: impl Fn(usize) -> String) {
    let mut text = format!("{header}\n");
    (0..24).for_each(|n| writeln!(text, "{}", row(n)).unwrap());
    write(&data.join("glue").join(name), text.as_bytes());
}

/// Rows of one file without a header.
fn bare(data: &Path, name: &str, row: impl Fn(usize) -> String) {
    let text: String = (0..24).map(|n| format!("{}\n", row(n))).collect();
    write(&data.join("glue").join(name), text.as_bytes());
}

/// A sentence that tells its class.
fn sentence(n: usize) -> String {
    format!("The {} of patient {n} is {}.", ["fever", "cough"][n % 2], ["high", "low", "gone"][n % 3])
}

/// The tasks besides MRPC, STS-B and MNLI.
fn others(data: &Path) {
    for name in ["train", "dev"] {
        bare(data, &format!("CoLA/{name}.tsv"), |n| format!("gj04\t{}\t\t{}", n % 2, sentence(n)));
        file(data, &format!("SST-2/{name}.tsv"), "sentence\tlabel", |n| {
            format!("{} \t{}", sentence(n), n % 2)
        });
        let qqp = |n: usize| format!("{n}\t{n}\t{n}\t{}\t{}\t{}", sentence(n), sentence(n + 1), n % 2);
        file(data, &format!("QQP/{name}.tsv"), "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", qqp);
        let entailed = ["entailment", "not_entailment"];
        let pair = |n: usize| format!("{n}\t{}\t{}", sentence(n), sentence(n + 1));
        let qnli = |n: usize| format!("{}\t{}", pair(n), entailed[n % 2]);
        file(data, &format!("QNLI/{name}.tsv"), "index\tquestion\tsentence\tlabel", qnli);
        file(data, &format!("RTE/{name}.tsv"), "index\tsentence1\tsentence2\tlabel", qnli);
        let wnli = |n: usize| format!("{}\t{}", pair(n), n % 2);
        file(data, &format!("WNLI/{name}.tsv"), "index\tsentence1\tsentence2\tlabel", wnli);
    }
    for (name, columns) in [
        ("CoLA", "index\tsentence"),
        ("SST-2", "index\tsentence"),
        ("QQP", "id\tquestion1\tquestion2"),
        ("QNLI", "index\tquestion\tsentence"),
        ("RTE", "index\tsentence1\tsentence2"),
        ("WNLI", "index\tsentence1\tsentence2"),
    ] {
        let pair = columns.matches('\t').count() == 2;
        let row = |n: usize| {
            format!(
                "{n}\t{}{}",
                sentence(n),
                if pair { format!("\t{}", sentence(n + 1)) } else { String::new() }
            )
        };
        file(data, &format!("{name}/test.tsv"), columns, row);
    }
}

pub(crate) fn downloaded(data: &Path) {
    let mrpc = |n: usize| format!("{n}\t{n}\t{}\t{}", sentence(n), sentence(n + 2));
    for (name, first) in [("train", "Quality"), ("dev", "Quality"), ("test", "index")] {
        let header = format!("{first}\t#1 ID\t#2 ID\t#1 String\t#2 String");
        let label = |n: usize| if name == "test" { n } else { n % 2 };
        file(data, &format!("MRPC/{name}.tsv"), &header, |n| format!("{}\t{}", label(n), mrpc(n)));
    }
    let columns = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2";
    let stsb = |n: usize| format!("{n}\tg\tf\t2012\t{n}\ts\ts\t{}\t{}", sentence(n), sentence(n + 1));
    for name in ["train", "dev"] {
        let scored = |n: usize| format!("{}\t{}.500", stsb(n), n % 5);
        file(data, &format!("STS-B/{name}.tsv"), &format!("{columns}\tscore"), scored);
    }
    file(data, "STS-B/test.tsv", columns, stsb);
    let columns = "index\tpromptID\tpairID\tgenre\ts1b\ts2b\ts1p\ts2p\tsentence1\tsentence2";
    let mnli = |n: usize| format!("{n}\t{n}\t{n}c\tg\t(\t(\t(\t(\t{}\t{}", sentence(n), sentence(n + 3));
    let label = |n: usize| ["contradiction", "entailment", "neutral"][n % 3];
    for name in ["train", "dev_matched", "dev_mismatched"] {
        // The mismatched test has two of the three classes: numbers of classes are those of the training.
        let shift = usize::from(name == "dev_mismatched");
        let labelled = |n: usize| format!("{}\t{}\t{}", mnli(n), label(n), label((n % 2) + shift));
        file(data, &format!("MNLI/{name}.tsv"), &format!("{columns}\tlabel1\tgold_label"), labelled);
    }
    file(data, "MNLI/train.tsv", &format!("{columns}\tlabel1\tgold_label"), |n| {
        format!("{}\t{}\t{}", mnli(n), label(n), label(n))
    });
    for name in ["test_matched", "test_mismatched"] {
        file(data, &format!("MNLI/{name}.tsv"), columns, mnli);
    }
    others(data);
    file(data, "diagnostic/diagnostic.tsv", "index\tsentence1\tsentence2", |n| {
        format!("{n}\t{}\t{}", sentence(n), if n == 5 { String::new() } else { sentence(n + 1) })
    });
}

fn engraft(verb: &[&str], folder: &Path) -> Engraft {
    let [config, out] = ["glue.toml", "out"].map(|name| folder.join(name));
    Engraft::plain(&[verb, &["--config", &config.display().to_string()]].concat(), &out)
}

/// The predictions of a file that is handed in.
fn handed_in(folder: &Path, file: &str) -> Vec<String> {
    let text = fs::read_to_string(folder.join("out/submission").join(file)).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("index\tprediction"), "{file}");
    let rows = lines.enumerate().map(|(number, line)| {
        let (index, prediction) = line.split_once('\t').unwrap();
        assert_eq!(index, number.to_string(), "{file}");
        prediction.to_owned()
    });
    let rows: Vec<String> = rows.collect();
    assert_eq!(rows.len(), 24, "{file}");
    rows
}

/// What `engraft predict` says of the pairs of MRPC's test, by the better of its two models, as the leaderboard takes it.
fn predicted(folder: &Path, task: &str) -> Vec<String> {
    let out = folder.join("out");
    let dev = |seed: &u64| {
        let scores = json(out.join(format!("finetune-base-{task}-{seed}/scores.json")));
        scores["dev"]["value"].as_f64().unwrap()
    };
    let best = if dev(&2) > dev(&1) { 2 } else { 1 };
    let pairs: String =
        (0..24).map(|n| format!("{}\n", object!({ "text": sentence(n), "pair": sentence(n + 2) }))).collect();
    let asked = folder.join("asked.jsonl");
    write_whole(&asked, pairs.as_bytes()).unwrap();
    let model = out.join(format!("finetune-base-{task}-{best}/model"));
    let verb = ["predict", &model.display().to_string(), &asked.display().to_string()];
    let said = Engraft::plain(&verb, &out).ok();
    let mark = |line: &str| {
        let said: Value = serde_json::from_str(line).unwrap();
        if said["class"] == "equivalent" { "1" } else { "0" }.to_owned()
    };
    said.lines().map(mark).collect()
}

#[test]
fn one_training_has_two_tests_and_predicts_for_the_leaderboard() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    downloaded(&folder.join("data"));
    write_whole(&folder.join("glue.toml"), CONFIG.as_bytes()).unwrap();
    engraft(&["run", "scores", "submission"], folder).ok();

    let scores = json(folder.join("out/scores/scores.json"));
    let line = |benchmark: &str, how: &str| {
        let lines = scores.as_array().unwrap();
        let found = lines.iter().find(|line| line["benchmark"] == benchmark && line["how"] == how);
        found.unwrap_or_else(|| panic!("no {benchmark} {how}: {scores:#}")).clone()
    };
    for how in ["alone", "labels"] {
        let (matched, mismatched) = (line("mnli", how), line("mnli-mm", how));
        assert_eq!((&matched["test"], &matched["train"]), (&object!(24), &mismatched["train"]));
        assert_eq!(mismatched["seeds"].as_array().unwrap().len(), 2);
        assert!(!folder.join("out/finetune-base-mnli-mm-1/model").exists(), "it was trained again");
    }
    assert_eq!(
        (&line("mrpc", "alone")["metric"], &line("stsb", "alone")["metric"]),
        (&object!("micro_f1"), &object!("pearson"))
    );

    // A class of the second test is the same as of the first, whatever its number would be by itself.
    let said = |name: &str| json(folder.join(format!("out/finetune-base-{name}-1/scores.json")));
    assert_eq!(said("mnli")["dev"], said("mnli-mm")["dev"]);

    let mrpc = handed_in(folder, "base/MRPC.tsv");
    assert!(mrpc.iter().all(|mark| mark == "0" || mark == "1"), "{mrpc:?}");
    assert_eq!(predicted(folder, "mrpc"), mrpc);
    let stsb = handed_in(folder, "base/STS-B.tsv");
    assert!(stsb.iter().all(|score| (0.0..=5.0).contains(&score.parse::<f64>().unwrap())), "{stsb:?}");
    for file in ["MNLI-m", "MNLI-mm", "AX"] {
        for row in ["base", "labels"] {
            let said = handed_in(folder, &format!("{row}/{file}.tsv"));
            assert!(
                said.iter().all(|class| ["contradiction", "entailment", "neutral"].contains(&class.as_str()))
            );
        }
    }
    assert!(!folder.join("out/submission/labels/STS-B.tsv").exists(), "labels are of classes");

    // Another test file is no reason to train again.
    file(&folder.join("data"), "MNLI/dev_mismatched.tsv", "sentence1\tsentence2\tgold_label", |n| {
        format!("{}\t{}\tneutral", sentence(n), sentence(n + 5))
    });
    let plan = engraft(&["plan", "scores"], folder).ok();
    let of = |stage: &str| plan.lines().find(|line| line.starts_with(stage)).unwrap().to_owned();
    let again = of("finetune-base-mnli-mm-1");
    assert!(again.contains("<- finetune-base-mnli-1") && again.contains("may run"), "{plan}");
    assert!(of("finetune-base-mnli-1 ").contains("up to date"), "{plan}");
}

#[test]
fn a_curve_has_a_row_for_each_share_of_the_training_examples() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    downloaded(&folder.join("data"));
    write_whole(&folder.join("glue.toml"), CONFIG.as_bytes()).unwrap();
    let run =
        engraft(&["run", "scores"], folder).set("finetune.curve=[0.125, 0.5]").set("finetune.seeds=[1]");
    run.set("finetune.on=[\"mrpc\", \"mnli\", \"mnli-mm\"]").ok();
    let scores = json(folder.join("out/scores/scores.json"));
    let trained = |benchmark: &str, how: &str| {
        let lines = scores.as_array().unwrap();
        let found = lines.iter().find(|line| line["benchmark"] == benchmark && line["how"] == how);
        found.unwrap_or_else(|| panic!("no {benchmark} {how}: {scores:#}"))["train"].clone()
    };
    // A tenth of 24, by groups of pairs with one first text, is for choosing models.
    let all = trained("mrpc", "alone").as_u64().unwrap();
    assert!((20..24).contains(&all), "{all}");
    for how in ["alone", "labels"] {
        assert_eq!(trained("mrpc", &format!("{how}, 50 %")), all.div_ceil(2));
        assert_eq!(trained("mnli-mm", &format!("{how}, 12.5 %")), 3);
    }
    let both =
        engraft(&["plan"], folder).set("finetune.curve=[0.5]").set("finetune.max_examples.train=9").output();
    assert!(both.text().contains("finetune.max_examples bounds them"), "{}", both.text());
    let whole = engraft(&["plan"], folder).set("finetune.curve=[1.0]").output();
    assert!(
        whole.text().contains("finetune.curve has 1, expected shares above 0 and below 1"),
        "{}",
        whole.text()
    );
}

#[test]
fn what_nothing_is_trained_on_is_said_by_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    downloaded(&folder.join("data"));
    let told = |from: &str, to: &str| {
        let config = CONFIG.replace(from, to);
        assert!(from.is_empty() || config != CONFIG, "{from} is not there");
        write_whole(&folder.join("glue.toml"), config.as_bytes()).unwrap();
        let ran = engraft(&["plan", "scores"], folder).output();
        assert_eq!(ran.code(), Some(2), "{}", ran.text());
        ran.text()
    };
    let cases: [(&str, &str, &str); 7] = [
        ("\"mnli\", \"mnli-mm\"", "\"mnli-mm\"", "finetune.on has \"mnli-mm\" without \"mnli\""),
        (
            "epochs = 1",
            "epochs = 1\nmax_tokens_of = { mnli-mm = 9 }",
            "finetune.max_tokens_of.mnli-mm: nothing is trained on it; give it to mnli",
        ),
        (
            "[encoder]",
            "benchmarks = [{ name = \"mnli-mm\", trained_on = \"mrpcc\" }]\n[encoder]",
            "benchmarks.mnli-mm.trained_on is \"mrpcc\", but [[benchmarks]] has cola",
        ),
        (
            "[encoder]",
            "benchmarks = [{ name = \"mnli-mm\", trained_on = \"stsb\" }]\n[encoder]",
            "asks for Score, and mnli-mm for OneClass",
        ),
        (
            "[encoder]",
            "benchmarks = [{ name = \"mnli-mm\", set.dev = [\"x\"] }]\n[encoder]",
            "benchmarks.mnli-mm.set.dev is for models of its own",
        ),
        (
            "[encoder]",
            "recipes = [{ name = \"all\", tasks = [\"mnli-mm\", \"mrpc\"] }]\n[encoder]",
            "recipes.all.tasks has \"mnli-mm\", which nothing is trained on",
        ),
        (
            "[encoder]",
            "attentions = [{ name = \"labels\", on = [\"mnli-mm\"] }]\n[encoder]",
            "attentions.labels.on has \"mnli-mm\", which is tried wherever mnli is trained on",
        ),
    ];
    for (from, to, expected) in cases {
        let error = told(from, to);
        assert!(error.contains(expected), "{from} -> {to}: {error}");
    }
}
