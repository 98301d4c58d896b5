//! BIOSSES (Sogancioglu et al. 2017): a header with `sentence_1`, `sentence_2` and five judges, between tabs.

use super::fields::{Asked, Fields, Preset};
use super::separated::tabs;
use crate::example::Measure;

pub(super) const SET: Preset = Preset {
    extensions: &[".tsv", ".tsv.gz"],
    measure: Measure::Pearson,
    layout: || {
        Box::new({
            let judges = ["a", "b", "c", "d", "e"].map(|judge| format!("annotator_{judge}"));
            let fields = Fields::new("sentence_1", Some("sentence_2"), Asked::Score(judges.into()));
            tabs(&[], fields.called("sentence_id"))
        })
    },
};

#[cfg(test)]
mod tests {
    use super::super::Label;
    use super::super::tests::items;
    use super::*;

    #[test]
    fn a_score_is_the_mean_of_its_judges() {
        let header = "sentence_id\tsentence_1\tsentence_2\tannotator_a\tannotator_b\tannotator_c\tannotator_d\tannotator_e\n";
        let (rows, _) = items(&SET, format!("{header}9\tA.\tB. \t4\t3\t4\t4\t3\n")).unwrap();
        assert_eq!((rows[0].id.as_str(), rows[0].pair.as_deref()), ("some/9", Some("B.")));
        assert_eq!(rows[0].label, Label::Score(3.6));
        let wrong = items(&SET, format!("{header}9\tA.\tB.\t4\tx\t4\t4\t3\n")).unwrap_err();
        assert!(wrong.contains("line 2: found \"x\" as \"annotator_b\", expected a number"), "{wrong}");
    }
}
