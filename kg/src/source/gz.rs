//! Files that may be compressed: gzip is recognised by its first two bytes. Knows no format inside.

use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use flate2::bufread::MultiGzDecoder;

/// Bytes held at a time; also asked of the operating system at a time.
const BUFFER: usize = 256 << 10;

/// The first bytes, looked at and put back before the rest.
type Whole<R> = BufReader<Chain<Cursor<Vec<u8>>, R>>;

enum Either<R> {
    Plain(Whole<R>),
    Gzip(Box<BufReader<MultiGzDecoder<Whole<R>>>>),
}

/// The contents of `inner`, unpacked if it begins as gzip does (`1f 8b`); files of several gzip members read as one.
///
/// ```
/// use std::io::Read;
/// let mut text = String::new();
/// kg::source::gz::reader(&b"plain text"[..])?.read_to_string(&mut text)?;
/// assert_eq!(text, "plain text");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// When the first bytes cannot be read. A damaged or cut gzip file shows as an error while reading.
pub fn reader<R: Read>(mut inner: R) -> io::Result<impl BufRead + use<R>> {
    let mut first = Vec::with_capacity(2);
    inner.by_ref().take(2).read_to_end(&mut first)?;
    let packed = first == [0x1f, 0x8b];
    let whole = BufReader::with_capacity(BUFFER, Cursor::new(first).chain(inner));
    Ok(if packed {
        Either::Gzip(Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(whole))))
    } else {
        Either::Plain(whole)
    })
}

impl<R: Read> Read for Either<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(plain) => plain.read(out),
            Self::Gzip(gzip) => gzip.read(out),
        }
    }
}

impl<R: Read> BufRead for Either<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self {
            Self::Plain(plain) => plain.fill_buf(),
            Self::Gzip(gzip) => gzip.fill_buf(),
        }
    }

    fn consume(&mut self, amount: usize) {
        match self {
            Self::Plain(plain) => plain.consume(amount),
            Self::Gzip(gzip) => gzip.consume(amount),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn unpacked(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        reader(bytes)?.read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn plain_files_come_as_they_are_however_short() {
        for text in [&b""[..], b"a", b"\x1f", b"\x1fa\x8b", b"three lines\nof\ntext"] {
            assert_eq!(unpacked(text).unwrap(), text);
        }
    }

    #[test]
    fn gzip_is_unpacked_through_all_its_members() {
        let long: Vec<u8> = (0..1_000_000u32).flat_map(|n| n.to_le_bytes()).collect();
        let file = [packed(b"one\n"), packed(b""), packed(&long)].concat();
        assert_eq!(unpacked(&file).unwrap(), [b"one\n", &long[..]].concat());
        let mut lines = reader(&file[..]).unwrap();
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert_eq!(line, "one\n");
    }

    #[test]
    fn a_cut_or_damaged_gzip_file_is_an_error() {
        let whole = packed(b"one line\n".repeat(1000).as_slice());
        for length in 3..whole.len() {
            assert!(unpacked(&whole[..length]).is_err(), "cut at {length} of {}", whole.len());
        }
        // The last eight bytes are checksum and length of what was packed.
        for at in whole.len() - 8..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x40;
            assert!(unpacked(&damaged).is_err(), "byte {at}");
        }
    }
}
