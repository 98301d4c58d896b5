//! CRC-32 of every page of a Parquet file.
//!
//! The Parquet format has a place for a CRC in each page header, and readers check it, but the `parquet` crate's writer leaves it
//! empty. A flipped bit would then go unseen as long as the page still decompresses. So a file is written without, and
//! [`copy`] passes over it: the page bodies stay as they are, each header gains its CRC, and the footer is written anew because
//! the pages have moved.

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::page_index::offset_index::OffsetIndexMetaData;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::ChunkReader;
use parquet::file::writer::SerializedFileWriter;

/// First byte of a thrift compact `i32` field whose id is one above that of the field before it.
const NEXT_FIELD_I32: u8 = 0x15;

/// Copies the finished Parquet file `source` to `sink`, with the CRC-32 of its body in every page header.
///
/// `source` needs an offset index, which `ArrowWriter` writes unless told not to; bloom filters are not copied. One column chunk is
/// in memory at a time. Returns `sink`, flushed.
///
/// # Errors
/// When `source` is no Parquet file, has no offset index, has page CRCs already, or cannot be read; when `sink` cannot be written.
pub fn copy<R: ChunkReader, W: Write + Send>(source: &R, sink: W) -> Result<W> {
    let metadata = parsed(source)?;
    let mut sealed = Sealed::begin(&metadata, sink)?;
    sealed.append(source, &metadata)?;
    sealed.finish()
}

/// What a finished Parquet file says of itself, its offset index included.
///
/// # Errors
/// When it is none, or has no offset index.
pub fn parsed<R: ChunkReader>(source: &R) -> Result<ParquetMetaData> {
    ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Required).parse_and_finish(source)
}

/// A file with page CRCs that is put together from the row groups of finished files without.
pub struct Sealed<W: Write + Send> {
    writer: SerializedFileWriter<W>,
}

impl<W: Write + Send> std::fmt::Debug for Sealed<W> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Sealed").field("bytes", &self.writer.bytes_written()).finish_non_exhaustive()
    }
}

impl<W: Write + Send> Sealed<W> {
    /// Starts a file of the schema and with the key and value pairs of `like`.
    ///
    /// # Errors
    /// When `sink` cannot be written.
    pub fn begin(like: &ParquetMetaData, sink: W) -> Result<Self> {
        let file = like.file_metadata();
        let properties =
            WriterProperties::builder().set_key_value_metadata(file.key_value_metadata().cloned()).build();
        let schema = file.schema_descr().root_schema_ptr();
        Ok(Self { writer: SerializedFileWriter::new(sink, schema, Arc::new(properties))? })
    }

    /// Appends the row groups of `source`, which has the schema of this file.
    ///
    /// # Errors
    /// As [`copy`].
    pub fn append<R: ChunkReader>(&mut self, source: &R, metadata: &ParquetMetaData) -> Result<()> {
        for (group_number, group) in metadata.row_groups().iter().enumerate() {
            let page_index = metadata.page_index_for_row_group(group_number);
            let mut group_writer = self.writer.next_row_group()?;
            for (column, chunk) in group.columns().iter().enumerate() {
                let offsets = page_index.offset_index(column).cloned();
                let offsets = offsets.ok_or_else(|| unusual("a column has no offset index"))?;
                let (start, length) = chunk.byte_range();
                let pages = source.get_bytes(start, usize::try_from(length).map_err(unusual)?)?;
                let sealed = seal_chunk(&pages, chunk.clone(), offsets)?;
                let close = ColumnCloseResult {
                    bytes_written: sealed.bytes.len() as u64,
                    rows_written: u64::try_from(group.num_rows()).map_err(unusual)?,
                    metadata: sealed.metadata,
                    bloom_filter: None,
                    column_index: page_index.column_index(column).cloned(),
                    offset_index: Some(sealed.offsets),
                };
                group_writer.append_column(&sealed.bytes, close)?;
            }
            group_writer.close()?;
        }
        Ok(())
    }

