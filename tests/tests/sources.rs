//! Every source through the binary, from files in its publisher's layout: what comes out is what a script counts that knows nothing of engraft.
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use base::whole::write_whole;
use engraft_tests::python::interpreter;
use engraft_tests::{Engraft, json, skipped};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

/// Published files, and the names by which they are fetched.
const PUBLISHED: [(&str, &str); 5] = [
    ("doid/DO_rare_slim.obo", "doid"),
    ("go/goslim_generic.obo", "go"),
    ("icd10cm/simple_icd_10_cm/data/icd10c-tabular-April-1-2026.xml", "icd10cm, and unzip what comes"),
    ("kgx/graph.json", "kgx-example"),
    ("kgx/valid_edges.jsonl", "kgx-example"),
];

/// Those of them that are there.
#[expect(clippy::disallowed_methods, reason = "the environment names the data")]
fn published() -> Vec<PathBuf> {
    let data = PathBuf::from(std::env::var_os("ENGRAFT_DATA").unwrap_or_default());
    let (there, missing): (Vec<_>, Vec<_>) =
        PUBLISHED.iter().partition(|(file, _)| data.join(file).is_file());
    for (file, name) in missing {
        skipped(&format!("there is no {file} in ENGRAFT_DATA (engraft fetch {name}): it is not counted"));
    }
    there.into_iter().map(|(file, _)| data.join(file)).collect()
}

fn rows(file: &Path) -> i64 {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(file).unwrap()).unwrap();
    reader.metadata().file_metadata().num_rows()
}

#[test]
fn every_source_gives_what_is_counted_apart_from_it() {
    let Some(python) = interpreter("ENGRAFT_PYTHON") else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(python);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/sources.py");
    command.arg(script).arg(folder.path().join("data"));
    command.args(published());
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let said = String::from_utf8(ran.stdout).unwrap();
    // What it has written, and what it counts there: triples, their ends, and rows by the reason for which they are dropped.
    let all: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(all.len() > 12, "{said}");
    for counted in all {
        let text = |name: &str| counted[name].as_str().unwrap();
        let source = text("source");
        let (path, out) = (folder.path().join("config.toml"), folder.path().join(source));
        write_whole(&path, format!("version = 5\n{}\n", text("config")).as_bytes()).unwrap();
        let run = Engraft::plain(&["run", "triples"], &out).arg("--config").arg(&path);
        run.arg("--data").arg(folder.path().join("data")).ok();
        let out = out.join("triples");
        let found = [rows(&out.join("triples.parquet")), rows(&out.join("entities.parquet"))];
        let expected = ["triples", "entities"].map(|what| counted[what].as_i64().unwrap());
        assert_eq!(found, expected, "{source}");
        let funnel = &json(out.join("funnel.json"))["read"][0]["triples"];
        for (reason, count) in counted["dropped"].as_object().unwrap() {
            assert_eq!(funnel["dropped"][reason], *count, "{source}: {reason}");
        }
        let all = funnel["dropped"].as_object().unwrap().values().map(|count| count.as_u64().unwrap());
        assert_eq!(
            funnel["read"].as_u64(),
            Some(funnel["kept"].as_u64().unwrap() + all.sum::<u64>()),
            "{source}"
        );
    }
}
