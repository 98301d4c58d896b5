//! MeSH as the two tables of dhimmel/mesh: headings and tree numbers of the descriptors.
//!
//! `terms.tsv` (`mesh_id`, `mesh_name`) and `tree-numbers.tsv` (`mesh_id`, `mesh_name`, `mesh_tree_number`): tab-separated, one
//! header line, nothing quoted. They state `isa` as the descriptor file does, under the same keys, and nothing else.

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
const TREES: [&str; 3] = ["mesh_id", "mesh_name", "mesh_tree_number"];

/// The files.
#[derive(Debug)]
pub struct Files<R> {
    /// `terms.tsv`.
    pub terms: Input<R>,
    /// `tree-numbers.tsv`.
    pub trees: Input<R>,
}

/// What to do about a line that is not as published.
const DAMAGED: &str = "the line is damaged, fetch the file again";

/// Reads the tables into `builder`.
///
/// # Errors
/// When a file is damaged or of another kind; `builder` then holds a part of it.
pub fn read<R: BufRead>(files: Files<R>, builder: &mut Builder) -> Result<Funnel, ReadError> {
    let (entities, terms) = headings(files.terms, builder)?;
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
                    if let (Some(&subject), Some(&object)) = (entities.get(&subject), entities.get(object)) {
                        builder.triple(subject, relation, object, origin)?;
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
        supporting: vec![terms],
    })
}

/// Every descriptor with its heading.
fn headings<R: BufRead>(
    file: Input<R>,
    builder: &mut Builder,
) -> Result<(AHashMap<Ui, DraftEntity>, Tally), ReadError> {
    let Input { reader, label } = file;
    let mut tally = Tally::new(&label, &[BLANK_LINES]);
    let mut table = Table::new(reader, &label, TERMS)?;
    let mut entities = AHashMap::new();
    let origin = builder.term_origin(TermOrigin {
        source: SOURCE.to_owned(),
        vocabulary: None,
        language: Some("ENG".to_owned()),
        level: Some(LEVEL),
    });
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
        if entities.insert(ui, entity).is_some() {
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
