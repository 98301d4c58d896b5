//! Retrieval of answer passages: what is trained on and what is tested on, and that they are kept apart.

use std::path::PathBuf;

use anyhow::Context as _;
use base::rng::RngKey;
use downstream::capr::candidates::{self, candidates_until};
use downstream::capr::part::{Part, Parts, Shares};
use downstream::capr::schema::Index;
use downstream::capr::{Collection, apart, cdv, medquad, wikisection, write};
use downstream::funnel::Step;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::folder;
use super::super::location::{Location, Place, Places};
use super::{TEST, TRAIN};
use crate::engine::context::Context;

fn first() -> u64 {
    1
}

/// The table `[benchmarks.capr]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// The training data; may be left out with `trained_on` and `test.cdv`, since nothing is trained on them.
    ///
    /// Source: none: it takes some to train on.
    #[serde(default)]
    pub train: Option<Train>,
    /// The test data.
    pub test: Test,
    /// Which passages are ranked for a query.
    #[serde(default)]
    pub candidates: candidates::Config,
    /// What is held out of both, by groups of documents.
    #[serde(default)]
    pub held_out: HeldOut,
    /// Seed for all sampling.
    ///
    /// Source: ours: any number would do.
    #[serde(default = "first")]
    pub seed: u64,
}

impl Config {
    /// Whether every number is in its range; `key` is where they stand.
    pub(super) fn ranges(&self, key: &str) -> anyhow::Result<()> {
        self.candidates.check().map_err(|error| anyhow::anyhow!("{key}.candidates.{error}"))?;
        if let Test::Share(share) = self.test {
            apart::check(share).map_err(|error| anyhow::anyhow!("{key}.test.{error}"))?;
        }
        let HeldOut { dev, mask_search } = self.held_out;
        for shares in [Shares { dev, mask_search: 0.0 }, Shares { dev: 0.0, mask_search }] {
            shares.check().with_context(|| format!("{key}.held_out"))?;
        }
        anyhow::ensure!(
            dev > 0.0 || self.train.is_none(),
            "{key}.held_out.dev is 0, but settings are chosen by what is held out; expected above 0"
        );
        Ok(())
    }
}

/// What is trained on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Train {
    /// MedQuAD's folder.
    Medquad(#[serde(skip_serializing)] Location),
    /// WikiSection: a list of files and folders.
    Wikisection(#[serde(skip_serializing)] Vec<Location>),
}

/// What is tested on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Test {
    /// A share of the training data, by groups of documents.
    Share(f64),
    /// CDV's annotations of MedQuAD.
    Cdv(Cdv),
}

/// Annotations of CDV.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cdv {
    /// The file of annotations.
    #[serde(skip_serializing)]
    pub annotations: Location,
    /// MedQuAD's folder, whose texts are annotated.
    ///
    /// Source: none: `medquad` or `healthqa`, as the annotations are; neither where they have texts of their own.
    #[serde(default, skip_serializing)]
    pub medquad: Option<Location>,
    /// HealthQA's test file, `pinfo-mz-test.txt`, which its authors send on request, for its annotations.
    ///
    /// Source: none: `medquad` or `healthqa`, as the annotations are; neither where they have texts of their own.
    #[serde(default, skip_serializing)]
    pub healthqa: Option<Location>,
    /// The list of MedQuAD's test files, where the training data are MedQuAD too.
    #[serde(skip_serializing)]
    pub sources: Option<Location>,
    /// What to do with training documents about a test entity.
    ///
    /// Source: ours: what is tested was not trained on.
    #[serde(default)]
    pub entities: Entities,
}

/// What becomes of documents to train on that are about an entity that is tested.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Entities {
    /// They are left out and counted.
    #[default]
    LeaveOut,
    /// They are trained on.
    Keep,
}

/// What is held out, as shares of groups of documents.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct HeldOut {
    /// Share of the training data for `dev`, above 0 and below 1.
    ///
    /// Source: ours: small, so that nearly all is trained on.
    pub dev: f64,
    /// Share of the test data for `mask_search`, from 0 to below 1, which no score is reported of.
    ///
    /// Source: ours: KIMERA holds out parts of the test sets and does not say how much.
    pub mask_search: f64,
}

impl Default for HeldOut {
    fn default() -> Self {
        Self { dev: 0.05, mask_search: 0.1 }
    }
}

/// A config whose places are known.
#[derive(Debug)]
pub(super) struct Source {
    key: String,
    config: Config,
    train: Option<From>,
    test: Against,
}

#[derive(Debug)]
enum From {
    Medquad(Place),
    Wikisection(Vec<Place>),
}

