//! An error with its causes as one text that says nothing twice, and what to do about those that are no stage's fault.

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

/// Adds what to do to the commonest failures that are no stage's fault. By their text, because libraries wrap errors beyond
/// recognition.
pub(super) fn with_remedy(error: String) -> String {
    if error.contains("No space left on device") {
        return format!(
            "{error}: the disk is full; free some space (`engraft gc --all` removes what is kept of earlier settings) \
                        or choose another folder with --out, then run again (nothing made earlier was lost)"
        );
    }
    if error.contains("Resource temporarily unavailable") {
        return format!(
            "{error}: the system gives no more threads; allow more (`ulimit -u`) or use fewer with --jobs, then run again \
                        (nothing made earlier was lost)"
        );
    }
    error
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
