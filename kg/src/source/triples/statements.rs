//! Stating the triples of one source, whatever file they come from. Knows no file of names.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufRead};
use std::path::Path;

use ::parquet::file::reader::ChunkReader;

use super::super::funnel::{Funnel, Tally};
use super::super::separated::{Column, Records};
use super::names::Names;
use super::parquet::{self, Fields};
use super::{Error, Layout, Options, Stated, start};
use crate::table::builder::{DraftEntity, DraftOrigin, DraftRelation, DraftTermOrigin, OfferKind};
use crate::table::{Builder, Origin, TermKind, TermOrigin};

/// What a column is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Subject,
    Relation,
    Object,
    Weight,
}

impl Role {
    pub(super) fn name(self) -> &'static str {
        match self {
            Role::Subject => "subject",
            Role::Relation => "relation",
            Role::Object => "object",
            Role::Weight => "weight",
        }
    }
}

/// What names are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Things {
    /// Subjects and objects.
    Entities,
    /// Relations.
    Relations,
}

/// A source while its files are read: first those of names, then the tables.
#[derive(Debug)]
pub struct Statements<'o> {
    options: &'o Options,
    entity_names: Names,
    relation_names: Names,
    entities: HashMap<String, End>,
    relations: HashMap<String, Used>,
    terms: DraftTermOrigin,
    tables: Vec<Tally>,
}

/// An entity and where it has stood.
#[derive(Debug)]
struct End {
    draft: DraftEntity,
    subject: bool,
    object: bool,
}

/// A relation and how often it was used.
#[derive(Debug)]
struct Used {
    draft: DraftRelation,
    key: String,
    rows: u64,
}

/// One row of a table.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) subject: &'a str,
    pub(super) relation: &'a str,
    pub(super) object: &'a str,
    pub(super) weight: Option<f64>,
}

/// Why a row is not stated; the table adds the place.
#[derive(Debug)]
pub(super) enum Refused {
    /// A field is not as expected.
    Field { role: Role, found: String, expected: String },
    /// The rows read so far cannot be kept.
    Keep(io::Error),
}

/// A table while it is read.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) tally: Tally,
    origin: Origin,
    unweighted: Option<DraftOrigin>,
}

impl<'o> Statements<'o> {
    /// Begins a source.
    ///
    /// # Errors
    /// When its name or level cannot be.
    pub fn new(options: &'o Options, builder: &mut Builder) -> Result<Self, Error> {
        options.check()?;
        for [one, other] in &options.inverses {
            builder.declare_inverse(one, other);
        }
        let source = options.name.clone();
        let terms = TermOrigin { source, vocabulary: None, language: None, level: options.level };
        Ok(Self {
            options,
            entity_names: Names::default(),
            relation_names: Names::default(),
            entities: HashMap::new(),
            relations: HashMap::new(),
            terms: builder.term_origin(terms),
            tables: Vec::new(),
        })
    }

