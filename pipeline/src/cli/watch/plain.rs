//! A plain line for each event, and now and then for each running stage, on standard error.

use super::live::Said;
use super::{Detail, Display};
use crate::cli::{explain, measure, print};
use crate::engine::explain::Note;
use crate::engine::ledger::Line;
use crate::engine::observe::{Event, Made};

/// Prints lines.
pub(super) struct Plain {
    pub(super) detail: Detail,
}

impl Display for Plain {
    fn event(&self, event: &Event<'_>) {
        print::note(&line(event, self.detail));
    }

    fn said(&self, text: &Said<'_>) {
        print::note(&said(text));
    }
}

/// What is said of a running stage, in a line.
pub(super) fn said(said: &Said<'_>) -> String {
    match said {
        Said::Resumed { stage, step, steps } => {
            format!("{stage}: resumes after step {} of {}", measure::count(*step), measure::count(*steps))
        }
        Said::Progress { stage, now, elapsed } => format!("{stage}: {}", measure::so_far(now, *elapsed)),
    }
}

/// The event in a line.
pub(super) fn line(event: &Event<'_>, detail: Detail) -> String {
    match event {
        Event::Started { stage, reasons, .. } => {
            format!("{stage}: started: {}", explain::reasons(reasons, detail))
        }
        Event::Fresh { stage, notes: [] } => format!("{stage}: up to date"),
        Event::Fresh { stage, notes } => {
            let notes: Vec<_> = notes.iter().map(Note::to_string).collect();
            format!("{stage}: up to date: {}", notes.join("; "))
        }
        Event::Done { line, progress, result } => {
            let same = if *result == Made::Same { ", the same result as before" } else { "" };
            format!("{}: done: {}{same}", line.stage, measure::finished(progress, line.seconds))
        }
        Event::Restored { line } => {
            let took = measure::time(line.seconds);
            format!("{}: restored, made in {took}: {}", line.stage, explain::reasons(&line.reasons, detail))
        }
        Event::Away { line } => format!("{}: in the depot, and not needed here", line.stage),
        Event::Fetching { stage, from } => format!("{stage}: fetching {from}"),
        Event::Pulling { line, .. } => format!("{}: comes from the depot, {}", line.stage, size(line)),
        Event::Pulled { line } => {
            let took = measure::time(line.seconds);
            format!("{}: pulled, made in {took}: {}", line.stage, explain::reasons(&line.reasons, detail))
        }
        Event::NotPulled { stage, why } => format!("{stage}: not pulled: {why}"),
        Event::Pushing { line, .. } => format!("{}: goes into the depot, {}", line.stage, size(line)),
        Event::Pushed { stage, bytes: Some(bytes) } => {
            format!("{stage}: in the depot, {} of it new", measure::bytes(*bytes))
        }
        Event::Pushed { stage, bytes: None } => format!("{stage}: not put into the depot"),
        Event::Withheld { stage, why } => format!("{stage}: not put into the depot: {why}"),
        Event::Unnoted { stage, error } => {
            format!("{stage}: a file that it read is not noted in the depot: {error}")
        }
        Event::Unshared { stage, error } => {
            format!("{stage}: here, but not in the depot: {error}: run again to put it there")
        }
        Event::Failed { stage, error } => format!("{stage}: failed: {error}"),
        Event::Waits { stage, of, holder } if stage == of => {
            format!("{stage}: waits: another engraft ({holder}) makes or reads it")
        }
        Event::Waits { stage, of, holder } => {
            format!("{stage}: waits: another engraft ({holder}) makes {of}, which it reads")
        }
        Event::Skipped { stage, because } => format!("{stage}: skipped: {because} failed"),
        Event::Interrupted { stage } => format!("{stage}: interrupted"),
    }
}

/// `12 files, 3.4 MB`
fn size(line: &Line) -> String {
    let files = line.outputs.len();
    let noun = if files == 1 { "file" } else { "files" };
    format!("{} {noun}, {}", measure::count(files as u64), measure::bytes(line.bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::explain::Reason;
    use crate::engine::observe::Event;
    use serde_json::json;

    #[test]
    fn every_event_is_one_line_that_begins_with_the_stage() {
        assert_eq!(line(&Event::Fresh { stage: "world", notes: &[] }, Detail::Short), "world: up to date");
        let notes = [Note::SameAgain { name: "world".to_owned() }];
        let fresh = Event::Fresh { stage: "triples", notes: &notes };
        assert_eq!(line(&fresh, Detail::Short), "triples: up to date: world ran again with the same result");
        let skipped = Event::Skipped { stage: "train", because: "world" };
        assert_eq!(line(&skipped, Detail::Short), "train: skipped: world failed");
    }

    #[test]
    fn detail_decides_how_many_reasons_are_said() {
        let field =
            |path: &str| Reason::Field { path: path.to_owned(), from: Some(json!(1)), to: Some(json!(2)) };
        let reasons = [field("a"), field("b")];
        assert_eq!(explain::reasons(&reasons, Detail::Short), "a: 1 -> 2 (and 1 more)");
        assert_eq!(explain::reasons(&reasons, Detail::Full), "a: 1 -> 2; b: 1 -> 2");
    }
}
