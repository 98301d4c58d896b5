//! Which statements are among some triples.

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

use super::lists::Lists;
use super::statement::Statements;
use crate::sample::Triple;

/// A set of statements. They stand sorted in a list per first entity, so that a look-up touches little memory.
#[derive(Debug)]
pub struct Known(Lists<[u32; 2]>);

impl Known {
    /// What `triples` say.
    #[must_use]
    pub fn new(statements: &Statements, triples: &[Triple]) -> Self {
        let mut said: Vec<Triple> = triples.par_iter().map(|triple| statements.of(*triple)).collect();
        said.par_sort_unstable();
        said.dedup();
        Self(Lists::new(said.into_iter().map(|[first, relation, other]| (first, [relation, other]))))
    }

    /// Whether one of the triples says `said`.
    #[must_use]
    pub fn contains(&self, [first, relation, other]: Triple) -> bool {
        self.0.get(first).binary_search(&[relation, other]).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use kg::canon::relation::Turn;

    use super::*;
    use crate::negative::statement::Same;
    use crate::sample::Corpus;

    #[test]
    fn what_was_said_is_found_and_nothing_else() {
        let corpus = Corpus {
            entities: vec!["a", "b", "c", "A"],
            types: vec![&[]; 4],
            relations: vec!["r", "s", "s inverse"],
            ways: vec![(0, Turn::Sorts), (1, Turn::Stays), (1, Turn::Exchanges)],
            triples: vec![[2, 0, 0], [0, 1, 1], [3, 1, 1]],
            rows: vec![0, 1, 2],
            held: vec![],
        };
        let statements = Statements::new(&corpus, Same::Texts);
        let known = Known::new(&statements, &corpus.triples);
        let mut found = Vec::new();
        for subject in 0..4 {
            for (relation, object) in (0..3).flat_map(|r| (0..4).map(move |o| (r, o))) {
                if known.contains(statements.of([subject, relation, object])) {
                    found.push([subject, relation, object]);
                }
            }
        }
        let expected =
            [[0, 0, 2], [0, 1, 1], [1, 2, 0], [1, 2, 3], [2, 0, 0], [2, 0, 3], [3, 0, 2], [3, 1, 1]];
        assert_eq!(found, expected);
        assert!(!Known::new(&statements, &[]).contains([0, 0, 0]));
    }
}
