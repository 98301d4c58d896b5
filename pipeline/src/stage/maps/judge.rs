//! How well a dictionary finds what a corpus marks: precision and recall, kind by kind. Knows no sample.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Value, json};
use tasks::corpus::{Document, Label, Labels};
use tasks::ner::{Dictionary, Mention, Score, Tagger, evaluate};

/// Compares document after document.
#[derive(Debug)]
pub(super) struct Judge<'d> {
    tagger: Option<Tagger<'d>>,
    found: Vec<Mention>,
    scores: BTreeMap<Label, Score>,
    /// What was found in marked documents before a kind was first marked in one: mistakes, if it is looked for.
    before: u64,
}

impl<'d> Judge<'d> {
    /// Nothing is compared without a dictionary.
    pub(super) fn new(dictionary: Option<&'d Dictionary>) -> Self {
        let tagger = dictionary.map(Tagger::new);
        Self { tagger, found: Vec::new(), scores: BTreeMap::new(), before: 0 }
    }

    /// Compares what is found in a document with each kind that is marked in it. A document without marks says nothing.
    pub(super) fn document(&mut self, document: &Document) {
        let Some(tagger) = self.tagger.as_mut().filter(|_| !document.spans.is_empty()) else { return };
        tagger.tag(&document.text, &mut self.found);
        let found: Vec<Range<usize>> = self.found.iter().map(|mention| mention.bytes.clone()).collect();
        let before = self.before;
        for span in &document.spans {
            // What was found where this kind was not marked yet is no less wrong.
            self.scores.entry(span.label).or_insert(Score { predicted: before, ..Score::default() });
        }
        for (label, score) in &mut self.scores {
            let marked = document.spans.iter().filter(|span| span.label == *label);
            let marked: Vec<Range<usize>> = marked.map(|span| span.bytes.clone()).collect();
            score.add(&evaluate(&found, &marked));
        }
        self.before += found.len() as u64;
    }

    /// The figures of each kind, by its name.
    pub(super) fn told(&self, labels: &Labels) -> Vec<Value> {
        let percent = |share: f64| (share * 1000.0).round() / 10.0;
        let row = |(label, score): (&Label, &Score)| {
            json!({"marked_as": labels.names().get(label.number()), "marked": score.gold, "found": score.predicted,
                   "exact": score.exact, "precision": percent(score.precision()), "recall": percent(score.recall()),
                   "f1": percent(score.f1()), "overlap_precision": percent(score.overlap_precision()),
                   "overlap_recall": percent(score.overlap_recall())})
        };
        self.scores.iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kg::table::EntityId;
    use tasks::corpus::Span;
    use tasks::ner::Entry;

    #[test]
    fn every_kind_is_judged_on_all_marked_documents() {
        let filters = serde_json::from_value(json!({"min_letters": 1, "max_words": 4, "numbers": "keep", "stop_words": "none",
            "common_words": [], "ambiguous": "keep", "types": "all", "plurals": "as_written", "inverted": "as_written",
            "possessives": "keep", "upper_case": null}))
        .unwrap();
        let entries = ["fever", "cough"].map(|text| Entry { text, entity: EntityId(0), types: &[] });
        let dictionary = Dictionary::build(entries, &filters).unwrap();
        let (mut judge, mut labels) = (Judge::new(Some(&dictionary)), Labels::default());
        let [sign, drug] = ["Sign", "Drug"].map(|name| labels.intern(name).unwrap());
        let document = |text: &str, marks: &[(Label, Range<usize>)]| Document {
            text: text.to_owned(),
            spans: marks.iter().map(|(label, bytes)| Span { bytes: bytes.clone(), label: *label }).collect(),
            ..Document::default()
        };
        judge.document(&document("fever, cough and chills", &[(sign, 0..5), (sign, 17..23)]));
        judge.document(&document("fever", &[]));
        judge.document(&document("aspirin for fever", &[(drug, 0..7)]));
        let told = judge.told(&labels);
        let figures = |row: &Value| ["marked", "found", "exact"].map(|key| row[key].as_u64().unwrap());
        assert_eq!(figures(&told[0]), [2, 3, 1]);
        assert_eq!(figures(&told[1]), [1, 3, 0], "found before the first drug was marked, too");
        assert_eq!((&told[0]["marked_as"], &told[0]["recall"]), (&json!("Sign"), &json!(50.0)));
        assert!(Judge::new(None).told(&labels).is_empty());
    }
}
