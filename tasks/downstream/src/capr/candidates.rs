//! Which passages are ranked for a query (the protocol of Arnold et al. 2020): what answers it, and what BM25 takes for an answer.
//!
//! Of the hits for "entity heading" over passages of at least ten characters, the first, then all passages of its document, then the others,
//! as many as there is room for beside those that answer; nothing is filled in at random. The published lists begin with what answers.
//! Ours are in the order of passages, which says nothing of the query, so that a scorer that breaks ties by place gains nothing.

use base::cancel::CancelToken;
use base::setting::InvalidSetting;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use serde::{Deserialize, Serialize};
use tasks::Error;

use super::{Collection, PassageId, Query, QueryId};
use crate::bm25::{Index, Searcher};

/// Most candidates of a query: they pass through an encoder together.
const MOST: usize = 100_000;

/// How lists are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Passages ranked per query, 2 to 100,000. The relevant ones are always among them.
    ///
    /// Source: CDV's published candidate lists (Arnold et al. 2020), of at most 64 passages.
    pub per_query: usize,
    /// Minimum length in characters for BM25 to return a passage.
    ///
    /// Source: CDV's protocol (Arnold et al. 2020).
    pub min_characters: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { per_query: 64, min_characters: 10 }
    }
}

impl Config {
    /// Whether the lists are a question.
    ///
    /// # Errors
    /// When there is room for nothing beside an answer, so that whatever ranks them is right.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        if !(2..=MOST).contains(&self.per_query) {
            let expected = format!("from 2, an answer and something else, to {MOST}");
            return Err(InvalidSetting::new("per_query", self.per_query, expected));
        }
        Ok(())
    }
}

/// The candidates of one query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidates {
    /// The query.
    pub query: QueryId,
    /// Candidates in the order of passages.
    pub passages: Vec<PassageId>,
    /// For each, whether it answers the query.
    pub relevant: Vec<bool>,
}

/// BM25 over the passages of a collection.
#[derive(Debug)]
pub struct Ranking {
    index: Index,
}

impl Ranking {
    /// Indexes all passages; those with fewer than `min_characters` characters are never found.
    ///
    /// # Errors
    /// When there are too many.
    pub fn new(collection: &Collection, min_characters: usize) -> Result<Self, Error> {
        let short = |text: &str| text.chars().take(min_characters).count() < min_characters;
        let text = |text: &'_ str| if short(text) { String::new() } else { text.to_owned() };
        let texts: Vec<String> = collection.passages.iter().map(|passage| text(&passage.text)).collect();
        Ok(Self { index: Index::new(&texts)? })
    }

    /// BM25's score of every passage for each of some queries, 0 where they share no word, handed to `each`; results in the order of
    /// queries.
    pub fn each<T: Send>(
        &self,
        collection: &Collection,
        queries: &[QueryId],
        each: &(dyn Fn(QueryId, Vec<f64>) -> T + Sync),
    ) -> Vec<T> {
        let scored = |searcher: &mut Searcher<'_>, &id: &QueryId| {
            let mut scores = vec![0.0; collection.passages.len()];
            let hits = searcher.search(&collection.query(id).search());
            hits.iter().for_each(|hit| scores[hit.text as usize] = hit.score);
            each(id, scores)
        };
        queries.par_iter().map_init(|| self.index.searcher(), scored).collect()
    }
}

/// The candidates of all queries, in their order; the same for any number of threads.
///
/// # Errors
/// When there are too many passages, or the config is invalid.
pub fn candidates(collection: &Collection, config: &Config) -> Result<Vec<Candidates>, Error> {
    candidates_until(collection, config, &CancelToken::NEVER)
}

/// As [`candidates`], until `cancel` cancels it.
///
/// # Errors
/// As [`candidates`], and once it is cancelled.
pub fn candidates_until(
    collection: &Collection,
    config: &Config,
    cancel: &CancelToken,
) -> Result<Vec<Candidates>, Error> {
    config.check()?;
    let ranking = Ranking::new(collection, config.min_characters)?;
    let queries: Vec<QueryId> = collection.query_ids().collect();
    let list = |searcher: &mut Searcher<'_>, &id: &QueryId| -> Result<Candidates, Error> {
        cancel.check()?;
        let query = collection.query(id);
        let hits: Vec<PassageId> =
            searcher.search(&query.search()).iter().map(|hit| PassageId(hit.text)).collect();
        Ok(listed(collection, id, query, &hits, config.per_query))
    };
    queries.par_iter().map_init(|| ranking.index.searcher(), list).collect()
}

