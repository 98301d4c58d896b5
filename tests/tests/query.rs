//! `engraft query` as users run it: the documented queries, what they answer, and what is said of those that cannot be answered.
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use arrow_array::Array as _;
use arrow_array::cast::AsArray as _;
use engraft_tests::{Engraft, Ran};
use kg::table::Graph;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

const DOCS: &str = include_str!("../../docs/query.md");

fn query(out: &Path, sql: &str) -> Engraft {
    Engraft::plain(&["query", sql], out)
}

/// The rows of an answer, as JSON objects.
fn rows(out: &Path, sql: &str) -> Vec<Value> {
    let said = query(out, sql).arg("--json").ok();
    said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn refused(out: &Path, sql: &str) -> String {
    let ran: Ran = query(out, sql).output();
    assert_eq!(ran.code(), Some(2), "{}", ran.text());
    assert!(!ran.text().contains("panicked"), "{}", ran.text());
    ran.text()
}

#[test]
fn every_documented_query_has_an_answer_on_the_world() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    Engraft::small(&["run"], out).ok();
    let blocks: Vec<&str> =
        DOCS.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.len(), 10);
    // The world is consistent and small: that no relation is in doubt is an answer as well.
    let may_be_empty = "where verdict";
    for sql in blocks {
        let found = rows(out, sql);
        assert!(!found.is_empty() || sql.contains(may_be_empty), "{sql}");
    }
    // Each table that is there has the columns that its row in the docs names, and those alone.
    let said = Engraft::plain(&["query", "--tables", "--json"], out).ok();
    let tables: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(tables.len() > 20, "{said}");
    for table in &tables {
        let name = table["table"].as_str().unwrap();
        if name.starts_with("shards_") {
            continue;
        }
        let row = DOCS.lines().find(|line| line.starts_with(&format!("| `{name}` |"))).unwrap_or_else(|| {
            assert!(DOCS.contains(name), "docs/query.md lacks the table `{name}`");
            ""
        });
        for column in table["columns"].as_array().unwrap() {
            let column = column["name"].as_str().unwrap();
            assert!(row.contains(&format!("`{column}`")), "docs/query.md: `{name}` lacks `{column}`");
        }
    }
    let of = |name: &str| tables.iter().find(|table| table["table"] == name).unwrap();
    let graph = Graph::read(&out.join("triples")).unwrap();
    assert_eq!(of("triples")["rows"], graph.triples().len());
    let steps = fs::read_to_string(out.join("retrain/metrics.jsonl")).unwrap().lines().count();
    assert_eq!(of("metrics")["rows"], steps);
    assert_eq!(rows(out, "select count(*) n from metrics")[0]["n"], steps);
    assert_eq!(of("task_metrics")["rows"], 4 * steps);
}

/// A subject, how many origins its triple has, and the first one's source.
type Origins = (String, usize, String);

fn of_parquet(file: &Path) -> Vec<Origins> {
    let file = File::open(file).unwrap();
    let batches = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    let mut written = vec![];
    for batch in batches.map(Result::unwrap) {
        let (subjects, origins) = (batch.column(0).as_string::<i64>(), batch.column(1).as_list::<i64>());
        for row in 0..batch.num_rows() {
            let origin = origins.value(row);
            let source =
                origin.as_struct().column_by_name("source").unwrap().as_string::<i64>().value(0).to_owned();
            written.push((subjects.value(row).to_owned(), origin.len(), source));
        }
    }
    written
}

fn told(row: &Value) -> Origins {
    let origins = row["origins"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&row["subject"]), origins.len(), text(&origins[0]["source"]))
}

