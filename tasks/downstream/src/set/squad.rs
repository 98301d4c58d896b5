//! SQuAD (Rajpurkar et al. 2016, 2018): questions about a passage, whose answers stand in it, with the characters at which they begin.
//!
//! As published: `{"data": [{"title", "paragraphs": [{"context", "qas": [{"id", "question", "is_impossible", "answers": [{"text", "answer_start"}]}]}]}]}`. As `datasets`
//! writes it, an object per line: `{"id", "title", "context", "question", "answers": {"text": [], "answer_start": []}}`. Questions without answers are those of SQuAD 2.0
//! that the passage does not answer.

use std::ops::Range;
use std::path::Path;

use base::line::Place;
use base::read::ReadError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tasks::Error;

use super::{Item, Label, NO_TEXT, PublishedSet, Row, content, jsonl, stem};
use crate::example::passages::{Passage, Passages};
use crate::example::{Kind, Measure};
use crate::funnel::Step;
use text::characters::Characters;
use text::mention::Misfits;
use text::unmarked;

/// What is done about what cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What to do with answers that do not stand where they are said to: refuse the file, or leave their questions out and count them.
    pub misfits: Misfits,
}

/// Why questions are left out.
const MISFIT: &str = "an answer that does not stand where it is said to";

#[derive(Deserialize)]
struct Published {
    data: Vec<Article>,
}

#[derive(Deserialize)]
struct Article {
    #[serde(default)]
    title: String,
    paragraphs: Vec<Paragraph>,
}

#[derive(Deserialize)]
struct Paragraph {
    context: String,
    qas: Vec<Asked>,
}

#[derive(Deserialize)]
struct Asked {
    id: Value,
    question: String,
    /// Required of questions that are not said to have none: a file whose answers are kept back has no key.
    #[serde(default)]
    answers: Option<Vec<Answer>>,
    #[serde(default)]
    is_impossible: bool,
}

#[derive(Deserialize)]
struct Answer {
    text: String,
    /// Below 0 where it was not found.
    answer_start: i64,
}

/// A line of `datasets`.
#[derive(Deserialize)]
struct Flat {
    id: Value,
    #[serde(default)]
    title: Option<String>,
    context: String,
    question: String,
    answers: Columns,
    #[serde(default)]
    is_impossible: bool,
}

#[derive(Deserialize)]
struct Columns {
    text: Vec<String>,
    answer_start: Vec<i64>,
}

/// A question about a passage.
#[derive(Clone, Copy)]
struct Question<'a> {
    id: &'a Value,
    group: &'a str,
    context: &'a str,
    question: &'a str,
    answers: &'a [Answer],
}

/// A file whose questions are handed on.
struct Reader<'a> {
    stem: String,
    misfits: Misfits,
    step: Step,
    take: &'a mut dyn FnMut(Item),
}

impl PublishedSet for Config {
    fn extensions(&self) -> &'static [&'static str] {
        &[".json", ".json.gz", ".jsonl", ".jsonl.gz"]
    }

    fn kind(&self) -> Kind {
        Kind::Span
    }

    fn measure(&self) -> Measure {
        Measure::AnswerF1
    }

    fn read(&self, file: &Path, take: &mut dyn FnMut(Item)) -> Result<Vec<Step>, Error> {
        let mut reader =
            Reader { stem: stem(file), misfits: self.misfits, step: Step::new("questions"), take };
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".jsonl") || name.ends_with(".jsonl.gz") {
            reader.lines(file)?;
        } else {
            reader.published(file)?;
        }
        Ok(vec![reader.step])
    }
}

