//! Stages of one run that read the same artifact of a depot, whole or damaged, in whatever order they come.

use super::*;

#[test]
fn stages_that_read_the_same_bring_it_once_and_none_is_judged_by_an_earlier_one() {
    let fan = |say: &str| {
        let readers = (0..6).map(|n| stage(&format!("r{n}")).reads("a").field("say", n.to_string()));
        std::iter::once(stage("a").field("say", say)).chain(readers).collect::<Vec<_>>()
    };
    let (dir, memory) = (tempdir().unwrap(), Arc::new(Memory::default()));
    let (one, two) = (dir.path().join("1"), dir.path().join("2"));
    run(&one, &memory, [stage("a").field("say", "new")], &[]);
    // An earlier artifact lies in its place on the other machine.
    crate::engine::testing::run(&two, fan("old"));
    memory.asked("");
    let goals: Vec<String> = (0..6).map(|n| format!("r{n}")).collect();
    let goals: Vec<&str> = goals.iter().map(String::as_str).collect();
    for damaged in [false, true] {
        let out = dir.path().join(if damaged { "3" } else { "2" });
        if damaged {
            crate::engine::testing::run(&out, fan("old"));
            memory.objects.lock().unwrap().retain(|key, _| !key.contains("/r"));
            memory.damage("blobs/", |bytes| bytes[0] ^= 1);
        }
        let (events, summary) = run(&out, &memory, fan("new"), &goals);
        assert_eq!(
            summary.count(|outcome| matches!(outcome, Outcome::Done(_))),
            6 + usize::from(damaged),
            "{events:?}"
        );
        let brought =
            events.iter().filter(|event| event.starts_with("a pulled") || event.starts_with("a not")).count();
        assert_eq!(brought, 1, "{events:?}");
        for n in 0..6 {
            assert_eq!(fs::read_to_string(out.join(format!("r{n}/out.txt"))).unwrap(), format!("new{n}"));
        }
    }
}

#[test]
fn a_stage_that_reads_what_is_damaged_waits_for_it_whatever_else_is_brought_meanwhile() {
    let all = |say: &str| {
        let two = |name: &str, other: &str| stage(name).reads("a").reads(other);
        vec![
            stage("a").field("say", say),
            stage("b"),
            stage("c"),
            two("x", "b"),
            two("y", "c"),
            two("z", "b"),
        ]
    };
    for old in [false, true] {
        let (dir, memory) = (tempdir().unwrap(), Arc::new(Memory::default()));
        let (one, two) = (dir.path().join("1"), dir.path().join("2"));
        run(&one, &memory, all("new").into_iter().take(3), &[]);
        if old {
            crate::engine::testing::run(&two, all("old"));
        }
        let of_a = memory.keys("lines/a/");
        let line: serde_json::Value =
            serde_json::from_slice(&memory.objects.lock().unwrap()[&of_a[0]]).unwrap();
        let digest = line["outputs"][0]["blake3"].as_str().unwrap().to_owned();
        memory.damage(&format!("blobs/{}/{digest}", &digest[..2]), |bytes| bytes[0] ^= 1);
        let (events, summary) = run(&two, &memory, all("new"), &["x", "y", "z"]);
        assert_eq!(
            summary.count(|outcome| matches!(outcome, Outcome::Failed(_) | Outcome::Skipped(_))),
            0,
            "{events:?}"
        );
        for (name, other) in [("x", "b"), ("y", "c"), ("z", "b")] {
            let text = fs::read_to_string(two.join(format!("{name}/out.txt"))).unwrap();
            assert_eq!(text, format!("new{other}{name}"), "{events:?}");
        }
    }
}
