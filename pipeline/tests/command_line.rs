//! The binary's outermost shell: help, version, exit codes of wrong usage. That this test is here also makes `cargo test` build
//! the binary that the tests of the whole run.
#![allow(clippy::unwrap_used, reason = "these are tests; a failed step is a failed test")]

use std::process::{Command, Output};

fn engraft(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_engraft")).args(args).output().unwrap()
}

#[test]
fn every_verb_has_help_with_an_example() {
    let help = String::from_utf8(engraft(&["--help"]).stdout).unwrap();
    for verb in ["run", "plan", "why", "status", "inspect", "verify", "fetch", "clean"] {
        assert!(help.contains(verb), "{help}");
        let own = engraft(&[verb, "--help"]);
        assert!(own.status.success());
        let own = String::from_utf8(own.stdout).unwrap();
        assert!(own.contains("Example") && own.contains(&format!("engraft {verb}")), "{own}");
    }
    assert!(help.contains("Exit codes:"), "{help}");
}

#[test]
fn wrong_usage_is_2() {
    for args in [
        &["fly"][..],
        &["why"],
        &["run", "--jobs", "0"],
        &["run", "--jobs", "5000000"],
        &["run", "--set", "no-equals-sign"],
    ] {
        let ran = engraft(args);
        assert_eq!(ran.status.code(), Some(2), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
    }
    assert_eq!(engraft(&["--version"]).status.code(), Some(0));
}
