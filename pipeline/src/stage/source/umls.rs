//! A Metathesaurus in a config.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::Context as _;
use kg::source::umls::files::{self, Files, NAMES, NEEDED};
use kg::source::umls::{self, Keep, Options, Suppressed, Unlabelled, Vocabularies};
use kg::table::Builder;
use serde::{Deserialize, Serialize};

use super::{Source, Told};
use crate::engine::context::Context;
use crate::stage::location::{Location, Place, Places};

/// UMLS: where it lies and what is taken of it; the other fields are those of [`Options`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The folder with `MRCONSO.RRF`, `MRREL.RRF` and whichever of the others there are; plain, `.gz` or in parts.
    #[serde(skip_serializing)]
    pub path: Location,
    /// Languages of names, the preferred one first.
    pub languages: Vec<String>,
    /// What to do with suppressed rows.
    pub suppressed: Suppressed,
    /// Source vocabularies to take; all without it.
    pub vocabularies: Option<Vocabularies>,
    /// The highest source restriction level to take.
    pub max_srl: Option<u8>,
    /// Semantic types of which both ends of a triple must have one.
    pub semantic_types: Option<BTreeSet<String>>,
    /// Broad relations (REL) to take.
    pub rels: Option<BTreeSet<String>>,
    /// Relations (RELA) to take.
    pub relations: Option<BTreeSet<String>>,
    /// Relations with fewer distinct triples are left out.
    pub min_relation_count: Option<u64>,
    /// What to do with relations that have no RELA.
    pub unlabelled: Unlabelled,
    /// What to do with names beside the preferred one.
    pub terms: Keep,
    /// What to do with definitions.
    pub definitions: Keep,
}

/// The source.
#[derive(Debug)]
pub(super) struct Umls {
    options: Options,
    /// By name of the file: its place, or the places of its parts.
    files: BTreeMap<&'static str, Vec<Place>>,
}

impl Umls {
    pub(super) fn new(config: &Config, places: &Places<'_>) -> anyhow::Result<Self> {
        let folder = config.path.place("sources.umls.path", places)?;
        let mut files = BTreeMap::new();
        for (number, name) in NAMES.into_iter().enumerate() {
            let plain = folder.file(name);
            let found = match &folder {
                Place::World { .. } => Some(vec![plain]),
                // A folder that is not there yet is named by the engine, with the file that it looked for.
                Place::Outside { path, .. } if !path.is_dir() => (number < NEEDED).then(|| vec![plain]),
                Place::Outside { path, .. } => match files::locate(path, name)? {
                    None => (number < NEEDED).then(|| vec![plain]),
                    Some(parts) => Some(
                        parts
                            .iter()
                            .filter_map(|part| part.file_name())
                            .map(|part| folder.file(&part.to_string_lossy()))
                            .collect(),
                    ),
                },
                Place::Remote { .. } => Some(remote(&folder, name)?)
                    .filter(|parts| !parts.is_empty())
                    .or_else(|| (number < NEEDED).then(|| vec![plain])),
            };
            if let Some(found) = found {
                files.insert(name, found);
            }
        }
        Ok(Self { options: options(config), files })
    }

    fn source<'c>(&self, name: &str, context: &'c Context) -> anyhow::Result<Option<files::Source<'c>>> {
        let Some(places) = self.files.get(name) else { return Ok(None) };
        let paths: Vec<PathBuf> =
            places.iter().map(|place| place.path(context)).collect::<anyhow::Result<_>>()?;
        let first = places.first().zip(paths.first()).map(|(place, path)| place.shown(path));
        let label = first.map(|path| path.with_file_name(name)).unwrap_or_default();
        let open = move || -> std::io::Result<files::Bytes<'c>> {
            files::open(&paths, &|file| Box::new(context.progress().reader(file)))
        };
        Ok(Some(files::Source { label, open: Box::new(open) }))
    }
}

/// The file `name` of a folder in a store, which need not list what it has: plain, packed, or in packed parts `.aa.gz`, `.ab.gz`.
fn remote(folder: &Place, name: &str) -> anyhow::Result<Vec<Place>> {
    for whole in [name.to_owned(), format!("{name}.gz")] {
        if folder.has(&whole)? {
            return Ok(vec![folder.file(&whole)]);
        }
    }
    let mut parts = Vec::new();
    for (first, second) in ('a'..='z').flat_map(|first| ('a'..='z').map(move |second| (first, second))) {
        let part = format!("{name}.{first}{second}.gz");
        if !folder.has(&part)? {
            break;
        }
        parts.push(folder.file(&part));
    }
    Ok(parts)
}

fn options(config: &Config) -> Options {
    Options {
        languages: config.languages.clone(),
        suppressed: config.suppressed,
        vocabularies: config
            .vocabularies
            .clone()
            .unwrap_or_else(|| Vocabularies { allow: None, deny: BTreeSet::new() }),
        max_srl: config.max_srl,
        semantic_types: config.semantic_types.clone(),
        rels: config.rels.clone(),
        relations: config.relations.clone(),
        min_relation_count: config.min_relation_count,
        unlabelled: config.unlabelled,
        terms: config.terms,
        definitions: config.definitions,
    }
}

impl Source for Umls {
    fn places(&self) -> Vec<&Place> {
        self.files.values().flatten().collect()
    }

    fn read(&self, context: &Context, builder: &mut Builder) -> anyhow::Result<Told> {
        let source = |name| self.source(name, context);
        let [conso, rel, sty, def, sab, rank, doc, cui] = NAMES;
        let needed = "the needed files are always declared";
        let files = Files {
            conso: source(conso)?.context(needed)?,
            rel: source(rel)?.context(needed)?,
            sty: source(sty)?,
            def: source(def)?,
            sab: source(sab)?,
            rank: source(rank)?,
            doc: source(doc)?,
            cui: source(cui)?,
        };
        Ok(Told::plain(umls::read(&files, &self.options, builder)?))
    }
}
