//! Rows as PrimeKG has them, and lists with a table of nodes.

mod doubts;

use serde_json::{Value, json};

use super::*;
use crate::canon::{Canon, Policy, merge};
use crate::source::testing::{self, reopened};
use crate::table::Entity;
use crate::table::SemanticType;

const PRIME: &str = "relation,display_relation,x_index,x_id,x_type,x_name,x_source,y_index,y_id,y_type,y_name,y_source\n\
    indication,indication,0,DB00945,drug,Aspirin,DrugBank,1,5148,disease,\"fever, high\",MONDO\n\
    protein_protein,ppi,2,9796,gene/protein,PHYHIP,NCBI,3,7918,gene/protein,GPANK1,NCBI\n\
    protein_protein,ppi,3,7918,gene/protein,GPANK1,NCBI,2,9796,gene/protein,PHYHIP,NCBI\n\
    \n\
    indication,indication,0,DB00945,drug,Acetylsalicylic acid,DrugBank,4,1,disease,pain,MONDO\n";

fn prime() -> Value {
    let end = |x: &str| json!({"id": format!("{x}_id"), "name": format!("{x}_name"), "type": format!("{x}_type"), "namespace": format!("{x}_source")});
    json!({"files": ["kg.csv"], "subject": end("x"), "object": end("y"),
           "relation": {"column": "relation", "text": "display_relation"},
           "namespaces": {"NCBI": "ncbigene"}, "inverses": [["protein_protein", "protein_protein"]]})
}

fn parse(edges: &str, nodes: &[&str], options: Value) -> Result<(SourceReport, Canon), String> {
    let options: Options = serde_json::from_value(options).map_err(|e| e.to_string())?;
    options.check("mine").map_err(|e| e.to_string())?;
    let lists = Lists {
        edges: vec![reopened("kg.csv", edges)],
        nodes: nodes.iter().map(|text| reopened("nodes.csv", text)).collect(),
    };
    told(&lists, &options)
}

/// As [`parse`], of files that are called as the options call them.
fn parse_named(edges: &str, nodes: &str, options: Value) -> Result<(SourceReport, Canon), String> {
    let options: Options = serde_json::from_value(options).map_err(|e| e.to_string())?;
    options.check("mine").map_err(|e| e.to_string())?;
    let lists = Lists {
        edges: vec![reopened(&options.files[0].0, edges)],
        nodes: options.nodes.iter().map(|of| reopened(&of.path.0, nodes)).collect(),
    };
    told(&lists, &options)
}

fn told(lists: &Lists<'_>, options: &Options) -> Result<(SourceReport, Canon), String> {
    let mut builder = Builder::new();
    let report = read(lists, "mine", options, &mut builder).map_err(|e| e.to_string())?;
    Ok((report, merge(builder, &Policy::standard()).map_err(|e| e.to_string())?))
}

fn triples(canon: &Canon) -> Vec<String> {
    let end = |entity: &Entity| format!("{}={}", entity.key, entity.text);
    testing::triples(canon, end, |relation| relation.text.clone())
}

#[test]
fn rows_of_primekg_name_and_type_their_ends() {
    let (report, canon) = parse(PRIME, &[], prime()).unwrap();
    let expected = [
        "drugbank:DB00945=Aspirin indication mondo:1=pain",
        "drugbank:DB00945=Aspirin indication mondo:5148=fever, high",
        "ncbigene:7918=GPANK1 ppi ncbigene:9796=PHYHIP",
    ];
    assert_eq!(triples(&canon), expected);
    let graph = canon.graph().unwrap();
    assert_eq!(graph.entities()[0].types, [SemanticType { code: None, name: "drug".to_owned() }]);
    let rows = &report.funnel.triples;
    assert_eq!((rows.read, rows.kept, rows.dropped["blank_lines"]), (5, 4, 1));
    assert_eq!(
        (rows.bytes, &rows.columns_not_used[..]),
        (PRIME.len() as u64, &["x_index".to_owned(), "y_index".to_owned()][..])
    );
    let texts = &report.funnel.supporting[1];
    assert_eq!(texts.kept, 6, "five names, and another one of aspirin");
}

