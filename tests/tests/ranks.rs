//! One training by several processes, started as `torchrun` starts them.

use std::path::Path;

use engraft_tests::{Engraft, Ran, artifacts, assert_same, json, json_lines};
use serde_json::Value;

/// Adam makes whole steps of gradients that are 0 but for rounding, which differs with the number of ranks.
const SETTINGS: [&str; 6] = [
    "retrain.epochs=3",
    "retrain.stream.batching={ items = 64 }",
    "retrain.adamw.epsilon=1e-4",
    "retrain.accumulate=2",
    "retrain.hidden_dropout=0.0",
    "retrain.attention_dropout=0.0",
];

/// A run as one of several ranks.
fn rank(out: &Path, rank: usize, world: usize, start: &str) -> Engraft {
    let engraft = Engraft::small(&["run"], out).set("retrain.task_heads.dropout=0.0");
    let engraft = SETTINGS.iter().fold(engraft, |engraft, set| engraft.set(set));
    let [rank, world] = [rank, world].map(|number| number.to_string());
    engraft
        .env("RANK", &rank)
        .env("WORLD_SIZE", &world)
        .env("MASTER_ADDR", "127.0.0.1")
        .env("TORCHELASTIC_RUN_ID", start)
}

/// What becomes of all ranks; `change` makes each what it is beyond its number.
fn ranks(out: &Path, world: usize, start: &str, change: impl Fn(usize, Engraft) -> Engraft) -> Vec<Ran> {
    // The last one first: whoever follows waits.
    let running = (0..world).rev().map(|number| change(number, rank(out, number, world, start)).start());
    let mut others = running.collect::<Vec<_>>();
    let first = others.pop().unwrap().wait();
    // Nobody follows whom settings have kept from beginning.
    let begun = first.code() != Some(2);
    let others = others.into_iter().rev().map(|other| if begun { other.wait() } else { other.interrupt() });
    std::iter::once(first).chain(others).collect()
}

fn succeeded(ran: &[Ran]) {
    for (rank, ran) in ran.iter().enumerate() {
        assert_eq!(ran.code(), Some(0), "rank {rank}: {}", ran.text());
    }
}

fn steps(out: &Path) -> Vec<Value> {
    json_lines(out.join("retrain/metrics.jsonl"))
}

/// How many ranks the ledger has of a training.
fn ranks_of(out: &Path) -> Value {
    let mut lines = json_lines(out.join("ledger.jsonl")).into_iter();
    lines.find(|line| line["stage"] == "retrain").map_or(Value::Null, |line| line["facts"]["ranks"].clone())
}

/// Whether two trainings have gone the same way but for rounding.
fn as_good_as(found: &[Value], expected: &[Value]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        for field in ["step", "epoch", "rows", "tokens", "learning_rate"] {
            assert_eq!(found[field], expected[field], "{field}: {found} {expected}");
        }
        let [one, other] = [found, expected].map(|step| step["loss"].as_f64().unwrap());
        assert!((one / other - 1.0).abs() < 1e-4, "{found} {expected}");
    }
}

#[test]
fn ranks_train_what_one_process_trains_and_go_on_in_any_number() {
    let folder = tempfile::tempdir().unwrap();
    let [alone, two, again, killed] =
        ["alone", "two", "again", "killed"].map(|name| folder.path().join(name));
    rank(&alone, 0, 1, "none").ok();
    let expected = steps(&alone);
    succeeded(&ranks(&two, 2, "a", |_, engraft| engraft));
    as_good_as(&steps(&two), &expected);
    // The same number of ranks, the same bytes.
    succeeded(&ranks(&again, 2, "a", |_, engraft| engraft));
    assert_same(&artifacts(&two), &artifacts(&again), "two ranks again");
    assert_eq!((ranks_of(&two), ranks_of(&alone)), (Value::from(2), Value::Null));
    assert!(expected.len() > 8, "{} steps", expected.len());
    // Rank 0 dies between states; three ranks go on from the last one.
    let ran = ranks(&killed, 2, "b", |rank, engraft| {
        let engraft = engraft.set("retrain.checkpoint_every=3");
        if rank == 0 { engraft.kill_at("retrain:working:22") } else { engraft }
    });
    assert_eq!(ran[0].code(), None, "{}", ran[0].text());
    assert_eq!(ran[1].code(), Some(1), "{}", ran[1].text());
    assert!(ran[1].text().contains("rank 0 of 2 has stopped"), "{}", ran[1].text());
    let state = std::fs::read_dir(killed.join(".work"))
        .unwrap()
        .flatten()
        .find(|entry| entry.file_name().to_string_lossy().starts_with("retrain-"))
        .unwrap();
    assert!(json(state.path().join("state/state.json"))["step"].as_u64().unwrap() > 0);
    // The file that the dead rank 0 has left is of another start by the same name.
    assert!(killed.join(".ranks/b-none.json").exists());
    succeeded(&ranks(&killed, 3, "b", |_, engraft| engraft.set("retrain.checkpoint_every=3")));
    as_good_as(&steps(&killed), &expected);
    // Nothing is to be done, and nobody is kept waiting.
    succeeded(&ranks(&killed, 2, "d", |_, engraft| engraft.set("retrain.checkpoint_every=3")));
    assert!(!killed.join(".ranks/b-none.json").exists(), "who is gone is not to be found");
}

