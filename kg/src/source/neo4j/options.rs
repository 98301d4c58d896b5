//! What a config says of a graph in Neo4j's CSV.

use std::collections::{BTreeMap, BTreeSet};

use base::share::Share;
use serde::{Deserialize, Serialize};

use crate::source::Inactive;
use crate::source::files::Location;
use crate::source::ontology::Taken;
use crate::source::separated::Separator;

/// A graph in Neo4j's CSV: where it lies and what is taken of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The files, each with the names of its columns in its first line; they may be packed (`.gz`). Left out, those of `groups` are all.
    #[serde(default, skip_serializing)]
    pub files: Vec<Location>,
    /// Files that follow each other behind one header, or whose labels or type stand in no column, as `--nodes=Gene=header.csv,part.csv` and `--relationships=TREATS=treats.csv` give them to
    /// `neo4j-admin database import`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
    /// The character between columns; fields may stand in double quotes.
    ///
    /// Source: Neo4j's operations manual, `neo4j-admin database import`: its default.
    #[serde(default = "Options::comma")]
    pub separator: Separator,
    /// The character between the values of a list, and between labels (as `:` is).
    ///
    /// Source: Neo4j's operations manual, `--array-delimiter`: its default.
    #[serde(default = "Options::semicolon")]
    pub array_delimiter: Separator,
    /// The property that is a node's name.
    ///
    /// Source: ours: what most graphs call it.
    #[serde(default = "Options::default_name")]
    pub name: String,
    /// Properties that are synonyms; of a list, each value is one.
    #[serde(default)]
    pub synonyms: Vec<String>,
    /// The property that is a node's definition.
    pub definition: Option<String>,
    /// The property with an id that others know, such as `DOID:4`. Without it, or where a node has none, it is the node's own id.
    pub key: Option<String>,
    /// The property that says whether a node or a relationship is still valid: 1 or 0 (or true, false, yes, no).
    pub active: Option<String>,
    /// What to do with nodes and relationships whose property `active` is 0: drop and count them, a node together with its relationships, or read them like
    /// any other. Without it they are dropped if `active` names the property; otherwise a 0 in a property called `active` is an error.
    pub inactive: Option<Inactive>,
    /// Namespaces of keys by the prefixes of ids: `{ DOID = "doid" }`. An id with another prefix, or none, belongs to this source alone.
    #[serde(default)]
    pub namespaces: BTreeMap<String, String>,
    /// The relations to keep, as `:TYPE` has them. Without it, all of them.
    pub relations: Option<BTreeSet<String>>,
    /// Pairs of relations that are inverses of each other. A relation paired with itself is symmetric.
    ///
    /// Source: ours: because nothing in a relationship says which relations are inverse.
    #[serde(default)]
    pub inverses: Vec<[String; 2]>,
    /// Licence level of the whole source, texts and triples: 0 to 9, as the source restriction levels of UMLS. Without it, the source has
    /// no level.
    pub level: Option<u8>,
    /// The share of nodes in triples that may have no name, and of types of relationships that may be codes (`R108`), and then go by their keys, 0 to 1.
    ///
    /// Source: ours: because a missing name is more often another property than a nameless node.
    #[serde(default)]
    pub max_untexted: Share,
    /// The share of a file's rows that may be dropped as malformed (another width, no id or type, a node that is there already), 0 to 1. With 0 the first such row
    /// is an error.
    ///
    /// Source: ours: because a malformed row more often means another separator than a slip.
    #[serde(default)]
    pub max_unfit: Share,
}

/// Files with one header.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// The files, in order; the first begins with the names of the columns, or has nothing else.
    #[serde(skip_serializing)]
    pub files: Vec<Location>,
    /// Labels of its nodes, beside those of `:LABEL`; they become types.
    #[serde(default)]
    pub labels: Vec<String>,
    /// The type of its relationships that have none in `:TYPE`: the relation.
    #[serde(rename = "type")]
    pub kind: Option<String>,
}

impl Options {
    fn comma() -> Separator {
        Separator::Comma
    }

    fn semicolon() -> Separator {
        Separator::Semicolon
    }

    fn default_name() -> String {
        "name".to_owned()
    }

    /// The properties that are read.
    pub(super) fn properties(&self) -> impl Iterator<Item = &str> {
        let one = [Some(&self.name), self.definition.as_ref(), self.key.as_ref()].into_iter().flatten();
        one.chain(&self.synonyms).map(String::as_str)
    }

    pub(super) fn taken(&self) -> Taken<'_> {
        Taken {
            relations: self.relations.as_ref(),
            level: self.level,
            max_untexted: self.max_untexted,
            relation_key: str::to_owned,
            ..Taken::default()
        }
    }
}
