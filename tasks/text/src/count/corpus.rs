//! A digest of documents in order that adds up: those of a corpus's parts, one behind the other, give that of the whole.
//!
//! A document's 256 bits are four numbers modulo the prime 2^61 - 1; a corpus is, in each of them, the polynomial whose coefficients are its documents, so
//! order counts, and appending shifts by a power.

use std::sync::LazyLock;

const PRIME: u64 = (1 << 61) - 1;
/// Where each polynomial is taken.
static POINTS: LazyLock<[u64; 4]> =
    LazyLock::new(|| residues(blake3::hash(b"engraft-counts documents in order").as_bytes()));

/// The documents of a corpus, or of a stretch of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Corpus {
    sums: [u64; 4],
    documents: u64,
}

impl Corpus {
    /// No document.
    pub(super) const EMPTY: Self = Self { sums: [0; 4], documents: 0 };

    /// Appends a document.
    pub(super) fn push(&mut self, text: &str, sentences: &[usize]) {
        let mut hasher = blake3::Hasher::new();
        // Lengths keep one document from being taken for another, cut elsewhere.
        for length in [text.len(), sentences.len()] {
            hasher.update(&(length as u64).to_le_bytes());
        }
        hasher.update(text.as_bytes());
        for &start in sentences {
            hasher.update(&(start as u64).to_le_bytes());
        }
        *self = self.then(Self { sums: residues(hasher.finalize().as_bytes()), documents: 1 });
    }

    /// This stretch and, behind it, another.
    #[must_use]
    pub(super) fn then(self, next: Self) -> Self {
        let points = *POINTS;
        let sums = std::array::from_fn(|lane| {
            (times(self.sums[lane], power(points[lane], next.documents)) + next.sums[lane]) % PRIME
        });
        Self { sums, documents: self.documents + next.documents }
    }

    /// As an index has it: 64 hexadecimal digits.
    #[must_use]
    pub(super) fn digits(&self) -> String {
        self.sums.iter().map(|sum| format!("{sum:016x}")).collect()
    }

    /// What an index has.
    ///
    /// # Errors
    /// When these are no such digits.
    pub(super) fn read(digits: &str, documents: u64) -> Option<Self> {
        let lane = |lane: usize| u64::from_str_radix(digits.get(lane * 16..lane * 16 + 16)?, 16).ok();
        let mut sums = [0; 4];
        for (place, sum) in sums.iter_mut().enumerate() {
            *sum = lane(place).filter(|sum| *sum < PRIME)?;
        }
        (digits.len() == 64).then_some(Self { sums, documents })
    }
}

fn residues(bytes: &[u8; 32]) -> [u64; 4] {
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|lane| u64::from_le_bytes(words[lane]) % PRIME)
}

fn times(a: u64, b: u64) -> u64 {
    let rest = u128::from(a) * u128::from(b) % u128::from(PRIME);
    // It is below the prime, so that nothing is lost.
    u64::try_from(rest).unwrap_or(PRIME)
}

fn power(mut base: u64, mut exponent: u64) -> u64 {
    let mut all = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            all = times(all, base);
        }
        base = times(base, base);
        exponent >>= 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> Corpus {
        let mut corpus = Corpus::EMPTY;
        texts.iter().for_each(|text| corpus.push(text, &[]));
        corpus
    }

    #[test]
    fn stretches_add_up_however_they_are_cut_and_order_counts() {
        let all = ["Fever.", "", "Cough", "a", "b", "Fever."];
        for first in 0..=all.len() {
            for second in first..=all.len() {
                let (one, two, three) = (of(&all[..first]), of(&all[first..second]), of(&all[second..]));
                assert_eq!(one.then(two).then(three), of(&all));
                assert_eq!(one.then(two.then(three)), of(&all));
            }
        }
        for other in [&["Fever.", "Cough", "", "a", "b", "Fever."][..], &all[..5], &["Fever."], &[""], &[]] {
            assert_ne!(of(other).digits(), of(&all).digits(), "{other:?}");
        }
        let mut marked = Corpus::EMPTY;
        marked.push("Fever.", &[0]);
        assert_ne!(marked, of(&["Fever."]));
    }

    #[test]
    fn digits_are_read_back_and_others_refused() {
        let corpus = of(&["Fever.", "Cough"]);
        assert_eq!(Corpus::read(&corpus.digits(), 2), Some(corpus));
        for digits in ["", "00", &"f".repeat(64), &format!("{}0", corpus.digits()), &"é".repeat(32)] {
            assert_eq!(Corpus::read(digits, 2), None, "{digits}");
        }
    }
}
