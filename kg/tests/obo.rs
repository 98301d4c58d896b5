//! An ontology in OBO, as the Gene Ontology and the Disease Ontology write theirs.

use std::collections::BTreeSet;

use kg::canon::{Canon, Policy};
use kg::source::SourceReport;
use kg::source::files::Input;
use kg::source::kgx::Xref;
use kg::source::obo::{self, Obsolete, Options, Scope};
use kg::table::{Builder, Graph, read as table};

const GO: &str = "format-version: 1.2\ndata-version: releases/2026-01-01\ndefault-namespace: gene_ontology\nontology: go\n\n\
    [Term]\nid: GO:0000001\nname: mitochondrion inheritance\nnamespace: biological_process\nalt_id: GO:0000900\n\
    def: \"The \\\"distribution\\\" of mitochondria,\\n as published.\" [GOC:mcc, PMID:10873824] {source=\"x ! y\"}\n\
    synonym: \"mitochondrial inheritance\" EXACT []\nsynonym: \"inheritance\" BROAD [GOC:x]\n\
    is_a: GO:0000002 {is_inferred=\"true\"} ! mitochondrion distribution\n\
    relationship: part_of GO:0000003 ! reproduction\nrelationship: regulates GO:0000002\n\n\
    [Term]\nid: GO:0000002\nname: mitochondrion distribution\nxref: UMLS_CUI:C1155072\nxref: MESH:D008928 \"Mitochondria\"\n\
    is_a: CHEBI:1 ! of another ontology\nrelationship: part_of GO:0000900\n\n\
    [Term]\nid: GO:0000003\nname: reproduction\nis_a: GO:0000004\n\n\
    [Term]\nid: GO:0000004\nname: obsolete growth\ndef: \"OBSOLETE.\" []\nis_obsolete: true\nreplaced_by: GO:0000003\n\n\
    [Typedef]\nid: part_of\nname: part of\nxref: BFO:0000050\ninverse_of: has_part ! has part\nis_transitive: true\n\n\
    [Typedef]\nid: has_part\nname: has part\n\n[Instance]\nid: GO:x\n";

fn read(text: &str, options: &Options) -> Result<(SourceReport, Canon), String> {
    let mut builder = Builder::new();
    let file = Input::new(text.as_bytes(), "data/go.obo");
    let report = obo::read(file, "obo", options, &mut builder).map_err(|e| e.to_string())?;
    Ok((report, kg::canon::merge(builder, &Policy::standard()).map_err(|e| e.to_string())?))
}

fn triples(graph: &Graph) -> Vec<String> {
    let key = |id: kg::table::EntityId| graph.entities()[id.index()].key.as_str();
    let relation = |id: kg::table::RelationId| graph.relations()[id.index()].key.as_str();
    let line =
        |t: &kg::table::Triple| format!("{} {} {}", key(t.subject), relation(t.relation), key(t.object));
    graph.triples().iter().map(line).collect()
}

fn terms(canon: &Canon) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    canon.write(folder.path()).unwrap();
    let mut terms = Vec::new();
    table::terms(folder.path(), |term| {
        terms.push(format!("{} {}", term.kind.name(), term.text));
        Ok(())
    })
    .unwrap();
    terms.sort();
    terms
}

