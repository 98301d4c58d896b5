//! Damage to files for tests of readers: flipped bits, cuts, pieces twice, strange insertions. Knows no format.
#![cfg(test)]

use kg::source::funnel::Tally;

use crate::seed::Seed;

/// Damaged files that each reader is given.
const CASES: u64 = 400;

/// What is put into files.
const STRANGE: [&[u8]; 28] = [
    b"<",
    b">",
    b"</",
    b"/>",
    b"&",
    b"&amp;",
    b"&#0;",
    b"&no;",
    b"]]>",
    b"<!--",
    b"<![CDATA[",
    b"\"",
    b"\"\"",
    b"'",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\n",
    b"\r\n",
    b"\0",
    b"\xff",
    b"null",
];

/// A damaged copy of `whole`, a function of `chance` alone.
fn damaged(whole: &[u8], chance: Seed) -> Vec<u8> {
    let mut file = whole.to_vec();
    for round in 0..=chance.named("rounds").below(3) {
        let chance = chance.at(round);
        let below =
            |purpose: &str, end: usize| usize::try_from(chance.named(purpose).below(end as u64)).unwrap();
        let place = below("place", file.len() + 1);
        let length = below("length", [2, 9, 65, file.len() + 1][below("size", 4)]).min(file.len() - place);
        match below("kind", 6) {
            0 => file.iter_mut().skip(place).take(1).for_each(|byte| *byte ^= 1 << below("bit", 8)),
            1 => drop(file.drain(place..place + length)),
            2 => file.truncate(place),
            3 => {
                let piece = file[place..place + length].to_vec();
                file.splice(place..place, piece);
            }
            4 => {
                let strange =
                    STRANGE[below("strange", STRANGE.len())].repeat([1, 1, 1, 999][below("times", 4)]);
                file.splice(place..place, strange);
            }
            _ => drop(file.drain(..place)),
        }
    }
    file
}

/// Has damaged copies of `whole` read: each is read without losing count, or refused with words, and there are some of both.
pub(super) fn assert_reads_or_refuses(whole: &[u8], mut read: impl FnMut(&[u8]) -> Result<Tally, String>) {
    read(whole).unwrap();
    let (mut well, mut refused) = (0, 0);
    for case in 0..CASES {
        match read(&damaged(whole, Seed::new(case))) {
            Ok(tally) => {
                assert_eq!(tally.read, tally.kept + tally.dropped.values().sum::<u64>(), "case {case}");
                well += 1;
            }
            Err(message) => {
                assert!(
                    message.starts_with("some."),
                    "case {case}: {message:?} does not begin with the file"
                );
                refused += 1;
            }
        }
    }
    assert!(well > 0 && refused > 0, "{well} read, {refused} refused: the damage is all or nothing");
}
