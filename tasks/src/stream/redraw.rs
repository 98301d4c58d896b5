//! Negatives drawn anew for an epoch in place of those that shards hold.

use std::ops::Range;

use batch::task::Task;
use kg::split::Part;
use kg::table::Graph;

use crate::Error;
use crate::builder::{Form, Sample};
use crate::negative::{Counts, Sampler};
use crate::sample::{Corpus, Triple};
use crate::shard::index::Index;
use crate::shard::items::Encoder;
use crate::shard::read::{Answers, Group};
use crate::shard::write;
use crate::token::encode::Vocabulary;

/// Makes row groups of a task with negatives, where these are those of another epoch than the shards'.
pub trait Redraw: Send + Sync + std::fmt::Debug {
    /// The rows of `task` for the triples `items` (by their number in the train part) in `epoch`; none when they are those of the shards.
    fn group(&self, task: Task, epoch: u64, items: Range<u64>) -> Option<Group>;
}

/// Draws as the shards were drawn, from the graph that they were made of.
#[derive(Debug)]
pub struct Fresh {
    /// What drew the shards' negatives.
    pub sampler: Sampler,
    /// What encoded the shards.
    pub encoder: Encoder,
    /// The triples of the train part in their order.
    pub triples: Vec<Triple>,
}

impl Fresh {
    /// Draws as the shards of `index` were drawn: from `graph`, of which `parts` has the part of each triple.
    ///
    /// # Errors
    /// When the shards were made of another graph or with another vocabulary.
    pub fn new(index: &Index, graph: &Graph, parts: &[Part], vocabulary: &Vocabulary) -> Result<Self, Error> {
        let (corpus, _) = Corpus::new(graph, parts)?;
        let encoder = Encoder::new(&corpus, vocabulary, index.layout)?;
        let triples = index.triples.get(&Part::Train).copied().unwrap_or(0);
        let checks = [
            ("triples to learn from", triples == corpus.triples.len() as u64),
            ("relations", index.relations == corpus.relations),
            ("tokens of entities' names", index.entity_texts == encoder.entities.counts),
            ("tokens of relations' names", index.relation_texts == encoder.relations.counts),
        ];
        if let Some((what, _)) = checks.into_iter().find(|(_, same)| !same) {
            return Err(Error::Unfit(format!(
                "the {what} are not those that the shards were made of: draw from the triples, split and vocabulary that belong to them"
            )));
        }
        let sampler = write::negatives(&index.negatives.config, index.negatives.seed, &corpus)?;
        Ok(Self { sampler, encoder, triples: corpus.triples })
    }
}

impl Redraw for Fresh {
    fn group(&self, task: Task, epoch: u64, items: Range<u64>) -> Option<Group> {
        // Shards hold the draw of epoch 0.
        if epoch == 0 || !self.sampler.draws_anew() {
            return None;
        }
        let (mut rows, mut sample, mut counts) = (Rows::new(), Sample::default(), Counts::default());
        for item in items {
            let (place, index) = (usize::try_from(item).ok()?, u32::try_from(item).ok()?);
            let stated = *self.triples.get(place)?;
            rows.firsts.push(rows.count());
            self.encoder.stated(task, stated, &mut sample);
            rows.push(&sample);
            for negative in self.sampler.negatives(epoch, index, &mut counts) {
                self.encoder.corrupted(task, negative.triple, &mut sample);
                rows.push(&sample);
            }
        }
        rows.firsts.push(rows.count());
        Some(rows.group(self.encoder.layout.form))
    }
}

/// Rows as a row group holds them.
struct Rows {
    firsts: Vec<u32>,
    starts: Vec<u32>,
    input_ids: Vec<i32>,
    token_type_ids: Vec<i32>,
    attention: Vec<i32>,
    classes: Vec<i32>,
}

impl Rows {
    fn new() -> Self {
        let [input_ids, token_type_ids, attention, classes] = [const { Vec::new() }; 4];
        Self { firsts: Vec::new(), starts: vec![0], input_ids, token_type_ids, attention, classes }
    }

    fn count(&self) -> u32 {
        u32::try_from(self.classes.len()).unwrap_or(u32::MAX)
    }

    fn push(&mut self, sample: &Sample) {
        let signed = |number: &u32| number.cast_signed();
        self.input_ids.extend(sample.input_ids.iter().map(signed));
        self.token_type_ids.extend(sample.token_type_ids.iter().map(signed));
        self.attention.extend(sample.attention.iter().map(signed));
        self.classes.extend(sample.class.iter().map(signed));
        self.starts.push(u32::try_from(self.input_ids.len()).unwrap_or(u32::MAX));
    }

    fn group(self, form: Form) -> Group {
        let any = |numbers: &[i32], other: i32| numbers.iter().any(|&number| number != other);
        Group {
            token_type_ids: Some(self.token_type_ids).filter(|types| any(types, 0)),
            attention: Some(self.attention).filter(|_| form == Form::Slotted),
            firsts: self.firsts,
            starts: self.starts,
            input_ids: self.input_ids,
            answers: Answers::Classes(self.classes),
        }
    }
}
