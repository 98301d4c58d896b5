//! What is known of a grafting: the contents of `grafting.json`.

use std::collections::{BTreeMap, BTreeSet};

use base::read::ReadError;
use serde::{Deserialize, Serialize};

use super::settings::Settings;

/// The version of the file.
pub const VERSION: u32 = 1;

/// Name of the variant that others are compared with, and whose heads are those before retraining.
pub const BASE: &str = "base";

/// What the file says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Format {
    /// Facts of a grafting.
    #[serde(rename = "engraft-grafting")]
    Grafting,
}

/// All that is known of a grafting. What was not measured is empty.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// What the file is.
    pub format: Format,
    /// [`VERSION`].
    pub version: u32,
    /// The page's title.
    pub title: String,
    /// The variants, in the order of the table. Others that are named below come after them.
    #[serde(default)]
    pub rows: Vec<Row>,
    /// Importances of the heads by variant, measured once it was fine-tuned.
    #[serde(default)]
    pub importance: BTreeMap<String, Heads>,
    /// Head masks by kind: 1 is a kept head, below 1 a vacant one.
    #[serde(default)]
    pub masks: BTreeMap<String, Heads>,
    /// Searches for head masks by kind.
    #[serde(default)]
    pub searches: BTreeMap<String, Search>,
    /// Scores, one for each variant, benchmark and metric.
    #[serde(default)]
    pub cells: Vec<Cell>,
    /// The benchmarks, in the order of the table.
    #[serde(default)]
    pub sizes: Vec<Size>,
    /// What each variant was fine-tuned with on each benchmark.
    #[serde(default)]
    pub settings: Vec<Settings>,
    /// Losses and scores over steps.
    #[serde(default)]
    pub curves: Vec<Curve>,
    /// What else a reader should know, a sentence or a few each.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// A variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// What facts call it.
    pub name: String,
    /// What the page calls it.
    pub title: String,
    /// Kind of the head mask it was retrained under, or that was found on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask: Option<String>,
}

/// A number for every head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RawHeads", into = "RawHeads")]
pub struct Heads {
    layers: usize,
    heads: usize,
    values: Vec<f64>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHeads {
    layers: usize,
    heads: usize,
    values: Vec<f64>,
}

/// A search for a head mask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// The score with all heads on.
    pub original_score: f64,
    /// The score below which it stops.
    pub threshold: f64,
    /// Why it ended, as the search says.
    pub stop: String,
    /// Its steps; the last may be one that went too far.
    pub iterations: Vec<Iteration>,
}

/// A step of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Iteration {
    /// The heads that it took, as `layer * heads + head`.
    pub selected: Vec<usize>,
    /// The score once they were taken.
    pub score: f64,
    /// Heads masked once they were taken.
    pub masked: usize,
}

/// What a variant reached by one metric of one benchmark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Name of the variant.
    pub row: String,
    /// Name of the benchmark.
    pub benchmark: String,
    /// Name of the metric.
    pub metric: String,
    /// Its runs.
    pub seeds: Vec<Seed>,
    /// Mean of the runs on the test part.
    pub mean: f64,
    /// Lower end of the mean's 95 % interval; none of a single run.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// What it is above the base; none of the base itself.
    pub difference_to_base: Option<Difference>,
    /// Whether no variant is better.
    pub best: bool,
}

impl Cell {
    /// The best run's score on the test part: of the largest number, as tables of the best of several seeds have it.
    #[must_use]
    pub fn best_of_seeds(&self) -> Option<f64> {
        self.seeds.iter().map(|seed| seed.test).max_by(f64::total_cmp)
    }
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seed {
    /// Its seed.
    pub seed: u64,
    /// The score on the dev part that its settings were chosen by.
    pub dev: Option<f64>,
    /// The score on the test part.
    pub test: f64,
}

/// A difference of two variants on the same samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// Its mean; above 0 where the variant's number is larger than the base's.
    pub mean: f64,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// How likely a difference of this size is without a cause.
    pub p: Option<f64>,
}

/// Samples of a benchmark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// Name of the benchmark.
    pub benchmark: String,
    /// Training samples.
    pub train: u64,
    /// Samples that settings are chosen by.
    pub dev: u64,
    /// Samples that are reported on.
    pub test: u64,
}

/// Numbers over steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// Name of the variant; curves of one name in one plot are its runs.
    pub name: String,
    /// What it was measured on: curves with the same `task` and `y` share a plot.
    pub task: String,
    /// What goes to the right.
    pub x: String,
    /// What goes upwards: `loss`, `held-out loss`, `dev R@1`.
    pub y: String,
    /// The points, from left to right.
    pub points: Vec<(f64, f64)>,
}

/// What is wrong with the file.
fn wrong(found: impl Into<String>, expected: &str) -> ReadError {
    ReadError::new("grafting.json", found, expected, "write it again with this engraft")
}

