//! What is trained on is not tested on: documents of a collection are split off as a test, and documents about entities that another collection tests are left
//! out.
//!
//! Entities are compared as an uncased encoder tells them apart: without case, accents and runs of white space.

use std::collections::{BTreeMap, HashSet};

use base::rng::RngKey;
use base::setting::InvalidSetting;
use kg::canon::fold::bare;

use super::part::{drawn, joined};
use super::{Collection, DocumentId, PassageId, Query};
use crate::funnel::Step;

const TESTED: &str = "about an entity that is tested";
const SAME: &str = "text of a passage that is tested";

/// Whether a share of the documents can be split off.
///
/// # Errors
/// When it is not above 0 and below 1.
pub fn check(share: f64) -> Result<(), InvalidSetting> {
    if share > 0.0 && share < 1.0 {
        return Ok(());
    }
    Err(InvalidSetting::new("share", share, "a share of the documents above 0 and below 1"))
}

/// A part of the documents as a test: what is left to train on, and the test. Documents that are about one entity, or that answer one query, go
/// together, so no entity is in both; which ones go is a function of the seed and the name of the first document of such a group.
///
/// # Errors
/// When the share of groups is not above 0 and below 1.
pub fn split_off(
    collection: &Collection,
    share: f64,
    seed: RngKey,
) -> Result<(Collection, Collection), InvalidSetting> {
    check(share)?;
    let mut about: BTreeMap<String, Vec<DocumentId>> = BTreeMap::new();
    for query in &collection.queries {
        about.entry(bare(&query.entity)).or_default().extend(collection.answering(query));
    }
    let seed = seed.named("split off");
    let groups = joined(collection, about.into_values());
    let test: Vec<bool> =
        groups.into_iter().map(|first| drawn(seed, &collection.documents[first].key) < share).collect();
    let train: Vec<bool> = test.iter().map(|test| !test).collect();
    let test = subset(collection, &test, &HashSet::new());
    Ok((subset(collection, &train, &texts(&test)), test))
}

/// The texts of all passages, as entities are compared.
fn texts(collection: &Collection) -> HashSet<String> {
    collection.passages.iter().map(|passage| bare(&passage.text)).collect()
}

/// The collection without the documents that answer a query for an entity of `test`, or are named as a document of it, without passages that say
/// word for word what one of `test` says (publishers have one text for all diseases of a series), and what became of its documents and passages.
#[must_use]
pub fn without(collection: &Collection, test: &Collection) -> (Collection, Vec<Step>) {
    let tested: HashSet<String> = test.queries.iter().map(|query| bare(&query.entity)).collect();
    let named: HashSet<&str> = test.documents.iter().map(|document| document.key.as_str()).collect();
    let mut keep: Vec<bool> =
        collection.documents.iter().map(|document| !named.contains(document.key.as_str())).collect();
    for query in collection.queries.iter().filter(|query| tested.contains(&bare(&query.entity))) {
        collection.answering(query).into_iter().for_each(|document| keep[document.0 as usize] = false);
    }
    let others = subset(collection, &keep, &HashSet::new());
    let kept = subset(collection, &keep, &texts(test));
    let step = |of, [all, others, kept]: [usize; 3]| {
        Step::counted(of, &[(TESTED, (all - others) as u64), (SAME, (others - kept) as u64)], kept as u64)
    };
    let steps = vec![
        step("documents", [collection, &others, &kept].map(|of| of.documents.len())),
        step("passages", [collection, &others, &kept].map(|of| of.passages.len())),
    ];
    (kept, steps)
}

/// The documents to keep, in order, without passages of some texts, and the queries that they answer. A document that is left without a passage goes
/// too.
fn subset(collection: &Collection, keep: &[bool], never: &HashSet<String>) -> Collection {
    let mut subset = Collection::new(&collection.name);
    // Where each passage has gone.
    let mut moved: Vec<Option<PassageId>> = vec![None; collection.passages.len()];
    let mut next = 0;
    for (document, _) in collection.documents.iter().zip(keep).filter(|(_, keep)| **keep) {
        let (number, first) = (subset.documents.len(), next);
        for old in document.passages.clone() {
            let mut passage = collection.passages[old as usize].clone();
            if !never.is_empty() && never.contains(&bare(&passage.text)) {
                continue;
            }
            // No larger than the number it had, which fits.
            passage.document = DocumentId(u32::try_from(number).unwrap_or(u32::MAX));
            subset.passages.push(passage);
            moved[old as usize] = Some(PassageId(next));
            next += 1;
        }
        if next == first && !document.passages.is_empty() {
            continue;
        }
        let mut document = document.clone();
        document.passages = first..next;
        subset.documents.push(document);
    }
    for query in &collection.queries {
        let relevant: Vec<PassageId> =
            query.relevant.iter().filter_map(|passage| moved[passage.0 as usize]).collect();
        if !relevant.is_empty() {
            subset.queries.push(Query { relevant, ..query.clone() });
        }
    }
    subset
}

#[cfg(test)]
mod tests {
    use super::super::part::{Parts, Shares};
    use super::super::tests::collection;
    use super::*;

