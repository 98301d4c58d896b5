//! The UMLS Metathesaurus: names (MRCONSO), relations (MRREL) and semantic types (MRSTY) in RRF. Knows no other source.
//!
//! Direction: the relation in a MRREL row is what CUI2 has to CUI1, so CUI2 is the subject and CUI1 the object. The row
//! `CUI1 = fever, RELA = may_treat, CUI2 = aspirin` states `aspirin, may_treat, fever`. The publisher lists both directions; each
//! is a triple of its own here.

mod conso;
mod cui;
mod rel;
mod sty;

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::path::Path;

use serde::{Deserialize, Serialize};

use self::cui::CuiMap;
use super::funnel::{Ends, Funnel};
use super::rrf;
use crate::table::Builder;
use crate::table::builder::DraftEntity;

/// Name of the source in the table's origins.
pub const SOURCE: &str = "umls";

/// The files to read, each with the name that messages call it by.
#[derive(Debug)]
pub struct Files<'f, R> {
    /// MRCONSO.RRF.
    pub conso: (R, &'f Path),
    /// MRREL.RRF.
    pub rel: (R, &'f Path),
    /// MRSTY.RRF; without it entities have no types.
    pub sty: Option<(R, &'f Path)>,
}

/// What to take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Languages of names as in column LAT (`ENG`), the preferred one first; names in others are left out.
    pub languages: Vec<String>,
    /// What to do with rows that the publisher suppresses (column SUPPRESS is O, E or Y).
    pub suppressed: Suppressed,
    /// What to do with relations that have no RELA.
    pub unlabelled: Unlabelled,
    /// The relations to keep, as RELA or REL has them; none keeps all.
    pub relations: Option<BTreeSet<String>>,
}

/// What to do with suppressed names and relations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Suppressed {
    /// Leave them out.
    Drop,
    /// Take them; a name that is not suppressed is still preferred.
    Keep,
}

/// What to do with relations of which only the broad kind (REL) is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unlabelled {
    /// Leave them out.
    Drop,
    /// Call them by REL: `PAR`, `RB`, `RO`.
    UseRel,
}

/// Why UMLS cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A line or a field is not as published.
    #[error(transparent)]
    Record(#[from] rrf::Error),
    /// No name can be chosen.
    #[error(
        "no language is asked for; expected at least one, as column LAT of MRCONSO.RRF has it: [\"ENG\"]"
    )]
    NoLanguage,
}

/// The concepts that occur in a kept triple, with their draft entities.
type Used = CuiMap<DraftEntity>;

/// Kept rows by relation.
type Kept = BTreeMap<String, u64>;

