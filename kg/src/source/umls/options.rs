//! What to take of a Metathesaurus.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::source::files::Location;

/// UMLS: where it lies and what is taken of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The folder with `MRCONSO.RRF`, `MRREL.RRF` and, if present, MRSTY, MRDEF, MRSAB, MRRANK, MRDOC and MRCUI; each plain, `.gz`, or in
    /// parts `.aa.gz`, `.ab.gz` (a gap is an error; a missing last part cannot be detected).
    #[serde(skip_serializing)]
    pub path: Location,
    /// Languages of names (column LAT), most preferred first; names in other languages are dropped.
    ///
    /// Source: KIMERA, section 4.1, which starts from English encoders.
    #[serde(default = "english")]
    pub languages: Vec<String>,
    /// What to do with rows that the publisher suppresses (column SUPPRESS is O, E or Y).
    ///
    /// Source: ours: because UMLS itself marks them as obsolete or suppressible.
    #[serde(default)]
    pub suppressed: Suppressed,
    /// Source vocabularies to use (column SAB): names, relations and definitions from others are dropped; that a code is of a concept is no text and still counts. Without it, all of them.
    pub vocabularies: Option<Vocabularies>,
    /// The highest source restriction level to include, 0 to 9 (column SRL of MRSAB; 0 has no restrictions beyond the UMLS licence).
    /// Codes of names above it still say which keys of other sources a concept has. Without it, all levels. Needs MRSAB.
    pub max_srl: Option<u8>,
    /// Semantic types, by TUI (`T047`) or name, of which both ends of a triple must have one. Without it, all triples are kept. Needs
    /// MRSTY.
    pub semantic_types: Option<BTreeSet<String>>,
    /// Broad relations (column REL) to include; either of two inverses covers both. Without it, all of them.
    pub rels: Option<BTreeSet<String>>,
    /// Relations to include, by column RELA, or by REL where `unlabelled = "use_rel"` puts it in place of an empty RELA. Naming one of two
    /// inverses includes both and keeps the one named. Without it, all relations.
    pub relations: Option<BTreeSet<String>>,
    /// Relations with fewer distinct triples lose their UMLS statements (KIMERA, section 3.1: 10,000). Without it, none are dropped.
    pub min_relation_count: Option<u64>,
    /// What to do with relations that have no RELA.
    ///
    /// Source: KIMERA, section 3.1, which keeps samples that miss none of the three fields, and then sub-relations.
    #[serde(default)]
    pub unlabelled: Unlabelled,
    /// Whether to keep synonyms, the names besides the preferred one.
    ///
    /// Source: ours: because dictionaries of maps (`maps.entities.dictionary`) look for synonyms too.
    #[serde(default)]
    pub terms: Keep,
    /// Whether to keep definitions; keeping them needs MRDEF.
    ///
    /// Source: ours: because a graph should hold what its release says; `drop` where MRDEF is missing.
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
    /// Source vocabularies to include, as in column SAB (`MSH`, `SNOMEDCT_US`). Without it, all of them.
    pub allow: Option<BTreeSet<String>>,
    /// Source vocabularies to leave out, even if they are in `allow`.
    ///
    /// Source: ours: because a release is taken whole unless the config says otherwise.
    #[serde(default)]
    pub deny: BTreeSet<String>,
}

/// What to do with suppressed names and relations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Suppressed {
    /// They are dropped and counted.
    #[default]
    Drop,
    /// They are kept; a name that is not suppressed is still preferred.
    Keep,
}

/// What to do with relations of which only the broad kind (REL) is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unlabelled {
    /// They are dropped and counted.
    #[default]
    Drop,
    /// They are named by REL: `PAR`, `RB`, `RO`.
    UseRel,
}

/// Whether something is kept in the table of terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// They are kept.
    #[default]
    Keep,
    /// They are left out of the graph.
    Drop,
}
