//! Texts with gold labels, as a benchmark; tags have their own file.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::Context as _;
use downstream::cop::Variant;
use downstream::cop::weight;
use downstream::encode::{Frame, Framed, Texts};
use downstream::example::{Answer, Example, Examples, Kind, Part};
use model::output::{Batch, Decoder, Group, Output, RankLoss, Targets};
use serde_json::json;
use tasks::token::encode::Vocabulary;

use super::benchmark::{Benchmark, Score, drawn, only};
use super::config::{ClassWeights, Fixed};
use super::measure::{self, class, classes, number, right};
use super::quirks::{AbsentClasses, PairOrder, TrainOn};
use crate::bundle::task_file::Asked;
use crate::stage::maps::of_texts::MappedRows;

/// What rows are made of.
enum Tokens {
    /// The text of each example, and the second one of each row.
    Plain(Texts, Texts),
    /// Rows that are made already.
    Known(MappedRows),
}

/// Examples as tokens.
pub(super) struct Labelled {
    examples: Examples,
    tokens: Tokens,
    /// Which rows of all are an example's: one, or one for each choice.
    rows: Vec<Range<usize>>,
    /// Places of the examples that are trained on, and of those that are looked at.
    of: BTreeMap<Part, Vec<usize>>,
    output: Output,
    frame: Frame,
    order: PairOrder,
    /// How F1 goes on without a class.
    absent: AbsentClasses,
}

impl Labelled {
    /// Encodes examples.
    ///
    /// # Errors
    /// When a text cannot be encoded, or a class that is to count as much as the others has no example.
    pub(super) fn new(
        examples: Examples,
        vocabulary: &Vocabulary,
        fixed: &Fixed,
        known: Option<MappedRows>,
    ) -> anyhow::Result<Self> {
        let tokens = match known {
            Some(known) => Tokens::Known(known),
            None => {
                let all = examples.examples.iter();
                let texts: Vec<&str> = all.clone().map(|example| example.text.as_str()).collect();
                let second: Vec<&str> =
                    all.flat_map(Example::second_texts).map(Option::unwrap_or_default).collect();
                let of = |texts: &[&str]| Texts::new(vocabulary, texts, fixed.max_tokens);
                Tokens::Plain(of(&texts)?, of(&second)?)
            }
        };
        let rows = examples.examples.iter().scan(0, |next, example| {
            let start = *next;
            *next += example.second_texts().count();
            Some(start..*next)
        });
        let rows = rows.collect();
        let of = looked_at(&examples, fixed);
        let trained = of.get(&Part::Train).map_or(&[][..], Vec::as_slice);
        let output = output(&examples, trained, fixed.class_weights)?;
        let (frame, prepared) = (fixed.frame(vocabulary), fixed.quirks);
        let (order, absent) = (prepared.pairs, prepared.absent_classes);
        Ok(Self { examples, tokens, rows, of, output, frame, order, absent })
    }

    fn places(&self, part: Part) -> &[usize] {
        self.of.get(&part).map_or(&[], Vec::as_slice)
    }

    /// Adds the rows of the example at `place`.
    fn push_rows(&self, place: usize, rows: &mut Framed) -> anyhow::Result<()> {
        for (row, second) in self.rows[place].clone().zip(self.examples.examples[place].second_texts()) {
            match (&self.tokens, second) {
                (Tokens::Known(known), _) => known.push(row, rows)?,
                (Tokens::Plain(texts, _), None) => rows.single(texts.get(place)),
                (Tokens::Plain(texts, others), Some(_)) => {
                    self.order.push(texts.get(place), others.get(row), rows);
                }
            }
        }
        Ok(())
    }

    fn batched(&self, places: &[usize]) -> anyhow::Result<Batch> {
        let mut rows = Framed::new(self.frame)?;
        places.iter().try_for_each(|&place| self.push_rows(place, &mut rows))?;
        let answers = places.iter().map(|&place| &self.examples.examples[place].answer);
        let targets = match self.examples.kind {
            Kind::OneClass => Targets::Classes(answers.map(class).collect()),
            Kind::AnyClasses => Targets::Sets(answers.map(|answer| classes(answer).to_vec()).collect()),
            Kind::Score => Targets::Scores(answers.map(number).collect()),
            Kind::Choice => {
                let counts = places.iter().map(|&place| self.rows[place].len());
                let group = |(rows, answer)| Group { rows, right: right(answer) };
                Targets::Groups(counts.zip(answers).map(group).collect())
            }
            Kind::Tags | Kind::MaskedWords | Kind::Span => {
                anyhow::bail!("tags, masked words and spans have rows of their own")
            }
        };
        Ok(only(rows.rows, targets))
    }
}

