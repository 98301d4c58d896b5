//! What a run did, and what `verify` finds, as text and as JSON.

use serde_json::{Value, json};

use super::args::Common;
use super::exit::Exit;
use super::measure;
use super::print::{self, Format};
use crate::engine::context::WARNINGS;
use crate::engine::layout::Layout;
use crate::engine::ledger::{Ledger, Line};
use crate::engine::origin::Claim;
use crate::engine::outcome::{Outcome, Summary};
use crate::engine::verify::{Damage, Lines, Verification, Verified, Verify};
use base::cancel::CancelToken;

/// Verifies what the ledger names. A config is not needed; one that is given must be that of the folder.
pub(super) fn verify(common: &Common, stages: &[String], format: Format) -> anyhow::Result<Exit> {
    let layout = Layout::new(common.out());
    if common.config.is_some() || common.preset.is_some() {
        common.origin()?.admit(&layout.origin(), Claim::Respect)?;
    }
    let verify = Verify { layout: &layout, jobs: super::jobs(common), cancel: &CancelToken::NEVER };
    let found = verify.verify(stages)?;
    print::result(format, || verification(&found), || verification_json(&found))?;
    Ok(if found.is_sound() { Exit::Ok } else { Exit::Found })
}

/// What was found in the ledger and in each artifact.
pub(super) fn verification(found: &Verification) -> Vec<String> {
    lines(&found.ledger).into_iter().chain(found.artifacts.iter().flat_map(verified)).collect()
}

/// The same for machines: first the ledger, then a value for each artifact.
pub(super) fn verification_json(found: &Verification) -> Vec<Value> {
    let artifacts = found.artifacts.iter().map(|artifact| json!(artifact));
    std::iter::once(json!({"ledger": found.ledger})).chain(artifacts).collect()
}

fn lines(ledger: &Lines) -> Vec<String> {
    let mut size = format!("{} lines", measure::count(ledger.lines as u64));
    if ledger.without_digest > 0 {
        size += &format!(", {} of them from before lines had digests", ledger.without_digest);
    }
    if ledger.damages.is_empty() {
        return vec![format!("ledger: ok ({size})")];
    }
    let damages = ledger.damages.iter().map(|damage| format!("  {damage}"));
    std::iter::once(format!("ledger: DAMAGED ({size} sound)")).chain(damages).collect()
}

fn verified(verified: &Verified) -> Vec<String> {
    let stage = match &verified.kept {
        Some(place) => &format!("{} (kept in {place})", verified.stage),
        None => &verified.stage,
    };
    let Some(files) = verified.files else {
        let what = if verified.damages.is_empty() {
            "never made here"
        } else {
            "NOT IN THE LEDGER: engraft did not make it, or its line is gone: move it away, then run again"
        };
        return vec![format!("{stage}: {what}")];
    };
    let size = format!("{files} files, {}", measure::bytes(verified.bytes));
    if verified.damages.is_empty() {
        return vec![format!("{stage}: ok ({size})")];
    }
    let remedy = match verified.kept {
        Some(_) => {
            format!("will not be restored; `engraft gc --all {}` removes what is kept", verified.stage)
        }
        None => format!("`engraft run {stage}` makes missing and changed files again"),
    };
    let remedy = format!("{stage}: DAMAGED ({size}): {remedy}");
    std::iter::once(remedy).chain(verified.damages.iter().map(damage)).collect()
}

fn damage(damage: &Damage) -> String {
    match damage {
        Damage::Missing { path } => format!("  {path}: missing"),
        Damage::Changed { path, expected, found } => {
            format!(
                "  {path}: contents changed ({} in the ledger, {} on disk)",
                expected.short(),
                found.short()
            )
        }
        Damage::Unreadable { path, error } => format!("  {path}: cannot be read: {error}"),
        Damage::Unexpected { path } => {
            format!("  {path}: not in the ledger: engraft did not make it; move it away")
        }
    }
}

/// What the stages warned of whose artifacts stand, those of earlier runs too.
pub(super) fn warnings<'l>(summary: &Summary, ledger: &'l Ledger) -> Vec<(&'l str, &'l str)> {
    let stands = |outcome: &Outcome| {
        matches!(outcome, Outcome::Done(_) | Outcome::Fresh | Outcome::Restored | Outcome::Pulled)
    };
    let standing = summary.outcomes.iter().filter(|(_, outcome)| stands(outcome));
    let lines = standing.filter_map(|(stage, _)| ledger.last(stage));
    let texts = |line: &'l Line| line.facts.get(WARNINGS).and_then(Value::as_array).into_iter().flatten();
    lines
        .flat_map(|line| texts(line).filter_map(|text| Some((line.stage.as_str(), text.as_str()?))))
        .collect()
}

/// How a run ended, in a line, after its warnings.
pub(super) fn summary(summary: &Summary, warnings: &[(&str, &str)], seconds: f64) -> Vec<String> {
    let told = tally(summary).into_iter().filter(|(_, n)| *n > 0).map(|(what, n)| format!("{n} {what}"));
    let resumes = summary.count(|outcome| *outcome == Outcome::Interrupted) > 0;
    let again = if resumes { ": run again to resume" } else { "" };
    let end = format!("{} ({}){again}", told.collect::<Vec<_>>().join(", "), measure::time(seconds));
    warnings.iter().map(|(stage, text)| format!("{stage}: warning: {text}")).chain([end]).collect()
}

/// How a run ended, for machines.
pub(super) fn summary_json(summary: &Summary, warnings: &[(&str, &str)], seconds: f64) -> Value {
    let mut value = json!({"event": "end", "seconds": seconds});
    if !warnings.is_empty() {
        let one = |(stage, text): &(&str, &str)| json!({"stage": stage, "text": text});
        value["warnings"] = warnings.iter().map(one).collect();
    }
    for (what, n) in tally(summary) {
        value[what.replace(' ', "_")] = json!(n);
    }
    value
}

fn tally(summary: &Summary) -> [(&'static str, usize); 9] {
    [
        ("ran", summary.count(|outcome| matches!(outcome, Outcome::Done(_)))),
        ("restored", summary.count(|outcome| *outcome == Outcome::Restored)),
        ("pulled", summary.count(|outcome| *outcome == Outcome::Pulled)),
        ("in the depot", summary.count(|outcome| *outcome == Outcome::Away)),
        ("up to date", summary.count(|outcome| *outcome == Outcome::Fresh)),
        ("failed", summary.count(|outcome| matches!(outcome, Outcome::Failed(_)))),
        ("skipped", summary.count(|outcome| matches!(outcome, Outcome::Skipped(_)))),
        ("interrupted", summary.count(|outcome| *outcome == Outcome::Interrupted)),
        ("not put into the depot", summary.unshared.len()),
    ]
}
