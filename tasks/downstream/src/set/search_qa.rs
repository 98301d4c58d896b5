//! SearchQA (Dunn et al. 2017): questions of a quiz show with what a search engine showed for them.
//!
//! `train.txt`, `val.txt` and `test.txt` have a question per line, `<s> snippet </s>  <s> snippet </s> ||| question ||| answer`. Where the answer stands is not said: its occurrences are
//! searched.

use std::path::Path;

use base::line::Lines;
use serde::{Deserialize, Serialize};
use tasks::Error;

use super::quasar_t::{Searched, searched};
use super::{Item, PublishedSet, Row, open, stem};
use crate::example::{Kind, Measure};
use crate::funnel::Step;

/// Which passages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The snippets of a question that are read, the first ones; left out, all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passages: Option<std::num::NonZeroUsize>,
}

/// What stands between the three.
const BETWEEN: &str = "|||";

impl PublishedSet for Config {
    fn extensions(&self) -> &'static [&'static str] {
        &[".txt", ".txt.gz"]
    }

    fn kind(&self) -> Kind {
        Kind::Span
    }

    fn measure(&self) -> Measure {
        Measure::AnswerF1
    }

    fn read(&self, file: &Path, take: &mut dyn FnMut(Item)) -> Result<Vec<Step>, Error> {
        let (mut step, mut number, stem) = (Step::new("questions"), 0, stem(file));
        let most = self.passages.map_or(usize::MAX, std::num::NonZero::get);
        let mut lines = Lines::new(open(file)?, file);
        while let Some(line) = lines.next_line()? {
            number += 1;
            let text = text::unmarked(line.text).trim();
            if text.is_empty() {
                continue;
            }
            // From the end, since a snippet may have anything.
            let fields: Vec<&str> = text.rsplitn(3, BETWEEN).collect();
            let [answer, question, snippets] = fields[..] else {
                let found = format!("{} fields between {BETWEEN}", fields.len());
                return Err(Row { file, line: number }
                    .wrong(found, "three: `<s> snippet </s> ... ||| question ||| answer`"));
            };
            let texts = snippets.split("<s>").map(|of| of.trim().trim_end_matches("</s>").trim().to_owned());
            let texts = texts.filter(|of| !of.is_empty()).take(most);
            searched(&mut step, take, Searched { id: format!("{stem}/{number}"), question, answer }, texts);
        }
        Ok(vec![step])
    }
}

#[cfg(test)]
mod tests {
    use super::super::Label;
    use super::super::tests::items;
    use super::*;
    use crate::example::passages::Passage;

    #[test]
    fn snippets_are_passages() {
        let all = Config { passages: None };
        let content = "<s> He was born in Ghent . </s>  <s> Ghent is a city </s>  <s> none </s> ||| this city ||| ghent\n\n||| no snippet ||| x\n";
        let (found, step) = items(&all, content).unwrap();
        let Label::Passages(of) = &found[0].label else { panic!("{found:?}") };
        let starts = |passage: &Passage| passage.spans.iter().map(|span| span.start).collect::<Vec<_>>();
        let starts: Vec<_> = of.passages.iter().map(starts).collect();
        assert_eq!(starts, [vec![15], vec![0], vec![]]);
        assert_eq!((found[0].text.as_str(), step.dropped.values().sum::<u64>()), ("this city", 1));
        let first = Config { passages: std::num::NonZeroUsize::new(1) };
        let Label::Passages(of) = &items(&first, content).unwrap().0[0].label else { panic!() };
        assert_eq!(of.passages.len(), 1);
        assert_eq!(items(&all, "<s> a ||| b </s> ||| q ||| b\n").unwrap().0[0].text, "q");
        let error = items(&all, "<s> a </s> ||| b\n").unwrap_err();
        assert!(error.contains("line 1: found 2 fields between |||"), "{error}");
    }
}
