//! Publishers' files in, statements of a [`Builder`] out: what a source is, and which there are.
//!
//! A source is a value: its options as a config gives them, the files that it reads, and how. Each has a file or a folder here and a line in the list below;
//! [`Config`] is that list as a table of a config, and gives the sources in the order in which they are read.

mod active;
mod code;
mod curie;
pub mod edges;
pub mod files;
pub mod funnel;
pub mod hsdn;
pub mod icd10cm;
mod json_rows;
pub mod kgx;
pub mod mesh;
mod named;
mod names;
pub mod naming;
pub mod neo4j;
pub mod obo;
pub mod omop;
mod ontology;
pub mod rdf;
pub mod rotmensch;
pub mod rrf;
pub mod rxnorm;
mod same;
mod separated;
pub mod snomed;
#[cfg(test)]
mod testing;
pub mod triples;
pub mod umls;
mod unfit;
mod warnings;
mod xml;
mod xref;

use std::collections::{BTreeMap, BTreeSet};
use std::{fmt, io};

use base::read::ReadError;
use base::setting::InvalidSetting;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::active::Inactive;
use self::files::{Files, Slot};
pub use self::funnel::{Funnel, Report};
use self::naming::Naming;
use crate::canon;
use crate::table::Builder;

/// Something to read a graph from.
pub trait Source: fmt::Debug + Send + Sync {
    /// Refuses what is invalid; settings are named as they stand in the source's table, which is itself "". `name` is the source's.
    ///
    /// # Errors
    /// Names the first setting that cannot be.
    fn check(&self, name: &str) -> Result<(), InvalidSetting> {
        let _ = name;
        Ok(())
    }

    /// The files and folders that it reads.
    fn slots(&self) -> Vec<Slot<'_>>;

    /// Relations that it is told to be inverse.
    fn inverses(&self) -> &[[String; 2]] {
        &[]
    }

    /// States what the files say, as the source `name`.
    ///
    /// # Errors
    /// When a file is missing, damaged or of another kind; `builder` then holds a part of it.
    fn read(&self, name: &str, files: &Files<'_>, builder: &mut Builder) -> Result<SourceReport, ReadError>;
}

/// What a source left besides its statements.
#[derive(Debug)]
pub struct SourceReport {
    /// Its rows.
    pub funnel: Funnel,
    /// What else there is to know of it, by name.
    pub notes: Map<String, Value>,
    /// What its user should be told, though nothing failed.
    pub warnings: Vec<String>,
    /// Whether its texts fit its ids; to be judged when all sources are read.
    pub naming: Option<Naming>,
}

impl SourceReport {
    fn new(funnel: Funnel) -> Self {
        Self { funnel, notes: Map::new(), warnings: Vec::new(), naming: None }
    }

    fn note(&mut self, name: &str, note: Value) {
        self.notes.insert(name.to_owned(), note);
    }
}

/// The canonical graph of what sources have put into `builder` and reported, without what has no name if the policy says so.
///
/// # Errors
/// As [`canon::merge`].
pub fn merge(
    mut builder: Builder,
    policy: &canon::Policy,
    reports: &[SourceReport],
) -> Result<canon::Canon, canon::Error> {
    if policy.unnamed == canon::Unnamed::Drop {
        reports.iter().filter_map(|of| of.naming.as_ref()).for_each(|naming| naming.leave_out(&mut builder));
    }
    canon::merge(builder, policy)
}

/// A source of a config.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    /// Its name, as in origins.
    pub name: &'a str,
    /// Its table in the config: `sources.hsdn`, `sources.kgx.primekg`.
    pub key: String,
    /// The source.
    pub source: &'a dyn Source,
}

/// The sources of one kind: one at most, or several by name.
trait Entries {
    /// Puts them behind `all`; `kind` is their key.
    fn list<'a>(&'a self, kind: &'static str, all: &mut Vec<Entry<'a>>);
}

impl<S: Source> Entries for Option<S> {
    fn list<'a>(&'a self, kind: &'static str, all: &mut Vec<Entry<'a>>) {
        all.extend(self.iter().map(|source| Entry { name: kind, key: format!("sources.{kind}"), source }));
    }
}

impl<S: Source> Entries for BTreeMap<String, S> {
    fn list<'a>(&'a self, kind: &'static str, all: &mut Vec<Entry<'a>>) {
        let entry = |(name, source)| Entry { name, key: format!("sources.{kind}.{name}"), source };
        all.extend(self.iter().map(|(name, source)| entry((name, source as &dyn Source))));
    }
}

