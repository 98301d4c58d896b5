//! Stays of a small invented hospital, written as MIMIC-III's tables are, through reader, filters and tasks.
#![cfg(test)]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use base::rng::RngKey;
use base::whole::write_whole;
use kg::split::Part;

use super::sample::{Outcome, samples};
use super::split::{Drawn, Split};
use super::*;
use crate::example::Answer;

/// A note: admission, day, category, description, mark of an error, text.
type Note<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str, String);

const SUMMARY: &str = "Discharge summary";

/// A discharge summary whose texts span lines and hold quotes.
fn summary(complaint: &str, exam: &str) -> String {
    format!(
        "Admission Date: [**2151-7-16**]\n\nChief Complaint:\n{complaint}, \"bad\"\n\nHistory of Present Illness:\nHe came.\nHe saw.\n\n\
         Physical Exam:\n{exam}\n\nPertinent Results:\nWBC 5\n\nDischarge Diagnosis:\nsecret\n"
    )
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Writes the tables of some admissions (number, patient, end, type, death), notes and codes.
fn hospital(
    folder: &Path,
    admissions: &[(u32, u32, &str, &str, u32)],
    notes: &[Note<'_>],
    codes: [&[(u32, &str)]; 2],
) {
    let write = |name: &str, contents: String| write_whole(&folder.join(name), contents.as_bytes()).unwrap();
    let mut table =
        "\"ROW_ID\",\"SUBJECT_ID\",\"HADM_ID\",\"ADMITTIME\",\"DISCHTIME\",\"ADMISSION_TYPE\",\"HOSPITAL_EXPIRE_FLAG\"\n".to_owned();
    for (row, (admission, patient, end, kind, died)) in admissions.iter().enumerate() {
        table += &format!("{row},{patient},{admission},2151-07-16 12:00:00,{end},\"{kind}\",{died}\n");
    }
    write("ADMISSIONS.csv", table);
    let mut table =
        "\"ROW_ID\",\"SUBJECT_ID\",\"HADM_ID\",\"CHARTDATE\",\"CATEGORY\",\"DESCRIPTION\",\"ISERROR\",\"TEXT\"\n".to_owned();
    for (row, (admission, day, category, description, error, text)) in notes.iter().enumerate() {
        let [category, description, text] = [category, description, text.as_str()].map(quoted);
        table += &format!("{row},1,{admission},{day},{category},{description},{error},{text}\n");
    }
    write("NOTEEVENTS.csv", table);
    for (name, codes) in ["DIAGNOSES_ICD", "PROCEDURES_ICD"].into_iter().zip(codes) {
        let mut table = "ROW_ID,SUBJECT_ID,HADM_ID,SEQ_NUM,ICD9_CODE\n".to_owned();
        for (row, (admission, code)) in codes.iter().enumerate() {
            table += &format!("{row},1,{admission},{row},{code}\n");
        }
        write(&format!("{name}.csv"), table);
    }
}

/// A hospital in which each filter meets what it is for.
fn small(folder: &Path) {
    let late = "2151-07-20 12:00:00";
    let admissions = [
        (1, 10, late, "EMERGENCY", 0),
        (2, 10, "2151-07-30 12:00:01", "ELECTIVE", 0),
        (3, 11, late, "NEWBORN", 0),
        (4, 12, late, "URGENT", 1),
        (5, 13, late, "EMERGENCY", 0),
        (6, 14, late, "EMERGENCY", 0),
        (7, 15, late, "EMERGENCY", 1),
    ];
    let report = |admission, day, text| (admission, day, SUMMARY, "Report", "", text);
    let notes = [
        // The addendum is of a later day than the report, although it stands in front.
        ("1", "2151-07-22", SUMMARY, "Addendum", "", "Family History:\nnone\n\nEnd:\n".to_owned()),
        report("1", "2151-07-20", summary("fever", "calm")),
        report("2", "2151-07-29", "Chief Complaint:\nold text\n\nEnd:".to_owned()),
        report("2", "2151-07-30", summary("cough", "calm")),
        report("3", "2151-07-20", summary("newborn", "calm")),
        report("4", "2151-07-20", summary("pain", "patient died, at 5")),
        // Addenda alone.
        ("5", "2151-07-20", SUMMARY, "Addendum", "", summary("more", "calm")),
        // Neither complaint nor illness nor history.
        report("6", "2151-07-20", "Social History:\nalone\n\nEnd:".to_owned()),
        report("7", "", "Chief Complaint:\nTime of death: noon\n\nEnd:".to_owned()),
        report("7", "2151-07-20", "Allergies:\nnone\n\nEnd:".to_owned()),
        ("1", "2151-07-20", "Radiology", "Report", "", "film".to_owned()),
        report("", "2151-07-20", summary("nobody", "calm")),
        report("99", "2151-07-20", summary("nobody", "calm")),
        report("1", "2151-07-20", String::new()),
        ("2", "2151-07-31", SUMMARY, "Report", "1", summary("wrong", "calm")),
        // The same text on an earlier day: the later one stays.
        report("6", "2151-07-19", summary("fever", "calm")),
    ];
    let diagnoses: [(u32, &str); 7] =
        [(1, "4019"), (1, "40190"), (1, "V4581"), (2, "0389"), (4, ""), (99, "V4582"), (7, "E8490")];
    let procedures: [(u32, &str); 4] = [(1, "0066"), (1, "6601"), (2, "331"), (99, "9904")];
    hospital(folder, &admissions, &notes, [&diagnoses, &procedures]);
}

fn stays(variant: Variant) -> Stays {
    let folder = tempfile::tempdir().unwrap();
    small(folder.path());
    read(&Files::of(folder.path()), variant).unwrap()
}

#[test]
fn every_note_and_admission_is_accounted_for() {
    let funnel = stays(Variant::Reference).funnel;
    let expected = Funnel {
        notes: 16,
        other_category: 1,
        marked: 0,
        no_text: 1,
        no_admission: 2,
        newborn: 1,
        repeated: 1,
        kept: 10,
        admissions: 6,
        no_report: 1,
        no_section: 1,
        admission_notes: 4,
    };
    assert_eq!(funnel, expected);
    let Funnel { notes, other_category, no_text, no_admission, newborn, repeated, kept, .. } = funnel;
    assert_eq!(notes, other_category + no_text + no_admission + newborn + repeated + kept);
    let fixed = stays(Variant::Fixed).funnel;
    assert_eq!((fixed.marked, fixed.kept), (1, 9));
}

#[test]
fn reports_and_addenda_are_joined_by_day() {
    let stays = stays(Variant::Fixed);
    let numbers: Vec<u32> = stays.stays.iter().map(|stay| stay.admission.0).collect();
    assert_eq!(numbers, [1, 2, 4, 7]);
    let [first, second, ..] = stays.stays.as_slice() else { panic!() };
    assert!(
        first.note.starts_with("CHIEF COMPLAINT: fever, \"bad\"\n\nPRESENT ILLNESS: He came. He saw.\n\n"),
        "{}",
        first.note
    );
    assert!(first.note.contains("FAMILY HISTORY: none\n"), "of the addendum: {}", first.note);
    assert!(
        !first.note.contains("secret") && !first.note.contains("WBC"),
        "what came later is left out: {}",
        first.note
    );
    assert!(
        second.note.starts_with("CHIEF COMPLAINT: old text"),
        "the earlier report comes first: {}",
        second.note
    );
    assert_eq!((first.patient, first.seconds, second.died), (PatientId(10), 4 * 86_400, false));
}

#[test]
fn mortality_and_length_of_stay() {
    let stays = stays(Variant::Reference);
    let task = samples(&stays, Outcome::Mortality);
    let found: BTreeMap<u32, &Answer> = task.samples.iter().map(|s| (s.admission.0, &s.answer)).collect();
    assert_eq!(
        found,
        BTreeMap::from([(1, &Answer::Class(0)), (2, &Answer::Class(0)), (4, &Answer::Class(1))])
    );
    assert_eq!(task.dropped, BTreeMap::from([("the note tells of the death", 1)]));
    assert!(task.samples[2].text.contains("PHYSICAL EXAM: , at 5"), "{}", task.samples[2].text);
    let task = samples(&stays, Outcome::LengthOfStay);
    let found: Vec<_> = task.samples.iter().map(|s| (s.admission.0, s.answer.clone())).collect();
    // 4 days; 14 days and a second, which rounds to 14.
    assert_eq!(found, [(1, Answer::Class(1)), (2, Answer::Class(2))]);
    assert_eq!((task.classes.len(), task.dropped["the patient died"]), (4, 2));
}

#[test]
fn codes_are_classes_of_the_table_as_released_and_of_the_samples_when_fixed() {
    let released = stays(Variant::Reference);
    let task = samples(&released, Outcome::Diagnoses);
    assert_eq!(task.classes, ["038", "401", "E849", "V458"]);
    let found: Vec<_> = task.samples.iter().map(|s| (s.admission.0, s.answer.clone())).collect();
    assert_eq!(
        found,
        [(1, Answer::Classes(vec![1, 3])), (2, Answer::Classes(vec![0])), (7, Answer::Classes(vec![2]))]
    );
    assert_eq!(task.dropped["no code"], 1);
    // 0066 and 6601 would be 006 and 660; as numbers they begin with 66 and 660.
    assert_eq!(samples(&released, Outcome::Procedures).classes, ["331", "66", "660", "990"]);
    let fixed = stays(Variant::Fixed);
    assert_eq!(samples(&fixed, Outcome::Diagnoses).classes, ["038", "401", "E849", "V45"]);
    assert_eq!(samples(&fixed, Outcome::Procedures).classes, ["006", "331", "660"]);
}

#[test]
fn packed_tables_are_read_and_give_the_same() {
    let (plain, packed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    small(plain.path());
    for entry in std::fs::read_dir(plain.path()).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{}.gz", path.file_name().unwrap().to_string_lossy());
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&std::fs::read(&path).unwrap()).unwrap();
        write_whole(&packed.path().join(name), &encoder.finish().unwrap()).unwrap();
    }
    let read = |folder: &Path| read(&Files::of(folder), Variant::Fixed).unwrap();
    assert_eq!(read(plain.path()), read(packed.path()));
}

#[test]
fn patients_are_in_one_part_and_weights_follow_from_the_samples() {
    let folder = tempfile::tempdir().unwrap();
    let admissions: Vec<(u32, u32, &str, &str, u32)> =
        (0..400).map(|n| (n, n / 2, "2151-07-20 12:00:00", "EMERGENCY", u32::from(n % 4 == 0))).collect();
    let numbers: Vec<String> = (0..400).map(|n| n.to_string()).collect();
    let notes: Vec<Note<'_>> = numbers
        .iter()
        .map(|n| {
            (n.as_str(), "2151-07-20", SUMMARY, "Report", "", summary(&format!("complaint {n}"), "calm"))
        })
        .collect();
    hospital(folder.path(), &admissions, &notes, [&[], &[]]);
    let stays = read(&Files::of(folder.path()), Variant::Fixed).unwrap();
    let task = samples(&stays, Outcome::Mortality);
    let split = Split::drawn(Drawn { seed: RngKey::new(3), valid: 0.1, test: 0.2 }).unwrap();
    let mut parts: BTreeMap<PatientId, Vec<Part>> = BTreeMap::new();
    for sample in &task.samples {
        parts.entry(sample.patient).or_default().extend(split.part(sample.patient));
    }
    assert!(parts.values().all(|parts| parts.len() == 2 && parts[0] == parts[1]));
    let died = task.samples.iter().filter(|sample| sample.answer == Answer::Class(1)).count() as u64;
    assert_eq!((task.samples.len(), died), (400, 100));
    assert_eq!(weight::balanced(&[300, died]).unwrap(), [400.0 / 600.0, 2.0]);
}

#[test]
fn tables_that_are_missing_or_wrong_are_said_by_name() {
    let refused = |name: &str, contents: Option<&str>| {
        let folder = tempfile::tempdir().unwrap();
        small(folder.path());
        match contents {
            Some(contents) => write_whole(&folder.path().join(name), contents.as_bytes()).unwrap(),
            None => std::fs::remove_file(folder.path().join(name)).unwrap(),
        }
        read(&Files::of(folder.path()), Variant::Fixed).unwrap_err().to_string()
    };
    let message = refused("PROCEDURES_ICD.csv", None);
    assert!(
        message.contains("PROCEDURES_ICD.csv: cannot open the table") && message.contains("as published"),
        "{message}"
    );
    assert!(
        refused("NOTEEVENTS.csv", Some("ROW_ID,TEXT\n"))
            .contains("NOTEEVENTS.csv: line 1: column HADM_ID is missing")
    );
    let header = "HADM_ID,SUBJECT_ID,ADMITTIME,DISCHTIME,ADMISSION_TYPE,HOSPITAL_EXPIRE_FLAG\n";
    let message = refused("ADMISSIONS.csv", Some(&format!("{header}1,1,2151-07-16,,URGENT,0\n")));
    assert!(message.contains("line 2, column 4 (DISCHTIME): found \"\", expected a moment"), "{message}");
    let row = "1,1,2151-07-16,2151-07-17,URGENT,0\n";
    assert!(
        refused("ADMISSIONS.csv", Some(&format!("{header}{row}{row}")))
            .contains("expected every admission once")
    );
    assert!(
        refused("ADMISSIONS.csv", Some(&format!("{header}1,1,2151-07-16,2151-07-17,URGENT,2\n")))
            .contains("expected 1 or 0")
    );
}

#[test]
fn reading_ends_when_it_is_asked_to() {
    let folder = tempfile::tempdir().unwrap();
    small(folder.path());
    let cancel = CancelToken::when(|| true);
    let message = read_until(&Files::of(folder.path()), Variant::Fixed, &cancel).unwrap_err().to_string();
    assert!(message.contains("cannot read on: interrupted"), "{message}");
}
