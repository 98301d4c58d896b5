//! The table of scores: variants down, benchmarks and their metrics across; for the page, as Markdown and as CSV.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base::visible::markdown;
use maud::{Markup, html};

use super::facts::{Cell, Difference, Facts, Row};
use super::table::{fixed, signed};
use crate::FEWEST_SEEDS;
use crate::table::{captioned, plain, text};

/// Name of the table as Markdown.
pub const MARKDOWN: &str = "table.md";

/// Name of the table as CSV.
pub const CSV: &str = "results.csv";

/// Who reached what.
pub(super) struct Results<'a> {
    /// Variants with a score.
    pub(super) rows: Vec<Row>,
    /// Benchmark and metric.
    pub(super) columns: Vec<(&'a str, &'a str)>,
    cells: BTreeMap<(&'a str, &'a str, &'a str), &'a Cell>,
}

impl<'a> Results<'a> {
    pub(super) fn of(facts: &'a Facts) -> Self {
        let mut cells = BTreeMap::new();
        let mut columns: Vec<(&str, &str)> = Vec::new();
        for cell in &facts.cells {
            cells.entry((&*cell.row, &*cell.benchmark, &*cell.metric)).or_insert(cell);
            if !columns.contains(&(&cell.benchmark, &cell.metric)) {
                columns.push((&cell.benchmark, &cell.metric));
            }
        }
        // Benchmarks in the order of their sizes, then as they came; metrics as they came.
        let first: Vec<&str> = facts.sizes.iter().map(|size| &*size.benchmark).collect();
        let came: Vec<&str> = columns.iter().map(|column| column.0).collect();
        let place = |name: &str, names: &[&str]| names.iter().position(|n| *n == name).unwrap_or(names.len());
        columns.sort_by_key(|(name, _)| (place(name, &first), place(name, &came)));
        let scored = |row: &Row| facts.cells.iter().any(|cell| cell.row == row.name);
        let rows = facts.all_rows().into_iter().filter(scored).collect();
        Results { rows, columns, cells }
    }

