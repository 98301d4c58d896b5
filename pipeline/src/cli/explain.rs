//! What the engine found out about stages, as text and as JSON: plan, why, status. Finds out nothing itself.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::measure;
use super::table::table;
use super::watch::Detail;
use crate::engine::explain::{Cause, Note, Reason};
use crate::engine::kept::Store;
use crate::engine::ledger::Line;
use crate::engine::survey::{Finding, State, Why};

/// The reasons in one line.
pub(super) fn reasons(reasons: &[Reason], detail: Detail) -> String {
    match (reasons, detail) {
        ([], _) => String::new(),
        ([first], _) => first.to_string(),
        ([first, rest @ ..], Detail::Short) => format!("{first} (and {} more)", rest.len()),
        (all, Detail::Full) => all.iter().map(Reason::to_string).collect::<Vec<_>>().join("; "),
    }
}

/// The reasons in parts and words.
pub(super) fn reasons_json(reasons: &[Reason]) -> Value {
    let one = |reason: &Reason| {
        let mut value = json!(reason);
        value["text"] = json!(reason.to_string());
        value
    };
    Value::Array(reasons.iter().map(one).collect())
}

/// How a plan is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A line for each stage.
    Lines(Detail),
    /// As a graph.
    Graph,
}

/// What would become of each stage, and why.
pub(super) fn plan(findings: &[Finding], shape: Shape) -> Vec<String> {
    match shape {
        Shape::Lines(detail) => plan_lines(findings, detail),
        Shape::Graph => dot(findings),
    }
}

/// The graph of stages in the DOT language: an arrow leads from what is read to what reads it.
fn dot(findings: &[Finding]) -> Vec<String> {
    let node = |finding: &Finding| {
        let took = finding.cost().map(|line| format!("\\n{}", measure::time(line.seconds)));
        let drawn = match finding.state {
            State::Fresh => "style=solid",
            State::Restore | State::Depot => "style=\"dashed\"",
            State::Stale => "style=filled fillcolor=\"#ffd27f\"",
            State::Pending => "style=filled fillcolor=\"#ffefcc\"",
            State::Blocked => "style=filled fillcolor=\"#ff9c8f\"",
        };
        let (stage, state) = (&finding.stage, state(finding.state));
        format!("  \"{stage}\" [label=\"{stage}\\n{state}{}\" {drawn}];", took.unwrap_or_default())
    };
    let edges = findings
        .iter()
        .flat_map(|to| to.reads.iter().map(move |from| format!("  \"{from}\" -> \"{}\";", to.stage)));
    let head = ["digraph engraft {".to_owned(), "  rankdir=LR; node [shape=box];".to_owned()];
    head.into_iter().chain(findings.iter().map(node)).chain(edges).chain(["}".to_owned()]).collect()
}

fn plan_lines(findings: &[Finding], detail: Detail) -> Vec<String> {
    let row = |finding: &Finding| {
        let from = finding.begins_with.as_ref().map_or_else(String::new, |base| format!(" <- {base}"));
        let stage = format!("{}{from}", finding.stage);
        vec![stage, state(finding.state).to_owned(), why_short(finding, detail)]
    };
    let rows: Vec<_> = findings.iter().map(row).collect();
    let mut lines = table(&["STAGE", "STATE", "WHY"], &rows);
    let settled = |finding: &Finding| matches!(finding.state, State::Fresh | State::Restore | State::Depot);
    let open = findings.iter().filter(|finding| !settled(finding));
    let devices: BTreeSet<&String> = open.filter_map(|finding| finding.computes_on.as_ref()).collect();
    lines.extend(devices.into_iter().map(|device| format!("models are computed on {device}")));
    lines
}

fn why_short(finding: &Finding, detail: Detail) -> String {
    match &finding.error {
        Some(error) => error.clone(),
        None if finding.reasons.is_empty() => notes(&finding.notes).join("; "),
        None => {
            let kept = finding.restores.as_ref();
            let kept = kept.map(|line| format!("; kept, made in {}", measure::time(line.seconds)));
            let shared = finding.shared.as_ref();
            let shared = shared.map(|line| format!("; made elsewhere in {}", measure::time(line.seconds)));
            reasons(&finding.reasons, detail) + &kept.or(shared).unwrap_or_default()
        }
    }
}

