//! Shards of a corpus: every so-manieth document, and the proof that folders of counts are all of them, each once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::schema::Index;

/// One of several shares of a corpus, as `"2/4"`: the second, sixth, tenth... document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    number: u64,
    of: u64,
}

impl Shard {
    /// All of a corpus.
    pub(super) const WHOLE: Self = Self { number: 1, of: 1 };

    /// Whether the document with that number, from 0, is in it.
    #[must_use]
    pub fn takes(self, document: u64) -> bool {
        document % self.of == self.number - 1
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let numbers =
            text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Self { number, of }),
            _ => Err(format!("{text:?} is no shard; expected \"1/4\" for the first of four, to \"4/4\"")),
        }
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> String {
        format!("{}/{}", shard.number, shard.of)
    }
}

/// Missing shards that are named one by one.
const NAMED: usize = 8;

/// What keeps folders with these indices from being all shards of one corpus, each once; nothing where they are.
pub(super) fn misfits(folders: &[PathBuf], indices: &[Index]) -> Vec<String> {
    let shard = |index: &Index| index.shard.unwrap_or(Shard::WHOLE);
    let mut all = folders.iter().map(PathBuf::as_path).zip(indices);
    let Some((first_folder, first)) = all.next() else { return Vec::new() };
    let (of, mut problems) = (shard(first).of, Vec::new());
    let mut found = BTreeMap::<u64, Vec<&Path>>::from([(shard(first).number, vec![first_folder])]);
    for (folder, index) in all {
        if index.corpus != first.corpus {
            problems.push(format!(
                "{} is of another corpus than {} (its documents have the digest {}, not {})",
                folder.display(),
                first_folder.display(),
                index.corpus,
                first.corpus
            ));
        } else if shard(index).of != of {
            let [one, other] = [index, first].map(|index| String::from(shard(index)));
            problems.push(format!(
                "{} is shard {one}, but {} is {other}",
                folder.display(),
                first_folder.display()
            ));
        } else {
            found.entry(shard(index).number).or_default().push(folder);
        }
    }
    for (number, folders) in found.iter().filter(|(_, folders)| folders.len() > 1) {
        let names: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        problems.push(format!("shard {number}/{of} is there {} times: {}", names.len(), names.join(", ")));
    }
    let missing = of - found.len() as u64;
    if missing > 0 {
        let named: Vec<String> = (1..=of)
            .filter(|number| !found.contains_key(number))
            .take(NAMED)
            .map(|number| format!("{number}/{of}"))
            .collect();
        let more = missing - named.len() as u64;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        problems.push(format!("missing: shard {}{more}", named.join(", ")));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_one_of_several() {
        let read = |text: &str| Shard::try_from(text.to_owned());
        assert_eq!(read("2/4").map(String::from), Ok("2/4".to_owned()));
        for text in ["0/4", "5/4", "1", "a/b", "1/0", ""] {
            assert!(read(text).unwrap_err().contains("1/4"), "{text}");
        }
        let second = read("2/3").unwrap();
        assert_eq!((0..7).filter(|&n| second.takes(n)).collect::<Vec<_>>(), [1, 4]);
    }
}
