//! Writes lines to standard output and standard error. The only place that prints, beside the bars.

use std::io::{self, ErrorKind, Write};

use serde_json::Value;

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// For people.
    Text,
    /// JSON lines.
    Json,
}

/// Prints a line of results. A reader that has gone away (`| head`) is no error.
pub(super) fn line(text: &str) -> io::Result<()> {
    match writeln!(io::stdout().lock(), "{text}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Prints a result in words or as JSON lines.
pub(super) fn result(
    format: Format,
    text: impl FnOnce() -> Vec<String>,
    json: impl FnOnce() -> Vec<Value>,
) -> io::Result<()> {
    match format {
        Format::Text => text().iter().try_for_each(|text| line(text)),
        Format::Json => json().iter().try_for_each(|value| line(&value.to_string())),
    }
}

/// Prints a line of events or errors, without credentials in whatever was given. If even that fails there is nobody left to tell.
pub(super) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", store::location::scrubbed(text));
}
