//! Which terms make a dictionary, and in which spellings.

use base::setting::InvalidSetting;
use kg::table::SemanticType;
use serde::{Deserialize, Serialize};

/// Which terms make a dictionary. A filter that drops a term is counted ([`super::Report`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Filters {
    /// Fewest letters and digits of a term.
    pub min_letters: usize,
    /// Most words of a term; punctuation is words by itself.
    pub max_words: usize,
    /// What becomes of terms without a letter.
    pub numbers: Numbers,
    /// Function words: a term of nothing but such, numbers and punctuation is dropped.
    pub stop_words: StopWords,
    /// Further words that name nothing by themselves (`disease`); a term of nothing but such and stop words is dropped.
    pub common_words: Vec<String>,
    /// What becomes of terms that name several entities.
    pub ambiguous: Ambiguous,
    /// Semantic types of the entities that are looked for.
    pub types: Types,
    /// Whether a term is also found in the other number of its last word.
    pub plurals: Plurals,
    /// Whether a term with commas (`Failure, Heart`) is also found inverted (`Heart Failure`).
    pub inverted: Inverted,
    /// What becomes of the `'s` behind a word, in terms and in texts.
    pub possessives: Possessives,
    /// Terms in upper case of at most so many letters are found only where the text is in upper case too (`ALL`, a leukaemia); they
    /// may then be stop words. Without it they are found in any case.
    pub upper_case: Option<usize>,
}

/// Words that name nothing by themselves, in names of diseases and symptoms.
const COMMON: [&str; 10] = [
    "disease",
    "diseases",
    "disorder",
    "disorders",
    "syndrome",
    "syndromes",
    "sign",
    "signs",
    "symptom",
    "symptoms",
];

impl Default for Filters {
    fn default() -> Self {
        Self {
            min_letters: 3,
            max_words: 12,
            numbers: Numbers::default(),
            stop_words: StopWords::default(),
            common_words: COMMON.map(str::to_owned).to_vec(),
            ambiguous: Ambiguous::default(),
            types: Types::default(),
            plurals: Plurals::default(),
            inverted: Inverted::default(),
            possessives: Possessives::default(),
            upper_case: Some(4),
        }
    }
}

/// What becomes of terms without a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Numbers {
    /// They are looked for.
    Keep,
    /// They are dropped.
    #[default]
    Drop,
}

/// A list of function words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopWords {
    /// Those of English ([`super::stop_words`]).
    #[default]
    English,
    /// No word.
    None,
}

/// What becomes of terms that name several entities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ambiguous {
    /// A mention means all of them.
    #[default]
    Keep,
    /// A term of more than so many is dropped.
    Drop(usize),
    /// A mention means the first so many, by id.
    First(usize),
}

/// Semantic types, each by its code (`T047`) or its name (`Disease or Syndrome`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Types {
    /// All entities, also those without a type.
    #[default]
    All,
    /// Entities with one of these types at least.
    Only(Vec<String>),
    /// Entities with none of these types.
    AllBut(Vec<String>),
}

impl Types {
    /// Whether entities of these types are looked for.
    #[must_use]
    pub fn allow(&self, types: &[SemanticType]) -> bool {
        let among = |list: &[String]| {
            types.iter().any(|t| list.iter().any(|l| *l == t.name || Some(l) == t.code.as_ref()))
        };
        match self {
            Types::All => true,
            Types::Only(list) => among(list),
            Types::AllBut(list) => !among(list),
        }
    }
}

/// Whether a term is also found in the other number of its last word. The rule knows English endings and no word:
///
/// - A last word of four ASCII letters or more that ends in `s`, but not in `ss`, `us` or `is`, is taken for a plural. Its singular
///   ends in `y` for `ies`; `osis` and `ysis` for `oses` and `yses`; loses `es` behind `ss`, `sh`, `ch`, `x` and `z`; otherwise `s`.
/// - Any other is taken for a singular. Its plural ends in `ses` for `sis`; `ies` for `y` behind a consonant; gains `es` behind `ss`,
///   `us`, `x`, `z`, `ch` and `sh`; otherwise `s`. One in `is` that is not in `sis` (`hepatitis`) has none.
///
/// A last word in upper case is taken for an abbreviation and has no other number (`AIDS`). What comes out may be no word (`diabete`),
/// which no text has. Where it is a term as written (of whatever entity), that term stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Plurals {
    /// Only in the number in which it is written.
    AsWritten,
    /// In both.
    #[default]
    Both,
}

