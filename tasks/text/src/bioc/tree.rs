//! The elements of BioC's XML as they open and close, with the names of those around and the text of the innermost.

use std::io::BufRead;
use std::path::Path;

use base::funnel::Tally;
use base::line::Place;
use base::read::ReadError;

use crate::xml::{Elements, Names, Step};

const NAMES: Names = Names { roots: &["collection"], records: &["document"] };

#[derive(Debug)]
pub(super) struct Tree<'f, R> {
    elements: Elements<'f, R>,
    /// Names of the open elements; the last is the one that a step is about.
    open: Vec<String>,
    text: String,
    /// The element of the last step ended with it.
    closed: bool,
}

impl<'f, R: BufRead> Tree<'f, R> {
    pub(super) fn new(reader: R, file: &'f Path) -> Self {
        let elements = Elements::new(reader, file, NAMES);
        Self { elements, open: Vec::new(), text: String::new(), closed: false }
    }

    /// The next element that opens or closes.
    pub(super) fn step(&mut self) -> Result<Step, ReadError> {
        if std::mem::take(&mut self.closed) {
            self.open.pop();
            self.text.clear();
        }
        let step = self.elements.step_with(&mut self.text)?;
        match step {
            Step::Open => {
                self.open.push(self.elements.name().to_owned());
                self.text.clear();
            }
            Step::Close => self.closed = true,
            Step::End => {}
        }
        Ok(step)
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
    pub(super) fn attribute(&self, name: &str) -> Result<Option<String>, ReadError> {
        self.elements.attribute(name)
    }

    /// `tally` with what was read so far.
    pub(super) fn tally(&self, tally: &Tally) -> Tally {
        // The line that a final line end begins counts as well: that is the number in the artifacts there are.
        Tally { lines: self.elements.line(), ..self.elements.tally(tally) }
    }

    /// Where the element that was met last begins.
    pub(super) fn place(&self) -> Place {
        self.elements.place()
    }

    pub(super) fn shape(&self, found: &str, expected: &str) -> ReadError {
        ReadError::new(self.place(), format!("found {found}"), expected, "fix the file")
    }
}
