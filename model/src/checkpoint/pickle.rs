//! `pytorch_model.bin`: the few instructions of a pickle that a list of tensors is made of, run within bounds. None of them does anything but
//! say where a tensor lies, so nothing of the file is ever executed; whatever else a pickle could ask for is refused by its name.
//!
//! This is ours because candle's reader checks no CRC, panics at some programs and overflows the stack at others.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use safetensors::Dtype;

use super::error;
use super::place::{Place, bytes_of};
use super::zip::{Entry, entries};
use crate::Error;

/// Most bytes of a program, values on its stack or in its memory, and tuples in tuples: a BERT has some ten thousand bytes, and three.
const PROGRAM: usize = 1 << 24;
const VALUES: usize = 1 << 20;
const DEPTH: u8 = 8;

/// What a value is.
#[derive(Debug, Clone)]
enum Value {
    /// What tuples and lists of arguments begin behind.
    Mark,
    /// Nothing, truths and lists: arguments that say nothing of a tensor.
    Other,
    Int(i64),
    Text(Rc<str>),
    /// With the depth of tuples in it.
    Tuple(Rc<Vec<Value>>, u8),
    /// The number of a dictionary, so that one can be in itself without any end.
    Dict(usize),
    Global(Global),
    Storage(Rc<Storage>),
    Tensor(Rc<Place>),
}

/// What is asked for by name.
#[derive(Debug, Clone, Copy)]
enum Global {
    OrderedDict,
    RebuildTensor,
    RebuildParameter,
    Storage(Dtype),
}

/// Numbers in the archive.
#[derive(Debug)]
struct Storage {
    dtype: Dtype,
    start: u64,
    count: usize,
}

/// Names of storages, and what their numbers are.
const STORAGES: [(&str, Dtype); 9] = [
    ("FloatStorage", Dtype::F32),
    ("HalfStorage", Dtype::F16),
    ("BFloat16Storage", Dtype::BF16),
    ("DoubleStorage", Dtype::F64),
    ("LongStorage", Dtype::I64),
    ("IntStorage", Dtype::I32),
    ("ShortStorage", Dtype::I16),
    ("CharStorage", Dtype::I8),
    ("BoolStorage", Dtype::BOOL),
];

/// Where the tensors of the file lie.
pub(super) fn places(path: &Path) -> Result<BTreeMap<String, Place>, Error> {
    let wrong = |problem: String| error::pickle(path, problem);
    let entries = entries(path)?;
    let of = |name: &str| {
        entries.iter().find(|(found, _)| found.split_once('/').is_some_and(|(_, of)| of == name))
    };
    if let Some((_, order)) = of("byteorder") {
        let order = bytes_of(path, order.start, 16.min(order.size))?;
        if order != b"little" {
            return Err(wrong("its numbers have their bytes in another order".to_owned()));
        }
    }
    let (name, program) = of("data.pkl").ok_or_else(|| wrong("it has no data.pkl".to_owned()))?;
    if program.size > PROGRAM {
        return Err(wrong(format!("data.pkl has {} bytes, expected at most {PROGRAM}", program.size)));
    }
    let bytes = bytes_of(path, program.start, program.size)?;
    let data = format!("{}data/", name.trim_end_matches("data.pkl"));
    let mut machine = Machine {
        bytes: &bytes,
        at: 0,
        stack: vec![],
        memory: BTreeMap::new(),
        dicts: vec![],
        entries: &entries,
        data,
    };
    machine.run().map_err(|problem| wrong(format!("byte {} of data.pkl: {problem}", machine.at)))
}

/// A program under way.
struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    stack: Vec<Value>,
    memory: BTreeMap<u32, Value>,
    dicts: Vec<Vec<(Rc<str>, Value)>>,
    entries: &'a BTreeMap<String, Entry>,
    /// What names of storages begin with.
    data: String,
}

/// Why a program is none of those that list tensors.
type Problem = String;

