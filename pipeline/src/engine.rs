//! The runner: stages, artifacts and the ledger. Imports no other crate of ours and knows no concrete stage, no configuration
//! and no terminal.
//!
//! What it promises:
//! - A stage runs when its version, a described field, the contents of an input or its artifact has changed, and only then.
//! - An artifact appears whole or not at all, and the ledger's line is the last thing written.
//! - It may be killed at any moment: the next run makes the same bytes as if nothing had happened.
//! - It starts no child process, by design: stages are threads of the runner, so whatever ends the runner ends every writer
//!   with it, and the run lock is free at that same moment.

pub mod cancel;
pub mod clean;
pub mod context;
pub mod describe;
pub mod digest;
mod execute;
pub mod explain;
pub mod failure;
pub mod fault;
pub mod folder;
pub mod graph;
pub mod judge;
pub mod layout;
pub mod ledger;
pub mod lock;
pub mod memo;
pub mod observe;
pub mod progress;
mod publish;
pub mod run;
pub mod stage;
pub mod survey;
mod testing;
pub mod verify;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cancel::Cancel;
use fault::Faults;
use graph::Graph;
use layout::Layout;
use stage::Stage;

/// Tells the time since the Unix epoch. It goes into the ledger and onto the screen only, never into an artifact or a decision.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// What an engine is given by whoever starts it.
pub struct Settings {
    /// The output folder.
    pub out: PathBuf,
    /// How many stages run at once, and how many threads a stage may keep busy.
    pub jobs: NonZeroUsize,
    /// Set when somebody asks to stop.
    pub cancel: Cancel,
    /// Where to die, for tests of crashes.
    pub faults: Faults,
    /// The clock for the ledger.
    pub clock: Clock,
    /// The version of engraft, for the ledger.
    pub version: String,
}

/// The stages of a pipeline and the folder in which they leave their artifacts.
pub struct Engine {
    graph: Graph,
    layout: Layout,
    settings: Settings,
}

impl Engine {
    /// An engine for `stages`. Touches nothing on disk.
    ///
    /// # Errors
    /// When the stages do not fit together.
    pub fn new(stages: Vec<Box<dyn Stage>>, settings: Settings) -> Result<Self, graph::Error> {
        Ok(Self { graph: Graph::new(stages)?, layout: Layout::new(&settings.out), settings })
    }

    /// The stages.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Where things lie.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}
