//! `engraft config` and `engraft init`: the settings that there are, and a first config.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::args::{Command, Common, Subcommand};
use super::exit::Exit;
use super::project::FILE;
use crate::config::layer::preset;
use crate::config::resolved::Origins;
use crate::config::{self, schema};

/// The preset that a first config extends unless another is named.
const FIRST: &str = "kimera";

/// What a subcommand about settings comes to; nothing for the others.
pub(super) fn settings(command: &Command) -> Option<anyhow::Result<Exit>> {
    match &command.subcommand {
        Subcommand::Init => Some(init(command.common.preset.as_deref().unwrap_or(FIRST))),
        Subcommand::Config { schema: true, .. } => Some(schema()),
        Subcommand::Config { reference: true, .. } => Some(reference()),
        Subcommand::Config { origin, .. } => {
            let origins = if *origin { Origins::Said } else { Origins::Unsaid };
            Some(show(&command.common, origins))
        }
        _ => None,
    }
}

/// Prints every setting of the config, as TOML or as JSON.
///
/// # Errors
/// When the config is invalid, or nothing can be printed.
fn show(common: &Common, origins: Origins) -> anyhow::Result<Exit> {
    let config = common.load()?;
    if common.json {
        anyhow::ensure!(
            origins == Origins::Unsaid,
            "--origin ends lines of TOML: leave --json out, or --origin"
        );
        lines(&config.resolved_json()?)?;
        return Ok(Exit::Ok);
    }
    lines(&config.resolved(origins))?;
    Ok(Exit::Ok)
}

/// Prints the JSON Schema of configs.
///
/// # Errors
/// When nothing can be printed.
fn schema() -> anyhow::Result<Exit> {
    lines(&serde_json::to_string_pretty(schema::schema())?)?;
    Ok(Exit::Ok)
}

/// Prints the reference of all settings.
///
/// # Errors
/// When nothing can be printed.
fn reference() -> anyhow::Result<Exit> {
    lines(&config::reference::markdown())?;
    Ok(Exit::Ok)
}

/// Writes a first config into the working folder.
///
/// # Errors
/// When there is one already, or it cannot be written.
fn init(name: &str) -> anyhow::Result<Exit> {
    let path = PathBuf::from(FILE);
    anyhow::ensure!(!path.exists(), "{FILE} is there already: edit it, or remove it first");
    let about = preset(name)?.lines().next().unwrap_or_default().trim_start_matches('#').trim();
    let text = first(name, about);
    base::whole::write_whole(Path::new(&path), text.as_bytes()).with_context(|| FILE.to_owned())?;
    lines(&format!("wrote {FILE}; next: engraft plan, engraft run"))?;
    Ok(Exit::Ok)
}

/// Presets of published experiments, which name data of their own.
const EXPERIMENTS: [&str; 19] = [
    "kg-bert",
    "glue",
    "label-embedding-tables",
    "umls",
    "ontologies",
    "graft-medquad",
    "umls-graft",
    "kimera-retrieval",
    "kimera-outcomes",
    "kimera-glue",
    "kam-bert-qa",
    "kam-bert-lama",
    "kam-corpus",
    "kam-bert-tables",
    "mt-bert-blue",
    "mt-bert-sets",
    "sapbert",
    "simkgc",
    "mt-clinical-sets",
];

/// A first config: the preset on the invented world, so that it runs as it is; one that names data of its own, on these.
fn first(name: &str, about: &str) -> String {
    let head = format!(
        "# {about}\n\
         # Every setting, and where it comes from: engraft config --origin. What they mean: docs/config.md.\n\
         version = 5\n"
    );
    if EXPERIMENTS.contains(&name) {
        // What they leave to the user.
        let own = match name {
            "kam-corpus" => "vocabulary.train.size = 8000\n",
            "graft-medquad" => {
                "vocabulary.file = \"bert/vocab.txt\"\nencoder = { from = \"checkpoint\", path = \"bert\" }\nsources.rotmensch.path = \"rotmensch/DerivedKnowledgeGraph_final.csv\"  # or graphs of your own\n"
            }
            _ => "",
        };
        return format!(
            "{head}extends = \"{name}\"\nout = \"out\"\ndata = \"data\"  # what paths of files count from: the preset says which (engraft config --origin)\n{own}"
        );
    }
    let extends = if name == "world" { "\"world\"".to_owned() } else { format!("[\"world\", \"{name}\"]") };
    let head = format!(
        "{head}\
         extends = {extends}  # \"world\" is an invented world to try it on: take it out for data of your own (docs/tutorial.md)\n\
         out = \"out\"\n\
         # data = \"data\"  # what paths of your own files count from\n"
    );
    let texts = match name {
        "kam-bert" | "kam-ablations" => {
            "corpus.texts = [{ name = \"world\", paths = [\"world:text\"], format.text = \"paragraph\" }]\n"
        }
        "link-prediction" => return head,
        _ => "",
    };
    format!(
        "{head}\
         {texts}\
         benchmarks = [\n    \
             {{ name = \"questions\", set = {{ format.trec.classes = \"coarse\", train = [\"world:sets/questions.label\"] }} }},\n    \
             {{ name = \"entailed\", set = {{ format = \"glue_pairs\", train = [\"world:sets/entailed.tsv\"] }} }},\n\
         ]\n"
    )
}

fn lines(text: &str) -> std::io::Result<()> {
    text.trim_end().lines().try_for_each(super::print::line)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use store::options::Options;

    use super::*;
    use crate::config::layer::PRESETS;
    use crate::stage::remote::Remotes;

    #[test]
    fn a_first_config_of_every_preset_can_be_planned() {
        for (name, _) in PRESETS {
            let text = first(name, "About it.");
            assert!(text.lines().count() <= 12, "{text}");
            let remotes = Arc::new(Remotes::new(Options::new(Path::new("/cache"))));
            let stages = config::of_text(FILE, &text, None, &[])
                .and_then(|config| crate::stage::all(&config, Some(Path::new("/data")), &remotes));
            let stages = stages.unwrap_or_else(|error| panic!("{name}: {error:#}"));
            assert!(stages.len() > 5, "{name}: {}", stages.len());
        }
    }
}
