//! Metrics against golden part i, and the rules of benchmarks' data against part l.
//!
//! The folder is `ENGRAFT_GOLDENS`, or `tests/fixtures/golden`.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use batch::family::Family;
use downstream::cop::{Variant, label, section};
use downstream::encode::{Cut, Frame, Framed};
use downstream::words::behind_outside;
use model::eval::auroc::{self, Rows};
use model::eval::correlation;
use model::eval::entity::{Rules, Tags};
use model::eval::f1::{Confusion, Counts, macro_f1};
use model::eval::retrieval::{self, Query};
use serde_json::Value;
use tasks::token::encode::Special;

/// A piece of a golden file.
fn golden(file: &str, piece: &str) -> Result<Value> {
    let mut all = engraft_tests::golden::json(file)?;
    all.get_mut(piece).map(Value::take).with_context(|| format!("{file} has no {piece}"))
}

/// What stands under a key, as what is asked for.
macro_rules! get {
    ($value:expr, $key:expr) => {
        serde_json::from_value($value[$key].clone()).with_context(|| $key.to_owned())
    };
}

/// Compares a number with that of the golden set, which is of double precision as well.
fn close(value: &Value, key: &str, found: f64) -> Result<()> {
    let expected: f64 = get!(value, key)?;
    ensure!((found - expected).abs() <= 1e-12, "{key}: {found}, not {expected}");
    Ok(())
}

/// Whether each number is 1.
fn flags(rows: &[Vec<u8>]) -> Vec<bool> {
    rows.iter().flatten().map(|&flag| flag == 1).collect()
}

#[test]
fn spans_are_those_of_conlleval_and_of_strict_iob2() -> Result<()> {
    let ner = golden("i_metrics", "ner")?;
    let names: Vec<String> = get!(ner, "tags")?;
    let tags = Tags::new(&names)?;
    let number: BTreeMap<&str, usize> = names.iter().map(String::as_str).zip(0..).collect();
    let read = |key: &str| -> Result<Vec<Vec<usize>>> {
        let sentences: Vec<Vec<String>> = get!(ner, key)?;
        Ok(sentences.iter().map(|words| words.iter().map(|tag| number[tag.as_str()]).collect()).collect())
    };
    let (truth, said) = (read("y_true")?, read("y_pred")?);

    let primary = &ner["entity_level_conlleval_or_seqeval_default"];
    let found = tags.evaluate(&truth, &said, Rules::Conlleval)?;
    let micro = found.micro();
    let (hits, invented, missed): (u64, u64, u64) =
        (get!(primary, "tp")?, get!(primary, "fp")?, get!(primary, "fn")?);
    ensure!(micro == Counts { hits, invented, missed }, "{micro:?}");
    close(primary, "precision", micro.precision())?;
    close(primary, "recall", micro.recall())?;
    close(primary, "f1_micro", micro.f1())?;
    close(primary, "f1_macro_over_types", macro_f1(&found.types).context("types")?)?;
    for (kind, counts) in tags.types().iter().zip(&found.types) {
        close(&primary["f1_per_type(sorted)"], kind, counts.f1())?;
    }
    let strict = tags.evaluate(&truth, &said, Rules::StrictIob2)?.micro();
    let expected = &ner["entity_level_seqeval_strict_IOB2"];
    close(expected, "precision", strict.precision())?;
    close(expected, "recall", strict.recall())?;
    close(expected, "f1_micro", strict.f1())?;

    let words = tags.evaluate_words(&truth, &said)?;
    let micro: Counts = words.types.iter().sum();
    close(&ner, "token_accuracy", words.accuracy)?;
    close(&ner, "token_level_type_micro_f1_as_in_multitasking_transformers", micro.f1())?;
    let macro_mean = macro_f1(&words.types).context("types")?;
    close(&ner, "token_level_type_macro_f1_as_in_multitasking_transformers", macro_mean)
}

#[test]
fn correlations_are_those_of_the_golden_set() -> Result<()> {
    let set = golden("i_metrics", "regression")?;
    let (truth, predicted): (Vec<f64>, Vec<f64>) = (get!(set, "y_true")?, get!(set, "y_pred")?);
    close(&set, "pearson", correlation::pearson(&truth, &predicted)?.value)?;
    close(&set, "spearman", correlation::spearman(&truth, &predicted)?.value)?;
    close(&set, "mse", correlation::mean_squared_error(&truth, &predicted)?)
}

