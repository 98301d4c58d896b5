//! Chunks of documents as the items of the tasks on text.

use batch::task::Task;
use kg::split::Part;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use serde::{Deserialize, Serialize};

use super::items::Items;
use super::rows::Rows;
use crate::Error;
use crate::builder::Sample;
use crate::builder::masked_lm::{self, Masker, Turn};
use crate::builder::passage::{self, Passage};
use crate::builder::tagging::{self, Classes, LaterSubwords};
use crate::token::encode::Vocabulary;
use text::Document;

/// Documents cut into chunks, all in memory.
#[derive(Debug, Default)]
pub struct Texts {
    passages: Vec<Passage>,
    chunks: Vec<Chunk>,
    /// What became of the documents.
    pub counts: passage::Counts,
}

/// A chunk by the numbers of its document and in it.
#[derive(Debug, Clone, Copy)]
struct Chunk {
    document: u32,
    chunk: u32,
}

/// What became of a task's texts, as it stands in the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextCounts {
    /// Documents, chunks, and where they were cut.
    pub passages: passage::Counts,
    /// Tokens asked for, and how; none for tagging.
    pub masked: Option<masked_lm::Counts>,
}

/// Items that are chunks of texts.
pub trait TextItems: Items {
    /// What became of the texts.
    fn counts(&self) -> TextCounts;

    /// The task's classes, where it has any.
    fn classes(&self) -> &[String] {
        &[]
    }
}

impl Texts {
    /// Adds a document, cut into chunks of at most `max_tokens` tokens, `[CLS]` and `[SEP]` included.
    ///
    /// # Errors
    /// When the tokenizer refuses it, or there is no room for a token.
    pub fn push(
        &mut self,
        vocabulary: &Vocabulary,
        document: &Document,
        max_tokens: usize,
    ) -> Result<(), Error> {
        let passage = Passage::new(vocabulary, document, max_tokens, &mut self.counts)?;
        self.add(passage);
        Ok(())
    }

    /// Adds a document that is already cut, and not counted.
    pub(crate) fn add(&mut self, passage: Passage) {
        let number = u32::try_from(self.passages.len()).unwrap_or(u32::MAX);
        let chunks = (0..).take(passage.chunks.len());
        self.chunks.extend(chunks.map(|chunk| Chunk { document: number, chunk }));
        self.passages.push(passage);
    }

    /// The documents, in order.
    pub(crate) fn passages(&self) -> &[Passage] {
        &self.passages
    }

    fn passage(&self, chunk: Chunk) -> &Passage {
        &self.passages[chunk.document as usize]
    }
}

/// Masked language modelling on texts. Shards hold the blanks of epoch 0.
#[derive(Debug)]
pub struct MaskedLm {
    texts: Texts,
    masker: Masker,
}

impl MaskedLm {
    /// The task's items: chunks without a token that may be asked for are left out, and counted.
    #[must_use]
    pub fn new(mut texts: Texts, mut masker: Masker) -> Self {
        let asks = |chunk: &Chunk| {
            let mut masker = masker.clone();
            let asks = masker.build(&mut Sample::default(), texts.passage(*chunk), turn(*chunk));
            (asks, masker.counts)
        };
        let built: Vec<(bool, masked_lm::Counts)> =
            texts.chunks.par_iter().with_min_len(64).map(asks).collect();
        let mut built = built.into_iter();
        let mut counts = masked_lm::Counts::default();
        texts.chunks.retain(|_| {
            built.next().is_some_and(|(asks, of)| {
                counts.add(&of);
                asks
            })
        });
        masker.counts = counts;
        Self { texts, masker }
    }
}

fn turn(Chunk { document, chunk }: Chunk) -> Turn {
    Turn { epoch: 0, document: document.into(), chunk: chunk as usize }
}

impl TextItems for MaskedLm {
    fn counts(&self) -> TextCounts {
        TextCounts { passages: self.texts.counts.clone(), masked: Some(self.masker.counts) }
    }
}

impl Items for MaskedLm {
    fn task(&self) -> Task {
        Task::MaskedLm
    }

    fn part(&self) -> Part {
        Part::Train
    }

    fn len(&self) -> usize {
        self.texts.chunks.len()
    }

    fn build(&self, item: usize, sample: &mut Sample, rows: &mut Rows) {
        let chunk = self.texts.chunks[item];
        let mut masker = self.masker.clone();
        if masker.build(sample, self.texts.passage(chunk), turn(chunk)) {
            let Chunk { document, chunk } = chunk;
            rows.push(&[document, chunk], sample, None);
        }
    }
}

/// Tagging of texts.
#[derive(Debug)]
pub struct Tagging {
    texts: Texts,
    classes: Classes,
    later: LaterSubwords,
}

impl Tagging {
    /// The task's items.
    ///
    /// # Errors
    /// When a text marks a kind of entity that the classes lack.
    pub fn new(texts: Texts, classes: Classes, later: LaterSubwords) -> Result<Self, Error> {
        let mentions = texts.passages.iter().flat_map(|passage| &passage.mentions);
        for mention in mentions {
            classes.begin(mention.label)?;
        }
        Ok(Self { texts, classes, later })
    }
}

impl TextItems for Tagging {
    fn counts(&self) -> TextCounts {
        TextCounts { passages: self.texts.counts.clone(), masked: None }
    }

    /// The tags in class order.
    fn classes(&self) -> &[String] {
        self.classes.names()
    }
}

impl Items for Tagging {
    fn task(&self) -> Task {
        Task::Tagging
    }

    fn part(&self) -> Part {
        Part::Train
    }

    fn len(&self) -> usize {
        self.texts.chunks.len()
    }

    fn build(&self, item: usize, sample: &mut Sample, rows: &mut Rows) {
        let of = self.texts.chunks[item];
        let Chunk { document, chunk } = of;
        // `new` has looked up the classes of all mentions.
        if tagging::build(sample, self.texts.passage(of), chunk as usize, &self.classes, self.later).is_ok() {
            rows.push(&[document, chunk], sample, None);
        }
    }
}
