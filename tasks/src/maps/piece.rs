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
