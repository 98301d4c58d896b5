//! Gathers what sources state.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::Path;

use super::draft::{Entities, Interned, Keyed};
use super::id::dense;
use super::row::{Origin, SemanticType, TermKind, TermOrigin};
use super::rows::{Limit, Rows};
use super::texts::Texts;
use crate::canon::fold::{fold, tidy};

/// An entity while the graph is being built; not its final id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DraftEntity(pub(crate) u32);

/// A relation while the graph is being built; not its final id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DraftRelation(u32);

/// An origin while the graph is being built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DraftOrigin(u32);

/// Where terms come from while the graph is being built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DraftTermOrigin(u32);

/// How a source calls an entity by a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OfferKind {
    /// The name that it prefers.
    Preferred,
    /// Another name.
    Synonym,
}

/// Key of an entity that has only a name: `name:` and the folded name.
pub(crate) const NAMED: &str = "name:";

/// The folded names for which a better key is wanted: those of all `name:` entities so far.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    names: HashMap<String, u32, ahash::RandomState>,
}

impl Wanted {
    /// Whether `folded` ([`fold`]) is wanted.
    #[must_use]
    pub fn contains(&self, folded: &str) -> bool {
        self.names.contains_key(folded)
    }

    /// Whether no name is wanted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// A key that a source offers for a wanted name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Offer {
    /// The `name:` entity.
    pub(crate) entity: u32,
    pub(crate) kind: OfferKind,
    pub(crate) key: String,
    pub(crate) text: String,
}

/// A term of an entity; its text is the one with the same number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DraftTerm {
    pub(crate) entity: u32,
    pub(crate) origin: u32,
    pub(crate) kind: TermKind,
}

/// What sources stated, for merging.
#[derive(Debug)]
pub(crate) struct Statements {
    pub(crate) sources: Vec<String>,
    pub(crate) entities: Entities,
    pub(crate) relations: Keyed,
    pub(crate) origins: Vec<Origin>,
    /// Place of each origin's source in `sources`.
    pub(crate) source_of: Vec<u32>,
    /// (subject, relation, object, origin) as stated.
    pub(crate) rows: Rows,
    /// The same of what sources publish as false.
    pub(crate) negatives: Rows,
    pub(crate) term_origins: Interned<TermOrigin>,
    pub(crate) terms: Vec<DraftTerm>,
    pub(crate) term_texts: Texts,
    /// Relation keys that say the same the other way round.
    pub(crate) inverses: BTreeSet<(String, String)>,
    pub(crate) preferred: BTreeSet<String>,
    /// Fewest distinct triples of a relation, by source.
    pub(crate) floors: BTreeMap<String, u64>,
    /// Texts of keys and of what they mean, two after two.
    pub(crate) aliases: Texts,
    /// Those that go before all others of their keys.
    pub(crate) settled: Texts,
    /// Texts of keys, of what each of them may mean, and of what else it then is not (or nothing), three after three.
    pub(crate) supposed: Texts,
    /// Texts of keys that were given up and of what took their places, two after two.
    pub(crate) retired: Texts,
    pub(crate) wanted: Wanted,
    pub(crate) offers: BTreeSet<Offer>,
    /// Pairs that are known to be inverse and are not to be folded.
    pub(crate) noted: BTreeSet<(String, String)>,
    /// Draft entities without a name, whose statements are to be left out unless another source names them; sources, and relations of which theirs are.
    pub(crate) unnamed: Vec<u32>,
    pub(crate) unnamed_relations: BTreeSet<(String, String)>,
    /// Rows in memory at most, and where the others wait.
    pub(crate) limit: Option<Limit>,
}

impl Statements {
    /// The keys that sources mentioned with this beginning, in no order that may reach a file.
    pub(crate) fn keys<'b>(&'b self, beginning: &'b str) -> impl Iterator<Item = &'b str> {
        let keyed = &self.entities.keyed;
        (0..dense(keyed.len())).map(|number| keyed.key(number)).filter(move |key| key.starts_with(beginning))
    }
}

/// A graph in the making. After an error of a source it holds a part of that source: throw it away.
#[derive(Debug)]
pub struct Builder {
    stated: Statements,
    /// The source of the last entity.
    speaker: u32,
}

#[allow(clippy::new_without_default, reason = "an empty graph is a beginning, no default")]
impl Builder {
    /// Starts an empty graph, all of it in memory.
    #[must_use]
    pub fn new() -> Self {
        Self::with(None)
    }

    /// Starts an empty graph of which `rows` statements (16 bytes each) are held in memory, the others in temporary files in `folder`.
    #[must_use]
    pub fn spilling(folder: &Path, rows: usize) -> Self {
        Self::with(Some(Limit { folder: folder.to_owned(), rows: rows.max(1024) }))
    }

