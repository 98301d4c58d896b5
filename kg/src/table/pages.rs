//! What the pages of a Parquet file take when they are unpacked, read off their headers before anything is decoded.
//!
//! A footer may say anything, and a page of two kilobytes may unpack to gigabytes, so each page's own header is looked at. Headers are in
//! thrift's compact protocol; `parquet` reads them too, but does not show their sizes.

mod thrift;

use std::io::Read;

use flate2::read::MultiGzDecoder;
use parquet::basic::{Compression, Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::ChunkReader;

use self::thrift::{I32, LIST, STRUCT, Thrift};

/// Deepest schema that is read; `parquet` goes down it by calling itself.
const DEEPEST: usize = 64;
/// Bytes behind the footer: its length, and Parquet's mark.
const TAIL: u64 = 8;

/// What kind of page it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Values.
    Data,
    /// What values refer to by number.
    Dictionary,
    /// Neither; it is skipped.
    Other,
}

/// What the header of a page says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// What kind it is.
    pub kind: Kind,
    /// Bytes in the file, its header not counted.
    pub packed: u64,
    /// Bytes in memory.
    pub unpacked: u64,
    /// Values, nulls included.
    pub values: u64,
    /// How values are written, as the format numbers it.
    pub encoding: i64,
    /// Bytes in front, in the file as in memory, that are never packed.
    pub bare: u64,
}

fn damaged(problem: impl std::fmt::Display) -> ParquetError {
    ParquetError::General(problem.to_string())
}

/// Bytes of each value of a column, where they are as many for all.
#[must_use]
pub fn width(chunk: &ColumnChunkMetaData) -> Option<u64> {
    match chunk.column_type() {
        Type::BYTE_ARRAY => None,
        Type::BOOLEAN => Some(1),
        Type::INT32 | Type::FLOAT => Some(4),
        Type::INT64 | Type::DOUBLE => Some(8),
        Type::INT96 => Some(12),
        Type::FIXED_LEN_BYTE_ARRAY => u64::try_from(chunk.column_descr().type_length()).ok(),
    }
}

/// The numbers of codings whose values are in the dictionary.
pub const IN_DICTIONARY: [i64; 2] = [2, 8];
/// The numbers of those that are read: as they are, in the dictionary, runs of truths, bytes by their place. The others (deltas) begin with
/// numbers of values for which `parquet` makes room before it has seen one.
const READ: [i64; 5] = [0, 2, 8, 3, 9];

/// Refuses a page for which `parquet` would make room for more values than it can hold.
fn check(page: &Page, width: Option<u64>) -> Result<()> {
    // A text has its length in front.
    let least = width.unwrap_or(4).max(1);
    match page.kind {
        Kind::Dictionary if page.values.saturating_mul(least) > page.unpacked.max(page.packed) => {
            Err(damaged(format!("a dictionary of {} values has {} bytes", page.values, page.unpacked)))
        }
        Kind::Data if !READ.contains(&page.encoding) => Err(damaged(format!(
            "values are coded as deltas or otherwise (encoding {} of the format), which is not read here: write the file anew with plain values and dictionaries, as pyarrow does by itself",
            page.encoding
        ))),
        _ => Ok(()),
    }
}

/// Hands each page of a column chunk to `take`.
///
/// # Errors
/// When a header is damaged, or its page would take more memory than what is in it, or what `take` says.
pub fn walk<R: ChunkReader>(
    chunks: &R,
    chunk: &ColumnChunkMetaData,
    mut take: impl FnMut(Page) -> Result<()>,
) -> Result<()> {
    let (mut at, length) = chunk.byte_range();
    let end = at.checked_add(length).ok_or_else(|| damaged("a column lies outside the file"))?;
    while at < end {
        let mut header = Thrift::new(chunks.get_read(at)?);
        let page = page(&mut header)?;
        let body = at.saturating_add(header.read);
        at = body.saturating_add(page.packed);
        if at > end {
            return Err(damaged("a page lies outside its column"));
        }
        if page.kind != Kind::Other {
            check(&page, width(chunk))?;
            check_packing(chunks, chunk.compression(), body, &page)?;
            take(page)?;
        }
    }
    Ok(())
}

