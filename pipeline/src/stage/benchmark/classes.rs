//! What the examples of a benchmark are, as facts.

use downstream::example::schema::Index;
use downstream::example::{Kind, Measure, Part};
use downstream::set::assemble::Shared;
use serde_json::json;

use crate::engine::context::Context;

/// Classes that are counted among the facts; the index counts all.
const SHOWN: usize = 20;

/// The share of a part from which on texts that train has, too, are warned of.
const FEW_SHARED: f64 = 0.01;

/// Warns of classes that are asked for and never shown, and of texts that are shown and asked for.
///
/// # Errors
/// When areas under curves are asked of a part whose examples are all of one class.
pub(super) fn doubt(context: &Context, key: &str, index: &Index, shared: &Shared) -> anyhow::Result<()> {
    let [train, rest @ ..] = index.parts.as_slice() else { return Ok(()) };
    for part in rest.iter().filter(|part| part.examples > 0) {
        let name = part.part.name();
        let counts = train.classes.iter().zip(&part.classes).zip(&index.classes);
        let strange: Vec<&str> = counts
            // With `trained_on` it is another benchmark that shows them.
            .filter(|((shown, asked), _)| train.examples > 0 && **shown == 0 && **asked > 0)
            .map(|(_, class)| class.as_str())
            .collect();
        if let [first, ..] = strange.as_slice() {
            context.warn(format!(
                "{key}: {name} has {} that train never shows, such as {first:?}: no model can learn to say so",
                if strange.len() == 1 { "a class".to_owned() } else { format!("{} classes", strange.len()) }
            ));
        }
        let of = part.classes.iter().filter(|count| **count > 0).count();
        anyhow::ensure!(
            index.measure != Measure::Auroc || index.kind != Kind::OneClass || of > 1,
            "{key}: all {} examples of {name} are of one class, of which no area under a curve can be measured: give it examples of others, or take another measure",
            part.examples
        );
    }
    for part in rest {
        let both = match part.part {
            Part::Train => 0,
            Part::Dev => shared.dev,
            Part::MaskSearch => shared.mask_search,
            Part::Test => shared.test,
        };
        // Published sets have a few; of these the facts tell.
        if both as f64 >= FEW_SHARED * part.examples as f64 && both > 0 {
            context.warn(format!(
                "{key}: {both} of {} examples of {} have texts that train has, too: on them a score measures memory",
                part.examples,
                part.part.name()
            ));
        }
    }
    Ok(())
}

/// Warns of kinds of entities that are asked for and that no text has.
pub(super) fn missing(context: &Context, key: &str, wanted: &[String], index: &Index) {
    let has = |kind: &&String| index.classes.iter().any(|class| class.strip_prefix("B-") == Some(kind));
    let missing: Vec<&str> = wanted.iter().filter(|kind| !has(kind)).map(String::as_str).collect();
    if !missing.is_empty() {
        let found = index.classes.iter().filter_map(|class| class.strip_prefix("B-"));
        context.warn(format!(
            "{key}: tagged.kinds asks for {}, and no text has such an entity; of the kinds asked for there are {}: spell it as the files do",
            missing.join(", "),
            found.collect::<Vec<_>>().join(", ")
        ));
    }
}

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
