//! The presets of papers' own experiments, each whole, on files made in the layouts that they are given out in, and with a small BERT.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use engraft_tests::{Engraft, json};
use serde_json::{Value, json as object};

use super::{checkpoint, files, put};
use crate::peers;

/// A word for a number, of letters that every vocabulary has.
pub(super) fn word(number: usize) -> String {
    number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
}

/// UMLS's relations and MedQuAD as the embedded world has them, beside the other graphs.
pub(super) fn world(folder: &Path) {
    let made = folder.join("made");
    Engraft::plain(&["run", "world"], &made).set("world.scale=0.1").ok();
    let data = folder.join("data");
    files(&data);
    for part in ["umls", "medquad"] {
        fs::rename(made.join("world").join(part), data.join(part)).unwrap();
    }
}

/// Annotations of CDV's with their texts: two passages of each document, and what asks for them.
pub(super) fn annotations(name: &str) -> String {
    let (mut documents, mut queries) = (vec![], vec![]);
    for number in 0..100 {
        let (thing, mut text, mut places) = (word(number), String::new(), vec![]);
        for (aspect, passage) in [
            ("information", format!("{thing} is a disease of old.\n")),
            ("symptoms", format!("The sign of {thing} is a fever.\n")),
        ] {
            let id = format!("{number}-{aspect}");
            places.push(object!({ "id": id, "begin": text.len(), "length": passage.len() }));
            queries.push(object!({
                "annotations": [{ "entity": thing, "aspect": aspect }],
                "results": [{ "id": id, "relevance": 1 }],
            }));
            text += &passage;
        }
        documents
            .push(object!({ "id": number.to_string(), "title": thing, "text": text, "annotations": places }));
    }
    object!({ "name": name, "documents": documents, "queries": queries }).to_string()
}

/// HealthQA's file as its authors send it, and the annotations of its passages, which have no texts: each is called by the line that it stands in.
fn healthqa(data: &Path) {
    let mut annotated: Value = serde_json::from_str(&annotations("HealthQA")).unwrap();
    let (mut lines, mut called) = (vec![], BTreeMap::new());
    for document in annotated["documents"].as_array_mut().unwrap() {
        let text = std::mem::replace(&mut document["text"], Value::from(""));
        let passages = text.as_str().unwrap().lines();
        for (place, passage) in document["annotations"].as_array_mut().unwrap().iter_mut().zip(passages) {
            let line = Value::from(format!("pinfo-mz-test-{}", lines.len()));
            called.insert(place["id"].as_str().unwrap().to_owned(), line.clone());
            place["id"] = line;
            lines.push(format!("1\twhat of it ?\t{passage}\n"));
            // What answers nothing stands between them.
            lines.push("0\twhat of it ?\tNothing is known.\n".to_owned());
        }
    }
    for query in annotated["queries"].as_array_mut().unwrap() {
        let answer = &mut query["results"][0]["id"];
        *answer = called[answer.as_str().unwrap()].clone();
    }
    put(data, "cdv/data/HealthQA/HealthQA_test_annotations.json", &annotated.to_string());
    put(data, "healthqa/pinfo-mz-test.txt", &lines.concat());
}

fn articles() -> String {
    let article = |number: usize| -> Value {
        let (title, mut text, mut sections) = (word(number), String::new(), vec![]);
        for (heading, section) in [
            ("abstract", format!("{title} is rare. ")),
            ("Signs and symptoms", format!("Fever goes with {title}. ")),
        ] {
            sections
                .push(object!({ "begin": text.len(), "length": section.len(), "sectionHeading": heading }));
            text += &section;
        }
        object!({ "id": number.to_string(), "title": title, "text": text, "annotations": sections })
    };
    Value::from((0..600).map(article).collect::<Vec<_>>()).to_string()
}

const SMALL: &str = "version = 5\n\
    sources.umls.min_relation_count = 1\n\
    retrain = { max_steps = 3, warmup_steps = 1, patience = { every = 2, evaluations = 3 } }\n\
    graft.rows = [\"base\", \"hard\"]\n\
    finetune = { seeds = [1], epochs = 1, max_tokens = 48, max_examples = { train = 20, dev = 6, mask_search = 20, test = 12 } }\n";