    fn with(limit: Option<Limit>) -> Self {
        let stated = Statements {
            sources: Vec::new(),
            entities: Entities::new(),
            relations: Keyed::default(),
            origins: Vec::new(),
            source_of: Vec::new(),
            rows: Rows::new(limit.clone()),
            negatives: Rows::new(limit.clone()),
            term_origins: Interned::new(),
            terms: Vec::new(),
            term_texts: Texts::default(),
            inverses: BTreeSet::new(),
            preferred: BTreeSet::new(),
            floors: BTreeMap::new(),
            aliases: Texts::default(),
            settled: Texts::default(),
            supposed: Texts::default(),
            retired: Texts::default(),
            wanted: Wanted::default(),
            offers: BTreeSet::new(),
            noted: BTreeSet::new(),
            unnamed: Vec::new(),
            unnamed_relations: BTreeSet::new(),
            limit,
        };
        Self { stated, speaker: 0 }
    }

    /// What was stated.
    pub(crate) fn into_statements(self) -> Statements {
        self.stated
    }

    fn source(&mut self, name: &str) -> u32 {
        let known = self.stated.sources.iter().position(|source| source == name);
        dense(known.unwrap_or_else(|| {
            self.stated.sources.push(name.to_owned());
            self.stated.sources.len() - 1
        }))
    }

    /// The entity `key`, mentioned by `source`. `text` names it if no other source did before; of several spellings by that source the
    /// last in byte order stands.
    pub fn entity(&mut self, source: &str, key: &str, text: &str) -> DraftEntity {
        self.speaker = self.source(source);
        let number = self.stated.entities.number(self.speaker, key, text);
        if let Some(name) = key.strip_prefix(NAMED)
            && !self.stated.wanted.names.contains_key(name)
        {
            self.stated.wanted.names.insert(name.to_owned(), number);
        }
        DraftEntity(number)
    }

    /// The entity `key`, mentioned by `source` without a text: it is called `id` until a source has one.
    pub fn nameless(&mut self, source: &str, key: &str, id: &str) -> DraftEntity {
        self.speaker = self.source(source);
        DraftEntity(self.stated.entities.nameless(self.speaker, key, id))
    }

    /// Says which licence level the text has that the source of the last [`Builder::entity`] gave. Of no effect when another source's
    /// text stands.
    pub fn set_level(&mut self, entity: DraftEntity, level: u8) {
        self.stated.entities.set_level(self.speaker, entity.0, level);
    }

    /// Words an entity as the owner of its namespace does (UMLS for `umls:`, MeSH for `mesh:`), whoever named it before.
    pub fn own(&mut self, entity: DraftEntity, text: &str, level: Option<u8>) {
        self.stated.entities.own(entity.0, text, level);
    }

    /// Whether some source mentioned the entity `key`.
    #[must_use]
    pub fn knows(&self, key: &str) -> bool {
        self.stated.entities.keyed.find(key).is_some()
    }

    /// The keys that sources mentioned with this beginning, in no order that may reach a file.
    pub fn keys<'b>(&'b self, beginning: &'b str) -> impl Iterator<Item = &'b str> {
        self.stated.keys(beginning)
    }

    /// The keys with this beginning that some source says another key to mean, in no order that may reach a file.
    pub fn alias_targets<'b>(&'b self, beginning: &'b str) -> impl Iterator<Item = &'b str> {
        let targets = (0..dense(self.stated.aliases.len()))
            .skip(1)
            .step_by(2)
            .map(|number| self.stated.aliases.get(number));
        targets.filter(move |key| key.starts_with(beginning))
    }

    /// Says that two relations, by key, are somewhere said to be inverse without folding them: splits keep them together.
    pub fn note_inverse(&mut self, key: &str, inverse: &str) {
        self.stated.noted.insert((key.to_owned(), inverse.to_owned()));
        self.stated.noted.insert((inverse.to_owned(), key.to_owned()));
    }

    /// Says that an entity is of a type, once or more often.
    pub fn add_type(&mut self, entity: DraftEntity, semantic_type: SemanticType) {
        self.stated.entities.add_type(entity.0, semantic_type);
    }

    /// The relation `key`, used by `source`. `text` words it if no source did before.
    pub fn relation(&mut self, source: &str, key: &str, text: &str) -> DraftRelation {
        self.source(source);
        DraftRelation(self.stated.relations.number(key, text))
    }

    /// An origin for one triple or many. A source asks once for each of its vocabularies, not for each row.
    pub fn origin(&mut self, origin: Origin) -> DraftOrigin {
        let source = self.source(&origin.source);
        self.stated.source_of.push(source);
        self.stated.origins.push(origin);
        DraftOrigin(dense(self.stated.origins.len() - 1))
    }

    /// States a triple as its source does; the same one may come again, also the other way round.
    ///
    /// # Errors
    /// When rows beyond the limit cannot be put on the disk.
    pub fn triple(
        &mut self,
        subject: DraftEntity,
        relation: DraftRelation,
        object: DraftEntity,
        origin: DraftOrigin,
    ) -> io::Result<()> {
        self.stated.rows.push([subject.0, relation.0, object.0, origin.0])
    }