    /// Bytes so far, without the footer.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.writer.bytes_written() as u64
    }

    /// What is written to, with everything that was appended.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn sink(&mut self) -> Result<&mut W> {
        self.writer.flush()?;
        Ok(self.writer.inner_mut())
    }

    /// Writes the footer and returns the sink, flushed.
    ///
    /// # Errors
    /// When the sink cannot be written.
    pub fn finish(self) -> Result<W> {
        self.writer.into_inner()
    }
}

/// A column chunk with CRCs; all its offsets count from its first byte.
struct SealedChunk {
    bytes: Bytes,
    metadata: ColumnChunkMetaData,
    offsets: OffsetIndexMetaData,
}

fn seal_chunk(
    pages: &[u8],
    chunk: ColumnChunkMetaData,
    mut offsets: OffsetIndexMetaData,
) -> Result<SealedChunk> {
    let (start, length) = chunk.byte_range();
    let within =
        |offset: i64| usize::try_from(offset).ok().and_then(|o| o.checked_sub(usize::try_from(start).ok()?));
    let cut = |from: Option<usize>, to: Option<usize>| {
        from.zip(to)
            .and_then(|(from, to)| pages.get(from..to))
            .ok_or_else(|| unusual("a page lies outside its column"))
    };
    let mut bytes = Vec::with_capacity(pages.len() + 8 * (offsets.page_locations.len() + 1));
    let first_data = offsets.page_locations.first().map_or(chunk.data_page_offset(), |page| page.offset);
    if chunk.dictionary_page_offset().is_some() {
        seal_page(cut(Some(0), within(first_data))?, &mut bytes)?;
    }
    let data_offset = bytes.len() as i64;
    for page in &mut offsets.page_locations {
        let from = within(page.offset);
        let size = usize::try_from(page.compressed_page_size).map_err(unusual)?;
        page.offset = bytes.len() as i64;
        seal_page(cut(from, from.map(|from| from + size))?, &mut bytes)?;
        page.compressed_page_size = i32::try_from(bytes.len() as i64 - page.offset).map_err(unusual)?;
    }
    let added = bytes.len() as i64 - i64::try_from(length).map_err(unusual)?;
    let dictionary_offset = chunk.dictionary_page_offset().map(|_| 0);
    let (compressed, uncompressed) = (chunk.compressed_size() + added, chunk.uncompressed_size() + added);
    let metadata = chunk
        .into_builder()
        .set_data_page_offset(data_offset)
        .set_dictionary_page_offset(dictionary_offset)
        .set_total_compressed_size(compressed)
        .set_total_uncompressed_size(uncompressed)
        .build()?;
    Ok(SealedChunk { bytes: bytes.into(), metadata, offsets })
}

/// Appends `page` (header and body) to `out` with the CRC of the body as field 4 of the header.
///
/// A header starts with the fields 1 type, 2 uncompressed size, 3 compressed size, all `i32`; 4 is the CRC; 5 to 8 is the struct of
/// the page's kind. Field ids are written as differences, so what follows the CRC gets a smaller one.
fn seal_page(page: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let mut at = 0;
    let mut size = 0;
    for _ in 0..3 {
        if page.get(at) != Some(&NEXT_FIELD_I32) {
            return Err(unusual("a page header does not start with its kind and sizes"));
        }
        (size, at) = varint(page, at + 1).ok_or_else(|| unusual("a page header is cut short"))?;
    }
    let body_length = (size >> 1) as usize; // zigzag, and a size is never negative
    let next_field = page.get(at).copied().unwrap_or_default();
    let header_length = page.len().checked_sub(body_length).filter(|&length| length > at);
    let (Some(header_length), 0x20..) = (header_length, next_field) else {
        return Err(unusual("a page header already has a CRC or does not fit its page"));
    };
    let (header, body) = page.split_at(header_length);
    let crc = crc32fast::hash(body).cast_signed();
    out.extend_from_slice(&header[..at]);
    out.push(NEXT_FIELD_I32);
    push_varint(out, ((crc << 1) ^ (crc >> 31)).cast_unsigned());
    out.push(next_field - 0x10);
    out.extend_from_slice(&header[at + 1..]);
    out.extend_from_slice(body);
    Ok(())
}

