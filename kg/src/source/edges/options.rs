//! What a config says of edge lists.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use base::setting::InvalidSetting;
use base::share::Share;
use serde::{Deserialize, Serialize};

use crate::source::files::Location;
use crate::source::json_rows::Kind;
use crate::source::ontology::Taken;
use crate::source::separated::{Column, FirstLine, Quotes, Separator, Shape};
use crate::source::{Inactive, check_kept, check_level, check_name};

/// Edge lists: where they lie and which of their columns say what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The files, which all have the same layout: tables of text, or JSON, whose keys are its columns (`.jsonl`: a record in each line; `.json`: a document with a list `edges`); they
    /// may be packed (`.gz`).
    #[serde(skip_serializing)]
    pub files: Vec<Location>,
    /// How the files are laid out.
    #[serde(default)]
    pub layout: Layout,
    /// Where a row names its subject.
    pub subject: End,
    /// Where a row names its relation, or which one all rows state.
    pub relation: Relation,
    /// Where a row names its object.
    pub object: End,
    /// Tables of nodes, whose names and types go before those in the edges.
    #[serde(default)]
    pub nodes: Vec<Nodes>,
    /// Namespaces of keys, by what a column of namespaces says, or by the prefixes of ids where there is no such column:
    /// `{ NCBI = "ncbigene", MONDO = "mondo:0000000" }`, where zeros say how many digits the ids have that the file has without them. A namespace that is not listed is itself, in lower case; an id with another prefix, or none, belongs to
    /// this source alone.
    #[serde(default)]
    pub namespaces: BTreeMap<String, String>,
    /// The relations to keep. Without it, all of them.
    pub relations: Option<BTreeSet<String>>,
    /// Pairs of relations that are inverses of each other. A relation paired with itself is symmetric.
    ///
    /// Source: ours: because nothing in an edge says which relations are inverse.
    #[serde(default)]
    pub inverses: Vec<[String; 2]>,
    /// Licence level of the whole source, texts and triples: 0 to 9, as the source restriction levels of UMLS. Without it, the source has
    /// no level.
    pub level: Option<u8>,
    /// The share of things in triples that may have no name, and of relations that may be codes (`R108`) without words in `relation.text`, and then go by their keys, 0 to 1.
    ///
    /// Source: ours: because a missing name is more often a wrong layout than a nameless thing.
    #[serde(default)]
    pub max_untexted: Share,
    /// The share of a file's rows that may be dropped as malformed (another width, no id, namespace or relation), 0 to 1. With 0 the first such row is an error.
    ///
    /// Source: ours: because a malformed row more often means a wrong layout than a slip.
    #[serde(default)]
    pub max_unfit: Share,
}

/// How a table is laid out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Layout {
    /// The character between columns.
    ///
    /// Source: ours: a comma is what PrimeKG and most lists with names have.
    pub separator: Separator,
    /// What double quotes around a field mean. Default: `double` for commas and semicolons; with tabs and pipes, a quoted field is an
    /// error.
    pub quotes: Option<Quotes>,
    /// Whether the first line has the names of the columns or is a row of data.
    ///
    /// Source: ours: names say which column is what, so nothing is guessed.
    pub first_line: FirstLine,
    /// The column that says whether a row is still valid: 1 or 0 (or true, false, yes, no).
    pub active: Option<Column>,
    /// What to do with rows whose column `active` is 0: drop and count them, of a node together with its edges, or read them like any other. Without it
    /// they are dropped if `active` names the column; otherwise a 0 in a column called `active` is an error.
    pub inactive: Option<Inactive>,
}

impl Default for Layout {
    fn default() -> Self {
        let (separator, first_line) = (Separator::Comma, FirstLine::default());
        Self { separator, quotes: None, first_line, active: None, inactive: None }
    }
}

impl Layout {
    pub(super) fn shape(&self) -> Shape {
        Shape { separator: self.separator, quotes: self.quotes, first_line: self.first_line }
    }

    fn check(&self, key: &str, holds: Holds) -> Result<(), InvalidSetting> {
        // To say that there are names is to say what is the default.
        let first_line = if self.first_line.has_names() { FirstLine::default() } else { self.first_line };
        let of_tables = Self { active: None, inactive: None, first_line, ..self.clone() };
        if holds == Holds::Json && of_tables != Self::default() {
            let (key, found) = (key.to_owned(), "`separator`, `quotes` or `first_line`");
            return Err(InvalidSetting::new(key, found, "none of them: the files are JSON"));
        }
        let active = self.active.as_ref();
        active.map_or(Ok(()), |column| check_column(&format!("{key}.active"), column, self.first_line, holds))
    }
}

/// The columns of a subject, an object or a node: names, or positions from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// The column of its id.
    pub id: Column,
    /// The column of its name. Without it, names come from the tables of nodes.
    pub name: Option<Column>,
    /// The column of its type.
    #[serde(rename = "type")]
    pub kind: Option<Column>,
    /// The column of its id's namespace.
    pub namespace: Option<Column>,
}

