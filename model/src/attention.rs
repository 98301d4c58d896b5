//! Ways in which the tokens of a row look at each other: siblings, one per file. Knows no layer around it.

pub mod gate;
pub mod plain;
