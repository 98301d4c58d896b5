//! Row groups that are encoded by themselves, perhaps side by side, and then put into one file.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use base::whole::{folder, persist, temporary};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::errors::Result;
use parquet::file::metadata::ParquetMetaData;
use tempfile::NamedTempFile;

use super::page_crc::{self, Sealed};
use super::parquet_file::{Error, properties};

/// A row group, encoded as a file of its own in memory.
#[derive(Debug)]
pub struct RowGroup {
    bytes: Bytes,
    metadata: ParquetMetaData,
}

impl RowGroup {
    /// Encodes rows, which come in pieces that are given as the columns of `schema`, as one group. `pairs` go into the footer of the file that
    /// begins with it.
    ///
    /// # Errors
    /// When they are not its columns, or cannot be encoded.
    pub fn encode(
        schema: &SchemaRef,
        rows: impl IntoIterator<Item = Vec<ArrayRef>>,
        pairs: &[(&str, String)],
    ) -> Result<Self> {
        let properties = properties(usize::MAX, pairs);
        let mut writer = ArrowWriter::try_new(Vec::new(), SchemaRef::clone(schema), Some(properties))?;
        for columns in rows {
            writer.write(&RecordBatch::try_new(SchemaRef::clone(schema), columns)?)?;
        }
        let bytes = Bytes::from(writer.into_inner()?);
        let metadata = page_crc::parsed(&bytes)?;
        Ok(Self { bytes, metadata })
    }

    /// Bytes of its pages, before their CRCs.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.metadata.row_groups().iter().map(|group| group.compressed_size().unsigned_abs()).sum()
    }

    /// Begins a file of its schema and with its footer's pairs.
    ///
    /// # Errors
    /// When `sink` cannot be written.
    pub fn begin<W: Write + Send>(&self, sink: W) -> Result<Sealed<W>> {
        Sealed::begin(&self.metadata, sink)
    }

    /// Appends it to a file of its schema.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn append_to<W: Write + Send>(&self, file: &mut Sealed<W>) -> Result<()> {
        file.append(&self.bytes, &self.metadata)
    }
}

/// A file in the making. What comes out is, byte for byte, what [`Writer`](super::parquet_file::Writer) makes of the same row groups.
#[derive(Debug)]
pub struct Groups {
    file: PathBuf,
    sealed: Sealed<BufWriter<NamedTempFile>>,
}

impl Groups {
    /// Starts a file of the columns `schema` with `pairs` in its footer. What is written goes to a temporary file in the same folder.
    ///
    /// # Errors
    /// When the folder is not writable or the schema has no Parquet form.
    pub fn create(
        file: &Path,
        schema: &SchemaRef,
        pairs: &[(&str, String)],
    ) -> std::result::Result<Self, Error> {
        let encode = |source| Error::Encode { file: file.to_owned(), source };
        let sink = temporary(folder(file)).map_err(|source| Error::Io { file: file.to_owned(), source })?;
        let none = RowGroup::encode(schema, [], pairs).map_err(encode)?;
        let sealed = none.begin(BufWriter::new(sink)).map_err(encode)?;
        Ok(Self { file: file.to_owned(), sealed })
    }

    /// Appends a group.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn append(&mut self, group: &RowGroup) -> std::result::Result<(), Error> {
        group.append_to(&mut self.sealed).map_err(|source| Error::Encode { file: self.file.clone(), source })
    }

    /// Puts the file on the disk under its name.
    ///
    /// # Errors
    /// When the disk refuses; what stood under the name before is then untouched.
    pub fn finish(self) -> std::result::Result<(), Error> {
        let file = self.file;
        let refused = |source| Error::Io { file: file.clone(), source };
        let sealed = self.sealed.finish().map_err(|source| Error::Encode { file: file.clone(), source })?;
        let sealed = sealed.into_inner().map_err(|e| refused(e.into_error()))?;
        persist(sealed, &file).map_err(refused)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use arrow_array::{UInt32Array, UInt64Array};

    use super::super::parquet_file::Writer;
    use super::*;

    fn batch(rows: std::ops::Range<u32>) -> RecordBatch {
        let squares: ArrayRef =
            Arc::new(UInt64Array::from_iter_values(rows.clone().map(|n| u64::from(n) * u64::from(n) % 977)));
        let numbers: ArrayRef = Arc::new(UInt32Array::from_iter_values(rows));
        RecordBatch::try_from_iter([("number", numbers), ("square", squares)]).unwrap()
    }

    #[test]
    fn groups_encoded_apart_give_the_bytes_of_one_writer() {
        let folder = tempfile::tempdir().unwrap();
        let pairs = [("kind", "numbers".to_owned())];
        let schema = batch(0..1).schema();
        // Several pages a group, a last group that is not full, a single one, none.
        for rows in [130_000, 50_000, 3, 0] {
            let (one, two) = (folder.path().join("one.parquet"), folder.path().join("two.parquet"));
            let mut writer = Writer::create(&one, batch(0..1).schema(), 50_000, &pairs).unwrap();
            let starts = || (0..rows).step_by(25_000);
            starts().for_each(|start| writer.write(&batch(start..rows.min(start + 25_000))).unwrap());
            writer.finish().unwrap();
            let mut groups = Groups::create(&two, &schema, &pairs).unwrap();
            for start in starts().step_by(2) {
                let pieces = starts().skip_while(|&other| other < start).take(2);
                let columns = pieces.map(|start| batch(start..rows.min(start + 25_000)).columns().to_vec());
                let group = RowGroup::encode(&schema, columns, &pairs);
                groups.append(&group.unwrap()).unwrap();
            }
            assert!(!two.exists() || rows < 130_000, "nothing has a name before it is whole");
            groups.finish().unwrap();
            assert!(fs::read(&one).unwrap() == fs::read(&two).unwrap(), "{rows}");
        }
    }

    #[test]
    fn a_missing_folder_is_named_with_a_remedy() {
        let file = Path::new("/nowhere/at/all/x.parquet");
        let error = Groups::create(file, &batch(0..1).schema(), &[]).unwrap_err().to_string();
        assert!(error.contains("/nowhere/at/all/x.parquet") && error.contains("make its folder"), "{error}");
    }
}
