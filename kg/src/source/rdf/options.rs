//! What a config says of a graph in RDF.

use std::collections::{BTreeMap, BTreeSet};

use base::setting::InvalidSetting;
use base::share::Share;
use serde::{Deserialize, Serialize};

use super::iris::Prefixes;
use crate::source::check_level;
use crate::source::files::Location;
use crate::source::ontology::{Obsolete, Taken};
use crate::source::xref::Xref;

/// A graph in RDF: where it lies and what is taken of it. Predicates are IRIs, or names with a prefix (`skos:broader`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The files: N-Triples (`.nt`) or Turtle (`.ttl`), perhaps packed (`.gz`).
    #[serde(skip_serializing)]
    pub files: Vec<Location>,
    /// Prefixes by which keys and predicates are short, each with what its IRIs begin with: `{ drugbank = "http://bio2rdf.org/drugbank:" }`. Known are rdf,
    /// rdfs, owl, skos, dcterms, schema, oboInOwl, obo, wd and wdt (Wikidata), mesh, snomed, umls; `http://purl.obolibrary.org/obo/DOID_4` is `doid:4`.
    /// An IRI with another beginning is a key as it stands.
    #[serde(default)]
    pub prefixes: BTreeMap<String, String>,
    /// Predicates whose literals are names; the first that a thing has is its text, the others are synonyms.
    ///
    /// Source: RDF Schema 1.1, section 3.6, and SKOS, section 5.
    #[serde(default = "Options::default_names")]
    pub names: Vec<String>,
    /// Predicates whose literals are synonyms.
    ///
    /// Source: SKOS, section 5, and the OBO Foundry's exact synonyms.
    #[serde(default = "Options::default_synonyms")]
    pub synonyms: Vec<String>,
    /// Predicates whose literals are definitions.
    ///
    /// Source: SKOS, section 7, the OBO Foundry's definition, schema.org's description, which Wikidata uses.
    #[serde(default = "Options::default_definitions")]
    pub definitions: Vec<String>,
    /// Predicates that say what a thing is called elsewhere.
    ///
    /// Source: OWL 2, section 9.6.1, and SKOS, section 10.
    #[serde(default = "Options::default_same")]
    pub same: Vec<String>,
    /// Languages of the literals to keep, the preferred one first; "" for those without a language. `en` stands for `en-GB`, too.
    ///
    /// Source: ours: because most graphs have English names, or names without a language.
    #[serde(default = "Options::default_languages")]
    pub languages: Vec<String>,
    /// The predicates whose statements are triples. Without it, all that are not one of those above.
    pub relations: Option<BTreeSet<String>>,
    /// What to do with deprecated terms and their triples.
    ///
    /// Source: ours: because the graph itself no longer uses them.
    #[serde(default)]
    pub obsolete: Obsolete,
    /// Licence level of the whole source, texts and triples: 0 to 9, as the source restriction levels of UMLS. Without it, the source has
    /// no level.
    pub level: Option<u8>,
    /// The share of predicates in triples that may be codes without a name (`wdt:P780`) and then go by their codes, 0 to 1.
    ///
    /// Source: ours: because a missing name is more often a file that was not given than a nameless predicate.
    #[serde(default)]
    pub max_untexted: Share,
}

fn all(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

impl Options {
    fn default_names() -> Vec<String> {
        all(&["skos:prefLabel", "rdfs:label"])
    }

    fn default_synonyms() -> Vec<String> {
        all(&["skos:altLabel", "oboInOwl:hasExactSynonym"])
    }

    fn default_definitions() -> Vec<String> {
        all(&["skos:definition", "obo:IAO_0000115", "schema:description"])
    }

    fn default_same() -> Vec<String> {
        all(&["owl:sameAs", "skos:exactMatch"])
    }

    fn default_languages() -> Vec<String> {
        all(&["en", ""])
    }

    pub(super) fn taken<'o>(&'o self, relations: Option<&'o BTreeSet<String>>) -> Taken<'o> {
        Taken {
            relations,
            xref: Xref::SameAs,
            obsolete: self.obsolete,
            level: self.level,
            max_untexted: self.max_untexted,
            ..Taken::default()
        }
    }

    pub(super) fn check_all(&self) -> Result<(), InvalidSetting> {
        for (key, empty) in [
            ("files", self.files.is_empty()),
            ("names", self.names.is_empty()),
            ("languages", self.languages.is_empty()),
            ("relations", self.relations.as_ref().is_some_and(BTreeSet::is_empty)),
        ] {
            if empty {
                return Err(InvalidSetting::new(key, "empty", "one at least"));
            }
        }
        for (name, iri) in &self.prefixes {
            let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.';
            if name.is_empty() || !name.chars().all(fits) {
                let expected = "letters, digits, _, - and .";
                return Err(InvalidSetting::new("prefixes", format!("{name:?}"), expected));
            }
            if !iri.contains(':') {
                let expected = "what IRIs begin with (http://bio2rdf.org/drugbank:)";
                return Err(InvalidSetting::new(format!("prefixes.{name}"), format!("{iri:?}"), expected));
            }
        }
        let prefixes = Prefixes::new(&self.prefixes);
        let lists = [
            ("names", &self.names),
            ("synonyms", &self.synonyms),
            ("definitions", &self.definitions),
            ("same", &self.same),
        ];
        let named = lists.into_iter().flat_map(|(key, names)| names.iter().map(move |name| (key, name)));
        let asked = self.relations.iter().flatten().map(|name| ("relations", name));
        for (key, name) in named.chain(asked) {
            if !prefixes.knows(name) {
                let expected = "an IRI, or a name with a prefix that is known or declared in `prefixes`";
                return Err(InvalidSetting::new(key, format!("{name:?}"), expected));
            }
        }
        check_level("level", self.level)
    }
}
