//! The names that a source without ids gives to the things of one role. Knows no file.

use std::collections::HashMap;

use crate::canon::fold::{fold, tidy};
use crate::table::builder::DraftEntity;
use crate::table::{Builder, SemanticType};

/// Names of one role (`disease`, `symptom`) in one source. An entity is made when a triple first needs it.
#[derive(Debug)]
pub(super) struct Roster {
    source: &'static str,
    role: &'static str,
    place_of: HashMap<String, usize>,
    names: Vec<Name>,
    by_key: HashMap<String, usize>,
}

#[derive(Debug)]
struct Name {
    key: String,
    text: String,
    entity: Option<DraftEntity>,
}

impl Roster {
    pub(super) fn new(source: &'static str, role: &'static str) -> Self {
        Self { source, role, place_of: HashMap::new(), names: Vec::new(), by_key: HashMap::new() }
    }

    /// The place of a name as printed; spellings that fold to the same text share it.
    pub(super) fn place(&mut self, printed: &str) -> usize {
        if let Some(&place) = self.place_of.get(printed) {
            return place;
        }
        let key = format!("name:{}", fold(printed));
        let next = self.names.len();
        let place = *self.by_key.entry(key.clone()).or_insert(next);
        if place == next {
            self.names.push(Name { key, text: tidy(printed), entity: None });
        }
        self.place_of.insert(printed.to_owned(), place);
        place
    }

    /// The entity at a place, with its role as type.
    pub(super) fn entity(&mut self, place: usize, builder: &mut Builder) -> DraftEntity {
        let name = &mut self.names[place];
        *name.entity.get_or_insert_with(|| {
            let entity = builder.entity(self.source, &name.key, &name.text);
            builder.add_type(entity, SemanticType { code: None, name: self.role.to_owned() });
            entity
        })
    }

    /// Different names read.
    pub(super) fn read(&self) -> u64 {
        self.names.len() as u64
    }

    /// Keys of the names that no triple needed.
    pub(super) fn unused(&self) -> impl Iterator<Item = &str> {
        self.names.iter().filter(|name| name.entity.is_none()).map(|name| name.key.as_str())
    }

    /// Whether a triple needed the name with this key.
    pub(super) fn uses(&self, key: &str) -> bool {
        self.by_key.get(key).is_some_and(|&place| self.names[place].entity.is_some())
    }
}

/// Names of two rosters that neither of them used, each counted once.
pub(super) fn unused(one: &Roster, two: &Roster) -> u64 {
    let only_one = one.unused().filter(|key| !two.uses(key));
    let only_two = two.unused().filter(|key| !one.by_key.contains_key(*key));
    (only_one.count() + only_two.count()) as u64
}
