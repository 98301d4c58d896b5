//! The project that a command is about: its config, found upward from the working folder unless one is named, and the folders that the config names.

use std::path::{Path, PathBuf};
use std::sync::Once;

use anyhow::Context as _;
use store::location::{Location, is_address};

use super::args::{Command, Common, Subcommand};
use super::print;
use crate::config::layer::preset;
use crate::config::{self, Config};
use crate::engine::digest::Digest;
use crate::engine::origin::{Origin, PRESET};

/// The config of a project.
pub(super) const FILE: &str = "engraft.toml";

/// Finds the config, and with it the folders that no option names. Those that a config names count from its own folder.
///
/// # Errors
/// When the working folder or the config cannot be read.
pub(super) fn settle(command: &mut Command) -> anyhow::Result<()> {
    meant(command)?;
    if matches!(
        command.subcommand,
        Subcommand::Fetch { .. }
            | Subcommand::Diff { .. }
            | Subcommand::Compare { .. }
            | Subcommand::Init
            | Subcommand::Completions { .. }
            | Subcommand::Man { .. }
    ) {
        return Ok(());
    }
    let common = &mut command.common;
    if let Some(name) = &common.preset {
        return preset(name).map(drop);
    }
    let is_found = common.config.is_none();
    if is_found {
        common.config = found(&std::env::current_dir().context("the working folder cannot be told")?);
    }
    let Some(file) = common.config.clone() else {
        // What stands on the command line alone counts from where that is given; the note that it is read says so.
        if common.data.is_none() && !config::in_place_of_world(&common.set)?.is_empty() {
            common.data = Some(PathBuf::from("."));
        }
        return Ok(());
    };
    let folder = file.parent().unwrap_or(Path::new(""));
    if (common.data.is_some() && common.out.is_some())
        || matches!(command.subcommand, Subcommand::Config { .. })
    {
        return Ok(());
    }
    let folders = config::folders(&file)?;
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

/// Refuses a preset where a config is named as well, or where none is read.
///
/// # Errors
/// Says what to leave out.
fn meant(command: &Command) -> anyhow::Result<()> {
    let Common { config, preset: named, .. } = &command.common;
    // The grammar sees this only where both stand on the same side of the subcommand.
    anyhow::ensure!(
        config.is_none() || named.is_none(),
        "--preset stands in place of --config: give one of them, or a config that extends the preset"
    );
    let takes_none = matches!(
        command.subcommand,
        Subcommand::Fetch { .. }
            | Subcommand::Diff { .. }
            | Subcommand::Compare { .. }
            | Subcommand::Completions { .. }
            | Subcommand::Man { .. }
    );
    anyhow::ensure!(
        named.is_none() || !takes_none,
        "--preset goes with subcommands that read a config, which this one does not: leave it out"
    );
    Ok(())
}

/// What a preset is called where a config's file would be.
fn called(preset: &str) -> String {
    format!("{PRESET}{preset}")
}

/// `engraft.toml` in `folder` or one above; its path is as short as it can be said.
fn found(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().enumerate().find_map(|(up, above)| {
        let there = above.join(FILE).is_file();
        there.then(|| if up == 0 { PathBuf::from(FILE) } else { above.join(FILE) })
    })
}

fn in_place(source: &str) -> String {
    format!(
        "note: sources.{source} is read in place of the embedded world's sources and texts, from the working folder unless --data says otherwise; a config says what is read together (engraft init)"
    )
}

impl Common {
    /// The config that is meant: that of a preset, of a file, or the embedded one.
    ///
    /// # Errors
    /// When there is no such preset, the file cannot be read, or a setting is invalid.
    pub(super) fn load(&self) -> anyhow::Result<Config> {
        match &self.preset {
            Some(name) => config::of_text(&called(name), preset(name)?, None, &self.set),
            None => {
                let config = config::load(self.config.as_deref(), &self.set)?;
                if self.config.is_none() {
                    // A command may load it more than once.
                    static SAID: Once = Once::new();
                    let sources = config::in_place_of_world(&self.set)?;
                    SAID.call_once(|| sources.iter().for_each(|source| print::note(&in_place(source))));
                }
                Ok(config)
            }
        }
    }

    /// What an output folder remembers of the config.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn origin(&self) -> anyhow::Result<Origin> {
        let embedded =
            |name: String, text: &str| Origin { name, path: None, blake3: Digest::of(text.as_bytes()) };
        if let Some(name) = &self.preset {
            return Ok(embedded(called(name), preset(name)?));
        }
        let Some(path) = &self.config else {
            return Ok(embedded("the embedded config".to_owned(), config::DEFAULT));
        };
        let whole =
            || std::fs::canonicalize(path).and_then(|whole| Ok((Digest::of(&std::fs::read(path)?), whole)));
        let (blake3, whole) = whole().with_context(|| path.display().to_string())?;
        Ok(Origin { name: path.display().to_string(), path: Some(whole), blake3 })
    }

    /// The folder of artifacts and the ledger.
    pub(super) fn out(&self) -> &Path {
        self.out.as_deref().unwrap_or(Path::new("out"))
    }
}
