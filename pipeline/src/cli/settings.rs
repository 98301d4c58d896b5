//! `engraft config` and `engraft init`: the settings that there are, and a first config.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::args::Common;
use super::exit::Exit;
use super::project::FILE;
use crate::config::layer::preset;
use crate::config::resolved::Origins;
use crate::config::{self, schema};

/// Prints every setting of the config, or the JSON Schema of all configs.
///
/// # Errors
/// When the config is invalid, or nothing can be printed.
pub(super) fn show(common: &Common, of: Option<&str>, origins: Origins) -> anyhow::Result<Exit> {
    let config = match of {
        Some(name) => config::of_text(&format!("preset {name}"), preset(name)?, None, &common.set)?,
        None => config::load(common.config.as_deref(), &common.set)?,
    };
    lines(&config.resolved(origins))?;
    Ok(Exit::Ok)
}

/// Prints the JSON Schema of configs.
///
/// # Errors
/// When nothing can be printed.
pub(super) fn schema() -> anyhow::Result<Exit> {
    lines(&serde_json::to_string_pretty(schema::schema())?)?;
    Ok(Exit::Ok)
}

/// Prints the reference of all settings.
///
/// # Errors
/// When nothing can be printed.
pub(super) fn reference() -> anyhow::Result<Exit> {
    lines(&config::reference::markdown())?;
    Ok(Exit::Ok)
}

/// Writes a first config into the working folder.
///
/// # Errors
/// When there is one already, or it cannot be written.
pub(super) fn init(name: &str) -> anyhow::Result<Exit> {
    let path = PathBuf::from(FILE);
    anyhow::ensure!(!path.exists(), "{FILE} is there already: edit it, or remove it first");
    let about = preset(name)?.lines().next().unwrap_or_default().trim_start_matches('#').trim();
    let text = FIRST.replace("PRESET", name).replace("ABOUT", about);
    base::whole::write_whole(Path::new(&path), text.as_bytes()).with_context(|| FILE.to_owned())?;
    lines(&format!("wrote {FILE}; next: engraft plan, engraft run"))?;
    Ok(Exit::Ok)
}

/// A first config.
const FIRST: &str = r#"# ABOUT
# All settings, and where each comes from: engraft config --origin. The reference: docs/config.md.
version = 5
extends = "PRESET"
# data = "data"                   # what paths below count from
out = "out"                       # artifacts, models, scores

# [sources.triples.mine]          # your own graph: a TSV file with columns subject, relation, object
# table.files = ["triples.tsv"]
"#;

fn lines(text: &str) -> std::io::Result<()> {
    text.trim_end().lines().try_for_each(super::print::line)
}
