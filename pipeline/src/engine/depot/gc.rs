//! What goes from a depot: lines beyond the bounds, and blobs that no line names.
//!
//! A blob that no line names may be one that another machine is about to name, so it stays for a while, and lines are read once more before blobs go. One
//! that is named between these two steps is missing then: whoever pulls it makes it again, and `push` puts it there.

use std::collections::{BTreeMap, BTreeSet};

use super::notes::NOTES;
use super::{Access, BLOBS, Depot, LINES, blob};
use crate::engine::Engine;
use crate::engine::clean::Scope;
use crate::engine::fault::Point;
use crate::engine::ledger::Line;

/// What goes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Going {
    /// Lines: the stage, when it was made in milliseconds since the Unix epoch, and the key.
    pub lines: Vec<Gone>,
    /// Keys of blobs and of what was never written whole, with their lengths.
    pub blobs: Vec<(String, u64)>,
    /// Such that stay because they are new.
    pub young: usize,
}

/// A line that goes.
#[derive(Clone, Debug)]
pub(crate) struct Gone {
    pub stage: String,
    /// In milliseconds since the Unix epoch.
    pub made_ms: u64,
    pub key: String,
}

impl Going {
    /// The bytes of all blobs that go.
    pub(crate) fn bytes(&self) -> u64 {
        self.blobs.iter().map(|(_, bytes)| bytes).sum()
    }
}

impl Engine {
    /// Removes from the depot what goes ([`Depot::drop`]).
    ///
    /// # Errors
    /// As there.
    pub(crate) fn clear(&self, depot: &Depot, going: &Going) -> anyhow::Result<()> {
        depot.drop(going, &|| self.settings.faults.pass("gc", Point::Removed))
    }
}

impl Depot {
    /// What of the named stages is more than `scope` allows, of all stages if none is named, and every blob that then no line names and that was written
    /// before `until`, in seconds since the Unix epoch; likewise notes of files that no line which stays was made of.
    ///
    /// # Errors
    /// When there is no depot, it is only read from, or it cannot be listed or read.
    pub(crate) fn going(&self, stages: &[String], scope: Scope, until: i64) -> anyhow::Result<Going> {
        anyhow::ensure!(
            self.access == Access::Write,
            "the depot {} is only read from (depot.read_only, or a web server): nothing is removed there",
            self.place()
        );
        self.open(Access::Read)?;
        // Blobs first: one that comes meanwhile is not among them.
        let blobs = self.objects.list(BLOBS)?;
        let mut lines = self.lines()?;
        // The newest stays longest, whatever its stage.
        lines.sort_by_key(|(key, line)| (std::cmp::Reverse(line.started_ms), key.clone()));
        let (mut going, mut named, mut bytes) = (Going::default(), BTreeSet::new(), 0_u64);
        let mut read = BTreeSet::new();
        let mut counts = BTreeMap::<String, usize>::new();
        for (key, line) in lines {
            let new: BTreeMap<String, u64> = line
                .outputs
                .iter()
                .map(|output| (blob(&output.blake3), output.bytes))
                .filter(|(blob, _)| !named.contains(blob))
                .collect();
            let all = new.values().fold(bytes, |all, bytes| all.saturating_add(*bytes));
            let count = counts.entry(line.stage.clone()).or_default();
            let over = match scope {
                Scope::All => true,
                Scope::Excess(bounds) => *count >= bounds.artifacts || all > bounds.bytes,
            };
            if over && (stages.is_empty() || stages.contains(&line.stage)) {
                going.lines.push(Gone { stage: line.stage, made_ms: line.started_ms, key });
            } else {
                (*count, bytes) = (*count + 1, all);
                read.extend(line.described.files.values().map(ToString::to_string));
                named.extend(new.into_keys());
            }
        }
        let unnamed = blobs.into_iter().filter(|object| !named.contains(&object.key));
        // What a killed writer has left.
        let unfinished = self.objects.unfinished()?;
        for object in unnamed.chain(unfinished) {
            if object.modified < until {
                going.blobs.push((object.key, object.bytes));
            } else {
                going.young += 1;
            }
        }
        for note in self.objects.list(NOTES)? {
            if note.modified < until && !self.notes_one_of(&note.key, &read)? {
                going.blobs.push((note.key, note.bytes));
            }
        }
        Ok(going)
    }

    /// All lines with their keys.
    pub(super) fn lines(&self) -> anyhow::Result<Vec<(String, Line)>> {
        let mut lines = Vec::new();
        for object in self.objects.list(LINES)? {
            // One that another machine has removed meanwhile is gone.
            if let Some(text) = self.objects.read(&object.key)? {
                let line = self.parsed(&object.key, &text)?;
                lines.push((object.key, line));
            }
        }
        Ok(lines)
    }

    /// Removes lines first, so that no line names what is not there, and then the blobs that no line has begun to name meanwhile. `removed` is called after each.
    ///
    /// # Errors
    /// When an object cannot be listed, read or removed.
    pub(crate) fn drop(&self, going: &Going, removed: &dyn Fn()) -> anyhow::Result<()> {
        let remove = |key: &String| self.objects.remove(key).map(|()| removed());
        going.lines.iter().try_for_each(|gone| remove(&gone.key))?;
        let lines = self.lines()?;
        let outputs = lines.iter().flat_map(|(_, line)| &line.outputs);
        let named: BTreeSet<String> = outputs.map(|output| blob(&output.blake3)).collect();
        let unnamed = going.blobs.iter().filter(|(key, _)| !named.contains(key));
        unnamed.map(|(key, _)| key).try_for_each(remove)
    }
}
