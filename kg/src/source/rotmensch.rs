//! The health knowledge graph learned from emergency records (Rotmensch et al., Sci. Rep. 7:5994, 2017).
//!
//! CSV of two columns, `Diseases,Symptoms`, whose lines end with a bare CR as published (LF and CRLF are read as well). The second
//! column lists all symptoms of the disease with their probability: `name (0.318), name (0.119)`. Names may hold commas and
//! parentheses, so an entry ends where a parenthesised number is followed by a comma and a space or by the end.

use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::path::Path;

use base::bom::Unmarked;
use base::funnel::{BLANK_LINES, Tally};
use base::line::{self, Place};
use base::newline::Newlines;
use base::read::ReadError;
use base::setting::InvalidSetting;
use csv::ByteRecord;
use serde::{Deserialize, Serialize};

use super::files::{Files, Input, Location, Slot};
use super::funnel::Funnel;
use super::names::{Ids, NameTable};
use super::{Source, SourceReport, not_kept};
use crate::table::{Builder, Origin};

/// Name of the source in the table's origins.
pub const SOURCE: &str = "rotmensch";

/// Key of the one relation.
pub const RELATION: &str = "has_symptom";

const HEADER: [&str; 2] = ["Diseases", "Symptoms"];

/// Rotmensch: where it lies and what is taken of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The table, `DerivedKnowledgeGraph_final.csv`.
    #[serde(skip_serializing)]
    pub path: Location,
    /// Entries with a lower probability are dropped. Without it, all are kept.
    pub min_probability: Option<f64>,
}

impl Source for Options {
    fn check(&self, _: &str) -> Result<(), InvalidSetting> {
        match self.min_probability {
            Some(least) if !(0.0..=1.0).contains(&least) => {
                Err(InvalidSetting::new("min_probability", least, "from 0 to 1"))
            }
            _ => Ok(()),
        }
    }

    fn slots(&self) -> Vec<Slot<'_>> {
        vec![Slot::file("path", &self.path)]
    }

    fn read(&self, _: &str, files: &Files<'_>, builder: &mut Builder) -> Result<SourceReport, ReadError> {
        Ok(SourceReport::new(read(files.open("path")?, self, builder)?))
    }
}

/// What to do about a row that is not as published.
const DAMAGED: &str = "the line is damaged, fetch the file again";

/// Reads the table into `builder`. What the funnel counts as rows are (symptom, probability)
/// entries.
///
/// # Errors
/// When the file is damaged or of another kind; `builder` then holds a part of it.
pub fn read<R: BufRead>(
    file: Input<R>,
    options: &Options,
    builder: &mut Builder,
) -> Result<Funnel, ReadError> {
    let mut rows = Rows::new(file.reader, &file.label)?;
    let mut tally = Tally::new(&file.label, &[BLANK_LINES, "below_min_probability"]);
    let no_ids = Ids::new();
    let [mut diseases, mut symptoms] =
        ["disease", "symptom"].map(|role| NameTable::new(SOURCE, role, &no_ids));
    while let Some(row) = rows.next_row()? {
        let disease = diseases.place(row.disease);
        for entry in entries(row.symptoms) {
            let entry = entry.map_err(|Mismatch { found, expected }| row.wrong(2, found, expected))?;
            let symptom = symptoms.place(entry.name);
            if options.min_probability.is_some_and(|least| entry.probability < least) {
                tally.drop("below_min_probability");
            } else {
                tally.keep();
                let subject = diseases.entity(disease, builder);
                let relation = builder.relation(SOURCE, RELATION, "has symptom");
                let object = symptoms.entity(symptom, builder);
                let origin = builder.origin(entry.origin());
                let stated = builder.triple(subject, relation, object, origin);
                stated.map_err(|error| not_kept(SOURCE, &error))?;
            }
        }
    }
    for names in [&diseases, &symptoms] {
        names.settle(builder);
    }
    let read = rows.csv.get_ref().get_ref();
    (tally.lines, tally.bytes) = (read.lines_read(), read.bytes_read());
    tally.drop_all(BLANK_LINES, read.blank_lines());
    Ok(Funnel {
        source: SOURCE.to_owned(),
        subjects: diseases.read(),
        objects: symptoms.read(),
        relations: BTreeMap::from([(RELATION.to_owned(), tally.kept)]),
        triples: tally,
        supporting: Vec::new(),
    })
}

