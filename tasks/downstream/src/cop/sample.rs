//! The four tasks: which stays are their samples, with which text and class.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use super::{AdmissionId, PatientId, Stay, Stays, Variant, label};
use crate::example::{Answer, Kind};

/// What is predicted.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Whether the patient dies in hospital (MP): two classes, 1 = dies.
    Mortality,
    /// How long the patient stays (LOS): four classes (up to 3 days, 7, 14, longer), without patients who die.
    LengthOfStay,
    /// Groups of ICD-9 diagnoses (DIA), any number.
    Diagnoses,
    /// Groups of ICD-9 procedures (PRO), any number.
    Procedures,
}

impl Outcome {
    /// All four, as the paper lists them.
    pub const ALL: [Self; 4] = [Self::Diagnoses, Self::Procedures, Self::Mortality, Self::LengthOfStay];

    /// What is asked of a note.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            Self::Mortality | Self::LengthOfStay => Kind::OneClass,
            Self::Diagnoses | Self::Procedures => Kind::AnyClasses,
        }
    }
}

/// A sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample<'a> {
    /// The stay.
    pub admission: AdmissionId,
    /// The patient, who decides the part.
    pub patient: PatientId,
    /// What was known on admission.
    pub text: Cow<'a, str>,
    /// What came of it.
    pub answer: Answer,
}

/// The samples of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples<'a> {
    /// Names of the classes, by number.
    pub classes: Vec<String>,
    /// Samples in the order of stays.
    pub samples: Vec<Sample<'a>>,
    /// Stays that are none, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
}

const TELLS: &str = "the note tells of the death";
const DIED: &str = "the patient died";
const NO_CODE: &str = "no code";

/// The samples of one task.
#[must_use]
pub fn samples(stays: &Stays, outcome: Outcome) -> Samples<'_> {
    let (variant, all) = (stays.variant, stays.stays.iter());
    match outcome {
        Outcome::Mortality => collect(
            ["survives", "dies"].map(str::to_owned).into(),
            all.map(|stay| {
                let text = label::without_death(&stay.note, variant).ok_or(TELLS)?;
                Ok(sample(stay, text.into(), Answer::Class(u32::from(stay.died))))
            }),
        ),
        Outcome::LengthOfStay => collect(
            label::LENGTHS.map(str::to_owned).into(),
            all.map(|stay| {
                let class = if stay.died { Err(DIED) } else { Ok(label::length_of_stay(stay.seconds)) };
                Ok(sample(stay, stay.note.as_str().into(), Answer::Class(class?)))
            }),
        ),
        Outcome::Diagnoses => {
            let groups =
                |stay: &Stay| stay.diagnoses.iter().map(|code| label::diagnosis(code, variant)).collect();
            coded(stays, &stays.diagnoses, &groups)
        }
        Outcome::Procedures => {
            let groups =
                |stay: &Stay| stay.procedures.iter().map(|code| label::procedure(code, variant)).collect();
            coded(stays, &stays.procedures, &groups)
        }
    }
}

fn sample<'a>(stay: &'a Stay, text: Cow<'a, str>, answer: Answer) -> Sample<'a> {
    Sample { admission: stay.admission, patient: stay.patient, text, answer }
}

fn collect<'a>(
    classes: Vec<String>,
    stays: impl Iterator<Item = Result<Sample<'a>, &'static str>>,
) -> Samples<'a> {
    let (mut samples, mut dropped) = (Vec::new(), BTreeMap::new());
    for stay in stays {
        match stay {
            Ok(sample) => samples.push(sample),
            Err(reason) => *dropped.entry(reason).or_default() += 1,
        }
    }
    Samples { classes, samples, dropped }
}

/// Samples whose classes are groups of codes: of all rows of the table as in the reference code, else of the samples.
fn coded<'a>(
    stays: &'a Stays,
    table: &BTreeSet<String>,
    groups: &dyn Fn(&Stay) -> BTreeSet<String>,
) -> Samples<'a> {
    let classes: Vec<String> = match stays.variant {
        Variant::Reference => table.iter().cloned().collect(),
        Variant::Fixed => stays.stays.iter().flat_map(groups).collect::<BTreeSet<_>>().into_iter().collect(),
    };
    let numbers: HashMap<&str, u32> = classes.iter().map(String::as_str).zip(0..).collect();
    let coded = stays.stays.iter().map(|stay| {
        let had: Vec<u32> =
            groups(stay).iter().filter_map(|group| numbers.get(group.as_str()).copied()).collect();
        if had.is_empty() {
            Err(NO_CODE)
        } else {
            Ok(sample(stay, stay.note.as_str().into(), Answer::Classes(had)))
        }
    });
    let found: Vec<_> = coded.collect();
    collect(classes.clone(), found.into_iter())
}
