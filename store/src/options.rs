//! What a store is given by whoever opens it. Reads no environment itself.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::cancel::CancelToken;

/// How a store works.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder of the cache; made when the first object is put there.
    pub cache: PathBuf,
    /// How many bytes the cache may hold.
    pub cache_bytes: u64,
    /// How many bytes a block of the cache holds, which is the least that is asked of a server.
    pub block_bytes: u64,
    /// How often a request is made again after a failure that may pass.
    pub retries: u32,
    /// How long a server may be silent.
    pub patience: Duration,
    /// How long to wait before the first try again; doubled at each, with chance, up to `patience`.
    pub backoff: Duration,
    /// How long one object, or one answer about it, may take in all, tries and waits included.
    pub deadline: Duration,
    /// How many bytes a server must send in each `patience`; a slower one is given up.
    pub least_bytes: u64,
    /// Asked several times a second while a server is waited for.
    pub cancel: CancelToken,
    /// Credentials, endpoints and proxies.
    pub environment: Environment,
}

impl Options {
    /// The usual ones around a cache in `cache`: nobody is signed for, and nobody asks to stop.
    #[must_use]
    pub fn new(cache: &Path) -> Self {
        Self {
            cache: cache.to_owned(),
            cache_bytes: 50_000_000_000,
            block_bytes: 4 << 20,
            retries: 5,
            patience: Duration::from_secs(30),
            backoff: Duration::from_millis(200),
            deadline: Duration::from_secs(6 * 60 * 60),
            // 2 kB/s: slower than any line on which a file would ever come.
            least_bytes: 1 << 16,
            environment: Environment::empty(),
            cancel: CancelToken::NEVER,
        }
    }
}

/// engraft's folder in the user's cache folder, by what `variable` says of `XDG_CACHE_HOME` and `HOME`; none where there is neither.
pub fn user_cache(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let named = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let user = named("XDG_CACHE_HOME").or_else(|| named("HOME").map(|home| home.join(".cache")));
    user.map(|user| user.join("engraft"))
}

/// Credentials, endpoints and proxies under the names of their environment variables. Values are never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Environment(BTreeMap<String, String>);

const PROXIES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];
const CLOUDS: [&str; 3] = ["AWS_", "GOOGLE_", "AZURE_"];

impl Environment {
    /// Takes what concerns stores from a process's variables: `AWS_*`, `GOOGLE_*`, `AZURE_*` and the four proxies, which may be
    /// written small. Empty ones are left out.
    pub fn of(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let taken = variables.into_iter().filter_map(|(name, value)| {
            let name = name.to_ascii_uppercase();
            let concerns =
                CLOUDS.iter().any(|cloud| name.starts_with(cloud)) || PROXIES.contains(&name.as_str());
            (concerns && !value.is_empty()).then_some((name, value))
        });
        Self(taken.collect())
    }

    /// The same of variables as the system has them; those that are no text are left out.
    pub fn of_os(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let text =
            |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        Self::of(variables.into_iter().filter_map(text))
    }

    /// Nothing: everybody is asked without a name and directly.
    #[must_use]
    pub fn empty() -> Self {
        Self(BTreeMap::new())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// What begins with `prefix`, such as `AWS_`.
    pub(crate) fn of_cloud(&self, prefix: &str) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        pairs.filter(move |(name, _)| name.starts_with(prefix))
    }

    pub(crate) fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.0.contains_key(*name))
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_concerns_stores_is_taken_and_no_value_is_shown() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let given = [
            pair("AWS_SECRET_ACCESS_KEY", "hidden"),
            pair("https_proxy", "p"),
            pair("HOME", "h"),
            pair("AWS_REGION", ""),
        ];
        let taken = Environment::of(given);
        assert_eq!(taken.get("HTTPS_PROXY"), Some("p"));
        assert_eq!((taken.get("HOME"), taken.get("AWS_REGION")), (None, None));
        assert_eq!(format!("{taken:?}"), r#"{"AWS_SECRET_ACCESS_KEY", "HTTPS_PROXY"}"#);
    }
}
