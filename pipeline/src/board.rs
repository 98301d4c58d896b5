//! TensorBoard's event files: numbers over steps as records that `tensorboard --logdir` draws.
//!
//! A file is a row of TFRecords: length (8 bytes, little-endian), masked CRC-32C of the length, the record, masked CRC-32C of the
//! record. Records are protocol buffers of TensorFlow's `event.proto` and `summary.proto`; the first says `brain.Event:2`. Equal
//! numbers give equal bytes.

mod metrics;

use std::io::{self, BufWriter, Write};
use std::path::Path;

use base::whole::{folder, persist, temporary};

pub(crate) use metrics::metrics;

/// Name of an event file. TensorBoard takes any that contains `tfevents`.
pub(crate) const FILE: &str = "events.out.tfevents.engraft";

/// What a reader expects at the beginning.
const FIRST: &str = "brain.Event:2";

/// A number at a step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scalar {
    pub step: u64,
    /// When it was, in seconds since the Unix epoch; TensorBoard's axis `wall`.
    pub seconds: f64,
    /// What it is; TensorBoard puts tags with the same beginning up to a `/` together.
    pub tag: String,
    /// The number; one that is none is drawn as a gap.
    pub value: f32,
}

/// Writes an event file of `scalars`, whole: temporary name, fsync, rename. It has a record for each of them, in their order.
///
/// # Errors
/// The first error among `scalars`, or when the operating system refuses; `path` is then as it was.
pub(crate) fn write<E: From<io::Error>>(
    path: &Path,
    scalars: impl IntoIterator<Item = Result<Scalar, E>>,
) -> Result<(), E> {
    let mut file = temporary(folder(path))?;
    let mut out = BufWriter::new(&mut file);
    let mut scalars = scalars.into_iter().peekable();
    let begin = match scalars.peek() {
        Some(Ok(first)) => first.seconds,
        _ => 0.0,
    };
    record(&mut out, &first(begin))?;
    for scalar in scalars {
        record(&mut out, &event(&scalar?))?;
    }
    out.flush()?;
    drop(out);
    Ok(persist(file, path)?)
}

fn record(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = (bytes.len() as u64).to_le_bytes();
    out.write_all(&length)?;
    out.write_all(&masked(&length).to_le_bytes())?;
    out.write_all(bytes)?;
    out.write_all(&masked(bytes).to_le_bytes())
}

/// The check of a record's part: rotated and moved, so that a check of bytes that hold checks is no plain one.
fn masked(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// `Event { wall_time = 1: double, file_version = 3: string }`.
fn first(seconds: f64) -> Vec<u8> {
    let mut bytes = Vec::new();
    double(&mut bytes, 1, seconds);
    nested(&mut bytes, 3, FIRST.as_bytes());
    bytes
}

/// `Event { wall_time = 1: double, step = 2: int64, summary = 5: Summary }`, `Summary { value = 1: repeated Value }`,
/// `Value { tag = 1: string, simple_value = 2: float }`.
fn event(scalar: &Scalar) -> Vec<u8> {
    let mut value = Vec::new();
    nested(&mut value, 1, scalar.tag.as_bytes());
    key(&mut value, 2, Wire::Four);
    value.extend(scalar.value.to_le_bytes());
    let mut summary = Vec::new();
    nested(&mut summary, 1, &value);
    let mut bytes = Vec::new();
    double(&mut bytes, 1, scalar.seconds);
    key(&mut bytes, 2, Wire::Varint);
    varint(&mut bytes, scalar.step);
    nested(&mut bytes, 5, &summary);
    bytes
}

/// How a field is laid out.
#[derive(Clone, Copy)]
enum Wire {
    Varint = 0,
    Eight = 1,
    Nested = 2,
    Four = 5,
}

fn key(bytes: &mut Vec<u8>, field: u64, wire: Wire) {
    varint(bytes, field << 3 | wire as u64);
}

/// Seven bits a byte, the lowest first; the top bit says that more come.
fn varint(bytes: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = number.to_le_bytes()[0] & 0x7f;
        number >>= 7;
        if number == 0 {
            return bytes.push(low);
        }
        bytes.push(low | 0x80);
    }
}

fn double(bytes: &mut Vec<u8>, field: u64, value: f64) {
    key(bytes, field, Wire::Eight);
    bytes.extend(value.to_le_bytes());
}

