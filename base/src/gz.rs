//! Files that may be compressed, seen by their first bytes: gzip and Zstandard are unpacked, others are named as what they are.

use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use flate2::bufread::GzDecoder;

/// Bytes held at a time; also asked of the operating system at a time.
const BUFFER: usize = 256 << 10;

/// The first bytes, looked at and put back before the rest.
type Whole<R> = BufReader<Chain<Cursor<Vec<u8>>, R>>;

/// Bytes that tell what a file is packed with.
const LOOKED_AT: usize = 10;
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// How a file is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// Not at all.
    Plain,
    /// By gzip.
    Gzip,
    /// By Zstandard.
    Zstandard,
}

impl Packing {
    /// # Errors
    /// What is packed in another way, with what unpacks it.
    fn of(first: &[u8]) -> io::Result<Self> {
        let foreign = |name, remedy| {
            let what = format!(
                "it is packed by {name}, expected plain text, gzip or Zstandard: unpack it first ({remedy})"
            );
            Err(io::Error::new(io::ErrorKind::Unsupported, what))
        };
        match first {
            [0x1f, 0x8b, ..] => Ok(Self::Gzip),
            // A frame, or one that is to be skipped.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Ok(Self::Zstandard),
            // A block, or the end of a file without any.
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59]
            | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, 0x45, 0x38, 0x50, 0x90] => {
                foreign("bzip2", "bunzip2")
            }
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => foreign("xz", "unxz"),
            [b'P', b'K', 3, 4, ..] => foreign("zip", "unzip"),
            [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => foreign("7-Zip", "7z x"),
            [4, 0x22, 0x4d, 0x18, ..] => foreign("LZ4", "unlz4"),
            [0x1f, 0x9d, ..] => foreign("compress", "uncompress"),
            _ => Ok(Self::Plain),
        }
    }
}

/// The contents of a file, however it is packed.
pub struct Unpacked<R>(Form<R>);

enum Form<R> {
    Plain(Whole<R>),
    Gzip(Box<BufReader<Members<Whole<R>>>>),
    Zstandard(Box<BufReader<Frames<Whole<R>>>>),
}

/// The contents of `inner`, unpacked if it begins as gzip (`1f 8b`) or Zstandard (`28 b5 2f fd`) does. Files of several members or
/// frames read as one; NULs after the last member, as tapes and block devices leave, are no part of a gzip file.
///
/// ```
/// use std::io::Read;
/// let mut text = String::new();
/// base::gz::reader(&b"plain text"[..])?.read_to_string(&mut text)?;
/// assert_eq!(text, "plain text");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// When the first bytes cannot be read, or are those of another packing: the error names it. A damaged or cut file shows as an error
/// while reading.
pub fn reader<R: Read>(mut inner: R) -> io::Result<Unpacked<R>> {
    let mut first = Vec::with_capacity(LOOKED_AT);
    inner.by_ref().take(LOOKED_AT as u64).read_to_end(&mut first)?;
    let packing = Packing::of(&first)?;
    let whole = BufReader::with_capacity(BUFFER, Cursor::new(first).chain(inner));
    Ok(Unpacked(match packing {
        Packing::Plain => Form::Plain(whole),
        Packing::Gzip => {
            let members = Members(Some(GzDecoder::new(whole)));
            Form::Gzip(Box::new(BufReader::with_capacity(BUFFER, members)))
        }
        Packing::Zstandard => {
            let frames = Frames(zstd::stream::read::Decoder::with_buffer(whole)?);
            Form::Zstandard(Box::new(BufReader::with_capacity(BUFFER, frames)))
        }
    }))
}

impl<R> Unpacked<R> {
    /// How the file is packed.
    #[must_use]
    pub fn packing(&self) -> Packing {
        match self.0 {
            Form::Plain(_) => Packing::Plain,
            Form::Gzip(_) => Packing::Gzip,
            Form::Zstandard(_) => Packing::Zstandard,
        }
    }
}

impl<R> std::fmt::Debug for Unpacked<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Unpacked").field(&self.packing()).finish()
    }
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Form::Plain(plain) => plain.read(out),
            Form::Gzip(gzip) => gzip.read(out),
            Form::Zstandard(frames) => frames.read(out),
        }
    }
}

impl<R: Read> BufRead for Unpacked<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match &mut self.0 {
            Form::Plain(plain) => plain.fill_buf(),
            Form::Gzip(gzip) => gzip.fill_buf(),
            Form::Zstandard(frames) => frames.fill_buf(),
        }
    }

    fn consume(&mut self, amount: usize) {
        match &mut self.0 {
            Form::Plain(plain) => plain.consume(amount),
            Form::Gzip(gzip) => gzip.consume(amount),
            Form::Zstandard(frames) => frames.consume(amount),
        }
    }
}

