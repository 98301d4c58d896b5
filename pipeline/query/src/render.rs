//! Rows as an aligned table of text. What data hold neither steers a terminal nor breaks a line.

use std::fmt::Write as _;

use base::visible::shown;
use polars::prelude::{DataType, Schema};
use serde_json::{Map, Value};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What stands between two columns.
const GAP: &str = "  ";
/// What a cut text ends with.
const CUT: char = '…';
/// A column is cut no narrower than this; then columns on the right are left out.
const NARROWEST: usize = 8;

struct Stack {
    name: String,
    right: bool,
    cells: Vec<String>,
    width: usize,
}

/// A heading, the rows, and a line about columns for which `width` characters do not suffice.
pub(crate) fn table(schema: &Schema, rows: &[Map<String, Value>], width: Option<usize>) -> Vec<String> {
    let mut columns: Vec<Stack> = schema
        .iter()
        .map(|(name, dtype)| {
            let cells: Vec<String> = rows.iter().map(|row| cell(row.get(name.as_str()), dtype)).collect();
            let name = line(name);
            let width = cells.iter().map(|cell| cell.width()).fold(name.width(), usize::max);
            Stack { name, right: dtype.is_primitive_numeric(), cells, width }
        })
        .collect();
    let left_out = width.map_or_else(Vec::new, |width| fit(&mut columns, width));
    let heading = columns.iter().map(|column| column.name.clone()).collect();
    let row = |at: usize| columns.iter().map(|column| column.cells[at].clone()).collect();
    let mut lines = vec![joined(&columns, heading)];
    lines.extend((0..rows.len()).map(|at| joined(&columns, row(at))));
    if !left_out.is_empty() {
        lines.push(format!("({} more columns: {})", left_out.len(), left_out.join(", ")));
    }
    lines
}

/// Narrows the widest columns until all fit, then leaves columns on the right out; the names of these.
fn fit(columns: &mut Vec<Stack>, width: usize) -> Vec<String> {
    let total = |columns: &[Stack]| {
        let gaps = GAP.len() * columns.len().saturating_sub(1);
        columns.iter().map(|column| column.width).sum::<usize>() + gaps
    };
    let mut left_out = vec![];
    while columns.len() > 1 {
        let floors = columns.iter().map(|c| c.width.min(NARROWEST.max(c.name.width()))).sum::<usize>();
        if floors + GAP.len() * (columns.len() - 1) <= width {
            break;
        }
        left_out.extend(columns.pop().map(|column| column.name));
    }
    left_out.reverse();
    while total(columns) > width {
        let floor = |column: &Stack| NARROWEST.max(column.name.width());
        let widest = columns.iter_mut().filter(|c| c.width > floor(c)).max_by_key(|c| c.width);
        let Some(widest) = widest else { break };
        widest.width -= 1;
    }
    left_out
}

fn joined(columns: &[Stack], cells: Vec<String>) -> String {
    let mut line = String::new();
    for (place, (column, cell)) in columns.iter().zip(cells).enumerate() {
        let cell = cut(&cell, column.width);
        let space = " ".repeat(column.width.saturating_sub(cell.width()));
        let gap = if place == 0 { "" } else { GAP };
        // Writing into a text cannot fail.
        _ = if column.right {
            write!(line, "{gap}{space}{cell}")
        } else {
            write!(line, "{gap}{cell}{space}")
        };
    }
    line.trim_end().to_owned()
}

fn cut(text: &str, most: usize) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    let (mut short, mut width) = (String::new(), 1);
    for c in text.chars() {
        width += c.width().unwrap_or(0);
        if width > most {
            break;
        }
        short.push(c);
    }
    short.push(CUT);
    short
}

/// A value as people read it: numbers with at most six digits after the point, texts as they are, anything else as JSON.
fn cell(value: Option<&Value>, dtype: &DataType) -> String {
    match value {
        None | Some(Value::Null) => "null".to_owned(),
        Some(Value::String(text)) => line(text),
        Some(Value::Number(number)) if dtype.is_float() => number.as_f64().map_or_else(String::new, float),
        Some(other) => line(&other.to_string()),
    }
}

fn float(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e12).contains(&size) {
        return format!("{value:.5e}");
    }
    let text = format!("{value:.6}");
    let short = text.trim_end_matches('0');
    // One digit stays, so that a share of 1 does not look like a count.
    if short.ends_with('.') { format!("{short}0") } else { short.to_owned() }
}

/// A text on one line.
fn line(text: &str) -> String {
    shown(text).replace('\n', "\\n").replace('\t', "\\t")
}

#[cfg(test)]
mod tests {
    use polars::prelude::Field;
    use serde_json::json;

    use super::*;

    fn rows(of: Value) -> Vec<Map<String, Value>> {
        serde_json::from_value(of).unwrap()
    }

    fn schema() -> Schema {
        let fields = [("name", DataType::String), ("n", DataType::UInt32), ("share", DataType::Float64)];
        fields.into_iter().map(|(name, dtype)| Field::new(name.into(), dtype)).collect()
    }

    #[test]
    fn numbers_stand_to_the_right_and_what_steers_is_spelt_out() {
        let rows = rows(json!([
            {"name": "a\u{1b}[31m\nb", "n": 5, "share": 0.25},
            {"name": null, "n": 1234, "share": 1.0},
        ]));
        let table = table(&schema(), &rows, None);
        assert_eq!(
            table,
            ["name               n  share", "a\\u001b[31m\\nb     5   0.25", "null            1234    1.0"]
        );
    }

    #[test]
    fn a_narrow_terminal_cuts_texts_first_and_then_leaves_columns_out() {
        let rows = rows(json!([{"name": "心不全と心房細動のある患者", "n": 7, "share": 0.123456789}]));
        let cut = table(&schema(), &rows, Some(22));
        assert!(cut.iter().all(|line| line.width() <= 22), "{cut:#?}");
        assert_eq!(cut[1], "心不全と…  7  0.123457");
        let few = table(&schema(), &rows, Some(12));
        assert_eq!(few.last().unwrap(), "(1 more columns: share)");
    }

    #[test]
    fn floats_are_short() {
        let all = [0.5, 1.0, -0.125, 1e-9, 2.5e15, 0.0, 0.1 + 0.2].map(float);
        assert_eq!(all, ["0.5", "1.0", "-0.125", "1.00000e-9", "2.50000e15", "0.0", "0.3"]);
    }
}
