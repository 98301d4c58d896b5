//! Interactions of drugs (DDI corpus, Herrero-Zazo et al. 2013), as XML: a sentence for each two drugs in it.
//!
//! `<sentence id text><entity id charOffset="30-38" type="drug" text/>...<pair id e1 e2 ddi="true" type="mechanism"/>`; the end of an offset is
//! the last character, not the one behind it, and `;` stands between the pieces of a discontinuous drug, which stands for all from its
//! first character to its last.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tasks::Error;

use super::pair::{Argument, Arguments, NEGATIVE, shown};
use super::{Item, Label, PublishedSet, open};
use crate::example::Measure;
use crate::funnel::Step;
use text::characters::Characters;
use text::xml::{Elements, Names, Step as Met};

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How the text shows which two drugs the example is about.
    pub arguments: Arguments,
}

/// The classes of drugs that interact.
const KINDS: [&str; 4] = ["advise", "effect", "int", "mechanism"];
const NO_KIND: &str = "an interaction without its kind";
const OVERLAP: &str = "two drugs that overlap";

const NAMES: Names = Names { roots: &["document"], records: &["sentence"] };

#[derive(Default)]
struct Sentence {
    text: String,
    drugs: BTreeMap<String, Argument>,
}

impl PublishedSet for Config {
    fn extensions(&self) -> &'static [&'static str] {
        &[".xml", ".xml.gz"]
    }

    // BLUE's since 2019-08-13.
    fn measure(&self) -> Measure {
        Measure::MacroF1
    }

    fn negative_class(&self) -> Option<&'static str> {
        Some(NEGATIVE)
    }

    fn read(&self, file: &Path, take: &mut dyn FnMut(Item)) -> Result<Vec<Step>, Error> {
        let mut elements = Elements::new(open(file)?, file, NAMES);
        let (mut step, mut document, mut sentence) = (Step::new("pairs"), String::new(), Sentence::default());
        loop {
            match elements.step()? {
                Met::End => return Ok(vec![step]),
                Met::Close => {}
                Met::Open => match (elements.depth(), elements.name()) {
                    (1, _) => document = required(&elements, "id", "the attribute `id` of <document>")?,
                    (2, "sentence") => {
                        let text = elements.attribute("text")?.unwrap_or_default();
                        sentence = Sentence { text, drugs: BTreeMap::new() };
                    }
                    (3, "entity") => {
                        let (id, drug) = drug(&elements, &sentence.text)?;
                        sentence.drugs.insert(id, drug);
                    }
                    (3, "pair") => match pair(&elements, &sentence, self.arguments)? {
                        Ok((id, text, class)) => {
                            step.keep(1);
                            let (group, label) = (document.clone(), Label::Class(class));
                            take(Item { id, group, text, pair: None, label });
                        }
                        Err(reason) => step.drop(reason, 1),
                    },
                    _ => elements.skip()?,
                },
            }
        }
    }
}

fn required<R: BufRead>(elements: &Elements<'_, R>, name: &str, what: &'static str) -> Result<String, Error> {
    Ok(elements.attribute(name)?.ok_or_else(|| elements.missing(what))?)
}

/// The drug that the element is, and its id.
fn drug<R: BufRead>(elements: &Elements<'_, R>, text: &str) -> Result<(String, Argument), Error> {
    let id = required(elements, "id", "the attribute `id` of <entity>")?;
    let offset = required(elements, "charOffset", "the attribute `charOffset` of <entity>")?;
    let kind = required(elements, "type", "the attribute `type` of <entity>")?;
    let ends: Option<Vec<(usize, usize)>> = offset
        .split(';')
        .map(|piece| {
            let (start, last) = piece.split_once('-')?;
            Some((start.trim().parse().ok()?, last.trim().parse().ok()?))
        })
        .collect();
    let hull = ends.and_then(|ends| {
        let (start, last) = (ends.iter().map(|end| end.0).min()?, ends.iter().map(|end| end.1).max()?);
        let characters = Characters::new(text);
        Some(characters.byte(start)?..characters.byte(last.checked_add(1)?)?)
    });
    match hull.filter(|hull| !hull.is_empty()) {
        Some(hull) => Ok((id, (hull, kind.to_uppercase()))),
        None => {
            let problem = format!("`charOffset` of {id} is {offset:?}, no piece of the sentence's text");
            Err(elements.broken(&problem).into())
        }
    }
}

