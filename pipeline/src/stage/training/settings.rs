//! What trainings have in common of their settings: by what and how far weights move.

use model::optim::adamw::AdamWConfig;
use model::optim::bert;
use model::range::{CLIP, DROPOUT};

use crate::config::range::{inside, number};

/// The settings of a training's updates.
#[derive(Debug, Clone, Copy)]
pub(in crate::stage) struct Updates<'a> {
    pub(in crate::stage) adamw: &'a AdamWConfig,
    pub(in crate::stage) optimiser: Option<&'a bert::Config>,
    pub(in crate::stage) clip_norm: f64,
    pub(in crate::stage) hidden_dropout: Option<f64>,
    pub(in crate::stage) attention_dropout: Option<f64>,
    pub(in crate::stage) frozen: &'a [String],
}

impl Updates<'_> {
    /// Refuses settings outside their ranges; `table` is theirs in the config.
    ///
    /// # Errors
    /// Names the first.
    pub(in crate::stage) fn check(&self, table: &str) -> anyhow::Result<()> {
        anyhow::ensure!(
            !self.frozen.iter().any(|name| name.trim().is_empty()),
            "{table}.frozen has an empty name, with which every parameter begins; expected beginnings of names, such as \"embeddings.\""
        );
        inside(table, self.adamw.check())?;
        inside(table, self.optimiser.map_or(Ok(()), bert::Config::check))?;
        for (key, rate) in
            [("hidden_dropout", self.hidden_dropout), ("attention_dropout", self.attention_dropout)]
        {
            number(format!("{table}.{key}"), rate.unwrap_or(0.0), &DROPOUT)?;
        }
        number(format!("{table}.clip_norm"), self.clip_norm, &CLIP)
    }
}
