//! Rotmensch's graph in a config.

use kg::source::rotmensch;
use kg::table::Builder;
use serde::{Deserialize, Serialize};

use super::{Source, Told, open};
use crate::engine::context::Context;
use crate::stage::location::{Location, Place, Places};

/// Rotmensch: where it lies and what is taken of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The table (`DerivedKnowledgeGraph_final.csv`).
    #[serde(skip_serializing)]
    pub path: Location,
    /// Entries with a lower probability are dropped; none keeps all.
    pub min_probability: Option<f64>,
}

/// The source.
#[derive(Debug)]
pub(super) struct Rotmensch {
    options: rotmensch::Options,
    table: Place,
}

impl Rotmensch {
    pub(super) fn new(config: &Config, places: &Places<'_>) -> anyhow::Result<Self> {
        let table = config.path.place("sources.rotmensch.path", places)?;
        Ok(Self { options: rotmensch::Options { min_probability: config.min_probability }, table })
    }
}

impl Source for Rotmensch {
    fn places(&self) -> Vec<&Place> {
        vec![&self.table]
    }

    fn read(&self, context: &Context, builder: &mut Builder) -> anyhow::Result<Told> {
        let (path, reader) = open::at(&self.table, context)?;
        Ok(Told::plain(rotmensch::read(reader, &path, &self.options, builder)?))
    }
}
