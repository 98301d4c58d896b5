//! SNOMED CT in Release Format 2 (docs.snomed.org, "Release File Specification"): the folder `Snapshot` or `Full` of a release.
//!
//! | file | what is taken |
//! |---|---|
//! | `sct2_Concept_*` | the concepts: `123037004` is `snomed:123037004`; inactive ones are obsolete |
//! | `sct2_Description_*`, `sct2_TextDefinition_*` | the fully specified name without its semantic tag as text, the tag as type, other descriptions as synonyms, of which the first is the text where there is no such name in the languages asked for; definitions |
//! | `sct2_Relationship_*` | inferred relationships that are active: source, type, destination |
//! | `der2_cRefset_Association*` | what an inactive concept is replaced by or the same as; left out if it is not there |
//!
//! A component of a full release has a row for each of its states: the latest holds, the others are counted as `superseded`.

mod state;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use base::funnel::Tally;
use base::read::ReadError;
use base::setting::InvalidSetting;
use base::share::Share;
use serde::{Deserialize, Serialize};

use self::state::{Latest, SUPERSEDED, State, id, latest};
use super::files::{Files, Form, Location, Member, Reopened, Slot, together};
use super::ontology::{Link, Listed, NO_NODE, Obsolete, Ontology, Scope, Synonym, Taken, Term, Wording};
use super::{Source, SourceReport, check_kept, check_level};
use crate::table::{Builder, SemanticType};

/// A release of SNOMED CT: where it lies and what is taken of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The folder `Snapshot` or `Full` of a release, with its folders `Terminology` and `Refset`; files may be packed (`.gz`).
    #[serde(skip_serializing)]
    pub path: Location,
    /// Languages of the descriptions to keep, as column `languageCode` has them.
    ///
    /// Source: ours: because every edition has English descriptions.
    #[serde(default = "Options::english")]
    pub languages: BTreeSet<String>,
    /// The relationships to keep, by their types' names in lower case with `_` for blanks (`is_a`, `finding_site`). Without it, all of them.
    pub relations: Option<BTreeSet<String>>,
    /// What to do with inactive concepts and their relationships.
    ///
    /// Source: ours: because SNOMED CT itself no longer uses them.
    #[serde(default)]
    pub obsolete: Obsolete,
    /// Licence level of the whole source, texts and triples: 0 to 9, as the source restriction levels of UMLS. Without it, the source has
    /// no level.
    pub level: Option<u8>,
    /// The share of concepts in triples, and of attributes, that may have no description and then go by their ids, 0 to 1.
    ///
    /// Source: ours: because a missing name is more often a wrong or truncated file than a nameless concept.
    #[serde(default)]
    pub max_untexted: Share,
}

const CONCEPTS: &str = "Terminology/sct2_Concept_";
const DESCRIPTIONS: &str = "Terminology/sct2_Description_";
const DEFINITIONS: &str = "Terminology/sct2_TextDefinition_";
const RELATIONSHIPS: &str = "Terminology/sct2_Relationship_";
const ASSOCIATIONS: &str = "Refset/Content/der2_cRefset_Association";

const MEMBERS: [Member; 5] = [
    needed(CONCEPTS),
    needed(DESCRIPTIONS),
    optional(DEFINITIONS),
    needed(RELATIONSHIPS),
    optional(ASSOCIATIONS),
];

const fn needed(name: &'static str) -> Member {
    Member::needed(name, Form::Beginning)
}

const fn optional(name: &'static str) -> Member {
    Member::optional(name, Form::Beginning)
}

/// Concepts of SNOMED CT's own model.
const IS_A: u64 = 116_680_003;
const FULLY_SPECIFIED: u64 = 900_000_000_000_003_001;
const DEFINITION: u64 = 900_000_000_000_550_004;
const INFERRED: u64 = 900_000_000_000_011_006;
/// Reference sets of what stands in for an inactive concept: SAME AS, REPLACED BY.
const REPLACING: [u64; 2] = [900_000_000_000_527_005, 900_000_000_000_526_001];

const INACTIVE: &str = "inactive";
const NOT_INFERRED: &str = "not_inferred";
const OTHER_LANGUAGE: &str = "language_not_asked_for";
const NO_CONCEPT: &str = "no_concept";

impl Options {
    fn english() -> BTreeSet<String> {
        ["en".to_owned()].into()
    }
}

impl Source for Options {
    fn check(&self, _: &str) -> Result<(), InvalidSetting> {
        check_kept([("languages", Some(&self.languages)), ("relations", self.relations.as_ref())])?;
        check_level("level", self.level)
    }

