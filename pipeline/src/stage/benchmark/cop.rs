//! Outcomes predicted from admission notes of MIMIC-III: where its tables lie and who is for what.

use base::rng::RngKey;
use downstream::cop::benchmark::{Held, examples};
use downstream::cop::sample::Outcome;
use downstream::cop::split::{self, Split};
use downstream::cop::{Files, Variant, read_until};
use downstream::example::schema::Licence;
use downstream::example::{Examples, Part, write};
use serde::{Deserialize, Serialize};

use super::super::location::{Location, Place, Places};
use super::classes;
use crate::engine::context::Context;

fn first() -> u64 {
    1
}

/// The table `[benchmarks.cop]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// MIMIC-III's `NOTEEVENTS`; this and the following tables plain or `.gz`.
    #[serde(skip_serializing)]
    pub notes: Location,
    /// MIMIC-III's `ADMISSIONS`.
    #[serde(skip_serializing)]
    pub admissions: Location,
    /// MIMIC-III's `DIAGNOSES_ICD`.
    #[serde(skip_serializing)]
    pub diagnoses: Location,
    /// MIMIC-III's `PROCEDURES_ICD`.
    #[serde(skip_serializing)]
    pub procedures: Location,
    /// What is predicted.
    pub outcome: Outcome,
    /// Whether to follow the reference code's behaviour or its stated intent where they differ.
    ///
    /// Source: ours: `reference` is for comparison with published numbers.
    #[serde(default)]
    pub variant: Variant,
    /// Which patients are for what: shares, or the published lists.
    #[serde(default)]
    pub split: Patients,
    /// Share of the test patients for `mask_search`, from 0 to below 1, which no score is reported of.
    ///
    /// Source: ours: masks can be searched on another benchmark.
    #[serde(default)]
    pub mask_search: f64,
    /// Seed for all sampling.
    ///
    /// Source: ours: any number would do.
    #[serde(default = "first")]
    pub seed: u64,
}

impl Config {
    /// Whether every number is in its range; `key` is where they stand.
    pub(super) fn ranges(&self, key: &str) -> anyhow::Result<()> {
        if let Patients::Drawn(shares) = self.split {
            Split::drawn(drawn(shares, self.seed))
                .map_err(|error| anyhow::anyhow!("{key}.split.drawn: {error}"))?;
            for (part, share) in [("valid", shares.valid), ("test", shares.test)] {
                anyhow::ensure!(
                    share > 0.0,
                    "{key}.split.drawn.{part} is 0, but every part is needed; expected above 0"
                );
            }
        }
        Held::new(self.mask_search, RngKey::new(self.seed))
            .map_err(|error| anyhow::anyhow!("{key}.{error}"))?;
        Ok(())
    }
}

/// Which patients are for what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Patients {
    /// Shares of patients, drawn by `seed`; the rest is for training.
    Drawn(Shares),
    /// The published lists, CSV with a column `SUBJECT_ID`.
    Lists(Lists),
}

impl Default for Patients {
    fn default() -> Self {
        Self::Drawn(Shares::default())
    }
}

/// Shares of patients.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Shares {
    /// Share of patients for `dev`.
    ///
    /// Source: the share in the published lists of clinical outcome prediction.
    pub valid: f64,
    /// Share of patients for `test`.
    ///
    /// Source: the share in the published lists of clinical outcome prediction.
    pub test: f64,
}

impl Default for Shares {
    fn default() -> Self {
        Self { valid: 0.1, test: 0.2 }
    }
}

/// Lists of patients, CSV with a column `SUBJECT_ID`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lists {
    /// The patients for training.
    #[serde(skip_serializing)]
    pub train: Location,
    /// The patients for `dev`.
    #[serde(skip_serializing)]
    pub valid: Location,
    /// The patients for `test`.
    #[serde(skip_serializing)]
    pub test: Location,
}

/// A config whose places are known.
#[derive(Debug)]
pub(super) struct Source {
    key: String,
    config: Config,
    /// Notes, admissions, diagnoses, procedures.
    tables: [Place; 4],
    patients: Who,
}

