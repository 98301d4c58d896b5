//! Stage `counts`: how often the words of the corpus occur, alone and together.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use downstream::example::schema::Licence as Terms;
use serde::{Deserialize, Serialize};
use serde_json::json;
use text::count::{self, Counts, Extent, Limits, Room, Shard, Share};

use super::corpus::{Corpus, Told, part_name};
use super::location::{self, Location, Place, Places};
use super::memory::Memory;
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::licence::Licence;
use crate::engine::stage::{Input, Stage};

/// The counts' part of a config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// What is counted.
    pub what: count::Config,
    /// Memory limit for counting, such as `"2GiB"` (`B`, `KiB`, `MiB`, `GiB`, `kB`, `MB`, `GB`; at least `"32MiB"`). The distinct words must fit in
    /// a quarter of it; everything else can spill to temporary files. Parts of a corpus that are counted side by side share it. Not part of any
    /// fingerprint: it does not affect the output.
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
    /// Terms of use of the texts whose shards are merged, as `corpus.texts.licence`. Shards do not say it: without it `restricted`.
    ///
    /// Not part of any fingerprint: it does not affect the output.
    #[serde(skip_serializing)]
    pub licence: Option<Terms>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            what: count::Config::default(),
            memory: Memory(2 << 30),
            shard: None,
            merge: None,
            licence: None,
        }
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
        anyhow::ensure!(
            self.licence.is_none() || self.merge.is_some(),
            "counts.licence is of merged shards: without counts.merge say it of the texts (corpus.texts.licence)"
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
    name: String,
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
    /// A part of a corpus.
    Part(Corpus),
    /// The counts of the parts of a corpus, made by these stages.
    Parts(Corpus, Vec<String>),
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

/// The stage's name, and what those of its parts begin with.
pub(crate) const NAME: &str = "counts";

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
        Ok(Self { name: NAME.to_owned(), config: config.clone(), from })
    }

    /// The stages that count a corpus: one, or one for each part and one that joins them.
    ///
    /// # Errors
    /// When a setting is invalid.
    pub(crate) fn of_corpus(
        config: &Config,
        corpus: &Corpus,
        parts: Option<&[Corpus]>,
    ) -> anyhow::Result<Vec<Self>> {
        let Some(parts) = parts else {
            return Ok(vec![Self::new(config, Counted::Texts(corpus.clone()))?]);
        };
        anyhow::ensure!(
            config.shard.is_none(),
            "counts.shard counts some of the documents and [corpus.parts] cuts all of them into parts: leave one of them out"
        );
        // What is rare in a part may not be so in the whole.
        let mut of_part = config.clone();
        (of_part.what.min_count, of_part.what.max_words) = (1, None);
        let mut stages: Vec<Self> = (1..)
            .zip(parts)
            .map(|(number, part)| Self {
                name: part_name(NAME, number),
                config: of_part.clone(),
                from: Counted::Part(part.clone()),
            })
            .collect();
        let names = stages.iter().map(|stage| stage.name.clone()).collect();
        stages.push(Self::new(config, Counted::Parts(corpus.clone(), names))?);
        Ok(stages)
    }

    fn counts(&self, context: &Context, room: &Room) -> anyhow::Result<Counts> {
        let what = &self.config.what;
        let limits = Limits { min_count: what.min_count, max_words: what.max_words };
        match &self.from {
            Counted::Texts(corpus) => {
                self.count(corpus, self.config.shard.map_or(Share::Whole, Share::Shard), context, room)
            }
            Counted::Part(corpus) => {
                self.count(corpus, Share::Part, context, room).map_err(|error| {
                    let shared = "parts that are counted side by side share counts.memory: allow more of it, or run fewer with --jobs";
                    let words = matches!(error.downcast_ref(), Some(count::Error::Words { .. }));
                    if words { error.context(shared) } else { error }
                })
            }
            Counted::Parts(corpus, names) => {
                let (folders, told) = Told::of_parts(context, names)?;
                let told = Told::joined(told);
                told.check(corpus)?;
                told.record(context);
                Ok(count::join(&folders, Share::Whole, limits, room)?)
            }
            Counted::Shards(places) => {
                let folders: Vec<PathBuf> =
                    places.iter().map(|place| place.path(context)).collect::<anyhow::Result<_>>()?;
                let merged = count::merge(&folders, limits, room).context("counts.merge")?;
                anyhow::ensure!(
                    merged.config() == what,
                    "the shards of counts.merge were counted with other settings than counts.what says: {:?}",
                    merged.config()
                );
                Ok(merged)
            }
        }
    }

    fn count(&self, corpus: &Corpus, share: Share, context: &Context, room: &Room) -> anyhow::Result<Counts> {
        count::count(&self.config.what, share, room, |feed| {
            corpus.each(context, |_, document| Ok(feed.document(document)?))?;
            Ok(())
        })
    }

    /// What the stage may take: parts that run side by side share it.
    fn room(&self, context: &Context) -> Room {
        let beside = match &self.from {
            Counted::Part(_) => context.beside(),
            Counted::Texts(_) | Counted::Shards(_) | Counted::Parts(..) => 1,
        };
        Room {
            memory: (self.config.memory.0 / beside).max(count::LEAST_MEMORY),
            threads: (context.jobs() / beside).max(1),
            folder: context.out().to_owned(),
            cancel: context.progress().cancel_token(),
        }
    }
}

impl Stage for Counting {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        4
    }

    fn describe(&self, to: &mut dyn Describe) {
        describe::config(to, "counts", &self.config);
        match &self.from {
            Counted::Texts(corpus) | Counted::Part(corpus) => corpus.describe(to),
            Counted::Shards(places) => places.iter().for_each(|place| place.describe(to)),
            // What matters of them is described by them.
            Counted::Parts(..) => {}
        }
    }

    fn licence(&self, _: &Path) -> anyhow::Result<Licence> {
        Ok(match &self.from {
            Counted::Texts(corpus) | Counted::Part(corpus) => corpus.licence(),
            Counted::Shards(_) => Some(self.config.licence.unwrap_or_default()).into(),
            // Parts say it themselves.
            Counted::Parts(..) => Licence::None,
        })
    }

    fn inputs(&self) -> Vec<Input> {
        match &self.from {
            Counted::Texts(corpus) | Counted::Part(corpus) => corpus.inputs(),
            Counted::Shards(places) => location::inputs(places),
            Counted::Parts(_, names) => names.iter().map(Input::artifact).collect(),
        }
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let room = self.room(context);
        let counts = self.counts(context, &room).and_then(|counts| Ok(counts.write(context.out())?));
        // Whoever was interrupted says that and nothing else.
        context.check()?;
        let index = counts?;
        anyhow::ensure!(
            index.units > 0 || index.skipped == 0 || index.shard.is_some() || index.extent == Extent::Part,
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
