//! RDF: N-Triples and Turtle (www.w3.org/TR/n-triples, www.w3.org/TR/turtle), as Wikidata, Bio2RDF and others publish their graphs.
//!
//! | statement | what it becomes |
//! |---|---|
//! | of one IRI about another | a triple, unless its predicate is one of those below |
//! | `names`, `synonyms`, `definitions` with a literal | text, synonym, definition of its subject |
//! | `same` (`owl:sameAs`, `skos:exactMatch`) | what its subject is called elsewhere |
//! | `rdf:type` | type, by the name of its object or the end of its IRI |
//! | `owl:deprecated true`; `dcterms:isReplacedBy`, `obo:IAO_0100001` | a term that is left out; what stands in for it |
//! | `owl:inverseOf`; `rdf:type owl:SymmetricProperty` | which relations are inverse, or their own inverse |
//!
//! Other literals and whatever is said of or by blank nodes are dropped and counted, as are texts in other languages and statements about what has no
//! name. Files are read twice: names come anywhere.

mod iris;
mod options;
mod parse;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use base::read::ReadError;
use base::setting::InvalidSetting;

use self::iris::{Prefixes, worded, words};
pub use self::options::Options;
use self::parse::{Object, Statement, Totals, each};
use super::code::is_code;
use super::files::{Files, Reopened, Slot, together};
use super::ontology::{Link, Listed, Ontology, Scope, Synonym, Term, Wording};
use super::{Source, SourceReport};
use crate::table::{Builder, SemanticType};
use crate::unmet;

const TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
const OWL: &str = "http://www.w3.org/2002/07/owl#";
const SUBCLASS: &str = "http://www.w3.org/2000/01/rdf-schema#subClassOf";
/// Predicates that say what stands in for a deprecated term.
const REPLACING: [&str; 2] =
    ["http://purl.org/dc/terms/isReplacedBy", "http://purl.obolibrary.org/obo/IAO_0100001"];
/// Vocabularies whose types say nothing of medicine.
const FORMAL: [&str; 4] = [
    OWL,
    "http://www.w3.org/2000/01/rdf-schema#",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "http://www.w3.org/2004/02/skos/core#",
];

const LITERAL: &str = "literal";
const BLANK: &str = "blank_node";
const OF_RELATION: &str = "about_a_relation";
const SHARED_KEY: &str = "key_of_another";

impl Source for Options {
    fn check(&self, _: &str) -> Result<(), InvalidSetting> {
        self.check_all()
    }

    fn slots(&self) -> Vec<Slot<'_>> {
        Slot::list("files", &self.files).collect()
    }

    fn read(&self, name: &str, files: &Files<'_>, builder: &mut Builder) -> Result<SourceReport, ReadError> {
        let files = files.list("files", self.files.len())?;
        read(&files, name, self, builder)
    }
}

/// What a predicate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// A name, by the order of preference.
    Name(usize),
    Synonym,
    Definition,
    Same,
    Type,
    Deprecated,
    Replacing,
    Inverse,
    Relation,
}

/// What is said of a thing.
#[derive(Default)]
struct Said {
    /// Its name, and how preferred its predicate and language are.
    name: Option<(String, [usize; 2])>,
    synonyms: Vec<String>,
    definition: Option<(String, usize)>,
    same: Vec<String>,
    types: Vec<String>,
    replaced_by: Vec<String>,
    is_deprecated: bool,
}

/// The statements of all files while they are read for names.
struct Reading<'o> {
    options: &'o Options,
    prefixes: Prefixes,
    roles: HashMap<String, Role>,
    said: HashMap<String, Said>,
    /// IRIs in the order in which they are first met.
    order: Vec<String>,
    /// Relations that say the same as a predicate the other way round, by its IRI.
    predicates: BTreeMap<String, BTreeSet<String>>,
    /// Relations that are worded.
    worded: BTreeSet<String>,
    /// Names of IRIs, once all are known.
    names: HashMap<String, String>,
    /// The prefixes of the config, with what their IRIs begin with, that no statement has had so far.
    unmet: BTreeMap<&'o str, &'o str>,
}

