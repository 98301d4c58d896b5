//! Stating the triples of one source, whatever file they come from.

use std::collections::{BTreeMap, HashMap};
use std::io::BufRead;
use std::path::Path;

use base::funnel::Tally;
use base::read::ReadError;

use ::parquet::file::reader::ChunkReader;

use super::columns::Places;
use super::layout::{Layout, TextLayout};
use super::names::{Form, NameFiles, Names, Things};
use super::parquet::{self, Fields};
use super::row::{Refused, Role, Row, check};
use super::tables::{Table, together};
use super::{Options, Stated};
use crate::source::active::INACTIVE;
use crate::source::code::{is_code, words};
use crate::source::files::Input;
use crate::source::funnel::Funnel;
use crate::source::naming::{Coded, Naming, Untexted};
use crate::source::not_kept;
use crate::source::separated::{NoRow, Record, Records};
use crate::source::unfit::Unfit;
use crate::table::builder::{DraftEntity, DraftRelation, DraftTermOrigin, OfferKind};
use crate::table::{Builder, TermKind, TermOrigin};
use crate::unmet;

/// A source while its files are read: first those of names, then the tables.
#[derive(Debug)]
pub struct Statements<'o> {
    name: &'o str,
    options: &'o Options,
    entity_names: NameFiles,
    relation_names: NameFiles,
    /// Places in `ends` and `used`.
    entities: HashMap<String, usize>,
    relations: HashMap<String, usize>,
    ends: Vec<End>,
    used: Vec<Used>,
    /// Those without a text, if others have one.
    untexted: Vec<(DraftEntity, String)>,
    untexted_relations: Vec<String>,
    coded: Coded,
    terms: DraftTermOrigin,
    tables: Vec<Tally>,
    /// What is told of first lines.
    guessed: Vec<String>,
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
pub(super) const NEGATIVE: &str = "published_negative";

impl<'o> Statements<'o> {
    /// Begins the source `name`.
    #[must_use]
    pub fn new(name: &'o str, options: &'o Options, builder: &mut Builder) -> Self {
        for [one, other] in &options.inverses {
            builder.declare_inverse(one, other);
        }
        let source = name.to_owned();
        let terms = TermOrigin { source, vocabulary: None, language: None, level: options.level };
        Self {
            name,
            options,
            entity_names: NameFiles::default(),
            relation_names: NameFiles::default(),
            entities: HashMap::new(),
            relations: HashMap::new(),
            ends: Vec::new(),
            used: Vec::new(),
            untexted: Vec::new(),
            untexted_relations: Vec::new(),
            coded: Coded::default(),
            terms: builder.term_origin(terms),
            tables: Vec::new(),
            guessed: Vec::new(),
        }
    }

    /// Reads a file of names: a list of ids, one a line, or texts or definitions, `id<TAB>text` a line or as `layout` says.
    ///
    /// # Errors
    /// When the file is damaged or of another layout, or an id has two texts.
    pub fn names<R: BufRead>(
        &mut self,
        of: Names,
        file: Input<R>,
        layout: Option<&TextLayout>,
    ) -> Result<(), ReadError> {
        let (unfit, form) = (self.options.max_unfit, layout.map_or(Form::Plain, Form::Laid));
        match of {
            Names::List(things) => self.names_of(things).list(file, unfit),
            Names::Texts(things) => self.names_of(things).texts(file, form, unfit),
            Names::Definitions => self.entity_names.definitions(file, form, unfit),
        }
    }

    fn names_of(&mut self, things: Things) -> &mut NameFiles {
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
        file: Input<R>,
        layout: &Layout,
        part: Option<&str>,
        builder: &mut Builder,
    ) -> Result<(), ReadError> {
        let Input { reader, label } = file;
        let mut records = Records::new(reader, &label, layout.shape())?;
        let columns = Places::new(layout, &mut records)?;
        self.guessed.extend(records.guessed());
        self.rows(records, &columns, self.begin(&label, part), builder)
    }

    /// Reads a part of an official split: three columns separated by tabs and no header. Where there is a fourth it says whether a row is a
    /// fact (1) or is published as a negative (-1), which is then kept beside the facts.
    ///
    /// # Errors
    /// When the table is damaged or of another layout, or more rows do not fit than may.
    pub fn part<R: BufRead>(
        &mut self,
        file: Input<R>,
        part: &str,
        builder: &mut Builder,
    ) -> Result<(), ReadError> {
        let Input { reader, label } = file;
        let mut records = Records::new(reader, &label, Layout::three().shape())?;
        let columns = Places::of_part(&mut records)?;
        self.rows(records, &columns, self.begin(&label, Some(part)), builder)
    }

    fn begin(&self, label: &Path, part: Option<&str>) -> Table {
        Table::new(label, part, self.name, self.options.level)
    }

