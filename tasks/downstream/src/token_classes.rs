//! The classes that a tagger's tokens have: the tags of a set as they are written or as BILOU, and classes of tokens that are no word's.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use tasks::Error;

/// How entities are written as tags.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scheme {
    /// The set's own tags: `B`, `I` and `O`.
    #[default]
    AsGiven,
    /// `L` ends an entity of several words, `U` is a single-word entity (MT-Clinical BERT's code).
    Bilou,
}

/// What tokens that ask for no word's tag are trained to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Others {
    /// They have no class.
    #[default]
    None,
    /// One class for `[CLS]` and `[SEP]` (`BERT_TOKEN` of MT-Clinical BERT's code).
    Special,
    /// One class for each of `[CLS]` and `[SEP]`, plus one for later subwords (`CLS`, `SEP` and `X` of MT-BERT's code); with `subwords =
    /// "first"`.
    LaterAndSpecial,
}

/// How the tags of a set become classes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Classing {
    /// How entities are written as classes. Scores and predictions use the set's tags: `bilou` is decoded by which entity is open.
    ///
    /// Source: the papers, which use the sets' own tags; only MT-Clinical BERT's code has `bilou`.
    #[serde(skip_serializing_if = "is_default")]
    pub scheme: Scheme,
    /// The classes of tokens that are labelled with no word's tag. A word predicted as a class that no word has counts for conlleval as an
    /// entity without a kind if it follows one.
    ///
    /// Source: BERT (Devlin et al. 2019), which labels first subwords only; the other values are those of released codes.
    #[serde(skip_serializing_if = "is_default")]
    pub others: Others,
}

/// Whether something is as it is without being said.
pub fn is_default<T: Default + PartialEq>(of: &T) -> bool {
    *of == T::default()
}

/// A token that is no word's first or only one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Other {
    /// `[CLS]`.
    First,
    /// A subword of which no tag is asked.
    Subword,
    /// `[SEP]`.
    Last,
}

/// What a tag says.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Tag {
    Outside,
    Begin(String),
    Inside(String),
}

/// The classes of the tokens of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenClasses {
    how: Classing,
    /// The set's tags by number.
    tags: Vec<Tag>,
    given: Vec<String>,
    /// The classes of words, then those of other tokens.
    names: Vec<String>,
    words: usize,
}

impl TokenClasses {
    /// Classes of a set's tags.
    ///
    /// # Errors
    /// When the tags cannot be written as BILOU.
    pub fn new(how: Classing, tags: &[String]) -> Result<Self, Error> {
        let (parsed, mut names) = match how.scheme {
            Scheme::AsGiven => (vec![], tags.to_vec()),
            Scheme::Bilou => bilou(tags)?,
        };
        let words = names.len();
        names.extend(how.others.names().iter().map(|name| (*name).to_owned()));
        Ok(Self { how, tags: parsed, given: tags.to_vec(), names, words })
    }

    /// Names of the classes, those of words first.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The set's tags by number.
    #[must_use]
    pub fn given(&self) -> &[String] {
        &self.given
    }

    /// The class of each word of a sentence, given the set's tags.
    #[must_use]
    pub fn of_words(&self, tags: &[u32]) -> Vec<u32> {
        match self.how.scheme {
            Scheme::AsGiven => tags.to_vec(),
            Scheme::Bilou => {
                let tag = |at: usize| tags.get(at).and_then(|tag| self.tags.get(*tag as usize));
                (0..tags.len())
                    .map(|at| self.class(&written(tag(at), at.checked_sub(1).and_then(tag), tag(at + 1))))
                    .collect()
            }
        }
    }

    // Every tag of the set has its four classes.
    fn class(&self, name: &str) -> u32 {
        let place = self.names[..self.words].iter().position(|known| known == name);
        place.and_then(|place| u32::try_from(place).ok()).unwrap_or(0)
    }

    /// The class of a token that asks for no word's tag, if it is trained to be something.
    #[must_use]
    pub fn of_other(&self, other: Other) -> Option<u32> {
        let place = match (self.how.others, other) {
            (Others::None, _) | (Others::Special, Other::Subword) => return None,
            (Others::LaterAndSpecial, Other::Subword) | (Others::Special, _) => self.words,
            (Others::LaterAndSpecial, Other::First) => self.words + 1,
            (Others::LaterAndSpecial, Other::Last) => self.words + 2,
        };
        u32::try_from(place).ok()
    }

