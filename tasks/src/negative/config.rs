//! How negatives are drawn: every setting of it.

use base::setting::InvalidSetting;
use serde::{Deserialize, Serialize};

use super::judge::Filter;
use super::statement::Same;
use crate::sample::Slot;

/// Most negatives of a triple, which are in memory together.
const MOST_NEGATIVES: u32 = 10_000;
/// Most proposals for a column: what has not been found by then is not there.
const MOST_DRAWS: u32 = 1_000_000;

/// How negatives are drawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// How negatives are proposed.
    ///
    /// Source: KIMERA, section 2.2: a component of a different randomly selected triplet.
    pub sampler: Corruption,
    /// Columns that may be replaced, at least one and none twice.
    ///
    /// Source: KIMERA, section 2.2: one of the three components.
    pub slots: Vec<Slot>,
    /// Negatives per triple, 1 to 10,000; all distinct.
    ///
    /// Source: KIMERA, section 2.2: an equal amount of invalid samples.
    pub per_triple: u32,
    /// Which proposals are rejected. One that says the same as the triple it corrupts always is.
    ///
    /// Source: KG-BERT, `run_bert_triple_classifier.py`, which rejects what is in the training set; KIMERA does not say.
    pub filter: Filter,
    /// When two triples count as the same; inverse and symmetric statements always do.
    ///
    /// Source: ours: because a model that reads names cannot tell entities of the same name apart.
    pub same: Same,
    /// Whether every epoch has new negatives, or always those in the shards.
    ///
    /// Source: MTL-KGC, which draws them at each access (KG-BERT draws once); KIMERA does not say.
    pub draw: Draw,
    /// Proposals per column before moving to the next, 1 to 1,000,000.
    ///
    /// Source: ours: because a column that fails a thousand times hardly has a negative.
    pub max_draws: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            sampler: Corruption::default(),
            slots: Slot::ALL.to_vec(),
            per_triple: 1,
            filter: Filter::default(),
            same: Same::default(),
            draw: Draw::default(),
            max_draws: 1000,
        }
    }
}

/// A way of proposing.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    Default,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Corruption {
    /// The column of a random shown triple, each column as often as another: what many triples have comes often.
    #[default]
    Uniform,
    /// The same, with the side chosen by the relation's cardinality: the one that seldom makes a false negative is replaced more often
    /// (TransH).
    Bernoulli,
    /// Any entity of the shown triples, each as often as another (KG-BERT).
    AnyEntity,
    /// An entity with a semantic type of the one it replaces.
    TypedByType,
    /// An entity that occurs in that column of the same relation.
    TypedByRange,
}

impl Corruption {
    /// All ways of proposing.
    pub const ALL: [Corruption; 5] = [
        Corruption::Uniform,
        Corruption::Bernoulli,
        Corruption::AnyEntity,
        Corruption::TypedByType,
        Corruption::TypedByRange,
    ];

    /// The name on disk and in configs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Corruption::Uniform => "uniform",
            Corruption::Bernoulli => "bernoulli",
            Corruption::AnyEntity => "any_entity",
            Corruption::TypedByType => "typed_by_type",
            Corruption::TypedByRange => "typed_by_range",
        }
    }
}

/// Whether every epoch has its own negatives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Draw {
    /// Always those in the shards.
    Fixed,
    /// New negatives every epoch.
    #[default]
    Fresh,
}

impl Config {
    /// Whether every setting is in its range.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        let mut slots = self.slots.clone();
        slots.sort();
        slots.dedup();
        if slots.is_empty() || slots.len() != self.slots.len() {
            let names = self.slots.iter().map(|slot| slot.name()).collect::<Vec<_>>();
            let expected = "at least one of subject, relation and object, and none twice";
            return Err(InvalidSetting::new("negatives.slots", format!("{names:?}"), expected));
        }
        let numbers = [
            ("negatives.per_triple", self.per_triple, MOST_NEGATIVES),
            ("negatives.max_draws", self.max_draws, MOST_DRAWS),
        ];
        match numbers.into_iter().find(|(_, number, most)| !(1..=*most).contains(number)) {
            Some((setting, found, most)) => {
                Err(InvalidSetting::new(setting, found, format!("from 1 to {most}")))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_reads_as_it_is_written_and_settings_out_of_range_are_named() {
        let json = r#"{"sampler":"typed_by_range","slots":["subject"],"per_triple":2,"filter":"all","same":"ids",
                       "draw":"fresh","max_draws":9}"#;
        let config: Config = serde_json::from_str(json).unwrap();
        assert_eq!((config.sampler, config.filter), (Corruption::TypedByRange, Filter::All));
        assert_eq!((config.same, config.draw), (Same::Ids, Draw::Fresh));
        config.check().unwrap();
        assert!(serde_json::from_str::<Config>(&json.replace("per_triple", "per_tripel")).is_err());
        for corruption in Corruption::ALL {
            assert_eq!(serde_json::to_value(corruption).unwrap(), corruption.name());
        }
        let refused = |changed: Config| changed.check().unwrap_err().to_string();
        let twice = refused(Config { slots: vec![Slot::Object, Slot::Object], ..config.clone() });
        assert!(twice.contains(r#"negatives.slots is ["object", "object"]"#), "{twice}");
        assert!(refused(Config { slots: vec![], ..config.clone() }).contains("at least one of"));
        assert!(refused(Config { per_triple: 0, ..config.clone() }).contains("per_triple is 0"));
        assert!(refused(Config { max_draws: 0, ..config }).contains("max_draws is 0"));
    }
}