#[test]
fn relations_are_counted_with_and_without_false_and_an_absent_class_shifts_nothing_unless_as_released()
-> Result<()> {
    for piece in ["relations", "relations_one_class_absent"] {
        let set = golden("i_metrics", piece)?;
        let (truth, said): (Vec<usize>, Vec<usize>) = (get!(set, "y_true")?, get!(set, "y_pred")?);
        let (classes, nothing): (usize, usize) = (get!(set, "n_classes")?, get!(set, "false_class")?);
        let table = Confusion::new(&truth, &said, classes)?;
        let positive = table.without(nothing);
        let micro: Counts = positive.iter().sum();
        close(&set, "micro_f1_excluding_false", micro.f1())?;
        close(&set, "micro_precision_excluding_false", micro.precision())?;
        close(&set, "micro_recall_excluding_false", micro.recall())?;
        close(&set, "macro_f1_excluding_false", macro_f1(&positive).context("classes")?)?;
        if piece == "relations_one_class_absent" {
            let shifted: Counts = table.shifted(nothing).iter().sum();
            let key = "micro_f1_with_index_shift_bug(for information)";
            match &set[key] {
                Value::String(_) => ensure!(shifted == Counts::default(), "an error is an F1 of 0"),
                _ => close(&set, key, shifted.f1())?,
            }
        }
        let all = table.per_class();
        close(&set, "micro_f1_all", all.iter().sum::<Counts>().f1())?;
        close(&set, "macro_f1_all", macro_f1(&all).context("classes")?)?;
        close(&set, "accuracy", table.accuracy())?;
        close(&set, "mcc", table.matthews().context("two classes")?)?;
    }
    Ok(())
}

#[test]
fn areas_under_the_roc_curve_are_those_of_the_golden_set() -> Result<()> {
    let set = golden("i_metrics", "multilabel_auroc")?;
    let truth: Vec<Vec<u8>> = get!(set, "y_true")?;
    let scores: Vec<Vec<f64>> = get!(set, "y_score")?;
    let classes = truth[0].len();
    let found = auroc::multilabel(&Rows { scores: &scores.concat(), classes }, &flags(&truth))?;
    close(&set, "macro", found.macro_mean)?;
    close(&set, "micro", found.micro)?;
    close(&set, "weighted", found.weighted)?;
    let used: Vec<usize> = get!(set, "columns_used")?;
    for (class, area) in found.labels.iter().enumerate() {
        ensure!(area.is_some() == used.contains(&class), "column {class}: {area:?}");
        if let Some(area) = area {
            close(&set["per_class"], &class.to_string(), *area)?;
        }
    }
    ensure!(found.never + found.always == classes - used.len() && found.never > 0 && found.always > 0);

    let set = golden("i_metrics", "binary_auroc")?;
    let (truth, scores): (Vec<u8>, Vec<f64>) = (get!(set, "y_true")?, get!(set, "y_score")?);
    let positive = flags(&[truth]);
    close(&set, "auroc", auroc::binary(&scores, &positive)?)?;
    close(&set, "average_precision", auroc::average_precision(&scores, &positive)?)?;

    let set = golden("i_metrics", "multiclass_auroc_4")?;
    let (labels, scores): (Vec<usize>, Vec<Vec<f64>>) = (get!(set, "y_true")?, get!(set, "y_prob")?);
    let found = auroc::multiclass(&Rows { scores: &scores.concat(), classes: scores[0].len() }, &labels)?;
    close(&set, "ovo_macro", found.one_vs_one)?;
    close(&set, "ovo_weighted", found.one_vs_one_weighted)?;
    close(&set, "ovr_macro", found.one_vs_rest)
}

