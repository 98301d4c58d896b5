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
mod conso;
mod count;
mod cui;
mod def;
mod doc;
pub mod files;
mod label;
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
use std::io;
use std::path::PathBuf;

use base::funnel::Tally;

use self::asked::Known;
use self::conso::Choice;
use self::doc::Documentation;
pub use self::files::{Files, Source};
use self::label::Labels;
pub use self::options::{Keep, Options, Suppressed, Unlabelled, Vocabularies};
use self::rank::Ranks;
use self::sieve::Sieve;
use self::vocabulary::Vocabularies as Listed;
use super::funnel::Funnel;
use super::rrf;
use crate::table::Builder;

/// Name of the source in the table's origins.
pub const SOURCE: &str = "umls";

/// Why UMLS cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A line or a field is not as published.
    #[error(transparent)]
    Record(#[from] rrf::Error),
    /// A file or the folder cannot be opened.
    #[error("{}: cannot open it: {source}; name the folder with the RRF files and see that it can be read", file.display())]
    Open {
        /// The file or folder.
        file: PathBuf,
        /// The operating system's word.
        source: io::Error,
    },
    /// Something else has the name of a file.
    #[error("{}: found no file but a folder or a device, expected an RRF file: move it away", path.display())]
    NoFile {
        /// What has the name.
        path: PathBuf,
    },
    /// A file in parts is not whole.
    #[error("{}: this part is missing, later ones are there; expected all from .aa.gz on: fetch it", path.display())]
    MissingPart {
        /// The part.
        path: PathBuf,
    },
    /// A needed file has no row.
    #[error("{}: found no row, expected at least one: fetch the file again", file.display())]
    Empty {
        /// The file.
        file: PathBuf,
    },
    /// No name can be chosen.
    #[error(
        "no language is asked for; expected at least one, as column LAT of MRCONSO.RRF has it: [\"ENG\"]"
    )]
    NoLanguage,
    /// An option cannot be followed without a file.
    #[error(
        "{option} is set, which needs {file}, and that is not there: bring the file or leave the option out"
    )]
    Missing {
        /// The option.
        option: &'static str,
        /// The file.
        file: &'static str,
    },
    /// An option names something that there is not.
    #[error(
        "{option} names {name:?}, which never occurs; {place} has {nearest}: mend the name or leave it out"
    )]
    NeverOccurs {
        /// The option.
        option: &'static str,
        /// What it names.
        name: String,
        /// The file that should have it.
        place: &'static str,
        /// What is there, the nearest first.
        nearest: String,
    },
    /// The triples cannot be held.
    #[error("cannot put triples into temporary files: {source}; make room there or name another folder")]
    Hold {
        /// The operating system's word.
        source: io::Error,
    },
}

/// Reads the files into `builder`: names first, then the relations between named concepts, then what else is known of the concepts
/// in a triple.
///
/// MRREL may have a hundred million rows: several threads parse it, no row allocates, and nothing grows with it here. What
/// grows with the other files is a name for each concept and eight bytes for each row of MRSTY.
///
/// # Errors
/// When a file is damaged or of another kind, or the options ask for what is not there; `builder` then holds a part of it.
pub fn read(files: &Files<'_>, options: &Options, builder: &mut Builder) -> Result<Funnel, Error> {
    check(files, options)?;
    let mut supporting = Vec::new();
    let mut tallied = |tally: Tally| supporting.push(tally);
    let vocabularies = match &files.sab {
        None => Listed::unlisted(options),
        Some(file) => with_tally(Listed::read(file, options)?, &mut tallied),
    };
    let ranks = match &files.rank {
        None => Ranks::none(),
        Some(file) => with_tally(Ranks::read(file)?, &mut tallied),
    };
    let doc = match &files.doc {
        None => Documentation::built_in(),
        Some(file) => with_tally(Documentation::read(file)?, &mut tallied),
    };
    declare(&doc, options, builder);
    let mut met = Labels::new();
    let choice = Choice { options, vocabularies: &vocabularies, ranks: &ranks };
    let (mut names, spoken) = with_tally(conso::read(&files.conso, choice, &mut met, builder)?, &mut tallied);
    if let Some(file) = &files.cui {
        tallied(retired::read(file, &mut names)?);
    }
    let types = files.sty.as_ref().map(|file| Ok::<_, Error>((sty::read(file)?, file))).transpose()?;
    let mut sieve = Sieve::new(options, &vocabularies, &doc, &names);
    if let (Some((types, _)), Some(wanted)) = (&types, &options.semantic_types) {
        sieve.typed = Some(types.having(wanted, &names)?);
    }
    let mut relations = rel::read(&files.rel, &sieve, &doc, &mut met, builder)?;
    spoken::draft(&spoken, &names, &mut relations.used, builder);
    let known = Known { names: met.iter().map(|(name, ())| name).collect(), place: "MRCONSO and MRREL" };
    for (option, name) in vocabularies.named() {
        asked::check(option, [name].into_iter(), &known)?;
    }
    if let Some((types, file)) = &types {
        tallied(types.give(&file.label, &names, &relations.used, builder));
    }
    if let (Keep::Keep, Some(file)) = (options.definitions, &files.def) {
        tallied(def::read(file, &vocabularies, (&names, &relations.used), builder)?);
    }
    if options.terms == Keep::Keep {
        term::read(&files.conso, choice, (&names, &relations.used), builder)?;
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

fn with_tally<T>((thing, tally): (T, Tally), tallied: &mut impl FnMut(Tally)) -> T {
    tallied(tally);
    thing
}

/// Fails on options that cannot be followed.
fn check(files: &Files<'_>, options: &Options) -> Result<(), Error> {
    if options.languages.is_empty() {
        return Err(Error::NoLanguage);
    }
    let needs = [
        (options.max_srl.is_some(), files.sab.is_some(), "max_srl", "MRSAB.RRF"),
        (options.semantic_types.is_some(), files.sty.is_some(), "semantic_types", "MRSTY.RRF"),
        (options.definitions == Keep::Keep, files.def.is_some(), "definitions = \"keep\"", "MRDEF.RRF"),
    ];
    match needs.into_iter().find(|(is_asked, is_there, _, _)| *is_asked && !is_there) {
        Some((_, _, option, file)) => Err(Error::Missing { option, file }),
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
