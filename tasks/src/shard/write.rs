//! Builds the samples of every task and writes them as shards: the same bytes for any number of threads, the index last.

use std::collections::BTreeMap;
use std::path::Path;

use base::rng::RngKey;
use base::setting::InvalidSetting;
use batch::task::{Material, Task};
use kg::split::Part;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use super::file::{Encoded, Files, Size};
use super::hub;
use super::index::{Index, Negatives, PartIndex, Source, TaskIndex, Tokenizer};
use super::items::{Block, Encoder, Items, Triples};
use super::pairs::{OfNames, PairItems};
use super::rows::Rows;
use super::schema::{FORMAT, VERSION};
use super::text::{TextCounts, TextItems};
use crate::Error;
use crate::builder::{Layout, Sample};
use crate::names::Names;
use crate::negative::{self, Counts, Filter, Sampler};
use crate::sample::{Corpus, Held};
use crate::token::encode::Vocabulary;

/// Most tokens of a column: a row of three has 16 bits of positions.
const WIDEST: usize = 16_383;
/// Most items of a row group, which is in memory as a whole.
const LARGEST_GROUP: usize = 1_000_000;

/// How samples become shards.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The tasks to build, in task order.
    pub tasks: Vec<Task>,
    /// How columns stand in a row, and where they are cut.
    pub layout: Layout,
    /// How negatives are drawn.
    pub negatives: negative::Config,
    /// Seed of all chance here.
    pub seed: u64,
    /// Where a file ends.
    pub size: Size,
    /// Items behind a row group, the unit in which a stream reads; the triplet task has more rows in it.
    pub items_per_group: usize,
}

impl Config {
    /// Whether every setting is in its range.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        let mut tasks = self.tasks.clone();
        tasks.sort();
        tasks.dedup();
        let (one, no_repeat) = ("at least 1", "at least one, and none twice");
        let (column, in_group) = (format!("from 1 to {WIDEST}"), format!("from 1 to {LARGEST_GROUP}"));
        let names =
            |tasks: &[Task]| format!("{:?}", tasks.iter().map(|task| task.name()).collect::<Vec<_>>());
        let limits = self.layout.limits;
        let whole_tasks = !tasks.is_empty() && tasks.len() == self.tasks.len();
        let (size, group) = (self.size.most(), self.items_per_group);
        let rules = [
            ("tasks", names(&self.tasks), whole_tasks, no_repeat),
            ("layout.limits.node", limits.node.to_string(), (1..=WIDEST).contains(&limits.node), &column),
            ("layout.limits.edge", limits.edge.to_string(), (1..=WIDEST).contains(&limits.edge), &column),
            ("size", size.to_string(), size > 0, one),
            ("items_per_group", group.to_string(), (1..=LARGEST_GROUP).contains(&group), &in_group),
        ];
        match rules.into_iter().find(|(_, _, fits, _)| !fits) {
            Some((setting, found, _, expected)) => Err(InvalidSetting::new(setting, found, expected)),
            None => self.negatives.check(),
        }
    }
}

/// More triples than the formats' 32-bit row numbers.
fn too_many(triples: usize) -> Error {
    Error::Unfit(format!("{triples} triples are more than a shard's row numbers can count (4,294,967,295)"))
}

/// Told the number of rows just encoded; an error from it stops the work.
pub type Tick<'a> = &'a (dyn Fn(u64) -> std::io::Result<()> + Sync);

/// Row groups that are encoded before they are written; it bounds memory and changes no byte.
pub(crate) const WAVE: usize = 64;

/// How rows are written.
#[derive(Debug, Clone, Copy)]
pub struct As<'a> {
    /// How columns stand in a row.
    pub layout: &'a Layout,
    /// BLAKE3 of the vocabulary's file, for the footers.
    pub tokenizer: &'a str,
    /// Where a file ends.
    pub size: Size,
    /// Items behind a row group.
    pub items_per_group: usize,
}

