//! Compact identifiers, `PREFIX:id`, as keys of entities.

/// An identifier with neither part empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Curie<'a> {
    pub(super) prefix: &'a str,
    pub(super) id: &'a str,
}

/// The parts of an identifier; none if either is missing.
pub(super) fn split(curie: &str) -> Option<Curie<'_>> {
    let (prefix, id) = curie.split_once(':')?;
    let is_one = !prefix.is_empty() && !id.is_empty() && !prefix.contains(char::is_whitespace);
    is_one.then_some(Curie { prefix, id })
}

impl Curie<'_> {
    /// The key of the entity: the prefix in lower case, the id as it is.
    pub(super) fn key(self) -> String {
        format!("{}:{}", self.prefix.to_lowercase(), self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_lowered_and_ids_stay() {
        assert_eq!(split("UMLS:C0000005").unwrap().key(), "umls:C0000005");
        assert_eq!(split("GO:x:Y").unwrap().key(), "go:x:Y");
        for none in ["", "plain", ":x", "x:", "two words:x"] {
            assert_eq!(split(none), None, "{none:?}");
        }
    }
}
