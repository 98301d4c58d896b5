//! Texts with right answers, as a benchmark. Knows no encoder.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::Context as _;
use model::eval::{auroc, correlation};
use model::output::downstream::Output;
use model::train::finetune::{Batch, Targets};
use serde_json::json;
use tasks::downstream::cop::Variant;
use tasks::downstream::cop::weight;
use tasks::downstream::encode::{Frame, Framed, Texts};
use tasks::downstream::example::{Answer, Examples, Kind, Part};
use tasks::token::encode::Vocabulary;

use super::benchmark::{Benchmark, Score, drawn, only};
use super::config::{ClassWeights, Fixed};
use crate::ask::task_file::Asked;

/// Examples as tokens.
pub(super) struct Labelled {
    examples: Examples,
    texts: Texts,
    pairs: Texts,
    /// Places of the examples that are trained on, and of those that are looked at.
    of: BTreeMap<Part, Vec<usize>>,
    output: Output,
    frame: Frame,
}

impl Labelled {
    /// Encodes examples.
    ///
    /// # Errors
    /// When a text cannot be encoded, or a class that is to count as much as the others has no example.
    pub(super) fn new(examples: Examples, vocabulary: &Vocabulary, fixed: &Fixed) -> anyhow::Result<Self> {
        let texts: Vec<&str> = examples.examples.iter().map(|example| example.text.as_str()).collect();
        let pairs: Vec<&str> =
            examples.examples.iter().map(|example| example.pair.as_deref().unwrap_or("")).collect();
        let texts = Texts::new(vocabulary, &texts, fixed.max_tokens)?;
        let pairs = Texts::new(vocabulary, &pairs, fixed.max_tokens)?;
        let most = [
            (Part::Train, fixed.most.train.unwrap_or(usize::MAX)),
            (Part::Dev, fixed.most.dev),
            (Part::MaskSearch, fixed.most.mask_search),
            (Part::Test, fixed.most.test),
        ];
        let of = most.map(|(part, most)| {
            (part, drawn(examples.of(part), most, (examples.name.as_str(), part.name())))
        });
        let of = BTreeMap::from(of);
        let trained = of.get(&Part::Train).map_or(&[][..], Vec::as_slice);
        let output = output(&examples, trained, fixed.class_weights)?;
        Ok(Self { examples, texts, pairs, of, output, frame: fixed.frame(vocabulary) })
    }

    fn places(&self, part: Part) -> &[usize] {
        self.of.get(&part).map_or(&[], Vec::as_slice)
    }

    /// Adds the row of the example at `place`.
    fn row(&self, place: usize, rows: &mut Framed) {
        match &self.examples.examples[place].pair {
            None => rows.single(self.texts.get(place)),
            Some(_) => rows.pair(self.texts.get(place), self.pairs.get(place)),
        }
    }

    fn batched(&self, places: &[usize]) -> anyhow::Result<Batch> {
        let mut rows = Framed::new(self.frame)?;
        places.iter().for_each(|&place| self.row(place, &mut rows));
        let answers = places.iter().map(|&place| &self.examples.examples[place].answer);
        let targets = match self.examples.kind {
            Kind::OneClass => Targets::Classes(answers.map(class).collect()),
            Kind::AnyClasses => Targets::Sets(answers.map(|answer| classes(answer).to_vec()).collect()),
            Kind::Score => Targets::Scores(answers.map(number).collect()),
        };
        Ok(only(rows.rows, targets))
    }
}

/// What an encoder gets for these examples.
fn output(examples: &Examples, trained: &[usize], weights: ClassWeights) -> anyhow::Result<Output> {
    let mut counts = vec![0_u64; examples.classes.len()];
    for &place in trained {
        match &examples.examples[place].answer {
            Answer::Class(class) => counts[*class as usize] += 1,
            Answer::Classes(classes) => classes.iter().for_each(|&class| counts[class as usize] += 1),
            Answer::Score(_) => {}
        }
    }
    let classes = examples.classes.len();
    let balanced = weights == ClassWeights::Balanced;
    Ok(match examples.kind {
        Kind::OneClass => {
            let weights = balanced
                .then(|| weight::balanced(&counts))
                .transpose()
                .with_context(|| format!("{}: finetune.fixed.class_weights is `balanced`", examples.name))?;
            Output::OneClass { classes, weights }
        }
        Kind::AnyClasses => {
            let samples = trained.len() as u64;
            let positive = balanced.then(|| weight::positive(&counts, samples, Variant::Fixed));
            Output::AnyClasses { classes, positive }
        }
        Kind::Score => Output::Score,
    })
}

