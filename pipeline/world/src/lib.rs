//! A consistent invented medical world in the publishers' own file formats.
//!
//! One latent model, drawn from a seed, stands behind every file, so that the files agree with one another. Diseases belong
//! to families; a family decides body sites, typical symptoms, drug classes, organisms, procedures and the usual course,
//! and a disease varies them. Names carry the family's cues (shared stems), so that a model can generalise.
//! Everything is invented: names, numbers, people. Nothing in it is medical advice or stems from a licensed source.
//!
//! # Files
//! `umls/META/{MRCONSO,MRREL,MRSTY,MRDEF,MRSAB,MRRANK,MRDOC,MRCUI}.RRF`, `mesh/desc.xml`, `mesh/supp.xml`,
//! `hsdn/Combined-Input.tsv`, `rotmensch/DerivedKnowledgeGraph_final.csv`, `text/articles-*.txt`, `medquad/<n>_<Folder>_QA/*.xml`,
//! `mimic/{NOTEEVENTS,ADMISSIONS,DIAGNOSES_ICD,PROCEDURES_ICD,PATIENTS}.csv`, `sets/{entities.tsv,questions.label,entailed.tsv,alike.tsv}`.
//!
//! In UMLS the source SNOMEDCT_US has licence level 9 and the translations 3; some names and relations are suppressed; relations
//! stand in both directions; some of those on where a disease sits name a retired concept: one that is the same as the disease, one
//! that was broader, or one that was deleted.
//!
//! # What text tells, and what only the graph knows
//! No sentence of the text, the answers or the notes names both the subject and the object of a held-back fact. Held back
//! are: may_be_treated_by, has_contraindicated_drug, may_be_prevented_by, may_be_diagnosed_by, has_causative_agent, due_to,
//! clinically_associated_with, has_associated_morphology, has_clinical_course, interacts_with, and half of
//! has_manifestation. The downstream answers follow from exactly these facts:
//! - **ICD-9 category**: the note shows symptoms of the diagnosis, never its name before discharge; the category is the family.
//! - **Mortality and length of stay**: gravity = the number of the diagnosis's clinical course (0 self-limited to
//!   4 fulminant), plus 1 if a medication on admission is contraindicated with the diagnosis. Gravity 4 or more: the
//!   patient dies in hospital. Below, gravity is the length-of-stay class (at most 3, 7, 14 days, or more).
//! - **The right passage for a question**: the question names the disease, the passages on symptoms, causes, tests,
//!   treatment and complications name its symptoms, organisms, procedures and drugs, but never the disease.

use base::setting::{InvalidSetting, shown};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

mod entity;
mod fact;
mod file;
mod hsdn;
mod kind;
mod latent;
mod medquad;
mod mesh;
mod mimic;
mod name;
mod rng;
mod rotmensch;
mod sets;
mod supplement;
mod text;
mod umls;

#[cfg(test)]
mod tests;

use kind::PLANS;

/// What every world has: files, and folders (with `/`) of which the scale decides the files.
const PLACES: [&str; 23] = [
    "hsdn/Combined-Input.tsv",
    "medquad/",
    "mesh/desc.xml",
    "mesh/supp.xml",
    "mimic/ADMISSIONS.csv",
    "mimic/DIAGNOSES_ICD.csv",
    "mimic/NOTEEVENTS.csv",
    "mimic/PATIENTS.csv",
    "mimic/PROCEDURES_ICD.csv",
    "rotmensch/DerivedKnowledgeGraph_final.csv",
    "sets/alike.tsv",
    "sets/entailed.tsv",
    "sets/entities.tsv",
    "sets/questions.label",
    "text/",
    "umls/META/MRCONSO.RRF",
    "umls/META/MRCUI.RRF",
    "umls/META/MRDEF.RRF",
    "umls/META/MRDOC.RRF",
    "umls/META/MRRANK.RRF",
    "umls/META/MRREL.RRF",
    "umls/META/MRSAB.RRF",
    "umls/META/MRSTY.RRF",
];

