//! Texts with entities, sentence by sentence, as words with tags.
//!
//! Words are the file's own, or else runs of letters, digits and marks, and every other character by itself. Of entities that overlap the
//! longest stays, or the longest piece where entities of several are tagged piece by piece. Sentences are the file's own, or found by rule; where one is
//! found to end within an entity or a piece, it goes on.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use base::setting::InvalidSetting;
use serde::{Deserialize, Serialize};
use tasks::Error;

use super::{Item, Label as Gold, NO_TEXT, PublishedSet, Words, stem};
use crate::example::{Kind, Measure};
use crate::funnel::Step;
use crate::tagging::split;
use crate::token_classes::is_default;
use text::file::{Format, documents_of};
use text::flatten::{self, Discontinuous, OVERLAP, PIECES};
use text::{Document, Entity, Label, Labels, Span, sentence};

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The format of the files, one that annotates entities.
    pub format: Format,
    /// The kinds of entities to predict. Without it, all of them. Of overlapping entities of these kinds the longest is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<String>>,
    /// What an example is.
    ///
    /// Source: ours: because formats of sentences have a sentence per document, and the text then has its whole context.
    #[serde(default)]
    pub unit: Unit,
    /// What to do with discontinuous entities; the funnel counts what is dropped.
    ///
    /// Source: ours: because BIO tags cannot express them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub discontinuous: Gaps,
}

/// What becomes of entities of several pieces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Gaps {
    /// They are dropped and counted.
    #[default]
    Drop,
    /// Their pieces are tagged, with `B` where the first begins and `I` where any other does, and the gaps are not (MT-BERT's code). Of
    /// overlapping pieces the longest is then kept, the funnel counts pieces, and a sentence may end in a gap.
    Outside,
}

/// What an example is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A document of the file (a sentence, in CoNLL).
    #[default]
    Document,
    /// A sentence: the file's own where its format has them, else split by rules.
    Sentence,
}

/// Why entities are left out.
const OTHER_KIND: &str = "of a kind that is not asked for";
const NO_WORD: &str = "without a word of its own";

impl PublishedSet for Config {
    fn extensions(&self) -> &'static [&'static str] {
        self.format.extensions()
    }

    fn is_a_folder(&self) -> bool {
        self.format.is_in_several_files()
    }

    fn check(&self) -> Result<(), Error> {
        if !self.format.has_spans() {
            return Err(Error::unfit(
                "tagged.format marks no entities, expected conll, jsonl, pubtator, bioc, bioc_json, brat, i2b2_concepts, i2b2_xml, share_clef, conllu or annotated_json",
            ));
        }
        if self.kinds.as_ref().is_some_and(Vec::is_empty) {
            let expected = "kinds of entities, or to be left out for all of them";
            return Err(InvalidSetting::new("tagged.kinds", "empty", expected).into());
        }
        if let Some(blank) = self.kinds.iter().flatten().find(|kind| kind.trim().is_empty()) {
            let expected = "names of kinds of entities, as the files have them";
            return Err(InvalidSetting::new("tagged.kinds", format!("{blank:?}"), expected).into());
        }
        Ok(())
    }

    fn kind(&self) -> Kind {
        Kind::Tags
    }

    fn measure(&self) -> Measure {
        Measure::EntityF1
    }

    fn wanted(&self) -> &[String] {
        self.kinds.as_deref().unwrap_or_default()
    }

    /// What became of lines that are no text, of entities, and of texts are steps of their own.
    fn read(&self, file: &Path, take: &mut dyn FnMut(Item)) -> Result<Vec<Step>, Error> {
        let (mut labels, mut documents, mut step) = (Labels::default(), vec![], Step::new("texts"));
        let taken = documents_of(file, &self.format, &mut labels, |document| {
            documents.push(document.clone());
            Ok::<_, Error>(())
        })?;
        let lines = Step::other_lines(&taken.documents);
        let mut found = Step::new("entities");
        // What overlaps depends on the kinds that are asked for, so that is judged anew below.
        let of_file = taken.spans.dropped.iter().filter(|(reason, _)| ![OVERLAP, PIECES].contains(*reason));
        of_file.for_each(|(reason, count)| found.drop(reason, *count));
        let stem = stem(file);
        // A file of one document is called as it is.
        let called = |document: &Document| {
            if document.id == stem { stem.clone() } else { format!("{stem}/{}", document.id) }
        };
        for document in &documents {
            let (words, entities) = in_words(document, &labels, self, &mut found);
            if words.is_empty() {
                step.drop(NO_TEXT, 1);
                continue;
            }
            let bounds = match self.unit {
                Unit::Document => vec![0, words.len()],
                Unit::Sentence => bounds(document, &words, &entities),
            };
            let id = called(document);
            for (number, ends) in bounds.windows(2).enumerate() {
                let (from, to) = (ends[0], ends[1]);
                let (Some(first), Some(last)) = (words.get(from), words[..to].last().filter(|_| from < to))
                else {
                    step.drop(NO_TEXT, 1);
                    continue;
                };
                step.keep(1);
                let own = entities.iter().filter(|of| (from..to).contains(&of.first));
                let further = own.clone().enumerate().filter(|(_, of)| of.further).map(|(place, _)| place);
                let of_text = Words {
                    words: words[from..to]
                        .iter()
                        .map(|word| document.text[word.clone()].to_owned())
                        .collect(),
                    further: further.collect(),
                    entities: own.map(|of| (of.first - from, of.end - from, of.kind.clone())).collect(),
                };
                let id =
                    if self.unit == Unit::Document { id.clone() } else { format!("{id}/{}", number + 1) };
                let text = document.text[first.start..last.end].to_owned();
                take(Item { id, group: called(document), text, pair: None, label: Gold::Entities(of_text) });
            }
        }
        Ok(vec![lines, found, step])
    }
}

