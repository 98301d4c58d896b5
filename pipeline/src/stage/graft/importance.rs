//! Stages `importance-ROW`: how much each head of a row's best model matters (KIMERA, equation 2).

use std::path::Path;

use anyhow::Context as _;
use base::whole::write_whole;
use downstream::example::Part;
use model::head::importance::{AcrossLayers, Importance, Method, WithinLayer};
use model::head::mask::Mask;
use model::predict::Predictor;
use serde::{Deserialize, Serialize};

use super::Row;
use super::best::Candidates;
use crate::config::range::{MANY, whole};
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::stage::{Input, Stage};
use crate::stage::encoder::MODEL;
use crate::stage::finetune::Tried;
use crate::stage::finetune::benchmark::Benchmark;

/// The file of importances within the artifact.
pub(crate) const IMPORTANCE: &str = "importance.json";

/// How importance is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// What is summed over the samples.
    ///
    /// Source: KIMERA, equation 2.
    pub method: Method,
    /// How importances are normalised within each layer; comes first.
    ///
    /// Source: transformers' `run_bertology.py`; KIMERA does not say.
    pub within_layer: WithinLayer,
    /// How importances are normalised over all heads; comes second. Soft masks need `min_max`.
    ///
    /// Source: KIMERA, section 2.1: normalised to a value from 0 to 1; the same in transformers' `run_bertology.py`.
    pub across_layers: AcrossLayers,
    /// Examples or queries per batch, up to 1,000,000.
    ///
    /// Source: ours: with `per_sample`, only memory and speed depend on it.
    pub batch: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            method: Method::default(),
            within_layer: WithinLayer::default(),
            across_layers: AcrossLayers::default(),
            batch: 16,
        }
    }
}

/// How much each head matters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Heads {
    /// Layers.
    pub layers: usize,
    /// Heads of a layer.
    pub heads: usize,
    /// One number for each head, layer after layer.
    pub values: Vec<f64>,
    /// The stage whose model they are of.
    pub model: String,
    /// Samples that were measured.
    pub samples: usize,
}

impl Config {
    /// Whether every number is in its range.
    ///
    /// # Errors
    /// Names the first that is not.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        whole("graft.importance.batch", self.batch as u64, 1..=MANY)
    }

    /// The importance of every head under the gates of `mask`, layer after layer, over the samples of all benchmarks.
    ///
    /// # Errors
    /// When the model does not fit, all heads are alike, or the run is asked to stop.
    pub(crate) fn measure(
        &self,
        predictor: &Predictor,
        benchmarks: &[Box<dyn Benchmark>],
        mask: &Mask,
        context: &Context,
    ) -> anyhow::Result<Vec<f64>> {
        let mut importance = Importance::new(self.method, mask.shape());
        for benchmark in benchmarks {
            let samples = benchmark.samples(Part::MaskSearch);
            for from in (0..samples).step_by(self.batch) {
                context.check()?;
                let batch = benchmark.probe(Part::MaskSearch, from..samples.min(from + self.batch))?;
                predictor.measure(&mut importance, mask, &batch)?;
            }
        }
        Ok(importance.finish(self.within_layer, self.across_layers)?)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Measuring {
    pub row: Row,
    /// What importance is measured on.
    pub tried: Tried,
    /// What it is measured on as well, read as that is.
    pub also: Vec<Tried>,
    /// The row's models.
    pub of: Candidates,
    /// How.
    pub config: Config,
}

/// The stage of a row.
#[must_use]
pub(crate) fn name(row: Row) -> String {
    format!("importance-{}", row.name())
}

/// A model with what it is measured on.
pub(super) struct Subject {
    pub(super) stage: String,
    pub(super) predictor: Predictor,
    pub(super) benchmarks: Vec<Box<dyn Benchmark>>,
}

impl Measuring {
    /// The row's best model, ready to be measured.
    pub(super) fn subject(&self, context: &Context) -> anyhow::Result<Subject> {
        let best = self.of.best(context)?;
        let (model, seed) = (best.folder.join(MODEL), best.scores.seed);
        let mut benchmarks = vec![self.tried.read(context, seed)?];
        for also in &self.also {
            let (classes, spans) = (benchmarks[0].classes().to_vec(), benchmarks[0].spans());
            benchmarks.push(also.read_as(&classes, spans, context, seed)?);
        }
        let names = std::iter::once(&self.tried).chain(&self.also).map(|tried| &tried.name);
        if let Some((name, _)) = names.zip(&benchmarks).find(|(_, of)| of.samples(Part::MaskSearch) == 0) {
            anyhow::bail!("benchmark {name} has nothing in its part `mask_search`: give it a share");
        }
        let predictor = Predictor::load(&model, &self.tried.compute.device(context)?)?;
        context.record("model", best.stage.clone());
        Ok(Subject { stage: best.stage, predictor, benchmarks })
    }

    /// Describes what decides it.
    pub(super) fn described(&self, to: &mut dyn Describe) {
        self.tried.describe(to);
        for also in &self.also {
            describe::under(to, &format!("graft.mask_also.{}", also.name), |to| also.describe(to));
        }
        describe::config(to, "graft.importance", &self.config);
    }

    /// Everything that it reads.
    pub(super) fn read(&self) -> Vec<Input> {
        let also = self.also.iter().map(|tried| Input::artifact(tried.stage()));
        self.tried.inputs().into_iter().chain(also).chain(self.of.inputs()).collect()
    }
}

impl Stage for Measuring {
    fn name(&self) -> &str {
        match self.row {
            Row::Base => "importance-base",
            Row::Pruned => "importance-pruned",
            Row::Scratch => "importance-scratch",
            Row::NoMask => "importance-no_mask",
            Row::Hard => "importance-hard",
            Row::Soft => "importance-soft",
            Row::Forward => "importance-forward",
            Row::Lora => "importance-lora",
            Row::Synonyms => "importance-synonyms",
        }
    }

    fn version(&self) -> u32 {
        1
    }

    fn describe(&self, to: &mut dyn Describe) {
        self.described(to);
    }

    fn computes_on(&self) -> Option<String> {
        Some(self.tried.compute.told())
    }

    fn inputs(&self) -> Vec<Input> {
        self.read()
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let Subject { stage, predictor, benchmarks } = self.subject(context)?;
        let shape = shape(&predictor);
        let values = self.config.measure(&predictor, &benchmarks, &Mask::all_kept(shape), context)?;
        let samples = benchmarks.iter().map(|benchmark| benchmark.samples(Part::MaskSearch)).sum();
        let heads = Heads { layers: shape[0], heads: shape[1], values, model: stage, samples };
        Ok(write_whole(&context.out().join(IMPORTANCE), &serde_json::to_vec_pretty(&heads)?)?)
    }
}

/// Layers and heads of a model.
pub(super) fn shape(predictor: &Predictor) -> [usize; 2] {
    let config = predictor.config();
    [config.num_hidden_layers, config.num_attention_heads]
}

/// The importances in a file.
///
/// # Errors
/// When they cannot be read.
pub(crate) fn read(path: &Path) -> anyhow::Result<Heads> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    serde_json::from_slice(&bytes).with_context(|| path.display().to_string())
}