/// Writes the shards of all `items` into `folder` and tells what was written. Items of one task stand together, in the order of parts.
/// Threads encode row groups; files are put together in the order of items, so no order between threads reaches the disk.
///
/// # Errors
/// When the disk refuses or `tick` stops the work; no shard of the present task and part has its name then.
pub fn write_items(
    folder: &Path,
    items: &[&dyn Items],
    as_said: As<'_>,
    tick: Tick<'_>,
) -> Result<Written, Error> {
    let mut written = Written { tasks: Vec::new(), negatives: BTreeMap::new() };
    for of in items.iter().filter(|items| !items.is_empty()) {
        let below = of.task().name();
        let place = folder.join(below);
        std::fs::create_dir_all(&place)?;
        let mut files = Files::new(&place, as_said.size);
        let (mut lengths, mut rows) = (BTreeMap::<usize, u64>::new(), 0);
        let per_group = as_said.items_per_group;
        let groups: Vec<usize> = (0..of.len()).step_by(per_group).collect();
        for wave in groups.chunks(WAVE) {
            let ends = wave.first().zip(wave.last());
            let Some((first, end)) = ends.map(|(first, last)| (*first, (last + per_group).min(of.len())))
            else {
                continue;
            };
            let block = of.block(first..end)?;
            let encode = |&first: &usize| {
                let items = first..(first + per_group).min(of.len());
                encode_group(*of, &*block, items, as_said, tick)
            };
            let encoded: Result<Vec<(Encoded, Rows)>, Error> = wave.par_iter().map(encode).collect();
            for (group, counted) in encoded? {
                files.append(&group)?;
                written.negatives.entry(of.part()).or_default().add(&counted.counts);
                for (length, count) in counted.lengths {
                    *lengths.entry(length).or_default() += count;
                    rows += count;
                }
            }
        }
        let tokens = lengths.iter().map(|(&length, &count)| length as u64 * count).sum();
        let files = files.finish(of.part().name(), below)?;
        let part = PartIndex { part: of.part(), items: of.len() as u64, rows, tokens, lengths, files };
        match written.tasks.last_mut() {
            Some(last) if last.task == of.task() => last.parts.push(part),
            _ => written.tasks.push(TaskIndex { task: of.task(), parts: vec![part] }),
        }
    }
    Ok(written)
}

/// What was written.
#[derive(Debug)]
pub struct Written {
    /// The shards.
    pub tasks: Vec<TaskIndex>,
    /// What became of proposed negatives, by part.
    pub negatives: BTreeMap<Part, Counts>,
}

fn encode_group(
    of: &dyn Items,
    block: &dyn Block,
    items: std::ops::Range<usize>,
    as_said: As<'_>,
    tick: Tick<'_>,
) -> Result<(Encoded, Rows), Error> {
    let (mut rows, mut sample) = (Rows::new(of.task(), as_said.layout.form), Sample::default());
    let count = u32::try_from(items.len()).map_err(|_| too_many(items.len()))?;
    items.for_each(|item| block.build(item, &mut sample, &mut rows));
    let batch =
        rows.finish().map_err(|error| Error::Unfit(format!("rows do not fit the shard schema: {error}")))?;
    let metadata = [
        ("engraft.format", FORMAT.to_owned()),
        ("engraft.version", VERSION.to_string()),
        ("engraft.task", of.task().name().to_owned()),
        ("engraft.part", of.part().name().to_owned()),
        ("engraft.tokenizer.blake3", as_said.tokenizer.to_owned()),
    ];
    let encoded = Encoded::new(&batch, count, &metadata)?;
    tick(batch.num_rows() as u64)?;
    Ok((encoded, rows))
}

/// What shards are made from besides triples.
#[derive(Clone, Copy)]
pub struct From<'a> {
    /// The vocabulary to encode with.
    pub vocabulary: &'a Vocabulary,
    /// BLAKE3 of its file.
    pub vocabulary_digest: &'a str,
    /// Where the triples come from.
    pub sources: &'a [Source],
    /// The tasks on texts, in task order, each part of a task by itself.
    pub texts: &'a [&'a dyn TextItems],
    /// What the tasks on names are made of, if there are such tasks.
    pub names: Option<&'a Names>,
}

fn negatives_seed(seed: u64) -> RngKey {
    RngKey::new(seed).named("negatives")
}

/// What draws the negatives of the shown triples, in shards and in streams that draw those of later epochs.
///
/// # Errors
/// When a setting is out of range or does not fit the graph.
pub fn negatives(config: &negative::Config, seed: u64, corpus: &Corpus<'_>) -> Result<Sampler, Error> {
    Sampler::new(config, corpus, negatives_seed(seed))
}

/// What draws the negatives of the shown triples, and of those held out.
struct Samplers {
    shown: Sampler,
    held: Vec<Sampler>,
}

/// Triples, and their texts.
#[derive(Clone, Copy)]
struct Shown<'a> {
    corpus: &'a Corpus<'a>,
    held: &'a [Held],
    encoder: &'a Encoder,
}

impl Samplers {
    fn new(config: &Config, corpus: &Corpus<'_>, held: &[Held]) -> Result<Self, Error> {
        let shown = negatives(&config.negatives, config.seed, corpus)?;
        let seed = negatives_seed(config.seed);
        // A model is judged by its negatives too: those of held-out parts must be false in every part. Nobody learns from them.
        let judged = negative::Config { filter: Filter::All, ..config.negatives.clone() };
        let of_held = |held: &Held| Sampler::new(&judged, corpus, seed.named(held.part.name()));
        Ok(Self { shown, held: held.iter().map(of_held).collect::<Result<_, _>>()? })
    }

