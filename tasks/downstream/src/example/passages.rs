//! Passages in one of which the answer to a question stands, word for word: extractive question answering (Rajpurkar et al. 2016).

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::tagging::split;

/// Passages that are looked through for the answer to an example's text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Passages {
    /// The passages, at least one.
    pub passages: Vec<Passage>,
    /// Answers of which each is right; none where the passages do not answer the question.
    pub accepted: Vec<String>,
}

/// One passage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Passage {
    /// Its text.
    pub text: String,
    /// Where answers stand in it, in bytes of UTF-8, by their beginnings.
    pub spans: Vec<Range<usize>>,
}

impl Passages {
    /// Whether the question has an answer, in these passages or elsewhere.
    #[must_use]
    pub fn is_answerable(&self) -> bool {
        !self.accepted.is_empty()
    }

    /// What is wrong with them.
    pub(super) fn amiss(&self) -> Option<&'static str> {
        let blank = |text: &String| text.trim().is_empty();
        if self.passages.is_empty() || self.passages.iter().any(|of| blank(&of.text)) {
            return Some("has not a passage or more with a text each");
        }
        if self.accepted.iter().any(blank) {
            return Some("has an empty answer: leave it out");
        }
        for Passage { text, spans } in &self.passages {
            let stands = |span: &Range<usize>| text.get(span.clone()).is_some_and(|of| !of.trim().is_empty());
            if !spans.iter().all(stands) || !spans.is_sorted_by_key(|span| (span.start, span.end)) {
                return Some("has answers that do not stand in a passage, or not in their order");
            }
            if !self.is_answerable() && !spans.is_empty() {
                return Some("has no accepted answer, but a passage in which one stands");
            }
        }
        None
    }
}

impl Passage {
    /// A passage in which each occurrence of an answer is one, by whole words, whatever their case (distant supervision).
    #[must_use]
    pub fn searched(text: String, accepted: &[String]) -> Self {
        let places = split(&text);
        let words: Vec<String> = places.iter().map(|word| text[word.clone()].to_lowercase()).collect();
        let mut spans = vec![];
        for answer in accepted {
            let wanted: Vec<String> =
                split(answer).into_iter().map(|word| answer[word].to_lowercase()).collect();
            if wanted.is_empty() {
                continue;
            }
            let starts = (0..words.len()).filter(|start| words[*start..].starts_with(&wanted));
            spans.extend(starts.map(|start| places[start].start..places[start + wanted.len() - 1].end));
        }
        spans.sort_by_key(|span| (span.start, span.end));
        spans.dedup();
        Self { text, spans }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occurrences_are_whole_words_whatever_their_case() {
        let text = "New York: not Newyork, the new  york; É. new";
        let of = |accepted: &[&str]| {
            let accepted: Vec<String> = accepted.iter().map(|&answer| answer.to_owned()).collect();
            let found = Passage::searched(text.to_owned(), &accepted).spans;
            found.into_iter().map(|span| text[span].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(of(&["new york"]), ["New York", "new  york"]);
        assert_eq!(of(&["york ; é", "É", "york"]), ["York", "york", "york; É", "É"]);
        assert!(of(&["ork", "", " ", "york :"]).is_empty() || of(&["york :"]) == ["York:"]);
    }

    #[test]
    fn what_is_amiss_is_said() {
        let passage = |text: &str, spans: &[(usize, usize)]| Passage {
            text: text.to_owned(),
            spans: spans.iter().map(|(start, end)| *start..*end).collect(),
        };
        let all = |passages: Vec<Passage>, accepted: &[&str]| {
            let accepted = accepted.iter().map(|&answer| answer.to_owned()).collect();
            Passages { passages, accepted }.amiss()
        };
        assert_eq!(all(vec![passage("é x", &[(0, 2)]), passage("y", &[])], &["é"]), None);
        assert_eq!(all(vec![passage("x", &[])], &[]), None);
        assert!(all(vec![], &["a"]).unwrap().contains("a passage or more"));
        assert!(all(vec![passage(" ", &[])], &["a"]).unwrap().contains("a passage or more"));
        assert!(all(vec![passage("x", &[])], &["a", " "]).unwrap().contains("empty answer"));
        for spans in [&[(1, 2)][..], &[(0, 9)], &[(2, 3)], &[(3, 4), (0, 2)], &[(3, 3)]] {
            assert!(all(vec![passage("é x", spans)], &["x"]).unwrap().contains("do not stand"), "{spans:?}");
        }
        assert!(all(vec![passage("x", &[(0, 1)])], &[]).unwrap().contains("no accepted answer"));
    }
}
