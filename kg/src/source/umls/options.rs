//! What to take of a Metathesaurus.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::source::files::Location;

/// UMLS: where it lies and what is taken of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The folder with `MRCONSO.RRF`, `MRREL.RRF` and whichever of the others there are; plain, `.gz` or in parts.
    #[serde(skip_serializing)]
    pub path: Location,
    /// Languages of names as in column LAT (`ENG`), the preferred one first; names in others are left out.
    #[serde(default = "english")]
    pub languages: Vec<String>,
    /// What to do with rows that the publisher suppresses (column SUPPRESS is O, E or Y).
    #[serde(default)]
    pub suppressed: Suppressed,
    /// Source vocabularies to take names, definitions and relations from; none takes all.
    pub vocabularies: Option<Vocabularies>,
    /// The highest source restriction level to take, 0 to 9 (column SRL of MRSAB; 0 is free of restrictions beyond the
    /// licence's); none takes all. Needs MRSAB.
    pub max_srl: Option<u8>,
    /// Semantic types, by TUI (`T047`) or name, of which both ends of a triple must have one; none takes all. Needs MRSTY.
    pub semantic_types: Option<BTreeSet<String>>,
    /// Broad relations to take (column REL); naming one of two inverses takes both. None takes all.
    pub rels: Option<BTreeSet<String>>,
    /// Relations to take, as RELA has them, or REL where that stands in for an empty RELA; naming one of two inverses takes both and
    /// makes the named one canonical. None takes all.
    pub relations: Option<BTreeSet<String>>,
    /// Relations with fewer distinct triples are left out; none leaves no relation out.
    pub min_relation_count: Option<u64>,
    /// What to do with relations that have no RELA.
    #[serde(default)]
    pub unlabelled: Unlabelled,
    /// What to do with names beside the preferred one.
    #[serde(default)]
    pub terms: Keep,
    /// What to do with definitions. To keep them needs MRDEF.
    #[serde(default)]
    pub definitions: Keep,
}

fn english() -> Vec<String> {
    vec!["ENG".to_owned()]
}

/// Source vocabularies, as column SAB has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Vocabularies {
    /// Those to take; none takes all.
    pub allow: Option<BTreeSet<String>>,
    /// Those to leave out, also if they are in `allow`.
    #[serde(default)]
    pub deny: BTreeSet<String>,
}

/// What to do with suppressed names and relations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Suppressed {
    /// Leave them out.
    #[default]
    Drop,
    /// Take them; a name that is not suppressed is still preferred.
    Keep,
}

/// What to do with relations of which only the broad kind (REL) is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unlabelled {
    /// Leave them out.
    #[default]
    Drop,
    /// Call them by REL: `PAR`, `RB`, `RO`.
    UseRel,
}

/// Whether something goes into the table of terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// It does.
    #[default]
    Keep,
    /// It does not.
    Drop,
}