    /// The rows of a task on triples, by part.
    fn items<'a>(&'a self, task: Task, of: Shown<'a>) -> impl Iterator<Item = Triples<'a>> {
        let Shown { corpus, held, encoder } = of;
        let donors = corpus.rows.as_slice();
        let (triples, sampler) = (corpus.triples.as_slice(), &self.shown);
        let train = Triples { task, part: Part::Train, triples, rows: donors, encoder, sampler, donors };
        let held = held.iter().zip(&self.held).map(move |(held, sampler)| {
            let Held { part, ref triples, ref rows } = *held;
            Triples { task, part, triples, rows, encoder, sampler, donors }
        });
        std::iter::once(train).chain(held)
    }
}

/// Encodes `corpus` and what is held out and writes all shards and the index into `folder`.
///
/// # Errors
/// When a text cannot be encoded, the disk refuses or `tick` stops the work; the index is not written then.
pub fn write(
    folder: &Path,
    corpus: &Corpus<'_>,
    held: &[Held],
    from: From<'_>,
    config: &Config,
    tick: Tick<'_>,
) -> Result<Index, Error> {
    config.check()?;
    config.layout.check().map_err(|error| Error::Unfit(format!("layout: {error}")))?;
    let triples = corpus.triples.len();
    let on_graph: Vec<Task> =
        config.tasks.iter().copied().filter(|task| task.made_of() == Material::Triples).collect();
    if triples == 0 && config.tasks.iter().any(|task| task.made_of() != Material::Texts) {
        return Err(Error::unfit(
            "the triple table is empty: no sample can be built; look at the funnel (`engraft inspect triples`) for what was dropped",
        ));
    }
    if u32::try_from(triples).is_err() {
        return Err(too_many(triples));
    }
    let encoder = Encoder::new(corpus, from.vocabulary, config.layout)?;
    let samplers = (!on_graph.is_empty()).then(|| Samplers::new(config, corpus, held)).transpose()?;
    let of = Shown { corpus, held, encoder: &encoder };
    let triples: Vec<Triples<'_>> = samplers
        .iter()
        .flat_map(|of_each| on_graph.iter().flat_map(|&task| of_each.items(task, of)))
        .collect();
    let of_names = from.names.map(|names| of_names(names, from, config)).transpose()?;
    let pairs = of_names.iter().zip(from.names);
    let pairs: Vec<PairItems<'_>> =
        pairs.flat_map(|(of, names)| of.items(names, &config.layout, encoder.special)).collect();
    let mut items: Vec<&dyn Items> = triples.iter().map(|items| items as &dyn Items).collect();
    items.extend(pairs.iter().map(|items| items as &dyn Items));
    items.extend(from.texts.iter().map(|&items| items as &dyn Items));
    // Stable, so parts keep their order.
    items.sort_by_key(|items| items.task());
    let Config { ref layout, size, items_per_group, .. } = *config;
    let as_said = As { layout, tokenizer: from.vocabulary_digest, size, items_per_group };
    let written = write_items(folder, &items, as_said, tick)?;
    let mut index = index_of(corpus, held, from, config, &encoder, written);
    if let Some((of, names)) = of_names.as_ref().zip(from.names) {
        index.names = of.counts(names);
        index.sources.extend(of.levels(names).iter().map(|(task, levels)| Source::of_names(*task, levels)));
    }
    hub::write(folder, &index)?;
    index.write(folder)?;
    Ok(index)
}

/// The pairs of the tasks on names.
fn of_names(names: &Names, from: From<'_>, config: &Config) -> Result<OfNames, Error> {
    OfNames::draw(&config.tasks, names, from.vocabulary, &config.layout, RngKey::new(config.seed))
}

/// What the index says of all that.
fn index_of(
    corpus: &Corpus<'_>,
    held: &[Held],
    from: From<'_>,
    config: &Config,
    encoder: &Encoder,
    written: Written,
) -> Index {
    let mut triples = BTreeMap::from([(Part::Train, corpus.triples.len() as u64)]);
    triples.extend(held.iter().map(|held| (held.part, held.triples.len() as u64)));
    let to_learn_from = from.texts.iter().filter(|items| items.part() == Part::Train);
    let mut texts: BTreeMap<Task, TextCounts> = BTreeMap::new();
    for items in from.texts {
        let counts = items.counts();
        texts.entry(items.task()).and_modify(|all| all.add(&counts)).or_insert(counts);
    }
    Index {
        format: FORMAT.to_owned(),
        version: VERSION,
        xxh3: String::new(),
        layout: config.layout,
        tokenizer: Tokenizer {
            blake3: from.vocabulary_digest.to_owned(),
            size: from.vocabulary.size(),
            special: from.vocabulary.special(),
        },
        triples,
        relations: corpus.relations.iter().map(|text| (*text).to_owned()).collect(),
        classes: to_learn_from.flat_map(|items| items.classes()).cloned().collect(),
        sources: from.sources.to_vec(),
        entity_texts: encoder.entities.counts.clone(),
        relation_texts: encoder.relations.counts.clone(),
        texts,
        names: BTreeMap::new(),
        negatives: Negatives {
            seed: config.seed,
            config: config.negatives.clone(),
            counts: written.negatives,
        },
        tasks: written.tasks,
    }
}
