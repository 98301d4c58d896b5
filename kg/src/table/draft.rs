//! Things that have a key, while a graph is being built.

use std::collections::{HashMap, HashSet};

use hashbrown::HashTable;

use super::id::dense;
use super::row::SemanticType;
use super::texts::Texts;

/// Keys and texts, numbered in the order in which they came; that order reaches no file.
#[derive(Debug, Default)]
pub(crate) struct Keyed {
    keys: Texts,
    texts: Texts,
    numbers: HashTable<u32>,
    hasher: ahash::RandomState,
}

impl Keyed {
    /// The number of a key; it gets `text` if it is new.
    pub(crate) fn number(&mut self, key: &str, text: &str) -> u32 {
        let hash = self.hasher.hash_one(key);
        if let Some(&number) = self.numbers.find(hash, |&number| self.keys.get(number) == key) {
            return number;
        }
        let number = dense(self.keys.len());
        self.keys.push(key);
        self.texts.push(text);
        let (keys, hasher) = (&self.keys, &self.hasher);
        self.numbers.insert_unique(hash, number, |&number| hasher.hash_one(keys.get(number)));
        number
    }

    pub(crate) fn find(&self, key: &str) -> Option<u32> {
        self.numbers.find(self.hasher.hash_one(key), |&number| self.keys.get(number) == key).copied()
    }

    pub(crate) fn key(&self, number: u32) -> &str {
        self.keys.get(number)
    }

    pub(crate) fn text(&self, number: u32) -> &str {
        self.texts.get(number)
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// All numbers in the order of their keys.
    pub(crate) fn sorted(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..dense(self.len())).collect();
        order.sort_unstable_by(|&a, &b| self.key(a).cmp(self.key(b)));
        order
    }
}

/// Values of which each is kept once.
#[derive(Debug)]
pub(crate) struct Interned<T> {
    values: Vec<T>,
    numbers: HashMap<T, u32>,
}

impl<T: Clone + Eq + std::hash::Hash> Interned<T> {
    pub(crate) fn new() -> Self {
        Self { values: Vec::new(), numbers: HashMap::new() }
    }

    pub(crate) fn number(&mut self, value: T) -> u32 {
        if let Some(&number) = self.numbers.get(&value) {
            return number;
        }
        let number = dense(self.values.len());
        self.values.push(value.clone());
        self.numbers.insert(value, number);
        number
    }

    pub(crate) fn values(&self) -> &[T] {
        &self.values
    }
}

/// Marks that an entity's text has no licence level.
const NO_LEVEL: u8 = u8::MAX;

/// Stands for the source of an entity that the owner of its namespace has worded.
const OWNER: u32 = u32::MAX;

/// In place of a source, for entities that only the crosswalk knows; it words none that their owner has worded.
pub(crate) const NOBODY: u32 = u32::MAX - 1;

/// The entities in the making.
#[derive(Debug)]
pub(crate) struct Entities {
    pub(crate) keyed: Keyed,
    levels: Vec<u8>,
    /// Source whose text stands.
    sources: Vec<u32>,
    /// Texts that stand instead of the first one of the same source.
    respelled: HashMap<u32, String>,
    /// Text and level of entities that the owner of their namespace words otherwise than who named them first.
    owned: HashMap<u32, (String, Option<u8>)>,
    /// Entities whose text is their id, since no source has worded them.
    nameless: HashSet<u32>,
    pub(crate) types: Interned<SemanticType>,
    /// (entity, type), as they came.
    pub(crate) typed: Vec<(u32, u32)>,
}

impl Entities {
    pub(crate) fn new() -> Self {
        Self {
            keyed: Keyed::default(),
            levels: Vec::new(),
            sources: Vec::new(),
            respelled: HashMap::new(),
            owned: HashMap::new(),
            nameless: HashSet::new(),
            types: Interned::new(),
            typed: Vec::new(),
        }
    }

    /// The number of a key. The first source words it; of its spellings the last in byte order stands (the one with fewer capitals and
    /// more accents: `Ménière` before `Meniere` before `MENIERE`), so that the order of its rows does not matter.
    pub(crate) fn number(&mut self, source: u32, key: &str, text: &str) -> u32 {
        let number = self.keyed.number(key, text);
        if number as usize == self.levels.len() {
            self.levels.push(NO_LEVEL);
            self.sources.push(source);
        } else if !self.nameless.is_empty() && self.nameless.remove(&number) {
            self.respelled.insert(number, text.to_owned());
            self.levels[number as usize] = NO_LEVEL;
            self.sources[number as usize] = source;
        } else if self.sources[number as usize] == source && self.spelling(number) < text {
            self.respelled.insert(number, text.to_owned());
        }
        number
    }

    /// The number of a key that its source has no text for: the first source that has one words it.
    pub(crate) fn nameless(&mut self, source: u32, key: &str, id: &str) -> u32 {
        let number = self.keyed.number(key, id);
        if number as usize == self.levels.len() {
            self.levels.push(NO_LEVEL);
            self.sources.push(source);
            self.nameless.insert(number);
        }
        number
    }

