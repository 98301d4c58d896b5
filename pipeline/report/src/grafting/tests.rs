//! Tests of the page about a grafting, on invented facts.
#![cfg(test)]

use quick_xml::events::Event;
use serde_json::json;

use super::facts::{Cell, Curve, Difference, Heads, Iteration, Row, Search, Seed, Size};
use super::settings::Settings;
use super::{Facts, page, results, write};

const HOSTILE: &str = "<script>alert('x')</script> & \"more\"|`";

/// A number from 0 to 1 that looks like chance.
fn noise(n: usize) -> f64 {
    let mixed = (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as f64 / f64::from(1 << 24)
}

fn heads(shape: [usize; 2], value: impl Fn(usize) -> f64) -> Heads {
    Heads::new(shape, (0..shape[0] * shape[1]).map(value).collect()).unwrap()
}

fn cell(row: &str, benchmark: &str, metric: &str, mean: f64) -> Cell {
    let seeds = (0..3).map(|seed| Seed { seed, dev: Some(mean), test: mean }).collect();
    let difference =
        Difference { mean: mean - 0.7, low: Some(mean - 0.71), high: Some(mean - 0.69), p: Some(0.0123) };
    Cell {
        row: row.to_owned(),
        benchmark: benchmark.to_owned(),
        metric: metric.to_owned(),
        seeds,
        mean,
        low: Some(mean - 0.01),
        high: Some(mean + 0.01),
        difference_to_base: (row != "base").then_some(difference),
        best: row == "hard",
    }
}

/// Everything, of the given size.
fn full(shape: [usize; 2], steps: u32, name: &str) -> Facts {
    let mut facts = Facts::titled(name);
    let all = shape[0] * shape[1];
    facts.rows.push(Row { name: name.to_owned(), title: name.to_owned(), mask: Some(name.to_owned()) });
    for (number, row) in facts.rows.clone().iter().enumerate() {
        facts.importance.insert(row.name.clone(), heads(shape, |at| noise(at + number * all)));
        facts.cells.push(cell(&row.name, "capr", "R@1", 0.7 + 0.01 * number as f64));
        facts.cells.push(cell(&row.name, name, "AUROC", 0.8));
        let point = |step| (f64::from(step), 3.0 / f64::from(step + 1) + noise(step as usize));
        let (task, x, y) = ("all tasks".to_owned(), "steps".to_owned(), "loss".to_owned());
        facts.curves.push(Curve {
            name: row.name.clone(),
            task,
            x,
            y,
            points: (0..steps).map(point).collect(),
        });
    }
    facts.cells.push(cell("hard", "capr", "MRR", 0.9));
    facts.masks.insert("hard".to_owned(), heads(shape, |at| f64::from(u8::from(noise(at) > 0.6))));
    facts.masks.insert("soft".to_owned(), heads(shape, |at| if noise(at) > 0.6 { 1.0 } else { noise(at) }));
    facts.masks.insert(name.to_owned(), heads(shape, |_| 1.0));
    let step = |n: usize| Iteration { selected: vec![n], score: 0.8 - 0.01 * (n * n) as f64, masked: n + 1 };
    let search = Search {
        original_score: 0.8,
        threshold: 0.76,
        stop: "score_below_threshold".to_owned(),
        iterations: (0..4).map(step).collect(),
    };
    facts.searches.insert("hard".to_owned(), search);
    facts.sizes.push(Size { benchmark: name.to_owned(), train: 1234, dev: 5, test: 6 });
    let settings = |row: &str, trials| Settings {
        row: row.to_owned(),
        benchmark: name.to_owned(),
        learning_rate: 5e-4,
        warmup: 0.1,
        epochs: 8,
        batch: 16,
        dropout: 0.25,
        trials,
    };
    facts.settings = vec![settings("base", None), settings("hard", Some(4))];
    facts.notes.push(name.to_owned());
    facts
}

#[test]
fn no_text_becomes_markup_and_nothing_comes_from_elsewhere() {
    let page = page(&full([2, 3], 200, HOSTILE));
    for banned in ["<script", "http://", "https://", "url(", "@import", "NaN"] {
        assert!(!page.html.contains(banned), "{banned}");
    }
    assert!(page.html.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;more&quot;"));
}

#[test]
fn the_page_is_well_formed_and_every_plot_has_a_name_of_its_own() {
    let page = page(&full([12, 12], 500, "other"));
    let mut names: Vec<&str> = page.plots.iter().map(|plot| plot.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), page.plots.len());
    let body = page.html.split("<body>").nth(1).unwrap().split("</body>").next().unwrap();
    for text in page.plots.iter().map(crate::svg::Plot::file).chain([format!("<body>{body}</body>")]) {
        let (mut reader, mut open) = (quick_xml::Reader::from_str(&text), Vec::new());
        loop {
            match reader.read_event().unwrap() {
                Event::Start(tag) => open.push(tag.name().as_ref().to_owned()),
                Event::End(tag) => assert_eq!(open.pop().as_deref(), Some(tag.name().as_ref())),
                Event::Eof => break,
                _ => {}
            }
        }
        assert!(open.is_empty() && !text.contains("inf\""));
    }
}

#[test]
fn the_page_of_a_large_encoder_and_long_runs_stays_small() {
    let facts = full([24, 16], 50_000, "other");
    let made = page(&facts);
    assert!(made.html.len() < 2_000_000, "{} bytes", made.html.len());
    assert_eq!(made.html, page(&facts).html, "equal facts give equal bytes");
}

#[test]
fn what_was_not_measured_says_what_would_fill_it() {
    let empty = page(&Facts::titled("t"));
    let open = |page: &super::super::Page| page.html.matches("<p class=\"none\">").count();
    assert_eq!(open(&empty), 7, "scores, masks, importances, changes, search, curves, sizes");
    assert!(
        !empty.html.contains("fine-tuned with"),
        "settings are no measure: they are told where they are known"
    );
    assert!(empty.plots.is_empty() && empty.html.contains("No head mask yet."));
    let mut facts = full([2, 2], 10, "other");
    assert_eq!(open(&page(&facts)), 0);
    let told = page(&facts).html;
    assert!(told.contains("5e-4") && told.contains("given") && told.contains("4 trials"));
    facts.masks.clear();
    let without = page(&facts);
    assert_eq!(open(&without), 2, "no mask, so nothing was frozen");
    assert!(without.plots.iter().any(|plot| plot.name == "importance-00"));
    facts.importance.remove("base");
    assert!(page(&facts).html.contains("The heads of the base were not measured"));
}

#[test]
fn the_table_has_means_intervals_differences_and_the_best() {
    let html = page(&full([2, 2], 10, "other")).html;
    let row = html.split("<th scope=\"row\">hard mask</th>").nth(1).unwrap().split("</tr>").next().unwrap();
    let capr = row.split("</td>").nth(1).unwrap();
    for part in
        ["<b>74.00<", "★", "[73.00, 75.00]", "beside up\">+4.00 [+3.00, +5.00]<", ">p = 0.012, n = 3<"]
    {
        assert!(capr.contains(part), "{part}: {capr}");
    }
    let base = html.split("<th scope=\"row\">base</th>").nth(1).unwrap().split("</tr>").next().unwrap();
    assert!(!base.contains("★") && !base.contains("p ="), "{base}");
    assert!(base.contains("no result"), "base has no MRR");
    assert!(
        html.contains("class=\"of\" scope=\"colgroup\" colspan=\"2\">capr</th>"),
        "both metrics of capr stand together"
    );
    let place = |heading: &str| html.find(&format!("scope=\"colgroup\" colspan={heading}</th>")).unwrap();
    let (other, capr) = (place("\"1\">other"), place("\"2\">capr"));
    assert!(other < capr, "benchmarks stand in the order of their sizes");
}

#[test]
fn markdown_and_csv_say_the_same() {
    let facts = full([2, 2], 10, HOSTILE);
    let text = results::readme(&facts);
    let lines: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), 2 + facts.rows.len(), "a heading, its rule, a line for each row");
    let bars = |line: &str| line.replace("\\|", "").matches('|').count();
    assert!(lines.iter().all(|line| bars(line) == 5), "{text}");
    assert!(
        text.contains("**74.00** [73.00, 75.00], n = 3<br>+4.00 [+3.00, +5.00], p = 0.012")
            && !text.contains("<script")
    );
    let csv = results::csv(&facts);
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), facts.cells.len());
    let hard = rows.iter().find(|row| &row[0] == "hard" && &row[2] == "R@1").unwrap();
    let cell = facts.cells.iter().find(|cell| cell.row == "hard" && cell.metric == "R@1").unwrap();
    assert_eq!(hard[4].parse::<f64>().unwrap(), cell.mean);
    assert_eq!((&hard[3], &hard[11], hard[12].split(' ').count()), ("3", "true", 3));
    let best = cell.seeds.iter().map(|seed| seed.test).fold(f64::NEG_INFINITY, f64::max);
    assert_eq!((hard[13].parse::<f64>().unwrap(), cell.best_of_seeds()), (best, Some(best)));
    let second = text.split("\n\n").nth(2).unwrap();
    assert!(
        second.starts_with("| variant |") && second.contains(&format!(" {:.2} |", 100.0 * best)),
        "{second}"
    );
    assert!(page(&facts).html.contains("Best runs"));
    assert!(rows.iter().any(|row| &row[0] == HOSTILE), "a field is what it was");
}

