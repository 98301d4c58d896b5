//! Relations of drugs (n2c2 2018, Henry et al. 2020), as brat keeps them: sentences for each drug and each other entity near it.
//!
//! `R1<tab>Reason-Drug Arg1:T1 Arg2:T2` relates an entity to a drug. Two that are not related are an item too; two that are related in several
//! ways are as many items.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tasks::Error;

use super::pair::{self, Arguments, NEGATIVE, OVERLAP, called, shown};
use super::{Item, Label, PublishedSet, stem, tidied};
use crate::example::Measure;
use crate::funnel::Step;
use text::brat::{self, Concepts, Pair, Related};
use text::mention::Misfits;
use text::{Document, Labels, sentence};

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How the text shows which two entities the example is about.
    pub arguments: Arguments,
    /// Each `Drug` is paired with every other entity within this many sentences (split by rules), which form the text. Relations that span
    /// more are skipped and counted, so recall covers only those within the limit.
    pub sentences: NonZeroUsize,
    /// What to do with entities whose offsets are invalid, or whose words do not match the text there.
    pub misfits: Misfits,
}

/// The kind of the entity that every relation has.
const DRUG: &str = "Drug";

const LEFT_OUT: &str = "of an entity that is left out";
const NO_DRUG: &str = "not between a drug and something else";
const APART: &str = "of entities that are too many sentences apart";

/// An entity.
struct Argument<'d> {
    /// What its file calls it.
    name: &'d str,
    /// Where it stands, from its first piece to its last, and its kind.
    shown: pair::Argument,
    /// The sentences in which it begins and ends.
    sentences: (usize, usize),
}

/// The entities of a text, and where its sentences begin.
struct Text<'d> {
    text: &'d str,
    starts: Vec<usize>,
    entities: Vec<Argument<'d>>,
}

/// The names of the relations of a drug and another entity.
type Relations<'d> = BTreeMap<(usize, usize), Vec<&'d str>>;

/// The names of the relations of two that are not related.
const NO_RELATION: &[&str] = &[NEGATIVE];

impl PublishedSet for Config {
    fn extensions(&self) -> &'static [&'static str] {
        &[".txt"]
    }

    fn is_a_folder(&self) -> bool {
        true
    }

    fn measure(&self) -> Measure {
        Measure::MicroF1
    }

    fn negative_class(&self) -> Option<&'static str> {
        Some(NEGATIVE)
    }

    /// What became of lines that are neither, of entities and of relations are steps of their own.
    fn read(&self, file: &Path, take: &mut dyn FnMut(Item)) -> Result<Vec<Step>, Error> {
        let (mut document, mut labels) = (Document::default(), Labels::default());
        let of_brat = brat::Config { concepts: Concepts::None, misfits: self.misfits };
        let said = brat::related(&Pair::of(file), of_brat, &mut document, &mut labels)?;
        let lines = Step::other_lines(&said.counts.documents);
        let mut found = Step::new("entities");
        said.counts.spans.dropped.iter().for_each(|(reason, count)| found.drop(reason, *count));
        found.keep(said.counts.spans.kept);
        let text = Text::new(&document, &labels, &said.names);
        let (relations, related) = text.relations(&said, self.sentences);
        let pairs = text.pairs(&stem(file), &relations, *self, take);
        Ok(vec![lines, found, related, pairs])
    }
}

impl<'d> Text<'d> {
    fn new(document: &'d Document, labels: &Labels, names: &'d [String]) -> Self {
        let starts = sentence::starts(&document.text);
        let at = |byte: usize| starts.partition_point(|start| *start <= byte);
        let entities = document.entities.iter().zip(names).filter_map(|(entity, name)| {
            let hull = entity.pieces.first()?.start..entity.pieces.last()?.end;
            let sentences = (at(hull.start), at(hull.end - 1));
            let shown = (hull, labels.names()[entity.label.number()].clone());
            Some(Argument { name, shown, sentences })
        });
        let entities = entities.collect();
        Self { text: &document.text, starts, entities }
    }

    /// The first and the last sentence of a drug and another entity; `None` if they are too many.
    fn sentences(&self, drug: usize, other: usize, most: NonZeroUsize) -> Option<(usize, usize)> {
        let ((a, b), (c, d)) = (self.entities.get(drug)?.sentences, self.entities.get(other)?.sentences);
        let (first, last) = (a.min(c), b.max(d));
        (last - first < most.get()).then_some((first, last))
    }

