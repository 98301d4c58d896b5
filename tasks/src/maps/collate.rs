//! Samples with maps to one batch: token ids padded, maps expanded.

use base::read::ReadError;
use batch::Place;
use batch::maps::expand::{Map, expand};
use batch::maps::sample::Row;

use crate::stream::collate::{Fill, segments};

/// Samples in rows of positions, with their maps. Tables have rows x positions cells, row-major; a sample stands in its row as
/// `[real | auxiliary]`, and what is behind the last sample of a row is padding.
#[derive(Debug, Clone, PartialEq)]
pub struct Mapped {
    /// Rows (B).
    pub rows: usize,
    /// Positions in a row (T): the longest row.
    pub width: usize,
    /// Where each sample stands, in the order in which they were given.
    pub samples: Vec<Place>,
    /// Tokens of each sample that are real; the rest of it are auxiliary terms.
    pub real: Vec<usize>,
    /// Token ids, padding included.
    pub input_ids: Vec<u32>,
    /// 1 for a token, 0 for padding.
    pub attention_mask: Vec<u32>,
    /// Segment of each token (0 or 1), BERT's token type.
    pub token_type_ids: Vec<u32>,
    /// Position of each token in its sample, from 0.
    pub position_ids: Vec<u32>,
    /// Number of the sample in its row, from 1; 0 for padding.
    pub segment_ids: Vec<u32>,
    /// Rows x maps x T x T numbers, row-major, the maps in the order asked for.
    pub maps: Vec<f32>,
}

/// Samples as one batch, padded with the token `padding`, with the `maps` asked for.
///
/// # Errors
/// When a sample's numbers do not fit each other.
pub fn collate(samples: &[Row<'_>], maps: &[Map], fill: Fill, padding: u32) -> Result<Mapped, ReadError> {
    let lengths: Vec<usize> = samples.iter().map(Row::tokens).collect();
    let places = fill.places(&lengths);
    let rows = places.iter().map(|place| place.row + 1).max().unwrap_or(0);
    let width = places.iter().map(|place| place.start + place.len).max().unwrap_or(0);
    let placed: Vec<(Place, Row<'_>)> = places.iter().copied().zip(samples.iter().copied()).collect();
    // Whatever is unsound is refused here, so that all lists below are as long as their sample.
    let maps = expand(&placed, maps, rows, width)?;
    let cells = rows * width;
    let [mut input_ids, mut attention_mask] = [vec![padding; cells], vec![0; cells]];
    let [mut token_type_ids, mut position_ids] = [vec![0; cells], vec![0; cells]];
    for (place, sample) in &placed {
        let start = place.row * width + place.start;
        let here = start..start + place.len;
        attention_mask[here.clone()].fill(1);
        let tokens = sample.input_ids.iter().map(|id| id.cast_unsigned());
        input_ids[here.clone()].iter_mut().zip(tokens).for_each(|(cell, id)| *cell = id);
        let types = sample.token_types.iter().map(|kind| u32::from(kind.cast_unsigned()));
        token_type_ids[here.clone()].iter_mut().zip(types).for_each(|(cell, kind)| *cell = kind);
        position_ids[here].iter_mut().zip(0..).for_each(|(cell, at)| *cell = at);
    }
    let real = samples.iter().map(|sample| usize::from(sample.real)).collect();
    let segment_ids = segments(&places, width, cells);
    Ok(Mapped {
        rows,
        width,
        samples: places,
        real,
        input_ids,
        attention_mask,
        token_type_ids,
        position_ids,
        segment_ids,
        maps,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use batch::maps::sample::example;

    #[test]
    fn ids_are_padded_and_maps_stand_where_their_samples_do() {
        let long = example();
        let mut short = example();
        short.input_ids.truncate(3);
        short.token_types.truncate(3);
        short.words.truncate(3);
        let unsound = collate(&[long.row(), short.row()], &[Map::Term], Fill::One, 9).unwrap_err();
        assert!(unsound.to_string().starts_with("sample 1 of the batch"), "{unsound}");

        let two = collate(&[long.row(), long.row()], &[Map::Entity, Map::Term], Fill::One, 9).unwrap();
        let tokens = long.input_ids.len();
        assert_eq!((two.rows, two.width, two.real.as_slice()), (2, tokens, &[usize::from(long.real); 2][..]));
        let ids: Vec<u32> = long.input_ids.iter().map(|id| id.cast_unsigned()).collect();
        assert_eq!(two.input_ids, [ids.clone(), ids.clone()].concat());
        assert_eq!(two.maps.len(), 2 * 2 * tokens * tokens);
        assert_eq!(two.maps[..2 * tokens * tokens], two.maps[2 * tokens * tokens..]);

        let fill = Fill::Packed(2 * tokens + 1);
        let packed = collate(&[long.row(); 3], &[Map::Entity, Map::Term], fill, 9).unwrap();
        assert_eq!((packed.rows, packed.width), (2, 2 * tokens));
        assert_eq!(packed.input_ids[3 * tokens..], vec![9; tokens], "padding behind the third");
        assert_eq!(packed.attention_mask.iter().sum::<u32>() as usize, 3 * tokens);
        assert_eq!(packed.segment_ids[tokens - 1..=tokens], [1, 2]);
        assert_eq!(packed.position_ids[tokens], 0);
        for (sample, place) in packed.samples.iter().enumerate() {
            for map in 0..2 {
                for at in 0..tokens * tokens {
                    let (down, across) = (place.start + at / tokens, place.start + at % tokens);
                    let cell = ((place.row * 2 + map) * packed.width + down) * packed.width + across;
                    assert_eq!(
                        packed.maps[cell],
                        two.maps[map * tokens * tokens + at],
                        "{sample} {map} {at}"
                    );
                }
            }
        }
    }

    #[test]
    fn no_sample_is_an_empty_batch() {
        let none = collate(&[], &Map::ALL, Fill::One, 0).unwrap();
        assert_eq!((none.rows, none.width, none.maps.len()), (0, 0, 0));
    }
}
