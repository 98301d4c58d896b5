//! Every reader is given damaged files: it answers or refuses, and neither panics nor hangs.
//!
//! A case is a pure function of its target and its number. `ENGRAFT_FUZZ_CASES` sets how many there are for each target (2,000
//! without it), `ENGRAFT_FUZZ_FIRST` the number of the first, to come back to one that failed. Nothing is written.

mod large;
mod mutate;
mod small;
mod targets;
mod terms;

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use mutate::Chance;
use targets::{TARGETS, Target};

/// If none of a target's cases ends for so long, it hangs. A case takes less than a millisecond.
const PATIENCE: Duration = Duration::from_secs(120);

#[allow(clippy::disallowed_methods, reason = "a test has no command line to be told by")]
fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.replace('_', "").parse().unwrap())
}

thread_local! {
    /// What the last panic of this thread said, and where.
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// What became of the cases of one worker.
#[derive(Debug, Default)]
struct Outcome {
    read: u64,
    refused: u64,
    panicked: Vec<(u64, String)>,
}

/// The damaged files of a case.
fn files(target: &Target, seeds: &[Vec<Vec<u8>>], case: u64) -> Vec<Vec<u8>> {
    let mut chance = Chance::new(target.name, case);
    let mut files = seeds[chance.below(seeds.len())].clone();
    mutate::mutate(&mut files, seeds, &mut chance);
    files
}

/// Runs every `stride`-th case from `case` on; `now` has the number of the case under way.
fn work(target: &Target, (mut case, end, stride): (u64, u64, u64), now: &AtomicU64) -> Outcome {
    let seeds = (target.seeds)();
    let mut outcome = Outcome::default();
    while case < end {
        now.store(case, Ordering::Relaxed);
        let files = files(target, &seeds, case);
        match catch_unwind(AssertUnwindSafe(|| (target.read)(&files))) {
            Ok(Ok(())) => outcome.read += 1,
            Ok(Err(message)) if message.is_empty() => {
                outcome.panicked.push((case, "an error without words".to_owned()));
            }
            Ok(Err(_)) => outcome.refused += 1,
            // What panicked on a thread of the reader's own left no words here.
            Err(_) => outcome.panicked.push((case, LAST.take())),
        }
        case += stride;
    }
    outcome
}

/// All cases of a target on all cores.
fn run(target: &'static Target, first: u64, cases: u64) -> Outcome {
    let workers = thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let now: Arc<Vec<AtomicU64>> = Arc::new((0..workers).map(|_| AtomicU64::new(first)).collect());
    let (sender, receiver) = mpsc::channel();
    for worker in 0..workers {
        let (sender, now) = (sender.clone(), Arc::clone(&now));
        thread::spawn(move || {
            let cases = (first + worker, first + cases, workers);
            sender.send(work(target, cases, &now[usize::try_from(worker).unwrap()])).unwrap();
        });
    }
    drop(sender);
    let under_way = || now.iter().map(|case| case.load(Ordering::Relaxed)).collect::<Vec<_>>();
    let (mut all, mut before) = (Outcome::default(), Vec::new());
    loop {
        match receiver.recv_timeout(PATIENCE) {
            Ok(outcome) => {
                all.read += outcome.read;
                all.refused += outcome.refused;
                all.panicked.extend(outcome.panicked);
            }
            Err(RecvTimeoutError::Timeout) => {
                let seen = under_way();
                assert_ne!(seen, before, "{}: one of these cases hangs: {seen:?}", target.name);
                before = seen;
            }
            Err(RecvTimeoutError::Disconnected) => return all,
        }
    }
}

#[test]
fn damaged_files_are_read_or_refused() {
    let (first, cases) = (number("ENGRAFT_FUZZ_FIRST", 0), number("ENGRAFT_FUZZ_CASES", 2_000));
    let mut failed = Vec::new();
    // A reader may turn its decoder's panics into errors: they are no news.
    panic::set_hook(Box::new(|panic| LAST.set(panic.to_string())));
    for target in TARGETS {
        let begun = Instant::now();
        let outcome = run(target, first, cases);
        let share = outcome.read as f64 / cases as f64 * 100.0;
        println!(
            "{:<18} {cases:>8} cases, {:>7.1} s, {share:>5.1} % read, {} panics",
            target.name,
            begun.elapsed().as_secs_f64(),
            outcome.panicked.len()
        );
        assert_eq!(outcome.read + outcome.refused + outcome.panicked.len() as u64, cases);
        assert!(outcome.read > 0 && outcome.refused > 0, "{}: the damage is all or nothing", target.name);
        let first = outcome.panicked.into_iter().min();
        failed.extend(first.map(|(case, text)| format!("{}, case {case}: {text}", target.name)));
    }
    drop(panic::take_hook());
    assert!(failed.is_empty(), "\n{}\n", failed.join("\n"));
}

#[test]
fn undamaged_files_are_read() {
    for target in TARGETS {
        for files in (target.seeds)() {
            (target.read)(&files).unwrap_or_else(|e| panic!("{}: {e}", target.name));
        }
    }
}

#[test]
fn a_case_is_the_same_whenever_it_comes() {
    let target = &TARGETS[0];
    let seeds = (target.seeds)();
    assert_eq!(files(target, &seeds, 17), files(target, &seeds, 17));
    assert!((0..100).any(|case| files(target, &seeds, case) != files(target, &seeds, 17)));
}
