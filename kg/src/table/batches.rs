//! Parquet from elsewhere, decoded so many rows at a time as fit in memory.
//!
//! One value of 16 MB that stands in a thousand rows is a file of 2 kB: a batch of a fixed number of rows has no bound. So the headers
//! of a row group's pages are read first ([`super::pages`]), and a batch has as many rows as can be decoded in `ROWS` bytes whatever
//! the pages hold. The decoder of `parquet` 60 panics on some damaged pages; here that is an error too.

use std::error::Error as StdError;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::column::page::{Page, PageReader as _};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use super::guard::guarded;
use super::pages::{self, Kind};

/// Most bytes that the values of a batch take in memory.
const ROWS: u64 = 256 << 20;
/// Most bytes that the largest pages of the columns that are read take in memory, all together.
const PAGES: u64 = 512 << 20;

/// Why there is no next batch.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is damaged, or uses a coding that is not read.
    #[error(transparent)]
    Decode(#[from] Box<dyn StdError + Send + Sync>),
    /// It would take too much memory.
    #[error("row group {group}, column {column:?}: {problem}, expected at most {most}")]
    Large {
        /// The row group, from 0.
        group: usize,
        /// The column.
        column: String,
        /// What would take how much.
        problem: String,
        /// How much may be taken.
        most: u64,
    },
}

/// A file that several readers share.
struct Shared<C>(Arc<C>);

impl<C: ChunkReader> Length for Shared<C> {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl<C: ChunkReader> ChunkReader for Shared<C> {
    type T = C::T;

    fn get_read(&self, start: u64) -> parquet::errors::Result<C::T> {
        self.0.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        // What the footer asks for must not be made room for unless it is there.
        let end = start.checked_add(length as u64);
        if end.is_none_or(|end| end > self.0.len()) {
            return Err(ParquetError::EOF("a part lies outside the file".to_owned()));
        }
        self.0.get_bytes(start, length)
    }
}

/// Some columns of a file, batch by batch.
pub struct Batches<C: ChunkReader> {
    chunks: Arc<C>,
    metadata: ArrowReaderMetadata,
    mask: ProjectionMask,
    /// Most rows in a batch, however small they are.
    rows: usize,
    /// The next row group.
    group: usize,
    batches: Option<ParquetRecordBatchReader>,
}

impl<C: ChunkReader> std::fmt::Debug for Batches<C> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Batches")
            .field("rows", &self.rows)
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

impl<C: ChunkReader + 'static> Batches<C> {
    /// The file in `chunks`, at most `rows` rows at a time. Its columns are all read until [`Batches::only`] says which.
    ///
    /// # Errors
    /// When it has no readable footer.
    pub fn new(chunks: C, rows: usize) -> Result<Self, Error> {
        let chunks = Arc::new(chunks);
        // Without the schema that Arrow hides in the footer: text is then never a dictionary, nor in large arrays.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let metadata = guarded(|| {
            let shared = Shared(Arc::clone(&chunks));
            pages::check_schema(&shared)?;
            ArrowReaderMetadata::load(&shared, options)
        })?;
        Ok(Self { chunks, metadata, mask: ProjectionMask::all(), rows, group: 0, batches: None })
    }

    /// The columns that there are.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// Reads the columns in these places alone.
    #[must_use]
    pub fn only(self, roots: Vec<usize>) -> Self {
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), roots);
        Self { mask, ..self }
    }

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// When a page is damaged, or too much memory would be taken.
    #[expect(clippy::should_implement_trait, reason = "a failure ends it, so it is no iterator")]
    pub fn next(&mut self) -> Result<Option<RecordBatch>, Error> {
        loop {
            if let Some(batches) = &mut self.batches {
                match guarded(|| batches.next().transpose())? {
                    Some(batch) => return Ok(Some(batch)),
                    None => self.batches = None,
                }
            }
            if self.group >= self.metadata.metadata().num_row_groups() {
                return Ok(None);
            }
            let rows = self.rows_at_once()?;
            let (chunks, group) = (Shared(Arc::clone(&self.chunks)), self.group);
            self.group += 1;
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(chunks, self.metadata.clone())
                .with_projection(self.mask.clone())
                .with_row_groups(vec![group])
                .with_batch_size(rows);
            self.batches = Some(guarded(|| builder.build())?);
        }
    }

    /// How many rows of the next row group may be decoded at once.
    fn rows_at_once(&self) -> Result<usize, Error> {
        let described = self.metadata.metadata().row_group(self.group);
        let (mut pages, mut a_row) = (0_u64, 0_u64);
        for (leaf, chunk) in
            described.columns().iter().enumerate().filter(|(leaf, _)| self.mask.leaf_included(*leaf))
        {
            let shared = Shared(Arc::clone(&self.chunks));
            let cost = guarded(|| Cost::of(&shared, chunk))?;
            let column = || self.metadata.parquet_schema().column(leaf).path().string();
            let large = |problem: String, most| {
                Err(Error::Large { group: self.group, column: column(), problem, most })
            };
            pages = pages.saturating_add(cost.page.0);
            if pages > PAGES {
                let (unpacked, packed) = cost.page;
                return large(format!("a page of {packed} bytes becomes {unpacked} in memory"), PAGES);
            }
            let value = if a_row.saturating_add(cost.worst) > ROWS / self.rows as u64 {
                guarded(|| cost.exactly(shared, chunk, described.num_rows()))?
            } else {
                cost.worst
            };
            a_row = a_row.saturating_add(value);
            if a_row > ROWS {
                return large(format!("one row may become {a_row} bytes in memory"), ROWS);
            }
        }
        let rows = ROWS / a_row.max(1);
        Ok(usize::try_from(rows).unwrap_or(usize::MAX).clamp(1, self.rows))
    }
}