/// Text or a message.
fn nested(bytes: &mut Vec<u8>, field: u64, contents: &[u8]) {
    key(bytes, field, Wire::Nested);
    varint(bytes, contents.len() as u64);
    bytes.extend(contents);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CRC-32C bit by bit, without the table.
    fn checked(bytes: &[u8]) -> u32 {
        let mut crc = u32::MAX;
        for byte in bytes {
            crc ^= u32::from(*byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
            }
        }
        let crc = !crc;
        crc.rotate_right(15).wrapping_add(0xa282_ead8)
    }

    /// The records of a file, as its format says.
    fn records(mut bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut records = Vec::new();
        while !bytes.is_empty() {
            let (length, rest) = bytes.split_at(8);
            let (check, rest) = rest.split_at(4);
            assert_eq!(u32::from_le_bytes(check.try_into().unwrap()), checked(length));
            let length = u64::from_le_bytes(length.try_into().unwrap());
            let (record, rest) = rest.split_at(usize::try_from(length).unwrap());
            let (check, rest) = rest.split_at(4);
            assert_eq!(u32::from_le_bytes(check.try_into().unwrap()), checked(record));
            records.push(record.to_vec());
            bytes = rest;
        }
        records
    }

    /// A field of a message: its number and what it holds; numbers as their bits.
    #[derive(Debug, PartialEq)]
    enum Field {
        Number(u64, u64),
        Bytes(u64, Vec<u8>),
    }

    fn number(bytes: &mut &[u8]) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return number;
            }
        }
    }

    fn fields(mut bytes: &[u8]) -> Vec<Field> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = number(&mut bytes);
            let mut take = |n: usize| {
                let (taken, rest) = bytes.split_at(n);
                bytes = rest;
                taken.to_vec()
            };
            fields.push(match key & 7 {
                1 => Field::Number(key >> 3, u64::from_le_bytes(take(8).try_into().unwrap())),
                5 => Field::Number(key >> 3, u64::from(u32::from_le_bytes(take(4).try_into().unwrap()))),
                0 => Field::Number(key >> 3, number(&mut bytes)),
                2 => {
                    let length = usize::try_from(number(&mut bytes)).unwrap();
                    let (taken, rest) = bytes.split_at(length);
                    bytes = rest;
                    Field::Bytes(key >> 3, taken.to_vec())
                }
                other => panic!("no such wire type: {other}"),
            });
        }
        fields
    }

    fn scalar(step: u64, seconds: f64, tag: &str, value: f32) -> Result<Scalar, io::Error> {
        Ok(Scalar { step, seconds, tag: tag.to_owned(), value })
    }

    #[test]
    fn what_was_written_is_read_back_field_by_field() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let long = "ä".repeat(100);
        write(&path, [scalar(1, 1.5e9, "loss", 0.25), scalar(300, 1.5e9 + 0.5, &long, f32::MIN)]).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let records = records(&bytes);
        assert_eq!(records.len(), 3);
        let begun = [Field::Number(1, 1.5e9f64.to_bits()), Field::Bytes(3, b"brain.Event:2".to_vec())];
        assert_eq!(fields(&records[0]), begun);
        let expected = [(1, 1.5e9f64, "loss", 0.25f32), (300, 1.5e9 + 0.5, &*long, f32::MIN)];
        for (record, (step, seconds, tag, value)) in records[1..].iter().zip(expected) {
            let event = fields(record);
            assert_eq!(event[..2], [Field::Number(1, seconds.to_bits()), Field::Number(2, step)]);
            let [Field::Bytes(5, summary)] = &event[2..] else { panic!("{event:?}") };
            let summary = fields(summary);
            let [Field::Bytes(1, found)] = &summary[..] else { panic!("{summary:?}") };
            let tagged = [Field::Bytes(1, tag.as_bytes().to_vec()), Field::Number(2, value.to_bits().into())];
            assert_eq!(fields(found), tagged);
        }
        write(&path, [scalar(1, 1.5e9, "loss", 0.25), scalar(300, 1.5e9 + 0.5, &long, f32::MIN)]).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "equal numbers, equal bytes");
    }

    #[test]
    fn no_scalar_is_a_file_too_and_an_error_leaves_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        write(&path, [] as [Result<Scalar, io::Error>; 0]).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(records(&bytes).len(), 1);
        let scalars = [scalar(1, 0.0, "a", 1.0), Err(io::Error::other("no more"))];
        assert_eq!(write(&path, scalars).unwrap_err().to_string(), "no more");
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left over");
    }
}