/// The members of a gzip file, one after the other; none after the last.
struct Members<R>(Option<GzDecoder<R>>);

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let read = match member.read(out) {
                Err(error) => return Err(damage(error, member.get_mut(), "gzip")),
                Ok(read) => read,
            };
            if read > 0 || out.is_empty() {
                return Ok(read);
            }
            let Some(member) = self.0.take() else { break };
            self.0 = next_member(member.into_inner())?;
        }
        Ok(0)
    }
}

/// What follows a member: another one, or nothing but NULs.
fn next_member<R: BufRead>(mut rest: R) -> io::Result<Option<GzDecoder<R>>> {
    let mut padded = false;
    loop {
        let bytes = rest.fill_buf()?;
        let nulls = bytes.iter().take_while(|byte| **byte == 0).count();
        match (bytes.len(), bytes.get(nulls)) {
            (0, _) => return Ok(None),
            (length, None) => {
                padded = true;
                rest.consume(length);
            }
            (_, Some(&first)) if first == GZIP[0] && nulls == 0 && !padded => {
                return Ok(Some(GzDecoder::new(rest)));
            }
            _ => {
                let what = "the gzip file is followed by other bytes: fetch it again";
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
        }
    }
}

/// The frames of a file of Zstandard.
struct Frames<R>(zstd::stream::read::Decoder<'static, R>);

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out).map_err(|error| damage(error, self.0.get_mut(), "Zstandard"))
    }
}

/// The error as it is where the bytes cannot be had (or are no longer wanted); where they are to blame, with what is to be done.
fn damage(error: io::Error, rest: &mut impl BufRead, name: &str) -> io::Error {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    if !matches!(error.kind(), InvalidInput | InvalidData | UnexpectedEof | Other) || rest.fill_buf().is_err()
    {
        return error;
    }
    io::Error::new(InvalidData, format!("it is no whole {name} file ({error}): fetch it again"))
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
    fn silent_17_zstandard_is_unpacked_through_all_its_frames() {
        let long = b"line after line\n".repeat(100_000);
        let frame = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
        let skipped = b"\x51\x2a\x4d\x18\x03\0\0\0abc";
        let file = [&skipped[..], &frame(b"one\n"), &frame(&long)].concat();
        assert_eq!(unpacked(&file).unwrap(), [b"one\n", &long[..]].concat());
        let whole = frame(&long);
        for length in [5, whole.len() / 2, whole.len() - 1] {
            let message = unpacked(&whole[..length]).unwrap_err().to_string();
            assert!(message.contains("no whole Zstandard file"), "cut at {length}: {message}");
        }
    }

    #[test]
    fn silent_17_what_is_not_unpacked_is_named() {
        let cases: [(&[u8], &str); 6] = [
            (b"BZh91AY&SY and more", "bzip2"),
            (b"\xfd7zXZ\0\0\x04", "xz"),
            (b"PK\x03\x04 and more", "zip"),
            (b"7z\xbc\xaf\x27\x1c\0", "7-Zip"),
            (b"\x04\x22\x4d\x18\x64", "LZ4"),
            (b"\x1f\x9d\x90", "compress"),
        ];
        for (bytes, name) in cases {
            let message = reader(bytes).unwrap_err().to_string();
            assert!(message.contains(&format!("packed by {name}, expected")), "{message}");
        }
        for text in [&b"BZh9 is a word"[..], b"PKU is a disease", b"7zip"] {
            assert_eq!(unpacked(text).unwrap(), text);
        }
    }

    #[test]
    fn silent_17_gzip_with_null_padding_is_read_and_other_trailing_bytes_are_not() {
        let file = packed(b"one\ntwo\n");
        for padding in [1, 511, BUFFER + 7] {
            let padded = [file.clone(), vec![0; padding]].concat();
            assert_eq!(unpacked(&padded).unwrap(), b"one\ntwo\n", "{padding}");
            for more in [&b"x"[..], &file] {
                let message = unpacked(&[&padded, more].concat()).unwrap_err().to_string();
                assert!(message.contains("followed by other bytes"), "{message}");
            }
        }
        assert!(unpacked(&[&file[..], b"more"].concat()).is_err());
    }

    #[test]
    fn an_error_of_the_bytes_themselves_stays_as_it_is() {
        struct Gone;
        impl Read for Gone {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("the disk is gone"))
            }
        }
        let text: Vec<u8> = (0..=255).collect();
        for file in [packed(&text), zstd::encode_all(&text[..], 3).unwrap()] {
            let cut = Cursor::new(file[..file.len() - 4].to_vec()).chain(Gone);
            let error = reader(cut).unwrap().read_to_end(&mut Vec::new()).unwrap_err();
            assert_eq!(error.to_string(), "the disk is gone");
        }
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