#[test]
fn kimera_goes_from_umls_to_its_table_by_either_preset() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, data) = (folder.path(), folder.path().join("data"));
    world(folder);
    checkpoint(&data, "bert");
    put(&data, "cdv/data/MedQuAD/MedQuAD_test_annotations.json", &annotations("MedQuAD"));
    healthqa(&data);
    let list = "data/MedQuAD/MedQuAD-master/1_Compendium_QA/0000001.xml\n";
    put(&data, "cdv/data/MedQuAD/MedQuAD_test_sources.tsv", list);
    put(&data, "wikisection/wd_disease_train.json", &articles());
    for (preset, sets) in
        [("umls-graft", vec!["medquad"]), ("kimera-retrieval", vec!["wiki", "medquad", "healthqa"])]
    {
        let named = sets.iter().map(|name| format!("{{ name = \"{name}\", capr.candidates.per_query = 4 }}"));
        let named = named.collect::<Vec<_>>().join(", ");
        put(
            &data,
            &format!("{preset}.toml"),
            &format!("{SMALL}extends = \"{preset}\"\nbenchmarks = [{named}]\n"),
        );
        let out = folder.join(preset);
        Engraft::own(&["run", "results"], &data.join(format!("{preset}.toml")), &out).ok();
        let cells = json(out.join("results/grafting.json"))["cells"].clone();
        for row in ["base", "hard"] {
            for set in &sets {
                let of = |cell: &Value| cell["row"] == row && cell["benchmark"] == *set;
                assert!(cells.as_array().unwrap().iter().any(of), "{preset} {row} {set}: {cells}");
            }
        }
        // What is tried without training has no model of its own.
        for set in ["medquad", "healthqa"] {
            let model = out.join(format!("finetune-base-{set}-1/model"));
            assert_eq!(model.exists(), preset == "umls-graft" && set == "medquad", "{}", model.display());
        }
    }
}

/// A graph of thirty things in KG-BERT's layout, whose parts dev and test ask for eight triples each.
fn umls_network(data: &Path) {
    let (mut ids, mut texts, mut train, mut held) =
        (String::new(), String::new(), String::new(), [String::new(), String::new()]);
    for number in 0..30 {
        let other = |step: usize| word((number + step) % 30);
        let own = word(number);
        writeln!(ids, "{own}").unwrap();
        writeln!(texts, "{own}\tthing {own}").unwrap();
        writeln!(train, "{own}\tisa\t{}\n{own}\tnear\t{}", other(1), other(7)).unwrap();
        if number < 8 {
            held.iter_mut()
                .zip([2, 3])
                .for_each(|(part, step)| writeln!(part, "{own}\tisa\t{}", other(step)).unwrap());
        }
    }
    for (name, text) in [
        ("entities.txt", ids.as_str()),
        ("entity2text.txt", &texts),
        ("relations.txt", "isa\nnear\n"),
        ("relation2text.txt", "isa\tis a\nnear\tis near\n"),
        ("train.tsv", &train),
        ("dev.tsv", &held[0]),
        ("test.tsv", &held[1]),
    ] {
        put(data, &format!("kg-bert/data/umls/{name}"), text);
    }
}

