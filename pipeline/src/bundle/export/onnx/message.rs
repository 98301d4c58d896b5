//! ONNX's messages as Protocol Buffers write them (onnx.proto3): numbers of fields, lengths, little-endian numbers. Knows what stands where, not what it computes.

use std::io::{self, Write};

/// `TensorProto.DataType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Float = 1,
    Int64 = 7,
}

/// An axis of an input or output.
#[derive(Clone, Copy, Debug)]
pub(super) enum Axis {
    /// Of any length, by this name.
    Any(&'static str),
    Of(usize),
}

/// What a node is told beside its inputs.
#[derive(Clone, Debug)]
pub(super) enum Attribute {
    Int(&'static str, i64),
    Ints(&'static str, Vec<i64>),
    Float(&'static str, f32),
}

/// A message in the making.
#[derive(Clone, Debug, Default)]
pub(super) struct Message(Vec<u8>);

/// How a value is written.
const VARINT: u64 = 0;
const LENGTH: u64 = 2;
const FIXED32: u64 = 5;

/// `AttributeProto.AttributeType`.
const FLOAT: u64 = 1;
const INT: u64 = 2;
const INTS: u64 = 7;

impl Message {
    /// Seven bits a byte, the lowest first; the highest bit says that there are more.
    fn varint(&mut self, mut value: u64) {
        loop {
            let [low, ..] = value.to_le_bytes();
            value >>= 7;
            if value == 0 {
                return self.0.push(low & 0x7f);
            }
            self.0.push(low | 0x80);
        }
    }

    fn int(&mut self, field: u64, value: u64) {
        self.varint(field << 3 | VARINT);
        self.varint(value);
    }

    /// A number that may be negative.
    fn signed(&mut self, field: u64, value: i64) {
        self.int(field, value.cast_unsigned());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | LENGTH);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn text(&mut self, field: u64, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    pub(super) fn message(&mut self, field: u64, message: &Self) {
        self.bytes(field, &message.0);
    }

    /// The bytes of a text, for a field that is one.
    pub(super) fn of_text(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }

    /// `NodeProto`: the operation, what it reads and what it gives.
    pub(super) fn node(operation: &str, inputs: &[&str], outputs: &[&str], told: &[Attribute]) -> Self {
        let mut node = Self::default();
        inputs.iter().for_each(|input| node.text(1, input));
        outputs.iter().for_each(|output| node.text(2, output));
        node.text(3, outputs.first().copied().unwrap_or_default());
        node.text(4, operation);
        for attribute in told {
            node.message(5, &attribute.message());
        }
        node
    }

    /// `TensorProto`: a constant of floats.
    pub(super) fn floats(name: &str, shape: &[usize], values: &[f32]) -> Self {
        let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self::tensor(name, shape, Kind::Float, &raw)
    }

    /// `TensorProto`: a constant of whole numbers.
    pub(super) fn ints(name: &str, shape: &[usize], values: &[i64]) -> Self {
        let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self::tensor(name, shape, Kind::Int64, &raw)
    }

    fn tensor(name: &str, shape: &[usize], kind: Kind, raw: &[u8]) -> Self {
        let mut tensor = Self::default();
        shape.iter().for_each(|&axis| tensor.int(1, axis as u64));
        tensor.int(2, kind as u64);
        tensor.text(8, name);
        tensor.bytes(9, raw);
        tensor
    }

    /// `ValueInfoProto`: an input or output.
    pub(super) fn value(name: &str, kind: Kind, axes: &[Axis]) -> Self {
        let (mut shape, mut tensor, mut of, mut value) = <(Self, Self, Self, Self)>::default();
        for axis in axes {
            let mut dimension = Self::default();
            match axis {
                Axis::Of(length) => dimension.int(1, *length as u64),
                Axis::Any(name) => dimension.text(2, name),
            }
            shape.message(1, &dimension);
        }
        tensor.int(1, kind as u64);
        tensor.message(2, &shape);
        of.message(1, &tensor);
        value.text(1, name);
        value.message(2, &of);
        value
    }

    /// `OperatorSetIdProto` of ONNX's own operations.
    pub(super) fn operations(version: u64) -> Self {
        let mut set = Self::default();
        set.text(1, "");
        set.int(2, version);
        set
    }
}

impl Attribute {
    fn message(&self) -> Message {
        let mut attribute = Message::default();
        match self {
            Self::Int(name, value) => {
                attribute.text(1, name);
                attribute.signed(3, *value);
                attribute.int(20, INT);
            }
            Self::Ints(name, values) => {
                attribute.text(1, name);
                values.iter().for_each(|value| attribute.signed(8, *value));
                attribute.int(20, INTS);
            }
            Self::Float(name, value) => {
                attribute.text(1, name);
                attribute.varint(2 << 3 | FIXED32);
                attribute.0.extend_from_slice(&value.to_le_bytes());
                attribute.int(20, FLOAT);
            }
        }
        attribute
    }
}

/// Writes a `ModelProto` whose `GraphProto` has these fields, in this order, without a second copy of them: weights are most of it.
pub(super) fn model(
    to: &mut dyn Write,
    head: &[(u64, Message)],
    version: u64,
    graph: &[(u64, Message)],
) -> io::Result<()> {
    const GRAPH: u64 = 7;
    let mut first = Message::default();
    // `ir_version`.
    first.int(1, version);
    head.iter().for_each(|(field, message)| first.message(*field, message));
    let header = |field: u64, bytes: usize| {
        let mut header = Message::default();
        header.varint(field << 3 | LENGTH);
        header.varint(bytes as u64);
        header.0
    };
    let length = |(field, message): &(u64, Message)| header(*field, message.0.len()).len() + message.0.len();
    to.write_all(&first.0)?;
    to.write_all(&header(GRAPH, graph.iter().map(length).sum()))?;
    for (field, message) in graph {
        to.write_all(&header(*field, message.0.len()))?;
        to.write_all(&message.0)?;
    }
    Ok(())
}
