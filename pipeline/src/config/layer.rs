//! The texts that a config is made of: those that it extends, presets among them, and itself; later ones over earlier ones.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use toml::{Table, Value as Toml};

use super::VERSION;
use crate::toml_text;

/// Most configs that extend one another.
const DEEPEST: usize = 16;

/// One of the texts.
#[derive(Clone, PartialEq)]
pub(super) struct Layer {
    /// Its file, or the preset.
    pub(super) name: String,
    pub(super) text: String,
    pub(super) table: Table,
}

macro_rules! presets {
    ($($name:literal: $file:literal,)+) => {
        /// What `extends` and `--preset` may name, with its text.
        pub(crate) const PRESETS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../configs/presets/", $file, ".toml"))),)+];
    };
}

presets! {
    "world": "world",
    "kimera": "kimera",
    "link-prediction": "link-prediction",
    "kg-bert": "kg-bert",
    "umls": "umls",
    "ontologies": "ontologies",
    "graft-medquad": "graft-medquad",
    "umls-graft": "umls-graft",
    "kimera-retrieval": "kimera-retrieval",
    "kimera-outcomes": "kimera-outcomes",
    "kimera-glue": "kimera-glue",
    "sapbert": "sapbert",
    "simkgc": "simkgc",
    "glue": "glue",
    "kam-bert": "kam-bert",
    "kam-bert-tables": "kam-bert-tables",
    "kam-bert-qa": "kam-bert-qa",
    "kam-bert-lama": "kam-bert-lama",
    "kam-corpus": "kam-corpus",
    "kam-ablations": "kam-ablations",
    "label-embedding": "label-embedding",
    "label-embedding-tables": "label-embedding-tables",
    "mt-bert": "mt-bert",
    "mt-bert-blue": "mt-bert-blue",
    "mt-bert-sets": "mt-bert-sets",
    "mt-clinical-bert": "mt-clinical-bert",
    "mt-clinical-sets": "mt-clinical-sets",
}

/// The text of a preset.
///
/// # Errors
/// Names those that there are.
pub(crate) fn preset(name: &str) -> anyhow::Result<&'static str> {
    let found = PRESETS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
    found.with_context(|| {
        let names: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
        format!(
            "there is no preset {name:?}, expected one of {}; a file is named by a path that ends in .toml",
            names.join(", ")
        )
    })
}

/// All layers of the config with this name and text, the ones that it extends first. `folder` is where their paths count from.
pub(super) fn all(name: &str, text: &str, folder: Option<&Path>) -> anyhow::Result<Vec<Layer>> {
    let mut layers = Vec::new();
    add(name, text, folder, &mut Vec::new(), &mut layers)?;
    Ok(layers)
}

/// What a config extends.
enum Extended {
    Preset(String),
    File(PathBuf),
}

fn add(
    name: &str,
    text: &str,
    folder: Option<&Path>,
    above: &mut Vec<String>,
    layers: &mut Vec<Layer>,
) -> anyhow::Result<()> {
    if above.iter().any(|other| other == name) {
        above.push(name.to_owned());
        anyhow::bail!(
            "configs extend each other in a circle: {}; take one `extends` out",
            above.join(" -> ")
        );
    }
    above.push(name.to_owned());
    anyhow::ensure!(
        above.len() <= DEEPEST,
        "{name}: more than {DEEPEST} configs extend one another: extend fewer"
    );
    let mut table = parsed(name, text)?;
    for extended in extended(name, table.remove("extends"), folder)? {
        match extended {
            Extended::Preset(preset) => {
                add(&format!("preset {preset}"), self::preset(&preset)?, None, above, layers)?;
            }
            Extended::File(path) => {
                let shown = path.display().to_string();
                let text = std::fs::read_to_string(&path);
                let text =
                    text.with_context(|| format!("{shown}: cannot read the config that {name} extends"))?;
                add(&shown, &text, Some(path.parent().unwrap_or(Path::new(""))), above, layers)?;
            }
        }
    }
    above.pop();
    // The same preset may stand above several; it counts where it comes first.
    if layers.iter().all(|layer| layer.name != name) {
        layers.push(Layer { name: name.to_owned(), text: text.to_owned(), table });
    }
    Ok(())
}

/// The table of a text, if it is one of this version.
fn parsed(name: &str, text: &str) -> anyhow::Result<Table> {
    let wrong = |problem: String| anyhow::anyhow!("{name}: {}", problem.trim_end());
    toml_text::bounded(text).map_err(wrong)?;
    let table: Table = text.parse().map_err(|error: toml::de::Error| wrong(super::told(text, &error)))?;
    match table.get("version") {
        Some(&Toml::Integer(version)) if version != i64::from(VERSION) => {
            Err(super::other_version(name, version))
        }
        _ => Ok(table),
    }
}

fn extended(name: &str, value: Option<Toml>, folder: Option<&Path>) -> anyhow::Result<Vec<Extended>> {
    let expected = "expected the name of a preset, the path of a .toml file, or a list of such";
    let items = match value {
        None => return Ok(Vec::new()),
        Some(Toml::Array(items)) => items,
        Some(one) => vec![one],
    };
    let each = items.into_iter().map(|item| match item {
        Toml::String(text) if text.contains("://") => {
            Err(anyhow::anyhow!("{name}: extends is a URL, {expected}: fetch it first"))
        }
        Toml::String(text) if text.ends_with(".toml") => {
            let folder =
                folder.with_context(|| format!("{name}: a preset extends presets only, not {text:?}"))?;
            Ok(Extended::File(folder.join(text)))
        }
        Toml::String(text) => Ok(Extended::Preset(text)),
        other => Err(anyhow::anyhow!("{name}: extends is {}, {expected}", super::validate::shown(&other))),
    });
    each.collect()
}
