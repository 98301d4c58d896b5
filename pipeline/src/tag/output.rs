//! Where mentions go, and in which form.

use std::collections::HashSet;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use base::whole::{NewFolder, folder, persist, temporary, write_whole};
use kg::table::Entity;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use text::tagged::table::Writer;
use text::tagged::{Tagged, bioc, brat, json, spacy};

/// Takes documents with their mentions.
pub(crate) trait Output {
    /// Takes the next ones.
    ///
    /// # Errors
    /// When they cannot be written, or the form cannot hold one.
    fn write(&mut self, documents: &[Tagged], entities: &[Entity]) -> anyhow::Result<()>;

    /// Ends what was written; until then, no file has its name.
    ///
    /// # Errors
    /// When the disk refuses.
    fn finish(self: Box<Self>) -> anyhow::Result<()>;
}

/// A form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Form {
    /// A JSON object a line: a document with its text and its mentions
    Jsonl,
    /// A row for each mention and entity that it may name
    Parquet,
    /// A folder with a text and an .ann file for each document
    Brat,
    /// BioC's XML
    Bioc,
    /// A document of spaCy's `Doc.from_json` a line
    Spacy,
    /// A page for browsers that shows mentions in their texts
    Html,
}

/// How a document becomes text.
type Render = fn(&Tagged, &[Entity]) -> anyhow::Result<String>;

impl Form {
    /// Whether it can be written there.
    ///
    /// # Errors
    /// When the form needs a place, or the place is a folder that it cannot be.
    pub(crate) fn check(self, into: Option<&Path>) -> anyhow::Result<()> {
        match (self, into) {
            (Self::Parquet, None) => {
                anyhow::bail!("Parquet is no text: name a file with --into FILE.parquet")
            }
            (Self::Brat, None) => {
                anyhow::bail!("brat has two files for each text: name a folder with --into")
            }
            (Self::Brat, Some(place)) => Brat::check(place),
            (_, Some(file)) => {
                anyhow::ensure!(!file.is_dir(), "--into {}: it is a folder, expected a file", file.display());
                Ok(())
            }
            (_, None) => Ok(()),
        }
    }

    /// What takes documents, written into `into`, or to standard output without it.
    ///
    /// # Errors
    /// When this form is none for standard output, or the place is none for it.
    pub(crate) fn open(self, into: Option<&Path>) -> anyhow::Result<Box<dyn Output>> {
        self.check(into)?;
        let place = into.unwrap_or(Path::new(""));
        let (beginning, render, end): (&str, Render, &str) = match self {
            Self::Parquet => return Ok(Box::new(Table(Writer::create(place)?))),
            Self::Brat => return Ok(Box::new(Brat::new(place)?)),
            Self::Jsonl => ("", |one, entities| Ok(json::line(one, entities) + "\n"), ""),
            Self::Spacy => ("", |one, entities| Ok(spacy::line(one, entities) + "\n"), ""),
            Self::Bioc => (bioc::BEGINNING, |one, entities| Ok(bioc::document(one, entities)?), bioc::END),
            Self::Html => {
                (report::tagged::BEGINNING, |one, entities| Ok(page(one, entities)), report::tagged::END)
            }
        };
        let mut sink = Sink::new(into)?;
        sink.write(beginning.as_bytes())?;
        Ok(Box::new(Lines { sink, render, end }))
    }
}

/// Text, document after document.
struct Lines {
    sink: Sink,
    render: Render,
    end: &'static str,
}

impl Output for Lines {
    fn write(&mut self, documents: &[Tagged], entities: &[Entity]) -> anyhow::Result<()> {
        let render = self.render;
        let texts: Vec<anyhow::Result<String>> =
            documents.par_iter().map(|document| render(document, entities)).collect();
        texts.into_iter().try_for_each(|text| Ok(self.sink.write(text?.as_bytes())?))
    }