/// What decoding a column of a row group may take.
#[derive(Debug, Default)]
struct Cost {
    /// Bytes of its largest page in memory, and in the file.
    page: (u64, u64),
    /// Bytes that a row of many may take, whatever the dictionary holds. A batch may take two pages more, which it has in part.
    worst: u64,
    /// The same without values of the dictionary.
    plain: u64,
    /// Pages that are dictionaries.
    dictionaries: u64,
}

impl Cost {
    fn of<C: ChunkReader>(chunks: &C, chunk: &ColumnChunkMetaData) -> Result<Self, ParquetError> {
        let width = pages::width(chunk);
        let (mut cost, mut values, mut dictionary, mut referring) = (Self::default(), 0_u64, 0, false);
        pages::walk(chunks, chunk, |page| {
            // A page that is not packed is taken as it is, whatever its header says.
            let bytes = page.unpacked.max(page.packed);
            cost.page = cost.page.max((bytes, page.packed));
            if page.kind == Kind::Dictionary {
                dictionary = bytes;
                cost.dictionaries += 1;
                return Ok(());
            }
            values = values.saturating_add(page.values);
            let refers = pages::IN_DICTIONARY.contains(&page.encoding);
            referring |= refers;
            let a_value = if refers { 0 } else { bytes.div_ceil(page.values.max(1)) };
            cost.plain = cost.plain.max(width.unwrap_or(a_value));
            Ok(())
        })?;
        if cost.dictionaries > 1 {
            return Err(ParquetError::General("a column has several dictionaries".to_owned()));
        }
        cost.worst = cost.plain;
        if width.is_none() && referring {
            cost.worst = cost.worst.max(dictionary);
        }
        if chunk.column_descr().max_rep_level() > 0 {
            // All values may be those of one row.
            cost.worst = cost.worst.saturating_mul(values);
            cost.plain = cost.worst;
        }
        Ok(cost)
    }

