//! Columns from Arrow to polars and back. Polars has Arrow arrays and readers and writers of files of its own, which take longer to build than all of engraft;
//! so files are read and written with the crates that the rest of engraft uses, and columns are copied.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, LargeListArray, LargeStringArray, PrimitiveArray, StructArray,
    new_null_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType as Arrow, Field as ArrowField, Fields};
use polars::prelude::{
    BooleanChunked, ChunkedArray, DataType, Field, IntoSeries, ListChunked, NamedFrom, NewChunkedArray,
    PlSmallStr, PolarsError, PolarsNumericType, PolarsResult, Series, StringChunked, StructChunked,
};
use polars_arrow::array::ListArray;
use polars_arrow::bitmap::Bitmap;
use polars_arrow::offset::OffsetsBuffer;

/// The type that a column of `of` has in polars; none for what no artifact holds. Whole numbers of 8 and 16 bits are as wide as those of 32: polars would
/// have to be built for each type more.
pub(crate) fn dtype(of: &Arrow) -> Option<DataType> {
    Some(match of {
        Arrow::Boolean => DataType::Boolean,
        Arrow::Int8 | Arrow::Int16 | Arrow::Int32 => DataType::Int32,
        Arrow::Int64 => DataType::Int64,
        Arrow::UInt8 | Arrow::UInt16 | Arrow::UInt32 => DataType::UInt32,
        Arrow::UInt64 => DataType::UInt64,
        Arrow::Float32 => DataType::Float32,
        Arrow::Float64 => DataType::Float64,
        Arrow::Utf8 | Arrow::LargeUtf8 => DataType::String,
        Arrow::List(item) | Arrow::LargeList(item) => DataType::List(Box::new(dtype(item.data_type())?)),
        Arrow::Struct(fields) => {
            let field = |of: &Arc<ArrowField>| Some(Field::new(of.name().into(), dtype(of.data_type())?));
            DataType::Struct(fields.iter().map(field).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

/// The column of polars with the values of `array`.
///
/// # Errors
/// When its type is one that [`dtype`] does not know.
pub(crate) fn series(name: &str, array: &dyn Array) -> PolarsResult<Series> {
    let name = PlSmallStr::from_str(name);
    Ok(match array.data_type() {
        Arrow::Boolean => BooleanChunked::from_iter_options(name, array.as_boolean().iter()).into_series(),
        Arrow::Int8 => numbers(name, array.as_primitive::<Int8Type>(), i32::from),
        Arrow::Int16 => numbers(name, array.as_primitive::<Int16Type>(), i32::from),
        Arrow::Int32 => numbers(name, array.as_primitive::<Int32Type>(), i32::from),
        Arrow::Int64 => numbers(name, array.as_primitive::<Int64Type>(), i64::from),
        Arrow::UInt8 => numbers(name, array.as_primitive::<UInt8Type>(), u32::from),
        Arrow::UInt16 => numbers(name, array.as_primitive::<UInt16Type>(), u32::from),
        Arrow::UInt32 => numbers(name, array.as_primitive::<UInt32Type>(), u32::from),
        Arrow::UInt64 => numbers(name, array.as_primitive::<UInt64Type>(), u64::from),
        Arrow::Float32 => numbers(name, array.as_primitive::<Float32Type>(), f32::from),
        Arrow::Float64 => numbers(name, array.as_primitive::<Float64Type>(), f64::from),
        Arrow::Utf8 => StringChunked::from_iter_options(name, array.as_string::<i32>().iter()).into_series(),
        Arrow::LargeUtf8 => {
            StringChunked::from_iter_options(name, array.as_string::<i64>().iter()).into_series()
        }
        Arrow::List(_) | Arrow::LargeList(_) => {
            let Lists { offsets, values } = lists(array);
            let values = series("", &values)?.rechunk().chunks()[0].clone();
            let dtype = ListArray::<i64>::default_datatype(values.dtype().clone());
            let lists =
                ListArray::try_new(dtype, OffsetsBuffer::try_from(offsets)?, values, validity(array))?;
            ListChunked::with_chunk(name, lists).into_series()
        }
        Arrow::Struct(fields) => {
            let each = fields.iter().zip(array.as_struct().columns());
            let each =
                each.map(|(field, column)| series(field.name(), column)).collect::<PolarsResult<Vec<_>>>()?;
            StructChunked::from_series(name, array.len(), each.iter())?.into_series()
        }
        other => {
            return Err(PolarsError::SchemaMismatch(format!("column `{name}` has the type {other}").into()));
        }
    })
}

/// A column of lists taken apart.
pub(crate) struct Lists {
    /// Where the values of each list begin and, one further, end; the first begin at 0.
    pub(crate) offsets: Vec<i64>,
    /// The values of all lists.
    pub(crate) values: ArrayRef,
}

/// The lists of `array`, which is a column of lists.
pub(crate) fn lists(array: &dyn Array) -> Lists {
    let (mut offsets, values): (Vec<i64>, _) = match array.data_type() {
        Arrow::LargeList(_) => {
            (array.as_list::<i64>().value_offsets().to_vec(), array.as_list::<i64>().values())
        }
        _ => {
            let lists = array.as_list::<i32>();
            (lists.value_offsets().iter().map(|at| i64::from(*at)).collect(), lists.values())
        }
    };
    // A slice of lists still has the values of all.
    let first = offsets.first().copied().unwrap_or(0);
    offsets.iter_mut().for_each(|at| *at -= first);
    let [first, length] =
        [first, offsets.last().copied().unwrap_or(0)].map(|at| usize::try_from(at).unwrap_or(0));
    Lists { values: values.slice(first, length), offsets }
}

fn validity(array: &dyn Array) -> Option<Bitmap> {
    array.nulls().map(|nulls| nulls.iter().collect())
}

fn numbers<T: ArrowPrimitiveType, N>(
    name: PlSmallStr,
    array: &PrimitiveArray<T>,
    wide: impl Fn(T::Native) -> N,
) -> Series
where
    Series: NamedFrom<Vec<N>, [N]> + NamedFrom<Vec<Option<N>>, [Option<N>]>,
{
    if array.null_count() == 0 {
        return Series::new(name, array.values().iter().map(|x| wide(*x)).collect::<Vec<N>>());
    }
    Series::new(name, array.iter().map(|x| x.map(&wide)).collect::<Vec<Option<N>>>())
}

/// The column of Arrow with the values of `series`, to be written to a file.
///
/// # Errors
/// When no type of a file is the same.
pub(crate) fn array(series: &Series) -> PolarsResult<ArrayRef> {
    Ok(match series.dtype() {
        DataType::Null => new_null_array(&Arrow::LargeUtf8, series.len()),
        DataType::Boolean => Arc::new(series.bool()?.iter().collect::<BooleanArray>()),
        DataType::Int32 => of_numbers::<_, Int32Type>(series.i32()?),
        DataType::Int64 => of_numbers::<_, Int64Type>(series.i64()?),
        DataType::UInt32 => of_numbers::<_, UInt32Type>(series.u32()?),
        DataType::UInt64 => of_numbers::<_, UInt64Type>(series.u64()?),
        DataType::Float32 => of_numbers::<_, Float32Type>(series.f32()?),
        DataType::Float64 => of_numbers::<_, Float64Type>(series.f64()?),
        DataType::Date => of_numbers::<_, Date32Type>(series.to_physical_repr().i32()?),
        DataType::String => Arc::new(series.str()?.iter().collect::<LargeStringArray>()),
        DataType::List(_) => {
            let lists = series.list()?.rechunk();
            let lists = lists.downcast_as_array();
            let values = array(&Series::from_arrow(PlSmallStr::EMPTY, lists.values().clone())?)?;
            let offsets = OffsetBuffer::new(ScalarBuffer::from(lists.offsets().as_slice().to_vec()));
            let nulls = lists.validity().map(|bits| NullBuffer::from_iter(bits.iter()));
            let item = Arc::new(ArrowField::new("item", values.data_type().clone(), true));
            Arc::new(LargeListArray::try_new(item, offsets, values, nulls).map_err(wrong)?)
        }
        DataType::Struct(_) => {
            let of = series.struct_()?;
            let fields = of.fields_as_series();
            let arrays = fields.iter().map(array).collect::<PolarsResult<Vec<_>>>()?;
            let named = fields.iter().zip(&arrays);
            let named: Fields = named
                .map(|(field, of)| ArrowField::new(field.name().as_str(), of.data_type().clone(), true))
                .collect();
            let nulls = (series.null_count() > 0)
                .then(|| NullBuffer::from_iter(series.is_not_null().iter().map(Option::unwrap_or_default)));
            Arc::new(StructArray::try_new(named, arrays, nulls).map_err(wrong)?)
        }
        other => {
            let text = format!(
                "column `{}` is {other}, which is not written to Parquet: cast it, or write CSV",
                series.name()
            );
            return Err(PolarsError::SchemaMismatch(text.into()));
        }
    })
}

fn of_numbers<P, T>(column: &ChunkedArray<P>) -> ArrayRef
where
    P: PolarsNumericType,
    T: ArrowPrimitiveType<Native = P::Native>,
{
    Arc::new(column.iter().collect::<PrimitiveArray<T>>())
}

fn wrong(error: impl std::fmt::Display) -> PolarsError {
    PolarsError::ComputeError(error.to_string().into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::{ListBuilder, StringBuilder, UInt16Builder};
    use arrow_array::{Float32Array, Int8Array, StringArray};

    use super::*;

    #[test]
    fn values_survive_both_ways_with_nulls_lists_and_structs() {
        let mut lists = ListBuilder::new(UInt16Builder::new());
        let mut texts = ListBuilder::new(StringBuilder::new());
        for row in [Some(vec![1_u16, 2]), None, Some(vec![]), Some(vec![3])] {
            let names = row.as_ref().map(|row| row.iter().map(|x| Some(format!("t{x}"))).collect::<Vec<_>>());
            lists.append_option(row.map(|row| row.into_iter().map(Some)));
            texts.append_option(names);
        }
        let fields: Fields =
            vec![ArrowField::new("a", Arrow::Int8, true), ArrowField::new("b", Arrow::Utf8, true)].into();
        let of_struct = StructArray::new(
            fields,
            vec![
                Arc::new(Int8Array::from(vec![Some(-1), None, Some(3), Some(4)])) as ArrayRef,
                Arc::new(StringArray::from(vec![Some("x"), Some("y"), None, Some("ü")])),
            ],
            None,
        );
        let columns: [ArrayRef; 4] = [
            Arc::new(lists.finish()),
            Arc::new(texts.finish()),
            Arc::new(of_struct),
            Arc::new(Float32Array::from(vec![Some(0.5), None, Some(-0.0), Some(f32::MAX)])),
        ];
        for column in columns {
            // A slice begins within the values of its lists.
            for part in [column.clone(), column.slice(1, 3)] {
                let there = series("c", &part).unwrap();
                assert_eq!(Some(there.dtype().clone()), dtype(part.data_type()));
                let again = series("c", &array(&there).unwrap()).unwrap();
                assert!(there.equals_missing(&again), "{there} {again}");
            }
        }
    }
}
