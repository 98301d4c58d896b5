//! Compares the parts of rows that say the same.

use super::kind::{Kind, Leak};
use super::statement::Row;
use crate::split::{Part, Together};

/// Which parts are held out from which.
const FROM: [(Part, Part); 3] =
    [(Part::Valid, Part::Train), (Part::Test, Part::Train), (Part::Test, Part::Valid)];

/// Every leak, sorted. `rows` are sorted.
pub(super) fn leaks(rows: &[Row], together: Together) -> Vec<Leak> {
    let mut leaks = Vec::new();
    for pair in rows.chunk_by(|a, b| a.texts == b.texts) {
        if pair.iter().all(|row| row.part == pair[0].part) {
            continue;
        }
        for same in pair.chunk_by(|a, b| a.said == b.said) {
            for (held, shown) in FROM {
                let (held, shown) = (of_part(same, held), of_part(same, shown));
                leaks.extend(held.iter().filter_map(|row| said(row, shown)));
            }
        }
        if together == Together::Pair {
            FROM.iter().for_each(|&(held, shown)| over_the_pair(pair, held, shown, &mut leaks));
        }
    }
    leaks.sort_unstable();
    leaks
}

/// Those of rows that say the same that are in one part.
fn of_part(same: &[Row], part: Part) -> &[Row] {
    equal(same, |row| row.part.cmp(&part))
}

/// The rows of a sorted slice for which `order` says equal.
fn equal(rows: &[Row], order: impl Fn(&Row) -> std::cmp::Ordering) -> &[Row] {
    let start = rows.partition_point(|row| order(row).is_lt());
    let rest = rows.get(start..).unwrap_or_default();
    rest.get(..rest.partition_point(|row| order(row).is_eq())).unwrap_or_default()
}

/// The leak of `held` through rows that say the same, if there are any.
fn said(held: &Row, shown: &[Row]) -> Option<Leak> {
    let first = shown.first()?;
    let (kind, witness) = plainest(held, shown).unwrap_or((Kind::SameText, first));
    Some(leak(held, witness, kind, shown.len()))
}

/// The plainest kind among rows that say the same and are about the same two entities.
fn plainest<'a>(held: &Row, shown: &'a [Row]) -> Option<(Kind, &'a Row)> {
    let same_ids = equal(shown, |row| row.ids.cmp(&held.ids));
    let with = |turned: bool| {
        let key = (turned, held.wording, held.relation);
        equal(same_ids, |row| (row.turned, row.wording, row.relation).cmp(&key)).first()
    };
    if let Some(row) = with(held.turned) {
        return Some((Kind::Exact, row));
    }
    // One text twice reads the same both ways round, whatever the relation.
    if held.texts.0 == held.texts.1 {
        return None;
    }
    if let Some(row) = with(!held.turned) {
        return Some((Kind::Symmetric, row));
    }
    // What stands the same way round with the same wording is the same text under another relation; all else went by an inverse.
    let worded = (held.turned, held.wording);
    let by_inverse = |row: &&Row| (row.turned, row.wording) != worded;
    let ends = [same_ids.first(), same_ids.last()];
    ends.into_iter().flatten().find(by_inverse).map(|row| (Kind::Inverse, row))
}

/// Adds the leaks of rows whose own statement the other part lacks, but whose two texts it has.
fn over_the_pair(pair: &[Row], held: Part, shown: Part, leaks: &mut Vec<Leak>) {
    let mut first = None;
    let mut times = 0;
    for row in pair.iter().filter(|row| row.part == shown) {
        first = first.or(Some(row));
        times += 1;
    }
    let Some(first) = first else { return };
    for same in pair.chunk_by(|a, b| a.said == b.said) {
        if of_part(same, shown).is_empty() {
            leaks.extend(of_part(same, held).iter().map(|row| leak(row, first, Kind::SamePair, times)));
        }
    }
}

fn leak(held: &Row, shown: &Row, kind: Kind, times: usize) -> Leak {
    Leak {
        held: held.row,
        held_part: held.part,
        shown_part: shown.part,
        kind,
        shown: shown.row,
        times: crate::table::id::dense(times),
    }
}
