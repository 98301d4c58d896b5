//! What is learnt, and what is said of it.

use base::whole::write_whole;
use downstream::encode::{Cut, Frame};
use kg::table::Graph;
use model::output::{Output, Task};
use tasks::shard::hub;
use tasks::token::encode::Vocabulary;

use super::answers::{Blanks, ShownBlanks};
use super::config::{Answers, Relations};
use super::facts::Facts;
use super::names::Names;
use super::shown::{Learnt, Shown, Turns};
use super::{Aligning, RELATIONS};
use crate::engine::context::Context;
use crate::stage::training::METRICS;
use crate::stage::{metrics, rank};

/// The name of the output of names.
const NAMES: &str = "names";
/// That of triples with a blank.
const ANSWERS: &str = "answers";
/// The keys of the relations, in the order of their vectors.
const RELATIONS_FILE: &str = "relations.json";

/// What was learnt, for those who ask the model.
pub(super) struct Trained {
    /// The name of the output.
    pub(super) output: &'static str,
    /// What the output says.
    pub(super) says: &'static str,
    /// What was shown.
    pub(super) over: String,
    /// Where it comes from, for the card.
    pub(super) sources: Vec<String>,
    /// Tokens of the longest text.
    pub(super) max_tokens: usize,
}

impl Aligning {
    /// The outputs of names; `facts` are the triples that are learnt beside them, if any are.
    fn of_names(&self, facts: Option<&Facts>) -> Vec<Task> {
        let output = Output::Metric { loss: self.config.loss, margin: self.config.margin.within() };
        let relations =
            self.config.relations.zip(facts).map(|(Relations { weight, margin, .. }, facts)| Task {
                name: RELATIONS.to_owned(),
                output: Output::Translation { relations: facts.relations.len(), margin },
                alpha: weight,
            });
        let names = Task { name: NAMES.to_owned(), output, alpha: 1.0 };
        std::iter::once(names).chain(relations).collect()
    }

    /// Learns names, and triples beside them.
    pub(super) fn names(
        &self,
        context: &Context,
        graph: Graph,
        vocabulary: &Vocabulary,
    ) -> anyhow::Result<Trained> {
        let config = &self.config;
        let names = Names::new(&graph, context.artifact("triples")?, config, vocabulary)?;
        context.record("names", serde_json::to_value(names.counts)?);
        let facts = config.relations.map(|_| Facts::read(&graph, context.artifact("split")?, &names));
        let facts = facts.transpose()?;
        drop(graph);
        if let Some(facts) = &facts {
            context.record("relations", serde_json::to_value(facts.counts)?);
        }
        let learnt = Learnt { names: &names, facts: facts.as_ref() };
        let frame = Frame { special: vocabulary.special(), most: config.max_tokens, cut: Cut::Longest };
        let shown = |step| Shown::new(learnt, config, frame, step);
        self.train(context, self.of_names(facts.as_ref()), learnt.batches(config), shown)?;
        if let Some(facts) = &facts {
            let keys = serde_json::to_vec_pretty(&facts.relations)?;
            write_whole(&context.out().join(RELATIONS_FILE), &keys)?;
        }
        let without = metrics::without_loss(&context.out().join(METRICS), NAMES)?;
        context.record("steps_without_hard_pairs", without);
        let counts = names.counts;
        let beside = config.relations.zip(learnt.facts).map_or_else(String::new, |(relations, facts)| {
            format!(", and beside each {} of {} triples", relations.batch, facts.counts.learnt)
        });
        let over = format!(
            "{} pairs of names of {} entities, batches of {}{beside}",
            counts.pairs,
            counts.entities - counts.with_one_name,
            config.batch
        );
        let of_triples = learnt.facts.map(|facts| hub::sources_of_triples(&facts.sources));
        let sources = std::iter::once(hub::sources_of_names(&names.sources)).chain(of_triples).collect();
        let says = "the cosine of two names' vectors";
        Ok(Trained { output: NAMES, over, says, sources, max_tokens: config.max_tokens })
    }

    /// Learns what stands where triples have a blank.
    pub(super) fn blanks(
        &self,
        context: &Context,
        graph: Graph,
        vocabulary: &Vocabulary,
        answers: &Answers,
    ) -> anyhow::Result<Trained> {
        let (config, layout) = (&self.config, self.from.layout);
        let blanks = Blanks::read(&graph, context.artifact("split")?, answers, vocabulary, layout)?;
        drop(graph);
        context.record("answers", serde_json::to_value(&blanks.counts)?);
        let sizes = model::checkpoint::sizes(&self.from.base.folder(context)?)?;
        let max_tokens = rank::room(&blanks.encoder, sizes.max_position_embeddings)?;
        let output = Output::Embedding { scale: answers.scale };
        let tasks = vec![Task { name: ANSWERS.to_owned(), output, alpha: 1.0 }];
        let batches = blanks.batches(config.batch);
        let shown = |step| ShownBlanks {
            blanks: &blanks,
            turns: Turns::new(blanks.counts.rows, batches, config.seed, step),
        };
        self.train(context, tasks, batches, shown)?;
        let slots: Vec<&str> = answers.slots.iter().map(|slot| slot.name()).collect();
        let over = format!(
            "{} triples with a blank in place of their {}, batches of {}",
            blanks.counts.learnt,
            slots.join(" or "),
            config.batch
        );
        let says = "the cosine of two texts' vectors; what a triple with a blank is near, stage `rank` says";
        let sources = vec![hub::sources_of_triples(&blanks.sources)];
        Ok(Trained { output: ANSWERS, over, says, sources, max_tokens })
    }
}