#[test]
fn an_id_that_two_things_share_is_told_and_spellings_are_not() {
    let options = json!({
        "files": ["e.csv"],
        "subject": {"id": "x", "name": "x_name"}, "object": {"id": "y", "name": "y_name"}, "relation": {"column": "r"},
    });
    let rows = "r,x,x_name,y,y_name\ntarget,1,Aspirin,5742,PTGS1\nshows,5742,urethritis,7,Fever\nshows,8,aspirin,7,FEVER\n";
    let (report, _) = parse(rows, &[], options.clone()).unwrap();
    let [told] = report.warnings.as_slice() else { panic!("{:?}", report.warnings) };
    assert!(
        told.contains("1 of 4 ids have another name")
            && told.contains("mine:5742 is \"PTGS1\" and \"urethritis\""),
        "{told}"
    );
    let (report, _) = parse(&rows.replace("urethritis", "ptgs1"), &[], options).unwrap();
    assert!(report.warnings.is_empty(), "{:?}", report.warnings);
}

#[test]
fn what_would_be_read_otherwise_than_it_stands_there_is_refused() {
    let options = json!({
        "files": ["e.jsonl", "more.jsonl"],
        "subject": {"id": "x", "name": "x"}, "object": {"id": "y", "name": "y"}, "relation": {"column": "r"},
    });
    let row = |id: &str| format!("{{\"r\": \"of\", \"x\": {id}, \"y\": 2}}\n");
    let (_, canon) = parse_named(&row("18446744073709551615"), "", options.clone()).unwrap();
    assert_eq!(triples(&canon), ["mine:18446744073709551615=mine:18446744073709551615 of mine:2=mine:2"]);
    let found = parse_named(&(row("1") + &row("18446744073709551616")), "", options).unwrap_err();
    let expected = "e.jsonl: line 2 (x): found a number as large as 1.8446744073709552e+19, expected a smaller one, or its digits in quotes";
    assert!(found.contains(expected), "{found}");
    for (rows, line) in [
        (PRIME.replace("\"fever, high\"", "\"fever\", high"), 2),
        (PRIME.replace("Acetylsalicylic acid", "\"Acetylsalicylic\" acid"), 6),
        (PRIME.replace("PHYHIP,NCBI,3", " \"PHYHIP\",NCBI,3"), 3),
    ] {
        let found = parse(&rows, &[], prime()).unwrap_err();
        let place = format!("kg.csv: line {line}: ");
        assert!(found.starts_with(&place), "{found}");
        assert!(found.contains("quotes are not all around it") || line == 2, "{found}");
    }
    let inch = PRIME.replace("Acetylsalicylic acid", "6\" nail");
    assert_eq!(triples(&parse(&inch, &[], prime()).unwrap().1).len(), 3);
}

#[test]
fn files_that_are_counted_as_one_are_all_named() {
    let options: Options = serde_json::from_value(prime()).unwrap();
    let header = PRIME.lines().next().unwrap().to_owned() + "\n";
    let more = ["b.csv", "c.csv", "d.csv", "e.csv"];
    let edges = std::iter::once(reopened("x/a.csv", PRIME)).chain(more.map(|name| reopened(name, &header)));
    let lists = Lists { edges: edges.collect(), nodes: Vec::new() };
    let (report, _) = told(&lists, &options).unwrap();
    assert_eq!(report.funnel.triples.file, "a.csv, b.csv, c.csv and 2 more");
}

#[test]
fn zeros_that_a_file_leaves_out_are_put_back() {
    let mut options = prime();
    options["namespaces"] = json!({"NCBI": "ncbigene", "MONDO": "mondo:0000000"});
    let (_, canon) = parse(PRIME, &[], options).unwrap();
    let graph = canon.graph().unwrap();
    let keys: Vec<&str> = graph.entities().iter().map(|entity| entity.key.as_str()).collect();
    assert!(keys.contains(&"mondo:0005148") && keys.contains(&"ncbigene:9796"), "{keys:?}");
}

