//! The vocabulary in a model's folder, under the names that `transformers` gives it, and whether it is the one that is used.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use base::whole::write_whole;
use model::checkpoint::digests::VOCABULARY_FILES as FILES;
use serde_json::{Value, json};
use tasks::token::bpe;
use tasks::token::encode::{Case, Vocabulary, names_of_special, one_file};
use tasks::token::rule::{Rule, Said};

/// What `AutoTokenizer` reads beside the vocabulary.
pub(crate) use model::checkpoint::digests::TOKENIZER_FILE as CONFIG;

/// Entries with capitals that a lower-casing vocabulary may have; BERT's have none, and a cased one a third of all.
const OUT_OF_REACH: f64 = 0.01;

/// Puts a vocabulary, which lies at `path`, into a model's folder so that `transformers.AutoTokenizer` reads it alike. `most` is the number of
/// positions.
///
/// # Errors
/// When a file cannot be read or written.
pub(crate) fn add(folder: &Path, path: &Path, vocabulary: &Vocabulary, most: usize) -> anyhow::Result<()> {
    let (is_json, rule) = (is_json(path), vocabulary.rule());
    write_whole(&folder.join(FILES[usize::from(!is_json)]), &one_file(path)?)?;
    let mut said = if is_json {
        let [pad, unk, cls, sep, mask] = names_of_special(vocabulary.special().family);
        // A class for any tokenizer.json does not know which tokens are special.
        json!({"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": most,
               "pad_token": pad, "unk_token": unk, "cls_token": cls, "sep_token": sep, "mask_token": mask})
    } else {
        json!({"tokenizer_class": "BertTokenizer", "do_lower_case": rule.lowercase, "model_max_length": most})
    };
    if !is_json && rule != Rule::from(rule.case()) {
        said["strip_accents"] = rule.strip_accents.into();
        said["tokenize_chinese_chars"] = Value::from(rule.chinese);
    }
    Ok(write_whole(&folder.join(CONFIG), &serde_json::to_vec_pretty(&said)?)?)
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
pub(crate) fn find(folder: &Path) -> anyhow::Result<PathBuf> {
    let found = FILES.iter().map(|name| folder.join(name)).find(|path| is_one(path));
    let found = found.with_context(|| {
        format!(
            "{}: none of {} is there; name the vocabulary with --vocabulary FILE",
            folder.display(),
            FILES.join(", ")
        )
    })?;
    // A pipe might never say anything.
    anyhow::ensure!(found.is_file(), "{}: it is no regular file, expected a vocabulary", found.display());
    Ok(found)
}

/// Reads a vocabulary as the `tokenizer_config.json` of its model has it, where there is one, and `case`, where a config says that.
///
/// # Errors
/// When it is damaged, or what is said of it differs.
pub(crate) fn read(path: &Path, said: Option<&Said>, case: Option<Case>) -> anyhow::Result<Vocabulary> {
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
    let lost = vocabulary.out_of_reach();
    anyhow::ensure!(
        lost <= OUT_OF_REACH,
        "{}: {:.0} % of the entries have capitals, which no text has once it is lower-cased, so it is the vocabulary of a cased model: set vocabulary.case = \"cased\" (of a model's folder: \"do_lower_case\": false in its {CONFIG}), or, if the config is to have its way, vocabulary.contradiction = \"config_decides\"",
        path.display(),
        100.0 * lost
    );
    Ok(vocabulary)
}

/// Refuses a `tokenizer.json` whose own rule is of another case than the config's, which counts and maps go by.
///
/// # Errors
/// When the two differ.
pub(crate) fn of_case(path: &Path, vocabulary: &Vocabulary, case: Option<Case>) -> anyhow::Result<()> {
    let Some(case) = case else { return Ok(()) };
    let own = vocabulary.rule().case();
    let name = |case| if case == Case::Cased { "cased" } else { "uncased" };
    anyhow::ensure!(
        own == case,
        "{}: its own normaliser makes texts {:?}, but vocabulary.case = {:?}: set it to {:?}; a tokenizer.json brings its own rule, so for another name the model's vocab.txt",
        path.display(),
        name(own),
        name(case),
        name(own)
    );
    Ok(())
}

/// Refuses a vocabulary that is not that of the model in `folder`, as far as the folder says what its own is.
///
/// # Errors
/// When tokens or the rule of texts differ, or the folder's files cannot be read.
pub(crate) fn belongs(vocabulary: &Vocabulary, folder: &Path) -> anyhow::Result<()> {
    if let Some(said) = Said::read(&folder.join(CONFIG))? {
        said.check(vocabulary.rule())?;
    }
    for path in FILES.map(|name| folder.join(name)).into_iter().filter(|path| is_one(path) && path.is_file())
    {
        let own = Vocabulary::load(&path, vocabulary.rule())?;
        if let Some(id) = own.differs(vocabulary) {
            let name =
                |of: &Vocabulary| of.token(id).map_or("nothing".to_owned(), |token| format!("{token:?}"));
            anyhow::bail!(
                "{}: id {id} is {} there and {} in the vocabulary that is used: name the model's own (vocabulary.file), or let the config have its way with vocabulary.contradiction = \"config_decides\"",
                path.display(),
                name(&own),
                name(vocabulary)
            );
        }
        anyhow::ensure!(
            own.spells_as(vocabulary),
            "{}: its merges, or add_prefix_space, are not those of the vocabulary that is used, which would spell words otherwise than the model learned them: name this file (vocabulary.file), or let the config have its way with vocabulary.contradiction = \"config_decides\"",
            path.display()
        );
        let (own, used) = (own.rule(), vocabulary.rule());
        anyhow::ensure!(
            own == used,
            "{}: the model's tokenizer has {own:?}, and the vocabulary that is used {used:?}: it would read other tokens than it was trained on; set vocabulary.case, or name this file (vocabulary.file), or let the config have its way with vocabulary.contradiction = \"config_decides\"",
            path.display()
        );
    }
    Ok(())
}

/// The vocabulary of a model's folder, or the one at `given`.
///
/// # Errors
/// When there is none, or it is damaged, or what is said of it differs.
pub(crate) fn of_folder(folder: &Path, given: Option<&Path>) -> anyhow::Result<Vocabulary> {
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
