//! The unique identifier of a MeSH record: a letter and digits, packed.

use std::fmt;

/// Digits at most; published identifiers have six or nine.
const DIGITS: usize = 9;

/// `D000001` or `C000590401`. Leading zeros count: the width is a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Ui {
    letter: u8,
    width: u8,
    number: u32,
}

impl Ui {
    /// The identifier written as `text`, if it begins with `letter`.
    pub(super) fn parse(text: &str, letter: u8) -> Option<Self> {
        let (&first, digits) = text.as_bytes().split_first()?;
        let well =
            first == letter && (1..=DIGITS).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
        if !well {
            return None;
        }
        let number = digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
        Some(Self { letter, width: u8::try_from(digits.len()).ok()?, number })
    }

    /// The entity's key in the table.
    pub(super) fn key(self) -> String {
        format!("mesh:{self}")
    }
}

impl fmt::Display for Ui {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:0width$}", char::from(self.letter), self.number, width = usize::from(self.width))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_come_back_as_they_are_written() {
        for text in ["D000001", "D000072716", "C999999999", "D0", "D900000012"] {
            assert_eq!(Ui::parse(text, text.as_bytes()[0]).unwrap().to_string(), text);
        }
        assert_ne!(Ui::parse("D000001", b'D'), Ui::parse("D000000001", b'D'));
        assert_eq!(Ui::parse("D000001", b'D').unwrap().key(), "mesh:D000001");
    }

    #[test]
    fn anything_else_is_none() {
        for text in
            ["", "D", "d000001", "C000001", "D00001x", "D-00001", "D0000000001", "*D000001", "D00001 "]
        {
            assert_eq!(Ui::parse(text, b'D'), None, "{text:?}");
        }
    }
}