struct Rows<'f, R> {
    csv: csv::Reader<Unmarked<Newlines<R>>>,
    file: &'f Path,
    record: ByteRecord,
}

struct Row<'a> {
    disease: &'a str,
    symptoms: &'a str,
    line: u64,
    file: &'a Path,
}

impl Row<'_> {
    fn wrong(&self, column: usize, found: &str, expected: &str) -> ReadError {
        let column = Some((column, HEADER[column - 1]));
        let place = Place { file: self.file.to_owned(), line: self.line, column };
        ReadError::text(place, found, expected, DAMAGED)
    }
}

impl<'f, R: BufRead> Rows<'f, R> {
    /// Starts after the header.
    fn new(reader: R, file: &'f Path) -> Result<Self, ReadError> {
        let csv = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .from_reader(Unmarked::new(Newlines::new(reader, b',')));
        let mut rows = Self { csv, file, record: ByteRecord::new() };
        rows.advance()?;
        if rows.record.iter().eq(HEADER.map(str::as_bytes)) {
            return Ok(rows);
        }
        let (found, place) = (
            String::from_utf8_lossy(rows.record.as_slice()),
            Place { file: file.to_owned(), line: 1, column: None },
        );
        let remedy = "give the original table (DerivedKnowledgeGraph_final.csv)";
        Err(ReadError::text(place, &found, "the header \"Diseases,Symptoms\"", remedy))
    }

    /// Reads the next record, if there is one, and returns its first line.
    fn advance(&mut self) -> Result<Option<u64>, ReadError> {
        let line = self.csv.position().line();
        let place = |line| Place { file: self.file.to_owned(), line, column: None };
        let more = self.csv.read_byte_record(&mut self.record).map_err(|e| {
            let source = io::Error::other(e);
            line::unreadable(place(line), &source)
        })?;
        let line = self.record.position().map_or(line, csv::Position::line);
        if more {
            self.csv.get_ref().get_ref().check(self.file, line..self.csv.position().line())?;
        }
        Ok(more.then_some(line))
    }

    fn next_row(&mut self) -> Result<Option<Row<'_>>, ReadError> {
        let Some(line) = self.advance()? else { return Ok(None) };
        let place = |column| Place { file: self.file.to_owned(), line, column };
        let text = |column: usize| {
            std::str::from_utf8(&self.record[column])
                .map_err(|e| line::not_utf8(place(Some((column + 1, HEADER[column]))), e.valid_up_to() + 1))
        };
        if self.record.len() != HEADER.len() {
            let found = format!("{} columns", self.record.len());
            return Err(ReadError::new(place(None), found, "2 (the second in double quotes)", DAMAGED));
        }
        let row = Row { disease: text(0)?, symptoms: text(1)?, line, file: self.file };
        // A lost quote would otherwise join two rows into one that looks well-formed.
        for (column, field) in [(1, row.disease), (2, row.symptoms)] {
            if field.contains(['\n', '\r']) {
                return Err(row.wrong(column, field, "no line break inside the quotes (a quote is missing)"));
            }
        }
        if row.disease.trim().is_empty() {
            return Err(row.wrong(1, row.disease, "a name"));
        }
        Ok(Some(row))
    }
}

struct Entry<'a> {
    name: &'a str,
    probability: f64,
}

impl Entry<'_> {
    fn origin(&self) -> Origin {
        let weight = Some(self.probability);
        Origin { source: SOURCE.to_owned(), vocabulary: None, weight, count: None, level: None }
    }
}

/// What was found and what was expected instead.
struct Mismatch<'a> {
    found: &'a str,
    expected: &'static str,
}

