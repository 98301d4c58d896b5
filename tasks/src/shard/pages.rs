//! A part of a shard in memory, and how many values its pages say they have.

use bytes::{Buf, Bytes, buf::Reader};
use kg::table::pages::{self, Kind};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};

/// Most values of a list's column in a row group: rows of 512 tokens of 8,192 triples with 15 corruptions each.
pub(crate) const MOST_VALUES: u64 = 1 << 26;
/// Most bytes that a page takes in memory.
const MOST_BYTES: u64 = 1 << 29;

/// Values of a column, at most `most`, as the headers of its pages have them.
pub(crate) fn values<R: ChunkReader>(
    part: &R,
    chunk: &ColumnChunkMetaData,
    most: u64,
) -> Result<usize, ParquetError> {
    let mut values = 0_u64;
    pages::walk(part, chunk, |page| {
        let bytes = page.unpacked.max(page.packed);
        if bytes > MOST_BYTES {
            let problem = format!(
                "a page of {} bytes becomes {bytes} in memory, expected at most {MOST_BYTES}",
                page.packed
            );
            return Err(wrong(problem));
        }
        values = values.saturating_add(if page.kind == Kind::Data { page.values } else { 0 });
        if values > most {
            return Err(wrong(format!(
                "{values} values or more in a row group, expected at most {most}: write row groups of fewer items (items_per_group)"
            )));
        }
        Ok(())
    })?;
    usize::try_from(values).map_err(|e| wrong(e.to_string()))
}

fn wrong(problem: String) -> ParquetError {
    ParquetError::General(problem)
}

/// A part of a file in memory, read by its places in the file.
#[derive(Debug)]
pub(crate) struct Slice {
    bytes: Bytes,
    start: u64,
    end: u64,
}

impl Slice {
    /// The bytes of a file from `start` on.
    pub(crate) fn new(bytes: Bytes, start: u64) -> Self {
        let end = start.saturating_add(bytes.len() as u64);
        Self { bytes, start, end }
    }

    fn from(&self, start: u64) -> Result<Bytes, ParquetError> {
        let within = start.checked_sub(self.start).and_then(|at| usize::try_from(at).ok());
        let within = within.filter(|&at| at <= self.bytes.len());
        within
            .map(|at| self.bytes.slice(at..))
            .ok_or_else(|| wrong("a page lies outside its row group".to_owned()))
    }
}

impl Length for Slice {
    fn len(&self) -> u64 {
        self.end
    }
}

impl ChunkReader for Slice {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let bytes = self.from(start)?;
        if bytes.len() < length {
            return Err(wrong("a page lies outside its row group".to_owned()));
        }
        Ok(bytes.slice(..length))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::RecordBatch;
    use arrow_array::builder::{Int32Builder, ListBuilder};
    use kg::table::parquet_file::properties;
    use parquet::arrow::ArrowWriter;
    use parquet::file::metadata::ParquetMetaDataReader;

    use super::*;

    #[test]
    fn silent_18_a_row_group_of_more_values_than_fit_is_refused_before_it_is_decoded() {
        let mut lists = ListBuilder::new(Int32Builder::new());
        (0..2).for_each(|_| lists.append_value(vec![Some(7); 50_000]));
        let batch = RecordBatch::try_from_iter([("input_ids", Arc::new(lists.finish()) as _)]).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties(2, &[]))).unwrap();
        writer.write(&batch).unwrap();
        let file = Bytes::from(writer.into_inner().unwrap());
        assert!(file.len() < 2_000, "a hundred thousand values in {} bytes", file.len());
        let described = ParquetMetaDataReader::new().parse_and_finish(&file).unwrap();
        let part = Slice::new(file, 0);
        let of = |most| values(&part, described.row_group(0).column(0), most);
        assert_eq!(of(100_000).unwrap(), 100_000);
        let error = of(99_999).unwrap_err().to_string();
        assert!(error.contains("expected at most 99999") && error.contains("items_per_group"), "{error}");
    }
}
