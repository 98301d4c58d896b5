//! The texts of a corpus: where they lie, what they look like, how each is handed on.

pub(crate) mod beside;
mod parts;
mod told;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use downstream::example::schema::Licence;
use serde::{Deserialize, Serialize};
use text::file::{Format, documents_of};
use text::{Document, Labels};

pub(crate) use self::parts::{Cut, Parts, part_name};
pub(crate) use self::told::Told;
use super::folder;
use super::location::{self, Location, Place, Places};
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::licence::Licence as Carried;
use crate::engine::stage::Input;

/// The corpus's part of a config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// At least one, each of one format, read in this order; documents are numbered across all of them.
    pub texts: Vec<Texts>,
    /// Cuts the corpus into parts: instead of one stage `counts` that reads all files there are stages `counts.part-0001`, ..., each of which reads its own,
    /// and `counts` puts them together; likewise `maps`. They run side by side, here or on several machines, and what comes out is the same to the byte as
    /// without parts. A part is made again when its own files change. The files must be there when stages are planned (not in a `[world]` of the same
    /// config); folders of formats with entities in files of their own are not cut.
    ///
    /// Not part of any fingerprint: it does not affect the output.
    #[serde(skip_serializing)]
    pub parts: Option<Parts>,
}

/// Texts of one format.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Texts {
    /// The name used in facts; unique.
    pub name: String,
    /// Files, or folders, read recursively in path order for files with the format's extensions.
    #[serde(skip_serializing)]
    pub paths: Vec<Location>,
    /// Their format, see Formats of texts.
    pub format: Format,
    /// Terms of use of the texts, which go with everything that is made of them into a depot (`depot.max_level`).
    ///
    /// Without it: `restricted` for patients' notes (`mimic_notes`, `i2b2_concepts`, `i2b2_xml`, `share_clef`) that are no invention of a world, else `free`.
    ///
    /// Not part of any fingerprint: it does not affect the output.
    #[serde(skip_serializing)]
    pub licence: Option<Licence>,
}

/// A corpus that a stage reads.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Corpus {
    /// Its table in a config.
    table: String,
    /// What of that names the texts.
    key: String,
    config: Config,
    places: Vec<Vec<Place>>,
    extent: Extent,
}

/// Whether a corpus is all that a config names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    Part,
}

impl Texts {
    /// Where its files are, `key` naming its table.
    fn places(&self, key: &str, places: &Places<'_>) -> anyhow::Result<Vec<Place>> {
        anyhow::ensure!(!self.paths.is_empty(), "{key}.paths names no file");
        let paths = self.paths.iter().enumerate();
        let places = paths.map(|(i, path)| path.place(&format!("{key}.paths.{i}"), places));
        let places: Vec<Place> = places.collect::<anyhow::Result<_>>()?;
        places.iter().enumerate().try_for_each(|(i, place)| once(place, &places[..i]))?;
        Ok(places)
    }
}

/// Refuses a place whose texts would be read twice, because another one is it or lies around or in it.
fn once(place: &Place, others: &[Place]) -> anyhow::Result<()> {
    let real = |place: &Place| match place {
        Place::Outside { path, .. } => path.canonicalize().ok(),
        _ => None,
    };
    let Some(own) = real(place) else { return Ok(()) };
    let is_same =
        |other: &&Place| real(other).is_some_and(|other| own.starts_with(&other) || other.starts_with(&own));
    match others.iter().find(is_same) {
        None => Ok(()),
        Some(other) => anyhow::bail!(
            "{} and {} name the same texts, which would be counted twice: list each file or folder once",
            other.label(),
            place.label()
        ),
    }
}