#[test]
fn kg_bert_ranks_what_its_folder_holds_out() {
    let folder = tempfile::tempdir().unwrap();
    let (data, out) = (folder.path().join("data"), folder.path().join("out"));
    checkpoint(&data, "minilm");
    umls_network(&data);
    let run = Engraft::plain(&["run", "rank", "--preset", "kg-bert"], &out).arg("--data").arg(&data);
    run.set("retrain.max_steps=3").set("retrain.warmup_steps=1").ok();
    let scores = json(out.join("rank/rank.json"));
    assert_eq!((&scores["triples"], &scores["filtered"]["ranks"]), (&object!(8), &object!(16)), "{scores}");
    assert!(scores["relations"].as_object().unwrap().contains_key("isa"), "{scores}");
    // The same by vectors.
    let out = folder.path().join("vectors");
    let run = Engraft::plain(&["run", "rank", "--preset", "simkgc"], &out).arg("--data").arg(&data);
    run.set("align.epochs=2").set("align.warmup_steps=1").ok();
    let scores = json(out.join("rank/rank.json"));
    assert_eq!(
        (&scores["by"], &scores["filtered"]["ranks"]),
        (&object!("similarity"), &object!(16)),
        "{scores}"
    );
    let [of, data] = [&out, &data].map(|folder| folder.display().to_string());
    let Some((fine, said)) = peers::asked("answers.py", &[&data, "--out", &of]) else { return };
    let told: Vec<Value> = said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let largest = told.iter().find_map(|line| line["largest_difference_of_a_score"].as_f64());
    assert!(fine && told.iter().any(|line| line["compared"] == 16), "{said}");
    assert!(largest.is_some_and(|largest| largest < 1e-5), "{said}");
    let (fine, said) = peers::asked("answers.py", &[&data, "--out", &of, "--train"]).unwrap();
    assert!(fine && said.contains("\"epoch\": 2") && said.contains("\"ranks\": 16"), "{said}");
}

/// Sentences with a drug, an illness and what they are to each other.
pub(super) fn sentence(number: usize) -> String {
    format!("{} stops fever {}", ["aspirin", "warfarin", "codeine"][number % 3], word(number))
}

/// The four clinical sets of BLUE.
fn clinical(data: &Path) {
    let pair = |number: usize| format!("{}\t{}\t{}.5\n", sentence(number), sentence(number + 1), number % 5);
    let inferred = |number: usize| {
        let label = ["entailment", "neutral", "contradiction"][number % 3];
        let row = object!({ "pairID": number.to_string(), "sentence1": sentence(number), "sentence2": sentence(number + 2), "gold_label": label });
        format!("{row}\n")
    };
    for (part, rows) in [("train", 0..24), ("test", 24..32)] {
        put(data, &format!("clinical-sts/{part}.txt"), &rows.map(pair).collect::<String>());
    }
    for (part, rows) in [("train", 0..20), ("dev", 20..26), ("test", 26..32)] {
        put(data, &format!("mednli/mli_{part}_v1.jsonl"), &rows.map(inferred).collect::<String>());
    }
    for (part, rows) in [("train", 0..24), ("test", 24..32)] {
        let related = ["concept_assertion_relation_training_data", "reference_standard_for_test_data"]
            [usize::from(part == "test")];
        for number in rows {
            let text = sentence(number);
            let drug = text.split(' ').next().unwrap();
            let (treatment, problem) = (format!("c=\"{drug}\" 1:0 1:0"), "c=\"fever\" 1:2 1:2");
            let at = |kind: &str| format!("i2b2-2010/{related}/{kind}/{number}.{kind}");
            put(data, &at("txt"), &format!("{text}\n"));
            put(
                data,
                &at("concept").replace(".concept", ".con"),
                &format!("{treatment}||t=\"treatment\"\n{problem}||t=\"problem\"\n"),
            );
            put(
                data,
                &at("rel"),
                &if number % 3 == 0 {
                    String::new()
                } else {
                    format!("{treatment}||r=\"TrAP\"||{problem}\n")
                },
            );
            let fever = text.find("fever").unwrap();
            put(data, &format!("share-clefe/{part}/{number}.txt"), &format!("{text}.\n"));
            let disorder = format!("{number}.txt||Disease_Disorder||C0015967||{fever}||{}\n", fever + 5);
            put(data, &format!("share-clefe/{part}/{number}.pipe.txt"), &disorder);
        }
    }
}