    /// Keeps a triple that its source publishes as false. It is no triple of the graph, and mentions nothing for it.
    ///
    /// # Errors
    /// When rows beyond the limit cannot be put on the disk.
    pub fn negative(
        &mut self,
        subject: DraftEntity,
        relation: DraftRelation,
        object: DraftEntity,
        origin: DraftOrigin,
    ) -> io::Result<()> {
        self.stated.negatives.push([subject.0, relation.0, object.0, origin.0])
    }

    /// Where terms come from, for one term or many.
    pub fn term_origin(&mut self, origin: TermOrigin) -> DraftTermOrigin {
        self.source(&origin.source);
        DraftTermOrigin(self.stated.term_origins.number(origin))
    }

    /// Gives an entity a text; the same one may come again.
    pub fn term(&mut self, entity: DraftEntity, kind: TermKind, text: &str, origin: DraftTermOrigin) {
        self.stated.terms.push(DraftTerm { entity: entity.0, origin: origin.0, kind });
        self.stated.term_texts.push(&tidy(text));
    }

    /// Says that two relations, by key, say the same the other way round. A relation that is its own inverse is symmetric.
    pub fn declare_inverse(&mut self, key: &str, inverse: &str) {
        self.stated.inverses.insert((key.to_owned(), inverse.to_owned()));
        self.stated.inverses.insert((inverse.to_owned(), key.to_owned()));
    }

    /// Whether some relation, by key, is known to say the same as `key` the other way round.
    #[must_use]
    pub fn has_inverse(&self, key: &str) -> bool {
        let from = (key.to_owned(), String::new());
        self.stated.inverses.range(from..).next().is_some_and(|(known, _)| known == key)
    }

    /// Says that the relation `key` is to stay when it has an inverse, instead of what [`crate::canon::relation`] would choose.
    pub fn prefer_relation(&mut self, key: &str) {
        self.stated.preferred.insert(key.to_owned());
    }

    /// Says that relations with fewer than `triples` distinct triples of `source` are to lose its statements.
    pub fn min_relation_count(&mut self, source: &str, triples: u64) {
        self.stated.floors.insert(source.to_owned(), triples);
    }

    /// Says that the entity `key` is the one called `means`.
    pub fn alias(&mut self, key: &str, means: &str) {
        if key != means {
            self.stated.aliases.push(key);
            self.stated.aliases.push(means);
        }
    }

    /// Says that the entity `key` is the one called `means`, and no other that [`Builder::alias`] says: a source that both keys are of knows better than others.
    pub fn settle(&mut self, key: &str, means: &str) {
        self.stated.settled.push(key);
        self.stated.settled.push(means);
    }

    /// Says that the entity `key` may be the one called `other`, of several that its source refers to or that several of its entities refer to: it is where
    /// these two alone bear the same name. Where its source refers to just one that no other of its entities refers to (`clear`), it is that one, if any source names it.
    pub fn suppose(&mut self, key: &str, other: &str, clear: Option<&str>) {
        for text in [key, other, clear.unwrap_or_default()] {
            self.stated.supposed.push(text);
        }
    }

    /// Says that the statements about an entity are to be left out if no source has a name for it.
    pub fn leave_out_unnamed(&mut self, entity: DraftEntity) {
        self.stated.unnamed.push(entity.0);
    }

    /// Says that the statements of the relation `key` that `source` has made are to be left out.
    pub fn leave_out_relation(&mut self, source: &str, key: &str) {
        self.stated.unnamed_relations.insert((source.to_owned(), key.to_owned()));
    }

    /// Says that a source gave up `key`, and that `means` took its place: who compares two releases finds it again. For statements of other sources about `key`,
    /// [`Builder::alias`] is to say it as well.
    pub fn retire(&mut self, key: &str, means: &str) {
        self.stated.retired.push(key);
        self.stated.retired.push(means);
    }

    /// Whether there are entities with a name only.
    #[must_use]
    pub fn wants_names(&self) -> bool {
        !self.stated.wanted.is_empty()
    }

    /// The names for which a better key is wanted.
    #[must_use]
    pub fn wanted(&self) -> &Wanted {
        &self.stated.wanted
    }

    /// Says that `name`, in any spelling, is a name of the entity `key`, whose preferred text is `text`. Of no effect when the name
    /// is not wanted: sources with ids are read after those with names only.
    pub fn offer(&mut self, name: &str, key: &str, text: &str, kind: OfferKind) {
        // A name is no better key than the name.
        if let Some(&entity) = self.stated.wanted.names.get(&fold(name))
            && !key.starts_with(NAMED)
        {
            self.stated.offers.insert(Offer { entity, kind, key: key.to_owned(), text: tidy(text) });
        }
    }
}
