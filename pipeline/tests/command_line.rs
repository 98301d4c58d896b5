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
    for verb in ["run", "plan", "why", "status", "inspect", "verify", "fetch", "clean", "completions", "man"]
    {
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

fn said(args: &[&str]) -> String {
    let ran = engraft(args);
    assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn the_version_says_commit_features_and_processor() {
    assert_eq!(said(&["-V"]).lines().count(), 1);
    let long = said(&["--version"]);
    let lines: Vec<&str> = long.lines().collect();
    assert_eq!(lines[0], format!("engraft {}", env!("CARGO_PKG_VERSION")));
    for (line, key) in lines[1..].iter().zip(["commit:", "features:", "CPU:"]) {
        let (found, value) = line.split_once(' ').unwrap();
        assert!(found == key && !value.trim().is_empty(), "{long}");
    }
    assert_eq!(lines.len(), 4, "{long}");
}

#[test]
fn completions_know_subcommands_their_options_and_the_global_ones() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = said(&["completions", shell]);
        for word in ["predict", "restart", "cache-bytes"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let bash = Command::new("bash").args(["-n", "-c", &said(&["completions", "bash"])]).output().unwrap();
    assert!(bash.status.success(), "{}", String::from_utf8_lossy(&bash.stderr));
    assert_eq!(engraft(&["completions", "tcsh"]).status.code(), Some(2));
}

#[test]
fn manual_pages_are_those_of_the_help() {
    let page = said(&["man"]);
    // Examples keep their lines.
    let example = page.lines().position(|line| line.trim_start().starts_with("engraft why shards"));
    let fill = |control: &str| page.lines().position(|line| line == control);
    assert!(fill(".nf") < example && example < fill(".fi"), "{page}");
    assert!(page.contains(".TH engraft 1") && page.contains(r"\-\-cache\-bytes"), "{page}");
    let folder = tempfile::tempdir().unwrap();
    said(&["man", "--into", folder.path().to_str().unwrap()]);
    let run = std::fs::read_to_string(folder.path().join("engraft-run.1")).unwrap();
    assert!(run.contains(r"\-\-restart") && !run.contains(r"\-\-cache\-bytes"), "{run}");
    assert!(folder.path().join("engraft.1").exists());
}
