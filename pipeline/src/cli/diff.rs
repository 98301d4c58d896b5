//! What changed between two triple tables.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Context as _;
use kg::table::Graph;
use kg::table::schema::Table;
use serde_json::{Value, json};

use super::exit::Exit;
use super::print::{self, Format};
use super::table;

/// The examples of `diff`.
pub(super) const HELP: &str = "\
Examples:
  engraft diff out-2025AA/triples out-2025AB/triples
  engraft diff old new --into changes   writes changes/moved.parquet
  engraft diff old new --json           exit code 3 if anything changed";

/// Compares the tables in two folders, prints the report, and writes the list of moved entities into `list`, if it is given.
pub(super) fn diff(old: &Path, new: &Path, list: Option<&Path>, format: Format) -> anyhow::Result<Exit> {
    let (before, folder) = (old, new);
    let old = Graph::read(before)?;
    let new = Graph::read(folder)?;
    let retired = if folder.join(Table::Retired.file()).exists() {
        kg::table::read::retired(folder)?
    } else {
        print::note(&format!(
            "note: {} has no {}: what a source gave up is found by its text alone, or counts as removed",
            folder.display(),
            Table::Retired.file()
        ));
        HashMap::new()
    };
    let mut found = kg::diff::diff(&old, &new, |key| retired.get(key).cloned());
    found.read_texts(before, folder)?;
    if let Some(folder) = list {
        std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot make it", folder.display()))?;
        found.write(folder, &old, &new)?;
    }
    let report = json!(found.report);
    print::result(format, || lines(&report), || vec![report.clone()])?;
    let found = &found.report;
    let relations = &found.relations;
    let named = [&relations.added, &relations.removed, &relations.turned, &relations.reworded];
    let named: usize = named.into_iter().map(Vec::len).sum();
    let entities = &found.entities;
    let moved = entities.old + entities.new - 2 * entities.kept + entities.renumbered + entities.renamed;
    let triples = &found.triples;
    let counted = moved + triples.added + triples.removed + triples.turned;
    let said = found.texts.values().chain([&found.types, &found.same_as]);
    let said: u64 = said.map(|delta| delta.added + delta.removed).sum();
    let changed = counted + said > 0 || named > 0 || !found.by_source.is_empty();
    Ok(if changed { Exit::Found } else { Exit::Ok })
}

fn lines(report: &Value) -> Vec<String> {
    let facts = report.as_object().into_iter().flatten();
    facts.flat_map(|(key, value)| table::fact(key, value)).collect()
}
