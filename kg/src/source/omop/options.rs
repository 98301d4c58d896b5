//! What a config says of OMOP vocabularies.

use std::collections::BTreeSet;

use base::share::Share;
use serde::{Deserialize, Serialize};

use crate::source::files::Location;
use crate::source::ontology::{Obsolete, Taken};
use crate::source::xref::Xref;

/// OMOP vocabularies: where they lie and what is taken of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The folder with `CONCEPT.csv` and the other tables, as Athena packs them; they may be packed (`.gz`).
    #[serde(skip_serializing)]
    pub path: Location,
    /// The vocabularies whose concepts are kept, as column `vocabulary_id` has them (`SNOMED`, `RxNorm`). Without it, all of them.
    pub vocabularies: Option<BTreeSet<String>>,
    /// Whether only standard and classification concepts are kept.
    ///
    /// Source: ours: because the others are what their users wish to see mapped.
    #[serde(default)]
    pub concepts: Concepts,
    /// Languages of the synonyms to keep, by their concepts.
    ///
    /// Source: ours: 4180186 is English, in which all names are.
    #[serde(default = "Options::english")]
    pub languages: BTreeSet<u32>,
    /// The relationships to keep, in lower case with `_` for blanks (`is_a`, `has_finding_site`). Without it, all of them.
    pub relations: Option<BTreeSet<String>>,
    /// What `Maps to` means. A concept that several map to is wider than each: it is none of them, and that is counted; where just one of them is called as it is, it is that one all the same.
    ///
    /// Source: ours: because that is how OMOP says that two codes mean the same.
    #[serde(default)]
    pub maps_to: MapsTo,
    /// What to do with invalid concepts and their relationships.
    ///
    /// Source: ours: because OMOP itself no longer uses them.
    #[serde(default)]
    pub obsolete: Obsolete,
    /// Licence level of the whole source, texts and triples: 0 to 9, as the source restriction levels of UMLS. Without it, the source has
    /// no level.
    pub level: Option<u8>,
    /// The share of concepts in triples that may have no name and then go by their keys, 0 to 1; relationships are called by their ids, which are words.
    ///
    /// Source: ours: because a missing name is more often a wrong or truncated file than a nameless concept.
    #[serde(default)]
    pub max_untexted: Share,
}

/// Which concepts are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Concepts {
    /// All.
    #[default]
    All,
    /// Those with `S` or `C` in column `standard_concept`; others are dropped and counted.
    Standard,
}

/// What `Maps to` means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MapsTo {
    /// That both are the same.
    #[default]
    SameAs,
    /// A relationship like any other.
    Relation,
}

impl Options {
    pub(super) fn english() -> BTreeSet<u32> {
        [4_180_186].into()
    }

    pub(super) fn taken(&self) -> Taken<'_> {
        Taken {
            relations: self.relations.as_ref(),
            xref: if self.maps_to == MapsTo::SameAs { Xref::SameAs } else { Xref::Ignore },
            obsolete: self.obsolete,
            level: self.level,
            max_untexted: self.max_untexted,
            ..Taken::default()
        }
    }
}
