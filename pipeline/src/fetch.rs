//! Files of the catalogue brought into a data folder: resumed, checked, and only then given their names. Prints nothing.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;
use store::location::Location;
use store::{Store, Watch};

use crate::catalog::{Access, Dataset, File};
use crate::engine::lock::{Lock, Refused};

/// Held in the data folder while files are brought there.
const LOCK: &str = ".engraft-fetch.lock";

/// What came of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Fetched {
    pub dataset: String,
    /// Where it lies.
    pub path: PathBuf,
    pub bytes: u64,
    /// How many bytes an earlier attempt had left.
    pub resumed: u64,
    /// SHA-256 of what lies there.
    pub sha256: String,
    /// Whether the catalogue knows that digest: `verified` or `unverified`.
    pub check: &'static str,
    /// Whether it was there before.
    pub there: bool,
}

/// Refuses a dataset that cannot be fetched, with the place to get it and to put it.
///
/// # Errors
/// When it is licensed.
pub(crate) fn check(dataset: &Dataset, into: &Path) -> anyhow::Result<()> {
    let place = dataset.place.clone().unwrap_or_default();
    anyhow::ensure!(
        dataset.access == Access::Open,
        "{} is licensed, and nobody can sign for you: {} Get it at {} and put it into {}",
        dataset.name,
        sentence(&dataset.licence),
        dataset.page,
        into.join(place).display()
    );
    Ok(())
}

fn sentence(text: &str) -> String {
    format!("{}.", text.trim_end_matches('.'))
}

/// Keeps every other `fetch` out of `into`. Nothing where all files are there: they are only read then.
///
/// # Errors
/// When another `fetch` is at work there, or the folder cannot be written.
pub(crate) fn lock(datasets: &[&Dataset], into: &Path) -> anyhow::Result<Option<Lock>> {
    if datasets.iter().flat_map(|dataset| &dataset.files).all(|file| into.join(&file.path).exists()) {
        return Ok(None);
    }
    match Lock::take(&into.join(LOCK)) {
        Ok(lock) => Ok(Some(lock)),
        Err(Refused::Held { folder, holder }) => anyhow::bail!(
            "another engraft ({holder}) is fetching into {}: wait for it to end, stop it, or choose another folder with --into",
            folder.display()
        ),
        Err(error) => Err(error.into()),
    }
}

/// Brings one file of `dataset` below `into`. What an earlier attempt left beside it as `NAME.part` is resumed. The catalogue says how many
/// bytes it has; where it does not, `most` bounds them.
///
/// # Errors
/// When it cannot be fetched, is not what the catalogue says (nothing of it is then kept), or another file has its name.
pub(crate) fn fetch(
    store: &Store,
    dataset: &Dataset,
    file: &File,
    into: &Path,
    most: u64,
    watch: Watch<'_>,
) -> anyhow::Result<Fetched> {
    let path = into.join(&file.path);
    let told = |bytes, resumed, sha256, there| Fetched {
        dataset: dataset.name.clone(),
        path: path.clone(),
        bytes,
        resumed,
        sha256,
        check: if file.sha256.is_some() { "verified" } else { "unverified" },
        there,
    };
    if path.exists() {
        let (bytes, sha256) = store::sha256(&path)?;
        anyhow::ensure!(
            file.sha256.as_ref().is_none_or(|expected| *expected == sha256),
            "{} is there and is another file: expected sha256 {}, found {sha256}; move it away to fetch the published one",
            path.display(),
            file.sha256.as_deref().unwrap_or_default()
        );
        return Ok(told(bytes, 0, sha256, true));
    }
    let folder = path.parent().unwrap_or(into);
    fs::create_dir_all(folder).with_context(|| format!("{}: cannot make the folder", folder.display()))?;
    let part = part(&path);
    let location = Location::parse(&file.url)?;
    let done = store.download(&location, &part, file.bytes.unwrap_or(most), watch).map_err(|error| match (error, file.bytes) {
        (error @ store::Error::TooLong { .. }, Some(_)) => anyhow::anyhow!(
            "{error}: this is not the file that the catalogue describes; nothing is kept. It may have been replaced at its source"
        ),
        (error @ store::Error::TooLong { .. }, None) => anyhow::anyhow!(
            "{error}: the catalogue does not say how long the file is; --max-bytes N allows more; nothing is kept"
        ),
        (error, _) => error.into(),
    })?;
    let wrong_length = file.bytes.is_some_and(|bytes| bytes != done.bytes);
    let wrong = file.sha256.as_ref().is_some_and(|expected| *expected != done.sha256);
    if wrong || wrong_length {
        store.forget(&part)?;
        let (bytes, sha256) =
            (file.bytes.unwrap_or(done.bytes), file.sha256.as_ref().unwrap_or(&done.sha256));
        anyhow::bail!(
            "{location}: this is not the file that the catalogue describes: expected sha256 {sha256} and {bytes} bytes, found sha256 \
             {} and {} bytes; nothing is kept. It may have been replaced at its source, or changed on the way",
            done.sha256,
            done.bytes
        );
    }
    fs::rename(&part, &path).with_context(|| format!("{}: cannot give it its name", path.display()))?;
    fs::File::open(folder).and_then(|folder| folder.sync_all())?;
    store.forget(&part)?;
    Ok(told(done.bytes, done.resumed, done.sha256, false))
}

/// Where a file lies until it is whole and checked.
fn part(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_fetch_is_refused_while_there_is_something_to_fetch() {
        let dir = tempfile::tempdir().unwrap();
        let catalog = crate::catalog::Catalog::load(None).unwrap();
        let open: Vec<&Dataset> = catalog.datasets.iter().filter(|set| set.access == Access::Open).collect();
        let first = lock(&open, dir.path()).unwrap();
        assert!(first.is_some());
        let error = lock(&open, dir.path()).unwrap_err().to_string();
        assert!(error.contains("fetching into") && error.contains("--into"), "{error}");
        assert!(lock(&[], dir.path()).unwrap().is_none(), "nothing to fetch");
        drop(first);
        assert!(lock(&open, dir.path()).unwrap().is_some());
    }
}
