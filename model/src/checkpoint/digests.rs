//! The digests of a model's folder: what each file of it was when it was written. A folder that has them is compared with them whenever it is
//! read; one without is somebody else's, as downloaded, and is taken as it is.

use std::collections::BTreeMap;
use std::path::Path;

use base::self_check::{self, Kind, SelfChecked};
use base::visible::shortened;
use batch::family::{TOKENIZER_FILE, VOCABULARY_FILES};
use serde::{Deserialize, Serialize};

use super::adapters::{ADAPTERS_FILE, ADAPTERS_WEIGHTS_FILE};
use super::proof::Proof;
use super::{CONFIG_FILE, OUTPUTS_FILE, OUTPUTS_WEIGHTS_FILE, WEIGHTS_FILE, error, whole};
use crate::Error;

/// The file of digests in a model's folder, written last.
pub const DIGESTS_FILE: &str = "digests.json";
/// The file that says what a fine-tuned model is asked. Nobody but engraft writes one.
pub const TASK_FILE: &str = "task.json";

/// All files that engraft reads of a folder with digests. Others may lie there: they change no answer.
const READ: [&str; 11] = [
    CONFIG_FILE,
    WEIGHTS_FILE,
    OUTPUTS_FILE,
    OUTPUTS_WEIGHTS_FILE,
    ADAPTERS_FILE,
    ADAPTERS_WEIGHTS_FILE,
    TASK_FILE,
    TOKENIZER_FILE,
    VOCABULARY_FILES[0],
    VOCABULARY_FILES[1],
    VOCABULARY_FILES[2],
];

static KIND: Kind = Kind {
    format: "engraft-model",
    version: 1,
    folder: "a model's folder",
    again: "copy the folder again from where it was whole, or make the model again",
    command: "`engraft run`",
};

/// [`DIGESTS_FILE`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Digests {
    format: String,
    version: u32,
    xxh3: String,
    files: BTreeMap<String, Proof>,
}

impl SelfChecked for Digests {
    const KIND: &'static Kind = &KIND;

    fn check_mut(&mut self) -> &mut String {
        &mut self.xxh3
    }
}

/// Compares the files of a folder with its digests.
///
/// # Errors
/// Names the first file that is missing, another than was written, or read by engraft and not among them; and a fine-tuned model's folder that has
/// no digests.
pub fn verify(dir: &Path) -> Result<(), Error> {
    let Some(digests) = read(dir)? else {
        let path = dir.join(TASK_FILE);
        let problem = format!(
            "it has no {DIGESTS_FILE} beside it, which engraft writes with every fine-tuned model, so nobody can tell whether its files are what was written: copy the folder whole, or, if an older engraft made it, fine-tune again (`engraft run`)"
        );
        return if there(&path)? { Err(error::in_file(path, problem)) } else { Ok(()) };
    };
    compare(dir, &digests)?;
    let unlisted = READ.iter().filter(|name| !digests.files.contains_key(**name)).map(|name| dir.join(name));
    for path in unlisted {
        if there(&path)? {
            return Err(error::altered(path, "it was not there when the folder was finished".to_owned()));
        }
    }
    Ok(())
}

/// Writes the digests of what lies in a folder; call it when everything is in place. What had digests before must be what it was.
///
/// # Errors
/// When a file has changed since it was written, or the disk refuses.
pub fn seal(dir: &Path) -> Result<(), Error> {
    unchanged(dir)?;
    record(dir)
}

/// Writes another content of a file, and all digests anew. What had digests before must be what it was.
pub(super) fn rewrite(dir: &Path, name: &str, content: &[u8]) -> Result<(), Error> {
    unchanged(dir)?;
    whole::write(&dir.join(name), content)?;
    record(dir)
}

/// Refuses files that are not what their digests say, where there are digests.
fn unchanged(dir: &Path) -> Result<(), Error> {
    read(dir)?.map_or(Ok(()), |before| compare(dir, &before))
}

fn record(dir: &Path) -> Result<(), Error> {
    let mut files = BTreeMap::new();
    for name in READ {
        let path = dir.join(name);
        if there(&path)? {
            files.insert(name.to_owned(), proof(&path)?);
        }
    }
    let (format, version) = (KIND.format.to_owned(), KIND.version);
    let mut digests = Digests { format, version, xxh3: String::new(), files };
    Ok(self_check::write(&dir.join(DIGESTS_FILE), &mut digests)?)
}