    /// Reads the list of all ids, one a line; a triple with another id is then an error.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn list<R: BufRead>(&mut self, things: Things, file: (R, &Path)) -> Result<(), Error> {
        self.names(things).list(file)
    }

    /// Reads texts, `id<TAB>text` a line.
    ///
    /// # Errors
    /// When the file is damaged, or an id has two texts.
    pub fn texts<R: BufRead>(&mut self, things: Things, file: (R, &Path)) -> Result<(), Error> {
        self.names(things).texts(file)
    }

    /// Reads definitions of entities, `id<TAB>text` a line.
    ///
    /// # Errors
    /// When the file is damaged, or an id has two definitions.
    pub fn definitions<R: BufRead>(&mut self, file: (R, &Path)) -> Result<(), Error> {
        self.entity_names.definitions(file)
    }

    fn names(&mut self, things: Things) -> &mut Names {
        match things {
            Things::Entities => &mut self.entity_names,
            Things::Relations => &mut self.relation_names,
        }
    }

    /// Reads a table of text. `part` names its part of an official split (`train`, `dev`, `test`) and becomes the origins' vocabulary.
    ///
    /// # Errors
    /// When the table is damaged or of another layout, or an id is not listed.
    pub fn table<R: BufRead>(
        &mut self,
        (reader, label): (R, &Path),
        layout: &Layout,
        part: Option<&str>,
        builder: &mut Builder,
    ) -> Result<(), Error> {
        let mut records = Records::new((reader, label), layout.separator, layout.first_line)?;
        let columns = Places::new(layout, &mut records)?;
        let mut table = Table::new(label, part, self.options);
        while let Some(record) = records.next_record()? {
            let refused = |role: Role, found: String, expected: String| {
                let place = record.place(Some((columns.of(role), role.name())));
                Error::Field { place, found, expected }
            };
            let weight =
                columns.weight.map(|column| record.field(column).trim()).filter(|text| !text.is_empty());
            let weight = weight.map(|text| finite(text).ok_or(text)).transpose().map_err(|text| {
                refused(Role::Weight, start(text), "a finite number, or nothing".to_owned())
            })?;
            let [subject, relation, object] = columns.ids.map(|column| record.field(column));
            match self.state(&Row { subject, relation, object, weight }, &mut table, builder) {
                Ok(()) => {}
                Err(Refused::Keep(source)) => return Err(self.full(source)),
                Err(Refused::Field { role, found, expected }) => return Err(refused(role, found, expected)),
            }
        }
        (table.tally.lines, table.tally.bytes) = (records.lines(), records.bytes());
        self.tables.push(table.tally);
        Ok(())
    }

    /// Reads a Parquet file, batch by batch. Its tally has no lines; `part` is as in [`Self::table`].
    ///
    /// # Errors
    /// When the file cannot be decoded or lacks a column, or an id is not listed.
    pub fn parquet<C: ChunkReader + 'static>(
        &mut self,
        (chunks, label): (C, &Path),
        fields: &Fields,
        part: Option<&str>,
        builder: &mut Builder,
    ) -> Result<(), Error> {
        let mut table = Table::new(label, part, self.options);
        table.tally.bytes = chunks.len();
        let mut kept = Ok(());
        parquet::rows((chunks, label), fields, |row| match self.state(row, &mut table, builder) {
            Ok(()) => Ok(()),
            Err(Refused::Field { role, found, expected }) => Err(Some((role, found, expected))),
            Err(Refused::Keep(source)) => {
                kept = Err(source);
                Err(None)
            }
        })?;
        kept.map_err(|source| self.full(source))?;
        self.tables.push(table.tally);
        Ok(())
    }

    fn full(&self, source: io::Error) -> Error {
        Error::Keep { name: self.options.name.clone(), source }
    }

    /// States one triple.
    fn state(&mut self, row: &Row<'_>, table: &mut Table, builder: &mut Builder) -> Result<(), Refused> {
        let subject = self.entity(row.subject, Role::Subject, builder)?;
        let relation = self.relation(row.relation, builder)?;
        let object = self.entity(row.object, Role::Object, builder)?;
        let origin = table.origin(row.weight, builder);
        table.tally.keep();
        builder.triple(subject, relation, object, origin).map_err(Refused::Keep)
    }

    fn entity(&mut self, id: &str, role: Role, builder: &mut Builder) -> Result<DraftEntity, Refused> {
        let id = id.trim();
        if !self.entities.contains_key(id) {
            check(id, role, &self.entity_names)?;
            let end = End { draft: self.draft(id, builder), subject: false, object: false };
            self.entities.insert(id.to_owned(), end);
        }
        let Some(end) = self.entities.get_mut(id) else {
            return Err(refused(id, role, "an id".to_owned()));
        };
        end.subject |= role == Role::Subject;
        end.object |= role == Role::Object;
        Ok(end.draft)
    }

    /// A new entity with its texts.
    fn draft(&mut self, id: &str, builder: &mut Builder) -> DraftEntity {
        let (options, terms) = (self.options, self.terms);
        let key = options.key(id);
        let (text, definition) = self.entity_names.take(id);
        let entity = match text {
            Some(text) => {
                let entity = builder.entity(&options.name, &key, text);
                builder.term(entity, TermKind::Preferred, text, terms);
                builder.offer(text, &key, text, OfferKind::Preferred);
                entity
            }
            None => builder.entity(&options.name, &key, &words(id)),
        };
        if let Some(definition) = definition {
            builder.term(entity, TermKind::Definition, definition, terms);
        }
        if let Some(level) = options.level {
            builder.set_level(entity, level);
        }
        entity
    }

    fn relation(&mut self, id: &str, builder: &mut Builder) -> Result<DraftRelation, Refused> {
        let id = id.trim();
        if let Some(used) = self.relations.get_mut(id) {
            used.rows += 1;
            return Ok(used.draft);
        }
        check(id, Role::Relation, &self.relation_names)?;
        let (text, _) = self.relation_names.take(id);
        let text = text.map_or_else(|| words(id), str::to_owned);
        let draft = builder.relation(&self.options.name, id, &text);
        self.relations.insert(id.to_owned(), Used { draft, key: id.to_owned(), rows: 1 });
        Ok(draft)
    }

    /// What was read.
    #[must_use]
    pub fn finish(self, label: &Path) -> Stated {
        let count = |end: fn(&End) -> bool| self.entities.values().filter(|other| end(other)).count() as u64;
        let (subjects, objects) = (count(|end| end.subject), count(|end| end.object));
        let without_text = [self.entity_names.taken_without_text(), self.relation_names.taken_without_text()];
        let relations = self.relations.into_values().map(|used| (used.key, used.rows));
        let relations: BTreeMap<String, u64> = relations.collect();
        let supporting = self.entity_names.settle().chain(self.relation_names.settle());
        let funnel = Funnel {
            source: self.options.name.clone(),
            triples: together(&self.tables, label),
            supporting: supporting.collect(),
            subjects,
            objects,
            relations,
        };
        let [entities_without_text, relations_without_text] = without_text;
        Stated { funnel, tables: self.tables, entities_without_text, relations_without_text }
    }
}

