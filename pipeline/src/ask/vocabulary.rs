//! The vocabulary in a model's folder, under the names that `transformers` gives it. Knows no weights.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use kg::whole::write_whole;
use model::checkpoint::digests::{TOKENIZER_FILE as CONFIG, VOCABULARY_FILES as FILES};
use model::checkpoint::read_settings;
use model::shown::shown;
use serde::Deserialize;
use serde_json::json;
use tasks::token::encode::{Case, Vocabulary};

/// The key of [`CONFIG`] that says whether case is kept.
#[derive(Deserialize)]
struct Said {
    do_lower_case: Option<bool>,
}

/// Puts a vocabulary into a model's folder so that `transformers.AutoTokenizer` reads it. `most` is the number of positions.
///
/// # Errors
/// When a file cannot be read or written.
pub fn add(folder: &Path, vocabulary: &Path, case: Case, most: usize) -> anyhow::Result<()> {
    let is_json = vocabulary.extension().is_some_and(|ending| ending == "json");
    let bytes = std::fs::read(vocabulary).with_context(|| vocabulary.display().to_string())?;
    write_whole(&folder.join(FILES[usize::from(!is_json)]), &bytes)?;
    let said = if is_json {
        json!({"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": most})
    } else {
        let lower = case == Case::Uncased;
        json!({"tokenizer_class": "BertTokenizer", "do_lower_case": lower, "model_max_length": most})
    };
    Ok(write_whole(&folder.join(CONFIG), &serde_json::to_vec_pretty(&said)?)?)
}

/// Where the vocabulary of a model's folder lies.
///
/// # Errors
/// When there is none.
pub fn find(folder: &Path) -> anyhow::Result<PathBuf> {
    let found = FILES.iter().map(|name| folder.join(name)).find(|path| path.symlink_metadata().is_ok());
    let found = found.with_context(|| {
        format!(
            "{}: neither {} is there; name the vocabulary with --vocabulary FILE",
            folder.display(),
            FILES.join(" nor ")
        )
    })?;
    // A pipe might never say anything.
    anyhow::ensure!(found.is_file(), "{}: it is no regular file, expected a vocabulary", found.display());
    Ok(found)
}

/// The vocabulary of a model's folder, or the one at `given`.
///
/// # Errors
/// When there is none, or it is damaged.
pub fn of_folder(folder: &Path, given: Option<&Path>) -> anyhow::Result<Vocabulary> {
    let path = match given {
        Some(path) => path.to_owned(),
        None => find(folder)?,
    };
    let config = folder.join(CONFIG);
    // As `BertTokenizer` has it where nothing is said.
    let mut case = Case::Uncased;
    if config.symlink_metadata().is_ok() {
        let said: Said = serde_json::from_slice(&read_settings(&config)?)
            .map_err(|error| anyhow::anyhow!("{}: {}", config.display(), shown(&error.to_string())))?;
        if said.do_lower_case == Some(false) {
            case = Case::Cased;
        }
    }
    Ok(Vocabulary::load(&path, case)?)
}
