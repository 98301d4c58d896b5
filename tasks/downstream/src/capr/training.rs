//! What a ranker is trained on: for each query of an epoch one passage that answers it and some of other documents that do not.
//!
//! The draw is a function of seed, epoch and query. Arnold et al. 2020 drew nine, of all documents, the query's own among them; here no
//! passage is of a document that answers the query.

use base::rng::RngKey;
use tasks::Error;

use super::candidates::Candidates;
use super::part::{Part, Parts};
use super::{Collection, DocumentId, PassageId, QueryId, unanswered};

/// Passages to learn from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawn {
    /// Answers the query.
    pub positive: PassageId,
    /// Do not; all different.
    pub negatives: Vec<PassageId>,
}

/// Draws for each passage that is wanted, before all are looked at instead.
const TRIES: u64 = 64;

/// Draws for the queries of one part from the passages of that part.
#[derive(Debug)]
pub struct Trainer<'a> {
    collection: &'a Collection,
    /// The part's queries, rising.
    queries: Vec<QueryId>,
    pool: Vec<PassageId>,
    negatives: usize,
    /// The candidates of every query, where negatives are drawn from them first.
    lists: Option<&'a [Candidates]>,
    seed: RngKey,
}

impl<'a> Trainer<'a> {
    /// Ready to draw `negatives` (published: 9) beside each positive.
    #[must_use]
    pub fn new(
        collection: &'a Collection,
        parts: &Parts,
        part: Part,
        negatives: usize,
        seed: RngKey,
    ) -> Self {
        let (queries, pool) = (parts.queries(collection, part), parts.passages(collection, part));
        Self { collection, queries, pool, negatives, lists: None, seed: seed.named("capr") }
    }

    /// The same, but for negatives that BM25 takes for answers: of each query's own candidates in `lists`, which are those of all queries in order, its own documents'
    /// other passages among them; where they are too few, the rest is drawn as without them.
    #[must_use]
    pub fn hard(mut self, lists: &'a [Candidates]) -> Self {
        self.lists = Some(lists);
        self
    }

    /// Wrong candidates of a query that are of the part, at most as many as are wanted.
    fn hard_of(&self, query: QueryId, seed: RngKey) -> Vec<PassageId> {
        let Some(list) = self.lists.and_then(|lists| lists.get(query.0 as usize)) else { return vec![] };
        let text = |passage: PassageId| self.collection.passage(passage).text.as_str();
        let right = &self.collection.query(query).relevant;
        let wrong = |passage: &PassageId| {
            self.pool.binary_search(passage).is_ok()
                && !right.iter().any(|right| right == passage || text(*right) == text(*passage))
        };
        let mut found: Vec<PassageId> = list.passages.iter().copied().filter(wrong).collect();
        seed.named("hard").shuffle(&mut found);
        found.truncate(self.negatives);
        found
    }

    /// What `query` is trained on in `epoch`. Of several passages that answer it, one is drawn.
    ///
    /// # Errors
    /// When the query is of another part, or there are not enough passages of other documents.
    pub fn draw(&self, epoch: u64, query: QueryId) -> Result<Drawn, Error> {
        let asked = self.collection.query(query);
        let said = || asked.text(super::Wording::Aspect);
        let few = |found: usize| {
            let (query, expected) = (said(), self.negatives);
            Error::Unfit(format!(
                "query {query:?}: {found} passages of other documents, expected {expected}: ask for fewer negatives, or take more documents"
            ))
        };
        if self.queries.binary_search(&query).is_err() {
            let problem =
                "is not of the part that is trained on: draw for the queries of that part (Parts::queries)";
            return Err(Error::Unfit(format!("query {:?} {problem}", said())));
        }
        let own: Vec<DocumentId> = self.collection.answering(asked);
        let seed = self.seed.at(epoch).at(u64::from(query.0));
        let positive =
            pick(&asked.relevant, seed.named("positive")).ok_or_else(|| unanswered(&said(), ""))?;
        let right = &self.collection.passage(positive).text;
        // Publishers have one text for many diseases: word for word the right one, it would be right and wrong at once.
        let inside = |passage: &PassageId| {
            let passage = self.collection.passage(*passage);
            own.binary_search(&passage.document).is_ok() || passage.text == *right
        };
        let hard = self.hard_of(query, seed);
        let of_others = self.pool.len() - self.own(&own);
        if of_others < self.negatives - hard.len() {
            return Err(few(of_others));
        }
        let hard_ones = hard.len();
        let (seed, mut negatives) = (seed.named("negatives"), hard);
        let many = of_others >= 2 * self.negatives + self.pool.len() / 2;
        let mut draw = 0;
        while many && negatives.len() < self.negatives && draw < TRIES * (self.negatives as u64 + 1) {
            let drawn = pick(&self.pool, seed.at(draw)).filter(|passage| !inside(passage));
            negatives.extend(drawn.filter(|passage| !negatives.contains(passage)));
            draw += 1;
        }
        if negatives.len() < self.negatives {
            // So few that drawing and throwing away may take long: all of them, shuffled.
            negatives.truncate(hard_ones);
            let known = |passage: &PassageId| inside(passage) || negatives.contains(passage);
            let mut others: Vec<PassageId> =
                self.pool.iter().copied().filter(|passage| !known(passage)).collect();
            seed.shuffle(&mut others);
            others.truncate(self.negatives - hard_ones);
            negatives.extend(others);
        }
        match negatives.len() {
            found if found < self.negatives => Err(few(found)),
            _ => Ok(Drawn { positive, negatives }),
        }
    }

