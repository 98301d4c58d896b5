//! Leaks between tasks: what one learns from and another is tested on.

use serde::Serialize;

use super::statement::{Row, Statements};
use super::{Options, other_parts, unknown};
use crate::Refused;
use crate::split::{Part, Together, View};

/// A task's use of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// Number of the task in the caller's list; [`SPLIT`] is taken.
    pub task: u32,
    /// The part in which the task uses it.
    pub part: Part,
    /// Row of the triple table.
    pub triple: u32,
}

/// In place of a task: what the split itself holds out.
pub const SPLIT: u32 = u32::MAX;

/// What one task learns from, or is tuned on, gives away what another, or the split, holds out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct TaskLeak {
    /// The row held out.
    pub held: u32,
    /// Where: valid or test.
    pub held_part: Part,
    /// By which task, or [`SPLIT`].
    pub held_task: u32,
    /// A row that says the same, perhaps itself.
    pub shown: u32,
    /// Where: train or valid.
    pub shown_part: Part,
    /// By which task.
    pub shown_task: u32,
}

/// The first (row, task) of a part in which something is said.
type First = Option<(u32, u32)>;

/// Every statement that is shown in train while held out, or shown in valid while held out in test, by tasks or by the split: one leak
/// for each two parts of a statement, with the first rows. The order of `shown` does not matter.
///
/// # Errors
/// When parts, relations or rows are those of another graph.
pub fn tasks(
    view: &View,
    part: &[Part],
    shown: impl Iterator<Item = Shown>,
    options: &Options,
) -> Result<Vec<TaskLeak>, Refused> {
    let there = view.triples().len();
    if part.len() != there {
        return Err(other_parts(view, part.len()));
    }
    let rows = Statements::new(view, options.inverses)?.rows(view, |_| Some(Part::Train));
    let statement = numbers(&rows, options.together);
    drop(rows);
    let count = statement.iter().max().map_or(0, |&last| last as usize + 1);
    let mut by_tasks: Vec<[First; 3]> = vec![[None; 3]; count];
    for Shown { task, part, triple } in shown {
        let number = statement.get(triple as usize).ok_or_else(|| unknown("row", triple, there))?;
        see(&mut by_tasks[*number as usize], part, (triple, task));
    }
    let mut by_split: Vec<[First; 3]> = vec![[None; 3]; count];
    for ((&part, &number), row) in part.iter().zip(&statement).zip(0..) {
        if part.is_held_out() {
            see(&mut by_split[number as usize], part, (row, SPLIT));
        }
    }
    let mut leaks: Vec<TaskLeak> = Vec::new();
    for (tasks, split) in by_tasks.iter().zip(&by_split) {
        for (held_place, held_part) in [(1, Part::Valid), (2, Part::Test)] {
            let Some((held, held_task)) = tasks[held_place].or(split[held_place]) else { continue };
            for (shown, shown_part) in tasks[..held_place].iter().zip([Part::Train, Part::Valid]) {
                if let Some((shown, shown_task)) = *shown {
                    leaks.push(TaskLeak { held, held_part, held_task, shown, shown_part, shown_task });
                }
            }
        }
    }
    leaks.sort_unstable();
    Ok(leaks)
}

/// By row: the number of what it says.
fn numbers(rows: &[Row], together: Together) -> Vec<u32> {
    let mut numbers = vec![0; rows.len()];
    let same = |a: &Row, b: &Row| match together {
        Together::Pair => a.texts == b.texts,
        Together::Inverse => a.statement() == b.statement(),
    };
    for (number, rows) in (0..).zip(rows.chunk_by(same)) {
        rows.iter().for_each(|row| numbers[row.row as usize] = number);
    }
    numbers
}

/// Notes the first of a part; what is aside shows nothing and is held out from nothing.
fn see(firsts: &mut [First; 3], part: Part, seen: (u32, u32)) {
    let place = match part {
        Part::Train => 0,
        Part::Valid => 1,
        Part::Test => 2,
        Part::Aside => return,
    };
    firsts[place] = Some(firsts[place].map_or(seen, |first| first.min(seen)));
}
