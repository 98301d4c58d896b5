//! Tables of small artifacts, written here.
#![cfg(test)]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use base::whole::write_with_folder;
use polars::prelude::{DataFrame, df};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::catalog::{self, Col, Rows};
use crate::{Artifact, Check, Format, Tables};

/// An output folder in the making.
struct Out {
    folder: TempDir,
    artifacts: Vec<Artifact>,
}

impl Out {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), artifacts: vec![] }
    }

    /// With an artifact of these files, whose digest is its stage's name. A file without a text is there already.
    fn with(mut self, stage: &str, inputs: &[(&str, &str)], files: &[(&str, &str)]) -> Self {
        let folder = self.folder.path().join(stage);
        let file = |(path, text): &(&str, &str)| {
            if !text.is_empty() {
                write_with_folder(&folder.join(path), text.as_bytes()).unwrap();
            }
            crate::File { path: (*path).to_owned(), bytes: 0, blake3: String::new() }
        };
        self.artifacts.push(Artifact {
            stage: stage.to_owned(),
            files: files.iter().map(file).collect(),
            digest: stage.to_owned(),
            inputs: inputs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect(),
            fingerprint: String::new(),
            started_ms: 0,
            seconds: 0.5,
            engraft: "0.1.0".to_owned(),
            folder,
        });
        self
    }

    fn parquet(self, path: &str, frame: &DataFrame) -> Self {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        crate::answer::parquet(frame, File::create(path).unwrap()).unwrap();
        self
    }

    fn graph() -> Self {
        let triples =
            df!("subject" => [0u32, 0, 2], "relation" => [0u32, 1, 1], "object" => [1u32, 2, 1]).unwrap();
        let entities = df!("id" => [0u32, 1, 2], "key" => ["k:a", "k:b", "k:c"], "text" => ["A", "B", "A"]);
        let relations = df!("id" => [0u32, 1], "key" => ["is", "has"]).unwrap();
        Self::new()
            .parquet("triples/triples.parquet", &triples)
            .parquet("triples/entities.parquet", &entities.unwrap())
            .parquet("triples/relations.parquet", &relations)
            .with(
                "triples",
                &[],
                &["triples.parquet", "entities.parquet", "relations.parquet"].map(|file| (file, "")),
            )
    }

    fn tables(&self) -> Tables {
        Tables::new(self.artifacts.clone(), Check::new(|_, _| Ok(())))
    }

    fn rows(&self, sql: &str) -> Value {
        let file = self.folder.path().join("answer.jsonl");
        self.tables().query(sql).unwrap().write(Format::Json, &file).unwrap();
        let text = fs::read_to_string(file).unwrap();
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect()
    }

    fn refused(&self, sql: &str) -> String {
        let file = self.folder.path().join("answer.jsonl");
        let answer = self.tables().query(sql);
        answer.and_then(|answer| answer.write(Format::Json, &file)).unwrap_err().to_string()
    }
}

#[test]
fn ids_are_names_and_stay_ids() {
    let out = Out::graph();
    assert_eq!(
        out.rows("select triple, subject, relation, object_key, relation_id from triples order by triple"),
        json!([
            {"triple": 0, "subject": "A", "relation": "is", "object_key": "k:b", "relation_id": 0},
            {"triple": 1, "subject": "A", "relation": "has", "object_key": "k:c", "relation_id": 1},
            {"triple": 2, "subject": "A", "relation": "has", "object_key": "k:b", "relation_id": 1},
        ])
    );
    // Two entities of one name are two by key.
    assert_eq!(
        out.rows("select subject, count(distinct subject_key) n from triples group by subject"),
        json!([{"subject": "A", "n": 2}])
    );
    assert_eq!(out.rows("select count(*) n from triples where relation like 'ha%'"), json!([{"n": 2}]));
}

#[test]
fn a_table_reads_only_what_a_query_asks_for() {
    let out = Out::graph();
    fs::remove_file(out.folder.path().join("triples/entities.parquet")).unwrap();
    assert_eq!(
        out.rows("select relation, count(*) n from triples group by relation order by n"),
        json!([{"relation": "is", "n": 1}, {"relation": "has", "n": 2}])
    );
    assert!(out.refused("select subject from triples").contains("entities.parquet"));
}

