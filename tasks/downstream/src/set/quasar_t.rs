//! Quasar-T (Dhingra et al. 2017): trivia questions, each with passages of a web corpus that a search found for it.
//!
//! `questions/PART_questions.json.gz` has an object per line, `{"uid", "question", "answer", "tags"}`, and `contexts/short/PART_contexts.json.gz`, or `long`, one for each of these in
//! the same order, `{"uid", "contexts": [[score, passage], ...]}`. Where the answer stands is not said: its occurrences are searched.

use std::path::Path;

use base::line::Lines;
use serde::{Deserialize, Serialize};
use tasks::Error;

use super::{Item, Label, NO_TEXT, PublishedSet, Row, open, stem};
use crate::example::passages::{Passage, Passages};
use crate::example::{Kind, Measure};
use crate::funnel::Step;

/// Which passages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Sentences (`short`) or pieces of web pages of up to 2,048 characters (`long`).
    pub contexts: Contexts,
    /// The passages of a question that are read, the best ones of the search first; left out, all: 100 short or 20 long ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passages: Option<std::num::NonZeroUsize>,
}

/// How long passages are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Contexts {
    /// Sentences.
    Short,
    /// Pieces of web pages.
    Long,
}

/// How the names of files with questions go on behind their part.
const QUESTIONS: &str = "_questions.json";
/// Why questions are left out.
pub(super) const NO_PASSAGE: &str = "no passage";

#[derive(Deserialize)]
struct Asked {
    uid: String,
    question: String,
    answer: String,
}

#[derive(Deserialize)]
struct Found {
    uid: String,
    contexts: Vec<(f64, String)>,
}

impl PublishedSet for Config {
    fn extensions(&self) -> &'static [&'static str] {
        &["_questions.json", "_questions.json.gz"]
    }

    fn beside(&self, name: &str) -> Vec<String> {
        let folder = match self.contexts {
            Contexts::Short => "short",
            Contexts::Long => "long",
        };
        let contexts = name.replacen(QUESTIONS, "_contexts.json", 1);
        vec![format!("../contexts/{folder}/{contexts}")]
    }

    fn kind(&self) -> Kind {
        Kind::Span
    }

    fn measure(&self) -> Measure {
        Measure::AnswerF1
    }

    fn read(&self, file: &Path, take: &mut dyn FnMut(Item)) -> Result<Vec<Step>, Error> {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let beside = file.with_file_name(self.beside(&name).remove(0));
        let (mut questions, mut contexts) =
            (Lines::new(open(file)?, file), Lines::new(open(&beside)?, &beside));
        let (mut step, mut line, stem) = (Step::new("questions"), 0, stem(file));
        let part = stem.strip_suffix("_questions").unwrap_or(&stem);
        loop {
            line += 1;
            let (asked, of) = (Row { file, line }, Row { file: &beside, line });
            let expected = "a question as Quasar-T has them: `uid`, `question` and `answer`";
            let asked = parsed::<Asked>(&mut questions, asked, expected)?;
            let found =
                parsed::<Found>(&mut contexts, of, "`uid` and `contexts`, pairs of a score and a text")?;
            let (asked, found) = match (asked, found) {
                (None, None) => break,
                (Some(asked), Some(found)) if asked.uid == found.uid => (asked, found),
                (asked, found) => {
                    let uid = |of: Option<String>| of.map_or("no line".to_owned(), |uid| format!("{uid:?}"));
                    let expected = format!(
                        "{}, the question on this line of {}",
                        uid(asked.map(|of| of.uid)),
                        file.display()
                    );
                    return Err(of.wrong(uid(found.map(|of| of.uid)), expected));
                }
            };
            let most = self.passages.map_or(usize::MAX, std::num::NonZero::get);
            let texts = found.contexts.into_iter().map(|(_, text)| text).take(most);
            let id = format!("{part}/{}", asked.uid);
            searched(
                &mut step,
                take,
                Searched { id, question: &asked.question, answer: &asked.answer },
                texts,
            );
        }
        Ok(vec![step])
    }
}

