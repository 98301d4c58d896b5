//! What is wrong with a TOML text, without showing a URL that may be signed. Knows no key.

/// The line and the parser's word; the line itself is not shown.
pub(crate) fn told(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map_or_else(String::new, |text| format!("line {}: ", text.matches('\n').count() + 1));
    match error.message() {
        message if message.contains("://") => format!("{line}a URL stands where something else is expected"),
        message => format!("{line}{message}"),
    }
}
