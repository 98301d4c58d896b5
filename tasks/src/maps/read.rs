//! Rows of a file of maps, one row group at a time, checked against the index.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int8Type, Int32Type, UInt16Type, UInt32Type};
use arrow_array::{ArrowPrimitiveType, PrimitiveArray, RecordBatch};
use batch::maps::sample::Row;
use kg::table::guard::guarded;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;

use super::schema::columns;
use crate::Error;
use crate::shard::index::FileIndex;
use crate::shard::lists::Lists;
use crate::shard::pages::{MOST_VALUES, values};
use crate::shard::read::{Blob, footer, pages};

/// A file of maps that is not as it was written.
fn damaged(path: &Path, place: &str, problem: &dyn std::fmt::Display) -> Error {
    let place = format!("{}: {place}", path.display());
    Error::at(place, problem, "the file is damaged: `engraft run maps` builds it again")
}

/// An open file of maps.
#[derive(Debug)]
pub struct Maps {
    path: PathBuf,
    blob: Box<dyn Blob>,
    index: FileIndex,
    metadata: ArrowReaderMetadata,
}

impl Maps {
    /// Opens a file that `index` lists, and checks that it has the columns of this format.
    ///
    /// # Errors
    /// When the file is missing, is not as the index says, or has other columns.
    pub fn open(folder: &Path, index: &FileIndex) -> Result<Self, Error> {
        let path = folder.join(&index.path);
        match File::open(&path) {
            Ok(file) => Self::over(Box::new(file), path, index),
            Err(error) => Err(damaged(&path, "the file", &error)),
        }
    }

    /// A file that lies in `blob`; `path` names it in messages.
    ///
    /// # Errors
    /// As [`Maps::open`].
    pub fn over(blob: Box<dyn Blob>, path: PathBuf, index: &FileIndex) -> Result<Self, Error> {
        let bad = |problem: String| damaged(&path, "footer", &problem);
        let metadata = Arc::new(footer(blob.as_ref(), index).map_err(bad)?);
        let metadata = ArrowReaderMetadata::try_new(metadata, ArrowReaderOptions::new());
        let metadata = metadata.map_err(|e| bad(e.to_string()))?;
        let (found, expected) = (metadata.schema(), columns());
        for field in expected.fields() {
            match found.field_with_name(field.name()) {
                Ok(found) if found.data_type() == field.data_type() => {}
                Ok(_) => return Err(bad(format!("column {} has another type", field.name()))),
                Err(_) => return Err(bad(format!("column {} is missing", field.name()))),
            }
        }
        Ok(Self { path, blob, index: index.clone(), metadata })
    }

    /// Number of row groups.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.index.groups.len()
    }

    /// Reads row group `group`, after checking its bytes against the index.
    ///
    /// # Errors
    /// When it is damaged or does not exist.
    pub fn group(&self, group: usize) -> Result<Group, Error> {
        let bad = |problem: String| damaged(&self.path, &format!("row group {group}"), &problem);
        let pages = pages(self.blob.as_ref(), &self.index, group).map_err(bad)?;
        let rows = self.index.groups.get(group).map_or(0, |listed| listed.rows as usize);
        let described = self.metadata.metadata().row_group(group);
        for chunk in described.columns() {
            let found = guarded(|| values(&pages, chunk, MOST_VALUES));
            let found = found.map_err(|e| bad(format!("column {}: {e}", chunk.column_path().string())))?;
            if found < rows {
                return Err(bad(format!("column {} ends too early", chunk.column_path().string())));
            }
        }
        let batch = guarded(|| {
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(pages, self.metadata.clone());
            let mut reader = builder.with_row_groups(vec![group]).with_batch_size(rows.max(1)).build()?;
            reader.next().transpose().map_err(ParquetError::from)
        });
        let batch = batch.map_err(|e| bad(e.to_string()))?.ok_or_else(|| bad("it has no rows".to_owned()))?;
        if batch.num_rows() != rows {
            return Err(bad(format!("{} rows, but the index says {rows}", batch.num_rows())));
        }
        let group = Group::new(&batch).ok_or_else(|| bad("a column has another type".to_owned()))?;
        for row in 0..rows {
            let check = group.row(row).map_or(Ok(()), |row| row.check());
            check.map_err(|e| bad(format!("row {row}: {e}")))?;
        }
        Ok(group)
    }
}

