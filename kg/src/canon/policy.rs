//! What merging does where there is a choice.

use serde::{Deserialize, Serialize};

/// What to do with statements of a relation whose inverse is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Inverses {
    /// They are inverted into the one of the two that stays; symmetric ones start at the smaller key.
    #[default]
    Fold,
    /// Both stay as stated. Splits by group still keep them together.
    Keep,
}

/// What to do with statements that relate an entity to itself, after the crosswalk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SelfLoops {
    /// They are dropped and counted.
    #[default]
    Drop,
    /// They are kept.
    Keep,
}

/// What to do with a name or key that matches several entities. Either way `crosswalk.parquet` lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ambiguous {
    /// It remains a separate entity.
    #[default]
    Leave,
    /// It takes the smallest of the matching keys.
    First,
}

/// What to do with statements about an entity for which no source has a name though its own names others, and with those of a relation that is called by a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unnamed {
    /// They are an error, unless the source allows a share of such (`max_untexted`): those go by their ids, and a warning says so.
    #[default]
    Refuse,
    /// They are dropped and counted.
    Drop,
}

/// What to do with things that a source names and no triple mentions, as an ontology's subset has them whose parents lie outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unrelated {
    /// They are left out and counted (`unused_entities`).
    #[default]
    Drop,
    /// They are entities like others, with their names: to be found in texts, aligned and linked.
    Keep,
}

/// How statements become one graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// What to do with statements of a relation whose inverse is known.
    pub inverses: Inverses,
    /// What to do with statements of an entity about itself, after the crosswalk.
    pub self_loops: SelfLoops,
    /// What to do with ambiguous names and keys.
    pub ambiguous: Ambiguous,
    /// What to do with what has no name.
    pub unnamed: Unnamed,
    /// What to do with what is in no triple.
    pub unrelated: Unrelated,
    /// Namespaces of keys (what stands before `:`), the preferred one first: where a name fits one entity in each of two, it
    /// means that of the earlier.
    pub namespaces: Vec<String>,
}

impl Default for Policy {
    fn default() -> Self {
        Self::standard()
    }
}

impl Policy {
    /// Fold inverses, drop self-loops, leave what is ambiguous, prefer UMLS to MeSH to anything else.
    #[must_use]
    pub fn standard() -> Self {
        Self {
            inverses: Inverses::Fold,
            self_loops: SelfLoops::Drop,
            ambiguous: Ambiguous::Leave,
            unnamed: Unnamed::Refuse,
            unrelated: Unrelated::Drop,
            namespaces: ["umls", "mesh"].map(str::to_owned).to_vec(),
        }
    }
}