/// The sentence as it is shown for a pair, the pair's id and its class; or why it is left out.
fn pair<R: BufRead>(
    elements: &Elements<'_, R>,
    sentence: &Sentence,
    arguments: Arguments,
) -> Result<Result<(String, String, String), &'static str>, Error> {
    let id = required(elements, "id", "the attribute `id` of <pair>")?;
    let find = |name: &'static str, what| {
        let id = required(elements, name, what)?;
        let unknown = || elements.broken(&format_args!("there is no entity {id} in front of this pair"));
        Ok::<_, Error>(sentence.drugs.get(&id).ok_or_else(unknown)?)
    };
    let (one, other) =
        (find("e1", "the attribute `e1` of <pair>")?, find("e2", "the attribute `e2` of <pair>")?);
    let (holds, kind) = (elements.attribute("ddi")?.unwrap_or_default(), elements.attribute("type")?);
    let class = match (holds.as_str(), kind) {
        ("false", _) => NEGATIVE.to_owned(),
        ("true", Some(kind)) if KINDS.contains(&kind.as_str()) => kind,
        ("true", None) => return Ok(Err(NO_KIND)),
        (holds, kind) => {
            let problem = format!(
                "the pair {id} has ddi {holds:?} and type {kind:?} instead of false, or true and one of {}",
                KINDS.join(", ")
            );
            return Err(elements.broken(&problem).into());
        }
    };
    let shown = shown(&sentence.text, [one, other], arguments);
    Ok(shown.map(|text| (id, text, class)).ok_or(OVERLAP))
}

#[cfg(test)]
mod tests {
    use super::super::tests::items;
    use super::*;

    const FILE: &str = "<?xml version=\"1.0\"?><document id=\"d1\">\
        <sentence id=\"s0\" text=\"β: Aspirin and warfarin interact.\">\
        <entity id=\"e0\" charOffset=\"3-9\" type=\"brand\" text=\"Aspirin\"/>\
        <entity id=\"e1\" charOffset=\"15-22\" type=\"drug\" text=\"warfarin\"/>\
        <entity id=\"e2\" charOffset=\"3-5;15-16\" type=\"drug_n\" text=\"Asp wa\"/>\
        <pair id=\"p0\" e1=\"e1\" e2=\"e0\" ddi=\"true\" type=\"mechanism\"/>\
        <pair id=\"p1\" e1=\"e0\" e2=\"e2\" ddi=\"false\"/>\
        <pair id=\"p2\" e1=\"e0\" e2=\"e1\" ddi=\"true\"/></sentence><sentence id=\"s1\" text=\"\"/></document>";

    fn of(arguments: Arguments, file: &str) -> Result<(Vec<Item>, Step), String> {
        items(&Config { arguments }, file)
    }

    #[test]
    fn the_two_drugs_are_replaced_or_marked() {
        let (pairs, step) = of(Arguments::Replaced, FILE).unwrap();
        assert_eq!((pairs.len(), step.dropped[NO_KIND]), (2, 1));
        assert_eq!((pairs[0].id.as_str(), pairs[0].text.as_str()), ("p0", "β: @BRAND$ and @DRUG$ interact."));
        assert_eq!(pairs[0].label, Label::Class("mechanism".to_owned()));
        assert_eq!(
            (pairs[1].text.as_str(), pairs[1].group.as_str()),
            ("β: @BRAND-DRUG_N$rfarin interact.", "d1")
        );
        assert_eq!(pairs[1].label, Label::Class("false".to_owned()));
        let (pairs, step) = of(Arguments::Marked, FILE).unwrap();
        assert_eq!(pairs[0].text, "β: << Aspirin >> and [[ warfarin ]] interact.");
        assert_eq!((pairs.len(), step.dropped[OVERLAP]), (1, 1));
    }

    #[test]
    fn what_is_no_pair_of_drugs_is_refused() {
        let told = |from: &str, to: &str| of(Arguments::Replaced, &FILE.replace(from, to)).unwrap_err();
        assert!(
            told("15-22", "15-90")
                .contains("`charOffset` of e1 is \"15-90\", no piece of the sentence's text")
        );
        assert!(told("15-22", "22-15").contains("no piece of"));
        assert!(told("15-22", "15-18446744073709551615").contains("no piece of"));
        assert!(told("e2=\"e2\"", "e2=\"e9\"").contains("there is no entity e9 in front of this pair"));
        assert!(told("\"mechanism\"", "\"eats\"").contains("type Some(\"eats\") instead of false"));
    }
}
