//! What a term, a relation and a row are, whatever the format, and what is taken of them.

use std::collections::BTreeSet;

use base::read::{Location, ReadError};
use base::share::Share;
use serde::{Deserialize, Serialize};

use crate::source::curie;
use crate::source::xref::Xref;
use crate::table::SemanticType;
use crate::table::builder::{DraftEntity, DraftRelation};

/// How the meaning of a synonym relates to that of its term.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The same meaning.
    Exact,
    /// A wider meaning.
    Broad,
    /// A narrower meaning.
    Narrow,
    /// A related meaning.
    Related,
}

/// What becomes of obsolete terms and their triples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Obsolete {
    /// They are dropped and counted.
    #[default]
    Drop,
    /// They are read like any other term.
    Keep,
}

/// What is taken of a source.
#[derive(Debug, Clone, Copy)]
pub(in crate::source) struct Taken<'o> {
    /// The relations to keep, as the files name them; all without it.
    pub(in crate::source) relations: Option<&'o BTreeSet<String>>,
    /// Scopes of the synonyms to keep; exact ones without it.
    pub(in crate::source) synonyms: Option<&'o BTreeSet<Scope>>,
    pub(in crate::source) xref: Xref,
    pub(in crate::source) obsolete: Obsolete,
    pub(in crate::source) level: Option<u8>,
    pub(in crate::source) max_untexted: Share,
    /// The key of a relation in the graph by its name in the files.
    pub(in crate::source) relation_key: fn(&str) -> String,
}

impl Default for Taken<'_> {
    fn default() -> Self {
        Self {
            relations: None,
            synonyms: None,
            xref: Xref::Ignore,
            obsolete: Obsolete::Drop,
            level: None,
            max_untexted: Share::default(),
            relation_key,
        }
    }
}

impl Taken<'_> {
    /// Whether synonyms of that scope are kept.
    pub(super) fn takes(&self, scope: Scope) -> bool {
        self.synonyms.map_or(scope == Scope::Exact, |asked| asked.contains(&scope))
    }
}

/// A term.
#[derive(Debug, Default)]
pub(in crate::source) struct Term {
    pub(in crate::source) key: String,
    pub(in crate::source) name: Option<String>,
    pub(in crate::source) definition: Option<String>,
    pub(in crate::source) types: Vec<SemanticType>,
    pub(in crate::source) synonyms: Vec<Synonym>,
    /// Ids in other namespaces.
    pub(in crate::source) xrefs: Vec<String>,
    /// Keys of the file that mean the same.
    pub(in crate::source) means: Vec<String>,
    /// Other keys of it.
    pub(in crate::source) alternatives: Vec<String>,
    /// Keys of what stands in for it.
    pub(in crate::source) replaced_by: Vec<String>,
    pub(in crate::source) is_obsolete: bool,
}

/// Another name of a term.
#[derive(Debug)]
pub(in crate::source) struct Synonym {
    pub(in crate::source) text: String,
    pub(in crate::source) scope: Scope,
}

/// What a term says of another.
#[derive(Debug)]
pub(in crate::source) struct Link {
    pub(in crate::source) relation: String,
    pub(in crate::source) object: String,
}

/// What the files say of a relation.
#[derive(Debug, Default)]
pub(in crate::source) struct Wording {
    pub(in crate::source) text: Option<String>,
    /// Relations that say the same the other way round; itself if it is symmetric.
    pub(in crate::source) inverses: BTreeSet<String>,
}

/// A term of the file.
pub(super) struct Known {
    /// None of an obsolete one that is left out.
    pub(super) entity: Option<DraftEntity>,
    /// Where it stands, in the unit of the file.
    pub(super) at: u64,
    /// Whether it is the subject, the object of a row.
    pub(super) ends: [bool; 2],
}

/// A row, by the keys of its ends.
pub(super) struct Stated {
    pub(super) subject: String,
    pub(super) link: Link,
}

/// A relation, and how often it is used.
#[derive(Default)]
pub(super) struct Relation {
    pub(super) wording: Wording,
    pub(super) draft: Option<DraftRelation>,
    pub(super) rows: u64,
}

/// What the files list terms in.
#[derive(Debug, Clone, Copy)]
pub(in crate::source) struct Listed {
    /// In the plural: stanzas, rows.
    pub(in crate::source) name: &'static str,
    /// Why one may be left out, besides being obsolete.
    pub(in crate::source) reasons: &'static [&'static str],
    /// Why a row of what is none of them is left out.
    pub(in crate::source) stranger: &'static str,
}

/// The key of the relation of a child to its parent, as other sources have it.
const ISA: &str = "isa";

/// The key of a term by its id, or what is wrong with it.
pub(in crate::source) fn key(id: &str, place: &Location) -> Result<String, ReadError> {
    let key = curie::split(id).map(curie::Curie::key);
    let expected = "an id with its prefix (GO:0000001)";
    key.ok_or_else(|| ReadError::text(place.clone(), id, expected, "fix the term"))
}

/// The key of a relation in the graph.
fn relation_key(id: &str) -> String {
    match (id, curie::split(id)) {
        ("is_a", _) => ISA.to_owned(),
        (_, Some(curie)) => curie.key(),
        _ => id.to_owned(),
    }
}
