//! What became of every row of every source: one chart of all sources, and a table of every file with every reason.

use maud::{Markup, html};
use serde_json::Value;

use super::number::{percent, thousands};
use super::svg::{Anchor, LINE, Plot, Sheet, at, rect, width, wrapped};
use super::table::{captioned, plain, text};

const WIDTH: f64 = 480.0;
/// Height of a bar.
const BAR: f64 = 22.0;

/// What a row can become, in the order of a bar: the word for it and the class of its colour.
const FATES: [(&str, &str); 4] = [
    ("triples", "f2"),
    ("stated more than once", "f0"),
    ("dropped by merging", "f3"),
    ("dropped while reading", "f1"),
];

/// What became of the rows of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Funnel {
    source: String,
    /// Rows by fate, as in [`FATES`].
    rows: [u64; 4],
}

impl Funnel {
    fn all(&self) -> u64 {
        self.rows.iter().sum()
    }
}

/// What became of all sources together, if there are several, and of each, in the funnel's order.
fn funnels(funnel: &Value) -> Vec<Funnel> {
    let mut all: Vec<Funnel> = Vec::new();
    for source in list(funnel, "read") {
        let name = text_of(source, "source");
        let triples = source.get("triples").unwrap_or(&Value::Null);
        let (read, kept) = (count(triples, "read"), count(triples, "kept"));
        let stated = funnel.pointer("/merged/sources").and_then(|sources| sources.get(name));
        let rows = match stated {
            Some(of) => {
                let dropped = count(of, "self_loops") + count(of, "below_min_relation_count");
                [count(of, "distinct"), count(of, "merged"), dropped, read.saturating_sub(kept)]
            }
            None => [kept, 0, 0, read.saturating_sub(kept)],
        };
        all.push(Funnel { source: name.to_owned(), rows });
    }
    if all.len() > 1 {
        let mut rows = [0, 1, 2, 3].map(|fate| all.iter().map(|of| of.rows[fate]).sum::<u64>());
        // What a second source states again is one triple.
        let again = funnel.get("merged").map_or(0, |merged| count(merged, "merged_across_sources"));
        rows[0] = rows[0].saturating_sub(again);
        rows[1] += again;
        all.insert(0, Funnel { source: "all sources together".to_owned(), rows });
    }
    all
}

/// All sources: what share of the rows read became what. None if nothing was read.
#[must_use]
pub fn plot(funnel: &Value) -> Option<Plot> {
    let funnels = funnels(funnel);
    if funnels.is_empty() {
        return None;
    }
    let mut sheet = Sheet::new(WIDTH);
    let (mut x, mut y) = (0.0, 40.0);
    for (word, class) in FATES {
        if x + 20.0 + width(word) > WIDTH {
            (x, y) = (0.0, y + LINE + 4.0);
        }
        sheet.bar(class, rect(x, y - 11.0, 14.0, 12.0), word);
        sheet.text("soft", at(x + 20.0, y), Anchor::Start, word);
        x += 20.0 + width(word) + 12.0;
    }
    y += 30.0;
    for of in &funnels {
        let (Funnel { source, rows }, all) = (of, of.all());
        y += LINE * (sheet.paragraph(at(0.0, y), WIDTH, source) as f64 - 1.0);
        let mut left = 0.0;
        for ((word, class), &count) in FATES.into_iter().zip(rows).filter(|(_, count)| **count > 0) {
            let share = kg::graph::distribution::share(count, all);
            let told = format!("{source}: {} {word} ({})", thousands(count), percent(share));
            sheet.bar(class, rect(left, y + 7.0, (WIDTH * share - 1.0).max(0.5), BAR), &told);
            left += WIDTH * share;
        }
        y += BAR + 23.0;
        // Its letters are smaller than those that widths are of.
        for line in wrapped(&sentence(rows), WIDTH * 1.08) {
            sheet.text("soft", at(0.0, y), Anchor::Start, &line);
            y += LINE;
        }
        y += 16.0;
    }
    let description = "Each bar is all rows that a source has read, so its parts are shares of them; the numbers below it are rows. From left to right: what became a triple, what states a triple that another row has stated, what merging dropped (self-loops, rare relations), what was dropped while reading.";
    Some(sheet.finish(y - 18.0, "funnel", "What became of every row", description))
}

/// The numbers of a bar.
fn sentence(rows: &[u64; 4]) -> String {
    let all = thousands(rows.iter().sum());
    let mut text = format!("{all} rows read → {} triples", thousands(rows[0]));
    for ((word, _), &count) in FATES.into_iter().zip(rows).skip(1).filter(|(_, count)| **count > 0) {
        text.push_str(&format!(" · {} {word}", thousands(count)));
    }
    text
}