/// Where the relation stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Relation {
    /// The column of the relation; or else `is`.
    pub column: Option<Column>,
    /// The relation that every row states; or else `column`.
    pub is: Option<String>,
    /// The column of its words. Without it, they are the relation's own with blanks for `_`.
    pub text: Option<Column>,
}

/// A table of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nodes {
    /// Location of the file, a table or JSON as in `files` (the list of a document is `nodes`); it may be packed (`.gz`).
    #[serde(skip_serializing)]
    pub path: Location,
    /// How the file is laid out.
    #[serde(default)]
    pub layout: Layout,
    /// Where a row names the node.
    pub columns: End,
}

impl Options {
    pub(super) fn taken(&self) -> Taken<'_> {
        Taken {
            relations: self.relations.as_ref(),
            level: self.level,
            max_untexted: self.max_untexted,
            relation_key: str::to_owned,
            ..Taken::default()
        }
    }

    pub(super) fn check_all(&self, name: &str) -> Result<(), InvalidSetting> {
        check_name(name)?;
        if self.files.is_empty() {
            return Err(InvalidSetting::new("files", "empty", "at least one file"));
        }
        check_kept([("relations", self.relations.as_ref())])?;
        let Relation { column, is, text } = &self.relation;
        match (column, is, text) {
            (Some(_), None, _) => {}
            (None, Some(is), None) if !is.trim().is_empty() => {}
            (None, Some(_), None) => return Err(InvalidSetting::new("relation.is", "empty", "a relation")),
            (None, Some(_), Some(_)) => {
                return Err(InvalidSetting::new("relation.text", "given", "left out: `is` has the words"));
            }
            _ => {
                let found =
                    if column.is_some() { "both `column` and `is`" } else { "neither `column` nor `is`" };
                return Err(InvalidSetting::new("relation", found, "one of the two"));
            }
        }
        let holds = Holds::of(&self.files);
        self.layout.check("layout", holds)?;
        for (key, end) in [("subject", &self.subject), ("object", &self.object)] {
            end.check(key, self.layout.first_line, holds)?;
        }
        for (key, column) in [("column", &self.relation.column), ("text", &self.relation.text)] {
            let key = format!("relation.{key}");
            column.iter().try_for_each(|column| check_column(&key, column, self.layout.first_line, holds))?;
        }
        for (number, nodes) in self.nodes.iter().enumerate() {
            let holds = Holds::of(std::slice::from_ref(&nodes.path));
            nodes.layout.check(&format!("nodes.{number}.layout"), holds)?;
            nodes.columns.check(&format!("nodes.{number}.columns"), nodes.layout.first_line, holds)?;
        }
        check_level("level", self.level)
    }
}

impl End {
    /// The columns that are asked for.
    pub(super) fn columns(&self) -> impl Iterator<Item = &Column> {
        self.named().map(|(_, column)| column)
    }

    fn named(&self) -> impl Iterator<Item = (&'static str, &Column)> {
        let columns = [
            ("id", Some(&self.id)),
            ("name", self.name.as_ref()),
            ("type", self.kind.as_ref()),
            ("namespace", self.namespace.as_ref()),
        ];
        columns.into_iter().filter_map(|(name, column)| Some((name, column?)))
    }

    fn check(&self, key: &str, first_line: FirstLine, holds: Holds) -> Result<(), InvalidSetting> {
        self.named()
            .try_for_each(|(name, column)| check_column(&format!("{key}.{name}"), column, first_line, holds))
    }
}

/// What files hold, by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Tables,
    Json,
    Both,
}

impl Holds {
    fn of(files: &[Location]) -> Self {
        // A URL may be signed.
        let path = |file: &Location| Kind::of(Path::new(file.0.split(['?', '#']).next().unwrap_or_default()));
        let is_table = |file: &Location| path(file) == Kind::Table;
        match (files.iter().any(is_table), files.iter().all(is_table)) {
            (_, true) => Self::Tables,
            (true, false) => Self::Both,
            (false, false) => Self::Json,
        }
    }
}

/// Refuses a name where no line has names, and a position where columns are keys.
fn check_column(
    key: &str,
    column: &Column,
    first_line: FirstLine,
    holds: Holds,
) -> Result<(), InvalidSetting> {
    if let (Column::Position(found), Holds::Json | Holds::Both) = (column, holds) {
        return Err(InvalidSetting::new(
            key.to_owned(),
            found.to_string(),
            "a key: records of JSON have no positions",
        ));
    }
    let (Column::Name(found), FirstLine::Row) = (column, first_line) else { return Ok(()) };
    let expected = "its position from 1, for `first_line = \"row\"` says that no line has names";
    Err(InvalidSetting::new(key.to_owned(), format!("{found:?}"), expected))
}
