//! What ontologies and terminologies state, whatever their format: its terms are drafted as they come, their rows stated when all terms are known.

mod counted;
mod identity;
mod term;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use base::funnel::Tally;
use base::read::ReadError;

use self::identity::Identities;
use self::term::{Known, Relation, Stated};
pub(super) use self::term::{Link, Listed, Synonym, Taken, Term, Wording, key};
pub use self::term::{Obsolete, Scope};
use super::code::{is_code, is_own_code, words};
use super::funnel::Funnel;
use super::naming::{Naming, Untexted};
use super::xref::Xref;
use super::{SourceReport, not_kept};
use crate::table::builder::{DraftEntity, DraftOrigin, DraftRelation, DraftTermOrigin, OfferKind};
use crate::table::{Builder, Origin, TermKind, TermOrigin};

/// Rows of a relation that was not asked for.
const NOT_ASKED_FOR: &str = "relation_not_asked_for";
/// Terms that are no longer used, and their rows and texts.
pub(super) const OBSOLETE: &str = "obsolete";
/// Rows of something that is no term.
pub(super) const NO_NODE: &str = "no_node";
/// Synonyms of a scope that was not asked for.
const OTHER_SCOPE: &str = "scope_not_asked_for";

/// An ontology while it is read.
pub(super) struct Ontology<'o, 'b> {
    source: &'o str,
    taken: Taken<'o>,
    builder: &'b mut Builder,
    file: PathBuf,
    /// Where triples and texts come from within the source.
    vocabulary: Option<String>,
    terms: HashMap<String, Known>,
    /// Keys that mean another one of the file.
    alternative: HashMap<String, String>,
    relations: BTreeMap<String, Relation>,
    links: Vec<Stated>,
    term_origin: Option<DraftTermOrigin>,
    row_origin: Option<DraftOrigin>,
    untexted: Vec<(DraftEntity, String)>,
    identities: Identities,
    stanzas: Tally,
    texts: Tally,
    rows: Tally,
    /// Why rows of what is no term are left out.
    stranger: &'static str,
    /// Ends of rows that are no terms.
    strangers: [HashSet<String>; 2],
}

impl<'o, 'b> Ontology<'o, 'b> {
    pub(super) fn new(
        source: &'o str,
        taken: Taken<'o>,
        label: &Path,
        listed: Listed,
        builder: &'b mut Builder,
    ) -> Self {
        let part = |what: &str, reasons: &[&'static str]| {
            let file = Tally::new(label, &[]).file;
            Tally::new(Path::new(&format!("{file}: {what}")), reasons)
        };
        Self {
            source,
            taken,
            builder,
            file: label.to_owned(),
            vocabulary: None,
            terms: HashMap::new(),
            alternative: HashMap::new(),
            relations: BTreeMap::new(),
            links: Vec::new(),
            term_origin: None,
            row_origin: None,
            untexted: Vec::new(),
            identities: Identities::new(part("xrefs to other namespaces", &identity::REASONS)),
            stanzas: part(listed.name, &[&[OBSOLETE], listed.reasons].concat()),
            texts: part("texts", &[OBSOLETE, OTHER_SCOPE]),
            rows: Tally::new(label, &[NOT_ASKED_FOR, OBSOLETE, listed.stranger]),
            stranger: listed.stranger,
            strangers: Default::default(),
        }
    }

    /// Says where triples and texts come from within the source; before the first term.
    pub(super) fn vocabulary(&mut self, name: Option<&str>) {
        if self.vocabulary.as_deref() != name {
            (self.vocabulary, self.term_origin, self.row_origin) = (name.map(str::to_owned), None, None);
        }
    }

    /// Says how a relation is worded.
    pub(super) fn word(&mut self, id: &str, wording: Wording) {
        let known = &mut self.relations.entry(id.to_owned()).or_default().wording;
        known.text = wording.text;
        known.inverses.extend(wording.inverses);
    }

    /// Takes a term that stands at `at`, a line of the file or what else its reader counts.
    ///
    /// # Errors
    /// The place of the term of the same key, if there is one.
    pub(super) fn term(&mut self, mut term: Term, at: u64) -> Result<(), u64> {
        term.name = term.name.filter(|name| !is_own_code(name, &term.key));
        if let Some(before) = self.terms.get(&term.key) {
            return Err(before.at);
        }
        let entity = if term.is_obsolete && self.taken.obsolete == Obsolete::Drop {
            self.stanzas.drop(OBSOLETE);
            let texts = term.synonyms.len()
                + usize::from(term.name.is_some())
                + usize::from(term.definition.is_some());
            self.texts.drop_all(OBSOLETE, texts as u64);
            // Of several none is the same.
            if let [other] = term.replaced_by.as_slice() {
                self.give_up(&term.key, other);
            }
            None
        } else {
            self.stanzas.keep();
            Some(self.draft(&term))
        };
        let Term { key, alternatives, .. } = term;
        for other in alternatives {
            self.give_up(&other, &key);
            self.alternative.insert(other, key.clone());
        }
        self.terms.insert(key, Known { entity, at, ends: [false; 2] });
        Ok(())
    }