/// Which patients are for what, once places are known.
#[derive(Debug)]
enum Who {
    Drawn(Shares),
    /// For training, development, test.
    Lists([Place; 3]),
}

impl Source {
    /// `key` is the config's, for messages.
    pub(super) fn new(config: &Config, key: &str, places: &Places<'_>) -> anyhow::Result<Self> {
        let key = format!("{key}.cop");
        let place = |location: &Location, below: &str| location.place(&format!("{key}.{below}"), places);
        let tables = [
            place(&config.notes, "notes")?,
            place(&config.admissions, "admissions")?,
            place(&config.diagnoses, "diagnoses")?,
            place(&config.procedures, "procedures")?,
        ];
        let patients = match &config.split {
            Patients::Drawn(shares) => Who::Drawn(*shares),
            Patients::Lists(Lists { train, valid, test }) => Who::Lists([
                place(train, "split.lists.train")?,
                place(valid, "split.lists.valid")?,
                place(test, "split.lists.test")?,
            ]),
        };
        Ok(Self { key, config: config.clone(), tables, patients })
    }

    pub(super) fn places(&self) -> Vec<&Place> {
        let lists = match &self.patients {
            Who::Lists(lists) => lists.as_slice(),
            Who::Drawn(_) => &[],
        };
        self.tables.iter().chain(lists).collect()
    }

    /// Writes the folder of examples and leaves facts.
    pub(super) fn write(&self, name: &str, context: &Context) -> anyhow::Result<()> {
        let [notes, admissions, diagnoses, procedures] =
            self.tables.each_ref().map(|table| table.path(context));
        let files =
            Files { notes: notes?, admissions: admissions?, diagnoses: diagnoses?, procedures: procedures? };
        let read = read_until(&files, self.config.variant, &context.progress().cancel_token());
        let stays = read.map_err(|error| match context.check() {
            Err(cancelled) => anyhow::Error::from(cancelled),
            Ok(()) => error.into(),
        })?;
        context.progress().add_rows(stays.funnel.notes);
        let held = Held::new(self.config.mask_search, RngKey::new(self.config.seed))?;
        let split = self.split(context)?;
        let (examples, funnel) = examples(name, &stays, self.config.outcome, &split, &held);
        self.not_empty(&examples)?;
        context.check()?;
        let index = write::write(context.out(), &examples, self.licence(), &funnel)?;
        classes::record(context, &index);
        super::record(context, &[("notes", &funnel)]);
        Ok(())
    }

    /// The world's notes are invented; MIMIC's are under its data use agreement.
    fn licence(&self) -> Licence {
        let invented = self.tables.iter().all(|table| matches!(table, Place::World { .. }));
        if invented { Licence::Free } else { Licence::Restricted }
    }

    fn split(&self, context: &Context) -> anyhow::Result<Split> {
        Ok(match &self.patients {
            Who::Lists([train, valid, test]) => {
                Split::lists(&train.path(context)?, &valid.path(context)?, &test.path(context)?)?
            }
            Who::Drawn(shares) => Split::drawn(drawn(*shares, self.config.seed))?,
        })
    }

    /// Refuses parts without an example that should have one.
    fn not_empty(&self, examples: &Examples) -> anyhow::Result<()> {
        let all = examples.examples.len();
        for part in Part::ALL {
            if (part == Part::MaskSearch && self.config.mask_search == 0.0) || !examples.of(part).is_empty() {
                continue;
            }
            let remedy = match part {
                Part::MaskSearch => "raise mask_search, or set it to 0 to search no mask here",
                _ if matches!(self.patients, Who::Lists(_)) => {
                    "take the lists of patients of these tables, or draw patients (split.drawn)"
                }
                _ => "take more patients, or other shares in split.drawn",
            };
            anyhow::bail!("{}: no example is for {}, of {all} examples: {remedy}", self.key, part.name());
        }
        Ok(())
    }
}

fn drawn(shares: Shares, seed: u64) -> split::Drawn {
    split::Drawn { seed: RngKey::new(seed), valid: shares.valid, test: shares.test }
}
