//! Files of ids, texts and definitions beside tables of triples.
//!
//! One id a line, or `id<TAB>text`, or columns as a layout says. A line that repeats another is counted; an id with two texts is an error.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::PathBuf;

use base::funnel::{BLANK_LINES, Tally};
use base::line::Place;
use base::read::ReadError;
use base::share::Share;

use super::fit::{NO_NAMES, NO_QUOTES, TEXT, TWO_COLUMNS, is_header};
use super::layout::{TextColumns, TextLayout};
use super::start;
use crate::canon::fold::tidy;
use crate::source::active::{Activity, INACTIVE};
use crate::source::code::is_code;
use crate::source::files::Input;
use crate::source::naming::Unused;
use crate::source::separated::{
    Column, FirstLine, NoRow, OTHER_COLUMN, OTHER_LAYOUT, Quotes, Record, Records, Separator, Shape,
};
use crate::source::unfit::Unfit;
use crate::unmet;

const REPEATED: &str = "repeated";
const NO_TEXT: &str = "no_text";
const IN_NO_TRIPLE: &str = "in_no_triple";

/// What names are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Things {
    /// Subjects and objects.
    Entities,
    /// Relations.
    Relations,
}

/// A file of names, and of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// All ids, one a line; a triple with another id then does not fit.
    List(Things),
    /// A text for each id.
    Texts(Things),
    /// A definition for each entity.
    Definitions,
}

/// The files of one kind of things.
#[derive(Debug, Default)]
pub(super) struct NameFiles {
    list: Option<Book>,
    texts: Option<Book>,
    definitions: Option<Book>,
    taken_without_text: u64,
}

/// One file.
#[derive(Debug)]
struct Book {
    file: PathBuf,
    entries: HashMap<String, Entry>,
    tally: Tally,
    /// What is told of its first line.
    guessed: Option<String>,
}

#[derive(Debug)]
struct Entry {
    text: String,
    line: u64,
    taken: bool,
}

/// How a file is read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form<'l> {
    /// An id a line.
    Ids,
    /// An id, a tab and a text a line.
    Plain,
    /// As it is laid out.
    Laid(&'l TextLayout),
}

impl Form<'_> {
    fn shape(self) -> Shape {
        let (separator, first_line) = (Separator::Tab, FirstLine::Row);
        match self {
            // Ids are listed as they stand in the triples.
            Form::Ids => Shape { separator, quotes: Some(Quotes::None), first_line },
            Form::Plain => Shape { separator, quotes: None, first_line },
            Form::Laid(layout) => layout.shape(),
        }
    }
}

/// Where the columns of a file are.
struct Columns {
    id: usize,
    text: Option<usize>,
    active: Activity,
    /// How many there are, if nothing says which is which.
    all: Option<usize>,
}

impl Columns {
    fn new<R: BufRead>(form: Form<'_>, records: &mut Records<'_, R>) -> Result<Self, ReadError> {
        let [first, second] = [1, 2].map(Column::Position);
        let plain = TextColumns { id: first, text: second, active: None };
        let (columns, inactive, all) = match form {
            Form::Ids | Form::Plain => {
                // How many there are is then told in other words.
                records.any_width();
                (&plain, None, Some(if matches!(form, Form::Ids) { 1 } else { 2 }))
            }
            Form::Laid(layout) => (&layout.columns, layout.inactive, None),
        };
        let [id, text] = match form {
            Form::Ids | Form::Plain => ["id", "text"],
            Form::Laid(_) => ["id (`layout.columns.id`)", "text (`layout.columns.text`)"],
        };
        let id = records.column(&columns.id, id)?;
        let text = match form {
            Form::Ids => None,
            Form::Plain | Form::Laid(_) => Some(records.column(&columns.text, text)?),
        };
        let active = Activity::new(records, columns.active.as_ref(), inactive)?;
        Ok(Self { id, text, active, all })
    }
}

