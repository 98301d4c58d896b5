//! The UMLS Metathesaurus in RRF: names, relations, semantic types, definitions, licence levels, retired concepts.
//!
//! | file | what is taken |
//! |---|---|
//! | MRCONSO, MRREL | names and relations; needed |
//! | MRSAB | licence level (SRL) and language of source vocabularies |
//! | MRRANK | which name of a concept is preferred; without it TS, STT and ISPREF decide |
//! | MRDOC | inverses of relations, and words for them; without it those of REL are built in |
//! | MRCUI | retired concepts that are the same as another |
//! | MRSTY, MRDEF | semantic types, definitions |
//!
//! Direction: the relation in a MRREL row is what CUI2 has to CUI1, so CUI2 is the subject and CUI1 the object. The row
//! `CUI1 = fever, RELA = may_treat, CUI2 = aspirin` states `aspirin, may_treat, fever`. The publisher lists both directions; both are
//! stated here, and [`crate::canon`] folds them into one.

mod asked;
mod codes;
mod conso;
mod count;
mod cui;
mod def;
mod doc;
mod drafts;
mod file;
mod label;
mod lacking;
mod name;
mod options;
mod rank;
mod rel;
mod retired;
mod sieve;
mod spoken;
mod sty;
mod term;
mod vocabulary;

#[cfg(test)]
mod testing;

use std::collections::BTreeSet;

use base::read::ReadError;
use base::setting::InvalidSetting;

use self::asked::Known;
use self::conso::Choice;
use self::doc::Documentation;
use self::drafts::Drafts;
pub use self::file::{File, SOURCE};
use self::label::Labels;
pub use self::options::{Keep, Options, Suppressed, Unlabelled, Vocabularies};
use self::rank::Ranks;
use self::sieve::Sieve;
use self::vocabulary::Vocabularies as Listed;
use super::files::{self, Form, Member, Slot};
use super::funnel::Funnel;
use super::{Source, SourceReport, check_level};
use crate::table::Builder;

/// The files to read. MRCONSO and MRREL are needed; without another one what it tells is not known.
#[derive(Debug)]
pub struct Files<'f> {
    /// MRCONSO.RRF: names. It is read twice if terms are kept.
    pub conso: File<'f>,
    /// MRREL.RRF: relations.
    pub rel: File<'f>,
    /// MRSTY.RRF: semantic types.
    pub sty: Option<File<'f>>,
    /// MRDEF.RRF: definitions.
    pub def: Option<File<'f>>,
    /// MRSAB.RRF: source vocabularies with their licence levels.
    pub sab: Option<File<'f>>,
    /// MRRANK.RRF: which name is preferred.
    pub rank: Option<File<'f>>,
    /// MRDOC.RRF: inverses and words of relations.
    pub doc: Option<File<'f>>,
    /// MRCUI.RRF: retired concepts.
    pub cui: Option<File<'f>>,
}

/// The files of a folder.
const MEMBERS: [Member; 8] = [
    needed("MRCONSO.RRF"),
    optional("MRCUI.RRF"),
    optional("MRDEF.RRF"),
    optional("MRDOC.RRF"),
    optional("MRRANK.RRF"),
    needed("MRREL.RRF"),
    optional("MRSAB.RRF"),
    optional("MRSTY.RRF"),
];

const fn needed(name: &'static str) -> Member {
    Member::needed(name, Form::Release)
}

const fn optional(name: &'static str) -> Member {
    Member::optional(name, Form::Release)
}

impl Source for Options {
    fn check(&self, _: &str) -> Result<(), InvalidSetting> {
        let none = |names: &Option<BTreeSet<String>>| names.as_ref().is_some_and(BTreeSet::is_empty);
        let lists = [
            ("languages", self.languages.is_empty()),
            ("semantic_types", none(&self.semantic_types)),
            ("rels", none(&self.rels)),
            ("relations", none(&self.relations)),
        ];
        if let Some((key, _)) = lists.into_iter().find(|(_, empty)| *empty) {
            return Err(InvalidSetting::new(key, "[], which keeps nothing", "one name at least"));
        }
        if let Some(Vocabularies { allow: Some(allow), deny }) = &self.vocabularies
            && allow.is_subset(deny)
        {
            let found = match allow.is_empty() {
                true => "[], which keeps nothing",
                false => "vocabularies that `deny` leaves out, all of them, which keeps nothing",
            };
            return Err(InvalidSetting::new(
                "vocabularies.allow",
                found,
                "one at least that `deny` does not name",
            ));
        }
        check_level("max_srl", self.max_srl)
    }

    fn slots(&self) -> Vec<Slot<'_>> {
        vec![Slot { key: "path".to_owned(), location: &self.path, members: &MEMBERS }]
    }

    fn read(
        &self,
        _: &str,
        files: &files::Files<'_>,
        builder: &mut Builder,
    ) -> Result<SourceReport, ReadError> {
        let file = |name: &str| files.release(&format!("path/{name}"));
        let needed = |name: &str| files.given(&format!("path/{name}"));
        let files = Files {
            conso: needed("MRCONSO.RRF")?,
            rel: needed("MRREL.RRF")?,
            sty: file("MRSTY.RRF"),
            def: file("MRDEF.RRF"),
            sab: file("MRSAB.RRF"),
            rank: file("MRRANK.RRF"),
            doc: file("MRDOC.RRF"),
            cui: file("MRCUI.RRF"),
        };
        let mut report = SourceReport::new(read(&files, self, builder)?);
        report.warnings = lacking::told(&files, &report.funnel, builder);
        Ok(report)
    }
}

