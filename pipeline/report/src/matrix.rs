//! Counts of things against each other in a square, shaded by their share of the row.

use super::number::thousands;
use super::svg::{Anchor, LINE, Plot, Sheet, at, rect, width, wrapped};

const ROW: f64 = 36.0;
/// Above the names of the columns.
const TOP: f64 = 36.0;

/// Darkest shade; the numbers must stay readable on it.
const DARKEST: f64 = 0.45;

/// Draws the square `counts` of `names` by `names`; the diagonal is what each has in all.
#[must_use]
pub fn draw(name: &str, title: (&str, &str), names: &[String], counts: &[Vec<u64>]) -> Plot {
    let most = counts.iter().flatten().max().copied().unwrap_or(0);
    let longest = names.iter().map(|name| width(name)).fold(0.0, f64::max).min(160.0);
    let left = longest + 12.0;
    let column = (width(&thousands(most)) + 16.0).max(longest.min(110.0) + 10.0);
    let wide = (left + column * names.len() as f64).max(480.0);
    let lines = |room: f64| names.iter().map(|name| wrapped(name, room).len()).max().unwrap_or(1) as f64;
    let (above, row_high) = (TOP + LINE * lines(column - 8.0), ROW.max(LINE * lines(longest) + 8.0));
    let mut sheet = Sheet::new(wide);
    for (row, counts) in counts.iter().enumerate().take(names.len()) {
        let y = above + row_high * row as f64;
        let (whole, middle) = (counts.get(row).copied().unwrap_or(0), y + row_high / 2.0 + 5.0);
        sheet.label(at(left - 8.0, middle), longest, &names[row]);
        let header = wrapped(&names[row], column - 8.0);
        let first = above - 10.0 - LINE * (header.len() as f64 - 1.0);
        sheet.column(at(left + column * (row as f64 + 1.0) - 6.0, first), Anchor::End, &names[row], &header);
        for (place, &count) in counts.iter().enumerate() {
            let x = left + column * place as f64;
            let share = kg::graph::distribution::share(count, whole);
            let cell = rect(x + 1.0, y + 1.0, column - 2.0, row_high - 2.0);
            sheet.cell(cell, 0.04 + (DARKEST - 0.04) * share);
            sheet.text("ink", at(x + column - 8.0, middle), Anchor::End, &thousands(count));
        }
    }
    sheet.finish(above + row_high * names.len() as f64 + 8.0, name, title.0, title.1)
}
