//! Values of options that no type of the standard library reads.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::bundle::lines::Form;

/// More threads than any machine has cores would only fight each other, and a mistyped number would take the machine down.
const MOST_JOBS: usize = 1024;

pub(super) fn jobs(text: &str) -> Result<NonZeroUsize, String> {
    let jobs: Option<NonZeroUsize> = text.parse().ok().filter(|jobs: &NonZeroUsize| jobs.get() <= MOST_JOBS);
    jobs.ok_or_else(|| format!("expected a whole number from 1 to {MOST_JOBS}"))
}

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> =
        text.parse().ok().filter(|seconds| *seconds == 0.0 || (0.1..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "expected 0, or seconds from 0.1 to 86400".to_owned())
}

pub(super) fn form(text: &str) -> Result<Form, String> {
    match text {
        "text" => Ok(Form::Text),
        "json" => Ok(Form::Json),
        _ => Err("expected text or json".to_owned()),
    }
}
