//! The rows of the triple table.

use std::cmp::Ordering;

use super::id::{EntityId, RelationId};

/// Something that triples are about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    /// Identity across sources: `umls:C0000005`, or `name:` and the folded name where a source has names only.
    pub key: String,
    /// Preferred name, as printed by the first source that named it.
    pub text: String,
    /// Licence level of that name (UMLS source restriction level, 0 to 9; 0 has none); none where the source has no levels.
    pub level: Option<u8>,
    /// What kind of thing it is, sorted.
    pub types: Vec<SemanticType>,
    /// Keys that the crosswalk found to mean the same, sorted.
    pub same_as: Vec<String>,
    /// Names of the sources whose triples mention it, sorted.
    pub origins: Vec<String>,
}

/// A kind of entity: a UMLS semantic type (code T184, name "Sign or Symptom"), or the role that an entity has in a source without
/// types (no code, name "symptom" or "disease").
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SemanticType {
    /// UMLS TUI, if it has one.
    pub code: Option<String>,
    /// The name.
    pub name: String,
}

impl SemanticType {
    /// The roles that entities have in sources without types: the columns of HSDN and Rotmensch.
    pub const ROLES: [&str; 2] = ["disease", "symptom"];

    /// Whether it is a role and no semantic type.
    #[must_use]
    pub fn is_role(&self) -> bool {
        self.code.is_none() && Self::ROLES.contains(&self.name.as_str())
    }
}

/// What a triple says of its subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// Identity across sources, as the source writes it: `has_symptom`, `may_treat`.
    pub key: String,
    /// The words an encoder reads: "has symptom".
    pub text: String,
    /// Key of the relation that says the same the other way round; where inverses are folded, its statements were inverted into
    /// this one.
    pub inverse: Option<String>,
    /// All relations that are declared to say the same the other way round, whether that was followed or not, sorted by key.
    pub inverses: Vec<Inverse>,
    /// Whether it says the same both ways round; where inverses are folded, the subject is then the entity with the smaller key.
    pub symmetric: bool,
    /// Names of the sources whose triples use it, sorted.
    pub origins: Vec<String>,
}

/// A relation that says the same the other way round; it may be in no triple.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Inverse {
    /// Its key.
    pub key: String,
    /// Its words.
    pub text: String,
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
    /// The source's own weight: HSDN's TFIDF score (0 or above), Rotmensch's probability (0 to 1); none in UMLS.
    pub weight: Option<f64>,
    /// What was counted: HSDN's articles in PubMed that name both; none elsewhere.
    pub count: Option<u32>,
    /// Licence level of the statement (UMLS source restriction level, 0 to 9; 0 has none); none where the source has no levels.
    pub level: Option<u8>,
}

/// Which way round an origin states a triple.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// As the table has it.
    Stated,
    /// The other way round, by the inverse relation or, for a symmetric relation, with subject and object exchanged.
    Inverse,
    /// Both ways.
    Both,
}

impl Direction {
    /// The name on disk.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Direction::Stated => "stated",
            Direction::Inverse => "inverse",
            Direction::Both => "both",
        }
    }
}

/// What a term is to its entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TermKind {
    /// A name that its source prefers.
    Preferred,
    /// Another name.
    Synonym,
    /// A definition or description.
    Definition,
}

impl TermKind {
    /// The name on disk.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TermKind::Preferred => "preferred",
            TermKind::Synonym => "synonym",
            TermKind::Definition => "definition",
        }
    }
}

/// Where terms come from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TermOrigin {
    /// Name of the source: `mesh`, `umls`.
    pub source: String,
    /// Vocabulary inside the source: the UMLS SAB.
    pub vocabulary: Option<String>,
    /// Language as the source writes it: `ENG`.
    pub language: Option<String>,
    /// Licence level, 0 to 9.
    pub level: Option<u8>,
}

/// A text that goes with an entity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term {
    /// The entity.
    pub entity: EntityId,
    /// What the text is to it.
    pub kind: TermKind,
    /// The text, tidied ([`crate::canon::fold::tidy`]).
    pub text: String,
    /// Where it comes from.
    pub origin: TermOrigin,
}

/// A triple that a source publishes as false, in terms of the table: keys as triples would have them, and texts, since what it names need not be
/// in any triple.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Negative {
    /// Keys of subject, relation and object.
    pub keys: [String; 3],
    /// Their texts.
    pub texts: [String; 3],
    /// The source.
    pub source: String,
    /// The part of an official split.
    pub part: Option<String>,
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
            .then(self.level.cmp(&other.level))
    }

    /// Whether both name the same place, whatever the strength.
    pub(crate) fn same_place(&self, other: &Self) -> bool {
        (&self.source, &self.vocabulary) == (&other.source, &other.vocabulary)
    }
}
