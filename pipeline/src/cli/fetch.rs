//! The subcommand `fetch`: lists the catalogue, or brings files of it into a folder.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::Context as _;
use base::cancel::CancelToken;
use serde_json::{Value, json};
use store::Store;
use store::location::Location;
use store::options::Options;

use super::exit::Exit;
use super::print::{self, Format};
use super::{measure, table};
use crate::catalog::{Catalog, Dataset, File};
use crate::engine::failure;
use crate::fetch::{self, Fetched};

/// What to fetch, and where to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish<'a> {
    /// Names of datasets; none lists them.
    pub(super) names: &'a [String],
    /// The data folder.
    pub(super) into: Option<&'a Path>,
    /// Another catalogue than the embedded one.
    pub(super) catalog: Option<&'a Path>,
    /// Most bytes of a file whose length the catalogue does not say.
    pub(super) max_bytes: u64,
}

/// Does what the subcommand says.
pub(super) fn fetch(
    wish: Wish<'_>,
    options: Options,
    cancel: &CancelToken,
    format: Format,
) -> anyhow::Result<Exit> {
    let catalog = Catalog::load(wish.catalog)?;
    if wish.names.is_empty() {
        print::result(format, || list(&catalog), || catalog.datasets.iter().map(entry).collect())?;
        return Ok(Exit::Ok);
    }
    let datasets = catalog.named(wish.names)?;
    let place = wish.into.unwrap_or(Path::new("DIR"));
    datasets.iter().try_for_each(|dataset| fetch::check(dataset, place))?;
    let into = wish.into.context("say where the files go with --into DIR (a config's --data later)")?;
    let _lock = fetch::lock(&datasets, into)?;
    let store = Store::new(options);
    for dataset in datasets {
        print::note(&notice(dataset));
        for file in &dataset.files {
            let mut watch =
                |_| if cancel.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
            match fetch::fetch(&store, dataset, file, into, wish.max_bytes, &mut watch) {
                Ok(fetched) => print::result(format, || vec![line(&fetched)], || vec![json!(fetched)])?,
                Err(_) if cancel.is_cancelled() => return Ok(Exit::Interrupted),
                Err(error) => {
                    print::note(&format!("error: {}", failure::text(&error)));
                    return Ok(Exit::Failed);
                }
            }
        }
    }
    Ok(Exit::Ok)
}

fn list(catalog: &Catalog) -> Vec<String> {
    let row = |dataset: &Dataset| {
        let bytes = dataset.bytes().filter(|_| !dataset.files.is_empty());
        let bytes = bytes.map_or_else(|| "unknown".to_owned(), measure::count);
        vec![
            dataset.name.clone(),
            dataset.access.name().to_owned(),
            bytes,
            dataset.about.clone(),
            dataset.licence.clone(),
        ]
    };
    let rows: Vec<_> = catalog.datasets.iter().map(row).collect();
    table::table(&["NAME", "ACCESS", "BYTES", "WHAT", "LICENCE"], &rows)
}

fn entry(dataset: &Dataset) -> Value {
    let files: Vec<Value> = dataset.files.iter().map(file).collect();
    json!({"name": dataset.name, "about": dataset.about, "access": dataset.access, "licence": dataset.licence,
           "page": dataset.page, "bytes": dataset.bytes().filter(|_| !dataset.files.is_empty()), "files": files})
}

/// A file, its URL without query: that may be a signature.
fn file(file: &File) -> Value {
    let url = Location::parse(&file.url).map_or_else(|_| String::new(), |location| location.to_string());
    json!({"path": file.path, "url": url, "bytes": file.bytes, "sha256": file.sha256})
}

/// What whoever fetches a dataset must have read.
fn notice(dataset: &Dataset) -> String {
    let cite = dataset.cite.as_ref().map_or_else(String::new, |cite| format!("\n  cite: {cite}"));
    format!(
        "{}: {}\n  licence: {}\n  page: {}{cite}",
        dataset.name, dataset.about, dataset.licence, dataset.page
    )
}

fn line(fetched: &Fetched) -> String {
    let (path, bytes) = (fetched.path.display(), measure::count(fetched.bytes));
    let how = match (fetched.there, fetched.resumed) {
        (true, _) => "there already".to_owned(),
        (false, 0) => "fetched".to_owned(),
        (false, resumed) => format!("fetched, {} bytes were there", measure::count(resumed)),
    };
    format!("{path}: {bytes} bytes, {how}, {} (sha256 {})", fetched.check, fetched.sha256)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_not_listed() {
        let url = "https://host/x.tsv?sig=hidden".to_owned();
        let shown = file(&File { path: "x.tsv".into(), url, bytes: Some(5), sha256: None });
        let expected = json!({"path": "x.tsv", "url": "https://host/x.tsv?...", "bytes": 5, "sha256": null});
        assert_eq!(shown, expected);
    }
}
