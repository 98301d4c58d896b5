//! All documents of a reader at once, for tests.
#![cfg(test)]

use std::fmt::{Debug, Display};

use super::Document;

/// All documents that `read` gives, one after the other, until it says that there are no more; it must go on saying so.
pub(super) fn documents<E: Debug>(
    mut read: impl FnMut(&mut Document) -> Result<bool, E>,
) -> Result<Vec<Document>, E> {
    let (mut document, mut all) = (Document::default(), Vec::new());
    while read(&mut document)? {
        all.push(document.clone());
    }
    assert!(!read(&mut document).unwrap(), "the end stays the end");
    Ok(all)
}

/// Identifiers and texts of the same, and errors as they are said.
pub(super) fn texts<E: Debug + Display>(
    read: impl FnMut(&mut Document) -> Result<bool, E>,
) -> Result<Vec<(String, String)>, String> {
    let all = documents(read).map_err(|error| error.to_string())?;
    Ok(all.into_iter().map(|document| (document.id, document.text)).collect())
}