impl Reader<'_> {
    fn published(&mut self, file: &Path) -> Result<(), Error> {
        let text = content(file)?;
        let json = unmarked(&text);
        let found: Published = serde_json::from_str(json).map_err(|error| {
            let place = Place { file: file.to_owned(), line: error.line() as u64, column: None };
            let expected = "questions as SQuAD has them: `data`, `paragraphs`, `context`, `qas` with `id`, `question` and `answers` (docs/config.md, Formats of published sets)";
            Error::from(ReadError::new(place, error.to_string(), expected, "fix it, or take another format"))
        })?;
        // Some files have one article of everything, by a name of its own.
        let several = found.data.len() > 1;
        for article in &found.data {
            for paragraph in &article.paragraphs {
                let title = article.title.trim();
                let group = if several && !title.is_empty() { title } else { paragraph.context.as_str() };
                for asked in &paragraph.qas {
                    let (context, question) = (&paragraph.context, &asked.question);
                    let line = || {
                        let id = asked.id.to_string();
                        let is_it = |(at, key): &(usize, &str)| {
                            let behind = json[at + key.len()..].trim_start();
                            behind.strip_prefix(':').is_some_and(|value| value.trim_start().starts_with(&id))
                        };
                        let at = json.match_indices("\"id\"").find(is_it).map_or(0, |(at, _)| at);
                        json[..at].matches('\n').count() as u64 + 1
                    };
                    let wrong = |what, expected| Row { file, line: line() }.wrong(what, expected);
                    // What is said to answer a question that has none are SQuAD 2.0's plausible answers.
                    let answers = match &asked.answers {
                        _ if asked.is_impossible => &[],
                        Some(answers) => answers.as_slice(),
                        None => {
                            let found = format!("no `answers` of question {}", asked.id);
                            let expected = "a list of them, empty where the passage does not answer: a file whose answers are kept back cannot be scored";
                            return Err(wrong(found, expected.to_owned()));
                        }
                    };
                    self.question(Question { id: &asked.id, group, context, question, answers }, wrong)?;
                }
            }
        }
        Ok(())
    }

    fn lines(&mut self, file: &Path) -> Result<(), Error> {
        jsonl::objects(file, |row, object| {
            let expected =
                "`id`, `context`, `question` and `answers`, the latter with `text` and `answer_start`";
            let Flat { id, title, context, question, answers, is_impossible } =
                serde_json::from_value(Value::Object(object))
                    .map_err(|error| row.wrong(error.to_string(), expected))?;
            if answers.text.len() != answers.answer_start.len() {
                let found =
                    format!("{} answers and {} places", answers.text.len(), answers.answer_start.len());
                return Err(row.wrong(found, "a place for each answer"));
            }
            let both = answers.text.into_iter().zip(answers.answer_start);
            let answers = both.filter(|_| !is_impossible);
            let answers: Vec<Answer> =
                answers.map(|(text, answer_start)| Answer { text, answer_start }).collect();
            let title = title.filter(|title| !title.trim().is_empty());
            let group = title.as_deref().map_or(context.as_str(), str::trim);
            let of = Question { id: &id, group, context: &context, question: &question, answers: &answers };
            self.question(of, |what, expected| row.wrong(what, expected))
        })
    }

    /// Hands a question on, or counts why not.
    fn question(&mut self, of: Question<'_>, wrong: impl Fn(String, String) -> Error) -> Result<(), Error> {
        let id = of.id.as_str().map_or_else(|| of.id.to_string(), str::to_owned);
        if of.question.trim().is_empty() || of.context.trim().is_empty() {
            self.step.drop(NO_TEXT, 1);
            return Ok(());
        }
        let characters = Characters::new(of.context);
        let (mut spans, mut accepted) = (vec![], vec![]);
        for answer in of.answers {
            let Some(span) = place(of.context, &characters, answer) else {
                if self.misfits == Misfits::Drop {
                    self.step.drop(MISFIT, 1);
                    return Ok(());
                }
                let start = usize::try_from(answer.answer_start).unwrap_or(usize::MAX);
                let end = start.saturating_add(answer.text.chars().count());
                let there = characters.byte(start).zip(characters.byte(end));
                let there = there.and_then(|(start, end)| of.context.get(start..end)).unwrap_or_default();
                let found = format!("{there:?} at character {} for question {id}", answer.answer_start);
                return Err(wrong(
                    found,
                    format!("its answer {:?}, or `misfits: drop` to leave such questions out", answer.text),
                ));
            };
            let text = of.context[span.clone()].to_owned();
            if !accepted.contains(&text) {
                accepted.push(text);
            }
            spans.push(span);
        }
        spans.sort_by_key(|span| (span.start, span.end));
        spans.dedup();
        self.step.keep(1);
        let passages = vec![Passage { text: of.context.to_owned(), spans }];
        (self.take)(Item {
            id: format!("{}/{id}", self.stem),
            group: of.group.to_owned(),
            text: of.question.trim().to_owned(),
            pair: None,
            label: Label::Passages(Passages { passages, accepted }),
        });
        Ok(())
    }
}

