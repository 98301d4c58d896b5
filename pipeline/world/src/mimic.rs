//! Hospital tables in the layout of MIMIC-III; knows what happened from `stay` and what was written from `note`.

use super::Error;
use super::entity::World;
use super::file::{Frame, Sink, put};
use super::kind::scaled;

mod note;
mod stay;

use stay::{Patient, Stay, date, moment};

/// Patients at scale 1; with repeated stays about 300 admissions.
const PATIENTS: usize = 252;

/// One cell of a row: numbers and dates stand bare, text in quotes, as published.
enum Cell<'a> {
    Number(usize),
    Bare(&'a str),
    Text(&'a str),
}

/// Writes the five tables.
pub(super) fn write(world: &World, sink: &mut Sink<'_>, scale: f64) -> Result<(), Error> {
    let patients = scaled(PATIENTS, scale).max(20);
    let mut table = |name: &str, header: &str, rows: &(dyn Fn(&Patient, &mut Vec<u8>) -> u64 + Sync)| {
        let opening = format!("\"{}\"\n", header.replace(' ', "\",\""));
        let frame = Frame { opening: &opening, items: patients, closing: "" };
        sink.items(&format!("mimic/{name}.csv"), &frame, |index, out| rows(&stay::patient(world, index), out))
    };
    table(
        "ADMISSIONS",
        "ROW_ID SUBJECT_ID HADM_ID ADMITTIME DISCHTIME DEATHTIME ADMISSION_TYPE ADMISSION_LOCATION DISCHARGE_LOCATION INSURANCE \
         LANGUAGE RELIGION MARITAL_STATUS ETHNICITY EDREGTIME EDOUTTIME DIAGNOSIS HOSPITAL_EXPIRE_FLAG HAS_CHARTEVENTS_DATA",
        &|patient, out| each(patient, |stay| admission(world, patient, stay, out)),
    )?;
    table("DIAGNOSES_ICD", "ROW_ID SUBJECT_ID HADM_ID SEQ_NUM ICD9_CODE", &|patient, out| {
        each(patient, |stay| codes(patient, stay, &diagnoses(world, stay), out))
    })?;
    table("PROCEDURES_ICD", "ROW_ID SUBJECT_ID HADM_ID SEQ_NUM ICD9_CODE", &|patient, out| {
        each(patient, |stay| {
            let done = stay.procedures.iter().map(|&procedure| world.icd9_procedure(procedure));
            codes(patient, stay, &done.collect::<Vec<_>>(), out)
        })
    })?;
    table(
        "NOTEEVENTS",
        "ROW_ID SUBJECT_ID HADM_ID CHARTDATE CHARTTIME STORETIME CATEGORY DESCRIPTION CGID ISERROR TEXT",
        &|patient, out| each(patient, |stay| notes(world, patient, stay, out)),
    )?;
    table("PATIENTS", "ROW_ID SUBJECT_ID GENDER DOB DOD DOD_HOSP DOD_SSN EXPIRE_FLAG", &|patient, out| {
        let death = patient.death().map_or_else(String::new, |minute| format!("{} 00:00:00", date(minute)));
        let birth = format!("{} 00:00:00", date(patient.birth));
        row(
            out,
            &[
                Cell::Number(patient.subject),
                Cell::Number(patient.subject),
                Cell::Text(patient.gender()),
                Cell::Bare(&birth),
                Cell::Bare(&death),
                Cell::Bare(&death),
                Cell::Bare(""),
                Cell::Number(usize::from(patient.death().is_some())),
            ],
        )
    })?;
    Ok(())
}

/// The rows that all stays of a patient make.
fn each(patient: &Patient, rows: impl FnMut(&Stay) -> u64) -> u64 {
    patient.stays.iter().map(rows).sum()
}

/// Appends one row; returns 1.
fn row(out: &mut Vec<u8>, cells: &[Cell<'_>]) -> u64 {
    for (at, cell) in cells.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        match cell {
            Cell::Number(number) => put(out, format_args!("{number}")),
            Cell::Bare(text) => put(out, format_args!("{text}")),
            Cell::Text(text) => put(out, format_args!("\"{}\"", text.replace('"', "\"\""))),
        }
    }
    out.push(b'\n');
    1
}

fn admission(world: &World, patient: &Patient, stay: &Stay, out: &mut Vec<u8>) -> u64 {
    let (admitted, discharged) = (moment(stay.admitted), moment(stay.discharged));
    let death = if stay.dies { discharged.clone() } else { String::new() };
    // Only the complaint is known on admission, so this column does not give the diagnosis away.
    let complaint =
        stay.shown.first().map_or_else(|| "NEWBORN".to_owned(), |&s| world.names(s).common().to_uppercase());
    let emergency = if stay.kind == "EMERGENCY" { admitted.as_str() } else { "" };
    row(
        out,
        &[
            Cell::Number(stay.admission),
            Cell::Number(patient.subject),
            Cell::Number(stay.admission),
            Cell::Bare(&admitted),
            Cell::Bare(&discharged),
            Cell::Bare(&death),
            Cell::Text(stay.kind),
            Cell::Text(if stay.kind == "EMERGENCY" {
                "EMERGENCY ROOM ADMIT"
            } else {
                "PHYS REFERRAL/NORMAL DELI"
            }),
            Cell::Text(if stay.dies { "DEAD/EXPIRED" } else { "HOME" }),
            Cell::Text("Private"),
            Cell::Text("ENGL"),
            Cell::Text("NOT SPECIFIED"),
            Cell::Text("SINGLE"),
            Cell::Text("UNKNOWN/NOT SPECIFIED"),
            Cell::Bare(emergency),
            Cell::Bare(emergency),
            Cell::Text(&complaint),
            Cell::Number(usize::from(stay.dies)),
            Cell::Number(1),
        ],
    )
}

/// ICD-9 codes of a stay: the diagnosis first, then what the patient had before; a V code for the history and, now and
/// then, an E code for an outer cause.
fn diagnoses(world: &World, stay: &Stay) -> Vec<String> {
    let Some(diagnosis) = stay.disease else { return vec!["V3000".to_owned()] };
    let diseases = world.latent.diseases();
    let mut codes = vec![world.icd9(&diseases[diagnosis])];
    codes.extend(stay.history.iter().map(|&disease| world.icd9(&diseases[disease])));
    codes
        .extend(stay.history.first().map(|&disease| format!("V1{:03}", diseases[disease].family % 90 + 100)));
    if stay.admission % 16 == 1 {
        codes.push(format!("E849{}", stay.admission % 10));
    }
    codes
}

fn codes(patient: &Patient, stay: &Stay, codes: &[String], out: &mut Vec<u8>) -> u64 {
    let line = |(at, code): (usize, &String)| {
        let number = stay.admission * 8 + at;
        let ids = [number, patient.subject, stay.admission, at + 1].map(Cell::Number);
        let [row_id, subject, admission, sequence] = ids;
        row(out, &[row_id, subject, admission, sequence, Cell::Text(code)])
    };
    codes.iter().enumerate().map(line).sum()
}

fn notes(world: &World, patient: &Patient, stay: &Stay, out: &mut Vec<u8>) -> u64 {
    let admission = stay.admission.to_string();
    let line = |(at, note): (usize, note::Note)| {
        row(
            out,
            &[
                Cell::Number(stay.admission * 8 + at),
                Cell::Number(patient.subject),
                Cell::Bare(if note.filed { &admission } else { "" }),
                Cell::Bare(&date(note.minute)),
                Cell::Bare(""),
                Cell::Bare(""),
                Cell::Text(note.category),
                Cell::Text(note.description),
                Cell::Bare(""),
                Cell::Bare(""),
                Cell::Text(&note.text),
            ],
        )
    };
    note::notes(world, patient, stay).into_iter().enumerate().map(line).sum()
}
