//! Tests of what is known of mentions.

use super::super::approximate::Near;
use super::super::dictionary::Entry;
use super::super::filters::Ambiguous;
use super::*;
use crate::ner::context::{ENGLISH, Modifier};

/// Entities, the first of whose names is preferred, as a source has them.
const ENTITIES: [&[&str]; 12] = [
    &["Pulmonary Disease, Chronic Obstructive", "COLD"],
    &["Common Cold", "cold"],
    &["Hyperthyroidism"],
    &["Acute Disease"],
    &["Cold", "low temperature"],
    &["Asthma"],
    &["Leukemia, Lymphoid", "ALL"],
    &["Atypical Lumbar Lordosis"],
    &["Alzheimer's Illness"],
    &["Heart failure xenon yield"],
    &["Xenon yield"],
    &["Acute severe HF"],
];

fn names(settings: &Settings) -> Names {
    let entries = ENTITIES.iter().zip(0..).flat_map(|(terms, id)| {
        terms.iter().map(move |text| Entry { text, entity: EntityId(id), types: &[] })
    });
    let dictionary = Dictionary::build(entries, &settings.dictionary).unwrap();
    Names::new(dictionary, ENTITIES.iter().map(|terms| terms[0]), settings).unwrap()
}

fn document(text: &str) -> Document {
    Document { text: text.to_owned(), ..Document::default() }
}

/// Of each mention its text, how it is one, and its candidates.
fn found(names: &Names, text: &str) -> Vec<(String, &'static str, Vec<u32>)> {
    let annotations = Annotator::new(names, None).annotate(&document(text));
    assert!(annotations.windows(2).all(|pair| pair[0].bytes.end <= pair[1].bytes.start), "{annotations:?}");
    let of = |one: Annotation| {
        let ids = one.candidates.iter().map(|candidate| candidate.entity.0).collect();
        (text[one.bytes].to_owned(), one.how.name(), ids)
    };
    annotations.into_iter().map(of).collect()
}

