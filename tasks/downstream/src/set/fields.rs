//! Which named fields of a row are an item's texts and its gold label, and the sets that always have the same ones.

use std::collections::BTreeMap;
use std::path::Path;

use base::setting::InvalidSetting;
use serde::{Deserialize, Serialize};
use tasks::Error;

use super::{Item, Label, NO_TEXT, PublishedSet, Row, stem};
use crate::example::{self, Kind, Measure};
use crate::funnel::Step;

/// What the fields of a row mean.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fields {
    /// The field holding the text.
    pub text: String,
    /// The field holding the second text of a pair. Without it, examples are single texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pair: Option<String>,
    /// Where the gold label is.
    pub answer: Asked,
    /// The field with the row's id. Without it, a row goes by its line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// A field, such as a document's number, whose rows of one value stay in one part. Without it, pairs with the same first text do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Class names by the value in the file: `{ 0 = "no", 1 = "yes" }`. Without it, values are class names; with it, a value not listed is
    /// an error.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<String, String>,
    /// Whether rows without text are kept.
    #[serde(skip)]
    pub empty: bool,
}

/// Which fields hold the gold label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Asked {
    /// The field with the one class.
    Class(String),
    /// Several classes that may all hold, in one field.
    Classes {
        /// The field with the classes: text, or a list in JSON.
        field: String,
        /// What separates two classes in a text.
        between: String,
    },
    /// Fields with numbers, whose mean is the score.
    Score(Vec<String>),
    /// Texts of which one goes with the text: multiple choice.
    Choice(Choice),
}

/// Where the choices of a row are, and which is right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// Fields with the choices, in order; or one field with a list of them, or with an object of them by their letters, in JSON.
    pub of: Vec<String>,
    /// The field with a question, which is put in front of every choice. Without it, a choice is read as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// Which one is right.
    pub right: Right,
}

/// Which choice is right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// The field with its number, from 0.
    NumberFrom0(String),
    /// The field with its number, from 1.
    NumberFrom1(String),
    /// The field with its letter, `A` or `a` for the first.
    Letter(String),
}

impl Right {
    fn field(&self) -> &str {
        match self {
            Right::NumberFrom0(field) | Right::NumberFrom1(field) | Right::Letter(field) => field,
        }
    }

    /// The place of the right one of so many.
    fn place(&self, row: Row<'_>, found: &str, of: usize) -> Result<usize, Error> {
        let number = || found.parse::<usize>().ok();
        let (place, expected) = match self {
            Right::NumberFrom0(_) => (number(), format!("a whole number from 0 to {}", of.saturating_sub(1))),
            Right::NumberFrom1(_) => {
                (number().and_then(|number| number.checked_sub(1)), format!("a whole number from 1 to {of}"))
            }
            Right::Letter(_) => {
                let letter = found.bytes().next().filter(|_| found.len() == 1);
                let place = letter.and_then(|letter| letter.to_ascii_uppercase().checked_sub(b'A'));
                (place.map(usize::from), format!("one of the first {of} letters"))
            }
        };
        let place = place.filter(|place| *place < of);
        place.ok_or_else(|| row.wrong(format!("{found:?} as {:?}", self.field()), expected))
    }
}

/// A field of a row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// A text.
    Text(String),
    /// Several.
    Texts(Vec<String>),
    /// Several, each with its name.
    Named(Vec<(String, String)>),
}

/// A set whose rows always have the same fields.
pub(super) struct Preset {
    pub(super) extensions: &'static [&'static str],
    pub(super) measure: Measure,
    /// Its layout, one of those that a config may also spell out.
    pub(super) layout: fn() -> Box<dyn PublishedSet>,
}

impl PublishedSet for Preset {
    fn extensions(&self) -> &'static [&'static str] {
        self.extensions
    }

    fn kind(&self) -> Kind {
        (self.layout)().kind()
    }

    fn measure(&self) -> Measure {
        self.measure
    }

    fn read(&self, file: &Path, take: &mut dyn FnMut(Item)) -> Result<Vec<Step>, Error> {
        (self.layout)().read(file, take)
    }
}