impl Machine<'_> {
    fn run(&mut self) -> Result<BTreeMap<String, Place>, Problem> {
        loop {
            let [code] = self.take()?;
            if code == b'.' {
                break;
            }
            self.step(code)?;
            if self.stack.len().max(self.memory.len()).max(self.dicts.len()) > VALUES {
                return Err(format!("more than {VALUES} values"));
            }
        }
        let Some(Value::Dict(dict)) = self.stack.pop() else {
            return Err("what it makes is no list of tensors by name".to_owned());
        };
        let mut places = BTreeMap::new();
        for (name, value) in std::mem::take(&mut self.dicts[dict]) {
            let Value::Tensor(place) = value else {
                return Err(format!("{name} is no tensor: save the model's state_dict and nothing else"));
            };
            if places.insert(name.to_string(), Place::clone(&place)).is_some() {
                return Err(format!("{name} stands there twice"));
            }
        }
        Ok(places)
    }

    fn step(&mut self, code: u8) -> Result<(), Problem> {
        let value = match code {
            // The version of the protocol says nothing that the instructions do not.
            0x80 => return self.take::<1>().map(|_| ()),
            b'q' | b'r' => return self.remember(code),
            b's' | b'u' => return self.fill(code),
            b'b' => {
                // The state of an object: that of a list of tensors is what versions its modules have.
                self.pop()?;
                return Ok(());
            }
            b'(' => Value::Mark,
            b'N' | 0x88 | 0x89 | b']' => Value::Other,
            b'}' => self.dict(),
            b'h' | b'j' => {
                let number = self.number(code == b'h')?;
                self.memory.get(&number).cloned().ok_or(format!("nothing was remembered as {number}"))?
            }
            b'K' => Value::Int(i64::from(self.take::<1>()?[0])),
            b'M' => Value::Int(i64::from(u16::from_le_bytes(self.take()?))),
            b'J' => Value::Int(i64::from(i32::from_le_bytes(self.take()?))),
            0x8a => Value::Int(self.long()?),
            b'X' => Value::Text(self.text()?),
            b'c' => Value::Global(self.global()?),
            b')' => tuple(vec![])?,
            0x85..=0x87 => {
                let count = usize::from(code - 0x84);
                let first = self.stack.len().checked_sub(count).ok_or("too few values")?;
                tuple(self.stack.split_off(first))?
            }
            b't' => {
                let values = self.behind_mark()?;
                tuple(values)?
            }
            b'Q' => self.storage()?,
            b'R' => self.call()?,
            _ => return Err(format!("instruction {code:#04x}, which no list of tensors needs")),
        };
        self.stack.push(value);
        Ok(())
    }

    /// The next bytes.
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Problem> {
        let bytes = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>());
        self.at += N;
        bytes.copied().ok_or("it ends too early".to_owned())
    }

    #[expect(clippy::fn_params_excessive_bools, reason = "each instruction has a short and a long form")]
    fn number(&mut self, short: bool) -> Result<u32, Problem> {
        Ok(if short { u32::from(self.take::<1>()?[0]) } else { u32::from_le_bytes(self.take()?) })
    }

    fn long(&mut self) -> Result<i64, Problem> {
        let [count] = self.take()?;
        let mut bytes = vec![];
        for _ in 0..count {
            bytes.extend(self.take::<1>()?);
        }
        let sign = if bytes.last().is_some_and(|last| last & 0x80 != 0) { 0xff } else { 0 };
        bytes.resize(bytes.len().max(8), sign);
        let (low, high) = bytes.split_first_chunk().ok_or("too short a number")?;
        if high.is_empty() {
            Ok(i64::from_le_bytes(*low))
        } else {
            Err("a number of more than 64 bits".to_owned())
        }
    }

    fn text(&mut self) -> Result<Rc<str>, Problem> {
        let length = u32::from_le_bytes(self.take()?) as usize;
        let bytes = self
            .bytes
            .get(self.at..)
            .and_then(|rest| rest.get(..length))
            .ok_or("a text that ends too early")?;
        self.at += length;
        std::str::from_utf8(bytes).map(Rc::from).map_err(|error| error.to_string())
    }

    fn line(&mut self) -> Result<&str, Problem> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let length = rest.iter().take(100).position(|byte| *byte == b'\n').ok_or("a name without an end")?;
        self.at += length + 1;
        std::str::from_utf8(&rest[..length]).map_err(|error| error.to_string())
    }

    fn global(&mut self) -> Result<Global, Problem> {
        let module = self.line()?.to_owned();
        let name = self.line()?;
        let storage = STORAGES.iter().find(|(storage, _)| module == "torch" && *storage == name);
        Ok(match (module.as_str(), name, storage) {
            (_, _, Some((_, dtype))) => Global::Storage(*dtype),
            ("collections", "OrderedDict", _) => Global::OrderedDict,
            ("torch._utils", "_rebuild_tensor_v2", _) => Global::RebuildTensor,
            ("torch._utils", "_rebuild_parameter", _) => Global::RebuildParameter,
            _ => return Err(format!("it asks for {module}.{name}, which no list of tensors needs")),
        })
    }

    fn pop(&mut self) -> Result<Value, Problem> {
        self.stack.pop().ok_or("too few values".to_owned())
    }

    fn behind_mark(&mut self) -> Result<Vec<Value>, Problem> {
        let mark = self
            .stack
            .iter()
            .rposition(|value| matches!(value, Value::Mark))
            .ok_or("values without a mark")?;
        let values = self.stack.split_off(mark + 1);
        self.stack.pop();
        Ok(values)
    }

    fn remember(&mut self, code: u8) -> Result<(), Problem> {
        let number = self.number(code == b'q')?;
        let value = self.stack.last().cloned().ok_or("nothing to remember")?;
        self.memory.insert(number, value);
        Ok(())
    }

    fn dict(&mut self) -> Value {
        self.dicts.push(vec![]);
        Value::Dict(self.dicts.len() - 1)
    }

    /// Puts one pair, or all behind the mark, into the dictionary under them.
    fn fill(&mut self, code: u8) -> Result<(), Problem> {
        let values = if code == b'u' {
            self.behind_mark()?
        } else {
            let first = self.stack.len().checked_sub(2).ok_or("too few values")?;
            self.stack.split_off(first)
        };
        let Some(Value::Dict(dict)) = self.stack.last() else {
            return Err("names for no dictionary".to_owned());
        };
        for pair in values.chunks(2) {
            let [Value::Text(name), value] = pair else { return Err("a value without a name".to_owned()) };
            self.dicts[*dict].push((Rc::clone(name), value.clone()));
        }
        Ok(())
    }

    /// The numbers that a tuple of `storage`, their kind, their name, a device and their count speaks of.
    fn storage(&mut self) -> Result<Value, Problem> {
        let Value::Tuple(of, _) = self.pop()? else { return Err("numbers without a name".to_owned()) };
        let [
            Value::Text(kind),
            Value::Global(Global::Storage(dtype)),
            Value::Text(key),
            Value::Text(_),
            Value::Int(count),
        ] = &of[..]
        else {
            return Err("numbers without a name".to_owned());
        };
        let entry = self.entries.get(&format!("{}{key}", self.data)).filter(|_| &**kind == "storage");
        let entry = entry.ok_or_else(|| format!("the archive has no numbers {key}"))?;
        let count = usize::try_from(*count).map_err(|_| format!("{count} numbers"))?;
        match count.checked_mul(dtype.bitsize() / 8) {
            Some(size) if size == entry.size => {}
            _ => return Err(format!("it says that {key} has {count} numbers, of {} bytes", entry.size)),
        }
        Ok(Value::Storage(Rc::new(Storage { dtype: *dtype, start: entry.start, count })))
    }

    fn call(&mut self) -> Result<Value, Problem> {
        let (arguments, function) = (self.pop()?, self.pop()?);
        let (Value::Tuple(arguments, _), Value::Global(function)) = (arguments, function) else {
            return Err("a call of nothing".to_owned());
        };
        match (function, &arguments[..]) {
            (Global::OrderedDict, []) => Ok(self.dict()),
            (Global::RebuildParameter, [tensor @ Value::Tensor(_), ..]) => Ok(tensor.clone()),
            (
                Global::RebuildTensor,
                [
                    Value::Storage(of),
                    Value::Int(offset),
                    Value::Tuple(sizes, _),
                    Value::Tuple(strides, _),
                    ..,
                ],
            ) => Ok(Value::Tensor(Rc::new(place(of, *offset, sizes, strides)?))),
            _ => Err(format!("a call of {function:?} with other arguments than a tensor's")),
        }
    }
}