/// The rows of one row group.
#[derive(Debug)]
pub struct Group {
    rows: usize,
    document: PrimitiveArray<UInt32Type>,
    chunk: PrimitiveArray<UInt32Type>,
    real: PrimitiveArray<UInt16Type>,
    auxiliary: PrimitiveArray<UInt16Type>,
    cut: PrimitiveArray<UInt32Type>,
    input_ids: Lists<Int32Type>,
    token_types: Lists<Int8Type>,
    words: Lists<UInt16Type>,
    entities: Lists<UInt16Type>,
    phrases: Lists<UInt16Type>,
    types: Lists<UInt16Type>,
    terms: [Lists<UInt16Type>; 2],
    relevance: Lists<Float32Type>,
    graph: [Lists<UInt16Type>; 2],
}

fn flat<T: ArrowPrimitiveType>(batch: &RecordBatch, name: &str) -> Option<PrimitiveArray<T>> {
    Some(batch.column_by_name(name)?.as_primitive_opt::<T>()?.clone())
}

impl Group {
    fn new(batch: &RecordBatch) -> Option<Self> {
        let lists = |name: &str| Lists::new(batch, name);
        Some(Self {
            rows: batch.num_rows(),
            document: flat(batch, "document")?,
            chunk: flat(batch, "chunk")?,
            real: flat(batch, "real")?,
            auxiliary: flat(batch, "auxiliary")?,
            cut: flat(batch, "cut")?,
            input_ids: Lists::new(batch, "input_ids")?,
            token_types: Lists::new(batch, "token_type_ids")?,
            words: lists("words")?,
            entities: lists("entities")?,
            phrases: lists("phrases")?,
            types: lists("types")?,
            terms: [lists("term_first")?, lists("term_second")?],
            relevance: Lists::new(batch, "relevance")?,
            graph: [lists("graph_first")?, lists("graph_second")?],
        })
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Row number `row`.
    #[must_use]
    pub fn row(&self, row: usize) -> Option<Row<'_>> {
        (row < self.rows).then(|| Row {
            document: self.document.value(row),
            chunk: self.chunk.value(row),
            real: self.real.value(row),
            auxiliary: self.auxiliary.value(row),
            cut: self.cut.value(row),
            input_ids: self.input_ids.get(row),
            token_types: self.token_types.get(row),
            words: self.words.get(row),
            entities: self.entities.get(row),
            phrases: self.phrases.get(row),
            types: self.types.get(row),
            terms: ((self.terms[0].get(row), self.terms[1].get(row)), self.relevance.get(row)),
            graph: (self.graph[0].get(row), self.graph[1].get(row)),
        })
    }

    /// The rows in order.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        (0..self.rows).filter_map(|row| self.row(row))
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "files are damaged here, and need not appear whole")]
mod tests {
    use bytes::Bytes;
    use kg::split::Part;

    use super::*;
    use crate::maps::generators::{Counts, Limits};
    use crate::maps::index::{self, Index, Options};
    use crate::maps::write::{Target, Writer};
    use crate::shard::file::Size;
    use crate::shard::index::Tokenizer;
    use crate::token::encode::Special;
    use base::self_check;
    use batch::family::Family;
    use batch::maps::sample::example;
    use batch::maps::sample::{NO_WORD, Sample};

    /// Three kinds of samples by number: a full one, one without words, none.
    fn samples(first: u32, items: &[u32]) -> Result<(Vec<Sample>, Counts), Error> {
        let numbered = (first..).zip(items);
        assert!(numbered.clone().all(|(number, item)| number == *item));
        let sample = |(document, item): (u32, &u32)| {
            let empty = Sample {
                real: 2,
                input_ids: vec![2, 3],
                token_types: vec![0; 2],
                words: vec![NO_WORD; 2],
                ..Sample::default()
            };
            match item % 3 {
                0 => Some(Sample { document, ..example() }),
                1 => Some(Sample { document, ..empty }),
                _ => None,
            }
        };
        let samples: Vec<Sample> = numbered.filter_map(sample).collect();
        let counts = Counts { samples: samples.len() as u64, ..Counts::default() };
        Ok((samples, counts))
    }

    fn written(folder: &Path, items: u32, threads: usize) -> Index {
        let write = || {
            let size = Size::Rows(60);
            let target = Target { folder, part: Part::Train, tokenizer: "abc", size, items_per_group: 7 };
            let mut writer = Writer::new(target, &samples).unwrap();
            (0..items).for_each(|item| writer.push(item).unwrap());
            let special = Special { padding: 0, unknown: 1, cls: 2, sep: 3, blank: 4, family: Family::Bert };
            let tokenizer = Tokenizer { blake3: "abc".to_owned(), size: 100, special };
            let limits = Limits { tokens: 64, terms: 2, auxiliary: 8 };
            let options = Options { limits, relevance: Some("def".to_owned()), graph: None };
            let mut index = Index::new(options, tokenizer, vec![writer.finish().unwrap()]);
            index.write(folder).unwrap();
            index
        };
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(write)
    }