/// Reads the files into `builder`: names first, then the relations between named concepts, then types.
///
/// MRREL may have a hundred million rows: none of them allocates, and what grows is one small row per triple.
///
/// # Errors
/// When a file is damaged or of another kind; `builder` then holds a part of it.
pub fn read<R: BufRead>(
    files: Files<'_, R>,
    options: &Options,
    builder: &mut Builder,
) -> Result<Funnel, Error> {
    if options.languages.is_empty() {
        return Err(Error::NoLanguage);
    }
    let (names, conso) = conso::read(files.conso, options)?;
    let mark = builder.mark();
    let relations = rel::read(files.rel, options, &names, builder)?;
    let distinct = builder.settle(mark);
    let mut supporting = vec![conso];
    if let Some(file) = files.sty {
        supporting.push(sty::read(file, &relations.used, builder)?);
    }
    Ok(Funnel {
        source: SOURCE,
        merged: relations.tally.kept - distinct.triples,
        distinct: distinct.triples,
        subjects: Ends { read: relations.subjects, kept: distinct.subjects },
        objects: Ends { read: relations.objects, kept: distinct.objects },
        unused_entities: names.count() - relations.used.count(),
        relations: relations.kept,
        triples: relations.tally,
        supporting,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{EntityId, Graph, SemanticType};

    const CONSO: &str = "\
        C0000001|ENG|P|L1|PF|S1|N|A1||||MSH|MH|1|Zeta fever|0|N||\n\
        C0000001|ENG|P|L1|PF|S2|Y|A2||||MSH|MH|1|Ague|0|N||\n\
        C0000001|ENG|S|L1|VO|S3|Y|A3||||MSH|MH|1|Aaa|0|N||\n\
        C0000002|ENG|P|L2|PF|S4|Y|A4||||RXNORM|IN|1|Old aspirin|0|O||\n\
        C0000002|ENG|S|L2|PF|S5|Y|A5||||RXNORM|IN|1|Aspirin  tablet|0|N||\n\
        C0000002|FRE|P|L2|PF|S6|Y|A6||||RXNORM|IN|1|Aspirine|0|N||\n\
        C0000003|ENG|P|L3|PF|S7|Y|A7||||MSH|MH|1|Lonely|0|N||\n\
        C0000004|FRE|P|L4|PF|S8|Y|A8||||MSH|MH|1|Fièvre|0|N||\n";
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

    fn options() -> Options {
        Options {
            languages: vec!["ENG".to_owned()],
            suppressed: Suppressed::Drop,
            unlabelled: Unlabelled::Drop,
            relations: None,
        }
    }

    fn parse(texts: [&str; 3], options: &Options) -> Result<(Funnel, Graph), String> {
        let mut builder = Builder::new();
        let files = Files {
            conso: (texts[0].as_bytes(), Path::new("META/MRCONSO.RRF")),
            rel: (texts[1].as_bytes(), Path::new("META/MRREL.RRF")),
            sty: Some((texts[2].as_bytes(), Path::new("META/MRSTY.RRF"))),
        };
        let funnel = read(files, options, &mut builder).map_err(|e| e.to_string())?;
        Ok((funnel, builder.finish()))
    }

    fn sentences(graph: &Graph) -> Vec<String> {
        let text = |id: EntityId| &graph.entities()[id.index()].text;
        let sentence = |t: &crate::table::Triple| {
            let relation = &graph.relations()[t.relation.index()].text;
            format!("{}, {relation}, {}", text(t.subject), text(t.object))
        };
        graph.triples().iter().map(sentence).collect()
    }

    #[test]
    fn the_second_concept_is_the_subject() {
        let (_, graph) = parse([CONSO, REL, STY], &options()).unwrap();
        assert_eq!(
            sentences(&graph),
            ["Ague, may be treated by, Aspirin tablet", "Aspirin tablet, may treat, Ague"]
        );
        let keys: Vec<&str> = graph.entities().iter().map(|e| e.key.as_str()).collect();
        assert_eq!(keys, ["umls:C0000001", "umls:C0000002"]);
        let vocabularies: Vec<_> = graph.origins(1).map(|o| o.vocabulary.as_deref().unwrap()).collect();
        assert_eq!(vocabularies, ["MED-RT", "NDFRT"]);
        let symptom = SemanticType { code: Some("T184".to_owned()), name: "Sign or Symptom".to_owned() };
        assert_eq!(graph.entities()[0].types, [symptom]);
    }

    #[test]
    fn every_row_is_accounted_for() {
        let (funnel, _) = parse([CONSO, REL, STY], &options()).unwrap();
        let dropped = |tally: &crate::source::Tally| {
            tally.dropped.iter().map(|(reason, rows)| format!("{reason} {rows}")).collect::<Vec<_>>()
        };
        assert_eq!((funnel.triples.read, funnel.triples.kept, funnel.merged, funnel.distinct), (8, 4, 2, 2));
        assert_eq!(
            dropped(&funnel.triples),
            ["no_name 1", "relation_not_asked_for 0", "self_loop 1", "suppressed 1", "unlabelled 1"]
        );
        assert_eq!(dropped(&funnel.supporting[0]), ["other_language 2", "suppressed 1"]);
        assert_eq!(dropped(&funnel.supporting[1]), ["in_no_triple 1"]);
        assert_eq!((funnel.subjects, funnel.objects), (Ends { read: 2, kept: 2 }, Ends { read: 3, kept: 2 }));
        assert_eq!(funnel.unused_entities, 1);
        assert_eq!(funnel.relations["may_treat"], 3);
        assert_eq!(funnel.supporting[1].bytes, STY.len() as u64);
    }

    #[test]
    fn options_let_more_or_less_in() {
        let wide = Options {
            languages: vec!["FRE".to_owned(), "ENG".to_owned()],
            suppressed: Suppressed::Keep,
            unlabelled: Unlabelled::UseRel,
            relations: None,
        };
        let (_, graph) = parse([CONSO, REL, STY], &wide).unwrap();
        let expected = [
            "Ague, may be treated by, Aspirine",
            "Ague, may treat, Fièvre",
            "Aspirine, parent of, Ague",
            "Aspirine, may treat, Ague",
            "Aspirine, old, Ague",
        ];
        assert_eq!(sentences(&graph), expected);
        let narrow = Options { relations: Some(["PAR", "never"].map(str::to_owned).into()), ..wide };
        let (funnel, graph) = parse([CONSO, REL, STY], &narrow).unwrap();
        assert_eq!(sentences(&graph), ["Aspirine, parent of, Ague"]);
        assert_eq!(funnel.triples.dropped["relation_not_asked_for"], 7, "the first reason that applies");
        assert_eq!(funnel.relations, BTreeMap::from([("PAR".to_owned(), 1), ("never".to_owned(), 0)]));
    }

    #[test]
    fn the_order_of_rows_does_not_matter() {
        let reversed = |text: &str| text.lines().rev().map(|line| format!("{line}\n")).collect::<String>();
        let (funnel, graph) = parse([CONSO, REL, STY], &options()).unwrap();
        let (other_funnel, other) =
            parse([&reversed(CONSO), &reversed(REL), &reversed(STY)], &options()).unwrap();
        assert_eq!(funnel, other_funnel);
        assert_eq!(graph.entities(), other.entities());
        assert_eq!(graph.relations(), other.relations());
        assert_eq!(graph.triples(), other.triples());
    }

    #[test]
    fn bad_files_are_refused_with_line_column_and_remedy() {
        let cut = &CONSO[..CONSO.len() - 20];
        let cases: [([&str; 3], &str); 5] = [
            ([cut, REL, STY], "META/MRCONSO.RRF: line 8: the file ends in the middle"),
            ([CONSO, CONSO, STY], "META/MRREL.RRF: line 1: 18 columns, expected 16"),
            ([CONSO, "C01|||||||||||||||\n", STY], "MRREL.RRF: line 1: 15 columns, expected 16"),
            (
                [CONSO, &REL.replace("C0000004", "C004"), STY],
                "line 8, column 1 (CUI1): found \"C004\", expected C and seven",
            ),
            (
                [CONSO, REL, &STY.replace("C0000003", "X0000003")],
                "META/MRSTY.RRF: line 3, column 1 (CUI): found \"X0",
            ),
        ];
        for (texts, expected) in cases {
            let message = parse(texts, &options()).unwrap_err();
            assert!(message.contains(expected), "{message}\nlacks {expected}");
        }
        let none = Options { languages: Vec::new(), ..options() };
        assert!(parse([CONSO, REL, STY], &none).unwrap_err().contains("expected at least one"));
    }
}
