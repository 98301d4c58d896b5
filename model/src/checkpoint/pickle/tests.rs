//! Tests of pickles: those that list tensors, damaged ones, and programs that would do something else.

use candle_core::Device;

use super::*;
use crate::checkpoint::stored::Stored;
use crate::checkpoint::whole;

/// A program in the making, instruction by instruction as `torch.save` writes it.
#[derive(Default)]
struct Program(Vec<u8>);

/// What a program says of a tensor.
#[derive(Clone)]
struct Said<'a> {
    name: &'a str,
    kind: &'a str,
    key: &'a str,
    count: i64,
    offset: i64,
    shape: &'a [i64],
    strides: &'a [i64],
}

const PLAIN: Said<'static> =
    Said { name: "a", kind: "FloatStorage", key: "0", count: 6, offset: 0, shape: &[2, 3], strides: &[3, 1] };

impl Program {
    fn op(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend(bytes);
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.op(b"X").op(&u32::try_from(text.len()).unwrap().to_le_bytes()).op(text.as_bytes())
    }

    fn int(&mut self, int: i64) -> &mut Self {
        match u8::try_from(int) {
            Ok(byte) => self.op(&[b'K', byte]),
            Err(_) => self.op(&[0x8a, 8]).op(&int.to_le_bytes()),
        }
    }

    fn tuple(&mut self, ints: &[i64]) -> &mut Self {
        self.op(b"(");
        ints.iter().for_each(|int| {
            self.int(*int);
        });
        self.op(b"t")
    }

    fn tensor(&mut self, said: &Said<'_>) -> &mut Self {
        self.text(said.name).op(b"ctorch._utils\n_rebuild_tensor_v2\nq\x01((").text("storage");
        self.op(format!("ctorch\n{}\n", said.kind).as_bytes()).text(said.key).text("cpu").int(said.count);
        self.op(b"tQ").int(said.offset).tuple(said.shape).tuple(said.strides);
        self.op(b"\x89ccollections\nOrderedDict\n)RtR")
    }
}

/// A list of these tensors.
fn listing(all: &[Said<'_>]) -> Vec<u8> {
    let mut program = Program::default();
    program.op(b"\x80\x02ccollections\nOrderedDict\n)Rq\x00(");
    for said in all {
        program.tensor(said);
    }
    program.op(b"u}").text("_metadata").op(b"}sb.").0.clone()
}

/// An archive of stored files.
fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut bytes, mut list) = (vec![], vec![]);
    for (name, contents) in files {
        let size = u32::try_from(contents.len()).unwrap().to_le_bytes();
        let sizes = [&crc32fast::hash(contents).to_le_bytes()[..], &size, &size].concat();
        let name_size = [u8::try_from(name.len()).unwrap(), 0];
        let start = u32::try_from(bytes.len()).unwrap().to_le_bytes();
        bytes.extend([b"PK\x03\x04\0\0\0\0\0\0\0\0\0\0", &sizes[..], &name_size, b"\0\0"].concat());
        bytes.extend([name.as_bytes(), contents].concat());
        let head = [b"PK\x01\x02\0\0\0\0\0\0\0\0\0\0\0\0", &sizes[..], &name_size, &[0; 12], &start].concat();
        list.extend([&head, name.as_bytes()].concat());
    }
    let (start, size) = (u32::try_from(bytes.len()).unwrap(), u32::try_from(list.len()).unwrap());
    bytes.extend(list);
    bytes.extend(
        [b"PK\x05\x06\0\0\0\0\0\0\0\0", &size.to_le_bytes()[..], &start.to_le_bytes(), b"\0\0"].concat(),
    );
    bytes
}

const NUMBERS: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

fn with(program: &[u8]) -> Vec<u8> {
    let numbers: Vec<u8> = NUMBERS.iter().flat_map(|number| number.to_le_bytes()).collect();
    archive(&[
        ("x/data.pkl", program),
        ("x/byteorder", b"little"),
        ("x/data/0", &numbers),
        ("x/version", b"3\n"),
    ])
}

/// What is found in an archive, or why nothing is.
fn read(bytes: &[u8]) -> Result<BTreeMap<String, Vec<Vec<f32>>>, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pytorch_model.bin");
    whole::write(&path, bytes).unwrap();
    let stored = Stored::pickled(&path).map_err(|error| error.to_string())?;
    let each = stored.names().map(|name| {
        let tensor = stored.read(name, &Device::Cpu).map_err(|error| error.to_string())?;
        Ok((name.to_owned(), tensor.to_vec2().unwrap()))
    });
    each.collect()
}

fn refused(program: &[u8]) -> String {
    read(&with(program)).unwrap_err()
}