/// The findings for machines; of a graph with all that a scheduler asks.
pub(super) fn plan_json(findings: &[Finding], shape: Shape) -> Vec<Value> {
    let mut levels = BTreeMap::<&str, usize>::new();
    let with_level = |finding| {
        let mut value = finding_json(finding);
        if shape == Shape::Graph {
            // Stages come after those that they read.
            let above = finding.reads.iter().filter_map(|read| levels.get(read.as_str()));
            let level = above.max().map_or(0, |level| level + 1);
            levels.insert(&finding.stage, level);
            graph_json(finding, level, &mut value);
        }
        value
    };
    findings.iter().map(with_level).collect()
}

fn graph_json(finding: &Finding, level: usize, value: &mut Value) {
    value["level"] = json!(level);
    value["reads"] = json!(finding.reads);
    value["files"] = json!(finding.files);
    value["fingerprint"] = json!(finding.fingerprint);
    value["cost"] = json!(finding.cost().map(|line| json!({"seconds": line.seconds, "bytes": line.bytes()})));
}

fn finding_json(finding: &Finding) -> Value {
    json!({
        "stage": finding.stage,
        "state": finding.state,
        "reasons": reasons_json(&finding.reasons),
        "notes": finding.notes,
        "error": finding.error,
        "restores": finding.restores.as_ref().map(|line| line.artifact),
        "depot": finding.shared.as_ref().map(|line| line.artifact),
        "begins_with": finding.begins_with,
        "computes_on": finding.computes_on,
    })
}

/// The whole explanation of one stage.
pub(super) fn why(why: &Why) -> Vec<String> {
    let stage = &why.stage;
    let mut lines = Vec::new();
    match why.state {
        State::Fresh => lines.push(format!("{stage} is up to date.")),
        State::Restore => {
            lines.push(format!(
                "{stage} will be restored: an earlier run made it with these settings and inputs:"
            ));
        }
        State::Depot => {
            lines.push(format!(
                "{stage} need not run: the depot has what another machine made with these settings and inputs:"
            ));
        }
        State::Stale => lines.push(format!("{stage} will run:")),
        State::Pending => lines.push(format!("{stage} will run if an input made first comes out changed:")),
        State::Blocked => lines.push(format!("{stage} cannot run:")),
    }
    lines.extend(why.error.iter().map(|error| format!("  {error}")));
    lines.extend(causes(stage, &why.causes));
    lines.extend(notes(&why.notes).into_iter().map(|note| format!("  {note}")));
    if why.state == State::Fresh && !why.last.is_empty() {
        let what = if why.restored { "It was last restored because:" } else { "It last ran because:" };
        lines.push(what.to_owned());
        lines.extend(causes(stage, &why.last));
    }
    lines
}

/// The causes as an indented tree, then the roots, if they are not the causes themselves.
fn causes(stage: &str, causes: &[Cause]) -> Vec<String> {
    let mut tree = Tree { lines: Vec::new(), roots: Vec::new(), told: BTreeSet::new() };
    tree.walk(stage, causes, 0);
    if causes.iter().any(|cause| !cause.because.is_empty()) {
        tree.lines.extend(tree.roots.iter().map(|root| format!("  root cause: {root}")));
    }
    tree.lines
}

struct Tree {
    lines: Vec<String>,
    roots: Vec<String>,
    /// Stages whose causes stand above already.
    told: BTreeSet<String>,
}

impl Tree {
    fn walk(&mut self, stage: &str, causes: &[Cause], depth: usize) {
        let lead = if depth == 0 { String::new() } else { format!("because {stage}: ") };
        for cause in causes {
            self.lines.push(format!("{}{lead}{}", "  ".repeat(depth + 1), cause.reason));
            match &cause.reason {
                Reason::Artifact { name, .. } | Reason::Pending { name } if !cause.because.is_empty() => {
                    if self.told.insert(name.clone()) {
                        self.walk(name, &cause.because, depth + 1);
                    }
                }
                root => self.roots.push(format!("{stage}: {root}")),
            }
        }
    }
}

