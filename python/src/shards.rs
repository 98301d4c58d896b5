//! Shards wherever they lie, and what they were made of where that lies beside them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use batch::family::TOKENIZER_FILE;
use kg::split::{self, Part, View};
use kg::table::Graph;
use pyo3::exceptions::{PyOSError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use store::Store;
use store::location::{self, Location};
use store::options::{Environment, Options, user_cache};
use tasks::negative::Draw;
use tasks::shard::index::{Index, TOKENIZER};
use tasks::stream::redraw::{Fresh, Redraw};
use tasks::stream::remote::Remote;
use tasks::stream::source::{Folder, Open};
use tasks::task::has_negatives;
use tasks::token::encode::{Case, Vocabulary};
use tasks::token::folder;
use tasks::token::rule::{Rule, Said};

use crate::kernel::pool::pool;
use crate::raised::{raised, unfit};
use crate::settings::{Arguments, Negatives, Settings};

/// Where things are.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// The folder of shards, or its URL.
    pub(crate) shards: String,
    /// The output folder whose triples and split the shards were made of.
    graph: Option<PathBuf>,
    /// Where remote shards are cached.
    cache: Option<PathBuf>,
    negatives: Negatives,
}

impl Places {
    /// Takes the arguments that name places.
    ///
    /// # Errors
    /// Names the first that is none.
    pub(crate) fn take(shards: String, from: &Arguments<'_, '_>) -> PyResult<Self> {
        let shards = match Location::parse(&shards) {
            // A URL of this machine's own, too.
            Ok(Location::Local(folder)) => folder.to_string_lossy().into_owned(),
            _ => shards,
        };
        let path = |name: &str| from.take(name)?.map(|found| found.extract::<PathBuf>()).transpose();
        Ok(Self { shards, graph: path("graph")?, cache: path("cache")?, negatives: from.negatives()? })
    }

    /// Opens the shards.
    ///
    /// # Errors
    /// When they, or what negatives are drawn from, cannot be read.
    pub(crate) fn open(&self) -> PyResult<Opened> {
        let (index, place): (Index, Arc<dyn Open>) = if location::is_remote(&self.shards) {
            let remote = self.remote()?;
            (remote.index().map_err(|error| raised(&error))?, Arc::new(remote))
        } else {
            let folder = PathBuf::from(&self.shards);
            (Index::read(&folder).map_err(|error| raised(&error))?, Arc::new(Folder(folder)))
        };
        Ok(Opened { index, place })
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "there is no command line in Python that would read the environment"
    )]
    fn remote(&self) -> PyResult<Remote> {
        let location = Location::parse(&self.shards)
            .map_err(|error| PyValueError::new_err(format!("path={:?}: {error}", self.shards)))?;
        let cache = match &self.cache {
            Some(cache) => cache.clone(),
            None => user_cache(|name| std::env::var_os(name)).ok_or_else(|| {
                unfit(
                    "cache",
                    "None",
                    "a folder for what is read of remote shards: there is neither XDG_CACHE_HOME nor HOME",
                )
            })?,
        };
        let environment = Environment::of_os(std::env::vars_os());
        Ok(Remote::new(Store::new(Options { environment, ..Options::new(&cache) }), location))
    }

    /// What draws the negatives of later epochs, if they are drawn.
    ///
    /// # Errors
    /// When they are to be drawn and what from is not there, or is not what the shards were made of.
    pub(crate) fn redraw(
        &self,
        py: Python<'_>,
        index: &Index,
        settings: &Settings,
    ) -> PyResult<Option<Arc<dyn Redraw>>> {
        let drawn =
            settings.config.part == Part::Train && index.tasks.iter().any(|task| has_negatives(task.task));
        let set = index.negatives.config.draw == Draw::Fresh;
        match self.negatives {
            _ if !drawn => Ok(None),
            Negatives::Stored => Ok(None),
            Negatives::AsSet if !set => Ok(None),
            Negatives::Fresh if !set => Err(unfit(
                "negatives",
                "\"fresh\"",
                "None or \"stored\", since these shards were made with negatives for all epochs (shards.negatives.draw)",
            )),
            Negatives::Fresh => self.fresh(py, index).map(Some),
            Negatives::AsSet if self.graph.is_some() || self.made_of().is_some() => {
                self.fresh(py, index).map(Some)
            }
            Negatives::AsSet => {
                let text = c"the shards' settings draw negatives anew for every epoch, but the triples that these are drawn from do not lie beside the shards: every epoch shows those of the first. Name the output folder with graph=, or say negatives=\"stored\".";
                PyErr::warn(py, &py.get_type::<PyUserWarning>(), text, 2)?;
                Ok(None)
            }
        }
    }

    /// The output folder of the shards, where it has what they were made of.
    fn made_of(&self) -> Option<PathBuf> {
        if location::is_remote(&self.shards) {
            return None;
        }
        let out = std::path::absolute(&self.shards).ok()?.parent()?.to_owned();
        (out.join("triples").is_dir() && out.join("split").is_dir()).then_some(out)
    }

    fn fresh(&self, py: Python<'_>, index: &Index) -> PyResult<Arc<dyn Redraw>> {
        let out = self.graph.clone().or_else(|| self.made_of()).ok_or_else(|| {
            unfit(
                "graph",
                "None",
                "an output folder with the artifacts `triples` and `split` that the shards were made of",
            )
        })?;
        let tokenizer = match location::is_remote(&self.shards) {
            true => out.join("shards").join(TOKENIZER),
            false => Path::new(&self.shards).join(TOKENIZER),
        };
        // rayon's own threads would be missing in a process that was forked, and be waited for without end.
        let pool = pool(py)?;
        py.detach(|| pool.install(|| drawn_from(&out, &tokenizer, index)))
    }
}

/// What draws from the graph below `out`.
fn drawn_from(out: &Path, tokenizer: &Path, index: &Index) -> PyResult<Arc<dyn Redraw>> {
    let unread = |error: &dyn std::fmt::Display| PyOSError::new_err(error.to_string());
    let graph = Graph::read(&out.join("triples")).map_err(|error| unread(&error))?;
    let parts =
        split::read::read(&out.join("split"), &View::of(&graph)).map_err(|error| unread(&error))?.part;
    if !tokenizer.is_dir() {
        let problem = "the vocabulary, which an older engraft did not put beside the shards, is not there";
        let remedy = "run `engraft run shards` again, or say negatives=\"stored\"";
        return Err(PyOSError::new_err(format!("{}: {problem}: {remedy}", tokenizer.display())));
    }
    let vocabulary = vocabulary(tokenizer).map_err(|error| raised(&error))?;
    let fresh = Fresh::new(index, &graph, &parts, &vocabulary).map_err(|error| raised(&error))?;
    Ok(Arc::new(fresh))
}

/// The vocabulary that was put beside the shards, as they were encoded with it: what `folder::of_folder` doubts, the config may have wanted.
fn vocabulary(beside: &Path) -> Result<Vocabulary, tasks::Error> {
    let said = Said::read(&beside.join(TOKENIZER_FILE))?;
    let rule = said.map_or_else(|| Ok(Rule::from(Case::Uncased)), |said| said.rule(None))?;
    Vocabulary::load(&folder::find(beside)?, rule)
}

/// Shards that are open.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) index: Index,
    pub(crate) place: Arc<dyn Open>,
}
