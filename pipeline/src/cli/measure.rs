//! Bytes, rows, rates and times, formatted for people.

use std::time::Duration;

use indicatif::{DecimalBytes, HumanCount, HumanDuration};

use crate::engine::progress::Snapshot;

/// Cells of a bar; half of them where there are fewer columns than these.
const BAR: usize = 20;
const NARROW: usize = 100;

/// `12,345`
pub(super) fn count(n: u64) -> String {
    HumanCount(n).to_string()
}

/// `12.35 MB`
pub(super) fn bytes(n: u64) -> String {
    DecimalBytes(n).to_string()
}

/// `0.42 s` below a minute, `3 minutes` above.
pub(super) fn time(seconds: f64) -> String {
    if seconds < 60.0 {
        return format!("{seconds:.2} s");
    }
    // No run takes so long that a Duration cannot hold it; zero would only be a wrong word on a screen.
    HumanDuration(Duration::try_from_secs_f64(seconds).unwrap_or_default()).to_string()
}

/// `12 s` below a minute: what is only expected has no hundredths.
fn about(seconds: f64) -> String {
    if seconds < 59.5 { format!("{seconds:.0} s") } else { time(seconds.max(60.0)) }
}

/// A running stage: a bar and the time left if the end is known, bytes and rows with their rates, and how training goes; as much of it as fits so many
/// columns, and no number in part.
pub(super) fn running(now: &Snapshot, elapsed: Duration, columns: usize) -> String {
    let cells = if columns < NARROW { BAR / 2 } else { BAR };
    let bar = share(now).map(|share| bar(share, cells)).into_iter();
    let mut line = String::new();
    for part in bar.chain(counters(now, elapsed.as_secs_f64())) {
        let gap = if line.is_empty() { "" } else { "  " };
        if line.chars().count() + gap.len() + part.chars().count() > columns {
            break;
        }
        line = line + gap + &part;
    }
    line
}

/// The same in a line that stays.
pub(super) fn so_far(now: &Snapshot, elapsed: Duration) -> String {
    let share = share(now).map(percent).into_iter();
    share.chain(counters(now, elapsed.as_secs_f64())).collect::<Vec<_>>().join(", ")
}

/// What matters most comes first: the end of a line may not fit the terminal.
fn counters(now: &Snapshot, elapsed: f64) -> impl Iterator<Item = String> {
    // A training counts from its first step: what came before says nothing of how long a step takes.
    let seconds = now.training.map_or(elapsed, |training| training.elapsed.as_secs_f64());
    let sooner = now.training.is_some_and(|training| training.may_end_sooner);
    let left = left(now, elapsed)
        .map(|seconds| format!("{}{} left", if sooner { "at most " } else { "" }, about(seconds)));
    let step = now.training.and_then(|training| training.step);
    let evaluation = now.training.and_then(|training| training.evaluation);
    let parts = [
        left,
        amount(now.bytes, now.total_bytes, bytes),
        rate(now.bytes, seconds, bytes),
        amount(now.rows, now.total_rows, count).map(|text| format!("{text} {}", now.unit)),
        step.map(|step| format!("loss {:.4}", step.loss)),
        step.map(|step| format!("lr {:.2e}", step.learning_rate)),
        evaluation.map(|evaluation| format!("{} {:.4}", evaluation.of, evaluation.value)),
        pace(now.rows.saturating_sub(now.before), seconds, now.unit),
        rate(now.tokens, seconds, count).map(|rate| rate.replace('/', " tokens/")),
        waited(now, seconds),
    ];
    parts.into_iter().flatten()
}

