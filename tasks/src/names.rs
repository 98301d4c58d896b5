//! Names of entities: which are the same, which are one entity's, and which part may show them.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

use kg::canon::fold::bare;
use kg::split::{self, Part};
use kg::table::{Graph, TermKind, read};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

use crate::Error;

/// A name of an entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The entity, by id.
    pub entity: u32,
    /// Its row in terms.parquet.
    pub row: u32,
    /// Its licence level, where its source has levels.
    pub level: Option<u8>,
    /// The name.
    pub text: String,
}

/// The names of all entities of a triple table.
///
/// A part never shows a name that an entity held out from it has: an entity of a held-out part that shares a name with one of an earlier part is
/// left out of all parts. So no two parts have a name in common, by folded texts.
#[derive(Debug)]
pub struct Names {
    /// By entity, then as they stand in the table; an entity has each folded text once.
    names: Vec<Name>,
    /// Of each name the number of its folded text.
    folded: Vec<u32>,
    /// Every number of a folded text with each entity that has such a name, sorted.
    holders: Vec<(u32, u32)>,
    /// The part that shows an entity's names.
    parts: Vec<Part>,
    /// Entities of held-out parts that are left out.
    left_out: u64,
}

impl Names {
    /// The names that lie beside `graph` in `folder`; `part` has the part of each of its triples.
    ///
    /// # Errors
    /// When the table of terms is missing or damaged, or the parts are those of another graph.
    pub fn read(folder: &Path, graph: &Graph, part: &[Part]) -> Result<Self, Error> {
        let (mut names, mut row) = (Vec::new(), 0);
        read::terms(folder, |term| {
            // What stands beside an entity must be called something else, not described.
            if term.kind != TermKind::Definition {
                let (entity, level) = (term.entity.0, term.origin.level);
                names.push(Name { entity, row, level, text: term.text });
            }
            row += 1;
            Ok(())
        })?;
        let entities = graph.entities();
        let parts = split::entities(entities.len(), graph.triples(), part)
            .map_err(|error| Error::unfit(error.to_string()))?;
        let texts: Vec<&str> = entities.iter().map(|entity| entity.text.as_str()).collect();
        Self::new(names, &texts, parts)
    }

    /// Names, sorted by entity, of entities of which each has a text and a part. The text counts as a name of its entity where it is asked who
    /// has a name, since rows of triples show it.
    ///
    /// # Errors
    /// When a name belongs to none of the entities.
    pub fn new(mut names: Vec<Name>, texts: &[&str], mut parts: Vec<Part>) -> Result<Self, Error> {
        if let Some(name) = names.iter().find(|name| name.entity as usize >= parts.len().min(texts.len())) {
            let (row, entity) = (name.row, name.entity);
            return Err(Error::Unfit(format!(
                "row {row} of terms.parquet names entity {entity}, which is not in the table"
            )));
        }
        let all: Vec<&str> =
            names.iter().map(|name| name.text.as_str()).chain(texts.iter().copied()).collect();
        let numbers = numbers(&all);
        let (of_names, of_texts) = numbers.split_at(names.len());
        let named = of_names.iter().copied().zip(names.iter().map(|name| name.entity));
        let mut holders: Vec<(u32, u32)> = named.chain(of_texts.iter().copied().zip(0..)).collect();
        holders.par_sort_unstable();
        holders.dedup();
        let shared = holders.chunk_by(|one, other| one.0 == other.0).flat_map(|holders| {
            let first =
                holders.iter().map(|&(_, entity)| parts[entity as usize]).min().unwrap_or(Part::Aside);
            holders
                .iter()
                .filter(|&&(_, entity)| parts[entity as usize] != first)
                .map(|&(_, entity)| entity)
                .collect::<Vec<_>>()
        });
        let mut shared: Vec<u32> = shared.collect();
        shared.sort_unstable();
        shared.dedup();
        shared.retain(|&entity| parts[entity as usize] != Part::Aside);
        for &entity in &shared {
            parts[entity as usize] = Part::Aside;
        }
        let mut folded = of_names.to_vec();
        once_each(&mut names, &mut folded);
        Ok(Self { names, folded, holders, parts, left_out: shared.len() as u64 })
    }

    /// The names of each entity that `part` may show, by their places.
    pub fn entities(&self, part: Part) -> impl Iterator<Item = Range<u32>> {
        let mut end = 0;
        let entities = self.names.chunk_by(|one, other| one.entity == other.entity).map(move |names| {
            let start = end;
            end += u32::try_from(names.len()).unwrap_or(u32::MAX);
            start..end
        });
        entities.filter(move |names| self.parts[self.get(names.start).entity as usize] == part)
    }

    /// The name at a place.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn get(&self, place: u32) -> &Name {
        &self.names[place as usize]
    }

    /// How many places there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is no name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// How many entities of held-out parts are left out, because another part shows one of their names.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Whether two names read the same.
    #[must_use]
    pub fn same(&self, one: u32, other: u32) -> bool {
        self.folded[one as usize] == self.folded[other as usize]
    }

    /// Whether any entity of the table, shown or not, has both names.
    #[must_use]
    pub fn synonyms(&self, one: u32, other: u32) -> bool {
        let [one, other] = [one, other].map(|place| self.holders(self.folded[place as usize]));
        // Both are sorted by entity; a name has few holders.
        one.iter().any(|(_, entity)| other.binary_search_by_key(entity, |(_, entity)| *entity).is_ok())
    }

    fn holders(&self, folded: u32) -> &[(u32, u32)] {
        let start = self.holders.partition_point(|(number, _)| *number < folded);
        let of = &self.holders[start..];
        &of[..of.partition_point(|(number, _)| *number == folded)]
    }
}

