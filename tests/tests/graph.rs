//! The graph as a run leaves it: held-out triples stay held out, leaks stop the run, memory changes no byte, what moved is told.
use std::fs;
use std::path::Path;

use engraft_tests::{Engraft, artifacts, assert_same, json};
use serde_json::Value;

const RATIO: &str =
    "split.parts={ ratio = { train = 0.8, valid = 0.1, test = 0.1, seed = 1, cover = \"train\" } }";

#[test]
fn shards_of_a_part_are_made_of_its_triples_only_and_the_audit_proves_it() {
    let folder = tempfile::tempdir().unwrap();
    Engraft::small(&["run", "audit"], folder.path()).set(RATIO).ok();
    let parts = &json(folder.path().join("split/split.json"))["triples"];
    let number = |part: &str| parts[part].as_u64().unwrap();
    assert!(number("valid") > 0 && number("test") > 0, "{parts}");
    let shards = &json(folder.path().join("shards/index.json"))["triples"];
    for part in ["train", "valid", "test"] {
        assert_eq!(shards[part], parts[part], "{part}");
    }
    assert_eq!(json(folder.path().join("split/audit.json"))["leaks"], 0);
    let audit = json(folder.path().join("audit/audit.json"));
    assert_eq!(audit["leaks"], 0);
    for task in audit["tasks"].as_array().unwrap() {
        assert_eq!(task["triples"], parts[task["part"].as_str().unwrap()], "{task}");
    }
}

/// A config with one source of triples, whose official parts give one another away.
fn leaky(folder: &Path) -> std::path::PathBuf {
    let put = |name: &str, text: &str| base::whole::write_whole(&folder.join(name), text.as_bytes()).unwrap();
    put("train.tsv", "aspirin\ttreats\tfever\nfever\tsigns\tflu\ncough\tsigns\tflu\n");
    put("test.tsv", "fever\ttreated_by\taspirin\nflu\tsigns\tcold\n");
    let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/kg-bert.toml");
    let text = fs::read_to_string(whole).unwrap();
    let source = "[sources.triples.umls-network]\nkg_bert = \"kg-bert/data/umls\"\n";
    assert!(text.contains(source));
    let ours = "[sources.triples.umls-network]\ninverses = [[\"treats\", \"treated_by\"]]\n\
        [sources.triples.umls-network.table]\n\
        files = [{ path = \"train.tsv\", part = \"train\" }, { path = \"test.tsv\", part = \"test\" }]\n\
        layout = { separator = \"tab\", first_line = \"row\", columns = { subject = 1, relation = 2, object = 3 } }\n";
    let text = text.replace(source, ours).replace("inverses = \"fold\"", "inverses = \"keep\"");
    put("leaky.toml", &text);
    folder.join("leaky.toml")
}

#[test]
fn a_leak_fails_the_run_with_both_triples_in_words_unless_it_is_to_be_reported() {
    let (data, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let config = leaky(data.path());
    let run = |set: &str| {
        let engraft = Engraft::plain(&["run", "split"], out.path()).arg("--config").arg(&config);
        engraft.arg("--data").arg(data.path()).set(set).output()
    };
    let failed = run("split.on_leak=fail");
    assert_eq!(failed.code(), Some(1), "{}", failed.text());
    let text = failed.text();
    assert!(text.contains("1 held-out") && text.contains("inverse") && text.contains("treated_by"), "{text}");
    assert!(!out.path().join("split").exists(), "nothing is built on a leak");
    let reported = run("split.on_leak=report");
    assert_eq!(reported.code(), Some(0), "{}", reported.text());
    assert_eq!(json(out.path().join("split/audit.json"))["leaks"], 1);
}

#[test]
fn how_many_rows_memory_may_hold_changes_no_byte_and_starts_no_stage() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    Engraft::small(&["run", "triples"], one.path()).ok();
    let small = |out: &Path| Engraft::small(&["run", "triples"], out).set("canon.rows_in_memory=1024");
    small(two.path()).ok();
    assert_same(&artifacts(one.path()), &artifacts(two.path()), "1,024 rows in memory");
    let ledger = || fs::read(one.path().join("ledger.jsonl")).unwrap();
    let before = ledger();
    small(one.path()).ok();
    assert_eq!(before, ledger(), "no stage ran");
}

