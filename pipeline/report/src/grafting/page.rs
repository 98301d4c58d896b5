//! The page about a grafting: which table and plot stands where, and what is said where there is none.

use super::change;
use super::facts::{BASE, Facts, Heads, Row, Size};
use super::heat::{self, Heat};
use super::results::{self, Results};
use super::table::words;
use super::{curve, search, settings};
use crate::draft::{Draft, Page};
use crate::number::{percent, thousands};
use crate::svg::Plot;
use crate::table::{captioned, plain, text};
use crate::{lines, paired};
use maud::html;

const CSS: &str = include_str!("page.css");

/// The page of `facts`; equal facts give equal bytes.
#[must_use]
pub fn page(facts: &Facts) -> Page {
    let mut draft = Draft::new();
    draft.link("../index.html", "Overview of the folder");
    scores(facts, &mut draft);
    importance(facts, &mut draft);
    changes(facts, &mut draft);
    searches(facts, &mut draft);
    curves(facts, &mut draft);
    data(facts, &mut draft);
    let style = format!("{CSS}{}{}{}", heat::STYLE, lines::STYLE, paired::STYLE);
    draft.finish(&facts.title, &tiles(facts), &style)
}

fn tiles(facts: &Facts) -> Vec<(&'static str, String)> {
    let results = Results::of(facts);
    let mut benchmarks: Vec<&str> = results.columns.iter().map(|column| column.0).collect();
    benchmarks.dedup();
    let runs = facts.cells.iter().map(|cell| cell.seeds.len()).max().unwrap_or(0);
    let mut tiles = vec![
        ("variants with scores", thousands(results.rows.len() as u64)),
        ("benchmarks with scores", thousands(benchmarks.len() as u64)),
        ("seeds of a score, at most", thousands(runs as u64)),
    ];
    let shape = facts.importance.values().chain(facts.masks.values()).map(Heads::shape).next();
    if let Some([layers, heads]) = shape {
        tiles.push(("layers × heads", format!("{layers} × {heads}")));
    }
    for (kind, name) in [("hard", "vacant under the hard mask"), ("soft", "at least partly, soft mask")] {
        if let Some(mask) = facts.masks.get(kind) {
            tiles.push((name, format!("{} of {}", vacant(mask), mask.values().len())));
        }
    }
    tiles
}

/// Heads of a mask that retraining may move.
fn vacant(mask: &Heads) -> usize {
    mask.values().iter().filter(|kept| **kept < 1.0).count()
}

fn scores(facts: &Facts, draft: &mut Draft) {
    let lead = "What each variant reached on each benchmark after fine-tuning. Differences are paired: both models answered the same test samples.";
    draft.section("results", "Results", lead);
    let results = Results::of(facts);
    if results.rows.is_empty() {
        draft.none("No score yet. Fine-tuned models that were evaluated on a test part fill this table.");
        return;
    }
    draft.put(results::html(&results));
    draft.put(results::best(&results));
    draft.put(results::seeds(&results));
}

fn importance(facts: &Facts, draft: &mut Draft) {
    let lead = "How much the loss of each fine-tuned model depends on each of its heads. All maps have one scale of shades; layers and heads count from 0, the first layer on top. Outlined heads are vacant in the variant's mask, dashed ones partly: these were retrained, the others frozen.";
    draft.section("importance", "Importance of heads", lead);
    if facts.masks.is_empty() {
        draft.none("No head mask yet. A search for one fills this and outlines the vacant heads.");
    } else {
        draft.heading("Head masks");
        draft.plots(
            facts.masks.iter().enumerate().map(|(number, (kind, mask))| masked(number, kind, mask)).collect(),
        );
    }
    if facts.importance.is_empty() {
        draft.none("No importances yet. Measuring the heads of a fine-tuned model fills this.");
        return;
    }
    draft.heading("Importances");
    let rows = facts.all_rows();
    let measured = rows.iter().filter_map(|row| Some((row, facts.importance.get(&row.name)?)));
    let range = range(facts);
    let plots = measured.enumerate().map(|(number, (row, heads))| map(facts, range, number, row, heads));
    draft.plots(plots.collect());
    let missing = |row: &&Row| !facts.importance.contains_key(&row.name);
    if rows.iter().filter(missing).any(|row| row.name == BASE) {
        draft.none("The heads of the base were not measured, so nothing can be said of changes.");
    }
}

