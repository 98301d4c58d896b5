//! What a depot knows of files that lie elsewhere: their contents by the state that their servers tell, so that a machine finds what was made of them without
//! reading them.
//!
//! Notes only save work: one that is missing or damaged costs a reading, and whoever makes something of a file reads it.

use std::collections::BTreeSet;

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
        Ok(self.objects.read(&key(state))?.and_then(|text| contents(state, &text)))
    }

    /// Notes what a file is, unless there is a note; one that is damaged gives way.
    ///
    /// # Errors
    /// When it cannot be written, or the note says something else.
    pub(in crate::engine) fn note(&self, told: &Told) -> anyhow::Result<()> {
        let text = serde_json::to_vec(&Note { blake3: told.contents, check: told.check() })?;
        let key = key(&told.state);
        if self.objects.create(&key, &text)? {
            return Ok(());
        }
        match self.contents(&told.state)? {
            Some(contents) if contents == told.contents => Ok(()),
            Some(contents) => {
                let (here, there) = (told.contents.short(), contents.short());
                anyhow::bail!(
                    "{key} says that a file in a store is {there}, and it is {here} here, under the same entity tag and length: it was replaced without a new tag, or the note is wrong; remove the note, then run again"
                )
            }
            None => {
                self.objects.remove(&key)?;
                self.objects.create(&key, &text).map(drop)
            }
        }
    }

    /// Whether a note is of a file with one of these contents.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn notes_one_of(&self, key: &str, all: &BTreeSet<String>) -> anyhow::Result<bool> {
        let text = self.objects.read(key)?;
        let note = text.and_then(|text| serde_json::from_slice::<Note>(&text).ok());
        Ok(note.is_some_and(|note| all.contains(&note.blake3.to_string())))
    }
}

/// What a note says, unless it is damaged.
fn contents(state: &str, text: &[u8]) -> Option<Digest> {
    let Note { blake3, check } = serde_json::from_slice(text).ok()?;
    let told = Told { state: state.to_owned(), contents: blake3 };
    (told.check() == check).then_some(blake3)
}
