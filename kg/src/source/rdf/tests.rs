//! Small graphs as others publish theirs.

use base::share::Share;

use super::*;
use crate::canon::{Canon, Policy, merge};
use crate::source::testing::{self, reopened};

const TURTLE: &str = "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n\
    @prefix owl: <http://www.w3.org/2002/07/owl#> .\n@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n\
    @prefix wd: <http://www.wikidata.org/entity/> .\n@prefix wdt: <http://www.wikidata.org/prop/direct/> .\n\
    @prefix x: <http://example.org/> .\n\n\
    wd:Q38933 rdfs:label \"fever\"@en, \"Fieber\"@de ; skos:altLabel \"pyrexia\"@en-GB ;\n\
    \x20 skos:definition \"a \\\"raised\\\" temperature\"@en ; skos:exactMatch <http://id.nlm.nih.gov/mesh/D005334> ;\n\
    \x20 wdt:P31 wd:Q169872 ; wdt:P780 wd:Q38933 ; wdt:P1 \"a literal\" ; x:note [ rdfs:label \"blank\" ] ;\n\
    \x20 a x:ClinicalSign .\n\
    wd:Q169872 rdfs:label \"symptom\"@en ; skos:prefLabel \"symptom or sign\"@en ; rdfs:subClassOf wd:Q1 , x:nobody .\n\
    wd:Q1 rdfs:label \"thing\" .\n\
    wd:P31 rdfs:label \"instance of\"@en .\n\
    wd:P780 rdfs:label \"symptoms and signs\"@en .\n\
    x:treats a owl:ObjectProperty ; owl:inverseOf x:isTreatedBy ; rdfs:subPropertyOf x:acts .\n\
    x:aspirin rdfs:label \"Aspirin\" ; x:treats wd:Q38933 .\n\
    wd:Q38933 x:isTreatedBy x:aspirin .\n\
    x:old rdfs:label \"Old\" ; owl:deprecated true ; <http://purl.org/dc/terms/isReplacedBy> x:aspirin ; x:treats wd:Q1 .\n";

fn options() -> Options {
    serde_json::from_value(serde_json::json!({"files": ["x"], "prefixes": {"x": "http://example.org/"}}))
        .unwrap()
}

fn parse(name: &str, text: &str, options: &Options) -> Result<(SourceReport, Canon), String> {
    let mut builder = Builder::new();
    let report = read(&[reopened(name, text)], "rdf", options, &mut builder).map_err(|e| e.to_string())?;
    Ok((report, merge(builder, &Policy::standard()).map_err(|e| e.to_string())?))
}

fn triples(canon: &Canon) -> Vec<String> {
    let mut found = testing::triples(canon, |entity| entity.text.clone(), |relation| relation.text.clone());
    found.sort();
    found
}

#[test]
fn statements_between_named_things_become_triples_and_all_are_counted() {
    let (report, canon) = parse("g.ttl", TURTLE, &options()).unwrap();
    let expected =
        ["Aspirin treats fever", "fever instance of symptom or sign", "symptom or sign is a thing"];
    assert_eq!(triples(&canon), expected);
    let graph = canon.graph().unwrap();
    let fever = graph.entities().iter().find(|entity| entity.text == "fever").unwrap();
    assert_eq!((fever.key.as_str(), &fever.same_as[..]), ("mesh:D005334", &["wd:Q38933".to_owned()][..]));
    assert_eq!(fever.types, [SemanticType { code: None, name: "Clinical sign".to_owned() }]);
    let rows = &report.funnel.triples;
    // A symptom of itself is kept here, and dropped by the merging.
    assert_eq!((rows.read, rows.kept), (10, 5));
    for (reason, count) in [(LITERAL, 1), (BLANK, 1), ("no_name", 1), ("obsolete", 1), (OF_RELATION, 1)] {
        assert_eq!(rows.dropped.get(reason), Some(&count), "{reason}: {rows:?}");
    }
    assert_eq!((rows.bytes, rows.lines), (TURTLE.len() as u64, TURTLE.lines().count() as u64));
}

