//! A MeSH file from its first byte to its last: pieces of records parsed by all threads, handed on in the file's order by one.

use std::io::Read;
use std::path::Path;

use base::line::{self, Place};
use base::read::ReadError;
use memchr::{memchr_iter, memrchr};

use super::record::{self, Kind, Tape};
use crate::source::xml::chunk::{LONGEST, Stop};
use crate::source::xml::{Chunks, Fault, Scanner, prolog};

/// A file whose beginning is as it should be.
#[derive(Debug)]
pub(super) struct Stream<'f, R> {
    file: &'f Path,
    kind: Kind,
    chunks: Chunks<R>,
    /// Whole records from byte `start` on.
    chunk: Vec<u8>,
    start: usize,
    /// Line of `start`, from 1.
    line: u64,
    /// The language of all terms as UMLS writes it (`ENG`).
    pub(super) language: Option<String>,
}

/// What was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) bytes: u64,
    pub(super) lines: u64,
}

/// What to do about a file that is no XML, or none as published.
const DAMAGED: &str = "the file is damaged: fetch it again";

/// A parsed piece, or what is wrong with it.
type Piece = Result<Tape, Flaw>;

impl<'f, R: Read> Stream<'f, R> {
    /// Reads up to the first records and checks what stands before them.
    pub(super) fn open(reader: R, file: &'f Path, kind: Kind) -> Result<Self, ReadError> {
        let mut chunks = Chunks::new(reader, kind.record());
        let mut chunk = Vec::new();
        let filled = chunks.fill(&mut chunk);
        let mut stream = Self { file, kind, chunks, chunk, start: 0, line: 1, language: None };
        match filled {
            Ok(()) => stream.prolog()?,
            // A file of another kind has no such records: better said by the name of its root.
            Err(Stop::TooLong) => {
                stream.prolog()?;
                return Err(stream.stopped(Stop::TooLong, 1));
            }
            Err(stop) => return Err(stream.stopped(stop, 1)),
        }
        Ok(stream)
    }

    fn prolog(&mut self) -> Result<(), ReadError> {
        let known = if self.chunk.is_empty() { self.chunks.tail() } else { &self.chunk };
        let valid = std::str::from_utf8(known).map_or_else(|e| e.valid_up_to(), str::len);
        let text = std::str::from_utf8(&known[..valid]).unwrap_or_default();
        if text.is_empty() && !known.is_empty() {
            return Err(line::not_utf8(place(self.file, 1), 1));
        }
        let wrong = |fault: Box<Fault>| Flaw::new(text, *fault).into_error(self.file, 1);
        let (scanner, root) = prolog::read(text).map_err(wrong)?;
        if root.name != self.kind.root() {
            let place = place(self.file, 1 + newlines(&text[..root.at]));
            let found = format!("the root element is {:?}", root.name.chars().take(40).collect::<String>());
            let remedy = format!("give {} as published", self.kind.file());
            return Err(ReadError::new(place, found, self.kind.root(), remedy));
        }
        let language = scanner.attribute(&root, "LanguageCode");
        let language = language.map_err(wrong)?;
        let (language, start) = (language.map(str::to_uppercase), scanner.at());
        self.line += newlines(&text[..start]);
        self.start = start;
        self.language = language;
        Ok(())
    }

    /// Hands every piece with the line it begins at to `apply`, in order, while the next pieces are being read and parsed.
    ///
    /// # Errors
    /// What is wrong with the file, by the first place, or what `apply` refused.
    pub(super) fn each(mut self, apply: Apply<'_>) -> Result<Size, ReadError> {
        let (mut parsed, mut next, mut stop) = (Vec::new(), Vec::new(), None);
        let mut line = self.line;
        let mut tail_from = self.start;
        while !self.chunk.is_empty() {
            let records = &self.chunk[self.start..];
            let pieces = self.chunks.pieces(records);
            let mut fresh: Vec<Piece> = pieces.iter().map(|_| Ok(Tape::default())).collect();
            let (kind, file, chunks) = (self.kind, self.file, &mut self.chunks);
            rayon::in_place_scope(|scope| {
                for (range, slot) in pieces.into_iter().zip(&mut fresh) {
                    scope.spawn(move |_| *slot = parse(&records[range], kind));
                }
                hand_on(std::mem::take(&mut parsed), file, &mut line, apply)?;
                stop = chunks.fill(&mut next).err();
                Ok::<(), ReadError>(())
            })?;
            parsed = fresh;
            std::mem::swap(&mut self.chunk, &mut next);
            (self.start, tail_from) = (0, 0);
            if stop.is_some() {
                break;
            }
        }
        hand_on(parsed, self.file, &mut line, apply)?;
        if let Some(stop) = stop {
            return Err(self.stopped(stop, line));
        }
        let lines = self.end(tail_from, line)?;
        Ok(Size { bytes: self.chunks.bytes(), lines })
    }

