//! Licence levels go with artifacts, and a depot may be one of low levels alone.

use super::*;
use crate::engine::fault::Faults;
use crate::engine::ledger::{Ledger, Licence};

/// Two sources, one of them of this level, what is made of each, and what of both.
fn stages(level: Option<u8>) -> [Fake; 4] {
    let licensed = stage("licensed").works(move |context| {
        context.level(level);
        say(context, "out.txt", "licensed")
    });
    [
        stage("open"),
        licensed,
        stage("of_open").reads("open"),
        stage("of_both").reads("of_open").reads("licensed"),
    ]
}

fn up_to(out: &Path, memory: &Arc<Memory>, max_level: u8) -> Settings {
    let mut settings = with(out, memory, Access::Write);
    settings.depot = settings.depot.map(|depot| depot.up_to(Some(max_level)));
    settings
}

fn licences(out: &Path) -> Vec<Option<Licence>> {
    let ledger = Ledger::read(&out.join("ledger.jsonl")).unwrap();
    let of = |stage| ledger.last(stage).unwrap().licence;
    ["open", "licensed", "of_open", "of_both"].into_iter().map(of).collect()
}

#[test]
fn a_level_goes_to_all_that_is_made_of_it_here_and_elsewhere() {
    let (dir, memory) = (tempdir().unwrap(), Arc::new(Memory::default()));
    let (one, two) = (dir.path().join("1"), dir.path().join("2"));
    run(&one, &memory, stages(Some(3)), &[]);
    let expected = [Licence::None, Licence::Level(3), Licence::None, Licence::Level(3)].map(Some).to_vec();
    assert_eq!(licences(&one), expected);
    // The depot's lines have it, and so has whoever takes from there.
    run(&two, &memory, stages(Some(3)), &["open", "licensed", "of_open", "of_both"]);
    assert_eq!(licences(&two), expected);
    let lines = memory.keys("lines/of_both");
    let line = String::from_utf8(memory.objects.lock().unwrap()[&lines[0]].clone()).unwrap();
    assert!(line.contains("\"licence\":{\"level\":3}"), "{line}");
}

#[test]
fn a_depot_of_low_levels_gets_nothing_higher_and_says_so() {
    let (dir, memory) = (tempdir().unwrap(), Arc::new(Memory::default()));
    let out = dir.path().join("1");
    let watch = Watch::new();
    let engine_of = |max_level| engine(up_to(&out, &memory, max_level), stages(Some(3)));
    let summary = engine_of(2).run(&[], &watch).unwrap();
    assert!(summary.unshared.is_empty(), "to stay here is no failure");
    let why = "its licence level is 3, above depot.max_level = 2";
    let events = watch.events();
    for stage in ["licensed", "of_both"] {
        assert!(events.contains(&format!("{stage} withheld: {why}")), "{events:?}");
        assert!(memory.keys(&format!("lines/{stage}/")).is_empty());
    }
    assert_eq!(memory.keys("lines").len(), 2, "open, and what is made of it");
    let pushed = engine_of(2).push(&[], &Watch::new()).unwrap();
    assert_eq!((pushed.there, pushed.new, pushed.withheld), (2, 0, names(&["licensed", "of_both"])));
    let pushed = engine_of(3).push(&[], &Watch::new()).unwrap();
    assert_eq!((pushed.there, pushed.new, pushed.withheld.len()), (4, 2, 0));
}

#[test]
fn what_an_earlier_engraft_made_is_of_no_known_level() {
    let (dir, memory) = (tempdir().unwrap(), Arc::new(Memory::default()));
    let out = dir.path().join("1");
    run(&out, &Arc::new(Memory::default()), stages(None), &[]);
    let path = out.join("ledger.jsonl");
    let mut lines = Ledger::read(&path).unwrap();
    let earlier = Line { licence: None, ..lines.last("open").unwrap().clone() };
    lines.append(earlier, &Faults::none()).unwrap();
    let pushed = engine(up_to(&out, &memory, 9), stages(None)).push(&[], &Watch::new()).unwrap();
    assert_eq!(pushed.withheld, ["open"]);
    // Nor is what is made of it now.
    let again = [stage("open"), stage("of_open").reads("open").field("say", "again")];
    engine(up_to(&out, &memory, 9), again).run(&[], &Watch::new()).unwrap();
    assert_eq!(Ledger::read(&path).unwrap().last("of_open").unwrap().licence, None);
}
