//! Samples and parts as examples, and what became of every note on the way.
//!
//! Of the patients for test a share is drawn on whom a head mask may be searched; they are reported on no more.

use base::rng::RngKey;
use base::setting::InvalidSetting;
use kg::split::Part as Of;

use super::note::Funnel;
use super::sample::{Outcome, Samples, samples};
use super::split::Split;
use super::{PatientId, Stays};
use crate::example::{Example, Examples, Measure, Part};
use crate::funnel::Step;

/// Patients for the search of a head mask: a share of those for test, drawn patient by patient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Held {
    share: f64,
    seed: RngKey,
}

impl Held {
    /// Draws from `seed`.
    ///
    /// # Errors
    /// When the share is not from 0 on and below 1.
    pub fn new(share: f64, seed: RngKey) -> Result<Self, InvalidSetting> {
        if !(0.0..1.0).contains(&share) {
            return Err(InvalidSetting::new("mask_search", share, "a share of the test from 0 on, below 1"));
        }
        Ok(Self { share, seed: seed.named("mask search") })
    }

    fn has(&self, patient: PatientId) -> bool {
        /// Draws have so many values, exactly representable.
        const STEPS: u64 = 1 << 53;
        let drawn = self.seed.at(u64::from(patient.0)).below(STEPS) as f64 / STEPS as f64;
        drawn < self.share
    }
}

const IN_NO_LIST: &str = "patient in no list";

/// The examples of one outcome, called by their admissions, and what became of notes, admissions and stays.
#[must_use]
pub fn examples(
    name: &str,
    stays: &Stays,
    outcome: Outcome,
    split: &Split,
    held: &Held,
) -> (Examples, Vec<Step>) {
    let Samples { classes, samples, dropped } = samples(stays, outcome);
    let mut step = Step::new("examples");
    dropped.into_iter().for_each(|(reason, count)| step.drop(reason, count));
    let mut examples = Vec::with_capacity(samples.len());
    for sample in samples {
        let part = match split.part(sample.patient) {
            Some(Of::Train) => Part::Train,
            Some(Of::Valid) => Part::Dev,
            Some(Of::Test) if held.has(sample.patient) => Part::MaskSearch,
            Some(Of::Test) => Part::Test,
            Some(Of::Aside) | None => {
                step.drop(IN_NO_LIST, 1);
                continue;
            }
        };
        step.keep(1);
        let (id, text) = (sample.admission.0.to_string(), sample.text.into_owned());
        examples.push(Example { id, part, text, pair: None, answer: sample.answer });
    }
    let mut funnel = steps(&stays.funnel);
    funnel.push(step);
    let (name, kind) = (name.to_owned(), outcome.kind());
    (Examples { name, kind, classes, measure: Measure::Auroc, negative_class: None, examples }, funnel)
}

