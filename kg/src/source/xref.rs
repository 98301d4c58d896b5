//! What references of a term to other namespaces mean.

use serde::{Deserialize, Serialize};

/// What the column `xref` means: publishers differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Xref {
    /// It lists related records and is not read.
    #[default]
    Ignore,
    /// It identifies the same entity in another source.
    SameAs,
}
