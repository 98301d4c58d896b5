//! Tables of Parquet files, as plans: nothing but footers is read before a query asks, and then only the columns that it names.

use std::any::Any;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType as Arrow, Field, Fields, Schema as ArrowSchema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use polars::lazy::dsl::col;
use polars::prelude::{
    AnonymousScan, AnonymousScanArgs, Column, DataFrame, DataType, Expr, IdxCa, IntoColumn, LazyFrame,
    PlSmallStr, PolarsError, PolarsResult, ScanArgsAnonymous, Schema, SchemaRef, Series,
};
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use crate::catalog::{Col, Rows};
use crate::convert::{Lists, dtype, lists as lists_of, series};
use crate::error::Error;
use crate::tables::{Source, Tables};

const PART: &str = "part";
/// Rows that are converted at a time.
const ROWS: usize = 1 << 16;

/// The rows of `sources` with the columns that `rows` names, or nothing if these are not rows of Parquet files.
pub(crate) fn frame(tables: &Tables, sources: &[Source], rows: Rows) -> Result<Option<LazyFrame>, Error> {
    let (columns, list) = match rows {
        Rows::Parquet(columns) => (columns, None),
        Rows::Exploded(list, columns) => (columns, Some(list)),
        _ => return Ok(None),
    };
    let scan = Scan::new(sources, columns, list)?;
    let schema = Arc::clone(&scan.schema);
    let args = ScanArgsAnonymous {
        schema: Some(Arc::clone(&schema)),
        name: "PARQUET",
        ..ScanArgsAnonymous::default()
    };
    let frame = LazyFrame::anonymous_scan(Arc::new(scan), args)?;
    let (mut chosen, mut named): (Vec<Expr>, Vec<&str>) = (vec![], vec![]);
    for column in columns {
        match *column {
            Col::As(name, stored) => {
                chosen.push(col(stored).alias(name));
                named.push(stored);
            }
            Col::Row(name) => {
                chosen.push(col(name));
                named.push(name);
            }
            Col::Part => {
                chosen.push(col(PART));
                named.push(PART);
            }
            // Only some of the tables that share this list have the ids.
            Col::Name(_, id, _) if !schema.contains(id) => {}
            Col::Name(name, id, way) => {
                let look = |ids: Expr, stored| tables.lookup(sources, stored).at(ids);
                chosen.push(way.iter().fold(col(id), look).alias(name));
            }
        }
    }
    let rest = schema.iter_names().filter(|name| !named.contains(&name.as_str()));
    chosen.extend(rest.map(|name| col(name.clone())));
    Ok(Some(frame.select(chosen)))
}

/// A column of a file.
///
/// # Errors
/// When the file cannot be read, or has no such column.
pub(crate) fn column(path: &Path, name: &str) -> PolarsResult<Series> {
    let file = Stored::open(path)?;
    let alone = Scan {
        schema: Arc::new(file.schema()?),
        files: vec![file],
        list: None,
        number: None,
        has_part: false,
    };
    Ok(alone.read(&[name.into()], None)?.column(name)?.as_materialized_series().rechunk())
}

/// A file whose footer has been read.
struct Stored {
    path: PathBuf,
    footer: ArrowReaderMetadata,
}

/// The files of a table.
struct Scan {
    files: Vec<Stored>,
    schema: SchemaRef,
    /// The column of lists whose elements are the rows.
    list: Option<&'static str>,
    /// The column that numbers the rows of the files.
    number: Option<&'static str>,
    /// Whether there is a column of the parts that names of files begin with.
    has_part: bool,
}

/// A row group.
struct Group<'a> {
    file: &'a Stored,
    /// Its number within the file.
    at: usize,
    /// The number of its first row within the table.
    first: usize,
    rows: usize,
}

fn of_file(path: &Path, error: impl std::fmt::Display) -> PolarsError {
    PolarsError::ComputeError(format!("{}: {error}", path.display()).into())
}

impl Stored {
    fn open(path: &Path) -> PolarsResult<Self> {
        let read = || -> parquet::errors::Result<_> {
            ArrowReaderMetadata::load(&File::open(path)?, ArrowReaderOptions::default())
        };
        let footer = read().map_err(|error| of_file(path, error))?;
        Ok(Self { path: path.to_owned(), footer })
    }

