//! The Human Symptoms-Disease Network (Zhou et al., Nat. Commun. 5:4212, 2014, Supplementary Data 3). Knows no other source.
//!
//! A table of tab-separated columns with one header line; entities are MeSH descriptor names without ids and may hold commas and
//! apostrophes, so nothing is quoted. A row counts the PubMed articles indexed with both a symptom and a disease and weighs the
//! count by how rare the symptom is (TFIDF = occurrence * ln(4219 / diseases with the symptom)).
//!
//! Each row becomes `disease, cooccurs_with_symptom, symptom`. Co-occurrence has no direction and does not say that the disease
//! has the symptom, hence a relation of its own beside [`super::rotmensch`]'s `has_symptom`; the disease is the subject so that
//! both tables are read the same way. Some MeSH terms are symptom and disease; 248 rows of the published table pair such a term
//! with itself and are kept as published.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::funnel::{Ends, Funnel, Tally};
use super::line::{self, Line, Lines, Place};
use super::roster::{Roster, unused};
use crate::table::{Builder, Origin};

/// Name of the source in the table's origins.
pub const SOURCE: &str = "hsdn";

/// Key of the one relation.
pub const RELATION: &str = "cooccurs_with_symptom";

const HEADER: [&str; 4] = ["MeSH Symptom Term", "MeSH Disease Term", "PubMed occurrence", "TFIDF score"];

/// What to take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Rows with a lower TFIDF score are dropped; none keeps all. The authors' own cut is 3.5.
    pub min_tfidf: Option<f64>,
}

/// Why the table cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no line to be had.
    #[error(transparent)]
    Line(#[from] line::Error),
    /// The file does not begin as published.
    #[error("{place}: found {found:?}, expected the header {:?}; give the original table (Combined-Input.tsv)", HEADER.join("\t"))]
    Header {
        /// The first line.
        place: Place,
        /// What stands there.
        found: String,
    },
    /// A line has too few or too many columns.
    #[error(
        "{place}: {found} columns, expected 4 with a tab between; the line is damaged, fetch the file again"
    )]
    Columns {
        /// The line.
        place: Place,
        /// Columns found.
        found: usize,
    },
    /// A field is not what its column holds.
    #[error("{place}: found {found:?}, expected {expected}; the line is damaged, fetch the file again")]
    Field {
        /// Line and column.
        place: Place,
        /// What stands there.
        found: String,
        /// What should.
        expected: &'static str,
    },
}

/// Reads the table into `builder`. `label` names the file in messages.
///
/// # Errors
/// When the file is damaged or of another kind; `builder` then holds a part of it.
pub fn read<R: BufRead>(
    reader: R,
    label: &Path,
    options: &Options,
    builder: &mut Builder,
) -> Result<Funnel, Error> {
    let mut lines = Lines::new(reader, label);
    check_header(&mut lines, label)?;
    let mut tally = Tally::new(label, &["below_min_tfidf"]);
    let (mut diseases, mut symptoms) = (Roster::new(SOURCE, "disease"), Roster::new(SOURCE, "symptom"));
    let mark = builder.mark();
    while let Some(line) = lines.next_line()? {
        let row = Row::parse(line)?;
        let (disease, symptom) = (diseases.place(row.disease), symptoms.place(row.symptom));
        if options.min_tfidf.is_some_and(|least| row.tfidf < least) {
            tally.drop("below_min_tfidf");
        } else {
            tally.keep();
            let subject = diseases.entity(disease, builder);
            let relation = builder.relation(SOURCE, RELATION, "cooccurs with symptom");
            let object = symptoms.entity(symptom, builder);
            let origin = builder.origin(row.origin());
            builder.triple(subject, relation, object, origin);
        }
    }
    (tally.lines, tally.bytes) = (lines.lines(), lines.bytes());
    let distinct = builder.settle(mark);
    Ok(Funnel {
        source: SOURCE,
        merged: tally.kept - distinct.triples,
        distinct: distinct.triples,
        subjects: Ends { read: diseases.read(), kept: distinct.subjects },
        objects: Ends { read: symptoms.read(), kept: distinct.objects },
        unused_entities: unused(&diseases, &symptoms),
        relations: BTreeMap::from([(RELATION.to_owned(), tally.kept)]),
        triples: tally,
        supporting: Vec::new(),
    })
}

fn check_header<R: BufRead>(lines: &mut Lines<'_, R>, label: &Path) -> Result<(), Error> {
    match lines.next_line()? {
        Some(line) if line.text.split('\t').eq(HEADER) => Ok(()),
        Some(line) => {
            Err(Error::Header { place: line.place(None), found: line.text.chars().take(80).collect() })
        }
        None => {
            let place = Place { file: label.to_owned(), line: 1, column: None };
            Err(Error::Header { place, found: String::new() })
        }
    }
}

struct Row<'a> {
    symptom: &'a str,
    disease: &'a str,
    occurrence: u32,
    tfidf: f64,
}

impl<'a> Row<'a> {
    fn parse(line: Line<'a>) -> Result<Self, Error> {
        let mut fields = line.text.split('\t');
        let (Some(symptom), Some(disease), Some(occurrence), Some(tfidf), None) =
            (fields.next(), fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return Err(Error::Columns { place: line.place(None), found: line.text.split('\t').count() });
        };
        let wrong = |column: usize, found: &str, expected| Error::Field {
            place: line.place(Some((column, HEADER[column - 1]))),
            found: found.to_owned(),
            expected,
        };
        for (column, name) in [(1, symptom), (2, disease)] {
            if name.trim().is_empty() {
                return Err(wrong(column, name, "a name"));
            }
        }
        let count = occurrence.parse().map_err(|_| wrong(3, occurrence, "a whole number"))?;
        let score = tfidf.parse().ok().filter(|score: &f64| score.is_finite());
        let score = score.ok_or_else(|| wrong(4, tfidf, "a number"))?;
        Ok(Self { symptom, disease, occurrence: count, tfidf: score })
    }

