//! MRREL: every relation from both sides, sorted as published.
//!
//! REL and RELA say what CUI2 has to CUI1: a fact (subject, relation, object) is the row CUI1 = object, CUI2 = subject.
//! A few rows on where a disease sits still name a retired concept for the disease; what became of it stands in MRCUI.

use super::super::Error;
use super::super::entity::{World, cui};
use super::super::fact::{Relation, STATEMENTS, Statement, facts};
use super::super::file::{Frame, Sink, put};
use super::super::kind::{Kind, Node};
use super::conso::aui;
use super::retired::{Naming, naming};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// One row before it has words: 12 bytes, so that millions can be sorted in memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    cui1: Node,
    cui2: Node,
    /// Index of [`words`].
    label: u8,
    standing: Standing,
    /// How the row calls the subject of the fact.
    naming: Naming,
}

/// Whether the source still holds what the row says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Asserted,
    Withdrawn,
}

/// The words of a row.
struct Label {
    rel: &'static str,
    rela: &'static str,
    source: &'static str,
    /// Which atom of the concepts the row is about.
    atoms: (usize, usize),
    /// DIR: whether the source asserts this direction.
    direction: &'static str,
}

const NAMED: usize = STATEMENTS.len();
const CHILD: usize = 2 * NAMED;
const PARENT: usize = CHILD + 1;
const SIBLING: usize = CHILD + 2;
const PERMUTED: usize = CHILD + 3;
const HAS_PERMUTED: usize = CHILD + 4;

/// The words behind a label: named relations forward, the same backward, then MeSH's own.
fn words(label: usize) -> Label {
    let mesh = |rel, rela, atoms| Label { rel, rela, source: "MSH", atoms, direction: "" };
    match label {
        CHILD => mesh("CHD", "", (1, 1)),
        PARENT => mesh("PAR", "", (1, 1)),
        SIBLING => mesh("SIB", "", (1, 1)),
        PERMUTED => mesh("SY", "permuted_term_of", (1, 2)),
        HAS_PERMUTED => mesh("SY", "has_permuted_term", (2, 1)),
        _ => {
            let one = &STATEMENTS[label % NAMED];
            let (rel, rela) =
                if label < NAMED { (one.rel, one.rela) } else { (one.inverse_rel, one.inverse) };
            let direction = match label {
                _ if one.rela == one.inverse => "",
                0..NAMED => "Y",
                _ => "N",
            };
            Label { rel, rela, source: one.source, atoms: (0, 0), direction }
        }
    }
}

/// Writes MRREL.RRF and returns the number of distinct facts by RELA, counted in one direction.
pub(super) fn write(world: &World, sink: &mut Sink<'_>) -> Result<BTreeMap<String, u64>, Error> {
    let nodes: Vec<_> = world.nodes().collect();
    let mut rows: Vec<Row> = nodes.par_iter().flat_map_iter(|&node| rows(world, node)).collect();
    rows.par_sort_unstable();
    rows.dedup();
    let frame = Frame { opening: "", items: rows.len(), closing: "" };
    sink.items("umls/META/MRREL.RRF", &frame, |index, out| {
        line(index, rows[index], out);
        1
    })?;
    let mut counts = [0; NAMED];
    let is_fact = |row: &&Row| {
        row.standing == Standing::Asserted && row.naming.is_same() && usize::from(row.label) < NAMED
    };
    for row in rows.iter().filter(is_fact) {
        counts[usize::from(row.label)] += 1;
    }
    // A symmetric relation stands in both directions under one label.
    let sides = |one: &Statement| if one.rela == one.inverse { 2 } else { 1 };
    Ok(STATEMENTS.iter().zip(counts).map(|(one, count)| (one.rela.to_owned(), count / sides(one))).collect())
}

/// All rows that `subject` gives rise to.
fn rows(world: &World, subject: Node) -> Vec<Row> {
    let mut rows = Vec::new();
    for (relation, object) in facts(world, subject) {
        let before = rows.len();
        both(&mut rows, subject, object, relation, Standing::Asserted);
        if relation == Relation::HasFindingSite {
            let naming = naming(world, subject);
            let retired: Vec<Row> = rows[before..].iter().map(|row| Row { naming, ..*row }).collect();
            if naming.is_same() {
                rows.truncate(before);
            }
            rows.extend(retired);
        }
    }
    if world.descriptor(subject).is_some() {
        for parent in world.parents(subject) {
            rows.push(row(parent, subject, CHILD));
            rows.push(row(subject, parent, PARENT));
        }
        if world.names(subject).mesh() != world.names(subject).title() {
            rows.push(row(subject, subject, PERMUTED));
            rows.push(row(subject, subject, HAS_PERMUTED));
        }
    }
    if let Some(disease) = world.disease(subject) {
        let next = Node::new(subject.index() + 1);
        let sibling = next.index() < world.latent.layout.total();
        if sibling && world.disease(next).is_some_and(|other| other.family == disease.family) {
            rows.push(row(subject, next, SIBLING));
            rows.push(row(next, subject, SIBLING));
        }
        obsolete_treatment(world, subject, &mut rows);
    }
    rows
}

/// Now and then a source once held a treatment that it has withdrawn: rows that a reader must not take for facts.
fn obsolete_treatment(world: &World, subject: Node, rows: &mut Vec<Row>) {
    let mut draw = world.latent.rng("withdrawn").at(subject.index());
    let layout = &world.latent.layout;
    let drug = layout.node(Kind::Drug, draw.below(layout.count(Kind::Drug)));
    let treats = world.disease(subject).is_some_and(|disease| disease.drugs.contains(&drug));
    if draw.percent(4) && !treats {
        both(rows, subject, drug, Relation::MayBeTreatedBy, Standing::Withdrawn);
    }
}

/// The rows of a named relation, from both sides.
fn both(rows: &mut Vec<Row>, subject: Node, object: Node, relation: Relation, standing: Standing) {
    let forward = relation as usize;
    let statement = &STATEMENTS[forward];
    debug_assert_eq!(statement.relation, relation);
    let back = if statement.rela == statement.inverse { forward } else { forward + NAMED };
    for one in [row(object, subject, forward), row(subject, object, back)] {
        rows.push(Row { standing, ..one });
    }
}

fn row(cui1: Node, cui2: Node, label: usize) -> Row {
    Row {
        cui1,
        cui2,
        label: u8::try_from(label).unwrap_or(u8::MAX),
        standing: Standing::Asserted,
        naming: Naming::Current,
    }
}

fn line(index: usize, row: Row, out: &mut Vec<u8>) {
    let Label { rel, rela, source, atoms, direction } = words(usize::from(row.label));
    let (mut cui1, mut cui2) = (cui(row.cui1), cui(row.cui2));
    // The subject of a fact is CUI2 in the row of its own relation, and CUI1 in that of the inverse.
    let (subject, node) =
        if usize::from(row.label) < NAMED { (&mut cui2, row.cui2) } else { (&mut cui1, row.cui1) };
    if row.naming != Naming::Current {
        *subject = row.naming.cui(node);
    }
    let (aui1, aui2) = (aui(row.cui1, atoms.0), aui(row.cui2, atoms.1));
    let suppress = if row.standing == Standing::Withdrawn { 'O' } else { 'N' };
    put(
        out,
        format_args!(
            "{cui1}|{aui1}|AUI|{rel}|{cui2}|{aui2}|AUI|{rela}|R9{index:08}||{source}|{source}||{direction}|{suppress}||\n"
        ),
    );
}
