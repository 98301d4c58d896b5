//! Which terms make a dictionary, and in which spellings.

use base::setting::InvalidSetting;
use kg::table::SemanticType;
use serde::{Deserialize, Serialize};

/// Which terms make a dictionary. A filter that drops a term is counted ([`super::Report`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Filters {
    /// Minimum letters and digits of a term; shorter ones are dropped.
    ///
    /// Source: ours: because one or two letters name too many things.
    pub min_letters: usize,
    /// Maximum words of a term, from 1; every punctuation mark is a word.
    ///
    /// Source: ours: because longer names (of drugs with their doses, say) hardly occur in running text.
    pub max_words: usize,
    /// What to do with terms without a letter.
    ///
    /// Source: ours: because a number in a text is hardly ever the name of an entity.
    pub numbers: Numbers,
    /// Drop terms made up only of function words, numbers and punctuation.
    ///
    /// Source: ours: because such terms (`in`, `all`) match in almost every sentence.
    pub stop_words: StopWords,
    /// Further words that do not make a term by themselves (`disease`); a term made up only of them and stop words is dropped.
    ///
    /// Source: ours: because these are the general terms of medical vocabularies.
    pub common_words: Vec<String>,
    /// What to do with terms that name several entities.
    ///
    /// Source: ours: because choosing one of them would be a guess.
    pub ambiguous: Ambiguous,
    /// Semantic types of the entities to look for, by code (`T047`) or name (`Disease or Syndrome`).
    ///
    /// Source: ours: because which types matter depends on the corpus.
    pub types: Types,
    /// Whether to match also the singular or plural of a term's last word, by English endings.
    ///
    /// Source: ours: because vocabularies list either number and texts use both.
    pub plurals: Plurals,
    /// Whether to match terms with commas (`Failure, Heart`) in natural order (`Heart Failure`) too.
    ///
    /// Source: ours: because MeSH and UMLS invert many names, which texts do not.
    pub inverted: Inverted,
    /// Whether `'s` after a word is kept as words, or skipped in terms and texts.
    ///
    /// Source: ours: because vocabularies and texts differ in it (`Parkinson Disease`, `Parkinson's disease`).
    pub possessives: Possessives,
    /// Upper-case terms of at most this many letters match only in upper case (`ALL`, a leukaemia) and may be stop words. Without it, case
    /// makes no difference.
    ///
    /// Source: ours: because medical abbreviations are mostly of two to four letters.
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
    /// They are matched like any other term.
    Keep,
    /// They are dropped and counted.
    #[default]
    Drop,
}

/// A list of function words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopWords {
    /// English function words; the list is in `tasks/text/src/ner/stop_words.rs`.
    #[default]
    English,
    /// No word is a stop word.
    None,
}

/// What becomes of terms that name several entities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ambiguous {
    /// Keep all: a mention means every one of them.
    #[default]
    Keep,
    /// Drop terms that name more than this many entities.
    Drop(usize),
    /// Keep the first this many, by id.
    First(usize),
}

/// Semantic types, each by its code (`T047`) or its name (`Disease or Syndrome`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Types {
    /// All entities, including those without a type.
    #[default]
    All,
    /// Entities with at least one of these types.
    Only(Vec<String>),
    /// Entities with none of these types.
    AllBut(Vec<String>),
}

impl Types {
    /// Whether entities of these types are looked for.
    #[must_use]
    pub fn allow(&self, types: &[SemanticType]) -> bool {
        let among = |list: &[String]| list.iter().any(|listed| is_one_of(listed, types));
        match self {
            Types::All => true,
            Types::Only(list) => among(list),
            Types::AllBut(list) => !among(list),
        }
    }

    /// The types that are named.
    #[must_use]
    pub fn named(&self) -> &[String] {
        match self {
            Types::All => &[],
            Types::Only(list) | Types::AllBut(list) => list,
        }
    }
}

/// Whether a code or name is one of these types.
pub(super) fn is_one_of(named: &String, types: &[SemanticType]) -> bool {
    types.iter().any(|of| *named == of.name || Some(named) == of.code.as_ref())
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
    /// Only the number that the term is written in.
    AsWritten,
    /// In the singular and the plural.
    #[default]
    Both,
}

/// Whether a term with commas is also found inverted: two to four parts between commas with a space behind are joined by
/// spaces, the last one first (`Leukemia, Myeloid, Acute` as `Acute Myeloid Leukemia`). One with `and` or `or` is an enumeration and
/// stays. Where what comes out is a term as written (of whatever entity), that term stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Inverted {
    /// Only in the order that the term is written in.
    AsWritten,
    /// As written, and in natural order too.
    #[default]
    Both,
}

/// What becomes of an apostrophe (`'` or `\u{2019}`) and an `s` behind it, if a word stands in front of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Possessives {
    /// They are words like any other.
    Keep,
    /// They are skipped in terms and texts, so that `Parkinson Disease` is found in `Parkinson's disease` and vice versa; one after the
    /// last word is not part of the mention.
    #[default]
    Drop,
}

impl Filters {
    /// Filters that drop no term that has words and add no spelling.
    #[must_use]
    pub fn as_written() -> Self {
        Self {
            min_letters: 0,
            max_words: usize::MAX,
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
mod tests {
    use super::*;

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