/// Refuses pages that `parquet` would unpack without end, whatever their headers say. It stops at the size that they say for all other packings.
fn check_packing<R: ChunkReader>(chunks: &R, packing: Compression, at: u64, page: &Page) -> Result<()> {
    match packing {
        Compression::GZIP(_) => {}
        Compression::LZ4 => {
            let problem = "its pages are packed by Hadoop's LZ4, which is not read here: write the file anew with LZ4_RAW, Snappy, gzip or zstd";
            return Err(damaged(problem));
        }
        _ => return Ok(()),
    }
    let (Some(packed), Some(unpacked)) =
        (page.packed.checked_sub(page.bare), page.unpacked.checked_sub(page.bare))
    else {
        return Err(damaged("a page's levels are longer than the page"));
    };
    let body = chunks.get_bytes(at.saturating_add(page.bare), usize::try_from(packed)?)?;
    // What is packed otherwise than as gzip is an error of the decoder's own.
    let one_more = unpacked.saturating_add(1);
    let found = std::io::copy(&mut MultiGzDecoder::new(body.as_ref()).take(one_more), &mut std::io::sink())
        .unwrap_or(0);
    if found > unpacked {
        return Err(damaged(format!(
            "a page unpacks to more than the {} bytes that its header says",
            page.unpacked
        )));
    }
    Ok(())
}

/// The header of a page: 1 type, 2 unpacked size, 3 packed size, 5, 7 and 8 what a kind of page has besides.
fn page<R: Read>(from: &mut Thrift<R>) -> Result<Page> {
    let (mut kind, mut unpacked, mut packed) = (None, None, None);
    let (mut data, mut dictionary, mut data_v2) = (None, None, None);
    let mut last = 0;
    while let Some(field) = from.field(&mut last)? {
        match field {
            (1, I32) => kind = Some(from.number()?),
            (2, I32) => unpacked = u64::try_from(from.number()?).ok(),
            (3, I32) => packed = u64::try_from(from.number()?).ok(),
            (5, STRUCT) => data = Some(values(from, 2, &[])?),
            (7, STRUCT) => dictionary = Some(values(from, 2, &[])?),
            (8, STRUCT) => data_v2 = Some(values(from, 4, &[5, 6])?),
            (1 | 2 | 3 | 5 | 7 | 8, _) => return Err(damaged("a field of a page's header has another type")),
            (_, kind) => from.skip(kind)?,
        }
    }
    let (kind, of) = match kind {
        Some(0) => (Kind::Data, data),
        Some(2) => (Kind::Dictionary, dictionary),
        Some(3) => (Kind::Data, data_v2),
        _ => (Kind::Other, Some((0, 0, 0))),
    };
    match (unpacked, packed, of) {
        (Some(unpacked), Some(packed), Some((values, encoding, bare))) => {
            Ok(Page { kind, packed, unpacked, values, encoding, bare })
        }
        _ => Err(damaged("a page's header lacks its sizes")),
    }
}

/// Number of values (field 1), their encoding, and the sum of the fields with lengths of levels.
fn values<R: Read>(from: &mut Thrift<R>, encoding: i64, levels: &[i64]) -> Result<(u64, i64, u64)> {
    let (mut values, mut written, mut bare, mut last) = (None, None, 0_u64, 0);
    while let Some((field, kind)) = from.field(&mut last)? {
        match (field, kind) {
            (1, I32) => values = u64::try_from(from.number()?).ok(),
            (field, I32) if field == encoding => written = Some(from.number()?),
            (field, I32) if levels.contains(&field) => {
                let length = u64::try_from(from.number()?).map_err(|_| damaged("a length below 0"))?;
                bare = bare.saturating_add(length);
            }
            (_, kind) => from.skip(kind)?,
        }
    }
    values
        .zip(written)
        .map(|(values, written)| (values, written, bare))
        .ok_or_else(|| damaged("a page's header lacks its number of values"))
}

/// Looks at the schema in the footer, before `parquet` makes room for as many columns as it says and goes as deep.
///
/// # Errors
/// When it is no tree of columns, or too deep.
pub fn check_schema<R: ChunkReader>(chunks: &R) -> Result<()> {
    let length = chunks.len();
    let Some(tail) = length.checked_sub(TAIL) else { return Err(damaged("the file has no footer")) };
    let bytes = chunks.get_bytes(tail, 4)?;
    let footer = bytes.first_chunk::<4>().map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes)));
    let Some(start) = tail.checked_sub(footer) else {
        return Err(damaged(format!("its footer has {footer} bytes, and the file {length}")));
    };
    let footer = chunks.get_bytes(start, usize::try_from(footer)?)?;
    let mut from = Thrift::new(footer.as_ref());
    let mut last = 0;
    while let Some(field) = from.field(&mut last)? {
        match field {
            (2, LIST) => return tree(&mut from),
            (_, kind) => from.skip(kind)?,
        }
    }
    Err(damaged("its footer has no schema"))
}