#[test]
fn children_state_what_they_are_and_every_row_is_counted() {
    let (report, canon) = read(GO, &Options::default()).unwrap();
    let graph = canon.graph().unwrap();
    let expected = [
        "go:0000001 part_of go:0000003",
        "go:0000001 isa umls:C1155072",
        "go:0000001 regulates umls:C1155072",
        "umls:C1155072 part_of go:0000001",
    ];
    let mut found = triples(&graph);
    found.iter_mut().for_each(|line| {
        // Which of two inverses stays is the merging's choice.
        if let [subject, "has_part", object] = line.split(' ').collect::<Vec<_>>()[..] {
            *line = format!("{object} part_of {subject}");
        }
    });
    assert_eq!(found.iter().map(String::as_str).collect::<BTreeSet<_>>(), expected.into());
    let rows = &report.funnel.triples;
    assert_eq!((rows.read, rows.kept, rows.bytes), (6, 4, GO.len() as u64));
    assert_eq!(rows.lines, GO.lines().count() as u64);
    let dropped = [("no_node", 1), ("obsolete", 1), ("relation_not_asked_for", 0)];
    assert_eq!(rows.dropped, dropped.into());
    assert_eq!(
        report.funnel.relations,
        [("isa", 1), ("part_of", 2), ("regulates", 1)].map(|(k, n)| (k.to_owned(), n)).into()
    );
    assert_eq!((report.funnel.subjects, report.funnel.objects), (3, 5));
    let [stanzas, texts, xrefs] = report.funnel.supporting.as_slice() else {
        panic!("stanzas, texts, xrefs")
    };
    assert_eq!((stanzas.file.as_str(), stanzas.read, stanzas.kept), ("go.obo: stanzas", 7, 5));
    assert_eq!(stanzas.dropped, [("obsolete", 1), ("other_stanza", 1)].into());
    assert_eq!((texts.read, texts.kept), (8, 5));
    assert_eq!(texts.dropped, [("obsolete", 2), ("scope_not_asked_for", 1)].into());
    assert_eq!((xrefs.read, xrefs.kept, xrefs.dropped["of_several_terms"]), (2, 2, 0));
    assert!(report.naming.unwrap().settle(&canon).unwrap().is_empty());
    let first = graph.entities().iter().find(|entity| entity.key == "go:0000001").unwrap();
    assert_eq!(first.types[0].name, "biological_process");
    let merged = graph.entities().iter().find(|entity| entity.key == "umls:C1155072").unwrap();
    assert_eq!(
        (merged.types[0].name.as_str(), merged.text.as_str()),
        ("gene_ontology", "mitochondrion distribution")
    );
    assert!(merged.same_as.contains(&"go:0000002".to_owned()));
    let origin = graph.origins(0).next().unwrap();
    assert_eq!((origin.source.as_str(), origin.vocabulary.as_deref()), ("obo", Some("go")));
}

#[test]
fn names_synonyms_and_definitions_are_terms() {
    let (_, canon) = read(GO, &Options::default()).unwrap();
    let expected = [
        "definition The \"distribution\" of mitochondria, as published.",
        "preferred mitochondrion distribution",
        "preferred mitochondrion inheritance",
        "preferred reproduction",
        "synonym mitochondrial inheritance",
    ];
    assert_eq!(terms(&canon), expected);
    let all = Options { synonyms: [Scope::Exact, Scope::Broad].into(), ..Options::default() };
    assert!(terms(&read(GO, &all).unwrap().1).contains(&"synonym inheritance".to_owned()));
}

#[test]
fn a_concept_that_several_terms_refer_to_is_none_of_them() {
    let text = "format-version: 1.2\n\n[Term]\nid: DOID:1\nname: Usher syndrome\nxref: MESH:D052245\nxref: UMLS_CUI:C1\n\n\
        [Term]\nid: DOID:2\nname: Usher syndrome type 2\nxref: MESH:D052245\nxref: UMLS_CUI:C2\nis_a: DOID:1\n";
    let (report, canon) = read(text, &Options::default()).unwrap();
    assert_eq!(triples(&canon.graph().unwrap()), ["umls:C2 isa umls:C1"]);
    let xrefs = &report.funnel.supporting[2];
    assert_eq!((xrefs.read, xrefs.kept, xrefs.dropped["of_several_terms"]), (4, 2, 2));
}

#[test]
fn what_is_asked_for_is_kept() {
    let asked = |names: &[&str]| Options {
        relations: Some(names.iter().map(|name| (*name).to_owned()).collect()),
        xref: Xref::Ignore,
        ..Options::default()
    };
    let (report, canon) = read(GO, &asked(&["is_a"])).unwrap();
    assert_eq!(triples(&canon.graph().unwrap()), ["go:0000001 isa go:0000002"]);
    assert_eq!(report.funnel.triples.dropped["relation_not_asked_for"], 3);
    assert_eq!(report.funnel.relations, [("isa".to_owned(), 1)].into());
    let message = read(GO, &asked(&["isa_part"])).unwrap_err();
    assert!(
        message.contains("data/go.obo: there is no relation \"isa_part\", expected one of has_part, is_a"),
        "{message}"
    );
    let keep = Options { obsolete: Obsolete::Keep, ..asked(&["is_a"]) };
    let (_, canon) = read(GO, &keep).unwrap();
    assert_eq!(triples(&canon.graph().unwrap()), ["go:0000001 isa go:0000002", "go:0000003 isa go:0000004"]);
}

