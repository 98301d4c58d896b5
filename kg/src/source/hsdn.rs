//! The Human Symptoms-Disease Network (Zhou et al., Nat. Commun. 5:4212, 2014, Supplementary Data 3).
//!
//! A table of tab-separated columns with one header line; entities are MeSH descriptor names without ids and may hold commas and
//! apostrophes, so nothing is quoted. A row counts the PubMed articles indexed with both a symptom and a disease and weighs the
//! count by how rare the symptom is (TFIDF = occurrence * ln(4219 / diseases with the symptom)).
//!
//! Each row becomes `disease, cooccurs_with_symptom, symptom`. Co-occurrence has no direction and does not say that the disease
//! has the symptom, hence a relation of its own beside [`super::rotmensch`]'s `has_symptom`; the disease is the subject so that
//! both tables are read the same way. Some MeSH terms are symptom and disease; 248 rows of the published table pair such a term
//! with itself and are stated as published.
//!
//! Two further files may give the names their MeSH ids. A name with an id becomes `mesh:D000001` and is offered to sources that
//! were read before and have names only; a name without stays `name:` and is listed.

mod ids;

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;

use base::funnel::{BLANK_LINES, Tally};
use base::line::{Line, Lines, Place};
use base::read::ReadError;
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::ids::{Ids, Role};
use super::files::{Files as Found, Input, Location, Slot};
use super::funnel::Funnel;
use super::names::{Ids as Known, NameTable};
use super::{Source, SourceReport, not_kept};
use crate::table::{Builder, Origin};

/// Name of the source in the table's origins.
pub const SOURCE: &str = "hsdn";

/// Key of the one relation.
pub const RELATION: &str = "cooccurs_with_symptom";

const HEADER: [&str; 4] = ["MeSH Symptom Term", "MeSH Disease Term", "PubMed occurrence", "TFIDF score"];

/// HSDN: where it lies and what is taken of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The table, `Combined-Input.tsv`.
    #[serde(skip_serializing)]
    pub path: Location,
    /// MeSH ids of the symptoms, `Symptom-Occurence-Output.tsv`. Without it, symptoms are known by name only.
    #[serde(skip_serializing)]
    pub symptom_ids: Option<Location>,
    /// MeSH ids of the diseases, `Disease-Occurence-Output.tsv`. Without it, diseases are known by name only.
    #[serde(skip_serializing)]
    pub disease_ids: Option<Location>,
    /// Rows with a lower TF-IDF score are dropped (the authors' cutoff is 3.5). Without it, all are kept.
    pub min_tfidf: Option<f64>,
}

impl Source for Options {
    fn slots(&self) -> Vec<Slot<'_>> {
        let ids = [("symptom_ids", &self.symptom_ids), ("disease_ids", &self.disease_ids)];
        let ids = ids.into_iter().filter_map(|(key, at)| Some(Slot::file(key, at.as_ref()?)));
        std::iter::once(Slot::file("path", &self.path)).chain(ids).collect()
    }

    fn read(&self, _: &str, files: &Found<'_>, builder: &mut Builder) -> Result<SourceReport, ReadError> {
        let [symptom_ids, disease_ids] = ["symptom_ids", "disease_ids"].map(|key| files.maybe(key));
        let files = Files {
            table: files.open("path")?,
            symptom_ids: symptom_ids.transpose()?,
            disease_ids: disease_ids.transpose()?,
        };
        let stated = read(files, self, builder)?;
        let mut report = SourceReport::new(stated.funnel);
        if self.symptom_ids.is_some() {
            report.note("symptoms", json!(stated.symptoms));
        }
        if self.disease_ids.is_some() {
            report.note("diseases", json!(stated.diseases));
        }
        Ok(report)
    }
}

