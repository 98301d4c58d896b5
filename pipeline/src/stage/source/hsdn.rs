//! HSDN in a config.

use kg::source::hsdn;
use kg::table::Builder;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Source, Told, open};
use crate::engine::context::Context;
use crate::stage::location::{Location, Place, Places};

/// HSDN: where it lies and what is taken of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The table (`Combined-Input.tsv`).
    #[serde(skip_serializing)]
    pub path: Location,
    /// MeSH ids of symptoms (`Symptom-Occurence-Output.tsv`).
    #[serde(skip_serializing)]
    pub symptom_ids: Option<Location>,
    /// MeSH ids of diseases (`Disease-Occurence-Output.tsv`).
    #[serde(skip_serializing)]
    pub disease_ids: Option<Location>,
    /// Rows with a lower TFIDF score are dropped; none keeps all.
    pub min_tfidf: Option<f64>,
}

/// The source.
#[derive(Debug)]
pub(super) struct Hsdn {
    options: hsdn::Options,
    table: Place,
    symptom_ids: Option<Place>,
    disease_ids: Option<Place>,
}

impl Hsdn {
    pub(super) fn new(config: &Config, places: &Places<'_>) -> anyhow::Result<Self> {
        let ids = |location: &Option<Location>, key: &str| {
            location.as_ref().map(|location| location.place(key, places)).transpose()
        };
        Ok(Self {
            options: hsdn::Options { min_tfidf: config.min_tfidf },
            table: config.path.place("sources.hsdn.path", places)?,
            symptom_ids: ids(&config.symptom_ids, "sources.hsdn.symptom_ids")?,
            disease_ids: ids(&config.disease_ids, "sources.hsdn.disease_ids")?,
        })
    }
}

impl Source for Hsdn {
    fn places(&self) -> Vec<&Place> {
        std::iter::once(&self.table).chain(&self.symptom_ids).chain(&self.disease_ids).collect()
    }

    fn read(&self, context: &Context, builder: &mut Builder) -> anyhow::Result<Told> {
        let mut table = open::at(&self.table, context)?;
        let mut symptoms = open::maybe(self.symptom_ids.as_ref(), context)?;
        let mut diseases = open::maybe(self.disease_ids.as_ref(), context)?;
        let files = hsdn::Files {
            table: open::labelled(&mut table),
            symptom_ids: symptoms.as_mut().map(open::labelled),
            disease_ids: diseases.as_mut().map(open::labelled),
        };
        let stated = hsdn::read(files, &self.options, builder)?;
        let mut told = Told::plain(stated.funnel);
        if self.symptom_ids.is_some() {
            told.notes.insert("symptoms".to_owned(), json!(stated.symptoms));
        }
        if self.disease_ids.is_some() {
            told.notes.insert("diseases".to_owned(), json!(stated.diseases));
        }
        Ok(told)
    }
}