    fn cell(&self, row: &'a Row, column: (&'a str, &'a str)) -> Option<&'a Cell> {
        self.cells.get(&(&*row.name, column.0, column.1)).copied()
    }

    /// Benchmarks, and how many columns each has.
    fn benchmarks(&self) -> Vec<(&'a str, usize)> {
        let mut found: Vec<(&str, usize)> = Vec::new();
        for (benchmark, _) in &self.columns {
            match found.last_mut() {
                Some((last, count)) if last == benchmark => *count += 1,
                _ => found.push((benchmark, 1)),
            }
        }
        found
    }

    /// Whether a variant has several runs.
    fn has_seeds(&self) -> bool {
        self.cells.values().any(|cell| cell.seeds.len() > 1)
    }

    /// The best runs of a variant, one for each column.
    fn best_of(&self, row: &'a Row) -> Vec<Option<String>> {
        let of = |&column: &(&'a str, &'a str)| {
            let best = self.cell(row, column)?.best_of_seeds()?;
            Some(fixed(best * self.factor(column), 2))
        };
        self.columns.iter().map(of).collect()
    }

    /// How numbers of a column are shown: times 100, unless one of them is above 1.
    fn factor(&self, column: (&str, &str)) -> f64 {
        let large = |cell: &Cell| {
            (&*cell.benchmark, &*cell.metric) == column
                && cell.seeds.iter().map(|seed| seed.test).chain([cell.mean]).any(|score| score.abs() > 1.0)
        };
        if self.cells.values().any(|cell| large(cell)) { 1.0 } else { 100.0 }
    }
}

/// What the page says above its table.
pub(super) const CAPTION: &str = "Mean over seeds on the test part, times 100 where scores are shares, with its 95 % interval; below it the paired difference to base, with its own, and how likely one of its size is by chance (p). n is the number of seeds. The best of a column is bold and has a star. Fewer than 3 seeds have no interval, no p and no colour.";

pub(super) fn html(results: &Results<'_>) -> Markup {
    html! {
        div.wide tabindex="0" {
            table.results {
                caption { span { (text(CAPTION)) } }
                thead {
                    tr {
                        th rowspan="2" scope="col" { "Variant" }
                        @for (benchmark, columns) in results.benchmarks() {
                            th.of scope="colgroup" colspan=(columns) { (text(benchmark)) }
                        }
                    }
                    tr { @for (_, metric) in &results.columns { th.n scope="col" { (text(metric)) } } }
                }
                tbody {
                    @for row in &results.rows {
                        tr {
                            th scope="row" { (text(&row.title)) }
                            @for &column in &results.columns {
                                td.n {
                                    @match results.cell(row, column) {
                                        Some(cell) => (told(cell, results.factor(column))),
                                        None => span.soft { "no result" },
                                    }
                                }
                            }
                        }
                        "\n"
                    }
                }
            }
        }
        "\n"
    }
}

/// What is told of a cell: of too few seeds neither interval nor chance.
fn sound(cell: &Cell) -> Cell {
    let mut cell = cell.clone();
    if cell.seeds.len() < FEWEST_SEEDS {
        (cell.low, cell.high) = (None, None);
        let mean = |found: Difference| Difference { mean: found.mean, low: None, high: None, p: None };
        cell.difference_to_base = cell.difference_to_base.map(mean);
    }
    cell
}

fn told(cell: &Cell, factor: f64) -> Markup {
    let cell = &sound(cell);
    let mean = fixed(cell.mean * factor, 2);
    let mut last = format!("n = {}", cell.seeds.len());
    if let Some(p) = cell.difference_to_base.and_then(|difference| difference.p) {
        last = format!("{}, {last}", chance(p));
    }
    html! {
        @if cell.best { b { (mean) span title="best of the column" { " ★" } } } @else { (mean) }
        @if let Some(range) = range(cell.low, cell.high, factor, fixed) { span.beside { (range) } }
        @if let Some(difference) = &cell.difference_to_base {
            span.beside.up[difference.low.is_some_and(|low| low > 0.0)].down[difference.high.is_some_and(|high| high < 0.0)] {
                (against(difference, factor))
            }
        }
        span.beside { (last) }
    }
}

fn range(
    low: Option<f64>,
    high: Option<f64>,
    factor: f64,
    write: fn(f64, usize) -> String,
) -> Option<String> {
    let (low, high) = (write(low? * factor, 2), write(high? * factor, 2));
    Some(format!("[{low}, {high}]"))
}

fn against(difference: &Difference, factor: f64) -> String {
    let mut text = signed(difference.mean * factor, 2);
    if let Some(range) = range(difference.low, difference.high, factor, signed) {
        let _ = write!(text, " {range}");
    }
    text
}

fn chance(p: f64) -> String {
    if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {}", fixed(p, 3)) }
}

/// What is said above the table of the best runs.
pub(super) const BEST: &str = "The best run of each variant on the test part, as tables of the best of several seeds have it (KIMERA, table A4). It grows with the number of seeds and has no interval: a variant with more of them is not better for it.";

/// The best run of every variant, if there are several of one.
pub(super) fn best(results: &Results<'_>) -> Markup {
    if !results.has_seeds() {
        return html! {};
    }
    let columns = [("Variant", 'w'), ("Benchmark", 'w'), ("Metric", 'w'), ("Best", 'n')];
    let rows = results.rows.iter().flat_map(|row| {
        let of = results.columns.iter().zip(results.best_of(row));
        of.filter_map(|((benchmark, metric), best)| {
            Some(vec![text(&row.title), text(benchmark), text(metric), plain(best?)])
        })
    });
    let table = captioned(BEST, &columns, rows);
    html! { details { summary { "Best runs" } (table) } "\n" }
}

/// All runs, one a row.
pub(super) fn seeds(results: &Results<'_>) -> Markup {
    let columns =
        [("Variant", 'w'), ("Benchmark", 'w'), ("Metric", 'w'), ("Seed", 'n'), ("Dev", 'n'), ("Test", 'n')];
    let cells = results.rows.iter().flat_map(|row| {
        results.columns.iter().filter_map(move |&column| results.cell(row, column).map(|cell| (row, cell)))
    });
    let runs = cells.flat_map(|(row, cell)| cell.seeds.iter().map(move |seed| (row, cell, seed)));
    let rows = runs.map(|(row, cell, seed)| {
        let dev = seed.dev.map_or_else(|| "–".to_owned(), |score| fixed(score, 4));
        vec![
            text(&row.title),
            text(&cell.benchmark),
            text(&cell.metric),
            plain(seed.seed),
            plain(dev),
            plain(fixed(seed.test, 4)),
        ]
    });
    let table = captioned("Scores of each run, as shares", &columns, rows);
    html! { details { summary { "All runs" } (table) } "\n" }
}

/// The table as Markdown, for a README.
#[must_use]
pub fn readme(facts: &Facts) -> String {
    let results = Results::of(facts);
    let titles: Vec<String> = results
        .columns
        .iter()
        .map(|(benchmark, metric)| markdown(&format!("{benchmark} {metric}")))
        .collect();
    let mut text = head(&titles);
    for row in &results.rows {
        let _ = write!(text, "| {} |", markdown(&row.title));
        for &column in &results.columns {
            let cell = results.cell(row, column);
            let _ = write!(
                text,
                " {} |",
                cell.map_or_else(String::new, |cell| marked(cell, results.factor(column)))
            );
        }
        text.push('\n');
    }
    let _ = writeln!(
        text,
        "\n{}",
        CAPTION.replace(" and has a star", "").replace(", no p and no colour", " and no p")
    );
    if results.has_seeds() {
        let _ = write!(text, "\n{}", head(&titles));
        for row in &results.rows {
            let cells = results.best_of(row).into_iter().map(Option::unwrap_or_default);
            let _ =
                writeln!(text, "| {} | {} |", markdown(&row.title), cells.collect::<Vec<_>>().join(" | "));
        }
        let _ = writeln!(text, "\n{BEST}");
    }
    text
}

/// The head of a table of variants.
fn head(titles: &[String]) -> String {
    if titles.is_empty() {
        return "| variant |\n|---|\n".to_owned();
    }
    format!("| variant | {} |\n|---|{}\n", titles.join(" | "), "---:|".repeat(titles.len()))
}

fn marked(cell: &Cell, factor: f64) -> String {
    let cell = &sound(cell);
    let mean = fixed(cell.mean * factor, 2);
    let mut text = if cell.best { format!("**{mean}**") } else { mean };
    if let Some(range) = range(cell.low, cell.high, factor, fixed) {
        let _ = write!(text, " {range}");
    }
    let _ = write!(text, ", n = {}", cell.seeds.len());
    if let Some(difference) = &cell.difference_to_base {
        let _ = write!(text, "<br>{}", against(difference, factor));
        if let Some(p) = difference.p {
            let _ = write!(text, ", {}", chance(p).replace('<', "&lt;"));
        }
    }
    text
}

/// The table as CSV, a line for each score, as shares with all their digits. `runs` has `SEED=TEST` of each run, `best_of_seeds` the largest of these.
#[must_use]
pub fn csv(facts: &Facts) -> String {
    let mut text = "variant,benchmark,metric,seeds,mean,low,high,difference,difference_low,difference_high,p,best,runs,best_of_seeds\n".to_owned();
    let results = Results::of(facts);
    for row in &results.rows {
        for &column in &results.columns {
            let Some(cell) = results.cell(row, column) else { continue };
            let difference = cell.difference_to_base.as_ref();
            let numbers = [
                Some(cell.mean),
                cell.low,
                cell.high,
                difference.map(|found| found.mean),
                difference.and_then(|found| found.low),
                difference.and_then(|found| found.high),
                difference.and_then(|found| found.p),
            ];
            let runs: Vec<String> =
                cell.seeds.iter().map(|seed| format!("{}={}", seed.seed, seed.test)).collect();
            let mut fields = [&row.name, &cell.benchmark, &cell.metric].map(|text| quoted(text)).to_vec();
            fields.push(cell.seeds.len().to_string());
            fields.extend(numbers.map(|number| number.map_or_else(String::new, |number| number.to_string())));
            let best = cell.best_of_seeds().map_or_else(String::new, |best| best.to_string());
            fields.extend([cell.best.to_string(), runs.join(" "), best]);
            let _ = writeln!(text, "{}", fields.join(","));
        }
    }
    text
}

/// A field of a CSV file.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