impl Facts {
    /// Facts of nothing, under a title, with the variants of KIMERA's table 1.
    #[must_use]
    pub fn titled(title: &str) -> Self {
        Facts {
            format: Format::Grafting,
            version: VERSION,
            title: title.to_owned(),
            rows: Row::kimera(),
            importance: BTreeMap::new(),
            masks: BTreeMap::new(),
            searches: BTreeMap::new(),
            cells: Vec::new(),
            sizes: Vec::new(),
            settings: Vec::new(),
            curves: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Reads facts and checks them.
    ///
    /// # Errors
    /// When they are no facts of this version, or as [`Facts::check`] says.
    pub fn parse(json: &[u8]) -> Result<Self, ReadError> {
        let facts: Self = serde_json::from_slice(json).map_err(|cause| {
            wrong(cause.to_string(), "the facts of a grafting as this engraft writes them")
        })?;
        facts.check()?;
        Ok(facts)
    }

    /// Whether all fits together.
    ///
    /// # Errors
    /// When the version is another, heads are those of several encoders, or a score is stated twice.
    pub fn check(&self) -> Result<(), ReadError> {
        if self.version != VERSION {
            let found = format!("facts of a grafting of version {}", self.version);
            return Err(wrong(found, &VERSION.to_string()));
        }
        let mut all = self.importance.iter().chain(&self.masks);
        if let Some((_, first)) = all.next()
            && let Some((name, heads)) = all.find(|(_, heads)| heads.shape() != first.shape())
        {
            let ([layers, heads], [others, of]) = (heads.shape(), first.shape());
            let found =
                format!("`{name}` has {layers} layers of {heads} heads, others have {others} of {of}");
            return Err(wrong(found, "one encoder for the whole grafting"));
        }
        let mut seen = BTreeSet::new();
        match self.cells.iter().find(|cell| !seen.insert((&cell.row, &cell.benchmark, &cell.metric))) {
            Some(Cell { row, benchmark, metric, .. }) => {
                let found = format!("`{row}` has two scores by {metric} of {benchmark}");
                Err(wrong(found, "one, with all its seeds"))
            }
            None => Ok(()),
        }
    }

    /// All variants: those of [`Facts::rows`], then others that have scores, importances or curves, in that order.
    #[must_use]
    pub fn all_rows(&self) -> Vec<Row> {
        let mut rows = self.rows.clone();
        let scored = self.cells.iter().map(|cell| &cell.row);
        for name in scored.chain(self.importance.keys()).chain(self.curves.iter().map(|curve| &curve.name)) {
            if !rows.iter().any(|row| row.name == *name) {
                rows.push(Row { name: name.clone(), title: name.clone(), mask: None });
            }
        }
        rows
    }
}

impl Row {
    /// The variants of KIMERA's table 1, with the masks that they have there, and the one of synonyms.
    #[must_use]
    pub fn kimera() -> Vec<Self> {
        let rows = [
            ("base", "base", Some("hard")),
            ("pruned", "pruned", Some("hard")),
            ("scratch", "from scratch", None),
            ("no_mask", "no mask", None),
            ("hard", "hard mask", Some("hard")),
            ("soft", "soft mask", Some("soft")),
            ("forward", "hard mask, b+f", Some("hard")),
            ("lora", "LoRA adapters", None),
            ("synonyms", "synonyms, hard mask", Some("hard")),
        ];
        let row = |(name, title, mask): (&str, &str, Option<&str>)| Row {
            name: name.to_owned(),
            title: title.to_owned(),
            mask: mask.map(str::to_owned),
        };
        rows.map(row).to_vec()
    }
}

impl Heads {
    /// `values` layer after layer.
    ///
    /// # Errors
    /// When there is not one number for each head.
    pub fn new([layers, heads]: [usize; 2], values: Vec<f64>) -> Result<Self, ReadError> {
        let found = values.len();
        if layers.checked_mul(heads) != Some(found) {
            let found = format!("{found} numbers for {layers} layers of {heads} heads");
            return Err(ReadError::new("heads", found, "one for each head", ""));
        }
        match values.iter().position(|value| !value.is_finite()) {
            Some(at) => {
                let place = format!("layer {}, head {} (from 0)", at / heads, at % heads);
                Err(ReadError::new(place, values[at].to_string(), "a number", ""))
            }
            None => Ok(Heads { layers, heads, values }),
        }
    }

    /// Layers, and heads of each.
    #[must_use]
    pub fn shape(&self) -> [usize; 2] {
        [self.layers, self.heads]
    }

    /// The numbers, layer after layer.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }
}

impl TryFrom<RawHeads> for Heads {
    type Error = ReadError;

    fn try_from(raw: RawHeads) -> Result<Self, ReadError> {
        Heads::new([raw.layers, raw.heads], raw.values)
    }
}

impl From<Heads> for RawHeads {
    fn from(Heads { layers, heads, values }: Heads) -> Self {
        RawHeads { layers, heads, values }
    }
}

impl Search {
    /// The last step before the score fell below the threshold: its mask is what was found. None if the first did.
    #[must_use]
    pub fn taken(&self) -> Option<&Iteration> {
        self.iterations.iter().take_while(|step| step.score >= self.threshold).last()
    }
}
