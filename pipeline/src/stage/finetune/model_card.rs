//! The card of a fine-tuned model: its benchmarks and their licences, its settings, its scores.

use downstream::example::schema::Licence;

use super::attention::Attending;
use super::benchmark::{Benchmark, Score};
use super::{Scores, Tried};
use crate::bundle::card::{self, Card, Kind, Said, Scored};
use crate::bundle::task_file::Asked;
use crate::engine::context::Context;
use crate::stage::benchmark::licence;
use crate::stage::encoder::{Base, MODEL};

/// A fine-tuned model.
pub(super) struct Tuned<'a> {
    /// The stage.
    pub(super) stage: &'a str,
    /// What it was fine-tuned on.
    pub(super) tried: &'a [Tried],
    /// What it began with.
    pub(super) base: &'a Base,
}

impl Tuned<'_> {
    /// Writes the card, once there are scores: those of each of its benchmarks, in their order.
    ///
    /// # Errors
    /// When an index cannot be read, or the disk refuses.
    pub(super) fn write(&self, context: &Context, of: &[(&Scores, &dyn Benchmark)]) -> anyhow::Result<()> {
        let mut trained = vec![];
        if let Some((scores, _)) = of.first() {
            let set = &scores.settings;
            trained.push(format!(
                "## Training\n\nStage `{}`: {} steps, of which step {} was kept; seed {}, peak learning rate {}, {} epochs at most, batches of {}, dropout {}.",
                self.stage, scores.steps, scores.best_step, scores.seed, set.learning_rate, set.epochs, set.batch, set.dropout
            ));
        }
        let mut data =
            "## Training data\n\n| benchmark | examples | licence of its texts |\n|---|--:|---|\n".to_owned();
        let (mut tasks, mut results) = (vec![], vec![]);
        for (tried, (scores, benchmark)) in self.tried.iter().zip(of) {
            let licence = match licence(context.artifact(&tried.stage())?)? {
                Some(Licence::Free) => "may be passed on, as their publisher allows",
                Some(Licence::Restricted) => {
                    "restricted: they, and what is made of them, stay where their agreement allows"
                }
                None => "that of their publisher",
            };
            data += &format!("| {} | {} | {licence} |\n", base::visible::markdown(&tried.name), scores.train);
            let says = says(benchmark.asked());
            tasks.push(Said { name: tried.name.clone(), says, classes: benchmark.classes().to_vec() });
            let scored = |part, score: &Score| Scored {
                benchmark: tried.name.clone(),
                task: on_the_hub(benchmark.asked()),
                part,
                metric: score.metric.clone(),
                value: score.value,
                samples: score.samples,
            };
            results.push(scored("dev", &scores.dev));
            results.extend(scores.test.as_ref().map(|test| scored("test", test)));
        }
        trained.push(data);
        let attention = self.tried.first().and_then(|tried| match tried.attending {
            Attending::Plain => None,
            Attending::Labels(..) => Some("label-embedding attention"),
            Attending::Knowledge(..) => Some("knowledge-assisted attention (KAM-BERT)"),
        });
        let folder = context.out().join(MODEL);
        let class = model::checkpoint::loaded_as(&folder)?;
        let card = Card {
            stage: self.stage.to_owned(),
            kind: Kind::Tasks { tasks, attention, class },
            sizes: model::checkpoint::sizes(&folder)?,
            trained,
            scores: results,
            began_with: Some(card::of_base(self.base, context)?),
        };
        card.write(context.out())
    }
}

/// What an answer is, in a few words.
fn says(asked: Asked) -> &'static str {
    match asked {
        Asked::OneClass => "one of the classes",
        Asked::AnyClasses => "any of the classes",
        Asked::Score => "a number",
        Asked::Rank => "a number that ranks second texts",
        Asked::Similarity => "the cosine of two texts' vectors",
        Asked::Tags => "a class for each word",
        Asked::MaskedWords => "the words that are masked",
        Asked::Span => "where in the second text the answer to the first stands",
    }
}

/// What Hugging Face calls such a task.
fn on_the_hub(asked: Asked) -> &'static str {
    match asked {
        Asked::OneClass | Asked::AnyClasses => "text-classification",
        Asked::Score | Asked::Similarity => "sentence-similarity",
        Asked::Rank => "text-ranking",
        Asked::Tags => "token-classification",
        Asked::MaskedWords => "fill-mask",
        Asked::Span => "question-answering",
    }
}
