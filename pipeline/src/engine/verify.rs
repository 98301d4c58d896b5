//! Re-reads the ledger and the artifacts that it names and compares every byte's digest; believes no memo and needs no config.
//! Mends nothing, but makes the memo forget a damaged file, so that the next run sees the damage even if size and times are as they
//! were.

use std::collections::BTreeSet;
use std::io;
use std::num::NonZeroUsize;
use std::path::Path;

use base::cancel::CancelToken;
use serde::Serialize;

use super::digest::{Digest, each};
use super::error::Error;
use super::folder::{self, Output};
use super::kept::{Kept, Store};
use super::layout::Layout;
use super::ledger::{Audit, Ledger, Line};
use super::lock::{Lock, Refused};
use super::memo::Memo;

/// A file that is not what the ledger says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "damage", rename_all = "snake_case")]
pub(crate) enum Damage {
    /// The ledger names it, but it is gone.
    Missing {
        /// The file, from the output folder.
        path: String,
    },
    /// Its contents are others.
    Changed {
        /// The file, from the output folder.
        path: String,
        /// The digest in the ledger.
        expected: Digest,
        /// The digest of what lies there.
        found: Digest,
    },
    /// It cannot be read.
    Unreadable {
        /// The file, from the output folder.
        path: String,
        /// What the file system said.
        error: String,
    },
    /// The ledger does not name it.
    Unexpected {
        /// The file, from the output folder.
        path: String,
    },
}

impl Damage {
    /// The file, from the output folder.
    pub(crate) fn path(&self) -> &str {
        match self {
            Self::Missing { path }
            | Self::Changed { path, .. }
            | Self::Unreadable { path, .. }
            | Self::Unexpected { path } => path,
        }
    }
}

/// What was found in one artifact.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Verified {
    /// The stage that made it.
    pub stage: String,
    /// Where it lies, from the output folder, if it is kept and not in its stage's place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
    /// How many files the ledger names; none if it names no run of the stage.
    pub files: Option<usize>,
    /// How many bytes they have.
    pub bytes: u64,
    /// What is wrong.
    pub damages: Vec<Damage>,
}

/// What was found in an output folder.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Verification {
    /// What was found in the ledger.
    pub ledger: Lines,
    /// What was found in the artifacts that it names.
    pub artifacts: Vec<Verified>,
}

/// What was found in the ledger.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Lines {
    /// How many lines are sound.
    pub lines: usize,
    /// How many of them are of the format without digests, in which only damage that breaks the form is found.
    pub without_digest: usize,
    /// What is wrong with the others.
    pub damages: Vec<String>,
}

/// What is said of a last line that does not end.
const TORN: &str = "its last line does not end: a run was killed as it wrote it, or the file was cut; what the line spoke of counts as not \
                    made, and `engraft run` makes it again";

impl Verification {
    /// Whether nothing is wrong.
    pub(crate) fn is_sound(&self) -> bool {
        self.ledger.damages.is_empty() && self.artifacts.iter().all(|artifact| artifact.damages.is_empty())
    }
}

/// An output folder to verify.
#[derive(Debug)]
pub(crate) struct Verify<'a> {
    /// Where things lie.
    pub layout: &'a Layout,
    /// How many threads may read files.
    pub jobs: NonZeroUsize,
    /// Set when somebody asks to stop.
    pub cancel: &'a CancelToken,
}

