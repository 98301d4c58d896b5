//! MRCUI: what became of retired concepts.

use base::funnel::Tally;
use base::read::ReadError;

use super::count::{Counts, Reason};
use super::cui::{Cui, CuiMap};
use super::file::File;
use super::name::{Found, Names};

const CUI1: usize = 0;
const REL: usize = 2;
const CUI2: usize = 5;
const COLUMNS: usize = 7;

/// What the rows of a retired concept come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Nothing took its place (DEL).
    Deleted,
    /// Only broader, narrower or related ones are known (RB, RN, RO), or none in this subset (SUBX).
    Related,
    /// The same as this one (SY).
    Same(Cui),
    /// Several are said to be the same.
    Several,
    /// It is being followed.
    Followed,
    /// It leads to a concept of which nothing is known.
    Nowhere,
}

impl Fate {
    /// Both together, whichever comes first.
    fn and(self, other: Self) -> Self {
        let weight = |fate| match fate {
            Fate::Deleted => 0,
            Fate::Related => 1,
            Fate::Same(_) => 2,
            Fate::Several | Fate::Followed | Fate::Nowhere => 3,
        };
        match (self, other) {
            (Fate::Same(one), Fate::Same(two)) if one != two => Fate::Several,
            _ if weight(other) > weight(self) => other,
            _ => self,
        }
    }
}

/// Reads MRCUI and tells `names` where retired concepts lead. What is only broader, narrower or related is not taken for the same.
pub(super) fn read(source: &File<'_>, names: &mut Names) -> Result<Tally, ReadError> {
    let (mut fates, mut counts) = (CuiMap::new(), Counts::default());
    let totals = source.scan::<COLUMNS, _>(
        |rows| {
            let mut found = Vec::new();
            while let Some(row) = rows.next_record()? {
                let fate = match row.field(REL) {
                    "SY" => Fate::Same(Cui::parse(&row, CUI2, "CUI2")?),
                    "DEL" => Fate::Deleted,
                    // RB, RN, RO; SUBX for a concept that a subset leaves out.
                    _ => Fate::Related,
                };
                found.push((Cui::parse(&row, CUI1, "CUI1")?, fate));
            }
            Ok(found)
        },
        |found| {
            for (cui, fate) in found {
                match fate {
                    Fate::Same(_) => counts.keep(),
                    Fate::Deleted => counts.drop(Reason::Deleted),
                    _ => counts.drop(Reason::NotTheSame),
                }
                let known = fates.place(cui);
                *known = Some(known.map_or(fate, |known: Fate| known.and(fate)));
            }
            Ok(())
        },
    )?;
    let retired: Vec<Cui> = fates.iter().map(|(cui, _)| cui).collect();
    let mut path = Vec::new();
    for cui in retired {
        follow(cui, &mut fates, names, &mut path);
    }
    Ok(counts.tally(&source.label, &[Reason::Deleted, Reason::NotTheSame], totals))
}

/// Follows a retired concept to its end and tells `names` of every concept on the way, so that none is followed twice.
fn follow(start: Cui, fates: &mut CuiMap<Fate>, names: &mut Names, path: &mut Vec<Cui>) {
    let mut cui = start;
    path.clear();
    let end = loop {
        let known = names.find(cui);
        if known != Found::Nameless {
            break known;
        }
        match fates.get(cui) {
            Some(Fate::Same(next)) => {
                *fates.place(cui) = Some(Fate::Followed);
                path.push(cui);
                cui = next;
                continue;
            }
            Some(Fate::Deleted) => break Found::Deleted,
            // A concept that is its own successor has none.
            Some(Fate::Related | Fate::Several | Fate::Followed) => break Found::Ambiguous,
            Some(Fate::Nowhere) | None => break Found::Nameless,
        }
    };
    path.push(start);
    for &cui in &*path {
        names.retire(cui, end);
        if end == Found::Nameless && fates.get(cui).is_some() {
            *fates.place(cui) = Some(Fate::Nowhere);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::umls::testing::{conso, cui, source};

    /// Where the concepts 1 to `last` lead, of which 1 and 2 have names.
    fn find(rows: &[&str], last: u32) -> Vec<String> {
        let text: String = rows.iter().map(|row| format!("{row}|\n")).collect();
        let mut names = conso(&["C0000001|One", "C0000002|Two"]);
        read(&source("MRCUI.RRF", &text), &mut names).unwrap();
        let describe = |number| match names.find(cui(number)) {
            Found::Named(named) => names.text(named).to_owned(),
            Found::Mapped(named) => format!("-> {}", names.text(named)),
            other => format!("{other:?}"),
        };
        (1..=last).map(describe).collect()
    }

    #[test]
    fn only_what_is_the_same_is_mapped() {
        let rows = [
            "C0000003|2020AA|SY|||C0000001|Y",
            "C0000004|2020AA|RB|||C0000001|Y",
            "C0000005|2020AA|DEL||||",
            "C0000006|2020AA|RN|||C0000001|Y",
            "C0000006|2021AA|SY|||C0000002|Y",
            "C0000006|2021AA|SY|||C0000002|N",
            "C0000007|2021AA|SY|||C0000001|Y",
            "C0000007|2021AA|SY|||C0000002|Y",
            "C0000007|2021AA|SY|||C0000002|Y",
            "C0000002|2021AA|SY|||C0000001|Y",
        ];
        let wanted = ["One", "Two", "-> One", "Ambiguous", "Deleted", "-> Two", "Ambiguous", "Nameless"];
        assert_eq!(find(&rows, 8), wanted);
        let reversed: Vec<&str> = rows.iter().rev().copied().collect();
        assert_eq!(find(&reversed, 8), wanted);
    }

    #[test]
    fn chains_are_followed_and_circles_end() {
        let same = |pairs: &[(u32, u32)]| -> Vec<String> {
            pairs.iter().map(|(one, two)| format!("{}|2020AA|SY|||{}|Y", cui(*one), cui(*two))).collect()
        };
        let mut rows =
            same(&[(3, 4), (4, 5), (5, 1), (6, 7), (7, 8), (8, 7), (9, 9), (10, 11), (12, 10), (13, 14)]);
        rows.push("C0000014|2020AA|DEL||||".to_owned());
        let wanted = [
            "One",
            "Two",
            "-> One",
            "-> One",
            "-> One",
            "Ambiguous",
            "Ambiguous",
            "Ambiguous",
            "Ambiguous",
            "Nameless",
            "Nameless",
            "Nameless",
            "Deleted",
            "Deleted",
        ];
        for _ in 0..rows.len() {
            rows.rotate_left(1);
            let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
            assert_eq!(find(&rows, 14), wanted);
        }
    }

    #[test]
    fn a_long_chain_and_a_concept_that_a_subset_leaves_out_are_no_trouble() {
        let rows: Vec<String> =
            (3..30_000).map(|n| format!("{}|2020AA|SY|||{}|Y", cui(n), cui(n + 1))).collect();
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        assert_eq!(find(&rows, 3)[2], "Nameless");
        let mut names = conso(&["C0000001|One"]);
        let tally = read(&source("MRCUI.RRF", "C0000003|2020AA|SUBX||||N|\n"), &mut names).unwrap();
        assert_eq!((tally.read, tally.dropped["not_the_same"]), (1, 1));
    }
}
