//! Elements of an XML file as they open and close, with the text of the innermost.
//!
//! Entities other than XML's five are refused, never expanded, so that a small file cannot grow.

use std::io::{self, BufRead, Read};
use std::path::Path;

use base::line::Place;
use base::read::ReadError;
use quick_xml::events::{BytesRef, BytesStart, Event};

use super::draft::{LONGEST, too_long};

/// Elements inside one another, at most: published files have six.
const DEPTH: usize = 32;

/// Encodings whose text is UTF-8.
const UTF_8: [&str; 4] = ["utf-8", "utf8", "us-ascii", "ascii"];

/// What the next piece of markup does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// An element begins.
    Open,
    /// The innermost one ends.
    Close,
    /// The file ends.
    End,
}

/// A reader that counts lines and stops where a document is too long.
#[derive(Debug)]
struct Counted<R> {
    inner: R,
    line: u64,
    bytes: u64,
    left: usize,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(out)?;
        self.consume(count);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let bytes = self.inner.fill_buf()?;
        if self.left == 0 && !bytes.is_empty() {
            return Err(io::Error::other("too long"));
        }
        Ok(&bytes[..bytes.len().min(self.left)])
    }

    fn consume(&mut self, count: usize) {
        // What is in the buffer already cannot fail to be there.
        if let Ok(bytes) = self.inner.fill_buf() {
            self.line += memchr::memchr_iter(b'\n', &bytes[..count.min(bytes.len())]).count() as u64;
        }
        self.bytes += count as u64;
        self.left = self.left.saturating_sub(count);
        self.inner.consume(count);
    }
}

#[derive(Debug)]
pub(super) struct Tree<'f, R> {
    reader: quick_xml::Reader<Counted<R>>,
    file: &'f Path,
    buffer: Vec<u8>,
    /// Names of the open elements; the last is the one that a step is about.
    open: Vec<String>,
    attributes: Vec<(String, String)>,
    text: String,
    /// The element of the last step ended with it.
    closed: bool,
    /// The element of the last step was `<name/>` and is yet to be closed.
    empty: bool,
    root: bool,
}

impl<'f, R: BufRead> Tree<'f, R> {
    pub(super) fn new(reader: R, file: &'f Path) -> Self {
        let reader =
            quick_xml::Reader::from_reader(Counted { inner: reader, line: 1, bytes: 0, left: LONGEST });
        Self {
            reader,
            file,
            buffer: Vec::new(),
            open: Vec::new(),
            attributes: Vec::new(),
            text: String::new(),
            closed: false,
            empty: false,
            root: false,
        }
    }

    /// The next element that opens or closes.
    pub(super) fn step(&mut self) -> Result<Step, ReadError> {
        if std::mem::take(&mut self.closed) {
            self.open.pop();
            self.text.clear();
        }
        if std::mem::take(&mut self.empty) {
            self.closed = true;
            return Ok(Step::Close);
        }
        loop {
            // The buffer goes to the event and comes back, so that the event borrows nothing else of this.
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.clear();
            let step = match self.reader.read_event_into(&mut buffer) {
                Ok(event) => self.event(event)?,
                Err(error) => return Err(self.wrong(&error)),
            };
            self.buffer = buffer;
            if let Some(step) = step {
                return Ok(step);
            }
        }
    }

    /// The element's name.
    pub(super) fn name(&self) -> &str {
        self.open.last().map_or("", String::as_str)
    }

    /// Whether the innermost open elements have these names.
    pub(super) fn is(&self, names: &[&str]) -> bool {
        self.open.len() >= names.len() && self.open[self.open.len() - names.len()..].iter().eq(names)
    }

    /// Whether an element of that name is open around this one.
    pub(super) fn inside(&self, name: &str) -> bool {
        self.open.iter().rev().skip(1).any(|open| open == name)
    }

    /// The text of the element that closes, without that of the elements in it.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The attribute of the element that opened last.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The line up to which the file is read, from 1.
    pub(super) fn line(&self) -> u64 {
        self.reader.get_ref().line
    }

