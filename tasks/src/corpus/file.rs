//! Documents of a file of any of the formats. Knows no token.

use std::io::BufRead;
use std::path::Path;

use kg::source::funnel::Tally;
use serde::{Deserialize, Serialize};

use super::{Counts, Document, Labels, SpanTally, conll, jsonl, text};

/// What a file looks like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Format {
    /// Plain text; nothing is marked in it.
    Text(text::Unit),
    /// A JSON object a line.
    Jsonl(jsonl::Config),
    /// A word and its tag a line.
    Conll(conll::Config),
}

impl Format {
    /// Whether files of it say which entities are in them.
    #[must_use]
    pub fn has_spans(&self) -> bool {
        !matches!(self, Format::Text(_))
    }
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error<E> {
    /// Plain text.
    #[error(transparent)]
    Text(text::Error),
    /// JSON lines.
    #[error(transparent)]
    Jsonl(jsonl::Error),
    /// CoNLL.
    #[error(transparent)]
    Conll(conll::Error),
    /// What was done with a document failed.
    #[error(transparent)]
    Each(E),
}

/// Hands each document of a file to `each`. `file` names it in messages.
///
/// # Errors
/// When the file is damaged, or `each` fails.
pub fn documents<R: BufRead, E: std::error::Error>(
    (reader, file): (R, &Path),
    format: &Format,
    labels: &mut Labels,
    mut each: impl FnMut(&Document) -> Result<(), E>,
) -> Result<Counts, Error<E>> {
    let mut document = Document::default();
    match format {
        Format::Text(unit) => {
            let mut reader = text::Reader::new(reader, file, *unit);
            while reader.read(&mut document).map_err(Error::Text)? {
                each(&document).map_err(Error::Each)?;
            }
            let documents: Tally = reader.tally();
            Ok(Counts { documents, spans: SpanTally::default() })
        }
        Format::Jsonl(config) => {
            let mut reader = jsonl::Reader::new(reader, file, *config);
            while reader.read(&mut document, labels).map_err(Error::Jsonl)? {
                each(&document).map_err(Error::Each)?;
            }
            Ok(reader.counts())
        }
        Format::Conll(config) => {
            let mut reader = conll::Reader::new(reader, file, config.clone());
            while reader.read(&mut document, labels).map_err(Error::Conll)? {
                each(&document).map_err(Error::Each)?;
            }
            Ok(reader.counts())
        }
    }
}
