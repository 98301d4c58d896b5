//! Counts equal rows of whole numbers.

use crate::Refused;
use polars::prelude::{Column, DataFrame, IntoLazy, PolarsError, col, len};

/// A table that could not be counted.
pub(super) fn uncounted(rows: usize, error: &PolarsError) -> Refused {
    Refused::new(format!("cannot count a table of {rows} rows: {error}; free some memory and run again"))
}

const COLUMNS: [&str; 4] = ["a", "b", "c", "d"];

/// The different rows of a table of `N` columns (at most four) of equal length and how often each occurs, sorted by row.
///
/// # Errors
/// When the columns are of unequal length, or memory ends.
pub fn rows<const N: usize>(columns: [Vec<u32>; N]) -> Result<Vec<([u32; N], u64)>, Refused> {
    let height = columns.first().map_or(0, Vec::len);
    counted(height, columns).map_err(|error| uncounted(height, &error))
}

fn counted<const N: usize>(
    height: usize,
    columns: [Vec<u32>; N],
) -> Result<Vec<([u32; N], u64)>, PolarsError> {
    const { assert!(N > 0 && N <= COLUMNS.len()) }
    let names = &COLUMNS[..N];
    let table = names.iter().zip(columns).map(|(&name, values)| Column::new(name.into(), values)).collect();
    let keys: Vec<_> = names.iter().map(|&name| col(name)).collect();
    let groups = DataFrame::new(height, table)?.lazy().group_by(keys).agg([len().alias("rows")]).collect()?;
    let counts = groups.column("rows")?.u32()?;
    let mut rows: Vec<([u32; N], u64)> =
        counts.into_no_null_iter().map(|count| ([0; N], u64::from(count))).collect();
    for (place, &name) in names.iter().enumerate() {
        for (row, value) in rows.iter_mut().zip(groups.column(name)?.u32()?.into_no_null_iter()) {
            row.0[place] = value;
        }
    }
    // The order of groups is that of a hash table.
    rows.sort_unstable();
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rows_are_counted_and_sorted() {
        let counts = rows([vec![2, 1, 2, 2], vec![7, 9, 7, 0]]).unwrap();
        assert_eq!(counts, [([1, 9], 1), ([2, 0], 1), ([2, 7], 2)]);
        assert!(rows([Vec::new(), Vec::new(), Vec::new()]).unwrap().is_empty());
    }

    #[test]
    fn the_order_of_rows_does_not_matter() {
        let column: Vec<u32> = (0..10_000).map(|i| i * 7919 % 257).collect();
        let other: Vec<u32> = (0..10_000).map(|i| i * 31 % 11).collect();
        let reversed = |values: &[u32]| values.iter().rev().copied().collect::<Vec<_>>();
        let counts = rows([column.clone(), other.clone()]).unwrap();
        assert_eq!(counts, rows([reversed(&column), reversed(&other)]).unwrap());
        assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), 10_000);
    }

    #[test]
    fn columns_of_unequal_length_are_refused() {
        let error = rows([vec![1, 2], vec![1]]).unwrap_err();
        assert!(error.to_string().starts_with("cannot count a table of 2 rows"), "{error}");
    }
}