impl Corpus {
    /// The corpus that `config` names, its files below `places`.
    ///
    /// # Errors
    /// When there is no text, a name stands twice, or a place is invalid.
    pub(crate) fn new(config: &Config, places: &Places<'_>) -> anyhow::Result<Self> {
        anyhow::ensure!(!config.texts.is_empty(), "corpus.texts names no text: add a table [[corpus.texts]]");
        let mut all = Vec::new();
        for (i, texts) in config.texts.iter().enumerate() {
            let key = format!("corpus.texts.{i}");
            let twice = config.texts[..i].iter().any(|other| other.name == texts.name);
            anyhow::ensure!(!twice, "{key}.name = {:?} stands twice: give each its own name", texts.name);
            all.push(texts.places(&key, places)?);
        }
        let (table, key) = ("corpus".to_owned(), "[[corpus.texts]]".to_owned());
        Ok(Self { table, key, config: config.clone(), places: all, extent: Extent::Whole })
    }

    /// Texts of one format, which the table `key` names.
    ///
    /// # Errors
    /// When there is none, or a place is invalid.
    pub(crate) fn of(key: &str, texts: &Texts, places: &Places<'_>) -> anyhow::Result<Self> {
        let config = Config { texts: vec![texts.clone()], parts: None };
        let places = vec![texts.places(key, places)?];
        Ok(Self { table: key.to_owned(), key: key.to_owned(), config, places, extent: Extent::Whole })
    }

    /// The same, to be cut so.
    #[must_use]
    pub(crate) fn in_parts(mut self, parts: Option<Parts>) -> Self {
        self.config.parts = parts;
        self
    }

    /// Its table in a config.
    #[must_use]
    pub(crate) fn table(&self) -> &str {
        &self.table
    }

    /// What may be done with what is made of it.
    pub(crate) fn licence(&self) -> Carried {
        let invented = |places: &[Place]| places.iter().all(|place| matches!(place, Place::World { .. }));
        let texts = self.config.texts.iter().zip(&self.places).map(|(texts, places)| {
            let by_format = texts.format.is_under_agreement() && !invented(places);
            texts.licence.or(by_format.then_some(Licence::Restricted)).into()
        });
        texts.fold(Carried::None, Carried::with)
    }

    /// The formats of its texts.
    pub(crate) fn formats(&self) -> impl Iterator<Item = &Format> {
        self.config.texts.iter().map(|texts| &texts.format)
    }

    /// Whether it is a part of the corpus that a config names.
    #[must_use]
    pub(crate) fn is_part(&self) -> bool {
        self.extent == Extent::Part
    }

    /// Describes formats and files.
    pub(crate) fn describe(&self, to: &mut dyn Describe) {
        describe::config(to, "corpus", &self.config);
        self.describe_files(to);
    }

    /// Describes files alone, where what describes formats stands elsewhere.
    pub(crate) fn describe_files(&self, to: &mut dyn Describe) {
        self.places.iter().flatten().for_each(|place| place.describe(to));
    }

    /// Describes what its files are called, where more than the files themselves decides it.
    pub(crate) fn describe_names(&self, to: &mut dyn Describe) {
        let several = self.config.texts.iter().filter(|texts| texts.paths.len() > 1);
        let several: Vec<&str> = several.map(|texts| texts.name.as_str()).collect();
        if !several.is_empty() {
            describe::config(to, "corpus.of_several_paths", &several);
        }
    }

    /// What a stage that reads it declares.
    #[must_use]
    pub(crate) fn inputs(&self) -> Vec<Input> {
        let places: Vec<Place> = self.places.iter().flatten().cloned().collect();
        location::inputs(&places)
    }

    /// Hands each document to `take`, in order, with the texts that it is of, and leaves what became of the files as a fact. Returns the names of labels.
    ///
    /// # Errors
    /// When a file is missing or damaged, nothing is kept of the texts of a name, `take` fails, or the run is to stop.
    pub(crate) fn each(
        &self,
        context: &Context,
        mut take: impl FnMut(&Texts, &Document) -> anyhow::Result<()>,
    ) -> anyhow::Result<Labels> {
        self.each_of_files(context, |texts, _, document| take(texts, document))
    }

