//! Stage `split`: which triples are learnt from and which are held out, with the proof that no held-out one can be read off a shown one.

mod told;

use std::path::Path;

use anyhow::Context as _;
use base::whole::write_whole;
use kg::audit;
use kg::split::{self, ByRatio, Cover, Leaky, Mode, Official, Ratios, Suspicion, Together, View};
use kg::table::{self, Graph};
use serde::{Deserialize, Serialize};

use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::stage::{Input, Stage};
use base::setting::shown;

/// The split's part of a config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
pub(crate) struct Config {
    /// How triples are divided into parts.
    ///
    /// Source: KIMERA, section 4: all triples are trained on.
    pub parts: Parts,
    /// What is kept in one part.
    ///
    /// Source: ours: the least that keeps restatements of a held-out triple out of training.
    pub together: Keep,
    /// Two relations are treated as declared inverses when this share of each one's triples, above 0 and at most 1, occurs inverted under the
    /// other; a single such leak then fails the run. Left out, they are only suspected (`split.suspect`).
    pub detect_inverses: Option<f64>,
    /// What to do when the audit finds a leak, or more suspected ones than are accepted.
    ///
    /// Source: ours: scores on leaked triples measure memory.
    pub on_leak: OnLeak,
    /// Relations that look inverse or symmetric but are not declared so. Splits by ratio and `leaky = "aside"` keep such triples together. The
    /// audit detects them independently, reports per pair of relations how many held-out triples would leak (`suspected`, `would_leak`; `inverted`:
    /// all whose two texts are shown inverted, under any relation), and fails when that exceeds `accept`. With `parts = "all"` nothing is held out,
    /// so nothing is checked.
    #[serde(default)]
    pub suspect: Suspect,
}

/// When relations look inverse or symmetric, and how much of a held-out part such may give away.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Suspect {
    /// A relation is suspected of being the inverse of another (or of itself) when at least this share of its triples, above 0 and at most 1, and
    /// at least `support` of them, occur inverted under it. It is also suspected when at least this share of the other relation's triples held out
    /// in a part are shown inverted under it, however many other triples it has.
    ///
    /// Source: ours: more often inverted than not.
    pub share: f64,
    /// How many triples must occur inverted, at least 1. For the triples held out in a small part, fewer suffice: a hundredth of the part, at least
    /// 2.
    ///
    /// Source: ours: with fewer, coincidence looks like a rule.
    pub support: u64,
    /// The share of a held-out part that may leak by suspected relations, from 0 to 1. 1 accepts any split; what was accepted is reported at the
    /// end of every run.
    ///
    /// Source: ours: coincidences pass, a relation that is an inverse does not.
    pub accept: f64,
}

impl Default for Suspect {
    fn default() -> Self {
        Self { share: 0.5, support: 5, accept: 0.01 }
    }
}

impl Suspect {
    fn check(self) -> anyhow::Result<()> {
        let Self { share, support, accept } = self;
        anyhow::ensure!(
            share > 0.0 && share <= 1.0,
            "split.suspect.share = {share}: expected above 0, at most 1"
        );
        anyhow::ensure!(support > 0, "split.suspect.support = 0: expected at least 1");
        anyhow::ensure!(
            (0.0..=1.0).contains(&accept),
            "split.suspect.accept = {accept}: expected a share from 0 to 1"
        );
        Ok(())
    }
}

/// How parts are given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Parts {
    /// Everything is for training.
    #[default]
    All,
    /// Split by a hash of each group of triples.
    Ratio {
        /// Share of the groups for training; the three shares sum to 1.
        ///
        /// Source: ours: the usual 80, 10 and 10 percent.
        #[serde(default = "most")]
        train: f64,
        /// Share for early stopping and choosing settings.
        ///
        /// Source: ours: as for `train`.
        #[serde(default = "some")]
        valid: f64,
        /// Share for reporting.
        ///
        /// Source: ours: as for `train`.
        #[serde(default = "some")]
        test: f64,
        /// Seed of the hash.
        ///
        /// Source: ours: any number would do.
        #[serde(default = "first")]
        seed: u64,
        /// Whether training must cover every held-out entity and relation.
        ///
        /// Source: ours: the shares are then as given.
        #[serde(default)]
        cover: Covering,
    },
    /// Split as published by a source.
    Official {
        /// The source whose split is used; triples from all others are for training. A triple published in two parts goes to the more held-out one
        /// and is counted as `stated_twice`.
        source: String,
        /// What to do with its triples for training that leak held-out ones.
        ///
        /// Source: ours: trained on, they make held-out scores too high.
        #[serde(default)]
        leaky: Leaking,
    },
}

fn most() -> f64 {
    0.8
}

fn some() -> f64 {
    0.1
}

fn first() -> u64 {
    1
}

/// Which triples stay together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Keep {
    /// Triples that say the same.
    #[default]
    Inverse,
    /// All triples between two entities.
    Pair,
}

/// Whether held-out triples may name what training never shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Covering {
    /// It need not.
    #[default]
    Leave,
    /// Groups move to training until it does.
    Train,
}

/// What happens to official triples that give others away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Leaking {
    /// They are kept.
    Keep,
    /// They are put in no part.
    #[default]
    Aside,
}

