//! What is said of samples, of those of a corpus or of a benchmark.

use serde_json::json;
use tasks::maps::generators::Counts;

use crate::engine::context::Context;

/// Leaves it as facts.
pub(super) fn record(context: &Context, counts: &Counts, tokens: u64) {
    let [samples, found] = told(counts, tokens);
    context.record("samples", samples);
    context.record("found", found);
}

/// What became of texts, and what was found in them.
pub(crate) fn told(counts: &Counts, tokens: u64) -> [serde_json::Value; 2] {
    [
        json!({"samples": counts.samples, "cut": counts.cut, "without_words": counts.without_words,
               "words": counts.words.kept, "words_cut": counts.words.cut, "tokens": tokens}),
        json!({"mentions": counts.mentions.kept, "mentions_cut": counts.mentions.cut,
               "overlapping": counts.overlapping, "different_words": counts.different,
               "with_relevance": counts.known, "term_pairs": counts.term_pairs,
               "auxiliary_terms": counts.auxiliary.kept, "without_room": counts.auxiliary.cut,
               "graph_pairs": counts.graph_pairs}),
    ]
}
