//! TensorBoard's event files: numbers over steps as records that `tensorboard --logdir` draws.
//!
//! A file is a row of TFRecords: length (8 bytes, little-endian), masked CRC-32C of the length, the record, masked CRC-32C of the
//! record. Records are protocol buffers of TensorFlow's `event.proto` and `summary.proto`; the first says `brain.Event:2`. Equal
//! numbers give equal bytes.

use serde_json::{Map, Value};

/// Name of an event file. TensorBoard takes any that contains `tfevents`.
pub(crate) const FILE: &str = "events.out.tfevents.engraft";

/// What a reader expects at the beginning.
const FIRST: &str = "brain.Event:2";

/// When everything was, in seconds since the Unix epoch: without clock times a file depends on its numbers alone, and TensorBoard draws them over steps.
const WALL_TIME: f64 = 0.0;

/// How an event file begins.
pub(crate) fn begin() -> Vec<u8> {
    let mut bytes = Vec::new();
    record(&mut bytes, &first());
    bytes
}

/// The records of a line of metrics, one for each number, tagged with the path of its keys: `{"step": 3, "tasks": {"relation": {"loss": 0.5}}}` is
/// the number `train/tasks/relation/loss` of step 3, `under` being `train`. Texts, truths, nulls and lists have no place on a board, nor has a line
/// without a step.
pub(crate) fn records(line: &Map<String, Value>, under: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(step) = line.get("step").and_then(Value::as_u64) {
        walk(under, line, &mut |tag, value| record(&mut bytes, &event(step, tag, value)));
    }
    bytes
}

/// All numbers of `object` and what is in it, in its order, but for the step itself.
fn walk(path: &str, object: &Map<String, Value>, each: &mut impl FnMut(&str, f32)) {
    for (name, value) in object.iter().filter(|(name, _)| *name != "step") {
        let tag = format!("{path}/{name}");
        match value {
            Value::Object(inner) => walk(&tag, inner, each),
            // TensorBoard's numbers are single.
            #[allow(clippy::cast_possible_truncation, reason = "a board shows seven digits at most")]
            Value::Number(number) => each(&tag, number.as_f64().unwrap_or(f64::NAN) as f32),
            _ => {}
        }
    }
}

fn record(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = (bytes.len() as u64).to_le_bytes();
    out.extend(length);
    out.extend(masked(&length).to_le_bytes());
    out.extend(bytes);
    out.extend(masked(bytes).to_le_bytes());
}

/// The check of a record's part: rotated and moved, so that a check of bytes that hold checks is no plain one.
fn masked(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// `Event { wall_time = 1: double, file_version = 3: string }`.
fn first() -> Vec<u8> {
    let mut bytes = Vec::new();
    double(&mut bytes, 1, WALL_TIME);
    nested(&mut bytes, 3, FIRST.as_bytes());
    bytes
}

/// `Event { wall_time = 1: double, step = 2: int64, summary = 5: Summary }`, `Summary { value = 1: repeated Value }`,
/// `Value { tag = 1: string, simple_value = 2: float }`.
fn event(step: u64, tag: &str, number: f32) -> Vec<u8> {
    let mut value = Vec::new();
    nested(&mut value, 1, tag.as_bytes());
    key(&mut value, 2, Wire::Four);
    value.extend(number.to_le_bytes());
    let mut summary = Vec::new();
    nested(&mut summary, 1, &value);
    let mut bytes = Vec::new();
    double(&mut bytes, 1, WALL_TIME);
    key(&mut bytes, 2, Wire::Varint);
    varint(&mut bytes, step);
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
    fn records_of(mut bytes: &[u8]) -> Vec<Vec<u8>> {
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

    /// Step, tag and number of a record, field by field.
    fn told(record: &[u8]) -> (u64, String, f32) {
        let event = fields(record);
        let [Field::Number(1, wall), Field::Number(2, step), Field::Bytes(5, summary)] = &event[..] else {
            panic!("{event:?}")
        };
        assert_eq!(f64::from_bits(*wall), 0.0, "no clock");
        let summary = fields(summary);
        let [Field::Bytes(1, found)] = &summary[..] else { panic!("{summary:?}") };
        let value = fields(found);
        let [Field::Bytes(1, tag), Field::Number(2, bits)] = &value[..] else { panic!("{value:?}") };
        (*step, String::from_utf8(tag.clone()).unwrap(), f32::from_bits(u32::try_from(*bits).unwrap()))
    }

    fn read(line: &str, under: &str) -> Vec<(u64, String, f32)> {
        let line: Map<String, Value> = serde_json::from_str(line).unwrap();
        records_of(&records(&line, under)).iter().map(|record| told(record)).collect()
    }

    #[test]
    fn a_file_begins_as_readers_expect() {
        let [first] = &records_of(&begin())[..] else { panic!("one record") };
        let begun = [Field::Number(1, 0), Field::Bytes(3, b"brain.Event:2".to_vec())];
        assert_eq!(fields(first), begun);
    }

    #[test]
    fn the_numbers_of_a_line_are_read_back_field_by_field_under_the_path_of_their_keys() {
        let line = r#"{"step":300,"epoch":0,"loss":1.5,"tasks":{"relation":{"loss":0.5,"accuracy":1.0,"targets":4}},"verdict":"best","rows":[1],"none":null}"#;
        let at = |tag: &str, value| (300, tag.to_owned(), value);
        let expected = [
            at("train/epoch", 0.0),
            at("train/loss", 1.5),
            at("train/tasks/relation/loss", 0.5),
            at("train/tasks/relation/accuracy", 1.0),
            at("train/tasks/relation/targets", 4.0),
        ];
        assert_eq!(read(line, "train"), expected);
        let long = "ä".repeat(100);
        let found = read(&format!(r#"{{"step":1,"{long}":-3.4028234663852886e38}}"#), "dev");
        assert_eq!(found, [(1, format!("dev/{long}"), f32::MIN)]);
        assert_eq!(read(r#"{"loss":1.5}"#, "train"), [], "no step");
    }
}
