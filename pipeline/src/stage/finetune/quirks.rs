//! How a fine-tuning does what a reference code does where that is other than its paper says.

use downstream::encode::Framed;
use downstream::example::Part;
use downstream::tagging::Subwords;
use downstream::token_classes::{Classing, Others, is_default};
use downstream::turns::Order;
use model::output::OutputDropout;
use serde::{Deserialize, Serialize};

/// Where it stands in a config.
const KEY: &str = "finetune.quirks";

/// What a reference code does otherwise; the papers' way without a key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Quirks {
    /// Which text of a pair comes first in a row.
    ///
    /// Source: MT-BERT, section 3.1: first `X1`, then `X2`.
    pub pairs: PairOrder,
    /// The training data.
    ///
    /// Source: ours: `dev` chooses the model, so it is not trained on.
    pub train: TrainOn,
    /// What to do in training with tagged sentences (or their pieces) of more tokens than a row.
    ///
    /// Source: ours: no word is lost.
    pub long_sentences: LongSentences,
    /// Longer sentences, in words, are cut after the last word outside all entities within this many words, using the gold tags, in the test part
    /// too; each piece is shown and scored as its own sentence. At least 1 (MT-BERT's code: 30).
    pub behind_outside: Option<usize>,
    /// Rows of a sentence end after a word outside all entities once they exceed this many tokens, `[CLS]` and `[SEP]` included, also using the
    /// gold tags; each row is shown by itself. At least 1 and below `max_tokens` (MT-Clinical BERT's code: 500).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_behind: Option<usize>,
    /// The classes of a tagging head. Scores and predictions use the set's tags: `bilou` is decoded by which entity is open, and a word predicted
    /// as a class that no word has counts for conlleval as an entity without a kind if it follows one.
    #[serde(skip_serializing_if = "is_default")]
    pub tags: Classing,
    /// How examples are reordered each epoch.
    ///
    /// Source: `anew`, ours: fixed batches and a fixed order are quirks of codes.
    #[serde(skip_serializing_if = "is_default")]
    pub order: Order,
    /// What dropout on a tagging head's input masks together.
    ///
    /// Source: `numbers`, as in BERT.
    #[serde(skip_serializing_if = "is_default")]
    pub dropout: OutputDropout,
    /// Whether tagging rows are padded.
    ///
    /// Source: `none`, ours: padding is no token, and is not trained on.
    #[serde(skip_serializing_if = "is_default")]
    pub padding: Padding,
    /// How F1 with a negative class is computed when a class has no example and is never predicted.
    ///
    /// Source: `counted`, the definition of F1: such a class has no decisions.
    #[serde(skip_serializing_if = "is_default")]
    pub absent_classes: AbsentClasses,
    /// The part whose scores select the model to keep and decide early stopping.
    ///
    /// Source: `dev`, ours: what is chosen by the test part is no test.
    #[serde(skip_serializing_if = "is_default")]
    pub chosen_on: ChosenOn,
}

/// Which text of a pair comes first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PairOrder {
    /// The first.
    #[default]
    AsGiven,
    /// The second, as in MT-BERT's code.
    SecondFirst,
}

impl PairOrder {
    /// Whether it is as in the papers.
    #[must_use]
    pub(crate) fn is_as_given(&self) -> bool {
        *self == PairOrder::AsGiven
    }

    /// Adds a row of two texts in this order. What is cut of them does not depend on it.
    pub(crate) fn push(self, a: &[u32], b: &[u32], rows: &mut Framed) {
        match self {
            PairOrder::AsGiven => rows.pair(a, b),
            PairOrder::SecondFirst => rows.pair_swapped(a, b),
        }
    }

    /// A text, or two in this order.
    #[must_use]
    pub(crate) fn of_texts<'t>(self, text: &'t str, pair: Option<&'t str>) -> (&'t str, Option<&'t str>) {
        pair.map_or((text, None), |pair| {
            let (first, second) = self.of(text, pair);
            (first, Some(second))
        })
    }

    /// Two texts in this order.
    #[must_use]
    pub(crate) fn of<T>(self, a: T, b: T) -> (T, T) {
        match self {
            PairOrder::AsGiven => (a, b),
            PairOrder::SecondFirst => (b, a),
        }
    }
}

/// What is trained on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TrainOn {
    /// The part `train`.
    #[default]
    Train,
    /// The parts `train` and `dev`, as in MT-BERT's code: then scores on `dev`, by which the model to keep is still chosen, say nothing.
    TrainAndDev,
}

/// What becomes of sentences to train on that have more tokens than a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LongSentences {
    /// They are split into several rows.
    #[default]
    Rows,
    /// They are dropped and counted, as in MT-BERT's code.
    Drop,
    /// Those of more tokens than this are dropped and counted, where rows have room for more: from 3 to `max_tokens`. MT-BERT's code drops what has
    /// more than 128 in training, and truncates nothing in testing.
    DropAbove(usize),
}