/// Whether a file or folder of this path lies in a world, or may lie there.
#[must_use]
pub fn has(path: &str) -> bool {
    PLACES.iter().any(|place| {
        let rest = place.strip_prefix(path).filter(|_| !path.is_empty());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            || (place.ends_with('/') && path.starts_with(place))
    })
}

/// Whether a file of this path lies in a world, or may lie there.
#[must_use]
pub fn has_file(path: &str) -> bool {
    PLACES.iter().any(|place| place == &path || (place.ends_with('/') && path.starts_with(place)))
}

/// The names of what lies in every world, for messages.
#[must_use]
pub fn places() -> String {
    PLACES.join(", ")
}

/// The scales that the world can be made at: below, families vanish; above, names would repeat.
const SCALES: std::ops::RangeInclusive<f64> = 0.01..=500.0;

/// What decides every byte of the world.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Seed of the world: a different seed gives a different world of the same size.
    ///
    /// Source: ours: because any number does.
    pub seed: u64,
    /// Size of the world, 0.01 to 500: 1 is about 300 diseases, 8,000 facts, 300 KB of text and 300 admissions; all grow in proportion.
    ///
    /// Source: ours: because it is large enough to try everything in, and takes minutes rather than hours.
    pub scale: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { seed: 1, scale: 1.0 }
    }
}

impl Config {
    /// Whether such a world can be made.
    ///
    /// # Errors
    /// When the scale is out of its range.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        if SCALES.contains(&self.scale) {
            return Ok(());
        }
        Err(InvalidSetting::new("world.scale", shown(self.scale), "from 0.01 to 500"))
    }
}

/// Why the world was not written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The scale is none that the world can be made at.
    #[error(transparent)]
    Setting(#[from] InvalidSetting),
    /// A file could not be written; no part of it stands under its name.
    #[error("cannot write {}: {source}; make room or choose another folder and run again", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The caller's tick asked to stop; files written before stay whole.
    #[error("stopped while writing the world: {0}")]
    Stopped(#[source] io::Error),
}

/// How much went into one file, or into one folder of small files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FileCount {
    /// Number of files: 1, or those of the folder.
    pub files: u64,
    /// Rows, records, documents or question-answer pairs.
    pub rows: u64,
    /// Bytes in all.
    pub bytes: u64,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Counts by path below the world's folder.
    pub files: BTreeMap<String, FileCount>,
    /// Number of entities by kind.
    pub entities: BTreeMap<String, u64>,
    /// Number of distinct facts by UMLS relation, counted in one direction.
    pub facts: BTreeMap<String, u64>,
}

/// Writes the world of `config` below `dir`. `tick` is told the bytes of each piece as it is written, and stops the writing
/// by returning an error. Equal configurations give equal bytes, whatever the number of threads.
///
/// # Errors
/// A scale outside 0.01 to 500, a file that cannot be written, or the tick's own error.
pub fn write(
    config: &Config,
    dir: &Path,
    tick: &mut dyn FnMut(u64) -> io::Result<()>,
) -> Result<Summary, Error> {
    config.check()?;
    let world = entity::World::new(config.seed, config.scale);
    let mut sink = file::Sink::new(dir, tick);
    let facts = umls::write(&world, &mut sink)?;
    mesh::write(&world, &mut sink)?;
    supplement::write(&world, &mut sink)?;
    hsdn::write(&world, &mut sink)?;
    rotmensch::write(&world, &mut sink)?;
    text::write(&world, &mut sink)?;
    medquad::write(&world, &mut sink, config.scale)?;
    mimic::write(&world, &mut sink, config.scale)?;
    sets::write(&world, &mut sink, config.scale)?;
    let entities =
        PLANS.iter().map(|plan| (plan.label.to_owned(), world.latent.layout.count(plan.kind) as u64));
    Ok(Summary { files: sink.into_counts(), entities: entities.collect(), facts })
}
