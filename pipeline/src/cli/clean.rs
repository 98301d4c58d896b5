//! What `clean` and `gc` remove: shown, asked about, and said. Removes nothing itself.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;

use serde_json::{Value, json};

use super::args::{Keep, Subcommand};
use super::exit::Exit;
use super::measure;
use super::print::{self, Format};
use crate::config::Config;
use crate::engine::Engine;
use crate::engine::clean::{Cleaned, Cleaning, Part, Scope, What};
use crate::engine::kept::Bounds;
use crate::overview;

/// Whether something may be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Consent {
    /// The user is asked.
    Ask,
    /// The user has said so.
    Given,
    /// It is only shown.
    Never,
}

/// Does what `clean` or `gc` is told: chooses, asks where it has to, removes.
pub(super) fn clean(engine: &Engine, subcommand: &Subcommand, format: Format) -> anyhow::Result<Exit> {
    engine.admitted()?;
    let (chosen, consent) = match subcommand {
        Subcommand::Clean { dry_run: true, stages, .. } => (all_of(engine, stages)?, Consent::Never),
        Subcommand::Clean { yes: true, stages, .. } => (all_of(engine, stages)?, Consent::Given),
        Subcommand::Clean { stages, .. } => (all_of(engine, stages)?, Consent::Ask),
        Subcommand::Gc { stages, all, dry_run, .. } => {
            let scope = if *all { Scope::All } else { Scope::Excess(engine.bounds()) };
            (engine.gc(stages, scope)?, if *dry_run { Consent::Never } else { Consent::Given })
        }
        _ => return Ok(Exit::Ok),
    };
    // Where there is nothing to remove there is nothing to ask.
    if consent == Consent::Never || chosen.found().parts.is_empty() {
        return said(chosen.found(), consent, format);
    }
    if consent == Consent::Ask && !agreed(chosen.found())? {
        print::note("nothing was removed");
        return Ok(Exit::Refused);
    }
    said(&chosen.remove()?, consent, format)
}

/// What there is of some stages; of all, with the page about the folder.
fn all_of<'e>(engine: &'e Engine, stages: &[String]) -> anyhow::Result<Cleaning<'e>> {
    let mut chosen = engine.clean(stages)?;
    if stages.is_empty()
        && let Some(page) = overview::own(engine.layout())?
    {
        chosen.add(page)?;
    }
    Ok(chosen)
}

fn said(found: &Cleaned, consent: Consent, format: Format) -> anyhow::Result<Exit> {
    print::result(format, || lines(found, consent), || vec![value(found, consent)])?;
    Ok(Exit::Ok)
}

/// Shows what would go and asks. The question goes where errors go, so that standard output holds results alone.
fn agreed(found: &Cleaned) -> anyhow::Result<bool> {
    let (input, output) = (io::stdin(), io::stderr());
    anyhow::ensure!(
        input.is_terminal() && output.is_terminal(),
        "clean would remove {}, and there is no terminal to ask on: say --yes to remove them, or --dry-run to see what they are; nothing \
         was removed",
        sum(found)
    );
    lines(found, Consent::Never).iter().for_each(|line| print::note(line));
    ask(&mut input.lock(), &mut output.lock())
}

/// Anything but yes is no.
fn ask(input: &mut dyn BufRead, output: &mut dyn Write) -> anyhow::Result<bool> {
    write!(output, "Remove them? [y/N] ")?;
    output.flush()?;
    let mut answer = String::new();
    input.read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

/// A line for each artifact, kept artifact and work folder, what is left, and the sum.
fn lines(found: &Cleaned, consent: Consent) -> Vec<String> {
    let verb = if consent == Consent::Never { "would remove" } else { "removed" };
    let line = |part: &Part| {
        let files = match &part.what {
            What::Files(files) if files.as_slice() == std::slice::from_ref(&part.path) => None,
            What::Files(files) => Some(files.len()),
            What::Kept(kept) => Some(kept.outputs.len()),
            What::Whole => None,
        };
        let files = files.map_or_else(String::new, |files| format!("{}, ", counted(files, "file")));
        format!("{verb} {} ({files}{})", part.path.display(), measure::bytes(part.bytes))
    };
    let left = found.left.iter().map(|path| format!("left {}: not in the ledger", path.display()));
    found.parts.iter().map(line).chain(left).chain([format!("{verb} {}", sum(found))]).collect()
}

/// `12 files and folders, 3.4 MB`
fn sum(found: &Cleaned) -> String {
    let paths = found.paths().len();
    let noun = if paths == 1 { "file or folder" } else { "files and folders" };
    format!("{} {noun}, {}", measure::count(paths as u64), measure::bytes(found.bytes()))
}

fn counted(n: usize, noun: &str) -> String {
    format!("{} {noun}{}", measure::count(n as u64), if n == 1 { "" } else { "s" })
}

/// What was removed and what was left, for machines.
fn value(found: &Cleaned, consent: Consent) -> Value {
    // Names that are not UTF-8 have no JSON form.
    let left: Vec<_> = found.left.iter().map(PathBuf::as_path).collect();
    let names =
        |paths: &[&std::path::Path]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
    json!({
        "removed": names(&found.paths()), "bytes": found.bytes(), "left": names(&left),
        "dry_run": consent == Consent::Never,
    })
}

/// How much is kept: what the command line says goes before what the config says.
pub(super) fn bounds(subcommand: &Subcommand, config: &Config) -> Bounds {
    let given = match subcommand {
        Subcommand::Run { keep, .. } | Subcommand::Gc { keep, .. } => *keep,
        _ => Keep { artifacts: None, bytes: None },
    };
    let otherwise = Bounds::default();
    Bounds {
        artifacts: given.artifacts.or(config.keep).unwrap_or(otherwise.artifacts),
        bytes: given.bytes.or(config.keep_bytes).unwrap_or(otherwise.bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_yes() {
        for (answer, agreed) in
            [("y\n", true), ("YES\n", true), ("\n", false), ("", false), ("yesterday\n", false)]
        {
            let mut shown = Vec::new();
            assert_eq!(ask(&mut answer.as_bytes(), &mut shown).unwrap(), agreed, "{answer:?}");
            assert_eq!(shown, b"Remove them? [y/N] ");
        }
    }
}