#[test]
fn names_come_from_a_table_of_nodes_and_one_relation_may_be_that_of_all_rows() {
    let nodes = "code;label;kind\nUMLS:C1;Fever;Sign\n7;Cough;Sign\n9;Unused;Sign\n";
    let options = json!({
        "files": ["e.tsv"], "layout": {"separator": "tab", "first_line": "row"},
        "subject": {"id": 1}, "object": {"id": 2}, "relation": {"is": "occurs_with"},
        "namespaces": {"UMLS": "umls"},
        "nodes": [{"path": "n", "layout": {"separator": "semicolon"}, "columns": {"id": "code", "name": "label", "type": "kind"}}],
    });
    let (report, canon) = parse("UMLS:C1\t7\n7\tUMLS:C1\n", &[nodes], options.clone()).unwrap();
    assert_eq!(
        triples(&canon),
        ["mine:7=Cough occurs with umls:C1=Fever", "umls:C1=Fever occurs with mine:7=Cough"]
    );
    let table = report.funnel.supporting.iter().find(|of| of.file == "nodes.csv").unwrap();
    assert_eq!((table.read, table.kept), (3, 3));
    assert!(report.warnings.is_empty(), "{:?}", report.warnings);
    // Nor is an id kept from its like in other sources in silence.
    let mut alone = options.clone();
    alone["namespaces"] = json!({});
    let (report, _) = parse("UMLS:C1\t7\n", &[nodes], alone).unwrap();
    let [told] = &report.warnings[..] else { panic!("{:?}", report.warnings) };
    assert!(
        told.starts_with("mine: 1 of 3 ids have prefixes that `namespaces` does not name (UMLS 1)"),
        "{told}"
    );
    assert!(told.contains("sources.edges.mine.namespaces.UMLS = \"umls\" would join them"), "{told}");
    // A thing that no table names is not called by its id in silence.
    let (report, canon) = parse("UMLS:C1\t8\n", &[nodes], options).unwrap();
    let error = report.naming.unwrap().settle(&canon).unwrap_err().to_string();
    assert!(error.contains("1 of 2 entities have no text"), "{error}");
}

#[test]
fn settings_and_rows_that_cannot_be_are_refused() {
    let with = |key: &str, value: Value| {
        let mut options = prime();
        options[key] = value;
        options
    };
    for (options, found) in [
        (with("relation", json!({})), "relation is neither `column` nor `is`"),
        (with("relation", json!({"column": 1, "is": "x"})), "relation is both `column` and `is`"),
        (with("files", json!([])), "files is empty"),
        (with("subject", json!({"id": "x"})), "a column named \"x\""),
        (with("layout", json!({"first_line": "row"})), "subject.id is \"x_id\", expected its position"),
    ] {
        let error = parse(PRIME, &[], options).unwrap_err();
        assert!(error.contains(found), "{found}: {error}");
    }
    for (text, found) in [
        (PRIME.replacen("DB00945", "", 1), "kg.csv: line 2, column 4 (id): found \"\", expected a value"),
        (PRIME.replacen("protein_protein", " ", 1), "line 3, column 1 (relation)"),
        (PRIME.replacen(",MONDO", ",", 1), "line 2, column 12 (namespace)"),
        (
            PRIME.replacen("ppi,3", "binds,3", 1),
            "line 4, column 2 (relation's words): found \"binds\", expected \"ppi\" as before",
        ),
        (PRIME.replacen("indication,indication,0", "indication,0", 1), "11 columns, expected 12"),
    ] {
        let error = parse(&text, &[], prime()).unwrap_err();
        assert!(error.contains(found), "{found}: {error}");
    }
}

#[test]
fn rows_that_do_not_fit_are_dropped_and_counted_where_the_config_allows_some() {
    // Two rows that do not fit of six: one has another width, one names no relation, and what only they name is no thing.
    let text = format!(
        "{PRIME}indication,indication,0,DB1,drug,Only here,DrugBank\n ,,0,DB2,drug,Nor elsewhere,DrugBank,1,5148,disease,x,MONDO\n"
    );
    let with = |share: f64| {
        let mut options = prime();
        options["max_unfit"] = json!(share);
        options["nodes"] = json!([{"path": "nodes.csv", "columns": {"id": "id", "namespace": "of"}}]);
        options
    };
    let nodes = "id,of\n5148,MONDO\n,MONDO\n1,MONDO\n";
    let (report, canon) = parse(&text, &[nodes], with(0.34)).unwrap();
    assert_eq!(triples(&canon).len(), 3);
    assert_eq!(canon.graph().unwrap().entities().len(), 5);
    let rows = &report.funnel.triples;
    assert_eq!((rows.read, rows.kept, rows.dropped["unfit"]), (7, 4, 2));
    let of_nodes = report.funnel.supporting.last().unwrap();
    assert_eq!((of_nodes.read, of_nodes.kept, of_nodes.dropped["unfit"]), (3, 2, 1));
    let error = parse(&text, &[nodes], with(0.3)).unwrap_err();
    assert!(
        error.contains("nodes.csv: line 3, column 1 (id)")
            && error.contains("1 of 3 rows of the file do not fit"),
        "{error}"
    );
    let error = parse(&text, &["id,of\n1,MONDO\n"], with(0.3)).unwrap_err();
    assert!(
        error.contains("kg.csv: line 7")
            && error.contains("2 of 6 rows of the file do not fit, this first: max_unfit allows fewer"),
        "{error}"
    );
}