/// An entity, or a piece of one, in words.
struct InWords {
    first: usize,
    /// The word behind the last.
    end: usize,
    kind: String,
    /// Whether a piece of the same entity stands before it.
    further: bool,
}

/// The words of a document and its entities in words, in order and apart.
fn in_words(
    document: &Document,
    labels: &Labels,
    config: &Config,
    found: &mut Step,
) -> (Vec<Range<usize>>, Vec<InWords>) {
    let words = if document.words.is_empty() { split(&document.text) } else { document.words.clone() };
    let mut entities: Vec<InWords> = vec![];
    let kinds = config.kinds.as_deref();
    let asked = |label: Label| kinds.is_none_or(|kinds| kinds.contains(&labels.names()[label.number()]));
    // Of each span, the number of its entity; a file's own spans are entities by themselves.
    let mut of_spans: Vec<usize> = (0..document.spans.len()).collect();
    let spans = if document.entities.is_empty() {
        let (asked, others) = document.spans.iter().cloned().partition(|span| asked(span.label));
        found.drop(OTHER_KIND, Vec::<Span>::len(&others) as u64);
        asked
    } else {
        let of_kinds: Vec<&Entity> = document.entities.iter().filter(|of| asked(of.label)).collect();
        found.drop(OTHER_KIND, (document.entities.len() - of_kinds.len()) as u64);
        let numbered = of_kinds.into_iter().enumerate();
        let (pieces, numbers): (Vec<Entity>, Vec<usize>) = match config.discontinuous {
            Gaps::Drop => numbered.map(|(number, of)| (of.clone(), number)).unzip(),
            Gaps::Outside => {
                numbered.flat_map(|(number, of)| apart(of).map(move |piece| (piece, number))).unzip()
            }
        };
        let flat = flatten::longest(&pieces, Discontinuous::Drop);
        flat.tally.dropped.iter().for_each(|(reason, count)| found.drop(reason, *count));
        of_spans = flat.from.iter().map(|&from| numbers[from]).collect();
        flat.spans
    };
    let mut begun = BTreeSet::new();
    for (place, span) in spans.iter().enumerate() {
        let kind = &labels.names()[span.label.number()];
        let first = words.partition_point(|word| word.end <= span.bytes.start);
        let end = words.partition_point(|word| word.start < span.bytes.end);
        // A word that two entities share is the first one's.
        let first = first.max(entities.last().map_or(0, |last| last.end));
        if first < end {
            found.keep(1);
            let further = of_spans.get(place).is_some_and(|of| !begun.insert(*of));
            entities.push(InWords { first, end, kind: kind.clone(), further });
        } else {
            found.drop(NO_WORD, 1);
        }
    }
    (words, entities)
}

