//! Vocabularies of the OMOP Common Data Model (ohdsi.github.io/CommonDataModel), as Athena packs them: tables between tabs, without quoting.
//!
//! | file | what is taken |
//! |---|---|
//! | `CONCEPT.csv` | the concepts, keyed by vocabulary and code: code `386661006` of `SNOMED` is `snomed:386661006`; name, domain as type; invalid ones are obsolete |
//! | `CONCEPT_RELATIONSHIP.csv` | relationships that are valid, of concept 1 to concept 2; `Maps to` tells the crosswalk what a concept is elsewhere |
//! | `CONCEPT_SYNONYM.csv` | other names, in the languages that are asked for; left out if it is not there |
//! | `RELATIONSHIP.csv` | which relationships are inverse; a warning says if it is not there |
//!
//! A code that a vocabulary gave to several concepts means the valid one; the others are counted as `code_of_another`.

mod options;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use base::funnel::Tally;
use base::read::ReadError;
use base::setting::InvalidSetting;

pub use self::options::{Concepts, MapsTo, Options};
use super::files::{Files, Form, Member, Reopened, Slot};
use super::named::{Row, each};
use super::ontology::{Link, Listed, NO_NODE, Ontology, Scope, Synonym, Term, Wording};
use super::{Source, SourceReport, check_level, curie};
use crate::table::{Builder, SemanticType};

const CONCEPT: &str = "CONCEPT.csv";
const RELATIONSHIPS: &str = "CONCEPT_RELATIONSHIP.csv";
const SYNONYM: &str = "CONCEPT_SYNONYM.csv";
const RELATIONSHIP: &str = "RELATIONSHIP.csv";

const MEMBERS: [Member; 4] = [
    Member::needed(CONCEPT, Form::Release),
    Member::needed(RELATIONSHIPS, Form::Release),
    Member::optional(SYNONYM, Form::Release),
    Member::optional(RELATIONSHIP, Form::Release),
];

const OTHER_VOCABULARY: &str = "vocabulary_not_asked_for";
const NOT_STANDARD: &str = "not_standard";
const SHARED_CODE: &str = "code_of_another";
const INVALID: &str = "invalid";
const IDENTITY: &str = "maps_to";
const OTHER_LANGUAGE: &str = "language_not_asked_for";
const NO_CONCEPT: &str = "no_concept";

/// Relationships that say which concept to use instead.
const MAPS: [&str; 2] = ["maps_to", "mapped_from"];
const REPLACED: &str = "concept_replaced_by";

impl Source for Options {
    fn check(&self, _: &str) -> Result<(), InvalidSetting> {
        for (key, empty) in [
            ("vocabularies", self.vocabularies.as_ref().is_some_and(BTreeSet::is_empty)),
            ("languages", self.languages.is_empty()),
            ("relations", self.relations.as_ref().is_some_and(BTreeSet::is_empty)),
        ] {
            if empty {
                return Err(InvalidSetting::new(key, "[], which keeps nothing", "one at least"));
            }
        }
        check_level("level", self.level)
    }

    fn slots(&self) -> Vec<Slot<'_>> {
        vec![Slot { key: "path".to_owned(), location: &self.path, members: &MEMBERS }]
    }

    fn read(&self, name: &str, files: &Files<'_>, builder: &mut Builder) -> Result<SourceReport, ReadError> {
        let file = |member: &str| files.release(&format!("path/{member}"));
        let given = |member: &str| files.given(&format!("path/{member}"));
        let tables = Tables {
            concepts: given(CONCEPT)?,
            relationships: given(RELATIONSHIPS)?,
            synonyms: file(SYNONYM),
            relations: file(RELATIONSHIP),
        };
        read(&tables, name, self, builder)
    }
}

/// The tables. Concepts and relationships are read twice.
#[derive(Debug)]
pub struct Tables<'f> {
    /// `CONCEPT.csv`.
    pub concepts: Reopened<'f>,
    /// `CONCEPT_RELATIONSHIP.csv`.
    pub relationships: Reopened<'f>,
    /// `CONCEPT_SYNONYM.csv`.
    pub synonyms: Option<Reopened<'f>>,
    /// `RELATIONSHIP.csv`.
    pub relations: Option<Reopened<'f>>,
}

/// The number of a concept.
fn id(row: &Row<'_, '_>, at: usize) -> Result<u32, ReadError> {
    row.field(at).parse().map_err(|_| row.wrong(at, "a concept's number"))
}

/// Whether a column says that a row is no longer valid. Databases export what is empty in ways of their own.
fn is_invalid(row: &Row<'_, '_>, at: usize) -> Result<bool, ReadError> {
    match row.field(at) {
        "" | "\\N" | "NULL" => Ok(false),
        "D" | "U" => Ok(true),
        _ => Err(row.wrong(at, "D, U or nothing")),
    }
}

/// The columns of `CONCEPT.csv`.
const OF_CONCEPTS: [&str; 7] = [
    "concept_id",
    "concept_name",
    "domain_id",
    "vocabulary_id",
    "standard_concept",
    "concept_code",
    "invalid_reason",
];

