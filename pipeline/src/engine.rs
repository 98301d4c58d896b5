//! The runner: stages, artifacts and the ledger. Imports no other crate of ours but `base`, no concrete stage, no
//! configuration and no terminal.
//!
//! What it promises:
//! - A stage runs when its version, a described field, the contents of an input or its artifact has changed, and only then.
//! - An artifact appears whole or not at all, and the ledger's line is the last thing written.
//! - What a run replaces is kept, within bounds: a stage whose settings and inputs are again as they were gets it back instead of running.
//! - It may be killed at any moment: the next run makes the same bytes as if nothing had happened.
//! - It starts no child process, by design: stages are threads of the runner, so whatever ends the runner ends every writer
//!   with it, and the run lock is free at that same moment.

pub(crate) mod clean;
pub(crate) mod context;
mod decay;
pub(crate) mod depot;
pub(crate) mod describe;
pub(crate) mod digest;
pub(crate) mod elsewhere;
pub(crate) mod error;
mod execute;
pub(crate) mod explain;
pub(crate) mod failure;
pub(crate) mod fault;
pub(crate) mod folder;
pub(crate) mod graph;
pub(crate) mod judge;
pub(crate) mod kept;
pub(crate) mod layout;
pub(crate) mod ledger;
pub(crate) mod licence;
mod live;
pub(crate) mod lock;
pub(crate) mod memo;
pub(crate) mod observe;
pub(crate) mod origin;
pub(crate) mod outcome;
pub(crate) mod progress;
mod publish;
pub(crate) mod ranks;
mod restore;
mod run;
pub(crate) mod share;
pub(crate) mod stage;
pub(crate) mod survey;
mod testing;
mod turn;
pub(crate) mod verify;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::cancel::CancelToken;
use depot::Depot;
use describe::Description;
use digest::Digest;
use elsewhere::Elsewhere;
use error::Error;
use fault::Faults;
use graph::Graph;
use judge::Bench;
use kept::Bounds;
use layout::Layout;
use memo::{Belief, Memo};
use origin::{Claim, Origin};
use ranks::Launch;
use stage::{Input, Stage};

/// Tells the time since the Unix epoch. It goes into the ledger and onto the screen only, never into an artifact or a decision.
pub(crate) type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// What an engine is given by whoever starts it.
pub(crate) struct Settings {
    /// The output folder.
    pub out: PathBuf,
    /// How many stages run at once, and how many threads a stage may keep busy.
    pub jobs: NonZeroUsize,
    /// Whether the stages that a run is asked for begin anew instead of resuming what an interrupted run left.
    pub restart: bool,
    /// Set when somebody asks to stop.
    pub cancel: CancelToken,
    /// Where to die, for tests of crashes.
    pub faults: Faults,
    /// The clock for the ledger.
    pub clock: Clock,
    /// The version of engraft, for the ledger.
    pub version: String,
    /// What is believed of files of which the memo knows a digest.
    pub belief: Belief,
    /// Where the stages come from; the output folder remembers it. Nothing where nobody asks.
    pub origin: Option<Origin>,
    /// What becomes of an output folder that belongs to another origin.
    pub claim: Claim,
    /// How much is kept of what a run replaces.
    pub keep: Bounds,
    /// Where artifacts are shared with other machines, if they are.
    pub depot: Option<Depot>,
    /// With whom this process was started, if with others.
    pub launch: Option<Launch>,
    /// The files that lie in stores, if some do.
    pub elsewhere: Option<Arc<dyn Elsewhere>>,
}

/// The stages of a pipeline and the folder in which they leave their artifacts.
pub(crate) struct Engine {
    graph: Graph,
    layout: Layout,
    settings: Settings,
}

impl Engine {
    /// An engine for `stages`. Touches nothing on disk.
    ///
    /// # Errors
    /// When the stages do not fit together.
    pub(crate) fn new(stages: Vec<Box<dyn Stage>>, settings: Settings) -> Result<Self, Error> {
        Ok(Self { graph: Graph::new(stages)?, layout: Layout::new(&settings.out), settings })
    }

    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// How much is kept of what a run replaces.
    pub(crate) fn bounds(&self) -> Bounds {
        self.settings.keep
    }

    /// Where artifacts are shared with other machines.
    pub(crate) fn depot(&self) -> Option<&Depot> {
        self.settings.depot.as_ref()
    }

    /// Whether files are believed to be as they were where nothing says otherwise.
    pub(crate) fn believes_stamps(&self) -> bool {
        self.settings.belief == Belief::Stamps
    }

    /// Where things lie.
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Fails if the output folder belongs to another origin than these stages, and is not to be taken over.
    ///
    /// # Errors
    /// When it does.
    pub(crate) fn admitted(&self) -> Result<(), Error> {
        self.settings
            .origin
            .as_ref()
            .map_or(Ok(()), |origin| origin.admit(&self.layout.origin(), self.settings.claim))
    }

    /// As [`Engine::admitted`]; then the output folder belongs to these stages.
    fn claim(&self) -> Result<(), Error> {
        self.admitted()?;
        self.settings.origin.as_ref().map_or(Ok(()), |origin| origin.remember(&self.layout.origin()))
    }

    /// What tells these stages, their settings and the places of what they read from others.
    fn settings_digest(&self) -> Result<Digest, Error> {
        let described = self.graph.needed(&[])?.into_iter().map(|place| {
            let stage = self.graph.stage(place);
            let mut description = Description::new(stage.version());
            stage.describe(&mut description);
            let files = stage.inputs().into_iter().filter_map(|input| match input {
                // Wherever the bytes of what lies in a store are on this machine, or whether they are here.
                Input::File { label, path } => Some((label, self.origin(&path))),
                Input::Artifact(_) => None,
            });
            (stage.name().to_owned(), description, files.collect::<Vec<_>>())
        });
        let text = serde_json::to_vec(&described.collect::<Vec<_>>());
        text.map(|text| Digest::of(&text)).map_err(|error| Error::new(error.to_string()))
    }

    /// Where an outside file comes from.
    fn origin(&self, path: &Path) -> String {
        let elsewhere = self.settings.elsewhere.as_ref().and_then(|files| files.identity(path));
        elsewhere.unwrap_or_else(|| path.to_string_lossy().into_owned())
    }

    fn bench<'a>(&'a self, memo: &'a Memo) -> Bench<'a> {
        let Settings { jobs, cancel, belief, elsewhere, .. } = &self.settings;
        let (layout, elsewhere) = (&self.layout, elsewhere.as_deref());
        Bench { layout, memo, elsewhere, jobs: *jobs, cancel, inputs: *belief, artifacts: *belief }
    }
}