/// What to do with leaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnLeak {
    /// The run fails, so that nothing is built on them.
    #[default]
    Fail,
    /// They are listed, and the run goes on.
    Report,
}

/// The file with the audit in numbers.
pub(crate) const AUDIT: &str = "audit.json";

/// The file with the split in numbers.
pub(crate) const REPORT: &str = "split.json";

#[derive(Debug)]
pub(crate) struct Splitting {
    /// How to split.
    pub config: Config,
    /// Why no official split can be taken, if that is so.
    pub problem: Option<String>,
    /// The sources that have published splits.
    pub published: Vec<String>,
}

impl Config {
    /// What counts as a leak, for audits after this stage.
    #[must_use]
    pub(crate) fn together(&self) -> Together {
        match self.together {
            Keep::Inverse => Together::Inverse,
            Keep::Pair => Together::Pair,
        }
    }

    /// When relations look inverse, for audits after this stage.
    #[must_use]
    pub(crate) fn suspicion(&self) -> Suspicion {
        let Suspect { share, support, .. } = self.suspect;
        Suspicion { share, support }
    }

    /// Whether every setting makes sense.
    ///
    /// # Errors
    /// Names the first that does not.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if let Parts::Ratio { train, valid, test, .. } = self.parts {
            Ratios::new(train, valid, test).context("split.parts.ratio")?;
            anyhow::ensure!(
                train > 0.0,
                "split.parts.ratio.train is 0, which leaves nothing to learn from; expected above 0"
            );
        }
        if let Some(share) = self.detect_inverses {
            anyhow::ensure!(
                share > 0.0 && share <= 1.0,
                "split.detect_inverses is {}, expected above 0, at most 1",
                shown(share)
            );
        }
        self.suspect.check()
    }

    fn options(&self, graph: &Graph) -> anyhow::Result<split::Options> {
        let mode = match &self.parts {
            Parts::All => Mode::All,
            Parts::Ratio { train, valid, test, seed, cover } => Mode::Ratio(ByRatio {
                ratios: Ratios::new(*train, *valid, *test)?,
                seed: *seed,
                cover: match cover {
                    Covering::Leave => Cover::Leave,
                    Covering::Train => Cover::Train,
                },
            }),
            Parts::Official { source, leaky } => {
                let leaky = match leaky {
                    Leaking::Keep => Leaky::Keep,
                    Leaking::Aside => Leaky::Aside,
                };
                Mode::Official(Official::read(graph, source, leaky)?)
            }
        };
        let suspicion = Some(self.suspicion());
        Ok(split::Options {
            together: self.together(),
            detect_inverses: self.detect_inverses,
            suspicion,
            mode,
        })
    }
}

impl Splitting {
    /// That nothing leaks, and no more than is accepted would.
    fn prove(&self, audit: &audit::Audit, view: &View) -> anyhow::Result<()> {
        audit.prove(view).context(
            "the split leaks, and split.on_leak is \"fail\": with \"report\" the run goes on and split/leaks.parquet lists them all",
        )?;
        audit.suspect(self.config.suspect.accept).map_err(|found| {
            let remedy = format!(
                "split by ratio, put what leaks of an official split aside (split.parts.official.leaky = \"aside\"), or accept the split as it is \
                 with split.suspect.accept = {}",
                found.least()
            );
            anyhow::anyhow!("{found}\n{remedy}")
        })
    }
}

impl Stage for Splitting {
    fn name(&self) -> &'static str {
        "split"
    }

    fn version(&self) -> u32 {
        4
    }

    fn describe(&self, to: &mut dyn Describe) {
        describe::config(to, "split", &self.config);
        if let Some(problem) = &self.problem {
            to.unfit("split.parts.official.source", problem.clone());
        }
    }

    fn inputs(&self) -> Vec<Input> {
        vec![Input::artifact("triples")]
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let triples = context.artifact("triples")?;
        let graph = Graph::read(triples)?;
        let negatives = table::read::negatives(triples)?;
        let view = View::of(&graph);
        context.check()?;
        let split = split::split(&view, &self.config.options(&graph)?)?;
        context.check()?;
        let suspicion = Some(self.config.suspicion());
        let options =
            audit::Options { together: self.config.together(), inverses: &split.detected, suspicion };
        let mut audit = audit::audit(&view, &split.part, &options)?;
        if !negatives.is_empty() {
            audit.report.published = Some(audit::published(&view, &split.part, &negatives)?);
        }
        split.write(context.out(), &view)?;
        audit.write(context.out())?;
        write_whole(&context.out().join(REPORT), &serde_json::to_vec_pretty(&split.report)?)?;
        write_whole(&context.out().join(AUDIT), &serde_json::to_vec_pretty(&audit.report)?)?;
        told::record(context, &split, &audit);
        told::warn(context, &audit.report);
        self.doubt(context, split.report.triples);
        match self.config.on_leak {
            OnLeak::Report => Ok(()),
            OnLeak::Fail => self.prove(&audit, &view),
        }
    }

    fn inspect(&self, file: &Path) -> anyhow::Result<Vec<String>> {
        super::triples::inspect_parquet(file)
    }
}
