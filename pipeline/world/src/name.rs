//! Invented names: pronounceable stems, medical endings, and the forms one name takes.
//!
//! A stem is onset, vowel, onset, vowel, coda, so that runs of consonants and vowels give it back: two stems, or two names
//! with one ending list, are never spelt alike. Names carry the cues a model can generalise from: diseases share their
//! family's stem, drugs their class's ending, site-bound symptoms their site's stem, drug classes and mechanisms a stem.

use super::rng::WorldRng;

const ONSETS: [&str; 24] = [
    "b", "br", "c", "cl", "d", "dr", "f", "g", "gr", "k", "l", "m", "n", "p", "pr", "r", "s", "st", "t",
    "th", "tr", "v", "vr", "z",
];
const VOWELS: [&str; 6] = ["a", "e", "i", "o", "u", "y"];
const CODAS: [&str; 14] = ["b", "c", "d", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "x"];
/// Number of different stems.
const STEMS: usize = 24 * 6 * 24 * 6 * 14;
/// Primes that do not divide [`STEMS`].
const STRIDES: [usize; 6] = [104_729, 130_363, 155_921, 180_503, 199_999, 224_737];

const FOREIGN_ONSETS: [&str; 12] = ["Br", "D", "Fj", "G", "H", "K", "Lj", "M", "N", "Sj", "St", "V"];
const FOREIGN_VOWELS: [&str; 8] = ["å", "ä", "é", "ö", "ü", "ø", "e", "a"];
const FOREIGN_ENDS: [&str; 12] =
    ["berg", "dral", "gård", "lund", "mann", "neck", "nov", "quist", "rén", "ssen", "vić", "zel"];

/// The stems of one world: a permutation of all stems, so that different numbers give different stems.
#[derive(Clone, Copy)]
pub(super) struct Stems {
    stride: usize,
    offset: usize,
}

impl Stems {
    pub(super) fn new(seed: u64) -> Self {
        let mut draw = WorldRng::new(seed, "stems").at(0);
        Self { stride: STRIDES[draw.below(STRIDES.len())], offset: draw.below(STEMS) }
    }

    /// Stem number `index` in lower case; ends in a consonant. Different below 290,304.
    pub(super) fn stem(self, index: usize) -> String {
        let mut rest = (index * self.stride + self.offset) % STEMS;
        let mut stem = String::new();
        for part in [&ONSETS[..], &VOWELS, &ONSETS, &VOWELS, &CODAS] {
            stem.push_str(part[rest % part.len()]);
            rest /= part.len();
        }
        stem
    }
}

/// An invented discoverer, mostly with letters outside ASCII; 1,152 x 8 of them, so a few share a name at large scales.
pub(super) fn eponym(index: usize) -> String {
    let mut rest = index * 1_009 + 17;
    let mut name = String::new();
    for part in [&FOREIGN_ONSETS[..], &FOREIGN_VOWELS, &FOREIGN_ENDS] {
        name.push_str(part[rest % part.len()]);
        rest /= part.len();
    }
    if !rest.is_multiple_of(8) {
        name.push_str(["", "-Arn", "-Bell", "-Cohr", "-Dunn", "-Eck", "-Foss", "-Gray"][rest % 8]);
    }
    name
}

/// The forms of one entity's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    /// As within a sentence: the common form first, then synonyms. Never empty.
    spoken: Vec<String>,
    /// As MeSH prints it, with the qualifier behind a comma where there is one.
    mesh: String,
}

impl Names {
    /// A name of one form: `spoken` within a sentence.
    pub(super) fn plain(spoken: String) -> Self {
        let mesh = titled(&spoken);
        Self { spoken: vec![spoken], mesh }
    }

    /// `qualifier noun` in sentences and `Noun, Qualifier` in MeSH; just the noun where the qualifier is empty.
    pub(super) fn qualified(qualifier: &str, noun: &str) -> Self {
        if qualifier.is_empty() {
            return Self::plain(noun.to_owned());
        }
        let mesh = format!("{}, {}", titled(noun), titled(qualifier));
        Self { spoken: vec![format!("{qualifier} {noun}")], mesh }
    }

    /// Adds a synonym as it stands within a sentence.
    pub(super) fn or(mut self, synonym: String) -> Self {
        if !self.spoken.contains(&synonym) {
            self.spoken.push(synonym);
        }
        self
    }

    /// The forms within a sentence, the common one first.
    pub(super) fn spoken(&self) -> &[String] {
        &self.spoken
    }

    /// The common form within a sentence.
    pub(super) fn common(&self) -> &str {
        &self.spoken[0]
    }

    /// The common form with a capital, as terminologies print it.
    pub(super) fn title(&self) -> String {
        titled(&self.spoken[0])
    }

    /// The MeSH form.
    pub(super) fn mesh(&self) -> &str {
        &self.mesh
    }
}

/// `text` with its first letter in upper case.
pub(super) fn titled(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Languages of translated names: the UMLS language code, the source, and what becomes of letters and endings.
pub(super) struct Language {
    pub(super) code: &'static str,
    pub(super) source: &'static str,
    swaps: [(&'static str, &'static str); 4],
}

/// French, German and Spanish in the manner of their MeSH translations.
pub(super) const LANGUAGES: [Language; 3] = [
    Language {
        code: "FRE",
        source: "MSHFRE",
        swaps: [("osis", "ose"), ("itis", "ite"), ("emia", "émie"), ("e", "é")],
    },
    Language {
        code: "GER",
        source: "MSHGER",
        swaps: [("osis", "ose"), ("emia", "ämie"), ("opathy", "opathie"), ("o", "ö")],
    },
    Language {
        code: "SPA",
        source: "MSHSPA",
        swaps: [("opathy", "opatía"), ("emia", "emía"), ("algia", "álgia"), ("i", "í")],
    },
];

impl Language {
    /// A foreign form of `title`: its first known ending is swapped and the last pair changes one letter.
    pub(super) fn translate(&self, title: &str) -> String {
        let [endings @ .., (from, to)] = &self.swaps;
        let ending = endings.iter().find(|(ending, _)| title.contains(ending));
        let swapped =
            ending.map_or_else(|| title.to_owned(), |(ending, foreign)| title.replace(ending, foreign));
        swapped.replacen(from, to, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_stems_are_alike() {
        let stems = Stems::new(5);
        let all: BTreeSet<String> = (0..STEMS).map(|index| stems.stem(index)).collect();
        assert_eq!(all.len(), STEMS);
        assert!(STRIDES.iter().all(|stride| stride % 2 > 0 && stride % 3 > 0 && stride % 7 > 0));
    }

    #[test]
    fn names_take_their_forms() {
        let names = Names::qualified("chronic", "velorosis")
            .or("Brünov's disease".into())
            .or("chronic velorosis".into());
        assert_eq!(names.spoken(), ["chronic velorosis", "Brünov's disease"]);
        assert_eq!((names.mesh(), names.title().as_str()), ("Velorosis, Chronic", "Chronic velorosis"));
        assert_eq!(titled("éa"), "Éa");
    }

    #[test]
    fn eponyms_do_not_repeat_early() {
        let all: BTreeSet<String> = (0..1152).map(eponym).collect();
        assert_eq!(all.len(), 1152);
    }

    #[test]
    fn translations_differ_from_the_original() {
        let forms: BTreeSet<String> =
            LANGUAGES.iter().map(|language| language.translate("Velorosis")).collect();
        assert_eq!(forms.len(), 3);
        assert!(forms.contains("Véloröse") || forms.contains("Vélorose"));
        assert!(!forms.contains("Velorosis"));
    }
}
