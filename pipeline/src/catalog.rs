//! The catalogue of outside files (`datasets.toml`): where each comes from, what it must be, under which licence. Fetches nothing.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::toml_text;

/// The catalogue that is used without `--catalog`.
pub(crate) const EMBEDDED: &str = include_str!("../../datasets.toml");

/// The version of the format that this engraft reads.
pub const VERSION: u32 = 1;

/// A whole catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Catalog {
    /// The format's version.
    pub version: u32,
    #[serde(rename = "dataset")]
    pub datasets: Vec<Dataset>,
}

/// Files of one publisher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Dataset {
    /// What it is called on the command line.
    pub name: String,
    /// What it is, in a line.
    pub about: String,
    /// Whether anybody may fetch it.
    pub access: Access,
    /// Its licence, or what is known of its terms.
    pub licence: String,
    /// The page to read first, and the place to get it where it cannot be fetched.
    pub page: String,
    /// What to cite.
    pub cite: Option<String>,
    /// For a licensed one: where a config expects it, below the data folder.
    pub place: Option<PathBuf>,
    /// The files of an open one.
    #[serde(default, rename = "file")]
    pub files: Vec<File>,
}

/// Whether anybody may fetch a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Access {
    /// Anybody, with the notice of its licence.
    Open,
    /// Those who have signed for it, at the publisher's.
    Licensed,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// Where it goes, below the data folder.
    pub path: PathBuf,
    /// Where it comes from.
    pub url: String,
    /// Its length, where that is known.
    pub bytes: Option<u64>,
    /// SHA-256 as 64 hexadecimal digits, where that is known.
    pub sha256: Option<String>,
}

impl Access {
    /// As the file has it.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Access::Open => "open",
            Access::Licensed => "licensed",
        }
    }
}

impl Dataset {
    /// The length of all files together, if that of each is known.
    #[must_use]
    pub(crate) fn bytes(&self) -> Option<u64> {
        self.files.iter().map(|file| file.bytes).sum()
    }

    fn problem(&self) -> Option<String> {
        let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || !self.name.chars().all(known) {
            return Some("expected a name of lower-case letters, digits and `-`".to_owned());
        }
        match (self.access, self.files.is_empty(), &self.place) {
            (Access::Open, true, _) => return Some("it is open but has no file".to_owned()),
            (Access::Licensed, false, _) => {
                return Some("it is licensed: no file of it may be fetched".to_owned());
            }
            (Access::Licensed, true, None) => {
                return Some("it is licensed: `place` must say where its user puts it".to_owned());
            }
            _ => {}
        }
        let below = |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_)));
        let hex = |text: &str| {
            text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        };
        self.files.iter().find_map(|file| {
            let path = file.path.display();
            if file.path.as_os_str().is_empty() || !below(&file.path) {
                return Some(format!("path {path:?} does not lie below the data folder"));
            }
            if file.sha256.as_deref().is_some_and(|text| !hex(text)) {
                return Some(format!("{path}: sha256: expected 64 hexadecimal digits in lower case"));
            }
            store::location::Location::parse(&file.url).err().map(|error| format!("{path}: {error}"))
        })
    }
}

