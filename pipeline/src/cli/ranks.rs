//! A run as one of several processes.

use base::cancel::CancelToken;

use super::args::Subcommand;
use super::exit::Exit;
use super::print;
use crate::engine::ranks::Launch;
use crate::engine::{Engine, failure};

/// With whom a run was started, by the variables of `torchrun`.
///
/// # Errors
/// When they contradict one another.
#[expect(clippy::disallowed_methods, reason = "the command line is where the environment is read")]
pub(super) fn launch(subcommand: &Subcommand) -> anyhow::Result<Option<Launch>> {
    match subcommand {
        Subcommand::Run { .. } => Launch::given(|name| std::env::var(name).ok()),
        _ => Ok(None),
    }
}

/// What a run comes to that works along with that of rank 0; nothing of others.
pub(super) fn follow(engine: &Engine, cancel: &CancelToken) -> Option<anyhow::Result<Exit>> {
    Some(match engine.follow(&print::note)? {
        Ok(()) => Ok(Exit::Ok),
        Err(_) if cancel.is_cancelled() => Ok(Exit::Interrupted),
        Err(error) => {
            print::note(&format!("error: {}", failure::text(&error)));
            Ok(Exit::Failed)
        }
    })
}
