//! Texts with gold labels: what a classifier, a regressor or a tagger of whole texts is fine-tuned and tried on.
//!
//! [`schema`] says what they look like on disk, [`mod@write`] and [`read`] bring them there and back.

mod measure;
pub mod passages;
pub mod read;
pub mod schema;
pub mod write;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

pub use measure::Measure;
use passages::Passages;
use tasks::Error;
use text::attach;

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

impl Part {
    /// All of them, in order.
    pub const ALL: [Self; 4] = [Self::Train, Self::Dev, Self::MaskSearch, Self::Test];

    /// As files and messages write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Dev => "dev",
            Self::MaskSearch => "mask_search",
            Self::Test => "test",
        }
    }
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
    /// Of every word, which one of some classes: tags of entities, of which class 0 is `O`.
    Tags,
    /// Which one of texts of its own goes with the text (multiple choice).
    Choice,
    /// Words of the text itself that are masked: which, is drawn when it is shown.
    MaskedWords,
    /// Where in passages of its own the answer to the text, a question, stands.
    Span,
}

impl Kind {
    /// What a text has, in words.
    fn told(self) -> &'static str {
        match self {
            Self::OneClass => "one class",
            Self::AnyClasses => "any number of classes",
            Self::Score => "a number",
            Self::Tags => "tags of words",
            Self::Choice => "one right choice",
            Self::MaskedWords => "masked words",
            Self::Span => "an answer in a passage",
        }
    }
}

/// A gold label.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The number of the one class.
    Class(u32),
    /// The numbers of the classes that hold, rising.
    Classes(Vec<u32>),
    /// The number.
    Score(f64),
    /// The words and their classes.
    Tags(Tagged),
    /// The texts, and which is right.
    Choice(Choice),
    /// The words of the text.
    MaskedWords,
    /// The passages, and what answers the text.
    Span(Passages),
}

/// Texts of which one goes with an example's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// The texts, at least two.
    pub choices: Vec<String>,
    /// The place of the right one, from 0.
    pub right: usize,
}

/// The words of a text with their classes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tagged {
    /// All words of the text, in order, with nothing but white space between them.
    pub words: Vec<String>,
    /// The number of each word's class.
    pub tags: Vec<u32>,
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
    /// Its gold label.
    pub answer: Answer,
}

impl Example {
    /// The second text of each of its rows: each choice or passage in one of its own, or that of its pair, if it has one.
    pub fn second_texts(&self) -> impl Iterator<Item = Option<&str>> {
        let own: Vec<&str> = match &self.answer {
            Answer::Choice(of) => of.choices.iter().map(String::as_str).collect(),
            Answer::Span(of) => of.passages.iter().map(|passage| passage.text.as_str()).collect(),
            _ => vec![],
        };
        let only = own.is_empty().then_some(self.pair.as_deref());
        own.into_iter().map(Some).chain(only)
    }
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
    /// What is measured.
    pub measure: Measure,
    /// The class of examples that are of none of the others, which F1 leaves out; of tags that is always `O`.
    pub negative_class: Option<u32>,
    /// Examples in the order of their source.
    pub examples: Vec<Example>,
}

impl Examples {
    /// Whether every example is called by a name of its own, has a text, and has an answer of the kind that is asked.
    ///
    /// # Errors
    /// Names the first that does not, and what it should be.
    pub fn check(&self) -> Result<(), Error> {
        self.check_classes()?;
        self.misfit().map_or(Ok(()), |(_, why)| Err(Error::unfit(why)))
    }

