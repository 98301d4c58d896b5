//! Compact identifiers, `PREFIX:id`, as keys of entities.

/// Prefix and id; none if either is missing.
pub(super) fn split(curie: &str) -> Option<(&str, &str)> {
    let (prefix, id) = curie.split_once(':')?;
    (!prefix.is_empty() && !id.is_empty() && !prefix.contains(char::is_whitespace)).then_some((prefix, id))
}

/// The key of the entity: the prefix in lower case, the id as it is.
pub(super) fn key((prefix, id): (&str, &str)) -> String {
    format!("{}:{id}", prefix.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_lowered_and_ids_stay() {
        assert_eq!(key(split("UMLS:C0000005").unwrap()), "umls:C0000005");
        assert_eq!(key(split("GO:x:Y").unwrap()), "go:x:Y");
        for none in ["", "plain", ":x", "x:", "two words:x"] {
            assert_eq!(split(none), None, "{none:?}");
        }
    }
}
