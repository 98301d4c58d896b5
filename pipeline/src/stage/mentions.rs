//! Stage `mentions`: where the texts of the corpus name entities of the graph.

use std::path::{Path, PathBuf};

use base::cancel::CancelToken;
use base::whole::write_whole;
use serde::{Deserialize, Serialize};
use serde_json::json;
use text::file::Format;
use text::ner::annotate::Settings;
use text::ner::context;

use super::corpus::Corpus;
use super::location::{Location, Place, Places};
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::stage::{Input, Stage};
use crate::tag::output::Form;
use crate::tag::{Tagging, Tools};

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

/// The stage.
#[derive(Debug)]
pub(crate) struct Mentions {
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
        Ok(Self { config: config.clone(), corpus: corpus.clone(), triggers: config.place(places)? })
    }
}

impl Stage for Mentions {
    fn name(&self) -> &'static str {
        "mentions"
    }

    fn version(&self) -> u32 {
        1
    }

    fn describe(&self, to: &mut dyn Describe) {
        describe::config(to, "tag", &self.config);
        if let Some(triggers) = &self.triggers {
            triggers.describe(to);
        }
        self.corpus.describe(to);
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
        self.corpus.each_of_files(context, |texts, file, document| {
            // Documents of several files may have the same ids.
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            tagging.push(Some(&format!("{}/{name}", texts.name)), document)
        })?;
        let found = tagging.finish()?;
        let report = json!({
            "format": "engraft-mentions",
            "version": 1,
            "names": tools.names().dictionary().report(),
            "found": found,
        });
        write_whole(&context.out().join(REPORT), &serde_json::to_vec_pretty(&report)?)?;
        context.record("mentions", json!(found));
        Ok(())
    }

    fn inspect(&self, file: &Path) -> anyhow::Result<Vec<String>> {
        super::triples::inspect_parquet(file)
    }
}
