//! MRRANK: which source and type of term is preferred for a concept's name.

use std::collections::HashMap;

use base::funnel::Tally;
use base::read::ReadError;

use super::count::Counts;
use super::file::File;

const RANK: usize = 0;
const SAB: usize = 1;
const TTY: usize = 2;
const SUPPRESS: usize = 3;

/// Ranks by vocabulary and then by term type and suppression; the higher is preferred.
#[derive(Debug)]
pub(super) struct Ranks {
    by_vocabulary: HashMap<String, HashMap<String, u32, ahash::RandomState>, ahash::RandomState>,
}

impl Ranks {
    /// Without MRRANK: all are alike.
    pub(super) fn none() -> Self {
        Self { by_vocabulary: HashMap::default() }
    }

    /// Reads MRRANK. If a term type has several ranks, the highest counts.
    pub(super) fn read(source: &File<'_>, tallies: &mut Vec<Tally>) -> Result<Self, ReadError> {
        let (mut ranks, mut counts) = (Self::none(), Counts::default());
        let totals = source.scan::<4, _>(
            |rows| {
                let mut found = Vec::new();
                while let Some(row) = rows.next_record()? {
                    let rank = row.field(RANK).parse::<u16>();
                    let rank = rank.map_err(|_| row.wrong(RANK, "RANK", "a number of four digits"))?;
                    let kind = kind(row.field(TTY), row.field(SUPPRESS));
                    found.push((row.field(SAB).to_owned(), kind, u32::from(rank) + 1));
                }
                Ok(found)
            },
            |found| {
                for (vocabulary, kind, rank) in found {
                    let known =
                        ranks.by_vocabulary.entry(vocabulary).or_default().entry(kind).or_insert(rank);
                    *known = rank.max(*known);
                    counts.keep();
                }
                Ok(())
            },
        )?;
        tallies.push(counts.tally(&source.label, &[], totals));
        Ok(ranks)
    }

    /// The rank of a name, higher for the better; 0 if it has none.
    pub(super) fn rank(&self, vocabulary: &str, term_type: &str, suppress: &str) -> u32 {
        let Some(ranks) = self.by_vocabulary.get(vocabulary) else { return 0 };
        // The key is put together without a heap, for this is asked for every name.
        let (mut key, length) = ([0; 48], term_type.len() + 1 + suppress.len());
        let Some(short) = key.get_mut(..length) else {
            return ranks.get(&kind(term_type, suppress)).copied().unwrap_or(0);
        };
        short[..term_type.len()].copy_from_slice(term_type.as_bytes());
        short[term_type.len()] = b'|';
        short[term_type.len() + 1..].copy_from_slice(suppress.as_bytes());
        std::str::from_utf8(short).ok().and_then(|key| ranks.get(key)).copied().unwrap_or(0)
    }
}

fn kind(term_type: &str, suppress: &str) -> String {
    format!("{term_type}|{suppress}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::umls::testing::source;

    #[test]
    fn ranks_go_by_vocabulary_type_and_suppression() {
        let long = "X".repeat(60);
        let text = format!("0003|MSH|MH|N|\n0002|MSH|MH|Y|\n0001|SNOMEDCT_US|MH|N|\n0000|A|{long}|N|\n");
        let mut tallies = Vec::new();
        let ranks = Ranks::read(&source("MRRANK.RRF", &text), &mut tallies).unwrap();
        assert_eq!(tallies[0].kept, 4);
        let asked =
            [("MSH", "MH", "N"), ("MSH", "MH", "Y"), ("MSH", "PT", "N"), ("A", &long, "N"), ("B", "MH", "N")];
        assert_eq!(asked.map(|(sab, tty, suppress)| ranks.rank(sab, tty, suppress)), [4, 3, 0, 1, 0]);
        let message =
            Ranks::read(&source("MRRANK.RRF", "high|MSH|MH|N|\n"), &mut Vec::new()).unwrap_err().to_string();
        assert!(message.contains("line 1, column 1 (RANK): found \"high\""), "{message}");
    }
}
