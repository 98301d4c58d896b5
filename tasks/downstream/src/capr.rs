//! Clinical answer passage retrieval (Arnold et al. 2020; Grundmann et al. 2021): which passage answers `entity ; aspect`? What a collection is.
//!
//! | file | what |
//! |---|---|
//! | [`cdv`] | the published annotations, and MedQuAD's texts put to them |
//! | [`medquad`] | MedQuAD's documents by themselves, to train on |
//! | [`wikisection`] | articles of WikiSection, whose headings are the aspects |
//! | [`apart`] | no document and no entity is trained on and tested on |
//! | [`candidates`] | which passages are ranked for a query |
//! | [`part`] | documents held out for development and for the mask search |
//! | [`training`] | a right passage and wrong ones for each query of an epoch |
//! | [`mod@write`], [`read`] | all of it on disk |

pub mod apart;
pub mod candidates;
pub mod cdv;
pub mod medquad;
pub mod part;
pub mod read;
pub mod schema;
pub mod training;
pub mod wikisection;
pub mod write;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use serde::{Deserialize, Serialize};

use tasks::Error;

/// A document: its place in [`Collection::documents`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DocumentId(pub u32);

/// A passage: its place in [`Collection::passages`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PassageId(pub u32);

/// A query: its place in [`Collection::queries`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QueryId(pub u32);

/// A document, which is passages one behind the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// What its publisher calls it.
    pub key: String,
    /// What it is about.
    pub title: String,
    /// Its passages.
    pub passages: Range<u32>,
}

/// A passage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// What its publisher calls it.
    pub key: String,
    /// The document that it is of.
    pub document: DocumentId,
    /// Its text as published.
    pub text: String,
}

/// A question for an aspect of an entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The entity (`spastic paraplegia type 11`).
    pub entity: String,
    /// The aspect's label (`symptoms`).
    pub aspect: String,
    /// The aspect in more words (`symptoms and presentation`), or the label again.
    pub heading: String,
    /// The passages that answer it, in order, at least one.
    pub relevant: Vec<PassageId>,
}

/// How a query is said to an encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Wording {
    /// `entity ; aspect`, as in the published files for cross-encoders.
    #[default]
    Aspect,
    /// `entity ; heading`, with the heading `information` as `description`.
    Heading,
    /// `entity aspect`, as a person would type it: for encoders that have learned from such questions.
    Plain,
}

impl Query {
    /// The query as a text.
    #[must_use]
    pub fn text(&self, wording: Wording) -> String {
        let aspect = match wording {
            Wording::Plain => return format!("{} {}", self.entity, self.aspect),
            Wording::Aspect => &self.aspect,
            Wording::Heading if self.heading == "information" => "description",
            Wording::Heading => &self.heading,
        };
        format!("{} ; {aspect}", self.entity)
    }

    /// What BM25 is asked: entity and heading, blanks for `/`, `-` and `:`.
    #[must_use]
    pub fn search(&self) -> String {
        format!("{} {}", self.entity, self.heading).replace(['/', '-', ':'], " ")
    }
}

/// Documents, their passages, and queries that some of these answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collection {
    /// What it is called.
    pub name: String,
    /// Documents in the order of their source.
    pub documents: Vec<Document>,
    /// Passages, document after document.
    pub passages: Vec<Passage>,
    /// Queries in the order of their source.
    pub queries: Vec<Query>,
}

/// More passages than numbers for them.
fn too_many() -> Error {
    Error::unfit("more passages than numbers for them (4,294,967,295): take a part of the documents")
}

/// A query has no passage that answers it.
fn unanswered(query: &str, remedy: &str) -> Error {
    Error::Unfit(format!("query {query:?} has no passage that answers it: expected one at least{remedy}"))
}

impl Collection {
    /// An empty one.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// A passage.
    #[must_use]
    pub fn passage(&self, id: PassageId) -> &Passage {
        &self.passages[id.0 as usize]
    }

    /// A query.
    #[must_use]
    pub fn query(&self, id: QueryId) -> &Query {
        &self.queries[id.0 as usize]
    }

    /// The numbers of all queries.
    pub fn query_ids(&self) -> impl Iterator<Item = QueryId> + use<> {
        (0..u32::try_from(self.queries.len()).unwrap_or(u32::MAX)).map(QueryId)
    }

    /// The documents that answer a query, in order, each once.
    #[must_use]
    pub fn answering(&self, query: &Query) -> Vec<DocumentId> {
        let mut documents: Vec<_> = query.relevant.iter().map(|&id| self.passage(id).document).collect();
        documents.sort_unstable();
        documents.dedup();
        documents
    }

