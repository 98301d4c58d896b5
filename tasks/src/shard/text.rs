//! Chunks of documents as the items of the tasks on text.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use base::rng::CounterRng;
use batch::task::Task;
use kg::split::Part;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use serde::{Deserialize, Serialize};

use super::items::{Block, Items};
use super::passages::Kept;
use super::rows::Rows;
use crate::Error;
use crate::builder::Sample;
use crate::builder::masked_lm::{self, Masker, Turn};
use crate::builder::passage::{self, Passage};
use crate::builder::tagging::{self, Classes, LaterSubwords};
use crate::token::encode::Vocabulary;
use text::{Document, Label};

/// Documents cut into chunks, all in memory.
#[derive(Debug, Default)]
pub struct Texts {
    passages: Vec<Passage>,
    /// What became of the documents.
    pub counts: passage::Counts,
}

/// The chunks of documents, which are in memory or in the files that parts have left.
#[derive(Debug)]
pub struct Chunks {
    of: Arc<Documents>,
    part: Part,
    chunks: Vec<Chunk>,
    /// What became of the documents.
    pub counts: passage::Counts,
}

#[derive(Debug)]
enum Documents {
    Held(Vec<Passage>),
    /// Each from the document of this number on.
    Kept(Vec<(u32, Kept)>),
}

/// Documents in memory.
#[derive(Debug)]
struct Loaded<'a> {
    /// Their numbers, in order, if they are not all.
    numbers: Option<Vec<u32>>,
    passages: Cow<'a, [Passage]>,
}

impl Loaded<'_> {
    fn passage(&self, document: u32) -> &Passage {
        let place = |numbers: &Vec<u32>| numbers.partition_point(|number| *number < document);
        &self.passages[self.numbers.as_ref().map_or(document as usize, place)]
    }
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
    /// Documents, chunks, and where they were cut, of all parts.
    pub passages: passage::Counts,
    /// Tokens asked for, and how; none for tagging.
    pub masked: Option<masked_lm::Counts>,
}

impl TextCounts {
    /// Adds what became of another part of the same task's texts.
    pub(crate) fn add(&mut self, other: &Self) {
        if let (Some(masked), Some(of_other)) = (&mut self.masked, &other.masked) {
            masked.add(of_other);
        }
    }
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
        self.passages.push(passage);
        Ok(())
    }

    /// The documents, in order.
    pub(crate) fn passages(&self) -> &[Passage] {
        &self.passages
    }
}

/// Chunks whose documents are looked at together.
const TOGETHER: usize = 1 << 16;

impl Chunks {
    /// Those of documents in memory.
    ///
    /// # Errors
    /// When there are more documents or chunks of one than numbers for them.
    pub fn held(texts: Texts) -> Result<Self, Error> {
        let Texts { passages, counts } = texts;
        let chunks = all_chunks(passages.iter().map(|passage| passage.chunks.len()))?;
        Ok(Self::all(Documents::Held(passages), chunks, counts))
    }

    /// Those of documents that parts have left, part by part.
    ///
    /// # Errors
    /// As [`Chunks::held`], or when a part cannot be read.
    pub fn kept(parts: Vec<Kept>) -> Result<Self, Error> {
        let mut counts = passage::Counts::default();
        let (mut lengths, mut kept) = (Vec::new(), Vec::with_capacity(parts.len()));
        for part in parts {
            let first = u32::try_from(lengths.len()).map_err(|_| too_many())?;
            counts.add(part.counts());
            part.chunks(&mut lengths)?;
            kept.push((first, part));
        }
        let chunks = all_chunks(lengths.into_iter())?;
        Ok(Self::all(Documents::Kept(kept), chunks, counts))
    }

    fn all(of: Documents, chunks: Vec<Chunk>, counts: passage::Counts) -> Self {
        Self { of: Arc::new(of), part: Part::Train, chunks, counts }
    }

    /// Those to learn from, and those of a share of the documents, which are held out for the part `valid`. Which they are depends on `seed` and on what a
    /// document says: equal ones stay together, and others may come and go.
    ///
    /// # Errors
    /// When a part cannot be read.
    pub fn hold_out(self, share: f64, seed: u64) -> Result<[Self; 2], Error> {
        let key = CounterRng::new(seed).named("valid");
        let (mut train, mut valid) = (vec![], vec![]);
        for items in self.together() {
            let loaded = self.load(items.clone())?;
            let documents = self.chunks[items].chunk_by(|one, other| one.document == other.document);
            let documents: Vec<&[Chunk]> = documents.collect();
            let is_held_out = |chunks: &&[Chunk]| {
                let tokens = chunks.first().map(|chunk| &loaded.passage(chunk.document).tokens);
                let key = tokens.into_iter().flatten().fold(key, |key, token| key.branch(token.id.into()));
                key.uniform(0) < share
            };
            let held_out: Vec<bool> = documents.par_iter().with_min_len(16).map(is_held_out).collect();
            for (chunks, held_out) in documents.into_iter().zip(held_out) {
                if held_out { &mut valid } else { &mut train }.extend_from_slice(chunks);
            }
        }
        let Self { of, counts, .. } = self;
        let part = |part, chunks| Self { of: Arc::clone(&of), part, chunks, counts: counts.clone() };
        Ok([part(Part::Train, train), part(Part::Valid, valid)])
    }

