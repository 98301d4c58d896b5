//! How good outputs for examples are, by the measure that their benchmark has.

use std::collections::BTreeMap;

use anyhow::Context as _;
use downstream::example::{Answer, Examples, Kind, Measure};
use model::eval::entity::{Rules, Tags};
use model::eval::f1::{Confusion, Counts, macro_f1};
use model::eval::retrieval::{self, Query};
use model::eval::{auroc, correlation};

use super::benchmark::Score;
use super::quirks::AbsentClasses;

/// A metric's name, its value, and others beside it.
type Measured = (&'static str, f64, Vec<(&'static str, f64)>);

/// Metrics by which a model for a benchmark with such answers, or for a ranking, can be chosen; higher is better in all.
#[must_use]
pub(crate) fn metrics(kind: Option<Kind>) -> &'static [&'static str] {
    match kind {
        None => {
            &["recall_at_1", "recall_at_5", "recall_at_10", "hit_at_1", "hit_at_5", "hit_at_10", "map", "mrr"]
        }
        Some(Kind::OneClass) => &[
            "accuracy",
            "matthews",
            "micro_f1",
            "macro_f1",
            "auroc",
            "average_precision",
            "auroc_one_vs_one",
            "auroc_one_vs_rest",
        ],
        Some(Kind::AnyClasses) => &[
            "accuracy",
            "micro_f1",
            "macro_f1",
            "example_f1",
            "auroc_macro",
            "auroc_micro",
            "auroc_weighted",
        ],
        Some(Kind::Score) => &["pearson", "spearman"],
        Some(Kind::Choice) => &["accuracy", "mrr"],
        Some(Kind::MaskedWords) => &["accuracy"],
        Some(Kind::Span) => &["answer_f1", "exact_match"],
        Some(Kind::Tags) => &["entity_f1", "precision", "recall", "strict_f1", "word_f1", "word_accuracy"],
    }
}

/// The score of `outputs`, one list for each row of `answers`: one, or one for each choice.
///
/// # Errors
/// When the metric is undefined.
pub(super) fn score(
    examples: &Examples,
    absent: AbsentClasses,
    answers: &[&Answer],
    outputs: &[Vec<f32>],
) -> anyhow::Result<Score> {
    let (metric, value, others) = match examples.kind {
        Kind::OneClass => one_class(examples, absent, answers, outputs)?,
        Kind::AnyClasses => any_classes(examples, answers, outputs)?,
        Kind::Score => scores(examples.measure, answers, outputs)?,
        Kind::Choice => choices(answers, outputs)?,
        Kind::Tags | Kind::MaskedWords | Kind::Span => {
            anyhow::bail!("tags, masked words and spans are measured by themselves")
        }
    };
    Ok(Score {
        samples: answers.len(),
        metric: metric.to_owned(),
        value,
        others: others.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    })
}

// Examples are checked when they are read: an answer of another kind does not come here.
pub(super) fn class(answer: &Answer) -> u32 {
    if let Answer::Class(class) = answer { *class } else { 0 }
}

pub(super) fn classes(answer: &Answer) -> &[u32] {
    if let Answer::Classes(classes) = answer { classes } else { &[] }
}

pub(super) fn number(answer: &Answer) -> f64 {
    if let Answer::Score(score) = answer { *score } else { 0.0 }
}

pub(super) fn right(answer: &Answer) -> usize {
    if let Answer::Choice(of) = answer { of.right } else { 0 }
}

/// The class with the highest output, the first of equal ones.
pub(crate) fn best(logits: &[f32]) -> usize {
    let best = logits.iter().enumerate().max_by(|(i, a), (j, b)| a.total_cmp(b).then(j.cmp(i)));
    best.map_or(0, |(class, _)| class)
}

