//! Places in a text counted in characters, and the same places in bytes.
//!
//! A character is a Unicode scalar value, as Python counts them; Java and JavaScript count some of them as two.

use std::ops::Range;

/// Where each character of one text begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Characters {
    /// Byte at which each character begins, then the text's length; none for a text of ASCII, where both counts agree.
    starts: Option<Vec<usize>>,
    bytes: usize,
}

impl Characters {
    /// Counts the characters of `text`.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let table = || text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        Self { starts: (!text.is_ascii()).then(table), bytes: text.len() }
    }

    /// Number of characters.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.as_ref().map_or(self.bytes, |starts| starts.len() - 1)
    }

    /// Whether the text is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The byte at which that character begins; the text's length for the place behind the last one.
    #[must_use]
    pub fn byte(&self, character: usize) -> Option<usize> {
        match &self.starts {
            Some(starts) => starts.get(character).copied(),
            None => (character <= self.bytes).then_some(character),
        }
    }

    /// The character that begins at that byte; `None` inside a character and outside the text.
    #[must_use]
    pub fn character(&self, byte: usize) -> Option<usize> {
        match &self.starts {
            Some(starts) => starts.binary_search(&byte).ok(),
            None => (byte <= self.bytes).then_some(byte),
        }
    }

    /// A range of bytes that ends between characters, in characters.
    #[must_use]
    pub fn range(&self, bytes: &Range<usize>) -> Option<Range<usize>> {
        Some(self.character(bytes.start)?..self.character(bytes.end)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_go_both_ways_and_none_is_inside_a_character() {
        for text in ["", "abc", "né", "中a𝔾", "e\u{301}"] {
            let characters = Characters::new(text);
            assert_eq!(characters.len(), text.chars().count());
            for byte in 0..text.len() + 2 {
                let expected = text.is_char_boundary(byte).then(|| text[..byte].chars().count());
                assert_eq!(characters.character(byte), expected, "{text:?} {byte}");
                if let Some(character) = expected {
                    assert_eq!(characters.byte(character), Some(byte));
                }
            }
            assert_eq!(characters.byte(characters.len() + 1), None);
        }
        assert_eq!(Characters::new("né!").range(&(1..3)), Some(1..2));
        assert_eq!(Characters::new("né!").range(&(2..3)), None);
    }
}
