//! Pairs of names as the items of the tasks on names.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use base::rng::RngKey;
use batch::task::Task;
use kg::split::Part;

use super::items::{Block, Items};
use super::rows::Rows;
use crate::Error;
use crate::builder::spec::{Drawn, MadeOf, Pair, Pairs};
use crate::builder::{Layout, Sample};
use crate::names::Names;
use crate::task::spec;
use crate::token::encode::{EncodedTexts, Special, Vocabulary};

/// The tasks on names of one folder, with all that their rows are made of.
#[derive(Debug)]
pub(crate) struct OfNames {
    drawn: Vec<(Task, Part, Drawn)>,
    /// The names that rows show, sorted.
    shown: Vec<u32>,
    /// Their tokens, in this order.
    encoded: EncodedTexts,
}

/// What was drawn for a task, by name, for the index.
pub(crate) type Counts = BTreeMap<String, u64>;

impl OfNames {
    /// Draws the pairs of all tasks on names among `tasks`, for training and each held-out part, and encodes their names.
    pub(crate) fn draw(
        tasks: &[Task],
        names: &Names,
        vocabulary: &Vocabulary,
        layout: &Layout,
        seed: RngKey,
    ) -> Result<Self, Error> {
        let mut drawn = Vec::new();
        for &task in tasks {
            let MadeOf::Items { pairs: Some(Pairs { draw, .. }) } = spec(task).of else { continue };
            for part in [Part::Train, Part::Valid, Part::Test] {
                drawn.push((task, part, draw(names, part, seed.named(task.name()))?));
            }
        }
        let pairs = drawn.iter().flat_map(|(_, _, drawn): &(Task, Part, Drawn)| &drawn.pairs);
        let mut shown: Vec<u32> = pairs.flat_map(Pair::names).collect();
        shown.sort_unstable();
        shown.dedup();
        let texts: Vec<&str> = shown.iter().map(|&name| names.get(name).text.as_str()).collect();
        let encoded = vocabulary.encode_all(&texts, layout.limits.node)?;
        Ok(Self { drawn, shown, encoded })
    }

    /// What was drawn for each task, over all its parts.
    pub(crate) fn counts(&self, names: &Names) -> BTreeMap<Task, Counts> {
        let mut of: BTreeMap<Task, Counts> = BTreeMap::new();
        for (task, _, drawn) in &self.drawn {
            let counts = of
                .entry(*task)
                .or_insert_with(|| Counts::from([("entities_left_out".to_owned(), names.left_out())]));
            for (name, count) in &drawn.counts {
                *counts.entry(name.clone()).or_default() += count;
            }
        }
        of
    }

    /// How many of the names that each task shows have each licence level.
    pub(crate) fn levels(&self, names: &Names) -> BTreeMap<Task, BTreeMap<Option<u8>, u64>> {
        let mut levels: BTreeMap<Task, BTreeMap<Option<u8>, u64>> = BTreeMap::new();
        let mut seen = HashSet::new();
        for (task, _, drawn) in &self.drawn {
            for name in drawn.pairs.iter().flat_map(Pair::names).filter(|&name| seen.insert((*task, name))) {
                *levels.entry(*task).or_default().entry(names.get(name).level).or_default() += 1;
            }
        }
        levels
    }

    fn tokens(&self, name: u32) -> &[u32] {
        self.shown.binary_search(&name).map_or(&[], |place| self.encoded.get(place))
    }

    /// The items of every task and part, in this order.
    pub(crate) fn items<'a>(
        &'a self,
        names: &'a Names,
        layout: &'a Layout,
        special: Special,
    ) -> Vec<PairItems<'a>> {
        let of = |(task, part, drawn): &'a (Task, Part, Drawn)| PairItems {
            task: *task,
            part: *part,
            pairs: &drawn.pairs,
            of: self,
            names,
            layout,
            special,
        };
        self.drawn.iter().map(of).collect()
    }
}

impl Pair {
    /// The names that its rows show.
    fn names(&self) -> impl Iterator<Item = u32> {
        [self.first, self.second].into_iter().chain(self.negative)
    }
}

/// The pairs of one task and part.
#[derive(Debug)]
pub(crate) struct PairItems<'a> {
    task: Task,
    part: Part,
    pairs: &'a [Pair],
    of: &'a OfNames,
    names: &'a Names,
    layout: &'a Layout,
    special: Special,
}

impl Items for PairItems<'_> {
    fn task(&self) -> Task {
        self.task
    }

    fn part(&self) -> Part {
        self.part
    }

    fn len(&self) -> usize {
        self.pairs.len()
    }

    fn block(&self, _: Range<usize>) -> Result<Box<dyn Block + '_>, Error> {
        Ok(Box::new(self))
    }
}

impl Block for &PairItems<'_> {
    fn build(&self, item: usize, sample: &mut Sample, rows: &mut Rows) {
        let MadeOf::Items { pairs: Some(Pairs { build, .. }) } = spec(self.task).of else { return };
        let Pair { first, second, negative } = self.pairs[item];
        for (other, class) in std::iter::once((second, 1)).chain(negative.map(|negative| (negative, 0))) {
            build(sample, self.layout, self.special, [first, other].map(|name| self.of.tokens(name)), class);
            let [one, other] = [first, other].map(|name| self.names.get(name));
            rows.push(&[one.entity, one.row, other.row], sample, None);
        }
    }
}
