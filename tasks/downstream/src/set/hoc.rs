//! The Hallmarks of Cancer (Baker et al. 2016): abstracts whose sentences have any of ten hallmarks.
//!
//! `text/PMID.txt` has a sentence a line, `labels/PMID.txt` for each a `<` and its labels with ` AND` between them; `--` stands between
//! a hallmark and its branches, `NULL` for none.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tasks::Error;

use super::{Item, Label, NO_TEXT, PublishedSet, Row, content, stem, tidied};
use crate::example::{Kind, Measure};
use crate::funnel::Step;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The texts that hallmarks are predicted for.
    pub of: Unit,
}

/// Of what the hallmarks are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Whole abstracts, with the hallmarks of all their sentences; as in BLUE, abstracts without one are left out.
    Abstracts,
    /// Single sentences.
    Sentences,
}

const LABELS: &str = "labels";
const NO_HALLMARK: &str = "no hallmark";

impl PublishedSet for Config {
    fn extensions(&self) -> &'static [&'static str] {
        &[".txt", ".txt.gz"]
    }

    fn is_a_folder(&self) -> bool {
        true
    }

    fn has_items(&self, file: &Path) -> bool {
        file.parent().and_then(Path::file_name) != Some(OsStr::new(LABELS))
    }

    fn kind(&self) -> Kind {
        Kind::AnyClasses
    }

    fn measure(&self) -> Measure {
        Measure::ExampleF1
    }

    fn read(&self, file: &Path, take: &mut dyn FnMut(Item)) -> Result<Vec<Step>, Error> {
        let of_set = file.parent().and_then(Path::parent).unwrap_or(Path::new(""));
        let beside = of_set.join(LABELS).join(file.file_name().unwrap_or_default());
        let text = content(file)?;
        let sentences: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let labels = content(&beside)?;
        let labels: Vec<BTreeSet<String>> = labels.split('<').skip(1).map(hallmarks).collect();
        if sentences.len() != labels.len() {
            let found = format!("labels of {} sentences", labels.len());
            let expected = format!("{}, one for each sentence of {}", sentences.len(), file.display());
            return Err(Row { file: &beside, line: 1 }.wrong(found, expected));
        }
        let (mut step, id) = (Step::new("texts"), stem(file));
        let item = |id: String, text: String, classes: BTreeSet<String>| Item {
            id,
            group: stem(file),
            text,
            pair: None,
            label: Label::Classes(classes.into_iter().collect()),
        };
        match self.of {
            Unit::Abstracts if sentences.is_empty() => step.drop(NO_TEXT, 1),
            Unit::Abstracts if labels.iter().all(BTreeSet::is_empty) => step.drop(NO_HALLMARK, 1),
            Unit::Abstracts => {
                step.keep(1);
                let lines: Vec<String> = sentences.iter().map(|line| tidied(line)).collect();
                take(item(id, lines.join(" "), labels.into_iter().flatten().collect()));
            }
            Unit::Sentences => {
                for (number, (sentence, classes)) in sentences.iter().zip(labels).enumerate() {
                    step.keep(1);
                    take(item(format!("{id}/{}", number + 1), tidied(sentence), classes));
                }
            }
        }
        Ok(vec![step])
    }
}

/// The hallmarks of a sentence, without their branches.
fn hallmarks(labels: &str) -> BTreeSet<String> {
    let roots = labels.split(" AND").map(|label| label.split("--").next().unwrap_or_default().trim());
    roots.filter(|root| !root.is_empty() && *root != "NULL").map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn folder(text: &str, labels: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in [("text", text), ("labels", labels)] {
            fs::create_dir(folder.path().join(name)).unwrap();
            base::whole::write_whole(&folder.path().join(name).join("7.txt"), content.as_bytes()).unwrap();
        }
        folder
    }

    fn items(folder: &Path, of: Unit) -> Result<Vec<Item>, String> {
        let mut items = vec![];
        let steps = Config { of }.read(&folder.join("text/7.txt"), &mut |item| items.push(item));
        assert!(steps.map_err(|error| error.to_string())?.iter().all(Step::adds_up));
        Ok(items)
    }

    #[test]
    fn hallmarks_are_those_of_a_sentence_or_of_all() {
        let labels = "< <Inducing angiogenesis--x--y ANDResisting cell death--z ANDResisting cell death<NULL";
        let folder = folder("One .\n\nTwo  .\nThree .\n", labels);
        let sentences = items(folder.path(), Unit::Sentences).unwrap();
        let both = ["Inducing angiogenesis", "Resisting cell death"].map(str::to_owned).to_vec();
        assert_eq!(sentences.iter().map(|item| item.id.as_str()).collect::<Vec<_>>(), ["7/1", "7/2", "7/3"]);
        assert_eq!(
            (&sentences[1].text, &sentences[1].label),
            (&"Two .".to_owned(), &Label::Classes(both.clone()))
        );
        assert_eq!(sentences[2].label, Label::Classes(vec![]));
        let none = self::folder("One .\n", "<NULL");
        assert_eq!(items(none.path(), Unit::Abstracts).unwrap(), []);
        let whole = items(folder.path(), Unit::Abstracts).unwrap();
        assert_eq!((whole[0].text.as_str(), &whole[0].label), ("One . Two . Three .", &Label::Classes(both)));
    }

    #[test]
    fn labels_are_those_of_the_sentences() {
        let short = folder("One .\nTwo .\n", "< ");
        let error = items(short.path(), Unit::Abstracts).unwrap_err();
        assert!(error.contains("labels/7.txt: line 1: found labels of 1 sentences, expected 2"), "{error}");
        fs::remove_file(short.path().join("labels/7.txt")).unwrap();
        assert!(items(short.path(), Unit::Abstracts).unwrap_err().contains("labels/7.txt: cannot open it"));
        let has_items = |file| Config { of: Unit::Abstracts }.has_items(Path::new(file));
        assert!(has_items("a/text/7.txt") && !has_items("a/labels/7.txt"));
    }
}
