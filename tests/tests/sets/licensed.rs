//! MT-Clinical BERT's own eight sets, six of them under licences, in the folders and layouts in which they are given out: made-up files, read, trained on and scored by its preset.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use base::whole::write_whole;
use engraft_tests::{Engraft, json};
use serde_json::json as object;

const CONFIG: &str = r#"version = 5
extends = "mt-clinical-sets"
compute.device = "cpu"
vocabulary.file = "vocab.txt"

[encoder]
from = "fresh"
hidden_size = 16
num_hidden_layers = 1
num_attention_heads = 2
intermediate_size = 32

[finetune]
seeds = [1, 2]
epochs = 1
max_tokens = 64

[[recipes]]
name = "mt-clinical"
epochs = 1
"#;

const KINDS: [&str; 3] = ["PROBLEM", "TREATMENT", "OCCURRENCE"];

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    write_whole(path, text.as_bytes()).unwrap();
}

/// A sentence, and where its drug stands, in characters.
fn note(n: usize) -> (String, usize, usize) {
    let drug = ["Aspirin", "Warfarin", "Metformin"][n % 3];
    let before = format!("Patient {n} was given ");
    let start = before.len();
    (format!("{before}{drug} for a fever today.\n"), start, start + drug.len())
}

/// Notes with a drug each, as brat has them.
fn brat(folder: &Path, names: std::ops::Range<usize>) {
    for n in names {
        let (text, start, end) = note(n);
        write(&folder.join(format!("{n}.txt")), &text);
        write(&folder.join(format!("{n}.ann")), &format!("T1\tDrug {start} {end}\t{}\n", &text[start..end]));
    }
}

/// Notes as XML; `element` has the kind of the drug in it, and places count from `first`.
fn xml(
    folder: &Path,
    root: &str,
    names: std::ops::Range<usize>,
    element: impl Fn(usize, [usize; 2], &str) -> String,
) {
    for n in names {
        let (text, start, end) = note(n);
        let tags = element(n, [start, end], &text[start..end]);
        let record = format!(
            "<?xml version=\"1.0\"?>\n<{root}>\n<TEXT><![CDATA[{text}]]></TEXT>\n<TAGS>\n{tags}\n</TAGS>\n</{root}>\n"
        );
        write(&folder.join(format!("{n}.xml")), &record);
    }
}

fn pairs(data: &Path) {
    let sts = |n: usize| format!("{}\t{}\t{}.5\n", note(n).0.trim(), note(n + 1).0.trim(), n % 5);
    for (name, rows) in [("train", 0..20), ("test", 20..28)] {
        write(
            &data.join(format!("n2c2-2019/clinicalSTS2019.{name}.txt")),
            &rows.map(sts).collect::<String>(),
        );
    }
    let nli = |n: usize| {
        let label = ["entailment", "neutral", "contradiction"][n % 3];
        let row = object!({ "pairID": n.to_string(), "sentence1": note(n).0.trim(), "sentence2": note(n + 2).0.trim(), "gold_label": label });
        format!("{row}\n")
    };
    for (name, rows) in [("train", 0..20), ("dev", 20..26), ("test", 26..32)] {
        write(&data.join(format!("mednli/mli_{name}_v1.jsonl")), &rows.map(nli).collect::<String>());
    }
    for (name, rows) in [("Train_8588", 0..20), ("Test_302_pairs", 20..28)] {
        let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<RQE-med-train>\n".to_owned();
        for n in rows {
            let value = n % 2 == 0;
            writeln!(
                text,
                "<pair pid=\"{n}\" value=\"{value}\"><chq>{}</chq><faq>What is drug {n}?</faq></pair>",
                note(n).0.trim()
            )
            .unwrap();
        }
        write(&data.join(format!("medrqe/RQE_{name}_AMIA2016.xml")), &(text + "</RQE-med-train>\n"));
    }
}