/// A line per stage: state, last run, size, what is kept of it. Then how much is kept in all, as stages of other configs may have left some.
pub(super) fn status(findings: &[Finding], store: &Store, now_ms: u64) -> Vec<String> {
    let row = |finding: &Finding| {
        let mut row = vec![finding.stage.clone(), state(finding.state).to_owned()];
        let made = finding.last.as_ref().map(|line| {
            [
                ago(line.started_ms, now_ms),
                measure::time(line.seconds),
                measure::count(line.outputs.len() as u64),
                measure::bytes(line.bytes()),
                line.artifact.short(),
            ]
        });
        row.extend(made.unwrap_or_default());
        let (artifacts, bytes) = kept(store, Some(&finding.stage));
        row.extend((artifacts > 0).then(|| format!("{artifacts} ({})", measure::bytes(bytes))));
        row
    };
    let rows: Vec<_> = findings.iter().map(row).collect();
    let lines = table(&["STAGE", "STATE", "LAST RUN", "TOOK", "FILES", "BYTES", "DIGEST", "KEPT"], &rows);
    let (artifacts, bytes) = kept(store, None);
    let sum = format!(
        "{} of earlier settings kept, {}: restored when these come back; `engraft gc` removes them",
        if artifacts == 1 { "1 artifact".to_owned() } else { format!("{artifacts} artifacts") },
        measure::bytes(bytes)
    );
    lines.into_iter().chain((artifacts > 0).then_some(sum)).collect()
}

/// How many artifacts are kept of a stage, or of all, and their bytes.
fn kept(store: &Store, stage: Option<&str>) -> (usize, u64) {
    let of = store.kept.iter().filter(|kept| stage.is_none_or(|stage| kept.stage == stage));
    of.fold((0, 0), |(artifacts, bytes), kept| (artifacts + 1, bytes + kept.bytes()))
}

/// A stage's state for machines.
pub(super) fn status_json(finding: &Finding, store: &Store) -> Value {
    let line = finding.last.as_ref();
    let (artifacts, bytes) = kept(store, Some(&finding.stage));
    json!({
        "stage": finding.stage,
        "state": finding.state,
        "started_ms": line.map(|line| line.started_ms),
        "seconds": line.map(|line| line.seconds),
        "files": line.map(|line| line.outputs.len()),
        "bytes": line.map(Line::bytes),
        "artifact": line.map(|line| line.artifact),
        "kept": {"artifacts": artifacts, "bytes": bytes},
    })
}

/// `3 minutes ago`
pub(super) fn ago(then_ms: u64, now_ms: u64) -> String {
    let since = std::time::Duration::from_millis(now_ms.saturating_sub(then_ms));
    format!("{} ago", indicatif::HumanDuration(since))
}

fn state(state: State) -> &'static str {
    match state {
        State::Fresh => "up to date",
        State::Restore => "restore",
        State::Depot => "in the depot",
        State::Stale => "will run",
        State::Pending => "may run",
        State::Blocked => "cannot run",
    }
}

fn notes(notes: &[Note]) -> Vec<String> {
    notes.iter().map(Note::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(path: &str) -> Cause {
        let reason = Reason::Field { path: path.to_owned(), from: Some(json!(1)), to: Some(json!(2)) };
        Cause { reason, because: Vec::new() }
    }

    fn pending(name: &str, because: Vec<Cause>) -> Cause {
        Cause { reason: Reason::Pending { name: name.to_owned() }, because }
    }

    #[test]
    fn why_is_a_tree_with_its_root_and_tells_each_stage_once() {
        let world = || pending("world", vec![field("world.scale")]);
        let causes = vec![pending(
            "samples",
            vec![pending("triples", vec![world()]), pending("vocab", vec![world()])],
        )];
        let stage = "shards".to_owned();
        let state = State::Pending;
        let told =
            why(&Why { stage, state, causes, notes: vec![], error: None, last: vec![], restored: false });
        let expected = [
            "shards will run if an input made first comes out changed:",
            "  input artifact samples is made first",
            "    because samples: input artifact triples is made first",
            "      because triples: input artifact world is made first",
            "        because world: world.scale: 1 -> 2",
            "    because samples: input artifact vocab is made first",
            "      because vocab: input artifact world is made first",
            "  root cause: world: world.scale: 1 -> 2",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn why_of_a_fresh_stage_says_why_it_last_ran() {
        let note = Note::Touched { label: "input file MRREL".to_owned() };
        let (stage, state) = ("kg".to_owned(), State::Fresh);
        let last = vec![field("kg.weight")];
        let told =
            why(&Why { stage, state, causes: vec![], notes: vec![note], error: None, last, restored: false });
        let expected = [
            "kg is up to date.",
            "  input file MRREL was touched, its content is unchanged",
            "It last ran because:",
            "  kg.weight: 1 -> 2",
        ];
        assert_eq!(told, expected);
    }
}
