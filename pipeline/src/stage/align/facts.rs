//! The triples that an encoder learns relations from beside names: CODER's term.

use std::path::Path;

use anyhow::Context as _;
use base::rng::RngKey;
use kg::split::{Part, View, read};
use kg::table::{EntityId, Graph, Triple};
use serde::Serialize;

use super::names::Names;

/// Draws of what is no object before it is given up.
const DRAWS: u64 = 10_000;

/// Triples between entities that have names, in the order of the graph's table.
pub(super) struct Facts {
    all: Vec<Triple>,
    /// Relations of the graph.
    pub(super) relations: usize,
    pub(super) counts: Counts,
}

/// How many triples there are, and what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    /// Triples of the graph.
    triples: usize,
    /// Of these, triples of the parts that are held out.
    held_out: usize,
    /// Of the others, triples of which an end has no name that is learnt.
    without_names: usize,
    /// Triples that are learnt.
    pub(super) learnt: usize,
}

/// Names of a triple's ends, and of an entity that is no object of it.
pub(super) struct Fact<'n> {
    pub(super) names: [&'n [u32]; 3],
    pub(super) relation: u32,
}

impl Facts {
    /// Those of the part to learn from.
    ///
    /// # Errors
    /// When the split is not of the graph, or there is nothing to learn.
    pub(super) fn read(graph: &Graph, split: &Path, names: &Names) -> anyhow::Result<Self> {
        let parts = read::read(split, &View::of(graph))?.part;
        let learnt = graph.triples().iter().zip(&parts).filter(|(_, part)| **part == Part::Train);
        let learnt: Vec<Triple> = learnt.map(|(triple, _)| *triple).collect();
        let named = |triple: &&Triple| [triple.subject, triple.object].iter().all(|end| names.has(*end));
        let mut all: Vec<Triple> = learnt.iter().filter(named).copied().collect();
        all.sort_unstable_by_key(numbers);
        let triples = graph.triples().len();
        let counts = Counts {
            triples,
            held_out: triples - learnt.len(),
            without_names: learnt.len() - all.len(),
            learnt: all.len(),
        };
        anyhow::ensure!(
            !all.is_empty(),
            "[align.relations] has nothing to learn: of {triples} triples, {} are held out, and of the others none has names at both ends that align.types allows",
            counts.held_out
        );
        Ok(Self { all, relations: graph.relations().len(), counts })
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// One of them with names as `drawn` says.
    ///
    /// # Errors
    /// When the subject has the relation to whatever is drawn.
    pub(super) fn draw<'n>(&self, at: usize, names: &'n Names, drawn: RngKey) -> anyhow::Result<Fact<'n>> {
        let Triple { subject, relation, object } = self.all[at];
        let is_stated = |other: EntityId| {
            self.all.binary_search_by_key(&(subject.0, relation.0, other.0), numbers).is_ok()
        };
        let mut others = (0..DRAWS).map(|draw| names.any(drawn.named("other").at(draw)));
        let other = others.find(|other| *other != subject && !is_stated(*other));
        let other = other.with_context(|| {
            format!(
                "[align.relations]: entity {} has relation {} to all that was drawn",
                subject.0, relation.0
            )
        })?;
        let name = |end: EntityId, which: &str| names.one_of(end, drawn.named(which));
        Ok(Fact {
            names: [name(subject, "subject"), name(object, "object"), name(other, "name")],
            relation: relation.0,
        })
    }
}

fn numbers(triple: &Triple) -> (u32, u32, u32) {
    (triple.subject.0, triple.relation.0, triple.object.0)
}
