//! Answers as texts: exact match and F1 of words, by the rules of SQuAD's `evaluate-v2.0.py` (Rajpurkar et al. 2016, section 6.1; 2018).

use std::collections::HashMap;

use super::{Error, at_least, same_length};

/// How good answers are, as means over questions.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Report {
    /// Share of questions whose answer is an accepted one, 0 to 1.
    pub exact: f64,
    /// Mean F1 of an answer's words against the accepted answer nearest to it, 0 to 1.
    pub f1: f64,
    /// The same, of questions that have an answer; none where no question has one.
    pub f1_of_answerable: Option<f64>,
    /// Share of questions without an answer that none was given to; none where every question has one.
    pub unanswered: Option<f64>,
}

/// The score of `said`, an answer for each question and empty where none was given, against the answers that are accepted of it, none where there is none.
///
/// # Errors
/// When there is no question, or not an answer for each.
pub fn evaluate(said: &[&str], accepted: &[&[String]]) -> Result<Report, Error> {
    at_least("questions", accepted.len(), 1)?;
    same_length("questions", accepted, "answers", said)?;
    let each: Vec<(f64, f64)> =
        said.iter().zip(accepted).map(|(said, accepted)| one(said, accepted)).collect();
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64, which: &dyn Fn(&[String]) -> bool| {
        let some: Vec<f64> = each
            .iter()
            .zip(accepted)
            .filter(|(_, accepted)| which(accepted))
            .map(|(one, _)| of(one))
            .collect();
        (!some.is_empty()).then(|| some.iter().sum::<f64>() / some.len() as f64)
    };
    Ok(Report {
        exact: mean(&|one| one.0, &|_| true).unwrap_or_default(),
        f1: mean(&|one| one.1, &|_| true).unwrap_or_default(),
        f1_of_answerable: mean(&|one| one.1, &|accepted| !accepted.is_empty()),
        unanswered: mean(&|one| one.0, &<[String]>::is_empty),
    })
}

/// Exact match and F1 of one answer.
fn one(said: &str, accepted: &[String]) -> (f64, f64) {
    let said = words(said);
    // Of an answer without a word of its own, as "the", nothing is left to compare.
    let gold: Vec<Vec<String>> =
        accepted.iter().map(|answer| words(answer)).filter(|of| !of.is_empty()).collect();
    if gold.is_empty() {
        let right = f64::from(u8::from(said.is_empty()));
        return (right, right);
    }
    let exact = gold.contains(&said);
    (f64::from(u8::from(exact)), gold.iter().map(|gold| f1(&said, gold)).fold(0.0, f64::max))
}

fn f1(said: &[String], gold: &[String]) -> f64 {
    let mut left = HashMap::<&str, usize>::new();
    gold.iter().for_each(|word| *left.entry(word).or_default() += 1);
    let mut shared = 0;
    for word in said {
        if let Some(count) = left.get_mut(word.as_str()).filter(|count| **count > 0) {
            *count -= 1;
            shared += 1;
        }
    }
    // 0 where nothing is said, as the script has it.
    2.0 * f64::from(shared) / (said.len() + gold.len()) as f64
}

/// The words of an answer without case, punctuation and articles.
fn words(answer: &str) -> Vec<String> {
    let lower = answer.to_lowercase();
    let plain: String = lower.chars().filter(|c| !c.is_ascii_punctuation()).collect();
    let (mut without, mut word) = (String::with_capacity(plain.len()), String::new());
    for c in plain.chars().chain([' ']) {
        if c.is_alphanumeric() {
            word.push(c);
            continue;
        }
        // An article ends wherever letters do, as at a dash that is no ASCII.
        without.push_str(if matches!(word.as_str(), "a" | "an" | "the") { " " } else { &word });
        word.clear();
        without.push(c);
    }
    without.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(said: &str, accepted: &[&str]) -> (f64, f64) {
        let accepted: Vec<String> = accepted.iter().map(|&answer| answer.to_owned()).collect();
        one(said, &accepted)
    }

    /// Numbers of SQuAD's `evaluate-v2.0.py` (`compute_exact`, `compute_f1`), the best over accepted answers.
    #[test]
    fn answers_are_compared_as_by_the_script_of_squad() {
        for (said, accepted, exact, f1) in [
            ("The Ghent.", &["ghent"][..], 1.0, 1.0),
            ("in Ghent", &["Ghent", "Ghent in 1900"], 0.0, 0.8),
            ("U.S.A", &["usa"], 1.0, 1.0),
            ("well-known man", &["wellknown"], 0.0, 2.0 / 3.0),
            ("a\u{2013}the b", &["\u{2013} b"], 1.0, 1.0),
            ("anthem", &["them"], 0.0, 0.0),
            ("b b c", &["b c c"], 0.0, 2.0 / 3.0),
            ("", &["x"], 0.0, 0.0),
            ("the", &["a"], 1.0, 1.0),
            ("", &[], 1.0, 1.0),
            ("x", &[], 0.0, 0.0),
        ] {
            let found = of(said, accepted);
            assert!((found.0 - exact).abs() < 1e-12 && (found.1 - f1).abs() < 1e-12, "{said:?}: {found:?}");
        }
    }

    #[test]
    fn questions_without_an_answer_have_a_share_of_their_own() {
        let accepted = [vec!["x y".to_owned()], vec![], vec![]];
        let accepted: Vec<&[String]> = accepted.iter().map(Vec::as_slice).collect();
        let report = evaluate(&["x", "", "z"], &accepted).unwrap();
        assert!(
            (report.exact - 1.0 / 3.0).abs() < 1e-12 && (report.f1 - (2.0 / 3.0 + 1.0) / 3.0).abs() < 1e-12
        );
        assert!((report.f1_of_answerable.unwrap() - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(report.unanswered, Some(0.5));
        assert_eq!(evaluate(&["x"], &accepted[..1]).unwrap().unanswered, None);
        assert!(evaluate(&[], &[]).is_err() && evaluate(&["x"], &accepted).is_err());
    }
}