    /// The part that they are for.
    #[must_use]
    pub fn part(&self) -> Part {
        self.part
    }

    /// Whether this part has no chunk.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// All of them, so many at a time that their documents have room in memory.
    fn together(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let all = self.chunks.len();
        (0..all).step_by(TOGETHER).map(move |first| first..(first + TOGETHER).min(all))
    }

    /// The documents of chunks that stand together, and no others: those of what is held out are few among many.
    fn load(&self, items: Range<usize>) -> Result<Loaded<'_>, Error> {
        let parts = match &*self.of {
            Documents::Held(passages) => {
                return Ok(Loaded { numbers: None, passages: Cow::Borrowed(passages) });
            }
            Documents::Kept(parts) => parts,
        };
        let mut numbers: Vec<u32> = self.chunks[items].iter().map(|chunk| chunk.document).collect();
        numbers.dedup();
        let mut passages = Vec::new();
        for (from, part) in parts {
            let below = |end: u32| numbers.partition_point(|number| *number < end);
            let own = &numbers[below(*from)..below(from.saturating_add(part.documents()))];
            let own: Vec<usize> = own.iter().map(|number| (number - from) as usize).collect();
            part.read(&own, &mut passages)?;
        }
        Ok(Loaded { numbers: Some(numbers), passages: Cow::Owned(passages) })
    }

    /// The kinds of mentions that there may be.
    fn labels(&self) -> Vec<Label> {
        let mut labels: Vec<Label> = match &*self.of {
            Documents::Held(passages) => {
                let mentions = passages.iter().flat_map(|passage| &passage.mentions);
                mentions.map(|mention| mention.label).collect()
            }
            Documents::Kept(parts) => parts.iter().flat_map(|(_, part)| part.labels()).copied().collect(),
        };
        labels.sort_by_key(|label| label.number());
        labels.dedup();
        labels
    }
}

/// All chunks of documents that have so many each.
fn all_chunks(lengths: impl Iterator<Item = usize>) -> Result<Vec<Chunk>, Error> {
    let mut chunks = Vec::new();
    for (document, length) in lengths.enumerate() {
        let document = u32::try_from(document).map_err(|_| too_many())?;
        let length = u32::try_from(length).map_err(|_| too_many())?;
        chunks.extend((0..length).map(|chunk| Chunk { document, chunk }));
    }
    Ok(chunks)
}

fn too_many() -> Error {
    Error::unfit("there are more documents, or more chunks of one, than rows can number (4,294,967,295)")
}

/// Masked language modelling on texts. Shards hold the blanks of epoch 0.
#[derive(Debug)]
pub struct MaskedLm {
    texts: Chunks,
    masker: Masker,
}

impl MaskedLm {
    /// The task's items: chunks without a token that may be asked for are left out, and counted.
    ///
    /// # Errors
    /// When the texts cannot be read.
    pub fn new(mut texts: Chunks, mut masker: Masker) -> Result<Self, Error> {
        let mut counts = masked_lm::Counts::default();
        let mut may_be_asked = Vec::with_capacity(texts.chunks.len());
        for items in texts.together() {
            let loaded = texts.load(items.clone())?;
            let some = &texts.chunks[items];
            let asks = |chunk: &Chunk| {
                let mut masker = masker.clone();
                let passage = loaded.passage(chunk.document);
                let asks = masker.build(&mut Sample::default(), passage, turn(*chunk));
                (asks, masker.counts)
            };
            let built: Vec<(bool, masked_lm::Counts)> = some.par_iter().with_min_len(64).map(asks).collect();
            for (asks, of) in built {
                counts.add(&of);
                may_be_asked.push(asks);
            }
        }
        let mut may_be_asked = may_be_asked.into_iter();
        texts.chunks.retain(|_| may_be_asked.next().unwrap_or_default());
        masker.counts = counts;
        Ok(Self { texts, masker })
    }
}

/// Chunks of a range, and their documents.
struct OfTexts<'a, T> {
    of: &'a T,
    loaded: Loaded<'a>,
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
        self.texts.part
    }

    fn len(&self) -> usize {
        self.texts.chunks.len()
    }

    fn block(&self, items: Range<usize>) -> Result<Box<dyn Block + '_>, Error> {
        Ok(Box::new(OfTexts { of: self, loaded: self.texts.load(items)? }))
    }
}

impl Block for OfTexts<'_, MaskedLm> {
    fn build(&self, item: usize, sample: &mut Sample, rows: &mut Rows) {
        let chunk = self.of.texts.chunks[item];
        let mut masker = self.of.masker.clone();
        if masker.build(sample, self.loaded.passage(chunk.document), turn(chunk)) {
            let Chunk { document, chunk } = chunk;
            rows.push(&[document, chunk], sample, None);
        }
    }
}

