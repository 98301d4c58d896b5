//! Which config an output folder belongs to, so that a run with another one does not replace what lies there unasked.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base::whole::write_with_folder;
use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::error::Error;

/// The version of the file; the table is in docs/formats.md.
pub(crate) const VERSION: u32 = 1;

/// What the names of presets begin with, as origins.
pub(crate) const PRESET: &str = "preset ";

/// Where stages come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// What it is called, as the user has said it.
    pub name: String,
    /// The absolute path of the file; none of what is embedded.
    pub path: Option<PathBuf>,
    /// The digest of its contents.
    pub blake3: Digest,
}

/// What becomes of an output folder that belongs to another origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// It is left alone.
    Respect,
    /// It is taken over.
    Replace,
}

/// What the file says.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Record {
    format: u32,
    config: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    blake3: Digest,
}

impl Origin {
    /// Fails if what the file at `path` remembers is another origin, unless that is to be replaced. One that does not exist, as
    /// before there was such a file, remembers none.
    ///
    /// # Errors
    /// When it is another, or the file cannot be read.
    pub(crate) fn admit(&self, path: &Path, claim: Claim) -> Result<(), Error> {
        let Some(was) = read(path)? else { return Ok(()) };
        if claim == Claim::Replace || self.is(&was) {
            return Ok(());
        }
        let called =
            |name: &str, path: bool| if path { format!("the config {name}") } else { name.to_owned() };
        let remedy = match (&was.path, was.config.strip_prefix(PRESET)) {
            (Some(_), _) => format!("say --config {}", was.config),
            (None, Some(preset)) => format!("say --preset {preset}"),
            (None, None) if self.name.starts_with(PRESET) => {
                "leave --preset out, in a folder without an engraft.toml".to_owned()
            }
            (None, None) => "leave --config out".to_owned(),
        };
        let out = path.parent().unwrap_or(Path::new(".")).display().to_string();
        let (was, now) = (called(&was.config, was.path.is_some()), called(&self.name, self.path.is_some()));
        Err(Error::new(format!(
            "{out} was made with {was}, and this is {now}, which would replace or remove what lies there: {remedy}, choose another \
             folder with --out, or say `run --replace` to have what the two name alike made anew"
        )))
    }

    /// Has the file at `path` remember this origin.
    ///
    /// # Errors
    /// When the file system refuses.
    pub(crate) fn remember(&self, path: &Path) -> Result<(), Error> {
        let record = self.record();
        if read(path).is_ok_and(|was| was.as_ref() == Some(&record)) {
            return Ok(());
        }
        let written = serde_json::to_vec(&record).map_err(io::Error::from);
        let written = written.and_then(|text| write_with_folder(path, &text));
        written.map_err(Error::at(path))
    }

    /// Whether it is the same file, edited or not, or one that says the same, such as the same file elsewhere.
    fn is(&self, was: &Record) -> bool {
        let now = self.record();
        let same = if now.path.is_some() {
            now.path == was.path
        } else {
            was.path.is_none() && now.config == was.config
        };
        same || now.blake3 == was.blake3
    }

    fn record(&self) -> Record {
        let path = self.path.as_ref().map(|path| path.to_string_lossy().into_owned());
        Record { format: VERSION, config: self.name.clone(), path, blake3: self.blake3 }
    }
}

fn read(path: &Path) -> Result<Option<Record>, Error> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            let out = path.parent().unwrap_or(path).display();
            return Err(Error::new(format!(
                "{out} is a file, expected a folder: choose another one with --out"
            )));
        }
        Err(cause) => return Err(Error::at(path)(cause)),
    };
    let damaged = |problem: String| {
        Error::new(format!(
            "{}: this does not say which config the folder belongs to ({problem}): delete the file to have the next run say it anew",
            path.display()
        ))
    };
    let record: Record = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
    if record.format != VERSION {
        return Err(damaged(format!("format {}, but this engraft reads format {VERSION}", record.format)));
    }
    Ok(Some(record))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Settings;
    use crate::engine::testing::{run, settings, stage, try_run};
    use tempfile::tempdir;

    fn origin(name: &str, text: &str) -> Option<Origin> {
        let path = (!name.is_empty()).then(|| Path::new("/configs").join(name));
        Some(Origin { name: name.to_owned(), path, blake3: Digest::of(text.as_bytes()) })
    }

    fn tries(out: &Path, name: &str, text: &str, claim: Claim) -> Result<(), String> {
        let with = Settings { origin: origin(name, text), claim, ..settings(out) };
        try_run(with, [stage("a").field("say", text)]).map(|_| ()).map_err(|error| error.to_string())
    }

    #[test]
    fn silent_08_another_config_is_refused_by_name_and_an_edited_or_moved_one_is_the_same() {
        let dir = tempdir().unwrap();
        let text = || fs::read_to_string(dir.path().join("a/out.txt")).unwrap();
        tries(dir.path(), "mine.toml", "one", Claim::Respect).unwrap();
        tries(dir.path(), "mine.toml", "edited", Claim::Respect).unwrap();
        tries(dir.path(), "moved.toml", "edited", Claim::Respect).unwrap();
        for other in ["", "other.toml"] {
            let error = tries(dir.path(), other, "two", Claim::Respect).unwrap_err();
            assert!(error.contains("moved.toml") && error.contains("--replace"), "{error}");
            assert!(error.contains("say --config moved.toml"), "{error}");
            assert_eq!(text(), "edited");
        }
        tries(dir.path(), "", "embedded", Claim::Replace).unwrap();
        assert_eq!(text(), "embedded");
        tries(dir.path(), "", "embedded, of a later version", Claim::Respect).unwrap();
        let error = tries(dir.path(), "moved.toml", "two", Claim::Respect).unwrap_err();
        assert!(error.contains("leave --config out"), "{error}");
    }

    #[test]
    fn silent_08_a_folder_that_remembers_nothing_is_adopted_and_a_damaged_memory_is_said() {
        let dir = tempdir().unwrap();
        run(dir.path(), [stage("a")]);
        tries(dir.path(), "mine.toml", "one", Claim::Respect).unwrap();
        let path = dir.path().join(".config.json");
        write_with_folder(&path, b"{\"format\":2}").unwrap();
        let error = tries(dir.path(), "mine.toml", "one", Claim::Respect).unwrap_err();
        assert!(error.contains(".config.json") && error.contains("delete the file"), "{error}");
    }
}
