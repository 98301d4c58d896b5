//! All records of a file, read on one thread, parsed on others and handed on in the order of the file.

use std::io::Read;
use std::path::Path;

use base::line::{self, Place};
use base::read::ReadError;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::Rows;
use super::feed::{Failure, Feed, LONGEST_LINE, Piece, emptied};

/// Bytes of a piece of a file.
const PIECE: usize = 512 << 10;

/// Pieces read, parsed or handed on at a time, for each thread.
const PIECES_PER_THREAD: usize = 2;

/// A file's bytes, with the name that messages call it by.
pub struct Input<'f> {
    /// The bytes.
    pub reader: Box<dyn Read + Send + 'f>,
    /// The name.
    pub label: &'f Path,
    /// Bytes of the pieces that threads parse; lines are never cut.
    pub piece: usize,
}

impl<'f> Input<'f> {
    /// An input in pieces of the usual size.
    pub fn new(reader: Box<dyn Read + Send + 'f>, label: &'f Path) -> Self {
        Self { reader, label, piece: PIECE }
    }
}

impl std::fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input")
            .field("label", &self.label)
            .field("piece", &self.piece)
            .finish_non_exhaustive()
    }
}

/// How much was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// Lines.
    pub lines: u64,
    /// Bytes, after decompression.
    pub bytes: u64,
}

/// What became of a piece.
struct Parsed<T> {
    found: Result<T, ReadError>,
    lines: u64,
    bytes: u64,
    buffer: Vec<u8>,
}