#[test]
fn rankings_are_those_of_the_golden_set() -> Result<()> {
    let set = golden("i_metrics", "retrieval")?;
    let queries: Vec<Value> = get!(set, "queries")?;
    let read = |query: &Value| -> Result<(Vec<f64>, Vec<bool>)> {
        let (scores, relevant): (Vec<f64>, Vec<u8>) = (get!(query, "score")?, get!(query, "relevance")?);
        Ok((scores, flags(&[relevant])))
    };
    let queries: Vec<(Vec<f64>, Vec<bool>)> = queries.iter().map(read).collect::<Result<_>>()?;
    let queries: Vec<Query<'_>> =
        queries.iter().map(|(scores, relevant)| Query { scores, relevant }).collect();
    let at: Vec<usize> = set["recall_at"]
        .as_object()
        .context("an object")?
        .keys()
        .map(|k| Ok(k.parse()?))
        .collect::<Result<_>>()?;
    let found = retrieval::evaluate(&queries, &at)?;
    ensure!(found.queries == queries.len() && found.without_relevant == 0 && !at.is_empty());
    for k in at {
        close(&set["recall_at"], &k.to_string(), found.recall_at[&k])?;
        close(&set["hit_rate_at"], &k.to_string(), found.hit_at[&k])?;
    }
    close(&set, "mrr", found.mrr)?;
    close(&set, "map", found.map)
}

#[test]
fn outcomes_follow_the_released_rules() -> Result<()> {
    let stays: Vec<Value> = serde_json::from_value(golden("l_rules", "los_bins")?)?;
    for stay in &stays {
        let seconds: i64 = format!("{:.0}", stay["hours"].as_f64().context("hours")? * 3600.0).parse()?;
        let class: u32 = get!(stay, "class")?;
        ensure!(label::length_of_stay(seconds) == class, "{stay}");
    }
    let codes: Vec<BTreeMap<String, String>> = serde_json::from_value(golden("l_rules", "icd9_short")?)?;
    for code in &codes {
        match code.get("procedure_code_in_csv") {
            Some(procedure) => {
                let released = &code["as_released(csv column parsed as integer)"];
                ensure!(&label::procedure(procedure, Variant::Reference) == released, "{code:?}");
                ensure!(label::procedure(procedure, Variant::Fixed) == code["as_string"], "{code:?}");
            }
            None => {
                let found = label::diagnosis(&code["code"], Variant::Reference);
                ensure!(found == code["dia_short"], "{code:?}: {found}");
            }
        }
    }
    let notes: Vec<Value> = serde_json::from_value(golden("l_rules", "admission_filter")?)?;
    for note in &notes {
        let text: String = get!(note, "text")?;
        let found = section::admission_note(&text, Variant::Reference);
        let (keep, output): (bool, Option<String>) = (get!(note, "keep")?, get!(note, "output")?);
        ensure!(found.is_some() == keep && found == output, "{note}: {found:?}");
    }
    ensure!(!stays.is_empty() && !codes.is_empty() && !notes.is_empty());
    Ok(())
}

#[test]
fn pairs_and_sentences_are_cut_by_the_released_rules() -> Result<()> {
    let pairs: Vec<BTreeMap<String, usize>> = serde_json::from_value(golden("l_rules", "truncate_pair")?)?;
    for pair in &pairs {
        // What is not special is told from what is by its number.
        let special = Special { padding: 0, unknown: 1, cls: 2, sep: 3, blank: 4, family: Family::Bert };
        let most = pair["max_len_without_specials"] + 3;
        let mut framed = Framed::new(Frame { special, most, cut: Cut::Longest })?;
        framed.pair(&vec![5; pair["len_a"]], &vec![6; pair["len_b"]]);
        let kept = |id| framed.rows.ids.iter().filter(|found| **found == id).count();
        ensure!([kept(5), kept(6)] == [pair["kept_a"], pair["kept_b"]], "{pair:?}");
    }
    let sentences: Vec<Value> = serde_json::from_value(golden("l_rules", "ner_split")?)?;
    for sentence in &sentences {
        let (labels, most): (Vec<String>, usize) = (get!(sentence, "labels")?, get!(sentence, "max_words")?);
        let outside: Vec<bool> = labels.iter().map(|label| label == "O").collect();
        let expected: Vec<usize> = get!(sentence, "segment_lengths")?;
        ensure!(behind_outside(&outside, most) == expected, "{sentence}");
    }
    ensure!(!pairs.is_empty() && !sentences.is_empty());
    Ok(())
}
