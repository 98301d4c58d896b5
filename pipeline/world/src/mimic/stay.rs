//! Who came to hospital, with what, and how it ended.

use super::super::entity::World;
use super::super::kind::{Kind, Node};

const DAY: usize = 24 * 60;
/// Length of stay in tenths of a day, by class: a stay of class 0 lasts at most 3 days, then 7, 14, and more.
const LENGTHS: [(usize, usize); 4] = [(5, 30), (32, 70), (72, 140), (142, 300)];
/// From this gravity on the patient dies in hospital.
const DEADLY: usize = 4;

/// One patient with all stays, the last of which may end in death.
pub(super) struct Patient {
    pub(super) subject: usize,
    pub(super) female: bool,
    /// Minute of birth since the epoch of the calendar, 1970.
    pub(super) birth: usize,
    pub(super) stays: Vec<Stay>,
}

/// One admission.
pub(super) struct Stay {
    pub(super) admission: usize,
    pub(super) kind: &'static str,
    /// Minutes since 1970.
    pub(super) admitted: usize,
    pub(super) discharged: usize,
    pub(super) dies: bool,
    /// Number of the disease behind it; none for the newborn.
    pub(super) disease: Option<usize>,
    /// Symptoms that the patient shows, the chief complaint first.
    pub(super) shown: Vec<Node>,
    /// Numbers of diseases the patient had before.
    pub(super) history: Vec<usize>,
    pub(super) medications: Vec<Node>,
    pub(super) procedures: Vec<Node>,
}

impl Patient {
    pub(super) fn gender(&self) -> &'static str {
        if self.female { "F" } else { "M" }
    }

    /// The minute of death, if it came in hospital.
    pub(super) fn death(&self) -> Option<usize> {
        self.stays.iter().find(|stay| stay.dies).map(|stay| stay.discharged)
    }
}

/// Patient number `index` of the world.
pub(super) fn patient(world: &World, index: usize) -> Patient {
    let mut draw = world.latent.rng("patient").at(index);
    let newborn = index % 20 == 19;
    // The de-identified calendar: stays lie between 2110 and 2190.
    let mut minute = (51_134 + draw.below(80 * 365)) * DAY + draw.below(DAY);
    let age = if newborn { 0 } else { draw.range(18, 90) };
    let birth = minute - (age * 36_525 / 100 + draw.below(300) * usize::from(!newborn)) * DAY;
    let planned = if newborn { 1 } else { 1 + usize::from(draw.percent(22)) + usize::from(draw.percent(6)) };
    let mut stays: Vec<Stay> = Vec::new();
    while stays.len() < planned && stays.iter().all(|stay| !stay.dies) {
        let admission = 100_000 + index * 4 + stays.len();
        let stay = if newborn { birth_stay(admission, minute) } else { stay(world, admission, minute) };
        minute = stay.discharged + draw.range(20, 400) * DAY;
        stays.push(stay);
    }
    Patient { subject: index + 1, female: draw.percent(50), birth, stays }
}

fn birth_stay(admission: usize, minute: usize) -> Stay {
    Stay {
        admission,
        kind: "NEWBORN",
        admitted: minute,
        discharged: minute + 3 * DAY,
        dies: false,
        disease: None,
        shown: Vec::new(),
        history: Vec::new(),
        medications: Vec::new(),
        procedures: Vec::new(),
    }
}

fn stay(world: &World, admission: usize, minute: usize) -> Stay {
    let mut draw = world.latent.rng("stay").at(admission);
    let diseases = world.latent.diseases();
    let number = draw.below(diseases.len());
    let disease = &diseases[number];
    // Each symptom shows with its probability; the first two always do, so that no patient comes without a complaint.
    let appears = |(at, &(symptom, weight)): (usize, &(Node, usize))| {
        (at < 2 || draw.below(1000) < weight).then_some(symptom)
    };
    let shown = disease.symptoms.iter().enumerate().filter_map(appears).collect();
    let mut history: Vec<usize> = (0..draw.range(1, 3)).map(|_| draw.below(diseases.len())).collect();
    history.retain(|&other| other != number);
    history.dedup();
    let mut medications: Vec<Node> = Vec::new();
    for &other in &history {
        let drugs = &diseases[other].drugs;
        medications.push(drugs[draw.below(drugs.len())]);
    }
    if draw.percent(30) {
        medications.push(disease.harmful[draw.below(disease.harmful.len())]);
    }
    medications.sort_unstable();
    medications.dedup();
    let gravity = gravity(world, number, &medications);
    let dies = gravity >= DEADLY;
    let (low, high) = LENGTHS[if dies { draw.below(3) } else { gravity }];
    Stay {
        admission,
        kind: if draw.percent(70) { "EMERGENCY" } else { "ELECTIVE" },
        admitted: minute,
        discharged: minute + draw.range(low, high + 1) * DAY / 10,
        dies,
        disease: Some(number),
        shown,
        history,
        medications,
        procedures: disease.procedures.clone(),
    }
}

/// How grave a stay is: the disease's course, plus one if a medication on admission is contraindicated with the disease.
fn gravity(world: &World, disease: usize, medications: &[Node]) -> usize {
    let disease = &world.latent.diseases()[disease];
    debug_assert!(medications.iter().all(|&drug| world.place(drug).0.kind == Kind::Drug));
    disease.course + usize::from(medications.iter().any(|drug| disease.harmful.contains(drug)))
}

/// The calendar day of a minute since 1970, year-month-day (the proleptic Gregorian calendar, after Hinnant's `civil_from_days`).
pub(super) fn date(minute: usize) -> String {
    let shifted = minute / DAY + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + usize::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Day and time of a minute since 1970.
pub(super) fn moment(minute: usize) -> String {
    format!("{} {:02}:{:02}:00", date(minute), minute / 60 % 24, minute % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_named_as_in_the_calendar() {
        let name = |day: usize| date(day * DAY);
        assert_eq!(
            [name(0), name(59), name(11_016), name(11_017)],
            ["1970-01-01", "1970-03-01", "2000-02-29", "2000-03-01"]
        );
        assert_eq!((name(51_134).as_str(), name(47_540).as_str()), ("2110-01-01", "2100-02-28"));
        assert_eq!(moment(61), "1970-01-01 01:01:00");
    }

    #[test]
    fn nobody_returns_after_death_and_every_length_of_stay_occurs() {
        let world = World::new(1, 1.0);
        let mut lengths = [0; 4];
        let mut deaths = 0;
        for index in 0..600 {
            let patient = patient(&world, index);
            let (last, before) = patient.stays.split_last().unwrap();
            assert!(before.iter().all(|stay| !stay.dies));
            assert!(patient.birth <= patient.stays[0].admitted);
            assert!(patient.stays.is_sorted_by_key(|stay| stay.admitted));
            deaths += u32::from(last.dies);
            for stay in patient.stays.iter().filter(|stay| !stay.dies && stay.disease.is_some()) {
                let tenths = ((stay.discharged - stay.admitted) as f64 * 10.0 / DAY as f64).round();
                let class = [30.0, 70.0, 140.0].iter().filter(|&&longest| tenths > longest).count();
                assert_eq!(class, gravity(&world, stay.disease.unwrap(), &stay.medications));
                lengths[class] += 1;
            }
        }
        assert!((40..200).contains(&deaths), "{deaths}");
        assert!(lengths.iter().all(|&count| count > 20), "{lengths:?}");
    }
}
