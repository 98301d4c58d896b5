//! Stage `mentions`: where the texts of the corpus name entities of the graph. A corpus in parts is tagged part by part, and put together.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use base::cancel::CancelToken;
use base::whole::write_whole;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use text::file::Format;
use text::ner::annotate::Settings;
use text::ner::context;
use text::tagged::table;

use super::corpus::{Corpus, Told, part_name};
use super::location::{Location, Place, Places};
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::licence::Licence;
use crate::engine::stage::{Input, Stage};
use crate::tag::output::Form;
use crate::tag::{Found, Tagging, Tools};

/// The file with the mentions.
const MENTIONS: &str = "mentions.parquet";

/// The file with what became of names and texts.
const REPORT: &str = "mentions.json";

/// How a config has texts tagged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Which names are found in texts.
    #[serde(flatten)]
    pub names: Settings,
    /// What sentences say of mentions: negated, uncertain, historical, hypothetical, of another person (ConText).
    ///
    /// Source: ours: a table of English triggers, `tasks/text/src/ner/context/english.txt`.
    pub context: Triggers,
    /// What the texts look like that `engraft tag` reads; those of stage `mentions` are `[corpus]`. See Formats of texts.
    ///
    /// Source: ours, as `engraft predict` reads lines.
    #[serde(skip_serializing)]
    #[schemars(extend("default" = {"text": "line"}))]
    pub format: Format,
}

/// Which phrases say something of mentions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Triggers {
    /// The English ones that come with engraft.
    English,
    /// None: nothing is said of mentions.
    None,
    /// Those of a table: phrase, what it says, where it reaches; see Triggers in docs/formats.md.
    File(#[serde(skip_serializing)] Location),
}

impl Default for Config {
    fn default() -> Self {
        Self {
            names: Settings::default(),
            context: Triggers::English,
            format: Format::Text(text::text::Unit::Line),
        }
    }
}

impl Config {
    /// Whether every setting is in its range.
    ///
    /// # Errors
    /// Names the first that is not.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.names.check().map_err(|error| anyhow::anyhow!("tag.{error}"))
    }

    /// What texts are tagged with: names of the graph in the folder `triples`, triggers of `file` where they are in one.
    ///
    /// # Errors
    /// When the graph or the triggers cannot be read, or no name passes.
    pub(crate) fn tools(&self, triples: &Path, file: Option<&Path>) -> anyhow::Result<Tools> {
        let context = match &self.context {
            Triggers::None => None,
            Triggers::English | Triggers::File(_) => Some(context::Context::of_file(file)?),
        };
        Tools::new(triples, &self.names, context)
    }

    /// Where the file of triggers lies, if there is one.
    ///
    /// # Errors
    /// When the place is invalid.
    pub(crate) fn place(&self, places: &Places<'_>) -> anyhow::Result<Option<Place>> {
        match &self.context {
            Triggers::File(file) => Ok(Some(file.place("tag.context.file", places)?)),
            Triggers::English | Triggers::None => Ok(None),
        }
    }
}

/// The stage's name, and what those of its parts begin with.
pub(crate) const NAME: &str = "mentions";
/// The stage's version.
const VERSION: u32 = 2;

/// What became of names and texts.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    format: String,
    version: u32,
    names: Value,
    found: Found,
}

impl Report {
    fn new(names: Value, found: Found) -> Self {
        Self { format: "engraft-mentions".to_owned(), version: 1, names, found }
    }

    /// Leaves it.
    fn write(&self, context: &Context) -> anyhow::Result<()> {
        // As a value first, whose keys have an order of their own.
        let report = serde_json::to_value(self)?;
        write_whole(&context.out().join(REPORT), &serde_json::to_vec_pretty(&report)?)?;
        context.record("mentions", json!(self.found));
        Ok(())
    }
}

/// The stage, or that of a part.
#[derive(Debug)]
pub(crate) struct Mentions {
    name: String,
    config: Config,
    corpus: Corpus,
    triggers: Option<Place>,
}

