//! Clinical outcome prediction (van Aken et al. 2021) from MIMIC-III: what is known on admission, and what came of it. What an admission is.
//!
//! | file | what |
//! |---|---|
//! | [`note`] | discharge summaries of `NOTEEVENTS`, joined by admission |
//! | [`section`] | the sections of a note that are known on admission |
//! | [`label`] | classes of lengths of stay and codes, mentions of death |
//! | [`sample`] | the four tasks: mortality, length of stay, diagnoses, procedures |
//! | [`split`] | which patients are for what |
//! | [`benchmark`] | samples and parts as examples |
//! | [`weight`] | weights of classes |
//!
//! `NOTEEVENTS` (4 GB) is read twice: first for what each row is, then for the texts of the rows that stay, of which those of admissions
//! that are not complete are in memory.

pub mod benchmark;
pub mod label;
pub mod note;
pub mod sample;
pub mod section;
pub mod split;
pub mod weight;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

use base::cancel::CancelToken;
use base::gz;
use base::read::ReadError;
use serde::{Deserialize, Serialize};

use note::Funnel;

use tasks::Error;
use text::mimic_table::Table;

/// `HADM_ID`: one stay in hospital.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AdmissionId(pub u32);

/// `SUBJECT_ID`: a patient, who may be admitted several times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PatientId(pub u32);

/// Whose rules are followed where the reference code does other than it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Variant {
    /// The reference code's behaviour, for numbers to set beside the published ones. A section that ends the note is lost, and one followed
    /// only by numbered headers runs on to the next header; procedure codes lose their leading zeros, so that different ones become one
    /// class; V codes are classes of four characters; some classes occur in no note; of several mentions of a death in a section one is
    /// removed; notes marked as errors are kept.
    Reference,
    /// Its stated intent: sections end at the next header or with the note; codes are texts; the class of a V code is its category of three
    /// characters; classes are those that notes have; all mentions of a death are removed; notes marked as errors are skipped.
    #[default]
    Fixed,
}

/// The tables of MIMIC-III that are read. `PATIENTS` is none of them: nothing in it is a label or a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// `NOTEEVENTS`.
    pub notes: PathBuf,
    /// `ADMISSIONS`.
    pub admissions: PathBuf,
    /// `DIAGNOSES_ICD`.
    pub diagnoses: PathBuf,
    /// `PROCEDURES_ICD`.
    pub procedures: PathBuf,
}

/// A stay in hospital with what was known at its beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stay {
    /// The stay.
    pub admission: AdmissionId,
    /// The patient.
    pub patient: PatientId,
    /// What was known on admission, as [`section::admission_note`] has it.
    pub note: String,
    /// Whether the patient died in it.
    pub died: bool,
    /// How long it was; below 0 where the table has it end before it begins.
    pub seconds: i64,
    /// ICD-9 codes of its diagnoses as published, in their order.
    pub diagnoses: Vec<String>,
    /// ICD-9 codes of its procedures as published, in their order.
    pub procedures: Vec<String>,
}

/// All stays that have an admission note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stays {
    /// Whose rules were followed.
    pub variant: Variant,
    /// Stays by number.
    pub stays: Vec<Stay>,
    /// Classes of all rows of the table of diagnoses, with a note or without.
    pub diagnoses: BTreeSet<String>,
    /// The same of procedures.
    pub procedures: BTreeSet<String>,
    /// What became of notes and admissions.
    pub funnel: Funnel,
}

/// An admission as its table has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Admission {
    patient: PatientId,
    newborn: bool,
    died: bool,
    seconds: i64,
}

impl Files {
    /// The tables in a folder by their published names, `.csv` or, where there is none, `.csv.gz`.
    #[must_use]
    pub fn of(folder: &Path) -> Self {
        let named = |name: &str| {
            let plain = folder.join(format!("{name}.csv"));
            let packed = folder.join(format!("{name}.csv.gz"));
            if packed.exists() && !plain.exists() { packed } else { plain }
        };
        let [notes, admissions, diagnoses, procedures] =
            ["NOTEEVENTS", "ADMISSIONS", "DIAGNOSES_ICD", "PROCEDURES_ICD"].map(named);
        Self { notes, admissions, diagnoses, procedures }
    }
}

/// Bytes of a table, until it is cancelled.
struct Stoppable<R> {
    inner: R,
    cancel: CancelToken,
}