    /// A file in memory.
    #[derive(Debug)]
    struct Memory(Bytes);

    impl Blob for Memory {
        fn read_at(&self, start: u64, length: usize) -> std::io::Result<Bytes> {
            let start = usize::try_from(start).unwrap();
            Ok(self.0.slice(start..start + length))
        }
    }

    fn read(folder: &Path, file: &FileIndex) -> Result<Vec<Sample>, Error> {
        all_rows(&Maps::open(folder, file)?)
    }

    fn all_rows(maps: &Maps) -> Result<Vec<Sample>, Error> {
        let groups = (0..maps.groups()).map(|group| maps.group(group));
        let groups: Vec<Group> = groups.collect::<Result<_, _>>()?;
        Ok(groups.iter().flat_map(Group::rows).map(|row| row.to_sample()).collect())
    }

    #[test]
    fn what_is_written_is_read_and_threads_change_no_byte() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let index = written(one.path(), 1000, 1);
        assert_eq!(written(two.path(), 1000, 3), index);
        assert_eq!(Index::read(one.path()).unwrap(), index);
        let part = index.part(Part::Train).unwrap();
        assert_eq!((part.items, part.rows, part.tokens), (1000, 667, 334 * 10 + 333 * 2));
        assert_eq!((index.texts[&Part::Train].samples, part.files.len()), (667, 12));
        let all: Vec<Sample> = index.files().flat_map(|file| read(one.path(), file).unwrap()).collect();
        let items: Vec<u32> = (0..1000).collect();
        assert_eq!(all, samples(0, &items).unwrap().0);
        for file in index.files().map(|file| file.path.as_str()).chain([index::FILE]) {
            assert!(!file.contains('/'));
            let bytes = |folder: &Path| std::fs::read(folder.join(file)).unwrap();
            assert!(bytes(one.path()) == bytes(two.path()), "{file}");
        }
        assert_eq!(part.files[0].path, "train-00000-of-00012.parquet");
        assert_eq!(std::fs::read_dir(one.path()).unwrap().count(), 13);
    }

    #[test]
    fn nothing_to_write_is_an_index_without_files() {
        let folder = tempfile::tempdir().unwrap();
        let index = written(folder.path(), 0, 1);
        assert_eq!(Index::read(folder.path()).unwrap().files().count(), 0);
        assert!(index.part(Part::Train).is_none());
        assert!(Index::read(&folder.path().join("x")).unwrap_err().to_string().contains("not finished"));
    }

    #[test]
    fn every_flipped_bit_is_found_and_its_file_named() {
        let folder = tempfile::tempdir().unwrap();
        let index = written(folder.path(), 20, 1);
        let file = index.files().next().unwrap();
        let path = folder.path().join(&file.path);
        let whole = std::fs::read(&path).unwrap();
        // The first four bytes are Parquet's mark, which no reader of row groups by place needs.
        for byte in 4..whole.len() {
            let mut damaged = whole.clone();
            damaged[byte] ^= 1 << (byte % 8);
            let blob = Box::new(Memory(damaged.into()));
            let opened = Maps::over(blob, path.clone(), file).and_then(|maps| all_rows(&maps));
            let error = opened.expect_err(&format!("byte {byte}")).to_string();
            assert!(error.contains(&file.path), "{error}");
        }
        std::fs::write(&path, &whole[1..]).unwrap();
        assert!(Index::read(folder.path()).unwrap_err().to_string().contains(&file.path));
        let path = folder.path().join(index::FILE);
        let whole = std::fs::read(&path).unwrap();
        for byte in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[byte] ^= 1 << (byte % 7);
            let error =
                self_check::parse::<Index>(damaged, &path).expect_err(&format!("byte {byte}")).to_string();
            assert!(error.contains(index::FILE), "{error}");
        }
    }

    #[test]
    fn an_unsound_sample_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let build = |_: u32, items: &[u32]| {
            let unsound = Sample { real: 1, document: items[0], ..Sample::default() };
            Ok((vec![unsound], Counts::default()))
        };
        let size = Size::Rows(60);
        let target =
            Target { folder: folder.path(), part: Part::Test, tokenizer: "", size, items_per_group: 7 };
        let mut writer = Writer::new(target, &build).unwrap();
        writer.push(5).unwrap();
        let error = writer.finish().unwrap_err().to_string();
        assert!(error.contains("item 5") && error.contains("input_ids"), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let none = Writer::new(Target { items_per_group: 0, ..target }, &build).unwrap_err().to_string();
        assert!(none.contains("items_per_group"), "{none}");
    }
}
