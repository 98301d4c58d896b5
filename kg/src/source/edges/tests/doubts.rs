//! What is told though nothing failed.

use serde_json::{Value, json};

use super::parse;

#[test]
fn namespaces_that_nothing_has_are_told() {
    let by_column = json!({
        "files": ["kg.csv"],
        "subject": {"id": "x", "name": "x", "namespace": "of"},
        "object": {"id": "y", "name": "y"},
        "relation": {"column": "r"},
        "namespaces": {"MONDO": "mondo", "MESH": "mesh", "NOPE": "nope"},
    });
    let (report, _) = parse("x,of,r,y\n1,MONDO,treats,MESH:D1\n", &[], by_column).unwrap();
    assert_eq!(
        report.warnings,
        ["sources.edges.mine.namespaces: no id has the namespace or prefix \"NOPE\": fix it or leave it out"]
    );
}

#[test]
fn a_first_line_that_is_taken_for_names_without_a_word_is_told() {
    let with = |layout: Value| {
        json!({
            "files": ["kg.csv"],
            "layout": layout,
            "subject": {"id": 1, "name": 1},
            "object": {"id": 3, "name": 3},
            "relation": {"column": 2},
        })
    };
    let edges = "aspirin,treats,fever\nfever,shows,heat\n";
    let (report, canon) = parse(edges, &[], with(json!({}))).unwrap();
    let [told] = report.warnings.as_slice() else { panic!("{:?}", report.warnings) };
    assert!(
        told.starts_with("mine: line 1 of kg.csv is \"aspirin treats fever\" and was taken for"),
        "{told}"
    );
    assert_eq!(canon.report().triples, 1);
    for (first_line, triples) in [("names", 1), ("row", 2)] {
        let (report, canon) = parse(edges, &[], with(json!({"first_line": first_line}))).unwrap();
        assert!(report.warnings.is_empty(), "{:?}", report.warnings);
        assert_eq!(canon.report().triples, triples);
    }
}