    fn slots(&self) -> Vec<Slot<'_>> {
        vec![Slot { key: "path".to_owned(), location: &self.path, members: &MEMBERS }]
    }

    fn read(&self, name: &str, files: &Files<'_>, builder: &mut Builder) -> Result<SourceReport, ReadError> {
        let given = |member: &str| {
            let found = files.each(&format!("path/{member}"));
            let missing =
                || ReadError::new(member, "no file whose name begins so is there", "one", "fetch it");
            (!found.is_empty()).then_some(found).ok_or_else(missing)
        };
        let release = Release {
            concepts: given(CONCEPTS)?,
            descriptions: given(DESCRIPTIONS)?,
            definitions: files.each(&format!("path/{DEFINITIONS}")),
            relationships: given(RELATIONSHIPS)?,
            associations: files.each(&format!("path/{ASSOCIATIONS}")),
        };
        read(&release, name, self, builder)
    }
}

/// The files of a release; editions of several languages have several files of descriptions.
#[derive(Debug)]
pub struct Release<'f> {
    /// `sct2_Concept_*`.
    pub concepts: Vec<Reopened<'f>>,
    /// `sct2_Description_*`.
    pub descriptions: Vec<Reopened<'f>>,
    /// `sct2_TextDefinition_*`; perhaps none.
    pub definitions: Vec<Reopened<'f>>,
    /// `sct2_Relationship_*`.
    pub relationships: Vec<Reopened<'f>>,
    /// `der2_cRefset_Association*`; perhaps none.
    pub associations: Vec<Reopened<'f>>,
}

/// A description or a definition.
struct Description {
    concept: u64,
    language: String,
    kind: u64,
    text: String,
}

struct Relationship {
    source: u64,
    destination: u64,
    kind: u64,
    is_inferred: bool,
}

/// What is said of a concept.
#[derive(Default)]
struct Said {
    name: Option<String>,
    tag: Option<String>,
    synonyms: Vec<String>,
    definition: Option<String>,
    replaced_by: Vec<u64>,
}

/// Reads a release into `builder`, as the source `name`.
///
/// # Errors
/// When a file is damaged or of another kind; `builder` then holds a part of it.
pub fn read(
    release: &Release<'_>,
    name: &str,
    options: &Options,
    builder: &mut Builder,
) -> Result<SourceReport, ReadError> {
    let concepts = latest(&release.concepts, &[], |row| id(row, 0))?;
    let known: BTreeSet<u64> = concepts.states.iter().map(|state| state.of).collect();
    let (mut said, mut supporting) = (HashMap::new(), Vec::new());
    for files in [&release.descriptions, &release.definitions].into_iter().filter(|files| !files.is_empty()) {
        supporting.push(describe(files, options, &known, &mut said)?);
    }
    if !release.associations.is_empty() {
        supporting.push(replace(&release.associations, &mut said)?);
    }
    let rows = latest(
        &release.relationships,
        &["sourceId", "destinationId", "typeId", "characteristicTypeId"],
        |row| {
            let is_inferred = id(row, 6)? == INFERRED;
            let (source, destination, kind) = (id(row, 3)?, id(row, 4)?, id(row, 5)?);
            Ok(Relationship { source, destination, kind, is_inferred })
        },
    )?;
    let relations = relations(rows.states.iter().map(|state| state.of.kind), &said);
    let label = together(&release.relationships);
    let taken = Taken {
        relations: options.relations.as_ref(),
        obsolete: options.obsolete,
        level: options.level,
        max_untexted: options.max_untexted,
        ..Taken::default()
    };
    let listed = Listed { name: "concepts", reasons: &[SUPERSEDED], stranger: NO_NODE };
    let mut ontology = Ontology::new(name, taken, &label, listed, builder);
    let (lines, bytes) = (rows.tally.lines, rows.tally.bytes);
    ontology.listed_in(&concepts.tally);
    ontology.leave_out_all(&concepts.tally);
    for (at, State { is_active, of, .. }) in (1..).zip(concepts.states) {
        let said = said.remove(&of).unwrap_or_default();
        // Concepts are there once.
        let _ = ontology.term(Term { is_obsolete: !is_active, ..term(of, said) }, at);
    }
    for relation in relations.values() {
        ontology.word(&relation.id, Wording { text: relation.text.clone(), inverses: BTreeSet::new() });
    }
    ontology.settle();
    ontology.leave_out_rows(&rows.tally);
    for State { is_active, of, .. } in rows.states {
        match (is_active, of.is_inferred) {
            (false, _) => ontology.leave_out_row(INACTIVE),
            (true, false) => ontology.leave_out_row(NOT_INFERRED),
            (true, true) => {
                let relation = relations.get(&of.kind).map_or_else(|| key(of.kind), |known| known.id.clone());
                ontology.row(&key(of.source), &Link { relation, object: key(of.destination) })?;
            }
        }
    }
    let mut report = ontology.finish(lines, bytes)?;
    report.funnel.supporting.extend(supporting);
    Ok(report)
}

