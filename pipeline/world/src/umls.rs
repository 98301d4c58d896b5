//! The UMLS Metathesaurus files of the world (RRF: pipes, one more at the end of each line).

use super::entity::{World, cui};
use super::fact::STATEMENTS;
use super::file::{Frame, Sink, put};
use super::{Error, umls::conso::atoms};
use rayon::prelude::*;
use std::collections::BTreeMap;

mod conso;
mod rel;
mod retired;

/// A source vocabulary: abbreviation, language, licence level (SRL), and what it stands in for.
struct Source {
    abbreviation: &'static str,
    language: &'static str,
    level: u8,
    stands_for: &'static str,
}

const fn source(
    abbreviation: &'static str,
    language: &'static str,
    level: u8,
    stands_for: &'static str,
) -> Source {
    Source { abbreviation, language, level, stands_for }
}

/// The sources use the publishers' abbreviations, so that selections made for UMLS work on the world too.
const SOURCES: [Source; 8] = [
    source("ICD9CM", "ENG", 0, "a classification of diseases"),
    source("MED-RT", "ENG", 0, "a reference terminology of medication"),
    source("MSH", "ENG", 0, "medical subject headings"),
    source("MSHFRE", "FRE", 3, "a French translation of the subject headings"),
    source("MSHGER", "GER", 3, "a German translation of the subject headings"),
    source("MSHSPA", "SPA", 3, "a Spanish translation of the subject headings"),
    source("RXNORM", "ENG", 0, "a nomenclature of drugs"),
    source("SNOMEDCT_US", "ENG", 9, "a clinical terminology"),
];

/// The licence level of a source.
fn level(abbreviation: &str) -> u8 {
    SOURCES.iter().find(|source| source.abbreviation == abbreviation).map_or(0, |source| source.level)
}

/// Writes the eight files; returns the number of distinct facts of each relation.
pub(super) fn write(world: &World, sink: &mut Sink<'_>) -> Result<BTreeMap<String, u64>, Error> {
    conso::write(world, sink)?;
    let facts = rel::write(world, sink)?;
    let nodes: Vec<_> = world.nodes().collect();
    sink.items(
        "umls/META/MRSTY.RRF",
        &Frame { opening: "", items: nodes.len(), closing: "" },
        |index, out| {
            let types = world.types(nodes[index]);
            for (at, kind) in types.iter().enumerate() {
                let (concept, atui) = (cui(nodes[index]), index * 2 + at);
                put(out, format_args!("{concept}|{}|{}|{}|AT9{atui:08}||\n", kind.tui, kind.stn, kind.name));
            }
            types.len() as u64
        },
    )?;
    definitions(world, sink)?;
    retired::write(world, sink)?;
    vocabularies(world, sink)?;
    lines(sink, "umls/META/MRRANK.RRF", &ranks())?;
    lines(sink, "umls/META/MRDOC.RRF", &documentation())?;
    Ok(facts)
}

/// Writes MRSAB.
fn vocabularies(world: &World, sink: &mut Sink<'_>) -> Result<u64, Error> {
    let counts = source_counts(world);
    let rows: Vec<Vec<String>> = SOURCES
        .iter()
        .zip(counts)
        .enumerate()
        .map(|(index, (source, (terms, concepts)))| {
            let Source { abbreviation: sab, language, level, stands_for } = source;
            let row = format!(
                "C98{index:05}|C98{:05}|{sab}_1|{sab}|Invented stand-in for {stands_for}|{sab}|1|||1AA||engraft|engraft|{level}|\
                 {terms}|{concepts}||PT,SY||{language}|UTF-8|Y|Y|Invented {sab}|Invented by engraft; no publisher's text.",
                index + 100
            );
            row.split('|').map(str::to_owned).collect()
        })
        .collect();
    lines(sink, "umls/META/MRSAB.RRF", &rows)
}

/// Writes a small file of rows.
fn lines<R: AsRef<[String]> + Sync>(sink: &mut Sink<'_>, name: &str, rows: &[R]) -> Result<u64, Error> {
    sink.items(name, &Frame { opening: "", items: rows.len(), closing: "" }, |index, out| {
        put(out, format_args!("{}|\n", rows[index].as_ref().join("|")));
        1
    })
}

