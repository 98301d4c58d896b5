//! What a part leaves beside what was made of it, for the stage that joins the parts.

use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Writes a file of a part's artifact.
///
/// # Errors
/// When the disk refuses.
pub(crate) fn write(folder: &Path, file: &str, what: &impl Serialize) -> anyhow::Result<()> {
    Ok(base::whole::write_whole(&folder.join(file), &serde_json::to_vec_pretty(what)?)?)
}

/// Reads it.
///
/// # Errors
/// When it is missing, or is not as it was written.
pub(crate) fn read<T: DeserializeOwned>(folder: &Path, file: &str) -> anyhow::Result<T> {
    let file = folder.join(file);
    let text = std::fs::read(&file).with_context(|| file.display().to_string())?;
    serde_json::from_slice(&text).with_context(|| format!("{} is not as it was written", file.display()))
}
