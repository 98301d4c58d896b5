//! One stage in the caller's process, for tests that act between the steps of a training: its clock is asked at each.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::cancel::CancelToken;
use store::options::Options;

use crate::engine::fault::Faults;
use crate::engine::kept::Bounds;
use crate::engine::memo::Belief;
use crate::engine::observe::{Event, Observe};
use crate::engine::origin::Claim;
use crate::engine::run::Outcome;
use crate::engine::{Engine, Settings};
use crate::stage::remote::Remotes;

/// Watches nothing.
struct Nobody;

impl Observe for Nobody {
    fn event(&self, _: &Event<'_>) {}
}

/// Runs `stage` of the embedded config with `sets` in `out` and what it needs; `tick` is called whenever the time is asked for. Gives
/// what the stage failed with, or nothing if it did not fail.
///
/// # Errors
/// When the config or the output folder cannot be used.
pub fn run(
    stage: &str,
    sets: &[String],
    out: &Path,
    tick: impl Fn() + Send + Sync + 'static,
) -> anyhow::Result<Option<String>> {
    let remotes = Arc::new(Remotes::new(Options::new(&out.join("cache"))));
    let stages = crate::stage::all(&crate::config::load(None, sets)?, None, &remotes)?;
    let clock = move || {
        tick();
        Duration::ZERO
    };
    let settings = Settings {
        out: out.to_owned(),
        jobs: NonZeroUsize::MIN,
        restart: false,
        cancel: CancelToken::NEVER,
        faults: Faults::none(),
        clock: Arc::new(clock),
        version: "0.0.0".to_owned(),
        belief: Belief::Stamps,
        origin: None,
        claim: Claim::Respect,
        keep: Bounds::default(),
    };
    let summary = Engine::new(stages, settings)?.run(&[stage.to_owned()], &Nobody)?;
    Ok(match summary.of(stage) {
        Some(Outcome::Failed(error)) => Some(error.clone()),
        _ => None,
    })
}