/// A list of columns, each with the number of those below it (field 5), in the order of going down.
fn tree<R: Read>(from: &mut Thrift<R>) -> Result<()> {
    let (count, kind) = from.list()?;
    // For each column that is being gone down, how many below it are still to come.
    let mut open: Vec<u64> = Vec::new();
    for number in 0..count {
        let (mut below, mut last) = (0, 0);
        while let Some(field) = from.field(&mut last)? {
            match field {
                (5, I32) => below = from.number()?,
                (_, kind) => from.skip(kind)?,
            }
        }
        let below = u64::try_from(below).ok().filter(|below| *below < count - number && kind == STRUCT);
        let below = below.ok_or_else(|| damaged("a column says that more lie below it than there are"))?;
        match open.last_mut() {
            Some(left) => *left -= 1,
            None if number > 0 => return Err(damaged("a column lies below none")),
            None => {}
        }
        open.push(below);
        while open.last() == Some(&0) {
            open.pop();
        }
        if open.len() > DEEPEST {
            return Err(damaged(format!("columns lie more than {DEEPEST} deep")));
        }
    }
    if open.is_empty() { Ok(()) } else { Err(damaged("a column lacks those below it")) }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn read(header: &[u8]) -> Result<Page> {
        page(&mut Thrift::new(header))
    }

    #[test]
    fn headers_are_read_whatever_lies_between_their_fields() {
        // Fields 1 to 3 are 0, 1000 and 20; 4 is a CRC; 5 has 7 values, plain, and statistics that are skipped.
        let header = [
            0x15, 0, 0x15, 0xd0, 0x0f, 0x15, 0x28, 0x15, 2, 0x1c, 0x15, 14, 0x15, 0, 0x3c, 0x18, 1, 9, 0, 0,
            0,
        ];
        let page = read(&header).unwrap();
        assert_eq!(
            page,
            Page { kind: Kind::Data, packed: 20, unpacked: 1000, values: 7, encoding: 0, bare: 0 }
        );
        for end in 0..header.len() {
            assert!(read(&header[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn silent_18_a_dictionary_of_more_values_than_bytes_is_refused() {
        let page =
            |values| Page { kind: Kind::Dictionary, packed: 20, unpacked: 400, values, encoding: 0, bare: 0 };
        assert!(check(&page(100), None).is_ok());
        assert!(
            check(&page(101), None)
                .unwrap_err()
                .to_string()
                .contains("a dictionary of 101 values has 400 bytes")
        );
        assert!(check(&page(i64::MAX as u64), Some(8)).is_err());
    }

    #[test]
    fn silent_18_a_page_of_gzip_unpacks_to_what_its_header_says_and_no_further() {
        let mut packer = flate2::write::GzEncoder::new(b"levels".to_vec(), flate2::Compression::best());
        std::io::Write::write_all(&mut packer, &vec![b'x'; 1 << 20]).unwrap();
        let bytes = Bytes::from(packer.finish().unwrap());
        let unpacked = |unpacked| {
            let packed = bytes.len() as u64;
            let page = Page { kind: Kind::Data, packed, unpacked, values: 9, encoding: 0, bare: 6 };
            check_packing(&bytes, Compression::GZIP(Default::default()), 0, &page)
        };
        assert!(unpacked(6 + (1 << 20)).is_ok());
        let error = unpacked(6 + (1 << 20) - 1).unwrap_err().to_string();
        assert!(error.contains("unpacks to more than the 1048581 bytes"), "{error}");
        assert!(unpacked(5).unwrap_err().to_string().contains("longer than the page"));
    }

    /// A file of nothing but a footer with these columns, each with the number of those below.
    fn file(columns: &[i64]) -> Bytes {
        let varint = |mut value: u64| {
            let mut bytes = vec![];
            while value >= 0x80 {
                bytes.push(value.to_le_bytes()[0] | 0x80);
                value >>= 7;
            }
            bytes.push(value.to_le_bytes()[0]);
            bytes
        };
        let mut footer = vec![0x29, 0xfc];
        footer.extend(varint(columns.len() as u64));
        for below in columns {
            footer.push(0x55);
            footer.extend(varint(below.unsigned_abs() << 1));
            footer.push(0);
        }
        footer.push(0);
        let length = u32::try_from(footer.len()).unwrap().to_le_bytes();
        [b"PAR1".as_slice(), &footer, &length, b"PAR1"].concat().into()
    }

    #[test]
    fn silent_18_schemas_that_are_too_deep_or_claim_too_much_are_refused() {
        let deep = |columns: usize| [vec![1; columns - 1], vec![0]].concat();
        assert!(check_schema(&file(&[2, 0, 0])).is_ok());
        assert!(check_schema(&file(&deep(DEEPEST))).is_ok());
        let refused = |columns: &[i64]| check_schema(&file(columns)).unwrap_err().to_string();
        assert!(refused(&deep(100_000)).contains("columns lie more than 64 deep"));
        assert!(refused(&[i64::from(i32::MAX), 0]).contains("than there are"));
        assert!(refused(&[2, 0]).contains("than there are"));
        assert!(refused(&[1, 0, 0]).contains("below none"));
    }
}