/// The files.
#[derive(Debug)]
pub struct Files<R> {
    /// The table of pairs (`Combined-Input.tsv`).
    pub table: Input<R>,
    /// Ids of the symptoms (`Symptom-Occurence-Output.tsv`).
    pub symptom_ids: Option<Input<R>>,
    /// Ids of the diseases (`Disease-Occurence-Output.tsv`).
    pub disease_ids: Option<Input<R>>,
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stated {
    /// The rows; `supporting` has the files of ids.
    pub funnel: Funnel,
    /// Which symptoms of the table have an id.
    pub symptoms: Identified,
    /// Which diseases of the table have an id.
    pub diseases: Identified,
}

/// The names of one role in all rows of the table, by whether they have an id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Identified {
    /// Different names with an id.
    pub with_id: u64,
    /// Names without, sorted by their folded text.
    pub without_id: Vec<String>,
}

/// What to do about a line that is not as published.
const DAMAGED: &str = "the line is damaged, fetch the file again";

const ORIGINALS: &str =
    "Combined-Input.tsv for the table, Symptom- or Disease-Occurence-Output.tsv for the ids";

/// Reads the files into `builder`.
///
/// # Errors
/// When a file is damaged or of another kind; `builder` then holds a part of it.
pub fn read<R: BufRead>(
    files: Files<R>,
    options: &Options,
    builder: &mut Builder,
) -> Result<Stated, ReadError> {
    let mut ids = Ids::default();
    let symptom_ids = files.symptom_ids.map(|file| ids.read(file, Role::Symptoms)).transpose()?;
    let disease_ids = files.disease_ids.map(|file| ids.read(file, Role::Diseases)).transpose()?;
    let known = ids.known();
    let mut table = Table::new(&known, &files.table.label);
    table.read(files.table, options, builder)?;
    let Table { symptoms, diseases, tally } = table;
    let supporting = [(symptom_ids, &symptoms), (disease_ids, &diseases)];
    Ok(Stated {
        funnel: Funnel {
            source: SOURCE.to_owned(),
            subjects: diseases.read(),
            objects: symptoms.read(),
            relations: BTreeMap::from([(RELATION.to_owned(), tally.kept)]),
            triples: tally,
            supporting: supporting
                .into_iter()
                .filter_map(|(pending, names)| Some(pending?.settle(names)))
                .collect(),
        },
        symptoms: identified(&symptoms),
        diseases: identified(&diseases),
    })
}

fn identified(names: &NameTable<'_>) -> Identified {
    let without_id = names.without_id();
    Identified { with_id: names.read() - without_id.len() as u64, without_id }
}

/// The table while it is read.
struct Table<'k> {
    symptoms: NameTable<'k>,
    diseases: NameTable<'k>,
    tally: Tally,
}

impl<'k> Table<'k> {
    fn new(known: &'k Known, label: &Path) -> Self {
        let [symptoms, diseases] = ["symptom", "disease"].map(|role| NameTable::new(SOURCE, role, known));
        Self { symptoms, diseases, tally: Tally::new(label, &[BLANK_LINES, "below_min_tfidf"]) }
    }

    fn read<R: BufRead>(
        &mut self,
        file: Input<R>,
        options: &Options,
        builder: &mut Builder,
    ) -> Result<(), ReadError> {
        let mut lines = Lines::new(file.reader, &file.label);
        header(&mut lines, &file.label, &HEADER)?;
        while let Some(line) = lines.next_filled()? {
            let row = Row::parse(&line)?;
            let (disease, symptom) = (self.diseases.place(row.disease), self.symptoms.place(row.symptom));
            if options.min_tfidf.is_some_and(|least| row.tfidf < least) {
                self.tally.drop("below_min_tfidf");
            } else {
                self.tally.keep();
                let subject = self.diseases.entity(disease, builder);
                let relation = builder.relation(SOURCE, RELATION, "cooccurs with symptom");
                let object = self.symptoms.entity(symptom, builder);
                let origin = builder.origin(row.origin());
                let stated = builder.triple(subject, relation, object, origin);
                stated.map_err(|error| not_kept(SOURCE, &error))?;
            }
        }
        for names in [&self.diseases, &self.symptoms] {
            names.settle(builder);
        }
        self.tally.account(&lines);
        Ok(())
    }
}