    /// The bytes of a row, with the longest value of the dictionary looked up.
    fn exactly<C: ChunkReader>(
        &self,
        chunks: Shared<C>,
        chunk: &ColumnChunkMetaData,
        rows: i64,
    ) -> Result<u64, ParquetError> {
        if self.worst == self.plain {
            return Ok(self.plain);
        }
        let rows = usize::try_from(rows).unwrap_or(0);
        let mut pages = SerializedPageReader::new(Arc::new(chunks), chunk, rows, None)?;
        let Some(Page::DictionaryPage { buf, .. }) = pages.get_next_page()? else { return Ok(self.worst) };
        let (mut left, mut longest) = (buf.as_ref(), 0);
        while let Some((length, behind)) = left.split_first_chunk::<4>() {
            let length = u32::from_le_bytes(*length);
            longest = longest.max(u64::from(length));
            left = behind.get(length as usize..).unwrap_or_default();
        }
        Ok(self.plain.max(longest))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::Int32Type;
    use arrow_array::{ArrayRef, DictionaryArray, Int32Array, StringArray};
    use parquet::arrow::ArrowWriter;
    use parquet::basic::{Compression, ZstdLevel};
    use parquet::file::properties::{WriterProperties, WriterVersion};

    use super::*;

    /// A file of one column with `value` in so many rows, stored once.
    fn repeated(value: &str, rows: usize) -> Bytes {
        let keys = Int32Array::from(vec![0; rows]);
        let column: DictionaryArray<Int32Type> =
            DictionaryArray::new(keys, Arc::new(StringArray::from(vec![value])));
        let batch = RecordBatch::try_from_iter([("text", Arc::new(column) as ArrayRef)]).unwrap();
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_dictionary_page_size_limit(1 << 30)
            .build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap().into()
    }

    /// Rows of each batch, and the most bytes of texts in one.
    fn read(file: Bytes, rows: usize) -> Result<(Vec<usize>, usize), String> {
        let mut batches = Batches::new(file, rows).map_err(|e| e.to_string())?;
        let (mut all, mut most) = (vec![], 0);
        while let Some(batch) = batches.next().map_err(|e| e.to_string())? {
            all.push(batch.num_rows());
            most = most.max(batch.column(0).as_string::<i32>().value_data().len());
        }
        Ok((all, most))
    }

    #[test]
    fn silent_18_a_long_value_in_many_rows_makes_batches_of_few_rows() {
        let value = "x ".repeat(8 << 20);
        let file = repeated(&value, 40);
        assert!(file.len() < 20_000, "{} bytes hold {}", file.len(), 40 * value.len());
        let (rows, most) = read(file, 8192).unwrap();
        assert_eq!(rows.iter().sum::<usize>(), 40);
        assert!(most as u64 <= ROWS, "{most} bytes at once");
        // Short ones are read as many at a time as ever.
        assert_eq!(read(repeated("short", 10_000), 8192).unwrap().0, [8192, 1808]);
    }

    #[test]
    fn silent_18_a_row_that_fits_in_no_batch_is_refused_by_its_row_group_and_column() {
        let error = read(repeated(&"x".repeat(300 << 20), 2), 8192).unwrap_err();
        let expected = "row group 0, column \"text\": one row may become 314572800 bytes in memory, expected at most 268435456";
        assert_eq!(error, expected);
    }

    #[test]
    fn silent_18_plain_pages_of_long_values_make_small_batches_too() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["y".repeat(20 << 20); 20]));
        let batch = RecordBatch::try_from_iter([("text", texts)]).unwrap();
        let plain = WriterProperties::builder()
            .set_dictionary_enabled(false)
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_write_batch_size(1)
            .build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(plain)).unwrap();
        writer.write(&batch).unwrap();
        let (rows, most) = read(writer.into_inner().unwrap().into(), 8192).unwrap();
        assert_eq!(rows.iter().sum::<usize>(), 20);
        assert!(most as u64 <= ROWS, "{most} bytes at once");
    }

    #[test]
    fn silent_18_codings_that_claim_any_number_of_values_are_refused() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
        let batch = RecordBatch::try_from_iter([("text", texts)]).unwrap();
        let deltas = WriterProperties::builder()
            .set_dictionary_enabled(false)
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(deltas)).unwrap();
        writer.write(&batch).unwrap();
        let error = read(writer.into_inner().unwrap().into(), 8192).unwrap_err();
        assert!(error.contains("encoding 7") && error.contains("write the file anew"), "{error}");
    }
}