/// From 0, or below, to the largest importance of all.
fn range(facts: &Facts) -> (f64, f64) {
    let all = facts.importance.values().flat_map(|heads| heads.values().iter().copied());
    all.fold((0.0, 0.0), |(least, most): (f64, f64), value| (least.min(value), most.max(value)))
}

fn masked(number: usize, kind: &str, mask: &Heads) -> Plot {
    let vacant = vacant(mask);
    let share = percent(vacant as f64 / mask.values().len().max(1) as f64);
    let text = format!(
        "{vacant} of {} heads ({share}) are vacant or partly so. 1 is a kept head.",
        mask.values().len()
    );
    Heat {
        name: &format!("mask-{number:02}"),
        title: (&format!("Head mask, {}", words(kind)), &text),
        values: mask,
        range: (0.0, 1.0),
        mask: Some(mask),
    }
    .draw()
}

fn map(facts: &Facts, range: (f64, f64), number: usize, row: &Row, heads: &Heads) -> Plot {
    let mask = row.mask.as_ref().and_then(|kind| Some((kind, facts.masks.get(kind)?)));
    let mask = mask.filter(|(_, mask)| mask.shape() == heads.shape());
    let mean = heads.values().iter().sum::<f64>() / heads.values().len().max(1) as f64;
    let mut text = format!("Importance of each head, {mean:.3} on average.");
    match mask {
        Some((kind, _)) if row.name == BASE => {
            text.push_str(&format!(
                " Outlined: vacant in the {} mask, which was searched here.",
                words(kind)
            ));
        }
        Some((kind, _)) => {
            text.push_str(&format!(" Outlined: vacant in the {} mask, so retrained.", words(kind)));
        }
        None => {}
    }
    Heat {
        name: &format!("importance-{number:02}"),
        title: (&format!("Importance, {}", row.title), &text),
        values: heads,
        range,
        mask: mask.map(|(_, mask)| mask),
    }
    .draw()
}

fn changes(facts: &Facts, draft: &mut Draft) {
    let lead =
        "What retraining made of the heads: those that the mask kept were frozen, the others retrained.";
    draft.section("changes", "Before and after", lead);
    let changes = change::changes(facts);
    if changes.is_empty() {
        draft.none("Nothing to compare yet. It takes a head mask, the importances of the base, and those of a variant that was retrained under that mask.",
        );
        return;
    }
    draft.put(change::means(&changes));
    for (number, change) in changes.iter().enumerate() {
        draft.heading(change.title());
        draft.plots(change.plots(number));
    }
}

fn searches(facts: &Facts, draft: &mut Draft) {
    let lead = "The least important heads are masked step by step until the score falls below the threshold. The samples it is measured on are in no reported part.";
    draft.section("search", "Mask search", lead);
    if facts.searches.is_empty() {
        draft.none("No search yet. Searching a head mask on a fine-tuned base fills this.");
        return;
    }
    draft.put(search::outcomes(facts));
    draft.plots(search::plots(facts));
}

fn curves(facts: &Facts, draft: &mut Draft) {
    let lead = "Losses of retraining, held-out losses and dev scores of fine-tuning. A variant has the same line in all plots; several lines of one name are its runs.";
    draft.section("curves", "Training", lead);
    if facts.curves.is_empty() {
        draft.none("No curve yet. Retraining and fine-tuning fill this.");
        return;
    }
    draft.plots(curve::plots(&facts.curves, &facts.all_rows(), "curve"));
}

fn data(facts: &Facts, draft: &mut Draft) {
    draft.section(
        "data",
        "Data and notes",
        "How many samples the benchmarks have, what was trained with, and what else to know.",
    );
    if facts.sizes.is_empty() {
        draft.none("No sizes yet. Reading the benchmarks fills this.");
    } else {
        let columns = [("Benchmark", 'w'), ("Train", 'n'), ("Dev", 'n'), ("Test", 'n')];
        let row = |size: &Size| {
            let mut cells = vec![text(&size.benchmark)];
            cells.extend([size.train, size.dev, size.test].map(|count| plain(thousands(count))));
            cells
        };
        draft.put(captioned("Samples of each benchmark by part", &columns, facts.sizes.iter().map(row)));
    }
    if !facts.settings.is_empty() {
        draft.put(settings::html(facts));
    }
    if !facts.notes.is_empty() {
        draft.heading("Notes");
        draft.put(html! { ul { @for note in &facts.notes { li { (text(note)) } } } "\n" });
    }
}
