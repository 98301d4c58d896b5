//! Losses and scores over steps: which share a plot, how long runs become short ones.

use super::facts::{Curve, Row};
use crate::chart::Axis;
use crate::lines::{Line, Lines};
use crate::scale::Scale;
use crate::svg::Plot;

/// A run of more points is drawn smoothed, with a thin line of what it was.
const SMOOTHED: usize = 120;

/// Points of a drawn line, at most.
const MOST: usize = 160;

/// Points of the thin lines behind it, at most; of each of many runs at most so many as [`FEWEST`].
const THIN: usize = 360;

/// What each of many runs may have at least.
const FEWEST: usize = 60;

/// One drawing for each thing that was measured, with all variants in it: those of `rows` have a style each. Names of drawings begin with `name`.
pub(crate) fn plots(curves: &[Curve], rows: &[Row], name: &str) -> Vec<Plot> {
    let mut groups: Vec<(&str, &str, Vec<&Curve>)> = Vec::new();
    for curve in curves {
        match groups.iter_mut().find(|(task, y, _)| (*task, *y) == (&*curve.task, &*curve.y)) {
            Some((_, _, curves)) => curves.push(curve),
            None => groups.push((&curve.task, &curve.y, vec![curve])),
        }
    }
    // A variant has one style in all plots.
    let style = |of: &str| rows.iter().position(|row| row.name == of).unwrap_or(rows.len());
    let title = |of: &str| rows.iter().find(|row| row.name == of).map_or(of, |row| &*row.title).to_owned();
    let draw = |(number, (task, y, curves)): (usize, (&str, &str, Vec<&Curve>))| {
        let mut named: Vec<(&str, Vec<&Curve>)> = Vec::new();
        for &curve in &curves {
            match named.iter_mut().find(|(name, _)| *name == curve.name) {
                Some((_, runs)) => runs.push(curve),
                None => named.push((&curve.name, vec![curve])),
            }
        }
        let titles: Vec<String> = named.iter().map(|(name, _)| title(name)).collect();
        let lines =
            named.iter().zip(&titles).flat_map(|((name, runs), title)| lines(runs, title, style(name)));
        plot(
            &format!("{name}-{number:02}"),
            [task, y],
            curves.first().map_or("", |curve| &*curve.x),
            lines.collect(),
        )
    };
    groups.into_iter().enumerate().map(draw).collect()
}

fn plot(name: &str, [task, y]: [&str; 2], x: &str, lines: Vec<Line<'_>>) -> Plot {
    let thin = || lines.iter().flat_map(|line| &line.raw);
    let long = lines.iter().any(|line| line.points.len() > SMOOTHED);
    let shown = || lines.iter().map(|line| &line.points).chain(thin().filter(|_| !long)).flatten();
    let ends = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), value| (a.min(value), b.max(value)))
    };
    let (least, most) = ends(&mut shown().map(|point| point.1));
    let (_, farthest) = ends(&mut shown().map(|point| point.0));
    let mut text = format!("{} over {x}.", capital(y));
    if lines.iter().any(|line| line.raw.len() > 1) {
        text.push_str(" Thick lines are means over runs, as far as all of them go; thin ones the runs.");
    }
    if long {
        text.push_str(" Thick lines are moving means over a twenty-fifth of a run, thin ones the values themselves, which are cut at the edges.");
    }
    // Single values reach farther than means.
    let room = if long { (most - least) * 0.15 } else { 0.0 };
    // Room does not make losses and rates of less than nothing.
    let floor = if least >= 0.0 { (least - room).max(0.0) } else { least - room };
    let scale = if least <= most { Scale::range(floor, most + room) } else { Scale::linear(1.0) };
    Lines {
        name,
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

/// The runs of one variant: their mean before them; without a step in common a line for each.
fn lines<'a>(runs: &[&Curve], name: &'a str, style: usize) -> Vec<Line<'a>> {
    let runs: Vec<Vec<(f64, f64)>> = runs.iter().map(|run| sound(&run.points)).collect();
    let line = |points: &[(f64, f64)], raw: Vec<Vec<(f64, f64)>>| match points.len() {
        0..=SMOOTHED => Line { name, style, points: points.to_vec(), raw },
        _ => Line { name, style, points: even(&smooth(points), MOST), raw },
    };
    let behind = |run: &Vec<(f64, f64)>| thin(run, (THIN / runs.len()).max(FEWEST));
    match (&runs[..], shared(&runs)) {
        ([run], _) if run.len() <= SMOOTHED => vec![line(run, Vec::new())],
        ([_], _) | (_, None) => runs.iter().map(|run| line(run, vec![behind(run)])).collect(),
        (_, Some(mean)) => vec![line(&mean, runs.iter().map(behind).collect())],
    }
}

/// Points that are numbers, from left to right.
fn sound(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut points = points.to_vec();
    points.retain(|(x, y)| x.is_finite() && y.is_finite());
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// The mean of all runs where all of them have a point; none if that is nowhere.
fn shared(runs: &[Vec<(f64, f64)>]) -> Option<Vec<(f64, f64)>> {
    let (first, others) = runs.split_first()?;
    let at = |run: &Vec<(f64, f64)>, x: f64| {
        run.binary_search_by(|point| point.0.total_cmp(&x)).ok().map(|place| run[place].1)
    };
    let mean = |&(x, y): &(f64, f64)| {
        let ys: Option<Vec<f64>> = others.iter().map(|run| at(run, x)).collect();
        ys.map(|ys| (x, (y + ys.iter().sum::<f64>()) / runs.len() as f64))
    };
    let means: Vec<(f64, f64)> = first.iter().filter_map(mean).collect();
    (!means.is_empty()).then_some(means)
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
        let noise = |step: u32| if step.is_multiple_of(2) { 0.1 } else { -0.1 };
        (0..steps).map(|step| (f64::from(step), 1.0 / f64::from(step + 1) + noise(step))).collect()
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

    fn curve(points: &[(f64, f64)]) -> Curve {
        let (name, task, x, y) = ("a".to_owned(), "t".to_owned(), "steps".to_owned(), "loss".to_owned());
        Curve { name, task, x, y, points: points.to_vec() }
    }

    #[test]
    fn values_that_are_no_numbers_are_left_out() {
        let found = lines(&[&curve(&[(2.0, 0.5), (1.0, f64::NAN), (0.0, 1.0)])], "a", 0);
        assert_eq!((found.len(), &found[0].points[..]), (1, &[(0.0, 1.0), (2.0, 0.5)][..]));
        assert!(lines(&[&curve(&[])], "a", 0)[0].points.is_empty());
    }

    #[test]
    fn runs_have_their_mean_before_them_as_far_as_all_go() {
        let (one, two) = (curve(&[(1.0, 0.0), (2.0, 4.0), (3.0, 9.0)]), curve(&[(1.0, 1.0), (2.0, 2.0)]));
        let found = lines(&[&one, &two], "a", 0);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].points, [(1.0, 0.5), (2.0, 3.0)]);
        assert_eq!(found[0].raw, [one.points.clone(), two.points]);
        assert_eq!(lines(&[&one, &curve(&[(5.0, 1.0)])], "a", 0).len(), 2, "no step in common");
    }

    #[test]
    fn a_long_run_is_smoothed_before_its_values() {
        let found = lines(&[&curve(&run(1000))], "a", 0);
        assert_eq!((found[0].points.len(), found[0].raw.len()), (MOST, 1));
        assert!(found[0].raw[0].len() <= THIN);
    }
}