    /// As [`Corpus::each`], with what the file of each document is called: no two are called the same.
    ///
    /// # Errors
    /// As [`Corpus::each`].
    pub(crate) fn each_of_files(
        &self,
        context: &Context,
        mut take: impl FnMut(&Texts, &str, &Document) -> anyhow::Result<()>,
    ) -> anyhow::Result<Labels> {
        let progress = context.progress();
        progress.unit("documents");
        let (labels, told) = self.read_files(context, |texts, file, document| {
            progress.add_rows(1);
            take(texts, &file.name, document)
        })?;
        told.record(context);
        if self.is_part() {
            told.write(context.out())?;
        }
        Ok(labels)
    }

    /// As [`Corpus::each`], and says what became of the files instead of leaving it.
    ///
    /// # Errors
    /// As [`Corpus::each`].
    pub(crate) fn read(
        &self,
        context: &Context,
        mut take: impl FnMut(&Texts, &Document) -> anyhow::Result<()>,
    ) -> anyhow::Result<(Labels, Told)> {
        self.read_files(context, |texts, _, document| take(texts, document))
    }

    fn read_files(
        &self,
        context: &Context,
        mut take: impl FnMut(&Texts, &Named, &Document) -> anyhow::Result<()>,
    ) -> anyhow::Result<(Labels, Told)> {
        let (mut labels, mut told, progress) = (Labels::default(), Told::default(), context.progress());
        for (texts, places) in self.config.texts.iter().zip(&self.places) {
            let mut sum = told::Read::new(&texts.name);
            for file in self.files(texts, places, context)? {
                context.check()?;
                let counted = documents_of(&file.path, &texts.format, &mut labels, |document| {
                    context.check()?;
                    take(texts, &file, document)
                });
                let tally = counted?.documents;
                progress.add_bytes(tally.bytes);
                sum.add(&tally);
            }
            told.push(sum);
            if !self.is_part() {
                told.check(self)?;
            }
        }
        Ok((labels, told))
    }

    fn files(&self, texts: &Texts, places: &[Place], context: &Context) -> anyhow::Result<Vec<Named>> {
        let mut files = Vec::new();
        for place in places {
            let path = place.path(context)?;
            let found = found(texts, &path, &format!("{} of {}", place.label(), self.key))?;
            files.extend(found.into_iter().map(|file| Named::of(texts, place.label(), &path, file)));
            // Its neighbour with the entities would be no input of the stage.
            let alone = matches!(texts.format, Format::Brat(_)) && !path.is_dir();
            anyhow::ensure!(
                !alone,
                "{}: a text of brat goes with the .ann file beside it: name their folder in {} {:?}",
                path.display(),
                self.key,
                texts.name
            );
        }
        Ok(files)
    }
}

/// A file of texts.
struct Named {
    path: PathBuf,
    /// The name of the texts, which of their paths it is or lies below (of several), and its path below that folder, or its own name; the same of a whole
    /// corpus and of its parts.
    name: String,
}

impl Named {
    /// A file in the place `root` of some texts. Its label begins with the key of the texts' path and goes on with the way from there to `root`.
    fn of(texts: &Texts, label: &str, root: &Path, path: PathBuf) -> Self {
        let (key, above) = label.split_once('/').unwrap_or((label, ""));
        let below = folder::below(root, &path).map(Path::to_string_lossy).unwrap_or_default();
        let number = key.rsplit('.').next().filter(|_| texts.paths.len() > 1).unwrap_or_default();
        let own = match above.is_empty() && below.is_empty() {
            true => path.file_name().unwrap_or_default().to_string_lossy(),
            false => "".into(),
        };
        let parts = [&texts.name, number, above, &below, &own];
        let name = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
        Self { path, name }
    }
}

/// The files of texts in a place, which messages call `label`.
fn found(texts: &Texts, path: &Path, label: &str) -> anyhow::Result<Vec<PathBuf>> {
    let endings = texts.format.extensions();
    let found = folder::ending(path, endings).with_context(|| format!("{label} {:?}", texts.name))?;
    folder::some(found, path, endings, &format!("the format of {label} {:?}", texts.name))
}
