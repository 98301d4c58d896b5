//! Which samples share a row.

use std::collections::BTreeMap;

use crate::Place;

/// A place for each sample: longest first, each into the fullest row that has room (best fit decreasing), rows of `width` positions;
/// a longer sample gets a row of its own. Equal lengths give equal places.
#[must_use]
pub fn best_fit(lengths: &[usize], width: usize) -> Vec<Place> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&sample| (std::cmp::Reverse(lengths[sample]), sample));
    let mut places = vec![Place { row: 0, start: 0, len: 0 }; lengths.len()];
    // Rows by the room that is left in them, the smallest number first.
    let mut room: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let mut rows = 0;
    for sample in order {
        let len = lengths[sample];
        let fullest = room.range((len, 0)..).next().map(|(&(left, row), &start)| (left, row, start));
        let (left, row, start) = fullest.unwrap_or_else(|| {
            rows += 1;
            (width.max(len), rows - 1, 0)
        });
        room.remove(&(left, row));
        room.insert((left - len, row), start + len);
        places[sample] = Place { row, start, len };
    }
    places
}

/// A row for each sample.
#[must_use]
pub fn alone(lengths: &[usize]) -> Vec<Place> {
    lengths.iter().enumerate().map(|(row, &len)| Place { row, start: 0, len }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_filled_without_overlap_and_nothing_is_lost() {
        let lengths = [3, 9, 4, 4, 1, 12, 5, 2];
        let places = best_fit(&lengths, 10);
        let rows = 1 + places.iter().map(|place| place.row).max().unwrap();
        assert_eq!(rows, 4, "28 of 30 positions, and the one that is longer than a row: {places:?}");
        let mut taken = vec![vec![false; 12]; rows];
        for (place, length) in places.iter().zip(lengths) {
            assert_eq!(place.len, length);
            for cell in &mut taken[place.row][place.start..place.start + place.len] {
                assert!(!std::mem::replace(cell, true), "two samples in one cell: {places:?}");
            }
        }
        assert!(places.iter().all(|place| place.start + place.len <= 10 || place.len == 12));
    }

    #[test]
    fn alone_every_sample_begins_its_row() {
        assert_eq!(alone(&[2, 1]), [Place { row: 0, start: 0, len: 2 }, Place { row: 1, start: 0, len: 1 }]);
    }
}
