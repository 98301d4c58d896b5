//! Ids as names. An id is a row number, so a name is a gather from one column of another file: no join, nothing where the column is not asked for.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use polars::prelude::{
    Column, DataType, Expr, Field, IDX_DTYPE, PlSmallStr, PolarsError, PolarsResult, Series,
};

use crate::artifact::{self, Check};
use crate::error::Error;
use crate::parquet;

/// A column of a file, read when it is first needed.
#[derive(Debug, Clone)]
pub(crate) struct Lookup {
    pub path: PathBuf,
    pub file: artifact::File,
    pub column: &'static str,
    pub dtype: DataType,
    pub check: Check,
    pub values: Arc<OnceLock<Result<Series, String>>>,
}

impl Lookup {
    /// The values that stand in the rows which `ids` number; nothing where an id is null.
    pub(crate) fn at(self, ids: Expr) -> Expr {
        let dtype = self.dtype.clone();
        ids.map_with_fmt_str(
            move |ids| self.gather(&ids),
            move |_, field| Ok(Field::new(field.name().clone(), dtype.clone())),
            "name",
        )
    }

    fn gather(&self, ids: &Column) -> PolarsResult<Column> {
        let values = self.values.get_or_init(|| self.read());
        let values = values.as_ref().map_err(|text| PolarsError::ComputeError(text.clone().into()))?;
        let rows = ids.as_materialized_series().cast(&IDX_DTYPE)?;
        Ok(values.take(rows.idx()?)?.with_name(ids.name().clone()).into())
    }

    fn read(&self) -> Result<Series, String> {
        self.check.verify(&self.path, &self.file)?;
        let read = parquet::column(&self.path, self.column).and_then(|series| series.cast(&self.dtype));
        read.map(|series| series.with_name(PlSmallStr::EMPTY)).map_err(|error| Error::of(&error).to_string())
    }
}
