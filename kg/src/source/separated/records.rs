//! The rows of a table of text, one after the other in one buffer.

use std::io::BufRead;
use std::path::Path;

use base::bom::Unmarked;
use base::funnel::{BLANK_LINES, Tally};
use base::line::{self, Line, Lines, Place};
use base::newline::Newlines;
use base::read::ReadError;
use csv::StringRecord;

use super::{Column, FirstLine, NoRow, Quotes, REPEATED_HEADER, Shape, hint};

/// What else may be done about a line that lacks the name of a column.
const OR_ROW: &str = ", or, where that line is data, give columns by position with first_line = \"row\"";

/// Letters of a line that a message shows.
const LONGEST: usize = 60;

/// Reads rows into one buffer.
#[derive(Debug)]
pub(in crate::source) struct Records<'f, R> {
    rows: Rows<'f, R>,
    file: &'f Path,
    shape: Shape,
    names: Option<Vec<String>>,
    names_line: u64,
    width: Option<usize>,
    least: usize,
    any_width: bool,
    /// Whether columns were asked for by position, and by name.
    by_position: bool,
    by_name: bool,
    /// Rows of empty fields, and rows that repeat the names.
    blank: u64,
    repeated: u64,
}

#[derive(Debug)]
enum Rows<'f, R> {
    Bare(Bare<'f, R>),
    Quoted(Box<Quoted<R>>),
}

/// Lines whose quotes are letters.
#[derive(Debug)]
struct Bare<'f, R> {
    lines: Lines<'f, R>,
    separator: u8,
    said: Said,
    /// Where the text begins, after a BOM.
    start: usize,
    ends: Vec<usize>,
}

#[derive(Debug)]
struct Quoted<R> {
    csv: csv::Reader<Unmarked<Newlines<R>>>,
    record: StringRecord,
    line: u64,
}

/// Whether a layout says what quotes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::source) enum Said {
    Yes,
    No,
}

/// One row.
#[derive(Debug, Clone, Copy)]
pub(in crate::source) enum Record<'a> {
    /// A line, its text without BOM, where its fields end, and whether the layout says that quotes belong to them.
    Bare(Line<'a>, &'a str, &'a [usize], Said),
    /// A record, its first line, its file.
    Quoted(&'a StringRecord, u64, &'a Path),
}

impl<'a> Record<'a> {
    /// A field, from 0; empty if there is no such column.
    pub(in crate::source) fn field(&self, column: usize) -> &'a str {
        match *self {
            Record::Bare(_, text, ends, _) => field(text, ends, column),
            Record::Quoted(record, ..) => record.get(column).unwrap_or_default(),
        }
    }

    /// This row, or a column of it (from 0) by what it is read as.
    pub(in crate::source) fn place(&self, column: Option<(usize, &'static str)>) -> Place {
        let column = column.map(|(column, name)| (column + 1, name));
        match *self {
            Record::Bare(line, ..) => line.place(column),
            Record::Quoted(_, line, file) => Place { file: file.to_owned(), line, column },
        }
    }

    /// The row as it stands in a table without quoting.
    pub(in crate::source) fn line(&self) -> &'a str {
        match *self {
            Record::Bare(_, text, ..) => text,
            Record::Quoted(..) => "",
        }
    }

    /// Whether the quotes of a field look as if they only wrapped it, where nothing is quoted and the layout does not say so.
    pub(in crate::source) fn is_wrapped(&self, column: usize) -> bool {
        let field = match self {
            Record::Bare(.., Said::No) => self.field(column).trim(),
            Record::Bare(.., Said::Yes) | Record::Quoted(..) => return false,
        };
        let inner = field.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        inner.is_some_and(|inner| !inner.replace("\"\"", "").contains('"'))
    }

    pub(in crate::source) fn width(&self) -> usize {
        match self {
            Record::Bare(_, _, ends, _) => ends.len(),
            Record::Quoted(record, ..) => record.len(),
        }
    }

    fn fields(&self) -> impl Iterator<Item = &'a str> + Clone {
        let record = *self;
        (0..record.width()).map(move |column| record.field(column))
    }
}

fn field<'a>(text: &'a str, ends: &[usize], column: usize) -> &'a str {
    let start = if column == 0 { Some(0) } else { ends.get(column - 1).map(|end| end + 1) };
    let range = start.zip(ends.get(column).copied());
    range.and_then(|(start, end)| text.get(start..end)).unwrap_or_default()
}

