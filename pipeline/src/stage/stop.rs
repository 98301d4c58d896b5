//! The libraries' wish to stop, asked of the run. Knows no stage.

use tasks::stop::Stop;

use crate::engine::context::Context;

/// Asks the run of this context.
pub(super) fn of(context: &Context) -> Stop {
    let progress = context.progress().clone();
    Stop::when(move || progress.check().is_err())
}
