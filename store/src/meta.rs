//! What a store says of an object beside its bytes.

use serde::{Deserialize, Serialize};

/// What tells one state of an object from another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// Its length; nothing where the server does not say.
    pub bytes: Option<u64>,
    /// The entity tag.
    pub etag: Option<String>,
    /// When it was last written, in seconds since the Unix epoch, as the server says.
    pub modified: Option<i64>,
}

impl Meta {
    /// Whether two looks saw the same object: by entity tag where both have one, or else by length and time.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        // What a server leaves unsaid, as some do beside a part of the object, contradicts nothing.
        let agree =
            |one: Option<i128>, other: Option<i128>| one.zip(other).is_none_or(|(one, other)| one == other);
        let bytes = agree(self.bytes.map(i128::from), other.bytes.map(i128::from));
        let told = match (&self.etag, &other.etag) {
            (Some(one), Some(other)) => plain(one) == plain(other),
            _ => agree(self.modified.map(i128::from), other.modified.map(i128::from)),
        };
        bytes && told
    }

    /// Whether a change of the object would be noticed.
    #[must_use]
    pub fn is_telling(&self) -> bool {
        self.etag.is_some() || self.modified.is_some()
    }

    /// The entity tag, if it promises equal bytes (a weak one does not, and no server takes it for a condition).
    pub(crate) fn strong(&self) -> Option<&str> {
        self.etag.as_deref().filter(|etag| !etag.starts_with("W/"))
    }

    /// The state as one text: the same for the same state.
    pub(crate) fn state(&self) -> String {
        match &self.etag {
            Some(etag) => format!("etag {} bytes {:?}", plain(etag), self.bytes),
            None => format!("modified {:?} bytes {:?}", self.modified, self.bytes),
        }
    }

    /// For people.
    pub(crate) fn shown(&self) -> String {
        let bytes = self.bytes.map_or_else(|| "unknown length".to_owned(), |bytes| format!("{bytes} bytes"));
        self.etag
            .as_ref()
            .map_or_else(|| bytes.clone(), |etag| format!("{bytes}, entity tag {}", plain(etag)))
    }
}

/// A web server that compresses on the fly marks tags as weak for one request and not for the next.
fn plain(etag: &str) -> &str {
    etag.strip_prefix("W/").unwrap_or(etag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(bytes: u64, etag: Option<&str>, modified: Option<i64>) -> Meta {
        Meta { bytes: Some(bytes), etag: etag.map(ToOwned::to_owned), modified }
    }

    #[test]
    fn an_entity_tag_decides_and_time_and_length_do_where_there_is_none() {
        let one = meta(9, Some("\"a\""), Some(1));
        assert!(one.is_same(&meta(9, Some("W/\"a\""), Some(2))));
        assert!(!one.is_same(&meta(9, Some("\"b\""), Some(1))));
        assert!(!meta(9, None, Some(1)).is_same(&meta(9, None, Some(2))));
        assert!(!meta(9, None, Some(1)).is_same(&meta(8, None, Some(1))));
        assert!(!meta(9, None, None).is_telling());
        assert_eq!(meta(9, Some("W/\"a\""), None).strong(), None);
    }
}
