//! IRIs in short: `skos:broader` for `http://www.w3.org/2004/02/skos/core#broader`, and back.

use std::collections::BTreeMap;

use crate::source::curie;

/// Prefixes that need not be declared.
const KNOWN: [(&str, &str); 13] = [
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ("owl", "http://www.w3.org/2002/07/owl#"),
    ("skos", "http://www.w3.org/2004/02/skos/core#"),
    ("dcterms", "http://purl.org/dc/terms/"),
    ("schema", "http://schema.org/"),
    ("oboInOwl", "http://www.geneontology.org/formats/oboInOwl#"),
    ("obo", "http://purl.obolibrary.org/obo/"),
    ("wd", "http://www.wikidata.org/entity/"),
    ("wdt", "http://www.wikidata.org/prop/direct/"),
    ("mesh", "http://id.nlm.nih.gov/mesh/"),
    ("snomed", "http://snomed.info/id/"),
    ("umls", "http://linkedlifedata.com/resource/umls/id/"),
];

/// The prefixes of a config, and those that are known.
#[derive(Debug)]
pub(super) struct Prefixes {
    /// By what IRIs begin with.
    all: BTreeMap<String, String>,
}

impl Prefixes {
    /// `own` are those of a config, by their names: they go before those that are known.
    pub(super) fn new(own: &BTreeMap<String, String>) -> Self {
        let known = KNOWN.iter().filter(|(name, _)| !own.contains_key(*name));
        let known = known.map(|(name, iri)| ((*iri).to_owned(), (*name).to_owned()));
        let mut all: BTreeMap<String, String> = known.collect();
        all.extend(own.iter().map(|(name, iri)| (iri.clone(), name.clone())));
        Self { all }
    }

    /// Whether a name in a config is an IRI, or has a prefix that is known. `is_a` stands for `rdfs:subClassOf`.
    pub(super) fn knows(&self, name: &str) -> bool {
        let Some((prefix, rest)) = name.split_once(':') else { return name == "is_a" };
        rest.starts_with("//") || prefix == "urn" || self.all.values().any(|known| known == prefix)
    }

    /// The IRI of a name in a config: `skos:broader`, or an IRI as it stands.
    pub(super) fn iri(&self, name: &str) -> String {
        let Some((prefix, rest)) = name.split_once(':') else { return name.to_owned() };
        let found = self.all.iter().find(|(_, known)| *known == prefix);
        found.map_or_else(|| name.to_owned(), |(iri, _)| format!("{iri}{rest}"))
    }

    /// The name of an IRI, by the longest prefix that it begins with; an IRI without such stays as it is.
    pub(super) fn short(&self, iri: &str) -> String {
        // `http://purl.obolibrary.org/obo/DOID_4` is `DOID:4` without anybody saying so.
        let obo = iri.strip_prefix("http://purl.obolibrary.org/obo/").and_then(|name| name.split_once('_'));
        let declared = self.all.iter().filter(|(start, _)| iri.starts_with(start.as_str()));
        let declared = declared.max_by_key(|(start, _)| start.len());
        match (declared, obo) {
            (Some((start, name)), None) => format!("{name}:{}", &iri[start.len()..]),
            (Some((start, name)), Some(_)) if name != "obo" => format!("{name}:{}", &iri[start.len()..]),
            (_, Some((prefix, id))) => format!("{prefix}:{id}"),
            (None, None) => iri.to_owned(),
        }
    }

    /// The key of what an IRI names.
    pub(super) fn key(&self, iri: &str) -> String {
        let short = self.short(iri);
        if short == iri { short } else { curie::split(&short).map_or(short.clone(), curie::Curie::key) }
    }
}

/// The IRI whose name words a predicate: Wikidata names its properties elsewhere.
pub(super) fn worded(predicate: &str) -> String {
    match predicate.strip_prefix("http://www.wikidata.org/prop/direct/") {
        Some(property) => format!("http://www.wikidata.org/entity/{property}"),
        None => predicate.to_owned(),
    }
}

/// The end of an IRI as words: `hasDrugInteraction` is `has drug interaction`.
pub(super) fn words(iri: &str) -> String {
    let end = iri.rsplit(['#', '/', ':']).find(|end| !end.is_empty()).unwrap_or(iri);
    let mut words = String::with_capacity(end.len() + 8);
    let mut before = ' ';
    for letter in end.chars() {
        if letter == '_' || letter == '-' {
            words.push(' ');
        } else if letter.is_uppercase() && before.is_lowercase() {
            words.push(' ');
            words.extend(letter.to_lowercase());
        } else {
            words.push(letter);
        }
        before = letter;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iris_are_short_by_the_longest_prefix_and_long_again() {
        let own = [("wd", "http://example.org/x/"), ("deep", "http://example.org/x/deep/")];
        let prefixes = Prefixes::new(&own.map(|(name, iri)| (name.to_owned(), iri.to_owned())).into());
        for (iri, short, key) in [
            ("http://www.w3.org/2004/02/skos/core#broader", "skos:broader", "skos:broader"),
            ("http://purl.obolibrary.org/obo/DOID_4", "DOID:4", "doid:4"),
            ("http://purl.obolibrary.org/obo/IAO", "obo:IAO", "obo:IAO"),
            ("http://example.org/x/deep/1", "deep:1", "deep:1"),
            ("http://example.org/x/1", "wd:1", "wd:1"),
            ("http://id.nlm.nih.gov/mesh/D005334", "mesh:D005334", "mesh:D005334"),
            ("urn:a", "urn:a", "urn:a"),
            ("http://Example.org/A", "http://Example.org/A", "http://Example.org/A"),
        ] {
            assert_eq!((prefixes.short(iri).as_str(), prefixes.key(iri).as_str()), (short, key), "{iri}");
        }
        assert!(
            ["skos:broader", "wd:1", "http://x/y", "urn:x:1", "is_a"].iter().all(|name| prefixes.knows(name))
        );
        assert!(!["foo:label", "label"].iter().any(|name| prefixes.knows(name)));
        assert_eq!(
            prefixes.iri("wd:1"),
            "http://example.org/x/1",
            "a declared prefix goes before the known one"
        );
        assert_eq!(prefixes.iri("skos:broader"), "http://www.w3.org/2004/02/skos/core#broader");
        assert_eq!(prefixes.iri("http://example.org/y"), "http://example.org/y");
        assert_eq!(worded("http://www.wikidata.org/prop/direct/P31"), "http://www.wikidata.org/entity/P31");
    }

    #[test]
    fn the_end_of_an_iri_becomes_words() {
        for (iri, expected) in [
            ("http://x/y#hasDrugInteraction", "has drug interaction"),
            ("http://x/part_of", "part of"),
            ("urn:x:MRI-scan", "MRI scan"),
            ("http://x/", "x"),
        ] {
            assert_eq!(words(iri), expected);
        }
    }
}
