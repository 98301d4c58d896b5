//! Rows to squares: B x k x T x T numbers for the maps that are asked for.
//!
//! Subwords have their word's value. `[CLS]`, `[SEP]` and padding are 0 everywhere, auxiliary terms in the entity, phrase and graph maps.

use std::ops::Range;

use base::read::ReadError;
use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;
use serde::{Deserialize, Serialize};

use super::sample::{NO_WORD, Row};
use crate::Place;

/// A kind of map.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Map {
    /// 1 where both words are in the same mention, on its diagonal too.
    Entity,
    /// 1 where both words are in the same phrase, on its diagonal too.
    Phrase,
    /// How relevant the words are to each other; 1 for the same word.
    Term,
    /// 1 where the mentions of the words are of entities that a triple connects.
    Graph,
}

impl Map {
    /// All maps, in their usual order.
    pub const ALL: [Map; 4] = [Map::Entity, Map::Phrase, Map::Term, Map::Graph];

    /// The name in configs and titles.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Map::Entity => "entity",
            Map::Phrase => "phrase",
            Map::Term => "term",
            Map::Graph => "graph",
        }
    }
}

/// The `maps` of a batch of `rows` rows and `width` positions (T), in the order asked for: rows x maps x T x T, row-major. Each sample
/// stands where its place says; samples that share a row have no value for each other.
///
/// # Errors
/// When a sample stands outside of the batch, or its numbers do not fit each other.
pub fn expand(
    samples: &[(Place, Row<'_>)],
    maps: &[Map],
    rows: usize,
    width: usize,
) -> Result<Vec<f32>, ReadError> {
    let mut cells = vec![0.0; rows * maps.len() * width * width];
    expand_into(&mut cells, samples, maps, rows, width)?;
    Ok(cells)
}

/// As [`expand`], over whatever stands in `cells`.
///
/// # Errors
/// As [`expand`], and when `cells` are more or fewer.
pub fn expand_into(
    cells: &mut [f32],
    samples: &[(Place, Row<'_>)],
    maps: &[Map],
    rows: usize,
    width: usize,
) -> Result<(), ReadError> {
    let (found, expected) = (cells.len(), rows * maps.len() * width * width);
    if found != expected {
        let (found, expected) =
            (format!("{found} numbers"), format!("{expected}: rows x maps x width x width"));
        return Err(ReadError::new("room in the batch", found, expected, ""));
    }
    let mut by_row: Vec<Vec<(usize, Row<'_>)>> = vec![Vec::new(); rows];
    for (sample, (place, row)) in samples.iter().enumerate() {
        let Place { row: of, start, .. } = *place;
        let tokens = row.tokens();
        let inside = start.checked_add(tokens).is_some_and(|end| end <= width);
        let slot = by_row.get_mut(of).filter(|_| inside);
        let slot = slot.ok_or_else(|| {
            let found = format!("its {tokens} tokens at position {start} of row {of}");
            let problem = format!("{found} are outside of {rows} rows of {width} positions");
            ReadError::new(format!("sample {sample} of the batch"), problem, "", "")
        })?;
        row.check().map_err(|error| {
            let place = format!("sample {sample} of the batch: {}", error.place());
            ReadError::new(place, error.found(), error.expected(), "")
        })?;
        if tokens > 0 {
            slot.push((start, *row));
        }
    }
    if expected == 0 {
        return Ok(());
    }
    cells.par_chunks_mut(width * width).enumerate().for_each(|(square, cells)| {
        cells.fill(0.0);
        let map = maps[square % maps.len()];
        for (start, row) in &by_row[square / maps.len()] {
            // From the first cell of its block, rows are as far apart as before.
            draw(&mut Square { cells: &mut cells[start * width + start..], width }, map, row);
        }
    });
    Ok(())
}

/// The block of a sample in a row's square.
struct Square<'a> {
    cells: &'a mut [f32],
    width: usize,
}

impl Square<'_> {
    /// Sets the cells where `down` and `across` meet.
    fn fill(&mut self, down: &Range<usize>, across: &Range<usize>, value: f32) {
        for row in down.clone() {
            let start = row * self.width;
            self.cells[start + across.start..start + across.end].fill(value);
        }
    }

    /// 1 for tokens of the same number.
    fn same(&mut self, runs: &Runs) {
        for number in 0..runs.numbers() {
            let all = runs.of(number);
            for down in all {
                all.iter().for_each(|across| self.fill(down, across, 1.0));
            }
        }
    }

    /// A pair's value, both ways round.
    fn pair(&mut self, runs: &Runs, first: u16, second: u16, value: f32) {
        for down in runs.of(first.into()) {
            for across in runs.of(second.into()) {
                self.fill(down, across, value);
                self.fill(across, down, value);
            }
        }
    }
}

fn draw(square: &mut Square<'_>, map: Map, row: &Row<'_>) {
    let counted = |numbers: &[u16], word: u16| numbers[usize::from(word)].checked_sub(1);
    match map {
        Map::Entity => square.same(&Runs::new(row, |word| counted(row.entities, word))),
        Map::Phrase => square.same(&Runs::new(row, |word| counted(row.phrases, word))),
        Map::Term => {
            let runs = Runs::new(row, |word| Some(row.types[usize::from(word)]));
            square.same(&runs);
            let ((first, second), relevance) = row.terms;
            for ((&first, &second), &value) in first.iter().zip(second).zip(relevance) {
                square.pair(&runs, first, second, value);
            }
        }
        Map::Graph => {
            let runs = Runs::new(row, |word| counted(row.entities, word));
            let (first, second) = row.graph;
            for (first, second) in first.iter().zip(second) {
                square.pair(&runs, first - 1, second - 1, 1.0);
            }
        }
    }
}

/// Where the tokens of each number stand: as few ranges as possible.
struct Runs {
    starts: Vec<usize>,
    ranges: Vec<Range<usize>>,
}

impl Runs {
    /// Runs of tokens by the number of their word, which is less than the number of words; a word without one has no run.
    fn new(row: &Row<'_>, number: impl Fn(u16) -> Option<u16>) -> Self {
        let mut found: Vec<(u16, Range<usize>)> = Vec::new();
        for (at, &word) in row.words.iter().enumerate() {
            if word == NO_WORD {
                continue;
            }
            let Some(of) = number(word) else { continue };
            match found.last_mut().filter(|(last, run)| *last == of && run.end == at) {
                Some((_, run)) => run.end = at + 1,
                None => found.push((of, at..at + 1)),
            }
        }
        found.sort_by_key(|(of, _)| *of);
        let mut starts = vec![0; row.word_count() + 1];
        found.iter().for_each(|(of, _)| starts[usize::from(*of) + 1] += 1);
        for number in 1..starts.len() {
            starts[number] += starts[number - 1];
        }
        Self { starts, ranges: found.into_iter().map(|(_, run)| run).collect() }
    }

    fn numbers(&self) -> usize {
        self.starts.len() - 1
    }

    fn of(&self, number: usize) -> &[Range<usize>] {
        &self.ranges[self.starts[number]..self.starts[number + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::rng::RngKey;

    use crate::maps::sample::{Pairs, Sample, Terms, example};
    use crate::pack;

    /// A square as lines of digits, tenths.
    fn lines(cells: &[f32], width: usize) -> Vec<String> {
        let line = |row: &[f32]| row.iter().map(|v| format!("{:.0}", v * 8.0)).collect::<Vec<_>>().concat();
        cells.chunks(width).map(line).collect()
    }

    /// What the maps mean, cell by cell.
    fn cell(map: Map, row: &Row<'_>, down: usize, across: usize) -> f32 {
        let word =
            |at: usize| row.words.get(at).filter(|&&word| word != NO_WORD).map(|&word| usize::from(word));
        let (Some(a), Some(b)) = (word(down), word(across)) else { return 0.0 };
        let same = |numbers: &[u16]| f32::from(u8::from(numbers[a] == numbers[b] && numbers[a] != 0));
        let find = |(first, second): (&[u16], &[u16]), a: u16, b: u16| {
            first.iter().zip(second).position(|(&x, &y)| (x, y) == (a.min(b), a.max(b)))
        };
        match map {
            Map::Entity => same(row.entities),
            Map::Phrase => same(row.phrases),
            Map::Term if row.types[a] == row.types[b] => 1.0,
            Map::Term => find(row.terms.0, row.types[a], row.types[b]).map_or(0.0, |pair| row.terms.1[pair]),
            Map::Graph => f32::from(u8::from(find(row.graph, row.entities[a], row.entities[b]).is_some())),
        }
    }

    #[test]
    fn a_small_example_is_as_drawn_by_hand() {
        let sample = example();
        let place = Place { row: 0, start: 0, len: 10 };
        let cells = expand(&[(place, sample.row())], &Map::ALL, 1, 11).unwrap();
        let squares: Vec<Vec<String>> = cells.chunks(121).map(|square| lines(square, 11)).collect();
        let (none, entity) = ("00000000000", "08880000000");
        assert_eq!(
            squares[0],
            [none, entity, entity, entity, "00008000000", none, none, none, none, none, none]
        );
        let phrase = "00888800000";
        assert_eq!(
            squares[1],
            [none, "08000000000", phrase, phrase, phrase, phrase, none, none, none, none, none]
        );
        let (a, b, d) = ("08004800000", "00880002200", "00220008800");
        assert_eq!(squares[2], [none, a, b, b, "04008400080", a, none, d, d, "00008000080", none]);
        let graph = "00008000000";
        assert_eq!(squares[3], [none, graph, graph, graph, entity, none, none, none, none, none, none]);
    }

    /// A sample of random words, mentions and pairs, some of them in pieces.
    fn random(seed: RngKey) -> Sample {
        let draw =
            |name: &str, at: u64, below: u64| u16::try_from(seed.named(name).at(at).below(below)).unwrap();
        let (words, auxiliary) = (draw("words", 0, 12), draw("auxiliary", 0, 4));
        let mut sample = Sample::default();
        let push = |sample: &mut Sample, word: u16| {
            sample.words.push(word);
            sample.input_ids.push(7);
            sample.token_types.push(0);
        };
        push(&mut sample, NO_WORD);
        for word in 0..words + auxiliary {
            if word == words {
                push(&mut sample, NO_WORD);
                sample.real = u16::try_from(sample.words.len()).unwrap();
            }
            (0..=draw("pieces", word.into(), 3)).for_each(|_| push(&mut sample, word));
            let same = draw("same", word.into(), u64::from(word) * 2 + 1);
            let first = if same < word && word < words { sample.types[usize::from(same)] } else { word };
            sample.types.push(first);
            sample.entities.push(if word < words { draw("entity", word.into(), 3).min(words) } else { 0 });
            sample.phrases.push(if word < words { 1 + word / 3 } else { 0 });
        }
        if auxiliary == 0 {
            push(&mut sample, NO_WORD);
            sample.real = u16::try_from(sample.words.len()).unwrap();
        }
        sample.auxiliary = u16::try_from(sample.words.len()).unwrap() - sample.real;
        let firsts: Vec<u16> =
            (0..words + auxiliary).filter(|&w| sample.types[usize::from(w)] == w).collect();
        let mut terms = Terms::default();
        for (place, &a) in firsts.iter().enumerate() {
            for &b in &firsts[place + 1..] {
                if draw("related", u64::from(a) * 64 + u64::from(b), 2) == 0 {
                    terms.pairs.push(a, b);
                    terms.relevance.push(1.0 / f32::from(1 + a + b));
                }
            }
        }
        sample.terms = terms;
        if sample.entities.contains(&2) && draw("graph", 0, 2) == 0 {
            sample.graph = Pairs { first: vec![1], second: vec![2] };
        }
        sample
    }

    #[test]
    fn every_cell_of_packed_rows_is_what_the_maps_mean() {
        let samples: Vec<Sample> = (0..60).map(|number| random(RngKey::new(number))).collect();
        let lengths: Vec<usize> = samples.iter().map(|sample| sample.row().tokens()).collect();
        for places in [pack::alone(&lengths), pack::best_fit(&lengths, 70)] {
            let rows = 1 + places.iter().map(|place| place.row).max().unwrap();
            let placed: Vec<_> = places.into_iter().zip(samples.iter().map(Sample::row)).collect();
            let maps = [Map::Term, Map::Graph, Map::Entity, Map::Phrase, Map::Term];
            // What stood there before must not stay.
            let mut cells = vec![9.0; rows * maps.len() * 70 * 70];
            expand_into(&mut cells, &placed, &maps, rows, 70).unwrap();
            let mut expected = vec![0.0; cells.len()];
            for (place, row) in &placed {
                for (number, &map) in maps.iter().enumerate() {
                    let square = (place.row * maps.len() + number) * 70 * 70;
                    for down in 0..place.len {
                        for across in 0..place.len {
                            let at = square + (place.start + down) * 70 + place.start + across;
                            expected[at] = cell(map, row, down, across);
                        }
                    }
                }
            }
            assert!(expected.iter().filter(|&&v| v > 0.0).count() > 5_000);
            assert!(cells == expected);
        }
    }

    #[test]
    fn what_does_not_stand_in_the_batch_is_refused() {
        let mut sample = example();
        let at = |row: usize, start: usize| Place { row, start, len: 10 };
        let refuse = |place: Place, sample: &Sample| {
            expand(&[(place, sample.row())], &[Map::Term], 1, 12).unwrap_err().to_string()
        };
        assert!(refuse(at(0, 3), &sample).contains("10 tokens at position 3"));
        assert!(refuse(at(1, 0), &sample).contains("row 1"));
        assert!(expand_into(&mut [0.0; 3], &[], &[Map::Term], 1, 2).is_err());
        assert!(expand(&[], &[], 1, 12).unwrap().is_empty());
        sample.entities[0] = 9;
        assert!(refuse(at(0, 0), &sample).contains("entities: 9"));
    }
}
