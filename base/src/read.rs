//! Why a file cannot be read: the one error of all readers.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use super::line::Place;

/// Characters of a file that an error quotes.
const LONGEST: usize = 100;

/// Where in a file, what stands there, what should, and what to do about it.
///
/// It prints as `PLACE: FOUND, expected EXPECTED; REMEDY`; what is empty is left out.
///
/// ```
/// use base::read::ReadError;
///
/// let error = ReadError::new("edges.tsv: line 7, column 3 (weight)", "found \"heavy\"", "a number", "fix the line");
/// assert_eq!(
///     error.to_string(),
///     "edges.tsv: line 7, column 3 (weight): found \"heavy\", expected a number; fix the line"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ReadError(Box<Parts>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Parts {
    place: Location,
    found: String,
    expected: String,
    remedy: String,
}

/// Where in a file, as exactly as its reader knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A line, or a column of it.
    Line(Place),
    /// A file, or what else a reader has: the row of a table, the key of an object.
    Text(String),
}

impl ReadError {
    /// What stands at `place` (a [`super::line::Place`], or a file's name), in words; what was expected; what to do.
    pub fn new(
        place: impl Into<Location>,
        found: impl Into<String>,
        expected: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (found, expected, remedy) = (found.into(), expected.into(), remedy.into());
        Self(Box::new(Parts { place: place.into(), found, expected, remedy }))
    }

    /// As [`ReadError::new`], with the text that stands there: it is quoted, on one line, and cut where it is long.
    pub fn text(
        place: impl Into<Location>,
        text: &str,
        expected: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let shown: String = text.chars().take(LONGEST).collect();
        let rest = if shown.len() < text.len() { " ..." } else { "" };
        Self::new(place, format!("found {shown:?}{rest}"), expected, remedy)
    }

    /// Where it stands: file, line, column.
    #[must_use]
    pub fn place(&self) -> &Location {
        &self.0.place
    }

    /// The same error, `lines` further down: for readers of a file's chunks.
    #[must_use]
    pub fn moved(mut self, lines: u64) -> Self {
        if let Location::Line(place) = &mut self.0.place {
            place.line += lines;
        }
        self
    }

    /// What stands there.
    #[must_use]
    pub fn found(&self) -> &str {
        &self.0.found
    }

    /// What should.
    #[must_use]
    pub fn expected(&self) -> &str {
        &self.0.expected
    }

    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> &str {
        &self.0.remedy
    }
}

impl Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts { place, found, expected, remedy } = &*self.0;
        write!(f, "{place}: {found}")?;
        if !expected.is_empty() {
            write!(f, ", expected {expected}")?;
        }
        if !remedy.is_empty() {
            write!(f, "; {remedy}")?;
        }
        Ok(())
    }
}

impl Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Line(place) => place.fmt(f),
            Location::Text(text) => f.write_str(text),
        }
    }
}

impl From<Place> for Location {
    fn from(place: Place) -> Self {
        Location::Line(place)
    }
}

impl From<&Path> for Location {
    fn from(file: &Path) -> Self {
        Location::Text(file.display().to_string())
    }
}

impl From<&PathBuf> for Location {
    fn from(file: &PathBuf) -> Self {
        file.as_path().into()
    }
}

impl From<String> for Location {
    fn from(text: String) -> Self {
        Location::Text(text)
    }
}

impl From<&str> for Location {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_empty_is_left_out_and_long_text_is_cut() {
        assert_eq!(ReadError::new("a", "is gone", "", "").to_string(), "a: is gone");
        let error = ReadError::text("a: line 1", &"x\t".repeat(400), "a row", "");
        assert!(
            error.found().starts_with("found \"x\\tx") && error.found().ends_with("\\t\" ..."),
            "{error}"
        );
        assert!(error.to_string().ends_with(", expected a row"), "{error}");
        assert_eq!((error.expected(), error.remedy()), ("a row", ""));
    }

    #[test]
    fn an_error_of_a_chunk_moves_down_the_file() {
        let place = Place { file: "a.rrf".into(), line: 2, column: Some((3, "SAB")) };
        let error = ReadError::text(place, "", "a source", "").moved(40);
        assert_eq!(error.to_string(), "a.rrf: line 42, column 3 (SAB): found \"\", expected a source");
        assert_eq!(error.place().to_string(), "a.rrf: line 42, column 3 (SAB)");
    }
}
