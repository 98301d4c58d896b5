//! The grammar as clap takes it, with what the attributes of [`Command`] cannot say.

use clap::{CommandFactory, FromArgMatches};

use super::Command;
use crate::cli::about;

/// What the help of subcommands says in place of the options that all of them have.
const GLOBAL: &str = "\
Global options: --config, --preset, --set, --data, --out, --jobs, --json ... (see engraft --help)";

impl Command {
    /// The grammar. Subcommands take the global options and do not repeat them in their help.
    pub(in crate::cli) fn grammar() -> clap::Command {
        let command = <Self as CommandFactory>::command().long_version(about::version());
        let global: Vec<_> = command.get_arguments().filter(|arg| arg.is_global_set()).cloned().collect();
        // One that a subcommand has is not handed down to it.
        command.mut_subcommands(|subcommand| {
            let examples = subcommand.get_after_help().map(ToString::to_string).unwrap_or_default();
            let hidden = global.iter().map(|arg| arg.clone().hide(true));
            subcommand.args(hidden).after_help(format!("{examples}\n\n{GLOBAL}"))
        })
    }

    /// The command that the arguments of the process are.
    pub(in crate::cli) fn given() -> Result<Self, clap::Error> {
        let mut matches = Self::grammar().try_get_matches()?;
        Self::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut Self::grammar()))
    }
}