#[test]
fn keys_of_other_sources_find_the_term_that_replaces_or_has_them() {
    let mut builder = Builder::new();
    let [old, other] = ["go:0000004", "go:0000900"].map(|key| builder.entity("mine", key, key));
    let relation = builder.relation("mine", "r", "r");
    let source = "mine".to_owned();
    let origin = kg::table::Origin { source, vocabulary: None, weight: None, count: None, level: None };
    let origin = builder.origin(origin);
    builder.triple(old, relation, other, origin).unwrap();
    obo::read(Input::new(GO.as_bytes(), "go.obo"), "obo", &Options::default(), &mut builder).unwrap();
    let graph = kg::canon::merge(builder, &Policy::standard()).unwrap().graph().unwrap();
    assert!(triples(&graph).contains(&"go:0000003 r go:0000001".to_owned()), "{:?}", triples(&graph));
}

#[test]
fn damaged_files_are_refused_with_line_column_and_remedy() {
    let cases = [
        (
            String::new(),
            "data/go.obo: line 1: found no format-version before the first stanza, expected the header",
        ),
        (GO.replace("format-version: 1.2\n", ""), "found no format-version"),
        (
            GO.replace("[Typedef]\nid: part_of", "[Typedef\nid: part_of"),
            "line 38: found \"[Typedef\", expected a stanza's name",
        ),
        (
            GO.replace("name: reproduction", "reproduction"),
            "line 28, column 1 (tag): found \"reproduction\", expected `tag: value`",
        ),
        (GO.replace("id: GO:0000003\n", ""), "line 26: the stanza has no id, expected a line `id: ID`"),
        (
            GO.replace("id: GO:0000003\n", "id: reproduction\n"),
            "line 26: found \"reproduction\", expected an id with its prefix",
        ),
        (
            GO.replace("id: GO:0000003\n", "id: GO:0000002\n"),
            "line 26: go:0000002 stands in line 18, too, expected a term once",
        ),
        (GO.replace("inheritance\" EXACT", "inheritance EXACT"), "line 12, column 10 (synonym): found"),
        (
            GO.replace("\" EXACT []", "\" SAME []"),
            "expected a text in double quotes and EXACT, BROAD, NARROW or RELATED",
        ),
        (
            GO.replace("relationship: regulates GO", "relationship: GO"),
            "line 16, column 15 (relationship): found \"GO:0000002\", expected a relation and an id",
        ),
        (
            GO.replace("is_obsolete: true", "is_obsolete: yes"),
            "column 14 (is_obsolete): found \"yes\", expected true or false",
        ),
        (
            GO.replace("name: reproduction\n", "name: reproduction\nname: growth\n"),
            "line 29, column 7 (name): the stanza has another name, too (\"reproduction\")",
        ),
    ];
    for (text, expected) in cases {
        let message = read(&text, &Options::default()).unwrap_err();
        assert!(message.contains(expected), "{message}\nlacks {expected}");
        assert!(message.contains("; "), "{message} has no remedy");
    }
}

#[test]
fn terms_without_a_name_are_refused_unless_some_are_allowed() {
    let text = GO.replace("name: reproduction\n", "");
    let (report, canon) = read(&text, &Options::default()).unwrap();
    let message = report.naming.unwrap().settle(&canon).unwrap_err().to_string();
    assert!(
        message.starts_with("obo: 1 of 3 entities have no text") && message.contains("\"go:0000003\""),
        "{message}"
    );
}

#[test]
fn a_bom_and_crlf_are_no_part_of_the_text() {
    let text = format!("\u{feff}{}", GO.replace('\n', "\r\n"));
    let triples = |text: &str| triples(&read(text, &Options::default()).unwrap().1.graph().unwrap());
    assert_eq!(triples(&text), triples(GO));
}