#[test]
fn names_of_other_triples_are_an_error() {
    let split = df!("triple" => [0u32, 1, 2], "part" => ["train", "test", "train"], "group" => [0u32, 1, 2]);
    let out = Out::graph().parquet("split/split.parquet", &split.unwrap());
    let out = out.with("split", &[("triples", "triples")], &[("split.parquet", "")]);
    assert_eq!(
        out.rows("select object, group_id from split where part = 'test'"),
        json!([{"object": "A", "group_id": 1}])
    );
    let mut stale = out;
    stale.artifacts[1].inputs.insert("triples".to_owned(), "another".to_owned());
    let text = stale.refused("select object from split");
    assert!(text.contains("earlier `triples`") && text.contains("`engraft run split`"), "{text}");
    assert_eq!(stale.rows("select count(*) n from split"), json!([{"n": 3}]));
    stale.artifacts.remove(0);
    assert!(stale.refused("select object from split").contains("`engraft run triples`"));
}

#[test]
fn parts_of_a_task_are_one_table() {
    let rows = |n: u32| df!("triple" => [n, 0], "input_ids" => [1i32, 2]).unwrap();
    let files = ["train-00000-of-00002", "train-00001-of-00002", "test-00000-of-00001"];
    let paths = files.map(|file| format!("subject/{file}.parquet"));
    let mut out = Out::graph();
    for (n, path) in (0..).zip(&paths) {
        out = out.parquet(&format!("shards/{path}"), &rows(n));
    }
    let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "")).collect();
    let out = out.with("shards", &[("triples", "triples")], &files);
    assert_eq!(
        out.rows("select part, count(*) n from shards_subject group by part order by part"),
        json!([{"part": "test", "n": 2}, {"part": "train", "n": 4}])
    );
    assert_eq!(
        out.rows("select distinct relation from shards_subject where part = 'test' order by relation"),
        json!([{"relation": "has"}, {"relation": "is"}])
    );
}

#[test]
fn trainings_and_their_scores_are_rows() {
    let metrics = "{\"step\":1,\"epoch\":0,\"loss\":2.5,\"tasks\":{\"a\":{\"loss\":1.5,\"accuracy\":0.5,\"targets\":4},\
        \"b\":{\"loss\":1.0,\"samples\":2}},\"tokens\":9,\"rows\":3}\n{\"step\":2,\"epoch\":0,\"loss\":2,\"tasks\":{}}\n";
    let score = |value: f64| json!({"samples": 5, "metric": "accuracy", "value": value, "others": {"macro_f1": value / 2.0}});
    let one =
        json!({"seed": 3, "steps": 2, "settings": {"batch": 8}, "dev": score(0.5), "test": score(0.25)});
    let recipe = json!({"ner": one, "re": {"seed": 3, "dev": score(1.0)}}).to_string();
    let table = json!([{"benchmark": "ner", "how": "alone", "began_with": ["retrain"], "metric": "accuracy",
        "mean": 0.25, "best": 0.25, "interval": null, "seeds": [0.25], "others": {"macro_f1": 0.125}}]);
    let (one, table) = (one.to_string(), table.to_string());
    let out = Out::new()
        .with("retrain", &[], &[("metrics.jsonl", metrics)])
        .with("finetune-base-ner-3", &[("benchmark-ner", "")], &[("scores.json", &one)])
        .with("recipe-mt-3", &[("benchmark-ner", ""), ("benchmark-re", "")], &[("scores.json", &recipe)])
        .with("scores", &[], &[("scores.json", &table)]);
    assert_eq!(
        out.rows("select step, task, loss, accuracy, samples from task_metrics where stage = 'retrain' order by task"),
        json!([
            {"step": 1, "task": "a", "loss": 1.5, "accuracy": 0.5, "samples": null},
            {"step": 1, "task": "b", "loss": 1.0, "accuracy": null, "samples": 2},
        ])
    );
    assert_eq!(
        out.rows("select stage, benchmark, variant, value from seed_scores where main and part = 'dev' order by value, stage"),
        json!([
            {"stage": "finetune-base-ner-3", "benchmark": "ner", "variant": "base", "value": 0.5},
            {"stage": "recipe-mt-3", "benchmark": "ner", "variant": "mt", "value": 0.5},
            {"stage": "recipe-mt-3", "benchmark": "re", "variant": "mt", "value": 1.0},
        ])
    );
    assert_eq!(
        out.rows("select how, mean, low, began_with, seeds from scores"),
        json!([{"how": "alone", "mean": 0.25, "low": null, "began_with": ["retrain"], "seeds": "[0.25]"}])
    );
    assert_eq!(out.rows("select count(*) n from stages"), json!([{"n": 4}]));
    let text = out.refused("select * from pmi");
    assert!(text.contains("stage `pmi` has not finished here: `engraft run pmi` makes it"), "{text}");
}

