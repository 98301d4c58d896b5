//! Texts of a task as a part of them leaves them on disk: in tokens and cut into chunks, nothing hidden or tagged yet.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::types::UInt32Type;
use arrow_schema::{DataType, Schema, SchemaRef};
use base::self_check::{self, Kind, SelfChecked};
use kg::table::guard::guarded;
use kg::table::parquet_file::Writer;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use serde::{Deserialize, Serialize};
use text::{Label, Labels};

use super::lists::{Lists, ToLists};
use super::schema::{field, list};
use super::text::Texts;
use crate::Error;
use crate::builder::passage::{Counts, Passage, Token};
use crate::token::align::Mention;
use crate::token::encode::{Special, Vocabulary};

/// The passages, one a row.
const FILE: &str = "passages.parquet";
/// What is said of them; written last.
const INDEX: &str = "index.json";
/// The name of the format.
const FORMAT: &str = "engraft-passages";
/// Its version.
const VERSION: u32 = 1;
/// The column that says where chunks end.
const CHUNK_ENDS: &str = "chunk_ends";
/// Passages of a row group.
const GROUP: usize = 4096;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    format: String,
    version: u32,
    xxh3: String,
    /// Kinds of mentions, by number.
    labels: Vec<String>,
    counts: Counts,
}

impl SelfChecked for Index {
    const KIND: &'static Kind = &Kind {
        format: FORMAT,
        version: VERSION,
        folder: "a folder of passages",
        again: "encode the texts again",
        command: "`engraft run shards`",
    };

    fn check_mut(&mut self) -> &mut String {
        &mut self.xxh3
    }
}

/// The columns; docs/formats.md has them as a table.
fn columns() -> SchemaRef {
    let numbers = || list(DataType::UInt32);
    Arc::new(Schema::new(vec![
        field("ids", numbers(), "token ids of the document, without [CLS] and [SEP]"),
        field("words", numbers(), "number of each token's word, from 0"),
        field(CHUNK_ENDS, numbers(), "the token behind the last of each chunk"),
        field("mention_starts", numbers(), "the first token of each mention"),
        field("mention_ends", numbers(), "the token behind its last"),
        field("mention_labels", numbers(), "its kind, by place in the index's labels"),
    ]))
}

/// Writes texts into `folder`, the index last. `labels` are those of their mentions.
///
/// # Errors
/// When the disk refuses, or a document has more than 2^32 tokens.
pub fn write(folder: &Path, texts: &Texts, labels: &Labels) -> Result<(), Error> {
    let unwritten = |error: kg::table::parquet_file::Error| Error::unfit(error.to_string());
    let footer = [("engraft.format", FORMAT.to_owned()), ("engraft.version", VERSION.to_string())];
    let mut file = Writer::create(&folder.join(FILE), columns(), GROUP, &footer).map_err(unwritten)?;
    for passages in texts.passages().chunks(GROUP) {
        let mut lists: [ToLists<UInt32Type>; 6] = std::array::from_fn(|_| ToLists::new());
        for passage in passages {
            let [ids, words, ends, mentions @ ..] = &mut lists;
            ids.extend(passage.tokens.iter().map(|token| token.id));
            words.extend(passage.tokens.iter().map(|token| token.word));
            ends.push(&numbers(passage.chunks.iter().map(|chunk| chunk.end))?);
            let of = |place: fn(&Mention) -> usize| numbers(passage.mentions.iter().map(place));
            mentions[0].push(&of(|mention| mention.subwords.start)?);
            mentions[1].push(&of(|mention| mention.subwords.end)?);
            mentions[2].push(&of(|mention| mention.label.number())?);
        }
        file.write_columns(lists.iter_mut().map(ToLists::finish).collect()).map_err(unwritten)?;
    }
    file.finish().map_err(unwritten)?;
    let mut index = Index {
        format: FORMAT.to_owned(),
        version: VERSION,
        xxh3: String::new(),
        labels: labels.names().to_vec(),
        counts: texts.counts.clone(),
    };
    Ok(self_check::write(&folder.join(INDEX), &mut index)?)
}

fn numbers(all: impl Iterator<Item = usize>) -> Result<Vec<u32>, Error> {
    all.map(u32::try_from)
        .collect::<Result<_, _>>()
        .map_err(|_| Error::unfit("a document has more than 4,294,967,295 tokens"))
}

/// What [`write()`] left in a folder, read piece by piece.
#[derive(Debug)]
pub struct Kept {
    path: PathBuf,
    /// What the file's footer says.
    footer: ArrowReaderMetadata,
    counts: Counts,
    documents: u32,
    /// Documents of each row group.
    groups: Vec<usize>,
    /// The kinds of mentions, by the file's numbers.
    labels: Vec<Label>,
    /// Tokens of the vocabulary.
    tokens: usize,
    special: Special,
}

