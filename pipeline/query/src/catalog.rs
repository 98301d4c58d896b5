//! The tables: which files each is made of, its columns, and what a row is. Adding one is an entry in a list below and a row in docs/query.md.

mod graph;
mod texts;
mod training;

use serde_json::Value;

/// A table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table {
    /// Its name; a `*` is what the first `*` of `file` stands for.
    pub name: &'static str,
    /// The stages that make it, as a pattern.
    pub stage: &'static str,
    /// Its files, as a pattern.
    pub file: &'static str,
    /// What a row is.
    pub row: &'static str,
    /// Where rows come from.
    pub rows: Rows,
}

/// Where rows come from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rows {
    /// Rows of Parquet files. Columns that are not named follow those that are.
    Parquet(&'static [Col]),
    /// An element of a list in the rows of Parquet files.
    Exploded(&'static str, &'static [Col]),
    /// Records of JSON lines.
    Lines(Each, &'static [Field]),
    /// Records of a JSON document.
    Document(Each, &'static [Field]),
    /// Lines of a text, numbered.
    Words,
}

/// The records that a JSON document or line consists of.
pub(crate) type Each = fn(&Value) -> Vec<Value>;

/// A column of a table of Parquet files.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Col {
    /// A stored one, under this name.
    As(&'static str, &'static str),
    /// The number of the row.
    Row(&'static str),
    /// The part that a file's name begins with.
    Part,
    /// What the ids in a stored column (or in a column that numbers rows) lead to, from file to file.
    Name(&'static str, &'static str, &'static [Stored]),
}

/// A stored column whose rows are numbered by ids.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stored {
    pub stage: &'static str,
    pub file: &'static str,
    pub column: &'static str,
    pub what: What,
}

/// What a stored column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Text,
    Ids,
}

/// A column of a table of JSON records: its name, where a record has it (a JSON pointer, or one of `@stage`, `@star`, `@folder`, `@benchmark`,
/// `@variant`, which say where it stands), and its type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub name: &'static str,
    pub at: &'static str,
    pub of: Type,
}

const fn field(name: &'static str, at: &'static str, of: Type) -> Field {
    Field { name, at, of }
}

/// The type of a JSON column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Text,
    Int,
    Float,
    Bool,
    Texts,
    Ints,
    /// Anything, as JSON.
    Json,
}

const fn text(stage: &'static str, file: &'static str, column: &'static str) -> Stored {
    Stored { stage, file, column, what: What::Text }
}

/// All tables, in the order in which data flows.
pub(crate) fn all() -> impl Iterator<Item = &'static Table> {
    [graph::TABLES, texts::TABLES, training::TABLES].into_iter().flatten()
}
