//! Every source through the binary, from files in its publisher's layout: what comes out is what a script counts that knows nothing of engraft.
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use base::whole::write_whole;
use engraft_tests::python::{interpreter, python_package};
use engraft_tests::{Engraft, json, skipped};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

/// A disease that four ontologies and terminologies list by their own ids, each in a graph of its own.
const TERM: &str = "[Term]\nid: DOID:1\nname: disease\n\n[Term]\nid: DOID:2\nname: gout\nxref: UMLS_CUI:C0018099\nxref: MESH:D006073\n\
    xref: SNOMEDCT_US_2023_03_01:90560007\nxref: OMIM:138900\nis_a: DOID:1\n";

#[test]
fn an_entity_of_five_namespaces_is_one_and_keeps_all_its_ids() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| write_whole(&folder.path().join(name), text.as_bytes()).unwrap();
    put("doid.obo", &format!("format-version: 1.2\nontology: doid\n\n{TERM}"));
    let ids = ["UMLS:C0018099", "MESH:D006073", "SNOMEDCT:90560007", "OMIM:138900"];
    let mut config = "version = 5\n[sources.obo]\npath = \"doid.obo\"\n".to_owned();
    for (number, id) in ids.into_iter().enumerate() {
        put(
            &format!("n{number}.tsv"),
            &format!(
                "id\tname\tcategory\n{id}\tGout {number}\tbiolink:Disease\nX:{number}\tThing {number}\t\n"
            ),
        );
        put(
            &format!("e{number}.tsv"),
            &format!("subject\tpredicate\tobject\n{id}\tbiolink:related_to\tX:{number}\n"),
        );
        config += &format!("[sources.kgx.k{number}]\nnodes = \"n{number}.tsv\"\nedges = \"e{number}.tsv\"\n");
    }
    put("config.toml", &config);
    let out = folder.path().join("out");
    Engraft::own(&["run", "triples"], &folder.path().join("config.toml"), &out).ok();
    let graph = kg::table::Graph::read(&out.join("triples")).unwrap();
    assert_eq!((graph.entities().len(), graph.triples().len()), (6, 5));
    let gout = graph.entities().iter().find(|entity| entity.key == "umls:C0018099").unwrap();
    assert_eq!(gout.same_as, ["doid:2", "mesh:D006073", "omim:138900", "snomed:90560007"]);
    assert_eq!(gout.origins, ["k0", "k1", "k2", "k3", "obo"]);
}

#[test]
fn what_has_no_name_is_dropped_of_the_source_that_lacks_it_alone() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| write_whole(&folder.path().join(name), text.as_bytes()).unwrap();
    // One source calls a relation by its code, another has its name; so it is with a thing; one thing has no name anywhere.
    put("one.tsv", "id\tname\tcategory\nX:1\tOne\t\nX:2\t\t\nX:3\t\t\nX:4\tFour\t\n");
    put(
        "one-edges.tsv",
        "subject\tpredicate\tobject\nX:1\tRO:0001\tX:4\nX:1\tbiolink:causes\tX:2\nX:4\tbiolink:causes\tX:3\n",
    );
    put(
        "two.obo",
        "format-version: 1.2\nontology: x\n\n[Term]\nid: X:2\nname: Two\nrelationship: RO:0001 X:5\n\n[Term]\nid: X:5\nname: Five\n\n\
        [Typedef]\nid: RO:0001\nname: regulates\n",
    );
    let text = "version = 5\n[sources.kgx.one]\nnodes = \"one.tsv\"\nedges = \"one-edges.tsv\"\n[sources.obo]\npath = \"two.obo\"\n";
    put("config.toml", text);
    let (config, out) = (folder.path().join("config.toml"), folder.path().join("out"));
    let refused = Engraft::own(&["run", "triples"], &config, &out).output();
    assert!(
        refused.code() == Some(1) && refused.text().contains("1 of 4 entities have no text"),
        "{}",
        refused.text()
    );
    let ran = Engraft::own(&["run", "triples"], &config, &out).set("canon.unnamed=drop").output();
    assert_eq!(ran.code(), Some(0), "{}", ran.text());
    for told in [
        "one: 1 of 4 entities have no text, and their statements are dropped",
        "one: 1 of 2 relations have no text",
    ] {
        assert!(ran.text().contains(told), "{told}: {}", ran.text());
    }
    let graph = kg::table::Graph::read(&out.join("triples")).unwrap();
    let told = graph.triples().iter().map(|triple| {
        let end = |id: kg::table::EntityId| graph.entities()[id.index()].text.as_str();
        format!(
            "{} {} {}",
            end(triple.subject),
            graph.relations()[triple.relation.index()].key,
            end(triple.object)
        )
    });
    assert_eq!(told.collect::<Vec<_>>(), ["One causes Two", "Two ro:0001 Five"]);
    let sources = &json(out.join("triples/funnel.json"))["merged"]["sources"];
    assert_eq!((&sources["one"]["unnamed"], &sources["obo"]["unnamed"]), (&2.into(), &0.into()));
}

/// Published files, and the names by which they are fetched.
const PUBLISHED: [(&str, &str); 6] = [
    ("doid/DO_rare_slim.obo", "doid"),
    ("doid/DO_cancer_slim.json", "doid"),
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
    let mut command = Command::new(&python);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/sources.py");
    command.arg(script).arg(folder.path().join("data"));
    command.args(published());
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let said = String::from_utf8(ran.stdout).unwrap();
    // The package of Python reads each as the binary does.
    let counted = folder.path().join("counted.jsonl");
    write_whole(&counted, said.as_bytes()).unwrap();
    let mut command = Command::new(&python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("python/kernel_sources.py"));
    command.arg(folder.path().join("data")).arg(&counted);
    let ran = command.env("PYTHONPATH", python_package(&folder.path().join("package"))).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
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
        // The same without a config: as a command sets it.
        let (again, table) =
            (folder.path().join("set").join(source), toml::from_str::<toml::Table>(text("config")));
        let run = Engraft::plain(&["run", "triples"], &again).arg("--data").arg(folder.path().join("data"));
        let sources = table.unwrap()["sources"].as_table().unwrap().clone();
        sources.iter().fold(run, |run, (kind, options)| run.set(&format!("sources.{kind}={options}"))).ok();
        let table = |out: &Path| std::fs::read(out.join("triples/triples.parquet")).unwrap();
        assert!(table(&out) == table(&again), "{source}: set");
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