/// The steps from notes to admission notes.
fn steps(funnel: &Funnel) -> Vec<Step> {
    let notes = [
        ("not a discharge summary", funnel.other_category),
        ("marked as an error", funnel.marked),
        ("no text", funnel.no_text),
        ("no known admission", funnel.no_admission),
        ("newborn", funnel.newborn),
        ("text of a later note", funnel.repeated),
    ];
    let admissions =
        [("addenda alone", funnel.no_report), ("no complaint, illness or history", funnel.no_section)];
    vec![
        Step::counted("notes", &notes, funnel.kept),
        Step::counted("admissions", &admissions, funnel.admission_notes),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::super::split::Drawn;
    use super::super::{AdmissionId, Stay, Variant};
    use super::*;
    use crate::example::{Answer, Kind};

    /// 1,000 stays of 500 patients; every fourth dies.
    fn hospital() -> Stays {
        let stay = |number: u32| Stay {
            admission: AdmissionId(9_000 + number),
            patient: PatientId(number / 2),
            note: format!("CHIEF COMPLAINT: complaint {number}"),
            died: number.is_multiple_of(4),
            seconds: 86_400 * i64::from(number % 20),
            diagnoses: vec![format!("{}", 400 + number % 3)],
            procedures: Vec::new(),
        };
        let funnel = Funnel {
            notes: 1_500,
            other_category: 300,
            repeated: 100,
            kept: 1_100,
            admissions: 1_050,
            no_report: 50,
            admission_notes: 1_000,
            ..Funnel::default()
        };
        let sets = (BTreeSet::new(), BTreeSet::new());
        Stays {
            variant: Variant::Fixed,
            stays: (0..1_000).map(stay).collect(),
            diagnoses: sets.0,
            procedures: sets.1,
            funnel,
        }
    }

    fn split() -> Split {
        Split::drawn(Drawn { seed: RngKey::new(3), valid: 0.1, test: 0.4 }).unwrap()
    }

    #[test]
    fn a_patient_is_in_one_part_and_everything_is_accounted_for() {
        let stays = hospital();
        let held = Held::new(0.25, RngKey::new(1)).unwrap();
        for outcome in Outcome::ALL {
            let (examples, funnel) = examples("x", &stays, outcome, &split(), &held);
            assert!(funnel.iter().all(Step::adds_up), "{funnel:?}");
            assert_eq!(funnel.iter().map(|step| step.read).collect::<Vec<_>>(), [1_500, 1_050, 1_000]);
            assert_eq!(funnel[2].kept, examples.examples.len() as u64);
            let mut parts: BTreeMap<u32, BTreeSet<Part>> = BTreeMap::new();
            for example in &examples.examples {
                let number: u32 = example.id.parse().unwrap();
                parts.entry((number - 9_000) / 2).or_default().insert(example.part);
            }
            assert!(parts.values().all(|parts| parts.len() == 1));
            if outcome == Outcome::Procedures {
                assert_eq!((examples.examples.len(), funnel[2].dropped["no code"]), (0, 1_000));
                continue;
            }
            examples.check().unwrap();
            let of = |part| examples.of(part).len();
            let all = examples.examples.len();
            assert!(Part::ALL.iter().all(|&part| of(part) > all / 20), "{outcome:?}");
            assert!(
                (all / 5..all / 2).contains(&of(Part::Test)) && of(Part::Test) > 2 * of(Part::MaskSearch)
            );
        }
    }

    #[test]
    fn answers_are_of_their_kind() {
        let stays = hospital();
        let held = Held::new(0.0, RngKey::new(1)).unwrap();
        let of = |outcome| examples("x", &stays, outcome, &split(), &held).0;
        let mortality = of(Outcome::Mortality);
        assert_eq!((mortality.kind, mortality.classes.len()), (Kind::OneClass, 2));
        assert_eq!(mortality.examples[4].answer, Answer::Class(1));
        assert_eq!((mortality.examples[4].id.as_str(), mortality.of(Part::MaskSearch).len()), ("9004", 0));
        let diagnoses = of(Outcome::Diagnoses);
        assert_eq!(
            (diagnoses.kind, diagnoses.classes.as_slice()),
            (Kind::AnyClasses, &["400", "401", "402"].map(str::to_owned)[..])
        );
        assert_eq!(diagnoses.examples[5].answer, Answer::Classes(vec![2]));
        assert_eq!(of(Outcome::LengthOfStay).examples.len(), 750);
    }

    #[test]
    fn patients_in_no_list_are_left_out_and_shares_checked() {
        let lists = Split::Lists(BTreeMap::from([(PatientId(0), Of::Train), (PatientId(1), Of::Test)]));
        let held = Held::new(0.5, RngKey::new(1)).unwrap();
        let (examples, funnel) = examples("x", &hospital(), Outcome::Mortality, &lists, &held);
        assert_eq!((examples.examples.len(), funnel[2].dropped[IN_NO_LIST]), (4, 996));
        for share in [-0.1, 1.0, f64::NAN] {
            let message = Held::new(share, RngKey::new(1)).unwrap_err().to_string();
            assert!(message.starts_with("mask_search is") && message.contains("below 1"), "{message}");
        }
    }
}