impl Kept {
    /// Looks at what is in `folder`, and adds its kinds of mentions to `labels`.
    ///
    /// # Errors
    /// When a file is missing, or is not as it was written.
    pub fn open(folder: &Path, vocabulary: &Vocabulary, labels: &mut Labels) -> Result<Self, Error> {
        let index: Index = self_check::read(&folder.join(INDEX))?;
        let path = folder.join(FILE);
        let file = File::open(&path).map_err(|error| damaged(&path, error.to_string()))?;
        let footer = guarded(|| {
            let footer = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())?;
            if footer.schema().fields() != columns().fields() {
                return Err(ParquetError::General("it has other columns than expected".to_owned()));
            }
            Ok(footer)
        });
        let footer = footer.map_err(|error| damaged(&path, error.to_string()))?;
        let all = index.labels.iter().map(|name| labels.intern(name)).collect::<Option<_>>();
        let full = || damaged(&path, "more kinds of mentions than can be numbered".to_owned());
        let labels = all.ok_or_else(full)?;
        let groups = footer.metadata().row_groups().iter().map(|of| usize::try_from(of.num_rows()));
        let groups = groups.collect::<Result<Vec<_>, _>>();
        let groups = groups.map_err(|_| damaged(&path, "a row group of no size".to_owned()))?;
        let documents: usize = groups.iter().sum();
        if documents as u64 != index.counts.documents {
            let found = format!("{documents} passages, but the index says {}", index.counts.documents);
            return Err(damaged(&path, found));
        }
        let many = |_| damaged(&path, format!("{documents} passages are more than can be numbered"));
        let documents = u32::try_from(documents).map_err(many)?;
        let (tokens, special) = (vocabulary.size(), vocabulary.special());
        Ok(Self { path, footer, counts: index.counts, documents, groups, labels, tokens, special })
    }

    /// What became of the documents.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(crate) fn documents(&self) -> u32 {
        self.documents
    }

    /// The kinds of mentions that there may be.
    pub(crate) fn labels(&self) -> &[Label] {
        &self.labels
    }

    fn damaged(&self, problem: String) -> Error {
        damaged(&self.path, problem)
    }

    fn reader(&self) -> Result<ParquetRecordBatchReaderBuilder<File>, Error> {
        let file = File::open(&self.path).map_err(|error| self.damaged(error.to_string()))?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.footer.clone());
        Ok(builder.with_batch_size(GROUP))
    }

    /// Hands on the batches of a reader.
    fn each(
        &self,
        builder: ParquetRecordBatchReaderBuilder<File>,
        mut take: impl FnMut(&RecordBatch) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let built = guarded(|| builder.build());
        let mut batches = built.map_err(|error| self.damaged(error.to_string()))?;
        loop {
            let batch = guarded(|| batches.next().transpose().map_err(ParquetError::from));
            match batch.map_err(|error| self.damaged(error.to_string()))? {
                Some(batch) => take(&batch)?,
                None => return Ok(()),
            }
        }
    }

    /// Adds how many chunks each document has to `lengths`.
    ///
    /// # Errors
    /// When the file is damaged.
    pub(crate) fn chunks(&self, lengths: &mut Vec<usize>) -> Result<(), Error> {
        let builder = self.reader()?;
        let mask = ProjectionMask::columns(builder.parquet_schema(), [CHUNK_ENDS]);
        self.each(builder.with_projection(mask), |batch| {
            let ends: Option<Lists<UInt32Type>> = Lists::new(batch, CHUNK_ENDS);
            let ends = ends.ok_or_else(|| self.damaged(format!("no column {CHUNK_ENDS}")))?;
            lengths.extend((0..batch.num_rows()).map(|row| ends.get(row).len()));
            Ok(())
        })
    }

    /// Adds the documents of these numbers within the file, which are in order, to `passages`.
    ///
    /// # Errors
    /// When the file is damaged.
    pub(crate) fn read(&self, documents: &[usize], passages: &mut Vec<Passage>) -> Result<(), Error> {
        let mut wanted = Vec::new();
        let mut first = 0;
        for (group, rows) in self.groups.iter().enumerate() {
            let below = |end: usize| documents.partition_point(|number| *number < end);
            let own = &documents[below(first)..below(first + rows)];
            if !own.is_empty() {
                wanted.push((group, own, first));
            }
            first += rows;
        }
        let read = wanted.into_par_iter().map(|(group, own, first)| self.of_group(group, own, first));
        read.collect::<Result<Vec<_>, Error>>()?.into_iter().for_each(|mut of| passages.append(&mut of));
        Ok(())
    }

    /// Documents of a row group, which begins with the document `first`: what lies between them is read and dropped.
    fn of_group(&self, group: usize, documents: &[usize], first: usize) -> Result<Vec<Passage>, Error> {
        let mut wanted = documents.iter().copied().peekable();
        let (Some(begin), Some(last)) = (documents.first(), documents.last()) else { return Ok(vec![]) };
        let (mut found, mut number, rows) = (Vec::with_capacity(documents.len()), *begin, last + 1 - begin);
        let builder = self.reader()?.with_row_groups(vec![group]);
        self.each(builder.with_offset(begin - first).with_limit(rows), |batch| {
            for passage in self.passages(batch) {
                let malformed = || self.damaged(format!("passage {} is malformed", number + 1));
                let passage = passage.ok_or_else(malformed)?;
                if wanted.next_if_eq(&number).is_some() {
                    found.push(passage);
                }
                number += 1;
            }
            Ok(())
        })?;
        if number - begin < rows {
            return Err(self.damaged(format!("{} passages where there were to be {rows}", number - begin)));
        }
        Ok(found)
    }

    /// The passages of a batch, `None` for one that is not sound.
    fn passages<'b>(&'b self, batch: &'b RecordBatch) -> impl Iterator<Item = Option<Passage>> + 'b {
        let columns = columns();
        let lists: Option<Vec<Lists<UInt32Type>>> =
            columns.fields().iter().map(|field| Lists::new(batch, field.name())).collect();
        (0..batch.num_rows()).map(move |row| {
            let lists = lists.as_ref()?;
            let row: Vec<&[u32]> = lists.iter().map(|list| list.get(row)).collect();
            self.passage(&row)
        })
    }

    fn passage(&self, row: &[&[u32]]) -> Option<Passage> {
        let [ids, words, ends, starts, mention_ends, kinds] = row.try_into().ok()?;
        let sound = ids.len() == words.len()
            && ids.iter().all(|id| (*id as usize) < self.tokens)
            && words.first().is_none_or(|first| *first == 0)
            && words.windows(2).all(|pair| pair[1] == pair[0] || Some(pair[1]) == pair[0].checked_add(1))
            && ends.last().map_or(0, |last| *last as usize) == ids.len()
            && starts.len() == mention_ends.len()
            && starts.len() == kinds.len();
        let mut from = 0;
        let mut chunks = Vec::with_capacity(ends.len());
        for end in ends {
            let end = *end as usize;
            chunks.push(from..end);
            (from < end).then(|| from = end)?;
        }
        let mut mentions = Vec::with_capacity(kinds.len());
        let mut free = 0;
        for ((start, end), kind) in starts.iter().zip(mention_ends).zip(kinds) {
            let (start, end) = (*start as usize, *end as usize);
            (free <= start && start < end && end <= ids.len()).then_some(())?;
            mentions.push(Mention { subwords: start..end, label: *self.labels.get(*kind as usize)? });
            free = end;
        }
        let tokens = ids.iter().zip(words).map(|(&id, &word)| Token { id, word }).collect();
        sound.then_some(Passage { tokens, mentions, chunks, special: self.special })
    }
}

