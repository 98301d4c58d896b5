//! Where mentions go, and in which form.

use std::collections::HashSet;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use base::whole::{folder, persist, temporary, write_whole};
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
    /// What takes documents, written into `into`, or to standard output without it.
    ///
    /// # Errors
    /// When this form is none for standard output, or the place is none for it.
    pub(crate) fn open(self, into: Option<&Path>) -> anyhow::Result<Box<dyn Output>> {
        let (beginning, render, end): (&str, Render, &str) = match self {
            Self::Parquet => {
                let file = into.context("Parquet is no text: name a file with --into FILE.parquet")?;
                return Ok(Box::new(Table(Writer::create(file)?)));
            }
            Self::Brat => {
                let folder = into.context("brat has two files for each text: name a folder with --into")?;
                return Ok(Box::new(Brat::new(folder)?));
            }
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
    folder: PathBuf,
    names: HashSet<String>,
}

impl Brat {
    fn new(folder: &Path) -> anyhow::Result<Self> {
        let unmade = || format!("{}: cannot make the folder", folder.display());
        std::fs::create_dir_all(folder).with_context(unmade)?;
        let mut there = std::fs::read_dir(folder).with_context(unmade)?;
        anyhow::ensure!(
            there.next().is_none(),
            "{}: the folder is not empty: name a new one, or empty it",
            folder.display()
        );
        Ok(Self { folder: folder.to_owned(), names: HashSet::new() })
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
                let file = self.folder.join(format!("{name}.{ending}"));
                write_whole(&file, contents.as_bytes())
                    .with_context(|| format!("{}: cannot be written", file.display()))?;
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> anyhow::Result<()> {
        Ok(())
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
    report::tagged::document(&document.id, &document.text, &marks)
}