#[test]
fn inactive_edges_and_nodes_are_left_out_and_counted_or_refused_while_nobody_says_so() {
    let edges = "a,b,active\n1,2,1\n1,3,1\n2,3,0\n4,1,yes\n";
    let nodes = "id,name,valid\n1,one,true\n2,two,true\n3,three,false\n4,four,false\n4,four,true\n";
    let with = |edges: Value, nodes: Value| {
        json!({"files": ["e.csv"], "layout": edges, "subject": {"id": "a"}, "object": {"id": "b"}, "relation": {"is": "r"},
               "nodes": [{"path": "nodes.csv", "layout": nodes, "columns": {"id": "id", "name": "name"}}]})
    };
    let (report, canon) =
        parse(edges, &[nodes], with(json!({"active": "active"}), json!({"active": "valid"}))).unwrap();
    assert_eq!(triples(&canon), ["mine:1=one r mine:2=two", "mine:4=four r mine:1=one"]);
    let rows = &report.funnel.triples;
    assert_eq!((rows.read, rows.kept, rows.dropped["inactive"], rows.dropped["obsolete"]), (4, 2, 1, 1));
    let table = report.funnel.supporting.last().unwrap();
    assert_eq!((table.read, table.kept, table.dropped["inactive"]), (5, 3, 2));
    assert!(table.columns_not_used.is_empty() && rows.columns_not_used.is_empty());
    let (report, _) = parse(edges, &[nodes], with(json!({"inactive": "keep"}), json!({}))).unwrap();
    assert_eq!(report.funnel.triples.kept, 4);
    for (options, found) in [
        (
            with(json!({}), json!({})),
            "kg.csv: line 4, column 3 (active): found \"0\", expected 1: nothing says",
        ),
        (
            with(json!({"active": "active"}), json!({"inactive": "drop"})),
            "expected a column named \"active\"",
        ),
        (with(json!({"active": "valid"}), json!({})), "a column named \"valid\""),
        (
            with(json!({"active": "active"}), json!({"first_line": "row", "active": "x"})),
            "nodes.0.layout.active is \"x\", expected its position",
        ),
    ] {
        let error = parse(edges, &[nodes], options).unwrap_err();
        assert!(error.contains(found), "{found}: {error}");
    }
}

/// Edges and nodes as records.
const EDGES: &str = "\u{feff}{\"s\": 5148, \"p\": \"treated_by\", \"o\": \"DB:1\", \"since\": 2001}\n\
    \r\n\
    {\"s\": \"7\", \"p\": \"treated_by\", \"o\": \"DB:1\", \"active\": true}\n\
    {\"s\": \"8\", \"p\": \"treated_by\", \"o\": \"DB:1\"}\n";
const NODES: &str = "{\"id\": 5148, \"names\": [\"fever\", \"pyrexia, high\"], \"kinds\": [\"Sign\", \"Disease\"]}\n\
    {\"id\": \"7\", \"names\": \"dry\\tcough\", \"kinds\": null}\n\
    {\"id\": \"8\", \"names\": \"old name\", \"active\": false}\n\
    {\"id\": \"DB:1\", \"names\": \"Aspirin\"}\n";

fn records() -> Value {
    json!({"files": ["e.jsonl"], "subject": {"id": "s"}, "object": {"id": "o"}, "relation": {"column": "p"},
           "namespaces": {"DB": "drugbank"},
           "nodes": [{"path": "n.jsonl", "layout": {"inactive": "drop"}, "columns": {"id": "id", "name": "names", "type": "kinds"}}]})
}

fn with(pointer: &str, value: Value) -> Value {
    let mut options = records();
    *options.pointer_mut(pointer).unwrap() = value;
    options
}

