//! MeSH in a config, as XML or as tables.

use std::collections::BTreeSet;

use kg::source::mesh;
use kg::table::Builder;
use serde::{Deserialize, Serialize};

use super::{Source, Told, open};
use crate::engine::context::Context;
use crate::stage::location::{Location, Place, Places};

/// MeSH: where it lies and what is taken of it; either `descriptors` or `tables`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// `descYYYY.xml`, or that packed with gzip.
    #[serde(skip_serializing)]
    pub descriptors: Option<Location>,
    /// `suppYYYY.xml` of the same year.
    #[serde(skip_serializing)]
    pub supplements: Option<Location>,
    /// Headings and tree numbers as two tables.
    #[serde(skip_serializing)]
    pub tables: Option<Tables>,
    /// The relations to keep; none keeps all.
    pub relations: Option<BTreeSet<String>>,
}

/// The tables of github.com/dhimmel/mesh.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tables {
    /// `terms.tsv`.
    pub terms: Location,
    /// `tree-numbers.tsv`.
    pub tree_numbers: Location,
}

/// The source.
#[derive(Debug)]
pub(super) enum Mesh {
    Xml { options: mesh::Options, descriptors: Place, supplements: Option<Place> },
    Tables { terms: Place, trees: Place },
}

impl Mesh {
    pub(super) fn new(config: &Config, places: &Places<'_>) -> anyhow::Result<Self> {
        let place = |location: &Location, key: &str| location.place(&format!("sources.mesh.{key}"), places);
        match (&config.descriptors, &config.tables) {
            (Some(descriptors), None) => Ok(Self::Xml {
                options: mesh::Options { relations: config.relations.clone() },
                descriptors: place(descriptors, "descriptors")?,
                supplements: config
                    .supplements
                    .as_ref()
                    .map(|file| place(file, "supplements"))
                    .transpose()?,
            }),
            (None, Some(tables)) if config.supplements.is_none() && config.relations.is_none() => {
                Ok(Self::Tables {
                    terms: place(&tables.terms, "tables.terms")?,
                    trees: place(&tables.tree_numbers, "tables.tree_numbers")?,
                })
            }
            (None, Some(_)) => anyhow::bail!(
                "[sources.mesh] with `tables` knows `isa` only: leave out `supplements` and `relations`, or give `descriptors`"
            ),
            _ => anyhow::bail!(
                "[sources.mesh] needs either `descriptors` or `tables`, not both and not neither"
            ),
        }
    }
}

impl Source for Mesh {
    fn places(&self) -> Vec<&Place> {
        match self {
            Mesh::Xml { descriptors, supplements, .. } => {
                std::iter::once(descriptors).chain(supplements).collect()
            }
            Mesh::Tables { terms, trees } => vec![terms, trees],
        }
    }

    fn read(&self, context: &Context, builder: &mut Builder) -> anyhow::Result<Told> {
        match self {
            Mesh::Xml { options, descriptors, supplements } => {
                let mut descriptors = open::at(descriptors, context)?;
                let mut supplements = open::maybe(supplements.as_ref(), context)?;
                let files = mesh::Files {
                    descriptors: open::labelled(&mut descriptors),
                    supplements: supplements.as_mut().map(open::labelled),
                };
                Ok(Told::plain(mesh::read(files, options, builder)?))
            }
            Mesh::Tables { terms, trees } => {
                let (mut terms, mut trees) = (open::at(terms, context)?, open::at(trees, context)?);
                let files = mesh::tables::Files {
                    terms: open::labelled(&mut terms),
                    trees: open::labelled(&mut trees),
                };
                Ok(Told::plain(mesh::tables::read(files, builder)?))
            }
        }
    }
}
