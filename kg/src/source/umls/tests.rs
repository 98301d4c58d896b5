//! UMLS as a whole, on small files: what becomes triples, names and terms, what is counted, what is refused.

mod spoken;

use std::collections::BTreeMap;

use base::funnel::Tally;

use super::testing::{files, options, source};
use super::*;
use crate::canon::{Canon, Policy};
use crate::table::row::{SemanticType, Term, TermKind};
use crate::table::{EntityId, Graph};

const CONSO: &str = "\
    C0000001|ENG|P|L1|PF|S1|N|A1||||MSH|MH|D1|Zeta fever|0|N||\n\
    C0000001|ENG|P|L1|PF|S2|Y|A2||||MSH|ET|D1|Ague|0|N||\n\
    C0000001|ENG|S|L1|VO|S3|Y|A3||||MSH|ET|D1|Aaa|0|N||\n\
    C0000002|ENG|P|L2|PF|S4|Y|A4||||RXNORM|IN|1|Old aspirin|0|O||\n\
    C0000002|ENG|S|L2|PF|S5|Y|A5||||RXNORM|IN|1|Aspirin  tablet|0|N||\n\
    C0000002|FRE|P|L2|PF|S6|Y|A6||||RXNORM|IN|1|Aspirine|0|N||\n\
    C0000003|ENG|P|L3|PF|S7|Y|A7||||MSH|MH|D3|Lonely|0|N||\n\
    C0000004|FRE|P|L4|PF|S8|Y|A8||||MSH|MH|D4|Fièvre|0|N||\n";
const REL: &str = "\
    C0000001|A1|AUI|RO|C0000002|A5|AUI|may_treat|R1||MED-RT|MED-RT|||N||\n\
    C0000001|A2|AUI|RO|C0000002|A5|AUI|may_treat|R2||MED-RT|MED-RT|||N||\n\
    C0000001|A2|AUI|RO|C0000002|A5|AUI|may_treat|R3||NDFRT|NDFRT|||N||\n\
    C0000002|A5|AUI|RO|C0000001|A2|AUI|may_be_treated_by|R4||MED-RT|MED-RT|||N||\n\
    C0000001|A1|AUI|PAR|C0000002|A5|AUI||R5||MSH|MSH|||N||\n\
    C0000001|A1|AUI|RO|C0000002|A5|AUI|old|R6||MSH|MSH|||O||\n\
    C0000001|A1|AUI|SY|C0000001|A2|AUI|same_as|R7||MSH|MSH|||N||\n\
    C0000004|A8|AUI|RO|C0000001|A2|AUI|may_treat|R8||MSH|MSH|||N||\n";
const STY: &str = "\
    C0000001|T184|A2.2.2|Sign or Symptom|AT1|256|\n\
    C0000002|T121|A1.4.1.1.1|Pharmacologic Substance|AT2||\n\
    C0000003|T047|B2.2.1.2.1|Disease or Syndrome|AT3||\n";
const DOC: &str = "\
    RELA|may_treat|rela_inverse|may_be_treated_by|\n\
    RELA|may_be_treated_by|rela_inverse|may_treat|\n\
    RELA|may_treat|expanded_form|Treats perhaps|\n";
const SAB: &str = "\
    C1|C2|MSH_1|MSH|n|MSH|1|||1||||0|1|1||||ENG|UTF-8|Y|Y|||\n\
    C1|C2|NDFRT_1|NDFRT|n|NDFRT|1|||1||||3|1|1||||ENG|UTF-8|Y|Y|||\n\
    C1|C2|RXNORM_1|RXNORM|n|RXNORM|1|||1||||0|1|1||||ENG|UTF-8|Y|Y|||\n\
    C1|C2|MSHSPA_1|MSHSPA|n|MSHSPA|1|||1||||3|1|1||||SPA|UTF-8|Y|Y|||\n";
const DEF: &str = "\
    C0000001|A1|AT1||MSH|A  warm state.|N||\n\
    C0000001|A1|AT2||MSHSPA|Estado.|N||\n\
    C0000002|A5|AT3||MSH|Old.|O||\n\
    C0000003|A7|AT4||MSH|Alone.|N||\n";