// Examples are checked when they are read: an answer of another kind does not come here.
fn class(answer: &Answer) -> u32 {
    if let Answer::Class(class) = answer { *class } else { 0 }
}

fn classes(answer: &Answer) -> &[u32] {
    if let Answer::Classes(classes) = answer { classes } else { &[] }
}

fn number(answer: &Answer) -> f64 {
    if let Answer::Score(score) = answer { *score } else { 0.0 }
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
        }
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

    fn push(&self, part: Part, sample: usize, rows: &mut Framed) {
        self.row(self.places(part)[sample], rows);
    }

    fn probe(&self, part: Part, samples: Range<usize>) -> anyhow::Result<Batch> {
        self.batched(&self.places(part)[samples])
    }

    fn score(&self, part: Part, outputs: &[Vec<f32>]) -> anyhow::Result<Score> {
        let answers: Vec<&Answer> =
            self.places(part).iter().map(|&place| &self.examples.examples[place].answer).collect();
        let scores: Vec<f64> = outputs.iter().flatten().map(|&score| f64::from(score)).collect();
        let rows = auroc::Rows { scores: &scores, classes: self.examples.classes.len() };
        let samples = answers.len();
        let (metric, value, others) = match self.examples.kind {
            Kind::OneClass if rows.classes == 2 => {
                let margin: Vec<f64> = scores.chunks_exact(2).map(|pair| pair[1] - pair[0]).collect();
                let positive: Vec<bool> = answers.iter().map(|answer| class(answer) == 1).collect();
                let precision = auroc::average_precision(&margin, &positive)?;
                let others =
                    vec![("average_precision", precision), ("accuracy", accuracy(outputs, &answers))];
                ("auroc", auroc::binary(&margin, &positive)?, others)
            }
            Kind::OneClass => {
                let labels: Vec<usize> = answers.iter().map(|answer| class(answer) as usize).collect();
                let shares: Vec<f64> = outputs.iter().flat_map(|logits| softmax(logits)).collect();
                let found = auroc::multiclass(&auroc::Rows { scores: &shares, ..rows }, &labels)?;
                let others = vec![
                    ("auroc_one_vs_rest", found.one_vs_rest),
                    ("absent_classes", found.absent as f64),
                    ("accuracy", accuracy(outputs, &answers)),
                ];
                ("auroc_one_vs_one", found.one_vs_one, others)
            }
            Kind::AnyClasses => {
                let has = |answer: &Answer, class: u32| classes(answer).binary_search(&class).is_ok();
                let positive: Vec<bool> = answers
                    .iter()
                    .flat_map(|answer| (0..).take(rows.classes).map(|class| has(answer, class)))
                    .collect();
                let found = auroc::multilabel(&rows, &positive)?;
                let others = vec![
                    ("auroc_micro", found.micro),
                    ("auroc_weighted", found.weighted),
                    ("left_out_classes", (found.never + found.always) as f64),
                ];
                ("auroc_macro", found.macro_mean, others)
            }
            Kind::Score => {
                let truth: Vec<f64> = answers.iter().map(|answer| number(answer)).collect();
                let others = vec![
                    ("spearman", correlation::spearman(&truth, &scores)?.value),
                    ("mean_squared_error", correlation::mean_squared_error(&truth, &scores)?),
                ];
                ("pearson", correlation::pearson(&truth, &scores)?.value, others)
            }
        };
        let others = others.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Ok(Score { samples, metric: metric.to_owned(), value, others })
    }

    fn facts(&self) -> BTreeMap<String, serde_json::Value> {
        Part::ALL.map(|part| (part.name().to_owned(), json!(self.places(part).len()))).into()
    }
}

/// Share of the samples whose class has the highest output.
fn accuracy(outputs: &[Vec<f32>], answers: &[&Answer]) -> f64 {
    let said = |logits: &[f32]| {
        let best = logits.iter().enumerate().max_by(|(i, a), (j, b)| a.total_cmp(b).then(j.cmp(i)));
        best.map_or(0, |(class, _)| class)
    };
    let hits = outputs.iter().zip(answers).filter(|(logits, answer)| said(logits) == class(answer) as usize);
    hits.count() as f64 / answers.len().max(1) as f64
}

/// The share of each class.
fn softmax(logits: &[f32]) -> Vec<f64> {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f64> = logits.iter().map(|&x| f64::from(x - most).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}