#[test]
fn n_triples_say_the_same_and_names_go_by_predicate_and_language() {
    let line = |s: &str, p: &str, o: &str| format!("<http://e/{s}> <{p}> {o} .\n");
    let label = "http://www.w3.org/2000/01/rdf-schema#label";
    let text = [
        line("a", label, "\"Alpha\"@fr"),
        line("a", label, "\"alpha\""),
        line("a", label, "\"the alpha\"@en-US"),
        line("b", label, "\"beta\""),
        line("a", "http://e/linkedTo", "<http://e/b>"),
    ]
    .concat();
    let (_, canon) = parse("g.nt", &text, &options()).unwrap();
    assert_eq!(triples(&canon), ["the alpha linked to beta"]);
    let (_, canon) =
        parse("g.nt", &text, &Options { languages: vec!["fr".to_owned(), String::new()], ..options() })
            .unwrap();
    assert_eq!(triples(&canon), ["Alpha linked to beta"]);
    let asked = |name: &str| Options { relations: Some([name.to_owned()].into()), ..options() };
    assert_eq!(triples(&parse("g.nt", &text, &asked("http://e/linkedTo")).unwrap().1).len(), 1);
    let found = parse("g.nt", &text, &asked("x:linkedTo")).unwrap_err();
    assert!(found.contains("there is no relation \"x:linkedTo\""), "{found}");
    let unknown = asked("y:linkedTo").check("mine").unwrap_err().to_string();
    assert!(
        unknown.contains("relations is \"y:linkedTo\", expected an IRI, or a name with a prefix"),
        "{unknown}"
    );
}

#[test]
fn what_is_no_rdf_is_refused_with_its_place() {
    for (name, text, found) in [
        ("g.ttl", TURTLE.replace("@prefix x:", "@prefix y:"), "g.ttl: line 10, column"),
        ("g.nt", "<http://e/a> <http://e/b> .\n".to_owned(), "g.nt: line 1, column"),
        ("g.nt", "<a> <http://e/b> <http://e/c> .\n".to_owned(), "g.nt: line 1, column"),
        ("g.xml", TURTLE.to_owned(), "one that ends in .nt or .ttl"),
    ] {
        let error = parse(name, &text, &options()).unwrap_err();
        assert!(error.contains(found), "{found}: {error}");
    }
    // What has no name is left out, and said.
    let unnamed = "<http://e/a> <http://e/r> <http://e/b> .\n<http://e/b> <http://e/r> <http://e/a> .\n";
    let (report, _) = parse("g.nt", unnamed, &options()).unwrap();
    assert_eq!((report.funnel.triples.kept, report.funnel.triples.dropped["no_name"]), (0, 2));
    assert!(report.funnel.left_out()[0].contains("2 of 2 rows of g.nt are of entities without a name"));
}

#[test]
fn predicates_that_are_codes_without_a_name_are_refused_or_told() {
    let nameless = TURTLE.replace("wd:P780 rdfs:label", "wd:P781 rdfs:label").replace("wdt:P31 ", "wdt:P32 ");
    let (report, canon) = parse("g.ttl", &nameless, &options()).unwrap();
    // Of `wdt:P780` merging keeps nothing.
    let error = report.naming.unwrap().settle(&canon).unwrap_err().to_string();
    assert!(error.contains("1 of 5 relations have no text") && error.contains("\"wdt:P32\""), "{error}");
    let allowed = Options { max_untexted: Share::try_from(0.4).unwrap(), ..options() };
    let (report, canon) = parse("g.ttl", &nameless, &allowed).unwrap();
    let told = report.naming.unwrap().settle(&canon).unwrap();
    assert!(told.len() == 1 && told[0].contains("are called by their ids"), "{told:?}");
    let (report, canon) = parse("g.ttl", TURTLE, &options()).unwrap();
    assert!(report.naming.unwrap().settle(&canon).unwrap().is_empty());
    // Merging turns statements round into the inverse that comes first, which has no name here.
    let inverse = TURTLE
        .replace(
            "x:treats a owl:ObjectProperty ; owl:inverseOf x:isTreatedBy",
            "x:treats a owl:ObjectProperty ; owl:inverseOf wdt:P1",
        )
        .replace("wd:Q38933 x:isTreatedBy x:aspirin .", "x:treats rdfs:label \"treats\" .")
        .replace("wdt:P1 \"a literal\" ; ", "");
    let (report, canon) = parse("g.ttl", &inverse, &options()).unwrap();
    let of = triples(&canon);
    let settled = report.naming.unwrap().settle(&canon);
    assert_eq!(settled.is_err(), of.iter().any(|triple| triple.contains("wdt:P1 ")), "{of:?}: {settled:?}");
}

#[test]
fn prefixes_that_no_iri_begins_with_are_told() {
    let told = |prefixes: serde_json::Value| {
        let options = serde_json::json!({"files": ["x"], "prefixes": prefixes});
        parse("g.ttl", TURTLE, &serde_json::from_value(options).unwrap()).unwrap().0.warnings
    };
    assert_eq!(
        told(serde_json::json!({"x": "http://example.org/", "y": "http://example.com/"})),
        [
            "sources.rdf.rdf.prefixes: no IRI of the files begins with the prefix \"y\": fix it or leave it out"
        ]
    );
    assert!(told(serde_json::json!({"x": "http://example.org/"})).is_empty());
}
