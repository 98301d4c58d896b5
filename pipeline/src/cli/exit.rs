//! How the command ends: the exit codes, which are part of the interface and stand in `--help`.

use std::process::ExitCode;

/// An exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything asked for is done.
    Ok,
    /// A stage failed, and the others were finished; or `plan` found one that cannot run.
    Failed,
    /// Nothing was done: wrong usage or configuration, an output folder that cannot be used or belongs to another config, nothing to
    /// verify, a `clean` that nobody agreed to, or no threads available.
    Refused,
    /// `verify` found damage, `plan --check` something to run, or `diff` a change.
    Found,
    /// Stopped by Ctrl-C or SIGTERM; everything is consistent.
    Interrupted,
}

/// The exit codes as `--help` shows them.
pub(crate) const HELP: &str = "\
Exit codes:
  0    success
  1    a stage failed and those that do not depend on it were finished; or plan found one that
       cannot run
  2    nothing was done: wrong usage or config, an output folder that is unusable or belongs
       to another config, nothing to verify, clean not agreed to, or no threads available
  3    verify found damage, plan --check something to run, or diff a change
  130  stopped by Ctrl-C or SIGTERM; everything is consistent, run again to resume";

impl Exit {
    pub fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Refused => 2,
            Self::Found => 3,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
