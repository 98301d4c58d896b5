//! Thrift's compact protocol, as far as Parquet's headers need it: numbers, structs, lists, and passing over everything else.

use std::io::{self, Read};

/// The types of fields that are read.
pub(super) const I32: u8 = 5;
pub(super) const LIST: u8 = 9;
pub(super) const STRUCT: u8 = 12;

/// Structs and lists within each other that are skipped at most.
const DEEPEST: u8 = 32;

/// Reads values, and counts bytes.
pub(super) struct Thrift<R> {
    from: R,
    /// Bytes so far.
    pub(super) read: u64,
}

fn bad(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

impl<R: Read> Thrift<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, read: 0 }
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.from.read_exact(&mut byte)?;
        self.read += 1;
        Ok(byte[0])
    }

    fn varint(&mut self) -> io::Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(bad("a number has too many bytes"))
    }

    /// A whole number of any width.
    pub(super) fn number(&mut self) -> io::Result<i64> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// Number and type of a struct's next field, `last` being the one before; `None` at its end.
    pub(super) fn field(&mut self, last: &mut i64) -> io::Result<Option<(i64, u8)>> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        *last = match head >> 4 {
            0 => self.number()?,
            more => last.saturating_add(i64::from(more)),
        };
        Ok(Some((*last, head & 0x0f)))
    }

    /// Length and type of a list.
    pub(super) fn list(&mut self) -> io::Result<(u64, u8)> {
        let head = self.byte()?;
        let length = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        Ok((length, head & 0x0f))
    }

    /// Skips a value of type `kind`.
    pub(super) fn skip(&mut self, kind: u8) -> io::Result<()> {
        self.skip_within(kind, false, DEEPEST)
    }

    #[expect(
        clippy::fn_params_excessive_bools,
        reason = "whether it stands in a list is what the protocol turns on"
    )]
    fn skip_within(&mut self, kind: u8, in_list: bool, deepest: u8) -> io::Result<()> {
        let deeper = deepest.checked_sub(1).ok_or_else(|| bad("a header is too deep"))?;
        match kind {
            // A truth has its value in its type, but for those of a list.
            1 | 2 if !in_list => Ok(()),
            1..=3 => self.byte().map(drop),
            4..=6 => self.varint().map(drop),
            7 => self.pass(8),
            8 => {
                let length = self.varint()?;
                self.pass(length)
            }
            9 | 10 => {
                let (length, kind) = self.list()?;
                (0..length).try_for_each(|_| self.skip_within(kind, true, deeper))
            }
            11 => {
                let length = self.varint()?;
                let kinds = if length == 0 { 0 } else { self.byte()? };
                (0..length).try_for_each(|_| {
                    self.skip_within(kinds >> 4, true, deeper)?;
                    self.skip_within(kinds & 0x0f, true, deeper)
                })
            }
            12 => {
                let mut last = 0;
                while let Some((_, kind)) = self.field(&mut last)? {
                    self.skip_within(kind, false, deeper)?;
                }
                Ok(())
            }
            _ => Err(bad("a field has no type of thrift's")),
        }
    }

    fn pass(&mut self, length: u64) -> io::Result<()> {
        let passed = io::copy(&mut (&mut self.from).take(length), &mut io::sink())?;
        self.read += passed;
        if passed == length { Ok(()) } else { Err(bad("a header is cut short")) }
    }
}