#[test]
fn heads_files_and_funnels_are_rows() {
    let importance = json!({"layers": 2, "heads": 2, "values": [0.1, 0.2, 0.3, 0.4]}).to_string();
    let mask = json!({"keep": [[1.0, 0.0], [0.5, 1.0]]}).to_string();
    let funnel = json!({"read": [{"source": "s", "triples": {"file": "f", "read": 5, "kept": 3, "dropped": {"bad": 2}},
        "supporting": [{"file": "g", "read": 1, "kept": 1, "mended": {"case": 1}}]}]})
    .to_string();
    let index = json!({"tasks": [{"task": "subject", "parts": [{"part": "train", "files": [
        {"path": "p", "bytes": 7, "groups": [{"items": 2, "rows": 4}, {"items": 1, "rows": 2}]}]}]}]})
    .to_string();
    let out = Out::new()
        .with("importance-base", &[], &[("importance.json", &importance)])
        .with("mask-hard", &[], &[("mask.json", &mask)])
        .with("triples", &[], &[("funnel.json", &funnel)])
        .with("shards", &[], &[("index.json", &index)]);
    assert_eq!(
        out.rows("select i.importance, m.keep from importance i join head_masks m on i.layer = m.layer and i.head = m.head where m.keep < 1 order by i.importance"),
        json!([{"importance": 0.2, "keep": 0.0}, {"importance": 0.3, "keep": 0.5}])
    );
    assert_eq!(
        out.rows("select file, outcome, reason, rows from funnel where reason is not null order by file"),
        json!([
            {"file": "f", "outcome": "dropped", "reason": "bad", "rows": 2},
            {"file": "g", "outcome": "changed", "reason": "case", "rows": 1},
        ])
    );
    assert_eq!(
        out.rows("select items, rows, bytes from shards"),
        json!([{"items": 3, "rows": 6, "bytes": 7}])
    );
}

#[test]
fn what_a_record_should_not_hold_is_an_error_with_its_place() {
    let out = Out::new().with("retrain", &[], &[("metrics.jsonl", "{\"step\":1}\n{\"step\":\"two\"}\n")]);
    let text = out.refused("select * from metrics");
    assert!(text.contains("metrics.jsonl: record 2: `/step` is \"two\", expected a whole number"), "{text}");
    let out = Out::new().with("retrain", &[], &[("metrics.jsonl", "{\"step\":1}\n{\"st")]);
    let text = out.refused("select * from metrics");
    assert!(text.contains("metrics.jsonl:2: expected JSON"), "{text}");
}

#[test]
fn a_file_that_the_check_refuses_is_not_opened() {
    let Out { folder, artifacts } = Out::graph();
    let check = |path: &Path, _: &crate::File| match path.ends_with("entities.parquet") {
        true => Err("not this one".to_owned()),
        false => Ok(()),
    };
    let tables = Tables::new(artifacts, Check::new(check));
    let file = folder.path().join("answer.csv");
    let ask = |sql: &str| tables.query(sql).and_then(|answer| answer.write(Format::Csv, &file));
    assert!(ask("select relation from triples").is_ok());
    assert!(ask("select object from triples").unwrap_err().to_string().contains("not this one"));
    assert!(ask("select * from entities").unwrap_err().to_string().contains("not this one"));
}

#[test]
fn every_table_and_column_is_documented() {
    let docs = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/query.md")).unwrap();
    let rows: BTreeMap<&str, &str> =
        docs.lines().filter_map(|line| Some((line.strip_prefix("| `")?.split_once('`')?.0, line))).collect();
    for table in catalog::all() {
        let row = rows.get(table.name).copied().unwrap_or_default();
        assert!(row.contains(table.row), "docs/query.md: `{}`: {row}", table.name);
        let columns: Vec<&str> = match table.rows {
            Rows::Parquet(columns) | Rows::Exploded(_, columns) => columns
                .iter()
                .map(|column| match column {
                    Col::As(name, _) | Col::Row(name) | Col::Name(name, ..) => name,
                    Col::Part => "part",
                })
                .collect(),
            Rows::Lines(_, fields) | Rows::Document(_, fields) => {
                fields.iter().map(|field| field.name).collect()
            }
            Rows::Words => vec!["id", "token"],
        };
        for column in columns {
            assert!(row.contains(&format!("`{column}`")), "docs/query.md: `{}` lacks `{column}`", table.name);
        }
    }
}
