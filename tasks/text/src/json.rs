//! The objects of a JSON file one after the other, in the memory of one of them.

pub(crate) mod nested;

use std::io::{self, BufRead};
use std::path::Path;

use base::funnel::Tally;
use base::line::Place;
use base::read::ReadError;
use serde::Deserialize;

use super::fault;
use super::metered::{At, Metered};

const KEY: &str = "a key in double quotes";

/// What the objects lie in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Around {
    /// `[{...}, {...}]`, or a single object alone.
    List,
    /// `{"key": {...}, "key": {...}}`.
    Map,
}

/// What was read last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Nothing,
    Bracket,
    Object,
    All,
}

/// Reads object after object.
#[derive(Debug)]
pub(super) struct Objects<'f, R> {
    metered: Metered<'f, R>,
    around: Around,
    state: State,
    key: Vec<u8>,
    bytes: Vec<u8>,
}

/// One object.
#[derive(Debug)]
pub(super) struct Object<'a> {
    /// Its key in a map; empty in a list.
    pub(super) key: String,
    bytes: &'a [u8],
    start: At,
    file: &'a Path,
}

impl<'f, R: BufRead> Objects<'f, R> {
    /// Objects of `reader`; `file` names it in messages.
    pub(super) fn new(reader: R, file: &'f Path, around: Around) -> Self {
        let metered = Metered::new(reader, file);
        Self { metered, around, state: State::Nothing, key: Vec::new(), bytes: Vec::new() }
    }

    /// The next object; none at the end of the file. `expected` says what it should be.
    pub(super) fn next(&mut self, expected: &'static str) -> Result<Option<Object<'_>>, ReadError> {
        if !self.go(expected)? {
            return Ok(None);
        }
        let mut key = String::new();
        if self.around == Around::Map {
            self.byte(b'"', KEY)?;
            let start = self.metered.here();
            self.collect(Piece::Key)?;
            key = Object { key, bytes: &self.key, start, file: self.metered.file() }.parse(KEY)?;
            self.byte(b':', "a colon behind the key")?;
            self.metered.consume(1);
        }
        self.byte(b'{', expected)?;
        self.metered.mark();
        let start = self.metered.here();
        self.collect(Piece::Object)?;
        self.state = if self.state == State::Nothing { State::All } else { State::Object };
        Ok(Some(Object { key, bytes: &self.bytes, start, file: self.metered.file() }))
    }

    /// `tally` with what was read so far.
    pub(super) fn tally(&self, tally: &Tally) -> Tally {
        self.metered.tally(tally)
    }

    /// Goes to where the next object begins; `false` if there is none.
    fn go(&mut self, expected: &'static str) -> Result<bool, ReadError> {
        let (open, close, ends) = match self.around {
            Around::List => (b'[', b']', "a comma, or the end of the list (])"),
            Around::Map => (b'{', b'}', "a comma, or the end of the outermost object (})"),
        };
        if self.state == State::Nothing {
            self.pass_mark()?;
            let first = self.blank()?;
            if self.around == Around::List && first == Some(b'{') {
                return Ok(true);
            }
            self.byte(
                open,
                if self.around == Around::List { "a list of objects, or an object" } else { expected },
            )?;
            self.metered.consume(1);
            self.state = State::Bracket;
            if self.blank()? != Some(close) {
                return Ok(true);
            }
            self.metered.consume(1);
            self.state = State::All;
        }
        if self.state == State::Object {
            match self.blank()? {
                Some(b',') => {
                    self.metered.consume(1);
                    return Ok(true);
                }
                Some(found) if found == close => self.metered.consume(1),
                other => return Err(self.found(other, ends)),
            }
            self.state = State::All;
        }
        match self.blank()? {
            None => Ok(false),
            more => Err(self.found(more, "the end of the file")),
        }
    }

    /// Skips the BOM that some programs put in front of a file of UTF-8.
    fn pass_mark(&mut self) -> Result<(), ReadError> {
        for byte in "\u{feff}".bytes() {
            if self.metered.peek()? != Some(byte) {
                break;
            }
            self.metered.consume(1);
        }
        Ok(())
    }

    /// The next byte that is not blank, which stays the next one.
    fn blank(&mut self) -> Result<Option<u8>, ReadError> {
        loop {
            match self.metered.peek()? {
                Some(b' ' | b'\t' | b'\r' | b'\n') => {
                    self.metered.consume(1);
                    self.metered.mark();
                }
                other => return Ok(other),
            }
        }
    }

    /// Goes to the next byte that is not blank, which must be this one.
    fn byte(&mut self, wanted: u8, expected: &'static str) -> Result<(), ReadError> {
        match self.blank()? {
            Some(byte) if byte == wanted => Ok(()),
            other => Err(self.found(other, expected)),
        }
    }

    fn found(&self, byte: Option<u8>, expected: &'static str) -> ReadError {
        let found = match byte {
            None => "the end of the file".to_owned(),
            Some(byte) if byte.is_ascii() => format!("{:?}", char::from(byte)),
            Some(_) => "a letter beyond ASCII".to_owned(),
        };
        let place = self.metered.here().of(self.metered.file());
        let remedy = "fix the file, or say in the config which format it has";
        ReadError::new(place, format!("found {found}"), expected, remedy)
    }

    /// Takes the bytes of a piece, from its first to its last.
    fn collect(&mut self, piece: Piece) -> Result<(), ReadError> {
        match piece {
            Piece::Key => self.key.clear(),
            Piece::Object => self.bytes.clear(),
        }
        self.append(piece)
    }

    /// The same, behind what was taken before.
    fn append(&mut self, piece: Piece) -> Result<(), ReadError> {
        let into = if piece == Piece::Key { &mut self.key } else { &mut self.bytes };
        let mut scan = Scan { depth: 0, string: InString::No };
        loop {
            let bytes = match self.metered.fill_buf() {
                Ok(bytes) => bytes,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(self.metered.error(&e)),
            };
            if bytes.is_empty() {
                let expected =
                    if piece == Piece::Key { "the end of the key" } else { "the end of the object (})" };
                return Err(self.found(None, expected));
            }
            let end = scan.end(bytes);
            let taken = end.unwrap_or(bytes.len());
            into.extend_from_slice(&bytes[..taken]);
            self.metered.consume(taken);
            if end.is_some() {
                return Ok(());
            }
        }
    }
}

/// What is collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Key,
    Object,
}

