//! What became of everything on its way into shards.

use kg::split::Part;
use tasks::negative;
use tasks::shard::index::Index;

use crate::engine::context::Context;

/// Says how many negatives are not there that were asked for.
///
/// # Errors
/// When no triple that is learnt from has one: a model would learn that everything is true.
pub(super) fn warn_of_few_negatives(
    context: &Context,
    index: &Index,
    config: &negative::Config,
) -> anyhow::Result<()> {
    for (part, counts) in index.negatives.counts.iter().filter(|(_, counts)| counts.gave_up > 0) {
        let (found, missing) = (counts.negatives(), counts.gave_up);
        let slots: Vec<&str> = config.slots.iter().map(|slot| slot.name()).collect();
        let why = format!(
            "whatever {} proposes for {} is stated by the graph or drawn already",
            config.sampler.name(),
            slots.join(", ")
        );
        anyhow::ensure!(
            found > 0 || *part != Part::Train,
            "no triple of the part train has a negative: {why}; choose another shards.negatives.sampler (any_entity proposes most), more shards.negatives.slots, or leave triplet out of shards.tasks"
        );
        context.warn(format!(
            "{missing} of {} negatives of the part {part} are not there: {why} (shards.negatives; the stage's counts are in `engraft inspect shards`)",
            found + missing
        ));
    }
    Ok(())
}

/// Leaves the counts of every step for `inspect` and the ledger.
pub(super) fn record(context: &Context, index: &Index) {
    let parts = index.tasks.iter().flat_map(|task| task.parts.iter().map(move |part| (task.task, part)));
    let tasks = parts.map(|(task, part)| {
        serde_json::json!({
            "task": task,
            "part": part.part,
            "rows": part.rows,
            "tokens": part.tokens,
            "longest": part.longest(),
            "files": part.files.len(),
        })
    });
    context.record("tasks", tasks.collect::<Vec<_>>());
    for (task, counts) in &index.texts {
        context.record(&format!("{}_texts", task.name()), serde_json::json!(counts));
    }
    for (task, counts) in &index.names {
        context.record(&format!("{}_names", task.name()), serde_json::json!(counts));
    }
    for (key, counts) in [("entity_texts", &index.entity_texts), ("relation_texts", &index.relation_texts)] {
        let counts = serde_json::json!({
            "texts": counts.texts,
            "truncated": counts.truncated,
            "empty": counts.empty,
            "with_unknown": counts.with_unknown,
            "longest": counts.lengths.keys().next_back(),
        });
        context.record(key, counts);
    }
    for (part, counts) in &index.negatives.counts {
        let kept =
            counts.kept.iter().map(|(slot, n)| (format!("kept_{}", slot.name()), serde_json::json!(n)));
        let mut facts = serde_json::json!({
            "proposed": counts.proposed,
            "refused_unchanged": counts.unchanged,
            "refused_known": counts.known,
            "refused_held": counts.held,
            "refused_repeated": counts.repeated,
            "kept_though_known": counts.known_kept,
            "kept_though_held": counts.held_kept,
            "no_candidate": counts.no_candidate,
            "other_slot": counts.other_slot,
            "gave_up": counts.gave_up,
        });
        if let Some(table) = facts.as_object_mut() {
            table.extend(kept);
        }
        let key =
            if *part == Part::Train { "negatives".to_owned() } else { format!("negatives_{}", part.name()) };
        context.record(&key, facts);
    }
}