    pub(super) fn bytes(&self) -> u64 {
        self.reader.get_ref().bytes
    }

    pub(super) fn place(&self) -> Place {
        Place { file: self.file.to_owned(), line: self.line(), column: None }
    }

    pub(super) fn shape(&self, found: &str, expected: &str) -> ReadError {
        ReadError::new(self.place(), format!("found {found}"), expected, "fix the file")
    }

    fn problem(&self, problem: impl Into<String>) -> ReadError {
        let expected = "BioC's XML in UTF-8";
        ReadError::new(self.place(), problem, expected, "fix the file, or fetch it again")
    }

    fn wrong(&self, error: &quick_xml::Error) -> ReadError {
        match error {
            quick_xml::Error::Io(_) if self.reader.get_ref().left == 0 => too_long(self.place()),
            _ => self.problem(error.to_string()),
        }
    }

    fn event(&mut self, event: Event<'_>) -> Result<Option<Step>, ReadError> {
        match event {
            Event::Start(start) => self.start(&start).map(|()| Some(Step::Open)),
            Event::Empty(start) => {
                self.empty = true;
                self.start(&start).map(|()| Some(Step::Open))
            }
            Event::End(_) => {
                self.closed = true;
                Ok(Some(Step::Close))
            }
            Event::Text(text) => {
                let text = text.xml10_content();
                if self.open.is_empty() && !text.trim_start_matches('\u{feff}').trim().is_empty() {
                    return Err(self.problem("there is text outside of all elements"));
                }
                self.text.push_str(&text);
                Ok(None)
            }
            Event::CData(data) => {
                self.text.push_str(&data.xml10_content());
                Ok(None)
            }
            Event::GeneralRef(reference) => self.reference(&reference).map(|()| None),
            Event::DocType(kind) if kind.contains('[') => {
                Err(self.problem("the document type has declarations of its own ([...])"))
            }
            Event::Decl(declaration) => match declaration.encoding() {
                Some(Ok(name)) if !UTF_8.contains(&name.to_ascii_lowercase().as_str()) => {
                    Err(self.problem(format!("its encoding is {name}")))
                }
                Some(Err(error)) => Err(self.problem(error.to_string())),
                _ => Ok(None),
            },
            Event::Comment(_) | Event::PI(_) | Event::DocType(_) => Ok(None),
            Event::Eof => match self.open.last() {
                Some(name) => Err(self.problem(format!("the file ends inside <{name}>"))),
                None if !self.root => Err(self.problem("the file has no element")),
                None => Ok(Some(Step::End)),
            },
        }
    }

    fn start(&mut self, start: &BytesStart<'_>) -> Result<(), ReadError> {
        if self.open.len() == DEPTH {
            return Err(self.problem(format!("more than {DEPTH} elements inside one another")));
        }
        let name = start.name().into_inner().to_owned();
        if self.open.is_empty() && (std::mem::replace(&mut self.root, true) || name != "collection") {
            return Err(self.problem(format!("found <{name}>, expected <collection> around all documents")));
        }
        if name == "document" {
            self.reader.get_mut().left = LONGEST;
        }
        self.attributes.clear();
        for attribute in start.attributes() {
            let attribute = attribute.map_err(|e| self.problem(e.to_string()))?;
            let value =
                quick_xml::escape::unescape(&attribute.value).map_err(|e| self.problem(e.to_string()))?;
            self.attributes.push((attribute.key.into_inner().to_owned(), value.into_owned()));
        }
        self.open.push(name);
        self.text.clear();
        Ok(())
    }

    fn reference(&mut self, reference: &BytesRef<'_>) -> Result<(), ReadError> {
        let number = reference.resolve_char_ref().map_err(|e| self.problem(e.to_string()))?;
        if let Some(character) = number {
            self.text.push(character);
            return Ok(());
        }
        let name = reference.xml10_content();
        let text = quick_xml::escape::resolve_xml_entity(&name)
            .ok_or_else(|| self.problem(format!("the entity &{name}; is none of XML's own")))?;
        self.text.push_str(text);
        Ok(())
    }
}