/// The sum of all tables, under the name of the one or of the folder.
fn together(tables: &[Tally], label: &Path) -> Tally {
    if let [only] = tables {
        return only.clone();
    }
    let mut sum = Tally::new(label, &[]);
    for table in tables {
        sum.bytes += table.bytes;
        sum.lines += table.lines;
        sum.read += table.read;
        sum.kept += table.kept;
    }
    sum
}

fn check(id: &str, role: Role, names: &Names) -> Result<(), Refused> {
    if id.is_empty() {
        return Err(refused(id, role, "an id".to_owned()));
    }
    if id.contains(['\n', '\r']) {
        return Err(refused(id, role, "an id without line break (a quote may be missing)".to_owned()));
    }
    match names.lacks(id) {
        Some(list) => Err(refused(id, role, format!("an id that is listed in {list}"))),
        None => Ok(()),
    }
}

fn refused(id: &str, role: Role, expected: String) -> Refused {
    Refused::Field { role, found: start(id), expected }
}

fn words(id: &str) -> String {
    id.replace('_', " ")
}

fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|weight: &f64| weight.is_finite())
}

impl Table {
    fn new(label: &Path, part: Option<&str>, options: &Options) -> Self {
        let (source, vocabulary, level) = (options.name.clone(), part.map(str::to_owned), options.level);
        let origin = Origin { source, vocabulary, weight: None, count: None, level };
        Self { tally: Tally::new(label, &[]), origin, unweighted: None }
    }

    fn origin(&mut self, weight: Option<f64>, builder: &mut Builder) -> DraftOrigin {
        match weight {
            Some(_) => builder.origin(Origin { weight, ..self.origin.clone() }),
            None => *self.unweighted.get_or_insert_with(|| builder.origin(self.origin.clone())),
        }
    }
}

/// Where the columns of a table of text are.
struct Places {
    ids: [usize; 3],
    weight: Option<usize>,
}

impl Places {
    fn new<R: BufRead>(layout: &Layout, records: &mut Records<'_, R>) -> Result<Self, Error> {
        let columns = &layout.columns;
        let mut place = |column: &Column, role: Role| records.column(column, role.name());
        let ids = [
            place(&columns.subject, Role::Subject)?,
            place(&columns.relation, Role::Relation)?,
            place(&columns.object, Role::Object)?,
        ];
        let weight = columns.weight.as_ref().map(|column| place(column, Role::Weight)).transpose()?;
        Ok(Self { ids, weight })
    }

    fn of(&self, role: Role) -> usize {
        let [subject, relation, object] = self.ids;
        match role {
            Role::Subject => subject,
            Role::Relation => relation,
            Role::Object => object,
            Role::Weight => self.weight.unwrap_or_default(),
        }
    }
}
