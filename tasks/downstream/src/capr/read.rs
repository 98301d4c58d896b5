//! Reads a folder of candidates and checks that it is as written.

use std::path::Path;

use base::self_check::{self, SelfChecked};
use tasks::Error;

use super::candidates::Candidates;
use super::part::Parts;
use super::schema::{Index, PASSAGES, PassageRow, QUERIES, QueryRow};
use super::{Collection, Document, DocumentId, Passage, PassageId, Query};
use crate::lines::{self, INDEX};

/// A folder of candidates.
#[derive(Debug, Clone, PartialEq)]
pub struct Folder {
    /// What its index says.
    pub index: Index,
    /// Documents, passages and queries.
    pub collection: Collection,
    /// What they are for.
    pub parts: Parts,
    /// The candidates of every query, in order.
    pub lists: Vec<Candidates>,
}

/// Reads a folder.
///
/// # Errors
/// When a file is missing, damaged or of another version, or rows do not fit each other.
pub fn read(folder: &Path) -> Result<Folder, Error> {
    let index: Index = self_check::read(&folder.join(INDEX))?;
    let (mut collection, mut parts) = (Collection::new(&index.name), Vec::new());
    for (row, line) in
        lines::read::<PassageRow>(folder, Index::KIND, &index.files, PASSAGES)?.into_iter().zip(1..)
    {
        let wrong = |why: &str| lines::row(&folder.join(PASSAGES), Index::KIND, line, why);
        let number = u32::try_from(line - 1).map_err(|_| wrong("more passages than numbers for them"))?;
        if row.passage.0 != number {
            return Err(wrong("expected passages numbered by lines, from 0"));
        }
        if collection.documents.last().is_none_or(|document| document.key != row.document) {
            parts.push(row.part);
            let (key, title) = (row.document, row.title);
            collection.documents.push(Document { key, title, passages: number..number });
        }
        if parts.last() != Some(&row.part) {
            return Err(wrong("expected all passages of a document in one part"));
        }
        let last = u32::try_from(collection.documents.len() - 1).map_err(|_| wrong("too many documents"))?;
        if let Some(document) = collection.documents.last_mut() {
            document.passages.end = number + 1;
        }
        collection.passages.push(Passage { key: row.key, document: DocumentId(last), text: row.text });
    }
    let parts = Parts::drawn(parts);
    let mut lists = Vec::new();
    for (row, line) in
        lines::read::<QueryRow>(folder, Index::KIND, &index.files, QUERIES)?.into_iter().zip(1..)
    {
        let wrong = |why: &str| lines::row(&folder.join(QUERIES), Index::KIND, line, why);
        let list = list(&row, line, collection.passages.len()).map_err(wrong)?;
        let (id, said) = (list.query, row.part);
        lists.push(list);
        let QueryRow { entity, aspect, heading, relevant, .. } = row;
        collection.queries.push(Query { entity, aspect, heading, relevant });
        if parts.query(&collection, id) != said {
            return Err(wrong("expected the part of the document that answers the query"));
        }
    }
    let candidates = lists.iter().map(|list| list.passages.len() as u64).sum();
    let counts = [
        ("documents", collection.documents.len() as u64, index.documents),
        ("passages", collection.passages.len() as u64, index.passages),
        ("queries", collection.queries.len() as u64, index.queries),
        ("candidates", candidates, index.candidates),
    ];
    lines::agree(folder, Index::KIND, counts)?;
    Ok(Folder { index, collection, parts, lists })
}

/// The candidates of a row, or what is wrong with it.
fn list(row: &QueryRow, line: usize, passages: usize) -> Result<Candidates, &'static str> {
    let rising = |of: &[PassageId]| of.windows(2).all(|pair| pair[0] < pair[1]);
    let last = row.candidates.last();
    if row.query.0 as usize != line - 1 {
        return Err("expected queries numbered by lines, from 0");
    }
    if !rising(&row.candidates)
        || !rising(&row.relevant)
        || last.is_some_and(|last| last.0 as usize >= passages)
    {
        return Err("expected rising numbers of passages");
    }
    if row.relevant.is_empty() || row.relevant.iter().any(|id| row.candidates.binary_search(id).is_err()) {
        return Err("expected all that answers the query, at least one passage, among its candidates");
    }
    let relevant = row.candidates.iter().map(|id| row.relevant.binary_search(id).is_ok()).collect();
    Ok(Candidates { query: row.query, passages: row.candidates.clone(), relevant })
}

#[cfg(test)]
mod tests {
    use base::whole::write_whole;

    use super::super::candidates::{Config, candidates};
    use super::super::part::{Part, Shares};
    use super::super::tests::collection;
    use super::super::write::write;
    use super::*;
    use base::rng::RngKey;

