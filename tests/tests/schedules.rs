//! The order of tasks agrees with an independent implementation of the papers' and the reference code's rules (golden l).
use base::rng::RngKey;
use serde_json::Value;
use tasks::stream::schedule::round_robin::Rule;
use tasks::stream::schedule::{Schedule, Turns};

fn golden() -> Value {
    serde_json::from_str(include_str!("../fixtures/golden/l_rules.json")).unwrap()
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

/// Task and batch of each step of the first epoch.
fn sequence(schedule: Schedule, batches: &[u64]) -> Vec<(usize, u64)> {
    let mut turns = Turns::new(schedule, batches.to_vec(), RngKey::new(1));
    let mut shown = vec![0; batches.len()];
    let steps = (0..turns.steps()).map(|step| {
        let task = turns.turn(step).unwrap().task;
        shown[task] += 1;
        (task, (shown[task] - 1) % batches[task])
    });
    steps.collect()
}

#[test]
fn round_robin_is_that_of_the_paper_and_that_of_the_released_code() {
    for case in golden()["round_robin"].as_array().unwrap() {
        let batches = numbers(&case["batches_per_task"]);
        for (key, rule) in
            [("paper_algorithm_1(task,batch)", Rule::Paper), ("as_released(task,batch)", Rule::Reference)]
        {
            let expected: Vec<(usize, u64)> = case[key]
                .as_array()
                .unwrap()
                .iter()
                .map(|turn| (usize::try_from(numbers(turn)[0]).unwrap(), numbers(turn)[1]))
                .collect();
            assert_eq!(sequence(Schedule::RoundRobin(rule), &batches), expected, "{rule:?} {batches:?}");
        }
    }
}

#[test]
fn a_merged_epoch_has_the_steps_of_the_released_code_and_every_batch_once() {
    for case in golden()["peng_epoch"].as_array().unwrap() {
        let (examples, size) = (numbers(&case["examples_per_task"]), case["batch_size"].as_u64().unwrap());
        let batches: Vec<u64> = examples.iter().map(|count| count.div_ceil(size)).collect();
        assert_eq!(batches, numbers(&case["batches_per_task_per_epoch"]));
        let mut epoch = sequence(Schedule::Merged, &batches);
        assert_eq!(epoch.len() as u64, case["steps_per_epoch"].as_u64().unwrap());
        epoch.sort_unstable();
        let once =
            batches.iter().enumerate().flat_map(|(task, &count)| (0..count).map(move |batch| (task, batch)));
        assert_eq!(epoch, once.collect::<Vec<_>>());
    }
}