/// Where a piece ends: behind the bracket or quote that closes its first.
struct Scan {
    depth: usize,
    string: InString,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InString {
    No,
    Yes,
    Escape,
}

impl Scan {
    /// How many of the bytes belong to the piece, if it ends among them.
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            match (self.string, byte) {
                (InString::Escape, _) => self.string = InString::Yes,
                (InString::Yes, b'\\') => self.string = InString::Escape,
                (InString::Yes, b'"') => self.string = InString::No,
                (InString::Yes, _) => {
                    let rest = &bytes[at..];
                    at += memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                    continue;
                }
                (InString::No, b'"') => self.string = InString::Yes,
                (InString::No, b'{' | b'[') => self.depth += 1,
                (InString::No, b'}' | b']') => self.depth = self.depth.saturating_sub(1),
                (InString::No, _) => {}
            }
            if self.depth == 0 && self.string == InString::No {
                return Some(at);
            }
        }
        None
    }
}

impl<'a> Object<'a> {
    /// What the object says. `expected` says what it should be.
    pub(super) fn parse<T: Deserialize<'a>>(&self, expected: &'static str) -> Result<T, ReadError> {
        serde_json::from_slice(self.bytes).map_err(|error| {
            let (line, byte) =
                (error.line().saturating_sub(1) as u64, error.column().saturating_sub(1) as u64);
            let first = if line == 0 { self.start.byte } else { 1 };
            let place = At { line: self.start.line + line, byte: first + byte }.of(self.file);
            // The parser saw one object only; where that was stands in the place.
            not_as_expected(place, fault::json(&error), expected)
        })
    }

    /// Where it begins.
    pub(super) fn place(&self) -> Place {
        self.start.of(self.file)
    }

    /// The error that the object says something else than it should.
    pub(super) fn wrong(&self, problem: String, expected: &'static str) -> ReadError {
        not_as_expected(self.start.of(self.file), problem, expected)
    }
}

