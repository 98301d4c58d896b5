//! Parquet files that appear whole or not at all.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, SchemaRef};
use base::whole::{folder, persist, temporary};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaData};
use parquet::file::properties::WriterProperties;

use super::page_crc;

/// Why a Parquet file could not be written. What stood under its name before is still there.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The rows do not fit the schema or cannot be encoded.
    #[error("{}: cannot encode its rows: {source}", file.display())]
    Encode {
        /// The file, by its final name.
        file: PathBuf,
        /// The encoder's word.
        source: ParquetError,
    },
    /// The operating system refused.
    #[error("{}: cannot write it: {source}; {}", file.display(), remedy(source))]
    Io {
        /// The file, by its final name.
        file: PathBuf,
        /// The operating system's word.
        source: io::Error,
    },
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space and run again",
        io::ErrorKind::NotFound => "make its folder first",
        _ => "make sure that its folder is writable and run again",
    }
}

/// A Parquet file in the making: zstd, a CRC in every page, equal bytes for equal rows. One row group is in memory at a time.
#[derive(Debug)]
pub struct Writer {
    file: PathBuf,
    schema: SchemaRef,
    encoder: ArrowWriter<BufWriter<File>>,
}

impl Writer {
    /// Starts a file of the columns `schema`, in row groups of `group_rows` rows (the last may have fewer), with `metadata` as
    /// key and value pairs in its footer. What is written goes to a temporary file in the same folder.
    ///
    /// # Errors
    /// When the folder is not writable or the schema has no Parquet form.
    pub fn create(
        file: &Path,
        schema: SchemaRef,
        group_rows: usize,
        metadata: &[(&str, String)],
    ) -> Result<Self, Error> {
        let plain = tempfile::tempfile_in(folder(file))
            .map_err(|source| Error::Io { file: file.to_owned(), source })?;
        let properties = properties(group_rows, metadata);
        let encoder = ArrowWriter::try_new(BufWriter::new(plain), Arc::clone(&schema), Some(properties))
            .map_err(|source| Error::Encode { file: file.to_owned(), source })?;
        Ok(Self { file: file.to_owned(), schema, encoder })
    }

    /// Appends rows.
    ///
    /// # Errors
    /// When they do not have the schema of the file, or the disk refuses.
    pub fn write(&mut self, rows: &RecordBatch) -> Result<(), Error> {
        self.encoder.write(rows).map_err(|source| Error::Encode { file: self.file.clone(), source })
    }

    /// Appends rows that are given as the columns of the file's schema.
    ///
    /// # Errors
    /// When they are not its columns, or the disk refuses.
    pub fn write_columns(&mut self, columns: Vec<ArrayRef>) -> Result<(), Error> {
        let rows = RecordBatch::try_new(Arc::clone(&self.schema), columns);
        self.write(&rows.map_err(|problem| self.unfit(&problem))?)
    }

    /// Rows that do not fit the columns.
    pub fn unfit(&self, problem: &ArrowError) -> Error {
        Error::Encode { file: self.file.clone(), source: ParquetError::ArrowError(problem.to_string()) }
    }

    /// Puts the file on the disk under its name.
    ///
    /// # Errors
    /// When the disk refuses; what stood under the name before is then untouched.
    pub fn finish(self) -> Result<(), Error> {
        let file = self.file;
        let encode = |source| Error::Encode { file: file.clone(), source };
        let refused = |source| Error::Io { file: file.clone(), source };
        let plain = self.encoder.into_inner().map_err(encode)?;
        let plain = plain.into_inner().map_err(|e| refused(e.into_error()))?;
        let sealed = temporary(folder(&file)).map_err(refused)?;
        let sealed = page_crc::copy(&plain, BufWriter::new(sealed)).map_err(encode)?;
        let sealed = sealed.into_inner().map_err(|e| refused(e.into_error()))?;
        persist(sealed, &file).map_err(refused)
    }
}

/// How every Parquet file is encoded, in row groups of at most `group_rows` rows, with `metadata` in its footer.
#[must_use]
pub fn properties(group_rows: usize, metadata: &[(&str, String)]) -> WriterProperties {
    let pairs = metadata.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone()));
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(group_rows))
        .set_key_value_metadata(Some(pairs.collect()))
        .build()
}

/// What the footer of a file says under `key`; `none` where it says nothing.
#[must_use]
pub fn noted<'m>(metadata: &'m ParquetMetaData, key: &str) -> &'m str {
    let pairs = metadata.file_metadata().key_value_metadata().into_iter().flatten();
    pairs.filter(|pair| pair.key == key).find_map(|pair| pair.value.as_deref()).unwrap_or("none")
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::sync::Arc;

    use arrow_array::{ArrayRef, StringArray, UInt32Array};
    use bytes::Bytes;
    use parquet::file::metadata::ParquetMetaDataReader;

    use super::*;
    use base::whole::write_whole;

    fn batch(first: u32) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(UInt32Array::from_iter_values(first..first + 1000));
        RecordBatch::try_from_iter([("number", numbers)]).unwrap()
    }

    fn writer(file: &Path) -> Writer {
        Writer::create(file, batch(0).schema(), 700, &[("kind", "numbers".to_owned())]).unwrap()
    }

    fn write(file: &Path) -> Bytes {
        let mut writer = writer(file);
        writer.write(&batch(0)).unwrap();
        writer.write(&batch(1000)).unwrap();
        writer.finish().unwrap();
        fs::read(file).unwrap().into()
    }

    #[test]
    fn equal_rows_give_equal_bytes_and_no_temporary_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one.parquet"), folder.path().join("two.parquet"));
        let bytes = write(&one);
        assert_eq!(bytes, write(&two));
        assert_eq!(bytes, fs::read(&one).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn nothing_has_a_name_before_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = writer(&folder.path().join("one.parquet"));
        writer.write(&batch(0)).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        writer.finish().unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn row_groups_and_footer_are_as_asked() {
        let folder = tempfile::tempdir().unwrap();
        let metadata =
            ParquetMetaDataReader::new().parse_and_finish(&write(&folder.path().join("x"))).unwrap();
        let rows: Vec<i64> = metadata.row_groups().iter().map(|group| group.num_rows()).collect();
        assert_eq!(rows, [700, 700, 600]);
        let pairs = metadata.file_metadata().key_value_metadata().unwrap();
        assert!(pairs.contains(&KeyValue::new("kind".to_owned(), "numbers".to_owned())));
    }

    #[test]
    fn a_failure_leaves_the_earlier_file_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("one.parquet");
        let before = write(&file);
        let mut writer = writer(&file);
        writer.write(&batch(5)).unwrap();
        let strange: ArrayRef = Arc::new(StringArray::from(vec!["not a number"]));
        let strange = RecordBatch::try_from_iter([("number", strange)]).unwrap();
        let error = writer.write(&strange).unwrap_err().to_string();
        assert!(error.contains("one.parquet"), "{error}");
        drop(writer);
        assert_eq!(fs::read(&file).unwrap(), before);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_missing_folder_is_named_with_a_remedy() {
        let file = Path::new("/nowhere/at/all/x.parquet");
        let error = Writer::create(file, batch(0).schema(), 700, &[]).unwrap_err().to_string();
        assert!(error.contains("/nowhere/at/all/x.parquet") && error.contains("make its folder"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn others_may_read_what_was_written() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (ours, ordinary) = (folder.path().join("ours"), folder.path().join("ordinary"));
        write_whole(&ours, b"x").unwrap();
        File::create(&ordinary).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&ordinary));
    }
}