/// The entries of a `Symptoms` field: `name (number)` joined by `, `. Ends after the first mismatch.
fn entries(field: &str) -> impl Iterator<Item = Result<Entry<'_>, Mismatch<'_>>> {
    let mut rest = Some(field);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        Some(entry(text).map(|(entry, after)| {
            rest = after;
            entry
        }))
    })
}

/// The first entry of `text`, and what follows its comma if there is one.
fn entry(text: &str) -> Result<(Entry<'_>, Option<&str>), Mismatch<'_>> {
    let shape = Mismatch { found: text, expected: "`name (probability)`, joined by a comma and a space" };
    for (end, _) in text.match_indices(" (") {
        let inner = &text[end + 2..];
        let digits = inner.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(inner.len());
        let (number, after) = inner.split_at(digits);
        let rest = match after.strip_prefix(')') {
            Some("") => None,
            Some(after) if after.starts_with(", ") => Some(&after[2..]),
            _ => continue,
        };
        let name = &text[..end];
        if number.is_empty() || name.trim().is_empty() {
            break;
        }
        let probability = number.parse().ok().filter(|p| (0.0..=1.0).contains(p));
        let probability =
            probability.ok_or(Mismatch { found: number, expected: "a probability between 0 and 1" })?;
        return Ok((Entry { name, probability }, rest));
    }
    Err(shape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::Policy;
    use crate::table::Graph;

    fn all() -> Options {
        Options::default()
    }

    const TABLE: &str = "Diseases,Symptoms\rabscess,\"pain (0.318), fever (0.119)\"\r\
        acid reflux,\"pain, burning (left) (0.225), nausea (1), fever (0.002)\"";

    fn parse(text: impl AsRef<[u8]>, options: &Options) -> Result<(Funnel, Graph), String> {
        let mut builder = Builder::new();
        let funnel = read(Input::new(text.as_ref(), "data/graph.csv"), options, &mut builder);
        let graph = crate::canon::merge(builder, &Policy::standard()).and_then(|canon| canon.graph());
        Ok((funnel.map_err(|e| e.to_string())?, graph.map_err(|e| e.to_string())?))
    }

    fn triples(graph: &Graph) -> Vec<(&str, &str, f64)> {
        let text = |id: crate::table::EntityId| graph.entities()[id.index()].text.as_str();
        let weight = |row| graph.origins(row).next().unwrap().weight.unwrap();
        graph
            .triples()
            .iter()
            .enumerate()
            .map(|(row, t)| (text(t.subject), text(t.object), weight(row)))
            .collect()
    }

    #[test]
    fn a_lost_quote_does_not_join_two_rows() {
        let text = "Diseases,Symptoms\rflu,\"a (0.5), b (0.2)\rcold,c (0.3), d (0.1)\"\r";
        let error = parse(text, &all()).unwrap_err();
        assert!(error.contains("line 2") && error.contains("a quote is missing"), "{error}");
    }

    #[test]
    fn all_line_ends_give_the_same_entries() {
        for ending in ["\r", "\n", "\r\n"] {
            for last in ["", ending] {
                let text = TABLE.replace('\r', ending) + last;
                let (funnel, graph) = parse(&text, &all()).unwrap();
                assert_eq!((funnel.triples.read, funnel.triples.lines), (5, 3), "{text:?}");
                assert_eq!((funnel.subjects, funnel.objects), (2, 4));
                assert_eq!(funnel.triples.bytes, text.len() as u64);
                let found = triples(&graph);
                assert!(found.contains(&("acid reflux", "pain, burning (left)", 0.225)), "{found:?}");
                assert!(found.contains(&("abscess", "fever", 0.119)) && found.len() == 5);
                assert_eq!(graph.relations()[0].key, "has_symptom");
            }
        }
    }

    #[test]
    fn rare_symptoms_and_repetitions_are_counted() {
        let text = format!("{TABLE}\rABSCESS,\"Pain (0.5)\"\r");
        let (funnel, graph) = parse(text, &Options { min_probability: Some(0.1), ..all() }).unwrap();
        assert_eq!(funnel.triples.dropped["below_min_probability"], 1);
        assert_eq!((funnel.triples.read, funnel.triples.kept, graph.triples().len()), (6, 5, 4));
        assert!(triples(&graph).contains(&("abscess", "pain", 0.5)));
    }

    #[test]
    fn the_order_of_rows_changes_nothing_where_a_name_has_several_spellings() {
        let rows =
            ["FEVER,\"Pain (0.5), fever (0.1)\"", "Cold,\"PAIN (0.2)\"", "Fever,\"pain (0.3), FEVER (0.4)\""];
        let given = |order: [usize; 3]| {
            let text = format!("Diseases,Symptoms\r{}\r", order.map(|row| rows[row]).join("\r"));
            let graph = parse(text, &all()).unwrap().1;
            let terms: Vec<_> =
                graph.entities().iter().map(|entity| (entity.key.clone(), entity.text.clone())).collect();
            let origins: Vec<f64> = (0..graph.triples().len())
                .flat_map(|row| graph.origins(row))
                .filter_map(|o| o.weight)
                .collect();
            (terms, graph.triples().to_vec(), origins)
        };
        let first = given([0, 1, 2]);
        assert_eq!(
            first.0.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(),
            ["Cold", "fever", "pain"]
        );
        for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            assert_eq!(given(order), first, "{order:?}");
        }
    }

    #[test]
    fn names_are_shared_with_other_sources() {
        let mut builder = Builder::new();
        read(Input::new(TABLE.as_bytes(), "x"), &all(), &mut builder).unwrap();
        let fever = builder.entity("other", "name:fever", "Fever!");
        assert_eq!(builder.entity(SOURCE, "name:fever", ""), fever);
        let graph = crate::canon::merge(builder, &Policy::standard()).unwrap().graph().unwrap();
        assert_eq!(graph.entities().iter().find(|e| e.key == "name:fever").unwrap().text, "fever");
    }

    #[test]
    fn bad_files_are_refused_with_line_column_and_remedy() {
        let with = |row: &str| format!("Diseases,Symptoms\rflu,\"pain (0.5)\"\r{row}").into_bytes();
        let mut latin = with("M");
        latin.extend(b"\xe9ni\xe8re,\"pain (0.5)\"\r");
        let cases: [(Vec<u8>, &str); 12] = [
            (Vec::new(), "data/graph.csv: line 1: found \"\", expected the header"),
            (b"Disease;Symptom\r".to_vec(), "line 1: found \"Disease;Symptom\", expected the header"),
            (with("cold"), "line 3: 1 columns, expected 2"),
            (with("cold,pain (0.5), fever (0.1)\r"), "line 3: 3 columns, expected 2"),
            (with("cold,"), "line 3, column 2 (Symptoms): found \"\", expected `name (probability)`"),
            (with(",\"pain (0.5)\"\r"), "line 3, column 1 (Diseases): found \"\", expected a name"),
            (with("cold,\"pain (0.5), fever\"\r"), "found \"fever\", expected `name (probability)`"),
            (with("cold,\"pain (0.5), \"\r"), "found \"\", expected `name (probability)`"),
            (with("cold,\"pain (0.5.1)\"\r"), "found \"0.5.1\", expected a probability"),
            (with("cold,\"pain (7)\"\r"), "line 3, column 2 (Symptoms): found \"7\", expected a probability"),
            (with("cold,\"pain (0.5)"), "line 3: the file ends in the middle"),
            (latin, "line 3, column 1 (Diseases): byte 2 of the line is not valid UTF-8"),
        ];
        for (text, expected) in cases {
            let shown = String::from_utf8_lossy(&text).into_owned();
            let message = parse(text, &all()).unwrap_err();
            assert!(message.contains(expected), "{shown:?}: {message}\nlacks {expected}");
        }
    }
}