/// Writes MRDEF: what kind of thing some concepts are, and nothing that a task asks for.
fn definitions(world: &World, sink: &mut Sink<'_>) -> Result<u64, Error> {
    let nodes: Vec<_> = world.nodes().collect();
    sink.items(
        "umls/META/MRDEF.RRF",
        &Frame { opening: "", items: nodes.len(), closing: "" },
        |index, out| {
            let node = nodes[index];
            let mut draw = world.latent.rng("definitions").at(index);
            if world.descriptor(node).is_none() || !draw.percent(40) {
                return 0;
            }
            let (concept, atom, (plan, _)) = (cui(node), conso::aui(node, 1), world.place(node));
            let suppress = if draw.percent(5) { 'O' } else { 'N' };
            let title = world.names(node).title();
            put(
                out,
                format_args!(
                    "{concept}|{atom}|AT8{index:08}||MSH|{title} is an invented {}.|{suppress}||\n",
                    plan.label
                ),
            );
            1
        },
    )
}

/// The rows of MRRANK: sources and term types, the preferred first. The name that the flags of MRCONSO prefer comes first here too.
fn ranks() -> Vec<[String; 4]> {
    const ORDER: [(&str, &str); 16] = [
        ("RXNORM", "IN"),
        ("MED-RT", "PT"),
        ("SNOMEDCT_US", "PT"),
        ("MSH", "MH"),
        ("ICD9CM", "PT"),
        ("SNOMEDCT_US", "FN"),
        ("RXNORM", "SY"),
        ("MED-RT", "SY"),
        ("SNOMEDCT_US", "SY"),
        ("MSH", "ET"),
        ("MSH", "PM"),
        ("MSHFRE", "TR"),
        ("MSHGER", "TR"),
        ("MSHSPA", "TR"),
        ("SNOMEDCT_US", "OP"),
        ("RXNORM", "OP"),
    ];
    let kinds =
        ["N", "E", "O", "Y"].iter().flat_map(|suppress| ORDER.map(|(sab, tty)| (sab, tty, *suppress)));
    let row = |(place, (sab, tty, suppress)): (usize, (&str, &str, &str))| {
        [format!("{:04}", 600 - place), sab.to_owned(), tty.to_owned(), suppress.to_owned()]
    };
    kinds.enumerate().map(row).collect()
}

/// For each source, the number of its terms and of the concepts they name.
fn source_counts(world: &World) -> [(u64, u64); SOURCES.len()] {
    let nodes: Vec<_> = world.nodes().collect();
    let of_node = |&node: &_| {
        let atoms = atoms(world, node);
        let mut counts = [(0, 0); SOURCES.len()];
        for (count, source) in counts.iter_mut().zip(&SOURCES) {
            count.0 = atoms.iter().filter(|atom| atom.source == source.abbreviation).count() as u64;
            count.1 = u64::from(count.0 > 0);
        }
        counts
    };
    let add = |mut sums: [(u64, u64); SOURCES.len()], counts: [(u64, u64); SOURCES.len()]| {
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum = (sum.0 + count.0, sum.1 + count.1);
        }
        sums
    };
    nodes.par_iter().map(of_node).reduce(|| [(0, 0); SOURCES.len()], add)
}

/// The rows of MRDOC: each REL and RELA with its inverse and its meaning, each term type with its meaning.
fn documentation() -> Vec<[String; 4]> {
    let row = |key: &str, value: &str, kind: &str, text: &str| [key, value, kind, text].map(str::to_owned);
    let mut rows = Vec::new();
    let rels = [
        ("CHD", "PAR", "is a child of, in a source"),
        ("PAR", "CHD", "is a parent of, in a source"),
        ("RB", "RN", "is broader than"),
        ("RN", "RB", "is narrower than"),
        ("RO", "RO", "is related to in some other way"),
        ("SIB", "SIB", "shares a parent with, in a source"),
        ("SY", "SY", "is a synonym of, in a source"),
    ];
    for (rel, inverse, meaning) in rels {
        rows.push(row("REL", rel, "expanded_form", meaning));
        rows.push(row("REL", rel, "rel_inverse", inverse));
    }
    let mut relas: Vec<(&str, &str)> = STATEMENTS.iter().map(|one| (one.rela, one.inverse)).collect();
    relas.push(("permuted_term_of", "has_permuted_term"));
    let reversed: Vec<_> =
        relas.iter().filter(|(rela, inverse)| rela != inverse).map(|&(a, b)| (b, a)).collect();
    relas.extend(reversed);
    relas.sort_unstable();
    for (rela, inverse) in relas {
        rows.push(row("RELA", rela, "expanded_form", &rela.replace('_', " ")));
        rows.push(row("RELA", rela, "rela_inverse", inverse));
    }
    for (term_type, meaning) in conso::TERM_TYPES {
        rows.push(row("TTY", term_type, "expanded_form", meaning));
    }
    rows
}