    /// The class that padding is trained to be where a code trains it: the first of all names in the order of their letters (MT-Clinical BERT as
    /// released, whose classes are numbered so).
    #[must_use]
    pub fn of_padding(&self) -> u32 {
        let first = self.names.iter().enumerate().min_by_key(|(_, name)| name.as_str());
        first.and_then(|(place, _)| u32::try_from(place).ok()).unwrap_or(0)
    }

    /// The set's tags of a sentence out of predicted classes; none where a word is said to be a class that only other tokens are.
    #[must_use]
    pub fn tags(&self, classes: &[usize]) -> Vec<Option<usize>> {
        let own = |class: usize| (class < self.words).then_some(class);
        if self.how.scheme == Scheme::AsGiven {
            return classes.iter().map(|class| own(*class)).collect();
        }
        let mut open: Option<&str> = None;
        let mut tags = vec![];
        for &class in classes {
            let Some(name) = own(class).and_then(|class| self.names.get(class)) else {
                open = None;
                tags.push(None);
                continue;
            };
            let (prefix, kind) = parts(name);
            // As by conlleval's rules, what goes on without anything open begins something.
            let goes_on = matches!(prefix, "I" | "L") && open == Some(kind);
            open = matches!(prefix, "B" | "I").then_some(kind);
            let behind = name.get(1..).unwrap_or_default();
            let place = |prefix: &str| {
                let tag = format!("{prefix}{behind}");
                self.given.iter().position(|given| *given == tag)
            };
            tags.push(match prefix {
                "O" => place("O"),
                _ if goes_on => place("I").or_else(|| place("B")),
                _ => place("B"),
            });
        }
        tags
    }

    /// As [`TokenClasses::tags`], with the number behind those of the set where there is none: what scores count as a class that no word has.
    #[must_use]
    pub fn tags_or_foreign(&self, classes: &[usize]) -> Vec<usize> {
        self.tags(classes).into_iter().map(|tag| tag.unwrap_or(self.given.len())).collect()
    }
}

impl Others {
    fn names(self) -> &'static [&'static str] {
        match self {
            Others::None => &[],
            Others::Special => &["BERT_TOKEN"],
            Others::LaterAndSpecial => &["X", "CLS", "SEP"],
        }
    }
}

fn parts(tag: &str) -> (&str, &str) {
    tag.split_once('-').unwrap_or((tag, ""))
}

/// The tags of a set taken apart, and the classes of BILOU that they become, by name.
fn bilou(tags: &[String]) -> Result<(Vec<Tag>, Vec<String>), Error> {
    let (mut parsed, mut names) = (vec![], BTreeSet::from(["O".to_owned()]));
    for tag in tags {
        let (prefix, kind) = parts(tag);
        let behind = tag.get(1..).unwrap_or_default().to_owned();
        parsed.push(match prefix {
            "O" if kind.is_empty() => Tag::Outside,
            "B" => Tag::Begin(behind.clone()),
            "I" => Tag::Inside(behind.clone()),
            _ => {
                let expected = "expected `O`, or `B` or `I` with or without `-` and a kind";
                return Err(Error::Unfit(format!(
                    "tag {tag:?}: {expected}; take the tags as they are given"
                )));
            }
        });
        if prefix != "O" {
            let begin = format!("B{behind}");
            if !tags.contains(&begin) {
                let remedy = "take the tags as they are given";
                return Err(Error::Unfit(format!(
                    "there is no tag {begin:?} for entities that begin; {remedy}"
                )));
            }
            names.extend(["B", "I", "L", "U"].map(|prefix| format!("{prefix}{behind}")));
        }
    }
    Ok((parsed, names.into_iter().collect()))
}

