//! How samples are made of texts: the settings of `[maps]` that say what is known of words, without those of files.

use base::setting::InvalidSetting;
use batch::maps::sample::NO_WORD;
use serde::{Deserialize, Serialize};
use text::ner::Filters;
use text::phrase;

use super::generators::Limits;

/// How samples are made of texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
// It is flattened into a table that has a description of its own.
#[schemars(description = "")]
pub struct Config {
    /// The unit of a sample; units without words are skipped. Sentences as for `counts.what.within`.
    ///
    /// Source: KAM-BERT, section 3.4: auxiliary terms are added sentence by sentence.
    pub unit: Unit,
    /// How long samples may be.
    pub limits: Limits,
    /// Where entities come from. Of mentions that share a word, the one with the most words is kept, then the first. Where files annotate entities
    /// and a dictionary matches them, `engraft inspect maps` shows `against_marks`: for each of `[[corpus.texts]]` whose format annotates entities,
    /// per annotated kind, how many are annotated and found, with precision and recall by exact boundaries and by overlap. Everything the
    /// dictionary finds in any document of these texts counts as found, annotated or not: matches annotated as another kind, or not at all, lower
    /// precision. Kinds that the texts do not annotate are not evaluated.
    ///
    /// Source: `dictionary`, ours: most corpora are not annotated (KAM-BERT uses Stanza's tagger).
    pub entities: Entities,
    /// Where phrases come from.
    ///
    /// Source: `neighbours`, ours: they need no parser (KAM-BERT uses Stanza's).
    pub phrases: Phrases,
    /// Relevance of words to each other, and auxiliary terms.
    ///
    /// Source: KAM-BERT, equation 7.
    pub terms: Terms,
    /// Whether mentions are related when a triple connects their entities.
    ///
    /// Source: KAM-BERT: the three other maps; this one is named as an extension (equation 8).
    pub graph: Graph,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            unit: Unit::default(),
            limits: Limits::default(),
            entities: Entities::Dictionary(Filters::default()),
            phrases: Phrases::Neighbours(phrase::Config::default()),
            terms: Terms::default(),
            graph: Graph::default(),
        }
    }
}

impl Config {
    /// What makes samples of which nothing is known.
    #[must_use]
    pub fn nothing(limits: Limits) -> Self {
        Self {
            unit: Unit::Sentence,
            limits,
            entities: Entities::None,
            phrases: Phrases::None,
            terms: Terms::None,
            graph: Graph::None,
        }
    }

    /// Whether every setting is in its range.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        self.limits.check().map_err(|error| error.of("limits"))?;
        let most = usize::from(NO_WORD) - 1;
        if self.limits.terms > most {
            return Err(InvalidSetting::new("limits.terms", self.limits.terms, format!("at most {most}")));
        }
        if let Entities::Dictionary(filters) = &self.entities {
            filters.check().map_err(|error| error.of("entities.dictionary"))?;
        }
        if let Phrases::Neighbours(phrases) = &self.phrases {
            phrases.check().map_err(|error| error.of("phrases.neighbours"))?;
        }
        Ok(())
    }

    /// Whether entities or their neighbours are looked up in the triple table.
    #[must_use]
    pub fn needs_graph(&self) -> bool {
        self.entities != Entities::None || self.graph == Graph::Adjacent
    }

    /// Whether phrases are made of counted neighbours.
    #[must_use]
    pub fn needs_counts(&self) -> bool {
        matches!(self.phrases, Phrases::Neighbours(_))
    }

    /// Whether words are related by their scores.
    #[must_use]
    pub fn needs_scores(&self) -> bool {
        self.terms == Terms::Relevance
    }
}

/// What a sample is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A sentence.
    #[default]
    Sentence,
    /// A document.
    Document,
}

/// Where entities come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Entities {
    /// None.
    None,
    /// Those annotated in the corpus files.
    Marked,
    /// Names and synonyms from the graph, matched in the texts.
    Dictionary(Filters),
}

/// Where phrases come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phrases {
    /// Every word is a phrase.
    None,
    /// Those annotated in the corpus files.
    Marked,
    /// Chains of neighbours; needs `[counts]` with `adjacent = "count"`.
    Neighbours(phrase::Config),
}

/// Whether words are related.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Terms {
    /// Neither relevance nor auxiliary terms.
    None,
    /// Both, from `[pmi]`.
    #[default]
    Relevance,
}

/// Whether entities are related.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Graph {
    /// They are not.
    #[default]
    None,
    /// They are.
    Adjacent,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_its_range_is_named_as_a_config_has_it() {
        let refused = |change: fn(&mut Config)| {
            let mut config = Config::default();
            config.check().unwrap();
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        assert!(refused(|of| of.limits.tokens = 2).starts_with("limits.tokens is 2, expected at least 4"));
        assert_eq!(refused(|of| of.limits.terms = 70_000), "limits.terms is 70000, expected at most 65534");
        let filters = |of: &mut Config| {
            of.entities = Entities::Dictionary(Filters { max_words: 0, ..Filters::default() });
        };
        assert!(refused(filters).starts_with("entities.dictionary.max_words is 0"));
        let phrases = |of: &mut Config| {
            of.phrases = Phrases::Neighbours(phrase::Config { threshold: 2.0, ..Default::default() });
        };
        assert!(refused(phrases).starts_with("phrases.neighbours.threshold is 2"));
    }

    #[test]
    fn nothing_known_needs_no_artifact() {
        let needs = |config: &Config| [config.needs_graph(), config.needs_counts(), config.needs_scores()];
        assert_eq!(needs(&Config::nothing(Limits::default())), [false; 3]);
        assert_eq!(needs(&Config::default()), [true; 3]);
    }
}
