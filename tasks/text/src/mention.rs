//! Mentions as annotation files have them: places in characters become bytes, and what the file prints must stand there.

use std::cmp::Reverse;
use std::ops::Range;

use base::line::Place;
use base::read::ReadError;
use serde::{Deserialize, Serialize};

use super::characters::Characters;
use super::{Document, SpanTally};

/// What to do with mentions whose offsets are invalid, or whose words do not match the text there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Misfits {
    /// It is an error.
    #[default]
    Refuse,
    /// It is dropped and counted; some published files have a few.
    Drop,
}

pub(super) const OUTSIDE: &str = "mention without a place in its text";
pub(super) const OTHER_TEXT: &str = "mention whose text is another";

/// Why a mention does not fit its text. Places are in characters.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    /// Why it is counted as left out.
    pub(super) reason: &'static str,
    found: String,
    expected: String,
}

impl Misfit {
    fn outside(found: String, expected: impl Into<String>) -> Self {
        Self { reason: OUTSIDE, found, expected: expected.into() }
    }

    /// Other words stand there than those that the file prints.
    pub(super) fn other_text(found: &str, printed: &str) -> Self {
        let expected = format!("{printed:?} as the file prints it");
        Self { reason: OTHER_TEXT, found: format!("{found:?} stands at its places"), expected }
    }

    /// The error where such mentions are refused; `place` is where the file has it.
    pub(super) fn refused(self, place: Place) -> ReadError {
        let found = format!("the mention does not fit: {}", self.found);
        ReadError::new(place, found, self.expected, "fix the mention, or set `misfits` to `drop`")
    }
}

/// The text of a document and its length in characters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text<'t> {
    pub(super) text: &'t str,
    pub(super) characters: &'t Characters,
}

/// A mention as the file has it: its pieces in characters, in the file's order, and its words if it prints them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Printed<'f> {
    pub(super) pieces: &'f [Range<usize>],
    pub(super) words: Option<&'f str>,
}

/// Counts a mention and says where it stands in bytes; `None` if it was dropped.
pub(super) fn admit(
    text: Text<'_>,
    printed: Printed<'_>,
    misfits: Misfits,
    tally: &mut SpanTally,
    place: impl FnOnce() -> Place,
) -> Result<Option<Vec<Range<usize>>>, ReadError> {
    match fit(text, printed) {
        Ok(pieces) => {
            tally.keep();
            Ok(Some(pieces))
        }
        Err(misfit) if misfits == Misfits::Drop => {
            tally.drop(misfit.reason);
            Ok(None)
        }
        Err(misfit) => Err(misfit.refused(place())),
    }
}

/// A tally of mentions that may be dropped because they do not fit, or for `reasons`.
pub(super) fn tally(reasons: &[&'static str]) -> SpanTally {
    let all = [OUTSIDE, OTHER_TEXT].iter().chain(reasons);
    SpanTally { dropped: all.map(|&reason| (reason, 0)).collect(), ..SpanTally::default() }
}

/// The concepts of `D014786|D006311`; files also put semicolons and commas between them. `-1` and `-` mean none.
pub(super) fn concepts(ids: &str) -> Vec<String> {
    let stated = |id: &&str| !matches!(*id, "" | "-1" | "-");
    ids.split(['|', ';', ',']).map(str::trim).filter(stated).map(str::to_owned).collect()
}

/// Puts entities in order: by their beginning, of those the one that reaches furthest first, of those as the file has them.
pub(super) fn sort(document: &mut Document) {
    document.entities.sort_by_key(|entity| {
        (entity.pieces.first().map(|piece| piece.start), Reverse(entity.pieces.last().map(|piece| piece.end)))
    });
}

/// The pieces in bytes, in order.
fn fit(text: Text<'_>, printed: Printed<'_>) -> Result<Vec<Range<usize>>, Misfit> {
    let Text { text, characters } = text;
    let mut order = printed.pieces.to_vec();
    order.sort_unstable_by_key(|piece| (piece.start, piece.end));
    if let Some(pair) = order.windows(2).find(|pair| pair[1].start < pair[0].end) {
        let found = format!("its pieces {:?} and {:?} overlap", pair[0], pair[1]);
        return Err(Misfit::outside(found, "pieces apart from each other"));
    }
    let empty = |start, end| {
        Misfit::outside(format!("{start}..{end} is empty or inverted"), "a start before the end")
    };
    let byte = |piece: &Range<usize>| {
        let Range { start, end } = *piece;
        if start >= end {
            return Err(empty(start, end));
        }
        let bytes = characters.byte(start).zip(characters.byte(end));
        bytes.map(|(start, end)| start..end).ok_or_else(|| {
            let expected = format!("an end of at most {} characters", characters.len());
            Misfit::outside(format!("{start}..{end} reaches beyond the text"), expected)
        })
    };
    let bytes: Vec<Range<usize>> = order.iter().map(byte).collect::<Result<_, _>>()?;
    if bytes.is_empty() {
        return Err(empty(0, 0));
    }
    let Some(words) = printed.words else { return Ok(bytes) };
    let written: Vec<Range<usize>> = printed.pieces.iter().map(byte).collect::<Result<_, _>>()?;
    if says(text, &bytes, words) || says(text, &written, words) {
        return Ok(bytes);
    }
    let found: Vec<&str> = bytes.iter().map(|piece| &text[piece.clone()]).collect();
    Err(Misfit::other_text(&found.join(" "), words))
}

/// Pieces between which there is nothing but the end of a line, as one; brat writes a mention that goes on in the next line like that.
pub(super) fn joined(text: &str, pieces: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = vec![];
    for piece in pieces {
        let gap = all.last().map(|before| &text[before.end..piece.start]);
        match all.last_mut() {
            Some(before) if gap.is_some_and(|gap| gap.contains('\n') && gap.trim().is_empty()) => {
                before.end = piece.end;
            }
            _ => all.push(piece),
        }
    }
    all
}

/// Whether `words` stand at `pieces`. A file may print any white space as any other; between pieces it may print some or none.
fn says(text: &str, pieces: &[Range<usize>], words: &str) -> bool {
    let blank = |c: &char| c.is_whitespace();
    if let [piece] = pieces {
        let (mut found, mut printed) = (text[piece.clone()].chars(), words.chars());
        return loop {
            match (found.next(), printed.next()) {
                (None, None) => break true,
                (Some(a), Some(b)) if a == b || (blank(&a) && blank(&b)) => {}
                _ => break false,
            }
        };
    }
    let found = pieces.iter().flat_map(|piece| text[piece.clone()].chars());
    found.filter(|c| !blank(c)).eq(words.chars().filter(|c| !blank(c)))
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "lists of one place")]
mod tests {
    use super::*;

