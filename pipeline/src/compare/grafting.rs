//! What the rows of a grafting came to, as stage `results` has written it.

use std::collections::BTreeMap;
use std::path::Path;

use ::report::grafting::facts::{Cell, Facts};
use anyhow::Context as _;

use super::whole;
use crate::engine::layout::Layout;
use crate::engine::ledger;
use crate::stage::finetune::quirks::ChosenOn;
use crate::stage::graft::results::FACTS;
use crate::stage::scores::Line;

/// The stage that makes the table of a grafting.
pub(super) const STAGE: &str = "results";

/// For each row, benchmark and metric the scores in `out` that a line of its ledger names.
///
/// # Errors
/// When their file is not there, or not as the ledger has it.
pub(super) fn read(out: &Path, line: &ledger::Line) -> anyhow::Result<Vec<Line>> {
    let path = Layout::new(out).artifact(STAGE).join(FACTS);
    whole(&path, FACTS, line)?;
    let named = || path.display().to_string();
    let facts = Facts::parse(&std::fs::read(&path).with_context(named)?).with_context(named)?;
    facts.cells.iter().map(|cell| scores(cell, &facts)).collect()
}

/// A cell of the table as a line of scores. Rows begin with what their names say; the checkpoint itself the file does not name.
fn scores(cell: &Cell, facts: &Facts) -> anyhow::Result<Line> {
    let size = facts.sizes.iter().find(|size| size.benchmark == cell.benchmark);
    let [train, test] = size.map_or([0, 0], |size| [size.train, size.test]);
    Ok(Line {
        benchmark: cell.benchmark.clone(),
        how: cell.row.clone(),
        began_with: vec![],
        metric: cell.metric.clone(),
        train: usize::try_from(train)?,
        test: usize::try_from(test)?,
        parameters: None,
        mean: cell.mean,
        best: cell.best_of_seeds().unwrap_or(cell.mean),
        interval: cell.low.zip(cell.high).map(|(low, high)| [low, high]),
        chosen_on: ChosenOn::Dev,
        seeds: cell.seeds.iter().map(|seed| seed.test).collect(),
        seed_numbers: cell.seeds.iter().map(|seed| seed.seed).collect(),
        others: BTreeMap::new(),
    })
}