/// Checks the first line.
fn header<R: BufRead>(lines: &mut Lines<'_, R>, label: &Path, expected: &[&str; 4]) -> Result<(), ReadError> {
    let (place, found) = match lines.next_filled()? {
        Some(line) if line.text.split('\t').eq(*expected) => return Ok(()),
        Some(line) => (line.place(None), line.text),
        None => (Place { file: label.to_owned(), line: 1, column: None }, ""),
    };
    let expected = format!("the header {:?}", expected.join("\t"));
    Err(ReadError::text(place, found, expected, format!("give the original file ({ORIGINALS})")))
}

/// The four columns of a line.
fn columns<'a>(line: &Line<'a>) -> Result<[&'a str; 4], ReadError> {
    let mut fields = line.text.split('\t');
    match (fields.next(), fields.next(), fields.next(), fields.next(), fields.next()) {
        (Some(first), Some(second), Some(third), Some(fourth), None) => Ok([first, second, third, fourth]),
        _ => {
            let found = format!("{} columns", line.text.split('\t').count());
            Err(ReadError::new(line.place(None), found, "4 with a tab between", DAMAGED))
        }
    }
}

fn wrong(line: &Line<'_>, column: (usize, &'static str), found: &str, expected: &str) -> ReadError {
    ReadError::text(line.place(Some(column)), found, expected, DAMAGED)
}

struct Row<'a> {
    symptom: &'a str,
    disease: &'a str,
    occurrence: u32,
    tfidf: f64,
}

impl<'a> Row<'a> {
    fn parse(line: &Line<'a>) -> Result<Self, ReadError> {
        let [symptom, disease, occurrence, tfidf] = columns(line)?;
        for (column, name) in [(1, symptom), (2, disease)] {
            if name.trim().is_empty() {
                return Err(wrong(line, (column, HEADER[column - 1]), name, "a name"));
            }
        }
        let count = occurrence.parse().ok().filter(|&count| count > 0);
        let count = count.ok_or_else(|| wrong(line, (3, HEADER[2]), occurrence, "a whole number above 0"))?;
        // A symptom of every disease has a score of 0.
        let score = tfidf.parse().ok().filter(|&score: &f64| score.is_finite() && score >= 0.0);
        let score = score.ok_or_else(|| wrong(line, (4, HEADER[3]), tfidf, "a number, 0 or above"))?;
        Ok(Self { symptom, disease, occurrence: count, tfidf: score })
    }

