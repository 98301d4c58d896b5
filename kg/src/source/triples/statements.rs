//! Stating the triples of one source, whatever file they come from.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufRead};
use std::path::Path;

use base::funnel::Tally;

use ::parquet::file::reader::ChunkReader;

use super::columns::Places;
use super::fit::{INACTIVE, Unfit};
use super::layout::{Layout, TextLayout};
use super::names::{Form, Names};
use super::parquet::{self, Fields};
use super::row::{Refused, Role, Row, check};
use super::tables::{Table, together};
use super::{Error, Options, Stated};
use crate::source::funnel::Funnel;
use crate::source::naming::{Naming, Untexted};
use crate::source::separated::{Record, Records};
use crate::table::builder::{DraftEntity, DraftRelation, DraftTermOrigin, OfferKind};
use crate::table::{Builder, TermKind, TermOrigin};

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
    /// Places in `ends` and `used`.
    entities: HashMap<String, usize>,
    relations: HashMap<String, usize>,
    ends: Vec<End>,
    used: Vec<Used>,
    /// Those without a text, if others have one.
    untexted: Vec<(DraftEntity, String)>,
    untexted_relations: Vec<String>,
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

/// Reason for rows that their publisher labels as false: no facts, but kept beside them.
pub const NEGATIVE: &str = "published_negative";

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
            ends: Vec::new(),
            used: Vec::new(),
            untexted: Vec::new(),
            untexted_relations: Vec::new(),
            terms: builder.term_origin(terms),
            tables: Vec::new(),
        })
    }

    /// Reads the list of all ids, one a line; a triple with another id then does not fit.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn list<R: BufRead>(&mut self, things: Things, file: (R, &Path)) -> Result<(), Error> {
        let unfit = self.options.allowed.max_unfit;
        self.names(things).list(file, unfit)
    }

    /// Reads texts, `id<TAB>text` a line or as `layout` says.
    ///
    /// # Errors
    /// When the file is damaged or of another layout, or an id has two texts.
    pub fn texts<R: BufRead>(
        &mut self,
        things: Things,
        file: (R, &Path),
        layout: Option<&TextLayout>,
    ) -> Result<(), Error> {
        let unfit = self.options.allowed.max_unfit;
        self.names(things).texts(file, layout.map_or(Form::Plain, Form::Laid), unfit)
    }

    /// Reads definitions of entities, `id<TAB>text` a line or as `layout` says.
    ///
    /// # Errors
    /// When the file is damaged or of another layout, or an id has two definitions.
    pub fn definitions<R: BufRead>(
        &mut self,
        file: (R, &Path),
        layout: Option<&TextLayout>,
    ) -> Result<(), Error> {
        let unfit = self.options.allowed.max_unfit;
        self.entity_names.definitions(file, layout.map_or(Form::Plain, Form::Laid), unfit)
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
    /// When the table is damaged or of another layout, or more rows do not fit than may.
    pub fn table<R: BufRead>(
        &mut self,
        (reader, label): (R, &Path),
        layout: &Layout,
        part: Option<&str>,
        builder: &mut Builder,
    ) -> Result<(), Error> {
        let mut records = Records::new((reader, label), layout.shape())?;
        let columns = Places::new(layout, &mut records)?;
        self.rows(records, &columns, Table::new(label, part, self.options), builder)
    }

    /// Reads a part of an official split: three columns separated by tabs and no header. Where there is a fourth it says whether a row is a
    /// fact (1) or is published as a negative (-1), which is then kept beside the facts.
    ///
    /// # Errors
    /// When the table is damaged or of another layout, or more rows do not fit than may.
    pub fn part<R: BufRead>(
        &mut self,
        (reader, label): (R, &Path),
        part: &str,
        builder: &mut Builder,
    ) -> Result<(), Error> {
        let mut records = Records::new((reader, label), Layout::three().shape())?;
        let columns = Places::of_part(&mut records)?;
        self.rows(records, &columns, Table::new(label, Some(part), self.options), builder)
    }

    fn rows<R: BufRead>(
        &mut self,
        mut records: Records<'_, R>,
        columns: &Places,
        mut table: Table,
        builder: &mut Builder,
    ) -> Result<(), Error> {
        let mut unfit = Unfit::new(self.options.allowed.max_unfit);
        let mut first = true;
        loop {
            let stated = match records.next_record() {
                Ok(None) => break,
                Ok(Some(record)) => {
                    if std::mem::take(&mut first) {
                        columns.look_at_first(&record)?;
                    }
                    columns.look(&record)?;
                    match columns.active.leaves_out(&record) {
                        Ok(true) => {
                            table.tally.drop(INACTIVE);
                            continue;
                        }
                        Ok(false) => self.record(&record, columns, (&mut table, &mut *builder)),
                        Err(error) => Err(error),
                    }
                }
                Err(error) => Err(error.into()),
            };
            if let Err(error) = stated {
                unfit.drop(error, &mut table.tally)?;
            }
        }
        records.account(&mut table.tally);
        table.tally.columns_not_used = records.unused(&columns.used());
        unfit.settle(&table.tally)?;
        self.tables.push(table.tally);
        Ok(())
    }

    /// States one row of a table of text, or keeps it as a negative.
    fn record(
        &mut self,
        record: &Record<'_>,
        columns: &Places,
        (table, builder): (&mut Table, &mut Builder),
    ) -> Result<(), Error> {
        let row = columns.row(record)?;
        let stated = match columns.is_negative(record)? {
            true => self.deny(&row, table, builder),
            false => self.state(&row, table, builder),
        };
        stated.map_err(|error| match error {
            Refused::Keep(source) => self.full(source),
            Refused::Field { role, found, expected } => columns.wrong(record, role, (found, expected)),
        })
    }

    /// Reads a Parquet file, batch by batch. Its tally has no lines; `part` is as in [`Self::table`].
    ///
    /// # Errors
    /// When the file cannot be decoded or lacks a column, or more rows do not fit than may.
    pub fn parquet<C: ChunkReader + 'static>(
        &mut self,
        (chunks, label): (C, &Path),
        fields: &Fields,
        part: Option<&str>,
        builder: &mut Builder,
    ) -> Result<(), Error> {
        let mut table = Table::new(label, part, self.options);
        table.tally.bytes = chunks.len();
        let mut unfit = Unfit::new(self.options.allowed.max_unfit);
        let unused = parquet::rows((chunks, label), fields, |number, row| -> Result<(), Error> {
            let stated = match row {
                Ok(None) => {
                    table.tally.drop(INACTIVE);
                    return Ok(());
                }
                Ok(Some(row)) => self.state(&row, &mut table, builder),
                Err((role, found, expected)) => Err(Refused::Field { role, found, expected }),
            };
            match stated {
                Ok(()) => Ok(()),
                Err(Refused::Keep(source)) => Err(self.full(source)),
                Err(Refused::Field { role, found, expected }) => {
                    let error = fields.refused((label, number), role, (found, expected));
                    unfit.drop(error.into(), &mut table.tally)
                }
            }
        })?;
        table.tally.columns_not_used = unused;
        unfit.settle(&table.tally)?;
        self.tables.push(table.tally);
        Ok(())
    }

    fn full(&self, source: io::Error) -> Error {
        Error::Keep { name: self.options.name.clone(), source }
    }

    /// States one triple. A row that does not fit leaves nothing behind.
    fn state(&mut self, row: &Row<'_>, table: &mut Table, builder: &mut Builder) -> Result<(), Refused> {
        let [subject, relation, object] = self.places(row, builder)?;
        self.ends[subject].subject = true;
        self.used[relation].rows += 1;
        self.ends[object].object = true;
        let [subject, object] = [subject, object].map(|place| self.ends[place].draft);
        let relation = self.used[relation].draft;
        let origin = table.origin(row.weight, builder);
        table.tally.keep();
        builder.triple(subject, relation, object, origin).map_err(Refused::Keep)
    }

    /// Keeps a triple that is published as a negative.
    fn deny(&mut self, row: &Row<'_>, table: &mut Table, builder: &mut Builder) -> Result<(), Refused> {
        let [subject, relation, object] = self.places(row, builder)?;
        let [subject, object] = [subject, object].map(|place| self.ends[place].draft);
        let relation = self.used[relation].draft;
        let origin = table.origin(row.weight, builder);
        table.tally.drop(NEGATIVE);
        builder.negative(subject, relation, object, origin).map_err(Refused::Keep)
    }

    /// The places of a row's subject, relation and object, made with their texts where they are new. Of a row that does not fit none is made.
    fn places(&mut self, row: &Row<'_>, builder: &mut Builder) -> Result<[usize; 3], Refused> {
        let [subject, relation, object] = [row.subject, row.relation, row.object].map(str::trim);
        let [known_subject, known_object] = [subject, object].map(|id| self.entities.get(id).copied());
        let known_relation = self.relations.get(relation).copied();
        if known_subject.is_none() {
            check(subject, Role::Subject, &self.entity_names)?;
        }
        if known_relation.is_none() {
            check(relation, Role::Relation, &self.relation_names)?;
        }
        if known_object.is_none() {
            check(object, Role::Object, &self.entity_names)?;
        }
        let subject = known_subject.unwrap_or_else(|| self.draft(subject, builder));
        let relation = known_relation.unwrap_or_else(|| self.draft_relation(relation, builder));
        // It may be the subject that was just met.
        let known_object = known_object.or_else(|| self.entities.get(object).copied());
        let object = known_object.unwrap_or_else(|| self.draft(object, builder));
        Ok([subject, relation, object])
    }

    /// The place of a new entity, made with its texts.
    fn draft(&mut self, id: &str, builder: &mut Builder) -> usize {
        let (options, terms) = (self.options, self.terms);
        let key = options.key(id);
        let named = self.entity_names.has_texts();
        let (text, definition) = self.entity_names.take(id);
        let entity = match text {
            Some(text) => {
                let entity = builder.entity(&options.name, &key, text);
                builder.term(entity, TermKind::Preferred, text, terms);
                builder.offer(text, &key, text, OfferKind::Preferred);
                entity
            }
            None => {
                let entity = builder.nameless(&options.name, &key, &words(id));
                if named {
                    self.untexted.push((entity, id.to_owned()));
                }
                entity
            }
        };
        if let Some(definition) = definition {
            builder.term(entity, TermKind::Definition, definition, terms);
        }
        if let Some(level) = options.level {
            builder.set_level(entity, level);
        }
        self.ends.push(End { draft: entity, subject: false, object: false });
        self.entities.insert(id.to_owned(), self.ends.len() - 1);
        self.ends.len() - 1
    }

    /// The place of a new relation.
    fn draft_relation(&mut self, id: &str, builder: &mut Builder) -> usize {
        let named = self.relation_names.has_texts();
        let text = self.relation_names.take(id).0.map(str::to_owned);
        if named && text.is_none() {
            self.untexted_relations.push(id.to_owned());
        }
        let text = text.unwrap_or_else(|| words(id));
        let draft = builder.relation(&self.options.name, id, &text);
        self.used.push(Used { draft, key: id.to_owned(), rows: 0 });
        self.relations.insert(id.to_owned(), self.used.len() - 1);
        self.used.len() - 1
    }

    /// What was read.
    #[must_use]
    pub fn finish(self, label: &Path) -> Stated {
        let count = |end: fn(&End) -> bool| self.ends.iter().filter(|other| end(other)).count() as u64;
        let (subjects, objects) = (count(|end| end.subject), count(|end| end.object));
        let without_text = [self.entity_names.taken_without_text(), self.relation_names.taken_without_text()];
        let naming = Naming {
            source: self.options.name.clone(),
            allowed: self.options.allowed,
            entities: Untexted { without: self.untexted, all: self.ends.len() as u64 },
            relations: Untexted { without: self.untexted_relations, all: self.used.len() as u64 },
            unused: self.entity_names.unused().chain(self.relation_names.unused()).collect(),
        };
        let relations: BTreeMap<String, u64> =
            self.used.into_iter().map(|used| (used.key, used.rows)).collect();
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
        Stated { funnel, tables: self.tables, entities_without_text, relations_without_text, naming }
    }
}

fn words(id: &str) -> String {
    id.replace('_', " ")
}
