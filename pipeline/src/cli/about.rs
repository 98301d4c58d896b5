//! What the binary says of itself: its version in full, completions for shells, manual pages.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::OnceLock;

use anyhow::Context as _;
use base::whole::write_whole;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use super::args::{Command, Subcommand};
use super::exit::Exit;
use super::print;

/// The commit that was built; the build script finds it out.
const COMMIT: &str = env!("ENGRAFT_COMMIT");

/// What `--version` says: the version, the commit, what was compiled in, and what of the processor is used.
pub(super) fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let mut text = env!("CARGO_PKG_VERSION").to_owned();
        let features = if cfg!(feature = "cuda") { "cuda" } else { "none" };
        // Writing into a text cannot fail.
        _ = write!(
            text,
            "\ncommit:   {COMMIT}\nfeatures: {features}\nCPU:      {}",
            model::device::cpu_level()
        );
        text
    })
}

/// Obeys a subcommand that is about the binary itself; nothing for the others.
pub(super) fn about(subcommand: &Subcommand) -> Option<anyhow::Result<Exit>> {
    let said = match subcommand {
        Subcommand::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Command::grammar(), "engraft", &mut script);
            print::raw(&script).map_err(anyhow::Error::from)
        }
        Subcommand::Man { into: None } => {
            page(&Command::grammar()).and_then(|page| print::raw(&page)).map_err(anyhow::Error::from)
        }
        Subcommand::Man { into: Some(folder) } => pages(folder),
        _ => return None,
    };
    Some(said.map(|()| Exit::Ok))
}

/// The manual page of a command. Examples and notes keep their lines, which clap_mangen would fill.
fn page(command: &clap::Command) -> std::io::Result<Vec<u8>> {
    let (man, mut page) = (Man::new(command.clone()), Vec::new());
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let notes = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut section = Roff::new();
    section.control("SH", ["NOTES"]).control("nf", []);
    for line in notes.lines() {
        section.text([roman(line)]);
    }
    section.control("fi", []).to_writer(&mut page)?;
    Ok(page)
}

/// The pages of `engraft` and of its subcommands.
fn pages(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let mut whole = Command::grammar().disable_help_subcommand(true);
    whole.build();
    for command in whole.get_subcommands().chain([&whole]) {
        let path = folder.join(Man::new(command.clone()).get_filename());
        write_whole(&path, &page(command)?).with_context(|| path.display().to_string())?;
    }
    Ok(())
}
