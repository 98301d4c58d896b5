//! Stages of a benchmark with `trained_on`: models that were fine-tuned on another benchmark, scored on this one's part `test`. Nothing is trained.

use std::path::Path;

use anyhow::Context as _;
use base::whole::write_whole;
use downstream::example::Part;
use model::head::mask::Mask;
use model::predict::Predictor;

use super::{SAID, SCORES, Scores, Tried, answers, facts, scores, together};
use crate::bundle::task_file::TaskFile;
use crate::engine::context::Context;
use crate::engine::describe::Describe;
use crate::engine::licence::Licence;
use crate::engine::stage::{Input, Stage};
use crate::stage::encoder::MODEL;
use crate::stage::retrain::heads::MASK;
use crate::stage::scores::Whose;

/// The model that is tried.
#[derive(Debug, Clone)]
pub(crate) struct Trained {
    /// The stage of its training.
    pub stage: String,
    /// The benchmark that it was trained on, which is the name of its task.
    pub on: String,
    /// Whether it was trained on others, too.
    pub whose: Whose,
    /// The stage that took heads from it, and that of the mask which says which.
    pub pruned: Option<(String, String)>,
}

/// The stage.
#[derive(Debug)]
pub(crate) struct Scored {
    /// Its name.
    pub name: String,
    /// What the model is tried on, read as what it was trained on is.
    pub tried: Tried,
    /// The model.
    pub model: Trained,
    /// The seed of its training.
    pub seed: u64,
}

impl Scored {
    /// The scores of its training, which say what it was chosen by.
    fn trained(&self, context: &Context) -> anyhow::Result<Scores> {
        let stage = self.model.pruned.as_ref().map_or(&self.model.stage, |(stage, _)| stage);
        let folder = context.artifact(stage)?;
        match self.model.whose {
            Whose::One => scores(folder),
            Whose::Several => together::scores(folder, &self.model.on),
        }
    }
}

impl Stage for Scored {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        1
    }

    fn describe(&self, to: &mut dyn Describe) {
        self.tried.describe(to);
        to.field("finetune.seed", self.seed.into());
        to.field("benchmark.trained_on", self.model.on.as_str().into());
    }

    fn computes_on(&self) -> Option<String> {
        Some(self.tried.compute.told())
    }

    fn licence(&self, _: &Path) -> anyhow::Result<Licence> {
        Ok(self.tried.attending.licence())
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = self.tried.inputs();
        inputs.push(Input::artifact(&self.model.stage));
        if let Some((stage, mask)) = &self.model.pruned {
            inputs.extend([Input::artifact(stage), Input::artifact(mask)]);
        }
        inputs
    }

    fn begins_with(&self) -> Option<String> {
        Some(self.model.stage.clone())
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let Trained { stage, on, pruned, .. } = &self.model;
        let trained = self.trained(context)?;
        let folder = context.artifact(stage)?.join(MODEL);
        let file = TaskFile::read(&folder)?;
        let task = file.tasks.iter().find(|task| task.name == *on);
        let task = task.with_context(|| format!("{}: there is no task {on}", folder.display()))?;
        let benchmark = self.tried.read_as(&task.classes, task.spans, context, self.seed)?;
        anyhow::ensure!(
            benchmark.pairs() == task.pairs,
            "benchmarks.{}.trained_on is {on:?}, whose examples are {}: expected the same of {}",
            self.tried.name,
            if task.pairs { "pairs of texts" } else { "single texts" },
            self.tried.name
        );
        let mut predictor = Predictor::load(&folder, &self.tried.compute.device(context)?)?;
        if let Some((_, mask)) = pruned {
            predictor = predictor.with_gates(Mask::read(&context.artifact(mask)?.join(MASK))?)?;
        }
        let output = predictor.task(on)?;
        let outputs = answers::outputs(&predictor, output, benchmark.as_ref(), Part::Test, context)?;
        answers::write(&context.out().join(SAID), benchmark.as_ref(), Part::Test, &outputs)?;
        let test = Some(answers::measured(benchmark.as_ref(), Part::Test, &outputs)?);
        let scores = Scores { test, ..trained };
        write_whole(&context.out().join(SCORES), &serde_json::to_vec_pretty(&scores)?)?;
        context.record("scores", serde_json::to_value(&scores)?);
        facts(benchmark.as_ref())?.into_iter().for_each(|(key, value)| context.record(&key, value));
        Ok(())
    }
}