#[derive(Debug)]
enum Against {
    Share(f64),
    Cdv { annotations: Place, texts: Annotated, sources: Option<Place>, entities: Entities },
}

/// The texts of annotations.
#[derive(Debug)]
enum Annotated {
    Medquad(Place),
    Healthqa(Place),
    /// In the same file.
    Own,
}

impl Source {
    /// `key` is the config's, for messages.
    pub(super) fn new(
        config: &Config,
        trained_on: Option<&str>,
        key: &str,
        places: &Places<'_>,
    ) -> anyhow::Result<Self> {
        let key = format!("{key}.capr");
        let needs = match (trained_on, &config.test) {
            (None, _) => Some("add what is trained on (medquad or wikisection)"),
            (Some(_), Test::Share(_)) => Some("test.share is a share of the training data: name them"),
            (Some(_), Test::Cdv(_)) => None,
        };
        if let (None, Some(remedy)) = (&config.train, needs) {
            anyhow::bail!("{key}.train is left out: {remedy}");
        }
        let place = |location: &Location, below: &str| location.place(&format!("{key}.{below}"), places);
        let train = match &config.train {
            None => None,
            Some(Train::Medquad(folder)) => Some(From::Medquad(place(folder, "train.medquad")?)),
            Some(Train::Wikisection(files)) => {
                anyhow::ensure!(!files.is_empty(), "{key}.train.wikisection is []: name a file or folder");
                let files = files.iter().enumerate();
                let files = files.map(|(i, file)| place(file, &format!("train.wikisection.{i}")));
                Some(From::Wikisection(files.collect::<anyhow::Result<_>>()?))
            }
        };
        let against = match &config.test {
            Test::Share(share) => Against::Share(*share),
            Test::Cdv(Cdv { annotations, medquad, healthqa, sources, entities }) => {
                anyhow::ensure!(
                    (matches!(train, Some(From::Medquad(_))) && medquad.is_some()) == sources.is_some(),
                    "{key}.test.cdv.sources: expected the list of files that are tested on where MedQuAD is trained and tested on, and nothing elsewhere"
                );
                let list = |list| place(list, "test.cdv.sources");
                Against::Cdv {
                    annotations: place(annotations, "test.cdv.annotations")?,
                    texts: match (medquad, healthqa) {
                        (Some(folder), None) => Annotated::Medquad(place(folder, "test.cdv.medquad")?),
                        (None, Some(file)) => Annotated::Healthqa(place(file, "test.cdv.healthqa")?),
                        (None, None) => Annotated::Own,
                        _ => anyhow::bail!(
                            "{key}.test.cdv: expected one of `medquad` and `healthqa`, the texts that are annotated, or neither where the annotations have them"
                        ),
                    },
                    sources: sources.as_ref().map(list).transpose()?,
                    entities: *entities,
                }
            }
        };
        Ok(Self { key, config: config.clone(), train, test: against })
    }

    pub(super) fn places(&self) -> Vec<&Place> {
        let mut places: Vec<&Place> = match &self.train {
            None => vec![],
            Some(From::Medquad(folder)) => vec![folder],
            Some(From::Wikisection(files)) => files.iter().collect(),
        };
        if let Against::Cdv { annotations, texts, sources, .. } = &self.test {
            let texts = match texts {
                Annotated::Medquad(texts) | Annotated::Healthqa(texts) => Some(texts),
                Annotated::Own => None,
            };
            places.extend(std::iter::once(annotations).chain(texts).chain(sources));
        }
        places
    }

    /// Writes both folders and leaves facts.
    pub(super) fn write(&self, name: &str, context: &Context) -> anyhow::Result<()> {
        let (train, test, steps) = self.collections(name, context)?;
        let HeldOut { dev, mask_search } = self.config.held_out;
        let held = [Shares { dev, mask_search: 0.0 }, Shares { dev: 0.0, mask_search }];
        let mut rows = Vec::new();
        for ((folder, collection), shares) in [(TRAIN, train), (TEST, Some(test))].into_iter().zip(held) {
            context.check()?;
            let Some(collection) = &collection else { continue };
            let parts = Parts::draw(collection, shares, RngKey::new(self.config.seed))
                .with_context(|| format!("{}.held_out", self.key))?;
            self.not_empty(folder, collection, &parts)?;
            let config = &self.config.candidates;
            let listed = candidates_until(collection, config, &context.progress().cancel_token());
            let lists = listed.map_err(|error| match context.check() {
                Err(cancelled) => anyhow::Error::from(cancelled),
                Ok(()) => error.into(),
            })?;
            let out = context.out().join(folder);
            std::fs::create_dir_all(&out).with_context(|| format!("{}", out.display()))?;
            let index = write::write(&out, collection, &parts, config, &lists)?;
            context.progress().add_rows(index.queries);
            rows.extend(counted(folder, &index, collection, &parts));
        }
        context.record("parts", rows);
        super::record(context, &[(TRAIN, &steps)]);
        Ok(())
    }