/// A finished stage: what it read and did, with the mean rates.
pub(super) fn finished(end: &Snapshot, seconds: f64) -> String {
    let rows = amount(end.rows, 0, count).map(|text| format!("{text} {}", end.unit));
    let rows = rows.map(|text| {
        text + &pace(end.rows.saturating_sub(end.before), seconds, end.unit)
            .map_or_else(String::new, |r| format!(" ({r})"))
    });
    let tokens = rate(end.tokens, seconds, count).map(|rate| rate.replace('/', " tokens/"));
    let read = amount(end.bytes, 0, bytes);
    let read = read
        .map(|text| text + &rate(end.bytes, seconds, bytes).map_or_else(String::new, |r| format!(" ({r})")));
    [rows, tokens, waited(end, seconds), read, Some(time(seconds))]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", ")
}

/// Seconds until the last row or byte, if what was done in this run goes on as it went; nothing where that is not known, or where it is over.
#[expect(clippy::cast_precision_loss, reason = "for a screen")]
pub(super) fn left(now: &Snapshot, elapsed: f64) -> Option<f64> {
    let seconds = now.training.map_or(elapsed, |training| training.elapsed.as_secs_f64());
    let of = |done: u64, rest: u64| {
        (done > 0 && rest > 0 && seconds > 0.0).then(|| seconds * rest as f64 / done as f64)
    };
    if now.total_rows > 0 {
        return of(now.rows.saturating_sub(now.before), now.total_rows.saturating_sub(now.rows));
    }
    of(now.bytes, now.total_bytes.saturating_sub(now.bytes))
}

/// The share of the time in which a model waited for its data.
fn waited(now: &Snapshot, seconds: f64) -> Option<String> {
    let share = now.waited.as_secs_f64() / seconds;
    (now.tokens > 0 && seconds > 0.0).then(|| format!("{:.0}% waiting for data", share * 100.0))
}

fn amount(done: u64, total: u64, unit: fn(u64) -> String) -> Option<String> {
    match (done, total) {
        (0, 0) => None,
        (done, 0) => Some(unit(done)),
        (done, total) => Some(format!("{} of {}", unit(done), unit(total))),
    }
}

/// How many in a second.
#[expect(clippy::cast_precision_loss, reason = "for a screen")]
pub(super) fn per_second(done: u64, seconds: f64) -> f64 {
    done as f64 / seconds
}

/// Rows or steps in a second; of those that take longer, the seconds of one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "for a screen")]
fn pace(done: u64, seconds: f64, unit: &str) -> Option<String> {
    if done == 0 || seconds <= 0.0 {
        return None;
    }
    let rate = per_second(done, seconds);
    Some(match rate {
        _ if rate >= 10.0 => format!("{}/s", count(rate as u64)),
        _ if rate >= 1.0 => format!("{rate:.1}/s"),
        _ => format!("{:.1} s/{}", 1.0 / rate, unit.trim_end_matches('s')),
    })
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "for a screen"
)]
fn rate(done: u64, seconds: f64, unit: fn(u64) -> String) -> Option<String> {
    (done > 0 && seconds > 0.0).then(|| format!("{}/s", unit((done as f64 / seconds) as u64)))
}

/// How much of the work is done, from 0 to 1: by rows if their number is known, else by bytes.
#[expect(clippy::cast_precision_loss, reason = "for a screen")]
fn share(now: &Snapshot) -> Option<f64> {
    let of = |done: u64, total: u64| (total > 0).then(|| (done as f64 / total as f64).min(1.0));
    of(now.rows, now.total_rows).or_else(|| of(now.bytes, now.total_bytes))
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "for a screen"
)]
fn bar(share: f64, cells: usize) -> String {
    let full = (share * cells as f64).round() as usize;
    format!("{}{} {:>4}", "━".repeat(full), "╌".repeat(cells - full), percent(share))
}

