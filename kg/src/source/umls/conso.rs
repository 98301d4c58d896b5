//! MRCONSO: one name for each concept. Knows no relation.

use std::cmp::Ordering;
use std::io::BufRead;
use std::path::Path;

use super::cui::{Cui, CuiMap};
use super::{Options, Suppressed};
use crate::source::funnel::Tally;
use crate::source::rrf::{Error, Reader, Record};

const CUI: usize = 0;
const LAT: usize = 1;
const TS: usize = 2;
const STT: usize = 4;
const ISPREF: usize = 6;
const STR: usize = 14;
const SUPPRESS: usize = 16;

/// The best name of a concept so far.
#[derive(Debug)]
pub(super) struct Name {
    rank: Rank,
    text: Box<str>,
}

/// How far a name is from the one to prefer, the weightiest first: place of its language among those asked for, whether it is
/// suppressed, no preferred term (TS), no preferred form (STT), not the preferred atom of its string (ISPREF).
type Rank = (usize, [bool; 4]);

impl Name {
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// Chooses the name of each concept. Among equals the first in the order of code points wins, so the order of rows is all the same.
pub(super) fn read<R: BufRead>(
    (reader, label): (R, &Path),
    options: &Options,
) -> Result<(CuiMap<Name>, Tally), Error> {
    let mut rows = Reader::<_, 18>::new(reader, label);
    let mut tally = Tally::new(label, &["other_language", "suppressed"]);
    let mut names = CuiMap::new();
    while let Some(row) = rows.next_record()? {
        let cui = Cui::parse(&row, CUI, "CUI")?;
        let language = options.languages.iter().position(|language| language == row.field(LAT));
        let suppressed = row.field(SUPPRESS) != "N";
        let Some(language) = language else {
            tally.drop("other_language");
            continue;
        };
        if suppressed && options.suppressed == Suppressed::Drop {
            tally.drop("suppressed");
            continue;
        }
        if row.field(STR).trim().is_empty() {
            return Err(row.wrong(STR, "STR", "a name"));
        }
        tally.keep();
        let rank = rank(&row, language);
        let text = row.field(STR);
        let name = names.get_or_insert_with(cui, || Name { rank, text: text.into() });
        if rank.cmp(&name.rank).then_with(|| text.cmp(&name.text)) == Ordering::Less {
            *name = Name { rank, text: text.into() };
        }
    }
    (tally.lines, tally.bytes) = (rows.lines(), rows.bytes());
    Ok((names, tally))
}

fn rank(row: &Record<'_, 18>, language: usize) -> Rank {
    let is_not = |column, value| row.field(column) != value;
    (language, [is_not(SUPPRESS, "N"), is_not(TS, "P"), is_not(STT, "PF"), is_not(ISPREF, "Y")])
}