impl Fields {
    /// The text in field `text`, alone or with that in field `pair`.
    pub(super) fn new(text: &str, pair: Option<&str>, answer: Asked) -> Self {
        let (text, pair) = (text.to_owned(), pair.map(str::to_owned));
        Self { text, pair, answer, id: None, group: None, names: BTreeMap::new(), empty: false }
    }

    /// The fields with names for what stands for classes.
    pub(super) fn named<const N: usize>(mut self, names: [(&str, &str); N]) -> Self {
        self.names = names.map(|(mark, name)| (mark.to_owned(), name.to_owned())).into();
        self
    }

    /// The fields with the one that names a row.
    pub(super) fn called(self, id: &str) -> Self {
        Self { id: Some(id.to_owned()), ..self }
    }

    /// Whether they can be meant.
    pub(super) fn check(&self) -> Result<(), Error> {
        match &self.answer {
            Asked::Score(fields) if fields.is_empty() => {
                Err(Error::unfit("answer.score names no field, expected one at least"))
            }
            Asked::Choice(choice) if choice.of.is_empty() => {
                Err(Error::unfit("answer.choice.of names no field, expected those of the choices"))
            }
            Asked::Classes { between, .. } if between.is_empty() => {
                let expected = "what stands between two classes";
                Err(InvalidSetting::new("answer.classes.between", "empty", expected).into())
            }
            _ => Ok(()),
        }
    }

    /// The names of all fields that are looked for.
    pub(super) fn all(&self) -> Vec<&str> {
        let of_answer: Vec<&str> = match &self.answer {
            Asked::Class(field) | Asked::Classes { field, .. } => vec![field],
            Asked::Score(fields) => fields.iter().map(String::as_str).collect(),
            Asked::Choice(Choice { of, question, right }) => {
                of.iter().chain(question).map(String::as_str).chain([right.field()]).collect()
            }
        };
        let optional = [&self.pair, &self.id, &self.group].into_iter().flatten().map(String::as_str);
        std::iter::once(self.text.as_str()).chain(of_answer).chain(optional).collect()
    }

    /// What is asked.
    pub(super) fn kind(&self) -> Kind {
        match self.answer {
            Asked::Class(_) => Kind::OneClass,
            Asked::Classes { .. } => Kind::AnyClasses,
            Asked::Score(_) => Kind::Score,
            Asked::Choice(_) => Kind::Choice,
        }
    }

    /// What is measured where a config does not say.
    pub(super) fn measure(&self) -> Measure {
        match self.answer {
            Asked::Class(_) | Asked::Choice(_) => Measure::Accuracy,
            Asked::Classes { .. } => Measure::MicroF1,
            Asked::Score(_) => Measure::Pearson,
        }
    }

