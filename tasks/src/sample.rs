//! What samples are made from: triples over numbered texts. Knows no vocabulary, file or tensor.

use kg::canon::fold::fold;
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
    /// The stated triples, in the order of the triple table.
    pub triples: Vec<Triple>,
}

/// Which triples are known, judged by their folded texts: two entities with the same name count as one, because a
/// model that reads names cannot tell them apart (MODELS section 1.8).
#[derive(Debug)]
pub struct Known {
    entity_class: Vec<u32>,
    relation_class: Vec<u32>,
    sorted: Vec<Triple>,
}

impl Known {
    /// Learns all triples of a corpus.
    #[must_use]
    pub fn new(corpus: &Corpus<'_>) -> Self {
        let (entity_class, relation_class) = (classes(&corpus.entities), classes(&corpus.relations));
        let mut known = Self { entity_class, relation_class, sorted: Vec::new() };
        known.sorted = corpus.triples.par_iter().map(|triple| known.class(*triple)).collect();
        known.sorted.par_sort_unstable();
        known.sorted.dedup();
        known
    }

    /// The triple with each id replaced by the number of its folded text.
    #[must_use]
    pub fn class(&self, [subject, relation, object]: Triple) -> Triple {
        let entity = |id: u32| self.entity_class[id as usize];
        [entity(subject), self.relation_class[relation as usize], entity(object)]
    }

    /// Whether a triple of these texts is stated.
    #[must_use]
    pub fn contains(&self, class: Triple) -> bool {
        self.sorted.binary_search(&class).is_ok()
    }
}

/// Numbers texts so that equal folded texts have equal numbers.
fn classes(texts: &[&str]) -> Vec<u32> {
    let folded: Vec<String> = texts.par_iter().map(|text| fold(text)).collect();
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
            triples: vec![[1, 0, 0]],
        };
        let known = Known::new(&corpus);
        assert!(known.contains(known.class([1, 0, 0])));
        assert!(known.contains(known.class([1, 0, 2])), "the same name under another id");
        assert!(!known.contains(known.class([1, 0, 3])));
        assert!(!known.contains(known.class([0, 0, 1])), "direction matters");
    }
}
