//! The artifacts that samples are made with: which of them settings ask for, and whether they go together.

use std::path::{Path, PathBuf};

use base::self_check;
use text::count;
use text::pmi;

use super::config::{Config, Entities};
use crate::Error;
use crate::token::encode::Case;

/// Folders of the stages whose artifacts samples may be made with, besides the vocabulary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Folders {
    /// The triple table.
    pub triples: Option<PathBuf>,
    /// Counts of words and of neighbours.
    pub counts: Option<PathBuf>,
    /// Scores of words for each other.
    pub pmi: Option<PathBuf>,
}

impl Folders {
    /// The triple table of settings that ask for it.
    pub(super) fn triples(&self, config: &Config) -> Result<&Path, Error> {
        let setting = if config.entities == Entities::None { "graph" } else { "entities" };
        needed(self.triples.as_ref(), "triples", setting)
    }

    /// The counts of settings that ask for them.
    pub(super) fn counts(&self) -> Result<&Path, Error> {
        needed(self.counts.as_ref(), "counts", "phrases")
    }

    /// The scores of settings that ask for them.
    pub(super) fn scores(&self) -> Result<&Path, Error> {
        needed(self.pmi.as_ref(), "pmi", "terms")
    }

    /// Whether all folders that `config` asks for are there, and no others, and their words are of this case: words are looked up as the
    /// vocabulary spells them.
    ///
    /// # Errors
    /// Names what is missing, left over or of another case, or when an index cannot be read.
    pub fn check(&self, config: &Config, case: Case) -> Result<(), Error> {
        if config.needs_graph() {
            self.triples(config)?;
        } else {
            unneeded(self.triples.as_ref(), "triples", "entities and graph are")?;
        }
        if config.needs_counts() {
            let counts = self.counts()?;
            let index: count::Index = self_check::read(&counts.join(count::INDEX))?;
            same_case(counts, index.config.case, case)?;
        } else {
            unneeded(self.counts.as_ref(), "counts", "phrases is")?;
        }
        if config.needs_scores() {
            let scores = self.scores()?;
            same_case(scores, pmi::Index::read(scores)?.counts.config.case, case)?;
        } else {
            unneeded(self.pmi.as_ref(), "pmi", "terms is")?;
        }
        Ok(())
    }
}

fn needed<'f>(folder: Option<&'f PathBuf>, stage: &str, setting: &str) -> Result<&'f Path, Error> {
    let missing = || {
        Error::Unfit(format!(
            "{setting}, as it is set, needs the artifact of stage {stage}: give its folder as {stage}, or set {setting} = \"none\""
        ))
    };
    folder.map(PathBuf::as_path).ok_or_else(missing)
}

fn unneeded(folder: Option<&PathBuf>, stage: &str, settings: &str) -> Result<(), Error> {
    match folder {
        None => Ok(()),
        Some(folder) => Err(Error::Unfit(format!(
            "{stage} is {}, but {settings} set so that nothing is made with it: leave it out",
            folder.display()
        ))),
    }
}

fn same_case(folder: &Path, found: Case, case: Case) -> Result<(), Error> {
    if found == case {
        return Ok(());
    }
    Err(Error::Unfit(format!(
        "{}: its words are {found:?}, but those of the vocabulary are {case:?}: maps look words up as the vocabulary spells them, so count with the same case",
        folder.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::super::config::{Graph, Phrases, Terms};
    use super::super::generators::Limits;
    use super::*;

    #[test]
    fn what_is_missing_or_left_over_is_named_with_what_to_do() {
        let none = Config::nothing(Limits::default());
        let refused = |config: &Config, folders: &Folders| {
            folders.check(config, Case::Uncased).unwrap_err().to_string()
        };
        let at = |name: &str| Some(PathBuf::from(name));
        Folders::default().check(&none, Case::Uncased).unwrap();
        for (config, stage, setting) in [
            (Config { entities: Config::default().entities, ..none.clone() }, "triples", "entities"),
            (Config { graph: Graph::Adjacent, ..none.clone() }, "triples", "graph"),
            (
                Config { phrases: Phrases::Neighbours(Default::default()), ..none.clone() },
                "counts",
                "phrases",
            ),
            (Config { terms: Terms::Relevance, ..none.clone() }, "pmi", "terms"),
        ] {
            let said = refused(&config, &Folders::default());
            assert!(
                said.contains(&format!("give its folder as {stage}, or set {setting} = \"none\"")),
                "{said}"
            );
        }
        for (folders, stage) in [
            (Folders { triples: at("x"), ..Folders::default() }, "triples"),
            (Folders { counts: at("x"), ..Folders::default() }, "counts"),
            (Folders { pmi: at("x"), ..Folders::default() }, "pmi"),
        ] {
            let said = refused(&none, &folders);
            assert!(
                said.starts_with(&format!("{stage} is x, but")) && said.contains("leave it out"),
                "{said}"
            );
        }
    }
}
