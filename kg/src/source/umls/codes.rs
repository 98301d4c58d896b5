//! Codes of other vocabularies in MRCONSO: by which other sources know a concept.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use base::funnel::Tally;

use super::cui::Cui;
use crate::source::curie::{self, Curie};
use crate::table::Builder;

/// A vocabulary whose codes are keys of other sources.
#[derive(Debug, Clone, Copy)]
struct Coded {
    vocabulary: &'static str,
    namespace: &'static str,
    /// Term types of the names that stand for the whole of what a code is of: others may be narrower, and are then in another concept.
    kinds: &'static [&'static str],
}

/// Those that some source reads; a code with a prefix of its own (`HP:0001945`) is a key as it stands.
const CODED: [Coded; 7] = [
    // Descriptors by their headings, supplementary records by their names.
    Coded { vocabulary: "MSH", namespace: MESH, kinds: &["MH", "NM"] },
    Coded { vocabulary: "SNOMEDCT_US", namespace: "snomed", kinds: &["PT"] },
    Coded { vocabulary: "OMIM", namespace: "omim", kinds: &["PT"] },
    Coded {
        vocabulary: "RXNORM",
        namespace: "rxnorm",
        kinds: &[
            "BN", "BPCK", "DF", "DFG", "GPCK", "IN", "MIN", "PIN", "SBD", "SBDC", "SBDF", "SBDFP", "SBDG",
            "SCD", "SCDC", "SCDF", "SCDFP", "SCDG", "SCDGP",
        ],
    },
    Coded { vocabulary: "HPO", namespace: "hp", kinds: &["PT"] },
    Coded { vocabulary: "GO", namespace: "go", kinds: &["PT"] },
    Coded { vocabulary: "ICD10CM", namespace: "icd10cm", kinds: &["HT", "PT"] },
];

const MESH: &str = "mesh";

/// Codes that several concepts have.
const OF_SEVERAL_CONCEPTS: &str = "of_several_concepts";
/// Codes of a concept that has several of their vocabulary: it is wider than each of them.
const OF_SEVERAL_CODES: &str = "of_several_codes";

/// The key that a row's code is, in the vocabulary of this number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Code {
    vocabulary: usize,
    key: String,
}

/// Which of the vocabularies other sources have keys of: the codes of all others say nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpokenOf([bool; CODED.len()]);

impl SpokenOf {
    /// Those whose keys other sources have mentioned so far.
    pub(super) fn new(builder: &Builder) -> Self {
        let is_spoken_of = |coded: Coded| builder.keys(&format!("{}:", coded.namespace)).next().is_some();
        Self(CODED.map(is_spoken_of))
    }

    /// What a row says by its columns SAB, TTY and CODE; nothing where its code is no key that may be known, or its name does not stand for the whole.
    pub(super) fn code(self, sab: &str, tty: &str, code: &str) -> Option<Code> {
        let vocabulary = CODED.iter().position(|coded| coded.vocabulary == sab)?;
        let Coded { namespace, kinds, .. } = CODED[vocabulary];
        let key = || curie::split(code).map_or_else(|| format!("{namespace}:{code}"), Curie::key);
        let is_one = self.0[vocabulary] && !code.is_empty() && kinds.contains(&tty);
        is_one.then(|| Code { vocabulary, key: key() })
    }
}

/// All codes of a file.
#[derive(Debug, Default)]
pub(super) struct Codes {
    /// Of each key that another source mentions, its vocabulary and concepts.
    known: BTreeMap<String, (usize, BTreeSet<Cui>)>,
    /// Of each concept and vocabulary, whether it has another code than this one, which stands for all that are equal to it.
    of_concepts: HashMap<(Cui, usize), (String, bool), ahash::RandomState>,
}

impl Codes {
    /// Takes a row's.
    pub(super) fn push(&mut self, cui: Cui, code: Code, builder: &Builder) {
        let Code { vocabulary, key } = code;
        if builder.knows(&key) {
            self.known.entry(key.clone()).or_insert_with(|| (vocabulary, BTreeSet::new())).1.insert(cui);
        }
        // Each record of MeSH is a concept's, however many that has.
        if CODED[vocabulary].namespace != MESH {
            let (first, has_others) =
                self.of_concepts.entry((cui, vocabulary)).or_insert_with(|| (key.clone(), false));
            *has_others |= *first != key;
        }
    }

    /// Says which concepts the codes are of that other sources mention, and counts those that are of none. Gives the concepts.
    pub(super) fn join(self, builder: &mut Builder) -> (Vec<Cui>, Option<Tally>) {
        let mut tally =
            Tally::new(Path::new("codes in MRCONSO.RRF"), &[OF_SEVERAL_CONCEPTS, OF_SEVERAL_CODES]);
        let mut concepts = Vec::new();
        for (key, (vocabulary, cuis)) in self.known {
            if CODED[vocabulary].namespace == MESH {
                cuis.iter().for_each(|cui| builder.alias(&key, &format!("umls:{cui}")));
                concepts.extend(cuis);
                continue;
            }
            let several = |cui: &Cui| self.of_concepts.get(&(*cui, vocabulary)).is_some_and(|of| of.1);
            match cuis.first() {
                Some(cui) if cuis.len() == 1 && !several(cui) => {
                    builder.settle(&key, &format!("umls:{cui}"));
                    concepts.push(*cui);
                    tally.keep();
                }
                Some(_) if cuis.len() == 1 => tally.drop(OF_SEVERAL_CODES),
                _ => tally.drop(OF_SEVERAL_CONCEPTS),
            }
        }
        (concepts, (tally.read > 0).then_some(tally))
    }
}