#[test]
fn silent_06_tensors_are_where_the_program_says_also_with_axes_exchanged() {
    let exchanged = Said { name: "b", shape: &[3, 2], strides: &[1, 3], ..PLAIN };
    let part = Said { name: "c", offset: 4, shape: &[1, 2], strides: &[7, 1], ..PLAIN };
    let found = read(&with(&listing(&[PLAIN, exchanged, part]))).unwrap();
    assert_eq!(found["a"], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    assert_eq!(found["b"], [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]);
    assert_eq!(found["c"], [[5.0, 6.0]]);
}

#[test]
fn silent_06_every_flipped_bit_of_the_archives_contents_is_found() {
    let program = listing(&[PLAIN]);
    let whole = with(&program);
    let expected = read(&whole).unwrap();
    let numbers: Vec<u8> = NUMBERS.iter().flat_map(|number| number.to_le_bytes()).collect();
    let contents = [program, numbers].map(|contents| {
        let at = whole.windows(contents.len()).position(|window| window == contents).unwrap();
        at..at + contents.len()
    });
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        match read(&damaged) {
            Err(text) => assert!(text.contains("pytorch_model.bin"), "{text}"),
            // Dates and versions of the archive's own list, which say nothing of a tensor.
            Ok(found) => {
                assert!(!contents.iter().any(|contents| contents.contains(&at)), "byte {at}");
                assert_eq!(found, expected, "byte {at}");
            }
        }
    }
    for length in 0..whole.len() {
        assert!(read(&whole[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn silent_06_programs_that_are_no_list_of_tensors_are_refused_within_bounds() {
    let nested = [&b"\x80\x02)"[..], &b"\x85".repeat(3_000_000), b"."].concat();
    assert!(refused(&nested).contains("deep in each other"));
    assert!(refused(&[&b"\x80\x02"[..], &b"(".repeat(5_000_000), b"."].concat()).contains("more than"));
    let growing = [&b"\x80\x02)"[..], &b"q\x00h\x00h\x00\x87".repeat(30), b"."].concat();
    assert!(refused(&growing).contains("deep in each other"));
    let command = b"\x80\x02cos\nsystem\n(X\x04\x00\x00\x00trueotR.";
    assert!(refused(command).contains("os.system, which no list of tensors needs"));
    for cut in [&b"\x80\x02X\xff\xff\xff\xff."[..], b"\x80\x02K", b"\x80", b"", b"\x80\x02\x8a\xff\x01"] {
        assert!(refused(cut).contains("too early"), "{cut:?}: {}", refused(cut));
    }
    for odd in [
        &b"."[..],
        b"K\x01.",
        b"t.",
        b"R.",
        b"Q.",
        b"u.",
        b"s.",
        b"b.",
        b"q\x00.",
        b"h\x09.",
        b"\x86.",
        b"\x8e.",
    ] {
        assert!(refused(odd).contains("data.pkl"), "{odd:?}");
    }
    // A dictionary that is in itself has no end, and is no list of tensors.
    let round = [&b"}q\x00("[..], b"X\x01\x00\x00\x00ah\x00u."].concat();
    assert!(refused(&round).contains("a is no tensor"));
    let twice = listing(&[PLAIN, PLAIN]);
    assert!(refused(&twice).contains("a stands there twice"));
}

#[test]
fn silent_06_sizes_that_lie_are_refused_before_anything_is_allocated() {
    let lies: [(Said<'_>, &str); 9] = [
        (Said { shape: &[1 << 40, 1 << 40], strides: &[1 << 40, 1], ..PLAIN }, "more numbers than there are"),
        (Said { shape: &[2, 4], strides: &[4, 1], ..PLAIN }, "of 6"),
        (Said { offset: 1, ..PLAIN }, "from 1 on, of 6"),
        (Said { offset: -5, ..PLAIN }, "a size of -5"),
        (Said { offset: i64::MAX, ..PLAIN }, "of 6"),
        (Said { strides: &[0, 0], ..PLAIN }, "do not lie side by side"),
        (Said { count: 1 << 60, ..PLAIN }, "it says that 0 has"),
        (Said { key: "../../etc/passwd", ..PLAIN }, "the archive has no numbers"),
        (Said { kind: "QInt8Storage", ..PLAIN }, "torch.QInt8Storage, which no list"),
    ];
    for (said, part) in lies {
        let text = refused(&listing(&[said]));
        assert!(text.contains(part) && text.contains("since PyTorch 1.6"), "{part}: {text}");
    }
    let whole_numbers = Said { kind: "LongStorage", count: 3, shape: &[1, 3], ..PLAIN };
    assert!(refused(&listing(&[whole_numbers])).contains("its numbers are I64"));
}