/// Reads what a file says of concepts in the languages that are asked for.
fn describe(
    files: &[Reopened<'_>],
    options: &Options,
    known: &BTreeSet<u64>,
    said: &mut HashMap<u64, Said>,
) -> Result<Tally, ReadError> {
    let columns = ["conceptId", "languageCode", "typeId", "term"];
    let Latest { states, mut tally } = latest(files, &columns, |row| {
        let (language, text) = (row.text(4)?.to_owned(), row.text(6)?.to_owned());
        Ok(Description { concept: id(row, 3)?, language, kind: id(row, 5)?, text })
    })?;
    for State { is_active, of, .. } in states {
        let reason = match (is_active, options.languages.contains(&of.language), known.contains(&of.concept))
        {
            (false, ..) => Some(INACTIVE),
            (_, false, _) => Some(OTHER_LANGUAGE),
            (.., false) => Some(NO_CONCEPT),
            _ => None,
        };
        if let Some(reason) = reason {
            tally.drop(reason);
            continue;
        }
        let said = said.entry(of.concept).or_default();
        if of.kind == DEFINITION && said.definition.is_some() {
            tally.drop("another_definition");
            continue;
        }
        tally.keep();
        match of.kind {
            FULLY_SPECIFIED if said.name.is_none() => {
                let (name, tag) = tagged(&of.text);
                (said.name, said.tag) = (Some(name.to_owned()), tag.map(str::to_owned));
            }
            FULLY_SPECIFIED => said.synonyms.push(tagged(&of.text).0.to_owned()),
            DEFINITION => said.definition = Some(of.text),
            _ => said.synonyms.push(of.text),
        }
    }
    Ok(tally)
}

/// A fully specified name without its tag, and the tag: `Asthma (disorder)`.
fn tagged(name: &str) -> (&str, Option<&str>) {
    let split = name.strip_suffix(')').and_then(|name| name.rsplit_once(" ("));
    match split {
        Some((name, tag)) if !name.trim().is_empty() && !tag.is_empty() => (name.trim_end(), Some(tag)),
        _ => (name, None),
    }
}

/// Reads what stands in for inactive concepts.
fn replace(files: &[Reopened<'_>], said: &mut HashMap<u64, Said>) -> Result<Tally, ReadError> {
    let columns = ["refsetId", "referencedComponentId", "targetComponentId"];
    let Latest { states, mut tally } =
        latest(files, &columns, |row| Ok([id(row, 3)?, id(row, 4)?, id(row, 5)?]))?;
    for State { is_active, of: [set, concept, target], .. } in states {
        if !is_active {
            tally.drop(INACTIVE);
        } else if REPLACING.contains(&set) {
            tally.keep();
            said.entry(concept).or_default().replaced_by.push(target);
        } else {
            tally.drop("other_association");
        }
    }
    Ok(tally)
}

fn key(id: u64) -> String {
    format!("snomed:{id}")
}

fn term(id: u64, said: Said) -> Term {
    let Said { name, tag, mut synonyms, definition, replaced_by } = said;
    let name = name.or_else(|| (!synonyms.is_empty()).then(|| synonyms.remove(0)));
    synonyms.retain(|text| Some(text) != name.as_ref());
    let synonyms = synonyms.into_iter().map(|text| Synonym { text, scope: Scope::Exact });
    Term {
        key: key(id),
        name,
        definition,
        types: tag.into_iter().map(|name| SemanticType { code: None, name }).collect(),
        synonyms: synonyms.collect(),
        replaced_by: replaced_by.into_iter().map(key).collect(),
        ..Term::default()
    }
}

/// A type of relationships.
struct Relation {
    /// As `relations` names it.
    id: String,
    text: Option<String>,
}

/// What types of relationships are called: by their names, or by their keys where two have the same.
fn relations(kinds: impl Iterator<Item = u64>, said: &HashMap<u64, Said>) -> BTreeMap<u64, Relation> {
    let kinds: BTreeSet<u64> = kinds.collect();
    let text = |kind: &u64| said.get(kind).and_then(|said| said.name.clone());
    let slug = |kind: &u64| match *kind {
        IS_A => "is_a".to_owned(),
        _ => text(kind).map_or_else(|| key(*kind), |text| text.to_lowercase().replace(' ', "_")),
    };
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    kinds.iter().for_each(|kind| *times.entry(slug(kind)).or_default() += 1);
    let named = kinds.iter().map(|kind| {
        let id = Some(slug(kind)).filter(|slug| times[slug] == 1).unwrap_or_else(|| key(*kind));
        let text = if *kind == IS_A { Some("is a".to_owned()) } else { text(kind) };
        (*kind, Relation { id, text })
    });
    named.collect()
}

#[cfg(test)]
mod tests;
