//! An error with its causes as one text that says nothing twice.

/// The error and its causes, outermost first; a cause that the text before it already tells is left out.
#[must_use]
pub(crate) fn text(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("x.json: {source}")]
    struct Outer {
        source: std::io::Error,
    }

    #[test]
    fn every_cause_is_told_once() {
        let error = Outer { source: std::io::Error::other("no room") };
        let error = anyhow::Error::new(error).context("cannot save");
        assert_eq!(text(&error), "cannot save: x.json: no room");
    }
}
