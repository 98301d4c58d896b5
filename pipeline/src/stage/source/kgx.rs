//! A KGX graph in a config.

use base::share::Share;
use kg::source::kgx;
use kg::table::Builder;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Source, Told, open};
use crate::engine::context::Context;
use crate::stage::location::{Location, Place, Places};

/// A KGX graph: where it lies and how it is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// `nodes.tsv`.
    #[serde(skip_serializing)]
    pub nodes: Location,
    /// `edges.tsv`.
    #[serde(skip_serializing)]
    pub edges: Location,
    /// What the column `xref` means.
    pub xref: kgx::Xref,
    /// Column of the edges with a weight.
    pub weight: Option<String>,
    /// Predicates that say the same the other way round.
    #[serde(default)]
    pub inverses: Vec<[String; 2]>,
    /// Licence level of it all.
    pub level: Option<u8>,
    /// Nodes of triples that may be without a name and are then called by their ids, as a share; none without it.
    #[serde(default)]
    pub max_untexted: Share,
}

/// The source.
#[derive(Debug)]
pub(super) struct Kgx {
    options: kgx::Options,
    nodes: Place,
    edges: Place,
}

impl Kgx {
    pub(super) fn new(name: &str, config: &Config, places: &Places<'_>) -> anyhow::Result<Self> {
        let options = kgx::Options {
            name: name.to_owned(),
            xref: config.xref,
            weight: config.weight.clone(),
            inverses: config.inverses.clone(),
            level: config.level,
            max_untexted: config.max_untexted,
        };
        let place = |location: &Location, key| location.place(&format!("sources.kgx.{name}.{key}"), places);
        Ok(Self { options, nodes: place(&config.nodes, "nodes")?, edges: place(&config.edges, "edges")? })
    }
}

impl Source for Kgx {
    fn places(&self) -> Vec<&Place> {
        vec![&self.nodes, &self.edges]
    }

    fn read(&self, context: &Context, builder: &mut Builder) -> anyhow::Result<Told> {
        let (mut nodes, mut edges) = (open::at(&self.nodes, context)?, open::at(&self.edges, context)?);
        let files = kgx::Files { nodes: open::labelled(&mut nodes), edges: open::labelled(&mut edges) };
        let stated = kgx::read(files, &self.options, builder)?;
        let mut told = Told::plain(stated.funnel);
        told.notes.insert("nodes_without_name".to_owned(), json!(stated.without_name));
        told.naming = Some(stated.naming);
        Ok(told)
    }
}