    fn finish(mut self: Box<Self>) -> anyhow::Result<()> {
        self.sink.write(self.end.as_bytes())?;
        Ok(self.sink.finish()?)
    }
}

/// Where text goes.
enum Sink {
    Standard(BufWriter<io::Stdout>),
    /// A file that has its name when it is whole.
    File(BufWriter<tempfile::NamedTempFile>, PathBuf),
}

impl Sink {
    fn new(into: Option<&Path>) -> anyhow::Result<Self> {
        let Some(file) = into else { return Ok(Self::Standard(BufWriter::new(io::stdout()))) };
        let begun = temporary(folder(file));
        let begun = begun.with_context(|| format!("{}: cannot be written", file.display()))?;
        Ok(Self::File(BufWriter::new(begun), file.to_owned()))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Standard(out) => out.write_all(bytes),
            Self::File(out, _) => out.write_all(bytes),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Standard(mut out) => out.flush(),
            Self::File(out, file) => {
                persist(out.into_inner().map_err(io::IntoInnerError::into_error)?, &file)
            }
        }
    }
}

struct Table(Writer);

impl Output for Table {
    fn write(&mut self, documents: &[Tagged], entities: &[Entity]) -> anyhow::Result<()> {
        documents.iter().try_for_each(|document| Ok(self.0.push(document, entities)?))
    }

    fn finish(self: Box<Self>) -> anyhow::Result<()> {
        Ok(self.0.finish()?)
    }
}

struct Brat {
    folder: NewFolder,
    place: PathBuf,
    names: HashSet<String>,
}

impl Brat {
    fn check(place: &Path) -> anyhow::Result<()> {
        let is_empty = match std::fs::read_dir(place) {
            Ok(mut there) => there.next().is_none(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(error).with_context(|| format!("{}: no folder", place.display())),
        };
        anyhow::ensure!(
            is_empty,
            "{}: the folder is not empty: name a new one, or empty it",
            place.display()
        );
        Ok(())
    }

    fn new(place: &Path) -> anyhow::Result<Self> {
        let folder = NewFolder::begin(place);
        let folder = folder.with_context(|| format!("{}: cannot make the folder", place.display()))?;
        Ok(Self { folder, place: place.to_owned(), names: HashSet::new() })
    }
}

impl Output for Brat {
    fn write(&mut self, documents: &[Tagged], entities: &[Entity]) -> anyhow::Result<()> {
        for document in documents {
            let name = brat::name(document);
            anyhow::ensure!(
                self.names.insert(name.clone()),
                "two documents are called {name:?}: give each its own id, or write another form"
            );
            let annotations = brat::annotations(document, entities);
            for (ending, contents) in [("txt", &document.text), ("ann", &annotations)] {
                let file = self.folder.path().join(format!("{name}.{ending}"));
                write_whole(&file, contents.as_bytes())
                    .with_context(|| format!("{}: cannot be written", self.place.display()))?;
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> anyhow::Result<()> {
        Ok(self.folder.finish()?)
    }
}

/// A document on a page.
fn page(document: &Tagged, entities: &[Entity]) -> String {
    let told: Vec<_> = document.told(entities).collect();
    let marks: Vec<report::tagged::Mark<'_>> = told
        .iter()
        .filter_map(|told| {
            let (entity, score) = told.candidates.first()?;
            let others = told.candidates[1..].iter().map(|(entity, _)| entity.key.as_str());
            Some(report::tagged::Mark {
                bytes: told.bytes.clone(),
                kind: told.kind(),
                key: &entity.key,
                name: &entity.text,
                how: told.how.name(),
                score: *score,
                others: others.collect(),
                modifiers: told.modifiers.iter().map(text::ner::context::Modifier::name).collect(),
            })
        })
        .collect();
    let heading = match &document.file {
        Some(file) if *file != document.id => format!("{file}: {}", document.id),
        _ => document.id.clone(),
    };
    report::tagged::document(&heading, &document.text, &marks)
}