impl Verify<'_> {
    /// Verifies the ledger and the artifacts of the named stages; of all that the ledger names if none is named.
    ///
    /// # Errors
    /// When there is nothing to verify, or another run holds the lock. Damage is a finding, not an error.
    pub(crate) fn verify(&self, names: &[String]) -> Result<Verification, Error> {
        // A run beside this would change files under its eyes. On a read-only disk there can be no run, and no lock.
        let _lock = if self.layout.ledger().exists() {
            match Lock::take(&self.layout.lock()) {
                Err(error @ Refused::Held { .. }) => return Err(error.into()),
                lock => lock.ok(),
            }
        } else {
            None
        };
        let Audit { ledger, without_digest, damages, torn } = Ledger::audit(&self.layout.ledger())?;
        let chosen = self.chosen(names, &ledger, &damages)?;
        let store = Store::list(self.layout, &ledger)?;
        let kept: Vec<_> = store.kept.iter().filter(|kept| chosen.contains(&kept.stage)).collect();
        let kept: Vec<_> = kept.into_iter().map(|kept| self.verify_kept(kept)).collect();
        let mut artifacts: Vec<_> =
            chosen.into_iter().map(|stage| self.verify_stage(ledger.last(&stage), stage)).collect();
        artifacts.extend(kept);
        if names.is_empty() {
            artifacts.extend(self.unnamed(&ledger));
            artifacts.extend(store.unknown.iter().map(|path| unnamed(self.name(path))));
        }
        let memo = Memo::load(&self.layout.memo());
        for damage in artifacts.iter().flat_map(|verified| &verified.damages) {
            memo.forget(&self.layout.out().join(damage.path()));
        }
        // The damage is reported in any case; a memo on a read-only disk belongs to an artifact that cannot be fixed there.
        let _ = memo.save();
        let torn =
            (torn && damages.is_empty()).then(|| format!("{}: {TORN}", self.layout.ledger().display()));
        let damages = damages.iter().map(ToString::to_string).chain(torn).collect();
        let ledger = Lines { lines: ledger.lines().len(), without_digest, damages };
        Ok(Verification { ledger, artifacts })
    }

    /// Folders that no line names: artifacts whose lines are gone, or what engraft did not make.
    fn unnamed(&self, ledger: &Ledger) -> Vec<Verified> {
        let Ok(entries) = std::fs::read_dir(self.layout.out()) else { return Vec::new() };
        let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let mut names: Vec<String> =
            folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.retain(|name| !name.starts_with('.') && ledger.last(name).is_none());
        names.sort();
        names.into_iter().map(unnamed).collect()
    }

    /// The stages to look at, in the order in which they were first made.
    fn chosen(&self, names: &[String], ledger: &Ledger, damages: &[Error]) -> Result<Vec<String>, Error> {
        let mut made: Vec<String> = Vec::new();
        for line in ledger.lines() {
            if !made.contains(&line.stage) {
                made.push(line.stage.clone());
            }
        }
        // A damaged line may have been the one of the stage that is asked for.
        if damages.is_empty() {
            if made.is_empty() {
                return Err(Error::new(format!(
                    "nothing to verify: no stage has finished in {}; say with --out where one has",
                    self.layout.out().display()
                )));
            }
            if let Some(name) = names.iter().find(|name| !made.contains(name)) {
                return Err(Error::new(format!(
                    "nothing to verify of `{name}`, which was never made here; made here: {}",
                    made.join(", ")
                )));
            }
        }
        Ok(if names.is_empty() { made } else { names.to_vec() })
    }

    fn verify_stage(&self, last: Option<&Line>, stage: String) -> Verified {
        let Some(line) = last else {
            return Verified { stage, kept: None, files: None, bytes: 0, damages: Vec::new() };
        };
        let damages = self.damages(&self.layout.artifact(&stage), &line.outputs);
        let bytes = line.bytes();
        Verified { stage, kept: None, files: Some(line.outputs.len()), bytes, damages }
    }

    fn verify_kept(&self, kept: &Kept) -> Verified {
        let damages = self.damages(&kept.folder, &kept.outputs);
        let (stage, place) = (kept.stage.clone(), Some(self.name(&kept.folder)));
        Verified { stage, kept: place, files: Some(kept.outputs.len()), bytes: kept.bytes(), damages }
    }

    /// In what the files of `folder` differ from what the ledger says they are.
    fn damages(&self, folder: &Path, outputs: &[Output]) -> Vec<Damage> {
        let checked = each(outputs, self.jobs, |output| self.verify_file(folder, output));
        let mut damages: Vec<_> = checked.into_iter().flatten().collect();
        let named: BTreeSet<_> = outputs.iter().map(|output| output.path.as_str()).collect();
        match folder::list(folder) {
            Ok(there) => {
                let strange = there.iter().filter(|path| !named.contains(path.as_str()));
                damages
                    .extend(strange.map(|path| Damage::Unexpected { path: self.name(&folder.join(path)) }));
            }
            Err(error) if damages.is_empty() => {
                let path = format!("{}/", self.name(folder));
                damages.push(Damage::Unreadable { path, error: error.to_string() });
            }
            Err(_) => {}
        }
        damages
    }

    fn verify_file(&self, folder: &Path, output: &Output) -> Option<Damage> {
        let file = folder.join(&output.path);
        let path = self.name(&file);
        match Digest::of_file(&file, self.cancel) {
            Ok(found) if found == output.blake3 => None,
            Ok(found) => Some(Damage::Changed { path, expected: output.blake3, found }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some(Damage::Missing { path }),
            Err(error) => Some(Damage::Unreadable { path, error: error.to_string() }),
        }
    }

    /// A path from the output folder.
    fn name(&self, path: &Path) -> String {
        path.strip_prefix(self.layout.out()).unwrap_or(path).to_string_lossy().into_owned()
    }
}

