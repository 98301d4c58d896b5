//! How a text is normalised before it is cut into words, and what a model's `tokenizer_config.json` says of it.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::{NormalizedString, Normalizer, Tokenizer};

use text::word::Case;

use crate::Error;

/// The settings of BERT's normaliser; control characters are always cleaned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Texts are lower-cased (`do_lower_case`).
    pub lowercase: bool,
    /// Accents are stripped (`strip_accents`).
    pub strip_accents: bool,
    /// Each CJK character is a word of its own (`tokenize_chinese_chars`).
    pub chinese: bool,
}

impl From<Case> for Rule {
    /// As BERT's own vocabularies: accents are stripped where case is.
    fn from(case: Case) -> Self {
        let lowercase = case == Case::Uncased;
        Self { lowercase, strip_accents: lowercase, chinese: true }
    }
}

impl Rule {
    /// Whether upper and lower case are told apart.
    #[must_use]
    pub fn case(self) -> Case {
        if self.lowercase { Case::Uncased } else { Case::Cased }
    }

    pub(super) fn normalizer(self) -> BertNormalizer {
        BertNormalizer::new(true, self.chinese, Some(self.strip_accents), self.lowercase)
    }

    /// What the normaliser of a `tokenizer.json` does, told by what it makes of a letter of each kind: it may be put together in many ways.
    pub(super) fn of(tokenizer: &Tokenizer) -> Self {
        let made = |text: &str| {
            let mut normalized = NormalizedString::from(text);
            let done = tokenizer.get_normalizer().is_none_or(|all| all.normalize(&mut normalized).is_ok());
            if done { normalized.get().to_owned() } else { String::new() }
        };
        // An accent may have become a character of its own (NFD), which is not stripping it.
        Self {
            lowercase: made("A") == "a", strip_accents: made("é") == "e", chinese: made("中") == " 中 "
        }
    }
}

/// What a `tokenizer_config.json` says, as far as token ids depend on it. What it does not say, it leaves to the vocabulary.
#[derive(Debug, Clone)]
pub struct Said {
    path: PathBuf,
    keys: Keys,
}

/// Its keys, as `transformers` names them.
#[derive(Debug, Clone, Default, Deserialize)]
struct Keys {
    do_lower_case: Option<bool>,
    strip_accents: Option<bool>,
    tokenize_chinese_chars: Option<bool>,
    do_basic_tokenize: Option<bool>,
    never_split: Option<Value>,
    word_tokenizer_type: Option<String>,
}