    /// Whose word on an entity counts before another's: the owner's of its namespace (UMLS and MeSH are read first), then the sources' in their order.
    pub(crate) fn precedence(&self, number: u32) -> u32 {
        match self.sources[number as usize] {
            OWNER => 0,
            source => source.saturating_add(1),
        }
    }

    /// Whether the text of an entity is its id.
    pub(crate) fn is_nameless(&self, number: u32) -> bool {
        self.nameless.contains(&number)
    }

    fn spelling(&self, number: u32) -> &str {
        self.respelled.get(&number).map_or_else(|| self.keyed.text(number), String::as_str)
    }

    /// The level is that of the text, so only the source whose text stands can say it; its first word counts.
    pub(crate) fn set_level(&mut self, source: u32, number: u32, level: u8) {
        let known = &mut self.levels[number as usize];
        if *known == NO_LEVEL && self.sources[number as usize] == source {
            *known = level;
        }
    }

    /// Text and level by the owner of the key's namespace.
    pub(crate) fn own(&mut self, number: u32, text: &str, level: Option<u8>) {
        if self.text(number) != text || self.level(number) != level {
            self.owned.insert(number, (text.to_owned(), level));
        }
        self.nameless.remove(&number);
        // Nobody else's word counts from here on, the first source's neither.
        self.sources[number as usize] = OWNER;
    }

    pub(crate) fn text(&self, number: u32) -> &str {
        self.owned.get(&number).map_or_else(|| self.spelling(number), |(text, _)| text)
    }

    pub(crate) fn level(&self, number: u32) -> Option<u8> {
        match self.owned.get(&number) {
            Some((_, level)) => *level,
            None => Some(self.levels[number as usize]).filter(|&level| level != NO_LEVEL),
        }
    }

    pub(crate) fn add_type(&mut self, number: u32, semantic_type: SemanticType) {
        let kind = self.types.number(semantic_type);
        self.typed.push((number, kind));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_number_and_its_first_text() {
        let mut keyed = Keyed::default();
        let numbers: Vec<u32> =
            [("b", "B"), ("a", "A"), ("b", "later")].iter().map(|(k, t)| keyed.number(k, t)).collect();
        assert_eq!(numbers, [0, 1, 0]);
        assert_eq!((keyed.text(0), keyed.find("a"), keyed.find("c")), ("B", Some(1), None));
        assert_eq!(keyed.sorted(), [1, 0]);
    }

    #[test]
    fn a_level_is_that_of_the_text_that_stands() {
        let mut entities = Entities::new();
        let one = entities.number(0, "a", "secret");
        assert_eq!(entities.level(one), None);
        assert_eq!(entities.number(1, "a", "free"), one);
        entities.set_level(1, one, 0);
        assert_eq!(entities.level(one), None, "another source knows nothing of the first one's text");
        entities.set_level(0, one, 3);
        entities.set_level(0, one, 0);
        assert_eq!((entities.level(one), entities.text(one)), (Some(3), "secret"));
        entities.own(one, "Preferred", Some(9));
        assert_eq!((entities.level(one), entities.text(one)), (Some(9), "Preferred"));
    }

    #[test]
    fn silent_02_an_id_is_a_name_only_until_a_source_has_a_text() {
        let mut entities = Entities::new();
        let one = entities.nameless(0, "x:22298006", "22298006");
        assert_eq!(
            (entities.nameless(1, "x:22298006", "22298006 again"), entities.text(one)),
            (one, "22298006")
        );
        assert!(entities.is_nameless(one));
        entities.set_level(0, one, 3);
        assert_eq!(entities.number(1, "x:22298006", "Heart attack"), one);
        assert_eq!(
            (entities.text(one), entities.level(one), entities.is_nameless(one)),
            ("Heart attack", None, false)
        );
        assert_eq!(entities.number(0, "x:22298006", "later"), one);
        assert_eq!(entities.nameless(0, "x:22298006", "22298006"), one);
        assert_eq!(entities.text(one), "Heart attack");
        let two = entities.nameless(0, "umls:C1", "C1");
        entities.own(two, "C1", Some(0));
        assert!(!entities.is_nameless(two), "its owner calls it so");
    }

    #[test]
    fn the_order_of_a_sources_rows_does_not_choose_the_spelling() {
        for order in [["FEVER", "Fever", "Féver"], ["Féver", "FEVER", "Fever"], ["Fever", "Féver", "FEVER"]]
        {
            let mut entities = Entities::new();
            let numbers = order.map(|text| entities.number(0, "name:fever", text));
            assert_eq!(entities.number(1, "name:fever", "ÿ of another source"), numbers[0]);
            assert_eq!((numbers, entities.text(0)), ([0; 3], "Féver"));
            entities.own(0, "Féver", None);
            assert_eq!(
                (entities.number(0, "name:fever", "ÿ after the owner"), entities.text(0)),
                (0, "Féver")
            );
        }
    }
}