impl<'f, R: BufRead> Records<'f, R> {
    /// Rows of `reader` after the names of its columns, if the first line has such.
    pub(in crate::source) fn new(reader: R, file: &'f Path, shape: Shape) -> Result<Self, ReadError> {
        let separator = shape.separator.byte();
        let rows = match shape.quotes() {
            Quotes::None => {
                let said = if shape.quotes.is_some() { Said::Yes } else { Said::No };
                Rows::Bare(Bare {
                    lines: Lines::new(reader, file),
                    separator,
                    said,
                    start: 0,
                    ends: Vec::new(),
                })
            }
            Quotes::Double => {
                let mut csv = csv::ReaderBuilder::new();
                let csv = csv.has_headers(false).flexible(true).delimiter(separator);
                let csv = csv.from_reader(Unmarked::new(Newlines::new(reader, separator)));
                Rows::Quoted(Box::new(Quoted { csv, record: StringRecord::new(), line: 0 }))
            }
        };
        let (names, names_line, width, least) = (None, 1, None, 0);
        let mut records = Self {
            rows,
            file,
            shape,
            names,
            names_line,
            width,
            least,
            any_width: false,
            by_position: false,
            by_name: false,
            blank: 0,
            repeated: 0,
        };
        if shape.first_line.has_names() {
            let row = if records.advance()? { Some(records.rows.row(file)) } else { None };
            let names = row.iter().flat_map(Record::fields).map(|name| name.trim().to_owned()).collect();
            let line = row.map_or(1, |row| row.place(None).line);
            (records.names, records.names_line) = (Some(names), line);
            records.width = records.names.as_ref().map(Vec::len);
        }
        Ok(records)
    }

    /// What the file is called.
    pub(in crate::source) fn file(&self) -> &'f Path {
        self.file
    }

    /// Lets rows have as many columns as they like.
    pub(in crate::source) fn any_width(&mut self) {
        self.any_width = true;
    }

    /// The place (from 0) of a column that is read as `role`.
    pub(in crate::source) fn column(&mut self, column: &Column, role: &str) -> Result<usize, ReadError> {
        match column {
            Column::Position(_) => self.by_position = true,
            Column::Name(_) => self.by_name = true,
        }
        self.has_line(role)?;
        let place = || Place { file: self.file.to_owned(), line: self.names_line, column: None };
        let asked = |expected: &str| {
            let asked = match column {
                Column::Position(position) => position.to_string(),
                Column::Name(name) => format!("{name:?}"),
            };
            let found = format!("the {role} is asked for as column {asked}");
            ReadError::new(place(), found, expected, "fix the config")
        };
        let found = match (column, &self.names) {
            (Column::Position(0), _) => return Err(asked("a number from 1")),
            (Column::Position(position), _) => position - 1,
            (Column::Name(_), None) => return Err(asked("its number, since the first line has no names")),
            (Column::Name(name), Some(names)) => {
                let mut places = (0..names.len()).filter(|&place| names.get(place) == Some(name));
                match (places.next(), places.next()) {
                    (Some(_), Some(_)) => return Err(asked("its number, since the name stands there twice")),
                    (Some(found), None) => found,
                    (None, _) => {
                        let hint = hint(&names.iter().map(String::as_str), 2, self.shape.separator);
                        let expected = format!("a column named {name:?}");
                        let or_row = if self.shape.first_line == FirstLine::Unsaid { OR_ROW } else { "" };
                        let remedy = format!("say in the config which column has the {role}{hint}{or_row}");
                        return Err(ReadError::text(place(), &names.join(" "), expected, remedy));
                    }
                }
            }
        };
        if self.width.is_some_and(|width| found >= width) {
            return Err(asked("no more than the first line has"));
        }
        self.least = self.least.max(found + 1);
        Ok(found)
    }

    /// Refuses a file without the line that would name its columns.
    fn has_line(&self, role: &str) -> Result<(), ReadError> {
        if self.names.as_ref().is_none_or(|names| !names.is_empty()) {
            return Ok(());
        }
        let expected = format!("a first line with the names of its columns, {role} among them");
        Err(ReadError::new(self.file, "the file is empty", expected, "fetch or write the file again"))
    }

    /// What is told of a first line that was taken for names of columns though none is asked for by its name and the config does not say what the line is.
    pub(in crate::source) fn guessed(&self) -> Option<String> {
        let is_guess = self.shape.first_line == FirstLine::Unsaid && self.by_position && !self.by_name;
        let names = self.names.as_ref().filter(|_| is_guess)?;
        let file = self.file.file_name().unwrap_or_default().to_string_lossy();
        let line: String = names.join(" ").chars().take(LONGEST).collect();
        Some(format!(
            "line {} of {file} is {line:?} and was taken for the names of its columns, though all columns are given by position: first_line = \"row\" reads it as data, first_line = \"names\" ends this warning",
            self.names_line
        ))
    }

    /// The place (from 0) of a column that files of this kind have, whatever a config says.
    pub(in crate::source) fn released(&self, name: &str, remedy: &str) -> Result<usize, ReadError> {
        self.has_line(name)?;
        let names = self.names.as_deref().unwrap_or_default();
        let mut places = (0..names.len()).filter(|&place| names[place] == name);
        match (places.next(), places.next()) {
            (Some(found), None) => Ok(found),
            _ => {
                let place = Place { file: self.file.to_owned(), line: self.names_line, column: None };
                let expected = format!("one column named {name:?}, between tabs");
                Err(ReadError::text(place, &names.join(" "), expected, remedy))
            }
        }
    }

    /// The place (from 0) of the first of `names` that a column has.
    pub(in crate::source) fn optional(&self, names: &[&str]) -> Option<usize> {
        let known = self.names.as_deref().unwrap_or_default();
        names.iter().find_map(|name| known.iter().position(|known| known == name))
    }

    /// The next row, or none at the end of the file. After a row of another width, the one behind it can be asked for.
    pub(in crate::source) fn next_record(&mut self) -> Result<Option<Record<'_>>, NoRow> {
        loop {
            if !self.advance()? {
                return Ok(None);
            }
            let row = self.rows.row(self.file);
            if self.names.as_ref().is_some_and(|names| row.fields().map(str::trim).eq(names)) {
                self.repeated += 1;
                continue;
            }
            break;
        }
        let row = self.rows.row(self.file);
        let (found, expected) = (row.width(), self.width.unwrap_or(self.least.max(row.width())));
        if found != expected && !self.any_width {
            let few = found < expected;
            let hint = if few { hint(&row.fields(), expected, self.shape.separator) } else { String::new() };
            return Err(NoRow::Unfit(ReadError::new(
                row.place(None),
                format!("{found} columns"),
                format!("{expected} as in the first line"),
                format!("fix the line, or say in the config what separates the columns{hint}"),
            )));
        }
        self.width = Some(found);
        Ok(Some(row))
    }

    /// The columns that are not among `used` (places from 0), by name, or by number where they have none. Of a table whose first line has no
    /// names it is known once that is read.
    pub(in crate::source) fn unused(&self, used: &[usize]) -> Vec<String> {
        let name =
            |place: usize| self.names.as_ref().and_then(|names| names.get(place)).filter(|n| !n.is_empty());
        let unused = (0..self.width.unwrap_or_default()).filter(|place| !used.contains(place));
        unused.map(|place| name(place).cloned().unwrap_or_else(|| format!("column {}", place + 1))).collect()
    }

    /// Reads on to a row that has anything in it.
    fn advance(&mut self) -> Result<bool, ReadError> {
        while self.rows.advance(self.file)? {
            if self.rows.row(self.file).fields().any(|field| !field.trim().is_empty()) {
                return Ok(true);
            }
            self.blank += 1;
        }
        Ok(false)
    }

    /// Notes what was read so far, rows aside, in the file's tally.
    pub(in crate::source) fn account(&self, tally: &mut Tally) {
        let (lines, bytes, blank) = match &self.rows {
            Rows::Bare(bare) => (bare.lines.lines(), bare.lines.bytes(), 0),
            Rows::Quoted(quoted) => {
                let read = quoted.csv.get_ref().get_ref();
                (read.lines_read(), read.bytes_read(), read.blank_lines())
            }
        };
        (tally.lines, tally.bytes) = (lines, bytes);
        tally.drop_all(BLANK_LINES, self.blank + blank);
        if self.names.is_some() {
            tally.drop_all(REPEATED_HEADER, self.repeated);
        }
    }
}

