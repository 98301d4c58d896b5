//! Bytes, rows, rates and times, formatted for people.

use std::time::Duration;

use indicatif::{DecimalBytes, HumanCount, HumanDuration};

use crate::engine::progress::Snapshot;

const BAR: usize = 20;

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

/// A running stage: a bar if the end is known, bytes and rows with their rates, and the time left.
pub(super) fn running(now: &Snapshot, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    let share = share(now);
    let parts = [
        share.map(bar),
        amount(now.bytes, now.total_bytes, bytes),
        rate(now.bytes, seconds, bytes),
        amount(now.rows, now.total_rows, count).map(|text| format!("{text} {}", now.unit)),
        rate(now.rows.saturating_sub(now.before), seconds, count),
        rate(now.tokens, seconds, count).map(|rate| rate.replace('/', " tokens/")),
        waited(now, seconds),
        left(now, seconds).map(|seconds| format!("{} left", time(seconds))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("  ")
}

/// A finished stage: what it read and did, with the mean rates.
pub(super) fn finished(end: &Snapshot, seconds: f64) -> String {
    let rows = amount(end.rows, 0, count).map(|text| format!("{text} {}", end.unit));
    let rows = rows.map(|text| {
        text + &rate(end.rows.saturating_sub(end.before), seconds, count)
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

/// Seconds until the end, if what was done in this run goes on as it went.
#[expect(clippy::cast_precision_loss, reason = "for a screen")]
fn left(now: &Snapshot, seconds: f64) -> Option<f64> {
    if now.total_rows > 0 {
        let done = now.rows.saturating_sub(now.before);
        let rest = now.total_rows.saturating_sub(now.rows) as f64;
        return (done > 0 && seconds > 0.0).then(|| seconds * rest / done as f64);
    }
    share(now).filter(|&done| done > 0.0 && seconds > 0.0).map(|done| seconds / done - seconds)
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
fn bar(share: f64) -> String {
    let full = (share * BAR as f64).round() as usize;
    format!("{}{} {:>3.0}%", "━".repeat(full), "╌".repeat(BAR - full), share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Snapshot = Snapshot {
        bytes: 0,
        total_bytes: 0,
        rows: 0,
        total_rows: 0,
        unit: "rows",
        before: 0,
        tokens: 0,
        waited: Duration::ZERO,
    };

    #[test]
    fn a_known_end_gives_a_bar_and_the_time_left() {
        let now = Snapshot { bytes: 5_000_000, total_bytes: 20_000_000, rows: 1_200, total_rows: 0, ..NONE };
        assert_eq!(
            running(&now, Duration::from_secs(2)),
            "━━━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌  25%  5.00 MB of 20.00 MB  2.50 MB/s  1,200 rows  600/s  6.00 s left"
        );
    }

    #[test]
    fn what_an_earlier_run_did_makes_this_one_no_faster() {
        let now = Snapshot { rows: 91, total_rows: 100, before: 90, unit: "steps", ..NONE };
        let said = running(&now, Duration::from_secs(2));
        assert!(said.ends_with("91 of 100 steps  0/s  18.00 s left"), "{said}");
    }

    #[test]
    fn an_unknown_end_gives_neither() {
        let now = Snapshot { rows: 10, ..NONE };
        assert_eq!(running(&now, Duration::from_secs(1)), "10 rows  10/s");
        assert_eq!(running(&Snapshot { rows: 0, ..now }, Duration::from_secs(1)), "");
        assert_eq!(finished(&now, 2.0), "10 rows (5/s), 2.00 s");
    }

    #[test]
    fn a_training_says_its_tokens_and_how_long_it_waited() {
        let now =
            Snapshot { rows: 4, unit: "steps", tokens: 2_000, waited: Duration::from_millis(60), ..NONE };
        let said = "4 steps  2/s  1,000 tokens/s  3% waiting for data";
        assert_eq!(running(&now, Duration::from_secs(2)), said);
        assert_eq!(finished(&now, 2.0), "4 steps (2/s), 1,000 tokens/s, 3% waiting for data, 2.00 s");
    }
}