/// The pieces of an entity, each as an entity.
fn apart(entity: &Entity) -> impl Iterator<Item = Entity> {
    entity.pieces.iter().map(move |piece| Entity { pieces: vec![piece.clone()], ..entity.clone() })
}

/// The words at which sentences begin, and the number of words.
fn bounds(document: &Document, words: &[Range<usize>], entities: &[InWords]) -> Vec<usize> {
    let within = |at: usize| entities.iter().any(|of| of.first < at && at < of.end);
    let starts = sentence::of(&document.text, &document.sentences);
    let at = starts.iter().map(|start| words.partition_point(|word| word.start < *start));
    let mut bounds: Vec<usize> = std::iter::once(0).chain(at.filter(|at| !within(*at))).collect();
    bounds.push(words.len());
    bounds.dedup();
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use text::conll::{self, BrokenTags, Scheme, Separator};
    use text::mention::Misfits;
    use text::pubtator;

    fn config(format: Format, unit: Unit) -> Config {
        Config { format, kinds: None, unit, discontinuous: Gaps::Drop }
    }

    fn put(folder: &Path, name: &str, content: &str) {
        base::whole::write_whole(&folder.join(name), content.as_bytes()).unwrap();
    }

    fn items(name: &str, content: &str, config: &Config) -> Result<(Vec<Item>, Vec<Step>), String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        put(folder.path(), name, content);
        let mut items = vec![];
        let steps = config.read(&path, &mut |item| items.push(item)).map_err(|error| error.to_string())?;
        assert!(steps.iter().all(Step::adds_up) && steps[2].kept == items.len() as u64, "{steps:?}");
        Ok((items, steps))
    }

    fn entities(item: &Item) -> Vec<(String, &str)> {
        let Gold::Entities(of) = &item.label else { panic!("{item:?}") };
        of.entities.iter().map(|(from, to, kind)| (of.words[*from..*to].join(" "), kind.as_str())).collect()
    }

    #[test]
    fn a_word_a_line_with_its_tag() {
        let conll = conll::Config {
            scheme: Scheme::Bio,
            separator: Separator::Tab,
            untyped: None,
            broken_tags: BrokenTags::Refuse,
        };
        let config = config(Format::Conll(conll), Unit::Document);
        let (all, _) = items(
            "dev.tsv",
            "Selegiline\tB-Chemical\n-\tO\ninduced\tO\n\nLow\tB-Disease\nblood\tI-Disease\n",
            &config,
        )
        .unwrap();
        assert_eq!((all[0].id.as_str(), all[0].text.as_str()), ("dev/1", "Selegiline - induced"));
        assert_eq!(entities(&all[0]), [("Selegiline".to_owned(), "Chemical")]);
        assert_eq!(entities(&all[1]), [("Low blood".to_owned(), "Disease")]);
        let diseases = Config { kinds: Some(vec!["Disease".to_owned()]), ..config };
        let (some, steps) = items("dev.tsv", "A\tB-Chemical\nB\tB-Disease\n", &diseases).unwrap();
        assert_eq!((steps[1].kept, steps[1].dropped[OTHER_KIND]), (1, 1));
        assert_eq!(entities(&some[0]), [("B".to_owned(), "Disease")]);
    }

    #[test]
    fn entities_with_gaps_are_left_out_or_tagged_around_them() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, content: &str| put(folder.path(), name, content);
        put("1.txt", "left atrium is dilated and firm .\n");
        put(
            "1.pipe.txt",
            "1.txt||Disease_Disorder||C1||0||11||15||22\n1.txt||Disease_Disorder||C2||27||31\n",
        );
        let of_file: text::share::Config = serde_json::from_str("{\"misfits\": \"refuse\"}").unwrap();
        let of = |discontinuous| {
            let config =
                Config { discontinuous, ..config(Format::ShareClef(of_file.clone()), Unit::Document) };
            let mut items = vec![];
            let steps = config.read(&folder.path().join("1.txt"), &mut |item| items.push(item)).unwrap();
            assert!(steps.iter().all(Step::adds_up), "{steps:?}");
            let Gold::Entities(of) = &items[0].label else { panic!("entities") };
            (
                of.entities.iter().map(|(first, end, _)| (*first, *end)).collect::<Vec<_>>(),
                of.further.clone(),
                steps[1].clone(),
            )
        };
        let (dropped, further, found) = of(Gaps::Drop);
        assert_eq!((dropped, further, found.dropped[PIECES]), (vec![(5, 6)], vec![], 1));
        let (tagged, further, found) = of(Gaps::Outside);
        assert_eq!((tagged, further, found.kept), (vec![(0, 2), (3, 4), (5, 6)], vec![1], 3));
        // Where the first piece gives way to a longer entity, the next one begins its own.
        put("1.pipe.txt", "1.txt||Disease_Disorder||C1||0||4||15||22\n1.txt||Disease_Disorder||C2||0||11\n");
        let (tagged, further, found) = of(Gaps::Outside);
        assert_eq!((tagged, further, found.dropped[OVERLAP]), (vec![(0, 2), (3, 4)], vec![], 1));
    }

    #[test]
    fn sentences_and_words_of_a_file_stay() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, content: &str| put(folder.path(), name, content);
        put("13.txt", "\nDr. No gave q.6-8h .\nfever and\n\nrest . Then rest .\n");
        put(
            "13.con",
            "c=\"q.6-8h\" 2:3 2:3||t=\"treatment\"\nc=\"rest\" 5:0 5:0||t=\"treatment\"\nc=\"fever\" 3:0 3:0||t=\"problem\"\n",
        );
        let of_file = text::i2b2::Config { misfits: Misfits::Refuse };
        let config = config(Format::I2b2Concepts(of_file), Unit::Sentence);
        let mut items = vec![];
        let steps = config.read(&folder.path().join("13.txt"), &mut |item| items.push(item)).unwrap();
        assert!(steps.iter().all(Step::adds_up) && steps[1].kept == 3, "{steps:?}");
        let texts: Vec<&str> = items.iter().map(|item| item.text.as_str()).collect();
        assert_eq!(texts, ["Dr. No gave q.6-8h .", "fever and", "rest . Then rest ."]);
        assert!(items.iter().all(|item| item.group == "13") && items[2].id == "13/3");
        assert_eq!(entities(&items[0]), [("q.6-8h".to_owned(), "treatment")]);
    }

    #[test]
    fn documents_fall_into_sentences_that_part_no_entity() {
        let file = "7|t|Pain of big rot. It is.\n7|a|Δ-blockers help. Non-HDL too.\n\
            7\t12\t19\trot. It\tDisease\tD1\n7\t24\t26\tΔ-\tChemical\tD2\n7\t41\t48\tNon-HDL\tChemical\tD3\n\n";
        let pubtator = pubtator::Config { misfits: Misfits::Refuse, between: pubtator::Between::Space };
        let config = config(Format::Pubtator(pubtator), Unit::Sentence);
        let (all, _) = items("x.PubTator.txt", file, &config).unwrap();
        let texts: Vec<&str> = all.iter().map(|item| item.text.as_str()).collect();
        assert_eq!(texts, ["Pain of big rot. It is.", "Δ-blockers help.", "Non-HDL too."]);
        let ids: Vec<&str> = all.iter().map(|item| item.id.as_str()).collect();
        assert_eq!(ids, ["x.PubTator/7/1", "x.PubTator/7/2", "x.PubTator/7/3"]);
        assert_eq!(all[2].group, "x.PubTator/7");
        assert_eq!(entities(&all[0]), [("rot . It".to_owned(), "Disease")]);
        assert_eq!(entities(&all[1]), [("Δ -".to_owned(), "Chemical")]);
        assert_eq!(entities(&all[2]), [("Non - HDL".to_owned(), "Chemical")]);
        let nested = "8|t|Liver cancer.\n8|a|It is.\n8\t0\t12\tLiver cancer\tDisease\tD1\n8\t0\t5\tLiver\tOrgan\tD2\n\n";
        let (both, steps) = items("x.PubTator.txt", nested, &config).unwrap();
        assert_eq!(
            (entities(&both[0]), steps[1].dropped[OVERLAP]),
            (vec![("Liver cancer".to_owned(), "Disease")], 1)
        );
        let organs = Config { kinds: Some(vec!["Organ".to_owned()]), ..config };
        let (some, steps) = items("x.PubTator.txt", nested, &organs).unwrap();
        assert_eq!(
            (entities(&some[0]), steps[1].dropped[OTHER_KIND]),
            (vec![("Liver".to_owned(), "Organ")], 1)
        );
    }
}