impl<R: BufRead> Rows<'_, R> {
    /// Reads a row, if there is one.
    fn advance(&mut self, file: &Path) -> Result<bool, ReadError> {
        match self {
            Rows::Bare(bare) => bare.advance(),
            Rows::Quoted(quoted) => quoted.advance(file),
        }
    }

    /// The row that was read last.
    fn row<'a>(&'a self, file: &'a Path) -> Record<'a> {
        match self {
            Rows::Bare(bare) => {
                let line = bare.lines.line();
                Record::Bare(line, &line.text[bare.start..], &bare.ends, bare.said)
            }
            Rows::Quoted(quoted) => Record::Quoted(&quoted.record, quoted.line, file),
        }
    }
}

impl<R: BufRead> Bare<'_, R> {
    fn advance(&mut self) -> Result<bool, ReadError> {
        let first = self.lines.lines() == 0;
        if !self.lines.advance()? {
            return Ok(false);
        }
        let line = self.lines.line();
        let bare = line.text.strip_prefix('\u{feff}').filter(|_| first).unwrap_or(line.text);
        self.start = line.text.len() - bare.len();
        self.ends.clear();
        self.ends.extend(memchr::memchr_iter(self.separator, bare.as_bytes()).chain([bare.len()]));
        Ok(true)
    }
}

impl<R: BufRead> Quoted<R> {
    fn advance(&mut self, file: &Path) -> Result<bool, ReadError> {
        let before = self.csv.position().line();
        let place = |line| Place { file: file.to_owned(), line, column: None };
        let more = self.csv.read_record(&mut self.record).map_err(|e| {
            let line = e.position().map_or(before, csv::Position::line);
            match e.kind() {
                csv::ErrorKind::Utf8 { err, .. } => line::not_utf8(place(line), err.valid_up_to() + 1),
                _ => line::unreadable(place(line), &std::io::Error::other(e)),
            }
        })?;
        // The position is before blank lines, which csv skips; what follows the record is exact.
        let breaks: usize =
            self.record.iter().map(|field| memchr::memchr_iter(b'\n', field.as_bytes()).count()).sum();
        let after = self.csv.position().line();
        self.line = after.saturating_sub(breaks as u64 + 1).max(before);
        if more {
            self.csv.get_ref().get_ref().check(file, self.line..after)?;
        }
        Ok(more)
    }
}
