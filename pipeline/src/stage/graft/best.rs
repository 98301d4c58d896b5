//! The best of some fine-tunings, by their score on the part `dev`.

use std::path::PathBuf;

use anyhow::Context as _;

use crate::engine::context::Context;
use crate::engine::stage::Input;
use crate::stage::finetune::{Scores, scores};

/// Stages that fine-tune on one benchmark.
#[derive(Debug, Clone)]
pub(crate) struct Candidates {
    pub stages: Vec<String>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Best {
    pub stage: String,
    pub folder: PathBuf,
    pub scores: Scores,
}

impl Candidates {
    /// What a stage declares that chooses among them.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = Input> {
        self.stages.iter().map(Input::artifact)
    }

    /// The one with the highest score on the part `dev`; of equals the first.
    ///
    /// # Errors
    /// When scores cannot be read.
    pub(crate) fn best(&self, context: &Context) -> anyhow::Result<Best> {
        let mut best: Option<Best> = None;
        for stage in &self.stages {
            let folder = context.artifact(stage)?.to_owned();
            let scores = scores(&folder)?;
            if best.as_ref().is_none_or(|best| scores.dev.value > best.scores.dev.value) {
                best = Some(Best { stage: stage.clone(), folder, scores });
            }
        }
        best.context("there is nothing to choose from")
    }
}
