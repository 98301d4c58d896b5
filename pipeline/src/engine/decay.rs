//! Tests of files whose bits change under unchanged sizes and times: what a failing disk does, and what no time stamp shows.
#![cfg(test)]

use std::fs;
use std::path::Path;

use super::digest::Digest;
use super::memo::{Belief, Known, Memo, Stamp};
use super::observe::{Event, Observe};
use super::testing::{Fake, Watch, engine, run, scribble, settings, stage};
use super::{Settings, survey};
use tempfile::tempdir;

/// Other contents of the same length, which the memo takes for those that it knew.
fn decay(out: &Path, file: &Path, text: &str) {
    let sound = Digest::of(&fs::read(file).unwrap());
    assert_eq!(fs::read(file).unwrap().len(), text.len());
    scribble(file, text);
    let memo = Memo::load(&out.join(".cache/digests.json"));
    memo.learn(file, Known::read(sound, Stamp::of(file).unwrap()));
    memo.save().unwrap();
}

fn chain(say: &str) -> [Fake; 3] {
    [stage("a"), stage("b").reads("a"), stage("c").reads("b").reads("a").field("say", say)]
}

fn checked(out: &Path, stages: impl IntoIterator<Item = Fake>) -> Vec<String> {
    let watch = Watch::new();
    let settings = Settings { belief: Belief::Reading, ..settings(out) };
    engine(settings, stages).run(&[], &watch).unwrap();
    watch.events()
}

#[test]
fn silent_07_a_stage_that_runs_reads_no_damaged_artifact_and_has_it_made_again() {
    let dir = tempdir().unwrap();
    let out = dir.path();
    run(out, chain("c"));
    decay(out, &out.join("a/out.txt"), "?");
    assert_eq!(run(out, chain("c")), ["a fresh", "b fresh", "c fresh"], "nothing runs, so nothing is read");
    let events = run(out, chain("d"));
    assert_eq!(events, ["a fresh", "a same", "b fresh", "c done"]);
    assert_eq!(fs::read_to_string(out.join("c/out.txt")).unwrap(), "abad");
    // Two stages that meet the same damage have it made again once.
    decay(out, &out.join("a/out.txt"), "?");
    fs::remove_dir_all(out.join("b")).unwrap();
    fs::remove_dir_all(out.join("c")).unwrap();
    let events = run(out, chain("d"));
    assert_eq!(events.iter().filter(|event| *event == "a same").count(), 1, "{events:?}");
    assert_eq!(fs::read_to_string(out.join("c/out.txt")).unwrap(), "abad");
}

#[test]
fn silent_07_checking_reads_everything_again() {
    let dir = tempdir().unwrap();
    let out = dir.path();
    run(out, chain("c"));
    decay(out, &out.join("c/out.txt"), "????");
    let plan = |belief| {
        let found = engine(Settings { belief, ..settings(out) }, chain("c")).survey(&[]).unwrap();
        found.into_iter().map(|finding| finding.state).collect::<Vec<_>>()
    };
    assert_eq!(plan(Belief::Stamps), [survey::State::Fresh; 3]);
    assert_eq!(plan(Belief::Reading)[2], survey::State::Stale);
    assert_eq!(run(out, chain("c")), ["a fresh", "b fresh", "c fresh"]);
    assert_eq!(checked(out, chain("c")), ["a fresh", "b fresh", "c same"]);
    assert_eq!(checked(out, chain("c")), ["a fresh", "b fresh", "c fresh"], "nothing was touched");
}

#[test]
fn silent_07_a_damaged_outside_file_is_refused_until_somebody_says_it_is_meant() {
    let dir = tempdir().unwrap();
    let (out, input) = (dir.path().join("out"), dir.path().join("in.txt"));
    scribble(&input, "x");
    let stages = |say: &str| [stage("a").file("IN", &input).field("say", say)];
    run(&out, stages("1"));
    decay(&out, &input, "y");
    for _ in 0..2 {
        assert_eq!(run(&out, stages("1")), ["a fresh"]);
        for events in [checked(&out, stages("1")), run(&out, stages("2"))] {
            assert!(
                events[0].contains("in.txt") && events[0].contains("its disk may have damaged it"),
                "{events:?}"
            );
        }
    }
    assert_eq!(fs::read_to_string(out.join("a/out.txt")).unwrap(), "x1");
    scribble(&input, "y");
    assert_eq!(run(&out, stages("2")), ["a done"]);
}

#[test]
fn silent_07_a_wrong_memo_is_no_damage() {
    let dir = tempdir().unwrap();
    let (out, input) = (dir.path().join("out"), dir.path().join("in.txt"));
    scribble(&input, "x");
    let stages = || [stage("a").file("IN", &input), stage("b").reads("a")];
    run(&out, stages());
    let memo = Memo::load(&out.join(".cache/digests.json"));
    for file in [input.clone(), out.join("a/out.txt")] {
        memo.learn(&file, Known::read(Digest::of(b"lie"), Stamp::of(&file).unwrap()));
    }
    memo.save().unwrap();
    let events = run(&out, stages());
    assert!(events.iter().all(|event| !event.contains("failed")), "{events:?}");
    assert_eq!(fs::read_to_string(out.join("b/out.txt")).unwrap(), "xab");
}

/// Spoils the artifact of `a` whenever it is said to be sound.
struct Spoil<'a>(&'a Path, Watch);

impl Observe for Spoil<'_> {
    fn event(&self, event: &Event<'_>) {
        match event {
            Event::Fresh { stage: "a", .. } => scribble(self.0, "?"),
            Event::Done { line, .. } if line.stage == "a" => scribble(self.0, "!"),
            _ => {}
        }
        self.1.event(event);
    }
}

#[test]
fn silent_07_a_stage_whose_input_decays_again_and_again_fails_with_the_file_and_its_stage() {
    let dir = tempdir().unwrap();
    let stages = |say: &str| [stage("a"), stage("b").reads("a").field("say", say)];
    run(dir.path(), stages("b"));
    let (file, before) = (dir.path().join("a/out.txt"), fs::read(dir.path().join("b/out.txt")).unwrap());
    let spoil = Spoil(&file, Watch::new());
    engine(settings(dir.path()), stages("c")).run(&[], &spoil).unwrap();
    let events = spoil.1.events();
    assert_eq!(events[..2], ["a fresh", "a same"]);
    assert!(events[2].starts_with("b failed") && events[2].contains("a/out.txt"), "{events:?}");
    assert!(events[2].contains("by stage a"), "{events:?}");
    assert_eq!(fs::read(dir.path().join("b/out.txt")).unwrap(), before);
}
