//! Texts of which words are masked and asked for, in any format of texts: documents, or their sentences.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tasks::Error;

use super::tagged::Unit;
use super::{Item, Label, NO_TEXT, PublishedSet, stem};
use crate::example::{Kind, Measure};
use crate::funnel::Step;
use text::file::{Format, documents_of};
use text::{Labels, sentence};

/// What is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The format of the files.
    pub format: Format,
    /// What an example is.
    ///
    /// Source: ours: because formats of sentences have a sentence per document, and the text then has its whole context.
    #[serde(default)]
    pub unit: Unit,
}

impl PublishedSet for Config {
    fn extensions(&self) -> &'static [&'static str] {
        self.format.extensions()
    }

    fn is_a_folder(&self) -> bool {
        self.format.is_in_several_files()
    }

    fn kind(&self) -> Kind {
        Kind::MaskedWords
    }

    fn measure(&self) -> Measure {
        Measure::Accuracy
    }

    /// What became of lines that are no text, and of texts, are steps of their own. Sentences of a document stay in one part.
    fn read(&self, file: &Path, take: &mut dyn FnMut(Item)) -> Result<Vec<Step>, Error> {
        let (mut step, stem) = (Step::new("texts"), stem(file));
        let taken = documents_of(file, &self.format, &mut Labels::default(), |document| {
            let starts = match self.unit {
                Unit::Document => vec![],
                Unit::Sentence => sentence::of(&document.text, &document.sentences).into_owned(),
            };
            // A file of one document is called as it is.
            let group = if document.id == stem { stem.clone() } else { format!("{stem}/{}", document.id) };
            let (mut begin, mut number) = (0, 0);
            for end in starts.into_iter().chain([document.text.len()]) {
                let text = document.text[std::mem::replace(&mut begin, end)..end].trim();
                if text.is_empty() {
                    if end == document.text.len() && number == 0 {
                        step.drop(NO_TEXT, 1);
                    }
                    continue;
                }
                number += 1;
                step.keep(1);
                let id = match self.unit {
                    Unit::Document => group.clone(),
                    Unit::Sentence => format!("{group}/{number}"),
                };
                let (group, text) = (group.clone(), text.to_owned());
                take(Item { id, group, text, pair: None, label: Label::MaskedWords });
            }
            Ok::<_, Error>(())
        })?;
        Ok(vec![Step::other_lines(&taken.documents), step])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file: &str, unit: &str, content: &str) -> (Vec<Item>, Vec<Step>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file);
        base::whole::write_whole(&path, content.as_bytes()).unwrap();
        let config = format!("{{\"format\": {{\"text\": \"line\"}}, \"unit\": \"{unit}\"}}");
        let config: Config = serde_json::from_str(&config).unwrap();
        let mut items = vec![];
        let steps = config.read(&path, &mut |item| items.push(item)).unwrap();
        assert!(steps.iter().all(Step::adds_up) && steps[1].kept == items.len() as u64, "{steps:?}");
        (items, steps)
    }

    #[test]
    fn texts_are_documents_or_their_sentences() {
        let content = "Fever is high. Cough is dry.\n\nPain.\n";
        let (documents, _) = read("some.txt", "document", content);
        let texts: Vec<&str> = documents.iter().map(|item| item.text.as_str()).collect();
        assert_eq!(texts, ["Fever is high. Cough is dry.", "Pain."]);
        let (sentences, steps) = read("some.txt", "sentence", content);
        let of: Vec<[&str; 3]> = sentences
            .iter()
            .map(|item| [item.id.as_str(), item.group.as_str(), item.text.as_str()])
            .collect();
        assert_eq!(of[0][2], "Fever is high.");
        assert!(of[0][1] == of[1][1] && of[1][0].ends_with("/2") && of[2][2] == "Pain.", "{of:?}");
        assert_eq!(steps[1].kept, 3);
        assert!(sentences.iter().all(|item| item.label == Label::MaskedWords && item.pair.is_none()));
    }
}