#[test]
fn torchrun_starts_the_ranks_of_one_training() {
    let Some(python) = engraft_tests::python::interpreter("ENGRAFT_TORCH") else { return };
    let folder = tempfile::tempdir().unwrap();
    let [alone, started, again] = ["alone", "started", "again"].map(|name| folder.path().join(name));
    rank(&alone, 0, 1, "none").ok();
    // `--standalone`: of this machine alone, at whatever port is free.
    let launcher = ["-m", "torch.distributed.run", "--standalone", "--no-python", "--nproc-per-node", "2"];
    let launcher = launcher.map(Path::new);
    let run = |out: &Path| {
        let engraft = Engraft::small(&["run"], out).set("retrain.task_heads.dropout=0.0");
        SETTINGS.iter().fold(engraft, |engraft, set| engraft.set(set)).under(&python, &launcher)
    };
    for out in [&started, &again] {
        let ran = run(out).output();
        assert_eq!(ran.code(), Some(0), "{}", ran.text());
    }
    as_good_as(&steps(&started), &steps(&alone));
    assert_same(&artifacts(&started), &artifacts(&again), "torchrun once more");
    assert_eq!(ranks_of(&started), Value::from(2));
    // Its agents end when one of their processes does, and say so.
    let ran = run(&folder.path().join("refused")).set("retrain.learning_rate=-1.0").output();
    assert_ne!(ran.code(), Some(0), "{}", ran.text());
    assert!(ran.text().contains("learning_rate"), "{}", ran.text());
}

#[test]
fn ranks_that_cannot_train_together_say_why() {
    let folder = tempfile::tempdir().unwrap();
    let ran = ranks(&folder.path().join("seed"), 2, "a", |rank, engraft| {
        if rank == 1 { engraft.set("retrain.seed=7") } else { engraft }
    });
    assert_eq!([ran[0].code(), ran[1].code()], [Some(1); 2], "{} {}", ran[0].text(), ran[1].text());
    assert!(
        ran[1].text().contains("rank 1 has other settings than rank 0 for stage retrain"),
        "{}",
        ran[1].text()
    );
    assert!(ran[0].text().contains("rank 1 of 2 has stopped"), "{}", ran[0].text());
    let refused = |variables: &[(&str, &str)]| {
        let engraft = Engraft::small(&["run"], &folder.path().join("none"));
        let ran = variables.iter().fold(engraft, |engraft, (name, value)| engraft.env(name, value)).output();
        assert_eq!(ran.code(), Some(2), "{}", ran.text());
        ran.text()
    };
    assert!(refused(&[("WORLD_SIZE", "2")]).contains("RANK is not there"));
    assert!(
        refused(&[("WORLD_SIZE", "2"), ("RANK", "5")])
            .contains("RANK is 5, expected a number below WORLD_SIZE, which is 2")
    );
    // A follower that is asked to stop while nobody leads it.
    let waiting = rank(&folder.path().join("nobody"), 1, 2, "a").start();
    let stopped = waiting.once_it_says("rank 1 of 2 waits for rank 0").interrupt();
    assert_eq!(stopped.code(), Some(130));
    assert!(!folder.path().join("nobody").exists(), "who follows writes nothing");
}