fn parse(files: &Files<'_>, options: &Options) -> Result<(Funnel, Canon), String> {
    let mut builder = Builder::new();
    let funnel = read(files, options, &mut builder).map_err(|e| e.to_string())?;
    Ok((funnel, crate::canon::merge(builder, &Policy::standard()).map_err(|e| e.to_string())?))
}

fn graph(files: &Files<'_>, options: &Options) -> Graph {
    parse(files, options).unwrap().1.graph().unwrap()
}

fn sentences(graph: &Graph) -> Vec<String> {
    let text = |id: EntityId| &graph.entities()[id.index()].text;
    let sentence = |t: &crate::table::Triple| {
        let relation = &graph.relations()[t.relation.index()].text;
        format!("{}, {relation}, {}", text(t.subject), text(t.object))
    };
    graph.triples().iter().map(sentence).collect()
}

fn dropped(tally: &Tally) -> Vec<String> {
    let some = tally.dropped.iter().filter(|(_, rows)| **rows > 0);
    some.map(|(reason, rows)| format!("{reason} {rows}")).collect()
}

#[test]
fn the_second_concept_is_the_subject() {
    let with_types = Files { sty: Some(source("MRSTY.RRF", STY)), ..files(CONSO, REL) };
    let graph = graph(&with_types, &options());
    let wanted = ["Ague, may be treated by, Aspirin tablet", "Aspirin tablet, may treat, Ague"];
    assert_eq!(sentences(&graph), wanted);
    let keys: Vec<&str> = graph.entities().iter().map(|e| e.key.as_str()).collect();
    assert_eq!(keys, ["umls:C0000001", "umls:C0000002"]);
    let vocabularies: Vec<_> = graph.origins(1).map(|o| o.vocabulary.as_deref().unwrap()).collect();
    assert_eq!(vocabularies, ["MED-RT", "NDFRT"]);
    let symptom = SemanticType { code: Some("T184".to_owned()), name: "Sign or Symptom".to_owned() };
    assert_eq!(graph.entities()[0].types, [symptom]);
}

#[test]
fn inverses_and_words_come_from_mrdoc() {
    let documented = || Files { doc: Some(source("MRDOC.RRF", DOC)), ..files(CONSO, REL) };
    for (named, wanted) in [
        ("may_treat", "Aspirin tablet, treats perhaps, Ague"),
        ("may_be_treated_by", "Ague, may be treated by, Aspirin tablet"),
    ] {
        let asked = Options { relations: Some([named.to_owned()].into()), ..options() };
        assert_eq!(sentences(&graph(&documented(), &asked)), [wanted], "both inverses are one triple");
    }
    let asked =
        Options { rels: Some(["CHD".to_owned()].into()), unlabelled: Unlabelled::UseRel, ..options() };
    assert_eq!(sentences(&graph(&documented(), &asked)), ["Ague, child of, Aspirin tablet"]);
}

#[test]
fn every_row_is_accounted_for() {
    let with_types = Files { sty: Some(source("MRSTY.RRF", STY)), ..files(CONSO, REL) };
    let (funnel, canon) = parse(&with_types, &options()).unwrap();
    assert_eq!((funnel.triples.read, funnel.triples.kept), (8, 5));
    assert_eq!(dropped(&funnel.triples), ["no_name 1", "suppressed 1", "unlabelled 1"]);
    assert_eq!(funnel.triples.dropped.len(), sieve::REASONS.len(), "also the reasons with no row");
    assert_eq!(dropped(&funnel.supporting[0]), ["other_language 2", "suppressed 1"]);
    assert_eq!(dropped(&funnel.supporting[1]), ["in_no_triple 1"]);
    assert_eq!((funnel.subjects, funnel.objects), (2, 3));
    assert_eq!(funnel.relations["may_treat"], 3);
    assert_eq!(funnel.supporting[1].bytes, STY.len() as u64);
    assert_eq!(canon.report().sources[SOURCE].rows, funnel.triples.kept);
    assert_eq!(canon.report().sources[SOURCE].self_loops, 1);
}