fn read(dir: &Path) -> Result<Option<Digests>, Error> {
    let path = dir.join(DIGESTS_FILE);
    if !there(&path)? {
        return Ok(None);
    }
    Ok(Some(self_check::parse(whole::read_settings(&path)?, &path)?))
}

/// Whether there is anything of this name.
fn there(path: &Path) -> Result<bool, Error> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(Error::File { path: path.to_path_buf(), source }),
    }
}

fn compare(dir: &Path, digests: &Digests) -> Result<(), Error> {
    for (name, expected) in &digests.files {
        let path = dir.join(DIGESTS_FILE);
        if !READ.contains(&name.as_str()) {
            let problem = format!("it has a file {}, which no model has", shortened(name));
            return Err(error::altered(path, problem));
        }
        let path = dir.join(name);
        if !there(&path)? {
            return Err(error::altered(path, "it is gone".to_owned()));
        }
        if let Some(problem) = expected.differs(&proof(&path)?) {
            return Err(error::altered(path, problem));
        }
    }
    Ok(())
}

/// What a file is now; one without an end is refused.
fn proof(path: &Path) -> Result<Proof, Error> {
    whole::open(path)?;
    Proof::of_file(path).map_err(Error::file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in [CONFIG_FILE, WEIGHTS_FILE, TASK_FILE, VOCABULARY_FILES[1]] {
            whole::write(&dir.path().join(name), name.as_bytes()).unwrap();
        }
        seal(dir.path()).unwrap();
        dir
    }

    fn refused(dir: &Path) -> String {
        verify(dir).unwrap_err().to_string()
    }

    #[test]
    fn silent_05_any_flipped_bit_of_a_sealed_folder_is_found_and_the_file_named() {
        let dir = folder();
        verify(dir.path()).unwrap();
        for name in [CONFIG_FILE, WEIGHTS_FILE, TASK_FILE, VOCABULARY_FILES[1], DIGESTS_FILE] {
            let path = dir.path().join(name);
            let whole = std::fs::read(&path).unwrap();
            for at in 0..whole.len() {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << (at % 8);
                whole::write(&path, &damaged).unwrap();
                let text = refused(dir.path());
                assert!(text.contains(name), "{name} byte {at}: {text}");
            }
            whole::write(&path, &whole[..whole.len() - 1]).unwrap();
            assert!(refused(dir.path()).contains(name));
            std::fs::remove_file(&path).unwrap();
            if name != DIGESTS_FILE {
                assert!(refused(dir.path()).contains("it is gone"), "{name}");
            }
            whole::write(&path, &whole).unwrap();
        }
        verify(dir.path()).unwrap();
    }

    #[test]
    fn silent_05_digests_cannot_be_left_out_or_passed_by() {
        let dir = folder();
        let at = |name: &str| dir.path().join(name);
        // What is no part of a model may lie beside it; what would be read instead of a part may not.
        whole::write(&at("README.md"), b"mine").unwrap();
        verify(dir.path()).unwrap();
        whole::write(&at(VOCABULARY_FILES[0]), b"{}").unwrap();
        let text = refused(dir.path());
        assert!(text.contains("tokenizer.json") && text.contains("was not there when"), "{text}");
        std::fs::remove_file(at(VOCABULARY_FILES[0])).unwrap();
        // A list of files elsewhere is no reason to read them.
        let list = std::fs::read_to_string(at(DIGESTS_FILE)).unwrap();
        let mut forged: Digests = serde_json::from_str(&list).unwrap();
        let config = forged.files[CONFIG_FILE].clone();
        forged.files.insert("../../etc/passwd".to_owned(), config);
        self_check::write(&at(DIGESTS_FILE), &mut forged).unwrap();
        assert!(refused(dir.path()).contains("passwd, which no model has"));
        std::fs::remove_file(at(DIGESTS_FILE)).unwrap();
        let text = refused(dir.path());
        assert!(text.contains("task.json") && text.contains("digests.json"), "{text}");
        // A folder of somebody else's has neither.
        std::fs::remove_file(at(TASK_FILE)).unwrap();
        verify(dir.path()).unwrap();
    }

    #[test]
    fn silent_05_a_folder_is_not_sealed_over_damage() {
        let dir = folder();
        whole::write(&dir.path().join(OUTPUTS_FILE), b"{}").unwrap();
        seal(dir.path()).unwrap();
        verify(dir.path()).unwrap();
        whole::write(&dir.path().join(WEIGHTS_FILE), b"model.safetensorz").unwrap();
        assert!(seal(dir.path()).unwrap_err().to_string().contains("model.safetensors"));
    }
}