/// What [`GO`] says, as OBO Graphs JSON has it: ids are IRIs, the merged id stands there as a class, relations go by numbers.
const GRAPH: &str = r#"{"graphs": [{
  "id": "http://purl.obolibrary.org/obo/go.json",
  "meta": {"version": "http://purl.obolibrary.org/obo/go/2026-01-01/go.json"},
  "nodes": [
    {"id": "http://purl.obolibrary.org/obo/BFO_0000050", "lbl": "part of", "type": "PROPERTY", "propertyType": "OBJECT", "meta": {
      "basicPropertyValues": [{"pred": "http://www.geneontology.org/formats/oboInOwl#shorthand", "val": "part_of"}]}},
    {"id": "http://purl.obolibrary.org/obo/BFO_0000051", "lbl": "has part", "type": "PROPERTY", "propertyType": "OBJECT", "meta": {
      "basicPropertyValues": [{"pred": "http://www.geneontology.org/formats/oboInOwl#shorthand", "val": "has_part"}]}},
    {"id": "http://purl.obolibrary.org/obo/RO_0002211", "lbl": "regulates", "type": "PROPERTY", "propertyType": "OBJECT", "meta": {
      "basicPropertyValues": [{"pred": "http://www.geneontology.org/formats/oboInOwl#shorthand", "val": "regulates"}]}},
    {"id": "http://purl.obolibrary.org/obo/IAO_0000115", "type": "PROPERTY", "propertyType": "ANNOTATION"},
    {"id": "http://purl.obolibrary.org/obo/GO_0000001", "lbl": "mitochondrion inheritance", "type": "CLASS", "meta": {
      "definition": {"val": "The \"distribution\" of mitochondria,\n as published.", "xrefs": ["GOC:mcc"]},
      "synonyms": [{"pred": "hasExactSynonym", "val": "mitochondrial inheritance"}, {"pred": "hasBroadSynonym", "val": "inheritance"}],
      "basicPropertyValues": [{"pred": "http://www.geneontology.org/formats/oboInOwl#hasOBONamespace", "val": "biological_process"},
        {"pred": "http://www.geneontology.org/formats/oboInOwl#hasAlternativeId", "val": "GO:0000900"}]}},
    {"id": "http://purl.obolibrary.org/obo/GO_0000002", "lbl": "mitochondrion distribution", "type": "CLASS", "meta": {
      "xrefs": [{"val": "UMLS_CUI:C1155072"}, {"val": "MESH:D008928"}],
      "basicPropertyValues": [{"pred": "http://www.geneontology.org/formats/oboInOwl#hasOBONamespace", "val": "gene_ontology"}]}},
    {"id": "http://purl.obolibrary.org/obo/GO_0000003", "lbl": "reproduction", "type": "CLASS", "meta": {
      "basicPropertyValues": [{"pred": "http://www.geneontology.org/formats/oboInOwl#hasOBONamespace", "val": "gene_ontology"}]}},
    {"id": "http://purl.obolibrary.org/obo/GO_0000004", "lbl": "obsolete growth", "type": "CLASS", "meta": {"deprecated": true,
      "definition": {"val": "OBSOLETE."}, "basicPropertyValues": [{"pred": "http://purl.obolibrary.org/obo/IAO_0100001", "val": "http://purl.obolibrary.org/obo/GO_0000003"}]}},
    {"id": "http://purl.obolibrary.org/obo/GO_0000900", "type": "CLASS", "meta": {"deprecated": true}}
  ],
  "edges": [
    {"sub": "http://purl.obolibrary.org/obo/GO_0000001", "pred": "is_a", "obj": "http://purl.obolibrary.org/obo/GO_0000002"},
    {"sub": "http://purl.obolibrary.org/obo/GO_0000001", "pred": "http://purl.obolibrary.org/obo/BFO_0000050", "obj": "http://purl.obolibrary.org/obo/GO_0000003"},
    {"sub": "http://purl.obolibrary.org/obo/GO_0000001", "pred": "http://purl.obolibrary.org/obo/RO_0002211", "obj": "http://purl.obolibrary.org/obo/GO_0000002"},
    {"sub": "http://purl.obolibrary.org/obo/GO_0000002", "pred": "is_a", "obj": "http://purl.obolibrary.org/obo/CHEBI_1"},
    {"sub": "http://purl.obolibrary.org/obo/GO_0000002", "pred": "http://purl.obolibrary.org/obo/BFO_0000050", "obj": "http://purl.obolibrary.org/obo/GO_0000900"},
    {"sub": "http://purl.obolibrary.org/obo/GO_0000003", "pred": "is_a", "obj": "http://purl.obolibrary.org/obo/GO_0000004"},
    {"sub": "http://purl.obolibrary.org/obo/BFO_0000050", "pred": "inverseOf", "obj": "http://purl.obolibrary.org/obo/BFO_0000051"},
    {"sub": "http://purl.obolibrary.org/obo/BFO_0000050", "pred": "subPropertyOf", "obj": "http://purl.obolibrary.org/obo/RO_0002131"}
  ]}]}"#;

