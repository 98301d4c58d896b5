//! What was written about a stay; names symptoms, earlier diseases and drugs, each in a line or section of its own.

use super::super::entity::World;
use super::super::kind::Node;
use super::super::name::titled;
use super::super::rng::Draw;
use super::super::text::fill;
use super::stay::{Patient, Stay, date};
use std::fmt::Write as _;

const DAY: usize = 24 * 60;

/// One row of NOTEEVENTS.
#[derive(Clone)]
pub(super) struct Note {
    /// Whether the note carries the number of its admission.
    pub(super) filed: bool,
    pub(super) minute: usize,
    pub(super) category: &'static str,
    pub(super) description: &'static str,
    pub(super) text: String,
}

/// All notes of a stay: the discharge summary, and for some stays what a reader has to join, drop or leave alone.
pub(super) fn notes(world: &World, patient: &Patient, stay: &Stay) -> Vec<Note> {
    let mut draw = world.latent.rng("notes").at(stay.admission);
    let text = if stay.disease.is_some() { summary(world, patient, stay, &mut draw) } else { newborn(stay) };
    let report = Note {
        filed: true,
        minute: stay.discharged,
        category: "Discharge summary",
        description: "Report",
        text,
    };
    let mut notes = Vec::new();
    let other = |category, text: &str| Note {
        category,
        text: text.to_owned(),
        minute: stay.admitted,
        ..report.clone()
    };
    if draw.percent(15) {
        notes.push(other(
            "Nursing/other",
            "NURSING NOTE\n\nPt resting comfortably, \"no complaints\".\nPlan: continue.",
        ));
    }
    if draw.percent(4) {
        notes
            .push(Note { filed: false, ..other("Radiology", "CHEST FILM\n\nNo change since the last one.") });
    }
    if draw.percent(4) {
        notes.push(Note { minute: stay.admitted, ..report.clone() });
    }
    notes.push(report.clone());
    if draw.percent(10) {
        let text = "Addendum:\nFollow-up was arranged by telephone after the patient had left the ward.";
        notes.push(Note {
            description: "Addendum",
            minute: stay.discharged + DAY,
            text: text.to_owned(),
            ..report.clone()
        });
    }
    if draw.percent(2) {
        notes.push(Note { text: String::new(), ..report });
    }
    notes
}

fn newborn(stay: &Stay) -> String {
    format!(
        "Admission Date:  [**{}**]\n\nService: NEONATOLOGY\n\nHistory of Present Illness:\nHealthy newborn.\n\n\
         Physical Exam:\nNormal.\n\nDischarge Disposition:\nHome\n",
        date(stay.admitted)
    )
}

/// Some name of an entity.
fn any<'a>(world: &'a World, node: Node, draw: &mut Draw) -> &'a str {
    let forms = world.names(node).spoken();
    if draw.percent(60) { &forms[0] } else { &forms[draw.below(forms.len())] }
}

/// Lines `1. Name`, `2. Name`, ... or `None`.
fn numbered(world: &World, nodes: impl Iterator<Item = Node>, draw: &mut Draw) -> String {
    let lines: Vec<String> = nodes
        .enumerate()
        .map(|(at, node)| format!("{}. {}", at + 1, titled(any(world, node, draw))))
        .collect();
    if lines.is_empty() { "None".to_owned() } else { lines.join("\n") }
}

fn summary(world: &World, patient: &Patient, stay: &Stay, draw: &mut Draw) -> String {
    let mut note = String::new();
    let mut section = |header: &str, body: &str| {
        // Writing to a string cannot fail.
        let _ = write!(note, "{header}{body}\n\n");
    };
    let (admitted, discharged) = (date(stay.admitted), date(stay.discharged));
    section(
        "Admission Date:  ",
        &format!("[**{admitted}**]              Discharge Date:   [**{discharged}**]"),
    );
    section(
        "Date of Birth:  ",
        &format!("[**{}**]             Sex:   {}", date(patient.birth), patient.gender()),
    );
    section("Service: ", "MEDICINE");
    section("Allergies:\n", "Patient recorded as having No Known Allergies to Drugs");
    section("Attending:", &format!("[**First Name3 (LF) {}**]", stay.admission % 9_000 + 100));
    section("Chief Complaint:\n", &titled(any(world, stay.shown[0], draw)));
    section(
        "Major Surgical or Invasive Procedure:\n",
        &numbered(world, stay.procedures.iter().copied(), draw),
    );
    section("History of Present Illness:\n", &present_illness(world, patient, stay, draw));
    let history = stay.history.iter().map(|&disease| world.disease_node(disease));
    section("Past Medical History:\n", &numbered(world, history, draw));
    section(
        "Social History:\n",
        draw.pick(&["Lives alone, does not smoke.", "Lives with family, retired.", "Works on a farm."]),
    );
    section(
        "Family History:\n",
        draw.pick(&["Non-contributory.", "Parents lived long lives.", "Not known."]),
    );
    section("Medications on Admission:\n", &numbered(world, stay.medications.iter().copied(), draw));
    section("Physical Exam:\n", &exam(world, stay, draw));
    section(
        "Pertinent Results:\n",
        &format!("[**{admitted}**] WBC-{}.{} Hgb-{}.0", draw.range(4, 15), draw.below(10), draw.range(8, 16)),
    );
    section("Brief Hospital Course:\n", "The patient was observed on the ward and reviewed every day.");
    if let Some(disease) = stay.disease {
        let treatment = world.latent.diseases()[disease].drugs.iter().copied().take(2);
        let treatment = if stay.dies { "None".to_owned() } else { numbered(world, treatment, draw) };
        section("Discharge Medications:\n", &treatment);
        section("Discharge Disposition:\n", if stay.dies { "Expired" } else { "Home" });
        section("Discharge Diagnosis:\n", &titled(world.names(world.disease_node(disease)).common()));
    }
    section(
        "Followup Instructions:\n",
        &format!("Call [**Telephone/Fax (1) {}**] with questions.", stay.admission % 700 + 100),
    );
    note
}

fn present_illness(world: &World, patient: &Patient, stay: &Stay, draw: &mut Draw) -> String {
    let years = (stay.admitted - patient.birth) / (DAY * 365);
    let (person, pronoun) = if patient.female { ("woman", "she") } else { ("man", "he") };
    let first = any(world, stay.shown[0], draw);
    let mut story = format!("This is a {years} year old {person} who presents with {first}.");
    for &symptom in &stay.shown[1..] {
        let pattern = draw.pick(&[
            "{s} also reports {o}",
            "{o} was noted by the family",
            "For two days {s} has had {o}",
            "{s} came to [**Hospital1 18**] because of {o}",
        ]);
        story.push(' ');
        story.push_str(&fill(pattern, pronoun, any(world, symptom, draw)));
    }
    story
}

fn exam(world: &World, stay: &Stay, draw: &mut Draw) -> String {
    let sign = any(world, stay.shown[stay.shown.len() - 1], draw);
    let mut exam = format!(
        "VS: T 98.{} HR {} BP {}/{}\nGen: no acute distress\nOn inspection: {sign}",
        draw.below(10),
        draw.range(55, 120),
        draw.range(95, 170),
        draw.range(55, 95)
    );
    // Some records mention the outcome where only the admission should stand; readers have to strip it.
    if stay.dies && draw.percent(25) {
        exam.push_str("\nOn the last day: patient expired");
    }
    exam
}
