//! Objects that lie in lists of an outer object, in the memory of one of them: `{"source": ..., "documents": [{...}, {...}]}`.
//!
//! Outer objects may stand one after the other (a line each), or in a list. One that is itself what is looked for is handed over as it is.

use std::io::BufRead;
use std::path::Path;

use base::funnel::Tally;
use base::read::ReadError;

use super::{Around, KEY, Object, Objects, Piece, State};
use crate::metered::At;

/// What the objects are known by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    /// Keys of the lists that they lie in.
    pub(crate) lists: &'static [&'static str],
    /// A key that each of them has.
    pub(crate) by: &'static str,
    /// What a file should have, in words.
    pub(crate) expected: &'static str,
}

/// What is read next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// An outer object or, where the file is a list of them, its bracket.
    Outer,
    /// An object of a list, behind its bracket.
    First,
    /// A comma and an object of a list, or its end.
    Another,
}

/// Whether outer objects lie in a list of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listed {
    Not,
    /// An object must follow.
    Open,
    /// A comma or the end must follow.
    Object,
    Ended,
}

/// Reads object after object.
#[derive(Debug)]
pub(crate) struct Nested<'f, R> {
    objects: Objects<'f, R>,
    known: Known,
    next: Next,
    listed: Listed,
    /// Where the outer object begins.
    start: At,
    begun: bool,
}

/// What an outer object has come to.
enum Met {
    List,
    End,
    Itself,
}

impl<'f, R: BufRead> Nested<'f, R> {
    /// Objects of `reader`; `file` names it in messages.
    pub(crate) fn new(reader: R, file: &'f Path, known: Known) -> Self {
        let objects = Objects::new(reader, file, Around::List);
        let start = objects.metered.here();
        Self { objects, known, next: Next::Outer, listed: Listed::Not, start, begun: false }
    }

    /// The next object; none at the end of the file.
    pub(crate) fn next(&mut self) -> Result<Option<Object<'_>>, ReadError> {
        loop {
            let met = if self.next == Next::Outer {
                if !self.outer()? {
                    return Ok(None);
                }
                self.keys(Keys::None)?
            } else if self.ends()? {
                self.keys(Keys::List)?
            } else {
                self.objects.byte(b'{', self.known.expected)?;
                self.objects.metered.mark();
                self.start = self.objects.metered.here();
                self.objects.collect(Piece::Object)?;
                self.next = Next::Another;
                break;
            };
            match met {
                Met::List => self.next = Next::First,
                Met::End => self.next = Next::Outer,
                Met::Itself => {
                    self.next = Next::Outer;
                    break;
                }
            }
        }
        let Objects { bytes, metered, .. } = &self.objects;
        Ok(Some(Object { key: String::new(), bytes, start: self.start, file: metered.file() }))
    }

    /// `tally` with what was read so far.
    pub(crate) fn tally(&self, tally: &Tally) -> Tally {
        self.objects.tally(tally)
    }

    /// Goes into the next outer object, behind its bracket; `false` if there is none.
    fn outer(&mut self) -> Result<bool, ReadError> {
        let objects = &mut self.objects;
        if !std::mem::replace(&mut self.begun, true) {
            objects.pass_mark()?;
            if objects.blank()? == Some(b'[') {
                objects.metered.consume(1);
                self.listed = Listed::Open;
            }
        }
        match (objects.blank()?, self.listed) {
            (Some(b','), Listed::Object) => objects.metered.consume(1),
            (Some(b']'), Listed::Object) => {
                objects.metered.consume(1);
                self.listed = Listed::Ended;
            }
            (other, Listed::Object) => {
                return Err(objects.found(other, "a comma, or the end of the list (])"));
            }
            _ => {}
        }
        match (objects.blank()?, self.listed) {
            (None, Listed::Not | Listed::Ended) if objects.state != State::Nothing => return Ok(false),
            (other, Listed::Ended) => return Err(objects.found(other, "the end of the file")),
            _ => objects.byte(b'{', self.known.expected)?,
        }
        if self.listed == Listed::Open {
            self.listed = Listed::Object;
        }
        objects.metered.mark();
        self.start = objects.metered.here();
        objects.state = State::Object;
        objects.bytes.clear();
        objects.take()?;
        Ok(true)
    }

    /// Whether the list ends here, whose bracket is then read; else the next object of it follows.
    fn ends(&mut self) -> Result<bool, ReadError> {
        match (self.objects.blank()?, self.next) {
            (Some(b']'), _) => {
                self.objects.metered.consume(1);
                Ok(true)
            }
            (Some(b','), Next::Another) => {
                self.objects.metered.consume(1);
                Ok(false)
            }
            (_, Next::First) => Ok(false),
            (other, _) => Err(self.objects.found(other, "a comma, or the end of the list (])")),
        }
    }

    /// Goes through the keys of an outer object, of which some are read, to the next list or to its end. Its bytes are kept, for it may be itself
    /// what is looked for.
    fn keys(&mut self, before: Keys) -> Result<Met, ReadError> {
        let objects = &mut self.objects;
        let mut read = before;
        if read == Keys::List {
            objects.bytes.clear();
            objects.metered.mark();
        }
        loop {
            match objects.keep_blanks()? {
                Some(b'}') => {
                    objects.take()?;
                    return match read {
                        Keys::List => Ok(Met::End),
                        Keys::Itself => Ok(Met::Itself),
                        Keys::None | Keys::Others => {
                            let at = self.start.of(objects.metered.file());
                            let found = format!("an object without `{}`", self.known.lists.join("` or `"));
                            Err(super::not_as_expected(at, found, self.known.expected))
                        }
                    };
                }
                Some(b',') if read != Keys::None => {
                    objects.take()?;
                    objects.keep_blanks()?;
                }
                other if read != Keys::None => {
                    return Err(objects.found(other, "a comma, or the end of the object (})"));
                }
                _ => {}
            }
            let key = objects.keep_key()?;
            if self.known.lists.contains(&key.as_str()) && read != Keys::Itself {
                objects.byte(b'[', "a list ([)")?;
                objects.metered.consume(1);
                return Ok(Met::List);
            }
            read = match read {
                Keys::List | Keys::Itself => read,
                _ if key == self.known.by => Keys::Itself,
                _ => Keys::Others,
            };
            objects.keep_value()?;
        }
    }
}

