//! Writes lines to standard output and standard error. The only place that prints, beside the bars and the answers of models and queries, and where what
//! would steer a terminal (of names, headers, file names, error messages: whatever data may hold) is spelt out.

use std::io::{self, ErrorKind, Write};

use base::visible::shown;
use serde_json::Value;

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// For people.
    Text,
    /// JSON lines.
    Json,
}

/// A text without what would steer a terminal, and without credentials in whatever was given.
pub(super) fn safe(text: &str) -> String {
    shown(&store::location::scrubbed(text)).into_owned()
}

/// Prints a line of results. A reader that has gone away (`| head`) is no error.
pub(super) fn line(text: &str) -> io::Result<()> {
    painted(&safe(text))
}

/// Prints a line in which colours of ours stand. Texts from data must be [`shown`] in it.
pub(super) fn painted(text: &str) -> io::Result<()> {
    match writeln!(io::stdout().lock(), "{text}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Prints what is ours to the last byte, such as a script. A reader that has gone away is no error.
pub(super) fn raw(bytes: &[u8]) -> io::Result<()> {
    match io::stdout().lock().write_all(bytes) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Prints a result as text or as JSON lines.
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

/// Prints a line of events or errors. If even that fails there is nobody left to tell.
pub(super) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", safe(text));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn silent_22_json_that_is_shown_means_the_same() {
        let text = "\u{1b}]0;pwned\u{7}\u{9b}31m\u{85}\n\t\u{202e}\u{2028}\u{7f}";
        let value = json!({ text: [text, "a \\u001b"] });
        let line = value.to_string();
        let safe = shown(&line);
        assert!(!safe.contains(base::visible::steers) && line.contains(base::visible::steers), "{safe}");
        assert_eq!(serde_json::from_str::<Value>(&safe).unwrap(), value);
    }
}