#[test]
fn options_let_more_or_less_in() {
    let wide = Options {
        languages: vec!["FRE".to_owned(), "ENG".to_owned()],
        suppressed: Suppressed::Keep,
        unlabelled: Unlabelled::UseRel,
        ..options()
    };
    let expected = [
        "Ague, may be treated by, Aspirine",
        "Ague, may treat, Fièvre",
        "Ague, child of, Aspirine",
        "Aspirine, may treat, Ague",
        "Aspirine, old, Ague",
    ];
    let mut found = sentences(&graph(&files(CONSO, REL), &wide));
    found.sort_unstable();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(found, expected);
    let narrow = Options { relations: Some(["PAR".to_owned()].into()), ..wide };
    let (funnel, canon) = parse(&files(CONSO, REL), &narrow).unwrap();
    assert_eq!(sentences(&canon.graph().unwrap()), ["Aspirine, parent of, Ague"]);
    assert_eq!(funnel.triples.dropped["relation_not_asked_for"], 7, "the first reason that applies");
    assert_eq!(funnel.relations, BTreeMap::from([("PAR".to_owned(), 1)]));
}

#[test]
fn vocabularies_and_licence_levels_decide_over_names_and_triples() {
    let listed = || Files { sab: Some(source("MRSAB.RRF", SAB)), ..files(CONSO, REL) };
    let (funnel, canon) = parse(&listed(), &options()).unwrap();
    let all = canon.graph().unwrap();
    assert_eq!(all.entities()[0].level, Some(0));
    let levels: Vec<_> = all.origins(1).map(|origin| (origin.vocabulary.as_deref(), origin.level)).collect();
    assert_eq!(levels, [(Some("MED-RT"), None), (Some("NDFRT"), Some(3))]);
    assert_eq!(funnel.triples.kept, 5);

    let strict = Options { max_srl: Some(2), ..options() };
    let (funnel, _) = parse(&listed(), &strict).unwrap();
    assert_eq!(
        dropped(&funnel.triples),
        ["above_max_srl 1", "no_level 3", "no_name 1", "suppressed 1", "unlabelled 1"]
    );

    let mut allowed = options();
    allowed.vocabularies =
        Some(Vocabularies { allow: Some(["MSH", "NDFRT"].map(str::to_owned).into()), deny: BTreeSet::new() });
    let (funnel, _) = parse(&listed(), &allowed).unwrap();
    assert_eq!(
        dropped(&funnel.triples),
        ["no_name 2", "suppressed 1", "unlabelled 1", "vocabulary_not_asked_for 3"]
    );
    assert_eq!(
        dropped(&funnel.supporting[1]),
        ["other_language 2", "suppressed 1", "vocabulary_not_asked_for 1"],
        "names come from admitted vocabularies only"
    );
}

#[test]
fn the_rank_of_source_and_type_goes_before_the_flags() {
    let rank = "0010|MSH|ET|N|\n0009|MSH|MH|N|\n0020|MSH|MH|O|\n0001|RXNORM|IN|N|\n";
    let ranked = Files { rank: Some(source("MRRANK.RRF", rank)), ..files(CONSO, REL) };
    assert_eq!(graph(&ranked, &options()).entities()[0].text, "Ague");
    let rank = "0009|MSH|ET|N|\n0010|MSH|MH|N|\n";
    let ranked = Files { rank: Some(source("MRRANK.RRF", rank)), ..files(CONSO, REL) };
    assert_eq!(graph(&ranked, &options()).entities()[0].text, "Zeta fever");
}

#[test]
fn triples_need_a_type_that_is_asked_for_at_both_ends() {
    let typed = || Files { sty: Some(source("MRSTY.RRF", STY)), ..files(CONSO, REL) };
    let asked = |types: &[&str]| Options {
        semantic_types: Some(types.iter().map(|one| (*one).to_owned()).collect()),
        ..options()
    };
    let (both, _) = parse(&typed(), &asked(&["T184", "Pharmacologic Substance"])).unwrap();
    assert_eq!((both.triples.kept, both.triples.dropped["semantic_type_not_asked_for"]), (5, 0));
    let (one, _) = parse(&typed(), &asked(&["T184"])).unwrap();
    assert_eq!(
        (one.triples.kept, one.triples.dropped["semantic_type_not_asked_for"]),
        (1, 4),
        "the loop stays"
    );
}

