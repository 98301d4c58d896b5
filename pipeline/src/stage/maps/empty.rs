//! Why a map of a text has nothing in it.

use batch::maps::expand::Map;
use batch::maps::sample::Sample;
use tasks::maps::config::{Config, Entities, Graph, Phrases, Terms};

/// Where maps come from.
#[derive(Debug, Clone)]
struct From<'a> {
    entities: &'a Entities,
    phrases: &'a Phrases,
    terms: Terms,
    graph: Graph,
}

/// The reason why a map of a text has nothing beside its diagonal; nothing where it has.
#[must_use]
pub(crate) fn reason(config: &Config, map: Map, sample: &Sample) -> Option<String> {
    let Config { entities, phrases, terms, graph, .. } = config;
    reason_from(&From { entities, phrases, terms: *terms, graph: *graph }, map, sample)
}

fn reason_from(from: &From<'_>, map: Map, sample: &Sample) -> Option<String> {
    let mentions = sample.entities.iter().copied().max().unwrap_or(0);
    if sample.phrases.iter().all(|phrase| *phrase == 0) {
        return Some("the text has no word".to_owned());
    }
    match map {
        Map::Entity => (mentions == 0).then(|| no_mention(from.entities).to_owned()),
        Map::Phrase => (!repeats(&sample.phrases)).then(|| no_phrase(from.phrases).to_owned()),
        Map::Term => sample.terms.pairs.first.is_empty().then(|| match from.terms {
            Terms::None => "`maps.terms` is \"none\", so no words are related".to_owned(),
            Terms::Relevance => "no two different words of this text are relevant for each other in the artifact `pmi`: they stand too seldom together in the corpus".to_owned(),
        }),
        Map::Graph => sample.graph.first.is_empty().then(|| match (from.graph, mentions) {
            (Graph::None, _) => "`maps.graph` is \"none\", so no entities are related".to_owned(),
            (Graph::Adjacent, 0) => no_mention(from.entities).to_owned(),
            (Graph::Adjacent, 1) => "one term of the graph stands in this text, and it takes two".to_owned(),
            (Graph::Adjacent, mentions) => format!("no two of the {mentions} terms in this text are neighbours in the graph"),
        }),
    }
}

fn no_mention(entities: &Entities) -> &'static str {
    match entities {
        Entities::None => "`maps.entities` is \"none\", so no entity is looked for",
        Entities::Marked => {
            "`maps.entities` is \"marked\": entities are those that a corpus file marks, and a typed text marks none"
        }
        Entities::Dictionary(_) => "no term of the graph stands in this text",
    }
}

fn no_phrase(phrases: &Phrases) -> &'static str {
    match phrases {
        Phrases::None => "`maps.phrases` is \"none\", so every word is a phrase of its own",
        Phrases::Marked => {
            "`maps.phrases` is \"marked\": phrases are those that a corpus file marks, and a typed text marks none"
        }
        Phrases::Neighbours(_) => {
            "no neighbouring words of this text belong together by the counts of the corpus"
        }
    }
}

/// Whether two words are in the same phrase; auxiliary terms are in none.
fn repeats(phrases: &[u16]) -> bool {
    phrases.iter().enumerate().any(|(at, phrase)| *phrase != 0 && phrases[..at].contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Sample {
        Sample { entities: vec![1, 1, 2, 0], phrases: vec![1, 1, 2, 0], ..Sample::default() }
    }

    #[test]
    fn an_empty_map_says_why_and_another_says_nothing() {
        let mut sample = sample();
        let from = From {
            entities: &Entities::Marked,
            phrases: &Phrases::Marked,
            terms: Terms::Relevance,
            graph: Graph::Adjacent,
        };
        assert_eq!(reason_from(&from, Map::Entity, &sample), None);
        assert_eq!(reason_from(&from, Map::Phrase, &sample), None);
        let told = |from: &From<'_>, map, sample: &Sample| reason_from(from, map, sample).unwrap();
        assert!(told(&from, Map::Graph, &sample).contains("no two of the 2 terms"));
        assert!(told(&from, Map::Term, &sample).contains("`pmi`"));
        let none = From { terms: Terms::None, graph: Graph::None, ..from.clone() };
        assert!(told(&none, Map::Term, &sample).contains("`maps.terms` is \"none\""));
        assert!(told(&none, Map::Graph, &sample).contains("`maps.graph` is \"none\""));
        sample.entities = vec![1, 0, 0, 0];
        assert!(told(&from, Map::Graph, &sample).contains("it takes two"));
        sample.entities = vec![0; 4];
        assert!(told(&from, Map::Graph, &sample).contains("a typed text marks none"));
        let none = From { entities: &Entities::None, ..from.clone() };
        assert!(told(&none, Map::Entity, &sample).contains("`maps.entities` is \"none\""));
        sample.phrases = vec![1, 2, 3, 0];
        assert!(told(&from, Map::Phrase, &sample).contains("a typed text marks none"));
        assert_eq!(told(&from, Map::Phrase, &Sample::default()), "the text has no word");
    }
}
