//! What the tests of UMLS share.

use std::path::PathBuf;

use super::conso::{self, Choice};
use super::cui::Cui;
use super::label::Labels;
use super::name::Names;
use super::options::{Keep, Options, Suppressed, Unlabelled};
use super::rank::Ranks;
use super::vocabulary::Vocabularies as Listed;
use super::{File, Files};
use crate::source::files::Location;
use crate::table::Builder;

/// A file in memory.
pub(super) fn source<'f>(name: &str, text: &'f str) -> File<'f> {
    File {
        label: PathBuf::from(format!("META/{name}")),
        open: Box::new(move || Ok(Box::new(text.as_bytes()))),
    }
}

/// Names and relations, and no other file.
pub(super) fn files<'f>(conso: &'f str, rel: &'f str) -> Files<'f> {
    Files {
        conso: source("MRCONSO.RRF", conso),
        rel: source("MRREL.RRF", rel),
        sty: None,
        def: None,
        sab: None,
        rank: None,
        doc: None,
        cui: None,
    }
}

/// English names, everything that is labelled and not suppressed.
pub(super) fn options() -> Options {
    Options {
        path: Location::default(),
        languages: vec!["ENG".to_owned()],
        suppressed: Suppressed::Drop,
        vocabularies: None,
        max_srl: None,
        semantic_types: None,
        rels: None,
        relations: None,
        min_relation_count: None,
        unlabelled: Unlabelled::Drop,
        terms: Keep::Drop,
        definitions: Keep::Drop,
    }
}

/// The concept with a number.
pub(super) fn cui(number: u32) -> Cui {
    let text = format!("C{number:07}|\n");
    let mut rows = crate::source::rrf::Rows::<1>::new(text.as_bytes(), "x".as_ref());
    let row = rows.next_record().unwrap().unwrap();
    Cui::parse(&row, 0, "CUI").unwrap()
}

/// Names of concepts, given as `CUI|name`.
pub(super) fn conso(named: &[&str]) -> Names {
    let line = |one: &&str| {
        let (cui, name) = one.split_once('|').unwrap();
        format!("{cui}|ENG|P|L1|PF|S1|Y|A1||||MSH|PT|1|{name}|0|N||\n")
    };
    let text: String = named.iter().map(line).collect();
    let options = options();
    let (vocabularies, ranks) = (Listed::unlisted(&options), Ranks::none());
    let choice = Choice { options: &options, vocabularies: &vocabularies, ranks: &ranks };
    conso::read(&source("MRCONSO.RRF", &text), choice, &mut Labels::new(), &mut Builder::new()).unwrap().names
}
