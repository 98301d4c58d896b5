//! What the binary does, in the caller's process: for tests that act between the steps of a training, or that plan and run thousands of configs.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::cancel::CancelToken;
use store::options::Options;

use crate::config::resolved::Origins;
use crate::engine::fault::Faults;
use crate::engine::kept::Bounds;
use crate::engine::memo::Belief;
use crate::engine::observe::{Event, Observe};
use crate::engine::origin::Claim;
use crate::engine::outcome::Outcome;
use crate::engine::survey::State;
use crate::engine::{Clock, Engine, Settings};
use crate::stage::remote::Remotes;

/// Watches nothing.
struct Nobody;

impl Observe for Nobody {
    fn event(&self, _: &Event<'_>) {}
}

/// A config with `--set`s, where its data lie and where its artifacts go.
#[derive(Debug, Clone)]
pub struct Trial {
    /// The config's file; without one, the embedded config.
    pub config: Option<PathBuf>,
    /// Its `--set`s.
    pub sets: Vec<String>,
    /// What relative locations count from.
    pub data: Option<PathBuf>,
    /// The folder of artifacts.
    pub out: PathBuf,
}

/// What became of a stage that was not up to date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Became {
    /// Its artifact is there.
    Made,
    /// It failed, with this message.
    Failed(String),
    /// It did not run: another one failed, or somebody asked to stop.
    NotMade,
}

impl Trial {
    /// The whole config as TOML, every default stated.
    ///
    /// # Errors
    /// When the config cannot be read.
    pub fn resolved(&self) -> anyhow::Result<String> {
        Ok(crate::config::load(self.config.as_deref(), &self.sets)?.resolved(Origins::Unsaid))
    }

    /// What `plan` says: the stages that are not up to date.
    ///
    /// # Errors
    /// With its message when it refuses the config.
    pub fn plan(&self) -> anyhow::Result<Vec<String>> {
        let found = self.engine(CancelToken::NEVER, Arc::new(|| Duration::ZERO))?.survey(&[])?;
        if let Some(error) = found.iter().find_map(|finding| finding.error.clone()) {
            anyhow::bail!(error);
        }
        let stale = found.into_iter().filter(|finding| finding.state != State::Fresh);
        Ok(stale.map(|finding| finding.stage).collect())
    }

    /// Runs `stages` and what they need; all stages where none is named. Gives what became of those that were not up to date.
    ///
    /// # Errors
    /// When the config or the output folder cannot be used.
    pub fn run(&self, stages: &[String], cancel: CancelToken) -> anyhow::Result<BTreeMap<String, Became>> {
        self.run_by(stages, cancel, Arc::new(|| Duration::ZERO))
    }

    fn run_by(
        &self,
        stages: &[String],
        cancel: CancelToken,
        clock: Clock,
    ) -> anyhow::Result<BTreeMap<String, Became>> {
        let summary = self.engine(cancel, clock)?.run(stages, &Nobody)?;
        let became = |outcome| match outcome {
            Outcome::Fresh | Outcome::Away => None,
            Outcome::Done(_) | Outcome::Restored | Outcome::Pulled => Some(Became::Made),
            Outcome::Failed(error) => Some(Became::Failed(error)),
            Outcome::Skipped(_) | Outcome::Interrupted => Some(Became::NotMade),
        };
        Ok(summary.outcomes.into_iter().filter_map(|(stage, of)| Some((stage, became(of)?))).collect())
    }

    fn engine(&self, cancel: CancelToken, clock: Clock) -> anyhow::Result<Engine> {
        let remotes = Arc::new(Remotes::new(Options::new(&self.out.join("cache"))));
        let config = crate::config::load(self.config.as_deref(), &self.sets)?;
        let stages = crate::stage::all(&config, self.data.as_deref(), &remotes)?;
        let settings = Settings {
            out: self.out.clone(),
            jobs: NonZeroUsize::MIN,
            restart: false,
            cancel,
            faults: Faults::none(),
            clock,
            version: "0.0.0".to_owned(),
            belief: Belief::Stamps,
            origin: None,
            depot: None,
            launch: None,
            elsewhere: Some(remotes),
            claim: Claim::Respect,
            keep: Bounds::default(),
        };
        Ok(Engine::new(stages, settings)?)
    }
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
    let trial = Trial { config: None, sets: sets.to_vec(), data: None, out: out.to_owned() };
    let clock = move || {
        tick();
        Duration::ZERO
    };
    let mut became = trial.run_by(&[stage.to_owned()], CancelToken::NEVER, Arc::new(clock))?;
    Ok(match became.remove(stage) {
        Some(Became::Failed(error)) => Some(error),
        _ => None,
    })
}