fn one_class(
    examples: &Examples,
    absent: AbsentClasses,
    answers: &[&Answer],
    outputs: &[Vec<f32>],
) -> anyhow::Result<Measured> {
    let number_of = examples.classes.len();
    let truth: Vec<usize> = answers.iter().map(|answer| class(answer) as usize).collect();
    if examples.measure == Measure::Auroc {
        return areas(&truth, outputs, number_of);
    }
    let said: Vec<usize> = outputs.iter().map(|logits| best(logits)).collect();
    let confusion = Confusion::new(&truth, &said, number_of)?;
    let counted = match (examples.negative_class, absent) {
        (Some(nothing), AbsentClasses::Counted) => confusion.without(nothing as usize),
        (Some(nothing), AbsentClasses::Shift) => confusion.shifted(nothing as usize),
        (None, _) => confusion.per_class(),
    };
    let (accuracy, micro, mean) = (confusion.accuracy(), micro(&counted), macro_f1(&counted).unwrap_or(0.0));
    // Where all are said to be of one class there is no correlation: benchmarks count 0.
    let matthews = confusion.matthews().unwrap_or(0.0);
    let all = [
        (Measure::Accuracy, "accuracy", accuracy),
        (Measure::Matthews, "matthews", matthews),
        (Measure::MicroF1, "micro_f1", micro),
        (Measure::MacroF1, "macro_f1", mean),
    ];
    let (metric, value, mut others) = chosen(examples.measure, &all)?;
    let over = |of: fn(&Counts) -> f64| counted.iter().map(of).sum::<f64>() / counted.len().max(1) as f64;
    others.extend([("macro_precision", over(Counts::precision)), ("macro_recall", over(Counts::recall))]);
    Ok((metric, value, others))
}

