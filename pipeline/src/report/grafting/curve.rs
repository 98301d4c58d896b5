//! Losses and scores over steps: which share a plot, how long runs become short ones. Knows not what was trained.

use super::facts::{Curve, Facts};
use crate::report::chart::Axis;
use crate::report::lines::{Line, Lines};
use crate::report::scale::Scale;
use crate::report::svg::Plot;

/// A run of more points is drawn smoothed, with a thin line of what it was.
const SMOOTHED: usize = 120;

/// Points of a drawn line, at most.
const MOST: usize = 160;

/// Points of a thin line behind it, at most.
const THIN: usize = 360;

/// One drawing for each thing that was measured, with all variants in it.
pub(super) fn plots(facts: &Facts) -> Vec<Plot> {
    let mut groups: Vec<(&str, &str, Vec<&Curve>)> = Vec::new();
    for curve in &facts.curves {
        match groups.iter_mut().find(|(task, y, _)| (*task, *y) == (&*curve.task, &*curve.y)) {
            Some((_, _, curves)) => curves.push(curve),
            None => groups.push((&curve.task, &curve.y, vec![curve])),
        }
    }
    let rows = facts.all_rows();
    // A variant has one style in all plots.
    let style = |name: &str| rows.iter().position(|row| row.name == name).unwrap_or(rows.len());
    let title =
        |name: &str| rows.iter().find(|row| row.name == name).map_or(name, |row| &*row.title).to_owned();
    let draw = |(number, (task, y, curves)): (usize, (&str, &str, Vec<&Curve>))| {
        let names: Vec<String> = curves.iter().map(|curve| title(&curve.name)).collect();
        let lines =
            curves.iter().zip(&names).map(|(curve, name)| line(curve, name, style(&curve.name))).collect();
        plot(number, (task, y, curves.first().map_or("", |curve| &*curve.x)), lines)
    };
    groups.into_iter().enumerate().map(draw).collect()
}

fn plot(number: usize, (task, y, x): (&str, &str, &str), lines: Vec<Line<'_>>) -> Plot {
    let ends = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), value| (a.min(value), b.max(value)))
    };
    let (least, most) = ends(&mut lines.iter().flat_map(|line| line.points.iter().map(|point| point.1)));
    let (_, farthest) = ends(&mut lines.iter().flat_map(|line| line.points.iter().map(|point| point.0)));
    let thin = lines.iter().any(|line| !line.raw.is_empty());
    let text = match (least <= most, thin) {
        (false, _) => "There is no point to draw.".to_owned(),
        (true, false) => format!("{} over {x}.", capital(y)),
        (true, true) => format!(
            "{} over {x}: moving means over a twenty-fifth of a run, thin behind them the values themselves, which are cut at the edges.",
            capital(y)
        ),
    };
    // Single values reach farther than means.
    let room = if thin { (most - least) * 0.15 } else { 0.0 };
    let scale = if least <= most { Scale::range(least - room, most + room) } else { Scale::linear(1.0) };
    Lines {
        name: &format!("curve-{number:02}"),
        title: (&format!("{}: {task}", capital(y)), &text),
        x: Axis { label: x, scale: Scale::linear(farthest) },
        y: Axis { label: y, scale },
        lines,
        levels: Vec::new(),
        marks: Vec::new(),
    }
    .draw()
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn line<'a>(curve: &Curve, name: &'a str, style: usize) -> Line<'a> {
    let mut points = curve.points.clone();
    points.retain(|(x, y)| x.is_finite() && y.is_finite());
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    if points.len() <= SMOOTHED {
        return Line { name, style, points, raw: Vec::new() };
    }
    Line { name, style, points: even(&smooth(&points), MOST), raw: thin(&points, THIN) }
}

/// Means over a fiftieth of all points to each side, as far as there are points.
fn smooth(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut sums = vec![0.0];
    sums.extend(points.iter().scan(0.0, |sum, (_, y)| {
        *sum += y;
        Some(*sum)
    }));
    let half = points.len() / 50;
    let mean = |(at, &(x, _)): (usize, &(f64, f64))| {
        let (from, to) = (at.saturating_sub(half), (at + half + 1).min(points.len()));
        (x, (sums[to] - sums[from]) / (to - from) as f64)
    };
    points.iter().enumerate().map(mean).collect()
}

/// At most `most` of the points, the first and last among them, evenly chosen.
fn even(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    if points.len() <= most {
        return points.to_vec();
    }
    (0..most).map(|at| points[at * (points.len() - 1) / (most - 1)]).collect()
}

/// At most `most` of the points: the lowest and the highest of so many stretches, so that no peak is lost.
fn thin(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    if points.len() <= most {
        return points.to_vec();
    }
    let stretch = points.len().div_ceil(most / 2);
    let ends = |part: &[(f64, f64)]| {
        let by = |a: &usize, b: &usize| part[*a].1.total_cmp(&part[*b].1);
        let (low, high) = ((0..part.len()).min_by(by), (0..part.len()).max_by(by));
        let (first, last) = (low.min(high), low.max(high));
        let ends: Vec<(f64, f64)> =
            first.into_iter().chain(last.filter(|at| Some(*at) != first)).map(|at| part[at]).collect();
        ends
    };
    points.chunks(stretch).flat_map(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(steps: u32) -> Vec<(f64, f64)> {
        (0..steps)
            .map(f64::from)
            .map(|x| (x, 1.0 / (x + 1.0) + if x as u32 % 2 == 0 { 0.1 } else { -0.1 }))
            .collect()
    }

    #[test]
    fn long_runs_become_short_and_keep_their_peaks_and_ends() {
        let mut points = run(100_000);
        points[54_321].1 = 9.0;
        let short = thin(&points, THIN);
        assert!(short.len() <= THIN && short.contains(&(54_321.0, 9.0)));
        assert!(short.is_sorted_by(|a, b| a.0 < b.0));
        let means = even(&smooth(&points), MOST);
        assert_eq!((means.len(), means[0].0, means[MOST - 1].0), (MOST, 0.0, 99_999.0));
        assert_eq!(thin(&run(20), THIN), run(20));
    }

    #[test]
    fn means_take_the_noise_away_and_keep_the_level() {
        let means = smooth(&run(1000));
        let jump = means[100..900].windows(2).map(|pair| (pair[0].1 - pair[1].1).abs()).fold(0.0, f64::max);
        assert!(jump < 0.01, "{jump}");
        assert!((means[500].1 - 1.0 / 501.0).abs() < 0.01);
    }

    #[test]
    fn values_that_are_no_numbers_are_left_out() {
        let points = vec![(2.0, 0.5), (1.0, f64::NAN), (0.0, 1.0)];
        let (name, task, x, y) = ("a".to_owned(), "t".to_owned(), "steps".to_owned(), "loss".to_owned());
        let curve = Curve { name, task, x, y, points };
        assert_eq!(line(&curve, "a", 0).points, [(0.0, 1.0), (2.0, 0.5)]);
    }
}
