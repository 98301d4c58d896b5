//! Triples in a Parquet file, batch by batch.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, downcast_integer_array};
use arrow_schema::DataType;
use base::read::ReadError;
use parquet::file::reader::ChunkReader;
use serde::{Deserialize, Serialize};

use super::row::{Role, Row, Wrong};
use crate::source::active::{ACTIVE, ACTIVE_ROWS, Inactive, Rule};
use crate::source::files::Input;
use crate::source::separated::NoRow;
use crate::table::batches::{self, Batches};

/// Most rows that are decoded at once.
const BATCH: usize = 8192;

/// The columns that are read, by name; any others are reported as `columns_not_used`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fields {
    /// The column of the subject, text.
    pub subject: String,
    /// The column of the relation, text.
    pub relation: String,
    /// The column of the object, text.
    pub object: String,
    /// The column of a floating-point number that says how strongly the triple holds; null has none.
    pub weight: Option<String>,
    /// The column that says whether a row is still valid: true or false, or a whole number 1 or 0.
    pub active: Option<String>,
    /// What to do with rows whose column `active` is 0 (false): drop and count them, or read them like any other. Without it they are
    /// dropped if `active` names the column; otherwise a 0 in a column called `active` is an error.
    pub inactive: Option<Inactive>,
}

/// Gives each row with its number (from 1) to `each`, or what is wrong with it, or nothing if it is inactive and left out. Returns the columns
/// that are not read.
pub(super) fn rows<C: ChunkReader + 'static>(
    input: Input<C>,
    fields: &Fields,
    mut each: impl FnMut(u64, Result<Option<Row<'_>>, Wrong>) -> Result<(), ReadError>,
) -> Result<Vec<String>, ReadError> {
    let file = &input.label;
    let refused = |error| match error {
        batches::Error::Decode(source) => {
            let remedy =
                "fetch the file again, or write it anew with Snappy, gzip, LZ4_RAW, zstd or no compression";
            ReadError::new(file, format!("cannot decode it: {source}"), "", remedy)
        }
        source => {
            let remedy = "write it anew with smaller values, pages and row groups";
            ReadError::new(file, source.to_string(), "", remedy)
        }
    };
    let batches = Batches::new(input.reader, BATCH).map_err(refused)?;
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
                    let wrong = Wrong::new(Role::Active, "0", ACTIVE_ROWS);
                    return Err(fields.refused(file, number, &wrong).into());
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
    pub(super) fn refused(&self, file: &Path, row: u64, wrong: &Wrong) -> NoRow {
        let role = wrong.role;
        let name = if role == Role::Active && self.active.is_none() { ACTIVE[0] } else { self.name(role) };
        let place = format!("{}: row {row}, column {name:?} ({})", file.display(), role.name());
        let remedy = "fix the row, or say in the config which column is meant";
        NoRow::Unfit(ReadError::text(place, &wrong.found, &wrong.expected, remedy))
    }

    /// A column that is missing or of another type.
    fn other_column(&self, file: &Path, role: Role, found: &str, expected: &str) -> ReadError {
        let place = format!("{}, column {:?} ({})", file.display(), self.name(role), role.name());
        ReadError::new(place, format!("found {found}"), expected, "say in the config which column is meant")
    }

    /// The places of the columns, after a look at their types.
    fn roots(&self, schema: &arrow_schema::Schema, file: &Path) -> Result<Vec<usize>, ReadError> {
        self.roles()
            .map(|role| {
                let wrong = |found: String, expected| Err(self.other_column(file, role, &found, expected));
                let mut named =
                    schema.fields().iter().enumerate().filter(|(_, field)| field.name() == self.name(role));
                let (Some((place, field)), None) = (named.next(), named.next()) else {
                    let names: Vec<&str> =
                        schema.fields().iter().map(|field| field.name().as_str()).collect();
                    let found = super::start(&format!("columns {}", names.join(", ")));
                    return wrong(found, "exactly one column of that name");
                };
                match (role, field.data_type()) {
                    (Role::Weight, DataType::Float32 | DataType::Float64) => Ok(place),
                    (Role::Weight, other) => {
                        wrong(super::start(&other.to_string()), "floating-point numbers of 32 or 64 bits")
                    }
                    (Role::Active, kind) if is_flag(kind) => Ok(place),
                    (Role::Active, other) => {
                        wrong(super::start(&other.to_string()), "true or false, or whole numbers")
                    }
                    (_, DataType::Utf8) => Ok(place),
                    (_, other) => wrong(super::start(&other.to_string()), "text (UTF-8)"),
                }
            })
            .collect()
    }

    fn columns(&self, batch: &RecordBatch, file: &Path) -> Result<Columns, ReadError> {
        let column = |role: Role| {
            let column = batch.column_by_name(self.name(role)).cloned();
            column.ok_or_else(|| self.other_column(file, role, "none", "exactly one column of that name"))
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
        _ => Err(Wrong::new(role, "null", "an id")),
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
            Err(Wrong::new(Role::Weight, found, "a finite number, or null"))
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
        _ => Err(Wrong::new(Role::Active, shown, "1 or 0")),
    }
}
