//! GLUE (Wang et al. 2019) as its download lays it out: a folder for each of nine tasks, columns between tabs, and test parts without labels, whose
//! predictions are handed in as files of their own (<https://gluebenchmark.com/faq>).

use std::path::Path;

use serde::{Deserialize, Serialize};
use tasks::Error;

use super::fields::{Asked, Fields};
use super::separated::{Config, tabs};
use super::{Item, Label, PublishedSet, stem};
use crate::example::{Kind, Measure};
use crate::funnel::Step;

/// A task of GLUE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// CoLA (Warstadt et al. 2019): whether a sentence is acceptable; Matthews' correlation.
    Cola,
    /// SST-2 (Socher et al. 2013): the sentiment of a sentence; accuracy.
    Sst2,
    /// MRPC (Dolan and Brockett 2005): whether two sentences say the same; F1 of `equivalent`.
    Mrpc,
    /// STS-B (Cer et al. 2017): semantic similarity of two sentences, 0 to 5; Pearson's correlation.
    Stsb,
    /// QQP: whether two questions are duplicates; F1 of `duplicate`. Rows that lack columns are left out and counted.
    Qqp,
    /// MNLI (Williams et al. 2018): entailment, contradiction or neutral; accuracy. `test_mismatched.tsv` and `diagnostic.tsv` are tests of its own.
    Mnli,
    /// QNLI, from SQuAD (Rajpurkar et al. 2016): whether a sentence answers a question; accuracy.
    Qnli,
    /// RTE: entailment or not; accuracy.
    Rte,
    /// WNLI, from the Winograd Schema Challenge (Levesque et al. 2012): entailment or not; accuracy.
    Wnli,
}

/// A row of a part without labels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unlabelled {
    /// Its number in the file, which a prediction is handed in by.
    pub index: String,
    /// Its text.
    pub text: String,
    /// The second text of a pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<String>,
}

/// A task's columns: the first text, the second, the gold label; and the classes' marks and names, of which there are none where marks are names.
struct Columns {
    text: &'static str,
    pair: Option<&'static str>,
    label: &'static str,
    index: &'static str,
    classes: &'static [(&'static str, &'static str)],
}

/// Marks of classes that are their names.
const ENTAILMENT: &[(&str, &str)] = &[("entailment", "entailment"), ("not_entailment", "not_entailment")];

