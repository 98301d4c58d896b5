//! MRSAB: source vocabularies, their licence levels and languages; which of them are asked for.

use std::collections::BTreeMap;

use base::funnel::Tally;
use base::read::ReadError;

use super::count::{Counts, Reason};
use super::file::File;
use super::options::Options;

const RSAB: usize = 3;
const SRL: usize = 13;
const LAT: usize = 19;
const CURVER: usize = 21;
const COLUMNS: usize = 25;

/// The vocabularies that MRSAB lists, and those asked for.
#[derive(Debug)]
pub(super) struct Vocabularies<'o> {
    options: &'o Options,
    listed: BTreeMap<String, Listed>,
}

/// A vocabulary in MRSAB.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Listed {
    /// Whether this is an earlier version than the current one; sorted first, so that the current one is less.
    outdated: bool,
    level: u8,
    language: String,
}

/// Rows of a vocabulary are taken, at this licence level if one is known; or they are not.
pub(super) type Verdict = Result<Option<u8>, Reason>;

impl<'o> Vocabularies<'o> {
    /// Without MRSAB: no vocabulary has a level.
    pub(super) fn unlisted(options: &'o Options) -> Self {
        Self { options, listed: BTreeMap::new() }
    }

    /// Reads MRSAB. Of several versions of a vocabulary the current one counts, or that of the highest level if none is.
    pub(super) fn read(
        source: &File<'_>,
        options: &'o Options,
        tallies: &mut Vec<Tally>,
    ) -> Result<Self, ReadError> {
        let mut listed = BTreeMap::new();
        let mut counts = Counts::default();
        let totals = source.scan::<COLUMNS, _>(
            |rows| {
                let mut found = Vec::new();
                while let Some(row) = rows.next_record()? {
                    let level = match row.field(SRL).as_bytes() {
                        [digit @ b'0'..=b'9'] => digit - b'0',
                        _ => return Err(row.wrong(SRL, "SRL", "a level from 0 to 9")),
                    };
                    let (outdated, language) = (row.field(CURVER) != "Y", row.field(LAT).to_owned());
                    found.push((row.field(RSAB).to_owned(), Listed { outdated, level, language }));
                }
                Ok(found)
            },
            |found| {
                for (name, one) in found {
                    let outdated = one.outdated;
                    match listed.get_mut(&name) {
                        None => drop(listed.insert(name, one)),
                        Some(known) if one < *known => *known = one,
                        Some(_) => {}
                    }
                    if outdated { counts.drop(Reason::NotCurrent) } else { counts.keep() }
                }
                Ok(())
            },
        )?;
        tallies.push(counts.tally(&source.label, &[Reason::NotCurrent], totals));
        Ok(Self { options, listed })
    }

    /// What happens to rows of the vocabulary `name`.
    pub(super) fn judge(&self, name: &str) -> Verdict {
        let asked = self.options.vocabularies.as_ref();
        let allowed = asked.and_then(|asked| asked.allow.as_ref()).is_none_or(|allow| allow.contains(name));
        if !allowed || asked.is_some_and(|asked| asked.deny.contains(name)) {
            return Err(Reason::VocabularyNotAskedFor);
        }
        let level = self.listed.get(name).map(|listed| listed.level);
        match (self.options.max_srl, level) {
            (Some(_), None) => Err(Reason::NoLevel),
            (Some(max), Some(level)) if level > max => Err(Reason::AboveMaxSrl),
            _ => Ok(level),
        }
    }

    /// Whether a vocabulary is known to be in a language that is not asked for.
    pub(super) fn is_foreign(&self, name: &str) -> bool {
        let language = self.listed.get(name).map(|listed| &listed.language);
        language.is_some_and(|language| !language.is_empty() && !self.options.languages.contains(language))
    }

    /// The options that decide.
    pub(super) fn options(&self) -> &'o Options {
        self.options
    }

    /// Vocabularies that the options name, with the option.
    pub(super) fn named(&self) -> impl Iterator<Item = (&'static str, &'o str)> {
        self.options.vocabularies.iter().flat_map(|asked| {
            let allow = asked.allow.iter().flatten().map(|name| ("vocabularies.allow", name.as_str()));
            allow.chain(asked.deny.iter().map(|name| ("vocabularies.deny", name.as_str())))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::umls::testing::{options, source};

    fn line(rsab: &str, srl: &str, current: char) -> String {
        format!("C1|C2|{rsab}_1|{rsab}|Name|{rsab}|1|||1||||{srl}|1|1||||ENG|UTF-8|{current}|Y|||\n")
    }

    #[test]
    fn the_current_version_decides_the_level_and_max_srl_the_rest() {
        let rows = [
            ("A", "0", 'N'),
            ("A", "3", 'Y'),
            ("A", "1", 'N'),
            ("B", "9", 'Y'),
            ("D", "4", 'N'),
            ("D", "2", 'N'),
        ];
        for rows in [rows.to_vec(), rows.into_iter().rev().collect()] {
            let text: String = rows.iter().map(|&(rsab, srl, current)| line(rsab, srl, current)).collect();
            let strict = Options { max_srl: Some(3), ..options() };
            let mut tallies = Vec::new();
            let all = Vocabularies::read(&source("MRSAB.RRF", &text), &strict, &mut tallies).unwrap();
            let [tally] = tallies.as_slice() else { panic!("one file") };
            let verdicts = ["A", "B", "C", "D"].map(|name| all.judge(name));
            assert_eq!(verdicts, [Ok(Some(3)), Err(Reason::AboveMaxSrl), Err(Reason::NoLevel), Ok(Some(2))]);
            assert_eq!((tally.kept, tally.dropped["not_current"]), (2, 4));
        }
    }

    #[test]
    fn denying_goes_before_allowing() {
        let mut options = options();
        options.vocabularies = Some(super::super::Vocabularies {
            allow: Some(["A", "B"].map(str::to_owned).into()),
            deny: ["B"].map(str::to_owned).into(),
        });
        let all = Vocabularies::unlisted(&options);
        let refused = Err(Reason::VocabularyNotAskedFor);
        assert_eq!(["A", "B", "C"].map(|name| all.judge(name)), [Ok(None), refused, refused]);
    }

    #[test]
    fn a_level_that_is_none_is_refused_with_its_place() {
        let text = line("A", "0", 'Y') + &line("B", "12", 'Y');
        let options = options();
        let read = Vocabularies::read(&source("MRSAB.RRF", &text), &options, &mut Vec::new());
        let message = read.unwrap_err().to_string();
        assert!(message.contains("MRSAB.RRF: line 2, column 14 (SRL): found \"12\""), "{message}");
    }
}
