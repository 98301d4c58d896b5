//! Relations between chemicals and proteins (ChemProt, Krallinger et al. 2017) as SciBERT's authors give them.
//!
//! `{"text": "<< EGFR >> inhibitors ... [[ gefitinib ]] ...", "label": "INHIBITOR"}`: the marks stand around the arguments, in the order of
//! the text. There are no pairs without a relation.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use tasks::Error;

use super::jsonl::objects;
use super::{Item, Label, PublishedSet, stem};
use crate::example::Measure;
use crate::funnel::Step;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Which relations are told apart.
    pub classes: Classes,
}

/// Which relations are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Classes {
    /// The thirteen relations of the corpus.
    Fine,
    /// The five groups that the track evaluates.
    Groups,
}

/// The groups and what is in them.
const GROUPS: [(&str, &[&str]); 5] = [
    ("CPR:3", &["UPREGULATOR", "ACTIVATOR", "INDIRECT-UPREGULATOR"]),
    ("CPR:4", &["DOWNREGULATOR", "INHIBITOR", "INDIRECT-DOWNREGULATOR"]),
    ("CPR:5", &["AGONIST", "AGONIST-ACTIVATOR", "AGONIST-INHIBITOR"]),
    ("CPR:6", &["ANTAGONIST"]),
    ("CPR:9", &["SUBSTRATE", "PRODUCT-OF", "SUBSTRATE_PRODUCT-OF"]),
];

impl PublishedSet for Config {
    fn extensions(&self) -> &'static [&'static str] {
        &[".txt", ".txt.gz"]
    }

    fn measure(&self) -> Measure {
        Measure::MicroF1
    }

    fn read(&self, file: &Path, take: &mut dyn FnMut(Item)) -> Result<Vec<Step>, Error> {
        let (mut step, stem) = (Step::new("relations"), stem(file));
        objects(file, |row, object| {
            let field = |name: &str| match object.get(name) {
                Some(Json::String(text)) if !text.trim().is_empty() => Ok(text.trim()),
                _ => Err(row.wrong(format!("no text as {name:?}"), "`text` and `label` in every row")),
            };
            let (text, label) = (field("text")?, field("label")?);
            if ["<< ", " >>", "[[ ", " ]]"].iter().any(|mark| !text.contains(mark)) {
                return Err(row.wrong("a text without both arguments", "<< one >> and [[ the other ]] in it"));
            }
            let group = GROUPS.iter().find(|(_, of)| of.contains(&label));
            let class = match (self.classes, group) {
                (Classes::Fine, Some(_)) => label,
                (Classes::Groups, Some((name, _))) => name,
                (_, None) => {
                    let known: Vec<&str> = GROUPS.iter().flat_map(|(_, of)| of.iter().copied()).collect();
                    return Err(row.wrong(format!("the label {label:?}"), known.join(", ")));
                }
            };
            step.keep(1);
            // A sentence is there once for every relation in it: they must not part.
            let group = ["<< ", " >>", "[[ ", " ]]"]
                .iter()
                .fold(text.to_owned(), |text, mark| text.replace(mark, ""));
            let (id, label) = (format!("{stem}/{}", row.line), Label::Class(class.to_owned()));
            take(Item { id, group, text: text.to_owned(), pair: None, label });
            Ok(())
        })?;
        Ok(vec![step])
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::items;
    use super::*;

    const FILE: &str = "{\"text\": \"<< A >> stops [[ b ]] and c.\", \"label\": \"INHIBITOR\", \"metadata\": []}\n\
        {\"text\": \"<< A >> stops b and [[ c ]].\", \"label\": \"INDIRECT-UPREGULATOR\", \"metadata\": []}\n";

    fn of(classes: Classes, file: &str) -> Result<Vec<Item>, String> {
        items(&Config { classes }, file).map(|(items, _)| items)
    }

    #[test]
    fn relations_have_their_class_or_group() {
        let fine = of(Classes::Fine, FILE).unwrap();
        assert_eq!(fine[0].label, Label::Class("INHIBITOR".to_owned()));
        assert_eq!((fine[0].group.as_str(), &fine[0].group), ("A stops b and c.", &fine[1].group));
        let groups = of(Classes::Groups, FILE).unwrap();
        let names: Vec<&Label> = groups.iter().map(|item| &item.label).collect();
        assert_eq!(names, [&Label::Class("CPR:4".to_owned()), &Label::Class("CPR:3".to_owned())]);
    }

    #[test]
    fn another_label_or_no_marks_are_refused() {
        let told = |from: &str, to: &str| of(Classes::Fine, &FILE.replace(from, to)).unwrap_err();
        assert!(told("INHIBITOR", "EATS").contains("line 1: found the label \"EATS\", expected UPREGULATOR"));
        assert!(told("[[ c ]]", "c").contains("line 2: found a text without both arguments"));
        assert!(told("\"label\": \"INDIRECT-UPREGULATOR\"", "\"x\": 1").contains("no text as \"label\""));
    }
}
