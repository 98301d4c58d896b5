//! The readers of terminologies and of graphs with names, each with small files that it reads.

use std::path::PathBuf;

use kg::source::files::Reopened;
use kg::source::neo4j::{Group, Table};
use kg::source::{SourceReport, edges, icd10cm, neo4j, obo, omop, rdf, rxnorm, snomed};
use kg::table::Builder;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::fuzz::targets::{Asked, file, seed, settle_rows};

/// The options of a source that leave everything but `path` out.
fn options<O: DeserializeOwned>() -> O {
    serde_json::from_value(json!({"path": "x"})).unwrap()
}

fn reopened<'f>(files: &'f [Vec<u8>], place: usize, name: &str) -> Reopened<'f> {
    Reopened { label: PathBuf::from(name), open: Box::new(move || Ok(Box::new(Asked::new(&files[place])))) }
}

/// Files are read twice where that is needed.
fn settle(report: &SourceReport, files: &[Vec<u8>], builder: Builder) -> Result<(), String> {
    let bytes: usize = files.iter().map(Vec::len).sum();
    settle_rows(&report.funnel, 2 * bytes, builder)
}

pub(crate) fn graphs_seeds() -> Vec<Vec<Vec<u8>>> {
    let iri = "http://purl.obolibrary.org/obo/";
    let property = "http://www.geneontology.org/formats/oboInOwl#";
    let graph = json!({"graphs": [{
        "id": format!("{iri}go.json"),
        "nodes": [
            {"id": format!("{iri}BFO_0000050"), "lbl": "part of", "type": "PROPERTY", "propertyType": "OBJECT",
             "meta": {"basicPropertyValues": [{"pred": format!("{property}shorthand"), "val": "part_of"}]}},
            {"id": format!("{iri}GO_1"), "lbl": "one", "type": "CLASS", "meta": {
                "definition": {"val": "A \"one\"."}, "synonyms": [{"pred": "hasExactSynonym", "val": "un"}],
                "xrefs": [{"val": "MESH:D000001"}, {"val": "MIM:1"}],
                "basicPropertyValues": [{"pred": format!("{property}hasAlternativeId"), "val": "GO:9"}]}},
            {"id": format!("{iri}GO_2"), "lbl": "two", "type": "CLASS"},
            {"id": format!("{iri}GO_3"), "lbl": "three", "type": "CLASS", "meta": {"deprecated": true}},
            {"id": format!("{iri}GO_9"), "type": "CLASS", "meta": {"deprecated": true}},
        ],
        "edges": [
            {"sub": format!("{iri}GO_1"), "pred": "is_a", "obj": format!("{iri}GO_2")},
            {"sub": format!("{iri}GO_2"), "pred": format!("{iri}BFO_0000050"), "obj": format!("{iri}GO_9")},
            {"sub": format!("{iri}GO_3"), "pred": "is_a", "obj": format!("{iri}GO_1")},
        ],
    }]});
    vec![seed(&[&graph.to_string()]), seed(&[&format!("{graph:#}")])]
}

pub(crate) fn graphs(files: &[Vec<u8>]) -> Result<(), String> {
    let mut builder = Builder::new();
    let report = obo::read(file(files, 0, "go.json"), "obo", &options(), &mut builder);
    settle(&report.map_err(|e| e.to_string())?, files, builder)
}

pub(crate) fn snomed_seeds() -> Vec<Vec<Vec<u8>>> {
    vec![seed(&[
        "id\teffectiveTime\tactive\tmoduleId\tdefinitionStatusId\n386661006\t20020131\t1\t1\t1\n404684003\t20020131\t1\t1\t1\n\
         50177009\t20020131\t1\t1\t1\n50177009\t20100131\t0\t1\t1\n116680003\t20020131\t1\t1\t1\n",
        "id\teffectiveTime\tactive\tmoduleId\tconceptId\tlanguageCode\ttypeId\tterm\tcaseSignificanceId\n\
         1\t20020131\t1\t1\t386661006\ten\t900000000000003001\tFever (finding)\t1\n2\t20020131\t1\t1\t386661006\ten\t900000000000013009\tPyrexia\t1\n\
         3\t20020131\t1\t1\t404684003\ten\t900000000000003001\tFinding (finding)\t1\n4\t20020131\t1\t1\t50177009\tda\t900000000000013009\tHed\t1\n",
        "id\teffectiveTime\tactive\tmoduleId\tsourceId\tdestinationId\trelationshipGroup\ttypeId\tcharacteristicTypeId\tmodifierId\n\
         1\t20020131\t1\t1\t386661006\t404684003\t0\t116680003\t900000000000011006\t1\n2\t20020131\t1\t1\t50177009\t404684003\t0\t116680003\t900000000000011006\t1\n\
         3\t20020131\t0\t1\t386661006\t50177009\t0\t116680003\t900000000000011006\t1\n",
        "id\teffectiveTime\tactive\tmoduleId\trefsetId\treferencedComponentId\ttargetComponentId\n\
         a\t20020131\t1\t1\t900000000000527005\t50177009\t386661006\n",
    ])]
}