/// Keeps of every entity's names the first with each folded text.
fn once_each(names: &mut Vec<Name>, folded: &mut Vec<u32>) {
    let mut seen = HashSet::new();
    let keep: Vec<bool> =
        names.iter().zip(&*folded).map(|(name, &text)| seen.insert((name.entity, text))).collect();
    let mut kept = keep.iter();
    names.retain(|_| kept.next() == Some(&true));
    let mut kept = keep.iter();
    folded.retain(|_| kept.next() == Some(&true));
}

/// Numbers texts so that equal folded texts have equal numbers.
pub(crate) fn numbers(texts: &[&str]) -> Vec<u32> {
    let folded: Vec<String> = texts.par_iter().map(|text| bare(text)).collect();
    let mut distinct: Vec<&str> = folded.iter().map(String::as_str).collect();
    distinct.par_sort_unstable();
    distinct.dedup();
    let number = |text: &String| distinct.partition_point(|d| *d < text.as_str());
    folded.par_iter().map(|text| u32::try_from(number(text)).unwrap_or(u32::MAX)).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use base::rng::CounterRng;
    use tokenizers::normalizers::BertNormalizer;
    use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
    use tokenizers::tokenizer::{NormalizedString, Normalizer, PreTokenizedString, PreTokenizer};
    use tokenizers::{OffsetReferential, OffsetType};

    /// The words of an uncased BERT.
    fn words(text: &str) -> Vec<String> {
        let mut normal = NormalizedString::from(text);
        BertNormalizer::new(true, true, Some(true), true).normalize(&mut normal).unwrap();
        let mut split = PreTokenizedString::from(normal);
        BertPreTokenizer.pre_tokenize(&mut split).unwrap();
        let splits = split.get_splits(OffsetReferential::Original, OffsetType::Byte);
        splits.into_iter().map(|(word, ..)| word.to_owned()).collect()
    }

    #[test]
    fn texts_of_the_same_words_are_the_same() {
        const OF: [char; 14] =
            ['a', 'B', ' ', '-', '(', '.', '\u{ad}', '\u{200b}', 'é', '\u{301}', '头', '–', '\u{a0}', '_'];
        let chance = CounterRng::new(1);
        let text = |of: u64| -> String {
            (0..5).map(|at| OF[usize::try_from(chance.bits(8 * of + at) % 14).unwrap()]).collect()
        };
        let mut texts: Vec<(Vec<String>, String)> =
            (0..40_000).map(text).map(|text| (words(&text), text)).collect();
        texts.sort();
        let mut alike = 0;
        for pair in texts.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            alike += usize::from(pair[0].1 != pair[1].1);
            assert_eq!(bare(&pair[0].1), bare(&pair[1].1), "{pair:?}");
        }
        assert!(alike > 1_000, "{alike}");
    }

    /// The names of entities that have these, each of a part; the first is the entity's text, and all stand in the table.
    pub(crate) fn of(entities: &[(Part, &[&str])]) -> Names {
        let each = (0..)
            .zip(entities)
            .flat_map(|(entity, (_, names))| names.iter().map(move |name| (entity, *name)));
        let names = (0..).zip(each);
        let names =
            names.map(|(row, (entity, text))| Name { entity, row, level: Some(0), text: text.to_owned() });
        let texts: Vec<&str> = entities.iter().map(|(_, names)| names[0]).collect();
        Names::new(names.collect(), &texts, entities.iter().map(|(part, _)| *part).collect()).unwrap()
    }

    #[test]
    fn names_of_an_entity_stand_once_and_what_any_entity_says_is_known() {
        let names = of(&[
            (Part::Train, &["Fever", "Pyrexia", "FE\u{301}VER "]),
            (Part::Train, &["Cough"]),
            (Part::Aside, &["Cough", "Tussis"]),
            (Part::Train, &["Tussis"]),
        ]);
        let texts: Vec<&str> = (0..5).map(|place| names.get(place).text.as_str()).collect();
        assert_eq!(texts, ["Fever", "Pyrexia", "Cough", "Cough", "Tussis"]);
        assert_eq!((names.len(), names.get(2).row), (6, 3));
        assert!(names.synonyms(0, 1) && names.same(2, 3) && !names.same(0, 1));
        assert!(names.synonyms(2, 5), "an entity that is set aside has both");
        assert!(!names.synonyms(0, 2));
        let shown: Vec<_> = names.entities(Part::Train).collect();
        assert_eq!(shown, [0..2, 2..3, 5..6]);
    }

    #[test]
    fn no_two_parts_have_a_name_in_common() {
        let names = of(&[
            (Part::Train, &["a", "b"]),
            (Part::Valid, &["c", "B", "d"]),
            (Part::Test, &["e", "D"]),
            (Part::Test, &["f", "g"]),
            (Part::Valid, &["h", "i"]),
        ]);
        let shown = |part| names.entities(part).map(|of| names.get(of.start).entity).collect::<Vec<_>>();
        assert_eq!((shown(Part::Train), shown(Part::Valid), shown(Part::Test)), (vec![0], vec![4], vec![3]));
        assert_eq!(names.left_out(), 2);
    }

    #[test]
    fn a_text_that_rows_of_triples_show_counts_as_a_name() {
        let name = |entity, row, text: &str| Name { entity, row, level: None, text: text.to_owned() };
        let named = vec![name(1, 0, "fever"), name(1, 1, "pyrexia")];
        let parts = vec![Part::Train, Part::Valid];
        let names = Names::new(named.clone(), &["Fever", "febris"], parts.clone()).unwrap();
        assert_eq!((names.entities(Part::Valid).count(), names.left_out()), (0, 1));
        let error = Names::new(named, &["Fever"], parts).unwrap_err().to_string();
        assert!(error.contains("row 0 of terms.parquet names entity 1"), "{error}");
    }
}
