//! The names that a source gives to the things of one role, and the ids known for them.

use std::collections::{BTreeMap, HashMap};

use crate::canon::fold::{fold, tidy};
use crate::table::builder::{DraftEntity, OfferKind};
use crate::table::{Builder, SemanticType, TermKind, TermOrigin};

/// Ids by folded name.
pub(super) type Ids = HashMap<String, Id>;

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Id {
    /// The entity's key: `mesh:D001835`.
    pub(super) key: String,
    /// The entity's text, the same for all names of one key.
    pub(super) text: String,
}

/// Names of one role (`disease`, `symptom`) in one source. An entity is made when a triple first needs it.
#[derive(Debug)]
pub(super) struct NameTable<'k> {
    source: &'static str,
    role: &'static str,
    known: &'k Ids,
    place_of: HashMap<String, usize>,
    names: Vec<Name>,
    by_fold: BTreeMap<String, usize>,
}

#[derive(Debug)]
struct Name {
    folded: String,
    printed: String,
    entity: Option<DraftEntity>,
}

impl<'k> NameTable<'k> {
    /// Names whose ids are looked up in `known`; the others get a `name:` key.
    pub(super) fn new(source: &'static str, role: &'static str, known: &'k Ids) -> Self {
        let (place_of, names, by_fold) = (HashMap::new(), Vec::new(), BTreeMap::new());
        Self { source, role, known, place_of, names, by_fold }
    }

    /// The place of a name as printed; spellings that fold to the same text share it.
    pub(super) fn place(&mut self, printed: &str) -> usize {
        if let Some(&place) = self.place_of.get(printed) {
            return place;
        }
        let folded = fold(printed);
        let next = self.names.len();
        let place = *self.by_fold.entry(folded.clone()).or_insert(next);
        let tidied = tidy(printed);
        if place == next {
            self.names.push(Name { folded, printed: tidied, entity: None });
        } else if self.names[place].printed < tidied {
            // The spelling that stands for an entity too, whatever the order of the rows.
            self.names[place].printed = tidied;
        }
        self.place_of.insert(printed.to_owned(), place);
        place
    }

    /// The entity at a place, with its role as type.
    pub(super) fn entity(&mut self, place: usize, builder: &mut Builder) -> DraftEntity {
        let (source, role, known) = (self.source, self.role, self.known);
        let name = &mut self.names[place];
        *name.entity.get_or_insert_with(|| {
            let entity = drafted(&name.folded, &name.printed, source, known, builder);
            builder.add_type(entity, SemanticType { code: None, name: role.to_owned() });
            entity
        })
    }

    /// Gives the entities their names, once all spellings are read.
    pub(super) fn settle(&self, builder: &mut Builder) {
        let source = self.source.to_owned();
        let mut terms = None;
        for Name { folded, printed, entity } in &self.names {
            let Some(entity) = *entity else { continue };
            drafted(folded, printed, self.source, self.known, builder);
            if let Some(id) = self.known.get(folded) {
                builder.offer(printed, &id.key, &id.text, OfferKind::Preferred);
            }
            let terms = *terms.get_or_insert_with(|| {
                let source = source.clone();
                builder.term_origin(TermOrigin { source, vocabulary: None, language: None, level: None })
            });
            builder.term(entity, TermKind::Preferred, printed, terms);
        }
    }

    /// Different names read.
    pub(super) fn read(&self) -> u64 {
        self.names.len() as u64
    }

    /// Whether the folded name was read.
    pub(super) fn has(&self, folded: &str) -> bool {
        self.by_fold.contains_key(folded)
    }

    /// Names that have no id, as printed, in the order of their folded text.
    pub(super) fn without_id(&self) -> Vec<String> {
        let unknown = self.by_fold.iter().filter(|(folded, _)| !self.known.contains_key(folded.as_str()));
        unknown.map(|(_, &place)| self.names[place].printed.clone()).collect()
    }
}

/// The entity of a name: by its id, or by the name itself.
fn drafted(folded: &str, printed: &str, source: &str, known: &Ids, builder: &mut Builder) -> DraftEntity {
    match known.get(folded) {
        Some(id) => builder.entity(source, &id.key, &id.text),
        None => builder.entity(source, &format!("name:{folded}"), printed),
    }
}