/// Where an answer stands, in bytes and without white space at its ends, if it does.
fn place(context: &str, characters: &Characters, answer: &Answer) -> Option<Range<usize>> {
    let start = characters.byte(usize::try_from(answer.answer_start).ok()?)?;
    let found = context.get(start..)?.get(..answer.text.len())?;
    let (trimmed, before) = (found.trim(), found.len() - found.trim_start().len());
    (found == answer.text && !trimmed.is_empty()).then(|| start + before..start + before + trimmed.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, misfits: Misfits, content: &str) -> Result<(Vec<Item>, Step), String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        base::whole::write_whole(&file, content.as_bytes()).unwrap();
        let mut items = vec![];
        let steps = Config { misfits }.read(&file, &mut |item| items.push(item));
        let step = steps.map_err(|error| error.to_string())?.remove(0);
        assert!(step.adds_up() && step.kept == items.len() as u64, "{step:?}");
        Ok((items, step))
    }

    fn passages(item: &Item) -> (&str, Vec<Range<usize>>, Vec<&str>) {
        let Label::Passages(of) = &item.label else { panic!("{item:?}") };
        let accepted = of.accepted.iter().map(String::as_str).collect();
        (&of.passages[0].text, of.passages[0].spans.clone(), accepted)
    }

    const NESTED: &str = r#"{"version": "2.0", "data": [{"title": "A", "paragraphs": [{"context": "Née in Ghent, in 1900. ", "qas": [
{"id": "q1", "question": "Where?", "answers": [{"text": "Ghent", "answer_start": 7}, {"text": "in Ghent", "answer_start": 4}, {"text": "Ghent", "answer_start": 7}]},
{"id": 2, "question": "When?", "answers": [{"text": "1900. ", "answer_start": 17}], "is_impossible": false},
{"id": "q3", "question": "Why?", "answers": [], "plausible_answers": [{"text": "1900", "answer_start": 17}], "is_impossible": true}]}]}]}"#;

    #[test]
    fn answers_stand_at_their_characters() {
        let (items, _) = read("some.json", Misfits::Refuse, NESTED).unwrap();
        assert_eq!(passages(&items[0]).1, [5..13, 8..13]);
        assert_eq!(passages(&items[0]).2, ["Ghent", "in Ghent"]);
        assert_eq!(passages(&items[1]).2, ["1900."]);
        assert_eq!((passages(&items[2]).1, passages(&items[2]).2.len()), (vec![], 0));
        // Of one article alone, passages are apart.
        assert_eq!((items[1].id.as_str(), items[0].group.as_str()), ("some/2", "Née in Ghent, in 1900. "));
        let two = NESTED.replacen("[{\"title\"", "[{\"title\": \"B\", \"paragraphs\": []}, {\"title\"", 1);
        assert_eq!(read("some.json", Misfits::Refuse, &two).unwrap().0[0].group, "A");
        let flat = r#"{"id": "q1", "title": "A", "context": "Née in Ghent", "question": "Where?", "answers": {"text": ["Ghent"], "answer_start": [7]}}
{"id": "q2", "title": "A", "context": "Née in Ghent", "question": "Why?", "answers": {"text": [], "answer_start": []}}"#;
        let (items, _) = read("some.jsonl", Misfits::Refuse, flat).unwrap();
        assert_eq!((passages(&items[0]).1[0].clone(), passages(&items[1]).2.len()), (8..13, 0));
        assert_eq!((items[0].group.as_str(), items[1].group.as_str()), ("A", "A"));
        let plausible = flat.lines().next().unwrap().replacen('}', "}, \"is_impossible\": true", 1);
        let (items, _) = read("some.jsonl", Misfits::Refuse, &plausible).unwrap();
        assert!(passages(&items[0]).2.is_empty());
    }

    #[test]
    fn answers_that_stand_elsewhere_are_refused_or_counted() {
        let wrong = NESTED.replacen("\"answer_start\": 4", "\"answer_start\": 5", 1);
        let error = read("some.json", Misfits::Refuse, &wrong).unwrap_err();
        assert!(
            error.contains("line 2") && error.contains("\"n Ghent,\" at character 5 for question q1"),
            "{error}"
        );
        let (items, step) = read("some.json", Misfits::Drop, &wrong).unwrap();
        assert_eq!((items.len(), step.dropped[MISFIT]), (2, 1));
        let beyond = NESTED.replacen("\"answer_start\": 17", "\"answer_start\": 99", 1);
        assert!(read("some.json", Misfits::Refuse, &beyond).unwrap_err().contains("\"\" at character 99"));
        let lost = NESTED.replacen("\"answer_start\": 17", "\"answer_start\": -1", 1);
        assert!(read("some.json", Misfits::Refuse, &lost).unwrap_err().contains("\"\" at character -1"));
        assert_eq!(read("some.json", Misfits::Drop, &lost).unwrap().1.dropped[MISFIT], 1);
        let kept = NESTED.replacen("\"answers\": [{\"text\": \"1900", "\"kept\": [{\"text\": \"1900", 1);
        let error = read("some.json", Misfits::Drop, &kept).unwrap_err();
        assert!(error.contains("line 3") && error.contains("no `answers` of question 2"), "{error}");
        let error = read("some.json", Misfits::Refuse, "{\"data\":\n[{}]}").unwrap_err();
        assert!(error.contains("line 2") && error.contains("paragraphs"), "{error}");
    }
}