fn expected(of: &[(&str, &'static str, &[u32])]) -> Vec<(String, &'static str, Vec<u32>)> {
    of.iter().map(|(text, how, ids)| ((*text).to_owned(), *how, ids.to_vec())).collect()
}

#[test]
fn whose_preferred_name_it_is_comes_first() {
    let names = names(&Settings::default());
    assert_eq!(found(&names, "A cold."), expected(&[("cold", "name", &[4, 1])]));
    assert_eq!(found(&names, "COLD"), expected(&[("COLD", "name", &[0])]));
    let first = Settings { candidates: 1, ..Settings::default() };
    assert_eq!(found(&self::names(&first), "A cold."), expected(&[("cold", "name", &[4])]));
}

#[test]
fn abbreviations_mean_what_the_document_says() {
    let names = names(&Settings::default());
    let text = "COPD? Chronic obstructive pulmonary disease (COPD) and asthma. COPD-like COPDs; COPD\u{301}.";
    let cold = &[0][..];
    assert_eq!(
        found(&names, text),
        expected(&[
            ("COPD", "abbreviation", cold),
            ("Chronic obstructive pulmonary disease", "name", cold),
            ("COPD", "abbreviation", cold),
            ("asthma", "name", &[5]),
            ("COPD", "abbreviation", cold),
        ])
    );
    // What a document says stands above the dictionary, and a definition that names nothing changes nothing.
    let text = "Atypical lumbar lordosis (ALL) is no ALL.";
    assert_eq!(found(&names, text)[2], ("ALL".to_owned(), "abbreviation", vec![7]));
    assert_eq!(found(&names, "A long list (ALL)."), expected(&[("ALL", "name", &[6])]));
    let plain = Settings { abbreviations: Abbreviations::Plain, ..Settings::default() };
    assert_eq!(found(&self::names(&plain), "Chronic obstructive pulmonary disease (COPD)").len(), 1);
}

#[test]
fn a_longer_mention_keeps_its_words_from_abbreviations() {
    let names = names(&Settings::default());
    let text = "Heart failure xenon yield (HF XY), xenon yield (XY). Acute severe HF XY. HF XY";
    let all = found(&names, text);
    let texts: Vec<&str> = all.iter().map(|(text, ..)| text.as_str()).collect();
    let expected =
        ["Heart failure xenon yield", "HF XY", "xenon yield", "XY", "Acute severe HF", "XY", "HF XY"];
    assert_eq!(texts, expected);
}

#[test]
fn near_names_are_found_where_they_explain_more_than_names() {
    let near = Near { threshold: 0.6, ..Near::default() };
    let names = names(&Settings { near: Some(near), ..Settings::default() });
    assert_eq!(found(&names, "Hyperthyroidsm."), expected(&[("Hyperthyroidsm", "near", &[2])]));
    assert_eq!(found(&names, "comon cold"), expected(&[("comon cold", "near", &[1])]));
    assert_eq!(
        found(&names, "hyperthyroidism asthma"),
        expected(&[("hyperthyroidism", "name", &[2]), ("asthma", "name", &[5])])
    );
    assert_eq!(found(&names, "Alzheimr's illness"), expected(&[("Alzheimr's illness", "near", &[8])]));
    // Not over the end of a sentence.
    assert_eq!(found(&names, "It is comon. Cold is rare."), expected(&[("Cold", "name", &[4, 1])]));
    assert!(found(&names, "An acute illness, of the whole.").is_empty());
}

#[test]
fn sentences_say_whether_a_mention_is_there() {
    let (names, context) =
        (names(&Settings::default()), Context::read(ENGLISH, Path::new("english.txt")).unwrap());
    let annotations = Annotator::new(&names, Some(&context))
        .annotate(&document("No asthma\nor cold. Asthma? His mother had asthma."));
    let said: Vec<Vec<_>> = annotations.iter().map(|one| one.modifiers.iter().collect()).collect();
    assert_eq!(said, [vec![Modifier::Negated], vec![Modifier::Negated], vec![], vec![Modifier::Other]]);
    // Notes have lists and short lines without a full stop.
    let annotations = Annotator::new(&names, Some(&context)).annotate(&document("No asthma\nCold\n- asthma"));
    let said: Vec<Vec<_>> = annotations.iter().map(|one| one.modifiers.iter().collect()).collect();
    assert_eq!(said, [vec![Modifier::Negated], vec![], vec![]]);
}

#[test]
fn what_was_annotated_before_changes_nothing() {
    let near = Near { threshold: 0.6, ..Near::default() };
    let names = names(&Settings { near: Some(near), ..Settings::default() });
    let texts = ["Chronic obstructive pulmonary disease (COPD).", "COPD", "", "Hyperthyroidsm", "no cold"];
    let mut annotator = Annotator::new(&names, None);
    for text in texts {
        assert_eq!(
            annotator.annotate(&document(text)),
            Annotator::new(&names, None).annotate(&document(text)),
            "{text}"
        );
    }
}

#[test]
fn settings_are_checked_with_their_places() {
    let text = r#"{"dictionary": {"ambiguous": {"drop": 1}}, "near": {"threshold": 0.9}, "abbreviations": "plain", "candidates": 3}"#;
    let mut settings: Settings = serde_json::from_str(text).unwrap();
    assert_eq!((settings.dictionary.ambiguous, settings.near.unwrap().threshold), (Ambiguous::Drop(1), 0.9));
    assert_eq!(settings.check(), Ok(()));
    settings.candidates = 0;
    assert_eq!(settings.check().unwrap_err().setting, "candidates");
    settings.near = Some(Near { threshold: 2.0, ..Near::default() });
    assert_eq!(settings.check().unwrap_err().setting, "near.threshold");
    settings.dictionary.max_words = 0;
    assert_eq!(settings.check().unwrap_err().setting, "dictionary.max_words");
}