/// A folder that no line names.
fn unnamed(stage: String) -> Verified {
    let damages = vec![Damage::Unexpected { path: format!("{stage}/") }];
    Verified { stage, kept: None, files: None, bytes: 0, damages }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Write;

    use super::*;
    use crate::engine::memo::{Known, Stamp};
    use crate::engine::testing::{run, scribble, stage};
    use tempfile::tempdir;

    fn verify(out: &Path, names: &[&str]) -> Result<Verification, Error> {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        let (layout, cancel) = (Layout::new(out), CancelToken::NEVER);
        Verify { layout: &layout, jobs: NonZeroUsize::new(2).unwrap(), cancel: &cancel }.verify(&names)
    }

    #[test]
    fn every_kind_of_damage_is_found_by_name() {
        let dir = tempdir().unwrap();
        run(dir.path(), [stage("a"), stage("b").reads("a"), stage("c")]);
        let sound = verify(dir.path(), &[]).unwrap();
        assert!(sound.is_sound() && sound.artifacts.iter().all(|verified| verified.files == Some(1)));
        scribble(&dir.path().join("a/out.txt"), "A");
        fs::remove_file(dir.path().join("b/out.txt")).unwrap();
        scribble(&dir.path().join("c/new.txt"), "");
        let mut artifacts = verify(dir.path(), &[]).unwrap().artifacts;
        artifacts.sort_by(|x, y| x.stage.cmp(&y.stage));
        let found: Vec<_> = artifacts.into_iter().flat_map(|verified| verified.damages).collect();
        assert!(matches!(&found[0], Damage::Changed { path, .. } if path == "a/out.txt"), "{found:?}");
        assert_eq!(found[1], Damage::Missing { path: "b/out.txt".to_owned() });
        assert_eq!(found[2], Damage::Unexpected { path: "c/new.txt".to_owned() });
    }

    #[test]
    fn silent_21_what_was_never_made_cannot_be_verified() {
        let dir = tempdir().unwrap();
        let refused = |names: &[&str]| verify(dir.path(), names).unwrap_err().to_string();
        assert!(refused(&[]).starts_with("nothing to verify: no stage has finished"));
        run(dir.path(), [stage("a")]);
        assert!(refused(&["b"]).starts_with("nothing to verify of `b`, which was never made here"));
        assert!(verify(dir.path(), &["a"]).unwrap().is_sound());
    }

    #[test]
    fn silent_21_a_damaged_ledger_line_is_a_finding_and_the_others_are_verified() {
        let dir = tempdir().unwrap();
        run(dir.path(), [stage("a"), stage("b").reads("a")]);
        let ledger = dir.path().join("ledger.jsonl");
        let text = fs::read_to_string(&ledger).unwrap();
        // Still a line, and still JSON: only its digest tells.
        scribble(&ledger, &text.replacen("\"letters\":1", "\"letters\":2", 1));
        let found = verify(dir.path(), &[]).unwrap();
        assert_eq!((found.ledger.lines, found.ledger.damages.len()), (1, 1));
        assert!(found.ledger.damages[0].contains("ledger.jsonl:1:"), "{found:?}");
        assert!(!found.is_sound() && found.artifacts[0].stage == "b");
    }

    #[test]
    fn silent_21_a_cut_ledger_and_what_it_no_longer_names_are_findings() {
        let dir = tempdir().unwrap();
        run(dir.path(), [stage("a"), stage("b").reads("a")]);
        let ledger = dir.path().join("ledger.jsonl");
        let text = fs::read_to_string(&ledger).unwrap();
        let first = text.find('\n').unwrap() + 1;
        for (kept, torn) in [(text.len() - 1, true), (first + 20, true), (first, false)] {
            scribble(&ledger, &text[..kept]);
            let found = verify(dir.path(), &[]).unwrap();
            assert!(!found.is_sound(), "{kept}: {found:?}");
            assert_eq!(found.ledger.damages.iter().any(|damage| damage.contains("does not end")), torn);
            let of_b = found.artifacts.iter().find(|verified| verified.stage == "b").unwrap();
            assert_eq!(of_b.damages, [Damage::Unexpected { path: "b/".to_owned() }]);
        }
        scribble(&ledger, &text);
        assert!(verify(dir.path(), &[]).unwrap().is_sound());
    }

    #[test]
    fn what_verify_finds_the_next_run_mends_even_if_the_memo_would_not_have_seen_it() {
        let dir = tempdir().unwrap();
        run(dir.path(), [stage("a")]);
        let file = dir.path().join("a/out.txt");
        File::options().write(true).open(&file).unwrap().write_all(b"?").unwrap();
        // A memo that believes the damaged file to be sound, as after decay of the disk.
        let memo = Memo::load(&dir.path().join(".cache/digests.json"));
        memo.learn(&file, Known::read(Digest::of(b"a"), Stamp::of(&file).unwrap()));
        memo.save().unwrap();
        assert_eq!(run(dir.path(), [stage("a")]), ["a fresh"]);
        assert_eq!(verify(dir.path(), &[]).unwrap().artifacts[0].damages.len(), 1);
        assert_eq!(run(dir.path(), [stage("a")]), ["a same"]);
        assert_eq!(fs::read(&file).unwrap(), b"a");
    }
}