    /// What is trained on and what is tested on, and what became of the rest of the former.
    fn collections(
        &self,
        name: &str,
        context: &Context,
    ) -> anyhow::Result<(Option<Collection>, Collection, Vec<Step>)> {
        let sources = match &self.test {
            Against::Cdv { sources: Some(sources), .. } => Some(sources.path(context)?),
            _ => None,
        };
        let (all, mut steps) = match &self.train {
            None => (None, vec![]),
            Some(From::Medquad(folder)) => {
                let (read, steps) = medquad::read(name, &folder.path(context)?, sources.as_deref())?;
                (Some(read), steps)
            }
            Some(From::Wikisection(places)) => {
                let mut files: Vec<PathBuf> = Vec::new();
                for place in places {
                    files.extend(folder::ending(&place.path(context)?, &[".json"])?);
                }
                let read = wikisection::read(name, &files)?;
                let step = |of, kept: usize| Step::counted(of, &[], kept as u64);
                let steps =
                    vec![step("documents", read.documents.len()), step("passages", read.passages.len())];
                (Some(read), steps)
            }
        };
        context.check()?;
        match &self.test {
            Against::Share(share) => {
                let all = all.as_ref().context("a share of what is not there")?;
                let split = apart::split_off(all, *share, RngKey::new(self.config.seed));
                let (train, test) = split.with_context(|| format!("{}.test", self.key))?;
                Ok((Some(train), test, steps))
            }
            Against::Cdv { annotations, texts, entities, .. } => {
                let annotations = annotations.path(context)?;
                let (test, _) = match texts {
                    Annotated::Own => cdv::read(&annotations, cdv::Texts::Own)?,
                    Annotated::Medquad(folder) => {
                        cdv::read(&annotations, cdv::Texts::Medquad(&folder.path(context)?))?
                    }
                    Annotated::Healthqa(file) => {
                        cdv::read(&annotations, cdv::Texts::Healthqa(&file.path(context)?))?
                    }
                };
                if *entities == Entities::Keep {
                    return Ok((all, test, steps));
                }
                let Some(all) = all else { return Ok((None, test, steps)) };
                let (train, left) = apart::without(&all, &test);
                steps.extend(left);
                Ok((Some(train), test, steps))
            }
        }
    }

    /// Refuses parts without a query that should have one.
    fn not_empty(&self, folder: &str, collection: &Collection, parts: &Parts) -> anyhow::Result<()> {
        let HeldOut { dev, mask_search } = self.config.held_out;
        let wanted = match folder {
            TRAIN => [
                (
                    Part::Main,
                    "train",
                    "take more documents, or a smaller test.share or held_out.dev".to_owned(),
                ),
                (Part::Dev, "dev", format!("raise held_out.dev (it is {dev}), or take more documents")),
            ],
            _ => [
                (
                    Part::Main,
                    "test",
                    "take more documents, a larger test.share or a smaller held_out.mask_search".to_owned(),
                ),
                (
                    Part::MaskSearch,
                    "mask_search",
                    format!(
                        "raise held_out.mask_search (it is {mask_search}), or set it to 0 to search no mask here"
                    ),
                ),
            ],
        };
        for (part, name, remedy) in wanted {
            if part == Part::MaskSearch && mask_search == 0.0 {
                continue;
            }
            anyhow::ensure!(
                !parts.queries(collection, part).is_empty(),
                "{}: no query is for {name}, of {} queries in {} documents: {remedy}",
                self.key,
                collection.queries.len(),
                collection.documents.len()
            );
        }
        Ok(())
    }
}

/// Rows about the parts of a folder.
fn counted(folder: &str, index: &Index, collection: &Collection, parts: &Parts) -> Vec<Value> {
    let row = |part: Part| {
        let (queries, passages) =
            (parts.queries(collection, part).len(), parts.passages(collection, part).len());
        json!({"folder": folder, "part": part, "queries": queries, "passages": passages})
    };
    let rows = [Part::Main, Part::Dev, Part::MaskSearch].map(row);
    let whole =
        json!({"folder": folder, "part": "all", "queries": index.queries, "passages": index.passages});
    rows.into_iter().filter(|row| row["passages"] != 0).chain([whole]).collect()
}