fn tagged(data: &Path) {
    brat(&data.join("n2c2-2018/training_20180910"), 100..112);
    brat(&data.join("n2c2-2018/gold-standard-test-data"), 112..116);
    brat(&data.join("quaero/corpus/train/EMEA"), 0..12);
    brat(&data.join("quaero/corpus/dev/EMEA"), 12..16);
    let hidden = |n: usize, [start, end]: [usize; 2], text: &str| {
        format!(
            "<NAME id=\"P0\" start=\"{start}\" end=\"{end}\" text=\"{text}\" TYPE=\"{}\" comment=\"\" />",
            ["DOCTOR", "PATIENT"][n % 2]
        )
    };
    for (name, of) in [
        ("training-PHI-Gold-Set1", 0..8),
        ("training-PHI-Gold-Set2", 8..12),
        ("testing-PHI-Gold-fixed", 12..16),
    ] {
        xml(&data.join("i2b2-2014").join(name), "deIdi2b2", of, hidden);
    }
    let event = |n: usize, [start, end]: [usize; 2], text: &str| {
        let kind = KINDS[n % 3];
        let [from, to] = [start + 1, end + 1];
        format!(
            "<EVENT id=\"E0\" start=\"{from}\" end=\"{to}\" text=\"{text}\" modality=\"FACTUAL\" polarity=\"POS\" type=\"{kind}\" />\n<TIMEX3 id=\"T0\" start=\"1\" end=\"8\" text=\"Patient\" type=\"DATE\" val=\"\" mod=\"NA\" />"
        )
    };
    for (name, of) in [("2012-07-15.original-annotation.release", 0..12), ("ground_truth/merged_xml", 12..16)]
    {
        xml(&data.join("i2b2-2012").join(name), "ClinicalNarrativeTemporalAnnotation", of, event);
    }
    for (folder, of) in
        [("concept_assertion_relation_training_data", 0..12), ("reference_standard_for_test_data", 12..16)]
    {
        for n in of {
            let (text, start, end) = note(n);
            let words = text.replace("today.", "today .");
            write(&data.join(format!("i2b2-2010/{folder}/txt/{n}.txt")), &words);
            let drug = text[start..end].to_lowercase();
            let concept = format!("c=\"{drug}\" 1:4 1:4||t=\"treatment\"\n");
            write(&data.join(format!("i2b2-2010/{folder}/concept/{n}.con")), &concept);
        }
    }
}

#[test]
fn the_eight_sets_of_mt_clinical_bert_go_through_its_preset() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    pairs(folder);
    tagged(folder);
    let words = "[PAD] [UNK] [CLS] [SEP] [MASK] Patient was given Aspirin Warfarin Metformin for a fever today . What is drug ?";
    write(&folder.join("vocab.txt"), &words.replace(' ', "\n"));
    let config = folder.join("clinical.toml");
    write(&config, CONFIG);
    let out = folder.join("out");
    Engraft::own(&["run", "scores"], &config, &out).ok();
    let scores = json(out.join("scores/scores.json"));
    let rows = scores.as_array().unwrap();
    assert_eq!(rows.len(), 16, "each set alone and by turns: {scores}");
    let of =
        |name: &str| rows.iter().find(|row| row["benchmark"] == name && row["how"] == "mt-clinical").unwrap();
    let tests =
        ["n2c2-2019", "mednli", "medrqe", "n2c2-2018", "i2b2-2014", "i2b2-2012", "i2b2-2010", "quaero-2014"];
    let sizes: Vec<_> = tests.iter().map(|name| of(name)["test"].as_u64().unwrap()).collect();
    assert_eq!(sizes, [8, 6, 8, 4, 4, 4, 4, 4]);
    let kinds = json(out.join("benchmark-i2b2-2012/index.json"))["classes"].to_string();
    assert!(
        KINDS.iter().all(|kind| kinds.contains(kind)) && !kinds.contains("DATE"),
        "times are no events: {kinds}"
    );
    beside(&config, &out);
}

/// Another encoder on the same sets, beside the first: differences are seed by seed, and other examples are left out.
fn beside(config: &Path, out: &Path) {
    let other = out.with_file_name("other");
    Engraft::own(&["run", "scores"], config, &other).set("encoder.seed=2").ok();
    let [one, two] = [out, &other].map(|out| out.display().to_string());
    let compare = |outs: &[&str]| Engraft::plain(&[&["compare"], outs].concat(), out);
    let table = compare(&[&one, &two]).ok();
    assert_eq!(
        table.lines().filter(|line| line.starts_with("| ") && line.contains("alone")).count(),
        8,
        "{table}"
    );
    let cells = compare(&[&one, &two, "--json"]).ok();
    let cells: Vec<serde_json::Value> =
        cells.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(cells.len(), 32);
    for pair in cells.chunks_exact(2) {
        let mean = |cell: &serde_json::Value| cell["mean"].as_f64().unwrap();
        assert!(pair[0]["more"].is_null() && pair[1]["more"]["seeds"] == 2, "{pair:?}");
        let more = pair[1]["more"]["mean"].as_f64().unwrap();
        assert!((mean(&pair[1]) - mean(&pair[0]) - more).abs() < 1e-12, "{pair:?}");
    }
    let set = out.with_file_name("mednli/mli_test_v1.jsonl");
    let changed = fs::read_to_string(&set).unwrap().replace("Patient 26", "Patient 62");
    write(&set, &changed);
    Engraft::own(&["run", "scores"], config, &other).set("encoder.seed=2").ok();
    let said = compare(&[&one, &two]).output();
    assert!(said.text().contains("left out: mednli, alone, of"), "{}", said.text());
    assert!(compare(&[&one, &one]).output().text().contains("is named twice"));
}
