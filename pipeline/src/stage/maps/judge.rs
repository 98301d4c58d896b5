//! How well a dictionary finds what a corpus marks: precision and recall, corpus by corpus and kind by kind.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use text::ner::{Dictionary, Mention, Score, Tagger, evaluate};
use text::{Document, Label, Labels};

use crate::engine::context::Context;
use crate::stage::corpus::beside;

/// Compares document after document, corpus by corpus: a corpus says nothing of kinds that it does not mark.
#[derive(Debug)]
pub(super) struct Judge<'d> {
    tagger: Option<Tagger<'d>>,
    found: Vec<Mention>,
    corpora: Vec<Corpus>,
}

/// What was found in the texts of one name.
#[derive(Debug)]
struct Corpus {
    name: String,
    documents: u64,
    /// Everything found, in documents without marks too: where a kind is marked, whoever marked has looked at all of them.
    found: u64,
    /// By kind; what was found but lies at no mark of the kind is in `found` alone.
    scores: BTreeMap<Label, Score>,
}

impl<'d> Judge<'d> {
    /// Nothing is compared without a dictionary.
    pub(super) fn new(dictionary: Option<&'d Dictionary>) -> Self {
        Self { tagger: dictionary.map(Tagger::new), found: Vec::new(), corpora: Vec::new() }
    }

    /// Compares what is found in a document with what is marked in it. The documents of a corpus, whose files mark entities, come one after the
    /// other.
    pub(super) fn document(&mut self, corpus: &str, document: &Document) {
        let Some(tagger) = self.tagger.as_mut() else { return };
        tagger.tag(&document.text, &mut self.found);
        let found: Vec<Range<usize>> = self.found.iter().map(|mention| mention.bytes.clone()).collect();
        if self.corpora.last().is_none_or(|last| last.name != corpus) {
            let (name, scores) = (corpus.to_owned(), BTreeMap::new());
            self.corpora.push(Corpus { name, documents: 0, found: 0, scores });
        }
        let Some(corpus) = self.corpora.last_mut() else { return };
        corpus.documents += 1;
        corpus.found += found.len() as u64;
        let mut marked: BTreeMap<Label, Vec<Range<usize>>> = BTreeMap::new();
        for span in &document.spans {
            marked.entry(span.label).or_default().push(span.bytes.clone());
        }
        for (label, marked) in marked {
            corpus.scores.entry(label).or_default().add(&evaluate(&found, &marked));
        }
    }

    /// The figures of each corpus and kind that it marks, by their names.
    pub(super) fn marks(&self, labels: &Labels) -> Marks {
        let name = |label: &Label| labels.names().get(label.number()).cloned().unwrap_or_default();
        let of = |corpus: &Corpus| Judged {
            texts: corpus.name.clone(),
            documents: corpus.documents,
            found: corpus.found,
            kinds: corpus.scores.iter().map(|(label, score)| (name(label), *score)).collect(),
        };
        Marks {
            texts: self.corpora.iter().map(of).collect(),
            kinds: labels.names().to_vec(),
            dictionary: Map::new(),
        }
    }
}

/// The file with a part's marks.
const FILE: &str = "marks.json";

/// How well the dictionary finds what is marked; those of parts add up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Marks {
    texts: Vec<Judged>,
    /// Kinds in the order in which they were met, in any of the texts.
    kinds: Vec<String>,
    /// What became of the dictionary's terms, if there is one: facts by their names.
    pub(super) dictionary: Map<String, Value>,
}

/// Those of the texts of one name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Judged {
    texts: String,
    documents: u64,
    found: u64,
    /// By kind, in the order in which they were met.
    kinds: Vec<(String, Score)>,
}

impl Marks {
    /// Those that parts left in these folders, added up.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(super) fn of_parts(folders: &[PathBuf]) -> anyhow::Result<Self> {
        let mut all = Self::default();
        for folder in folders {
            let part: Self = beside::read(folder, FILE)?;
            for kind in part.kinds {
                if !all.kinds.contains(&kind) {
                    all.kinds.push(kind);
                }
            }
            part.texts.into_iter().for_each(|judged| all.add(judged));
            // That of every part is the same.
            all.dictionary = part.dictionary;
        }
        let Self { texts, kinds, .. } = &mut all;
        let place = |kind: &String| kinds.iter().position(|known| known == kind);
        texts.iter_mut().for_each(|judged| judged.kinds.sort_by_key(|(kind, _)| place(kind)));
        Ok(all)
    }

    fn add(&mut self, more: Judged) {
        let Some(sum) = self.texts.iter_mut().find(|sum| sum.texts == more.texts) else {
            self.texts.push(more);
            return;
        };
        sum.documents += more.documents;
        sum.found += more.found;
        for (kind, score) in more.kinds {
            match sum.kinds.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, sum)) => sum.add(&score),
                None => sum.kinds.push((kind, score)),
            }
        }
    }

    /// Writes them beside a part's maps.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(super) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        beside::write(folder, FILE, self)
    }

    /// Leaves them as facts.
    pub(super) fn record(&self, context: &Context) {
        context.record("against_marks", self.told());
        self.dictionary.iter().for_each(|(fact, value)| context.record(fact, value.clone()));
    }

    fn told(&self) -> Vec<Value> {
        self.texts.iter().flat_map(Judged::told).collect()
    }
}

impl Judged {
    fn told(&self) -> impl Iterator<Item = Value> {
        let percent = |share: f64| (share * 1000.0).round() / 10.0;
        self.kinds.iter().map(move |(kind, score)| {
            let score = Score { predicted: self.found, ..*score };
            json!({"texts": self.texts, "marked_as": kind, "documents": self.documents,
                   "marked": score.gold, "found": score.predicted,
                   "exact": score.exact, "precision": percent(score.precision()), "recall": percent(score.recall()),
                   "f1": percent(score.f1()), "overlap_precision": percent(score.overlap_precision()),
                   "overlap_recall": percent(score.overlap_recall())})
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kg::table::EntityId;
    use text::Span;
    use text::ner::Entry;

    #[test]
    fn silent_13_each_corpus_is_judged_by_the_kinds_it_marks_on_all_its_documents() {
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
        judge.document("signs", &document("fever, cough and chills", &[(sign, 0..5), (sign, 17..23)]));
        judge.document("signs", &document("fever", &[]));
        judge.document("drugs", &document("cough", &[]));
        judge.document("drugs", &document("aspirin for fever", &[(drug, 0..7)]));
        judge.document("both", &document("cough", &[(sign, 0..5)]));
        let told = judge.marks(&labels).told();
        let figures =
            |row: &Value| ["documents", "marked", "found", "exact"].map(|key| row[key].as_u64().unwrap());
        assert_eq!(figures(&told[0]), [2, 2, 3, 1], "what is found where nothing is marked is wrong");
        assert_eq!(figures(&told[1]), [2, 1, 2, 0], "before the first mark, too");
        assert_eq!(figures(&told[2]), [1, 1, 1, 1], "a kind has figures for each corpus that marks it");
        assert_eq!(told.len(), 3, "no corpus is judged by kinds that it does not mark");
        assert_eq!(
            [&told[0]["texts"], &told[0]["marked_as"], &told[0]["precision"], &told[0]["recall"]],
            [&json!("signs"), &json!("Sign"), &json!(33.3), &json!(50.0)]
        );
        assert_eq!((&told[2]["texts"], &told[2]["precision"]), (&json!("both"), &json!(100.0)));
        assert!(Judge::new(None).marks(&labels).told().is_empty());
    }
}