    /// The item of a row, `field` giving its fields by name. `Err` with the reason to leave it out where a text is empty.
    pub(super) fn item(
        &self,
        row: Row<'_>,
        field: impl Fn(&str) -> Option<Value>,
    ) -> Result<Result<Item, &'static str>, Error> {
        let text = |name: &str| text(row, name, &field);
        let first = text(&self.text)?.trim().to_owned();
        let pair = self.pair.as_deref().map(text).transpose()?.map(|text| text.trim().to_owned());
        let label = match &self.answer {
            Asked::Class(name) => Label::Class(self.class(row, name, text(name)?.trim())?),
            Asked::Classes { field: name, between } => {
                let found = match field(name) {
                    Some(Value::Texts(texts)) if is_one_hot(&texts) => {
                        let found = format!("[{}] as {name:?}", texts.join(", "));
                        let expected = "the names of a row's classes; what looks like a place for each class (one-hot) says no names: write these";
                        return Err(row.wrong(found, expected));
                    }
                    Some(Value::Texts(texts)) => texts,
                    _ => text(name)?.split(between.as_str()).map(str::to_owned).collect(),
                };
                let classes = found.iter().map(|class| class.trim()).filter(|class| !class.is_empty());
                Label::Classes(classes.map(|class| self.class(row, name, class)).collect::<Result<_, _>>()?)
            }
            Asked::Score(names) => {
                let numbers = names.iter().map(|name| {
                    let found = text(name)?;
                    let number = found.trim().parse().ok().filter(|number: &f64| number.is_finite());
                    number.ok_or_else(|| row.wrong(format!("{found:?} as {name:?}"), "a number"))
                });
                let numbers = numbers.collect::<Result<Vec<f64>, _>>()?;
                Label::Score(numbers.iter().sum::<f64>() / numbers.len().max(1) as f64)
            }
            Asked::Choice(choice) => Label::Choice(choice.found(row, &field)?),
        };
        if !self.empty && (first.is_empty() || pair.as_deref().is_some_and(str::is_empty)) {
            return Ok(Err(NO_TEXT));
        }
        let stem = stem(row.file);
        let id = match &self.id {
            Some(name) => format!("{stem}/{}", text(name)?.trim()),
            None => format!("{stem}/{}", row.line),
        };
        let group = match &self.group {
            Some(name) => text(name)?.trim().to_owned(),
            // A text is paired with several others, or asked about several times: they must not part.
            None if pair.is_some() || matches!(self.answer, Asked::Choice(_)) => first.clone(),
            None => id.clone(),
        };
        Ok(Ok(Item { id, group, text: first, pair, label }))
    }

    fn class(&self, row: Row<'_>, field: &str, found: &str) -> Result<String, Error> {
        match self.names.get(found) {
            Some(name) => Ok(name.clone()),
            None if found.is_empty() => Err(row.wrong(format!("nothing as {field:?}"), "a class")),
            // Another class than the one without quotes, which is what such a file means.
            None if found.len() > 1 && found.starts_with('"') && found.ends_with('"') => Err(row.wrong(
                format!("{found} as {field:?}"),
                "a class without quotes: between tabs they are characters; write the rows between commas, or remove the quotes",
            )),
            None if self.names.is_empty() => Ok(found.to_owned()),
            None => {
                let known: Vec<String> = self.names.keys().map(|name| format!("{name:?}")).collect();
                Err(row.wrong(format!("{found:?} as {field:?}"), known.join(" or ")))
            }
        }
    }
}

/// The text of a field.
fn text(row: Row<'_>, name: &str, field: impl Fn(&str) -> Option<Value>) -> Result<String, Error> {
    match field(name) {
        Some(Value::Text(text)) => Ok(text),
        Some(Value::Texts(_)) => Err(row.wrong(format!("a list as {name:?}"), "a text or a number")),
        Some(Value::Named(_)) => Err(row.wrong(format!("an object as {name:?}"), "a text or a number")),
        None => Err(row.wrong(format!("no {name:?}"), "it in every row")),
    }
}

impl Choice {
    /// Choices by their letters, in the order of these.
    fn lettered<'n>(
        &self,
        row: Row<'_>,
        name: &'n String,
        mut texts: Vec<(String, String)>,
    ) -> Result<Vec<(&'n String, String)>, Error> {
        texts.sort();
        let letters = (b'A'..=b'Z').map(|letter| char::from(letter).to_string());
        let fits = texts.iter().zip(letters).all(|((key, _), letter)| key.eq_ignore_ascii_case(&letter));
        if !fits || !matches!(self.right, Right::Letter(_)) {
            let keys: Vec<&str> = texts.iter().map(|(key, _)| key.as_str()).collect();
            let found = format!("choices {} as {name:?}", keys.join(", "));
            return Err(row.wrong(found, "choices A, B and so on, and answer.choice.right.letter"));
        }
        Ok(texts.into_iter().map(|(_, text)| (name, text)).collect())
    }

    /// The choices of a row, `field` giving its fields by name.
    fn found(&self, row: Row<'_>, field: &impl Fn(&str) -> Option<Value>) -> Result<example::Choice, Error> {
        let listed = match &self.of[..] {
            [name] => match field(name) {
                Some(Value::Texts(texts)) => Some(texts.into_iter().map(|text| (name, text)).collect()),
                Some(Value::Named(texts)) => Some(self.lettered(row, name, texts)?),
                _ => None,
            },
            _ => None,
        };
        let of: Vec<(&String, String)> = match listed {
            Some(listed) => listed,
            None => self
                .of
                .iter()
                .map(|name| Ok((name, text(row, name, field)?)))
                .collect::<Result<_, Error>>()?,
        };
        if of.len() < 2 {
            return Err(row.wrong(format!("{} choices", of.len()), "two at least"));
        }
        let question = self.question.as_ref().map(|name| text(row, name, field)).transpose()?;
        let choices = of.iter().map(|(name, choice)| match (choice.trim(), &question) {
            ("", _) => Err(row.wrong(format!("nothing as {name:?}"), "a choice")),
            (choice, None) => Ok(choice.to_owned()),
            (choice, Some(question)) => Ok(format!("{} {choice}", question.trim())),
        });
        let choices = choices.collect::<Result<Vec<_>, _>>()?;
        let right = self.right.place(row, text(row, self.right.field(), field)?.trim(), choices.len())?;
        Ok(example::Choice { choices, right })
    }
}