    /// Adds a document with its passages, names and texts.
    ///
    /// # Errors
    /// When there are too many.
    fn document(&mut self, key: &str, title: &str, passages: Vec<(String, String)>) -> Result<(), Error> {
        let number = |length: usize| u32::try_from(length).map_err(|_| too_many());
        let document = DocumentId(number(self.documents.len())?);
        let first = number(self.passages.len())?;
        let passages = passages.into_iter().map(|(key, text)| Passage { key, document, text });
        self.passages.extend(passages);
        let passages = first..number(self.passages.len())?;
        self.documents.push(Document { key: key.to_owned(), title: title.to_owned(), passages });
        Ok(())
    }

    /// The passages by name; no two documents have the same, either.
    fn names(&self) -> Result<HashMap<&str, PassageId>, Error> {
        let mut documents = HashSet::with_capacity(self.documents.len());
        if let Some(twice) = self.documents.iter().find(|document| !documents.insert(document.key.as_str())) {
            let problem = "is there twice, expected every name once: leave one of them out";
            return Err(Error::Unfit(format!("document {:?} {problem}", twice.key)));
        }
        let mut names = HashMap::with_capacity(self.passages.len());
        for (passage, number) in self.passages.iter().zip(0..) {
            if names.insert(passage.key.as_str(), PassageId(number)).is_some() {
                let problem =
                    "is there twice, expected every name once: leave out one of the documents that have it";
                return Err(Error::Unfit(format!("passage {:?} {problem}", passage.key)));
            }
        }
        Ok(names)
    }

    /// How many queries are answered by so many passages.
    #[must_use]
    pub fn answers(&self) -> BTreeMap<usize, u64> {
        let mut counts = BTreeMap::new();
        self.queries.iter().for_each(|query| *counts.entry(query.relevant.len()).or_default() += 1);
        counts
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A collection of documents, each with passages `text`, and queries by the numbers of what answers them.
    pub(crate) fn collection(documents: &[&[&str]], queries: &[(&str, &str, &[u32])]) -> Collection {
        let mut collection = Collection::new("small");
        for (number, passages) in documents.iter().enumerate() {
            let passages =
                passages.iter().enumerate().map(|(p, text)| (format!("{number}-{p}"), (*text).to_owned()));
            collection
                .document(&format!("d{number}"), &format!("title {number}"), passages.collect())
                .unwrap();
        }
        let query = |&(entity, aspect, relevant): &(&str, &str, &[u32])| Query {
            entity: entity.to_owned(),
            aspect: aspect.to_owned(),
            heading: aspect.to_owned(),
            relevant: relevant.iter().copied().map(PassageId).collect(),
        };
        collection.queries = queries.iter().map(query).collect();
        collection
    }

    #[test]
    fn queries_are_said_by_aspect_or_by_heading() {
        let query = Query {
            entity: "non-small/cell".to_owned(),
            aspect: "outlook".to_owned(),
            heading: "prognosis".to_owned(),
            relevant: vec![PassageId(0)],
        };
        assert_eq!(query.text(Wording::Aspect), "non-small/cell ; outlook");
        assert_eq!(query.text(Wording::Heading), "non-small/cell ; prognosis");
        assert_eq!(query.text(Wording::Plain), "non-small/cell outlook");
        assert_eq!(query.search(), "non small cell prognosis");
        let query = Query { heading: "information".to_owned(), aspect: "information".to_owned(), ..query };
        assert_eq!(query.text(Wording::Heading), "non-small/cell ; description");
        assert_eq!(query.text(Wording::Aspect), "non-small/cell ; information");
    }

    #[test]
    fn names_must_be_the_passages_own() {
        let mut collection = collection(&[&["a", "b"], &["c"]], &[("e", "x", &[0, 2])]);
        assert_eq!(collection.names().unwrap()["1-0"], PassageId(2));
        assert_eq!(collection.answering(&collection.queries[0]), [DocumentId(0), DocumentId(1)]);
        assert_eq!(collection.answers(), BTreeMap::from([(2, 1)]));
        collection.document("d2", "t", vec![("0-1".to_owned(), "d".to_owned())]).unwrap();
        let said = |collection: &Collection| collection.names().unwrap_err().to_string();
        assert!(said(&collection).starts_with("passage \"0-1\" is there twice"));
        collection.document("d1", "t", vec![("9-9".to_owned(), "d".to_owned())]).unwrap();
        assert!(said(&collection).starts_with("document \"d1\" is there twice"));
    }
}