    fn origin(&self) -> Origin {
        Origin {
            source: SOURCE.to_owned(),
            vocabulary: None,
            weight: Some(self.tfidf),
            count: Some(self.occurrence),
            level: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::Policy;
    use crate::table::{Graph, SemanticType};

    fn all() -> Options {
        Options::default()
    }

    const TABLE: &str = "MeSH Symptom Term\tMeSH Disease Term\tPubMed occurrence\tTFIDF score\n\
        Aging, Premature\tHIV Infections\t3\t10.393654468613903\n\
        Hirsutism\tColles' Fracture\t1\t2.4837222365262415\n\
        Pain\tColles' Fracture\t2\t0.5\n";
    const SYMPTOMS: &str = "\tMeSH Symptom Term\tPubMed occurrence\tMeSH Symptom ID\n\
        0\tPain\t103168\tD010146\n1\tHirsutism\t7\tD006628\n2\tAging, Premature\t5\tD019588\n";
    const DISEASES: &str = "\tMeSH Disease Term\tPubMed occurrence\tMeSH Disease ID\n\
        0\tcolles'  fracture\t9\tD003100\n1\tPoisoning\t4\t\n2\tOverdose\t4\tD062787\n";

    fn state(texts: [&[u8]; 3], options: &Options, builder: &mut Builder) -> Result<Stated, String> {
        let file = |text: &'static str, bytes| Input::new(bytes, text);
        let files = Files {
            table: file("data/hsdn.tsv", texts[0]),
            symptom_ids: Some(file("symptoms.tsv", texts[1])).filter(|file| !file.reader.is_empty()),
            disease_ids: Some(file("diseases.tsv", texts[2])).filter(|file| !file.reader.is_empty()),
        };
        read(files, options, builder).map_err(|e| e.to_string())
    }

    fn parse_all(texts: [&[u8]; 3], options: &Options) -> Result<(Stated, Graph), String> {
        let mut builder = Builder::new();
        let stated = state(texts, options, &mut builder)?;
        let graph = crate::canon::merge(builder, &Policy::standard()).and_then(|canon| canon.graph());
        Ok((stated, graph.map_err(|e| e.to_string())?))
    }

    fn parse(text: impl AsRef<[u8]>, options: &Options) -> Result<(Funnel, Graph), String> {
        parse_all([text.as_ref(), b"", b""], options).map(|(stated, graph)| (stated.funnel, graph))
    }

    fn keys(graph: &Graph) -> Vec<&str> {
        graph.entities().iter().map(|entity| entity.key.as_str()).collect()
    }

    #[test]
    fn a_row_is_a_disease_with_a_symptom_and_both_weights() {
        let (funnel, graph) = parse(TABLE, &all()).unwrap();
        assert_eq!((funnel.triples.read, funnel.triples.lines, funnel.triples.kept), (3, 4, 3));
        assert_eq!((funnel.subjects, funnel.objects), (2, 3));
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
    fn silent_17_lines_that_end_with_cr_alone_are_named() {
        let message = parse(TABLE.replace('\n', "\r"), &all()).unwrap_err();
        assert!(message.contains("hsdn.tsv: line 1: the lines of the file end with a bare CR"), "{message}");
    }

    #[test]
    fn silent_17_a_last_line_may_lack_its_end_and_blank_lines_are_counted() {
        let texts = [TABLE, SYMPTOMS, DISEASES].map(|text| text.trim_end().replacen('\n', "\n\n \n", 1));
        let (whole, graph) = parse_all([TABLE, SYMPTOMS, DISEASES].map(str::as_bytes), &all()).unwrap();
        let (stated, same) = parse_all([0, 1, 2].map(|file| texts[file].as_bytes()), &all()).unwrap();
        assert_eq!((graph.triples(), graph.entities()), (same.triples(), same.entities()));
        assert_eq!(stated.funnel.triples.kept, whole.funnel.triples.kept);
        for tally in stated.funnel.supporting.iter().chain([&stated.funnel.triples]) {
            assert_eq!(tally.dropped["blank_lines"], 2, "{}", tally.file);
            assert_eq!(tally.read, tally.kept + tally.dropped.values().sum::<u64>());
        }
    }

    #[test]
    fn weak_rows_are_dropped_and_counted_and_their_entities_stay_out() {
        let (funnel, graph) = parse(TABLE, &Options { min_tfidf: Some(3.5), ..all() }).unwrap();
        assert_eq!(funnel.triples.dropped["below_min_tfidf"], 2);
        assert_eq!((funnel.triples.read, funnel.triples.kept), (3, 1));
        assert_eq!((funnel.subjects, funnel.objects), (2, 3), "in all rows");
        assert_eq!(graph.entities().len(), 2);
    }

    #[test]
    fn repeated_rows_become_the_strongest() {
        let text = format!("{TABLE}hirsutism\tColles'  fracture\t5\t7.5\n");
        let (funnel, graph) = parse(text, &all()).unwrap();
        assert_eq!((funnel.triples.read, funnel.triples.kept, graph.triples().len()), (4, 4, 3));
        let weights: Vec<_> = (0..3).flat_map(|row| graph.origins(row).map(|o| o.weight)).collect();
        assert!(weights.contains(&Some(7.5)) && weights.len() == 3, "{weights:?}");
    }

    #[test]
    fn a_name_may_be_disease_and_symptom() {
        let text = format!("{TABLE}Colles' Fracture\tPain\t1\t2\n");
        let (_, graph) = parse(text, &all()).unwrap();
        let both = graph.entities().iter().find(|e| e.text == "Colles' Fracture").unwrap();
        assert_eq!(both.types.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["disease", "symptom"]);
    }

    #[test]
    fn names_get_their_ids_and_those_without_are_listed() {
        let texts = [TABLE, SYMPTOMS, DISEASES].map(str::as_bytes);
        let (stated, graph) = parse_all(texts, &all()).unwrap();
        let expected =
            ["mesh:D003100", "mesh:D006628", "mesh:D010146", "mesh:D019588", "name:hiv infections"];
        assert_eq!(keys(&graph), expected);
        assert_eq!(graph.entities()[2].text, "Pain");
        assert_eq!(stated.symptoms, Identified { with_id: 3, without_id: Vec::new() });
        let without_id = vec!["HIV Infections".to_owned()];
        assert_eq!(stated.diseases, Identified { with_id: 1, without_id });
        let [symptoms, diseases] = &stated.funnel.supporting[..] else { panic!("two files") };
        assert_eq!((symptoms.read, symptoms.kept, symptoms.lines), (3, 3, 4));
        assert_eq!((diseases.read, diseases.kept, diseases.bytes), (3, 1, DISEASES.len() as u64));
        assert_eq!(
            diseases.dropped,
            BTreeMap::from([("blank_lines", 0), ("no_id", 1), ("not_in_table", 1), ("repeated", 0)])
        );
    }

    #[test]
    fn two_names_of_one_id_are_one_entity_called_by_the_commoner_name() {
        let table = format!("{TABLE}Pain\tB\t1\t1\nPain\tA\t1\t1\n");
        for (rows, text) in
            [("3\tA\t1\tD013262\n4\tB\t2\tD013262\n", "B"), ("3\tB\t2\tD013262\n4\tA\t2\tD013262\n", "A")]
        {
            let diseases = format!("{DISEASES}{rows}");
            let (stated, graph) = parse_all([table.as_bytes(), b"", diseases.as_bytes()], &all()).unwrap();
            let merged = graph.entities().iter().find(|e| e.key == "mesh:D013262").unwrap();
            assert_eq!((merged.text.as_str(), stated.funnel.subjects), (text, 4));
            assert_eq!(graph.triples().len(), 4);
        }
    }

    #[test]
    fn a_repeated_id_counts_once_and_both_files_may_have_a_name() {
        let symptoms = format!("{SYMPTOMS}3\tpain\t1\tD010146\n4\tColles' Fracture\t1\tD003100\n");
        let texts = [TABLE.as_bytes(), symptoms.as_bytes(), DISEASES.as_bytes()];
        let (stated, _) = parse_all(texts, &all()).unwrap();
        let [symptoms, diseases] = &stated.funnel.supporting[..] else { panic!("two files") };
        assert_eq!(
            (symptoms.dropped["repeated"], symptoms.dropped["not_in_table"], symptoms.kept),
            (1, 1, 3)
        );
        assert_eq!((diseases.dropped["repeated"], diseases.kept), (0, 1));
    }

    #[test]
    fn earlier_sources_with_names_only_get_the_ids() {
        let mut builder = Builder::new();
        builder.entity("other", "name:pain", "pain");
        let (a, b) = (builder.entity("other", "name:pain", "pain"), builder.entity("other", "name:x", "x"));
        let relation = builder.relation("other", "r", "r");
        let origin =
            Origin { source: "other".to_owned(), vocabulary: None, weight: None, count: None, level: None };
        let origin = builder.origin(origin);
        builder.triple(a, relation, b, origin).unwrap();
        state([TABLE, SYMPTOMS, DISEASES].map(str::as_bytes), &all(), &mut builder).unwrap();
        let graph = crate::canon::merge(builder, &Policy::standard()).unwrap().graph().unwrap();
        let pain = graph.entities().iter().find(|e| e.key == "mesh:D010146").unwrap();
        assert_eq!(pain.origins, ["hsdn", "other"]);
        assert!(!keys(&graph).contains(&"name:pain"));
    }

    #[test]
    fn bad_files_are_refused_with_line_column_and_remedy() {
        let header = TABLE.lines().next().unwrap();
        let with = |line: &str| format!("{header}\nPain\tFlu\t1\t2\n{line}").into_bytes();
        let mut latin = with("M");
        latin.extend(b"\xe9ni\xe8re\tFlu\t1\t2\n");
        let cases: [(Vec<u8>, &str); 11] = [
            (Vec::new(), "data/hsdn.tsv: line 1: found \"\", expected the header"),
            (b"symptom\tdisease\n".to_vec(), "line 1: found \"symptom\\tdisease\", expected the header"),
            (with("Pain\tFlu\t1\n"), "line 3: 3 columns, expected 4"),
            (with("Pain\tFlu\t1\t2\t3\n"), "line 3: 5 columns, expected 4"),
            (
                with("Pain\tFlu\t1.5\t2\n"),
                "line 3, column 3 (PubMed occurrence): found \"1.5\", expected a whole",
            ),
            (
                with("Pain\tFlu\t0\t2\n"),
                "column 3 (PubMed occurrence): found \"0\", expected a whole number above",
            ),
            (with("Pain\tFlu\t1\tNaN\n"), "line 3, column 4 (TFIDF score): found \"NaN\", expected a number"),
            (
                with("Pain\tFlu\t1\t-1\n"),
                "line 3, column 4 (TFIDF score): found \"-1\", expected a number, 0 or above",
            ),
            (with(" \tFlu\t1\t2\n"), "line 3, column 1 (MeSH Symptom Term): found \" \", expected a name"),
            (with("Pain\tFlu\t1"), "line 3: 3 columns, expected 4"),
            (latin, "line 3: byte 2 of the line is not valid UTF-8"),
        ];
        for (text, expected) in cases {
            let message = parse(text, &all()).unwrap_err();
            assert!(message.contains(expected), "{message}\nlacks {expected}");
        }
    }

    #[test]
    fn bad_ids_are_refused_with_line_column_and_remedy() {
        let cases: [(&str, &str); 6] = [
            (
                "3\tFlu\t1\tC0021400\n",
                "symptoms.tsv: line 5, column 4 (MeSH Symptom ID): found \"C0021400\", expected a MeSH",
            ),
            ("3\tFlu\t1\tD12345\n", "found \"D12345\", expected a MeSH descriptor (D and six"),
            (
                "3\tPAIN\t1\tD000001\n",
                "line 5, column 4 (MeSH Symptom ID): \"PAIN\" has the id D000001, but D010146 in symptoms.tsv: line 2",
            ),
            ("x\tFlu\t1\tD000001\n", "line 5, column 1 (row number): found \"x\""),
            ("3\t \t1\tD000001\n", "line 5, column 2 (MeSH Symptom Term): found \" \", expected a name"),
            ("3\tFlu\t\tD000001\n", "column 3 (PubMed occurrence): found \"\", expected a whole number"),
        ];
        for (line, expected) in cases {
            let symptoms = format!("{SYMPTOMS}{line}");
            let message = parse_all([TABLE.as_bytes(), symptoms.as_bytes(), b""], &all()).unwrap_err();
            assert!(message.contains(expected), "{message}\nlacks {expected}");
        }
        let message = parse_all([TABLE.as_bytes(), DISEASES.as_bytes(), b""], &all()).unwrap_err();
        assert!(message.contains("expected the header \"\\tMeSH Symptom Term"), "{message}");
        let other = DISEASES.replace("colles'  fracture", "pain");
        let message = parse_all([TABLE, SYMPTOMS, &other].map(str::as_bytes), &all()).unwrap_err();
        assert!(message.contains("has the id D003100, but D010146 in symptoms.tsv: line 2"), "{message}");
    }
}