#[test]
fn scores_that_are_no_shares_are_shown_as_they_are() {
    let mut facts = Facts::titled("t");
    facts.cells = vec![cell("base", "b", "perplexity", 12.5), cell("hard", "b", "perplexity", 0.9)];
    let html = page(&facts).html;
    assert!(html.contains(">12.50<") && html.contains("<b>0.90<"), "the column has one scale");
}

#[test]
fn a_search_that_fell_at_once_found_nothing() {
    let mut facts = full([2, 2], 10, "other");
    let search = facts.searches.get_mut("hard").unwrap();
    assert_eq!(search.taken().map(|step| step.masked), Some(3));
    for step in &mut search.iterations {
        step.score = 0.1;
    }
    assert_eq!(search.taken(), None);
    assert!(page(&facts).html.contains(">none masked</text>"));
}

#[test]
fn a_folder_has_the_page_its_plots_and_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let facts = full([2, 2], 10, "other");
    let plots = write(&facts, folder.path()).unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("index.html"), page(&facts).html);
    assert_eq!((read("table.md"), read("results.csv")), (results::readme(&facts), results::csv(&facts)));
    assert!(read("search-00.svg").starts_with("<svg xmlns="));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), plots + 3);
    let missing = write(&facts, &folder.path().join("none")).unwrap_err().to_string();
    assert!(missing.contains("table.md: cannot write it"), "{missing}");
}

