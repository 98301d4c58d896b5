//! What the command line hands to stores (cache, credentials, proxies), and remote inputs brought before stages are looked at. Holds no
//! logic of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base::cancel::CancelToken;
use store::options::{Environment, Options, user_cache};

use super::args::Common;
use super::project;
use super::{ending, print};
use crate::engine::Engine;
use crate::engine::stage::Input;
use crate::stage::remote::Remotes;

/// How stores work, from the arguments and the environment; `cancel` ends every wait.
pub(super) fn options(common: &Common, cancel: &CancelToken) -> Options {
    Options {
        cache_bytes: common.cache_bytes,
        deadline: Duration::from_secs(common.deadline),
        environment: Environment::of_os(std::env::vars_os()),
        cancel: cancel.clone(),
        ..Options::new(&common.cache.clone().unwrap_or_else(|| cache(common)))
    }
}

/// The user's cache folder; where there is none, that of the output folder.
#[expect(clippy::disallowed_methods, reason = "the command line is where the environment is read")]
fn cache(common: &Common) -> PathBuf {
    user_cache(|name| std::env::var_os(name)).unwrap_or_else(|| common.out().join(".cache/objects"))
}

/// Brings what the named stages and those they need read from elsewhere, but for files of which the depot knows what they are: such come when a stage reads them.
pub(super) fn bring(
    engine: &Engine,
    remotes: &Remotes,
    goals: &[String],
    cancel: &CancelToken,
) -> anyhow::Result<()> {
    let stages = engine.graph().needed(goals)?;
    let inputs = stages.into_iter().flat_map(|place| engine.graph().stage(place).inputs());
    let paths: Vec<PathBuf> = inputs.filter_map(Input::outside).collect();
    if let Some(depot) = engine.depot().filter(|_| engine.believes_stamps()) {
        depot.look()?;
        remotes.ask(&paths, &|state| depot.contents(state), cancel)?;
    }
    remotes.bring(&paths, cancel, &|location| print::note(&format!("fetching {location}")))
}

/// The options that say of which config and where, as they were given: what is to be typed again with the next command.
pub(super) fn given(common: &Common) -> String {
    let named = [
        ("--config", common.config.as_deref().filter(|config| *config != Path::new(project::FILE))),
        ("--data", common.data.as_deref()),
        ("--out", Some(common.out()).filter(|out| *out != Path::new("out"))),
    ];
    let given = named.into_iter().filter_map(|(name, path)| Some(format!(" {name} {}", ending::path(path?))));
    let depot = common.depot.iter().map(|depot| {
        // A query may be secret, and is to be typed again.
        format!(" --depot {}", ending::path(Path::new(&store::location::shown(depot))))
    });
    let preset = common.preset.iter().map(|name| format!(" --preset {name}"));
    preset.chain(given).chain(depot).collect()
}
