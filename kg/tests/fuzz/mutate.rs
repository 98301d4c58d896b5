//! Damage to files: flipped bits, cuts, moved lines, strange insertions.

/// Files grow no longer than this.
const LONGEST: usize = 1 << 16;

/// What is put into files: separators, quotes, letters that are none, numbers that are too much.
const STRANGE: [&[u8]; 46] = [
    b"\t",
    b",",
    b"|",
    b"\n",
    b"\r",
    b"\r\n",
    b"\"",
    b"\"\"",
    b"'",
    b"\0",
    b" ",
    b"\\",
    b":",
    b";",
    b"(",
    b")",
    b", ",
    b" (",
    b"(0.5)",
    b" (0.5), ",
    b"<",
    b">",
    b"</",
    b"/>",
    b"&",
    b"&amp;",
    b"&#0;",
    b"]]>",
    b"<!--",
    b"<![CDATA[",
    b"\xff",
    b"\xc3\x28",
    b"\xed\xa0\x80",
    "\u{feff}".as_bytes(),
    "\u{130}".as_bytes(),
    "e\u{301}".as_bytes(),
    "\u{2028}".as_bytes(),
    b"-1",
    b"0",
    b"1e999",
    b"NaN",
    b"inf",
    b"4294967296",
    b"99999999999999999999999",
    b"C9999999",
    b"D999999999",
];

/// Numbers that follow from a target's name and a case's number alone (splitmix64).
#[derive(Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(name: &str, case: u64) -> Self {
        Self(name.bytes().fold(case, |state, byte| state.wrapping_mul(0x100_0000_01b3) ^ u64::from(byte)))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, or 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap()
    }

    /// A range in something of `length`, more often short than long.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        let most = [1, 8, 64, length][self.below(4)].min(length - start);
        start..start + self.below(most + 1)
    }
}

/// Damages `files`, once or several times. `seeds` lend their pieces.
pub(crate) fn mutate(files: &mut [Vec<u8>], seeds: &[Vec<Vec<u8>>], chance: &mut Chance) {
    for _ in 0..=chance.below(4) {
        if chance.below(64) == 0 {
            let (one, other) = (chance.below(files.len()), chance.below(files.len()));
            files.swap(one, other);
        }
        let file = chance.below(files.len());
        if let Some(file) = files.get_mut(file) {
            match chance.below(3) {
                0 => damage_bytes(file, chance),
                1 => damage_lines(file, chance),
                _ => insert(file, seeds, chance),
            }
            file.truncate(LONGEST);
        }
    }
}

fn damage_bytes(file: &mut Vec<u8>, chance: &mut Chance) {
    let place = chance.below(file.len());
    let range = chance.range(file.len());
    match chance.below(6) {
        0 => file.iter_mut().skip(place).take(1).for_each(|byte| *byte ^= 1 << chance.below(8)),
        1 => file.iter_mut().skip(place).take(1).for_each(|byte| *byte = chance.next().to_le_bytes()[0]),
        2 => drop(file.drain(range)),
        3 => file.truncate(place),
        4 => drop(file.drain(..place)),
        _ => {
            let piece = file[range].to_vec();
            file.splice(place..place, piece);
        }
    }
}

fn damage_lines(file: &mut Vec<u8>, chance: &mut Chance) {
    let mut lines: Vec<Vec<u8>> = file.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    let (one, other) = (chance.below(lines.len()), chance.below(lines.len()));
    if lines.is_empty() {
        return;
    }
    match chance.below(4) {
        0 => lines.swap(one, other),
        1 => drop(lines.remove(one)),
        2 => {
            let line = lines[one].clone();
            lines.insert(other, line);
        }
        _ => {
            let separator = b"\t,|"[chance.below(3)];
            let mut fields: Vec<Vec<u8>> =
                lines[one].split(|&byte| byte == separator).map(<[u8]>::to_vec).collect();
            let (from, to) = (chance.below(fields.len()), chance.below(fields.len()));
            fields.swap(from, to);
            lines[one] = fields.join(&separator);
        }
    }
    *file = lines.concat();
}

fn insert(file: &mut Vec<u8>, seeds: &[Vec<Vec<u8>>], chance: &mut Chance) {
    let place = chance.below(file.len() + 1);
    let strange = STRANGE[chance.below(STRANGE.len())];
    let piece = match chance.below(8) {
        0..=4 => strange.to_vec(),
        5 => strange.repeat(1 + chance.below(4096)),
        6 => {
            let other = &seeds[chance.below(seeds.len())];
            let other = &other[chance.below(other.len())];
            other[chance.range(other.len())].to_vec()
        }
        _ => {
            let end = (place + strange.len()).min(file.len());
            file.drain(place..end);
            strange.to_vec()
        }
    };
    file.splice(place..place, piece);
}
