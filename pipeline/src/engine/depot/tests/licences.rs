//! Licences go with artifacts, and a depot may be one of low levels alone.

use super::*;
use crate::engine::ledger::Ledger;
use crate::engine::licence::Licence;

/// Two sources, one of them under this licence, what is made of each, and what of both.
fn stages(licence: Licence) -> [Fake; 4] {
    [
        stage("open"),
        stage("licensed").under(licence),
        stage("of_open").reads("open"),
        stage("of_both").reads("of_open").reads("licensed"),
    ]
}

const ALL: [&str; 4] = ["open", "licensed", "of_open", "of_both"];

fn up_to(out: &Path, memory: &Arc<Memory>, max_level: Option<u8>) -> Settings {
    let mut settings = with(out, memory, Access::Write);
    settings.depot = settings.depot.map(|depot| depot.up_to(max_level));
    settings
}

/// What the depot's lines say.
fn told(memory: &Memory, stage: &str) -> Option<Licence> {
    let keys = memory.keys(&format!("lines/{stage}/"));
    let objects = memory.objects.lock().unwrap();
    let line: serde_json::Value = serde_json::from_slice(&objects[&keys[0]]).unwrap();
    serde_json::from_value(line["licence"].clone()).unwrap()
}

#[test]
fn a_level_goes_to_all_that_is_made_of_it_and_stays_known_elsewhere() {
    let (dir, memory) = (tempdir().unwrap(), Arc::new(Memory::default()));
    let (one, two) = (dir.path().join("1"), dir.path().join("2"));
    run(&one, &memory, stages(Licence::Level(3)), &[]);
    let of = |stage| told(&memory, stage);
    assert_eq!(ALL.map(of), [Licence::None, Licence::Level(3), Licence::None, Licence::Level(3)].map(Some));
    // Whoever has taken the last stage alone, and makes another of it, knows what that one is under.
    let more = || stages(Licence::Level(3)).into_iter().chain([stage("more").reads("of_both")]);
    let (events, _) = run(&two, &memory, more(), &["more"]);
    assert!(events.contains(&"more pushed".to_owned()), "{events:?}");
    assert!(!two.join("licensed").exists());
    assert_eq!(of("more"), Some(Licence::Level(3)));
}

#[test]
fn a_depot_of_low_levels_gets_nothing_higher_and_says_so() {
    for (licence, most, why) in [
        (Licence::Level(3), 2, "its licence level 3 is above depot.max_level = 2"),
        (Licence::Restricted, 9, "it is restricted, and depot.max_level = 9"),
    ] {
        let (dir, memory) = (tempdir().unwrap(), Arc::new(Memory::default()));
        let out = dir.path().join("1");
        let watch = Watch::new();
        let engine_of = |max_level| engine(up_to(&out, &memory, max_level), stages(licence));
        let summary = engine_of(Some(most)).run(&[], &watch).unwrap();
        assert!(summary.unshared.is_empty(), "to stay here is no failure");
        let events = watch.events();
        for stage in ["licensed", "of_both"] {
            let said = events.iter().find(|event| event.starts_with(&format!("{stage} withheld")));
            assert!(said.is_some_and(|said| said.contains(why)), "{events:?}");
            assert!(memory.keys(&format!("lines/{stage}/")).is_empty());
        }
        assert_eq!(memory.keys("lines").len(), 2, "open, and what is made of it");
        let pushed = engine_of(Some(most)).push(&[], &Watch::new()).unwrap();
        assert_eq!((pushed.there, pushed.new, pushed.withheld), (2, 0, names(&["licensed", "of_both"])));
        let pushed = engine_of(None).push(&[], &Watch::new()).unwrap();
        assert_eq!((pushed.there, pushed.new, pushed.withheld.len()), (4, 2, 0));
    }
}

#[test]
fn a_level_that_changes_reaches_what_need_not_be_made_again() {
    let (dir, memory) = (tempdir().unwrap(), Arc::new(Memory::default()));
    let out = dir.path().join("1");
    run(&out, &Arc::new(Memory::default()), stages(Licence::None), &[]);
    // Nothing is made anew: what the artifacts hold is the same.
    let pushed = engine(up_to(&out, &memory, Some(0)), stages(Licence::Level(4))).push(&[], &Watch::new());
    assert_eq!(pushed.unwrap().withheld, ["licensed", "of_both"]);
    let pushed = engine(up_to(&out, &memory, Some(0)), stages(Licence::None)).push(&[], &Watch::new());
    assert_eq!(pushed.unwrap().there, 4);
}

#[test]
fn what_comes_of_something_that_is_not_here_is_not_put_into_a_depot_of_low_levels() {
    let (dir, memory) = (tempdir().unwrap(), Arc::new(Memory::default()));
    let out = dir.path().join("1");
    run(&out, &Arc::new(Memory::default()), stages(Licence::None), &[]);
    fs::remove_dir_all(out.join("licensed")).unwrap();
    let watch = Watch::new();
    let pushed = engine(up_to(&out, &memory, Some(9)), stages(Licence::None))
        .push(&names(&["of_open", "of_both"]), &watch);
    let pushed = pushed.unwrap();
    assert!(pushed.there >= 2 && !memory.keys("lines/of_open/").is_empty());
    assert!(memory.keys("lines/of_both/").is_empty(), "{:?}", watch.events());
    let ledger = Ledger::read(&out.join("ledger.jsonl")).unwrap();
    assert_eq!(ledger.last("open").unwrap().licence, None, "it is the depot's lines that say it");
}