#[test]
fn what_another_source_moves_is_told_by_the_run_and_by_diff() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let without = "sources.hsdn={ path = \"world:hsdn/Combined-Input.tsv\", min_tfidf = 1e9 }";
    Engraft::small(&["run", "triples"], old.path()).set(without).ok();
    Engraft::small(&["run", "triples"], new.path()).ok();
    let tables = [old.path().join("triples"), new.path().join("triples")];
    let diff = |one: &Path, other: &Path| {
        let list = new.path().join("changes");
        Engraft::plain(&["diff", "--json"], new.path()).arg(one).arg(other).arg("--into").arg(list).output()
    };
    let changed = diff(&tables[0], &tables[1]);
    assert_eq!(changed.code(), Some(3), "{}", changed.text());
    let told: Value = serde_json::from_str(changed.text().lines().next().unwrap()).unwrap();
    assert_eq!(told["triples"]["removed"], 0);
    assert!(told["by_source"]["hsdn"]["added"].as_u64().unwrap() > 0, "{told}");
    assert!(new.path().join("changes/moved.parquet").exists());
    assert_eq!(diff(&tables[1], &tables[1]).code(), Some(0));
    Engraft::small(&["run", "triples"], old.path()).ok();
    let inspect = Engraft::small(&["inspect", "triples", "--json"], old.path()).ok();
    let line: Value = serde_json::from_str(inspect.lines().next().unwrap()).unwrap();
    assert_eq!(line["facts"]["moved"], told, "the run that replaced the table says the same");
}

#[test]
fn a_source_that_is_set_without_a_config_is_the_whole_graph_and_one_of_the_worlds_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let obo = "[Term]\nid: DOID:4\nname: disease\n\n[Term]\nid: DOID:1\nname: gout\nis_a: DOID:4\n";
    let file = folder.path().join("own.obo");
    base::whole::write_whole(&file, format!("format-version: 1.2\n\n{obo}").as_bytes()).unwrap();
    let read = |out: &str| -> Vec<String> {
        let funnel = json(folder.path().join(out).join("triples/funnel.json"));
        let read = funnel["read"].as_array().unwrap().iter();
        read.map(|of| of["source"].as_str().unwrap().to_owned()).collect()
    };
    let run = |out: &str, set: &str| {
        let run = Engraft::plain(&["run", "triples"], &folder.path().join(out)).set(set);
        let ran = run.inside(folder.path()).output();
        assert_eq!(ran.code(), Some(0), "{}", ran.text());
        ran.text()
    };
    // Its whole path, and as it lies in the working folder.
    for (out, path) in [("own", file.to_str().unwrap()), ("near", "own.obo")] {
        let told = run(out, &format!("sources.obo.path={path}"));
        assert!(told.contains("sources.obo is read in place of the embedded world's sources"), "{told}");
        assert_eq!(read(out), ["obo"]);
    }
    let told = run("world", "sources.umls.max_srl=0");
    assert!(!told.contains("in place of"), "{told}");
    assert_eq!(read("world"), ["rotmensch", "hsdn", "mesh", "umls"]);
}

#[test]
fn diff_sees_what_is_said_of_what_stayed() {
    let folder = tempfile::tempdir().unwrap();
    let old = "format-version: 1.2\nontology: x\n\n[Term]\nid: DOID:4\nname: disease\nsynonym: \"illness\" EXACT []\ndef: \"What ails.\" []\n\n\
        [Term]\nid: DOID:5\nname: flu\nrelationship: part_of DOID:4\n\n[Typedef]\nid: part_of\nname: part of\n";
    let out = |name: &str| folder.path().join(name);
    let table = |name: &str, text: &str| {
        base::whole::write_whole(&out(&format!("{name}.obo")), text.as_bytes()).unwrap();
        let path = format!("sources.obo.path={:?}", out(&format!("{name}.obo")));
        Engraft::plain(&["run", "triples"], &out(name)).set(&path).ok();
    };
    table("old", old);
    let diff = |name: &str, text: &str| -> Value {
        table(name, text);
        let diff = Engraft::plain(&["diff", "--json"], folder.path());
        let changed = diff.arg(out("old/triples")).arg(out(name).join("triples")).output();
        assert_eq!(changed.code(), Some(if name == "same" { 0 } else { 3 }), "{}", changed.text());
        serde_json::from_str(changed.text().lines().next().unwrap()).unwrap()
    };
    let one = serde_json::json!({"added": 1, "removed": 1});
    assert_eq!(diff("same", old)["texts"], serde_json::json!({}));
    let told = diff("synonym", &old.replace("illness", "malady"));
    assert_eq!(told["texts"], serde_json::json!({"synonym": one}));
    let told = diff("definition", &old.replace("What ails", "What hurts"));
    assert_eq!(told["texts"], serde_json::json!({"definition": one}));
    let told = diff("relation", &old.replace("name: part of", "name: is part of"));
    assert_eq!(told["relations"]["reworded"], serde_json::json!(["part_of"]));
    let told = diff("xref", &old.replace("name: flu", "name: flu\nxref: MESH:D007251"));
    assert_eq!(told["same_as"], serde_json::json!({"added": 1, "removed": 0}), "{told}");
}

