//! Stages `masked_lm.part-0001` and the like, in front of `shards`: the texts of a task on text, encoded and cut, part by part.

use std::path::Path;

use serde_json::json;
use tasks::shard::passages;
use tasks::shard::passages::Kept;
use tasks::shard::text::{Chunks, Texts};
use tasks::token::encode::{Case, Vocabulary};
use text::Labels;

use super::Files;
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::licence::Licence;
use crate::engine::stage::{Input, Stage};
use crate::stage::corpus::{Corpus, Cut, Told, part_name};
use crate::stage::vocabulary::Source;

/// Where the passages of a task on text come from.
#[derive(Debug, Clone)]
pub(crate) enum Origin {
    /// They are made of these texts.
    Texts(Corpus),
    /// These stages made them, each of a part of the texts.
    Parts(Corpus, Vec<String>),
}

/// The passages of a task on text.
#[derive(Debug)]
pub(crate) struct Passages {
    pub texts: Chunks,
    /// The kinds of their mentions.
    pub labels: Labels,
    /// What became of the files.
    pub told: Told,
}

impl Origin {
    /// Of texts that may have been cut.
    #[must_use]
    pub(crate) fn new(task: &str, corpus: Corpus, cut: &Cut) -> Self {
        match cut.parts() {
            Some(parts) => {
                let names = (1..=parts.len()).map(|number| part_name(task, number));
                Self::Parts(corpus, names.collect())
            }
            None => Self::Texts(corpus),
        }
    }

    /// The stages of the parts, if there are such.
    #[must_use]
    pub(crate) fn stages(&self) -> &[String] {
        match self {
            Self::Texts(_) => &[],
            Self::Parts(_, names) => names,
        }
    }

    /// What a stage that reads them declares.
    #[must_use]
    pub(crate) fn inputs(&self) -> Vec<Input> {
        match self {
            Self::Texts(corpus) => corpus.inputs(),
            Self::Parts(_, names) => names.iter().map(Input::artifact).collect(),
        }
    }

    /// What may be done with what is made of them; parts say it themselves.
    pub(crate) fn licence(&self) -> Licence {
        match self {
            Self::Texts(corpus) => corpus.licence(),
            Self::Parts(..) => Licence::None,
        }
    }

    /// Describes where they lie.
    pub(crate) fn describe(&self, to: &mut dyn Describe) {
        match self {
            Self::Texts(corpus) => corpus.describe_files(to),
            // What matters of them is described by them.
            Self::Parts(..) => {}
        }
    }

    /// Reads them, or makes them in rows as `files` says.
    ///
    /// # Errors
    /// When a file is missing or damaged, or there is no text.
    pub(crate) fn read(
        &self,
        files: &Files,
        vocabulary: &Vocabulary,
        context: &Context,
    ) -> anyhow::Result<Passages> {
        let (corpus, texts, labels, told) = match self {
            Self::Texts(corpus) => {
                let mut texts = Texts::default();
                let (labels, told) = corpus
                    .read(context, |_, document| Ok(texts.push(vocabulary, document, files.max_tokens)?))?;
                (corpus, Chunks::held(texts)?, labels, told)
            }
            Self::Parts(corpus, names) => {
                let (mut labels, mut kept, mut parts) = (Labels::default(), Vec::new(), Vec::new());
                for name in names {
                    context.check()?;
                    let folder = context.artifact(name)?;
                    kept.push(Kept::open(folder, vocabulary, &mut labels)?);
                    parts.push(Told::of_part(folder)?);
                }
                let told = Told::joined(parts);
                told.check(corpus)?;
                (corpus, Chunks::kept(kept)?, labels, told)
            }
        };
        anyhow::ensure!(
            texts.counts.chunks > 0,
            "{}: there is no text in it (of a folder, files that end in {} are read): fix paths or format",
            corpus.table(),
            files.format.extensions().join(" or ")
        );
        Ok(Passages { texts, labels, told })
    }
}

/// The stage of one part.
#[derive(Debug)]
pub(crate) struct Encoding {
    pub name: String,
    pub corpus: Corpus,
    pub vocabulary: Source,
    pub case: Case,
    pub max_tokens: usize,
}

impl Stage for Encoding {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        1
    }

    fn describe(&self, to: &mut dyn Describe) {
        describe::config(to, "max_tokens", &self.max_tokens);
        self.vocabulary.describe_with(self.case, to);
        self.corpus.describe(to);
    }

    fn licence(&self, _: &Path) -> anyhow::Result<Licence> {
        Ok(self.corpus.licence())
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = self.corpus.inputs();
        inputs.extend(self.vocabulary.inputs());
        inputs
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let vocabulary = self.vocabulary.load(context, self.case)?;
        let mut texts = Texts::default();
        let labels = self
            .corpus
            .each(context, |_, document| Ok(texts.push(&vocabulary, document, self.max_tokens)?))?;
        passages::write(context.out(), &texts, &labels)?;
        context.record("passages", json!(texts.counts));
        Ok(())
    }

    fn inspect(&self, file: &Path) -> anyhow::Result<Vec<String>> {
        crate::stage::triples::inspect_parquet(file)
    }
}
