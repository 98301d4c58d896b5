//! Writes samples as Parquet files: the same bytes for any number of threads.

use std::collections::BTreeMap;
use std::path::Path;

use base::read::ReadError;
use base::setting::InvalidSetting;
use batch::maps::sample::Sample;
use kg::split::Part;
use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::ParallelSlice;

use super::generators::Counts;
use super::rows::Rows;
use super::schema::{FORMAT, VERSION};
use crate::Error;
use crate::shard::file::{Encoded, Files, Size};
use crate::shard::index::PartIndex;
use crate::shard::write::WAVE;

/// More items than the format can number.
fn too_many() -> Error {
    Error::unfit("more items than row numbers can count (4,294,967,295)")
}

/// Where files go and how they are divided.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The folder, which exists.
    pub folder: &'a Path,
    /// What the samples are for.
    pub part: Part,
    /// Digest of the vocabulary, for the footers.
    pub tokenizer: &'a str,
    /// Where a file ends.
    pub size: Size,
    /// Items behind a row group, the unit that is encoded by a thread.
    pub items_per_group: usize,
}

/// Makes samples of items that follow each other; the first has this number. It is asked for each row group apart, by any thread.
pub type Build<'a, T> = &'a (dyn Fn(u32, &[T]) -> Result<(Vec<Sample>, Counts), Error> + Sync);

/// The files of one part in the making.
pub struct Writer<'a, T> {
    target: Target<'a>,
    build: Build<'a, T>,
    files: Files,
    pending: Vec<T>,
    part: PartIndex,
    counts: Counts,
}

impl<T> std::fmt::Debug for Writer<'_, T> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Writer")
            .field("target", &self.target)
            .field("part", &self.part)
            .finish_non_exhaustive()
    }
}

impl<'a, T: Sync> Writer<'a, T> {
    /// Ready for items: documents, or whatever `build` makes samples of.
    ///
    /// # Errors
    /// When row groups of no item are asked for.
    pub fn new(target: Target<'a>, build: Build<'a, T>) -> Result<Self, InvalidSetting> {
        for (setting, found) in
            [("items_per_group", target.items_per_group as u64), ("size", target.size.most())]
        {
            if found == 0 {
                return Err(InvalidSetting::new(setting, found, "at least 1"));
            }
        }
        let (lengths, files) = (BTreeMap::new(), Vec::new());
        let part = PartIndex { part: target.part, items: 0, rows: 0, tokens: 0, lengths, files };
        let files = Files::new(target.folder, target.size);
        Ok(Self { target, build, files, pending: Vec::new(), part, counts: Counts::default() })
    }

    /// Adds an item. Now and then many row groups are encoded at once.
    ///
    /// # Errors
    /// When a sample cannot be made, or the disk refuses.
    pub fn push(&mut self, item: T) -> Result<(), Error> {
        self.pending.push(item);
        if self.pending.len() == WAVE * self.target.items_per_group { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        let (target, build, before) = (self.target, self.build, self.part.items);
        let encode = |(number, items)| -> Result<Group, Error> {
            let items: &[T] = items;
            let first = before + (number * target.items_per_group) as u64;
            let last = u32::try_from(first + items.len() as u64);
            let first = last.ok().and_then(|_| u32::try_from(first).ok()).ok_or_else(too_many)?;
            encode_group(&target, first, items, build)
        };
        let groups = self.pending.par_chunks(target.items_per_group).enumerate();
        let encoded: Result<Vec<Group>, Error> = groups.map(encode).collect();
        for group in encoded? {
            if let Some(encoded) = &group.encoded {
                self.files.append(encoded)?;
            }
            self.counts.add(&group.counts);
            for (length, count) in group.lengths {
                *self.part.lengths.entry(length).or_default() += count;
                self.part.rows += count;
                self.part.tokens += count * length as u64;
            }
        }
        self.part.items += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    /// Gives all files their names, `PART-00000-of-0000N.parquet`, and returns what the index says of them.
    ///
    /// # Errors
    /// As [`Writer::push`].
    pub fn finish(mut self) -> Result<(PartIndex, Counts), Error> {
        self.flush()?;
        self.part.files = self.files.finish(self.target.part.name(), "")?;
        Ok((self.part, self.counts))
    }
}

/// A row group, or none where no item became a sample.
struct Group {
    encoded: Option<Encoded>,
    counts: Counts,
    lengths: BTreeMap<usize, u64>,
}

fn encode_group<T>(
    target: &Target<'_>,
    first: u32,
    items: &[T],
    build: Build<'_, T>,
) -> Result<Group, Error> {
    let (samples, counts) = build(first, items)?;
    let (mut rows, mut lengths) = (Rows::new(), BTreeMap::new());
    for sample in &samples {
        let row = sample.row();
        row.check().map_err(|error| {
            let place = format!("item {}: {}", sample.document, error.place());
            ReadError::new(place, error.found(), error.expected(), "")
        })?;
        rows.push(&row);
        *lengths.entry(row.tokens()).or_default() += 1;
    }
    if samples.is_empty() {
        return Ok(Group { encoded: None, counts, lengths });
    }
    let metadata = [
        ("engraft.format", FORMAT.to_owned()),
        ("engraft.version", VERSION.to_string()),
        ("engraft.part", target.part.name().to_owned()),
        ("engraft.tokenizer.blake3", target.tokenizer.to_owned()),
    ];
    let unfit = |error| Error::Unfit(format!("rows do not fit the schema of maps: {error}"));
    let items = u32::try_from(items.len()).map_err(|_| too_many())?;
    let encoded = Encoded::new(&rows.finish().map_err(unfit)?, items, &metadata)?;
    Ok(Group { encoded: Some(encoded), counts, lengths })
}
