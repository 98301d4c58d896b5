//! What goes from a depot: lines beyond the bounds, and blobs that no line names.
//!
//! A blob that no line names may be one that another machine is about to name, so it stays for a while. A machine that names one that has gone just
//! then puts it there again (see [`Depot::push`]).

use std::collections::{BTreeMap, BTreeSet};

use super::{BLOBS, Depot, LINES, MARK, blob};
use crate::engine::clean::Scope;
use crate::engine::ledger::Line;

/// What goes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Going {
    /// Lines: the stage, when it was made in milliseconds since the Unix epoch, and the key.
    pub lines: Vec<Gone>,
    /// Keys of blobs, with their lengths.
    pub blobs: Vec<(String, u64)>,
    /// Blobs that no line names and that stay because they are new.
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

impl Depot {
    /// What of the named stages is more than `scope` allows, of all stages if none is named, and every blob that then no line names and that was written
    /// before `until`, in seconds since the Unix epoch.
    ///
    /// # Errors
    /// When there is no depot, or it cannot be listed or read.
    pub(crate) fn going(&self, stages: &[String], scope: Scope, until: i64) -> anyhow::Result<Going> {
        let place = self.place();
        anyhow::ensure!(self.objects.read(MARK)?.is_some(), "{place} is no depot: it has no {MARK}");
        // Blobs first: one that comes meanwhile is not among them, and one that a line begins to name meanwhile is found to be named.
        let blobs = self.objects.list(BLOBS)?;
        let mut lines = BTreeMap::<String, Vec<(String, Line)>>::new();
        for object in self.objects.list(LINES)? {
            // One that another machine has removed meanwhile is gone.
            let Some(text) = self.objects.read(&object.key)? else { continue };
            let line = self.parsed(&object.key, &text)?;
            lines.entry(line.stage.clone()).or_default().push((object.key, line));
        }
        let (mut going, mut named, mut bytes) = (Going::default(), BTreeSet::new(), 0_u64);
        for (stage, mut lines) in lines {
            // The newest stays longest.
            lines.sort_by_key(|(key, line)| (std::cmp::Reverse(line.started_ms), key.clone()));
            let asked = stages.is_empty() || stages.contains(&stage);
            for (at, (key, line)) in lines.into_iter().enumerate() {
                let size: u64 = line.outputs.iter().map(|output| output.bytes).sum();
                let over = match scope {
                    Scope::All => true,
                    Scope::Excess(bounds) => {
                        at >= bounds.artifacts || bytes.saturating_add(size) > bounds.bytes
                    }
                };
                if asked && over {
                    going.lines.push(Gone { stage: stage.clone(), made_ms: line.started_ms, key });
                } else {
                    bytes = bytes.saturating_add(size);
                    named.extend(line.outputs.iter().map(|output| blob(&output.blake3)));
                }
            }
        }
        for object in blobs.into_iter().filter(|object| !named.contains(&object.key)) {
            if object.modified < until {
                going.blobs.push((object.key, object.bytes));
            } else {
                going.young += 1;
            }
        }
        Ok(going)
    }

    /// Removes it: lines first, so that no line names what is not there.
    ///
    /// # Errors
    /// When an object cannot be removed.
    pub(crate) fn drop(&self, going: &Going) -> anyhow::Result<()> {
        let lines = going.lines.iter().map(|gone| &gone.key);
        lines.chain(going.blobs.iter().map(|(key, _)| key)).try_for_each(|key| self.objects.remove(key))
    }
}
