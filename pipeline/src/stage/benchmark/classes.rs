//! What the examples of a benchmark are, as facts.

use downstream::example::schema::Index;
use serde_json::json;

use crate::engine::context::Context;

/// Classes that are counted among the facts; the index counts all.
const SHOWN: usize = 20;

/// Leaves the examples of each part, and of the most frequent classes, as facts.
pub(super) fn record(context: &Context, index: &Index) {
    let parts = index.parts.iter().map(|counts| json!({"part": counts.part, "examples": counts.examples}));
    context.record("parts", parts.collect::<Vec<_>>());
    let frequency = |class: usize| index.parts.iter().map(|counts| counts.classes[class]).sum::<u64>();
    let mut classes: Vec<usize> = (0..index.classes.len()).collect();
    classes.sort_by_key(|&class| (std::cmp::Reverse(frequency(class)), class));
    let row = |&class: &usize| {
        let mut row = serde_json::Map::from_iter([("class".to_owned(), json!(index.classes[class]))]);
        row.extend(
            index.parts.iter().map(|counts| (counts.part.name().to_owned(), json!(counts.classes[class]))),
        );
        serde_json::Value::Object(row)
    };
    context.record("classes", classes.len());
    context.record("most_frequent_classes", classes.iter().take(SHOWN).map(row).collect::<Vec<_>>());
}