/// Tagging of texts.
#[derive(Debug)]
pub struct Tagging {
    texts: Chunks,
    classes: Classes,
    later: LaterSubwords,
}

impl Tagging {
    /// The task's items.
    ///
    /// # Errors
    /// When a text marks a kind of entity that the classes lack.
    pub fn new(texts: Chunks, classes: Classes, later: LaterSubwords) -> Result<Self, Error> {
        for label in texts.labels() {
            classes.begin(label)?;
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
        self.texts.part
    }

    fn len(&self) -> usize {
        self.texts.chunks.len()
    }

    fn block(&self, items: Range<usize>) -> Result<Box<dyn Block + '_>, Error> {
        Ok(Box::new(OfTexts { of: self, loaded: self.texts.load(items)? }))
    }
}

impl Block for OfTexts<'_, Tagging> {
    fn build(&self, item: usize, sample: &mut Sample, rows: &mut Rows) {
        let Chunk { document, chunk } = self.of.texts.chunks[item];
        let Tagging { classes, later, .. } = self.of;
        // `new` has looked up the classes of all mentions.
        if tagging::build(sample, self.loaded.passage(document), chunk as usize, classes, *later).is_ok() {
            rows.push(&[document, chunk], sample, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use text::Labels;

    use super::*;
    use crate::builder::passage::tests::{document, vocabulary};
    use crate::shard::passages::write;

    fn texts(of: Range<usize>) -> Texts {
        let mut texts = Texts::default();
        for number in of {
            // Some have no chunk, some several.
            let text = "ab cd ".repeat(number % 5);
            texts.push(vocabulary(), &document(&text, &mut Labels::default()), 6).unwrap();
        }
        texts
    }

    #[test]
    fn documents_are_held_out_by_what_they_say() {
        let of = |numbers: &[usize]| {
            let mut texts = Texts::default();
            for number in numbers {
                let text = format!("{}cd", "ab ".repeat(*number));
                texts.push(vocabulary(), &document(&text, &mut Labels::default()), 6).unwrap();
            }
            let [train, valid] = Chunks::held(texts).unwrap().hold_out(0.3, 7).unwrap();
            assert_eq!((train.part, valid.part), (Part::Train, Part::Valid));
            let said = |chunks: &Chunks| {
                let mut said: Vec<usize> =
                    chunks.chunks.iter().map(|chunk| numbers[chunk.document as usize]).collect();
                said.dedup();
                said
            };
            [said(&train), said(&valid)]
        };
        let numbers: Vec<usize> = (0..100).collect();
        let [train, valid] = of(&numbers);
        assert!(train.len() + valid.len() == 100 && (15..45).contains(&valid.len()), "{valid:?}");
        // Whatever else there is, in whatever order, and however often.
        let some: Vec<usize> = (40..100).rev().flat_map(|number| [number, number]).collect();
        let [fewer, held_out] = of(&some);
        let expected = |all: Vec<usize>| -> Vec<usize> {
            all.into_iter().filter(|number| *number >= 40).rev().collect()
        };
        assert_eq!((fewer, held_out), (expected(train), expected(valid)));
    }

    #[test]
    fn chunks_of_parts_are_those_of_all_texts_from_wherever_they_are_read() {
        let all = Chunks::held(texts(0..50)).unwrap();
        let folders: Vec<_> = (0..4).map(|_| tempfile::tempdir().unwrap()).collect();
        let mut parts = Vec::new();
        // The third part has nothing in it.
        for (folder, of) in folders.iter().zip([0..7, 7..30, 30..30, 30..50]) {
            write(folder.path(), &texts(of), &Labels::default()).unwrap();
            parts.push(Kept::open(folder.path(), vocabulary(), &mut Labels::default()).unwrap());
        }
        let kept = Chunks::kept(parts).unwrap();
        same(&kept, &all);
        let [kept, all] = [kept, all].map(|chunks| chunks.hold_out(0.5, 2).unwrap());
        kept.iter().zip(&all).for_each(|(kept, all)| same(kept, all));
    }

    /// Whether both have the same chunks, wherever they are read from.
    fn same(kept: &Chunks, all: &Chunks) {
        assert_eq!((kept.counts.clone(), kept.chunks.len()), (all.counts.clone(), all.chunks.len()));
        assert!(kept.chunks.len() > 1);
        for length in [1, 2, 7, 1000] {
            for first in 0..all.chunks.len() {
                let items = first..(first + length).min(all.chunks.len());
                let (one, other) = (kept.load(items.clone()).unwrap(), all.load(items.clone()).unwrap());
                for (kept, all) in kept.chunks[items.clone()].iter().zip(&all.chunks[items]) {
                    assert_eq!((kept.document, kept.chunk), (all.document, all.chunk));
                    let [one, other] = [one.passage(kept.document), other.passage(all.document)];
                    assert_eq!((&one.tokens, &one.chunks), (&other.tokens, &other.chunks));
                }
            }
        }
    }
}