#[test]
fn records_of_json_are_rows() {
    let (report, canon) = parse_named(EDGES, NODES, records()).unwrap();
    let expected =
        ["mine:5148=fever treated by drugbank:1=Aspirin", "mine:7=dry cough treated by drugbank:1=Aspirin"];
    assert_eq!(triples(&canon), expected);
    let graph = canon.graph().unwrap();
    let fever = graph.entities().iter().find(|entity| entity.text == "fever").unwrap();
    let kinds: Vec<&str> = fever.types.iter().map(|kind| kind.name.as_str()).collect();
    assert_eq!(kinds, ["Disease", "Sign"]);
    let rows = &report.funnel.triples;
    assert_eq!((rows.read, rows.kept, rows.lines, rows.bytes), (4, 2, 4, EDGES.len() as u64));
    assert_eq!((rows.dropped["blank_lines"], rows.dropped["obsolete"]), (1, 1), "{:?}", rows.dropped);
    assert_eq!(rows.columns_not_used, ["since"]);
    let nodes = report.funnel.supporting.iter().find(|of| of.file == "n.jsonl").unwrap();
    assert_eq!((nodes.read, nodes.kept, nodes.dropped["inactive"]), (4, 3, 1));
    // The same as one document.
    let list = |lines: &str| -> Vec<Value> {
        let lines = lines.trim_start_matches('\u{feff}').lines().filter(|line| !line.trim().is_empty());
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let whole = json!({"nodes": list(NODES), "edges": list(EDGES)}).to_string();
    let mut options = with("/files/0", json!("g.json"));
    options["nodes"][0]["path"] = json!("g.json");
    let (_, other) = parse_named(&whole, &whole, options).unwrap();
    assert_eq!(triples(&other), triples(&canon));
}

#[test]
fn records_and_settings_of_json_that_cannot_be_are_refused() {
    for (edges, found) in [
        (EDGES.replace("\"7\"", "[\"7\", \"8\"]"), "e.jsonl: line 3 (id): found"),
        (EDGES.replace("\"s\": \"8\", ", ""), "e.jsonl: line 4 (id): found \"\""),
        (EDGES.replace("\"s\": \"8\"", "\"s\": {}"), "e.jsonl: line 4 (s): found an object"),
        (EDGES.replace("\"s\": \"8\"", "\"s\": \"7\", \"s\": \"8\""), "the key \"s\" stands there twice"),
        (EDGES.replace("{\"s\": \"8\"", "[{\"s\": \"8\""), "e.jsonl: line 4"),
        (EDGES.replace("\"p\"", "\"q\""), "e.jsonl: line 1 (relation): found \"\""),
        (EDGES.replace("\"active\": true", "\"active\": false"), "line 3"),
        ("3\n".to_owned(), "the record is no object, expected {\"o\": ...}"),
    ] {
        let error = parse_named(&edges, NODES, records()).unwrap_err();
        assert!(error.contains(found), "{found}: {error}");
    }
    // A list of words is none.
    let mut worded = with("/relation", json!({"column": "p", "text": "w"}));
    worded["nodes"][0]["columns"]["name"] = json!("names");
    let words = EDGES.replace("\"since\": 2001", "\"w\": [\"is\", \"a\"]");
    let error = parse_named(&words, NODES, worded).unwrap_err();
    assert!(error.contains("e.jsonl: line 1 (relation's words)"), "{error}");
    let unnamed = NODES.replace("names", "label");
    let error = parse_named(EDGES, &unnamed, records()).unwrap_err();
    assert!(error.contains("n.jsonl: no record has the key \"names\""), "{error}");
    for (options, found) in [
        (with("/subject/id", json!(1)), "subject.id is 1, expected a key"),
        (with("/relation/column", json!(2)), "relation.column is 2, expected a key"),
        (with("/nodes/0/columns/name", json!(2)), "nodes.0.columns.name is 2"),
        (with("/nodes/0/layout", json!({"separator": "tab"})), "nodes.0.layout is `separator`"),
        (with("/nodes/0/layout", json!({"active": 2})), "nodes.0.layout.active is 2"),
    ] {
        let error = parse_named(EDGES, NODES, options).unwrap_err();
        assert!(error.contains(found), "{found}: {error}");
    }
}

#[test]
fn a_key_need_be_in_one_of_several_files_of_records() {
    let mut options = with("/files", json!(["one.jsonl", "two.jsonl"]));
    options["layout"] = json!({"inactive": "drop"});
    options["max_untexted"] = json!(1.0);
    let of = |options: Value, files: [&str; 2]| {
        let options: Options = serde_json::from_value(options).unwrap();
        let edges =
            ["one.jsonl", "two.jsonl"].into_iter().zip(files).map(|(name, text)| reopened(name, text));
        let lists = Lists { edges: edges.collect(), nodes: vec![reopened("n.jsonl", NODES)] };
        told(&lists, &options).map(|(report, _)| report.funnel.triples)
    };
    let one = "{\"s\": \"7\", \"p\": \"like\", \"o\": \"DB:1\"}\n";
    let two = "{\"s\": \"7\", \"p\": \"likes\", \"o\": \"DB:1\", \"active\": false}\n";
    let rows = of(options.clone(), [one, two]).unwrap();
    assert_eq!((rows.kept, rows.dropped["inactive"]), (1, 1));
    let error = of(options, [one, one]).unwrap_err();
    assert!(error.contains("two.jsonl: no record has the key \"active\""), "{error}");
}
