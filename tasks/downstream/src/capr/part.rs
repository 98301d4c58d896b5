//! Which queries are for what: documents held out for development, and those on which head masks are searched.
//!
//! No document is in two parts, nor are documents that answer one query: these are a group, and a group is one draw.

use base::rng::RngKey;
use serde::{Deserialize, Serialize};
use tasks::Error;

use super::{Collection, DocumentId, PassageId, QueryId};

/// What a document and its queries are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Training, or, of a test collection, the scores that are reported.
    Main,
    /// Choosing settings and when to stop.
    Dev,
    /// Searching a head mask, so never reported.
    MaskSearch,
}

/// How much is held out, as shares of groups of documents.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shares {
    /// For [`Part::Dev`].
    pub dev: f64,
    /// For [`Part::MaskSearch`].
    pub mask_search: f64,
}

impl Shares {
    /// Whether they leave something.
    ///
    /// # Errors
    /// When they are below 0, or 1 and more together.
    pub fn check(self) -> Result<(), Error> {
        let Self { dev, mask_search } = self;
        if dev >= 0.0 && mask_search >= 0.0 && dev + mask_search < 1.0 {
            return Ok(());
        }
        let expected = "expected two numbers from 0 on, below 1 together";
        Err(Error::Unfit(format!("shares dev {dev} and mask_search {mask_search}: {expected}")))
    }
}

/// The part of every document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    documents: Vec<Part>,
}

impl Parts {
    /// Draws the part of each group of documents: a function of the seed and the name of the group's first document.
    ///
    /// # Errors
    /// When the shares are below 0 or 1 and more together.
    pub fn draw(collection: &Collection, shares: Shares, seed: RngKey) -> Result<Self, Error> {
        let Shares { dev, mask_search } = shares;
        shares.check()?;
        let seed = seed.named("parts");
        let drawn = |group: usize| match drawn(seed, &collection.documents[group].key) {
            share if share < mask_search => Part::MaskSearch,
            share if share < mask_search + dev => Part::Dev,
            _ => Part::Main,
        };
        Ok(Self { documents: groups(collection).into_iter().map(drawn).collect() })
    }

    /// Parts as they were drawn, document by document.
    pub(super) fn drawn(documents: Vec<Part>) -> Self {
        Self { documents }
    }

    /// All documents and queries are [`Part::Main`].
    #[must_use]
    pub fn whole(collection: &Collection) -> Self {
        Self { documents: vec![Part::Main; collection.documents.len()] }
    }

    /// The part of a document.
    #[must_use]
    pub fn document(&self, id: DocumentId) -> Part {
        self.documents[id.0 as usize]
    }

    /// The part of a query: that of the documents that answer it.
    #[must_use]
    pub fn query(&self, collection: &Collection, id: QueryId) -> Part {
        let first = collection.query(id).relevant.first();
        first.map_or(Part::Main, |&passage| self.document(collection.passage(passage).document))
    }

    /// The queries of a part, in order. Those of [`Part::Main`] are what a test collection reports: none that a mask was searched on.
    #[must_use]
    pub fn queries(&self, collection: &Collection, part: Part) -> Vec<QueryId> {
        collection.query_ids().filter(|&id| self.query(collection, id) == part).collect()
    }

    /// The passages of a part, in order.
    #[must_use]
    pub fn passages(&self, collection: &Collection, part: Part) -> Vec<PassageId> {
        let all = collection.passages.iter().zip(0..).map(|(passage, id)| (passage.document, PassageId(id)));
        all.filter(|(document, _)| self.document(*document) == part).map(|(_, id)| id).collect()
    }
}

/// A number from 0 on and below 1 for a name.
pub(super) fn drawn(seed: RngKey, name: &str) -> f64 {
    /// Draws have so many values, exactly representable.
    const STEPS: u64 = 1 << 53;
    seed.named(name).below(STEPS) as f64 / STEPS as f64
}

/// For each document, the first of its group: documents that answer one query are in one.
fn groups(collection: &Collection) -> Vec<usize> {
    joined(collection, collection.queries.iter().map(|query| collection.answering(query)))
}

/// For each document, the first of its group, where documents that are named together are in one.
pub(super) fn joined(collection: &Collection, together: impl Iterator<Item = Vec<DocumentId>>) -> Vec<usize> {
    let mut first: Vec<usize> = (0..collection.documents.len()).collect();
    for documents in together {
        for pair in documents.windows(2) {
            let (a, b) = (root(&mut first, pair[0].0 as usize), root(&mut first, pair[1].0 as usize));
            let (low, high) = (a.min(b), a.max(b));
            first[high] = low;
        }
    }
    (0..first.len()).map(|document| root(&mut first, document)).collect()
}

/// The first document of a group, halving the way to it.
fn root(first: &mut [usize], mut document: usize) -> usize {
    while first[document] != document {
        first[document] = first[first[document]];
        document = first[document];
    }
    document
}

#[cfg(test)]
mod tests {
    use super::super::tests::collection;
    use super::*;

    /// A document for each of 1,000 queries; every tenth query is also answered by the next one's.
    fn large() -> Collection {
        let documents = vec![&["a", "b"][..]; 1_000];
        let relevant: Vec<Vec<u32>> =
            (0..1_000).map(|n| if n % 10 == 0 { vec![2 * n, 2 * n + 2] } else { vec![2 * n + 1] }).collect();
        let queries: Vec<(&str, &str, &[u32])> = relevant.iter().map(|r| ("e", "a", r.as_slice())).collect();
        collection(&documents, &queries)
    }

    #[test]
    fn no_document_is_in_two_parts() {
        let collection = large();
        let shares = Shares { dev: 0.2, mask_search: 0.1 };
        let parts = Parts::draw(&collection, shares, RngKey::new(1)).unwrap();
        for id in collection.query_ids() {
            let documents = collection.answering(collection.query(id));
            assert!(documents.iter().all(|&d| parts.document(d) == parts.query(&collection, id)));
        }
        let count = |part| parts.queries(&collection, part).len();
        let (main, dev, search) = (count(Part::Main), count(Part::Dev), count(Part::MaskSearch));
        assert_eq!(main + dev + search, 1_000);
        assert!((150..250).contains(&dev) && (60..140).contains(&search), "{dev} {search}");
        let reported = parts.queries(&collection, Part::Main);
        assert!(parts.queries(&collection, Part::MaskSearch).iter().all(|query| !reported.contains(query)));
        assert_eq!(parts.passages(&collection, Part::Main).len() % 2, 0);
    }

    #[test]
    fn parts_follow_from_seed_and_names() {
        let (collection, shares) = (large(), Shares { dev: 0.5, mask_search: 0.0 });
        let draw = |seed| Parts::draw(&collection, shares, RngKey::new(seed)).unwrap();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert_eq!(Parts::whole(&collection).queries(&collection, Part::Main).len(), 1_000);
        for (dev, mask_search) in [(0.5, 0.5), (-0.1, 0.0), (f64::NAN, 0.0)] {
            let message = Parts::draw(&collection, Shares { dev, mask_search }, RngKey::new(1))
                .unwrap_err()
                .to_string();
            assert!(message.contains("expected two numbers from 0 on, below 1 together"), "{message}");
        }
    }
}
