//! Damage to the files that readers are tested with: flipped bits, cuts, pieces twice, strange insertions. What is read of them must be whole, what is refused
//! must be said.

use base::funnel::Tally;
use base::rng::RngKey;

use super::{Document, Entity};

/// Damaged files that each reader is given.
const CASES: u64 = 400;

/// What is put into files: marks that formats use, letters that are none, numbers that are too much.
const STRANGE: [&[u8]; 46] = [
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
    b"(",
    b")",
    b",",
    b":",
    b";",
    b"|",
    b"|t|",
    b"#",
    b"=",
    b" ",
    b"\t",
    b"\n",
    b"\r",
    b"\r\n",
    b"\0",
    b"\xff",
    "\u{feff}".as_bytes(),
    "\u{1d53e}".as_bytes(),
    "\u{a0}".as_bytes(),
    b"null",
    b"-",
    b"-1",
    b"7",
    b"9999999999",
    b"99999999999999999999999",
];

/// A damaged copy of `whole`, a function of `chance` alone.
fn damaged(whole: &[u8], chance: RngKey) -> Vec<u8> {
    let mut file = whole.to_vec();
    for round in 0..=chance.named("rounds").below(3) {
        let chance = chance.at(round);
        let below = |purpose: &str, end: usize| {
            usize::try_from(chance.named(purpose).below(end as u64)).unwrap_or(usize::MAX)
        };
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

/// Has damaged copies of `whole` read: `judge` looks at what is read of one and at that copy, what is refused is said of the file in words that
/// `is_said` finds enough, and there are some of both.
pub fn judged<T>(
    whole: &[u8],
    mut read: impl FnMut(&[u8]) -> Result<T, String>,
    judge: impl Fn(&T, &str),
    is_said: impl Fn(&str) -> bool,
) {
    let sound = read(whole);
    assert!(sound.is_ok(), "{:?}", sound.err());
    let (mut well, mut refused) = (0, 0);
    for case in 0..CASES {
        let file = damaged(whole, RngKey::new(case));
        match read(&file) {
            Ok(found) => {
                judge(&found, &String::from_utf8_lossy(&file));
                well += 1;
            }
            Err(message) => {
                let named = ["some.", "some_"].iter().any(|name| message.starts_with(name));
                let says = named && is_said(&message);
                assert!(says, "case {case}: {message:?} does not begin with the file, or says too little");
                refused += 1;
            }
        }
    }
    assert!(well > 0 && refused > 0, "{well} read, {refused} refused: the damage is all or nothing");
}

/// Has damaged copies of a file of texts read: each is read without losing count, or refused with words.
pub fn assert_counts_or_refuses(whole: &[u8], read: impl FnMut(&[u8]) -> Result<Tally, String>) {
    let counts = |tally: &Tally, file: &str| {
        assert_eq!(tally.read, tally.kept + tally.dropped.values().sum::<u64>(), "{file}");
    };
    judged(whole, read, counts, |_| true);
}

/// Has damaged copies of a file of annotations read: its documents hold what a document must, or it is refused with the line.
pub fn assert_sound_or_refuses(whole: &[u8], read: impl FnMut(&[u8]) -> Result<Vec<Document>, String>) {
    let sound = |all: &Vec<Document>, file: &str| all.iter().for_each(|document| sound(document, file));
    judged(whole, read, sound, |message| message.contains("line "));
}

fn sound(document: &Document, file: &str) {
    let text = &document.text;
    let apart = |pieces: &[std::ops::Range<usize>]| {
        let sound = pieces.iter().all(|p| p.start < p.end && text.get(p.clone()).is_some());
        assert!(sound && pieces.windows(2).all(|pair| pair[0].end <= pair[1].start), "{document:?}\n{file}");
    };
    apart(&document.words);
    let (ascend, place) =
        (document.sentences.is_sorted_by(|a, b| a < b), |at: &usize| text.get(*at..).is_some());
    assert!(ascend && document.sentences.iter().all(place), "{document:?}\n{file}");
    apart(&document.phrases);
    for entity in &document.entities {
        assert!(!entity.pieces.is_empty());
        apart(&entity.pieces);
        assert!(entity.concepts.iter().all(|concept| !concept.is_empty()));
    }
    let begins = |pair: &[Entity]| pair[0].pieces[0].start <= pair[1].pieces[0].start;
    assert!(document.entities.windows(2).all(begins), "{document:?}\n{file}");
}