    fn is_drug(&self, number: usize) -> bool {
        self.entities.get(number).is_some_and(|entity| entity.shown.1 == DRUG)
    }

    /// The relations between a drug and an entity near it, and what became of them all.
    fn relations<'r>(&self, said: &'r Related, most: NonZeroUsize) -> (Relations<'r>, Step) {
        let (mut relations, mut step) = (Relations::new(), Step::new("relations"));
        for relation in &said.relations {
            let [Some(one), Some(other)] = relation.ends else {
                step.drop(LEFT_OUT, 1);
                continue;
            };
            let (drug, other) = match (self.is_drug(one), self.is_drug(other)) {
                (true, false) => (one, other),
                (false, true) => (other, one),
                (true, true) | (false, false) => {
                    step.drop(NO_DRUG, 1);
                    continue;
                }
            };
            if self.sentences(drug, other, most).is_none() {
                step.drop(APART, 1);
                continue;
            }
            step.keep(1);
            relations.entry((drug, other)).or_default().push(relation.kind.as_str());
        }
        (relations, step)
    }

    /// Hands each drug with each other entity near it to `take`, and says what became of them.
    fn pairs(
        &self,
        stem: &str,
        relations: &Relations<'_>,
        config: Config,
        take: &mut dyn FnMut(Item),
    ) -> Step {
        let mut step = Step::new("pairs");
        let numbers = || 0..self.entities.len();
        for drug in numbers().filter(|number| self.is_drug(*number)) {
            for other in numbers().filter(|number| !self.is_drug(*number)) {
                let Some((first, last)) = self.sentences(drug, other, config.sentences) else { continue };
                let names = relations.get(&(drug, other)).map_or(NO_RELATION, Vec::as_slice);
                let [drug, other] = [drug, other].map(|number| &self.entities[number]);
                let Some(text) = self.shown(first..=last, [drug, other], config.arguments) else {
                    step.drop(OVERLAP, names.len() as u64);
                    continue;
                };
                let id = format!("{stem}/{}-{}", drug.name, other.name);
                for (number, name) in names.iter().enumerate() {
                    step.keep(1);
                    let (id, label) = (called(&id, number), Label::Class((*name).to_owned()));
                    take(Item { id, group: stem.to_owned(), text: text.clone(), pair: None, label });
                }
            }
        }
        step
    }

    /// The sentences from one to another with two entities in them.
    fn shown(
        &self,
        sentences: RangeInclusive<usize>,
        ends: [&Argument<'_>; 2],
        arguments: Arguments,
    ) -> Option<String> {
        let start =
            sentences.start().checked_sub(1).and_then(|before| self.starts.get(before)).copied().unwrap_or(0);
        let end = self.starts.get(*sentences.end()).copied().unwrap_or(self.text.len());
        let [one, other] = ends.map(|end| {
            let (place, kind) = &end.shown;
            (place.start - start..place.end - start, kind.clone())
        });
        shown(&self.text[start..end], [&one, &other], arguments).map(|text| tidied(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tagged;
    use super::*;
    use text::file;
    use text::flatten::PIECES;

    const TEXT: &str = "Aspirin 81 mg daily for pain. Then warfarin\n5 mg. It stopped. Rash came.\n";
    const ANN: &str = "T1\tDrug 0 7\tAspirin\nT2\tStrength 8 13\t81 mg\nT3\tFrequency 14 19\tdaily\nT4\tReason 24 28\tpain\n\
        T5\tDrug 35 43\twarfarin\nT6\tStrength 44 48\t5 mg\nT7\tADE 62 66\tRash\nT8\tDosage 8 10;14 19\t81 daily\n\
        R1\tStrength-Drug Arg1:T2 Arg2:T1\nR2\tFrequency-Drug Arg1:T3 Arg2:T1\t\nR3\tReason-Drug Arg1:T4 Arg2:T1\n\
        R4\tStrength-Drug Arg1:T5 Arg2:T6\nR5\tADE-Drug Arg1:T7 Arg2:T5\nA1\tNegation T4\n\
        R6\tOther-Drug Arg1:T4 Arg2:T1\nR7\tSame-Drug Arg1:T5 Arg2:T1\n";

    fn config(sentences: usize) -> Config {
        let sentences = NonZeroUsize::new(sentences).unwrap();
        Config { arguments: Arguments::Replaced, sentences, misfits: Misfits::Refuse }
    }

    fn folder(ann: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in [("1.txt", TEXT), ("1.ann", ann)] {
            base::whole::write_whole(&folder.path().join(name), content.as_bytes()).unwrap();
        }
        folder
    }

    fn of(ann: &str, config: Config) -> Result<(Vec<Item>, Vec<Step>), String> {
        let (folder, mut items) = (folder(ann), vec![]);
        let steps = config.read(&folder.path().join("1.txt"), &mut |item| items.push(item));
        let steps = steps.map_err(|error| error.to_string())?;
        assert!(steps.iter().all(Step::adds_up) && steps[3].kept == items.len() as u64, "{steps:?}");
        Ok((items, steps))
    }

    fn said(items: &[Item]) -> Vec<String> {
        let item = |item: &Item| {
            let Label::Class(class) = &item.label else { panic!("{item:?}") };
            format!("{} {class}: {}", item.id, item.text)
        };
        items.iter().map(item).collect()
    }

    #[test]
    fn each_drug_and_what_is_near_it_are_an_item() {
        let (items, steps) = of(ANN, config(1)).unwrap();
        let expected = [
            "1/T1-T2 Strength-Drug: @Drug$ @Strength$ daily for pain.",
            "1/T1-T3 Frequency-Drug: @Drug$ 81 mg @Frequency$ for pain.",
            "1/T1-T4 Reason-Drug: @Drug$ 81 mg daily for @Reason$.",
            "1/T1-T4/2 Other-Drug: @Drug$ 81 mg daily for @Reason$.",
            "1/T1-T8 false: @Drug$ @Dosage$ for pain.",
            "1/T5-T6 Strength-Drug: Then @Drug$ @Strength$.",
        ];
        assert_eq!(said(&items), expected);
        assert!(items.iter().all(|item| item.group == "1"));
        assert_eq!((steps[0].read, steps[1].kept, steps[2].kept), (1, 8, 5));
        assert_eq!((steps[2].dropped[APART], steps[2].dropped[NO_DRUG]), (1, 1));
        let marked = Config { arguments: Arguments::Marked, ..config(1) };
        assert_eq!(of(ANN, marked).unwrap().0[5].text, "Then << warfarin >> [[ 5 mg ]].");
    }

    #[test]
    fn a_text_may_have_several_sentences() {
        let (items, steps) = of(ANN, config(3)).unwrap();
        let far = "1/T5-T7 ADE-Drug: Then @Drug$ 5 mg. It stopped. @ADE$ came.";
        assert!(said(&items).contains(&far.to_owned()), "{:?}", said(&items));
        let both = "1/T1-T6 false: @Drug$ 81 mg daily for pain. Then warfarin @Strength$.";
        assert!(said(&items).contains(&both.to_owned()), "{:?}", said(&items));
        assert!(!steps[2].dropped.contains_key(APART));
    }

    #[test]
    fn what_does_not_fit_is_refused_or_counted() {
        let told = |from: &str, to: &str| of(&ANN.replacen(from, to, 1), config(1)).unwrap_err();
        assert!(told("0 7", "0 6").contains("1.ann: line 1: the mention does not fit: \"Aspiri\""));
        assert!(
            told("Arg2:T6", "Arg2:T9")
                .contains("1.ann: line 12: found \"R4\\tStrength-Drug Arg1:T5 Arg2:T9\"")
        );
        assert!(told(" Arg2:T6", "").contains("expected a relation: R and its number"));
        let lenient = Config { misfits: Misfits::Drop, ..config(1) };
        let (items, steps) = of(&ANN.replace("44 48", "44 47"), lenient).unwrap();
        assert_eq!((items.len(), steps[1].kept, steps[2].dropped[LEFT_OUT]), (5, 7, 1));
    }

    #[test]
    fn the_same_files_are_texts_with_entities() {
        let brat = brat::Config { concepts: Concepts::None, misfits: Misfits::Refuse };
        let (format, unit) = (file::Format::Brat(brat), tagged::Unit::Sentence);
        let format = tagged::Config { format, kinds: None, unit, discontinuous: tagged::Gaps::Drop };
        let (folder, mut items) = (folder(ANN), vec![]);
        let steps = format.read(&folder.path().join("1.txt"), &mut |item| items.push(item)).unwrap();
        assert_eq!((steps[0].dropped["annotation of another kind"], steps[1].dropped[PIECES]), (8, 1));
        assert_eq!((items.len(), steps[1].kept), (4, 7));
    }
}
