//! Pairs of medical questions, of which the second may follow from the first (RQE, Ben Abacha and Demner-Fushman 2016), as XML.
//!
//! `<pair pid="3" type="..." value="false"><chq>a consumer's question</chq><faq>a known one</faq></pair>`; texts are published between line
//! ends and blanks, which say nothing.

use std::io::BufRead;
use std::path::Path;

use super::{Item, Label, NO_TEXT, PublishedSet, open, stem, tidied};
use crate::example::Measure;
use crate::funnel::Step;
use tasks::Error;
use text::xml::{Elements, Names, Step as Met};

const NAMES: Names = Names { roots: &["RQE-med-train", "RQE-med-test"], records: &["pair"] };

pub(super) struct Medrqe;

impl PublishedSet for Medrqe {
    fn extensions(&self) -> &'static [&'static str] {
        &[".xml", ".xml.gz"]
    }

    fn measure(&self) -> Measure {
        Measure::Accuracy
    }

    fn read(&self, file: &Path, take: &mut dyn FnMut(Item)) -> Result<Vec<Step>, Error> {
        let mut elements = Elements::new(open(file)?, file, NAMES);
        let (mut step, stem) = (Step::new("pairs"), stem(file));
        let mut pair: Option<Pair> = None;
        loop {
            match elements.step()? {
                Met::End => return Ok(vec![step]),
                Met::Open if elements.depth() == 1 => {}
                Met::Open if elements.depth() == 2 && elements.name() == "pair" => {
                    pair = Some(begin(&elements)?);
                }
                Met::Open => match (&mut pair, elements.name()) {
                    (Some(pair), "chq") => elements.text(&mut pair.chq)?,
                    (Some(pair), "faq") => elements.text(&mut pair.faq)?,
                    _ => elements.skip()?,
                },
                Met::Close => {
                    let Some(Pair { id, entails, chq, faq }) = pair.take() else { continue };
                    let (text, second) = (tidied(&chq), tidied(&faq));
                    if text.is_empty() || second.is_empty() {
                        step.drop(NO_TEXT, 1);
                        continue;
                    }
                    step.keep(1);
                    let id = format!("{stem}/{id}");
                    // A question is asked of several others: they must not part.
                    take(Item {
                        id,
                        group: text.clone(),
                        text,
                        pair: Some(second),
                        label: Label::Class(entails),
                    });
                }
            }
        }
    }
}

struct Pair {
    id: String,
    entails: String,
    chq: String,
    faq: String,
}

fn begin<R: BufRead>(elements: &Elements<'_, R>) -> Result<Pair, Error> {
    let id = elements.attribute("pid")?.ok_or_else(|| elements.missing("the attribute `pid` of <pair>"))?;
    let value = elements.attribute("value")?.unwrap_or_default();
    let entails = match value.as_str() {
        "true" => "entailment",
        "false" => "not_entailment",
        other => {
            let problem = format!("`value` of the pair {id} is {other:?} instead of \"true\" or \"false\"");
            return Err(elements.broken(&problem).into());
        }
    };
    Ok(Pair { id, entails: entails.to_owned(), chq: String::new(), faq: String::new() })
}

#[cfg(test)]
mod tests {
    use super::super::tests::items;
    use super::*;

    const FILE: &str = "<?xml version=\"1.0\"?>\n<RQE-med-train>\n<pair pid=\"1\" type=\"t\" value=\"true\">\n<chq>\n  Is it\n fever?\n</chq>\n\
        <faq>Fever &amp; pain?</faq>\n</pair><pair pid=\"2\" value=\"false\"> <chq>Is it fever?</chq><faq>No?</faq><more>x</more></pair>\
        <pair pid=\"3\" value=\"true\"><chq> </chq><faq>x</faq></pair></RQE-med-train>";

    #[test]
    fn pairs_are_read_and_stay_with_their_question() {
        let (pairs, step) = items(&Medrqe, FILE).unwrap();
        assert_eq!((pairs.len(), step.dropped[NO_TEXT]), (2, 1));
        assert_eq!(
            (pairs[0].text.as_str(), pairs[0].pair.as_deref()),
            ("Is it fever?", Some("Fever & pain?"))
        );
        assert_eq!((pairs[0].id.as_str(), &pairs[0].group), ("some/1", &pairs[1].group));
        assert_eq!(pairs[1].label, Label::Class("not_entailment".to_owned()));
    }

    #[test]
    fn what_is_no_pair_is_refused() {
        let told = |from: &str, to: &str| items(&Medrqe, FILE.replace(from, to)).unwrap_err();
        assert!(told("value=\"false\"", "value=\"no\"").contains("`value` of the pair 2 is \"no\""));
        assert!(told("pid=\"1\"", "").contains("the attribute `pid` of <pair> is missing"));
        assert!(told("RQE-med-train", "other").contains("expected <RQE-med-train> or <RQE-med-test>"));
    }
}