macro_rules! sources {
    ($($(#[$about:meta])+ $kind:ident: $options:ty,)+) => {
        /// The sources of a config; at least one.
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct Config {
            $($(#[$about])+ pub $kind: $options,)+
        }

        impl Config {
            /// The kinds of sources, in the order in which they are read.
            pub fn kinds() -> impl Iterator<Item = &'static str> {
                [$(stringify!($kind)),+].into_iter()
            }

            /// All of them in the order in which they are read.
            #[must_use]
            pub fn entries(&self) -> Vec<Entry<'_>> {
                let mut all = Vec::new();
                $(self.$kind.list(stringify!($kind), &mut all);)+
                all
            }
        }
    };
}

// In the order in which they are read: those that only mention MeSH records and UMLS concepts, or have names only, come before MeSH and UMLS, which know
// more of what was mentioned.
sources! {
    /// The Health Knowledge Graph (Rotmensch et al. 2017): diseases, their symptoms and probabilities, learned from emergency records.
    rotmensch: Option<rotmensch::Options>,
    /// The Human Symptoms-Disease Network (Zhou et al. 2014): diseases and symptoms that occur together in PubMed.
    hsdn: Option<hsdn::Options>,
    /// Graphs in KGX format; NAME names the source. Columns that are not used are reported as `columns_not_used`.
    kgx: BTreeMap<String, kgx::Options>,
    /// Triples of any origin, from exactly one of `kg_bert`, `table` and `parquet`; NAME, of lower-case letters, digits, `-` and `_`, names
    /// the source and the keys of its entities.
    triples: BTreeMap<String, triples::Options>,
    /// Edge lists whose rows name and type what they join, such as PrimeKG; NAME, as of `triples`, names the source and the keys of things without a
    /// namespace.
    edges: BTreeMap<String, edges::Options>,
    /// Graphs as Neo4j takes and gives them in CSV; NAME, as of `triples`, names the source and the keys of nodes without a namespace.
    neo4j: BTreeMap<String, neo4j::Options>,
    /// Graphs in RDF, as N-Triples or Turtle; NAME names the source.
    rdf: BTreeMap<String, rdf::Options>,
    /// An ontology in OBO format or as OBO Graphs JSON, such as the Gene Ontology.
    obo: Option<obo::Options>,
    /// Several ontologies, each as `sources.obo`; NAME names the source.
    ontologies: BTreeMap<String, obo::Options>,
    /// SNOMED CT, in Release Format 2.
    snomed: Option<snomed::Options>,
    /// RxNorm, in Rich Release Format (RRF).
    rxnorm: Option<rxnorm::Options>,
    /// ICD-10-CM, its tabular list as XML.
    icd10cm: Option<icd10cm::Options>,
    /// Vocabularies of the OMOP Common Data Model, as Athena packs them.
    omop: Option<omop::Options>,
    /// Medical Subject Headings, from `descriptors` or `tables`.
    mesh: Option<mesh::Options>,
    /// The UMLS Metathesaurus, in Rich Release Format (RRF).
    umls: Option<umls::Options>,
}

/// Names that no source of triples may take: their keys have a meaning, or their origins would be mixed up.
const RESERVED: [&str; 6] = ["umls", "mesh", "name", "hsdn", "rotmensch", "snomed"];
/// Namespaces that are also those of others; names of ontologies and of graphs with keys of their own make no keys.
const MEANT: [&str; 5] = ["rxnorm", "icd10cm", "omop", "omim", "doid"];
/// Kinds of sources whose names are the namespaces of their keys.
const NAMING: [&str; 3] = ["sources.triples.", "sources.edges.", "sources.neo4j."];

impl Config {
    /// Whether there is a source, and what is said of each can be meant.
    ///
    /// # Errors
    /// Names the first setting that cannot.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        let mut names = BTreeSet::new();
        for Entry { name, key, source } in self.entries() {
            let is_chosen = key != format!("sources.{name}");
            let makes_keys = NAMING.iter().any(|kind| key.starts_with(kind));
            if is_chosen && (RESERVED.contains(&name) || (makes_keys && MEANT.contains(&name))) {
                let found = "the name of another source";
                return Err(InvalidSetting::new(key, found, "one of your own"));
            }
            if !names.insert(name) {
                let found = "the name of another source, too";
                return Err(InvalidSetting::new(key, found, "a name for each"));
            }
            source.check(name).map_err(|wrong| {
                let at = if wrong.setting.is_empty() { key } else { format!("{key}.{}", wrong.setting) };
                InvalidSetting::new(at, wrong.found, wrong.expected)
            })?;
        }
        Ok(())
    }
}

/// Whether a source whose name is the namespace of its keys may have it.
fn check_name(name: &str) -> Result<(), InvalidSetting> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    if name.is_empty() || !name.chars().all(fits) {
        let expected = "small letters, digits, _ and -; rename it";
        return Err(InvalidSetting::new("", format!("a source called {name:?}"), expected));
    }
    Ok(())
}

/// Refuses lists of what is to be kept that have nothing.
fn check_kept<const N: usize>(
    lists: [(&'static str, Option<&BTreeSet<String>>); N],
) -> Result<(), InvalidSetting> {
    match lists.into_iter().find(|(_, list)| list.is_some_and(BTreeSet::is_empty)) {
        Some((key, _)) => Err(InvalidSetting::new(key, "[], which keeps nothing", "one name at least")),
        None => Ok(()),
    }
}

/// A number that is a licence level, if there is one.
fn check_level(setting: &'static str, level: Option<u8>) -> Result<(), InvalidSetting> {
    match level {
        Some(level) if level > 9 => Err(InvalidSetting::new(setting, level, "at most 9")),
        _ => Ok(()),
    }
}

/// Statements of `source` that cannot be kept.
fn not_kept(source: &str, error: &io::Error) -> ReadError {
    let found = format!("cannot keep rows on the disk: {error}");
    ReadError::new(source, found, "", "make room beside the output and run again")
}
