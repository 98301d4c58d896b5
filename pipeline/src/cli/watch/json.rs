//! A JSON line for each event, on standard output.

use serde_json::{Value, json};

use crate::cli::{explain, print};
use crate::engine::observe::{Event, Made, Observe};

/// Prints JSON lines.
pub(super) struct Json;

impl Observe for Json {
    fn event(&self, event: &Event<'_>) {
        // A reader that cannot be written to must not stop the work.
        let _ = print::line(&value(event).to_string());
    }
}

fn value(event: &Event<'_>) -> Value {
    match event {
        Event::Started { stage, reasons, .. } => {
            json!({"event": "started", "stage": stage, "reasons": explain::reasons_json(reasons)})
        }
        Event::Fresh { stage, notes } => json!({"event": "fresh", "stage": stage, "notes": notes}),
        Event::Done { line, progress, result } => json!({
            "event": "done",
            "stage": line.stage,
            "fingerprint": line.fingerprint,
            "artifact": line.artifact,
            "same": *result == Made::Same,
            "rows": progress.rows,
            "bytes": progress.bytes,
            "seconds": line.seconds,
            "facts": line.facts,
        }),
        Event::Restored { line } => json!({
            "event": "restored",
            "stage": line.stage,
            "fingerprint": line.fingerprint,
            "artifact": line.artifact,
            "reasons": explain::reasons_json(&line.reasons),
            "facts": line.facts,
        }),
        Event::Failed { stage, error } => json!({"event": "failed", "stage": stage, "error": error}),
        Event::Skipped { stage, because } => json!({"event": "skipped", "stage": stage, "because": because}),
        Event::Interrupted { stage } => json!({"event": "interrupted", "stage": stage}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::explain::Reason;

    #[test]
    fn a_reason_stands_in_words_and_in_parts() {
        let reasons = explain::reasons_json(&[Reason::Version { from: 1, to: 2 }]);
        assert_eq!(
            reasons,
            json!([{"reason": "version", "from": 1, "to": 2, "text": "stage version: 1 -> 2"}])
        );
    }

    #[test]
    fn events_say_their_kind_and_stage() {
        let skipped = value(&Event::Skipped { stage: "train", because: "world" });
        assert_eq!(skipped, json!({"event": "skipped", "stage": "train", "because": "world"}));
    }
}
