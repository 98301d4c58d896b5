//! Writes an invented Metathesaurus of any size, to measure readers with: `metathesaurus FOLDER CONSO_ROWS REL_ROWS`.
//!
//! Concept `i` has a few names in a few sources; each relation `k` leads from concept `i` to one other by a map that can be turned
//! round, so that the rows of a concept, from both sides, can be written in the published order without holding any other.
#![allow(clippy::print_stdout, reason = "an example tells what it did")]

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Sources: abbreviation, language, licence level, share of names and of relations in percent.
const SOURCES: [(&str, &str, u8, u64, u64); 14] = [
    ("SNOMEDCT_US", "ENG", 2, 22, 34),
    ("MSH", "ENG", 0, 14, 12),
    ("RXNORM", "ENG", 0, 8, 12),
    ("NCI", "ENG", 0, 10, 9),
    ("LNC", "ENG", 0, 6, 10),
    ("MED-RT", "ENG", 0, 2, 5),
    ("MDR", "ENG", 3, 5, 4),
    ("CPT", "ENG", 4, 2, 3),
    ("GO", "ENG", 0, 2, 3),
    ("SCTSPA", "SPA", 9, 14, 4),
    ("MSHSPA", "SPA", 3, 5, 1),
    ("MSHFRE", "FRE", 3, 4, 1),
    ("MSHGER", "GER", 3, 4, 1),
    ("MTH", "ENG", 0, 2, 1),
];
const TERM_TYPES: [&str; 6] = ["PT", "MH", "SY", "ET", "AB", "OP"];
const SYLLABLES: [&str; 32] = [
    "car", "di", "o", "my", "pa", "thy", "neu", "ro", "lo", "gic", "hy", "per", "ten", "sion", "der", "ma",
    "ti", "tis", "gas", "tro", "en", "te", "ri", "al", "phe", "no", "bar", "bi", "tal", "ne", "phro", "sis",
];
/// Relations; the first `SYMMETRIC` are their own inverses.
const RELATIONS: u64 = 140;
const SYMMETRIC: u64 = 4;
const TYPES: u64 = 127;
/// Concepts are numbered in steps, so that there are free numbers for retired ones.
const STEP: u64 = 5;
/// Concepts that one task writes.
const BLOCK: u64 = 4096;

/// A number that looks drawn, from a purpose and two numbers (the finaliser of SplitMix64).
fn draw(purpose: u64, one: u64, two: u64) -> u64 {
    let mut z = purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ one.wrapping_mul(0xd6e8_feb8_6659_fd93)
        ^ two.rotate_left(32);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A part of a word by its number.
fn syllable(number: u64) -> &'static str {
    usize::try_from(number % 32).ok().and_then(|place| SYLLABLES.get(place)).copied().unwrap_or_default()
}

/// True in `millionths` of a million cases.
fn chance(purpose: u64, (one, two): (u64, u64), millionths: u64) -> bool {
    draw(purpose, one, two) % 1_000_000 < millionths
}

/// One of `SOURCES` by its share.
fn source(number: u64, share: impl Fn(usize) -> u64) -> usize {
    let mut rest = number % 100;
    for place in 0..SOURCES.len() {
        if rest < share(place) {
            return place;
        }
        rest -= share(place);
    }
    0
}

/// From which of its two concepts a fact is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// CUI1 is the object, CUI2 the subject.
    Object,
    /// The other way round, with the inverse relation.
    Subject,
}

/// The sizes.
#[derive(Clone, Copy)]
struct Size {
    concepts: u64,
    /// Relations of a concept, times a million.
    degree: u64,
}

impl Size {
    fn cui(self, concept: u64) -> u64 {
        concept * STEP + 17
    }

    /// How often relation `k` starts from a concept, in millionths: the first is frequent, the last rare.
    fn share(self, k: u64) -> u64 {
        let weight = |k: u64| 1e6 / ((k + 1) as f64).powf(0.9);
        let all: f64 = (0..RELATIONS).map(weight).sum();
        let share = weight(k) / all * self.degree as f64;
        whole(share).min(1_000_000)
    }

    /// Where relation `k` leads: a shift, so that it can be turned round.
    fn object(self, k: u64, subject: u64) -> u64 {
        (subject + draw(1, k, 0) % self.concepts) % self.concepts
    }

    fn subject(self, k: u64, object: u64) -> u64 {
        (object + self.concepts - draw(1, k, 0) % self.concepts) % self.concepts
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number is positive and small"
)]
fn whole(number: f64) -> u64 {
    number as u64
}