/// Has `parse` read the records of each piece of `input`, on several threads, and `take` its findings, on one thread at a time and in
/// the order of the file. While one set of pieces is parsed, the next is read and the findings of the one before are taken; nothing
/// else is in memory.
///
/// # Errors
/// The first error in the order of the file, with its line counted from the file's beginning; or that of `take`.
pub fn scan<const N: usize, T: Send>(
    input: Input<'_>,
    parse: impl Fn(&mut Rows<'_, N>) -> Result<T, ReadError> + Sync,
    mut take: impl FnMut(T) -> Result<(), ReadError> + Send,
) -> Result<Totals, ReadError> {
    let label = input.label;
    let mut feed = Feed::new(input.reader, input.piece);
    let count = PIECES_PER_THREAD * rayon::current_num_threads();
    let mut totals = Totals { lines: 0, bytes: 0 };
    let (mut pieces, mut parsed) = (feed.pieces(count), Vec::new());
    while !pieces.is_empty() || !parsed.is_empty() {
        let (taken, (next_parsed, next_pieces)) = rayon::join(
            || take_all(parsed, &mut totals, &mut take),
            || rayon::join(|| parse_all(pieces, label, &parse), || feed.pieces(count)),
        );
        feed.reuse(taken?);
        (parsed, pieces) = (next_parsed, next_pieces);
    }
    Ok(totals)
}

fn parse_all<const N: usize, T: Send>(
    pieces: Vec<Piece>,
    label: &Path,
    parse: &(impl Fn(&mut Rows<'_, N>) -> Result<T, ReadError> + Sync),
) -> Vec<Parsed<T>> {
    let one = |mut piece: Piece| {
        let mut rows = Rows::new(&piece.bytes, label);
        let found = parse(&mut rows);
        let (lines, bytes) = (rows.lines(), piece.bytes.len() as u64);
        let found = match (found, piece.failure.take()) {
            (Ok(_), Some(failure)) => Err(error(failure, label, lines + 1)),
            (found, _) => found,
        };
        Parsed { found, lines, bytes, buffer: emptied(&mut piece) }
    };
    pieces.into_par_iter().map(one).collect()
}

fn error(failure: Failure, label: &Path, line: u64) -> ReadError {
    let place = Place { file: label.to_owned(), line, column: None };
    match failure {
        Failure::Read(source) => line::unreadable(place, &source),
        Failure::TooLong => {
            let found = format!("the line is longer than {LONGEST_LINE} bytes");
            let remedy = "this is no RRF file, name another or fetch it again";
            ReadError::new(place, found, "lines that end with |", remedy)
        }
        Failure::Returns => line::bare_cr(place),
    }
}

/// Takes the findings and returns the buffers.
fn take_all<T>(
    parsed: Vec<Parsed<T>>,
    totals: &mut Totals,
    take: &mut impl FnMut(T) -> Result<(), ReadError>,
) -> Result<Vec<Vec<u8>>, ReadError> {
    let mut buffers = Vec::with_capacity(parsed.len());
    for one in parsed {
        let found = one.found.map_err(|error| error.moved(totals.lines))?;
        totals.lines += one.lines;
        totals.bytes += one.bytes;
        take(found)?;
        buffers.push(one.buffer);
    }
    Ok(buffers)
}

#[cfg(test)]
mod tests {
    use std::io::{self, Cursor};

    use super::*;

    /// The first fields of a file read in pieces of `piece` bytes.
    fn firsts(bytes: &[u8], piece: usize) -> Result<(Vec<String>, Totals), String> {
        let input = Input { reader: Box::new(bytes), label: Path::new("X.RRF"), piece };
        read(input)
    }

    fn read(input: Input<'_>) -> Result<(Vec<String>, Totals), String> {
        let parse = |rows: &mut Rows<'_, 2>| {
            let mut firsts = Vec::new();
            while let Some(row) = rows.next_record()? {
                firsts.push(row.field(0).to_owned());
            }
            Ok(firsts)
        };
        let mut all = Vec::new();
        let take = |firsts: Vec<String>| {
            all.extend(firsts);
            Ok::<(), ReadError>(())
        };
        let totals = scan(input, parse, take).map_err(|e| e.to_string())?;
        Ok((all, totals))
    }

    fn lines(count: usize) -> Vec<u8> {
        (0..count).flat_map(|i| format!("{i}|{}|\n", "x".repeat(i % 7)).into_bytes()).collect()
    }

    #[test]
    fn records_come_in_the_order_of_the_file_whatever_the_pieces_and_threads() {
        let bytes = lines(300);
        let wanted: Vec<String> = (0..300).map(|i| i.to_string()).collect();
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            for piece in [1, 2, 7, 64, 1000, 1 << 20] {
                let (found, totals) = pool.install(|| firsts(&bytes, piece)).unwrap();
                assert_eq!(found, wanted, "{threads} threads, pieces of {piece}");
                assert_eq!(totals, Totals { lines: 300, bytes: bytes.len() as u64 });
            }
        }
        assert_eq!(firsts(b"", 5).unwrap().1, Totals { lines: 0, bytes: 0 });
    }

    #[test]
    fn damage_is_found_at_its_line_whatever_the_pieces() {
        for piece in [1, 3, 16, 50, 1 << 20] {
            for line in [0, 1, 57, 119] {
                let mut rows: Vec<Vec<u8>> =
                    lines(120).split_inclusive(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
                rows[line] = b"a|b|c|\n".to_vec();
                let message = firsts(&rows.concat(), piece).unwrap_err();
                assert!(message.starts_with(&format!("X.RRF: line {}: 3 columns", line + 1)), "{message}");
                rows[line] = b"a|\xff|\n".to_vec();
                let message = firsts(&rows.concat(), piece).unwrap_err();
                assert!(message.starts_with(&format!("X.RRF: line {}: byte 3", line + 1)), "{message}");
            }
            let message = firsts(&lines(120)[..lines(120).len() - 2], piece).unwrap_err();
            assert!(message.starts_with("X.RRF: line 120: 1 columns, expected 2"), "{message}");
        }
    }

    #[test]
    fn the_first_of_two_errors_is_told() {
        let bytes = b"a|b|\nc|\nd|\xff|\n";
        for piece in [1, 6, 100] {
            assert!(firsts(bytes, piece).unwrap_err().contains("line 2: 1 columns"));
        }
    }

    #[test]
    fn what_the_reader_says_is_told_with_the_line_it_stopped_at() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("the disk is gone"))
            }
        }
        for piece in [1, 20, 1 << 20] {
            let reader = Box::new(Cursor::new(lines(40)).chain(&b"40|be"[..]).chain(Broken));
            let message = read(Input { reader, label: Path::new("X.RRF"), piece }).unwrap_err();
            assert_eq!(message, "X.RRF: line 41: cannot read on: the disk is gone");
        }
    }

    #[test]
    fn a_line_without_end_takes_no_endless_memory() {
        let reader = Box::new(io::repeat(b'x').take(1 << 40));
        let input = Input {
            reader: Box::new(Cursor::new(lines(3)).chain(reader)),
            label: Path::new("X"),
            piece: 1 << 20,
        };
        let message = read(input).unwrap_err();
        assert!(message.contains("X: line 4: the line is longer than"), "{message}");
    }
}
