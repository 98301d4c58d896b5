//! The files of a config's sources: where they lie, and how a stage hands them to [`kg::source`].

use std::collections::BTreeMap;
use std::path::Path;

use kg::source::files::{self, Files, Form, Found, Member, Slot};
use kg::source::{Config, Entry, SourceReport};
use kg::table::Builder;

use super::location::{Location, Place, Places};
use crate::engine::context::Context;

/// Where the files of a source lie, by their keys: those of its slots, and `SLOT/NAME` of a folder's members.
#[derive(Debug)]
pub(crate) struct Located {
    files: Vec<File>,
}

#[derive(Debug)]
struct File {
    key: String,
    /// What messages call it, where that is not the file itself: a file in parts.
    name: Option<&'static str>,
    /// One, or those of its parts.
    places: Vec<Place>,
}

/// Where the files of all sources lie, in the order of [`Config::entries`].
///
/// # Errors
/// When the config names no source, or a place that is invalid.
pub(crate) fn locate(config: &Config, places: &Places<'_>) -> anyhow::Result<Vec<Located>> {
    let entries = config.entries();
    anyhow::ensure!(
        !entries.is_empty(),
        "[sources] is empty: name at least one of {}",
        Config::kinds().map(|kind| format!("sources.{kind}")).collect::<Vec<_>>().join(", ")
    );
    entries.iter().map(|entry| Located::new(entry, places)).collect()
}

impl Located {
    fn new(entry: &Entry<'_>, places: &Places<'_>) -> anyhow::Result<Self> {
        let mut files = Vec::new();
        for Slot { key, location, members } in entry.source.slots() {
            let whole = format!("{}.{key}", entry.key);
            let place = Location(location.0.clone()).place(&whole, places)?;
            anyhow::ensure!(
                !members.is_empty() || !place.is_folder(),
                "{whole} is a folder, expected a file: name the file in it"
            );
            for member in members {
                anyhow::ensure!(
                    !member.needed || place.file(member.name).may_be(),
                    "{whole}: there is no {} in the world's folder {:?}, expected a folder that has one",
                    member.name,
                    place.name()
                );
                let found = member_of(&place, member)?;
                if !found.is_empty() {
                    let name = (member.form == Form::Release).then_some(member.name);
                    files.push(File { key: format!("{key}/{}", member.name), name, places: found });
                }
            }
            if members.is_empty() {
                files.push(File { key, name: None, places: vec![place] });
            }
        }
        Ok(Self { files })
    }

    /// All of them.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Place> {
        self.files.iter().flat_map(|file| &file.places)
    }

    /// Has the source read them.
    ///
    /// # Errors
    /// When a file is missing, damaged or of another kind.
    pub(crate) fn read(
        &self,
        entry: &Entry<'_>,
        context: &Context,
        builder: &mut Builder,
    ) -> anyhow::Result<SourceReport> {
        let mut found = BTreeMap::new();
        for File { key, name, places } in &self.files {
            let paths = places.iter().map(|place| place.path(context)).collect::<anyhow::Result<Vec<_>>>()?;
            let label = places.first().zip(paths.first()).map(|(place, path)| place.shown(path));
            let label = label.unwrap_or_default();
            let label = name.map_or_else(|| label.clone(), |name| label.with_file_name(name));
            found.insert(key.clone(), Found { label, paths });
        }
        let watch = |file| -> files::Bytes<'_> { Box::new(context.progress().reader(file)) };
        Ok(entry.source.read(entry.name, &Files::new(found, &watch), builder)?)
    }
}

/// Where a member of a folder lies; nowhere if it is not there and not needed. A needed one that is not there is named by the engine.
fn member_of(folder: &Place, member: &Member) -> anyhow::Result<Vec<Place>> {
    let plain = folder.file(member.name);
    let found = match (member.form, folder) {
        (Form::Plain, _) if member.needed => None,
        (Form::Plain, _) => folder.has(member.name)?.then(|| vec![plain.clone()]),
        // A world makes all files of a release.
        (Form::Release, Place::World { .. }) => Some(vec![plain.clone()]),
        (Form::Release, Place::Outside { path, .. }) if path.is_dir() => {
            let parts = files::locate(path, member.name)?;
            parts.map(|parts| {
                let names = parts.iter().filter_map(|part| part.file_name());
                names.map(|name| folder.file(&name.to_string_lossy())).collect()
            })
        }
        (Form::Beginning, Place::Outside { path, .. }) if path.is_dir() => {
            let found = files::beginning(path, member.name)?;
            let below = |file: &Path| file.strip_prefix(path).ok()?.to_str().map(|below| folder.file(below));
            found.map(|files| files.iter().filter_map(|file| below(file)).collect())
        }
        (Form::Beginning, Place::World { .. } | Place::Remote { .. }) => anyhow::bail!(
            "{} is no folder of this machine, where files are found by how their names begin ({}*): fetch it first",
            folder.label(),
            member.name
        ),
        (Form::Release | Form::Beginning, Place::Outside { .. }) => None,
        (Form::Release, Place::Remote { .. }) => remote(folder, member.name)?,
    };
    Ok(found.unwrap_or_else(|| if member.needed { vec![plain] } else { Vec::new() }))
}

/// The file `name` of a folder in a store, which need not list what it has: plain, packed, or in packed parts.
fn remote(folder: &Place, name: &str) -> anyhow::Result<Option<Vec<Place>>> {
    for whole in [name.to_owned(), format!("{name}.gz")] {
        if folder.has(&whole)? {
            return Ok(Some(vec![folder.file(&whole)]));
        }
    }
    let mut parts = Vec::new();
    for part in files::part_names(name) {
        if !folder.has(&part)? {
            break;
        }
        parts.push(folder.file(&part));
    }
    Ok(Some(parts).filter(|parts| !parts.is_empty()))
}

/// The sources that say which of their triples are held out.
pub(super) fn published(sources: &Config) -> Vec<String> {
    let has_parts =
        |name: &str| sources.triples.get(name).is_some_and(kg::source::triples::Options::has_parts);
    let names = sources.entries().into_iter().map(|entry| entry.name);
    names.filter(|name| has_parts(name)).map(str::to_owned).collect()
}

/// Why a graph of sources, of which those have a published split, cannot be split so, if that is what `split` asks for. Only the stage that splits cannot run then.
pub(super) fn unpublished(published: &[String], split: &super::split::Config) -> Option<String> {
    let super::split::Parts::Official { source, .. } = &split.parts else { return None };
    let listed = if published.is_empty() { "there is none".to_owned() } else { published.join(", ") };
    (!published.contains(source)).then(|| {
        format!(
            "it is {source:?}, expected the name of a source with a published split (`kg_bert`, or files with `part`): {listed}"
        )
    })
}
