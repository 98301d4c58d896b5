//! Invented concepts in the layout of Athena.

use super::*;
use crate::canon::Canon;
use crate::source::files::Location;
use crate::source::ontology::Obsolete;
use crate::source::testing;
use base::share::Share;

const CONCEPTS: &str = "concept_id\tconcept_name\tdomain_id\tvocabulary_id\tconcept_class_id\tstandard_concept\tconcept_code\tvalid_start_date\tvalid_end_date\tinvalid_reason\n\
    1\tFever\tCondition\tSNOMED\tFinding\tS\t386661006\t20020131\t20991231\t\n\
    2\tFinding \"by site\"\tCondition\tSNOMED\tFinding\tC\t118234003\t20020131\t20991231\t\n\
    3\tFever, unspecified\tCondition\tICD10CM\tCode\t\tR50.9\t20020131\t20991231\t\n\
    4\tFever of the old\tCondition\tSNOMED\tFinding\t\t111\t20020131\t20100101\tU\n\
    5\tPyrexia\tCondition\tMeSH\tMain Heading\t\tD005334\t20020131\t20991231\t\n\
    6\tFirst\tDrug\tNDC\tCode\t\t0001\t20020131\t20100101\tD\n\
    7\tSecond\tDrug\tNDC\tCode\t\t0001\t20100101\t20991231\t\n\
    8\tA rash\tCondition\tSNOMED\tFinding\tS\t271807003\t20020131\t20991231\t\n\
    9\tRash one\tCondition\tICD10CM\tCode\t\tR21.1\t20020131\t20991231\t\n\
    10\tRash two\tCondition\tICD10CM\tCode\t\tR21.2\t20020131\t20991231\t\n";

const ROWS: &str = "concept_id_1\tconcept_id_2\trelationship_id\tvalid_start_date\tvalid_end_date\tinvalid_reason\n\
    1\t2\tIs a\t20020131\t20991231\t\n\
    2\t1\tSubsumes\t20020131\t20991231\t\n\
    1\t1\tMaps to\t20020131\t20991231\t\n\
    3\t1\tMaps to\t20020131\t20991231\t\n\
    1\t3\tMapped from\t20020131\t20991231\t\n\
    5\t1\tMaps to\t20020131\t20991231\t\n\
    9\t8\tMaps to\t20020131\t20991231\t\n\
    10\t8\tMaps to\t20020131\t20991231\t\n\
    4\t1\tConcept replaced by\t20020131\t20991231\t\n\
    3\t2\tIs a\t20020131\t20991231\t\n\
    9\t2\tIs a\t20020131\t20991231\t\n\
    10\t2\tIs a\t20020131\t20991231\t\n\
    4\t2\tIs a\t20020131\t20991231\t\n\
    6\t2\tHas site\t20020131\t20991231\t\n\
    7\t2\tHas site\t20020131\t20991231\t\n\
    7\t1\tHas site\t20020131\t20100101\tD\n\
    7\t99\tHas site\t20020131\t20991231\t\n";

const NAMES: &str = "concept_id\tconcept_synonym_name\tlanguage_concept_id\n\
    1\tHigh temperature\t4180186\n1\tFieber\t4182504\n99\tNobody\t4180186\n1\tFever\t4180186\n";

const RELATIONS: &str = "relationship_id\trelationship_name\tis_hierarchical\tdefines_ancestry\treverse_relationship_id\trelationship_concept_id\n\
    Is a\tIs a\t1\t0\tSubsumes\t44818723\nSubsumes\tSubsumes\t1\t1\tIs a\t44818983\n";

fn parse(files: &[(&str, &str)], set: impl FnOnce(&mut Options)) -> Result<(SourceReport, Canon), String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        base::whole::write_whole(&folder.path().join(name), text.as_bytes()).unwrap();
    }
    let mut options = Options {
        path: Location(folder.path().to_str().unwrap().to_owned()),
        vocabularies: None,
        concepts: Concepts::All,
        languages: Options::english(),
        relations: None,
        maps_to: MapsTo::SameAs,
        obsolete: Obsolete::Drop,
        level: None,
        max_untexted: Share::default(),
    };
    set(&mut options);
    testing::read(&options, "omop")
}

const ALL: [(&str, &str); 4] =
    [(CONCEPT, CONCEPTS), (RELATIONSHIPS, ROWS), (SYNONYM, NAMES), (RELATIONSHIP, RELATIONS)];

fn triples(canon: &Canon) -> Vec<String> {
    testing::triples(canon, |entity| entity.key.clone(), |relation| relation.key.clone())
}

