//! The options that every subcommand takes.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use super::value::jobs;

/// What every subcommand takes.
#[derive(Debug, Args)]
pub(in crate::cli) struct Common {
    /// The config; defaults to `engraft.toml` in this folder or one above, else to the embedded one, a small invented world
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(in crate::cli) config: Option<PathBuf>,
    /// A preset instead of the config; `init` writes a config that extends it
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        conflicts_with = "config",
        help_heading = "Global options"
    )]
    pub(in crate::cli) preset: Option<String>,
    /// The folder or URL that paths in the config are relative to
    #[arg(long, global = true, value_name = "DIR", help_heading = "Global options")]
    pub(in crate::cli) data: Option<PathBuf>,
    /// The folder for artifacts and the ledger; defaults to the config's `out`, else to `out`. It belongs to one config; another config needs its own folder, or --replace
    #[arg(long, global = true, value_name = "DIR", help_heading = "Global options")]
    pub(in crate::cli) out: Option<PathBuf>,
    /// A place where artifacts are shared with other machines: s3://bucket/prefix, gs://, az://, a path, or https:// to read from. What is there is not made again; what is made goes there
    #[arg(long, global = true, value_name = "URL", help_heading = "Global options")]
    pub(in crate::cli) depot: Option<String>,
    /// The cache folder for remote files; defaults to `engraft` in the user's cache folder
    #[arg(long, global = true, value_name = "DIR", help_heading = "Global options")]
    pub(in crate::cli) cache: Option<PathBuf>,
    /// Maximum size of the cache in bytes; the least recently used files are evicted first
    #[arg(
        long,
        global = true,
        value_name = "N",
        default_value_t = 50_000_000_000,
        help_heading = "Global options"
    )]
    pub(in crate::cli) cache_bytes: u64,
    /// Time limit for one remote file, including retries and waits
    #[arg(
        long,
        global = true,
        value_name = "SECONDS",
        default_value_t = 21_600,
        help_heading = "Global options"
    )]
    pub(in crate::cli) deadline: u64,
    /// Overrides one setting of the config; repeatable
    #[arg(long, global = true, value_name = "KEY=VALUE", help_heading = "Global options")]
    pub(in crate::cli) set: Vec<String>,
    /// Maximum number of threads and of concurrent stages; defaults to one per core. Results do not depend on it
    #[arg(long, short, global = true, value_name = "N", value_parser = jobs, help_heading = "Global options")]
    pub(in crate::cli) jobs: Option<NonZeroUsize>,
    /// Prints JSON lines to standard output
    #[arg(long, global = true, help_heading = "Global options")]
    pub(in crate::cli) json: bool,
    /// Prints every reason and every note
    #[arg(long, short, global = true, help_heading = "Global options")]
    pub(in crate::cli) verbose: bool,
}
