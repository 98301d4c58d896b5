//! Triples of each entity.

use serde::{Deserialize, Serialize};

use super::distribution::Distribution;
use crate::table::Triple;

/// Degrees by entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Degrees {
    /// Triples with the entity as their subject.
    pub outgoing: Vec<u32>,
    /// Triples with the entity as their object.
    pub incoming: Vec<u32>,
}

/// How degrees are spread over all entities.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// As subject.
    pub outgoing: Distribution,
    /// As object.
    pub incoming: Distribution,
    /// As either; a triple of an entity with itself counts twice.
    pub total: Distribution,
}

impl Degrees {
    /// Counts the triples of `entities` entities.
    #[must_use]
    pub fn of(entities: usize, triples: &[Triple]) -> Self {
        let mut degrees = Self { outgoing: vec![0; entities], incoming: vec![0; entities] };
        for triple in triples {
            degrees.outgoing[triple.subject.index()] += 1;
            degrees.incoming[triple.object.index()] += 1;
        }
        degrees
    }

    /// Both together, by entity.
    #[must_use]
    pub fn total(&self) -> Vec<u32> {
        self.outgoing.iter().zip(&self.incoming).map(|(out, into)| out.saturating_add(*into)).collect()
    }

    /// How they are spread.
    #[must_use]
    pub fn report(&self) -> Report {
        Report {
            outgoing: Distribution::of(self.outgoing.clone()),
            incoming: Distribution::of(self.incoming.clone()),
            total: Distribution::of(self.total()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::summary::testing::triples;

    #[test]
    fn subjects_and_objects_are_counted_apart() {
        let degrees = Degrees::of(4, &triples(&[(0, 0, 1), (0, 1, 1), (1, 0, 1)]));
        assert_eq!(
            (degrees.outgoing.as_slice(), degrees.incoming.as_slice()),
            (&[2, 1, 0, 0][..], &[0, 3, 0, 0][..])
        );
        assert_eq!(degrees.total(), [2, 4, 0, 0]);
        let report = degrees.report();
        assert_eq!((report.outgoing.sum, report.incoming.sum, report.total.sum), (3, 3, 6));
        assert_eq!(report.total.bins[0].count, 2);
    }
}