/// The four of BLUE that are biomedical.
fn biomedical(data: &Path) {
    for (part, end, rows) in [("training", "", 0..24), ("development", "", 24..32), ("test", "_gs", 32..40)] {
        let (mut texts, mut entities, mut related) = (String::new(), String::new(), String::new());
        for number in rows {
            let text = sentence(number);
            let drug = text.split(' ').next().unwrap().len();
            let fever = text.find("fever").unwrap();
            writeln!(texts, "{number}\t{text}\tNothing else").unwrap();
            writeln!(entities, "{number}\tT1\tCHEMICAL\t0\t{drug}\t{}", &text[..drug]).unwrap();
            writeln!(entities, "{number}\tT2\tGENE-Y\t{fever}\t{}\tfever", fever + 5).unwrap();
            if number % 3 != 0 {
                writeln!(related, "{number}\tCPR:4\tArg1:T1\tArg2:T2").unwrap();
            }
        }
        for (kind, text) in [
            (format!("abstracts{end}"), texts),
            (format!("entities{end}"), entities),
            ("gold_standard".to_owned(), related),
        ] {
            let folder = format!("chemprot_{part}{end}");
            put(data, &format!("chemprot/{folder}/chemprot_{part}_{kind}.tsv"), &text);
        }
    }
    for (folder, rows) in [("Train", 0..32), ("Test/Test for DDI Extraction task", 32..40)] {
        for number in rows {
            let (text, kind) = (
                sentence(number),
                if number % 3 == 0 { "ddi=\"false\"" } else { "ddi=\"true\" type=\"effect\"" },
            );
            let (drug, fever) = (text.split(' ').next().unwrap().len(), text.find("fever").unwrap());
            put(
                data,
                &format!("ddi/DDICorpus/{folder}/{number}.xml"),
                &format!(
                    "<?xml version=\"1.0\"?><document id=\"d{number}\"><sentence id=\"d{number}.s0\" text=\"{text}\">\
                 <entity id=\"d{number}.e0\" charOffset=\"0-{}\" type=\"drug\" text=\"x\"/><entity id=\"d{number}.e1\" charOffset=\"{fever}-{}\" type=\"drug\" text=\"fever\"/>\
                 <pair id=\"d{number}.p0\" e1=\"d{number}.e0\" e2=\"d{number}.e1\" {kind}/></sentence></document>",
                    drug - 1,
                    fever + 4
                ),
            );
        }
    }
    for kind in ["Disease", "Chemical"] {
        for (part, rows) in [("train", 0..24), ("devel", 24..32), ("test", 32..40)] {
            let tagged = |number: usize| -> String {
                let text = sentence(number);
                let tag = |(place, word): (usize, &str)| {
                    let is = place == if kind == "Disease" { 2 } else { 0 };
                    format!("{word}\t{}\n", if is { format!("B-{kind}") } else { "O".to_owned() })
                };
                text.split(' ').enumerate().map(tag).collect::<String>() + "\n"
            };
            let name = if kind == "Disease" { "disease" } else { "chem" };
            put(
                data,
                &format!("mtl-bioinformatics-2016/data/BC5CDR-{name}-IOB/{part}.tsv"),
                &rows.map(tagged).collect::<String>(),
            );
        }
    }
}

/// Runs a preset of MT-BERT's eight sets in a folder that has them below `data`: each alone, refined with all or with its domain, and then alone again. What it ran, and where.
pub(super) fn refined(folder: &Path, preset: &str) -> (PathBuf, PathBuf) {
    let (data, out) = (folder.join("data"), folder.join("out"));
    checkpoint(&data, "bert");
    let config = data.join("blue.toml");
    let of = |name: &str| format!("{{ name = \"{name}\", epochs = 1, then.epochs = 1 }}");
    let recipes = ["mt-bert", "clinical", "biomedical"].map(of).join(", ");
    put(
        &data,
        "blue.toml",
        &format!(
            "version = 5\nextends = \"{preset}\"\nfinetune = {{ epochs = 1, max_tokens = 32 }}\nrecipes = [{recipes}]\n"
        ),
    );
    Engraft::own(&["run", "scores"], &config, &out).ok();
    let rows = json(out.join("scores/scores.json"));
    let count = |how: &str| rows.as_array().unwrap().iter().filter(|row| row["how"] == how).count();
    assert_eq!(["alone", "mt-bert", "clinical", "biomedical"].map(count), [8, 8, 4, 4], "{rows}");
    (config, out)
}

#[test]
fn mt_bert_refines_and_fine_tunes_its_eight_sets_with_adamax() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    clinical(&data);
    biomedical(&data);
    let (config, out) = refined(folder.path(), "mt-bert-sets");
    let said = Engraft::own(&["config"], &config, &out).ok();
    assert!(said.contains("kind = \"adamax\""), "{said}");
}
