//! Which patients are for training, development and test: published lists of patients, or a draw.

use std::collections::BTreeMap;
use std::path::Path;

use base::cancel::CancelToken;
use base::read::ReadError;
use base::rng::RngKey;
use kg::split::Part;
use tasks::Error;

use super::{PatientId, open};
use text::mimic_table::Table;

/// Where a patient's part comes from. All stays of a patient are in one part.
#[derive(Debug, Clone, PartialEq)]
pub enum Split {
    /// Lists of patients; who is in none has no part.
    Lists(BTreeMap<PatientId, Part>),
    /// A draw for each patient.
    Drawn(Drawn),
}

/// A draw of parts: a function of the seed and the patient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drawn {
    /// Another seed, other patients.
    pub seed: RngKey,
    /// Share for development (published: 0.1).
    pub valid: f64,
    /// Share for test (published: 0.2).
    pub test: f64,
}

impl Split {
    /// Reads lists of patients, CSV with a column `SUBJECT_ID`, in which a patient may be several times: `mimic_train.csv`,
    /// `mimic_val.csv` and `mimic_test.csv` of the reference code.
    ///
    /// # Errors
    /// When a list cannot be read, or a patient is in two.
    pub fn lists(train: &Path, valid: &Path, test: &Path) -> Result<Self, Error> {
        let mut parts = BTreeMap::new();
        for (file, part) in [(train, Part::Train), (valid, Part::Valid), (test, Part::Test)] {
            let mut table = Table::new(open(file, &CancelToken::NEVER)?, file, ["SUBJECT_ID"]);
            while table.advance()? {
                let patient = table.number(0)?;
                if *parts.entry(PatientId(patient)).or_insert(part) != part {
                    let found = format!("patient {patient} is in another list as well");
                    return Err(
                        ReadError::new(file, found, "every patient in one", "fetch the lists again").into()
                    );
                }
            }
        }
        Ok(Self::Lists(parts))
    }

    /// Draws.
    ///
    /// # Errors
    /// When the shares are below 0 or 1 and more together.
    pub fn drawn(drawn: Drawn) -> Result<Self, Error> {
        let Drawn { valid, test, .. } = drawn;
        if valid >= 0.0 && test >= 0.0 && valid + test < 1.0 {
            return Ok(Self::Drawn(drawn));
        }
        let expected = "expected two numbers from 0 on, below 1 together";
        Err(Error::Unfit(format!("shares valid {valid} and test {test}: {expected}")))
    }

    /// The part of a patient; none for one who is in no list.
    #[must_use]
    pub fn part(&self, patient: PatientId) -> Option<Part> {
        /// Draws have so many values, exactly representable.
        const STEPS: u64 = 1 << 53;
        match self {
            Self::Lists(parts) => parts.get(&patient).copied(),
            Self::Drawn(Drawn { seed, valid, test }) => {
                let drawn =
                    seed.named("patients").at(u64::from(patient.0)).below(STEPS) as f64 / STEPS as f64;
                Some(match drawn {
                    drawn if drawn < *test => Part::Test,
                    drawn if drawn < test + valid => Part::Valid,
                    _ => Part::Train,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use base::whole::write_whole;

    use super::*;

    #[test]
    fn lists_are_read_and_no_patient_is_in_two() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, contents: &str| {
            let file = folder.path().join(name);
            write_whole(&file, contents.as_bytes()).unwrap();
            file
        };
        let (train, valid) =
            (file("a.csv", "ROW_ID,SUBJECT_ID\n1,7\n2,7\n"), file("b.csv", "SUBJECT_ID\n8\n"));
        let split = Split::lists(&train, &valid, &file("c.csv", "SUBJECT_ID\n9\n")).unwrap();
        let parts = [7, 8, 9, 10].map(|patient| split.part(PatientId(patient)));
        assert_eq!(parts, [Some(Part::Train), Some(Part::Valid), Some(Part::Test), None]);
        let message =
            Split::lists(&train, &valid, &file("c.csv", "SUBJECT_ID\n7\n")).unwrap_err().to_string();
        assert!(message.contains("c.csv: patient 7 is in another list as well"), "{message}");
    }

    #[test]
    fn draws_have_their_shares_and_follow_from_the_seed() {
        let split = |seed| Split::drawn(Drawn { seed: RngKey::new(seed), valid: 0.1, test: 0.2 }).unwrap();
        let count =
            |part| (0..10_000).filter(|&patient| split(1).part(PatientId(patient)) == Some(part)).count();
        assert!((900..1_100).contains(&count(Part::Valid)) && (1_900..2_100).contains(&count(Part::Test)));
        assert!(
            (0..100).any(|patient| split(1).part(PatientId(patient)) != split(2).part(PatientId(patient)))
        );
        let wrong =
            Split::drawn(Drawn { seed: RngKey::new(1), valid: 0.5, test: 0.5 }).unwrap_err().to_string();
        assert!(wrong.contains("below 1 together"), "{wrong}");
    }
}
