//! What is said of samples, of those of a corpus or of a benchmark.

use serde_json::{Map, Value, json};
use tasks::maps::config::{Config, Entities, Graph, Terms};
use tasks::maps::generators::Counts;
use tasks::maps::tools::Tools;
use text::ner::Dictionary;
use text::phrase;

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

/// Whether the counts of the corpus link neighbouring words to phrases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Linked {
    /// They link some, or are not asked.
    Some,
    /// They link none.
    None,
}

impl Linked {
    /// By what maps are made with.
    pub(super) fn by(tools: &Tools) -> Self {
        if tools.phrases().is_some_and(phrase::Phrases::is_empty) { Self::None } else { Self::Some }
    }
}

/// Warns of maps that have nothing in any text, by which a model would learn nothing.
pub(super) fn warn_of_nothing(context: &Context, config: &Config, counts: &Counts, phrases: Linked) {
    if counts.samples == 0 {
        return;
    }
    let Config { entities, terms, graph, .. } = config;
    let looked_for = !matches!(entities, Entities::None);
    let nothing = [
        (looked_for && counts.mentions.kept == 0, "maps.entities", "mentions an entity", "entities"),
        (
            phrases == Linked::None,
            "maps.phrases",
            "has a phrase, since the counts of the corpus link no two neighbouring words",
            "phrases",
        ),
        (
            *terms == Terms::Relevance && counts.term_pairs == 0,
            "maps.terms",
            "has two words that artifact `pmi` finds relevant for each other",
            "related terms",
        ),
        (
            *graph == Graph::Adjacent && counts.graph_pairs == 0,
            "maps.graph",
            "mentions two neighbours of the graph",
            "the graph",
        ),
    ];
    for (_, key, what, map) in nothing.iter().filter(|(is_empty, ..)| *is_empty) {
        context.warn(format!(
            "{key}: none of {} texts {what}: the map of {map} is empty, and a model learns nothing from it; look at what it is made from (`engraft inspect maps --text`), or leave it out",
            counts.samples
        ));
    }
}

/// Warns of types that the config names and that nothing in the graph has: a name in another spelling leaves nothing out, or nothing in.
pub(super) fn warn_of_types(context: &Context, tools: &Tools) {
    let unknown = tools.dictionary().map_or(&[][..], |found| &found.report().unknown_types);
    if !unknown.is_empty() {
        context.warn(format!(
            "maps.entities.dictionary.types: no entity with a term has the type {}; expected codes or names as the graph has them (`engraft inspect triples`)",
            unknown.join(" or ")
        ));
    }
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