impl Task {
    /// Its name on the leaderboard and in the download, without a part's.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cola => "CoLA",
            Self::Sst2 => "SST-2",
            Self::Mrpc => "MRPC",
            Self::Stsb => "STS-B",
            Self::Qqp => "QQP",
            Self::Mnli => "MNLI",
            Self::Qnli => "QNLI",
            Self::Rte => "RTE",
            Self::Wnli => "WNLI",
        }
    }

    /// The name of the file, without its ending, in which predictions of a part are handed in: that of MNLI's three parts depends on `file`.
    #[must_use]
    pub fn submission(self, file: &Path) -> &'static str {
        match (self, stem(file).as_str()) {
            (Self::Mnli, "test_mismatched") => "MNLI-mm",
            (Self::Mnli, "diagnostic") => "AX",
            (Self::Mnli, _) => "MNLI-m",
            _ => self.name(),
        }
    }

    /// The mark by which a class is handed in.
    #[must_use]
    pub fn mark(self, class: &str) -> Option<&'static str> {
        self.columns().classes.iter().find(|(_, name)| *name == class).map(|(mark, _)| *mark)
    }

    fn columns(self) -> Columns {
        let pair = Columns {
            text: "sentence1",
            pair: Some("sentence2"),
            label: "label",
            index: "index",
            classes: ENTAILMENT,
        };
        let single = Columns { text: "sentence", pair: None, ..pair };
        match self {
            Self::Cola => Columns { classes: &[("0", "unacceptable"), ("1", "acceptable")], ..single },
            Self::Sst2 => Columns { classes: &[("0", "negative"), ("1", "positive")], ..single },
            Self::Mrpc => Columns {
                text: "#1 String",
                pair: Some("#2 String"),
                label: "Quality",
                classes: &[("0", "not_equivalent"), ("1", "equivalent")],
                ..pair
            },
            Self::Stsb => Columns { label: "score", classes: &[], ..pair },
            Self::Qqp => Columns {
                text: "question1",
                pair: Some("question2"),
                label: "is_duplicate",
                index: "id",
                classes: &[("0", "not_duplicate"), ("1", "duplicate")],
            },
            Self::Mnli => Columns {
                label: "gold_label",
                classes: &[
                    ("contradiction", "contradiction"),
                    ("entailment", "entailment"),
                    ("neutral", "neutral"),
                ],
                ..pair
            },
            Self::Qnli => Columns { text: "question", pair: Some("sentence"), ..pair },
            Self::Rte => pair,
            Self::Wnli => Columns { classes: &[("0", "not_entailment"), ("1", "entailment")], ..pair },
        }
    }

    /// Of parts with labels.
    fn layout(self) -> Config {
        let Columns { text, pair, label, classes, .. } = self.columns();
        let answer = match self {
            Self::Stsb => Asked::Score(vec![label.to_owned()]),
            _ => Asked::Class(label.to_owned()),
        };
        let mut fields = Fields::new(text, pair, answer);
        fields.names = classes.iter().map(|(mark, name)| ((*mark).to_owned(), (*name).to_owned())).collect();
        // CoLA alone has no header.
        let names: &[&str] = if self == Self::Cola { &["source", "label", "mark", "sentence"] } else { &[] };
        Config { short: self == Self::Qqp, ..tabs(names, fields) }
    }

    /// Hands each row of a part without labels to `take`, in order: none is left out, since each is to be predicted.
    ///
    /// # Errors
    /// When the file is damaged or of another layout: where, and what was expected.
    pub fn read_unlabelled(self, file: &Path, take: &mut dyn FnMut(Unlabelled)) -> Result<Vec<Step>, Error> {
        let Columns { text, pair, index, .. } = self.columns();
        let mut fields = Fields::new(text, pair, Asked::Class(index.to_owned()));
        fields.empty = true;
        tabs(&[], fields).read(file, &mut |Item { text, pair, label, .. }| {
            // Its number is where a label would be.
            if let Label::Class(index) = label {
                take(Unlabelled { index, text, pair });
            }
        })
    }
}

