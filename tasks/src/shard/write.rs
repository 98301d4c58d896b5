//! Builds the samples of every task and writes them as shards: the same bytes for any number of threads, the index last.
//! Knows no stage and no trainer.

use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{Int8Builder, Int32Builder, ListBuilder, StringBuilder, UInt32Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType};
use kg::table::parquet_file::{self, Writer};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::index::{self, FileIndex, GroupIndex, Index, Limits, TaskIndex, Tokenizer};
use super::schema::{FORMAT, VERSION, columns, list_item};
use crate::builder::{Columns, Sample, entity, relation, triplet};
use crate::negative::uniform::{self, Counts, Sampler};
use crate::sample::{Corpus, Known, Slot, Triple};
use crate::seed::Seed;
use crate::task::Task;
use crate::token::encode::{self, EncodedTexts, Vocabulary};

/// How samples become shards.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The tasks to build, in task order.
    pub tasks: Vec<Task>,
    /// Where columns are cut, in tokens.
    pub limits: Limits,
    /// How negatives are drawn.
    pub negatives: uniform::Config,
    /// Seed of all chance here.
    pub seed: u64,
    /// Triples behind one file; a triplet file has up to twice as many rows.
    pub triples_per_shard: usize,
    /// Triples behind a row group, the unit in which a stream reads; the triplet task has up to twice as many rows in it.
    pub triples_per_group: usize,
}

/// A setting with which no shards can be built.
#[derive(Debug, thiserror::Error)]
#[error("{setting} is {found}, expected {expected}")]
pub struct Unfit {
    setting: &'static str,
    found: String,
    expected: &'static str,
}

impl Config {
    /// Whether every setting is in its range.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn check(&self) -> Result<(), Unfit> {
        let mut tasks = self.tasks.clone();
        tasks.sort();
        tasks.dedup();
        let (one, no_repeat) = ("at least 1", "at least one, and none twice");
        let names =
            |tasks: &[Task]| format!("{:?}", tasks.iter().map(|task| task.name()).collect::<Vec<_>>());
        let mut slots = self.negatives.slots.clone();
        slots.sort();
        slots.dedup();
        let (Limits { node, edge }, draws) = (self.limits, self.negatives.max_draws as usize);
        let whole_tasks = !tasks.is_empty() && tasks.len() == self.tasks.len();
        let whole_slots = !slots.is_empty() && slots.len() == self.negatives.slots.len();
        let rules = [
            ("tasks", names(&self.tasks), whole_tasks, no_repeat),
            ("negatives.slots", format!("{:?}", self.negatives.slots), whole_slots, no_repeat),
            ("negatives.max_draws", draws.to_string(), draws > 0, one),
            ("node_tokens", node.to_string(), node > 0, one),
            ("edge_tokens", edge.to_string(), edge > 0, one),
            ("triples_per_shard", self.triples_per_shard.to_string(), self.triples_per_shard > 0, one),
            ("triples_per_group", self.triples_per_group.to_string(), self.triples_per_group > 0, one),
        ];
        match rules.into_iter().find(|(_, _, fits, _)| !fits) {
            Some((setting, found, _, expected)) => Err(Unfit { setting, found, expected }),
            None => Ok(()),
        }
    }
}

