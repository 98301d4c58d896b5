//! Re-reads artifacts and compares every byte's digest with the ledger; believes no memo. Mends nothing, but makes the memo
//! forget a damaged file, so that the next run sees the damage even if size and times are as they were.

use std::collections::BTreeSet;
use std::io;

use serde::Serialize;

use super::digest::{Digest, each};
use super::folder::{self, Output};
use super::ledger::{Ledger, Line};
use super::lock::Lock;
use super::memo::Memo;
use super::{Engine, run};

/// A file that is not what the ledger says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "damage", rename_all = "snake_case")]
pub enum Damage {
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
    pub fn path(&self) -> &str {
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
pub struct Verified {
    /// The stage that made it.
    pub stage: String,
    /// How many files the ledger names; none if the stage has never run.
    pub files: Option<usize>,
    /// How many bytes they have.
    pub bytes: u64,
    /// What is wrong.
    pub damages: Vec<Damage>,
}

impl Engine {
    /// Verifies the artifacts of the named stages; of all stages if none is named.
    ///
    /// # Errors
    /// [`run::Error`] for a stage that does not exist or a ledger that cannot be read. Damage is a finding, not an error.
    pub fn verify(&self, names: &[String]) -> Result<Vec<Verified>, run::Error> {
        let chosen = self.graph.chosen(names)?;
        // A run beside this would change files under its eyes. On a read-only disk there can be no run, and no lock.
        let _lock = if self.layout.ledger().exists() {
            match Lock::take(&self.layout.lock()) {
                Err(error) if error.is_held() => return Err(error.into()),
                lock => lock.ok(),
            }
        } else {
            None
        };
        let ledger = Ledger::read(&self.layout.ledger())?;
        let stages = chosen.into_iter().map(|place| self.graph.stage(place).name().to_owned());
        let verified: Vec<_> = stages.map(|stage| self.verify_stage(ledger.last(&stage), stage)).collect();
        let memo = Memo::load(&self.layout.memo());
        for damage in verified.iter().flat_map(|verified| &verified.damages) {
            memo.forget(&self.layout.out().join(damage.path()));
        }
        // The damage is reported in any case; a memo on a read-only disk belongs to an artifact that cannot be mended there.
        let _ = memo.save();
        Ok(verified)
    }

    fn verify_stage(&self, last: Option<&Line>, stage: String) -> Verified {
        let Some(line) = last else { return Verified { stage, files: None, bytes: 0, damages: Vec::new() } };
        let checked = each(&line.outputs, self.settings.jobs, |output| self.verify_file(&stage, output));
        let mut damages: Vec<_> = checked.into_iter().flatten().collect();
        let named: BTreeSet<_> = line.outputs.iter().map(|output| output.path.as_str()).collect();
        match folder::list(&self.layout.artifact(&stage)) {
            Ok(there) => {
                let strange = there.iter().filter(|path| !named.contains(path.as_str()));
                damages.extend(strange.map(|path| Damage::Unexpected { path: format!("{stage}/{path}") }));
            }
            Err(error) if damages.is_empty() => {
                damages.push(Damage::Unreadable { path: format!("{stage}/"), error: error.to_string() });
            }
            Err(_) => {}
        }
        let bytes = line.outputs.iter().map(|output| output.bytes).sum();
        Verified { stage, files: Some(line.outputs.len()), bytes, damages }
    }

    fn verify_file(&self, stage: &str, output: &Output) -> Option<Damage> {
        let file = self.layout.artifact(stage).join(&output.path);
        let path = format!("{stage}/{}", output.path);
        match Digest::of_file(&file, &self.settings.cancel) {
            Ok(found) if found == output.blake3 => None,
            Ok(found) => Some(Damage::Changed { path, expected: output.blake3, found }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some(Damage::Missing { path }),
            Err(error) => Some(Damage::Unreadable { path, error: error.to_string() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Write;

    use super::*;
    use crate::engine::testing::{engine, run, scribble, settings, stage};
    use tempfile::tempdir;

    #[test]
    fn every_kind_of_damage_is_found_by_name() {
        let dir = tempdir().unwrap();
        let stages = || [stage("a"), stage("b").reads("a"), stage("c")];
        let verify = || engine(settings(dir.path()), stages()).verify(&[]).unwrap();
        assert!(verify().iter().all(|verified| verified.files.is_none()));
        run(dir.path(), stages());
        assert!(verify().iter().all(|verified| verified.files == Some(1) && verified.damages.is_empty()));
        scribble(&dir.path().join("a/out.txt"), "A");
        fs::remove_file(dir.path().join("b/out.txt")).unwrap();
        scribble(&dir.path().join("c/new.txt"), "");
        let found: Vec<_> = verify().into_iter().flat_map(|verified| verified.damages).collect();
        assert!(matches!(&found[0], Damage::Changed { path, .. } if path == "a/out.txt"), "{found:?}");
        assert_eq!(found[1], Damage::Missing { path: "b/out.txt".to_owned() });
        assert_eq!(found[2], Damage::Unexpected { path: "c/new.txt".to_owned() });
    }

    #[test]
    fn what_verify_finds_the_next_run_mends_even_if_the_memo_would_not_have_seen_it() {
        let dir = tempdir().unwrap();
        run(dir.path(), [stage("a")]);
        let file = dir.path().join("a/out.txt");
        File::options().write(true).open(&file).unwrap().write_all(b"?").unwrap();
        // A memo that believes the damaged file to be sound, as after decay of the disk.
        let memo = Memo::load(&dir.path().join(".cache/digests.json"));
        let stamp = crate::engine::memo::Stamp::of(&file).unwrap();
        memo.learn(&file, crate::engine::memo::Known { digest: Digest::of(b"a"), stamp, touched: false });
        memo.save().unwrap();
        assert_eq!(run(dir.path(), [stage("a")]), ["a fresh"]);
        assert_eq!(engine(settings(dir.path()), [stage("a")]).verify(&[]).unwrap()[0].damages.len(), 1);
        assert_eq!(run(dir.path(), [stage("a")]), ["a same"]);
        assert_eq!(fs::read(&file).unwrap(), b"a");
    }
}
