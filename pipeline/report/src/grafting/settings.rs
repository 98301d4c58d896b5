//! What each variant was fine-tuned with.

use maud::Markup;
use serde::{Deserialize, Serialize};

use super::facts::Facts;
use crate::number::percent;
use crate::table::{captioned, plain, text};

/// What a variant was fine-tuned with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Name of the variant.
    pub row: String,
    /// Name of the benchmark.
    pub benchmark: String,
    /// The highest learning rate.
    pub learning_rate: f64,
    /// Share of the steps over which the rate rises.
    pub warmup: f64,
    /// Epochs at most.
    pub epochs: u64,
    /// Samples of a step.
    pub batch: u64,
    /// Dropout of what enters the output.
    pub dropout: f64,
    /// How many others they were chosen among by the dev part, themselves included; none where a config gives them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials: Option<u64>,
}

/// The table of all.
pub(super) fn html(facts: &Facts) -> Markup {
    let columns = [
        ("Variant", 'w'),
        ("Benchmark", 'w'),
        ("Learning rate", 'n'),
        ("Warm-up", 'n'),
        ("Epochs, at most", 'n'),
        ("Batch", 'n'),
        ("Dropout", 'n'),
        ("Chosen among", 'w'),
    ];
    let rows = facts.all_rows();
    let row = |of: &Settings| {
        let title = rows.iter().find(|row| row.name == of.row).map_or(&of.row, |row| &row.title);
        vec![
            text(title),
            text(&of.benchmark),
            plain(format!("{:e}", of.learning_rate)),
            plain(percent(of.warmup)),
            plain(of.epochs),
            plain(of.batch),
            plain(of.dropout),
            plain(of.trials.map_or_else(|| "given".to_owned(), |trials| format!("{trials} trials"))),
        ]
    };
    captioned("What each variant was fine-tuned with", &columns, facts.settings.iter().map(row))
}
