//! What is said of samples, of those of a corpus or of a benchmark.

use serde_json::{Map, Value, json};
use tasks::maps::generators::Counts;
use tasks::maps::tools::Tools;
use text::ner::Dictionary;

use crate::engine::context::Context;

/// Leaves it as facts.
pub(super) fn record(context: &Context, counts: &Counts, tokens: u64) {
    let [samples, found] = told(counts, tokens);
    context.record("samples", samples);
    context.record("found", found);
}

/// What became of texts, and what was found in them.
pub(crate) fn told(counts: &Counts, tokens: u64) -> [Value; 2] {
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

/// What became of the terms of the dictionary, if there is one: facts by their names.
pub(super) fn told_of(tools: &Tools) -> Map<String, Value> {
    let mut facts = Map::new();
    let Some(report) = tools.dictionary().map(Dictionary::report) else { return facts };
    facts.insert("dictionary".to_owned(), json!({"terms": report.terms, "entities": report.entities}));
    let mut spellings = Vec::new();
    for (spelling, tally) in
        [("as written", &report.written), ("turned", &report.turned), ("other number", &report.other_number)]
    {
        spellings.push(
            json!({"spelling": spelling, "read": tally.read, "kept": tally.kept, "why_not": tally.dropped}),
        );
    }
    facts.insert("spellings".to_owned(), spellings.into());
    facts
}
