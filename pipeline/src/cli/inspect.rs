//! What is known of one artifact, from the ledger and from the stage that can read its files.

use super::{explain, measure, table};
use crate::engine::Engine;
use crate::engine::ledger::Line;
use crate::engine::stage::Stage;

/// What is said of a stage that was made here and that the config at hand has not.
pub(super) fn of_another(artifact: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "{artifact} was made here by another config than the one at hand: name that one with --config (`engraft status` says which it was)"
    )
}

/// The artifact for people.
pub(super) fn inspect(engine: &Engine, stage: &dyn Stage, line: &Line, now_ms: u64) -> Vec<String> {
    let took = measure::time(line.seconds);
    let mut lines = vec![
        format!(
            "{}: made {} in {took}, by engraft {}",
            line.stage,
            explain::ago(line.started_ms, now_ms),
            line.engraft
        ),
        format!("fingerprint {}", line.fingerprint),
        format!("digest      {}", line.artifact),
    ];
    let restored = line.restored_ms.map(|at| format!("restored {}", explain::ago(at, now_ms)));
    lines.splice(1..1, restored);
    let place = engine.layout().artifact(&line.stage);
    if !place.is_dir() {
        lines.push(format!("{} is gone: `engraft run {}` makes it again", place.display(), line.stage));
    }
    lines.extend(line.facts.iter().flat_map(|(key, value)| table::fact(key, value)));
    lines.extend(files(engine, stage, line));
    lines
}

fn files(engine: &Engine, stage: &dyn Stage, line: &Line) -> Vec<String> {
    let row = |output: &crate::engine::folder::Output| {
        vec![output.path.clone(), measure::count(output.bytes), output.blake3.to_string()]
    };
    let rows: Vec<_> = line.outputs.iter().map(row).collect();
    let mut table = table::table(&["FILE", "BYTES", "BLAKE3"], &rows).into_iter();
    let mut lines: Vec<String> = table.next().into_iter().collect();
    for (output, row) in line.outputs.iter().zip(table) {
        lines.push(row);
        let path = engine.layout().artifact(&line.stage).join(&output.path);
        if !path.exists() {
            lines.push("  missing".to_owned());
            continue;
        }
        let told = stage.inspect(&path).unwrap_or_else(|error| vec![format!("cannot be read: {error:#}")]);
        lines.extend(told.into_iter().map(|text| format!("  {text}")));
    }
    lines
}