fn damaged(path: &Path, problem: String) -> Error {
    Error::at(path, problem, "encode the texts again (`engraft run shards`)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::passage::tests::{document, vocabulary};

    /// The texts of documents in which brackets mark mentions.
    fn texts(marked: &[&str], labels: &mut Labels) -> Texts {
        let mut texts = Texts::default();
        for marked in marked {
            texts.push(vocabulary(), &document(marked, labels), 6).unwrap();
        }
        texts
    }

    /// All that is kept of passages but the kinds of their mentions.
    fn told(passages: &[Passage]) -> Vec<String> {
        let places = |of: &Passage| of.mentions.iter().map(|m| m.subwords.clone()).collect::<Vec<_>>();
        passages.iter().map(|of| format!("{:?} {:?} {:?}", of.tokens, of.chunks, places(of))).collect()
    }

    fn kinds<'l>(passages: &[Passage], labels: &'l Labels) -> Vec<&'l str> {
        let mentions = passages.iter().flat_map(|passage| &passage.mentions);
        mentions.map(|mention| labels.names()[mention.label.number()].as_str()).collect()
    }

    #[test]
    fn what_parts_leave_is_what_all_texts_give() {
        let all = ["ab [cd] ef. gh {ij kl} m", "", "{a}b c", "abcdefghij [k]"];
        let mut labels = Labels::default();
        let whole = texts(&all, &mut labels);
        let (mut read_back, mut counts, mut met) = (Vec::new(), Counts::default(), Labels::default());
        // The part behind numbers its kinds the other way round.
        met.intern("Z").unwrap();
        for part in [&all[..1], &all[1..2], &all[2..]] {
            let folder = tempfile::tempdir().unwrap();
            let mut own = Labels::default();
            for name in ["Y", "X"] {
                own.intern(name).unwrap();
            }
            let texts = texts(part, &mut own);
            write(folder.path(), &texts, &own).unwrap();
            let kept = Kept::open(folder.path(), vocabulary(), &mut met).unwrap();
            read_back.extend(whole_file(&kept).unwrap());
            counts.add(kept.counts());
        }
        assert_eq!(counts, whole.counts);
        assert_eq!(kinds(&read_back, &met), kinds(whole.passages(), &labels));
        assert_eq!(told(&read_back), told(whole.passages()));
        assert_eq!(read_back.len(), 4);
    }

    /// All documents of a file.
    fn whole_file(kept: &Kept) -> Result<Vec<Passage>, Error> {
        let (numbers, mut passages) = (Vec::from_iter(0..kept.documents() as usize), Vec::new());
        kept.read(&numbers, &mut passages).map(|()| passages)
    }

    #[test]
    fn any_documents_of_a_file_are_read_alone() {
        let all: Vec<String> = (0..2 * GROUP + 10)
            .map(|number| format!("{} [{}] a", "b".repeat(1 + number % 9), "c".repeat(1 + number % 5)))
            .collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let folder = tempfile::tempdir().unwrap();
        let mut labels = Labels::default();
        let whole = texts(&all, &mut labels);
        write(folder.path(), &whole, &labels).unwrap();
        let kept = Kept::open(folder.path(), vocabulary(), &mut labels).unwrap();
        let mut lengths = Vec::new();
        kept.chunks(&mut lengths).unwrap();
        assert!(lengths.iter().copied().eq(whole.passages().iter().map(|of| of.chunks.len())));
        let end = 2 * GROUP + 10;
        let ranges = [0..end, 0..1, GROUP - 1..GROUP, GROUP - 1..GROUP + 1, GROUP..2 * GROUP, end - 1..end];
        let some = [(0..end).step_by(7).collect(), vec![1, GROUP - 1, GROUP + 3, end - 1]];
        for numbers in ranges.into_iter().map(Vec::from_iter).chain(some) {
            let mut found = Vec::new();
            kept.read(&numbers, &mut found).unwrap();
            let expected: Vec<Passage> =
                numbers.iter().map(|number| whole.passages()[*number].clone()).collect();
            assert_eq!(told(&found), told(&expected), "{numbers:?}");
        }
    }

    #[test]
    fn a_passage_that_none_could_have_left_is_refused() {
        let (folder, mut labels) = (tempfile::tempdir().unwrap(), Labels::default());
        write(folder.path(), &texts(&["[ab]"], &mut labels), &labels).unwrap();
        let mut kept = Kept::open(folder.path(), vocabulary(), &mut labels).unwrap();
        kept.labels.truncate(1);
        let sound: [&[u32]; 6] = [&[5, 6, 7], &[0, 0, 1], &[2, 3], &[0, 2], &[2, 3], &[0, 0]];
        let of = |row: &[&[u32]]| kept.passage(row);
        let empty: [&[u32]; 6] = [&[]; 6];
        assert!(of(&sound).is_some() && of(&empty).is_some());
        let unsound: [(usize, &[u32]); 13] = [
            (0, &[5, 6, 99_999]),
            (0, &[5, 6]),
            (1, &[1, 1, 2]),
            (1, &[0, 1, 0]),
            (1, &[0, 0, 2]),
            (2, &[2]),
            (2, &[2, 2, 3]),
            (2, &[2, 4]),
            (3, &[0, 1]),
            (3, &[2, 2]),
            (4, &[2, 4]),
            (4, &[2]),
            (5, &[0, 1]),
        ];
        for (column, values) in unsound {
            let mut row = sound;
            row[column] = values;
            assert!(of(&row).is_none(), "column {column}: {values:?}");
        }
    }

    #[test]
    fn a_damaged_or_missing_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut labels = Labels::default();
        write(folder.path(), &texts(&["ab [cd] ef"], &mut labels), &labels).unwrap();
        let again = |labels: &mut Labels| {
            let read = Kept::open(folder.path(), vocabulary(), labels).and_then(|kept| whole_file(&kept));
            read.unwrap_err().to_string()
        };
        let file = folder.path().join(FILE);
        let whole = std::fs::read(&file).unwrap();
        for end in [whole.len() - 1, whole.len() / 2, 0] {
            base::whole::write_whole(&file, &whole[..end]).unwrap();
            let found = again(&mut labels);
            assert!(found.contains(FILE) && found.contains("encode the texts again"), "{found}");
        }
        std::fs::remove_file(folder.path().join(INDEX)).unwrap();
        assert!(again(&mut labels).contains(INDEX));
    }
}
