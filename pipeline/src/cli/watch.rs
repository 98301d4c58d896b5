//! Shows a run while it goes on: bars on a terminal, a plain line per event elsewhere, JSON lines if asked for.

mod bars;
mod json;
mod plain;

use std::io::IsTerminal;

use super::print::Format;
use crate::engine::observe::Observe;
use bars::{Bars, Colour};

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// The first reason.
    Short,
    /// Every reason and note.
    Full,
}

/// The display that suits the format and where standard error goes.
pub(super) fn choose(format: Format, detail: Detail) -> Box<dyn Observe> {
    if format == Format::Json {
        Box::new(json::Json)
    } else if std::io::stderr().is_terminal() {
        Box::new(Bars::new(detail, colour()))
    } else {
        Box::new(plain::Plain { detail })
    }
}

#[expect(clippy::disallowed_methods, reason = "the command line is where the environment is read")]
fn colour() -> Colour {
    if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) { Colour::Off } else { Colour::On }
}