fn not_as_expected(place: Place, problem: String, expected: &str) -> ReadError {
    ReadError::new(place, problem, expected, "fix the object, or say in the config which format the file has")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Row {
        n: u32,
    }

    fn rows(reader: impl BufRead, around: Around) -> Result<Vec<(String, u32)>, String> {
        let (mut objects, mut all) = (Objects::new(reader, Path::new("some.json"), around), Vec::new());
        while let Some(object) = objects.next("an object with `n`").map_err(|e| e.to_string())? {
            let row: Row = object.parse("an object with `n`").map_err(|e| e.to_string())?;
            all.push((object.key, row.n));
        }
        assert!(objects.next("nothing").unwrap().is_none(), "the end stays the end");
        Ok(all)
    }

    fn numbers(text: &str) -> Vec<u32> {
        rows(text.as_bytes(), Around::List).unwrap().into_iter().map(|(_, n)| n).collect()
    }

    #[test]
    fn lists_single_objects_and_maps_are_read() {
        let list = "\u{feff} [\r\n{\"n\": 1, \"x\": {\"y\": [\"}\\\"]\\\\\", {}]}} ,\n{\"n\":2}]\n\n";
        assert_eq!(numbers(list), [1, 2]);
        assert_eq!(numbers(" {\"n\":3} "), [3]);
        assert!(numbers("[ ]").is_empty());
        let map = "{ \"a\\u0062\" : {\"n\":1},\n\"\" :{\"n\":2}, \"é\":{\"n\":3} }";
        let expected = [("ab", 1), ("", 2), ("é", 3)].map(|(key, n)| (key.to_owned(), n));
        assert_eq!(rows(map.as_bytes(), Around::Map).unwrap(), expected);
        assert!(rows(&b"{}"[..], Around::Map).unwrap().is_empty());
        for size in 1..30 {
            let in_pieces = |text: &'static [u8]| io::BufReader::with_capacity(size, text);
            assert_eq!(rows(in_pieces(b"[{\"n\":1},{\"n\":2}]"), Around::List).unwrap().len(), 2);
            assert_eq!(rows(in_pieces(b"{\"a\":{\"n\":1}}"), Around::Map).unwrap().len(), 1);
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let refused = |text: &str, around, line: u64, byte: u64, expected: &str| {
            let message = rows(text.as_bytes(), around).unwrap_err();
            let place = format!("some.json: line {line}, column {byte} (byte of the line): ");
            assert!(message.starts_with(&place) && message.contains(expected), "{text}: {message}");
        };
        let list = Around::List;
        refused("", list, 1, 1, "found the end of the file, expected a list of objects, or an object");
        refused("12", list, 1, 1, "found '1', expected a list");
        refused("[1]", list, 1, 2, "found '1', expected an object with `n`");
        refused("[{\"n\":1},]", list, 1, 10, "found ']', expected an object with `n`");
        refused("[{\"n\":1}\n {\"n\":1}]", list, 2, 2, "found '{', expected a comma, or the end of the list");
        refused("[{\"n\":1}] x", list, 1, 11, "found 'x', expected the end of the file");
        refused("{\"n\":1}{\"n\":2}", list, 1, 8, "expected the end of the file");
        refused("[{\"n\":1}", list, 1, 9, "found the end of the file, expected a comma");
        refused("[{\"n\":\"1", list, 1, 9, "found the end of the file, expected the end of the object");
        refused(
            "[\n {\"n\": -1}]",
            list,
            2,
            9,
            "invalid value: integer `-1`, expected u32, expected an object with `n`",
        );
        refused("[\n {\"m\": \n1}]", list, 3, 2, "missing field `n`");
        refused("{\"a\":{\"n\":1},3}", Around::Map, 1, 14, "found '3', expected a key in double quotes");
        refused("{\"a\" {\"n\":1}}", Around::Map, 1, 6, "found '{', expected a colon behind the key");
        refused("{\"a\": \"yes\"}", Around::Map, 1, 7, "found '\"', expected an object with `n`");
        refused("{\"a", Around::Map, 1, 4, "expected the end of the key");
        refused("{\"\\x\":{\"n\":1}}", Around::Map, 1, 4, "invalid escape, expected a key in double quotes");
        refused("{\"a\":{\"n\":1}]", Around::Map, 1, 13, "found ']', expected a comma");
    }

    #[test]
    fn only_one_object_must_fit_in_memory() {
        let object = format!("{{\"n\": 1, \"x\": \"{}\"}},", "y".repeat(10 << 20));
        let file = format!("[{}{{\"n\": 1}}]", object.repeat(4));
        assert_eq!(numbers(&file), [1; 5]);
        let endless = io::Read::chain(&b"[\n{\"n\": \""[..], io::repeat(b'x'));
        let message = rows(io::BufReader::new(endless), Around::List).unwrap_err();
        assert!(message.starts_with("some.json: line 2, column 1 (byte"), "{message}");
        assert!(message.contains("the document that begins here has more than"), "{message}");
    }
}
