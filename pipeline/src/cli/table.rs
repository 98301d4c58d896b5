//! Aligned columns for people: numbers to the right, text to the left.

use serde_json::{Map, Value};

/// Rows of cells under a heading, as lines. Columns in which every cell is a number are aligned to the right.
pub(super) fn table(heading: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let cell = |row: &Vec<String>, column: usize| row.get(column).map_or("", String::as_str).to_owned();
    let columns = 0..heading.len();
    let number = |text: &str| text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    let right: Vec<bool> =
        columns.clone().map(|c| !rows.is_empty() && rows.iter().all(|row| number(&cell(row, c)))).collect();
    let width = |c: usize| rows.iter().map(|row| cell(row, c).chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = columns.clone().map(|c| width(c).max(heading[c].chars().count())).collect();
    let heading: Vec<String> = heading.iter().map(|&text| text.to_owned()).collect();
    let line = |row: &Vec<String>| {
        let cells = columns.clone().map(|c| match right[c] {
            true => format!("{:>1$}", cell(row, c), widths[c]),
            false => format!("{:<1$}", cell(row, c), widths[c]),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    std::iter::once(&heading).chain(rows).map(line).collect()
}

/// A fact of the ledger as lines: a list of tables as a table, a table as `key  value`, the rest as it is.
pub(super) fn fact(key: &str, value: &Value) -> Vec<String> {
    let body = match value {
        Value::Array(list) if !list.is_empty() && list.iter().all(Value::is_object) => {
            records(&list.iter().filter_map(Value::as_object).map(flat).collect::<Vec<_>>())
        }
        Value::Object(fields) if !fields.is_empty() => {
            let rows: Vec<_> = flat(fields).into_iter().map(|(key, value)| vec![key, value]).collect();
            table(&["", ""], &rows).split_off(1)
        }
        leaf => return vec![format!("{key}: {}", shown(leaf))],
    };
    std::iter::once(format!("{key}:")).chain(body.into_iter().map(|line| format!("  {line}"))).collect()
}

fn records(rows: &[Vec<(String, String)>]) -> Vec<String> {
    let mut columns: Vec<&str> = Vec::new();
    for (key, _) in rows.iter().flatten() {
        if !columns.contains(&key.as_str()) {
            columns.push(key);
        }
    }
    let find = |row: &[(String, String)], column: &str| {
        row.iter().find(|(key, _)| key == column).map_or_else(String::new, |(_, value)| value.clone())
    };
    let rows: Vec<Vec<_>> =
        rows.iter().map(|row| columns.iter().map(|column| find(row, column)).collect()).collect();
    table(&columns, &rows)
}

/// The fields of a table and of the tables in it, by path.
fn flat(fields: &Map<String, Value>) -> Vec<(String, String)> {
    let deeper = |(key, value): (&String, &Value)| match value {
        Value::Object(inner) => {
            flat(inner).into_iter().map(|(path, value)| (format!("{key}.{path}"), value)).collect()
        }
        leaf => vec![(key.clone(), shown(leaf))],
    };
    fields.iter().flat_map(deeper).collect()
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.as_u64().map_or_else(|| number.to_string(), super::measure::count),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_funnel_is_an_aligned_table_whose_columns_are_those_of_all_rows() {
        let funnel = json!([
            {"source": "hsdn", "read": 147_978, "kept": 147_978},
            {"source": "umls", "read": 12, "dropped": {"no such entity": 5}, "kept": 7},
        ]);
        assert_eq!(
            fact("funnel", &funnel),
            [
                "funnel:",
                "  source     read     kept  dropped.no such entity",
                "  hsdn    147,978  147,978",
                "  umls         12        7                       5",
            ]
        );
    }

    #[test]
    fn single_facts_and_tables_of_them_are_lines() {
        assert_eq!(fact("entities", &json!(4541)), ["entities: 4,541"]);
        assert_eq!(
            fact("loss", &json!({"first": 2.5, "last": 0.25})),
            ["loss:", "  first   2.5", "  last   0.25"]
        );
    }
}
