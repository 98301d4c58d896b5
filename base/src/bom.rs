//! A reader that leaves out the BOM with which UTF-8 may begin, however its bytes come. A CSV parser knows the mark only in one piece, and what [`crate::gz`]
//! reads begins with a piece of two bytes.

use std::io::{self, Cursor, Read};

/// The byte order mark in UTF-8.
pub const BOM: &[u8] = b"\xef\xbb\xbf";

/// The bytes of `inner` without the mark.
#[derive(Debug)]
pub struct Unmarked<R> {
    inner: R,
    /// The first bytes, but for the mark; nothing before they were read.
    head: Option<Cursor<Vec<u8>>>,
}

impl<R> Unmarked<R> {
    /// One over `inner`, of which nothing was read.
    pub fn new(inner: R) -> Self {
        Self { inner, head: None }
    }

    /// What is read, mark included.
    pub fn get_ref(&self) -> &R {
        &self.inner
    }

    /// As [`Unmarked::get_ref`]. What is read of it is not read here.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.inner
    }
}

impl<R: Read> Read for Unmarked<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let head = match &mut self.head {
            Some(head) => head,
            None => {
                let mut head = Vec::with_capacity(BOM.len());
                self.inner.by_ref().take(BOM.len() as u64).read_to_end(&mut head)?;
                if head == BOM {
                    head.clear();
                }
                self.head.insert(Cursor::new(head))
            }
        };
        match head.read(out)? {
            0 => self.inner.read(out),
            read => Ok(read),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::gz;
    use super::*;

    #[test]
    fn the_mark_is_left_out_and_nothing_else() {
        for (text, expected) in [
            ("\u{feff}a,b", "a,b"),
            ("a\u{feff}", "a\u{feff}"),
            ("\u{feff}\u{feff}a", "\u{feff}a"),
            ("\u{feff}", ""),
            ("ab", "ab"),
            ("", ""),
        ] {
            for size in 1..5 {
                let mut read = String::new();
                let inner = io::BufReader::with_capacity(size, text.as_bytes());
                Unmarked::new(inner).read_to_string(&mut read).unwrap();
                assert_eq!(read, expected, "{text:?} in pieces of {size}");
            }
            let mut read = String::new();
            Unmarked::new(gz::reader(text.as_bytes()).unwrap()).read_to_string(&mut read).unwrap();
            assert_eq!(read, expected, "{text:?}");
        }
    }
}