/// What answers the query, then hits, the passages of the first one's document behind it, in all at most so many; then in order.
fn listed(
    collection: &Collection,
    id: QueryId,
    query: &Query,
    hits: &[PassageId],
    most: usize,
) -> Candidates {
    let beside = hits.first().map_or(0..0, |&first| {
        collection.documents[collection.passage(first).document.0 as usize].passages.clone()
    });
    let first = hits.first().copied().into_iter();
    let ranked = first.chain(beside.map(PassageId)).chain(hits.iter().copied());
    let mut passages = query.relevant.clone();
    for passage in ranked {
        if passages.len() >= most {
            break;
        }
        if !passages.contains(&passage) {
            passages.push(passage);
        }
    }
    passages.sort_unstable();
    let relevant = passages.iter().map(|passage| query.relevant.binary_search(passage).is_ok()).collect();
    Candidates { query: id, passages, relevant }
}

#[cfg(test)]
mod tests {
    use super::super::tests::collection;
    use super::*;

    const CONFIG: Config = Config { per_query: 4, min_characters: 5 };

    fn numbers(candidates: &Candidates) -> Vec<u32> {
        candidates.passages.iter().map(|passage| passage.0).collect()
    }

    fn small() -> Collection {
        collection(
            &[
                &["fever and more", "unlike all", "other thing"],
                &["the cause of fever", "fev", "cause of pain"],
                &["fever"],
            ],
            &[("Fever", "cause", &[5]), ("Nothing", "known", &[0, 2]), ("Unlike", "thing", &[1])],
        )
    }

    #[test]
    fn lists_have_what_answers_the_first_hits_document_and_more_hits() {
        let lists = candidates(&small(), &CONFIG).unwrap();
        // First hit: 3, so 4 is in although BM25 cannot find it; then the best of the others, which is the shortest.
        assert_eq!(numbers(&lists[0]), [3, 4, 5, 6]);
        assert_eq!(lists[0].relevant, [false, false, true, false]);
        // No hit: what answers it, nothing filled in.
        assert_eq!((numbers(&lists[1]), lists[1].relevant.clone()), (vec![0, 2], vec![true, true]));
        assert_eq!(numbers(&lists[2]), [0, 1, 2]);
        assert_eq!(lists[2].query, QueryId(2));
    }

    #[test]
    fn what_answers_is_in_even_beyond_the_limit_and_places_say_nothing() {
        let small = small();
        let listed = |query| listed(&small, query, small.query(query), &[PassageId(3)], 1);
        assert_eq!((numbers(&listed(QueryId(0))), numbers(&listed(QueryId(1)))), (vec![5], vec![0, 2]));
        let refused = candidates(&small, &Config { per_query: 1, ..CONFIG }).unwrap_err().to_string();
        assert!(refused.contains("per_query is 1, expected from 2"), "{refused}");
        for list in candidates(&small, &CONFIG).unwrap() {
            assert!(list.passages.is_sorted(), "{list:?}");
        }
    }

    #[test]
    fn lists_do_not_depend_on_threads() {
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| candidates(&small(), &CONFIG).unwrap())
        };
        assert_eq!(with(1), with(3));
    }

    #[test]
    fn scores_are_by_passage_and_short_ones_have_none() {
        let small = small();
        let ranking = Ranking::new(&small, 5).unwrap();
        let all = ranking.each(&small, &[QueryId(0), QueryId(1)], &|query, scores| (query, scores));
        assert_eq!((all[0].0, all[1].0), (QueryId(0), QueryId(1)));
        assert_eq!(all[0].1.len(), 7);
        assert!(all[0].1[3] > all[0].1[6] && all[0].1[4] == 0.0 && all[0].1[1] == 0.0, "{all:?}");
        assert_eq!(all[1].1, [0.0; 7]);
    }
}