/// Why shards could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A text could not be encoded.
    #[error(transparent)]
    Encode(#[from] encode::Error),
    /// A file could not be written.
    #[error(transparent)]
    File(#[from] parquet_file::Error),
    /// The index could not be written.
    #[error(transparent)]
    Index(#[from] index::Error),
    /// Rows did not fit their schema.
    #[error("rows do not fit the shard schema: {0}")]
    Rows(#[from] ArrowError),
    /// A setting is out of range.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// There is nothing to build from.
    #[error(
        "the triple table is empty: no sample can be built; look at the funnel (`engraft inspect triples`) for what was dropped"
    )]
    NoTriples,
    /// The graph does not fit the formats' 32-bit row numbers.
    #[error("{0} triples are more than a shard's row numbers can count (4,294,967,295)")]
    TooMany(usize),
    /// A folder could not be made, or the caller asked to stop.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Told the number of rows just written; an error from it stops the work.
pub type Tick<'a> = &'a (dyn Fn(u64) -> std::io::Result<()> + Sync);

/// Encodes `corpus` with `vocabulary` and writes all shards and the index into `folder`.
///
/// # Errors
/// When a text cannot be encoded, the disk refuses or `tick` stops the work; the index is not written then.
pub fn write(
    folder: &Path,
    corpus: &Corpus<'_>,
    (vocabulary, vocabulary_digest): (&Vocabulary, &str),
    config: &Config,
    tick: Tick<'_>,
) -> Result<Index, Error> {
    config.check()?;
    let triples = corpus.triples.len();
    if triples == 0 {
        return Err(Error::NoTriples);
    }
    if u32::try_from(triples).is_err() {
        return Err(Error::TooMany(triples));
    }
    for task in &config.tasks {
        std::fs::create_dir_all(folder.join(task.name()))?;
    }
    let known = Known::new(corpus);
    let builder = Builder {
        config,
        triples: &corpus.triples,
        table_rows: &corpus.rows,
        entities: vocabulary.encode_all(&corpus.entities, config.limits.node)?,
        relations: vocabulary.encode_all(&corpus.relations, config.limits.edge)?,
        special: vocabulary.special(),
        sampler: Sampler {
            config: &config.negatives,
            triples: &corpus.triples,
            known: &known,
            // Epoch 0: these shards hold one fixed draw.
            seed: Seed::new(config.seed).named("negatives").at(0),
        },
        folder,
        tick,
    };
    let (tasks, negatives) = builder.write_all()?;
    let index = Index {
        format: FORMAT.to_owned(),
        version: VERSION,
        layout: "packed".to_owned(),
        tokenizer: Tokenizer {
            blake3: vocabulary_digest.to_owned(),
            size: vocabulary.size(),
            special: vocabulary.special(),
        },
        limits: config.limits,
        triples: triples as u64,
        relations: corpus.relations.iter().map(|text| (*text).to_owned()).collect(),
        entity_texts: builder.entities.counts.clone(),
        relation_texts: builder.relations.counts.clone(),
        negatives,
        tasks,
    };
    index.write(folder)?;
    Ok(index)
}

/// All that building needs, shared by the threads.
struct Builder<'a> {
    config: &'a Config,
    triples: &'a [Triple],
    /// Row of each triple in the triple table.
    table_rows: &'a [u32],
    entities: EncodedTexts,
    relations: EncodedTexts,
    special: encode::Special,
    sampler: Sampler<'a>,
    folder: &'a Path,
    tick: Tick<'a>,
}

impl Builder<'_> {
    /// Writes the files of all tasks; each is the work of one thread, so no order between threads reaches the disk.
    fn write_all(&self) -> Result<(Vec<TaskIndex>, Counts), Error> {
        let shards = self.triples.len().div_ceil(self.config.triples_per_shard);
        let units: Vec<(Task, usize)> =
            self.config.tasks.iter().flat_map(|&task| (0..shards).map(move |shard| (task, shard))).collect();
        let done: Result<Vec<(FileIndex, Counts)>, Error> =
            units.into_par_iter().map(|(task, shard)| self.write_shard(task, shard, shards)).collect();
        let mut counts = Counts::default();
        let mut files = done?.into_iter().map(|(file, file_counts)| {
            counts.add(&file_counts);
            file
        });
        let tasks: Vec<TaskIndex> = self
            .config
            .tasks
            .iter()
            .map(|&task| {
                let files: Vec<FileIndex> = files.by_ref().take(shards).collect();
                TaskIndex {
                    task,
                    rows: files.iter().map(FileIndex::rows).sum(),
                    tokens: files.iter().map(|file| file.tokens).sum(),
                    longest: files.iter().map(|file| file.longest).max().unwrap_or(0),
                    files,
                }
            })
            .collect();
        drop(files);
        Ok((tasks, counts))
    }

    fn write_shard(&self, task: Task, shard: usize, shards: usize) -> Result<(FileIndex, Counts), Error> {
        let path = format!("{}/train-{shard:05}-of-{shards:05}.parquet", task.name());
        let metadata = [
            ("engraft.format", FORMAT.to_owned()),
            ("engraft.version", VERSION.to_string()),
            ("engraft.task", task.name().to_owned()),
        ];
        let file = self.folder.join(&path);
        let writer = Writer::create(&file, columns(task), 2 * self.config.triples_per_group, &metadata)?;
        let mut rows = Rows::new(task, writer, self.tick);
        let (first, last) =
            (shard * self.config.triples_per_shard, (shard + 1) * self.config.triples_per_shard);
        let mut counts = Counts::default();
        let mut sample = Sample::default();
        for index in first..last.min(self.triples.len()) {
            let index = u32::try_from(index).map_err(|_| Error::TooMany(index))?;
            rows.next_triple(self.config.triples_per_group)?;
            self.build(task, index, &mut sample);
            let row = self.table_rows[index as usize];
            rows.push(row, &sample, None);
            if task == Task::Triplet
                && let Some(negative) = self.sampler.negative(index, &mut counts)
            {
                let columns = self.columns(negative.triple);
                triplet::build(&mut sample, self.special, columns, triplet::Truth::Corrupted);
                rows.push(row, &sample, Some((negative.slot, self.table_rows[negative.donor as usize])));
            }
        }
        Ok((rows.finish(path)?, counts))
    }

    fn build(&self, task: Task, index: u32, sample: &mut Sample) {
        let triple = self.triples[index as usize];
        let columns = self.columns(triple);
        match task {
            Task::Subject => entity::build(sample, self.special, columns, Slot::Subject),
            Task::Object => entity::build(sample, self.special, columns, Slot::Object),
            Task::Relation => relation::build(sample, self.special, columns, triple[1]),
            Task::Triplet => triplet::build(sample, self.special, columns, triplet::Truth::Stated),
        }
    }

    fn columns(&self, [subject, relation, object]: Triple) -> Columns<'_> {
        let entity = |id: u32| self.entities.get(id as usize);
        [entity(subject), self.relations.get(relation as usize), entity(object)]
    }
}

