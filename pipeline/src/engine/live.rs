//! Links to the files that grow in a stage's work folder, where people find them while it runs: `live/STAGE/FILE`. An artifact never stands half-written
//! under its final name, so what is to be watched before it is whole needs another. Nothing depends on these links.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::layout::Layout;

/// Where the links of one stage go, and where they lead.
#[derive(Debug)]
pub(super) struct Live {
    folder: PathBuf,
    /// The work folder as seen from `folder`, so that the output folder may be moved.
    work: PathBuf,
}

impl Live {
    /// The links of `stage`, which works in `work`.
    pub(super) fn new(layout: &Layout, stage: &str, work: &Path) -> Self {
        let work = work.strip_prefix(layout.out()).unwrap_or(work);
        Self { folder: layout.live().join(stage), work: Path::new("../..").join(work) }
    }

    /// Links these files, in place of what was linked before. A link that cannot be made is not: training is worth more than a look at it.
    pub(super) fn show(&self, names: &[&str]) {
        hide(&self.folder);
        let _ = fs::create_dir_all(&self.folder);
        for name in names {
            let _ = symlink(self.work.join(name), self.folder.join(name));
        }
    }

    /// Removes the links: what they led to is an artifact now.
    pub(super) fn end(&self) {
        hide(&self.folder);
    }
}

/// Removes links that lead nowhere, which a kill or `clean` left, and the folders that are then empty.
pub(super) fn sweep(layout: &Layout) {
    let live = layout.live();
    for stage in fs::read_dir(&live).into_iter().flatten().flatten() {
        remove_links(&stage.path(), |link| {
            fs::metadata(link).is_err_and(|cause| cause.kind() == io::ErrorKind::NotFound)
        });
    }
    // Succeeds only if nothing is left in it.
    let _ = fs::remove_dir(live);
}

fn hide(folder: &Path) {
    remove_links(folder, |_| true);
}

/// Removes the links in `folder` that are `unwanted`, and the folder if nothing else is in it. Whatever is no link is not ours.
fn remove_links(folder: &Path, unwanted: impl Fn(&Path) -> bool) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_symlink()) && unwanted(&entry.path()) {
            let _ = fs::remove_file(entry.path());
        }
    }
    let _ = fs::remove_dir(folder);
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::engine::testing::{engine, run, say, scribble, settings, stage};
    use tempfile::tempdir;

    #[test]
    fn what_grows_is_found_while_the_stage_runs_and_its_links_end_with_it() {
        let dir = tempdir().unwrap();
        let live = dir.path().join("live");
        let seen = live.join("train/steps.jsonl");
        let training = |ends: bool| {
            let seen = seen.clone();
            stage("train").resumes().works(move |context| {
                context.show(&["steps.jsonl"]);
                say(context, "steps.jsonl", "1\n")?;
                assert_eq!(fs::read_to_string(&seen)?, "1\n");
                anyhow::ensure!(ends, "killed");
                Ok(())
            })
        };
        // What was interrupted can still be looked at.
        assert_eq!(run(dir.path(), [training(false)]), ["train failed: killed"]);
        assert_eq!(fs::read_to_string(&seen).unwrap(), "1\n");
        scribble(&live.join("notes.txt"), "not ours");
        assert_eq!(run(dir.path(), [training(true)]), ["train done"]);
        assert!(fs::symlink_metadata(&seen).is_err() && dir.path().join("train/steps.jsonl").exists());
        assert_eq!(fs::read_to_string(live.join("notes.txt")).unwrap(), "not ours");
        fs::remove_file(live.join("notes.txt")).unwrap();
        // Links to a work folder that is gone go with the next run, or with what cleans up, and the folder with them.
        let interrupted = || training(false).version(2);
        assert_eq!(run(dir.path(), [interrupted()]), ["train failed: killed"]);
        fs::remove_dir_all(dir.path().join(".work")).unwrap();
        run(dir.path(), [stage("other")]);
        assert!(!live.exists());
        assert_eq!(run(dir.path(), [interrupted()]), ["train failed: killed"]);
        engine(settings(dir.path()), [interrupted()]).clean(&[]).unwrap().remove().unwrap();
        assert!(!live.exists());
    }
}
