//! Multiple choice, as a benchmark: a row for each choice, its output a number, and a softmax over the rows of a text.

use std::collections::BTreeMap;
use std::ops::Range;

use model::eval::retrieval::{self, Query};
use model::output::{Batch, Group, Output, RankLoss, Targets};
use serde_json::json;
use tasks::downstream::encode::{Frame, Framed, Texts};
use tasks::downstream::example::{Answer, Choice, Examples, Part};
use tasks::token::encode::Vocabulary;

use super::benchmark::{Benchmark, Score, only};
use super::config::Fixed;
use super::examples::looked_at;
use crate::bundle::task_file::Asked;
use crate::stage::maps::of_texts::MappedRows;

/// What rows are made of.
enum Tokens {
    /// Texts, and the choices of all one behind the other.
    Plain(Texts, Texts),
    /// Rows that are made already, choice behind choice.
    Known(MappedRows),
}

/// Texts with their choices as tokens.
pub(super) struct Choices {
    examples: Examples,
    tokens: Tokens,
    /// Where each example's choices begin among all.
    starts: Vec<usize>,
    of: BTreeMap<Part, Vec<usize>>,
    output: Output,
    frame: Frame,
}

/// Every row of examples with choices: the text and a choice.
pub(crate) fn rows(examples: &Examples) -> impl Iterator<Item = (&str, &str)> {
    examples.examples.iter().flat_map(|example| {
        let choices = choice(&example.answer).map_or(&[][..], |of| of.choices.as_slice());
        choices.iter().map(|choice| (example.text.as_str(), choice.as_str()))
    })
}

// Examples are checked when they are read: an answer of another kind does not come here.
fn choice(answer: &Answer) -> Option<&Choice> {
    if let Answer::Choice(choice) = answer { Some(choice) } else { None }
}

impl Choices {
    /// Encodes examples.
    ///
    /// # Errors
    /// When a text cannot be encoded.
    pub(super) fn new(
        examples: Examples,
        vocabulary: &Vocabulary,
        fixed: &Fixed,
        known: Option<MappedRows>,
    ) -> anyhow::Result<Self> {
        let tokens = match known {
            Some(known) => Tokens::Known(known),
            None => {
                let texts: Vec<&str> =
                    examples.examples.iter().map(|example| example.text.as_str()).collect();
                let choices: Vec<&str> = rows(&examples).map(|(_, choice)| choice).collect();
                let of = |texts: &[&str]| Texts::new(vocabulary, texts, fixed.max_tokens);
                Tokens::Plain(of(&texts)?, of(&choices)?)
            }
        };
        let starts = examples.examples.iter().scan(0, |next, example| {
            let start = *next;
            *next += choice(&example.answer).map_or(0, |of| of.choices.len());
            Some(start)
        });
        let starts = starts.collect();
        let of = looked_at(&examples, fixed);
        let output = Output::Rank { loss: RankLoss::Softmax };
        Ok(Self { tokens, starts, of, output, frame: fixed.frame(vocabulary), examples })
    }

    fn places(&self, part: Part) -> &[usize] {
        self.of.get(&part).map_or(&[], Vec::as_slice)
    }

    fn choice(&self, place: usize) -> (usize, usize) {
        choice(&self.examples.examples[place].answer).map_or((0, 0), |of| (of.choices.len(), of.right))
    }

    /// Adds the rows of the example at `place`.
    fn rows(&self, place: usize, rows: &mut Framed) -> anyhow::Result<()> {
        let start = self.starts[place];
        for row in start..start + self.choice(place).0 {
            match &self.tokens {
                Tokens::Known(known) => known.push(row, rows)?,
                Tokens::Plain(texts, choices) => rows.pair(texts.get(place), choices.get(row)),
            }
        }
        Ok(())
    }

    fn batched(&self, places: &[usize]) -> anyhow::Result<Batch> {
        let mut rows = Framed::new(self.frame)?;
        places.iter().try_for_each(|&place| self.rows(place, &mut rows))?;
        let groups = places.iter().map(|&place| {
            let (rows, right) = self.choice(place);
            Group { rows, right }
        });
        Ok(only(rows.rows, Targets::Groups(groups.collect())))
    }
}

impl Benchmark for Choices {
    fn output(&self) -> &Output {
        &self.output
    }

    fn asked(&self) -> Asked {
        Asked::Rank
    }

    fn pairs(&self) -> bool {
        true
    }

    fn classes(&self) -> &[String] {
        &[]
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
        self.rows(self.places(part)[sample], rows)
    }

    fn probe(&self, part: Part, samples: Range<usize>) -> anyhow::Result<Batch> {
        self.batched(&self.places(part)[samples])
    }

    /// Of equal choices the first is said, as `argmax` says it.
    fn score(&self, part: Part, outputs: &[Vec<f32>]) -> anyhow::Result<Score> {
        let (mut scores, mut relevant, mut counts) = (vec![], vec![], vec![]);
        for &place in self.places(part) {
            let (count, right) = self.choice(place);
            counts.push(count);
            relevant.extend((0..count).map(|choice| choice == right));
        }
        scores.extend(outputs.iter().flatten().map(|&score| f64::from(score)));
        let asked = counts.into_iter().scan(0, |from, count| {
            let of = *from..*from + count;
            *from = of.end;
            Some(Query { scores: scores.get(of.clone()).unwrap_or(&[]), relevant: &relevant[of] })
        });
        let report = retrieval::evaluate(&asked.collect::<Vec<_>>(), &[1])?;
        let value = report.recall_at.get(&1).copied().unwrap_or_default();
        let others = BTreeMap::from([("mrr".to_owned(), report.mrr)]);
        Ok(Score { samples: report.queries, metric: "accuracy".to_owned(), value, others })
    }

    fn facts(&self) -> BTreeMap<String, serde_json::Value> {
        Part::ALL.map(|part| (part.name().to_owned(), json!(self.places(part).len()))).into()
    }
}