    fn rows<R: BufRead>(
        &mut self,
        mut records: Records<'_, R>,
        columns: &Places,
        mut table: Table,
        builder: &mut Builder,
    ) -> Result<(), ReadError> {
        let mut unfit = Unfit::new(self.options.max_unfit);
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
                        Ok(false) => self.record(&record, columns, &mut table, builder),
                        Err(error) => Err(error),
                    }
                }
                Err(error) => Err(error),
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
        table: &mut Table,
        builder: &mut Builder,
    ) -> Result<(), NoRow> {
        let row = columns.row(record)?;
        let stated = match columns.is_negative(record)? {
            true => self.deny(&row, table, builder),
            false => self.state(&row, table, builder),
        };
        stated.map_err(|error| match error {
            Refused::Keep(error) => not_kept(self.name, &error).into(),
            Refused::Field(wrong) => columns.wrong(record, &wrong),
        })
    }

    /// Reads a Parquet file, batch by batch. Its tally has no lines; `part` is as in [`Self::table`].
    ///
    /// # Errors
    /// When the file cannot be decoded or lacks a column, or more rows do not fit than may.
    pub fn parquet<C: ChunkReader + 'static>(
        &mut self,
        file: Input<C>,
        fields: &Fields,
        part: Option<&str>,
        builder: &mut Builder,
    ) -> Result<(), ReadError> {
        let label = file.label.clone();
        let mut table = self.begin(&label, part);
        table.tally.bytes = file.reader.len();
        let mut unfit = Unfit::new(self.options.max_unfit);
        let unused = parquet::rows(file, fields, |number, row| {
            let stated = match row {
                Ok(None) => {
                    table.tally.drop(INACTIVE);
                    return Ok(());
                }
                Ok(Some(row)) => self.state(&row, &mut table, builder),
                Err(wrong) => Err(Refused::Field(wrong)),
            };
            match stated {
                Ok(()) => Ok(()),
                Err(Refused::Keep(error)) => Err(not_kept(self.name, &error)),
                Err(Refused::Field(wrong)) => {
                    unfit.drop(fields.refused(&label, number, &wrong), &mut table.tally)
                }
            }
        })?;
        table.tally.columns_not_used = unused;
        unfit.settle(&table.tally)?;
        self.tables.push(table.tally);
        Ok(())
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
        let key = options.key(self.name, id);
        let named = self.entity_names.has_texts();
        let (text, definition) = self.entity_names.take(id);
        let entity = match text {
            Some(text) => {
                let entity = builder.entity(self.name, &key, text);
                builder.term(entity, TermKind::Preferred, text, terms);
                builder.offer(text, &key, text, OfferKind::Preferred);
                entity
            }
            None => {
                let entity = builder.nameless(self.name, &key, &words(id));
                if named {
                    self.untexted.push((entity, id.to_owned()));
                } else if is_code(id) {
                    self.coded.entities.push((entity, id.to_owned()));
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
        match (named, &text) {
            (true, None) => self.untexted_relations.push(id.to_owned()),
            (false, None) if is_code(id) => self.coded.relations.push(id.to_owned()),
            _ => {}
        }
        let text = text.unwrap_or_else(|| words(id));
        let draft = builder.relation(self.name, id, &text);
        self.used.push(Used { draft, key: id.to_owned(), rows: 0 });
        self.relations.insert(id.to_owned(), self.used.len() - 1);
        self.used.len() - 1
    }

    /// What was read.
    #[must_use]
    pub fn finish(self, label: impl AsRef<Path>) -> Stated {
        let count = |end: fn(&End) -> bool| self.ends.iter().filter(|other| end(other)).count() as u64;
        let (subjects, objects) = (count(|end| end.subject), count(|end| end.object));
        let warnings = self.warnings();
        let without_text = [self.entity_names.taken_without_text(), self.relation_names.taken_without_text()];
        let naming = Naming {
            source: self.name.to_owned(),
            allowed: self.options.allowed(),
            entities: Untexted { without: self.untexted, all: self.ends.len() as u64 },
            relations: Untexted { without: self.untexted_relations, all: self.used.len() as u64 },
            unused: self.entity_names.unused().chain(self.relation_names.unused()).collect(),
            coded: self.coded,
        };
        let relations: BTreeMap<String, u64> =
            self.used.into_iter().map(|used| (used.key, used.rows)).collect();
        let supporting = self.entity_names.settle().chain(self.relation_names.settle());
        let funnel = Funnel {
            source: self.name.to_owned(),
            triples: together(&self.tables, label.as_ref()),
            supporting: supporting.collect(),
            subjects,
            objects,
            relations,
        };
        let [entities_without_text, relations_without_text] = without_text;
        let tables = self.tables;
        Stated { funnel, tables, entities_without_text, relations_without_text, naming, warnings }
    }

    fn warnings(&self) -> Vec<String> {
        let texts = self.entity_names.guessed().chain(self.relation_names.guessed());
        let guessed = unmet::first_lines(self.name, texts.chain(&self.guessed));
        let [ids, relations] = [&self.entities, &self.relations].map(|of| of.keys().map(String::as_str));
        let curies = self.options.unmet_curies(self.name, ids.clone());
        let spelt = [
            self.entity_names.spellings(self.name, "entities", ids),
            self.relation_names.spellings(self.name, "relations", relations),
        ];
        guessed.into_iter().chain(curies).chain(spelt.into_iter().flatten()).collect()
    }
}