/// Every file that was read, with every reason for which a row was dropped.
#[must_use]
pub fn files(funnel: &Value) -> Markup {
    let columns =
        [("Source", 'w'), ("File", 'w'), ("Bytes", 'n'), ("Read", 'n'), ("Kept", 'n'), ("Dropped", 'w')];
    let mut rows = Vec::new();
    for source in list(funnel, "read") {
        for tally in source.get("triples").into_iter().chain(list(source, "supporting")) {
            rows.push(vec![
                text(text_of(source, "source")),
                text(text_of(tally, "file")),
                plain(thousands(count(tally, "bytes"))),
                plain(thousands(count(tally, "read"))),
                plain(thousands(count(tally, "kept"))),
                text(&reasons(tally)),
            ]);
        }
        if let Some(of) = funnel.pointer("/merged/sources").and_then(|all| all.get(text_of(source, "source")))
        {
            rows.push(merging(text_of(source, "source"), of));
        }
    }
    if rows.is_empty() {
        return Markup::default();
    }
    let table =
        captioned("Every file, and for which reason its rows were dropped", &columns, rows.into_iter());
    html! { details { summary { "Every file and every reason" } (table) } "\n" }
}

/// What merging made of the kept rows.
fn merging(source: &str, of: &Value) -> Vec<Markup> {
    let mut told: Vec<String> = ["self_loops", "below_min_relation_count", "merged"]
        .into_iter()
        .filter(|reason| count(of, reason) > 0)
        .map(|reason| format!("{} {}", thousands(count(of, reason)), words(reason)))
        .collect();
    for (key, what) in [
        ("turned", "inverted into the relation whose inverse they state"),
        ("exchanged", "exchanged in a symmetric relation"),
    ] {
        if count(of, key) > 0 {
            told.push(format!("({} {what})", thousands(count(of, key))));
        }
    }
    vec![
        text(source),
        plain("merging of the kept rows"),
        plain(""),
        plain(thousands(count(of, "rows"))),
        plain(thousands(count(of, "distinct"))),
        plain(if told.is_empty() { "nothing".to_owned() } else { told.join(", ") }),
    ]
}

/// Reasons with their rows, those that dropped nothing last.
fn reasons(tally: &Value) -> String {
    let (mut some, mut idle) = (Vec::new(), Vec::new());
    for (reason, dropped) in tally.get("dropped").and_then(Value::as_object).into_iter().flatten() {
        match dropped.as_u64().unwrap_or(0) {
            0 => idle.push(words(reason)),
            rows => some.push(format!("{} {}", thousands(rows), words(reason))),
        }
    }
    let mut told = if some.is_empty() { "nothing".to_owned() } else { some.join(", ") };
    if !idle.is_empty() {
        told.push_str(&format!("; none as {}", idle.join(", ")));
    }
    told
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or("unnamed")
}

fn count(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or(0)
}

fn words(reason: &str) -> String {
    reason.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn funnel() -> Value {
        json!({"merged": {"merged_across_sources": 50, "sources": {
            "umls": {"rows": 900, "self_loops": 10, "merged": 90, "distinct": 800},
            "a source of a name that is longer than a chart is wide, so that it has to wrap somewhere": {"rows": 100, "distinct": 100},
        }}, "read": [
            {"source": "umls",
             "triples": {"file": "MRREL.RRF", "bytes": 9000, "read": 1200, "kept": 900, "dropped": {"suppressed": 300, "unlabelled": 0}},
             "supporting": [{"file": "MRCONSO.RRF", "bytes": 1, "read": 1, "kept": 1, "dropped": {}}]},
            {"source": "a source of a name that is longer than a chart is wide, so that it has to wrap somewhere",
             "triples": {"file": "t.tsv", "bytes": 9, "read": 100, "kept": 100, "dropped": {}}, "supporting": []},
        ]})
    }

    #[test]
    fn every_row_of_every_source_is_in_the_one_chart() {
        let found = funnels(&funnel());
        assert_eq!(
            found.iter().map(|of| of.rows).collect::<Vec<_>>(),
            [[850, 140, 10, 300], [800, 90, 10, 300], [100, 0, 0, 0]]
        );
        assert_eq!(found.iter().map(Funnel::all).collect::<Vec<_>>(), [1300, 1200, 100]);
        let drawn = plot(&funnel()).unwrap().inline();
        assert_eq!(
            sentence(&found[1].rows),
            "1,200 rows read → 800 triples · 90 stated more than once · 10 dropped by merging · 300 dropped while reading"
        );
        assert!(drawn.contains(">1,200 rows read → 800 triples"), "{drawn}");
        assert!(drawn.contains("all sources together") && !drawn.contains('…'), "names are whole");
    }

    #[test]
    fn every_file_and_every_reason_has_its_place() {
        let table = files(&funnel()).into_string();
        assert!(table.contains("300 suppressed; none as unlabelled"), "{table}");
        assert!(table.contains("MRCONSO.RRF") && table.contains("10 self loops, 90 merged"));
    }

    #[test]
    fn a_funnel_of_another_shape_shows_what_it_has() {
        assert!(plot(&json!({})).is_none() && files(&json!({})).into_string().is_empty());
        assert!(plot(&json!({"read": [{"triples": {}}]})).is_some());
    }
}