    fn origin(&self) -> Origin {
        Origin {
            source: SOURCE.to_owned(),
            vocabulary: None,
            weight: Some(self.tfidf),
            count: Some(self.occurrence),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Graph, SemanticType};

    const ALL: Options = Options { min_tfidf: None };
    const TABLE: &str = "MeSH Symptom Term\tMeSH Disease Term\tPubMed occurrence\tTFIDF score\n\
        Aging, Premature\tHIV Infections\t3\t10.393654468613903\n\
        Hirsutism\tColles' Fracture\t1\t2.4837222365262415\n\
        Pain\tColles' Fracture\t2\t0.5\n";

    fn parse(text: impl AsRef<[u8]>, options: &Options) -> Result<(Funnel, Graph), String> {
        let mut builder = Builder::new();
        let funnel = read(text.as_ref(), Path::new("data/hsdn.tsv"), options, &mut builder);
        Ok((funnel.map_err(|e| e.to_string())?, builder.finish()))
    }

    #[test]
    fn a_row_is_a_disease_with_a_symptom_and_both_weights() {
        let (funnel, graph) = parse(TABLE, &ALL).unwrap();
        assert_eq!((funnel.triples.read, funnel.triples.lines, funnel.triples.kept), (3, 4, 3));
        assert_eq!((funnel.subjects.read, funnel.objects.read), (2, 3));
        assert_eq!(funnel.triples.bytes, TABLE.len() as u64);
        assert_eq!(funnel.triples.file, "hsdn.tsv");
        let row =
            graph.triples().iter().position(|t| graph.entities()[t.subject.index()].text == "HIV Infections");
        let triple = graph.triples()[row.unwrap()];
        let object = &graph.entities()[triple.object.index()];
        assert_eq!(
            (object.key.as_str(), object.text.as_str()),
            ("name:aging, premature", "Aging, Premature")
        );
        assert_eq!(object.types, [SemanticType { code: None, name: "symptom".to_owned() }]);
        assert_eq!(graph.relations()[0].text, "cooccurs with symptom");
        let origin = graph.origins(row.unwrap()).next().unwrap();
        assert_eq!((origin.weight, origin.count), (Some(10.393654468613903), Some(3)));
    }

    #[test]
    fn weak_rows_are_dropped_and_counted_and_their_entities_stay_out() {
        let (funnel, graph) = parse(TABLE, &Options { min_tfidf: Some(3.5) }).unwrap();
        assert_eq!(funnel.triples.dropped["below_min_tfidf"], 2);
        assert_eq!((funnel.triples.read, funnel.triples.kept, funnel.distinct), (3, 1, 1));
        assert_eq!((funnel.subjects, funnel.unused_entities), (Ends { read: 2, kept: 1 }, 3));
        assert_eq!(graph.entities().len(), 2);
    }

    #[test]
    fn repeated_rows_are_merged_into_the_strongest_and_counted() {
        let text = format!("{TABLE}hirsutism\tColles'  fracture\t5\t7.5\n");
        let (funnel, graph) = parse(text, &ALL).unwrap();
        assert_eq!((funnel.triples.read, funnel.merged, funnel.distinct), (4, 1, 3));
        let weights: Vec<_> = (0..3).flat_map(|row| graph.origins(row).map(|o| o.weight)).collect();
        assert!(weights.contains(&Some(7.5)) && weights.len() == 3, "{weights:?}");
    }

    #[test]
    fn a_name_may_be_disease_and_symptom() {
        let text = format!("{TABLE}Colles' Fracture\tColles' Fracture\t1\t2\n");
        let (_, graph) = parse(text, &ALL).unwrap();
        let both = graph.entities().iter().find(|e| e.text == "Colles' Fracture").unwrap();
        assert!(graph.triples().iter().any(|t| t.subject == t.object), "kept as published");
        assert_eq!(both.types.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["disease", "symptom"]);
    }

    #[test]
    fn bad_files_are_refused_with_line_column_and_remedy() {
        let header = TABLE.lines().next().unwrap();
        let with = |line: &str| format!("{header}\nPain\tFlu\t1\t2\n{line}").into_bytes();
        let mut latin = with("M");
        latin.extend(b"\xe9ni\xe8re\tFlu\t1\t2\n");
        let cases: [(Vec<u8>, &str); 9] = [
            (Vec::new(), "data/hsdn.tsv: line 1: found \"\", expected the header"),
            (b"symptom\tdisease\n".to_vec(), "line 1: found \"symptom\\tdisease\", expected the header"),
            (with("Pain\tFlu\t1\n"), "line 3: 3 columns, expected 4"),
            (with("Pain\tFlu\t1\t2\t3\n"), "line 3: 5 columns, expected 4"),
            (
                with("Pain\tFlu\t1.5\t2\n"),
                "line 3, column 3 (PubMed occurrence): found \"1.5\", expected a whole",
            ),
            (with("Pain\tFlu\t1\tNaN\n"), "line 3, column 4 (TFIDF score): found \"NaN\", expected a number"),
            (with(" \tFlu\t1\t2\n"), "line 3, column 1 (MeSH Symptom Term): found \" \", expected a name"),
            (with("Pain\tFlu\t1\t2.48"), "line 3: the file ends in the middle"),
            (latin, "line 3: byte 2 of the line is not valid UTF-8"),
        ];
        for (text, expected) in cases {
            let message = parse(text, &ALL).unwrap_err();
            assert!(message.contains(expected), "{message}\nlacks {expected}");
        }
    }
}