    /// Whether the classes go with what is asked and measured.
    fn check_classes(&self) -> Result<(), Error> {
        let fits = match self.kind {
            Kind::OneClass => (self.classes.len() > 1, "at least 2"),
            Kind::AnyClasses => (!self.classes.is_empty(), "at least 1"),
            Kind::Score => (self.classes.is_empty(), "none: the answers are numbers"),
            Kind::Choice => (self.classes.is_empty(), "none: every text has choices of its own"),
            Kind::MaskedWords => (self.classes.is_empty(), "none: the words of the texts are asked for"),
            Kind::Span => (self.classes.is_empty(), "none: answers stand in passages"),
            Kind::Tags => (
                self.classes.len() > 1,
                "at least 2: O and the tags of entities; if `kinds` names some, the files have none of these",
            ),
        };
        if let (false, expected) = fits {
            let (found, kind) = (self.classes.len(), self.kind);
            let alone = match self.classes.as_slice() {
                [one] => format!(" (every text has {one:?})"),
                _ => String::new(),
            };
            return Err(Error::unfit(format!(
                "{found} classes{alone} where a text has {}, expected {expected}",
                kind.told()
            )));
        }
        self.measure.check(self.kind)?;
        if let Some(class) = self.negative_class.filter(|class| *class as usize >= self.classes.len()) {
            return Err(Error::unfit(format!(
                "class {class} is to mean nothing, but there is no class of that number"
            )));
        }
        if let (Kind::Tags, Some(first)) = (self.kind, self.classes.first().filter(|name| *name != "O")) {
            return Err(Error::unfit(format!(
                "class 0 is {first:?}, expected \"O\", the tag of words in no entity"
            )));
        }
        let mut names = HashSet::new();
        if let Some(twice) = self.classes.iter().find(|name| name.trim().is_empty() || !names.insert(*name)) {
            return Err(Error::unfit(format!(
                "class {twice:?} is there twice, expected every name once and none empty"
            )));
        }
        Ok(())
    }

    /// The first example that is not as it should be, by its place from 0, and what is wrong with it.
    fn misfit(&self) -> Option<(usize, String)> {
        let mut ids = HashSet::with_capacity(self.examples.len());
        self.examples.iter().enumerate().find_map(|(place, example)| {
            let twice =
                (!ids.insert(example.id.as_str())).then_some("is there twice, expected every name once");
            let why = twice.or_else(|| self.amiss(example))?;
            Some((place, format!("example {:?} {why}", example.id)))
        })
    }