impl LongSentences {
    /// Most tokens of a sentence that is trained on, where rows have room for `room`; none if all are.
    #[must_use]
    pub(crate) fn most(self, room: usize) -> Option<usize> {
        match self {
            LongSentences::Rows => None,
            LongSentences::Drop => Some(room),
            LongSentences::DropAbove(most) => Some(most),
        }
    }
}

/// Whether tagging rows are padded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Padding {
    /// They are not.
    #[default]
    None,
    /// In training they are padded to `max_tokens`, and padding, which attends to its row but is not attended to, is trained to predict the
    /// alphabetically first class, as in MT-Clinical BERT's code.
    Trained,
}

/// How F1 with a negative class is computed when a class has no example and is never predicted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AbsentClasses {
    /// It has no decisions, so micro F1 is as without it, and macro F1 counts it as 0.
    #[default]
    Counted,
    /// The classes after it shift into its place, as in MT-BERT's code: the negative class then counts as a relation, and with two such classes F1
    /// is 0.
    Shift,
}

/// The part by whose scores a model is chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChosenOn {
    /// The part `dev`.
    #[default]
    Dev,
    /// The part `test`, as in the codes of MT-BERT and MT-Clinical BERT: its scores are then the best of several evaluations, which `scores.json`
    /// and the table state. Not with `[graft]` or a search.
    Test,
}

impl ChosenOn {
    /// The part.
    #[must_use]
    pub(crate) fn part(self) -> Part {
        match self {
            ChosenOn::Dev => Part::Dev,
            ChosenOn::Test => Part::Test,
        }
    }
}

impl Quirks {
    /// Whether all is as in the papers.
    #[must_use]
    pub(crate) fn is_as_written(&self) -> bool {
        *self == Self::default()
    }

    /// Whether sentences are cut by the right tags.
    #[must_use]
    pub(crate) fn cuts_by_tags(&self) -> bool {
        self.behind_outside.is_some() || self.full_behind.is_some()
    }

    /// Refuses what does not go together.
    ///
    /// # Errors
    /// Names the key, and how to mend it.
    pub(super) fn check(&self, subwords: Subwords) -> anyhow::Result<()> {
        for (key, number, released) in
            [("behind_outside", self.behind_outside, 30), ("full_behind", self.full_behind, 500)]
        {
            anyhow::ensure!(
                number != Some(0),
                "{KEY}.{key} is 0, expected at least 1 (released: {released})"
            );
        }
        anyhow::ensure!(
            self.tags.others != Others::LaterAndSpecial || subwords == Subwords::First,
            "{KEY}.tags.others is later_and_special, whose later subwords are of a class of their own: set finetune.subwords = \"first\""
        );
        Ok(())
    }

    /// Refuses what rows of at most `max_tokens` tokens of tags do not fit; `of` is the benchmark.
    ///
    /// # Errors
    /// Names the key, and how to mend it.
    pub(crate) fn check_rows(&self, max_tokens: usize, of: &str) -> anyhow::Result<()> {
        if let Some(full) = self.full_behind.filter(|full| *full >= max_tokens) {
            anyhow::bail!(
                "{KEY}.full_behind is {full}, but no row of {of} has more than {max_tokens} tokens: lower it, or raise finetune.max_tokens, or max_tokens_of.{of}"
            );
        }
        if let LongSentences::DropAbove(most) = self.long_sentences {
            anyhow::ensure!(
                (3..=max_tokens).contains(&most),
                "{KEY}.long_sentences.drop_above is {most}, expected from 3 to {max_tokens}, which is what a row of {of} has room for: `drop` leaves out what has more"
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_as_written_and_takes_no_room() {
        let prepared: Quirks = toml::from_str("pairs = \"second_first\"").unwrap();
        assert!(!prepared.is_as_written());
        let json = serde_json::to_string(&prepared).unwrap();
        let before =
            r#"{"pairs":"second_first","train":"train","long_sentences":"rows","behind_outside":null}"#;
        assert_eq!(json, before, "fingerprints of configs without the other keys must stay");
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let told = |text: &str, subwords| {
            let prepared: Quirks = toml::from_str(text).unwrap();
            prepared
                .check(subwords)
                .and_then(|()| prepared.check_rows(128, "ner"))
                .map_err(|error| error.to_string())
        };
        assert_eq!(
            told("tags = { scheme = \"bilou\", others = \"special\" }\nfull_behind = 100", Subwords::All),
            Ok(())
        );
        assert!(
            told("full_behind = 0", Subwords::All)
                .unwrap_err()
                .contains("full_behind is 0, expected at least 1 (released: 500)")
        );
        let text = told("full_behind = 128", Subwords::All).unwrap_err();
        assert!(text.contains("no row of ner has more than 128 tokens"), "{text}");
        assert_eq!(told("long_sentences = { drop_above = 128 }", Subwords::First), Ok(()));
        let text = told("long_sentences = { drop_above = 129 }", Subwords::First).unwrap_err();
        assert!(text.contains("drop_above is 129, expected from 3 to 128"), "{text}");
        let text = told("tags = { others = \"later_and_special\" }", Subwords::All).unwrap_err();
        assert!(text.contains("set finetune.subwords = \"first\""), "{text}");
    }
}
