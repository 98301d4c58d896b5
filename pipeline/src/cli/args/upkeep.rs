//! What commands that move and remove artifacts are asked, and how.

use clap::Args;

/// The examples of `clean`.
pub(super) const CLEAN_HELP: &str = "\
Examples:
  engraft clean --dry-run
  engraft clean shards retrain    the next run makes these two anew
  engraft clean --yes             does not ask; needed where there is no terminal to ask on";

/// The examples of `gc`.
pub(super) const GC_HELP: &str = "\
Examples:
  engraft gc --dry-run
  engraft gc --keep 1      of each stage, keeps only the artifact that was replaced last
  engraft gc --all         a run with earlier settings will make everything anew
  engraft gc --depot s3://bucket/engraft --keep 2 --dry-run

`run` stays within the bounds by itself. Of a depot that is named here by --depot, artifacts beyond
--keep and --keep-bytes are removed (without these, none) and files that no artifact has. States of
interrupted trainings stay; `engraft clean` removes them.";

/// How much is kept of what a run replaces.
#[derive(Clone, Copy, Debug, Args)]
pub(in crate::cli) struct Keep {
    /// How many earlier artifacts of each stage to keep; 0 keeps none. Defaults to `keep` of the config, or 3
    #[arg(long = "keep", value_name = "N")]
    pub(in crate::cli) artifacts: Option<usize>,
    /// Maximum size of all of them in bytes; those replaced longest ago go first. Defaults to `keep_bytes` of the config, or 20 GB
    #[arg(long = "keep-bytes", value_name = "N")]
    pub(in crate::cli) bytes: Option<u64>,
}

/// The examples of `push`.
pub(super) const PUSH_HELP: &str = "\
Examples:
  engraft push --depot s3://bucket/engraft
  engraft push shards --depot /shared/engraft

`run --depot` does so by itself. Exit code 1 if a stage is not up to date, or cannot be put there.";

/// The examples of `pull`.
pub(super) const PULL_HELP: &str = "\
Examples:
  engraft pull retrain --depot s3://bucket/engraft
  engraft pull --depot https://host/engraft    everything, from a web server

`run --depot` does so by itself, and makes what is not there. What the stages read of other stages
stays in the depot. Exit code 1 if a stage is neither up to date here nor in the depot.";
