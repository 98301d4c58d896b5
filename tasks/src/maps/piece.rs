//! A text as samples are made of it: with what is marked in it.

use std::collections::HashMap;
use std::ops::Range;

use text::Entity;

/// What a document has for samples.
#[derive(Debug, Clone)]
pub struct Piece {
    pub(super) text: String,
    /// Where its sentences begin, if its file says so.
    pub(super) sentences: Vec<usize>,
    pub(super) entities: Vec<Entity>,
    pub(super) phrases: Vec<Range<usize>>,
}

impl Piece {
    /// A text in which nothing is marked.
    #[must_use]
    pub fn unmarked(text: &str) -> Self {
        Self { text: text.to_owned(), sentences: vec![], entities: vec![], phrases: vec![] }
    }

    /// The same of `text`, which has the same characters but for white space, which may be of another kind and more or less at the end.
    ///
    /// # Errors
    /// The first character that differs, from 1.
    pub fn onto(mut self, text: &str) -> Result<Self, usize> {
        let (mut here, mut there) = (self.text.char_indices(), text.char_indices());
        // Where each byte that begins a character, or is behind the last, lies in the other text.
        let mut places: HashMap<usize, usize> = HashMap::new();
        let mut character = 1;
        loop {
            match (here.next(), there.next()) {
                (Some((from, a)), Some((to, b))) if a == b || a.is_whitespace() && b.is_whitespace() => {
                    places.insert(from, to);
                    places.insert(from + a.len_utf8(), to + b.len_utf8());
                }
                (one, other) => {
                    let rest = here.map(|(_, c)| c).chain(there.map(|(_, c)| c));
                    let mut rest = rest.chain(one.map(|(_, c)| c)).chain(other.map(|(_, c)| c));
                    if !rest.all(char::is_whitespace) {
                        return Err(character);
                    }
                    break;
                }
            }
            character += 1;
        }
        let place = |at: usize| places.get(&at).copied().unwrap_or(text.len());
        let moved = |bytes: &mut Range<usize>| *bytes = place(bytes.start)..place(bytes.end);
        self.entities.iter_mut().flat_map(|entity| &mut entity.pieces).for_each(moved);
        self.phrases.iter_mut().for_each(moved);
        self.sentences.iter_mut().for_each(|start| *start = place(*start));
        text.clone_into(&mut self.text);
        Ok(self)
    }

    /// A part of it, with what lies inside.
    pub(super) fn part(&self, bytes: &Range<usize>) -> Self {
        Self {
            text: self.text[bytes.clone()].to_owned(),
            // A part has no sentences of its own: it is read as a whole.
            sentences: vec![],
            entities: within(&self.entities, bytes),
            phrases: self.phrases.iter().filter_map(|phrase| shifted(phrase, bytes)).collect(),
        }
    }

    /// The same of `text`, which is white space and then this text; none where it is not.
    pub(super) fn behind(mut self, text: &str) -> Option<Self> {
        let space = text.strip_suffix(self.text.as_str()).filter(|space| space.trim().is_empty())?.len();
        let moved = |bytes: &mut Range<usize>| *bytes = bytes.start + space..bytes.end + space;
        self.entities.iter_mut().flat_map(|entity| &mut entity.pieces).for_each(moved);
        self.phrases.iter_mut().for_each(moved);
        text.clone_into(&mut self.text);
        Some(self)
    }
}

/// The entities that lie inside a part of a text, with places that count from its beginning.
pub(super) fn within(entities: &[Entity], bytes: &Range<usize>) -> Vec<Entity> {
    let inside = |entity: &Entity| {
        let pieces: Option<Vec<_>> = entity.pieces.iter().map(|piece| shifted(piece, bytes)).collect();
        Some(Entity { pieces: pieces?, label: entity.label, concepts: entity.concepts.clone() })
    };
    entities.iter().filter_map(inside).collect()
}

pub(super) fn shifted(piece: &Range<usize>, bytes: &Range<usize>) -> Option<Range<usize>> {
    let is_inside = bytes.start <= piece.start && piece.end <= bytes.end;
    is_inside.then(|| piece.start - bytes.start..piece.end - bytes.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_keeps_what_lies_in_it_where_it_stands() {
        let label = text::Labels::default().intern("sign").unwrap();
        let ranges = |of: &[(usize, usize)]| of.iter().map(|(start, end)| *start..*end).collect::<Vec<_>>();
        let entity = |of| Entity { pieces: ranges(of), label, concepts: vec![] };
        let whole = Piece {
            text: "a fever of bed nine".to_owned(),
            sentences: vec![],
            entities: vec![entity(&[(2, 7)]), entity(&[(8, 14), (15, 19)]), entity(&[(2, 7), (11, 14)])],
            phrases: ranges(&[(0, 7), (11, 19)]),
        };
        let part = whole.part(&(8..19));
        assert_eq!((part.text.as_str(), &part.phrases), ("of bed nine", &ranges(&[(3, 11)])));
        let pieces = |of: &Piece| of.entities.iter().map(|of| of.pieces.clone()).collect::<Vec<_>>();
        assert_eq!(pieces(&part), [ranges(&[(0, 6), (7, 11)])]);
        // As byte-level BPE spells words that follow others.
        let behind = part.clone().behind(" of bed nine").unwrap();
        assert_eq!((behind.text.as_str(), &behind.phrases), (" of bed nine", &ranges(&[(4, 12)])));
        assert_eq!(pieces(&behind), [ranges(&[(1, 7), (8, 12)])]);
        assert!(part.behind("of bed ten").is_none());
    }
}
