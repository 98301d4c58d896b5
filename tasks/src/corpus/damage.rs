//! Damage to the files that readers are tested with: what is read of them must be whole, what is refused must be said. Knows no format.
#![cfg(test)]

use super::Document;
use crate::seed::Seed;

/// What is put into files: marks that formats use, letters that are none, numbers that are too much.
const STRANGE: [&[u8]; 24] = [
    b"\t",
    b"\n",
    b"\r",
    b" ",
    b"|",
    b"|t|",
    b";",
    b"(",
    b")",
    b"\"",
    b"\\",
    b"#",
    b"=",
    b"<",
    b">",
    b"&",
    b"\0",
    b"\xff",
    "\u{feff}".as_bytes(),
    "\u{1d53e}".as_bytes(),
    "\u{a0}".as_bytes(),
    b"-1",
    b"7",
    b"99999999999999999999999",
];

const CASES: u64 = 400;

fn damaged(file: &[u8], seed: Seed) -> Vec<u8> {
    let below = |n: u64, bound: usize| usize::try_from(seed.at(n).below(bound as u64)).unwrap();
    let mut file = file.to_vec();
    for round in 0..=below(0, 3) as u64 {
        let [what, place, length, strange] = [1, 2, 3, 4].map(|n| 10 * (round + 1) + n);
        let place = below(place, file.len() + 1);
        let end = (place + 1 + below(length, 12)).min(file.len()).max(place);
        match below(what, 5) {
            0 => drop(file.drain(place..end)),
            1 => file.truncate(place),
            2 => file.iter_mut().skip(place).take(1).for_each(|byte| *byte ^= 1 << below(strange, 7)),
            3 => {
                let piece = file[place..end].to_vec();
                file.splice(place..place, piece);
            }
            _ => drop(file.splice(place..place, STRANGE[below(strange, STRANGE.len())].iter().copied())),
        }
    }
    file
}

/// Reads many damaged forms of `file`: each is refused with words that name the file, or its documents hold what a document must.
pub(super) fn check(name: &str, file: &[u8], read: impl Fn(&[u8]) -> Result<Vec<Document>, String>) {
    let (mut whole, mut refused) = (0, 0);
    for case in 0..CASES {
        let bytes = damaged(file, Seed::new(case).named(name));
        match read(&bytes) {
            Ok(documents) => {
                documents.iter().for_each(|document| sound(document, &String::from_utf8_lossy(&bytes)));
                whole += 1;
            }
            Err(message) => {
                assert!(message.contains("some.") && message.contains("line "), "{name} {case}: {message}");
                refused += 1;
            }
        }
    }
    assert!(whole > 0 && refused > 0, "{name}: {whole} read, {refused} refused");
}

fn sound(document: &Document, file: &str) {
    let text = &document.text;
    let apart = |pieces: &[std::ops::Range<usize>]| {
        let sound = pieces.iter().all(|p| p.start < p.end && text.get(p.clone()).is_some());
        assert!(sound && pieces.windows(2).all(|pair| pair[0].end <= pair[1].start), "{document:?}\n{file}");
    };
    apart(&document.words);
    apart(&document.phrases);
    for entity in &document.entities {
        assert!(!entity.pieces.is_empty());
        apart(&entity.pieces);
        assert!(entity.concepts.iter().all(|concept| !concept.is_empty()));
    }
    let begins = |pair: &[super::Entity]| pair[0].pieces[0].start <= pair[1].pieces[0].start;
    assert!(document.entities.windows(2).all(begins), "{document:?}\n{file}");
}