    const CONFIG: Config = Config { per_query: 3, min_characters: 2 };

    fn written(folder: &Path) -> Folder {
        let documents: Vec<&[&str]> =
            vec![&["fever is hot", "pain\nhurts"], &["rest \"well\"", "é"], &["fever and pain"]];
        let collection = collection(
            &documents,
            &[("fever", "what", &[0, 4]), ("pain", "why", &[1]), ("rest", "how", &[2])],
        );
        let parts = Parts::draw(&collection, Shares { dev: 0.4, mask_search: 0.2 }, RngKey::new(4)).unwrap();
        let lists = candidates(&collection, &CONFIG).unwrap();
        let index = write(folder, &collection, &parts, &CONFIG, &lists).unwrap();
        Folder { index, collection, parts, lists }
    }

    #[test]
    fn what_is_written_is_read_and_its_bytes_are_a_function_of_it() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let folder = written(one.path());
        assert_eq!(read(one.path()).unwrap(), folder);
        assert_eq!((folder.index.passages, folder.index.queries), (5, 3));
        let parts: Vec<Part> =
            folder.collection.query_ids().map(|id| folder.parts.query(&folder.collection, id)).collect();
        assert_eq!(parts[0], parts[1], "documents 0 and 2 answer one query");
        written(two.path());
        for name in [PASSAGES, QUERIES, INDEX] {
            assert_eq!(
                std::fs::read(one.path().join(name)).unwrap(),
                std::fs::read(two.path().join(name)).unwrap()
            );
        }
    }

    #[test]
    fn what_is_missing_damaged_or_of_another_version_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path());
        let refused = |name: &str, from: &str, to: &str| {
            let path = folder.path().join(name);
            let before = std::fs::read_to_string(&path).unwrap();
            assert!(before.contains(from), "{before}");
            write_whole(&path, before.replacen(from, to, 1).as_bytes()).unwrap();
            let message = read(folder.path()).unwrap_err().to_string();
            write_whole(&path, before.as_bytes()).unwrap();
            message
        };
        assert!(refused(PASSAGES, "hot", "hut").contains("as the index says; make the candidates again"));
        assert!(
            refused(INDEX, "\"version\": 2", "\"version\": 3").contains("version 3, but this engraft reads")
        );
        assert!(refused(INDEX, "\"queries\"", "\"quarries\"").contains("unknown field `quarries`"));
        for (from, to) in [
            ("queries.jsonl", "other.jsonl"),
            ("\"per_query\": 3", "\"per_query\": 7"),
            ("\"small\"", "\"smile\""),
        ] {
            assert!(refused(INDEX, from, to).contains("damaged: its contents give the check"), "{from}");
        }
        // As whoever writes such a folder otherwise might have it.
        let resealed = |change: &dyn Fn(&mut Index)| {
            let before = std::fs::read(folder.path().join(INDEX)).unwrap();
            let mut index: Index = self_check::read(&folder.path().join(INDEX)).unwrap();
            change(&mut index);
            self_check::write(&folder.path().join(INDEX), &mut index).unwrap();
            let message = read(folder.path()).unwrap_err().to_string();
            write_whole(&folder.path().join(INDEX), &before).unwrap();
            message
        };
        assert!(resealed(&|index| index.candidates += 1).contains("candidates, but the index says"));
        assert!(
            resealed(&|index| index.files[1].path = "other.jsonl".into()).contains("expected no such file")
        );
        std::fs::remove_file(folder.path().join(INDEX)).unwrap();
        assert!(read(folder.path()).unwrap_err().to_string().contains("without its index is not finished"));
    }

    #[test]
    fn rows_that_do_not_follow_are_refused() {
        let row = |candidates: &[u32], relevant: &[u32]| QueryRow {
            query: super::super::QueryId(0),
            entity: String::new(),
            aspect: String::new(),
            heading: String::new(),
            part: Part::Main,
            candidates: candidates.iter().copied().map(PassageId).collect(),
            relevant: relevant.iter().copied().map(PassageId).collect(),
        };
        assert_eq!(list(&row(&[0, 2], &[2]), 1, 3).unwrap().relevant, [false, true]);
        assert!(list(&row(&[2, 0], &[2]), 1, 3).is_err());
        assert!(list(&row(&[0, 3], &[0]), 1, 3).is_err());
        assert!(list(&row(&[0, 2], &[1]), 1, 3).is_err());
        assert!(list(&row(&[0, 2], &[]), 1, 3).is_err());
        assert!(list(&row(&[0, 2], &[2]), 2, 3).is_err());
    }
}