    fn schema(&self) -> PolarsResult<Schema> {
        fields(self.footer.schema().fields()).map_err(|error| of_file(&self.path, error))
    }

    /// The elements of a column of lists.
    fn elements(&self, list: &str) -> PolarsResult<&Fields> {
        let of = self.footer.schema().field_with_name(list).map(Field::data_type);
        let item = match of {
            Ok(Arrow::List(item) | Arrow::LargeList(item)) => item.data_type(),
            _ => return Err(of_file(&self.path, format!("there is no list `{list}`"))),
        };
        match item {
            Arrow::Struct(fields) => Ok(fields),
            other => Err(of_file(&self.path, format!("column `{list}` has lists of {other}"))),
        }
    }

    /// The part that its name begins with.
    fn part(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        name.split('-').next().unwrap_or_default().to_owned()
    }

    /// The rows of each group.
    fn groups(&self) -> impl Iterator<Item = usize> {
        let groups = self.footer.metadata().row_groups().iter();
        groups.map(|group| usize::try_from(group.num_rows()).unwrap_or(0))
    }
}

/// The columns of some fields.
fn fields(of: &Fields) -> PolarsResult<Schema> {
    let typed = of.iter().map(|field| {
        let text = || format!("column `{}` has the type {}", field.name(), field.data_type());
        let dtype = dtype(field.data_type()).ok_or_else(|| PolarsError::SchemaMismatch(text().into()))?;
        Ok((PlSmallStr::from_str(field.name()), dtype))
    });
    typed.collect()
}

impl Scan {
    fn new(sources: &[Source], columns: &[Col], list: Option<&'static str>) -> Result<Self, Error> {
        let files =
            sources.iter().map(|source| Stored::open(&source.path())).collect::<PolarsResult<Vec<_>>>()?;
        let number = columns.iter().find_map(|column| match column {
            Col::Row(name) => Some(*name),
            _ => None,
        });
        let has_part = columns.iter().any(|column| matches!(column, Col::Part));
        let mut schema = match files.first() {
            Some(file) => file.schema()?,
            None => Schema::default(),
        };
        for other in &files {
            if other.schema()? != schema {
                let text = "its columns are not those of the first file of the table; run the stage that makes it again";
                return Err(of_file(&other.path, text).into());
            }
        }
        if let (Some(list), Some(file)) = (list, files.first()) {
            schema.shift_remove(list);
            schema.merge(fields(file.elements(list)?)?);
        }
        if has_part {
            schema.insert(PART.into(), DataType::String);
        }
        if let Some(number) = number {
            schema.insert(number.into(), DataType::UInt32);
        }
        Ok(Self { files, schema: Arc::new(schema), list, number, has_part })
    }

    /// The columns `wanted`, of the first `most` rows of the files at least if so many are enough.
    fn read(&self, wanted: &[PlSmallStr], most: Option<usize>) -> PolarsResult<DataFrame> {
        let mut groups = vec![];
        let mut first = 0;
        for file in &self.files {
            for (at, rows) in file.groups().enumerate() {
                // A list may be empty, so that rows of a file say nothing of those of a table of elements.
                if self.list.is_none() && most.is_some_and(|most| first >= most) {
                    break;
                }
                groups.push(Group { file, at, first, rows });
                first += rows;
            }
        }
        let frames: Vec<DataFrame> =
            groups.into_par_iter().map(|group| self.group(&group, wanted)).collect::<PolarsResult<_>>()?;
        let all = stacked(frames)?;
        let schema = || DataFrame::empty_with_schema(&self.schema).select(wanted.iter().cloned());
        let all = if all.width() == 0 && !wanted.is_empty() { schema()? } else { all };
        Ok(most.map_or_else(|| all.clone(), |most| all.head(Some(most))))
    }