impl NameFiles {
    /// Reads the list of all ids.
    pub(super) fn list<R: BufRead>(&mut self, file: Input<R>, unfit: Share) -> Result<(), ReadError> {
        self.list = Some(Book::read(file, Form::Ids, unfit)?);
        Ok(())
    }

    pub(super) fn texts<R: BufRead>(
        &mut self,
        file: Input<R>,
        form: Form<'_>,
        unfit: Share,
    ) -> Result<(), ReadError> {
        self.texts = Some(Book::read(file, form, unfit)?);
        Ok(())
    }

    pub(super) fn definitions<R: BufRead>(
        &mut self,
        file: Input<R>,
        form: Form<'_>,
        unfit: Share,
    ) -> Result<(), ReadError> {
        self.definitions = Some(Book::read(file, form, unfit)?);
        Ok(())
    }

    /// The name of the list, if there is one and it lacks the id.
    pub(super) fn lacks(&self, id: &str) -> Option<&str> {
        let list = self.list.as_ref().filter(|list| !list.entries.contains_key(id))?;
        Some(&list.tally.file)
    }

    /// What is told of spellings of one name, where ids are the names.
    pub(super) fn spellings<'n>(
        &self,
        source: &str,
        things: &str,
        ids: impl Iterator<Item = &'n str>,
    ) -> Option<String> {
        unmet::spellings(source, things, ids.filter(|id| !self.has_texts() && !is_code(id)))
    }

    /// Whether ids have texts, so that one without would be called by its id though others are not.
    pub(super) fn has_texts(&self) -> bool {
        self.texts.is_some()
    }

    /// The text and the definition of an id that a triple has, asked once for each.
    pub(super) fn take(&mut self, id: &str) -> (Option<&str>, Option<&str>) {
        if let Some(list) = &mut self.list {
            list.take(id);
        }
        let text = self.texts.as_mut().and_then(|book| book.take(id));
        self.taken_without_text += u64::from(text.is_none());
        (text, self.definitions.as_mut().and_then(|book| book.take(id)))
    }

    /// How many ids were taken that have no text.
    pub(super) fn taken_without_text(&self) -> u64 {
        self.taken_without_text
    }

    /// The texts that nothing asked for, of ids that the list does not have either.
    pub(super) fn unused(&self) -> impl Iterator<Item = Unused> {
        let books = [&self.texts, &self.definitions].into_iter().flatten();
        books.filter_map(|book| book.unused(self.list.as_ref()))
    }

    /// What is told of first lines.
    pub(super) fn guessed(&self) -> impl Iterator<Item = &String> {
        let books = [&self.texts, &self.definitions].into_iter().flatten();
        books.filter_map(|book| book.guessed.as_ref())
    }

    /// What became of the files' lines.
    pub(super) fn settle(self) -> impl Iterator<Item = Tally> {
        [self.list, self.texts, self.definitions].into_iter().flatten().map(Book::settle)
    }
}

impl Book {
    fn read<R: BufRead>(file: Input<R>, form: Form<'_>, unfit: Share) -> Result<Self, ReadError> {
        let Input { reader, label } = file;
        let reasons: &[&'static str] = match form {
            Form::Ids => &[BLANK_LINES, REPEATED, IN_NO_TRIPLE],
            Form::Plain | Form::Laid(_) => &[BLANK_LINES, REPEATED, NO_TEXT, IN_NO_TRIPLE],
        };
        let mut records = Records::new(reader, &label, form.shape())?;
        let columns = Columns::new(form, &mut records)?;
        let mut unfit = Unfit::new(unfit);
        let (file, entries, tally) = (label.clone(), HashMap::new(), Tally::new(&label, reasons));
        let mut book = Self { file, entries, tally, guessed: records.guessed() };
        loop {
            let entered = match records.next_record() {
                Ok(None) => break,
                Ok(Some(record)) => book.enter(&record, &columns),
                Err(error) => Err(error),
            };
            if let Err(error) = entered {
                unfit.drop(error, &mut book.tally)?;
            }
        }
        records.account(&mut book.tally);
        // Entries are counted when it is known which triples have them.
        let mut all = book.tally.clone();
        all.read += book.entries.len() as u64;
        unfit.settle(&all)?;
        Ok(book)
    }