#[test]
fn retired_concepts_stand_for_those_that_are_the_same() {
    let rel = REL.to_owned()
        + "C0000005|A1|AUI|RO|C0000002|A5|AUI|may_treat|R9||MED-RT|MED-RT|||N||\n\
           C0000006|A1|AUI|RO|C0000002|A5|AUI|may_treat|R9||MED-RT|MED-RT|||N||\n\
           C0000007|A1|AUI|RO|C0000009|A5|AUI|may_treat|R9||MED-RT|MED-RT|||N||\n";
    let cui = "\
        C0000005|2020AA|SY|||C0000001|Y|\n\
        C0000006|2020AA|DEL|||||\n\
        C0000007|2020AA|RB|||C0000001|Y|\n";
    let retired = Files { cui: Some(source("MRCUI.RRF", cui)), ..files(CONSO, &rel) };
    let (funnel, canon) = parse(&retired, &options()).unwrap();
    assert_eq!(funnel.triples.mended["retired_mapped"], 1);
    assert_eq!(
        dropped(&funnel.triples),
        ["no_name 2", "retired_deleted 1", "suppressed 1", "unlabelled 1"],
        "no name at one end is told before retirement at the other"
    );
    assert_eq!(canon.graph().unwrap().entities().len(), 2);
    let tally = funnel.supporting.iter().find(|tally| tally.file == "MRCUI.RRF").unwrap();
    assert_eq!(dropped(tally), ["deleted 1", "not_the_same 1"]);
    let folder = tempfile::tempdir().unwrap();
    canon.write(folder.path()).unwrap();
    let became: Vec<_> = crate::table::read::retired(folder.path()).unwrap().into_iter().collect();
    assert_eq!(became, [("umls:C0000005".to_owned(), "umls:C0000001".to_owned())]);
}

fn terms(files: &Files<'_>, options: &Options) -> Vec<(String, TermKind, Option<String>)> {
    let folder = tempfile::tempdir().unwrap();
    parse(files, options).unwrap().1.write(folder.path()).unwrap();
    let mut terms = Vec::new();
    let note = |term: Term| {
        terms.push((term.text, term.kind, term.origin.language));
        Ok(())
    };
    crate::table::read::terms(folder.path(), note).unwrap();
    terms
}

#[test]
fn synonyms_and_definitions_of_used_concepts_become_terms() {
    let all = || Files {
        def: Some(source("MRDEF.RRF", DEF)),
        sab: Some(source("MRSAB.RRF", SAB)),
        ..files(CONSO, REL)
    };
    let wide = Options { terms: Keep::Keep, definitions: Keep::Keep, ..options() };
    let mut found = terms(&all(), &wide);
    found.sort();
    let english = |text: &str, kind| (text.to_owned(), kind, Some("ENG".to_owned()));
    let wanted = [
        ("A warm state.".to_owned(), TermKind::Definition, None),
        english("Aaa", TermKind::Synonym),
        english("Ague", TermKind::Preferred),
        english("Aspirin tablet", TermKind::Preferred),
        english("Zeta fever", TermKind::Synonym),
    ];
    assert_eq!(found, wanted);
    let (funnel, _) = parse(&all(), &wide).unwrap();
    let tally = funnel.supporting.iter().find(|tally| tally.file == "MRDEF.RRF").unwrap();
    assert_eq!(dropped(tally), ["in_no_triple 1", "other_language 1", "suppressed 1"]);
    assert!(terms(&all(), &options()).is_empty());
}

#[test]
fn the_order_of_rows_and_the_threads_do_not_matter() {
    let reversed = |text: &str| text.lines().rev().map(|line| format!("{line}\n")).collect::<String>();
    let (conso, rel) = (reversed(CONSO), reversed(REL));
    let wide = Options { unlabelled: Unlabelled::UseRel, suppressed: Suppressed::Keep, ..options() };
    let (funnel, canon) = parse(&files(CONSO, REL), &wide).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let (other_funnel, other) = pool.install(|| parse(&files(&conso, &rel), &wide)).unwrap();
    assert_eq!(funnel, other_funnel);
    let (graph, other) = (canon.graph().unwrap(), other.graph().unwrap());
    assert_eq!(graph.entities(), other.entities());
    assert_eq!(graph.relations(), other.relations());
    assert_eq!(graph.triples(), other.triples());
}