impl Said {
    /// What the file at `path` says; `None` where there is none.
    ///
    /// # Errors
    /// When it cannot be read, or asks for words that are not BERT's.
    pub fn read(path: &Path) -> Result<Option<Self>, Error> {
        let unread = |error: &dyn Display| {
            Error::at(path, format!("cannot read what the model's tokenizer does: {error}"), "")
        };
        let bytes = match super::special::read(path) {
            Ok(bytes) => bytes,
            // A link to nothing is something.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && path.symlink_metadata().is_err() => {
                return Ok(None);
            }
            Err(error) => return Err(unread(&error)),
        };
        let keys: Keys = serde_json::from_slice(&bytes).map_err(|error| unread(&error))?;
        let unsupported = |key: &str, said: String, expected: &str| {
            let (problem, why) =
                ("is not supported, expected", "texts would be cut into other words than the model's");
            Err(Error::at(path, format!("{key} = {said} {problem} {expected}: {why}"), ""))
        };
        if keys.do_basic_tokenize == Some(false) {
            return unsupported("do_basic_tokenize", "false".to_owned(), "true");
        }
        if let Some(kind) = keys.word_tokenizer_type.as_ref().filter(|kind| *kind != "basic") {
            return unsupported("word_tokenizer_type", kind.clone(), "\"basic\"");
        }
        match &keys.never_split {
            None | Some(Value::Null) => {}
            Some(Value::Array(words)) if words.is_empty() => {}
            Some(words) => return unsupported("never_split", words.to_string(), "none"),
        }
        Ok(Some(Self { path: path.to_owned(), keys }))
    }

    /// The rule for a `vocab.txt` beside it, where `case` is what else is said of case.
    ///
    /// # Errors
    /// When the two differ.
    pub fn rule(&self, case: Option<Case>) -> Result<Rule, Error> {
        // As `BertTokenizer` has it where nothing is said.
        let otherwise = case.unwrap_or(Case::Uncased);
        let lowercase = self.keys.do_lower_case.unwrap_or(otherwise == Case::Uncased);
        let mut rule = Rule::from(if lowercase { Case::Uncased } else { Case::Cased });
        rule.strip_accents = self.keys.strip_accents.unwrap_or(rule.strip_accents);
        rule.chinese = self.keys.tokenize_chinese_chars.unwrap_or(rule.chinese);
        match case.filter(|case| *case != rule.case()) {
            None => Ok(rule),
            Some(case) => Err(self.cases(case)),
        }
    }

    /// Refuses a vocabulary of another rule.
    ///
    /// # Errors
    /// Names the first key that says otherwise.
    pub fn check(&self, rule: Rule) -> Result<(), Error> {
        if self.keys.do_lower_case.is_some_and(|lower| lower != rule.lowercase) {
            return Err(self.cases(rule.case()));
        }
        let others = [
            ("strip_accents", self.keys.strip_accents, rule.strip_accents),
            ("tokenize_chinese_chars", self.keys.tokenize_chinese_chars, rule.chinese),
        ];
        for (key, said, own) in others {
            if let Some(said) = said.filter(|said| *said != own) {
                return Err(self
                    .contradicts(&format!("{key} = {said}"), &format!("the vocabulary is read with {own}")));
            }
        }
        Ok(())
    }

    fn cases(&self, case: Case) -> Error {
        let found = match case {
            Case::Uncased => "the vocabulary is read as \"uncased\", which lower-cases texts",
            Case::Cased => "the vocabulary is read as \"cased\", which keeps capitals",
        };
        self.contradicts(&format!("do_lower_case = {}", case == Case::Cased), found)
    }

    /// The file says something else than the vocabulary.
    fn contradicts(&self, said: &str, found: &str) -> Error {
        let why = "the model would read other tokens than it was trained on";
        let remedy = "say the same in both (in a config: vocabulary.case, vocabulary.file), or let the config have its way with vocabulary.contradiction = \"config_decides\"";
        Error::at(&self.path, format!("{said}, but {found}: {why}"), remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::super::encode::Vocabulary;
    use super::*;

    fn said(json: &str) -> Result<Said, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokenizer_config.json");
        base::whole::write_whole(&path, json.as_bytes()).unwrap();
        Ok(Said::read(&path)?.unwrap())
    }

    #[test]
    fn silent_15_what_the_model_says_decides_and_another_case_is_refused() {
        let cased = said(r#"{"do_lower_case": false}"#).unwrap();
        assert_eq!(cased.rule(None).unwrap(), Rule::from(Case::Cased));
        assert_eq!(cased.rule(Some(Case::Cased)).unwrap(), Rule::from(Case::Cased));
        let error = cased.rule(Some(Case::Uncased)).unwrap_err().to_string();
        assert!(error.contains("do_lower_case = false") && error.contains("lower-cases texts"), "{error}");
        assert!(
            cased.check(Rule::from(Case::Uncased)).is_err() && cased.check(Rule::from(Case::Cased)).is_ok()
        );
        let error =
            said(r#"{"do_lower_case": true}"#).unwrap().rule(Some(Case::Cased)).unwrap_err().to_string();
        assert!(error.contains("do_lower_case = true") && error.contains("keeps capitals"), "{error}");
        // What is not said is no contradiction.
        assert_eq!(said("{}").unwrap().rule(Some(Case::Cased)).unwrap(), Rule::from(Case::Cased));
        let accents = said(r#"{"strip_accents": false}"#).unwrap();
        let error = accents.check(Rule::from(Case::Uncased)).unwrap_err().to_string();
        assert!(error.contains("strip_accents = false, but the vocabulary is read with true"), "{error}");
        assert!(Said::read(Path::new("/nowhere/tokenizer_config.json")).unwrap().is_none());
    }

    #[test]
    fn silent_15_accents_stay_where_the_model_keeps_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vocab.txt");
        base::whole::write_whole(&path, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ne\né\n中\n中中\n".as_bytes())
            .unwrap();
        let read = |json: &str| {
            let rule = said(json).unwrap().rule(Some(Case::Uncased)).unwrap();
            let vocabulary = Vocabulary::load(&path, rule).unwrap();
            assert_eq!(vocabulary.rule(), rule);
            vocabulary
        };
        let plain = read("{}");
        assert_eq!((plain.encode("É").unwrap(), plain.splits()), (vec![5], Some(Case::Uncased)));
        assert_eq!(read(r#"{"strip_accents": null}"#).encode("É").unwrap(), [5]);
        let kept = read(r#"{"strip_accents": false}"#);
        assert_eq!((kept.encode("É").unwrap(), kept.splits()), (vec![6], None));
        assert_eq!(plain.encode("中中").unwrap(), [7, 7]);
        assert_eq!(read(r#"{"tokenize_chinese_chars": false}"#).encode("中中").unwrap(), [8]);
    }

    #[test]
    fn silent_15_words_that_are_not_berts_are_refused() {
        let refused = |json: &str| said(json).unwrap_err().to_string();
        assert!(
            refused(r#"{"do_basic_tokenize": false}"#).contains("do_basic_tokenize = false is not supported")
        );
        assert!(refused(r#"{"never_split": ["a"]}"#).contains("never_split"));
        assert!(refused(r#"{"word_tokenizer_type": "mecab"}"#).contains("expected \"basic\""));
        assert!(refused("[").contains("cannot read what the model's tokenizer does"));
        assert!(
            said(r#"{"never_split": null, "do_basic_tokenize": true, "unk_token": {"content": "[UNK]"}}"#)
                .is_ok()
        );
    }

    #[test]
    fn silent_15_a_vocabulary_of_capitals_is_out_of_reach_of_lower_case() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vocab.txt");
        base::whole::write_whole(&path, b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nback\nBack\n##Full\n").unwrap();
        let share = |case: Case| Vocabulary::load(&path, case).unwrap().out_of_reach();
        assert_eq!((share(Case::Uncased), share(Case::Cased)), (0.25, 0.0));
    }
}