/// A tuple of values, unless tuples lie too deep in each other.
fn tuple(values: Vec<Value>) -> Result<Value, Problem> {
    let depths = values.iter().map(|value| if let Value::Tuple(_, depth) = value { *depth } else { 0 });
    let depth = 1 + depths.max().unwrap_or(0);
    if depth > DEPTH {
        return Err(format!("tuples that lie more than {DEPTH} deep in each other"));
    }
    Ok(Value::Tuple(Rc::new(values), depth))
}

/// A tensor of stored numbers, of which each stands there once: in the order of its axes, or with axes exchanged, as those that came from
/// TensorFlow are.
fn place(of: &Storage, offset: i64, sizes: &[Value], strides: &[Value]) -> Result<Place, Problem> {
    let numbers = |of: &[Value]| -> Result<Vec<usize>, Problem> {
        let number = |value: &Value| match value {
            Value::Int(number) => usize::try_from(*number).map_err(|_| format!("a size of {number}")),
            _ => Err("a size that is no number".to_owned()),
        };
        of.iter().map(number).collect()
    };
    let (shape, strides, offset) = (numbers(sizes)?, numbers(strides)?, numbers(&[Value::Int(offset)])?[0]);
    if shape.len() != strides.len() || shape.len() > usize::from(DEPTH) {
        return Err(format!("a tensor of {} sizes and {} strides", shape.len(), strides.len()));
    }
    let mut order: Vec<usize> = (0..shape.len()).collect();
    order.sort_by_key(|axis| Reverse(strides[*axis]));
    let mut count = 1_usize;
    for axis in order.iter().rev() {
        if shape[*axis] > 1 && strides[*axis] != count {
            return Err("a tensor whose numbers do not lie side by side".to_owned());
        }
        count = count.checked_mul(shape[*axis]).ok_or("a tensor of more numbers than there are")?;
    }
    if offset.checked_add(count).is_none_or(|end| end > of.count) {
        return Err(format!("a tensor of {count} numbers from {offset} on, of {}", of.count));
    }
    let start = of.start + (offset * (of.dtype.bitsize() / 8)) as u64;
    let order = (!order.is_sorted()).then_some(order);
    Ok(Place { file: 0, start, dtype: of.dtype, shape, order })
}

#[cfg(test)]
mod tests;