#[test]
fn bad_files_are_refused_with_line_column_and_remedy() {
    let cut = &CONSO[..CONSO.len() - 20];
    let bad_cui = REL.replace("C0000004", "C004");
    let cases: [(Files<'_>, &str); 6] = [
        (files(cut, REL), "META/MRCONSO.RRF: line 8: 12 columns, expected 18"),
        (files(CONSO, CONSO), "META/MRREL.RRF: line 1: 18 columns, expected 16"),
        (files(CONSO, "C01|||||||||||||||\n"), "MRREL.RRF: line 1: 15 columns, expected 16"),
        (files(CONSO, &bad_cui), "line 8, column 1 (CUI1): found \"C004\", expected C and seven"),
        (files("", REL), "META/MRCONSO.RRF: found no row"),
        (files(CONSO, ""), "META/MRREL.RRF: found no row"),
    ];
    for (files, expected) in cases {
        let message = parse(&files, &options()).unwrap_err();
        assert!(message.contains(expected), "{message}\nlacks {expected}");
    }
    let sty = STY.replace("C0000003", "X0000003");
    let typed = Files { sty: Some(source("MRSTY.RRF", &sty)), ..files(CONSO, REL) };
    let message = parse(&typed, &options()).unwrap_err();
    assert!(message.contains("META/MRSTY.RRF: line 3, column 1 (CUI): found \"X0"), "{message}");
}

#[test]
fn options_that_cannot_be_followed_are_refused() {
    let named = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    let mut denied = options();
    denied.vocabularies = Some(Vocabularies { allow: None, deny: ["MSHH".to_owned()].into() });
    let cases = [
        (Options { languages: Vec::new(), ..options() }, "expected at least one"),
        (Options { max_srl: Some(0), ..options() }, "max_srl is set, which needs MRSAB.RRF"),
        (Options { semantic_types: named(&["T1"]), ..options() }, "which needs MRSTY.RRF"),
        (
            Options { definitions: Keep::Keep, ..options() },
            "sources.umls: definitions are kept, as they are by default, which needs MRDEF.RRF, and that is not there; bring the file, or say definitions = \"drop\"",
        ),
        (Options { relations: named(&["mai_treat"]), ..options() }, "MRREL has \"may_treat\""),
        (Options { rels: named(&["CHILD"]), ..options() }, "rels names \"CHILD\", which never occurs"),
        (denied, "vocabularies.deny names \"MSHH\", which never occurs; MRCONSO and MRREL has \"MSH\""),
    ];
    for (options, expected) in cases {
        let message = parse(&files(CONSO, REL), &options).unwrap_err();
        assert!(message.contains(expected), "{message}\nlacks {expected}");
    }
    let typed = Files { sty: Some(source("MRSTY.RRF", STY)), ..files(CONSO, REL) };
    let asked = Options { semantic_types: named(&["T184", "T185"]), ..options() };
    let message = parse(&typed, &asked).unwrap_err();
    assert!(message.contains("\"T185\", which never occurs; MRSTY has \"T184\""), "{message}");
}

#[test]
fn vocabularies_that_leave_nothing_are_refused_before_anything_is_read() {
    let asked = |allow: &[&str], deny: &[&str]| {
        let of = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let vocabularies = Some(Vocabularies { allow: Some(of(allow)), deny: of(deny) });
        Options { vocabularies, ..options() }.check("umls").map_err(|e| e.to_string())
    };
    assert_eq!(asked(&["MSH", "RXNORM"], &["MSH"]), Ok(()));
    assert_eq!(
        asked(&["MSH"], &["MSH", "RXNORM"]).unwrap_err(),
        "vocabularies.allow is vocabularies that `deny` leaves out, all of them, which keeps nothing, expected one at least that `deny` does not name"
    );
    assert!(asked(&[], &[]).unwrap_err().starts_with("vocabularies.allow is [], which keeps nothing"));
}