/// A word's tag in BILOU, given the set's and those of its neighbours.
fn written(tag: Option<&Tag>, before: Option<&Tag>, after: Option<&Tag>) -> String {
    let of = |tag: Option<&Tag>| match tag {
        Some(Tag::Begin(kind) | Tag::Inside(kind)) => Some(kind.clone()),
        Some(Tag::Outside) | None => None,
    };
    let Some(kind) = of(tag) else { return "O".to_owned() };
    let begins = matches!(tag, Some(Tag::Begin(_))) || of(before).as_ref() != Some(&kind);
    let ends = !matches!(after, Some(Tag::Inside(next)) if *next == kind);
    let prefix = match (begins, ends) {
        (true, true) => "U",
        (true, false) => "B",
        (false, true) => "L",
        (false, false) => "I",
    };
    format!("{prefix}{kind}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(|name| (*name).to_owned()).collect()
    }

    fn classes(scheme: Scheme, others: Others) -> TokenClasses {
        TokenClasses::new(Classing { scheme, others }, &names(&["O", "B-x", "I-x", "B-y"])).unwrap()
    }

    #[test]
    fn tags_as_given_stay() {
        let of = classes(Scheme::AsGiven, Others::None);
        assert_eq!(of.names(), ["O", "B-x", "I-x", "B-y"]);
        assert_eq!(of.of_words(&[0, 2, 1]), [0, 2, 1]);
        assert_eq!(of.tags(&[0, 2, 1]), [Some(0), Some(2), Some(1)]);
        assert_eq!([Other::First, Other::Subword, Other::Last].map(|other| of.of_other(other)), [None; 3]);
    }

    #[test]
    fn bilou_says_where_entities_end_and_comes_back() {
        let of = classes(Scheme::Bilou, Others::None);
        assert_eq!(of.names(), ["B-x", "B-y", "I-x", "I-y", "L-x", "L-y", "O", "U-x", "U-y"]);
        let written = |tags: &[u32]| {
            of.of_words(tags).iter().map(|class| of.names()[*class as usize].clone()).collect::<Vec<_>>()
        };
        assert_eq!(
            written(&[1, 2, 2, 0, 1, 1, 2, 3]),
            ["B-x", "I-x", "L-x", "O", "U-x", "B-x", "L-x", "U-y"]
        );
        // An inside without its beginning is one, as by conlleval's rules.
        assert_eq!(written(&[2, 3, 2]), ["U-x", "U-y", "U-x"]);
        for tags in [&[1, 2, 2, 0, 1, 1, 2, 3][..], &[0, 0], &[3], &[]] {
            let classes: Vec<usize> = of.of_words(tags).iter().map(|class| *class as usize).collect();
            let back: Vec<u32> =
                of.tags(&classes).into_iter().map(|tag| u32::try_from(tag.unwrap()).unwrap()).collect();
            assert_eq!(back, tags);
        }
    }

    #[test]
    fn predicted_bilou_is_read_by_what_is_open() {
        let of = classes(Scheme::Bilou, Others::Special);
        let said = ["I-x", "L-x", "L-x", "U-x", "I-x", "BERT_TOKEN", "L-x", "B-y", "L-y"];
        let said: Vec<usize> =
            said.iter().map(|name| of.names().iter().position(|known| known == name).unwrap()).collect();
        // Kind y has no inside in this set: what goes on is then said to begin.
        let tags = [Some(1), Some(2), Some(1), Some(1), Some(1), None, Some(1), Some(3), Some(3)];
        assert_eq!(of.tags(&said), tags);
    }

    #[test]
    fn other_tokens_have_the_classes_of_the_released_codes() {
        let of = |others| {
            let of = classes(Scheme::AsGiven, others);
            [Other::First, Other::Subword, Other::Last]
                .map(|other| of.of_other(other).map(|class| of.names()[class as usize].clone()))
        };
        let name = |name: &str| Some(name.to_owned());
        assert_eq!(of(Others::LaterAndSpecial), [name("CLS"), name("X"), name("SEP")]);
        assert_eq!(of(Others::Special), [name("BERT_TOKEN"), None, name("BERT_TOKEN")]);
        let special = classes(Scheme::Bilou, Others::Special);
        assert_eq!((special.names()[9].as_str(), special.tags(&[9, 6])), ("BERT_TOKEN", vec![None, Some(0)]));
    }

    #[test]
    fn tags_without_kinds_have_four_classes() {
        let tags = names(&["B", "I", "O"]);
        let of = TokenClasses::new(Classing { scheme: Scheme::Bilou, others: Others::None }, &tags).unwrap();
        assert_eq!(of.names(), ["B", "I", "L", "O", "U"]);
        assert_eq!(of.of_words(&[0, 1, 2, 0]), [0, 2, 3, 4]);
        assert_eq!(of.tags(&[0, 2, 3, 4]), [Some(0), Some(1), Some(2), Some(0)]);
    }

    #[test]
    fn what_cannot_be_written_is_an_error() {
        let text = |tags: &[&str]| {
            let how = Classing { scheme: Scheme::Bilou, others: Others::None };
            TokenClasses::new(how, &names(tags)).unwrap_err().to_string()
        };
        assert!(text(&["O", "S-x"]).starts_with("tag \"S-x\": expected `O`"));
        assert!(text(&["O", "I-x"]).contains("no tag \"B-x\" for entities that begin"));
    }
}