/// The rows of one file, gathered column by column until a row group is full.
struct Rows<'a> {
    task: Task,
    writer: Writer,
    tick: Tick<'a>,
    triple: UInt32Builder,
    input_ids: ListBuilder<Int32Builder>,
    token_type_ids: ListBuilder<Int8Builder>,
    labels: ListBuilder<Int32Builder>,
    label: Int32Builder,
    slot: StringBuilder,
    donor: UInt32Builder,
    pending: GroupIndex,
    groups: Vec<GroupIndex>,
    tokens: u64,
    longest: usize,
}

impl<'a> Rows<'a> {
    fn new(task: Task, writer: Writer, tick: Tick<'a>) -> Self {
        let int32 = || ListBuilder::new(Int32Builder::new()).with_field(list_item(DataType::Int32));
        Self {
            task,
            writer,
            tick,
            triple: UInt32Builder::new(),
            input_ids: int32(),
            token_type_ids: ListBuilder::new(Int8Builder::new()).with_field(list_item(DataType::Int8)),
            labels: int32(),
            label: Int32Builder::new(),
            slot: StringBuilder::new(),
            donor: UInt32Builder::new(),
            pending: GroupIndex { triples: 0, rows: 0 },
            groups: Vec::new(),
            tokens: 0,
            longest: 0,
        }
    }

    /// Begins the rows of the next triple, in a new row group if `most` triples are in the present one.
    fn next_triple(&mut self, most: usize) -> Result<(), Error> {
        if self.pending.triples as usize >= most {
            self.flush()?;
        }
        self.pending.triples += 1;
        Ok(())
    }

    fn push(&mut self, triple: u32, sample: &Sample, negative: Option<(Slot, u32)>) {
        self.triple.append_value(triple);
        // Ids come from 32-bit vocabularies of far fewer than 2^31 entries.
        self.input_ids.append_value(sample.input_ids.iter().map(|&id| Some(id.cast_signed())));
        self.token_type_ids.append_value(sample.input_ids.iter().map(|_| Some(0)));
        match sample.class {
            Some(class) => self.label.append_value(class.cast_signed()),
            None => self.labels.append_value(sample.labels.iter().map(|&l| i32::try_from(l).ok())),
        }
        if self.task == Task::Triplet {
            self.slot.append_option(negative.map(|(slot, _)| slot.name()));
            self.donor.append_option(negative.map(|(_, donor)| donor));
        }
        self.tokens += sample.input_ids.len() as u64;
        self.longest = self.longest.max(sample.input_ids.len());
        self.pending.rows += 1;
    }

    /// Writes the gathered rows as one row group.
    fn flush(&mut self) -> Result<(), Error> {
        if self.pending.rows == 0 {
            return Ok(());
        }
        let mut arrays: Vec<ArrayRef> = vec![
            Arc::new(self.triple.finish()),
            Arc::new(self.input_ids.finish()),
            Arc::new(self.token_type_ids.finish()),
        ];
        match self.task {
            Task::Subject | Task::Object => arrays.push(Arc::new(self.labels.finish())),
            Task::Relation => arrays.push(Arc::new(self.label.finish())),
            Task::Triplet => {
                arrays.push(Arc::new(self.label.finish()));
                arrays.push(Arc::new(self.slot.finish()));
                arrays.push(Arc::new(self.donor.finish()));
            }
        }
        self.writer.write(&RecordBatch::try_new(columns(self.task), arrays)?)?;
        self.writer.end_group()?;
        self.groups.push(self.pending);
        (self.tick)(u64::from(self.pending.rows))?;
        self.pending = GroupIndex { triples: 0, rows: 0 };
        Ok(())
    }

    fn finish(mut self, path: String) -> Result<FileIndex, Error> {
        self.flush()?;
        let bytes = self.writer.finish()?;
        Ok(FileIndex {
            path,
            groups: self.groups,
            tokens: self.tokens,
            longest: self.longest,
            bytes: bytes.len() as u64,
            blake3: blake3::hash(&bytes).to_hex().to_string(),
        })
    }
}