/// Reads the files into `builder`, as the source `name`.
///
/// # Errors
/// When a file is damaged or of another kind; `builder` then holds a part of it.
pub fn read(
    files: &[Reopened<'_>],
    name: &str,
    options: &Options,
    builder: &mut Builder,
) -> Result<SourceReport, ReadError> {
    let mut reading = Reading::new(options);
    let mut totals = Totals::default();
    for file in files {
        let read = each(file, |statement| {
            reading.meet(statement);
            reading.describe(statement);
            Ok(())
        })?;
        totals.lines += read.lines;
        totals.bytes += read.bytes;
    }
    let asked: Option<BTreeSet<String>> =
        options.relations.as_ref().map(|asked| {
            asked
                .iter()
                .map(|name| {
                    if name == "is_a" { name.clone() } else { reading.relation(&reading.prefixes.iri(name)) }
                })
                .collect()
        });
    let listed = Listed { name: "things", reasons: &[SHARED_KEY], stranger: "no_name" };
    let label = together(files);
    let taken = options.taken(asked.as_ref());
    let mut ontology = Ontology::new(name, taken, &label, listed, builder);
    reading.draft(&mut ontology);
    ontology.settle();
    for file in files {
        each(file, |statement| reading.state(statement, &mut ontology))?;
    }
    let mut report = ontology.finish(totals.lines, totals.bytes)?;
    report.warnings = reading.told(name).into_iter().collect();
    Ok(report)
}

impl<'o> Reading<'o> {
    fn new(options: &'o Options) -> Self {
        let prefixes = Prefixes::new(&options.prefixes);
        let mut roles = HashMap::from([
            (TYPE.to_owned(), Role::Type),
            (format!("{OWL}deprecated"), Role::Deprecated),
            (format!("{OWL}inverseOf"), Role::Inverse),
        ]);
        roles.extend(REPLACING.map(|iri| (iri.to_owned(), Role::Replacing)));
        let lists = [
            (&options.same, Role::Same),
            (&options.definitions, Role::Definition),
            (&options.synonyms, Role::Synonym),
        ];
        for (names, role) in lists {
            roles.extend(names.iter().map(|name| (prefixes.iri(name), role)));
        }
        let names = options.names.iter().enumerate();
        roles.extend(names.map(|(place, name)| (prefixes.iri(name), Role::Name(place))));
        Self {
            options,
            prefixes,
            roles,
            said: HashMap::new(),
            order: Vec::new(),
            predicates: BTreeMap::new(),
            worded: BTreeSet::new(),
            names: HashMap::new(),
            unmet: options.prefixes.iter().map(|(name, iri)| (name.as_str(), iri.as_str())).collect(),
        }
    }

    /// Takes the prefixes of a statement.
    fn meet(&mut self, statement: &Statement<'_>) {
        if self.unmet.is_empty() {
            return;
        }
        let object = if let Object::Iri(iri) = statement.object { Some(iri) } else { None };
        let iris = [statement.subject, Some(statement.predicate), object];
        self.unmet.retain(|_, start| !iris.iter().flatten().any(|iri| iri.starts_with(*start)));
    }

    /// What is told of prefixes that no IRI has.
    fn told(&self, name: &str) -> Option<String> {
        let setting = format!("sources.rdf.{name}.prefixes");
        unmet::prefixes(&setting, "no IRI of the files begins with the prefix", self.unmet.keys().copied())
    }

    fn role(&self, predicate: &str) -> Role {
        self.roles.get(predicate).copied().unwrap_or(Role::Relation)
    }

    /// The place of a language among those that are asked for.
    fn language(&self, of: &str) -> Option<usize> {
        let spoken = of.split('-').next().unwrap_or_default();
        let fits = |asked: &String| asked.eq_ignore_ascii_case(of) || asked.eq_ignore_ascii_case(spoken);
        self.options.languages.iter().position(fits)
    }

    /// A relation as `relations` names it.
    fn relation(&self, predicate: &str) -> String {
        if predicate == SUBCLASS { "is_a".to_owned() } else { self.prefixes.short(predicate) }
    }

    fn said(&mut self, iri: &str) -> &mut Said {
        if !self.said.contains_key(iri) {
            self.order.push(iri.to_owned());
        }
        self.said.entry(iri.to_owned()).or_default()
    }

    fn inverses(&mut self, predicate: &str) -> &mut BTreeSet<String> {
        self.predicates.entry(predicate.to_owned()).or_default()
    }

    /// Takes what a statement says of its subject.
    fn describe(&mut self, statement: &Statement<'_>) {
        let &Statement { subject: Some(subject), predicate, object } = statement else { return };
        match (self.role(predicate), object) {
            (Role::Name(place), Object::Literal(text, language)) => {
                let Some(language) = self.language(language) else { return };
                let said = self.said(subject);
                let rank = [place, language];
                match &said.name {
                    Some((_, before)) if *before <= rank => said.synonyms.push(text.to_owned()),
                    _ => {
                        let before = said.name.replace((text.to_owned(), rank));
                        said.synonyms.extend(before.map(|(text, _)| text));
                    }
                }
            }
            (Role::Synonym, Object::Literal(text, language)) if self.language(language).is_some() => {
                self.said(subject).synonyms.push(text.to_owned());
            }
            (Role::Definition, Object::Literal(text, language)) => {
                let Some(language) = self.language(language) else { return };
                let said = self.said(subject);
                if said.definition.as_ref().is_none_or(|(_, before)| language < *before) {
                    said.definition = Some((text.to_owned(), language));
                }
            }
            (Role::Same, Object::Iri(other)) => self.said(subject).same.push(other.to_owned()),
            (Role::Replacing, Object::Iri(other)) => self.said(subject).replaced_by.push(other.to_owned()),
            (Role::Deprecated, Object::Literal("true" | "1", _)) => self.said(subject).is_deprecated = true,
            (Role::Type, Object::Iri(kind)) => {
                match kind.strip_prefix(OWL) {
                    Some("SymmetricProperty") => {
                        let relation = self.relation(subject);
                        self.inverses(subject).insert(relation);
                    }
                    Some("ObjectProperty" | "TransitiveProperty") => {
                        self.inverses(subject);
                    }
                    _ => {}
                }
                self.said(subject).types.push(kind.to_owned());
            }
            (Role::Inverse, Object::Iri(other)) => {
                self.inverses(other);
                let inverse = self.relation(other);
                self.inverses(subject).insert(inverse);
            }
            _ => {}
        }
    }

    /// Hands all things to `ontology`, and how relations are worded.
    fn draft(&mut self, ontology: &mut Ontology<'_, '_>) {
        let names: HashMap<String, String> = self
            .said
            .iter()
            .filter_map(|(iri, said)| Some((iri.clone(), said.name.as_ref()?.0.clone())))
            .collect();
        for (at, iri) in (1..).zip(std::mem::take(&mut self.order)) {
            let Some(said) = self.said.remove(&iri) else { continue };
            // What has no name is nothing to learn from; a relation is none of the things.
            if said.name.is_none() || self.predicates.contains_key(&iri) {
                continue;
            }
            if ontology.term(self.term(&iri, said, &names), at).is_err() {
                ontology.leave_out(SHARED_KEY);
            }
        }
        self.names = names;
        for (iri, inverses) in &self.predicates {
            let relation = self.relation(iri);
            ontology.word(&relation, Wording { text: self.words(iri), inverses: inverses.clone() });
            self.worded.insert(relation);
        }
    }

    /// What a predicate is called, unless it is a code without a name.
    fn words(&self, predicate: &str) -> Option<String> {
        let named = self.names.get(&worded(predicate)).cloned();
        named.or_else(|| (!is_code(predicate)).then(|| words(predicate)))
    }

    fn term(&self, iri: &str, said: Said, names: &HashMap<String, String>) -> Term {
        let key = self.prefixes.key(iri);
        let name = said.name.map(|(name, _)| name);
        let mut synonyms = said.synonyms;
        synonyms.retain(|text| Some(text) != name.as_ref());
        synonyms.sort();
        synonyms.dedup();
        let kinds: BTreeSet<String> = said
            .types
            .iter()
            .filter(|kind| FORMAL.iter().all(|formal| !kind.starts_with(formal)))
            .map(|kind| names.get(kind).cloned().unwrap_or_else(|| words(kind)))
            .collect();
        let keys =
            |iris: &[String]| -> Vec<String> { iris.iter().map(|iri| self.prefixes.key(iri)).collect() };
        Term {
            name,
            definition: said.definition.map(|(text, _)| text),
            types: kinds.into_iter().map(|name| SemanticType { code: None, name }).collect(),
            synonyms: synonyms.into_iter().map(|text| Synonym { text, scope: Scope::Exact }).collect(),
            xrefs: keys(&said.same).into_iter().filter(|other| *other != key).collect(),
            replaced_by: keys(&said.replaced_by),
            is_obsolete: said.is_deprecated,
            key,
            ..Term::default()
        }
    }

    /// States a statement between two things.
    fn state(&mut self, statement: &Statement<'_>, ontology: &mut Ontology<'_, '_>) -> Result<(), ReadError> {
        let &Statement { subject, predicate, object } = statement;
        match self.role(predicate) {
            Role::Relation => {}
            Role::Name(_) | Role::Synonym | Role::Definition => {
                match (subject, object) {
                    (None, _) => ontology.leave_out_text(BLANK),
                    (_, Object::Literal(_, language)) if self.language(language).is_none() => {
                        ontology.leave_out_text("language_not_asked_for");
                    }
                    _ => {}
                }
                return Ok(());
            }
            _ => return Ok(()),
        }
        let (Some(subject), Object::Iri(object)) = (subject, object) else {
            let is_blank = subject.is_none() || matches!(object, Object::Blank);
            ontology.leave_out_row(if is_blank { BLANK } else { LITERAL });
            return Ok(());
        };
        if self.predicates.contains_key(subject) {
            ontology.leave_out_row(OF_RELATION);
            return Ok(());
        }
        let relation = self.relation(predicate);
        if predicate != SUBCLASS && !self.worded.contains(&relation) {
            let wording = Wording { text: self.words(predicate), inverses: BTreeSet::new() };
            ontology.word(&relation, wording);
            self.worded.insert(relation.clone());
        }
        let [subject, object] = [subject, object].map(|iri| self.prefixes.key(iri));
        ontology.row(&subject, &Link { relation, object })
    }
}

#[cfg(test)]
mod tests;