/// A question whose answer is searched in passages.
pub(super) struct Searched<'a> {
    pub(super) id: String,
    pub(super) question: &'a str,
    pub(super) answer: &'a str,
}

/// Hands a question on with passages in which its answer's occurrences are marked, or counts why not.
pub(super) fn searched(
    step: &mut Step,
    take: &mut dyn FnMut(Item),
    Searched { id, question, answer }: Searched<'_>,
    texts: impl Iterator<Item = String>,
) {
    let (question, answer) = (question.trim(), answer.trim());
    if question.is_empty() || answer.is_empty() {
        return step.drop(NO_TEXT, 1);
    }
    let accepted = vec![answer.to_owned()];
    let texts = texts.filter(|text| !text.trim().is_empty());
    let passages: Vec<Passage> = texts.map(|text| Passage::searched(text, &accepted)).collect();
    if passages.is_empty() {
        return step.drop(NO_PASSAGE, 1);
    }
    step.keep(1);
    let label = Label::Passages(Passages { passages, accepted });
    take(Item { group: id.clone(), id, text: question.to_owned(), pair: None, label });
}

/// The object on the next line, if there is one.
fn parsed<T: serde::de::DeserializeOwned>(
    lines: &mut Lines<'_, Box<dyn std::io::BufRead>>,
    row: Row<'_>,
    expected: &str,
) -> Result<Option<T>, Error> {
    let Some(line) = lines.next_line()? else { return Ok(None) };
    let found = serde_json::from_str(text::unmarked(line.text));
    found.map(Some).map_err(|error| row.wrong(error.to_string(), expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUESTION: &str = "{\"answer\": \"sarajevo\", \"question\": \"In what city ?\", \"uid\": \"s0q1\", \"tags\": [\"1tok\"]}\n{\"answer\": \"x\", \"question\": \"Who ?\", \"uid\": \"s0q2\", \"tags\": []}\n";
    const CONTEXT: &str = "{\"uid\": \"s0q1\", \"contexts\": [[6.5, \"He died in Sarajevo .\"], [3, \"No city .\"]]}\n{\"uid\": \"s0q2\", \"contexts\": []}\n";

    fn read(questions: &str, contexts: &str, passages: &str) -> Result<(Vec<Item>, Step), String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in
            [("questions/dev_questions.json", questions), ("contexts/short/dev_contexts.json", contexts)]
        {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            base::whole::write_whole(&path, content.as_bytes()).unwrap();
        }
        let config: Config = serde_json::from_str(&format!("{{\"contexts\": \"short\"{passages}}}")).unwrap();
        let mut items = vec![];
        let file = folder.path().join("questions/dev_questions.json");
        let steps = config.read(&file, &mut |item| items.push(item)).map_err(|error| error.to_string())?;
        assert!(steps[0].adds_up() && steps[0].kept == items.len() as u64);
        Ok((items, steps[0].clone()))
    }

    #[test]
    fn occurrences_of_the_answer_are_marked_in_what_the_search_found() {
        let (items, step) = read(QUESTION, CONTEXT, "").unwrap();
        let Label::Passages(of) = &items[0].label else { panic!("{items:?}") };
        let spans: Vec<_> = of.passages.iter().map(|passage| passage.spans.as_slice()).collect();
        assert_eq!((items[0].id.as_str(), spans[0][0].clone(), spans[1].len()), ("dev/s0q1", 11..19, 0));
        assert_eq!(step.dropped[NO_PASSAGE], 1);
        let (items, _) = read(QUESTION, CONTEXT, ", \"passages\": 1").unwrap();
        let Label::Passages(of) = &items[0].label else { panic!("{items:?}") };
        assert_eq!(of.passages.len(), 1);
    }

    #[test]
    fn passages_of_another_question_are_refused() {
        for (contexts, found) in [
            (CONTEXT.replacen("s0q2", "s0q3", 1), "found \"s0q3\", expected \"s0q2\""),
            (CONTEXT.lines().next().unwrap().to_owned(), "found no line, expected \"s0q2\""),
        ] {
            let error = read(QUESTION, &contexts, "").unwrap_err();
            assert!(error.contains("contexts.json: line 2") && error.contains(found), "{error}");
        }
    }
}