/// Whether a term with commas is also found inverted: two to four parts between commas with a space behind are joined by
/// spaces, the last one first (`Leukemia, Myeloid, Acute` as `Acute Myeloid Leukemia`). One with `and` or `or` is an enumeration and
/// stays. Where what comes out is a term as written (of whatever entity), that term stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Inverted {
    /// Only as it is written.
    AsWritten,
    /// Both ways.
    #[default]
    Both,
}

/// What becomes of an apostrophe (`'` or `\u{2019}`) and an `s` behind it, if a word stands in front of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Possessives {
    /// They are words as any others.
    Keep,
    /// They are skipped in terms and in texts, so that `Parkinson Disease` is found in `Parkinson's disease` and vice versa.
    /// One behind the last word is no part of a mention.
    #[default]
    Drop,
}

impl Filters {
    /// Whether they can be used.
    ///
    /// # Errors
    /// When no term could pass.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        let (setting, remedy) = match self.ambiguous {
            _ if self.max_words == 0 => ("max_words", "the terms of MeSH have up to some 20 words"),
            Ambiguous::Drop(0) => ("ambiguous.drop", "1 drops all terms that name more than one entity"),
            Ambiguous::First(0) => ("ambiguous.first", "1 takes the entity with the smallest id"),
            _ => return Ok(()),
        };
        Err(InvalidSetting::new(setting, 0, format!("1 at least; {remedy}")))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Filters that drop no term of up to 20 words and add no spelling.
    pub(in crate::ner) fn as_written() -> Filters {
        Filters {
            min_letters: 1,
            max_words: 20,
            numbers: Numbers::Keep,
            stop_words: StopWords::None,
            common_words: Vec::new(),
            ambiguous: Ambiguous::Keep,
            types: Types::All,
            plurals: Plurals::AsWritten,
            inverted: Inverted::AsWritten,
            possessives: Possessives::Keep,
            upper_case: None,
        }
    }

    #[test]
    fn an_entity_is_allowed_by_code_or_name() {
        let finding = SemanticType { code: Some("T184".into()), name: "Sign or Symptom".into() };
        let role = SemanticType { code: None, name: "disease".into() };
        let only = Types::Only(vec!["T184".into(), "disease".into()]);
        assert!(only.allow(std::slice::from_ref(&finding)) && only.allow(std::slice::from_ref(&role)));
        assert!(!only.allow(&[]) && Types::AllBut(vec!["T184".into()]).allow(&[]));
        assert!(!Types::AllBut(vec!["Sign or Symptom".into()]).allow(&[role, finding]));
    }

    #[test]
    fn settings_are_read_as_they_are_written() {
        let json = r#"{"min_letters": 3, "max_words": 8, "numbers": "drop", "stop_words": "english", "common_words": ["disease"],
            "ambiguous": {"first": 2}, "types": {"all_but": ["T116"]}, "plurals": "both", "inverted": "both", "possessives": "drop", "upper_case": 4}"#;
        let mut filters: Filters = serde_json::from_str(json).unwrap();
        assert_eq!(filters.ambiguous, Ambiguous::First(2));
        assert_eq!(filters.types, Types::AllBut(vec!["T116".into()]));
        let again: Filters = serde_json::from_str(&serde_json::to_string(&filters).unwrap()).unwrap();
        assert_eq!(again, filters);
        assert!(serde_json::from_str::<Filters>(&json.replace("numbers", "number")).is_err());
        assert_eq!(filters.check(), Ok(()));
        filters.ambiguous = Ambiguous::Drop(0);
        assert_eq!(filters.check().unwrap_err().setting, "ambiguous.drop");
        filters.max_words = 0;
        assert_eq!(filters.check().unwrap_err().setting, "max_words");
    }
}