/// The key of a concept, in the namespace of its vocabulary.
fn key(row: &Row<'_, '_>, vocabulary: usize, code: usize) -> Result<String, ReadError> {
    let (vocabulary, code) = (row.text(vocabulary)?.replace(' ', "_"), row.text(code)?);
    Ok(curie::Curie { prefix: &vocabulary, id: code }.key())
}

/// A relationship as `relations` names it.
fn slug(relation: &str) -> String {
    relation.to_lowercase().replace(' ', "_")
}

/// What becomes of the concepts of a number.
struct Numbered {
    /// Their keys; none of those that are left out.
    keys: HashMap<u32, Box<str>>,
    /// Concepts that are not asked for.
    left_out: HashSet<u32>,
}

/// What relationships and synonyms say of a concept, by its number.
#[derive(Default)]
struct Said {
    synonyms: Vec<String>,
    same: Vec<u32>,
    replaced_by: Vec<u32>,
}

/// Reads the tables into `builder`, as the source `name`.
///
/// # Errors
/// When a table is damaged or of another kind; `builder` then holds a part of it.
pub fn read(
    tables: &Tables<'_>,
    name: &str,
    options: &Options,
    builder: &mut Builder,
) -> Result<SourceReport, ReadError> {
    let numbered = number(&tables.concepts, options)?;
    let (mut said, mut supporting) = (HashMap::new(), Vec::new());
    if let Some(file) = &tables.synonyms {
        supporting.push(synonyms(file, options, &numbered, &mut said)?);
    }
    identities(&tables.relationships, &mut said)?;
    let listed = Listed {
        name: "concepts",
        reasons: &[OTHER_VOCABULARY, NOT_STANDARD, SHARED_CODE],
        stranger: NO_NODE,
    };
    let label = &tables.relationships.label;
    let mut ontology = Ontology::new(name, options.taken(), label, listed, builder);
    concepts(&tables.concepts, options, &numbered, &mut said, &mut ontology)?;
    if let Some(file) = &tables.relations {
        inverses(file, &mut ontology)?;
    }
    ontology.settle();
    let nobody = |number: u32| format!("omop:{number}");
    let key = |number: u32| numbered.keys.get(&number).map_or_else(|| nobody(number), |key| key.to_string());
    let columns = ["concept_id_1", "concept_id_2", "relationship_id", "invalid_reason"];
    let rows = each(&tables.relationships, &columns, |row| {
        let (one, other, relation) = (id(row, 0)?, id(row, 1)?, slug(row.text(2)?));
        if is_invalid(row, 3)? {
            ontology.leave_out_row(INVALID);
        } else if options.maps_to == MapsTo::SameAs && MAPS.contains(&relation.as_str()) {
            ontology.leave_out_row(IDENTITY);
        } else if [one, other].iter().any(|number| numbered.left_out.contains(number)) {
            ontology.leave_out_row("concept_not_asked_for");
        } else {
            ontology.row(&key(one), &Link { relation, object: key(other) })?;
        }
        Ok(())
    })?;
    ontology.leave_out_rows(&rows);
    let mut report = ontology.finish(rows.lines, rows.bytes)?;
    report.funnel.triples.columns_not_used = rows.columns_not_used;
    report.funnel.supporting.extend(supporting);
    for (table, file, what) in [
        (
            &tables.relations,
            RELATIONSHIP,
            "nothing says which relationships are inverse, and facts stand both ways round",
        ),
        (&tables.synonyms, SYNONYM, "concepts have their names alone"),
    ] {
        if table.is_none() {
            report.warnings.push(format!("{name}: {file} is not there: {what}"));
        }
    }
    Ok(report)
}

/// Finds the keys of all concepts: of several with the same code the valid one has it.
fn number(file: &Reopened<'_>, options: &Options) -> Result<Numbered, ReadError> {
    let mut numbered = Numbered { keys: HashMap::new(), left_out: HashSet::new() };
    let mut holders: HashMap<Box<str>, (u32, bool)> = HashMap::new();
    each(file, &OF_CONCEPTS, |row| {
        let (number, is_valid) = (id(row, 0)?, !is_invalid(row, 6)?);
        if reason(row, options)?.is_some() {
            numbered.left_out.insert(number);
            return Ok(());
        }
        let key: Box<str> = key(row, 3, 5)?.into();
        if numbered.keys.contains_key(&number) {
            return Err(row.wrong(0, "a number for each concept"));
        }
        match holders.get(&key) {
            Some(&(_, held)) if held || !is_valid => {
                numbered.left_out.insert(number);
                return Ok(());
            }
            Some(&(before, _)) => {
                numbered.keys.remove(&before);
                numbered.left_out.insert(before);
            }
            None => {}
        }
        holders.insert(key.clone(), (number, is_valid));
        numbered.keys.insert(number, key);
        Ok(())
    })?;
    Ok(numbered)
}

