//! Kinds of questions (TREC, Li and Roth 2002): a line each, `DESC:manner How did ... ?`, in Latin-1.

use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tasks::Error;

use super::{Item, Label, NO_TEXT, PublishedSet, Row, open, stem};
use crate::example::Measure;
use crate::funnel::Step;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Which kinds of questions are told apart.
    pub classes: Classes,
}

/// Which kinds are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Classes {
    /// The six coarse kinds.
    Coarse,
    /// The fifty fine kinds.
    Fine,
}

/// Bytes that a file may have: some hundred times as many as the published one.
const MOST: u64 = 64 << 20;

impl PublishedSet for Config {
    fn extensions(&self) -> &'static [&'static str] {
        &[".label", ".txt", ".txt.gz"]
    }

    fn measure(&self) -> Measure {
        Measure::Accuracy
    }

    fn read(&self, file: &Path, take: &mut dyn FnMut(Item)) -> Result<Vec<Step>, Error> {
        let mut bytes = vec![];
        let first = Row { file, line: 1 };
        open(file)?
            .take(MOST + 1)
            .read_to_end(&mut bytes)
            .map_err(|source| base::line::unreadable(first.place(), &source))?;
        if bytes.len() as u64 > MOST {
            return Err(first.wrong(format!("more than {MOST} bytes"), "a file of questions"));
        }
        // Of Latin-1 every byte is the number of its character.
        let text: String = bytes.into_iter().map(char::from).collect();
        let (mut step, stem) = (Step::new("questions"), stem(file));
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
            let row = Row { file, line: number };
            let (label, question) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
            let Some((coarse, _)) = label.split_once(':') else {
                return Err(
                    row.wrong(format!("{label:?}"), "a label such as `DESC:manner` in front of the question")
                );
            };
            if question.trim().is_empty() {
                step.drop(NO_TEXT, 1);
                continue;
            }
            step.keep(1);
            let class = match self.classes {
                Classes::Coarse => coarse,
                Classes::Fine => label,
            };
            let (id, label) = (format!("{stem}/{number}"), Label::Class(class.to_owned()));
            take(Item { group: id.clone(), id, text: question.trim().to_owned(), pair: None, label });
        }
        Ok(vec![step])
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::items;
    use super::*;

    fn of(classes: Classes, bytes: &[u8]) -> Result<(Vec<Item>, Step), String> {
        items(&Config { classes }, bytes)
    }

    #[test]
    fn questions_are_latin_1() {
        let file = b"DESC:manner How did caf\xe9 begin ?\r\n\nNUM:date When ?\nNUM:date \n";
        let (items, step) = of(Classes::Coarse, file).unwrap();
        assert_eq!(
            (items[0].text.as_str(), &items[0].label),
            ("How did café begin ?", &Label::Class("DESC".to_owned()))
        );
        assert_eq!((items[1].id.as_str(), step.dropped[NO_TEXT]), ("some/3", 1));
        assert_eq!(of(Classes::Fine, file).unwrap().0[1].label, Label::Class("NUM:date".to_owned()));
        assert!(of(Classes::Fine, b"What ?\n").unwrap_err().contains("some.txt: line 1: found \"What\""));
    }
}
