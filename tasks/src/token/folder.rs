//! The vocabulary in a folder (a model's, shards'), under the names that `transformers` gives it, and whether it is the one that is used.

use std::path::{Path, PathBuf};

use base::whole::write_whole;
use serde_json::{Value, json};

pub use batch::family::TOKENIZER_FILE as CONFIG;
use batch::family::{Family, VOCABULARY_FILES as FILES};

use super::bpe;
use super::encode::{Case, Vocabulary, names_of_special, one_file};
use super::rule::{Rule, Said};
use crate::Error;

/// Entries with capitals that a lower-casing vocabulary may have; BERT's have none, and a cased one a third of all.
const OUT_OF_REACH: f64 = 0.01;

const CONFIG_DECIDES: &str = "let the config have its way with vocabulary.contradiction = \"config_decides\"";

/// Puts a vocabulary, which lies at `path`, into a folder so that `transformers.AutoTokenizer` reads it alike. `most` is the number of
/// positions, where a model has one.
///
/// # Errors
/// When a file cannot be read or written.
pub fn add(folder: &Path, path: &Path, vocabulary: &Vocabulary, most: Option<usize>) -> Result<(), Error> {
    let (is_json, rule) = (is_json(path), vocabulary.rule());
    write_whole(&folder.join(FILES[usize::from(!is_json)]), &one_file(path)?)?;
    let mut said = if is_json {
        let family = vocabulary.special().family;
        let [pad, unk, cls, sep, mask] = names_of_special(family);
        // Left out, `transformers` 5 gives this class no token types: both texts of a pair would be of the first.
        let inputs: &[&str] = match family {
            Family::Bert => &["input_ids", "token_type_ids", "attention_mask"],
            Family::Roberta => &["input_ids", "attention_mask"],
        };
        // A class for any tokenizer.json does not know which tokens are special.
        json!({"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": most, "model_input_names": inputs,
               "pad_token": pad, "unk_token": unk, "cls_token": cls, "sep_token": sep, "mask_token": mask})
    } else {
        json!({"tokenizer_class": "BertTokenizer", "do_lower_case": rule.lowercase, "model_max_length": most})
    };
    if let (None, Some(said)) = (most, said.as_object_mut()) {
        said.shift_remove("model_max_length");
    }
    if !is_json && rule != Rule::from(rule.case()) {
        said["strip_accents"] = rule.strip_accents.into();
        said["tokenize_chinese_chars"] = Value::from(rule.chinese);
    }
    Ok(write_whole(&folder.join(CONFIG), format!("{said:#}").as_bytes())?)
}

fn is_json(vocabulary: &Path) -> bool {
    vocabulary.extension().is_some_and(|ending| ending == "json")
}

/// Whether a vocabulary lies there; entries without merges are none of RoBERTa's.
fn is_one(path: &Path) -> bool {
    let is_there = |path: &Path| path.symlink_metadata().is_ok();
    is_there(path) && (!bpe::is_in_two_files(path) || is_there(&path.with_file_name(bpe::MERGES_FILE)))
}

/// Where the vocabulary of a model's folder lies.
///
/// # Errors
/// When there is none.
pub fn find(folder: &Path) -> Result<PathBuf, Error> {
    let found = FILES.iter().map(|name| folder.join(name)).find(|path| is_one(path));
    let found = found.ok_or_else(|| {
        let problem = format!("none of {} is there", FILES.join(", "));
        Error::at(folder, problem, "name the vocabulary (on the command line: --vocabulary FILE)")
    })?;
    // A pipe might never say anything.
    if !found.is_file() {
        return Err(Error::at(&found, "it is no regular file, expected a vocabulary", ""));
    }
    Ok(found)
}

/// Reads a vocabulary as the `tokenizer_config.json` of its model has it, where there is one, and `case`, where a config says that.
///
/// # Errors
/// When it is damaged, or what is said of it differs.
pub fn read(path: &Path, said: Option<&Said>, case: Option<Case>) -> Result<Vocabulary, Error> {
    // As `BertTokenizer` has it where nothing is said.
    let mut rule = Rule::from(case.unwrap_or(Case::Uncased));
    if let Some(said) = said.filter(|_| !is_json(path)) {
        rule = said.rule(case)?;
    }
    let vocabulary = Vocabulary::load(path, rule)?;
    if let Some(said) = said {
        said.check(vocabulary.rule())?;
    }
    of_case(path, &vocabulary, case)?;
    in_reach(path, &vocabulary)?;
    Ok(vocabulary)
}

