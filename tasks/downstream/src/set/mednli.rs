//! MedNLI (Romanov and Shivade 2018): an object a line with `sentence1`, `sentence2` and `gold_label`, called by `pairID`.

use super::fields::{Asked, Fields, Preset};
use crate::example::Measure;

pub(super) const SET: Preset = Preset {
    extensions: &[".jsonl", ".jsonl.gz"],
    measure: Measure::Accuracy,
    layout: || {
        Box::new({
            let fields = Fields::new("sentence1", Some("sentence2"), Asked::Class("gold_label".to_owned()));
            fields.called("pairID").named(["entailment", "neutral", "contradiction"].map(|name| (name, name)))
        })
    },
};

#[cfg(test)]
mod tests {
    use super::super::Label;
    use super::super::tests::items;
    use super::*;

    #[test]
    fn objects_are_rows() {
        let file = "{\"pairID\": \"x1\", \"sentence1\": \"A.\", \"sentence2\": \"B.\", \"gold_label\": \"neutral\", \"more\": [1]}\n";
        let (rows, _) = items(&SET, file).unwrap();
        assert_eq!((rows[0].id.as_str(), rows[0].pair.as_deref()), ("some/x1", Some("B.")));
        assert_eq!(rows[0].label, Label::Class("neutral".to_owned()));
        let told = |file: &str| items(&SET, file).unwrap_err();
        assert!(told("\n{\"pairID\": 1\n").contains("line 2: found EOF while parsing"));
        assert!(told("{\"sentence1\": [\"A\"]}").contains("a list as \"sentence1\""));
        assert!(told("{\"sentence1\": null}").contains("no \"sentence1\", expected it in every row"));
        let other = "{\"sentence1\": \"A\", \"sentence2\": \"B\", \"gold_label\": \"-\", \"pairID\": \"1\"}";
        assert!(told(other).contains("found \"-\" as \"gold_label\", expected \"contradiction\" or"));
    }
}
