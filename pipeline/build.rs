//! Finds out which commit is built, for `engraft --version`.

use std::path::Path;
use std::process::Command;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let git = |args: &[&str]| -> Option<String> {
        let ran = Command::new("git").arg("-C").arg(&root).args(args).output().ok()?;
        let text = String::from_utf8(ran.stdout).ok()?.trim().to_owned();
        (ran.status.success() && !text.is_empty()).then_some(text)
    };
    // A source archive that was unpacked inside another repository is none of its commits.
    let own = git(&["rev-parse", "--show-toplevel"])
        .and_then(|top| Some(Path::new(&top).canonicalize().ok()? == root.canonicalize().ok()?))
        .unwrap_or(false);
    let commit = own.then(|| git(&["log", "-1", "--format=%h (%cs)", "--abbrev=12"])).flatten();
    say("rustc-env", &format!("ENGRAFT_COMMIT={}", commit.as_deref().unwrap_or("unknown")));
    say("rerun-if-changed", "build.rs");
    // Both change with every commit and checkout: without them, a build after a commit would name the one before.
    for name in ["HEAD", "logs/HEAD"].into_iter().filter(|_| own) {
        if let Some(path) = git(&["rev-parse", "--git-path", name]).map(|path| root.join(path))
            && path.exists()
        {
            say("rerun-if-changed", &path.display().to_string());
        }
    }
}

fn say(what: &str, value: &str) {
    println!("cargo::{what}={value}");
}
