//! A JSON line for each event, and again and again for each running stage, on standard output.

use serde_json::{Value, json};

use super::Display;
use super::live::Said;
use crate::cli::{explain, measure, print};
use crate::engine::ledger::Line;
use crate::engine::observe::{Event, Made};
use crate::engine::progress::{Snapshot, Training};

/// Prints JSON lines.
pub(super) struct Json;

impl Display for Json {
    fn event(&self, event: &Event<'_>) {
        // A reader that cannot be written to must not stop the work.
        let _ = print::line(&value(event).to_string());
    }

    fn said(&self, text: &Said<'_>) {
        let _ = print::line(&said(text).to_string());
    }
}

fn said(said: &Said<'_>) -> Value {
    match said {
        Said::Resumed { stage, step, steps } => {
            json!({"event": "resumed", "stage": stage, "step": step, "steps": steps})
        }
        Said::Progress { stage, now, elapsed } => {
            let mut value = json!({"event": "progress", "stage": stage});
            let seconds = elapsed.as_secs_f64();
            match &now.training {
                Some(training) => trained(now, training, &mut value),
                None => counted(now, &mut value),
            }
            value["seconds"] = json!(seconds);
            // Of what is not known nothing is said.
            if let Some(eta) = measure::left(now, seconds) {
                value["eta"] = json!(eta);
            }
            value
        }
    }
}

fn trained(now: &Snapshot, training: &Training, value: &mut Value) {
    (value["step"], value["steps"]) = (json!(now.rows), json!(now.total_rows));
    if training.may_end_sooner {
        value["may_end_sooner"] = json!(true);
    }
    if let Some(step) = training.step {
        (value["loss"], value["learning_rate"]) = (json!(step.loss), json!(step.learning_rate));
    }
    if let Some(evaluation) = training.evaluation {
        value["evaluation"] = json!({"of": evaluation.of, "value": evaluation.value});
    }
    let seconds = training.elapsed.as_secs_f64();
    if seconds > 0.0 {
        value["rate"] = json!(measure::per_second(now.rows.saturating_sub(now.before), seconds));
        value["tokens_per_second"] = json!(measure::per_second(now.tokens, seconds));
    }
}

fn counted(now: &Snapshot, value: &mut Value) {
    if now.rows > 0 {
        (value["unit"], value["done"]) = (json!(now.unit), json!(now.rows));
    }
    let others = [("total", now.total_rows), ("bytes", now.bytes), ("total_bytes", now.total_bytes)];
    for (key, number) in others.into_iter().filter(|(_, number)| *number > 0) {
        value[key] = json!(number);
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
        Event::Restored { line } => got("restored", line),
        Event::Pulled { line } => got("pulled", line),
        Event::Away { line } => json!({
            "event": "in_the_depot", "stage": line.stage, "fingerprint": line.fingerprint, "artifact": line.artifact,
        }),
        Event::Fetching { stage, from } => json!({"event": "fetching", "stage": stage, "from": from}),
        Event::Pulling { line, .. } => moves("pulling", line),
        Event::Pushing { line, .. } => moves("pushing", line),
        Event::NotPulled { stage, why } => json!({"event": "not_pulled", "stage": stage, "why": why}),
        Event::Pushed { stage, bytes } => json!({"event": "pushed", "stage": stage, "bytes": bytes}),
        Event::Withheld { stage, why } => json!({"event": "withheld", "stage": stage, "why": why}),
        Event::Unnoted { stage, error } => json!({"event": "unnoted", "stage": stage, "error": error}),
        Event::Unshared { stage, error } => json!({"event": "unshared", "stage": stage, "error": error}),
        Event::Failed { stage, error } => json!({"event": "failed", "stage": stage, "error": error}),
        Event::Waits { stage, of, holder } => {
            json!({"event": "waits", "stage": stage, "of": of, "holder": holder})
        }
        Event::Skipped { stage, because } => json!({"event": "skipped", "stage": stage, "because": because}),
        Event::Interrupted { stage } => json!({"event": "interrupted", "stage": stage}),
    }
}

/// An artifact that is in place again.
fn got(event: &str, line: &Line) -> Value {
    json!({
        "event": event,
        "stage": line.stage,
        "fingerprint": line.fingerprint,
        "artifact": line.artifact,
        "reasons": explain::reasons_json(&line.reasons),
        "facts": line.facts,
    })
}

/// An artifact that is on its way.
fn moves(event: &str, line: &Line) -> Value {
    json!({"event": event, "stage": line.stage, "files": line.outputs.len(), "bytes": line.bytes()})
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
    fn a_training_says_how_it_goes_and_nothing_that_is_not_known() {
        use crate::engine::progress::{Step, Training};
        let training =
            Training { elapsed: Duration::ZERO, may_end_sooner: false, step: None, evaluation: None };
        let mut now = Snapshot {
            bytes: 0,
            total_bytes: 0,
            rows: 6,
            total_rows: 10,
            unit: "steps",
            before: 6,
            tokens: 0,
            waited: Duration::ZERO,
            training: Some(training),
        };
        let progress = |now: &Snapshot| {
            said(&Said::Progress { stage: "retrain", now: *now, elapsed: Duration::from_secs(9) })
        };
        let begun = json!({"event": "progress", "stage": "retrain", "step": 6, "steps": 10, "seconds": 9.0});
        assert_eq!(progress(&now), begun);
        let step = Some(Step { loss: 0.5, learning_rate: 1e-3, tokens: 40 });
        now = Snapshot {
            rows: 8,
            tokens: 80,
            training: Some(Training { elapsed: Duration::from_secs(4), step, ..training }),
            ..now
        };
        let expected = json!({
            "event": "progress", "stage": "retrain", "step": 8, "steps": 10, "loss": 0.5, "learning_rate": 1e-3,
            "rate": 0.5, "tokens_per_second": 20.0, "seconds": 9.0, "eta": 4.0,
        });
        assert_eq!(progress(&now), expected);
    }

    #[test]
    fn events_say_their_kind_and_stage() {
        let skipped = value(&Event::Skipped { stage: "train", because: "world" });
        assert_eq!(skipped, json!({"event": "skipped", "stage": "train", "because": "world"}));
    }
}