    /// Checks what follows the last record, from byte `from` of the tail and `line` on. Gives the number of lines in the file.
    fn end(&self, from: usize, line: u64) -> Result<u64, ReadError> {
        let bytes = self.chunks.tail().get(from..).unwrap_or_default();
        let text = utf8(bytes).map_err(|flaw| flaw.into_error(self.file, line))?;
        let mut scanner = Scanner::inside(self.kind.root(), text);
        let ended = scanner.child().and_then(|record| match record {
            Some(tag) if tag.name == self.kind.record() => {
                let unfinished = record::parse(&text[tag.at..], self.kind).err();
                Err(unfinished.map_or_else(
                    || scanner.fault(text.len(), self.kind.root()),
                    |mut fault| {
                        fault.at += tag.at;
                        fault
                    },
                ))
            }
            Some(tag) => Err(scanner.fault(tag.at, format!("</{}>", self.kind.root()))),
            None => match scanner.child()? {
                Some(tag) => Err(scanner.fault(tag.at, "nothing after the root's closing tag")),
                None => Ok(()),
            },
        });
        ended.map_err(|fault| Flaw::new(text, *fault).into_error(self.file, line))?;
        Ok(line - 1 + newlines(text) + u64::from(!text.is_empty() && !text.ends_with('\n')))
    }

    fn stopped(&self, stop: Stop, line: u64) -> ReadError {
        let place = place(self.file, line);
        match stop {
            Stop::Read(source) => line::unreadable(place, &source),
            Stop::TooLong => {
                let found = format!("more than {} MiB without </{}>", LONGEST >> 20, self.kind.record());
                ReadError::text(place, &found, "records as published, which are shorter", DAMAGED)
            }
        }
    }
}

/// Takes a piece and the line it begins at.
type Apply<'a> = &'a mut dyn FnMut(&Tape, u64) -> Result<(), ReadError>;

fn hand_on(parsed: Vec<Piece>, file: &Path, line: &mut u64, apply: Apply<'_>) -> Result<(), ReadError> {
    for piece in parsed {
        let tape = piece.map_err(|flaw| flaw.into_error(file, *line))?;
        apply(&tape, *line)?;
        *line += tape.lines;
    }
    Ok(())
}

fn parse(bytes: &[u8], kind: Kind) -> Piece {
    let text = utf8(bytes)?;
    record::parse(text, kind).map_err(|fault| Flaw::new(text, *fault))
}

fn utf8(bytes: &[u8]) -> Result<&str, Flaw> {
    std::str::from_utf8(bytes).map_err(|e| {
        let before = &bytes[..e.valid_up_to()];
        let start = memrchr(b'\n', before).map_or(0, |at| at + 1);
        Flaw::Utf8 { line: memchr_iter(b'\n', before).count() as u64, byte: before.len() - start + 1 }
    })
}

/// What is wrong in a piece, with the line from 0.
#[derive(Debug)]
enum Flaw {
    Utf8 { line: u64, byte: usize },
    Cut { line: u64, expected: String },
    Xml { line: u64, found: String, expected: String },
}

impl Flaw {
    fn new(text: &str, fault: Fault) -> Self {
        let Fault { at, found, expected } = fault;
        if at == text.len() {
            // A line feed at the very end is the end of the last line, not a line more.
            return Self::Cut { line: newlines(text.trim_end()), expected };
        }
        Self::Xml { line: newlines(text.get(..at).unwrap_or(text)), found, expected }
    }

    fn into_error(self, file: &Path, first: u64) -> ReadError {
        match self {
            Self::Utf8 { line, byte } => line::not_utf8(place(file, first + line), byte),
            Self::Cut { line, expected } => {
                let remedy = "it is cut: fetch the file again";
                ReadError::new(place(file, first + line), "the file ends here", expected, remedy)
            }
            Self::Xml { line, found, expected } => {
                ReadError::text(place(file, first + line), &found, expected, DAMAGED)
            }
        }
    }
}

fn place(file: &Path, line: u64) -> Place {
    Place { file: file.to_owned(), line, column: None }
}

fn newlines(text: &str) -> u64 {
    memchr_iter(b'\n', text.as_bytes()).count() as u64
}