pub(crate) fn snomed(files: &[Vec<u8>]) -> Result<(), String> {
    let mut builder = Builder::new();
    let release = snomed::Release {
        concepts: vec![reopened(files, 0, "concepts.txt")],
        descriptions: vec![reopened(files, 1, "descriptions.txt")],
        definitions: Vec::new(),
        relationships: vec![reopened(files, 2, "relationships.txt")],
        associations: vec![reopened(files, 3, "associations.txt")],
    };
    let report = snomed::read(&release, "snomed", &options(), &mut builder);
    settle(&report.map_err(|e| e.to_string())?, files, builder)
}

pub(crate) fn omop_seeds() -> Vec<Vec<Vec<u8>>> {
    vec![seed(&[
        "concept_id\tconcept_name\tdomain_id\tvocabulary_id\tconcept_class_id\tstandard_concept\tconcept_code\tinvalid_reason\n\
         1\tFever\tCondition\tSNOMED\tF\tS\t386661006\t\n2\tFinding\tCondition\tSNOMED\tF\tC\t118234003\t\n\
         3\tFever, unspecified\tCondition\tICD10CM\tC\t\tR50.9\t\n4\tOld\tCondition\tSNOMED\tF\t\t386661006\tU\n",
        "concept_id_1\tconcept_id_2\trelationship_id\tinvalid_reason\n1\t2\tIs a\t\n2\t1\tSubsumes\t\n3\t1\tMaps to\t\n3\t2\tIs a\t\n4\t1\tIs a\tD\n",
        "concept_id\tconcept_synonym_name\tlanguage_concept_id\n1\tPyrexia\t4180186\n1\tFieber\t1\n9\tNo\t4180186\n",
        "relationship_id\treverse_relationship_id\nIs a\tSubsumes\nSubsumes\tIs a\n",
    ])]
}

pub(crate) fn omop(files: &[Vec<u8>]) -> Result<(), String> {
    let mut builder = Builder::new();
    let tables = omop::Tables {
        concepts: reopened(files, 0, "CONCEPT.csv"),
        relationships: reopened(files, 1, "CONCEPT_RELATIONSHIP.csv"),
        synonyms: Some(reopened(files, 2, "CONCEPT_SYNONYM.csv")),
        relations: Some(reopened(files, 3, "RELATIONSHIP.csv")),
    };
    let report = omop::read(&tables, "omop", &options(), &mut builder);
    settle(&report.map_err(|e| e.to_string())?, files, builder)
}

pub(crate) fn rxnorm_seeds() -> Vec<Vec<Vec<u8>>> {
    vec![seed(&[
        "161|ENG||||||1|1|161||RXNORM|IN|161|Acetaminophen||N|4096|\n161|ENG||||||1|1|161||RXNORM|SY|161|Paracetamol||N|4096|\n\
         7|ENG||||||1|1|7||RXNORM|BN|7|Tylenol||N|4096|\n8|ENG||||||1|1|8||RXNORM|BN|8|Gone||O|4096|\n9|ENG||||||1|1|9||VANDF|BN|9|Other||N|4096|\n",
        "161||CUI|RO|7||CUI|tradename_of|1||RXNORM|RXNORM|||N|4096|\n7||CUI|RO|161||CUI|has_tradename|1||RXNORM|RXNORM|||N|4096|\n\
         161||CUI|RO|8||CUI||1||RXNORM|RXNORM|||N|4096|\n161|1|AUI|SY|7|2|AUI||1||RXNORM|RXNORM|||N|4096|\n",
        "RELA|tradename_of|rela_inverse|has_tradename|\nRELA|has_tradename|rela_inverse|tradename_of|\n",
        "161|T109|A1.4|Organic Chemical|||\n5|T109|A1.4|Organic Chemical|||\n",
    ])]
}

pub(crate) fn rxnorm(files: &[Vec<u8>]) -> Result<(), String> {
    let mut builder = Builder::new();
    let release = rxnorm::Release {
        conso: reopened(files, 0, "RXNCONSO.RRF"),
        rel: reopened(files, 1, "RXNREL.RRF"),
        doc: Some(reopened(files, 2, "RXNDOC.RRF")),
        sty: Some(reopened(files, 3, "RXNSTY.RRF")),
    };
    let report = rxnorm::read(&release, "rxnorm", &options(), &mut builder);
    settle(&report.map_err(|e| e.to_string())?, files, builder)
}