    fn enter(&mut self, record: &Record<'_>, columns: &Columns) -> Result<(), NoRow> {
        let place = |column| record.place(column);
        let at_id = |found| {
            let at = place(Some((columns.id, "id")));
            Err(NoRow::Unfit(ReadError::text(at, found, "one id", OTHER_COLUMN)))
        };
        let laid = |column, found: &str, expected| {
            Err(NoRow::End(ReadError::text(place(column), found, expected, OTHER_LAYOUT)))
        };
        match (columns.all, record.width()) {
            (Some(1), found) if found > 1 => return at_id(record.line()),
            (Some(2), 1) => {
                let remedy = "fix the line, or say in the config how the file is laid out";
                let error = ReadError::new(place(None), "no tab", "an id, a tab and a text", remedy);
                return Err(NoRow::Unfit(error));
            }
            (Some(2), found) if found > 2 => return laid(None, record.line(), TWO_COLUMNS),
            _ => {}
        }
        if columns.active.leaves_out(record)? {
            self.tally.drop(INACTIVE);
            return Ok(());
        }
        let (id, text) = (record.field(columns.id).trim(), columns.text.map(|column| record.field(column)));
        if self.entries.is_empty() && is_header(&[id, text.unwrap_or_default()], &TEXT) {
            return laid(None, &[id, text.unwrap_or_default()].join(" "), NO_NAMES);
        }
        let wrapped = [Some((columns.id, "id")), columns.text.map(|text| (text, "text"))];
        if let Some((column, name)) =
            wrapped.into_iter().flatten().find(|(column, _)| record.is_wrapped(*column))
        {
            return laid(Some((column, name)), record.field(column), NO_QUOTES);
        }
        if id.is_empty() || id.contains(['\n', '\r']) {
            return at_id(id);
        }
        Ok(self.add(id, text.map(tidy), place(None))?)
    }

    fn add(&mut self, id: &str, text: Option<String>, place: Place) -> Result<(), ReadError> {
        if text.as_ref().is_some_and(String::is_empty) {
            self.tally.drop(NO_TEXT);
            return Ok(());
        }
        let text = text.unwrap_or_default();
        match self.entries.get(id) {
            None => {
                self.entries.insert(id.to_owned(), Entry { text, line: place.line, taken: false });
            }
            Some(before) if before.text == text => self.tally.drop(REPEATED),
            Some(before) => {
                let found = format!("{:?} has another text in line {}", start(id), before.line);
                return Err(ReadError::new(place, found, "one text for an id", "remove one of the lines"));
            }
        }
        Ok(())
    }

    fn take(&mut self, id: &str) -> Option<&str> {
        let entry = self.entries.get_mut(id)?;
        entry.taken = true;
        Some(&entry.text)
    }

    fn unused(&self, list: Option<&Book>) -> Option<Unused> {
        let listed = |id: &String| list.is_some_and(|list| list.entries.contains_key(id));
        let unused = || self.entries.iter().filter(|(id, entry)| !entry.taken && !listed(id));
        let (first, entry) = unused().min_by_key(|(_, entry)| entry.line)?;
        Some(Unused {
            file: self.file.clone(),
            id: start(first),
            line: entry.line,
            texts: unused().count() as u64,
            all: self.entries.len() as u64,
        })
    }

    fn settle(mut self) -> Tally {
        let all = self.entries.len() as u64;
        let taken = self.entries.values().filter(|entry| entry.taken).count() as u64;
        self.tally.read += all;
        self.tally.kept += taken;
        *self.tally.dropped.entry(IN_NO_TRIPLE).or_insert(0) += all - taken;
        self.tally
    }
}