/// The measure that is asked for in front of the others.
fn chosen(measure: Measure, all: &[(Measure, &'static str, f64)]) -> anyhow::Result<Measured> {
    let (_, name, value) = all.iter().find(|(of, _, _)| *of == measure).context("no such measure here")?;
    let others = all.iter().filter(|(of, _, _)| *of != measure).map(|(_, name, value)| (*name, *value));
    Ok((*name, *value, others.collect()))
}

fn areas(truth: &[usize], outputs: &[Vec<f32>], classes: usize) -> anyhow::Result<Measured> {
    let right = outputs.iter().zip(truth).filter(|(logits, truth)| best(logits) == **truth).count();
    let accuracy = right as f64 / truth.len().max(1) as f64;
    if classes == 2 {
        let margin: Vec<f64> = outputs.iter().map(|pair| f64::from(pair[1]) - f64::from(pair[0])).collect();
        let positive: Vec<bool> = truth.iter().map(|class| *class == 1).collect();
        let precision = auroc::average_precision(&margin, &positive)?;
        let others = vec![("average_precision", precision), ("accuracy", accuracy)];
        return Ok(("auroc", auroc::binary(&margin, &positive)?, others));
    }
    let shares: Vec<f64> = outputs.iter().flat_map(|logits| softmax(logits)).collect();
    let found = auroc::multiclass(&auroc::Rows { scores: &shares, classes }, truth)?;
    let others = vec![
        ("auroc_one_vs_rest", found.one_vs_rest),
        ("absent_classes", found.absent as f64),
        ("accuracy", accuracy),
    ];
    Ok(("auroc_one_vs_one", found.one_vs_one, others))
}

fn any_classes(examples: &Examples, answers: &[&Answer], outputs: &[Vec<f32>]) -> anyhow::Result<Measured> {
    let number_of = examples.classes.len();
    let has = |answer: &Answer, class: u32| classes(answer).binary_search(&class).is_ok();
    if examples.measure == Measure::Auroc {
        let scores: Vec<f64> = outputs.iter().flatten().map(|&score| f64::from(score)).collect();
        let positive: Vec<bool> =
            answers.iter().flat_map(|answer| (0..).take(number_of).map(|class| has(answer, class))).collect();
        let found = auroc::multilabel(&auroc::Rows { scores: &scores, classes: number_of }, &positive)?;
        let others = vec![
            ("auroc_micro", found.micro),
            ("auroc_weighted", found.weighted),
            ("left_out_classes", (found.never + found.always) as f64),
        ];
        return Ok(("auroc_macro", found.macro_mean, others));
    }
    anyhow::ensure!(!answers.is_empty(), "there is no example");
    let mut of_classes = vec![Counts::default(); number_of];
    // Means of precision and recall over examples, as BLUE takes them.
    let (mut precision, mut recall, mut whole) = (0.0, 0.0, 0);
    for (answer, logits) in answers.iter().zip(outputs) {
        let mut own = Counts::default();
        for (class, (counts, logit)) in (0..).zip(of_classes.iter_mut().zip(logits)) {
            let found = match (has(answer, class), *logit > 0.0) {
                (true, true) => Counts { hits: 1, ..Counts::default() },
                (false, true) => Counts { invented: 1, ..Counts::default() },
                (true, false) => Counts { missed: 1, ..Counts::default() },
                (false, false) => Counts::default(),
            };
            counts.add(&found);
            if examples.negative_class != Some(class) {
                own.add(&found);
            }
        }
        // Where none holds and none is said, all is right.
        let right = own == Counts::default();
        precision += if right { 1.0 } else { own.precision() };
        recall += if right { 1.0 } else { own.recall() };
        whole += usize::from(own.invented + own.missed == 0);
    }
    let counted: Vec<Counts> = match examples.negative_class {
        Some(nothing) => {
            let all = of_classes.into_iter().enumerate();
            all.filter(|(class, _)| *class != nothing as usize).map(|(_, counts)| counts).collect()
        }
        None => of_classes,
    };
    let [precision, recall] = [precision, recall].map(|sum| sum / answers.len() as f64);
    let both = if precision + recall > 0.0 { 2.0 * precision * recall / (precision + recall) } else { 0.0 };
    let all = [
        (Measure::ExampleF1, "example_f1", both),
        (Measure::MicroF1, "micro_f1", micro(&counted)),
        (Measure::MacroF1, "macro_f1", macro_f1(&counted).unwrap_or(0.0)),
    ];
    let (name, value, mut others) = chosen(examples.measure, &all)?;
    others.push(("accuracy", whole as f64 / answers.len() as f64));
    Ok((name, value, others))
}

fn micro(classes: &[Counts]) -> f64 {
    classes.iter().sum::<Counts>().f1()
}

fn scores(measure: Measure, answers: &[&Answer], outputs: &[Vec<f32>]) -> anyhow::Result<Measured> {
    let truth: Vec<f64> = answers.iter().map(|answer| number(answer)).collect();
    let said: Vec<f64> = outputs.iter().flatten().map(|&score| f64::from(score)).collect();
    let all = [
        (Measure::Pearson, "pearson", correlation::pearson(&truth, &said)?.value),
        (Measure::Spearman, "spearman", correlation::spearman(&truth, &said)?.value),
    ];
    let (name, value, mut others) = chosen(measure, &all)?;
    others.push(("mean_squared_error", correlation::mean_squared_error(&truth, &said)?));
    Ok((name, value, others))
}

/// Of equal choices the first is said, as `argmax` says it.
fn choices(answers: &[&Answer], outputs: &[Vec<f32>]) -> anyhow::Result<Measured> {
    let of = |answer: &&Answer| {
        let Answer::Choice(of) = answer else { return vec![] };
        (0..of.choices.len()).map(|choice| choice == of.right).collect()
    };
    let relevant: Vec<Vec<bool>> = answers.iter().map(of).collect();
    let scores: Vec<f64> = outputs.iter().flatten().map(|&score| f64::from(score)).collect();
    let asked = relevant.iter().scan(0, |from, relevant| {
        let of = *from..*from + relevant.len();
        *from = of.end;
        Some(Query { scores: scores.get(of).unwrap_or(&[]), relevant })
    });
    let report = retrieval::evaluate(&asked.collect::<Vec<_>>(), &[1])?;
    let value = report.recall_at.get(&1).copied().unwrap_or_default();
    Ok(("accuracy", value, vec![("mrr", report.mrr)]))
}

/// The score of tags, a list for each sentence: entities by the rules of conlleval, strict ones and single words beside them. A word may be
/// said to be of the class behind those that have names, which no word is.
///
/// # Errors
/// When there is no sentence.
pub(super) fn tags(names: &[String], truth: &[Vec<usize>], said: &[Vec<usize>]) -> anyhow::Result<Score> {
    let tags = Tags::new(names)?.with_foreign();
    let found = tags.evaluate(truth, said, Rules::Conlleval)?;
    let strict = tags.evaluate(truth, said, Rules::StrictIob2)?.micro().f1();
    let words = tags.evaluate_words(truth, said)?;
    let micro = found.micro();
    let mut others = BTreeMap::from([
        ("precision".to_owned(), micro.precision()),
        ("recall".to_owned(), micro.recall()),
        ("strict_f1".to_owned(), strict),
        ("word_f1".to_owned(), words.types.iter().sum::<Counts>().f1()),
        ("word_accuracy".to_owned(), words.accuracy),
    ]);
    if tags.types().len() > 1 {
        let each = tags.types().iter().zip(&found.types);
        others.extend(each.map(|(kind, counts)| (format!("f1_of_{kind}"), counts.f1())));
    }
    Ok(Score { samples: truth.len(), metric: "entity_f1".to_owned(), value: micro.f1(), others })
}

/// The share of each class.
fn softmax(logits: &[f32]) -> Vec<f64> {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f64> = logits.iter().map(|&x| f64::from(x - most).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examples(kind: Kind, classes: usize, measure: Measure, nothing: Option<u32>) -> Examples {
        let classes = (0..classes).map(|class| class.to_string()).collect();
        Examples { name: "x".to_owned(), kind, classes, measure, negative_class: nothing, examples: vec![] }
    }

    fn logits(said: usize, classes: usize) -> Vec<f32> {
        (0..classes).map(|class| if class == said { 1.0 } else { -1.0 }).collect()
    }

    #[test]
    fn one_class_by_every_measure() {
        let truth: Vec<Answer> = [0, 1, 2, 2, 1].map(Answer::Class).into();
        let truth: Vec<&Answer> = truth.iter().collect();
        let outputs: Vec<Vec<f32>> = [0, 1, 2, 1, 0].iter().map(|said| logits(*said, 3)).collect();
        let of = |measure, nothing| {
            score(&examples(Kind::OneClass, 3, measure, nothing), AbsentClasses::Counted, &truth, &outputs)
                .unwrap()
        };
        let accuracy = of(Measure::Accuracy, None);
        assert_eq!((accuracy.metric.as_str(), accuracy.value, accuracy.samples), ("accuracy", 0.6, 5));
        // Without class 0: class 1 has a hit, one invented, one missed; class 2 a hit and one missed.
        let without = of(Measure::MicroF1, Some(0));
        assert!((without.value - 4.0 / 7.0).abs() < 1e-12, "{without:?}");
        // Of class 1 precision and recall are a half, of class 2 one and a half.
        assert_eq!((without.others["macro_precision"], without.others["macro_recall"]), (0.75, 0.5));
        let mean = of(Measure::MacroF1, Some(0));
        assert!((mean.value - (0.5 + 2.0 / 3.0) / 2.0).abs() < 1e-12);
        assert!(of(Measure::Matthews, None).value > 0.3);
        let one = vec![logits(1, 3); 5];
        let same =
            score(&examples(Kind::OneClass, 3, Measure::Matthews, None), AbsentClasses::Shift, &truth, &one)
                .unwrap();
        assert!(same.value.abs() < 1e-12);
    }

    #[test]
    fn absent_classes_move_the_others_up_as_in_the_code_of_mt_bert() {
        let by = |measure, absent, truth: &[u32], said: &[usize]| {
            let answers: Vec<Answer> = truth.iter().map(|class| Answer::Class(*class)).collect();
            let answers: Vec<&Answer> = answers.iter().collect();
            let outputs: Vec<Vec<f32>> = said.iter().map(|class| logits(*class, 4)).collect();
            let of = examples(Kind::OneClass, 4, measure, Some(1));
            score(&of, absent, &answers, &outputs).unwrap().value
        };
        let of = |absent, truth: &[u32], said: &[usize]| by(Measure::MicroF1, absent, truth, said);
        use AbsentClasses::{Counted, Shift};
        // All four classes occur, class 1 being the negative one: both are the same.
        let (truth, said) = (&[0, 1, 1, 2, 3], &[0, 1, 2, 2, 1]);
        assert!((of(Counted, truth, said) - of(Shift, truth, said)).abs() < 1e-12);
        // Class 3 is gone: four of six decisions of the other three, nothing among them, in place of one hit, one invented.
        let (truth, said) = (&[0, 1, 1, 1, 2, 1], &[0, 1, 1, 1, 1, 2]);
        assert!((of(Counted, truth, said) - 0.5).abs() < 1e-12);
        assert!((of(Shift, truth, said) - 4.0 / 6.0).abs() < 1e-12);
        // Nothing itself is gone: what is left are the relations.
        assert!((of(Shift, &[0, 2, 3], &[0, 2, 2]) - of(Counted, &[0, 2, 3], &[0, 2, 2])).abs() < 1e-12);
        let mean = |absent| by(Measure::MacroF1, absent, truth, said);
        assert!((mean(Counted) - 1.0 / 3.0).abs() < 1e-12 && (mean(Shift) - 1.75 / 3.0).abs() < 1e-12);
        assert!(of(Shift, &[0, 1], &[0, 1]).abs() < 1e-12 && of(Counted, &[0, 1], &[0, 1]) == 1.0);
    }

    #[test]
    fn examples_without_a_class_are_right_when_none_is_said() {
        let truth = [Answer::Classes(vec![]), Answer::Classes(vec![0, 1]), Answer::Classes(vec![2])];
        let truth: Vec<&Answer> = truth.iter().collect();
        let outputs = [vec![-1.0, -1.0, 0.0], vec![1.0, -1.0, -1.0], vec![1.0, -1.0, 2.0]];
        let of = |measure| {
            score(&examples(Kind::AnyClasses, 3, measure, None), AbsentClasses::Counted, &truth, &outputs)
                .unwrap()
        };
        let example = of(Measure::ExampleF1);
        // Precisions 1, 1 and 1/2, recalls 1, 1/2 and 1: both have the mean 5/6.
        assert!((example.value - 5.0 / 6.0).abs() < 1e-12, "{example:?}");
        assert!((example.others["accuracy"] - 1.0 / 3.0).abs() < 1e-12);
        assert!((of(Measure::MicroF1).value - 2.0 * 2.0 / 6.0).abs() < 1e-12);
    }

    #[test]
    fn scores_by_either_correlation() {
        let truth = [1.0, 2.0, 3.0].map(Answer::Score);
        let truth: Vec<&Answer> = truth.iter().collect();
        let outputs = [vec![1.0], vec![2.0], vec![9.0]];
        let of = |measure| {
            score(&examples(Kind::Score, 0, measure, None), AbsentClasses::Counted, &truth, &outputs).unwrap()
        };
        assert!((of(Measure::Spearman).value - 1.0).abs() < 1e-12 && of(Measure::Pearson).value < 0.95);
        assert!((of(Measure::Pearson).others["mean_squared_error"] - 12.0).abs() < 1e-6);
    }

    #[test]
    fn entities_need_both_ends_and_their_kind() {
        let names = ["O", "B-a", "I-a", "B-b", "I-b"].map(str::to_owned);
        let truth = vec![vec![1, 2, 0, 3], vec![0, 0]];
        let found = tags(&names, &truth, &[vec![2, 2, 0, 1], vec![0, 0]]).unwrap();
        assert_eq!((found.value, found.samples), (0.5, 2));
        assert_eq!((found.others["strict_f1"], found.others["f1_of_b"]), (0.0, 0.0));
        assert!((found.others["word_f1"] - 2.0 * 2.0 / 6.0).abs() < 1e-12);
    }
}
