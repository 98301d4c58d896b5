//! Which of the arguments are names and paths on this machine.

use std::path::{Path, PathBuf};

use store::location::{Location, is_address};

use super::{Command, Common, Subcommand};
#[cfg(feature = "query")]
use crate::cli::query::Asked;

impl Command {
    /// Refuses URLs where only names and paths on this machine can be meant, without showing them: they may hold credentials, and a folder
    /// would be made of them.
    pub(in crate::cli) fn check_local(&self) -> anyhow::Result<()> {
        let Common { config, data, out, cache, .. } = &self.common;
        if let Some(Err(error)) = data.as_deref().and_then(Path::to_str).map(Location::parse) {
            return Err(anyhow::Error::from(error).context("--data is invalid"));
        }
        let common =
            [("--config", config.as_deref()), ("--out", out.as_deref()), ("--cache", cache.as_deref())];
        let given = common.into_iter().filter_map(|(name, path)| Some((name, path?)));
        for (name, path) in given.chain(self.subcommand.local()) {
            let is_url = is_address(&path.to_string_lossy());
            anyhow::ensure!(
                !(is_url && name == "--out"),
                "--out is a URL, expected a path on this machine: write to a folder here; --depot shares artifacts with other machines"
            );
            anyhow::ensure!(
                !(is_url && ["--cache", "--into", "--svg"].contains(&name)),
                "{name} is a URL, expected a path on this machine: write to a folder here, then copy it there"
            );
            anyhow::ensure!(
                !is_url,
                "{name} is a URL, expected a name or path on this machine: fetch the file first"
            );
        }
        Ok(())
    }
}

fn some<'p>(name: &'static str, path: &'p Option<PathBuf>) -> impl Iterator<Item = (&'static str, &'p Path)> {
    path.iter().map(move |path| (name, path.as_path()))
}

fn all<'n>(name: &'static str, names: &'n [String]) -> impl Iterator<Item = (&'static str, &'n Path)> {
    names.iter().map(move |text| (name, Path::new(text)))
}

impl Subcommand {
    /// What is no option of every subcommand: names and paths.
    fn local(&self) -> Vec<(&'static str, &Path)> {
        match self {
            Subcommand::Run { stages, .. }
            | Subcommand::Plan { stages, .. }
            | Subcommand::Verify { stages }
            | Subcommand::Push { stages }
            | Subcommand::Pull { stages }
            | Subcommand::Clean { stages, .. }
            | Subcommand::Gc { stages, .. } => all("STAGE", stages).collect(),
            Subcommand::Why { stage } => vec![("STAGE", Path::new(stage))],
            Subcommand::Status
            | Subcommand::Config { .. }
            | Subcommand::Init
            | Subcommand::Completions { .. } => vec![],
            #[cfg(feature = "query")]
            Subcommand::Query(Asked { into, .. }) => some("--into", into).collect(),
            Subcommand::Man { into } => some("--into", into).collect(),
            Subcommand::Inspect { artifact, svg, .. } => {
                some("--svg", svg).chain([("ARTIFACT", Path::new(artifact))]).collect()
            }
            Subcommand::Fetch { names, into, catalog, .. } => {
                all("NAME", names).chain(some("--into", into)).chain(some("--catalog", catalog)).collect()
            }
            Subcommand::Predict { model, input, mask, .. } => {
                let files = some("FILE", input).chain(some("--mask", mask));
                files.chain([("MODEL", model.as_path())]).collect()
            }
            Subcommand::Attention(asked) => {
                let files = some("--svg", &asked.svg).chain(some("--mask", &asked.mask));
                files.chain([("MODEL", asked.model.as_path())]).collect()
            }
            Subcommand::Tag(asked) => {
                let files = asked.files.iter().map(|file| ("FILE", file.as_path()));
                files.chain(some("--into", &asked.into)).chain(some("--triples", &asked.triples)).collect()
            }
            Subcommand::Export(asked) => {
                vec![("--into", asked.into.as_path()), ("MODEL", asked.model.as_path())]
            }
            Subcommand::Encode { model, input, vocabulary, .. } => {
                let files = some("FILE", input).chain(some("--vocabulary", vocabulary));
                files.chain([("MODEL", model.as_path())]).collect()
            }
            Subcommand::Compare { outs } => outs.iter().map(|out| ("OUT", out.as_path())).collect(),
            Subcommand::Diff { old, new, into } => {
                some("--into", into).chain([("OLD", old.as_path()), ("NEW", new.as_path())]).collect()
            }
        }
    }
}
