//! Texts of a task as a part of them leaves them on disk: in tokens and cut into chunks, nothing hidden or tagged yet.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::types::UInt32Type;
use arrow_schema::{DataType, Schema, SchemaRef};
use base::self_check::{self, Kind, SelfChecked};
use kg::table::guard::guarded;
use kg::table::parquet_file::Writer;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;
use serde::{Deserialize, Serialize};
use text::{Label, Labels};

use super::lists::{Lists, ToLists};
use super::schema::{field, list};
use super::text::Texts;
use crate::Error;
use crate::builder::passage::{Counts, Passage, Token};
use crate::token::align::Mention;
use crate::token::encode::Vocabulary;

/// The passages, one a row.
const FILE: &str = "passages.parquet";
/// What is said of them; written last.
const INDEX: &str = "index.json";
/// The name of the format.
const FORMAT: &str = "engraft-passages";
/// Its version.
const VERSION: u32 = 1;
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
        field("chunk_ends", numbers(), "the token behind the last of each chunk"),
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

/// Adds what [`write()`] left in `folder` to `texts`, and their kinds of mentions to `labels`.
///
/// # Errors
/// When a file is missing, or is not as it was written with this vocabulary.
pub fn read(
    folder: &Path,
    vocabulary: &Vocabulary,
    texts: &mut Texts,
    labels: &mut Labels,
) -> Result<(), Error> {
    let index: Index = self_check::read(&folder.join(INDEX))?;
    let path = folder.join(FILE);
    let damaged =
        |problem: String| Error::at(&path, problem, "encode the texts again (`engraft run shards`)");
    let full = || damaged("more kinds of mentions than can be numbered".to_owned());
    let labels: Vec<Label> =
        index.labels.iter().map(|name| labels.intern(name)).collect::<Option<_>>().ok_or_else(full)?;
    let file = File::open(&path).map_err(|error| damaged(error.to_string()))?;
    let opened = guarded(|| {
        let builder = ParquetRecordBatchReaderBuilder::try_new(file)?.with_batch_size(GROUP);
        if builder.schema().fields() != columns().fields() {
            return Err(ParquetError::General("it has other columns than expected".to_owned()));
        }
        builder.build()
    });
    let mut batches = opened.map_err(|error| damaged(error.to_string()))?;
    let mut documents = 0;
    loop {
        let batch = guarded(|| batches.next().transpose().map_err(ParquetError::from));
        let Some(batch) = batch.map_err(|error| damaged(error.to_string()))? else { break };
        for passage in passages(&batch, vocabulary, &labels) {
            documents += 1;
            texts.add(passage.ok_or_else(|| damaged(format!("passage {documents} is none")))?);
        }
    }
    if documents != index.counts.documents {
        let found = format!("{documents} passages, but the index says {}", index.counts.documents);
        return Err(damaged(found));
    }
    texts.counts.add(&index.counts);
    Ok(())
}

/// The passages of a batch, `None` for one that is not sound.
fn passages<'b>(
    batch: &'b RecordBatch,
    vocabulary: &'b Vocabulary,
    labels: &'b [Label],
) -> impl Iterator<Item = Option<Passage>> + 'b {
    let columns = columns();
    let lists: Option<Vec<Lists<UInt32Type>>> =
        columns.fields().iter().map(|field| Lists::new(batch, field.name())).collect();
    (0..batch.num_rows()).map(move |row| {
        let lists = lists.as_ref()?;
        let row: Vec<&[u32]> = lists.iter().map(|list| list.get(row)).collect();
        passage(&row, vocabulary, labels)
    })
}

fn passage(row: &[&[u32]], vocabulary: &Vocabulary, labels: &[Label]) -> Option<Passage> {
    let [ids, words, ends, starts, mention_ends, kinds] = row.try_into().ok()?;
    let sound = ids.len() == words.len()
        && ids.iter().all(|id| (*id as usize) < vocabulary.size())
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
        mentions.push(Mention { subwords: start..end, label: *labels.get(*kind as usize)? });
        free = end;
    }
    let tokens = ids.iter().zip(words).map(|(&id, &word)| Token { id, word }).collect();
    sound.then_some(Passage { tokens, mentions, chunks, special: vocabulary.special() })
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

    fn kinds<'l>(texts: &Texts, labels: &'l Labels) -> Vec<&'l str> {
        let mentions = texts.passages().iter().flat_map(|passage| &passage.mentions);
        mentions.map(|mention| labels.names()[mention.label.number()].as_str()).collect()
    }

    #[test]
    fn what_parts_leave_is_what_all_texts_give() {
        let all = ["ab [cd] ef. gh {ij kl} m", "", "{a}b c", "abcdefghij [k]"];
        let mut labels = Labels::default();
        let whole = texts(&all, &mut labels);
        let (mut read_back, mut met) = (Texts::default(), Labels::default());
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
            read(folder.path(), vocabulary(), &mut read_back, &mut met).unwrap();
        }
        assert_eq!(read_back.counts, whole.counts);
        assert_eq!(kinds(&read_back, &met), kinds(&whole, &labels));
        for (one, other) in read_back.passages().iter().zip(whole.passages()) {
            assert_eq!((&one.tokens, &one.chunks), (&other.tokens, &other.chunks));
            let places = |of: &Passage| of.mentions.iter().map(|m| m.subwords.clone()).collect::<Vec<_>>();
            assert_eq!(places(one), places(other));
        }
        assert_eq!(read_back.passages().len(), 4);
    }

    #[test]
    fn a_passage_that_none_could_have_left_is_refused() {
        let label = Labels::default().intern("X").unwrap();
        let sound: [&[u32]; 6] = [&[5, 6, 7], &[0, 0, 1], &[2, 3], &[0, 2], &[2, 3], &[0, 0]];
        let of = |row: &[&[u32]]| passage(row, vocabulary(), &[label]);
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
            read(folder.path(), vocabulary(), &mut Texts::default(), labels).unwrap_err().to_string()
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