#[test]
fn diff_finds_a_term_that_a_release_gave_up_under_what_took_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let term = |id: &str, name: &str, more: &str| format!("\n[Term]\nid: DOID:{id}\nname: {name}\n{more}\n");
    let head = "format-version: 1.2\nontology: doid\n\n[Term]\nid: DOID:4\nname: disease\n";
    let below = "is_a: DOID:4";
    let old = [("1", "grippe"), ("2", "influenza"), ("3", "catarrh"), ("5", "ague"), ("6", "gout")];
    let old: String = old.iter().map(|(id, name)| term(id, name, below)).collect();
    // One is merged into another, one has a new id, one leads on to it, one has two that may have taken its place, one is as it was.
    let gone = |by: &str| format!("is_obsolete: true\n{by}");
    let new = [
        term("1", "obsolete grippe", &gone("replaced_by: DOID:2")),
        term("2", "flu", below),
        term("3", "obsolete catarrh", &gone("replaced_by: DOID:33")),
        term("33", "obsolete rhinitis", &gone("replaced_by: DOID:34")),
        term("34", "common cold", &format!("alt_id: DOID:35\n{below}")),
        term("5", "obsolete ague", &gone("replaced_by: DOID:2\nreplaced_by: DOID:34")),
        term("6", "gout", below),
    ];
    let out = |name: &str| folder.path().join(name);
    for (name, terms) in [("old", old), ("new", new.concat())] {
        base::whole::write_whole(&out(&format!("{name}.obo")), format!("{head}{terms}").as_bytes()).unwrap();
        let config = format!("version = 5\n[sources.obo]\npath = \"{name}.obo\"\n");
        base::whole::write_whole(&out(&format!("{name}.toml")), config.as_bytes()).unwrap();
        let run = Engraft::plain(&["run", "triples"], &out(name));
        run.arg("--config").arg(out(&format!("{name}.toml"))).arg("--data").arg(folder.path()).ok();
    }
    let diff = Engraft::plain(&["diff", "--json"], folder.path());
    let changed = diff.arg(out("old/triples")).arg(out("new/triples")).output();
    assert_eq!(changed.code(), Some(3), "{}", changed.text());
    let told: Value = serde_json::from_str(changed.text().lines().next().unwrap()).unwrap();
    let entities = &told["entities"];
    let count = |key: &str| entities[key].as_u64().unwrap();
    assert_eq!(
        ["kept", "by_retired", "merged", "rekeyed", "removed", "added", "renamed"].map(count),
        [3, 2, 1, 1, 1, 0, 1],
        "{entities}"
    );
    let triples = &told["triples"];
    let counts =
        ["old", "new", "kept", "merged", "removed", "added"].map(|key| triples[key].as_u64().unwrap());
    assert_eq!(counts, [5, 3, 3, 1, 1, 0], "{told}");
    let sql = "SELECT key, means FROM retired ORDER BY key";
    let query = Engraft::plain(&["query", sql, "--format", "csv"], &out("new")).ok();
    let rows: Vec<&str> = query.lines().skip(1).collect();
    assert_eq!(rows, ["doid:1,doid:2", "doid:3,doid:34", "doid:33,doid:34", "doid:35,doid:34"]);
}

#[test]
fn the_report_is_one_page_that_needs_nothing_from_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    Engraft::small(&["run", "report"], folder.path()).ok();
    let page = fs::read_to_string(folder.path().join("report/index.html")).unwrap();
    assert!(page.matches("<svg").count() >= 5 && page.contains("may_treat"), "{}", page.len());
    for outside in ["<script", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    let at = |page: &str, id: &str| {
        page.find(&format!("<section id=\"{id}\"")).unwrap_or_else(|| panic!("no {id}"))
    };
    let order = ["funnel", "directions", "shape", "texts", "sources"];
    assert!(order.map(|id| at(&page, id)).is_sorted(), "what matters comes first");
    assert_eq!(page.matches(">What became of every row</text>").count(), 1, "one funnel for all sources");
    let overview = fs::read_to_string(folder.path().join("index.html")).unwrap();
    assert!(["funnel", "directions", "shape", "texts", "pages"].map(|id| at(&overview, id)).is_sorted());
    assert!(!overview.contains("http-equiv=\"refresh\""), "the run has ended");
    for (folder, page) in [(folder.path().to_owned(), &overview), (folder.path().join("report"), &page)] {
        for link in page.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            let (file, id) = link.split_once('#').unwrap_or((link, ""));
            let whole =
                if file.is_empty() { page.clone() } else { fs::read_to_string(folder.join(file)).unwrap() };
            assert!(id.is_empty() || whole.contains(&format!("id=\"{id}\"")), "{link}");
        }
    }
    let certificate = json(folder.path().join("summary/certificate.json"));
    let relations = certificate["relations"].as_array().unwrap();
    let proven = relations.iter().filter(|one| one["verdict"] == "proven").count();
    assert!(proven > 3, "{proven} of {}", relations.len());
    assert!(
        relations.iter().all(|one| one["verdict"] != "suspicious" || one["relation"] == "see_related"),
        "{relations:?}"
    );
}