/// What the first lines of this file say.
pub(crate) fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [folder, conso, rel] = arguments else {
        return Err("usage: metathesaurus FOLDER CONSO_ROWS REL_ROWS".into());
    };
    let (folder, conso, rel): (_, u64, u64) = (Path::new(folder), conso.parse()?, rel.parse()?);
    // A concept has three names, a fact two rows, and about one in six facts stands in a second source.
    let concepts = (conso / 3).max(1);
    let size = Size { concepts, degree: rel * 1_000_000 / concepts * 100 / 235 };
    std::fs::create_dir_all(folder)?;
    let blocks = concepts.div_ceil(BLOCK);
    let each = |write: fn(Size, u64, &mut Vec<u8>)| {
        move |block: u64| {
            let mut out = Vec::new();
            (block * BLOCK..concepts.min((block + 1) * BLOCK))
                .for_each(|concept| write(size, concept, &mut out));
            out
        }
    };
    let shares: Vec<u64> = (0..RELATIONS).map(|k| size.share(k)).collect();
    file(&folder.join("MRCONSO.RRF"), blocks, each(names))?;
    file(&folder.join("MRSTY.RRF"), blocks, each(types))?;
    file(&folder.join("MRCUI.RRF"), blocks, each(retired))?;
    file(&folder.join("MRREL.RRF"), blocks, |block| {
        let mut out = Vec::new();
        (block * BLOCK..concepts.min((block + 1) * BLOCK))
            .for_each(|one| relations(size, &shares, one, &mut out));
        out
    })?;
    file(&folder.join("MRSAB.RRF"), 1, |_| vocabularies())?;
    file(&folder.join("MRRANK.RRF"), 1, |_| ranks())?;
    file(&folder.join("MRDOC.RRF"), 1, |_| documentation())?;
    Ok(())
}

/// Writes the blocks of a file in order and says how many rows it has.
fn file(path: &Path, blocks: u64, block: impl Fn(u64) -> Vec<u8> + Sync) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let (mut rows, mut bytes) = (0, 0);
    for start in (0..blocks).step_by(16) {
        let wave: Vec<Vec<u8>> = (start..blocks.min(start + 16)).into_par_iter().map(&block).collect();
        for part in wave {
            rows += part.iter().filter(|&&byte| byte == b'\n').count();
            bytes += part.len();
            out.write_all(&part)?;
        }
    }
    println!("{}: {rows} rows, {bytes} bytes", path.display());
    out.flush()
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to memory cannot fail.
    let _ = out.write_fmt(text);
}

fn names(size: Size, concept: u64, out: &mut Vec<u8>) {
    let cui = size.cui(concept);
    for atom in 0..1 + draw(2, concept, 0) % 5 {
        let drawn = draw(3, concept, atom);
        let (sab, language, ..) = SOURCES[source(drawn, |place| SOURCES[place].3)];
        let term_type = TERM_TYPES[(drawn >> 8) as usize % TERM_TYPES.len()];
        let suppress =
            ["N", "N", "N", "N", "N", "N", "N", "N", "N", "O", "Y", "E"][(drawn >> 16) as usize % 12];
        let mut text = String::new();
        for word in 0..1 + draw(4, concept, atom / 2) % 4 {
            if word > 0 {
                text.push(' ');
            }
            let letters = draw(5, concept, word);
            (0..2 + letters % 4).for_each(|part| text.push_str(syllable(letters >> (4 + 5 * part))));
        }
        let (ts, stt, pref) = if atom == 0 {
            ("P", "PF", "Y")
        } else {
            ("S", ["PF", "VO"][(drawn >> 24) as usize % 2], ["Y", "N"][(drawn >> 25) as usize % 2])
        };
        put(
            out,
            format_args!(
                "C{cui:07}|{language}|{ts}|L{cui:07}|{stt}|S{:08}|{pref}|A{:08}||M{cui:07}|D{cui:07}|{sab}|{term_type}|D{cui:07}|{text} {}|0|{suppress}|256|\n",
                drawn % 100_000_000,
                cui * 8 + atom,
                atom / 2
            ),
        );
    }
}

fn types(size: Size, concept: u64, out: &mut Vec<u8>) {
    let (cui, first) = (size.cui(concept), draw(6, concept, 0) % TYPES);
    put(out, format_args!("C{cui:07}|T{:03}|A1.2|Invented type {first}|AT{concept:08}|256|\n", first + 1));
    if chance(7, (concept, 0), 150_000) {
        let second = (first + 1) % TYPES;
        put(
            out,
            format_args!("C{cui:07}|T{:03}|A1.2|Invented type {second}|AT9{concept:07}||\n", second + 1),
        );
    }
}

/// One concept in a hundred has a predecessor that relations still name; some predecessors lead nowhere.
fn is_old(concept: u64) -> bool {
    chance(8, (concept, 0), 10_000)
}

