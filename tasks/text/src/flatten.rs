//! Entities that may overlap become spans that do not: the longest stay.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Entity, Span, SpanTally};

/// What becomes of entities of several pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Discontinuous {
    /// They become everything from their first to their last byte.
    Hull,
    /// They are dropped and counted.
    Drop,
}

/// Spans of a document without overlaps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flat {
    /// The spans, in order.
    pub spans: Vec<Span>,
    /// For each span, which of the entities it was: its concepts are found there.
    pub from: Vec<usize>,
    /// What became of the entities.
    pub tally: SpanTally,
}

/// Why an entity is left out that shares a word with a longer one.
pub const OVERLAP: &str = "overlaps a longer entity";
/// Why a discontinuous entity is left out.
pub const PIECES: &str = "entity of several pieces";

/// The longest entities that do not overlap: the longest of all stays, then the longest that shares no byte with it, and so on; of
/// equally long ones the first. O(n log n).
#[must_use]
pub fn longest(entities: &[Entity], discontinuous: Discontinuous) -> Flat {
    let mut tally = SpanTally { dropped: [(OVERLAP, 0), (PIECES, 0)].into(), ..SpanTally::default() };
    let mut hulls = Vec::with_capacity(entities.len());
    for (number, entity) in entities.iter().enumerate() {
        tally.read += 1;
        let ends = entity.pieces.first().zip(entity.pieces.last());
        match ends.map(|(first, last)| first.start..last.end) {
            Some(hull) if entity.pieces.len() == 1 || discontinuous == Discontinuous::Hull => {
                hulls.push((hull, number));
            }
            _ => *tally.dropped.entry(PIECES).or_insert(0) += 1,
        }
    }
    hulls.sort_by_key(|(hull, number)| (Reverse(hull.len()), hull.start, *number));
    // Those kept lie apart, so that the last of them that begins before a hull's end decides.
    let mut kept: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for (hull, number) in hulls {
        let before = kept.range(..hull.end).next_back();
        if before.is_some_and(|(_, (end, _))| *end > hull.start) {
            *tally.dropped.entry(OVERLAP).or_insert(0) += 1;
        } else {
            tally.kept += 1;
            kept.insert(hull.start, (hull.end, number));
        }
    }
    let mut flat = Flat { tally, ..Flat::default() };
    for (start, (end, number)) in kept {
        flat.spans.push(Span { bytes: start..end, label: entities[number].label });
        flat.from.push(number);
    }
    flat
}

#[cfg(test)]
mod tests {
    use super::super::{Label, Labels};
    use super::*;
    use base::rng::RngKey;

    fn entity(pieces: &[(usize, usize)], label: Label) -> Entity {
        let pieces = pieces.iter().map(|&(start, end)| start..end).collect();
        Entity { pieces, label, concepts: Vec::new() }
    }

    fn kept(flat: &Flat) -> Vec<(usize, usize, usize)> {
        flat.spans.iter().zip(&flat.from).map(|(s, &from)| (s.bytes.start, s.bytes.end, from)).collect()
    }

    #[test]
    fn the_longest_stay_and_of_equals_the_first() {
        let label = Labels::default().intern("x").unwrap();
        let all: Vec<Entity> = [(0, 4), (2, 4), (3, 9), (4, 6), (9, 10), (9, 10), (10, 12), (11, 13)]
            .map(|place| entity(&[place], label))
            .into();
        let flat = longest(&all, Discontinuous::Drop);
        assert_eq!(kept(&flat), [(3, 9, 2), (9, 10, 4), (10, 12, 6)]);
        let tally = flat.tally;
        assert_eq!((tally.read, tally.kept, tally.dropped[OVERLAP], tally.dropped[PIECES]), (8, 3, 5, 0));
    }

    #[test]
    fn entities_of_several_pieces_are_whole_or_gone() {
        let mut labels = Labels::default();
        let (x, y) = (labels.intern("x").unwrap(), labels.intern("y").unwrap());
        let all = [entity(&[(0, 2), (8, 9)], x), entity(&[(3, 6)], y)];
        let hull = longest(&all, Discontinuous::Hull);
        assert_eq!((kept(&hull), hull.spans[0].label), (vec![(0, 9, 0)], x));
        let flat = longest(&all, Discontinuous::Drop);
        assert_eq!((kept(&flat), flat.tally.dropped[PIECES]), (vec![(3, 6, 1)], 1));
        assert_eq!(flat.spans[0].label, y);
        assert_eq!(longest(&[], Discontinuous::Hull).spans, []);
    }

    /// Against the rule as it is said: again and again the longest that fits, the first of equals.
    #[test]
    fn it_is_what_the_rule_says() {
        let label = Labels::default().intern("x").unwrap();
        for case in 0..200 {
            let number = |n, bound| usize::try_from(RngKey::new(case).at(n).below(bound)).unwrap();
            let place = |n: u64| (number(2 * n, 30), number(2 * n + 1, 8) + 1);
            let all: Vec<Entity> = (0..12_u64)
                .map(place)
                .map(|(start, length)| entity(&[(start, start + length)], label))
                .collect();
            let mut expected: Vec<(usize, usize, usize)> = Vec::new();
            let apart = |chosen: &[(usize, usize, usize)], e: &Entity| {
                chosen.iter().all(|&(start, end, _)| e.pieces[0].end <= start || end <= e.pieces[0].start)
            };
            while let Some((number, e)) = all
                .iter()
                .enumerate()
                .filter(|(_, e)| apart(&expected, e))
                .min_by_key(|(n, e)| (Reverse(e.pieces[0].len()), e.pieces[0].start, *n))
            {
                expected.push((e.pieces[0].start, e.pieces[0].end, number));
            }
            expected.sort_unstable();
            assert_eq!(kept(&longest(&all, Discontinuous::Drop)), expected, "{case}");
        }
    }
}
