//! Statements of a file, one after the other.

use std::io::BufReader;
use std::path::Path;

use base::bom::Unmarked;
use base::line::Place;
use base::read::ReadError;
use oxrdf::{NamedOrBlankNode, Term, Triple};
use oxttl::{NTriplesParser, TurtleParseError, TurtleParser};

use crate::source::files::{Counted, Reopened, ending, unopened};

/// What a statement is of, and about what.
#[derive(Debug)]
pub(super) struct Statement<'s> {
    /// Of an IRI, or else a blank node.
    pub(super) subject: Option<&'s str>,
    pub(super) predicate: &'s str,
    pub(super) object: Object<'s>,
}

/// What a statement is about.
#[derive(Debug, Clone, Copy)]
pub(super) enum Object<'s> {
    Iri(&'s str),
    /// A text and its language, "" without one.
    Literal(&'s str, &'s str),
    Blank,
}

/// How much was read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) lines: u64,
    pub(super) bytes: u64,
}

/// Hands on each statement of a file.
///
/// # Errors
/// When the name is that of neither kind of file, the file is damaged, or `take` fails.
pub(super) fn each(
    file: &Reopened<'_>,
    mut take: impl FnMut(&Statement<'_>) -> Result<(), ReadError>,
) -> Result<Totals, ReadError> {
    let opened = (file.open)().map_err(|error| unopened(&file.label, &error))?;
    let mut counted = Counted::new(opened);
    let reader = BufReader::new(Unmarked::new(&mut counted));
    let mut statement = |triple: Result<Triple, TurtleParseError>| {
        let triple = triple.map_err(|error| refused(&file.label, error))?;
        take(&view(&triple))
    };
    match Kind::of(&file.label)? {
        Kind::NTriples => NTriplesParser::new().for_reader(reader).try_for_each(&mut statement)?,
        Kind::Turtle => TurtleParser::new().for_reader(reader).try_for_each(&mut statement)?,
    }
    // What stands behind the last statement was read, too.
    std::io::copy(&mut counted, &mut std::io::sink()).map_err(|error| unopened(&file.label, &error))?;
    Ok(Totals { lines: counted.lines, bytes: counted.bytes })
}

/// What the name of a file says that it is.
#[derive(Debug, Clone, Copy)]
enum Kind {
    NTriples,
    Turtle,
}

impl Kind {
    fn of(file: &Path) -> Result<Self, ReadError> {
        match ending(file).as_str() {
            "nt" => Ok(Self::NTriples),
            "ttl" => Ok(Self::Turtle),
            _ => {
                let found = "the file is neither N-Triples nor Turtle by its name";
                let remedy = "rename it, or convert it first (riot --output=ntriples, rapper)";
                Err(ReadError::new(file, found, "one that ends in .nt or .ttl, perhaps with .gz", remedy))
            }
        }
    }
}

fn refused(file: &Path, error: TurtleParseError) -> ReadError {
    match error {
        TurtleParseError::Io(error) => unopened(file, &error),
        TurtleParseError::Syntax(error) => {
            let at = error.location().start;
            let column = usize::try_from(at.column).ok().map(|column| (column + 1, "character"));
            let place = Place { file: file.to_owned(), line: at.line + 1, column };
            ReadError::new(place, error.message().to_owned(), "", "fix the line, or write the file anew")
        }
    }
}

fn view(triple: &Triple) -> Statement<'_> {
    Statement {
        subject: match &triple.subject {
            NamedOrBlankNode::NamedNode(node) => Some(node.as_str()),
            NamedOrBlankNode::BlankNode(_) => None,
        },
        predicate: triple.predicate.as_str(),
        object: match &triple.object {
            Term::NamedNode(node) => Object::Iri(node.as_str()),
            Term::Literal(literal) => {
                Object::Literal(literal.value(), literal.language().unwrap_or_default())
            }
            Term::BlankNode(_) => Object::Blank,
        },
    }
}