impl<R: Read> Read for Stoppable<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.cancel.check().map_err(io::Error::other)?;
        self.inner.read(out)
    }
}

impl<R: BufRead> BufRead for Stoppable<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.cancel.check().map_err(io::Error::other)?;
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.inner.consume(amount);
    }
}

/// Opens a table, packed by gzip or not.
fn open(file: &Path, cancel: &CancelToken) -> Result<impl BufRead + use<>, Error> {
    let opened = File::open(file).and_then(gz::reader);
    let inner = opened.map_err(|error: io::Error| {
        let found = format!("cannot open the table: {error}");
        let expected = "the tables of MIMIC-III as published, NAME.csv or NAME.csv.gz";
        ReadError::new(file, format!("{found}; expected {expected}"), "", "")
    })?;
    Ok(Stoppable { inner, cancel: cancel.clone() })
}

/// Reads all tables and makes an admission note of each stay.
///
/// # Errors
/// When a file is missing, damaged or lacks a column.
pub fn read(files: &Files, variant: Variant) -> Result<Stays, Error> {
    read_until(files, variant, &CancelToken::NEVER)
}

/// As [`read`], until `cancel` cancels it.
///
/// # Errors
/// As [`read`], and as a file that cannot be read on once it is cancelled.
pub fn read_until(files: &Files, variant: Variant, cancel: &CancelToken) -> Result<Stays, Error> {
    let admissions = admissions(&files.admissions, cancel)?;
    let (notes, funnel) =
        note::Notes { file: &files.notes, cancel, admissions: &admissions, variant }.read()?;
    let (mut diagnoses, mut procedures) =
        (codes(&files.diagnoses, cancel)?, codes(&files.procedures, cancel)?);
    let classes = |codes: &BTreeMap<AdmissionId, Vec<String>>, class: &dyn Fn(&str) -> String| {
        codes.values().flatten().map(|code| class(code)).collect::<BTreeSet<_>>()
    };
    let all_diagnoses = classes(&diagnoses, &|code| label::diagnosis(code, variant));
    let all_procedures = classes(&procedures, &|code| label::procedure(code, variant));
    let stay = |(admission, note)| {
        admissions.get(&admission).map(|&Admission { patient, died, seconds, .. }| Stay {
            admission,
            patient,
            note,
            died,
            seconds,
            diagnoses: diagnoses.remove(&admission).unwrap_or_default(),
            procedures: procedures.remove(&admission).unwrap_or_default(),
        })
    };
    let stays = notes.into_iter().filter_map(stay).collect();
    Ok(Stays { variant, stays, diagnoses: all_diagnoses, procedures: all_procedures, funnel })
}

fn admissions(file: &Path, cancel: &CancelToken) -> Result<BTreeMap<AdmissionId, Admission>, Error> {
    let wanted =
        ["HADM_ID", "SUBJECT_ID", "ADMITTIME", "DISCHTIME", "ADMISSION_TYPE", "HOSPITAL_EXPIRE_FLAG"];
    let mut table = Table::new(open(file, cancel)?, file, wanted);
    let mut admissions = BTreeMap::new();
    while table.advance()? {
        let admission = Admission {
            patient: PatientId(table.number(1)?),
            newborn: table.text(4)?.trim() == "NEWBORN",
            died: match table.text(5)?.trim() {
                "0" => false,
                "1" => true,
                _ => return Err(table.wrong(5, "1 or 0").into()),
            },
            seconds: table.time(3)? - table.time(2)?,
        };
        if admissions.insert(AdmissionId(table.number(0)?), admission).is_some() {
            return Err(table.wrong(0, "every admission once").into());
        }
    }
    Ok(admissions)
}

/// The codes of each admission, in the order of their rows; rows without a code say nothing.
fn codes(file: &Path, cancel: &CancelToken) -> Result<BTreeMap<AdmissionId, Vec<String>>, Error> {
    let mut table = Table::new(open(file, cancel)?, file, ["HADM_ID", "ICD9_CODE"]);
    let mut codes: BTreeMap<AdmissionId, Vec<String>> = BTreeMap::new();
    while table.advance()? {
        let code = table.text(1)?.trim();
        if !code.is_empty() {
            codes.entry(AdmissionId(table.number(0)?)).or_default().push(code.to_owned());
        }
    }
    Ok(codes)
}

#[cfg(test)]
mod tests;
