//! Triples in a Parquet file, batch by batch.

use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, downcast_integer_array};
use arrow_schema::DataType;
use parquet::file::reader::ChunkReader;
use serde::{Deserialize, Serialize};

use super::fit::{ACTIVE, ACTIVE_ROWS, Rule};
use super::layout::Inactive;
use super::row::{Role, Row};
use crate::table::batches::{self, Batches};

/// Most rows that are decoded at once.
const BATCH: usize = 8192;

/// The columns that are read, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fields {
    /// Of what it is said; text.
    pub subject: String,
    /// What is said; text.
    pub relation: String,
    /// With respect to what; text.
    pub object: String,
    /// How strongly, a floating-point number; null has none.
    pub weight: Option<String>,
    /// Whether the row is valid still: true or false, 1 or 0.
    pub active: Option<String>,
    /// What becomes of rows that are not active, as in tables of text.
    pub inactive: Option<Inactive>,
}

/// Why a Parquet file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is damaged, or uses a coding that is not read.
    #[error("{}: cannot decode it: {source}; fetch the file again, or write it anew with Snappy, gzip, LZ4_RAW, zstd or no compression", file.display())]
    Decode {
        /// The file.
        file: PathBuf,
        /// The decoder's word.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The file would take too much memory.
    #[error("{}: {source}; write it anew with smaller values, pages and row groups", file.display())]
    Large {
        /// The file.
        file: PathBuf,
        /// What would.
        source: batches::Error,
    },
    /// A column is missing or of another type.
    #[error("{}, column {column:?} ({role}): found {found}, expected {expected}; say in the config which column is meant", file.display())]
    Column {
        /// The file.
        file: PathBuf,
        /// The column as the config names it.
        column: String,
        /// What it is read as.
        role: &'static str,
        /// What there is.
        found: String,
        /// What there should be.
        expected: &'static str,
    },
    /// A field is not what its column holds.
    #[error("{}: row {row}, column {column:?} ({role}): found {found:?}, expected {expected}; mend the row, or say in the config which column is meant", file.display())]
    Field {
        /// The file.
        file: PathBuf,
        /// The row, from 1.
        row: u64,
        /// The column as the config names it.
        column: String,
        /// What it is read as.
        role: &'static str,
        /// What stands there, its beginning at least.
        found: String,
        /// What should.
        expected: String,
    },
}

/// What is wrong with a row: in which column, what stands there, what should.
pub(super) type Wrong = (Role, String, String);

/// Gives each row with its number (from 1) to `each`, or what is wrong with it, or nothing if it is inactive and left out. Returns the columns
/// that are not read.
pub(super) fn rows<C: ChunkReader + 'static>(
    (chunks, file): (C, &Path),
    fields: &Fields,
    mut each: impl FnMut(u64, Result<Option<Row<'_>>, Wrong>) -> Result<(), super::Error>,
) -> Result<Vec<String>, super::Error> {
    let refused = |error| match error {
        batches::Error::Decode(source) => Error::Decode { file: file.to_owned(), source },
        source => Error::Large { file: file.to_owned(), source },
    };
    let batches = Batches::new(chunks, BATCH).map_err(refused)?;
    let rule = Rule::new(fields.active.as_ref(), fields.inactive);
    let fields = &fields.with_activity(batches.schema(), rule);
    let roots = fields.roots(batches.schema(), file)?;
    let named = batches.schema().fields().iter().enumerate();
    let unused = named.filter(|(place, _)| !roots.contains(place)).map(|(_, field)| field.name().clone());
    let unused = unused.collect();
    let mut batches = batches.only(roots);
    let mut number = 0;
    while let Some(batch) = batches.next().map_err(refused)? {
        let columns = fields.columns(&batch, file)?;
        for row in 0..batch.num_rows() {
            number += 1;
            match columns.active.as_ref().map_or(Ok(true), |column| activity(column, row)) {
                Ok(false) if rule == Rule::Refuse => {
                    let said = ("0".to_owned(), ACTIVE_ROWS.to_owned());
                    return Err(fields.refused((file, number), Role::Active, said).into());
                }
                Ok(false) => each(number, Ok(None))?,
                Ok(true) => each(number, columns.row(row).map(Some))?,
                // It only happens to be called so.
                Err(_) if rule == Rule::Refuse => each(number, columns.row(row).map(Some))?,
                Err(wrong) => each(number, Err(wrong))?,
            }
        }
    }
    Ok(unused)
}

impl From<Error> for super::Error {
    fn from(error: Error) -> Self {
        Self::Parquet(Box::new(error))
    }
}

impl Fields {
    fn name(&self, role: Role) -> &str {
        match role {
            Role::Subject => &self.subject,
            Role::Relation => &self.relation,
            Role::Object => &self.object,
            Role::Weight => self.weight.as_deref().unwrap_or_default(),
            Role::Active => self.active.as_deref().unwrap_or_default(),
        }
    }

    fn roles(&self) -> impl Iterator<Item = Role> {
        let weight = self.weight.as_ref().map(|_| Role::Weight);
        let active = self.active.as_ref().map(|_| Role::Active);
        [Role::Subject, Role::Relation, Role::Object].into_iter().chain(weight).chain(active)
    }