pub(crate) fn icd10cm_seeds() -> Vec<Vec<Vec<u8>>> {
    vec![seed(&[
        "<?xml version=\"1.0\"?>\n<ICD10CM.tabular><version>2026</version>\n<chapter><name>1</name><desc>Infections (A00-B99)</desc>\n\
        <section id=\"A00-A09\"><desc>Of the gut (A00-A09)</desc>\n<diag><name>A00</name><desc>Cholera</desc><excludes1><note>x</note></excludes1>\n\
        <diag><name>A00.0</name><desc>A &amp; B</desc><inclusionTerm><note>Classical</note><note>Other</note></inclusionTerm></diag></diag></section>\n\
        <section id=\"A10\"><desc>Alone (A10)</desc><diag><name>A10</name><desc>Alone</desc></diag></section></chapter></ICD10CM.tabular>\n",
    ])]
}

pub(crate) fn icd10cm(files: &[Vec<u8>]) -> Result<(), String> {
    let mut builder = Builder::new();
    let report = icd10cm::read(file(files, 0, "icd10cm_tabular.xml"), "icd10cm", &options(), &mut builder);
    settle(&report.map_err(|e| e.to_string())?, files, builder)
}

pub(crate) fn turtle_seeds() -> Vec<Vec<Vec<u8>>> {
    vec![seed(&[
        "@prefix x: <http://e/> .\n@prefix owl: <http://www.w3.org/2002/07/owl#> .\n@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n\
         x:a rdfs:label \"Alpha\"@en, \"\"\"A\nlong\"\"\" ; a x:Kind ; x:r x:b, [ x:p (1 2.5 true) ] .\nx:b rdfs:label 'Beta' ; rdfs:subClassOf x:a .\n\
         x:r a owl:ObjectProperty ; owl:inverseOf x:s .\nx:c owl:deprecated true ; owl:sameAs x:a ; x:s x:a .\n",
        "<http://e/c> <http://www.w3.org/2000/01/rdf-schema#label> \"C \\u00e9\"@en .\n<http://e/c> <http://e/r> <http://e/a> .\n_:b <http://e/r> \"1\"^^<http://e/int> .\n",
    ])]
}

pub(crate) fn turtle(files: &[Vec<u8>]) -> Result<(), String> {
    let mut builder = Builder::new();
    let options = serde_json::from_value(json!({"files": ["a", "b"]})).unwrap();
    let files_of = [reopened(files, 0, "g.ttl"), reopened(files, 1, "g.nt")];
    let report = rdf::read(&files_of, "rdf", &options, &mut builder);
    settle(&report.map_err(|e| e.to_string())?, files, builder)
}

pub(crate) fn edges_seeds() -> Vec<Vec<Vec<u8>>> {
    vec![seed(&[
        "relation,words,x_id,x_name,x_type,x_source,y_id,y_name,y_type,y_source,on\ntreats,treats well,1,\"A, b\",drug,NCBI,2,Fever,sign,MONDO,1\n\
         like,,2,Fever,sign,MONDO,2,fever,sign,MONDO,0\n\ntreats,,1,B,drug,NCBI,MONDO:3,Cough,sign,MONDO,yes\n",
        "id\tname\tactive\nMONDO:2\tHot\ttrue\n9\tNobody\tfalse\n",
    ])]
}

pub(crate) fn edges(files: &[Vec<u8>]) -> Result<(), String> {
    let mut builder = Builder::new();
    let end = |x: &str| json!({"id": format!("{x}_id"), "name": format!("{x}_name"), "type": format!("{x}_type"), "namespace": format!("{x}_source")});
    let options = serde_json::from_value(json!({
        "files": ["a"], "subject": end("x"), "object": end("y"), "relation": {"column": "relation", "text": "words"},
        "namespaces": {"NCBI": "ncbigene", "MONDO": "mondo"}, "max_untexted": 1.0,
        "layout": {"active": "on"},
        "nodes": [{"path": "b", "layout": {"separator": "tab", "inactive": "drop"}, "columns": {"id": "id", "name": "name"}}],
    }));
    let lists =
        edges::Lists { edges: vec![reopened(files, 0, "e.csv")], nodes: vec![reopened(files, 1, "n.tsv")] };
    let report = edges::read(&lists, "fuzz", &options.unwrap(), &mut builder);
    settle(&report.map_err(|e| e.to_string())?, files, builder)
}

pub(crate) fn edge_records_seeds() -> Vec<Vec<Vec<u8>>> {
    vec![seed(&[
        "{\"from\": \"MONDO:1\", \"p\": \"treats\", \"to\": 7, \"since\": 2001}\n\n\
         {\"from\": 7, \"p\": \"like\", \"to\": \"9\", \"active\": true}\r\n{\"from\": \"8\", \"p\": \"like\", \"to\": \"9\"}\n",
        "{\"id\": \"MONDO:1\", \"name\": [\"Fever\", \"h\\u00f3t\\ttoo\"], \"type\": [\"Sign\"]}\n{\"id\": 7, \"name\": \"B\", \"type\": null}\n\
         {\"id\": \"8\", \"name\": \"Old\", \"active\": false}\n{\"id\": \"9\", \"name\": \"Nine\"}\n",
    ])]
}

