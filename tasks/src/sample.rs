//! What samples are made from: triples over numbered texts. Knows no vocabulary, file or tensor.

use kg::canon::fold::bare;
use kg::canon::relation::Turn;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

/// The three columns of a triple, in the order in which they are written and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Slot {
    /// The entity of which something is stated.
    Subject,
    /// What is stated between them.
    Relation,
    /// The entity that it is stated of.
    Object,
}

impl Slot {
    /// All slots in column order.
    pub const ALL: [Slot; 3] = [Slot::Subject, Slot::Relation, Slot::Object];

    /// The name on disk and in configs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Slot::Subject => "subject",
            Slot::Relation => "relation",
            Slot::Object => "object",
        }
    }
}

/// A triple as numbers: entity, relation, entity. Indexed by `Slot as usize`.
pub type Triple = [u32; 3];

/// A graph as the builders need it: numbered texts and triples over them.
#[derive(Debug, Clone)]
pub struct Corpus<'a> {
    /// Text of each entity, by id.
    pub entities: Vec<&'a str>,
    /// Text of each relation, by id.
    pub relations: Vec<&'a str>,
    /// What each relation says, by id ([`kg::split::ways`]): equal numbers say the same, once their ends are turned as told.
    pub ways: Vec<(u32, Turn)>,
    /// The stated triples that samples are made of, in the order of the triple table. They alone are donors and known: a negative that
    /// was refused because a held-out triple states it would tell of that triple.
    pub triples: Vec<Triple>,
    /// Row of each of `triples` in the triple table.
    pub rows: Vec<u32>,
}

/// Which triples are known, judged by what they say: two entities with the same name count as one, because a model that reads
/// names cannot tell them apart (MODELS section 1.8); a triple and its inverse, or a symmetric one turned round, are one statement.
#[derive(Debug)]
pub struct Known {
    entity_class: Vec<u32>,
    ways: Vec<(u32, Turn)>,
    sorted: Vec<Triple>,
}

impl Known {
    /// Learns all triples of a corpus.
    #[must_use]
    pub fn new(corpus: &Corpus<'_>) -> Self {
        let entity_class = classes(&corpus.entities);
        let mut known = Self { entity_class, ways: corpus.ways.clone(), sorted: Vec::new() };
        known.sorted = corpus.triples.par_iter().map(|triple| known.class(*triple)).collect();
        known.sorted.par_sort_unstable();
        known.sorted.dedup();
        known
    }

    /// The number of what the triple says: each entity replaced by the number of its text, the relation by its statement.
    #[must_use]
    pub fn class(&self, [subject, relation, object]: Triple) -> Triple {
        let (one, other) = (self.entity_class[subject as usize], self.entity_class[object as usize]);
        let (relation, turn) = self.ways[relation as usize];
        match turn {
            Turn::Exchanges => [other, relation, one],
            Turn::Sorts => [one.min(other), relation, one.max(other)],
            Turn::Stays => [one, relation, other],
        }
    }

    /// Whether a triple of these texts is stated.
    #[must_use]
    pub fn contains(&self, class: Triple) -> bool {
        self.sorted.binary_search(&class).is_ok()
    }
}

/// Numbers texts so that equal folded texts have equal numbers.
fn classes(texts: &[&str]) -> Vec<u32> {
    let folded: Vec<String> = texts.par_iter().map(|text| bare(text)).collect();
    let mut distinct: Vec<&str> = folded.iter().map(String::as_str).collect();
    distinct.par_sort_unstable();
    distinct.dedup();
    let number = |text: &String| distinct.partition_point(|d| *d < text.as_str());
    folded.par_iter().map(|text| u32::try_from(number(text)).unwrap_or(u32::MAX)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_compares_texts_not_ids() {
        let corpus = Corpus {
            entities: vec!["Fever", "Flu", "fever", "Cough"],
            relations: vec!["has symptom"],
            ways: vec![(0, Turn::Stays)],
            triples: vec![[1, 0, 0]],
            rows: vec![0],
        };
        let known = Known::new(&corpus);
        assert!(known.contains(known.class([1, 0, 0])));
        assert!(known.contains(known.class([1, 0, 2])), "the same name under another id");
        assert!(!known.contains(known.class([1, 0, 3])));
        assert!(!known.contains(known.class([0, 0, 1])), "direction matters");
    }

    #[test]
    fn a_statement_is_known_from_both_its_ends() {
        let corpus = Corpus {
            entities: vec!["Aspirin", "Fever", "Pain"],
            relations: vec!["interacts with", "treats", "treated by"],
            ways: vec![(0, Turn::Sorts), (1, Turn::Stays), (1, Turn::Exchanges)],
            triples: vec![[2, 0, 0], [0, 1, 1]],
            rows: vec![0, 1],
        };
        let known = Known::new(&corpus);
        assert!(known.contains(known.class([0, 0, 2])), "symmetric");
        assert!(known.contains(known.class([1, 2, 0])), "inverse");
        assert!(!known.contains(known.class([1, 1, 0])) && !known.contains(known.class([0, 2, 1])));
    }
}
