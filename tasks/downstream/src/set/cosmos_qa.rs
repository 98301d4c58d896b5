//! CosmosQA (Huang et al. 2019), CSV as published: a context, a question and four answers, of which one follows from what is said. As in KAM-BERT's second
//! table, the context is the first text and question and answer are the second.

use super::fields::{Asked, Choice, Fields, Preset, Right};
use super::separated::between_commas;
use crate::example::Measure;

pub(super) const SET: Preset = Preset {
    extensions: &[".csv", ".csv.gz"],
    measure: Measure::Accuracy,
    layout: || {
        let of = ["answer0", "answer1", "answer2", "answer3"].map(str::to_owned).into();
        let right = Right::NumberFrom0("label".to_owned());
        let choice = Choice { of, question: Some("question".to_owned()), right };
        Box::new(between_commas(Fields::new("context", None, Asked::Choice(choice)).called("id")))
    },
};

#[cfg(test)]
mod tests {
    use super::super::Label;
    use super::super::tests::items;
    use super::*;

    const HEADER: &str = "id,context,question,answer0,answer1,answer2,answer3,label\n";

    #[test]
    fn question_and_answer_are_the_second_text_and_contexts_stay_together() {
        let rows = "a,\"It rained, so\nI stayed.\",Why ?,Sun .,Rain .,None of the above choices .,Snow .,1\nb,\"It rained, so\nI stayed.\",Who ?,I .,You .,He .,She .,0\n";
        let (found, _) = items(&SET, format!("{HEADER}{rows}")).unwrap();
        assert_eq!(found[0].text, "It rained, so\nI stayed.");
        assert_eq!((found[0].group == found[1].group, found[0].id.ends_with("/a")), (true, true));
        let Label::Choice(of) = &found[0].label else { panic!("{:?}", found[0]) };
        assert_eq!((of.choices[1].as_str(), of.choices.len(), of.right), ("Why ? Rain .", 4, 1));
        for (label, said) in [("4", "4"), ("-1", "-1"), ("x", "x"), ("", "")] {
            let error = items(&SET, format!("{HEADER}a,c,q,1,2,3,4,{label}\n")).unwrap_err().to_string();
            let expected = format!("{said:?} as \"label\", expected a whole number from 0 to 3");
            assert!(error.contains(&expected), "{error}");
        }
        let error = items(&SET, format!("{HEADER}a,c,q,1,,3,4,0\n")).unwrap_err().to_string();
        assert!(error.contains("nothing as \"answer1\""), "{error}");
    }
}
