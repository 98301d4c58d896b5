//! What the rows of a task are made from, item after item: triples, pairs of names, chunks of text.

use std::ops::Range;

use batch::task::Task;

use super::rows::Rows;
use crate::Error;
use crate::builder::spec::MadeOf;
use crate::builder::{Columns, Layout, Sample, question};
use crate::negative::Sampler;
use crate::sample::{Corpus, Slot, Triple};
use crate::task::{has_negatives, spec};
use crate::token::encode::{EncodedTexts, Special, Vocabulary};
use kg::split::Part;

/// The items of one task and part.
pub trait Items: Sync {
    /// The task that the rows belong to.
    fn task(&self) -> Task;

    /// What they are for.
    fn part(&self) -> Part;

    /// Number of items.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What builds the items of a range, with all that they are made of. Ranges are asked for one after the other, so that no more need be in memory than one
    /// is made of.
    ///
    /// # Errors
    /// When what they are made of cannot be read.
    fn block(&self, items: Range<usize>) -> Result<Box<dyn Block + '_>, Error>;
}

/// What builds items, each alone, so that threads may share the work.
pub trait Block: Sync {
    /// Adds the rows of item `item`, the true one first where rows are true or false; `sample` is scratch.
    fn build(&self, item: usize, sample: &mut Sample, rows: &mut Rows);
}

/// Encoded names and how they are put together.
#[derive(Debug)]
pub struct Encoder {
    /// Entities' names by id.
    pub entities: EncodedTexts,
    /// Relations' names by id.
    pub relations: EncodedTexts,
    /// The special tokens.
    pub special: Special,
    /// How columns stand in a row.
    pub layout: Layout,
}

impl Encoder {
    /// Encodes all names of a corpus.
    ///
    /// # Errors
    /// When the tokenizer refuses one, or the layout is none for a vocabulary of this family.
    pub fn new(corpus: &Corpus<'_>, vocabulary: &Vocabulary, layout: Layout) -> Result<Self, Error> {
        layout.fits(vocabulary.special().family)?;
        Ok(Self {
            entities: vocabulary.encode_all(&corpus.entities, layout.limits.node)?,
            relations: vocabulary.encode_all(&corpus.relations, layout.limits.edge)?,
            special: vocabulary.special(),
            layout,
        })
    }

    fn columns(&self, triple: Triple) -> Columns<'_> {
        let [subject, relation, object] = triple;
        let entity = |id: u32| self.entities.get(id as usize);
        [entity(subject), self.relations.get(relation as usize), entity(object)]
    }

    /// The row of a stated triple.
    pub fn stated(&self, task: Task, triple: Triple, sample: &mut Sample) {
        if let MadeOf::Triples { stated, .. } = spec(task).of {
            stated(sample, &self.layout, self.special, self.columns(triple), triple);
        }
    }

    /// The row of a triple with a blank in place of the column `slot`.
    pub fn question(&self, slot: Slot, triple: Triple, sample: &mut Sample) {
        question::build(sample, &self.layout, self.special, self.columns(triple), slot);
    }

    /// The names that may stand in the column `slot`, by id.
    #[must_use]
    pub fn names(&self, slot: Slot) -> &EncodedTexts {
        if slot == Slot::Relation { &self.relations } else { &self.entities }
    }

    /// The row of one of them.
    pub fn name(&self, slot: Slot, id: u32, sample: &mut Sample) {
        question::name(sample, self.special, self.names(slot).get(id as usize));
    }

    /// The row of a negative, of a task that has such.
    pub fn corrupted(&self, task: Task, triple: Triple, sample: &mut Sample) {
        if let MadeOf::Triples { negative: Some(negative), .. } = spec(task).of {
            negative(sample, &self.layout, self.special, self.columns(triple), triple);
        }
    }
}

/// The triples of one part as a graph task's items.
#[derive(Debug)]
pub struct Triples<'a> {
    /// The task.
    pub task: Task,
    /// The part.
    pub part: Part,
    /// The triples in the order of the triple table.
    pub triples: &'a [Triple],
    /// Row of each in the triple table.
    pub rows: &'a [u32],
    /// Names to tokens.
    pub encoder: &'a Encoder,
    /// Draws negatives of these triples.
    pub sampler: &'a Sampler,
    /// Row in the triple table of each triple that can be a donor.
    pub donors: &'a [u32],
}

impl Items for Triples<'_> {
    fn task(&self) -> Task {
        self.task
    }

    fn part(&self) -> Part {
        self.part
    }

    fn len(&self) -> usize {
        self.triples.len()
    }

    fn block(&self, _: Range<usize>) -> Result<Box<dyn Block + '_>, Error> {
        Ok(Box::new(self))
    }
}

impl Block for &Triples<'_> {
    fn build(&self, item: usize, sample: &mut Sample, rows: &mut Rows) {
        let origin = &[self.rows[item]];
        self.encoder.stated(self.task, self.triples[item], sample);
        rows.push(origin, sample, None);
        if !has_negatives(self.task) {
            return;
        }
        // Epoch 0 is what shards hold; a stream may draw those of later epochs itself.
        let index = u32::try_from(item).unwrap_or(u32::MAX);
        for negative in self.sampler.negatives_of(self.triples[item], 0, index, &mut rows.counts) {
            self.encoder.corrupted(self.task, negative.triple, sample);
            let donor = negative.donor.and_then(|donor| self.donors.get(donor as usize)).copied();
            rows.push(origin, sample, Some((&negative, donor)));
        }
    }
}
