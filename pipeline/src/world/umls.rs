//! The UMLS Metathesaurus files of the world (RRF: pipes, one more at the end of each line); knows no other format.

use super::entity::{World, cui};
use super::fact::STATEMENTS;
use super::file::{Frame, Sink, put};
use super::{Error, umls::conso::atoms};
use rayon::prelude::*;
use std::collections::BTreeMap;

mod conso;
mod rel;

/// A source vocabulary: abbreviation, language, and what it stands in for.
struct Source {
    abbreviation: &'static str,
    language: &'static str,
    stands_for: &'static str,
}

const fn source(abbreviation: &'static str, language: &'static str, stands_for: &'static str) -> Source {
    Source { abbreviation, language, stands_for }
}

/// The sources use the publishers' abbreviations, so that selections made for UMLS work on the world too.
const SOURCES: [Source; 8] = [
    source("ICD9CM", "ENG", "a classification of diseases"),
    source("MED-RT", "ENG", "a reference terminology of medication"),
    source("MSH", "ENG", "medical subject headings"),
    source("MSHFRE", "FRE", "a French translation of the subject headings"),
    source("MSHGER", "GER", "a German translation of the subject headings"),
    source("MSHSPA", "SPA", "a Spanish translation of the subject headings"),
    source("RXNORM", "ENG", "a nomenclature of drugs"),
    source("SNOMEDCT_US", "ENG", "a clinical terminology"),
];

/// Writes the five files; returns the number of distinct facts of each relation.
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
    let counts = source_counts(world);
    sink.items("umls/META/MRSAB.RRF", &Frame { opening: "", items: SOURCES.len(), closing: "" }, |index, out| {
        let Source { abbreviation: sab, language, stands_for } = &SOURCES[index];
        let (terms, concepts) = counts[index];
        put(
            out,
            format_args!(
                "C98{index:05}|C98{:05}|{sab}_1|{sab}|Invented stand-in for {stands_for}|{sab}|1|||1AA||engraft|engraft|0|\
                 {terms}|{concepts}||PT,SY||{language}|UTF-8|Y|Y|Invented {sab}|Invented by engraft; no publisher's text.|\n",
                index + 100
            ),
        );
        1
    })?;
    let keys = documentation();
    sink.items(
        "umls/META/MRDOC.RRF",
        &Frame { opening: "", items: keys.len(), closing: "" },
        |index, out| {
            put(out, format_args!("{}|\n", keys[index].join("|")));
            1
        },
    )?;
    Ok(facts)
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
