//! An ontology while it is read: its terms are drafted as they come, their triples stated when all terms are known.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use base::funnel::Tally;
use base::line::Place;
use base::read::ReadError;

use super::{Header, Kind, Link, Obsolete, Options, Stanza};
use crate::source::curie;
use crate::source::funnel::Funnel;
use crate::source::kgx::Xref;
use crate::source::naming::{Allowed, Naming, Untexted};
use crate::source::{SourceReport, not_kept, same};
use crate::table::builder::{DraftEntity, DraftRelation, DraftTermOrigin, OfferKind};
use crate::table::{Builder, Origin, SemanticType, TermKind, TermOrigin};

const NOT_ASKED_FOR: &str = "relation_not_asked_for";
const OBSOLETE: &str = "obsolete";
const NO_NODE: &str = "no_node";
const SHARED: &str = "of_several_terms";
const OTHER_SCOPE: &str = "scope_not_asked_for";
const OTHER_STANZA: &str = "other_stanza";

/// The key of `is_a`, as other sources have it.
const ISA: &str = "isa";

pub(super) struct Ontology<'o, 'b> {
    source: &'o str,
    options: &'o Options,
    builder: &'b mut Builder,
    file: PathBuf,
    terms: HashMap<String, Term>,
    /// Keys that mean another one of the file.
    alternative: HashMap<String, String>,
    relations: BTreeMap<String, Relation>,
    links: Vec<Stated>,
    origin: Option<DraftTermOrigin>,
    untexted: Vec<(DraftEntity, String)>,
    /// What each term is in UMLS and MeSH, as far as its `xref`s say.
    elsewhere: Vec<(String, BTreeSet<String>)>,
    xrefs: Tally,
    stanzas: Tally,
    texts: Tally,
}

/// A term of the file.
struct Term {
    /// None of an obsolete one that is left out.
    entity: Option<DraftEntity>,
    line: u64,
}

/// What the file says of a relation, and how often it is used.
#[derive(Default)]
struct Relation {
    text: Option<String>,
    inverses: BTreeSet<String>,
    draft: Option<DraftRelation>,
    rows: u64,
}

/// A row, by the keys of its ends.
struct Stated {
    subject: String,
    link: Link,
}

impl<'o, 'b> Ontology<'o, 'b> {
    pub(super) fn new(source: &'o str, options: &'o Options, label: &Path, builder: &'b mut Builder) -> Self {
        let part = |what: &str, reasons: &[&'static str]| {
            let file = Tally::new(label, &[]).file;
            Tally::new(Path::new(&format!("{file}: {what}")), reasons)
        };
        Self {
            source,
            options,
            builder,
            file: label.to_owned(),
            terms: HashMap::new(),
            alternative: HashMap::new(),
            relations: BTreeMap::new(),
            links: Vec::new(),
            origin: None,
            untexted: Vec::new(),
            elsewhere: Vec::new(),
            xrefs: part("xrefs to UMLS and MeSH", &[SHARED]),
            stanzas: part("stanzas", &[OBSOLETE, OTHER_STANZA]),
            texts: part("texts", &[OBSOLETE, OTHER_SCOPE]),
        }
    }

    /// Takes a stanza that has ended.
    pub(super) fn stanza(&mut self, stanza: Stanza, header: &Header) -> Result<(), ReadError> {
        let Some(id) = &stanza.id else {
            if stanza.kind == Kind::Other {
                self.stanzas.drop(OTHER_STANZA);
                return Ok(());
            }
            let found = "the stanza has no id";
            return Err(ReadError::new(stanza.place, found, "a line `id: ID` in each", "fix the stanza"));
        };
        match stanza.kind {
            Kind::Term => {
                let key = key(id, &stanza.place)?;
                self.term(key, stanza, header)
            }
            Kind::Typedef => {
                self.stanzas.keep();
                let relation = self.relations.entry(id.clone()).or_default();
                relation.text = stanza.name;
                relation.inverses.extend(stanza.inverses);
                if stanza.is_symmetric {
                    relation.inverses.insert(id.clone());
                }
                Ok(())
            }
            Kind::Other => {
                self.stanzas.drop(OTHER_STANZA);
                Ok(())
            }
        }
    }

