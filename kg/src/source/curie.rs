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
    /// The key of the entity: the namespace, which is the prefix in lower case unless publishers write it in several ways; the id as it is.
    pub(super) fn key(self) -> String {
        let prefix = self.prefix.to_lowercase();
        let namespace = match prefix.as_str() {
            "umls_cui" => "umls",
            "msh" => "mesh",
            "snomedct" | "sctid" | "sct" => "snomed",
            // Of an edition, and perhaps a release: SNOMEDCT_US_2025_09_01.
            _ if prefix.starts_with("snomedct_") => "snomed",
            "mim" => "omim",
            _ => &prefix,
        };
        format!("{namespace}:{}", self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_lowered_and_ids_stay() {
        assert_eq!(split("UMLS:C0000005").unwrap().key(), "umls:C0000005");
        assert_eq!(split("GO:x:Y").unwrap().key(), "go:x:Y");
        for (id, key) in [
            ("UMLS_CUI:C1", "umls:C1"),
            ("MSH:D1", "mesh:D1"),
            ("SNOMEDCT_US_2025_09_01:1", "snomed:1"),
            ("SCTID:1", "snomed:1"),
            ("MIM:PS1", "omim:PS1"),
        ] {
            assert_eq!(split(id).unwrap().key(), key);
        }
        for none in ["", "plain", ":x", "x:", "two words:x"] {
            assert_eq!(split(none), None, "{none:?}");
        }
    }
}