    /// Says that `key` is given up for `other`, to other sources and to who compares releases.
    fn give_up(&mut self, key: &str, other: &str) {
        self.builder.alias(key, other);
        self.builder.retire(key, other);
    }

    /// Takes rows that are stated when all terms are known.
    pub(super) fn links(&mut self, subject: &str, links: Vec<Link>) {
        self.links.extend(links.into_iter().map(|link| Stated { subject: subject.to_owned(), link }));
    }

    /// Drafts a term with its texts, its types and what it is elsewhere.
    fn draft(&mut self, term: &Term) -> DraftEntity {
        let (source, level, key) = (self.source, self.taken.level, term.key.as_str());
        let origin = *self.term_origin.get_or_insert_with(|| {
            let (source, vocabulary) = (source.to_owned(), self.vocabulary.clone());
            self.builder.term_origin(TermOrigin { source, vocabulary, language: None, level })
        });
        let builder = &mut *self.builder;
        let text = term.name.as_deref().unwrap_or(key);
        let entity = match &term.name {
            Some(name) => {
                let entity = builder.entity(source, key, name);
                builder.term(entity, TermKind::Preferred, name, origin);
                builder.offer(name, key, name, OfferKind::Preferred);
                self.texts.keep();
                entity
            }
            None => {
                let entity = builder.nameless(source, key, key);
                self.untexted.push((entity, key.to_owned()));
                entity
            }
        };
        if let Some(level) = level {
            builder.set_level(entity, level);
        }
        for kind in &term.types {
            builder.add_type(entity, kind.clone());
        }
        for synonym in &term.synonyms {
            if self.taken.takes(synonym.scope) {
                builder.term(entity, TermKind::Synonym, &synonym.text, origin);
                builder.offer(&synonym.text, key, text, OfferKind::Synonym);
                self.texts.keep();
            } else {
                self.texts.drop(OTHER_SCOPE);
            }
        }
        if let Some(definition) = &term.definition {
            builder.term(entity, TermKind::Definition, definition, origin);
            self.texts.keep();
        }
        self.identities.note(term, self.taken.xref);
        entity
    }

    /// Says what terms are elsewhere and which relations are inverse: all terms are known.
    pub(super) fn settle(&mut self) {
        self.identities.state(self.source, self.builder);
        for (id, relation) in &self.relations {
            for inverse in &relation.wording.inverses {
                self.builder
                    .declare_inverse(&(self.taken.relation_key)(id), &(self.taken.relation_key)(inverse));
            }
        }
    }

    /// States a row, or counts why not; behind [`Ontology::settle`].
    pub(super) fn row(&mut self, subject: &str, link: &Link) -> Result<(), ReadError> {
        let Link { relation, object } = link;
        let object = self.alternative.get(object).unwrap_or(object);
        let is_asked = self.is_asked(relation);
        let mut drafts = [None; 2];
        let mut is_known = [false; 2];
        for (end, key) in [subject, object].into_iter().enumerate() {
            match self.terms.get_mut(key) {
                Some(known) => {
                    known.ends[end] = true;
                    (drafts[end], is_known[end]) = (known.entity, true);
                }
                None => {
                    if !self.strangers[end].contains(key) {
                        self.strangers[end].insert(key.to_owned());
                    }
                }
            }
        }
        let is_obsolete = drafts.iter().zip(is_known).any(|(draft, known)| known && draft.is_none());
        let reason = match (is_asked, drafts) {
            (true, [Some(subject), Some(object)]) if !is_obsolete => {
                self.rows.keep();
                let (relation, origin) = (self.relation(relation), self.origin());
                let stated = self.builder.triple(subject, relation, object, origin);
                return stated.map_err(|error| not_kept(self.source, &error));
            }
            (false, _) => NOT_ASKED_FOR,
            (true, _) if is_obsolete => OBSOLETE,
            (true, _) => self.stranger,
        };
        // That it is there is known even if no row of it is kept.
        self.relations.entry(relation.clone()).or_default();
        self.rows.drop(reason);
        Ok(())
    }

