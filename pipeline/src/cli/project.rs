//! The project that a command is about: its config, found upward from the working folder unless one is named, and the folders that the config names.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use store::location::{Location, is_address};

use super::args::{Command, Common, Subcommand};

/// The config of a project.
pub(super) const FILE: &str = "engraft.toml";

/// Finds the config, and with it the folders that no option names. Those that a config names count from its own folder.
///
/// # Errors
/// When the working folder or the config cannot be read.
pub(super) fn settle(command: &mut Command) -> anyhow::Result<()> {
    if matches!(
        command.subcommand,
        Subcommand::Fetch { .. }
            | Subcommand::Diff { .. }
            | Subcommand::Encode { .. }
            | Subcommand::Init { .. }
            | Subcommand::Completions { .. }
            | Subcommand::Man { .. }
    ) {
        return Ok(());
    }
    let common = &mut command.common;
    let is_found = common.config.is_none();
    if is_found {
        common.config = found(&std::env::current_dir().context("the working folder cannot be told")?);
    }
    let Some(file) = common.config.clone() else { return Ok(()) };
    let folder = file.parent().unwrap_or(Path::new(""));
    if (common.data.is_some() && common.out.is_some())
        || matches!(command.subcommand, Subcommand::Config { .. })
    {
        return Ok(());
    }
    let folders = crate::config::folders(&file)?;
    if let (None, Some(data)) = (&common.data, &folders.data) {
        Location::parse(data).with_context(|| format!("{}: data is invalid", file.display()))?;
        common.data = Some(if is_address(data) { PathBuf::from(data) } else { folder.join(data) });
    }
    if common.out.is_none() {
        common.out = match &folders.out {
            Some(out) => {
                anyhow::ensure!(
                    !is_address(out),
                    "{}: out is a URL, expected a path on this machine",
                    file.display()
                );
                Some(folder.join(out))
            }
            None => is_found.then(|| folder.join("out")),
        };
    }
    Ok(())
}

/// `engraft.toml` in `folder` or one above; its path is as short as it can be said.
fn found(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().enumerate().find_map(|(up, above)| {
        let there = above.join(FILE).is_file();
        there.then(|| if up == 0 { PathBuf::from(FILE) } else { above.join(FILE) })
    })
}

impl Common {
    /// The folder of artifacts and the ledger.
    pub(super) fn out(&self) -> &Path {
        self.out.as_deref().unwrap_or(Path::new("out"))
    }
}