#[test]
fn facts_are_read_and_checked() {
    let facts = full([2, 3], 4, "other");
    assert_eq!(Facts::parse(&serde_json::to_vec(&facts).unwrap()).unwrap(), facts);
    let least = json!({"format": "engraft-grafting", "version": 1, "title": "t"});
    assert!(Facts::parse(least.to_string().as_bytes()).unwrap().cells.is_empty());
    let refused = |change: serde_json::Value| {
        let mut whole = serde_json::to_value(&facts).unwrap();
        whole.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        Facts::parse(whole.to_string().as_bytes()).unwrap_err().to_string()
    };
    assert!(refused(json!({"format": "engraft-shards"})).contains("unknown variant `engraft-shards`"));
    assert!(refused(json!({"version": 2})).contains("of version 2, expected 1"));
    assert!(refused(json!({"curve": []})).contains("unknown field `curve`"));
    let heads = |layers, values: [f64; 2]| json!({"masks": {"soft": {"layers": layers, "heads": 2, "values": values}}});
    assert!(refused(heads(3, [1.0, 1.0])).contains("2 numbers for 3 layers of 2 heads"));
    assert!(refused(heads(1, [1.0, 1.0])).contains("`soft` has 1 layers of 2 heads, others have 2 of 3"));
    let twice = [&facts.cells[0], &facts.cells[0]];
    assert!(refused(json!({"cells": twice})).contains("`base` has two scores by R@1 of capr"));
    let nan = Heads::new([1, 1], vec![f64::NAN]).unwrap_err().to_string();
    assert!(nan.starts_with("layer 0, head 0 (from 0): NaN, expected a number"), "{nan}");
}