/// The LEB128 number at `at` and the place after it.
fn varint(bytes: &[u8], mut at: usize) -> Option<(u64, usize)> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(at)?;
        at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some((value, at));
        }
    }
    None
}

fn push_varint(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

fn unusual(what: impl std::fmt::Display) -> ParquetError {
    ParquetError::General(format!("cannot add page CRCs: {what}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, UInt32Array};
    use parquet::arrow::ArrowWriter;
    use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
    use parquet::basic::{Compression, ZstdLevel};

    use super::*;

    fn sample() -> RecordBatch {
        let numbers: ArrayRef =
            Arc::new(UInt32Array::from_iter((0..30_000).map(|i| (i % 7 != 0).then_some(i * 31))));
        let words: ArrayRef =
            Arc::new(StringArray::from_iter_values((0..30_000).map(|i| format!("word {}", i % 50))));
        RecordBatch::try_from_iter([("number", numbers), ("word", words)]).unwrap()
    }

    fn written(batch: &RecordBatch) -> Bytes {
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_data_page_row_count_limit(1000)
            .set_write_batch_size(500)
            .set_max_row_group_row_count(Some(8000))
            .build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(batch).unwrap();
        writer.into_inner().unwrap().into()
    }

    fn read(file: Bytes) -> Result<Vec<RecordBatch>> {
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
        let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options)?;
        reader.build()?.map(|batch| batch.map_err(ParquetError::from)).collect()
    }

    #[test]
    fn rows_and_row_groups_stay_as_they_were() {
        let plain = written(&sample());
        let sealed = Bytes::from(copy(&plain, Vec::new()).unwrap());
        assert_eq!(read(plain).unwrap(), read(sealed.clone()).unwrap());
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&sealed).unwrap();
        assert_eq!(metadata.num_row_groups(), 4);
        assert!(
            metadata.row_group(0).column(1).dictionary_page_offset().is_some(),
            "dictionary pages are covered"
        );
    }

    #[test]
    fn every_flipped_bit_of_a_page_body_is_noticed() {
        let batch = sample();
        let sealed = copy(&written(&batch), Vec::new()).unwrap();
        let metadata = ParquetMetaDataReader::new()
            .with_page_index_policy(PageIndexPolicy::Required)
            .parse_and_finish(&Bytes::from(sealed.clone()))
            .unwrap();
        let mut last_bytes = Vec::new();
        for group in 0..metadata.num_row_groups() {
            for column in 0..2 {
                let index = metadata.page_index_for_row_group(group);
                let pages = &index.offset_index(column).unwrap().page_locations;
                assert!(pages.len() > 1);
                last_bytes
                    .extend(pages.iter().map(|page| page.offset + i64::from(page.compressed_page_size) - 1));
                if metadata.row_group(group).column(column).dictionary_page_offset().is_some() {
                    last_bytes.push(pages[0].offset - 1);
                }
            }
        }
        assert!(last_bytes.len() > 30);
        for at in last_bytes {
            let mut damaged = sealed.clone();
            damaged[usize::try_from(at).unwrap()] ^= 0x10;
            let error = read(damaged.into()).unwrap_err().to_string();
            assert!(error.contains("CRC"), "byte {at}: {error}");
        }
    }

    #[test]
    fn a_second_pass_is_refused() {
        let once = Bytes::from(copy(&written(&sample()), Vec::new()).unwrap());
        assert!(copy(&once, Vec::new()).unwrap_err().to_string().contains("already has a CRC"));
    }

    #[test]
    fn an_empty_table_has_no_pages_and_stays_readable() {
        let empty = sample().slice(0, 0);
        let sealed = copy(&written(&empty), Vec::new()).unwrap();
        assert_eq!(read(sealed.into()).unwrap().len(), 0);
        assert_eq!(empty.column(0).len(), 0);
    }
}