fn retired(size: Size, concept: u64, out: &mut Vec<u8>) {
    let cui = size.cui(concept);
    if is_old(concept) {
        match draw(9, concept, 0) % 10 {
            0 => put(out, format_args!("C{:07}|2020AA|DEL|||||\n", cui + 1)),
            1 => put(out, format_args!("C{:07}|2020AA|RO|||C{cui:07}|Y|\n", cui + 1)),
            _ => put(out, format_args!("C{:07}|2020AA|SY|||C{cui:07}|Y|\n", cui + 1)),
        }
    }
}

/// RELA and REL of relation `k` forwards or backwards. Every fourth relation has no RELA.
fn words(k: u64, side: Side) -> (String, &'static str) {
    let rel = match (k % 5, side) {
        (0, Side::Object) | (1, Side::Subject) => "CHD",
        (0, Side::Subject) | (1, Side::Object) => "PAR",
        _ => "RO",
    };
    match k {
        _ if k < SYMMETRIC => (format!("goes_together_with_{k}"), "RO"),
        _ if k % 4 == 3 => (String::new(), rel),
        _ if side == Side::Object => (format!("has_invented_relation_{k}"), rel),
        _ => (format!("invented_relation_{k}_of"), rel),
    }
}

fn relations(size: Size, shares: &[u64], concept: u64, out: &mut Vec<u8>) {
    for (k, &share) in (0..RELATIONS).zip(shares) {
        let subject = size.subject(k, concept);
        if chance(10, (k, subject), share) {
            fact(size, (k, subject, concept), Side::Object, out);
        }
        if chance(10, (k, concept), share) {
            fact(size, (k, concept, size.object(k, concept)), Side::Subject, out);
        }
    }
}

fn fact(size: Size, (k, subject, object): (u64, u64, u64), side: Side, out: &mut Vec<u8>) {
    let drawn = draw(11, k, subject);
    let (rela, rel) = words(k, side);
    // Rarely a predecessor stands for the subject.
    let old = u64::from(is_old(subject) && drawn.is_multiple_of(16));
    let (subject, object) = (size.cui(subject) + old, size.cui(object));
    let (cui1, cui2, asserted) = match side {
        Side::Object => (object, subject, 'Y'),
        Side::Subject => (subject, object, 'N'),
    };
    for copy in 0..1 + u64::from(drawn >> 8 & 7 == 0) + u64::from(drawn >> 11 & 31 == 0) {
        let drawn = draw(12, drawn, copy);
        let (sab, ..) = SOURCES[source(drawn, |place| SOURCES[place].4)];
        let suppress = if drawn >> 32 & 15 == 0 { 'O' } else { 'N' };
        put(
            out,
            format_args!(
                "C{cui1:07}|A{:08}|AUI|{rel}|C{cui2:07}|A{:08}|SCUI|{rela}|R{:09}||{sab}|{sab}||{asserted}|{suppress}||\n",
                cui1 * 8 + copy,
                cui2 * 8 + copy,
                drawn % 1_000_000_000
            ),
        );
    }
}

fn vocabularies() -> Vec<u8> {
    let mut out = Vec::new();
    for (sab, language, level, ..) in SOURCES {
        put(
            &mut out,
            format_args!(
                "C1|C2|{sab}_1|{sab}|Invented|{sab}|1|||1AA||a|b|{level}|1|1||PT|A|{language}|UTF-8|Y|Y|Invented|Invented|\n"
            ),
        );
    }
    out
}

fn ranks() -> Vec<u8> {
    let mut out = Vec::new();
    for (place, (sab, ..)) in SOURCES.iter().enumerate() {
        for (kind, term_type) in TERM_TYPES.iter().enumerate() {
            for (order, suppress) in ["N", "E", "O", "Y"].iter().enumerate() {
                let rank = 600 - (place * 7 + kind * 31) % 101 * 5 - order;
                put(&mut out, format_args!("{rank:04}|{sab}|{term_type}|{suppress}|\n"));
            }
        }
    }
    out
}

fn documentation() -> Vec<u8> {
    let mut out = Vec::new();
    for k in 0..RELATIONS {
        let ((forward, _), (back, _)) = (words(k, Side::Object), words(k, Side::Subject));
        for (one, other) in
            [(&forward, &back), (&back, &forward)].into_iter().filter(|(one, _)| !one.is_empty())
        {
            put(&mut out, format_args!("RELA|{one}|expanded_form|{}|\n", one.replace('_', " ")));
            put(&mut out, format_args!("RELA|{one}|rela_inverse|{other}|\n"));
        }
    }
    out
}
