//! How many facts were filled in: by relation, and of each corpus.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base::visible::markdown;
use downstream::lama::Corpus;
use serde::Serialize;
use serde_json::json;

/// What is counted of some facts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
struct Measured {
    /// Facts asked.
    facts: u64,
    /// Share whose object is the first of all words.
    precision_at_1: f64,
    /// Share whose object is among the first ten.
    precision_at_10: f64,
    /// Mean of one over the object's place.
    mrr: f64,
}

impl Measured {
    /// From the places of the right objects, the first being 1.
    fn of(places: &[u64]) -> Self {
        let share = |most: u64| places.iter().filter(|place| **place <= most).count() as f64;
        let all = places.len().max(1) as f64;
        let mrr = places.iter().map(|place| 1.0 / *place as f64).sum::<f64>() / all;
        let (precision_at_1, precision_at_10) = (share(1) / all, share(10) / all);
        Self { facts: places.len() as u64, precision_at_1, precision_at_10, mrr }
    }

    /// The mean of some, each counting the same; the facts of all.
    fn mean(each: &[Self]) -> Self {
        let count = each.len().max(1) as f64;
        let of = |value: fn(&Self) -> f64| each.iter().map(value).sum::<f64>() / count;
        Self {
            facts: each.iter().map(|one| one.facts).sum(),
            precision_at_1: of(|one| one.precision_at_1),
            precision_at_10: of(|one| one.precision_at_10),
            mrr: of(|one| one.mrr),
        }
    }
}

/// Places of objects by corpus and relation.
pub(super) type ByRelation = BTreeMap<Corpus, BTreeMap<String, Vec<u64>>>;

/// All measures, and a table of them: of each corpus the mean over its relations (as LAMA has it) and over its facts.
pub(super) fn told(places: &ByRelation) -> (serde_json::Value, String) {
    let (mut all, mut table) = (serde_json::Map::new(), String::new());
    table.push_str("| corpus | relation | facts | P@1 | P@10 | MRR |\n|---|---|--:|--:|--:|--:|\n");
    let mut line = |corpus: &str, relation: &str, of: &Measured| {
        let [one, ten, mrr] = [of.precision_at_1, of.precision_at_10, of.mrr].map(|share| 100.0 * share);
        // Writing into a text cannot fail.
        _ = writeln!(table, "| {corpus} | {relation} | {} | {one:.1} | {ten:.1} | {mrr:.1} |", of.facts);
    };
    for (corpus, relations) in places {
        let each: BTreeMap<&String, Measured> =
            relations.iter().map(|(relation, places)| (relation, Measured::of(places))).collect();
        each.iter().for_each(|(relation, of)| line(corpus.folder(), &markdown(relation), of));
        let mean = Measured::mean(&each.values().copied().collect::<Vec<_>>());
        let micro = Measured::of(&relations.values().flatten().copied().collect::<Vec<_>>());
        line(corpus.folder(), "mean over relations", &mean);
        line(corpus.folder(), "all facts", &micro);
        all.insert(
            corpus.folder().to_owned(),
            json!({"relations": each, "mean_over_relations": mean, "all_facts": micro}),
        );
    }
    (all.into(), table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corpora_have_the_mean_over_relations_and_over_facts() {
        let of = |places: &[u64]| places.to_vec();
        let relations =
            BTreeMap::from([("P1".to_owned(), of(&[1, 2])), ("P2".to_owned(), of(&[1, 1, 20, 1, 4]))]);
        let (scores, table) = told(&BTreeMap::from([(Corpus::Trex, relations)]));
        let of = &scores["TREx"];
        assert!(
            (of["mean_over_relations"]["precision_at_1"].as_f64().unwrap() - 0.55).abs() < 1e-12,
            "{scores}"
        );
        assert!((of["all_facts"]["precision_at_1"].as_f64().unwrap() - 4.0 / 7.0).abs() < 1e-12);
        assert!((of["relations"]["P2"]["precision_at_10"].as_f64().unwrap() - 0.8).abs() < 1e-12);
        assert_eq!(table.lines().count(), 2 + 4);
        assert!(table.contains("| TREx | P1 | 2 | 50.0 | 100.0 | 75.0 |"), "{table}");
    }
}