/// Why a concept is not asked for.
fn reason(row: &Row<'_, '_>, options: &Options) -> Result<Option<&'static str>, ReadError> {
    let vocabulary = row.text(3)?;
    if options.vocabularies.as_ref().is_some_and(|asked| !asked.contains(vocabulary)) {
        return Ok(Some(OTHER_VOCABULARY));
    }
    let is_standard = matches!(row.field(4), "S" | "C");
    Ok((options.concepts == Concepts::Standard && !is_standard).then_some(NOT_STANDARD))
}

/// Hands all concepts to `ontology`.
fn concepts(
    file: &Reopened<'_>,
    options: &Options,
    numbered: &Numbered,
    said: &mut HashMap<u32, Said>,
    ontology: &mut Ontology<'_, '_>,
) -> Result<(), ReadError> {
    let key = |number: &u32| numbered.keys.get(number).map(|key| key.to_string());
    let mut met = BTreeSet::new();
    let read = each(file, &OF_CONCEPTS, |row| {
        let number = id(row, 0)?;
        if let Some(reason) = reason(row, options)? {
            ontology.leave_out(reason);
            return Ok(());
        }
        let Some(own) = key(&number) else {
            ontology.leave_out(SHARED_CODE);
            return Ok(());
        };
        if options.vocabularies.is_some() {
            met.insert(row.field(3).to_owned());
        }
        let Said { synonyms, same, mut replaced_by } = said.remove(&number).unwrap_or_default();
        let is_obsolete = is_invalid(row, 6)?;
        if replaced_by.is_empty() && is_obsolete {
            replaced_by.clone_from(&same);
        }
        let name = row.field(1);
        let synonyms = synonyms.into_iter().filter(|text| text != name);
        let term = Term {
            name: Some(name.to_owned()).filter(|name| !name.is_empty()),
            types: vec![SemanticType { code: None, name: row.text(2)?.to_owned() }],
            synonyms: synonyms.map(|text| Synonym { text, scope: Scope::Exact }).collect(),
            means: same.iter().filter_map(key).filter(|other| *other != own).collect(),
            replaced_by: replaced_by.iter().filter_map(key).collect(),
            is_obsolete,
            key: own,
            ..Term::default()
        };
        // Keys are those of one concept each.
        let _ = ontology.term(term, row.line());
        Ok(())
    })?;
    ontology.listed_in(&read);
    let asked = options.vocabularies.iter().flatten();
    match asked.into_iter().find(|name| !met.contains(*name)) {
        None => Ok(()),
        Some(name) => {
            let found = format!("there is no concept of the vocabulary {name:?}");
            let remedy = "fix `vocabularies` of the source, or fetch it with Athena";
            Err(ReadError::new(&file.label, found, "one at least", remedy))
        }
    }
}

/// Reads other names.
fn synonyms(
    file: &Reopened<'_>,
    options: &Options,
    numbered: &Numbered,
    said: &mut HashMap<u32, Said>,
) -> Result<Tally, ReadError> {
    let mut counted = Tally::new(&file.label, &[OTHER_LANGUAGE, NO_CONCEPT]);
    let columns = ["concept_id", "concept_synonym_name", "language_concept_id"];
    let read = each(file, &columns, |row| {
        let (number, text, language) = (id(row, 0)?, row.text(1)?, id(row, 2)?);
        if !options.languages.contains(&language) {
            counted.drop(OTHER_LANGUAGE);
        } else if !numbered.keys.contains_key(&number) {
            counted.drop(NO_CONCEPT);
        } else {
            counted.keep();
            said.entry(number).or_default().synonyms.push(text.to_owned());
        }
        Ok(())
    })?;
    (counted.lines, counted.bytes, counted.columns_not_used) =
        (read.lines, read.bytes, read.columns_not_used);
    Ok(counted)
}

/// Reads which concepts are to be used for others.
fn identities(file: &Reopened<'_>, said: &mut HashMap<u32, Said>) -> Result<(), ReadError> {
    let columns = ["concept_id_1", "concept_id_2", "relationship_id", "invalid_reason"];
    each(file, &columns, |row| {
        if is_invalid(row, 3)? {
            return Ok(());
        }
        let (one, other) = (id(row, 0)?, id(row, 1)?);
        match slug(row.field(2)).as_str() {
            _ if one == other => {}
            "maps_to" => said.entry(one).or_default().same.push(other),
            REPLACED => said.entry(one).or_default().replaced_by.push(other),
            _ => {}
        }
        Ok(())
    })?;
    Ok(())
}

/// Reads which relationships are inverse.
fn inverses(file: &Reopened<'_>, ontology: &mut Ontology<'_, '_>) -> Result<(), ReadError> {
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    each(file, &["relationship_id", "reverse_relationship_id"], |row| {
        all.insert(slug(row.text(0)?), slug(row.text(1)?));
        Ok(())
    })?;
    for (relation, inverse) in &all {
        ontology.word(relation, Wording { text: None, inverses: [inverse.clone()].into() });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
