//! What the answers of a benchmark are measured by.

use serde::{Deserialize, Serialize};

use super::Kind;
use tasks::Error;

/// The metric by which settings, stopping points and masks are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Area under the ROC curve: of class 1 of two classes; the mean over pairs of more (one-vs-one); the mean over classes that may all
    /// hold.
    Auroc,
    /// The share of examples whose class is right.
    Accuracy,
    /// Matthews' correlation.
    Matthews,
    /// F1 over all decisions, without the negative class.
    MicroF1,
    /// Mean F1 over classes, without the negative class.
    MacroF1,
    /// F1 of the means over examples of precision and recall of their classes (BLUE); both are 1 where no class holds and none is
    /// predicted.
    ExampleF1,
    /// Pearson's correlation.
    Pearson,
    /// Spearman's rank correlation.
    Spearman,
    /// F1 of entities with the right words and kind, by the rules of conlleval.
    EntityF1,
    /// The mean over questions of the F1 of an answer's words against the accepted answer nearest to it, without case, punctuation and articles (SQuAD).
    AnswerF1,
    /// The share of questions whose answer is an accepted one, without case, punctuation and articles (SQuAD).
    ExactMatch,
}

impl Measure {
    /// Whether answers of a kind can be measured so.
    ///
    /// # Errors
    /// When they cannot: how they could.
    pub fn check(self, kind: Kind) -> Result<(), Error> {
        let fits = match kind {
            Kind::OneClass => {
                matches!(self, Self::Auroc | Self::Accuracy | Self::Matthews | Self::MicroF1 | Self::MacroF1)
            }
            Kind::AnyClasses => {
                matches!(self, Self::Auroc | Self::MicroF1 | Self::MacroF1 | Self::ExampleF1)
            }
            Kind::Score => matches!(self, Self::Pearson | Self::Spearman),
            Kind::Tags => self == Self::EntityF1,
            Kind::Choice | Kind::MaskedWords => self == Self::Accuracy,
            Kind::Span => matches!(self, Self::AnswerF1 | Self::ExactMatch),
        };
        if fits {
            return Ok(());
        }
        Err(Error::unfit(format!(
            "{} is no measure of {}; expected auroc, accuracy, matthews, micro_f1 or macro_f1 of one class, auroc, micro_f1, macro_f1 or example_f1 of any classes, pearson or spearman of scores, entity_f1 of tags, accuracy of choices and of masked words, answer_f1 or exact_match of spans",
            self.key(),
            kind.told()
        )))
    }

    /// What a config calls it.
    fn key(self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        value.as_str().unwrap_or_default().to_owned()
    }
}