#[test]
fn a_graph_in_json_is_the_ontology_in_obo() {
    let tables = |text: &str| {
        let (report, canon) = read(text, &Options::default()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        canon.write(folder.path()).unwrap();
        let mut files: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        let bytes: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
        (report, bytes)
    };
    let (obo, expected) = tables(GO);
    for text in [GRAPH.to_owned(), format!("\u{feff}{GRAPH}")] {
        let (graph, found) = tables(&text);
        assert!(found == expected, "the tables are the same to the byte");
        assert_eq!(
            (&graph.funnel.triples.dropped, graph.funnel.triples.kept),
            (&obo.funnel.triples.dropped, 4)
        );
        assert_eq!(graph.funnel.triples.bytes, text.len() as u64);
        assert_eq!((graph.funnel.subjects, graph.funnel.objects), (3, 5));
        let nodes = &graph.funnel.supporting[0];
        assert_eq!((nodes.read, nodes.kept), (9, 6));
        let dropped = [("another_id", 1), ("obsolete", 1), ("other_stanza", 1)];
        assert_eq!(nodes.dropped, dropped.into());
    }
}

#[test]
fn a_reference_that_is_only_related_is_no_identity() {
    let related = "xref: UMLS_CUI:C1155072 {source=\"MONDO:relatedTo\"}";
    for (text, keys) in [
        (GO.replace("xref: UMLS_CUI:C1155072", related), "mesh:D008928"),
        (GRAPH.replace("{\"val\": \"UMLS_CUI:C1155072\"}", "{\"val\": \"UMLS_CUI:C1155072\", \"meta\": {\"basicPropertyValues\": [{\"pred\": \"x\", \"val\": \"MONDO:relatedTo\"}]}}"), "mesh:D008928"),
    ] {
        let (report, canon) = read(&text, &Options::default()).unwrap();
        assert!(triples(&canon.graph().unwrap()).iter().any(|line| line.contains(keys)));
        let xrefs = report.funnel.supporting.iter().find(|of| of.file.contains("xrefs")).unwrap();
        assert_eq!((xrefs.kept, xrefs.dropped["related"]), (1, 1));
    }
}

#[test]
fn a_graph_that_is_none_is_refused_with_its_place() {
    for (text, found) in [
        (GRAPH.replacen("\"lbl\": \"part of\"", "\"lbl\": 5", 1), "data/go.obo: line 5, column"),
        (GRAPH[..GRAPH.len() - 9].to_owned(), "robot convert --format json"),
        ("{\"graphs\": []}".to_owned(), "the file has 0 graphs, expected one; put them together first"),
        (
            GRAPH.replace("GO_0000003\", \"lbl", "GO_0000002\", \"lbl"),
            "node 7: go:0000002 stands in node 6, too",
        ),
        (GRAPH.replace("obo/GO_0000003\", \"lbl", "obo/reproduction\", \"lbl"), "go:0000004"),
    ] {
        match read(&text, &Options::default()) {
            Err(error) => assert!(error.contains(found), "{found}: {error}"),
            // An IRI that is none of the Foundry's is a key as it stands.
            Ok((report, _)) => assert_eq!(report.funnel.triples.dropped["no_node"], 2, "{found}"),
        }
    }
}