    /// With the column that says whether rows are active, where that is not named: one that is called so and holds nothing else; where
    /// such rows are read like all others, without one.
    fn with_activity(&self, schema: &arrow_schema::Schema, rule: Rule) -> Self {
        let called = |field: &&std::sync::Arc<arrow_schema::Field>| {
            ACTIVE.contains(&field.name().as_str()) && is_flag(field.data_type())
        };
        let active = match (rule, &self.active) {
            (Rule::Keep, _) => None,
            (_, Some(active)) => Some(active.clone()),
            (Rule::Drop | Rule::Refuse, None) => {
                let found = schema.fields().iter().find(called).map(|field| field.name().clone());
                found.or_else(|| (rule == Rule::Drop).then(|| ACTIVE[0].to_owned()))
            }
        };
        Self { active, ..self.clone() }
    }

    /// What is wrong with a row.
    pub(super) fn refused(
        &self,
        (file, row): (&Path, u64),
        role: Role,
        (found, expected): (String, String),
    ) -> Error {
        let name = if role == Role::Active && self.active.is_none() { ACTIVE[0] } else { self.name(role) };
        let column = name.to_owned();
        Error::Field { file: file.to_owned(), row, column, role: role.name(), found, expected }
    }

    /// The places of the columns, after a look at their types.
    fn roots(&self, schema: &arrow_schema::Schema, file: &Path) -> Result<Vec<usize>, Error> {
        self.roles()
            .map(|role| {
                let wrong = |found: String, expected| {
                    let (file, column) = (file.to_owned(), self.name(role).to_owned());
                    Error::Column { file, column, role: role.name(), found, expected }
                };
                let mut named =
                    schema.fields().iter().enumerate().filter(|(_, field)| field.name() == self.name(role));
                let (Some((place, field)), None) = (named.next(), named.next()) else {
                    let names: Vec<&str> =
                        schema.fields().iter().map(|field| field.name().as_str()).collect();
                    let found = super::start(&format!("columns {}", names.join(", ")));
                    return Err(wrong(found, "exactly one column of that name"));
                };
                match (role, field.data_type()) {
                    (Role::Weight, DataType::Float32 | DataType::Float64) => Ok(place),
                    (Role::Weight, other) => Err(wrong(
                        super::start(&other.to_string()),
                        "floating-point numbers of 32 or 64 bits",
                    )),
                    (Role::Active, kind) if is_flag(kind) => Ok(place),
                    (Role::Active, other) => {
                        Err(wrong(super::start(&other.to_string()), "true or false, or whole numbers"))
                    }
                    (_, DataType::Utf8) => Ok(place),
                    (_, other) => Err(wrong(super::start(&other.to_string()), "text (UTF-8)")),
                }
            })
            .collect()
    }

    fn columns(&self, batch: &RecordBatch, file: &Path) -> Result<Columns, Error> {
        let column = |role: Role| {
            batch.column_by_name(self.name(role)).cloned().ok_or_else(|| Error::Column {
                file: file.to_owned(),
                column: self.name(role).to_owned(),
                role: role.name(),
                found: "none".to_owned(),
                expected: "exactly one column of that name",
            })
        };
        Ok(Columns {
            subject: column(Role::Subject)?,
            relation: column(Role::Relation)?,
            object: column(Role::Object)?,
            weight: self.weight.as_ref().map(|_| column(Role::Weight)).transpose()?,
            active: self.active.as_ref().map(|_| column(Role::Active)).transpose()?,
        })
    }
}

/// The columns of one batch.
struct Columns {
    subject: ArrayRef,
    relation: ArrayRef,
    object: ArrayRef,
    weight: Option<ArrayRef>,
    active: Option<ArrayRef>,
}

impl Columns {
    fn row(&self, row: usize) -> Result<Row<'_>, Wrong> {
        let weight = self.weight.as_ref().map(|column| number(column, row)).transpose()?;
        Ok(Row {
            subject: text(&self.subject, row, Role::Subject)?,
            relation: text(&self.relation, row, Role::Relation)?,
            object: text(&self.object, row, Role::Object)?,
            weight: weight.flatten(),
        })
    }
}

fn text(column: &ArrayRef, row: usize, role: Role) -> Result<&str, Wrong> {
    match column.as_string_opt::<i32>() {
        Some(texts) if texts.is_valid(row) => Ok(texts.value(row)),
        _ => Err((role, "null".to_owned(), "an id".to_owned())),
    }
}

fn number(column: &ArrayRef, row: usize) -> Result<Option<f64>, Wrong> {
    if column.is_null(row) {
        return Ok(None);
    }
    let narrow = column.as_primitive_opt::<Float32Type>().map(|column| f64::from(column.value(row)));
    let wide = column.as_primitive_opt::<Float64Type>().map(|column| column.value(row));
    match narrow.or(wide) {
        Some(weight) if weight.is_finite() => Ok(Some(weight)),
        other => {
            let found = other.map_or_else(String::new, |weight| weight.to_string());
            Err((Role::Weight, found, "a finite number, or null".to_owned()))
        }
    }
}

/// Whether a column may say whether rows are active.
fn is_flag(kind: &DataType) -> bool {
    kind == &DataType::Boolean || kind.is_integer()
}

/// Whether a row is active; null is not.
fn activity(column: &ArrayRef, row: usize) -> Result<bool, Wrong> {
    if let Some(flags) = column.as_boolean_opt() {
        return Ok(flags.is_valid(row) && flags.value(row));
    }
    let shown = downcast_integer_array!(
        column => if column.is_valid(row) { column.value(row).to_string() } else { "0".to_owned() },
        _ => String::new()
    );
    match shown.as_str() {
        "1" => Ok(true),
        "0" => Ok(false),
        _ => Err((Role::Active, shown, "1 or 0".to_owned())),
    }
}