    fn origin(&mut self) -> DraftOrigin {
        *self.row_origin.get_or_insert_with(|| {
            self.builder.origin(Origin {
                source: self.source.to_owned(),
                vocabulary: self.vocabulary.clone(),
                weight: None,
                count: None,
                level: self.taken.level,
            })
        })
    }

    /// States the rows that waited, and tells what was read: `lines` and `bytes` of all files.
    ///
    /// # Errors
    /// When a relation that was asked for is none, or rows cannot be kept.
    pub(super) fn finish(mut self, lines: u64, bytes: u64) -> Result<SourceReport, ReadError> {
        let links = std::mem::take(&mut self.links);
        for relation in links.iter().map(|stated| &stated.link.relation) {
            self.relations.entry(relation.clone()).or_default();
        }
        self.check_asked()?;
        self.settle();
        for Stated { subject, link } in links {
            self.row(&subject, &link)?;
        }
        (self.rows.lines, self.rows.bytes) = (lines, bytes);
        Ok(self.report())
    }

    /// The keys of relations of which all that is known is a code, those included that merging may turn statements into.
    fn nameless(&self) -> Vec<String> {
        let is_named = |id: &str| self.relations.get(id).is_some_and(|of| of.wording.text.is_some());
        let inverses = self.relations.values().flat_map(|relation| &relation.wording.inverses);
        let ids = self.relations.keys().chain(inverses).filter(|id| is_code(id) && !is_named(id));
        let keys: BTreeSet<String> = ids.map(|id| (self.taken.relation_key)(id)).collect();
        keys.into_iter().collect()
    }

    fn report(self) -> SourceReport {
        let source = self.source.to_owned();
        let asked = |id: &&String| self.taken.relations.is_some_and(|asked| asked.contains(*id));
        let mut relations: BTreeMap<String, u64> = BTreeMap::new();
        for (id, relation) in &self.relations {
            if relation.rows > 0 || asked(&id) {
                *relations.entry((self.taken.relation_key)(id)).or_insert(0) += relation.rows;
            }
        }
        // What no row mentions misses no name.
        let is_met = |known: &Known| known.entity.is_some() && known.ends.contains(&true);
        let all = self.terms.values().filter(|known| is_met(known)).count() as u64;
        let ends = |end: usize| {
            let known = self.terms.values().filter(|term| term.ends[end]).count();
            (known + self.strangers[end].len()) as u64
        };
        let (subjects, objects) = (ends(0), ends(1));
        let named = Untexted { without: self.nameless(), all: relations.len() as u64 };
        let mut without = self.untexted;
        without.retain(|(_, key)| self.terms.get(key).is_some_and(is_met));
        let entities = Untexted { without, all };
        let mut supporting = vec![self.stanzas, self.texts];
        if self.taken.xref == Xref::SameAs {
            supporting.push(self.identities.tally);
        }
        let funnel =
            Funnel { source: source.clone(), triples: self.rows, supporting, subjects, objects, relations };
        let mut report = SourceReport::new(funnel);
        report.naming = Some(Naming::of_names(source, self.taken.max_untexted, entities, named));
        report
    }

    fn relation(&mut self, id: &str) -> DraftRelation {
        let relation = self.relations.entry(id.to_owned()).or_default();
        relation.rows += 1;
        if let Some(draft) = relation.draft {
            return draft;
        }
        let inverses = relation.wording.inverses.clone();
        let draft = self.builder.relation(self.source, &(self.taken.relation_key)(id), &self.words(id));
        // Merging may turn the statements round into a relation that no row names.
        for inverse in inverses {
            self.builder.relation(self.source, &(self.taken.relation_key)(&inverse), &self.words(&inverse));
        }
        self.relations.entry(id.to_owned()).or_default().draft = Some(draft);
        draft
    }

    /// The words of a relation.
    fn words(&self, id: &str) -> String {
        let text = self.relations.get(id).and_then(|relation| relation.wording.text.clone());
        text.unwrap_or_else(|| words(id))
    }

    fn is_asked(&self, relation: &str) -> bool {
        self.taken.relations.is_none_or(|asked| asked.contains(relation))
    }

    /// Fails on a relation that is asked for and that the files do not have.
    pub(super) fn check_asked(&self) -> Result<(), ReadError> {
        let asked = self.taken.relations.into_iter().flatten();
        let Some(relation) = asked.into_iter().find(|relation| !self.relations.contains_key(*relation))
        else {
            return Ok(());
        };
        let known: Vec<&str> = self.relations.keys().map(String::as_str).collect();
        let found = format!("there is no relation {relation:?}");
        let expected = format!("one of {}", known.join(", "));
        let remedy = format!("fix `relations` of the source {}, or leave the name out", self.source);
        Err(ReadError::new(&self.file, found, expected, remedy))
    }
}
