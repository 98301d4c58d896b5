//! Nothing silent: faults that once passed with exit status 0, a file for each group, tried through the binary as a user would.
mod citations;
mod config;
mod corpus;
mod finetuning;
mod inputs;
mod model;
mod newcomer;
mod published;
mod runner;
mod sources;
mod state;
mod token;
mod visible;

use std::path::Path;

use base::whole::write_whole;
use engraft_tests::Ran;

/// Writes a file of text into a folder.
fn put(folder: &Path, name: &str, text: &str) {
    write_whole(&folder.join(name), text.as_bytes()).unwrap();
}

/// Holds a run to its exit status and to what it must say.
fn says(ran: &Ran, code: i32, words: &[&str]) {
    let text = ran.text();
    assert_eq!(ran.code(), Some(code), "{text}");
    assert!(words.iter().all(|word| text.contains(word)), "{words:?} in: {text}");
}