    /// How many passages of the pool are of these documents.
    fn own(&self, documents: &[DocumentId]) -> usize {
        let inside = |document: &DocumentId| {
            let passages = &self.collection.documents[document.0 as usize].passages;
            let before = |bound: u32| self.pool.partition_point(|passage| passage.0 < bound);
            before(passages.end) - before(passages.start)
        };
        documents.iter().map(inside).sum()
    }
}

/// One of some passages.
fn pick(of: &[PassageId], seed: RngKey) -> Option<PassageId> {
    usize::try_from(seed.below(of.len() as u64)).ok().and_then(|chosen| of.get(chosen)).copied()
}

#[cfg(test)]
mod tests {
    use super::super::tests::collection;
    use super::*;

    fn large() -> Collection {
        let documents = vec![&["a", "b", "c"][..]; 30];
        collection(&documents, &[("e", "a", &[0, 4]), ("e", "b", &[5])])
    }

    #[test]
    fn negatives_are_others_documents_and_all_different() {
        let collection = large();
        let parts = Parts::whole(&collection);
        let trainer = Trainer::new(&collection, &parts, Part::Main, 9, RngKey::new(1));
        let mut positives = std::collections::BTreeSet::new();
        for epoch in 0..50 {
            let drawn = trainer.draw(epoch, QueryId(0)).unwrap();
            positives.insert(drawn.positive.0);
            let different: std::collections::BTreeSet<_> = drawn.negatives.iter().collect();
            assert_eq!(different.len(), 9);
            assert!(drawn.negatives.iter().all(|passage| passage.0 >= 6), "of other documents: {drawn:?}");
        }
        assert_eq!(positives, [0, 4].into());
    }

    #[test]
    fn draws_follow_from_seed_epoch_and_query() {
        let collection = large();
        let parts = Parts::whole(&collection);
        let trainer = |seed| Trainer::new(&collection, &parts, Part::Main, 9, RngKey::new(seed));
        let draw = |seed, epoch, query| trainer(seed).draw(epoch, QueryId(query)).unwrap().negatives;
        assert_eq!(draw(1, 2, 0), draw(1, 2, 0));
        assert_ne!(draw(1, 2, 0), draw(2, 2, 0));
        assert_ne!(draw(1, 2, 0), draw(1, 3, 0));
        assert_ne!(draw(1, 2, 0), draw(1, 2, 1));
    }

    #[test]
    fn hard_negatives_are_wrong_candidates_and_others_fill_up() {
        let collection = large();
        let parts = Parts::whole(&collection);
        let list = |query: u32, passages: &[u32]| Candidates {
            query: QueryId(query),
            passages: passages.iter().copied().map(PassageId).collect(),
            relevant: vec![],
        };
        // Passages 0 and 4 answer the first query; 3 has the text of 0, and 1 is of the document of 0.
        let lists = [list(0, &[0, 1, 3, 4, 8, 17]), list(1, &[5])];
        let trainer = |negatives| Trainer::new(&collection, &parts, Part::Main, negatives, RngKey::new(1));
        let draw = |negatives: usize, epoch, query| {
            trainer(negatives).hard(&lists).draw(epoch, QueryId(query)).unwrap().negatives
        };
        let mut ones = std::collections::BTreeSet::new();
        (0..50).for_each(|epoch| ones.extend(draw(1, epoch, 0)));
        assert_eq!(ones, [8, 17].map(PassageId).into(), "1 and 4 have the same text \"b\"");
        let four = draw(4, 0, 0);
        assert!(four[..2].iter().all(|passage| ones.contains(passage)), "{four:?}");
        assert!(four[2..].iter().all(|passage| passage.0 >= 6 && !four[..2].contains(passage)), "{four:?}");
        assert_eq!(draw(3, 1, 1).len(), 3, "without a wrong candidate all are others");
        assert_eq!(draw(56, 0, 0).len(), 56, "all that there are without the right one's text");
    }

    #[test]
    fn small_collections_give_all_that_they_have_or_say_that_it_is_too_little() {
        let collection = collection(&[&["a"], &["b", "c"], &["d"]], &[("e", "x", &[0]), ("f", "y", &[])]);
        let parts = Parts::whole(&collection);
        let trainer = |negatives| Trainer::new(&collection, &parts, Part::Main, negatives, RngKey::new(1));
        let mut all = trainer(3).draw(0, QueryId(0)).unwrap().negatives;
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3].map(PassageId));
        let message = trainer(4).draw(0, QueryId(0)).unwrap_err().to_string();
        assert!(
            message.starts_with("query \"e ; x\": 3 passages of other documents, expected 4"),
            "{message}"
        );
        let said = |drawn: Result<Drawn, Error>| drawn.unwrap_err().to_string();
        assert!(said(trainer(1).draw(0, QueryId(1))).contains("has no passage that answers it"));
        let none = Trainer::new(&collection, &parts, Part::Dev, 1, RngKey::new(1)).draw(0, QueryId(0));
        assert!(said(none).contains("is not of the part that is trained on"));
    }
}
