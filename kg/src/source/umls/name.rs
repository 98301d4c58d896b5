//! One name for each concept, in one buffer, and what became of concepts without one.

use std::num::NonZeroU32;

use super::cui::{Cui, CuiMap};

/// Where a concept leads: a number below [`MAPPED`] is that of a name, plus one; with the bit [`MAPPED`] it is the name of the
/// concept that took its place. Four bytes with or without a concept, since each row of MRREL looks up two of them at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot(NonZeroU32);

const MAPPED: u32 = 1 << 31;
const DELETED: Slot = Slot(NonZeroU32::MAX);
const AMBIGUOUS: Slot = Slot(match NonZeroU32::new(u32::MAX - 1) {
    Some(number) => number,
    None => NonZeroU32::MIN,
});

impl Slot {
    fn of(named: Named, mapped: u32) -> Self {
        Self(NonZeroU32::MIN.saturating_add(named.0 | mapped))
    }

    fn named(self) -> Named {
        Named((self.0.get() & !MAPPED) - 1)
    }

    fn is_mapped(self) -> bool {
        self.0.get() & MAPPED != 0
    }
}

/// The number of a named concept, from 0 in the order in which they were met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Named(pub(super) u32);

impl Named {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What is known of a concept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// It has a name.
    Named(Named),
    /// It is retired; this one is the same.
    Mapped(Named),
    /// It is retired, and nothing took its place.
    Deleted,
    /// It is retired, and what took its place is not the same or not one.
    Ambiguous,
    /// It has no name among those asked for.
    Nameless,
}

/// How far a name is from the one to prefer; the least is the best.
pub(super) type Rank = u64;

/// A name that a concept may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate<'a> {
    pub(super) rank: Rank,
    pub(super) text: &'a str,
    /// Licence level; none is the least.
    pub(super) level: Option<u8>,
}

/// The best name of each concept so far.
#[derive(Debug)]
pub(super) struct Names {
    slots: CuiMap<Slot>,
    cuis: Vec<Cui>,
    entries: Vec<Entry>,
    texts: String,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    rank: Rank,
    start: usize,
    length: u32,
    level: Option<u8>,
}

impl Names {
    pub(super) fn new() -> Self {
        Self { slots: CuiMap::new(), cuis: Vec::new(), entries: Vec::new(), texts: String::new() }
    }

    /// Gives a concept a name if it has none or a worse one. The order of names is all the same.
    pub(super) fn propose(&mut self, cui: Cui, name: Candidate<'_>) {
        let slot = self.slots.place(cui);
        let Some(known) = *slot else {
            // There are fewer than ten million concepts.
            *slot = Some(Slot::of(Named(u32::try_from(self.cuis.len()).unwrap_or(0)), 0));
            self.cuis.push(cui);
            let entry = put(&mut self.texts, name);
            self.entries.push(entry);
            return;
        };
        let known = known.named().index();
        if name < self.candidate(known) {
            let old = self.entries[known];
            // Names of a concept stand together in published files, so the worse one is most often the last.
            if old.start + old.length as usize == self.texts.len() {
                self.texts.truncate(old.start);
            }
            self.entries[known] = put(&mut self.texts, name);
        }
    }

    fn candidate(&self, number: usize) -> Candidate<'_> {
        let Entry { rank, start, length, level } = self.entries[number];
        Candidate { rank, text: &self.texts[start..start + length as usize], level }
    }

    /// Says what became of concepts without a name. A named concept stays as it is.
    pub(super) fn retire(&mut self, cui: Cui, became: Found) {
        let slot = match became {
            Found::Named(named) | Found::Mapped(named) => Slot::of(named, MAPPED),
            Found::Deleted => DELETED,
            Found::Ambiguous => AMBIGUOUS,
            Found::Nameless => return,
        };
        self.slots.place(cui).get_or_insert(slot);
    }

    /// What is known of a concept.
    pub(super) fn find(&self, cui: Cui) -> Found {
        match self.slots.get(cui) {
            None => Found::Nameless,
            Some(DELETED) => Found::Deleted,
            Some(AMBIGUOUS) => Found::Ambiguous,
            Some(slot) if slot.is_mapped() => Found::Mapped(slot.named()),
            Some(slot) => Found::Named(slot.named()),
        }
    }

    /// Retired concepts, each with the named one that is the same.
    pub(super) fn mapped(&self) -> impl Iterator<Item = (Cui, Named)> {
        let is_mapped = |slot: Slot| slot != DELETED && slot != AMBIGUOUS && slot.is_mapped();
        self.slots.iter().filter(move |&(_, slot)| is_mapped(slot)).map(|(cui, slot)| (cui, slot.named()))
    }

    /// Named concepts.
    pub(super) fn len(&self) -> usize {
        self.cuis.len()
    }

    pub(super) fn cui(&self, named: Named) -> Cui {
        self.cuis[named.index()]
    }

    /// The best name.
    pub(super) fn text(&self, named: Named) -> &str {
        self.candidate(named.index()).text
    }

    /// The licence level of the best name.
    pub(super) fn level(&self, named: Named) -> Option<u8> {
        self.entries[named.index()].level
    }
}

fn put(texts: &mut String, name: Candidate<'_>) -> Entry {
    let start = texts.len();
    texts.push_str(name.text);
    // A line is far shorter than four gigabytes.
    let length = u32::try_from(name.text.len()).unwrap_or(u32::MAX);
    Entry { rank: name.rank, start, length, level: name.level }
}