    fn group(&self, group: &Group<'_>, wanted: &[PlSmallStr]) -> PolarsResult<DataFrame> {
        let Group { file, at, first, rows } = *group;
        let schema = file.footer.schema();
        let is_read =
            |name: &String| wanted.iter().any(|of| of == name) || self.list.is_some_and(|list| list == name);
        let read = (0..schema.fields().len()).filter(|at| is_read(schema.field(*at).name()));
        let read: Vec<usize> = read.collect();
        if read.is_empty() {
            // Nothing but numbers of rows: a batch without columns would not know how many it has.
            let batch = RecordBatch::new_empty(Arc::new(ArrowSchema::empty()));
            return self.rows(file, &batch, first..first + rows, wanted);
        }
        let batches = || -> parquet::errors::Result<_> {
            let opened = File::open(&file.path)?;
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(opened, file.footer.clone());
            let mask = ProjectionMask::roots(builder.parquet_schema(), read);
            builder.with_row_groups(vec![at]).with_projection(mask).with_batch_size(ROWS).build()
        };
        let mut frames = vec![];
        let mut next = first;
        for batch in batches().map_err(|error| of_file(&file.path, error))? {
            let batch = batch.map_err(|error| of_file(&file.path, error))?;
            let end = next + batch.num_rows();
            frames.push(match self.list {
                Some(list) => self.elements(file, &batch, next..end, list, wanted)?,
                None => self.rows(file, &batch, next..end, wanted)?,
            });
            next = end;
        }
        stacked(frames)
    }

    /// The columns `wanted` of a batch with these rows of the table; those of the elements of lists have no place here.
    fn rows(
        &self,
        file: &Stored,
        batch: &RecordBatch,
        rows: Range<usize>,
        wanted: &[PlSmallStr],
    ) -> PolarsResult<DataFrame> {
        let height = rows.len();
        let mut columns: Vec<Column> = vec![];
        for name in wanted {
            if let Some(array) = batch.column_by_name(name) {
                columns.push(series(name, array)?.into_column());
            } else if self.number.is_some_and(|number| number == name.as_str()) {
                let number = |row: usize| {
                    u32::try_from(row).map_err(|_| of_file(&file.path, "more rows than ids count"))
                };
                let numbers = rows.clone().map(number).collect::<PolarsResult<Vec<u32>>>()?;
                columns.push(Column::new(name.clone(), numbers));
            } else if self.has_part && name == PART {
                columns.push(Column::new_scalar(name.clone(), PlSmallStr::from(file.part()).into(), height));
            }
        }
        DataFrame::new(height, columns)
    }

    /// The same with a row for each element of a list, beside which the other columns are repeated.
    fn elements(
        &self,
        file: &Stored,
        batch: &RecordBatch,
        rows: Range<usize>,
        list: &str,
        wanted: &[PlSmallStr],
    ) -> PolarsResult<DataFrame> {
        let Some(lists) = batch.column_by_name(list) else { return Ok(DataFrame::empty()) };
        let Lists { offsets, values } = lists_of(lists);
        let of_row = (0..).zip(offsets.windows(2));
        let of_row = of_row.flat_map(|(row, ends)| (ends[0]..ends[1]).map(move |_| row));
        let of_row = IdxCa::from_vec(PlSmallStr::EMPTY, of_row.collect());
        let repeated = self.rows(file, batch, rows, wanted)?.take(&of_row)?;
        let mut columns = repeated.columns().to_vec();
        for (field, array) in file.elements(list)?.iter().zip(values.as_struct().columns()) {
            if wanted.iter().any(|name| name == field.name()) {
                columns.push(series(field.name(), array)?.into_column());
            }
        }
        let all = DataFrame::new(values.len(), columns)?;
        if wanted.is_empty() { Ok(all) } else { all.select(wanted.iter().cloned()) }
    }
}

impl AnonymousScan for Scan {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn scan(&self, asked: AnonymousScanArgs) -> PolarsResult<DataFrame> {
        let wanted =
            asked.with_columns.map_or_else(|| self.schema.iter_names_cloned().collect(), |of| of.to_vec());
        self.read(&wanted, asked.n_rows)
    }

    fn allows_projection_pushdown(&self) -> bool {
        true
    }
}

/// All rows of frames with the same columns.
fn stacked(frames: Vec<DataFrame>) -> PolarsResult<DataFrame> {
    let mut frames = frames.into_iter();
    let Some(mut all) = frames.next() else { return Ok(DataFrame::empty()) };
    for frame in frames {
        all.vstack_mut_owned(frame)?;
    }
    Ok(all)
}
