//! The rows of the triple table. Knows no file.

use std::cmp::Ordering;

use super::id::{EntityId, RelationId};

/// Something that triples are about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    /// Identity across sources: `umls:C0000005`, or `name:` and the folded name where a source has names only.
    pub key: String,
    /// Preferred name, as printed by the first source that named it.
    pub text: String,
    /// What kind of thing it is, sorted.
    pub types: Vec<SemanticType>,
    /// Names of the sources whose triples mention it, sorted.
    pub origins: Vec<String>,
}

/// A kind of entity: a UMLS semantic type (code T184, name "Sign or Symptom"), or the role that an entity has in a source without
/// types (no code, name "symptom" or "disease").
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SemanticType {
    /// UMLS TUI, if it has one.
    pub code: Option<String>,
    /// The name.
    pub name: String,
}

/// What a triple says of its subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// Identity across sources, as the source writes it: `has_symptom`, `may_treat`.
    pub key: String,
    /// The words an encoder reads: "has symptom".
    pub text: String,
    /// Names of the sources whose triples use it, sorted.
    pub origins: Vec<String>,
}

/// One statement; where it comes from is told by [`super::Graph::origins`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Triple {
    /// Of what it is said.
    pub subject: EntityId,
    /// What is said.
    pub relation: RelationId,
    /// With respect to what.
    pub object: EntityId,
}

/// Where a triple comes from, and how strongly it is held there.
#[derive(Debug, Clone, PartialEq)]
pub struct Origin {
    /// Name of the source: `hsdn`, `rotmensch`, `umls`.
    pub source: String,
    /// Vocabulary inside the source: the UMLS SAB (`MSH`, `SNOMEDCT_US`); none elsewhere.
    pub vocabulary: Option<String>,
    /// The source's own weight: HSDN's TFIDF score (above 0), Rotmensch's probability (0 to 1); none in UMLS.
    pub weight: Option<f64>,
    /// What was counted: HSDN's articles in PubMed that name both; none elsewhere.
    pub count: Option<u32>,
}

impl Origin {
    /// Order on disk: by source and vocabulary, the stronger of two first.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let strength = |origin: &Self| (origin.weight.unwrap_or(f64::NEG_INFINITY), origin.count);
        let ((weight, count), (other_weight, other_count)) = (strength(self), strength(other));
        (&self.source, &self.vocabulary)
            .cmp(&(&other.source, &other.vocabulary))
            .then(other_weight.total_cmp(&weight))
            .then(other_count.cmp(&count))
    }

    /// Whether both name the same place, whatever the strength.
    pub(crate) fn same_place(&self, other: &Self) -> bool {
        (&self.source, &self.vocabulary) == (&other.source, &other.vocabulary)
    }
}
