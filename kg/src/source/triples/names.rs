//! Files of ids, texts and definitions beside tables of triples. Knows no triple.
//!
//! One id a line, or `id<TAB>text` (a further tab belongs to the text). As published, the last line may lack its end. A line that
//! repeats another is counted; an id with two texts is an error.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;

use super::super::funnel::Tally;
use super::super::line::{LastLine, Lines, Place};
use super::{Error, start};
use crate::canon::fold::tidy;

const REPEATED: &str = "repeated";
const NO_TEXT: &str = "no_text";
const IN_NO_TRIPLE: &str = "in_no_triple";

/// The files of one kind of things.
#[derive(Debug, Default)]
pub(super) struct Names {
    list: Option<Book>,
    texts: Option<Book>,
    definitions: Option<Book>,
    taken_without_text: u64,
}

/// One file.
#[derive(Debug)]
struct Book {
    entries: HashMap<String, Entry>,
    tally: Tally,
}

#[derive(Debug)]
struct Entry {
    text: String,
    line: u64,
    taken: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Ids,
    Texts,
}

impl Names {
    pub(super) fn list<R: BufRead>(&mut self, file: (R, &Path)) -> Result<(), Error> {
        self.list = Some(Book::read(file, Content::Ids)?);
        Ok(())
    }

    pub(super) fn texts<R: BufRead>(&mut self, file: (R, &Path)) -> Result<(), Error> {
        self.texts = Some(Book::read(file, Content::Texts)?);
        Ok(())
    }

    pub(super) fn definitions<R: BufRead>(&mut self, file: (R, &Path)) -> Result<(), Error> {
        self.definitions = Some(Book::read(file, Content::Texts)?);
        Ok(())
    }

    /// The name of the list, if there is one and it lacks the id.
    pub(super) fn lacks(&self, id: &str) -> Option<&str> {
        let list = self.list.as_ref().filter(|list| !list.entries.contains_key(id))?;
        Some(&list.tally.file)
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

    /// What became of the files' lines.
    pub(super) fn settle(self) -> impl Iterator<Item = Tally> {
        [self.list, self.texts, self.definitions].into_iter().flatten().map(Book::settle)
    }
}

impl Book {
    fn read<R: BufRead>((reader, label): (R, &Path), content: Content) -> Result<Self, Error> {
        let reasons: &[&'static str] = match content {
            Content::Ids => &[REPEATED, IN_NO_TRIPLE],
            Content::Texts => &[REPEATED, NO_TEXT, IN_NO_TRIPLE],
        };
        let mut lines = Lines::with_last(reader, label, LastLine::MayLackEnd);
        let mut book = Self { entries: HashMap::new(), tally: Tally::new(label, reasons) };
        loop {
            let number = lines.lines() + 1;
            let Some(line) = lines.next_line()? else { break };
            let place = |column| Place { file: label.to_owned(), line: number, column };
            let bare = line.text.strip_prefix('\u{feff}').filter(|_| number == 1).unwrap_or(line.text);
            let (id, text) = match content {
                Content::Ids => (bare, ""),
                Content::Texts => bare.split_once('\t').ok_or_else(|| Error::NoTab { place: place(None) })?,
            };
            let (id, text) = (id.trim(), tidy(text));
            if id.is_empty() || id.contains('\t') {
                let expected = "one id".to_owned();
                return Err(Error::Field { place: place(Some((1, "id"))), found: start(id), expected });
            }
            if content == Content::Texts && text.is_empty() {
                book.tally.drop(NO_TEXT);
                continue;
            }
            match book.entries.get(id) {
                None => {
                    book.entries.insert(id.to_owned(), Entry { text, line: number, taken: false });
                }
                Some(before) if before.text == text => book.tally.drop(REPEATED),
                Some(before) => {
                    let line = before.line;
                    return Err(Error::TwoTexts { place: place(None), id: start(id), line });
                }
            }
        }
        (book.tally.lines, book.tally.bytes) = (lines.lines(), lines.bytes());
        Ok(book)
    }

    fn take(&mut self, id: &str) -> Option<&str> {
        let entry = self.entries.get_mut(id)?;
        entry.taken = true;
        Some(&entry.text)
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
