//! Stages `pruned-BENCHMARK-SEED`: a fine-tuned model of row `base` without its vacant heads. Nothing is trained.

use base::whole::write_whole;
use downstream::example::Part;
use model::head::mask::Mask;
use model::predict::Predictor;

use crate::engine::context::Context;
use crate::engine::describe::Describe;
use crate::engine::stage::{Input, Stage};
use crate::stage::encoder::MODEL;
use crate::stage::finetune::{SAID, SCORES, Scores, Tried, answers, scores};
use crate::stage::retrain::heads::MASK;

/// The stage of a benchmark and seed.
#[must_use]
pub(crate) fn name(benchmark: &str, seed: u64) -> String {
    format!("pruned-{benchmark}-{seed}")
}

#[derive(Debug)]
pub(crate) struct Pruning {
    name: String,
    tried: Tried,
    /// The fine-tuning whose model it is.
    of: String,
    /// The stage of the mask.
    mask: String,
    seed: u64,
}

impl Pruning {
    /// The stage for the model of stage `of`, under the mask of stage `mask`.
    #[must_use]
    pub(crate) fn new(tried: Tried, of: String, mask: String, seed: u64) -> Self {
        Self { name: name(&tried.name, seed), tried, of, mask, seed }
    }
}

impl Stage for Pruning {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        1
    }

    fn describe(&self, to: &mut dyn Describe) {
        self.tried.describe(to);
        to.field("finetune.seed", self.seed.into());
    }

    fn computes_on(&self) -> Option<String> {
        Some(self.tried.compute.told())
    }

    fn inputs(&self) -> Vec<Input> {
        let more = [Input::artifact(&self.of), Input::artifact(&self.mask)];
        self.tried.inputs().into_iter().chain(more).collect()
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let folder = context.artifact(&self.of)?;
        let whole = scores(folder)?;
        let benchmark = self.tried.read(context, self.seed)?;
        let mask = Mask::read(&context.artifact(&self.mask)?.join(MASK))?;
        let predictor =
            Predictor::load(&folder.join(MODEL), &self.tried.compute.device(context)?)?.with_gates(mask)?;
        let dev = answers::score(&predictor, 0, benchmark.as_ref(), Part::Dev, context)?;
        let outputs = answers::outputs(&predictor, 0, benchmark.as_ref(), Part::Test, context)?;
        let test = Some(answers::measured(benchmark.as_ref(), Part::Test, &outputs)?);
        answers::write(&context.out().join(SAID), benchmark.as_ref(), Part::Test, &outputs)?;
        let scores = Scores { dev, test, ..whole };
        write_whole(&context.out().join(SCORES), &serde_json::to_vec_pretty(&scores)?)?;
        context.record("scores", serde_json::to_value(&scores)?);
        Ok(())
    }
}