#[test]
fn names_are_those_of_the_graph_and_answers_are_complete_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    Engraft::small(&["run", "split"], &out).ok();
    let graph = Graph::read(&out.join("triples")).unwrap();
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for triple in graph.triples() {
        *expected.entry(graph.relations()[triple.relation.index()].key.clone()).or_default() += 1;
    }
    let counted = rows(&out, "select relation, count(*) n from triples group by relation order by n desc");
    let numbers: Vec<u64> = counted.iter().map(|row| row["n"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|a, b| a >= b));
    let found: BTreeMap<String, u64> = counted
        .iter()
        .map(|row| (row["relation"].as_str().unwrap().to_owned(), row["n"].as_u64().unwrap()))
        .collect();
    assert_eq!(found, expected);
    let all = rows(&out, "select subject, object_key, subject_id, triple from triples order by triple");
    assert_eq!(all.len(), graph.triples().len());
    for (row, triple) in all.iter().zip(graph.triples()) {
        assert_eq!(row["subject"], graph.entities()[triple.subject.index()].text);
        assert_eq!(row["object_key"], graph.entities()[triple.object.index()].key);
        assert_eq!(row["subject_id"], triple.subject.0);
    }
    // The same through a part's rows, which number triples.
    let parts = rows(&out, "select object from split order by triple");
    assert!(
        parts
            .iter()
            .zip(graph.triples())
            .all(|(row, t)| row["object"] == graph.entities()[t.object.index()].text)
    );

    let sql = "select subject, origins from triples order by triple limit 500";
    let csv = query(&out, sql).ok();
    assert_eq!((csv.lines().next(), csv.lines().count()), (Some("subject,origins"), 501));
    assert!(csv.lines().nth(1).unwrap().contains(r#""[{""source"":"#), "{csv:.300}");
    let table = query(&out, sql).arg("--format").arg("table").arg("--rows").arg("7").output();
    assert_eq!(table.text().lines().count(), 9, "{}", table.text());
    assert!(table.text().contains("only the first 7 rows are shown"));
    for (name, same) in [("a.csv", Some(csv.as_str())), ("a.parquet", None), ("a.jsonl", None)] {
        let file = folder.path().join(name);
        assert_eq!(query(&out, sql).arg("--into").arg(&file).ok(), "");
        assert!(same.is_none_or(|same| fs::read_to_string(&file).unwrap() == same));
    }
    let told: Vec<Origins> = rows(&out, sql).iter().map(told).collect();
    assert_eq!(of_parquet(&folder.path().join("a.parquet")), told);
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 4, "three answers and the output folder, nothing temporary");
}

#[test]
fn what_cannot_be_answered_is_told_with_what_would_be_right() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    assert!(refused(out, "select 1").contains("no stage has finished"));
    Engraft::small(&["run", "split"], out).ok();
    let wrong = [
        ("select * from tripels", vec!["no table `tripels`", "did you mean `triples`?"]),
        ("select relatoin from triples", vec!["no column `relatoin`", "did you mean `relation`?"]),
        (
            "select subject,\n  count(* from triples",
            vec!["line 2, column 11 of the query: Expected: )", "\n            ^"],
        ),
        ("select t.nope from triples t", vec!["no column `nope`", "columns: triple, subject"]),
        ("select * from pmi", vec!["no table `pmi`", "`engraft run pmi`"]),
        ("select * from scores", vec!["`engraft run scores`"]),
        ("delete from triples", vec!["`delete`", "expected SELECT"]),
        ("show tables", vec!["engraft query --tables"]),
        ("", vec!["the query is empty"]),
        ("select frobnicate(subject) from triples", vec!["frobnicate"]),
    ];
    for (sql, expected) in wrong {
        let text = refused(out, sql);
        for word in expected {
            assert!(text.contains(word), "{sql}: `{word}` is missing from: {text}");
        }
    }
    let into = out.join("answer.txt");
    let text = query(out, "select 1 one").arg("--into").arg(&into).output().text();
    assert!(text.contains("expected .csv, .jsonl or .parquet") && !into.exists(), "{text}");
}

#[test]
fn damage_is_an_error_and_never_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    Engraft::small(&["run", "split"], out).ok();
    let (file, names) = (out.join("triples/triples.parquet"), out.join("triples/entities.parquet"));
    let (sound, named) = (fs::read(&file).unwrap(), fs::read(&names).unwrap());
    let put = |path: &Path, bytes: &[u8]| base::whole::write_whole(path, bytes).unwrap();
    let flipped = |bytes: &[u8], at: usize| {
        let mut bytes = bytes.to_vec();
        bytes[at] ^= 0x10;
        bytes
    };
    let sql = "select subject, count(*) n from triples group by subject";
    let answer = rows(out, sql);
    for at in [4, sound.len() / 3, sound.len() - 30] {
        put(&file, &flipped(&sound, at));
        let text = refused(out, sql);
        assert!(text.contains("triples.parquet") && text.contains("engraft verify"), "{text}");
        // Unverified, it is an error or an answer, but no panic.
        let ran = query(out, sql).arg("--unchecked").output();
        assert!(matches!(ran.code(), Some(0 | 2)) && !ran.text().contains("panicked"), "{}", ran.text());
    }
    put(&file, &sound);
    put(&names, &flipped(&named, named.len() / 2));
    let text = refused(out, sql);
    assert!(text.contains("entities.parquet") && text.contains("engraft verify"), "{text}");
    // A query without names does not read them.
    assert_eq!(rows(out, "select count(*) n from triples where relation_id >= 0").len(), 1);
    fs::remove_file(&names).unwrap();
    assert!(refused(out, sql).contains("entities.parquet"));
    put(&names, &named);
    assert_eq!(rows(out, sql).len(), answer.len());
    // Ids of a split that was made from other triples are not given the names of these.
    Engraft::small(&["run", "triples"], out).set("world.seed=2").ok();
    let text = refused(out, "select subject from split");
    assert!(text.contains("earlier `triples`") && text.contains("engraft run split"), "{text}");
    assert!(!rows(out, "select part, count(*) n from split group by part").is_empty());
}
