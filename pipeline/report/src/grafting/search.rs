//! How a search for a head mask went: scores over masked heads, the threshold, where it stopped.

use super::facts::{Facts, Search};
use super::table::{fixed, words};
use crate::chart::Axis;
use crate::lines::{Line, Lines};
use crate::scale::Scale;
use crate::svg::Plot;
use crate::table::{captioned, plain, text};
use maud::Markup;

/// One drawing for each search.
pub(super) fn plots(facts: &Facts) -> Vec<Plot> {
    facts.searches.iter().enumerate().map(|(number, (kind, search))| plot(number, kind, search)).collect()
}

fn plot(number: usize, kind: &str, search: &Search) -> Plot {
    let mut points = vec![(0.0, search.original_score)];
    points.extend(search.iterations.iter().map(|step| (step.masked as f64, step.score)));
    points.retain(|(_, score)| score.is_finite());
    let scores = points.iter().map(|point| point.1).chain([search.threshold]);
    let (least, most) = scores.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
    let most_masked = points.last().map_or(1.0, |point| point.0.max(1.0));
    let (word, point) = match search.taken() {
        Some(step) => (format!("{} masked", step.masked), (step.masked as f64, step.score)),
        None => ("none masked".to_owned(), (0.0, search.original_score)),
    };
    let description = format!(
        "Scores of the same model under more and more masked heads. The search stopped: {}. The square is the mask that it found, with {word}; points behind it went too far.",
        reason(&search.stop)
    );
    Lines {
        name: &format!("search-{number:02}"),
        title: (&format!("Mask search, {}", words(kind)), &description),
        x: Axis { label: "masked heads", scale: Scale::linear(most_masked) },
        y: Axis { label: "score", scale: Scale::range(least.min(most), most) },
        lines: vec![Line { name: kind, style: 0, points, raw: Vec::new() }],
        levels: vec![(search.threshold, format!("threshold {}", fixed(search.threshold, 4)))],
        marks: vec![(point, word)],
    }
    .draw()
}

/// Why a search ended, formatted for people.
fn reason(stop: &str) -> String {
    match stop {
        "score_below_threshold" => "the next score was below the threshold".to_owned(),
        "fewer_heads_left_than_step" => "fewer heads were left than a step takes".to_owned(),
        "all_left_are_protected" => "all heads that were left are protected".to_owned(),
        other => words(other),
    }
}

/// What each search found.
pub(super) fn outcomes(facts: &Facts) -> Markup {
    let columns = [
        ("Mask", 'w'),
        ("All heads on", 'n'),
        ("Threshold", 'n'),
        ("Steps", 'n'),
        ("Masked", 'n'),
        ("Score", 'n'),
        ("Why it stopped", 'w'),
    ];
    let row = |(kind, search): (&String, &Search)| {
        let taken = search.taken();
        vec![
            text(&words(kind)),
            plain(fixed(search.original_score, 4)),
            plain(fixed(search.threshold, 4)),
            plain(search.iterations.len()),
            plain(taken.map_or(0, |step| step.masked)),
            plain(fixed(taken.map_or(search.original_score, |step| step.score), 4)),
            text(&reason(&search.stop)),
        ]
    };
    captioned(
        "Searches for head masks, and the mask that each of them found",
        &columns,
        facts.searches.iter().map(row),
    )
}