impl Catalog {
    /// Reads the catalogue at `file`, or the embedded one.
    ///
    /// # Errors
    /// When the file cannot be read, a key is unknown or missing, or an entry is invalid.
    pub(crate) fn load(file: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = file else { return Self::parse("the embedded catalogue", EMBEDDED) };
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("{}: cannot read the catalogue", path.display()))?;
        Self::parse(&path.display().to_string(), &text)
    }

    fn parse(name: &str, text: &str) -> anyhow::Result<Self> {
        let wrong = |problem: String| anyhow::anyhow!("{name}: {}", problem.trim_end());
        toml_text::bounded(text).map_err(wrong)?;
        let catalog: Self = toml::from_str(text).map_err(|e| wrong(toml_text::told(text, &e)))?;
        if catalog.version != VERSION {
            return Err(wrong(format!(
                "version {}, but this engraft reads version {VERSION}",
                catalog.version
            )));
        }
        let entry =
            |dataset: &Dataset, problem: String| wrong(format!("dataset `{}`: {problem}", dataset.name));
        let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
        for dataset in &catalog.datasets {
            if let Some(problem) = dataset.problem() {
                return Err(entry(dataset, problem));
            }
            if !names.insert(&dataset.name) {
                return Err(entry(dataset, "another dataset has its name".to_owned()));
            }
            if let Some(file) = dataset.files.iter().find(|file| !paths.insert(&file.path)) {
                return Err(entry(dataset, format!("another file goes to {}", file.path.display())));
            }
            let reserved = |file: &&File| {
                [".part", ".part.json"].iter().any(|end| file.path.to_string_lossy().ends_with(end))
            };
            if let Some(file) = dataset.files.iter().find(reserved) {
                let path = file.path.display();
                return Err(entry(
                    dataset,
                    format!("{path}: names that end in .part or .part.json are those of unfinished files"),
                ));
            }
        }
        Ok(catalog)
    }

    /// The datasets of these names, in the catalogue's order.
    ///
    /// # Errors
    /// When there is none of a name.
    pub(crate) fn named(&self, names: &[String]) -> anyhow::Result<Vec<&Dataset>> {
        let is_known = |name: &&String| self.datasets.iter().any(|dataset| dataset.name == **name);
        if let Some(name) = names.iter().find(|name| !is_known(name)) {
            let known: Vec<&str> = self.datasets.iter().map(|dataset| dataset.name.as_str()).collect();
            anyhow::bail!("there is no dataset `{name}`; the catalogue has: {}", known.join(", "));
        }
        Ok(self.datasets.iter().filter(|dataset| names.contains(&dataset.name)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = r#"
        version = 1
        [[dataset]]
        name = "one"
        about = "a"
        access = "open"
        licence = "l"
        page = "https://host"
        [[dataset.file]]
        path = "one/x.tsv"
        url = "https://host/x.tsv"
    "#;

    #[test]
    fn the_embedded_catalogue_is_sound_and_names_what_the_configs_read() {
        let catalog = Catalog::load(None).unwrap();
        let paths: Vec<&Path> =
            catalog.datasets.iter().flat_map(|set| &set.files).map(|file| file.path.as_path()).collect();
        for config in [include_str!("../../configs/open.toml"), include_str!("../../configs/kg-bert.toml")] {
            let read = config.lines().filter_map(|line| line.split_once(" = \"")?.1.split('"').next());
            for path in read.filter(|path| path.contains('/')) {
                assert!(paths.iter().any(|known| known.starts_with(path)), "{path} cannot be fetched");
            }
        }
        for licensed in catalog.datasets.iter().filter(|set| set.access == Access::Licensed) {
            assert!(licensed.page.starts_with("https://"), "{}", licensed.name);
        }
    }

    #[test]
    fn an_entry_that_cannot_be_meant_is_named() {
        assert_eq!(Catalog::parse("c", ONE).unwrap().datasets[0].bytes(), None);
        let refused =
            |from: &str, to: &str| Catalog::parse("c", &ONE.replace(from, to)).unwrap_err().to_string();
        let error = refused("one/x.tsv", "../x.tsv");
        assert!(error.contains("`one`") && error.contains("below the data folder"), "{error}");
        assert!(refused("https://host/x.tsv", "ftp://host/x").contains("s3://"));
        assert!(refused("\"open\"", "\"licensed\"").contains("no file of it"));
        assert!(refused("version = 1", "version = 2").contains("reads version 1"));
        let error = refused("about", "abuot");
        assert!(error.contains("line 5: ") && error.contains("`abuot`"), "{error}");
        for broken in
            ["https://host/x?sig=hidden", "\"https://host/x\"\nbytes = \"https://host/x?sig=hidden\""]
        {
            let error = refused("\"https://host/x.tsv\"", broken);
            assert!(error.contains("line 1") && !error.contains("hidden"), "{error}");
        }
        let twice = format!("{ONE}sha256 = \"AB\"");
        assert!(Catalog::parse("c", &twice).unwrap_err().to_string().contains("64 hexadecimal digits"));
        let twice = format!("{ONE}{}", ONE.replace("version = 1", ""));
        assert!(Catalog::parse("c", &twice).unwrap_err().to_string().contains("its name"));
        let error = Catalog::parse("c", ONE).unwrap().named(&["tow".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("`tow`") && error.contains("one"), "{error}");
    }
}