#[test]
fn concepts_that_map_to_one_another_are_one_and_every_row_is_counted() {
    let (report, canon) = parse(&ALL, |_| ()).unwrap();
    // MeSH and ICD-10-CM each have one concept for fever; of the two for a rash neither is the rash.
    let expected = [
        "icd10cm:R21.1 isa snomed:118234003",
        "icd10cm:R21.2 isa snomed:118234003",
        "mesh:D005334 isa snomed:118234003",
        "ndc:0001 has_site snomed:118234003",
    ];
    assert_eq!(triples(&canon), expected);
    let graph = canon.graph().unwrap();
    let fever = graph.entities().iter().find(|entity| entity.key == "mesh:D005334").unwrap();
    assert_eq!(fever.same_as, ["icd10cm:R50.9", "snomed:386661006"]);
    let rows = &report.funnel.triples;
    assert_eq!((rows.read, rows.kept), (17, 6));
    for (reason, count) in
        [(IDENTITY, 6), (INVALID, 1), ("obsolete", 2), ("no_node", 1), ("concept_not_asked_for", 1)]
    {
        assert_eq!(rows.dropped[reason], count, "{reason}");
    }
    let concepts = &report.funnel.supporting[0];
    assert_eq!((concepts.read, concepts.kept), (10, 8));
    assert_eq!((concepts.dropped["obsolete"], concepts.dropped[SHARED_CODE]), (1, 1));
    let names = report.funnel.supporting.iter().find(|of| of.file.contains(SYNONYM)).unwrap();
    assert_eq!(
        (names.read, names.kept, names.dropped[OTHER_LANGUAGE], names.dropped[NO_CONCEPT]),
        (4, 2, 1, 1)
    );
}

#[test]
fn vocabularies_standards_and_mappings_are_as_asked_for() {
    let only = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    let (report, canon) = parse(&ALL, |of| of.vocabularies = only(&["SNOMED"])).unwrap();
    assert_eq!(triples(&canon), ["snomed:386661006 isa snomed:118234003"]);
    assert_eq!(report.funnel.supporting[0].dropped[OTHER_VOCABULARY], 6);
    let (report, canon) = parse(&ALL[..2], |of| of.concepts = Concepts::Standard).unwrap();
    assert_eq!(triples(&canon).len(), 2, "without RELATIONSHIP.csv nothing says that they are inverse");
    assert!(report.warnings[0].contains("RELATIONSHIP.csv is not there"), "{:?}", report.warnings);
    assert_eq!(report.funnel.supporting[0].dropped[NOT_STANDARD], 7);
    let (_, canon) = parse(&ALL, |of| of.maps_to = MapsTo::Relation).unwrap();
    assert!(triples(&canon).contains(&"icd10cm:R50.9 maps_to snomed:386661006".to_owned()));
    let found = parse(&ALL, |of| of.vocabularies = only(&["Snomed"])).unwrap_err();
    assert!(
        found.contains("CONCEPT.csv") && found.contains("no concept of the vocabulary \"Snomed\""),
        "{found}"
    );
}

#[test]
fn what_is_no_such_table_is_refused_with_its_place() {
    let wrong = CONCEPTS.replace("\n3\t", "\nthree\t");
    let found = parse(&[(CONCEPT, &wrong), (RELATIONSHIPS, ROWS)], |_| ()).unwrap_err();
    assert!(found.contains("CONCEPT.csv: line 4, column 1 (concept_id): found \"three\""), "{found}");
    // As databases export what is empty; another word is none of OMOP's.
    let empty = |text: &str, word: &str| text.replace("\t20991231\t\n", &format!("\t20991231\t{word}\n"));
    let (report, _) =
        parse(&[(CONCEPT, &empty(CONCEPTS, "\\N")), (RELATIONSHIPS, &empty(ROWS, "NULL"))], |_| ()).unwrap();
    assert_eq!(report.funnel.triples.kept, 6);
    let found = parse(&[(CONCEPT, &empty(CONCEPTS, "x")), (RELATIONSHIPS, ROWS)], |_| ()).unwrap_err();
    assert!(
        found.contains("line 2, column 10 (invalid_reason): found \"x\", expected D, U or nothing"),
        "{found}"
    );
    let twice = format!("{CONCEPTS}1\tAgain\tCondition\tSNOMED\tFinding\tS\t5\t20020131\t20991231\t\n");
    let found = parse(&[(CONCEPT, &twice), (RELATIONSHIPS, ROWS)], |_| ()).unwrap_err();
    assert!(found.contains("line 12, column 1 (concept_id)"), "{found}");
    let found = parse(&[(CONCEPT, "id,name\n"), (RELATIONSHIPS, ROWS)], |_| ()).unwrap_err();
    let expected = "CONCEPT.csv: line 1: found \"id,name\", expected one column named \"concept_id\", between tabs; fetch the file again";
    assert!(found.ends_with(expected), "{found}");
    assert!(parse(&ALL[..1], |_| ()).unwrap_err().contains(RELATIONSHIPS));
}

#[test]
fn concepts_without_a_name_or_named_by_their_code_are_refused() {
    for name in ["", "118234003"] {
        let concepts = CONCEPTS.replace("Finding \"by site\"", name);
        let files = [(CONCEPT, concepts.as_str()), ALL[1], ALL[2], ALL[3]];
        let refused = testing::unnamed(parse(&files, |_| ()).unwrap()).unwrap_err();
        assert!(refused.contains("1 of ") && refused.contains("snomed:118234003"), "{refused}");
    }
    assert_eq!(testing::unnamed(parse(&ALL, |_| ()).unwrap()).unwrap(), [""; 0]);
}