    /// What is wrong with an example by itself.
    fn amiss(&self, example: &Example) -> Option<&'static str> {
        if example.text.trim().is_empty() || example.pair.as_ref().is_some_and(|pair| pair.trim().is_empty())
        {
            return Some("has an empty text, expected one to read: leave the example out");
        }
        let known = |class: &u32| (*class as usize) < self.classes.len();
        match (self.kind, &example.answer) {
            (Kind::OneClass, Answer::Class(class)) => {
                (!known(class)).then_some("has a class that there is not, expected the number of a class")
            }
            (Kind::AnyClasses, Answer::Classes(classes)) => {
                let fit = classes.iter().all(known) && classes.is_sorted_by(|a, b| a < b);
                (!fit).then_some("has classes that are not rising numbers of classes")
            }
            (Kind::Score, Answer::Score(score)) => {
                (!score.is_finite()).then_some("has a score that is no finite number")
            }
            (Kind::Tags, Answer::Tags(Tagged { words, tags })) => {
                if words.is_empty() || words.len() != tags.len() {
                    Some("has not a tag for each of its words")
                } else if !tags.iter().all(known) {
                    Some("has a tag that there is not, expected numbers of classes")
                } else if attach::words(&example.text, words).is_err() {
                    Some("has words that are not those of its text")
                } else if example.pair.is_some() {
                    Some("has a second text, expected the one whose words are tagged")
                } else {
                    None
                }
            }
            (Kind::Choice, Answer::Choice(Choice { choices, right })) => {
                if choices.len() < 2 || choices.iter().any(|choice| choice.trim().is_empty()) {
                    Some("has not two choices or more with a text each")
                } else if *right >= choices.len() {
                    Some("has a right choice that there is not")
                } else if example.pair.is_some() {
                    Some("has a second text, expected choices in its place")
                } else {
                    None
                }
            }
            (Kind::MaskedWords, Answer::MaskedWords) => {
                example.pair.is_some().then_some("has a second text, expected the one whose words are masked")
            }
            (Kind::Span, Answer::Span(of)) => {
                let paired =
                    example.pair.is_some().then_some("has a second text, expected passages in its place");
                paired.or_else(|| of.amiss())
            }
            (Kind::OneClass, _) => Some("has another answer than one class, as all others have"),
            (Kind::AnyClasses, _) => Some("has another answer than a list of classes, as all others have"),
            (Kind::Score, _) => Some("has another answer than a score, as all others have"),
            (Kind::Tags, _) => Some("has another answer than tags, as all others have"),
            (Kind::Choice, _) => Some("has another answer than a choice, as all others have"),
            (Kind::MaskedWords, _) => Some("has another answer than masked words, as all others have"),
            (Kind::Span, _) => Some("has another answer than passages, as all others have"),
        }
    }

    /// The same with classes that are numbered as a model's are, which was trained on other examples.
    ///
    /// # Errors
    /// When an example has a class that the model does not know.
    pub fn numbered_as(mut self, classes: &[String]) -> Result<Self, Error> {
        let numbers = self.classes.iter().map(|name| {
            let found = classes.iter().position(|known| known == name);
            let number = found.and_then(|place| u32::try_from(place).ok());
            number.ok_or_else(|| {
                let known = classes.join(", ");
                Error::unfit(format!("examples of {name:?}, which was not trained on; expected {known}"))
            })
        });
        let numbers = numbers.collect::<Result<Vec<u32>, _>>()?;
        let renumber = |class: &mut u32| *class = numbers[*class as usize];
        for example in &mut self.examples {
            match &mut example.answer {
                Answer::Class(class) => renumber(class),
                Answer::Classes(classes) => {
                    classes.iter_mut().for_each(renumber);
                    classes.sort_unstable();
                }
                Answer::Tags(Tagged { tags, .. }) => tags.iter_mut().for_each(renumber),
                Answer::Score(_) | Answer::Choice(_) | Answer::MaskedWords | Answer::Span(_) => {}
            }
        }
        self.negative_class.iter_mut().for_each(renumber);
        self.classes = classes.to_vec();
        Ok(self)
    }

    /// The places of the examples of one part, in order.
    #[must_use]
    pub fn of(&self, part: Part) -> Vec<usize> {
        let all = self.examples.iter().enumerate();
        all.filter(|(_, example)| example.part == part).map(|(place, _)| place).collect()
    }

    /// How many examples of a part have each class; of tags, how many words.
    #[must_use]
    pub fn counts(&self, part: Part) -> Vec<u64> {
        let mut counts = vec![0; self.classes.len()];
        for example in self.examples.iter().filter(|example| example.part == part) {
            let had = match &example.answer {
                Answer::Class(class) => std::slice::from_ref(class),
                Answer::Classes(classes) => classes.as_slice(),
                Answer::Tags(tagged) => tagged.tags.as_slice(),
                Answer::Score(_) | Answer::Choice(_) | Answer::MaskedWords | Answer::Span(_) => &[],
            };
            for &class in had {
                counts[class as usize] += 1;
            }
        }
        counts
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn example(id: &str, part: Part, answer: Answer) -> Example {
        Example { id: id.to_owned(), part, text: format!("text of {id}\né"), pair: None, answer }
    }

    /// Three examples of any of three classes.
    pub(crate) fn small() -> Examples {
        Examples {
            name: "small".to_owned(),
            kind: Kind::AnyClasses,
            classes: ["a", "b", "c"].map(str::to_owned).into(),
            measure: Measure::Auroc,
            negative_class: None,
            examples: vec![
                example("1", Part::Train, Answer::Classes(vec![0, 2])),
                example("2", Part::Test, Answer::Classes(vec![1])),
                example("3", Part::Train, Answer::Classes(vec![2])),
            ],
        }
    }

    #[test]
    fn parts_and_classes_are_counted() {
        let examples = small();
        assert_eq!(examples.of(Part::Train), [0, 2]);
        assert_eq!(examples.counts(Part::Train), [1, 0, 2]);
        assert_eq!(examples.counts(Part::Dev), [0, 0, 0]);
        examples.check().unwrap();
    }

    #[test]
    fn classes_are_renumbered_as_a_model_has_them() {
        let mut examples = small();
        examples.negative_class = Some(0);
        let known = ["c", "d", "b", "a"].map(str::to_owned);
        let renumbered = examples.clone().numbered_as(&known).unwrap();
        let answers: Vec<&Answer> = renumbered.examples.iter().map(|example| &example.answer).collect();
        let [first, second, third] = [vec![0, 3], vec![2], vec![0]].map(Answer::Classes);
        assert_eq!(answers, [&first, &second, &third]);
        assert_eq!((renumbered.classes.len(), renumbered.negative_class), (4, Some(3)));
        renumbered.check().unwrap();
        let told = examples.numbered_as(&known[..3]).unwrap_err().to_string();
        assert!(told.contains("examples of \"a\", which was not trained on; expected c, d, b"), "{told}");
    }

    fn refused(change: impl Fn(&mut Examples)) -> String {
        let mut examples = small();
        change(&mut examples);
        examples.check().unwrap_err().to_string()
    }

    #[test]
    fn what_is_no_benchmark_is_said() {
        let of = |answer: Answer| refused(|all| all.examples[1].answer = answer.clone());
        assert_eq!(
            refused(|all| all.examples[2].id = "1".into()),
            "example \"1\" is there twice, expected every name once"
        );
        assert!(
            refused(|all| all.examples[1].text = " \n".into()).starts_with("example \"2\" has an empty text")
        );
        assert!(refused(|all| all.examples[1].pair = Some(String::new())).contains("has an empty text"));
        assert!(of(Answer::Classes(vec![3])).contains("rising numbers of classes"));
        assert!(of(Answer::Classes(vec![1, 1])).contains("rising numbers of classes"));
        assert!(of(Answer::Class(1)).contains("another answer than a list of classes"));
        assert!(
            refused(|all| all.classes.clear())
                .contains("0 classes where a text has any number of classes, expected at least 1")
        );
        assert!(refused(|all| all.classes[2] = "a".into()).starts_with("class \"a\" is there twice"));
    }

    #[test]
    fn one_class_and_scores_have_their_own_answers() {
        let of = |kind, classes: &[&str], answer| Examples {
            name: "x".to_owned(),
            kind,
            classes: classes.iter().map(|&class| class.to_owned()).collect(),
            measure: if kind == Kind::Score { Measure::Pearson } else { Measure::Accuracy },
            negative_class: None,
            examples: vec![example("1", Part::Train, answer)],
        };
        let said = |examples: &Examples| examples.check().map_err(|error| error.to_string());
        assert_eq!(said(&of(Kind::OneClass, &["a", "b"], Answer::Class(1))), Ok(()));
        let told = |examples| said(&examples).unwrap_err();
        assert!(
            told(of(Kind::OneClass, &["a", "b"], Answer::Class(2))).contains("a class that there is not")
        );
        assert!(
            told(of(Kind::OneClass, &["a", "b"], Answer::Score(1.0)))
                .contains("another answer than one class")
        );
        assert!(told(of(Kind::OneClass, &["a"], Answer::Class(0))).contains("expected at least 2"));
        assert_eq!(said(&of(Kind::Score, &[], Answer::Score(2.5))), Ok(()));
        assert!(told(of(Kind::Score, &[], Answer::Score(f64::NAN))).contains("no finite number"));
        assert!(told(of(Kind::Score, &[], Answer::Class(0))).contains("another answer than a score"));
        assert!(told(of(Kind::Score, &["a"], Answer::Score(1.0))).contains("expected none"));
    }

    /// Two words of an entity and one behind it.
    pub(crate) fn tagged() -> Examples {
        let words = ["text", "of", "1", "é"].map(str::to_owned).to_vec();
        let answer = Answer::Tags(Tagged { words, tags: vec![0, 1, 2, 0] });
        Examples {
            name: "tagged".to_owned(),
            kind: Kind::Tags,
            classes: ["O", "B-x", "I-x"].map(str::to_owned).into(),
            measure: Measure::EntityF1,
            negative_class: None,
            examples: vec![example("1", Part::Train, answer)],
        }
    }

    #[test]
    fn tags_are_those_of_the_words_of_the_text() {
        tagged().check().unwrap();
        assert_eq!(tagged().counts(Part::Train), [2, 1, 1]);
        let told = |change: &dyn Fn(&mut Tagged)| {
            let mut examples = tagged();
            if let Answer::Tags(of) = &mut examples.examples[0].answer {
                change(of);
            }
            examples.check().unwrap_err().to_string()
        };
        assert!(told(&|of| of.tags.truncate(2)).contains("not a tag for each of its words"));
        assert!(told(&|of| of.tags[0] = 3).contains("a tag that there is not"));
        assert!(told(&|of| of.words[1] = "or".to_owned()).contains("words that are not those of its text"));
        let other = Examples { classes: ["x", "y"].map(str::to_owned).into(), ..tagged() };
        assert!(other.check().unwrap_err().to_string().contains("class 0 is \"x\", expected \"O\""));
        let measure = Examples { measure: Measure::Accuracy, ..tagged() };
        assert!(
            measure.check().unwrap_err().to_string().starts_with("accuracy is no measure of tags of words")
        );
        let nothing = Examples { negative_class: Some(7), ..tagged() };
        assert!(nothing.check().unwrap_err().to_string().contains("class 7 is to mean nothing"));
    }
}
