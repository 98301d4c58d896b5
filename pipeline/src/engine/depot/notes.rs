//! What a depot knows of files that lie elsewhere: their contents by the state that their servers tell, so that a machine finds what was made of them without
//! reading them.
//!
//! Notes only save work: one that is missing or damaged costs a reading, and whoever makes something of a file reads it.

use serde::{Deserialize, Serialize};

use super::Depot;
use crate::engine::digest::Digest;
use crate::engine::elsewhere::Told;

/// Where notes lie, by the name of the state.
pub(super) const NOTES: &str = "files";

#[derive(Serialize, Deserialize)]
struct Note {
    blake3: Digest,
    /// Of the state and the digest.
    check: Digest,
}

impl Told {
    fn check(&self) -> Digest {
        Digest::of(format!("{} {}", self.state, self.contents).as_bytes())
    }
}

fn key(state: &str) -> String {
    format!("{NOTES}/{state}.json")
}

impl Depot {
    /// What the contents of a file in this state are, if the depot has a note of it.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub(crate) fn contents(&self, state: &str) -> anyhow::Result<Option<Digest>> {
        let text = self.objects.read(&key(state))?;
        let note = text.and_then(|text| serde_json::from_slice::<Note>(&text).ok());
        let told = note.map(|note| (Told { state: state.to_owned(), contents: note.blake3 }, note.check));
        Ok(told.filter(|(told, check)| told.check() == *check).map(|(told, _)| told.contents))
    }

    /// Notes what a file is, unless there is a note.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(in crate::engine) fn note(&self, told: &Told) -> anyhow::Result<()> {
        let text = serde_json::to_vec(&Note { blake3: told.contents, check: told.check() })?;
        self.objects.create(&key(&told.state), &text).map(drop)
    }
}