    fn term(&mut self, key: String, mut stanza: Stanza, header: &Header) -> Result<(), ReadError> {
        let line = stanza.place.line;
        if let Some(before) = self.terms.get(&key) {
            let found = format!("{key} has a stanza in line {}, too", before.line);
            return Err(ReadError::new(
                stanza.place,
                found,
                "one stanza for a term",
                "remove one of the two",
            ));
        }
        let alt_ids = keys(&stanza.alt_ids, &stanza.place)?;
        let replaced_by = keys(&stanza.replaced_by, &stanza.place)?;
        let links = std::mem::take(&mut stanza.links).into_iter();
        self.links.extend(links.map(|link| Stated { subject: key.clone(), link }));
        let entity = if stanza.is_obsolete && self.options.obsolete == Obsolete::Drop {
            self.stanzas.drop(OBSOLETE);
            let texts = stanza.synonyms.len()
                + usize::from(stanza.name.is_some())
                + usize::from(stanza.definition.is_some());
            self.texts.drop_all(OBSOLETE, texts as u64);
            // Of several none is the same.
            if let [other] = replaced_by.as_slice() {
                self.builder.alias(&key, other);
            }
            None
        } else {
            self.stanzas.keep();
            Some(self.draft(&key, &stanza, header))
        };
        for other in alt_ids {
            self.builder.alias(&other, &key);
            self.alternative.insert(other, key.clone());
        }
        self.terms.insert(key, Term { entity, line });
        Ok(())
    }