    /// 300 documents of two passages, two documents about each of 150 entities, one query a document.
    fn large() -> Collection {
        let texts: Vec<[String; 2]> = (0..300).map(|n| [format!("a {n}"), format!("b {n}")]).collect();
        let texts: Vec<[&str; 2]> = texts.iter().map(|pair| [pair[0].as_str(), pair[1].as_str()]).collect();
        let documents: Vec<&[&str]> = texts.iter().map(<[&str; 2]>::as_slice).collect();
        let entities: Vec<String> = (0..300)
            .map(|n| if n < 150 { format!("Entité {n}") } else { format!("ENTITE  {}", n - 150) })
            .collect();
        let relevant: Vec<[u32; 1]> = (0..300).map(|n| [2 * n + 1]).collect();
        let queries: Vec<(&str, &str, &[u32])> = entities
            .iter()
            .zip(&relevant)
            .zip(["x", "y"].iter().cycle())
            .map(|((entity, relevant), aspect)| (entity.as_str(), *aspect, relevant.as_slice()))
            .collect();
        collection(&documents, &queries)
    }

    fn entities(of: &Collection) -> HashSet<String> {
        of.queries.iter().map(|query| bare(&query.entity)).collect()
    }

    /// Whether everything of `part` is as it was in `whole`.
    fn assert_part_of(part: &Collection, whole: &Collection) {
        for passage in &part.passages {
            let document = &part.documents[passage.document.0 as usize];
            let old = whole.passages.iter().find(|old| old.key == passage.key).unwrap();
            assert_eq!(whole.documents[old.document.0 as usize].key, document.key);
        }
        for document in &part.documents {
            assert!(
                document
                    .passages
                    .clone()
                    .all(
                        |p| part.documents[part.passages[p as usize].document.0 as usize].key == document.key
                    )
            );
        }
        for query in &part.queries {
            let old = whole
                .queries
                .iter()
                .find(|old| old.entity == query.entity && old.aspect == query.aspect)
                .unwrap();
            let keys = |of: &Collection, query: &Query| {
                query.relevant.iter().map(|&id| of.passage(id).key.clone()).collect::<Vec<_>>()
            };
            assert_eq!(keys(part, query), keys(whole, old));
        }
    }

    #[test]
    fn a_test_is_split_off_entity_by_entity() {
        let whole = large();
        let (train, test) = split_off(&whole, 0.4, RngKey::new(1)).unwrap();
        assert_eq!(train.documents.len() + test.documents.len(), 300);
        assert_eq!(train.queries.len() + test.queries.len(), 300);
        assert!((80..160).contains(&test.documents.len()), "{}", test.documents.len());
        assert!(entities(&train).is_disjoint(&entities(&test)));
        assert_part_of(&train, &whole);
        assert_part_of(&test, &whole);
        assert_eq!(split_off(&whole, 0.4, RngKey::new(1)).unwrap(), (train.clone(), test));
        assert_ne!(split_off(&whole, 0.4, RngKey::new(2)).unwrap().0, train);
        Parts::draw(&train, Shares { dev: 0.1, mask_search: 0.0 }, RngKey::new(1)).unwrap();
        for share in [0.0, 1.0, f64::NAN] {
            let message = split_off(&whole, share, RngKey::new(1)).unwrap_err().to_string();
            assert!(message.contains("share is") && message.contains("above 0 and below 1"), "{message}");
        }
    }

    #[test]
    fn documents_about_tested_entities_are_left_out_and_counted() {
        let whole = large();
        let mut test = collection(&[&["other"]], &[("entite 7", "x", &[0])]);
        test.documents[0].key = "d200".to_owned();
        let (kept, steps) = without(&whole, &test);
        let left: Vec<&str> = whole
            .documents
            .iter()
            .map(|d| d.key.as_str())
            .filter(|key| kept.documents.iter().all(|d| d.key != *key))
            .collect();
        assert_eq!(left, ["d7", "d157", "d200"]);
        assert!(!entities(&kept).contains("entite 7"));
        assert_part_of(&kept, &whole);
        assert!(steps.iter().all(Step::adds_up));
        assert_eq!(
            (steps[0].dropped[TESTED], steps[0].kept, steps[1].dropped[TESTED], steps[1].kept),
            (3, 297, 6, 594)
        );
    }

    #[test]
    fn passages_that_say_what_a_tested_one_says_are_left_out_and_counted() {
        let whole = collection(
            &[&["It is inherited.", "Fever"], &["it  is INHERITED."], &["Cough"]],
            &[("one", "inheritance", &[0]), ("two", "inheritance", &[2]), ("two", "symptoms", &[1])],
        );
        let mut test = collection(&[&["It is inherited."]], &[("series 3", "inheritance", &[0])]);
        test.documents[0].key = "elsewhere".to_owned();
        let (kept, steps) = without(&whole, &test);
        let left: Vec<&str> = kept.passages.iter().map(|passage| passage.text.as_str()).collect();
        assert_eq!(left, ["Fever", "Cough"]);
        assert_eq!(
            (kept.documents.len(), kept.queries.len()),
            (2, 1),
            "a document without a passage goes too"
        );
        assert_eq!((steps[0].dropped[SAME], steps[1].dropped[SAME]), (1, 2));
        assert!(steps.iter().all(Step::adds_up));
    }
}