pub(crate) fn edge_records(files: &[Vec<u8>]) -> Result<(), String> {
    edges_of_json(files, ["e.jsonl", "n.jsonl"])
}

pub(crate) fn edge_document_seeds() -> Vec<Vec<Vec<u8>>> {
    let document = "{\"nodes\": [{\"id\": \"MONDO:1\", \"name\": [\"Fever\", \"hot\"], \"type\": [\"Sign\"]}, {\"id\": 7, \"name\": \"B\"}, {\"id\": \"9\", \"name\": \"Nine\", \"active\": false}],\n \
        \"edges\": [{\"from\": \"MONDO:1\", \"p\": \"treats\", \"to\": 7}, {\"from\": 7, \"p\": \"like\", \"to\": \"9\", \"since\": 2001}]}\n";
    vec![seed(&[document, document])]
}

pub(crate) fn edge_document(files: &[Vec<u8>]) -> Result<(), String> {
    edges_of_json(files, ["g.json", "h.json"])
}

fn edges_of_json(files: &[Vec<u8>], names: [&str; 2]) -> Result<(), String> {
    let mut builder = Builder::new();
    let options = serde_json::from_value(json!({
        "files": [names[0]], "subject": {"id": "from"}, "object": {"id": "to"}, "relation": {"column": "p"}, "namespaces": {"MONDO": "mondo"},
        "nodes": [{"path": names[1], "layout": {"inactive": "drop"}, "columns": {"id": "id", "name": "name", "type": "type"}}],
    }));
    let lists =
        edges::Lists { edges: vec![reopened(files, 0, names[0])], nodes: vec![reopened(files, 1, names[1])] };
    let report = edges::read(&lists, "fuzz", &options.unwrap(), &mut builder);
    settle(&report.map_err(|e| e.to_string())?, files, builder)
}

pub(crate) fn neo4j_seeds() -> Vec<Vec<Vec<u8>>> {
    vec![
        seed(&[
            "code:ID(D),name:string,aliases:string[],:LABEL\nDOID:4,disease,illness;x,Disease;Thing\n7,\"pain, low\",,Disease\n",
            ":START_ID(D),:END_ID(D),:TYPE\n7,DOID:4,IS_A\n\n7,8,IS_A\n",
        ]),
        seed(&[
            "\"_id\",\"_labels\",\"name\",\"_start\",\"_end\",\"_type\",\"on\"\n\"0\",\":A:B\",\"Fever\",,,,1\n\"1\",\":A\",\"Sign\",,,,0\n\"3\",\":A\",\"Sigh\",,,,1\n,,,\"0\",\"3\",\"IS_A\",1\n",
            ":ID,name\n2,Two\n",
        ]),
    ]
}

pub(crate) fn neo4j(files: &[Vec<u8>]) -> Result<(), String> {
    let mut builder = Builder::new();
    let options = json!({"files": ["a", "b"], "synonyms": ["aliases"], "namespaces": {"DOID": "doid"}, "max_untexted": 1.0});
    let options = serde_json::from_value(options).unwrap();
    let tables = [(0, "a.csv"), (1, "b.csv")].map(|(at, name)| Table::of_file(reopened(files, at, name)));
    let report = neo4j::read(&tables, "fuzz", &options, &mut builder);
    settle(&report.map_err(|e| e.to_string())?, files, builder)
}

pub(crate) fn neo4j_groups_seeds() -> Vec<Vec<Vec<u8>>> {
    vec![seed(&["code:ID,name", "4,disease\n7,\"pain, low\"\n", ":START_ID,:END_ID\n7,4\n4,7\n"])]
}

pub(crate) fn neo4j_groups(files: &[Vec<u8>]) -> Result<(), String> {
    let mut builder = Builder::new();
    let options = serde_json::from_value(json!({"groups": []})).unwrap();
    let group = |labels: &[&str], kind: Option<&str>| Group {
        labels: labels.iter().map(|&label| label.to_owned()).collect(),
        kind: kind.map(str::to_owned),
        ..Group::default()
    };
    let [nodes, edges] = [group(&["Disease"], None), group(&[], Some("IS_A"))];
    let tables = [
        Table::of_group(vec![reopened(files, 0, "a-header.csv"), reopened(files, 1, "a.csv")], &nodes),
        Table::of_group(vec![reopened(files, 2, "b.csv")], &edges),
    ];
    let report = neo4j::read(&tables, "fuzz", &options, &mut builder);
    settle(&report.map_err(|e| e.to_string())?, files, builder)
}