/// The places of the examples of each part that are looked at.
pub(super) fn looked_at(examples: &Examples, fixed: &Fixed) -> BTreeMap<Part, Vec<usize>> {
    let limits = &fixed.max_examples;
    let places = |part: Part| match (part, fixed.quirks.train) {
        (Part::Train, TrainOn::TrainAndDev) => [examples.of(part), examples.of(Part::Dev)].concat(),
        _ => examples.of(part),
    };
    let of = |part: Part| {
        let all = places(part);
        let most = match part {
            Part::Train => limits.of_train(all.len()),
            Part::Dev => limits.dev,
            Part::MaskSearch => limits.mask_search,
            Part::Test => limits.test,
        };
        (part, drawn(all, most, examples.name.as_str(), part.name()))
    };
    Part::ALL.map(of).into()
}

/// What an encoder gets for these examples.
fn output(examples: &Examples, trained: &[usize], weights: ClassWeights) -> anyhow::Result<Output> {
    let mut counts = vec![0_u64; examples.classes.len()];
    for &place in trained {
        match &examples.examples[place].answer {
            Answer::Class(class) => counts[*class as usize] += 1,
            Answer::Classes(classes) => classes.iter().for_each(|&class| counts[class as usize] += 1),
            Answer::Score(_)
            | Answer::Tags(_)
            | Answer::Choice(_)
            | Answer::MaskedWords
            | Answer::Span(_) => {}
        }
    }
    let classes = examples.classes.len();
    let balanced = weights == ClassWeights::Balanced;
    Ok(match examples.kind {
        Kind::OneClass => {
            let weights = balanced
                .then(|| weight::balanced(&counts))
                .transpose()
                .with_context(|| format!("{}: finetune.class_weights is `balanced`", examples.name))?;
            Output::OneClass { classes, weights }
        }
        Kind::AnyClasses => {
            let samples = trained.len() as u64;
            let positive = balanced.then(|| weight::positive(&counts, samples, Variant::Fixed));
            Output::AnyClasses { classes, positive }
        }
        Kind::Score => Output::Score,
        Kind::Tags => Output::Tag { classes },
        Kind::Choice => Output::Rank { loss: RankLoss::Softmax },
        Kind::Span => Output::Span,
        Kind::MaskedWords => Output::Vocabulary { decoder: Decoder::MaskedLm },
    })
}

impl Benchmark for Labelled {
    fn output(&self) -> &Output {
        &self.output
    }

    fn asked(&self) -> Asked {
        match self.examples.kind {
            Kind::OneClass => Asked::OneClass,
            Kind::AnyClasses => Asked::AnyClasses,
            Kind::Score => Asked::Score,
            Kind::Tags => Asked::Tags,
            Kind::Choice => Asked::Rank,
            Kind::MaskedWords => Asked::MaskedWords,
            Kind::Span => Asked::Span,
        }
    }

    fn pairs(&self) -> bool {
        self.examples.examples.iter().flat_map(Example::second_texts).any(|second| second.is_some())
    }

    fn classes(&self) -> &[String] {
        &self.examples.classes
    }

    fn items(&self) -> usize {
        self.places(Part::Train).len()
    }

    fn batch(&self, _: u64, items: &[usize]) -> anyhow::Result<Batch> {
        let train = self.places(Part::Train);
        self.batched(&items.iter().map(|&item| train[item]).collect::<Vec<_>>())
    }

    fn samples(&self, part: Part) -> usize {
        self.places(part).len()
    }

    fn id(&self, part: Part, sample: usize) -> String {
        self.examples.examples[self.places(part)[sample]].id.clone()
    }

    fn framed(&self) -> anyhow::Result<Framed> {
        Ok(Framed::new(self.frame)?)
    }

    fn push(&self, part: Part, sample: usize, rows: &mut Framed) -> anyhow::Result<()> {
        self.push_rows(self.places(part)[sample], rows)
    }

    fn probe(&self, part: Part, samples: Range<usize>) -> anyhow::Result<Batch> {
        self.batched(&self.places(part)[samples])
    }

    fn score(&self, part: Part, outputs: &[Vec<f32>]) -> anyhow::Result<Score> {
        let answers: Vec<&Answer> =
            self.places(part).iter().map(|&place| &self.examples.examples[place].answer).collect();
        measure::score(&self.examples, self.absent, &answers, outputs)
    }

    fn facts(&self) -> BTreeMap<String, serde_json::Value> {
        Part::ALL.map(|part| (part.name().to_owned(), json!(self.places(part).len()))).into()
    }
}
