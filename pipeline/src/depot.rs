//! The depot that a config or the command line names: where its objects are, as the engine sees them. Decides nothing about artifacts.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use store::depot::{Created, Depot as Place};
use store::location::{Location, Scheme};
use store::options::Options;
use store::{Error, Store};

use crate::engine::depot::{Access, Depot, Object, Objects, Sink};

/// The table `[depot]` of a config.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// Where artifacts are shared: `s3://bucket/prefix`, `gs://`, `az://`, a path from this file's folder (if another config extends this one, from
    /// that one's), or `https://` to read from. `--depot` takes precedence, and is needed where this is left out. Shapes no artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Whether artifacts are only taken from the depot, by whatever it is named, and none are put there. Shapes no artifact.
    ///
    /// Source: ours: who may write says so by credentials.
    #[serde(default)]
    pub read_only: bool,
    /// The highest licence level, 0 to 9, of what is put into the depot: artifacts of sources with a higher `level`, of benchmarks and texts that are `restricted`, and whatever is made of these, stay
    /// here. A source without `level`, and any other file, counts as free. Left out, all is put there. Shapes no artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_level: Option<u8>,
}

/// A depot as somebody has named it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<'a> {
    /// A URL or a path.
    pub(crate) url: &'a str,
    /// Where a relative path counts from.
    pub(crate) folder: &'a Path,
    pub(crate) access: Access,
    /// The highest licence level of what is put there.
    pub(crate) max_level: Option<u8>,
}

impl Named<'_> {
    /// The depot there, with credentials and proxies of `options`. Asks for nothing.
    ///
    /// # Errors
    /// When it is no location.
    pub(crate) fn depot(&self, options: Options) -> anyhow::Result<Depot> {
        anyhow::ensure!(
            !self.url.trim().is_empty(),
            "the depot's place is empty: expected s3://, gs://, az://, https:// or a path"
        );
        anyhow::ensure!(
            self.max_level.is_none_or(|level| level <= 9),
            "depot.max_level is {}, expected a licence level, from 0 to 9",
            self.max_level.unwrap_or_default()
        );
        let location = match Location::parse(self.url).context("the depot's place is invalid")? {
            Location::Local(path) => Location::Local(self.folder.join(path)),
            remote @ Location::Remote(_) => remote,
        };
        // Nothing can be put on a web server.
        let is_web = matches!(&location, Location::Remote(address) if address.scheme() == Scheme::Http);
        let access = if is_web { Access::Read } else { self.access };
        Ok(Depot::new(Arc::new(Shared(Place::new(Store::new(options), location))), access)
            .up_to(self.max_level))
    }
}

/// The objects of a place.
#[derive(Debug)]
struct Shared(Place);

impl Shared {
    fn said<T>(&self, key: &str, done: Result<T, Error>) -> anyhow::Result<T> {
        done.with_context(|| format!("the depot {}: {key}", self.0.root()))
    }
}

impl Objects for Shared {
    fn place(&self) -> String {
        self.0.root().to_string()
    }

    fn read(&self, key: &str) -> anyhow::Result<Option<Vec<u8>>> {
        self.said(key, self.0.read(key))
    }

    fn length(&self, key: &str) -> anyhow::Result<Option<u64>> {
        self.said(key, self.0.length(key))
    }

    fn fetch(&self, key: &str, to: Sink<'_>) -> anyhow::Result<bool> {
        self.said(key, self.0.fetch(key, to))
    }

    fn put(&self, key: &str, from: &Path, sent: &dyn Fn(u64)) -> anyhow::Result<()> {
        self.said(key, self.0.put(key, from, sent))
    }

    fn create(&self, key: &str, bytes: &[u8]) -> anyhow::Result<bool> {
        self.said(key, self.0.create(key, bytes)).map(|created| created == Created::New)
    }

    fn list(&self, prefix: &str) -> anyhow::Result<Vec<Object>> {
        Ok(self.said(prefix, self.0.list(prefix))?.into_iter().map(object).collect())
    }

    fn unfinished(&self) -> anyhow::Result<Vec<Object>> {
        Ok(self.said("", self.0.unfinished())?.into_iter().map(object).collect())
    }

    fn remove(&self, key: &str) -> anyhow::Result<()> {
        self.said(key, self.0.remove(key))
    }
}

fn object(found: store::depot::Listed) -> Object {
    Object { key: found.key, bytes: found.bytes, modified: found.modified }
}