    fn at(pieces: &[Range<usize>], words: Option<&str>) -> Result<Vec<Range<usize>>, Misfit> {
        let text = "née 𝔾 et\nb";
        fit(Text { text, characters: &Characters::new(text) }, Printed { pieces, words })
    }

    #[test]
    fn places_in_characters_become_bytes_if_the_words_stand_there() {
        let wide = [0..3];
        assert_eq!(at(&wide, Some("née")).unwrap(), [0..4]);
        let lines = [6..10];
        assert_eq!(at(&lines, Some("et b")).unwrap(), [10..14], "a line end printed as a space");
        assert_eq!(at(&lines, Some("etb")).unwrap_err().reason, OTHER_TEXT, "a space that is not printed");
        assert_eq!(at(&[4..5, 0..3], Some("𝔾 née")).unwrap(), [0..4, 5..9], "in the file's order");
        assert_eq!(at(&[4..5, 0..3], Some("née 𝔾")).unwrap(), [0..4, 5..9], "in the text's order");
        assert_eq!(at(&[4..5, 0..3], Some("née  𝔾x")).unwrap_err().reason, OTHER_TEXT);
        assert_eq!(at(&[4..5, 0..3], None).unwrap(), [0..4, 5..9]);
    }

    #[test]
    fn what_is_no_place_is_refused_or_dropped() {
        let cases: [(&[Range<usize>], &str); 5] = [
            (&[3..3], "3..3 is empty"),
            (&[9..11], "9..11 reaches beyond the text, expected an end of at most 10 characters"),
            (&[0..3, 2..5], "its pieces 0..3 and 2..5 overlap"),
            (&[usize::MAX - 1..usize::MAX], "beyond the text"),
            (&[], "empty"),
        ];
        let text = "née 𝔾 et\nb";
        let characters = Characters::new(text);
        let text = Text { text, characters: &characters };
        let place = || Place { file: "some.ann".into(), line: 3, column: None };
        let mut counts = tally(&[]);
        for (pieces, expected) in cases {
            let printed = Printed { pieces, words: None };
            let message = admit(text, printed, Misfits::Refuse, &mut counts, place).unwrap_err().to_string();
            assert!(message.starts_with("some.ann: line 3: the mention does not fit: "), "{message}");
            assert!(message.contains(expected), "{message}");
        }
        let mut counts = tally(&["other"]);
        for (pieces, _) in cases {
            let printed = Printed { pieces, words: None };
            assert_eq!(admit(text, printed, Misfits::Drop, &mut counts, place).unwrap(), None);
        }
        counts.drop("other");
        let whole = [0..1];
        let printed = Printed { pieces: &whole, words: None };
        assert!(admit(text, printed, Misfits::Drop, &mut counts, place).unwrap().is_some());
        assert_eq!(
            (counts.read, counts.dropped[OUTSIDE], counts.dropped["other"], counts.kept),
            (7, 5, 1, 1)
        );
    }
}