/// Refuses a vocabulary of which texts cannot have many entries, since these have capitals and texts are lower-cased.
///
/// # Errors
/// Says how many, and what to set.
pub fn in_reach(path: &Path, vocabulary: &Vocabulary) -> Result<(), Error> {
    let lost = vocabulary.out_of_reach();
    if lost > OUT_OF_REACH {
        let problem = format!(
            "{:.0} % of the entries have capitals, which no text has once it is lower-cased, so it is the vocabulary of a cased model",
            100.0 * lost
        );
        let remedy = format!(
            "set vocabulary.case = \"cased\" (of a model's folder: \"do_lower_case\": false in its {CONFIG}), or, if the config is to have its way, vocabulary.contradiction = \"config_decides\""
        );
        return Err(Error::at(path, problem, remedy));
    }
    Ok(())
}

/// Refuses a `tokenizer.json` whose own rule is of another case than the config's, which counts and maps go by.
///
/// # Errors
/// When the two differ.
pub fn of_case(path: &Path, vocabulary: &Vocabulary, case: Option<Case>) -> Result<(), Error> {
    let Some(case) = case else { return Ok(()) };
    let own = vocabulary.rule().case();
    let name = |case| if case == Case::Cased { "cased" } else { "uncased" };
    if own == case {
        return Ok(());
    }
    let (own, case) = (name(own), name(case));
    let problem = format!("its own normaliser makes texts {own:?}, but vocabulary.case = {case:?}");
    let remedy = format!(
        "set it to {own:?}; a tokenizer.json brings its own rule, so for another name the model's vocab.txt"
    );
    Err(Error::at(path, problem, remedy))
}

/// Refuses a vocabulary that is not that of the model in `folder`, as far as the folder says what its own is.
///
/// # Errors
/// When tokens or the rule of texts differ, or the folder's files cannot be read.
pub fn belongs(vocabulary: &Vocabulary, folder: &Path) -> Result<(), Error> {
    if let Some(said) = Said::read(&folder.join(CONFIG))? {
        said.check(vocabulary.rule())?;
    }
    for path in FILES.map(|name| folder.join(name)).into_iter().filter(|path| is_one(path) && path.is_file())
    {
        let own = Vocabulary::load(&path, vocabulary.rule())?;
        if let Some(id) = own.differs(vocabulary) {
            let name =
                |of: &Vocabulary| of.token(id).map_or("nothing".to_owned(), |token| format!("{token:?}"));
            let problem = format!(
                "id {id} is {} there and {} in the vocabulary that is used",
                name(&own),
                name(vocabulary)
            );
            return Err(Error::at(
                &path,
                problem,
                format!("name the model's own (vocabulary.file), or {CONFIG_DECIDES}"),
            ));
        }
        if !own.spells_as(vocabulary) {
            let problem = "its merges, or add_prefix_space, are not those of the vocabulary that is used, which would spell words otherwise than the model learned them";
            return Err(Error::at(
                &path,
                problem,
                format!("name this file (vocabulary.file), or {CONFIG_DECIDES}"),
            ));
        }
        let (own, used) = (own.rule(), vocabulary.rule());
        if own != used {
            let problem = format!(
                "the model's tokenizer has {own:?}, and the vocabulary that is used {used:?}: it would read other tokens than it was trained on"
            );
            let remedy =
                format!("set vocabulary.case, or name this file (vocabulary.file), or {CONFIG_DECIDES}");
            return Err(Error::at(&path, problem, remedy));
        }
    }
    Ok(())
}

/// The vocabulary of a model's folder, or the one at `given`.
///
/// # Errors
/// When there is none, or it is damaged, or what is said of it differs.
pub fn of_folder(folder: &Path, given: Option<&Path>) -> Result<Vocabulary, Error> {
    let path = match given {
        Some(path) => path.to_owned(),
        None => find(folder)?,
    };
    let own = Said::read(&folder.join(CONFIG))?;
    let beside = Said::read(&path.with_file_name(CONFIG))?;
    let vocabulary = read(&path, own.as_ref().or(beside.as_ref()), None)?;
    if let Some(beside) = beside {
        beside.check(vocabulary.rule())?;
    }
    Ok(vocabulary)
}