/// Whether a list has a 0 or a 1 for each class: more than one of a kind, and nothing else.
fn is_one_hot(texts: &[String]) -> bool {
    let count = |of: &str| texts.iter().filter(|text| text.as_str() == of).count();
    let (none, one) = (count("0"), count("1"));
    none + one == texts.len() && (none > 1 || one > 1)
}

#[cfg(test)]
mod tests {
    use super::super::tests::items;
    use super::*;

    #[test]
    fn choices_are_fields_or_a_list_and_the_right_one_has_a_number_or_a_letter() {
        let choice = |of: &[&str], right: Right| {
            let of = of.iter().map(|&name| name.to_owned()).collect();
            Fields::new("q", None, Asked::Choice(Choice { of, question: None, right }))
        };
        let one = choice(&["a", "b"], Right::NumberFrom1("r".to_owned()));
        let rows = "{\"q\": \"Which?\", \"a\": \"x\", \"b\": \"y\", \"r\": 2}";
        let label = |of: &Fields, rows: &str| items(of, rows).map(|(found, _)| found[0].label.clone());
        let said = |choices: &[&str], right| {
            Label::Choice(example::Choice {
                choices: choices.iter().map(|&text| text.to_owned()).collect(),
                right,
            })
        };
        assert_eq!(label(&one, rows).unwrap(), said(&["x", "y"], 1));
        let refused = |of: &Fields, rows: &str| label(of, rows).unwrap_err().to_string();
        assert!(refused(&one, &rows.replace('2', "0")).contains("expected a whole number from 1 to 2"));
        let list = choice(&["of"], Right::Letter("r".to_owned()));
        let rows = "{\"q\": \"Which?\", \"of\": [\"x\", \"y\", \"z\"], \"r\": \"C\"}";
        assert_eq!(label(&list, rows).unwrap(), said(&["x", "y", "z"], 2));
        assert_eq!(label(&list, &rows.replace("\"C\"", "\"b\"")).unwrap(), said(&["x", "y", "z"], 1));
        assert!(refused(&list, &rows.replace("\"C\"", "\"D\"")).contains("one of the first 3 letters"));
        assert!(
            refused(&list, &rows.replace(", \"y\", \"z\"", "")).contains("1 choices, expected two at least")
        );
        // As MedQA has them, in whatever order.
        let rows = "{\"q\": \"Which?\", \"of\": {\"B\": \"y\", \"A\": \"x\"}, \"r\": \"B\"}";
        assert_eq!(label(&list, rows).unwrap(), said(&["x", "y"], 1));
        let other = refused(&list, &rows.replace("\"A\"", "\"C\""));
        assert!(other.contains("choices B, C as \"of\", expected choices A, B"), "{other}");
        let numbered = choice(&["of"], Right::NumberFrom0("r".to_owned()));
        assert!(refused(&numbered, rows).contains("answer.choice.right.letter"));
        let none = choice(&[], Right::Letter("r".to_owned()));
        assert!(none.check().unwrap_err().to_string().contains("answer.choice.of names no field"));
    }
}
