//! A benchmark as fine-tunings read it.

use std::path::Path;

use anyhow::Context as _;
use downstream::example::{Example, Examples, Kind};
use tasks::token::encode::Case;

use super::attention::Attending;
use super::benchmark::Benchmark;
use super::config::{ClassWeights, Fixed};
use super::{examples, known, masked, questions, ranking, steps, tagged};
use crate::bundle::task_file::Spans;
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::stage::Input;
use crate::stage::benchmark as made;
use crate::stage::compute::Compute;
use crate::stage::encoder;
use crate::stage::maps::benchmark::{self as mapped, Of};
use crate::stage::training::SHAPES_NOTHING;
use crate::stage::vocabulary;

/// A benchmark as later stages find it, and how its texts become tokens.
#[derive(Debug, Clone)]
pub(crate) struct Tried {
    /// Its name in the config.
    pub name: String,
    /// What texts are encoded with.
    pub vocabulary: vocabulary::Source,
    /// Whether a `vocab.txt` keeps case.
    pub case: Case,
    /// What no search chooses.
    pub fixed: Fixed,
    /// How tokens attend.
    pub attending: Attending,
    /// What is computed on and in.
    pub compute: Compute,
}

impl Tried {
    /// The stage that makes it.
    #[must_use]
    pub(crate) fn stage(&self) -> String {
        format!("benchmark-{}", self.name)
    }

    /// What a stage that reads it declares.
    #[must_use]
    pub(crate) fn inputs(&self) -> Vec<Input> {
        std::iter::once(Input::artifact(self.stage())).chain(self.tools()).collect()
    }

    /// What it is read with, which several benchmarks of a stage have in common.
    pub(super) fn tools(&self) -> Vec<Input> {
        self.vocabulary.inputs().into_iter().chain(self.attending.inputs(&self.name)).collect()
    }

    /// Whether its rows fit into so many positions.
    ///
    /// # Errors
    /// When they may be longer.
    pub(crate) fn room(&self, positions: usize) -> anyhow::Result<()> {
        steps::room(&self.name, self.fixed.max_tokens, self.attending.auxiliary(), positions)
    }

    /// Describes how it is read.
    pub(crate) fn describe(&self, to: &mut dyn Describe) {
        describe::config_but(to, "finetune", &self.fixed, &SHAPES_NOTHING);
        if self.fixed.quirks.cuts_by_tags() {
            // Before there was this line, sentences that were cut were shown whole.
            to.field("finetune.cut_sentences", "shown piece by piece".into());
        }
        self.compute.describe(to);
        self.attending.describe(to);
        self.vocabulary.describe_with(self.case, to);
        self.vocabulary.describe_written(to);
    }

    /// As [`encoder::fits`], of an encoder's folder.
    ///
    /// # Errors
    /// When the sizes differ, the encoder says that its vocabulary is another, or one cannot be read.
    pub(crate) fn fits(&self, encoder: &Path, context: &Context) -> anyhow::Result<()> {
        let vocabulary = self.vocabulary.load(context, self.case)?;
        encoder::fits(vocabulary.size(), vocabulary.special(), &model::checkpoint::sizes(encoder)?)?;
        self.vocabulary.belongs(&vocabulary, encoder)
    }

    /// Reads it, to be fine-tuned on with `seed`.
    ///
    /// # Errors
    /// When its files are damaged, or a text cannot be encoded.
    pub(crate) fn read(&self, context: &Context, seed: u64) -> anyhow::Result<Box<dyn Benchmark>> {
        self.of(made::read(context.artifact(&self.stage())?)?, None, context, seed)
    }

    /// As [`Self::read`], to be shown to a model whose task has these classes, and looks for spans so.
    ///
    /// # Errors
    /// When a class is none of them, too.
    pub(crate) fn read_as(
        &self,
        classes: &[String],
        spans: Option<Spans>,
        context: &Context,
        seed: u64,
    ) -> anyhow::Result<Box<dyn Benchmark>> {
        let mut found = made::read(context.artifact(&self.stage())?)?;
        if let made::Read::Examples(folder) = &mut found {
            let examples = folder.examples.clone().numbered_as(classes);
            folder.examples = examples.with_context(|| format!("benchmarks.{}.trained_on", self.name))?;
        }
        self.of(found, spans, context, seed)
    }

    /// As [`Self::read`], of these texts of the benchmark.
    ///
    /// # Errors
    /// When a text cannot be encoded.
    pub(crate) fn of_examples(
        &self,
        examples: Examples,
        of: Of,
        context: &Context,
    ) -> anyhow::Result<Box<dyn Benchmark>> {
        let vocabulary = self.vocabulary.load(context, self.case)?;
        let known = match &self.attending {
            Attending::Knowledge(knowledge, ..) => {
                let folder = context.artifact(&mapped::name(&self.name))?;
                let count = examples.examples.iter().flat_map(Example::second_texts).count();
                Some(mapped::rows(folder, of, count, &knowledge.maps)?)
            }
            Attending::Plain | Attending::Labels(..) => None,
        };
        Ok(Box::new(examples::Labelled::new(examples, &vocabulary, &self.fixed, known)?))
    }

    /// Warns where classes are to be balanced and there are none of rows.
    fn warn_of_weights(&self, found: &made::Read, context: &Context) {
        let kind = match found {
            made::Read::Examples(of) => Some(of.examples.kind),
            made::Read::Capr { .. } => None,
        };
        let weighs = matches!(kind, Some(Kind::OneClass | Kind::AnyClasses));
        if self.fixed.class_weights == ClassWeights::Balanced && !weighs {
            context.warn(format!(
                "finetune.class_weights = \"balanced\" has no effect on {}: it weighs classes of whole texts, and this benchmark has none",
                self.name
            ));
        }
    }

    fn of(
        &self,
        found: made::Read,
        spans: Option<Spans>,
        context: &Context,
        seed: u64,
    ) -> anyhow::Result<Box<dyn Benchmark>> {
        let vocabulary = self.vocabulary.load(context, self.case)?;
        self.warn_of_weights(&found, context);
        Ok(match found {
            made::Read::Capr { train, test } => {
                let known = known::Known::of(&self.attending, &self.fixed, context)?;
                let (train, fixed) = (train.map(|train| *train), &self.fixed);
                let ranking = ranking::Ranking::new(&self.name, train, *test, &vocabulary, fixed, seed)?;
                Box::new(ranking.knowing(known, &self.name, context)?)
            }
            made::Read::Examples(examples) if examples.examples.kind == Kind::Tags => {
                let known = known::Known::of(&self.attending, &self.fixed, context)?;
                let sentences = tagged::Sentences::new(examples.examples, &vocabulary, &self.fixed)?;
                Box::new(sentences.knowing(known.as_ref(), &vocabulary, context)?)
            }
            made::Read::Examples(of) if of.examples.kind == Kind::MaskedWords => {
                let (attending, fixed) = (&self.attending, &self.fixed);
                let words = masked::MaskedWords::new;
                let words = words(of.examples, vocabulary, self.case, fixed, attending, context)?;
                Box::new(words.drawn_by(seed))
            }
            made::Read::Examples(of) if of.examples.kind == Kind::Span => {
                let (attending, fixed) = (&self.attending, &self.fixed);
                let known = known::Known::or_plain(attending, vocabulary, self.case, fixed, context)?;
                let questions = questions::Questions::new(of.examples, fixed, known, context)?;
                Box::new(questions.drawn_by(seed).asked_of(spans))
            }
            made::Read::Examples(examples) => self.of_examples(examples.examples, Of::Examples, context)?,
        })
    }
}
