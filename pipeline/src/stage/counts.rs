//! Stage `counts`: how often the words of the corpus occur, alone and together.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::json;
use text::count::{self, Counts, Room, Shard};

use super::corpus::Corpus;
use super::location::{self, Location, Place, Places};
use super::memory::Memory;
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::stage::{Input, Stage};

/// The counts' part of a config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// What is counted.
    pub what: count::Config,
    /// Memory limit for counting, such as `"2GiB"` (`B`, `KiB`, `MiB`, `GiB`, `kB`, `MB`, `GB`; at least `"32MiB"`). The distinct words must fit in
    /// a quarter of it; everything else can spill to temporary files. Not part of any fingerprint: it does not affect the output.
    ///
    /// Source: ours: fits beside other programs on any machine.
    #[serde(skip_serializing)]
    #[schemars(extend("default" = "2GiB"))]
    pub memory: Memory,
    /// `"2/4"`: the second of every four documents, see Counting in shards. Recorded in the index of the counts.
    pub shard: Option<Shard>,
    /// Folders with the counts of all shards, to merge instead of counting the corpus, which the config may then omit. Each shard of one corpus
    /// must be listed exactly once.
    #[serde(skip_serializing)]
    pub merge: Option<Vec<Location>>,
}

impl Default for Config {
    fn default() -> Self {
        Self { what: count::Config::default(), memory: Memory(2 << 30), shard: None, merge: None }
    }
}

impl Config {
    /// Whether every setting is in its range.
    ///
    /// # Errors
    /// Names the first that is not.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.what.check().map_err(|error| anyhow::anyhow!("counts.what.{error}"))?;
        anyhow::ensure!(
            self.merge.as_ref().is_none_or(|folders| !folders.is_empty()),
            "counts.merge is [], expected the folders of all shards, or leave it out"
        );
        let (found, least) = (self.memory.0, count::LEAST_MEMORY);
        anyhow::ensure!(
            found >= least,
            "counts.memory is {found} bytes, expected at least {} MiB",
            least >> 20
        );
        Ok(())
    }
}

/// The stage.
#[derive(Debug)]
pub(crate) struct Counting {
    config: Config,
    from: Counted,
}

/// What is counted.
#[derive(Debug)]
pub(crate) enum Counted {
    /// A corpus.
    Texts(Corpus),
    /// The counts of its shards.
    Shards(Vec<Place>),
}

impl Counted {
    /// The folders with the counts of all shards.
    ///
    /// # Errors
    /// When a place is invalid.
    pub(crate) fn shards(folders: &[Location], places: &Places<'_>) -> anyhow::Result<Self> {
        let folders = folders.iter().enumerate();
        let place = |(i, folder): (usize, &Location)| folder.place(&format!("counts.merge.{i}"), places);
        Ok(Self::Shards(folders.map(place).collect::<anyhow::Result<_>>()?))
    }
}

impl Counting {
    /// The stage for `config`.
    ///
    /// # Errors
    /// When a setting is invalid.
    pub(crate) fn new(config: &Config, from: Counted) -> anyhow::Result<Self> {
        anyhow::ensure!(
            config.merge.is_none() || config.shard.is_none(),
            "counts.merge puts shards together and counts.shard counts one: leave one of them out"
        );
        Ok(Self { config: config.clone(), from })
    }

    fn counts(&self, context: &Context, room: &Room) -> anyhow::Result<Counts> {
        match &self.from {
            Counted::Texts(corpus) => self.count(corpus, context, room),
            Counted::Shards(places) => {
                let folders: Vec<PathBuf> =
                    places.iter().map(|place| place.path(context)).collect::<anyhow::Result<_>>()?;
                let what = &self.config.what;
                let merged =
                    count::merge(&folders, what.min_count, what.max_words, room).context("counts.merge")?;
                anyhow::ensure!(
                    merged.config() == what,
                    "the shards of counts.merge were counted with other settings than counts.what says: {:?}",
                    merged.config()
                );
                Ok(merged)
            }
        }
    }

    fn count(&self, corpus: &Corpus, context: &Context, room: &Room) -> anyhow::Result<Counts> {
        count::count(&self.config.what, self.config.shard, room, |feed| {
            corpus.each(context, |_, document| Ok(feed.document(document)?))?;
            Ok(())
        })
    }
}

impl Stage for Counting {
    fn name(&self) -> &'static str {
        "counts"
    }

    fn version(&self) -> u32 {
        3
    }

    fn describe(&self, to: &mut dyn Describe) {
        describe::config(to, "counts", &self.config);
        match &self.from {
            Counted::Texts(corpus) => corpus.describe(to),
            Counted::Shards(places) => places.iter().for_each(|place| place.describe(to)),
        }
    }

    fn inputs(&self) -> Vec<Input> {
        match &self.from {
            Counted::Texts(corpus) => corpus.inputs(),
            Counted::Shards(places) => location::inputs(places),
        }
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let room = Room {
            memory: self.config.memory.0,
            threads: context.jobs(),
            folder: context.out().to_owned(),
            cancel: context.progress().cancel_token(),
        };
        let counts = self.counts(context, &room).and_then(|counts| Ok(counts.write(context.out())?));
        // Whoever was interrupted says that and nothing else.
        context.check()?;
        let index = counts?;
        anyhow::ensure!(
            index.units > 0 || index.skipped == 0 || index.shard.is_some(),
            "all {} of the corpus have more different words than counts.what.max_distinct lets pass, so that no pair would be left: raise it, or count with {{ window = N }}",
            match self.config.what.within {
                count::Within::Sentence => "sentences",
                count::Within::Document => "documents",
            }
        );
        context.record(
            "counts",
            json!({"documents": index.documents, "shard": index.shard, "corpus": index.corpus,
                   "segments": index.segments, "units": index.units, "units_skipped": index.skipped,
                   "occurrences": index.occurrences, "different_words": index.distinct, "words": index.words,
                   "pairs": index.pairs.rows, "neighbours": index.adjacent.map(|total| total.rows)}),
        );
        Ok(())
    }

    fn inspect(&self, file: &Path) -> anyhow::Result<Vec<String>> {
        super::triples::inspect_parquet(file)
    }
}