impl PublishedSet for Task {
    fn extensions(&self) -> &'static [&'static str] {
        &[".tsv", ".tsv.gz"]
    }

    fn kind(&self) -> Kind {
        self.layout().kind()
    }

    fn measure(&self) -> Measure {
        match self {
            Self::Cola => Measure::Matthews,
            Self::Mrpc | Self::Qqp => Measure::MicroF1,
            Self::Stsb => Measure::Pearson,
            Self::Sst2 | Self::Mnli | Self::Qnli | Self::Rte | Self::Wnli => Measure::Accuracy,
        }
    }

    fn negative_class(&self) -> Option<&'static str> {
        // So that F1 is that of the other class, as GLUE has it.
        match self {
            Self::Mrpc => Some("not_equivalent"),
            Self::Qqp => Some("not_duplicate"),
            _ => None,
        }
    }

    fn read(&self, file: &Path, take: &mut dyn FnMut(Item)) -> Result<Vec<Step>, Error> {
        self.layout().read(file, take)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::items as of;
    use super::*;

    /// A row of each task as the download has it, its texts, and its label.
    const ROWS: [(Task, &str, [&str; 2], &str); 9] = [
        (Task::Cola, "gj04\t0\t*\tThem sailed.\n", ["Them sailed.", ""], "unacceptable"),
        (Task::Sst2, "sentence\tlabel\nhide new secretions \t0\n", ["hide new secretions", ""], "negative"),
        (
            Task::Mrpc,
            "\u{feff}Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n1\t702876\t702977\tHe said \"no.\tNo, he said.\r\n",
            ["He said \"no.", "No, he said."],
            "equivalent",
        ),
        (
            Task::Stsb,
            "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n0\tc\tf\t2012\t1\tn\tn\tA.\tB.\t3.800\n",
            ["A.", "B."],
            "3.8",
        ),
        (
            Task::Qqp,
            "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n133273\t1\t2\tWhy?\tHow?\t0\n7\t8\n",
            ["Why?", "How?"],
            "not_duplicate",
        ),
        (
            Task::Mnli,
            "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_parse\tsentence1\tsentence2\tlabel1\tlabel2\tgold_label\n0\t1\t1c\tslate\t(\t(\t(\t(\tA.\tB.\tneutral\tentailment\tneutral\n",
            ["A.", "B."],
            "neutral",
        ),
        (
            Task::Qnli,
            "index\tquestion\tsentence\tlabel\n0\tWhen?\tIn 1848.\tentailment\n",
            ["When?", "In 1848."],
            "entailment",
        ),
        (
            Task::Rte,
            "index\tsentence1\tsentence2\tlabel\n0\tA.\tB.\tnot_entailment\n",
            ["A.", "B."],
            "not_entailment",
        ),
        (Task::Wnli, "index\tsentence1\tsentence2\tlabel\n0\tA.\tB.\t1\n", ["A.", "B."], "entailment"),
    ];

    #[test]
    fn every_task_is_read_as_its_download_lays_it_out() {
        for (task, content, [text, pair], label) in ROWS {
            let (items, step) = of(&task, content).unwrap();
            let [item] = items.as_slice() else { panic!("{task:?}: {items:?}") };
            assert_eq!((item.text.as_str(), item.pair.as_deref().unwrap_or("")), (text, pair), "{task:?}");
            let said = match &item.label {
                Label::Class(class) => class.clone(),
                Label::Score(score) => score.to_string(),
                other => panic!("{other:?}"),
            };
            assert_eq!(said, label, "{task:?}");
            assert_eq!(step.dropped.values().sum::<u64>(), u64::from(task == Task::Qqp), "{task:?}");
            let marked: Vec<&str> = ["0", "1", "entailment"]
                .into_iter()
                .filter(|mark| task.mark(label) == Some(*mark) && content.contains(mark))
                .collect();
            assert!(
                matches!(task, Task::Stsb | Task::Mnli | Task::Rte) || marked.len() == 1,
                "{task:?} {marked:?}"
            );
        }
        let unknown = of(&Task::Rte, "index\tsentence1\tsentence2\tlabel\n0\tA.\tB.\tneutral\n").unwrap_err();
        assert!(unknown.contains("line 2: found \"neutral\" as \"label\""), "{unknown}");
    }

    #[test]
    fn parts_without_labels_keep_every_row() {
        let folder = tempfile::tempdir().unwrap();
        let read = |task: Task, name: &str, content: &str| {
            let file = folder.path().join(name);
            base::whole::write_whole(&file, content.as_bytes()).unwrap();
            let mut rows = vec![];
            task.read_unlabelled(&file, &mut |row| rows.push(row))
                .map(|_| rows)
                .map_err(|error| error.to_string())
        };
        let rows = read(Task::Cola, "test.tsv", "index\tsentence\n0\tBill ran.\n1\t\n").unwrap();
        assert_eq!(
            (rows[0].text.as_str(), rows[1].index.as_str(), rows[1].text.as_str()),
            ("Bill ran.", "1", "")
        );
        let rows = read(Task::Qqp, "test.tsv", "id\tquestion1\tquestion2\n0\tWhy?\tHow?\n").unwrap();
        assert_eq!((rows[0].index.as_str(), rows[0].pair.as_deref()), ("0", Some("How?")));
        let labelled =
            read(Task::Mrpc, "test.tsv", "Quality\t#1 String\t#2 String\n1\tA.\tB.\n").unwrap_err();
        assert!(labelled.contains("expected a column \"index\""), "{labelled}");
    }

    #[test]
    fn predictions_are_handed_in_under_the_names_of_the_leaderboard() {
        let of = |task: Task, name: &str| task.submission(Path::new(name));
        assert_eq!(of(Task::Mnli, "MNLI/test_matched.tsv"), "MNLI-m");
        assert_eq!(of(Task::Mnli, "MNLI/test_mismatched.tsv"), "MNLI-mm");
        assert_eq!(of(Task::Mnli, "diagnostic/diagnostic.tsv"), "AX");
        assert_eq!([of(Task::Stsb, "STS-B/test.tsv"), of(Task::Sst2, "x/test.tsv.gz")], ["STS-B", "SST-2"]);
    }
}
