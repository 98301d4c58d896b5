//! Texts with right answers: what a classifier, a regressor or a tagger of whole texts is fine-tuned and tried on. Knows no file and no model.

use serde::{Deserialize, Serialize};

/// What an example is for. Of no person and no document are examples in two parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Fine-tuning.
    Train,
    /// Choosing settings and when to stop.
    Dev,
    /// Searching a head mask, so never reported.
    MaskSearch,
    /// The scores that are reported.
    Test,
}

/// What is asked of every example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Which one of some classes.
    OneClass,
    /// Which of some classes, any number of them.
    AnyClasses,
    /// A number.
    Score,
}

/// The right answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The number of the one class.
    Class(u32),
    /// The numbers of the classes that hold, rising.
    Classes(Vec<u32>),
    /// The number.
    Score(f64),
}

/// A text, or a pair of texts, with its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// What its publisher calls it; no two are called the same.
    pub id: String,
    /// What it is for.
    pub part: Part,
    /// The text.
    pub text: String,
    /// The second text of a pair.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pair: Option<String>,
    /// What is right.
    pub answer: Answer,
}

/// All examples of a benchmark.
#[derive(Debug, Clone, PartialEq)]
pub struct Examples {
    /// What the benchmark is called.
    pub name: String,
    /// What is asked.
    pub kind: Kind,
    /// Names of the classes by number; none for scores.
    pub classes: Vec<String>,
    /// Examples in the order of their source.
    pub examples: Vec<Example>,
}

impl Examples {
    /// The places of the examples of one part, in order.
    #[must_use]
    pub fn of(&self, part: Part) -> Vec<usize> {
        let all = self.examples.iter().enumerate();
        all.filter(|(_, example)| example.part == part).map(|(place, _)| place).collect()
    }

    /// How many examples of a part have each class.
    #[must_use]
    pub fn counts(&self, part: Part) -> Vec<u64> {
        let mut counts = vec![0; self.classes.len()];
        for example in self.examples.iter().filter(|example| example.part == part) {
            let had = match &example.answer {
                Answer::Class(class) => std::slice::from_ref(class),
                Answer::Classes(classes) => classes.as_slice(),
                Answer::Score(_) => &[],
            };
            for &class in had {
                counts[class as usize] += 1;
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_classes_are_counted() {
        let example = |part, classes: &[u32]| Example {
            id: String::new(),
            part,
            text: String::new(),
            pair: None,
            answer: Answer::Classes(classes.to_vec()),
        };
        let examples = Examples {
            name: "x".to_owned(),
            kind: Kind::AnyClasses,
            classes: ["a", "b", "c"].map(str::to_owned).into(),
            examples: vec![
                example(Part::Train, &[0, 2]),
                example(Part::Test, &[1]),
                example(Part::Train, &[2]),
            ],
        };
        assert_eq!(examples.of(Part::Train), [0, 2]);
        assert_eq!(examples.counts(Part::Train), [1, 0, 2]);
        assert_eq!(examples.counts(Part::Dev), [0, 0, 0]);
    }
}