impl Mentions {
    /// The stage for `config`.
    ///
    /// # Errors
    /// When the place of its triggers is invalid.
    pub(crate) fn new(config: &Config, corpus: &Corpus, places: &Places<'_>) -> anyhow::Result<Self> {
        let (name, triggers) = (NAME.to_owned(), config.place(places)?);
        Ok(Self { name, config: config.clone(), corpus: corpus.clone(), triggers })
    }

    /// The stages that tag its corpus: itself, or one for each part and one that puts them together.
    #[must_use]
    pub(crate) fn stages(self, parts: Option<&[Corpus]>) -> Vec<Box<dyn Stage>> {
        let Some(parts) = parts else { return vec![Box::new(self)] };
        let names: Vec<String> = (1..=parts.len()).map(|number| part_name(NAME, number)).collect();
        let part = |(name, corpus): (&String, &Corpus)| {
            let (config, triggers) = (self.config.clone(), self.triggers.clone());
            Box::new(Self { name: name.clone(), config, corpus: corpus.clone(), triggers }) as Box<dyn Stage>
        };
        let mut stages: Vec<Box<dyn Stage>> = names.iter().zip(parts).map(part).collect();
        stages.push(Box::new(Joining { corpus: self.corpus, parts: names }));
        stages
    }
}

/// What the stages of a corpus's parts have made, put together.
#[derive(Debug)]
struct Joining {
    corpus: Corpus,
    parts: Vec<String>,
}

impl Stage for Joining {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> u32 {
        VERSION
    }

    fn describe(&self, _: &mut dyn Describe) {}

    fn inputs(&self) -> Vec<Input> {
        self.parts.iter().map(Input::artifact).collect()
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let (folders, told) = Told::of_parts(context, &self.parts)?;
        let told = Told::joined(told);
        told.check(&self.corpus)?;
        told.record(context);
        let (mut names, mut found) = (Value::Null, Found::default());
        for folder in &folders {
            let path = folder.join(REPORT);
            let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
            let report: Report =
                serde_json::from_slice(&bytes).with_context(|| path.display().to_string())?;
            found.add(&report.found);
            names = report.names;
        }
        let progress = context.progress();
        progress.unit("mentions");
        let files: Vec<PathBuf> = folders.iter().map(|folder| folder.join(MENTIONS)).collect();
        found.entities = table::join(&files, &context.out().join(MENTIONS), &mut |rows| {
            progress.add_rows(rows);
            anyhow::Ok(context.check()?)
        })?;
        Report::new(names, found).write(context)
    }

    fn inspect(&self, file: &Path) -> anyhow::Result<Vec<String>> {
        super::triples::inspect_parquet(file)
    }
}

impl Stage for Mentions {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        VERSION
    }

    fn describe(&self, to: &mut dyn Describe) {
        describe::config(to, "tag", &self.config);
        if let Some(triggers) = &self.triggers {
            triggers.describe(to);
        }
        self.corpus.describe(to);
        self.corpus.describe_names(to);
    }

    fn licence(&self, _: &Path) -> anyhow::Result<Licence> {
        Ok(self.corpus.licence())
    }

    fn inputs(&self) -> Vec<Input> {
        let triggers = self.triggers.iter().map(Place::input);
        std::iter::once(Input::artifact("triples")).chain(self.corpus.inputs()).chain(triggers).collect()
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let triggers: Option<PathBuf> =
            self.triggers.as_ref().map(|place| place.path(context)).transpose()?;
        let tools = self.config.tools(context.artifact("triples")?, triggers.as_deref())?;
        context.check()?;
        let out = Form::Parquet.open(Some(&context.out().join(MENTIONS)))?;
        let mut tagging = Tagging::new(&tools, out, CancelToken::NEVER);
        // Documents of several files may have the same ids.
        self.corpus.each_of_files(context, |_, file, document| tagging.push(Some(file), document))?;
        let found = tagging.finish()?;
        Report::new(json!(tools.names().dictionary().report()), found).write(context)
    }

    fn inspect(&self, file: &Path) -> anyhow::Result<Vec<String>> {
        super::triples::inspect_parquet(file)
    }
}
