//! The sources of a config, each a thin adapter to its reader.

mod hsdn;
mod kgx;
mod mesh;
mod open;
mod rotmensch;
mod texts;
mod triples;
mod umls;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use kg::source::Funnel;
use kg::source::naming::Naming;
use kg::table::Builder;
use model::range::SHARE;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::location::{Place, Places};
use crate::config::range::{number, whole};
use crate::engine::context::Context;

/// The sources of a config; at least one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The Health Knowledge Graph.
    pub rotmensch: Option<rotmensch::Config>,
    /// The Human Symptoms-Disease Network.
    pub hsdn: Option<hsdn::Config>,
    /// Graphs in KGX form, by the name of the source.
    #[serde(default)]
    pub kgx: BTreeMap<String, kgx::Config>,
    /// Triples of any origin, by the name of the source.
    #[serde(default)]
    pub triples: BTreeMap<String, triples::Config>,
    /// Medical Subject Headings.
    pub mesh: Option<mesh::Config>,
    /// A Metathesaurus.
    pub umls: Option<umls::Config>,
}

impl Config {
    /// Relations that sources are told to be inverse, by their key.
    pub(super) fn inverses(&self) -> Vec<(String, &[[String; 2]])> {
        let kgx =
            self.kgx.iter().map(|(name, of)| (format!("sources.kgx.{name}.inverses"), &of.inverses[..]));
        let triples = self
            .triples
            .iter()
            .map(|(name, of)| (format!("sources.triples.{name}.inverses"), &of.inverses[..]));
        kgx.chain(triples).collect()
    }

    /// Whether every number is in its range, and every list asks for something.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn ranges(&self) -> anyhow::Result<()> {
        if let Some(umls) = &self.umls {
            let none = |names: &Option<BTreeSet<String>>| names.as_ref().is_some_and(BTreeSet::is_empty);
            let lists = [
                ("languages", umls.languages.is_empty()),
                ("semantic_types", none(&umls.semantic_types)),
                ("rels", none(&umls.rels)),
                ("relations", none(&umls.relations)),
            ];
            if let Some((key, _)) = lists.into_iter().find(|(_, empty)| *empty) {
                anyhow::bail!("sources.umls.{key} is [], which keeps nothing; expected one name at least");
            }
        }
        if let Some(asked) = self.mesh.as_ref().and_then(|mesh| mesh.relations.as_ref()) {
            kg::source::mesh::known_relations(asked).context("sources.mesh.relations")?;
        }
        if let Some(least) = self.rotmensch.as_ref().and_then(|of| of.min_probability) {
            number("sources.rotmensch.min_probability", least, &SHARE)?;
        }
        let kgx = self.kgx.iter().map(|(name, of)| (format!("sources.kgx.{name}.level"), of.level));
        let triples =
            self.triples.iter().map(|(name, of)| (format!("sources.triples.{name}.level"), of.level));
        let umls = self.umls.iter().map(|of| ("sources.umls.max_srl".to_owned(), of.max_srl));
        for (key, level) in kgx.chain(triples).chain(umls) {
            whole(key, level.unwrap_or(0).into(), 0..=9)?;
        }
        self.triples.iter().try_for_each(|(name, of)| of.ranges(&format!("sources.triples.{name}")))
    }
}

/// What a source left besides its statements.
pub struct Told {
    /// Its rows.
    pub funnel: Funnel,
    /// What else there is to know of it, by name.
    pub notes: Map<String, Value>,
    /// Whether its texts fit its ids; to be judged when all sources are read.
    pub naming: Option<Naming>,
}

impl Told {
    fn plain(funnel: Funnel) -> Self {
        Self { funnel, notes: Map::new(), naming: None }
    }
}

/// A source that a stage can read.
pub trait Source: Send + Sync + std::fmt::Debug {
    /// The files that it reads.
    fn places(&self) -> Vec<&Place>;

    /// States what they say.
    ///
    /// # Errors
    /// When a file is missing, damaged or of another kind.
    fn read(&self, context: &Context, builder: &mut Builder) -> anyhow::Result<Told>;
}

/// The sources in the order in which they are read: those that only mention MeSH records and UMLS concepts, or have names only, come
/// before MeSH and UMLS, which know more of what was mentioned.
///
/// # Errors
/// When the config names no source, or a place that cannot be meant.
pub fn all(config: &Config, places: &Places<'_>) -> anyhow::Result<Vec<Box<dyn Source>>> {
    let mut sources: Vec<Box<dyn Source>> = Vec::new();
    if let Some(config) = &config.rotmensch {
        sources.push(Box::new(rotmensch::Rotmensch::new(config, places)?));
    }
    if let Some(config) = &config.hsdn {
        sources.push(Box::new(hsdn::Hsdn::new(config, places)?));
    }
    for (name, config) in &config.kgx {
        anyhow::ensure!(
            !triples::is_taken(name),
            "sources.kgx.{name}: the name is that of another source; choose one of your own"
        );
        sources.push(Box::new(kgx::Kgx::new(name, config, places)?));
    }
    for (name, config) in &config.triples {
        sources.push(Box::new(triples::Triples::new(name, config, places)?));
    }
    if let Some(config) = &config.mesh {
        sources.push(Box::new(mesh::Mesh::new(config, places)?));
    }
    if let Some(config) = &config.umls {
        sources.push(Box::new(umls::Umls::new(config, places)?));
    }
    let twice = config.kgx.keys().find(|name| config.triples.contains_key(*name));
    if let Some(name) = twice {
        anyhow::bail!("sources.triples.{name} and sources.kgx.{name} have one name: choose two");
    }
    anyhow::ensure!(
        !sources.is_empty(),
        "[sources] is empty: name at least one of sources.umls, mesh, hsdn, rotmensch, triples.NAME, kgx.NAME"
    );
    Ok(sources)
}