    /// Drafts a term with its texts, its type and what it is elsewhere.
    fn draft(&mut self, key: &str, stanza: &Stanza, header: &Header) -> DraftEntity {
        let (source, level) = (self.source, self.options.level);
        let origin = *self.origin.get_or_insert_with(|| {
            let (source, vocabulary) = (source.to_owned(), header.ontology.clone());
            self.builder.term_origin(TermOrigin { source, vocabulary, language: None, level })
        });
        let builder = &mut *self.builder;
        let text = stanza.name.as_deref().unwrap_or(key);
        let entity = match &stanza.name {
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
        if let Some(name) = stanza.namespace.as_ref().or(header.namespace.as_ref()) {
            builder.add_type(entity, SemanticType { code: None, name: name.clone() });
        }
        for synonym in &stanza.synonyms {
            if self.options.synonyms.contains(&synonym.scope) {
                builder.term(entity, TermKind::Synonym, &synonym.text, origin);
                builder.offer(&synonym.text, key, text, OfferKind::Synonym);
                self.texts.keep();
            } else {
                self.texts.drop(OTHER_SCOPE);
            }
        }
        if let Some(definition) = &stanza.definition {
            builder.term(entity, TermKind::Definition, definition, origin);
            self.texts.keep();
        }
        if self.options.xref == Xref::SameAs {
            let elsewhere = stanza.xrefs.iter().filter_map(|xref| elsewhere(xref)).collect();
            self.elsewhere.push((key.to_owned(), elsewhere));
        }
        entity
    }

    /// States the rows and tells what was read.
    pub(super) fn finish(mut self, mut rows: Tally, header: &Header) -> Result<SourceReport, ReadError> {
        for reason in [NOT_ASKED_FOR, OBSOLETE, NO_NODE] {
            rows.drop_all(reason, 0);
        }
        for relation in self.links.iter().map(|stated| &stated.link.relation) {
            self.relations.entry(relation.clone()).or_default();
        }
        self.check_asked()?;
        self.state_elsewhere();
        for (id, relation) in &self.relations {
            for inverse in &relation.inverses {
                self.builder.declare_inverse(&relation_key(id), &relation_key(inverse));
            }
        }
        let (mut subjects, mut objects) = (BTreeSet::new(), BTreeSet::new());
        let origin = self.builder.origin(Origin {
            source: self.source.to_owned(),
            vocabulary: header.ontology.clone(),
            weight: None,
            count: None,
            level: self.options.level,
        });
        for Stated { subject, link: Link { relation, object } } in std::mem::take(&mut self.links) {
            let object = curie::split(&object).map_or(object.clone(), curie::Curie::key);
            let object = self.alternative.get(&object).cloned().unwrap_or(object);
            let ends = [&subject, &object].map(|key| self.terms.get(key));
            let reason = match ends {
                _ if !self.is_asked(&relation) => Err(NOT_ASKED_FOR),
                [Some(Term { entity: None, .. }), _] | [_, Some(Term { entity: None, .. })] => Err(OBSOLETE),
                [Some(Term { entity: Some(subject), .. }), Some(Term { entity: Some(object), .. })] => {
                    Ok((*subject, *object))
                }
                _ => Err(NO_NODE),
            };
            match reason {
                Err(reason) => rows.drop(reason),
                Ok((subject, object)) => {
                    rows.keep();
                    let relation = self.relation(&relation);
                    let stated = self.builder.triple(subject, relation, object, origin);
                    stated.map_err(|error| not_kept(self.source, &error))?;
                }
            }
            subjects.insert(subject);
            objects.insert(object);
        }
        Ok(self.report(rows, [subjects.len() as u64, objects.len() as u64]))
    }

    /// Says what terms are elsewhere. A concept that several terms refer to is wider than each ("Usher syndrome" of its types): taken as the same, it would make
    /// one entity of all of them, so it is none of them.
    fn state_elsewhere(&mut self) {
        let mut terms: HashMap<String, u32> = HashMap::new();
        for xref in self.elsewhere.iter().flat_map(|(_, xrefs)| xrefs) {
            *terms.entry(xref.clone()).or_insert(0) += 1;
        }
        for (key, mut xrefs) in std::mem::take(&mut self.elsewhere) {
            let all = xrefs.len();
            xrefs.retain(|xref| terms.get(xref) == Some(&1));
            self.xrefs.drop_all(SHARED, (all - xrefs.len()) as u64);
            xrefs.iter().for_each(|_| self.xrefs.keep());
            same::state(&key, xrefs, self.builder);
        }
    }

    fn report(self, rows: Tally, ends: [u64; 2]) -> SourceReport {
        let source = self.source.to_owned();
        let asked = |id: &&String| self.options.relations.as_ref().is_some_and(|asked| asked.contains(*id));
        let mut relations: BTreeMap<String, u64> = BTreeMap::new();
        for (id, relation) in &self.relations {
            if relation.rows > 0 || asked(&id) {
                *relations.entry(relation_key(id)).or_insert(0) += relation.rows;
            }
        }
        let all = self.terms.values().filter(|term| term.entity.is_some()).count() as u64;
        let entities = Untexted { without: self.untexted, all };
        let named = Untexted { without: Vec::new(), all: relations.len() as u64 };
        let allowed = Allowed { max_untexted: self.options.max_untexted, ..Allowed::default() };
        let [subjects, objects] = ends;
        let mut supporting = vec![self.stanzas, self.texts];
        if self.options.xref == Xref::SameAs {
            supporting.push(self.xrefs);
        }
        let funnel =
            Funnel { source: source.clone(), triples: rows, supporting, subjects, objects, relations };
        let mut report = SourceReport::new(funnel);
        report.naming = Some(Naming { source, allowed, entities, relations: named, unused: Vec::new() });
        report
    }

    fn relation(&mut self, id: &str) -> DraftRelation {
        let relation = self.relations.entry(id.to_owned()).or_default();
        relation.rows += 1;
        if let Some(draft) = relation.draft {
            return draft;
        }
        let inverses = relation.inverses.clone();
        let draft = self.builder.relation(self.source, &relation_key(id), &self.words(id));
        // Merging may turn the statements round into a relation that no row names.
        for inverse in inverses {
            self.builder.relation(self.source, &relation_key(&inverse), &self.words(&inverse));
        }
        self.relations.entry(id.to_owned()).or_default().draft = Some(draft);
        draft
    }

    /// The words of a relation.
    fn words(&self, id: &str) -> String {
        let text = self.relations.get(id).and_then(|relation| relation.text.clone());
        text.unwrap_or_else(|| id.replace('_', " "))
    }

    fn is_asked(&self, relation: &str) -> bool {
        self.options.relations.as_ref().is_none_or(|asked| asked.contains(relation))
    }

    /// Fails on a relation that is asked for and that the file does not have.
    fn check_asked(&self) -> Result<(), ReadError> {
        let asked = self.options.relations.iter().flatten();
        let Some(relation) = asked.into_iter().find(|relation| !self.relations.contains_key(*relation))
        else {
            return Ok(());
        };
        let known: Vec<&str> = self.relations.keys().map(String::as_str).collect();
        let found = format!("the file has no relation {relation:?}");
        let expected = format!("one of {}", known.join(", "));
        Err(ReadError::new(&self.file, found, expected, "fix sources.obo.relations, or leave the name out"))
    }
}

/// The key of a term.
fn key(id: &str, place: &Place) -> Result<String, ReadError> {
    let key = curie::split(id).map(curie::Curie::key);
    let expected = "an id with its prefix (GO:0000001)";
    key.ok_or_else(|| ReadError::text(place.clone(), id, expected, "fix the stanza"))
}

fn keys(ids: &[String], place: &Place) -> Result<Vec<String>, ReadError> {
    ids.iter().map(|id| key(id, place)).collect()
}

/// The key of a relation in the graph.
fn relation_key(id: &str) -> String {
    match (id, curie::split(id)) {
        ("is_a", _) => ISA.to_owned(),
        (_, Some(curie)) => curie.key(),
        _ => id.to_owned(),
    }
}

/// The key of a cross reference to UMLS or MeSH, whose prefixes publishers write in several ways.
fn elsewhere(xref: &str) -> Option<String> {
    let curie = curie::split(xref)?;
    match curie.prefix.to_lowercase().as_str() {
        "umls" | "umls_cui" => Some(format!("umls:{}", curie.id)),
        "mesh" | "msh" => Some(format!("mesh:{}", curie.id)),
        _ => None,
    }
}