/// What is not over has not 100 %.
fn percent(share: f64) -> String {
    format!("{:.0}%", (share * 100.0).floor())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::progress::{Evaluation, Step, Training};

    const NONE: Snapshot = Snapshot {
        bytes: 0,
        total_bytes: 0,
        rows: 0,
        total_rows: 0,
        unit: "rows",
        before: 0,
        tokens: 0,
        waited: Duration::ZERO,
        training: None,
    };

    const TWO: Duration = Duration::from_secs(2);

    #[test]
    fn a_known_end_gives_a_bar_and_the_time_left() {
        let now = Snapshot { bytes: 5_000_000, total_bytes: 20_000_000, rows: 1_200, total_rows: 0, ..NONE };
        assert_eq!(
            running(&now, TWO, 100),
            "━━━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌  25%  6 s left  5.00 MB of 20.00 MB  2.50 MB/s  1,200 rows  600/s"
        );
        // What does not fit is left out whole.
        assert_eq!(running(&now, TWO, 60), "━━━╌╌╌╌╌╌╌  25%  6 s left  5.00 MB of 20.00 MB  2.50 MB/s");
        assert_eq!(running(&now, TWO, 50), "━━━╌╌╌╌╌╌╌  25%  6 s left  5.00 MB of 20.00 MB");
        assert_eq!(running(&now, TWO, 20), "━━━╌╌╌╌╌╌╌  25%");
        assert_eq!(so_far(&now, TWO), "25%, 6 s left, 5.00 MB of 20.00 MB, 2.50 MB/s, 1,200 rows, 600/s");
    }

    #[test]
    fn what_an_earlier_run_did_makes_this_one_no_faster() {
        let now = Snapshot { rows: 91, total_rows: 100, before: 90, unit: "steps", ..NONE };
        assert_eq!(so_far(&now, TWO), "91%, 18 s left, 91 of 100 steps, 2.0 s/step");
    }

    #[test]
    fn a_time_that_is_not_known_is_not_shown() {
        let now = Snapshot { rows: 10, ..NONE };
        assert_eq!(running(&now, Duration::from_secs(1), 100), "10 rows  10/s");
        assert_eq!(running(&Snapshot { rows: 0, ..now }, Duration::from_secs(1), 100), "");
        assert_eq!(finished(&now, 2.0), "10 rows (5.0/s), 2.00 s");
        // Before the first step, after the last, and where all steps were made before.
        for (rows, before) in [(0, 0), (100, 0), (40, 40)] {
            let now = Snapshot { rows, total_rows: 100, before, ..NONE };
            assert_eq!(left(&now, 2.0), None, "{rows} {before}");
        }
    }

    #[test]
    fn a_training_says_its_tokens_and_how_long_it_waited() {
        let now =
            Snapshot { rows: 4, unit: "steps", tokens: 2_000, waited: Duration::from_millis(60), ..NONE };
        let said = "4 steps  2.0/s  1,000 tokens/s  3% waiting for data";
        assert_eq!(running(&now, TWO, 100), said);
        assert_eq!(finished(&now, 2.0), "4 steps (2.0/s), 1,000 tokens/s, 3% waiting for data, 2.00 s");
    }

    #[test]
    fn a_training_says_how_it_goes_and_counts_from_its_first_step() {
        let step = Step { loss: 0.421_34, learning_rate: 3e-5, tokens: 100 };
        let training = Training { elapsed: TWO, may_end_sooner: false, step: Some(step), evaluation: None };
        let now = Snapshot {
            rows: 50,
            total_rows: 100,
            before: 10,
            unit: "steps",
            training: Some(training),
            ..NONE
        };
        // It began an hour ago, most of which went into reading.
        let hour = Duration::from_secs(3600);
        assert_eq!(so_far(&now, hour), "50%, 2 s left, 50 of 100 steps, loss 0.4213, lr 3.00e-5, 20/s");
        let evaluation = Some(Evaluation { of: "dev score", value: 0.75 });
        let training = Training { may_end_sooner: true, evaluation, ..training };
        let now = Snapshot { rows: 11, training: Some(training), ..now };
        assert_eq!(
            so_far(&now, hour),
            "11%, at most 3 minutes left, 11 of 100 steps, loss 0.4213, lr 3.00e-5, dev score 0.7500, 2.0 s/step"
        );
    }
}
