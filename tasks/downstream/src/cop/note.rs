//! Discharge summaries of `NOTEEVENTS` by admission: newborns and other notes left out, repeated texts once, addenda joined.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use base::cancel::CancelToken;
use serde::Serialize;
use tasks::Error;
use xxhash_rust::xxh3::xxh3_128;

use super::{Admission, AdmissionId, Variant, open, section};
use text::mimic_table::Table;

/// What became of notes, and of the admissions that they are of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Funnel {
    /// Notes read.
    pub notes: u64,
    /// Of another category than `Discharge summary`.
    pub other_category: u64,
    /// Marked as an error; [`Variant::Fixed`] leaves them out.
    pub marked: u64,
    /// Without a text.
    pub no_text: u64,
    /// Without an admission, or of one that `ADMISSIONS` lacks.
    pub no_admission: u64,
    /// Of newborns.
    pub newborn: u64,
    /// With the text of a later note.
    pub repeated: u64,
    /// Notes that are left: those of the admissions below.
    pub kept: u64,
    /// Admissions that they are of.
    pub admissions: u64,
    /// Of those, admissions with addenda alone.
    pub no_report: u64,
    /// Admissions whose notes have neither a complaint nor an illness nor a history.
    pub no_section: u64,
    /// Admissions that became an admission note.
    pub admission_notes: u64,
}

const COLUMNS: [&str; 6] = ["HADM_ID", "CHARTDATE", "CATEGORY", "DESCRIPTION", "ISERROR", "TEXT"];
const HADM_ID: usize = 0;
const CHARTDATE: usize = 1;
const CATEGORY: usize = 2;
const DESCRIPTION: usize = 3;
const ISERROR: usize = 4;
const TEXT: usize = 5;

/// A row that may stay.
struct Row {
    /// Its day, none last, and its place in the file: the order in which notes are joined.
    at: (i64, u64),
    admission: AdmissionId,
    text: u128,
    report: bool,
}

/// A file of notes and how it is read.
pub(super) struct Notes<'a> {
    pub(super) file: &'a Path,
    pub(super) cancel: &'a CancelToken,
    pub(super) admissions: &'a BTreeMap<AdmissionId, Admission>,
    pub(super) variant: Variant,
}

impl Notes<'_> {
    /// The admission notes, by admission, and what became of the rest.
    pub(super) fn read(&self) -> Result<(Vec<(AdmissionId, String)>, Funnel), Error> {
        let mut funnel = Funnel::default();
        let rows = once(self.rows(&mut funnel)?, &mut funnel);
        let mut texts: BTreeMap<AdmissionId, Vec<Row>> = BTreeMap::new();
        rows.into_iter().for_each(|row| texts.entry(row.admission).or_default().push(row));
        funnel.admissions = texts.len() as u64;
        texts.retain(|_, rows| rows.iter().any(|row| row.report));
        funnel.no_report = funnel.admissions - texts.len() as u64;
        let joined = self.join(&texts)?;
        funnel.admission_notes = joined.len() as u64;
        funnel.no_section = texts.len() as u64 - funnel.admission_notes;
        Ok((joined.into_iter().collect(), funnel))
    }

    /// What each row is; those that may stay, in the order in which they are joined.
    fn rows(&self, funnel: &mut Funnel) -> Result<Vec<Row>, Error> {
        let mut table = Table::new(open(self.file, self.cancel)?, self.file, COLUMNS);
        let mut rows = Vec::new();
        while table.advance()? {
            let place = funnel.notes;
            funnel.notes += 1;
            if table.text(CATEGORY)?.trim() != "Discharge summary" {
                funnel.other_category += 1;
                continue;
            }
            if self.variant == Variant::Fixed && table.text(ISERROR)?.trim() == "1" {
                funnel.marked += 1;
                continue;
            }
            let text = table.text(TEXT)?;
            if text.is_empty() {
                funnel.no_text += 1;
                continue;
            }
            let named = table.text(HADM_ID)?.trim();
            let id = if named.is_empty() { None } else { Some(AdmissionId(table.number(HADM_ID)?)) };
            let Some((admission, found)) = id.and_then(|id| Some((id, self.admissions.get(&id)?))) else {
                funnel.no_admission += 1;
                continue;
            };
            if found.newborn {
                funnel.newborn += 1;
                continue;
            }
            let day =
                if table.text(CHARTDATE)?.trim().is_empty() { i64::MAX } else { table.time(CHARTDATE)? };
            let report = table.text(DESCRIPTION)?.trim() == "Report";
            rows.push(Row { at: (day, place), admission, text: xxh3_128(text.as_bytes()), report });
        }
        rows.sort_unstable_by_key(|row| row.at);
        Ok(rows)
    }

    /// Reads the texts of the rows that stay, and makes an admission note of each admission as soon as its last text is read.
    fn join(&self, texts: &BTreeMap<AdmissionId, Vec<Row>>) -> Result<BTreeMap<AdmissionId, String>, Error> {
        let mut wanted: HashMap<u64, (AdmissionId, usize)> = HashMap::new();
        for (&admission, rows) in texts {
            wanted.extend(rows.iter().enumerate().map(|(part, row)| (row.at.1, (admission, part))));
        }
        let mut pending: HashMap<AdmissionId, (Vec<String>, usize)> = HashMap::new();
        let mut made = BTreeMap::new();
        let mut table = Table::new(open(self.file, self.cancel)?, self.file, COLUMNS);
        let mut place = 0;
        while table.advance()? {
            let stays = wanted.get(&place);
            place += 1;
            let Some(&(admission, part)) = stays else { continue };
            let parts = texts[&admission].len();
            let (read, missing) =
                pending.entry(admission).or_insert_with(|| (vec![String::new(); parts], parts));
            read[part].push_str(table.text(TEXT)?);
            *missing -= 1;
            if *missing == 0 {
                let note = section::admission_note(&read.join("\n\n"), self.variant);
                pending.remove(&admission);
                made.extend(note.map(|note| (admission, note)));
            }
        }
        Ok(made)
    }
}

/// Of rows with one text the last.
fn once(mut rows: Vec<Row>, funnel: &mut Funnel) -> Vec<Row> {
    let all = rows.len();
    let mut seen = HashSet::with_capacity(all);
    rows.reverse();
    rows.retain(|row| seen.insert(row.text));
    rows.reverse();
    (funnel.repeated, funnel.kept) = ((all - rows.len()) as u64, rows.len() as u64);
    rows
}