/// What an outer object is known to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keys {
    None,
    Others,
    /// A list of what is looked for.
    List,
    /// The key of what is looked for.
    Itself,
}

impl<R: BufRead> Objects<'_, R> {
    /// Keeps the next byte.
    fn take(&mut self) -> Result<(), ReadError> {
        if let Some(byte) = self.metered.peek()? {
            self.bytes.push(byte);
            self.metered.consume(1);
        }
        Ok(())
    }

    /// Keeps white space; the byte behind it.
    fn keep_blanks(&mut self) -> Result<Option<u8>, ReadError> {
        loop {
            match self.metered.peek()? {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.take()?,
                other => return Ok(other),
            }
        }
    }

    /// Keeps a key with its colon, and says it.
    fn keep_key(&mut self) -> Result<String, ReadError> {
        match self.keep_blanks()? {
            Some(b'"') => {}
            other => return Err(self.found(other, KEY)),
        }
        let start = self.metered.here();
        self.collect(Piece::Key)?;
        let file = self.metered.file();
        let key = Object { key: String::new(), bytes: &self.key, start, file }.parse(KEY)?;
        self.bytes.extend_from_slice(&self.key);
        match self.keep_blanks()? {
            Some(b':') => self.take()?,
            other => return Err(self.found(other, "a colon behind the key")),
        }
        Ok(key)
    }

    /// Keeps a value.
    fn keep_value(&mut self) -> Result<(), ReadError> {
        match self.keep_blanks()? {
            Some(b'{' | b'[' | b'"') => self.append(Piece::Object),
            _ => {
                let from = self.bytes.len();
                while self
                    .metered
                    .peek()?
                    .is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
                {
                    self.take()?;
                }
                if serde_json::from_slice::<serde_json::Value>(&self.bytes[from..]).is_ok() {
                    return Ok(());
                }
                let next = self.metered.peek()?;
                Err(self.found(next, "a value"))
            }
        }
    }
}
