//! Concepts that other sources speak of, by their names and by codes of other vocabularies.

use super::*;
use crate::source::testing;

#[test]
fn names_that_others_want_are_offered_and_mesh_records_are_known() {
    let mut builder = Builder::new();
    let (one, two) = (builder.entity("s", "name:aaa", "aaa"), builder.entity("s", "mesh:D3", "D3"));
    let relation = builder.relation("s", "r", "r");
    let origin = testing::origin(&mut builder);
    builder.triple(one, relation, two, origin).unwrap();
    let typed = Files {
        sty: Some(source("MRSTY.RRF", STY)),
        sab: Some(source("MRSAB.RRF", SAB)),
        ..files(CONSO, REL)
    };
    read(&typed, &options(), &mut builder).unwrap();
    let graph = crate::canon::merge(builder, &Policy::standard()).unwrap().graph().unwrap();
    let keys: Vec<&str> = graph.entities().iter().map(|e| e.key.as_str()).collect();
    assert_eq!(keys, ["umls:C0000001", "umls:C0000002", "umls:C0000003"]);
    // No row of MRREL mentions it, and what UMLS knows of it is known all the same.
    let lonely = &graph.entities()[2];
    assert_eq!((lonely.text.as_str(), lonely.level, lonely.types.len()), ("Lonely", Some(0), 1));
}

/// Names of concepts by codes of other vocabularies.
const CODED: &str = "\
    C0000001|ENG|S|L1|VO|S3|Y|B1||||SNOMEDCT_US|PT|386661006|Zeta fever|9|N||\n\
    C0000001|ENG|S|L1|VO|S3|Y|B2||||HPO|PT|HP:0001945|Zeta fever|0|N||\n\
    C0000001|ENG|S|L1|VO|S3|Y|B3||||ICD10CM|PT|R50.9|Zeta fever|4|O||\n\
    C0000003|ENG|S|L3|VO|S7|Y|B4||||SNOMEDCT_US|SY|386661006|Lonely|9|N||\n\
    C0000003|ENG|S|L3|VO|S7|Y|B5||||OMIM|PT|607785|Lonely|0|N||\n\
    C0000004|ENG|S|L4|VO|S7|Y|B6||||OMIM|PT|1|Fever|0|N||\n\
    C0000002|ENG|S|L2|VO|S5|Y|B7||||OMIM|PT|1|Aspirin|0|N||\n\
    C0000002|ENG|S|L2|VO|S5|Y|B8||||SNOMEDCT_US|PT|111|Aspirin|0|N||\n\
    C0000002|ENG|S|L2|VO|S5|Y|B9||||SNOMEDCT_US|PT|222|Aspirin|0|N||\n";

#[test]
fn codes_of_other_vocabularies_lead_to_their_concept_and_stay_known() {
    let conso = format!("{CONSO}{CODED}");
    let mut builder = Builder::new();
    let relation = builder.relation("s", "r", "r");
    let origin = testing::origin(&mut builder);
    let keys = [
        "snomed:386661006",
        "hp:0001945",
        "icd10cm:R50.9",
        "rxnorm:1",
        "doid:4",
        "omim:1",
        "go:1",
        "snomed:111",
    ];
    let all = keys.map(|key| builder.entity("s", key, key));
    for pair in all.windows(2) {
        builder.triple(pair[0], relation, pair[1], origin).unwrap();
    }
    // What leads to a code leads on to its concept.
    builder.nameless("s", "omim:607785", "omim:607785");
    builder.alias("doid:4", "omim:607785");
    // UMLS knows better than who refers to it.
    builder.alias("hp:0001945", "umls:C0000002");
    builder.alias("rxnorm:1", "umls:C0000001");
    builder.alias("rxnorm:1", "umls:C0000003");
    let sab = SAB.to_owned()
        + &["SNOMEDCT_US", "HPO", "OMIM", "ICD10CM"]
            .map(|sab| format!("C1|C2|{sab}_1|{sab}|n|{sab}|1|||1||||0|1|1||||ENG|UTF-8|Y|Y|||\n"))
            .concat();
    let files = Files { sab: Some(source("MRSAB.RRF", &sab)), ..files(&conso, REL) };
    let funnel = read(&files, &options(), &mut builder).unwrap();
    let codes = funnel.supporting.iter().find(|tally| tally.file == "codes in MRCONSO.RRF").unwrap();
    assert_eq!((codes.read, codes.kept), (6, 4));
    assert_eq!((codes.dropped["of_several_concepts"], codes.dropped["of_several_codes"]), (1, 1));
    let graph = crate::canon::merge(builder, &Policy::standard()).unwrap().graph().unwrap();
    let found: Vec<String> = graph
        .entities()
        .iter()
        .map(|entity| format!("{} {}", entity.key, entity.same_as.join(" ")).trim().to_owned())
        .collect();
    // A suppressed row says nothing, a code of two concepts is neither, nor is one of two codes of a concept, and of MeSH's records nobody speaks.
    let expected = [
        "go:1",
        "icd10cm:R50.9",
        "omim:1",
        "snomed:111",
        "umls:C0000001 hp:0001945 snomed:386661006",
        "umls:C0000002 rxnorm:1",
        "umls:C0000003 doid:4 omim:607785",
        "umls:C0000004",
    ];
    assert_eq!(found, expected);
}