/// Reads the files into `builder`: names first, then the relations between named concepts, then what else is known of the concepts
/// in a triple.
///
/// MRREL may have a hundred million rows: several threads parse it, no row allocates, and nothing grows with it here. What
/// grows with the other files is a name for each concept, eight bytes for each row of MRSTY, and a code for each concept of those vocabularies that other sources
/// speak of.
///
/// # Errors
/// When a file is damaged or of another kind, or the options ask for what is not there; `builder` then holds a part of it.
pub fn read(files: &Files<'_>, options: &Options, builder: &mut Builder) -> Result<Funnel, ReadError> {
    check(files, options)?;
    let mut supporting = Vec::new();
    let vocabularies = match &files.sab {
        None => Listed::unlisted(options),
        Some(file) => Listed::read(file, options, &mut supporting)?,
    };
    let ranks = match &files.rank {
        None => Ranks::none(),
        Some(file) => Ranks::read(file, &mut supporting)?,
    };
    let doc = match &files.doc {
        None => Documentation::built_in(),
        Some(file) => Documentation::read(file, &mut supporting)?,
    };
    declare(&doc, options, builder);
    let mut met = Labels::new();
    let choice = Choice { options, vocabularies: &vocabularies, ranks: &ranks };
    let conso::Read { mut names, spoken, tallies } = conso::read(&files.conso, choice, &mut met, builder)?;
    supporting.extend(tallies);
    if let Some(file) = &files.cui {
        supporting.push(retired::read(file, &mut names)?);
    }
    let types = files.sty.as_ref().map(|file| Ok::<_, ReadError>((sty::read(file)?, file))).transpose()?;
    let mut sieve = Sieve::new(options, &vocabularies, &doc, &names);
    if let (Some((types, _)), Some(wanted)) = (&types, &options.semantic_types) {
        sieve.typed = Some(types.having(wanted, &names)?);
    }
    let mut relations = rel::read(&files.rel, &sieve, &doc, &mut met, builder)?;
    spoken::draft(&spoken, &names, &mut relations.used, builder);
    spoken::retire(&names, &relations.used, builder);
    let known = Known { names: met.iter().map(|(name, ())| name).collect(), place: "MRCONSO and MRREL" };
    for (option, name) in vocabularies.named() {
        asked::check(option, [name].into_iter(), &known)?;
    }
    let drafts = Drafts { names: &names, used: &relations.used };
    if let Some((types, file)) = &types {
        supporting.push(types.give(&file.label, drafts, builder));
    }
    if let (Keep::Keep, Some(file)) = (options.definitions, &files.def) {
        supporting.push(def::read(file, &vocabularies, drafts, builder)?);
    }
    if options.terms == Keep::Keep {
        term::read(&files.conso, choice, drafts, builder)?;
    }
    Ok(Funnel {
        source: SOURCE.to_owned(),
        triples: relations.tally,
        supporting,
        subjects: sieve.subjects.count(),
        objects: sieve.objects.count(),
        relations: relations.kept,
    })
}

/// Fails on options that cannot be followed.
fn check(files: &Files<'_>, options: &Options) -> Result<(), ReadError> {
    if options.languages.is_empty() {
        let expected = "at least one, as column LAT of MRCONSO.RRF has it: [\"ENG\"]";
        return Err(ReadError::new("sources.umls.languages", "no language is asked for", expected, ""));
    }
    let left_out = "leave the option out";
    let (levels, types) = ("max_srl is set", "semantic_types is set");
    let definitions = "definitions are kept, as they are by default";
    let needs = [
        (options.max_srl.is_some(), &files.sab, levels, "MRSAB.RRF", left_out),
        (options.semantic_types.is_some(), &files.sty, types, "MRSTY.RRF", left_out),
        (
            options.definitions == Keep::Keep,
            &files.def,
            definitions,
            "MRDEF.RRF",
            "say definitions = \"drop\"",
        ),
    ];
    match needs.into_iter().find(|(is_asked, given, ..)| *is_asked && given.is_none()) {
        Some((_, _, why, file, instead)) => {
            let found = format!("{why}, which needs {file}, and that is not there");
            Err(ReadError::new("sources.umls", found, "", format!("bring the file, or {instead}")))
        }
        None => Ok(()),
    }
}

/// Tells `builder` of inverses, of relations that were named and of the least number of triples.
fn declare(doc: &Documentation, options: &Options, builder: &mut Builder) {
    doc.declare(builder);
    if let Some(triples) = options.min_relation_count {
        builder.min_relation_count(SOURCE, triples);
    }
    let none = BTreeSet::new();
    let relations = options.relations.as_ref().unwrap_or(&none);
    let rels = options.rels.as_ref().unwrap_or(&none);
    for (asked, key) in relations.iter().map(|key| (relations, key)).chain(rels.iter().map(|key| (rels, key)))
    {
        let inverse = doc.inverse_rela(key).or_else(|| doc.inverse_rel(key));
        // Of two inverses that are both named, neither is preferred.
        if inverse.is_some_and(|inverse| !asked.contains(inverse)) {
            builder.prefer_relation(key);
        }
    }
}

#[cfg(test)]
mod tests;
