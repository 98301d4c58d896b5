//! Whether the texts of a source fit its ids: an id must not become a name unseen, nor a text be left over.

use std::path::PathBuf;

use base::share::Share;
use serde::{Deserialize, Serialize};

use crate::canon::Canon;
use crate::table::builder::DraftEntity;

/// How much of a source may not fit. All of it is counted and told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Allowed {
    /// Entities, or relations, that have no text though others of the source have.
    pub max_untexted: Share,
    /// Texts of a file whose ids are in no triple.
    pub max_unused_texts: Share,
    /// Rows of a file that are left out because they do not fit.
    pub max_unfit: Share,
}

/// What was found in one source. It can be judged when all sources are read: another one may have a text for an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Naming {
    pub(super) source: String,
    pub(super) allowed: Allowed,
    pub(super) entities: Untexted<(DraftEntity, String)>,
    pub(super) relations: Untexted<String>,
    pub(super) unused: Vec<Unused>,
}

/// Things without a text, among those that could have one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Untexted<T> {
    pub(super) without: Vec<T>,
    pub(super) all: u64,
}

/// The texts of a file that nothing asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unused {
    pub(super) file: PathBuf,
    /// The first one's id and line.
    pub(super) first: (String, u64),
    pub(super) texts: u64,
    pub(super) all: u64,
}

/// Why the texts of a source do not do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Ids would become names.
    #[error(
        "{source_name}: {without} of {all} {things} have no text and would be called by their ids ({examples}){other}; expected the text of \
         each: give texts for these ids (sources.*.{source_name}.max_untexted = {share:.4} would allow as many)"
    )]
    Untexted {
        /// The source.
        source_name: String,
        /// Entities or relations.
        things: &'static str,
        /// How many have no text.
        without: usize,
        /// How many there are.
        all: u64,
        /// Some of their ids.
        examples: String,
        /// Which ids have texts instead.
        other: String,
        /// How much of it that is, rounded up.
        share: f64,
    },
    /// Texts would be left over.
    #[error(
        "{}: line {line}: {unused} of {all} texts are of ids that are in no triple, this first ({id:?}); expected texts of the source's ids: \
         give the file that belongs to the triples (sources.triples.{source_name}.max_unused_texts = {share:.4} would allow as many)",
        file.display()
    )]
    Unused {
        /// The source.
        source_name: String,
        /// The file.
        file: PathBuf,
        /// The first such line.
        line: u64,
        /// Its id.
        id: String,
        /// How many there are.
        unused: u64,
        /// Texts of the file.
        all: u64,
        /// How much of it that is, rounded up.
        share: f64,
    },
}

/// Ids that a message names.
const EXAMPLES: usize = 3;

impl Naming {
    /// What is to be told of it, if all of it is allowed.
    ///
    /// # Errors
    /// When more is left without text, or more texts without use, than is allowed.
    pub fn settle(self, canon: &Canon) -> Result<Vec<String>, Error> {
        let entities = self.entities.without.iter().filter(|(entity, _)| canon.is_nameless(*entity));
        let entities: Vec<&str> = entities.map(|(_, id)| id.as_str()).collect();
        let relations: Vec<&str> = self.relations.without.iter().map(String::as_str).collect();
        let mut told = Vec::new();
        for (things, without, all) in
            [("entities", entities, self.entities.all), ("relations", relations, self.relations.all)]
        {
            self.judge((things, &without, all))?;
            if !without.is_empty() {
                let examples = examples(&without);
                let (n, source) = (without.len(), &self.source);
                told.push(format!(
                    "{source}: {n} of {all} {things} have no text and are called by their ids ({examples})"
                ));
            }
        }
        for Unused { file, first, texts, all } in &self.unused {
            if !self.allowed.max_unused_texts.allows(*texts, *all) {
                let (source_name, file, (id, line)) = (self.source.clone(), file.clone(), first.clone());
                let share = Share::least(*texts, *all, 4);
                return Err(Error::Unused { source_name, file, line, id, unused: *texts, all: *all, share });
            }
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            told.push(format!(
                "{}: {texts} of {all} texts of {name} are of ids that are in no triple",
                self.source
            ));
        }
        Ok(told)
    }

    fn judge(&self, (things, without, all): (&'static str, &[&str], u64)) -> Result<(), Error> {
        if self.allowed.max_untexted.allows(without.len() as u64, all) {
            return Ok(());
        }
        let other = self.unused.first().map(|unused| {
            let name = unused.file.file_name().unwrap_or_default().to_string_lossy();
            format!("; {name} has texts of ids that are in no triple ({:?})", unused.first.0)
        });
        Err(Error::Untexted {
            source_name: self.source.clone(),
            things,
            without: without.len(),
            all,
            examples: examples(without),
            other: other.unwrap_or_default(),
            share: Share::least(without.len() as u64, all, 4),
        })
    }
}

fn examples(ids: &[&str]) -> String {
    let shown = ids.iter().take(EXAMPLES).map(|id| format!("{:?}", id.chars().take(40).collect::<String>()));
    let more = if ids.len() > EXAMPLES { ", ..." } else { "" };
    format!("{}{more}", shown.collect::<Vec<_>>().join(", "))
}
