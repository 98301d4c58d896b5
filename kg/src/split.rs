//! Which triples a model learns from and which it is tested on, so that no held-out triple can be read off a shown one.
//!
//! Triples that say the same stand in one group, and a group has one part. Two triples say the same when their folded texts are
//! equal, or are equal once one of them is inverted and its relation replaced by an inverse (a symmetric relation is its own).
//! Inverses are closed: the inverse of an inverse is the relation itself. With [`Together::Pair`] every triple over the same two
//! texts is in one group. A group's part is a function of the seed and its texts, never of ids or the order of rows, so that another
//! source moves no group that it does not join.

mod class;
mod cover;
mod detect;
mod entity;
mod group;
pub mod official;
pub mod part;
pub mod ratio;
pub mod read;
mod relation;
pub mod report;
pub mod schema;
pub mod view;
pub mod write;

pub use detect::{Inverse, Suspicion};
pub use entity::entities;
pub use official::{Leaky, Official};
pub use part::Part;
pub use ratio::Ratios;
pub use report::{Counts, Report};
pub use view::View;

use crate::Refused;
use crate::canon::relation::Turn;
use crate::table::RelationId;
use class::Classes;
use detect::Found;
use group::Groups;
use relation::Orientation;

/// Which triples over the same two texts must stay together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Together {
    /// Those that say the same: equal texts, inverse or symmetric relations.
    Inverse,
    /// All of them, whatever their relations; the strongest.
    Pair,
}

/// Whether held-out triples may name what training never shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cover {
    /// They may; the report counts them.
    Leave,
    /// Groups move to train, those with the smallest hash first, until every entity and relation of valid and test is in train.
    Train,
}

/// How parts are given.
#[derive(Debug, Clone, PartialEq)]
pub enum Mode {
    /// Everything is for training, as KIMERA does.
    All,
    /// By a hash of each group.
    Ratio(ByRatio),
    /// As one source published them; the triples of all others are for training.
    Official(Official),
}

/// What [`Mode::Ratio`] needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByRatio {
    /// Shares of the groups, not of the triples.
    pub ratios: Ratios,
    /// Another seed is another split.
    pub seed: u64,
    /// Whether training must show what is held out.
    pub cover: Cover,
}

/// What a split depends on besides the graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// What stays together.
    pub together: Together,
    /// Two relations count as inverse when at least this share (above 0, at most 1) of each one's triples occurs inverted
    /// under the other; none: only those declared. FB15k-237 was made with 0.97.
    pub detect_inverses: Option<f64>,
    /// When other relations are suspect: their triples stay together as if they were inverse, but give nothing away before the audit. None:
    /// nothing is suspect. Not asked where everything is for training.
    pub suspicion: Option<Suspicion>,
    /// How parts are given.
    pub mode: Mode,
}

/// A part for every triple.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// By row of the triple table.
    pub part: Vec<Part>,
    /// By row: number of its group, from 0, in the order of the groups' first rows.
    pub group: Vec<u32>,
    /// Relations found to be inverse, for the audit; their report is in `report`.
    pub detected: Vec<(RelationId, RelationId)>,
    /// What was done.
    pub report: Report,
}

/// What each relation of the table says: the number of its statement, and how its ends stand to those of that statement. Relations that
/// read the same or are inverse to one another have one number.
#[must_use]
pub fn ways(view: &View, table_relations: usize) -> Vec<(u32, Turn)> {
    let classes = Classes::of(view);
    let orientation = Orientation::new(classes.relation_names.len(), &relation::declared(view, &classes));
    classes.relation.iter().take(table_relations).map(|&class| orientation.of(class)).collect()
}

/// Splits a graph.
///
/// # Errors
/// When an option makes no sense for this graph.
pub fn split(view: &View, options: &Options) -> Result<Split, Refused> {
    let classes = Classes::of(view);
    let (known, found) = inverses(view, &classes, options)?;
    let orientation = Orientation::new(classes.relation_names.len(), &known);
    let groups = Groups::new(view, &classes, &orientation, options.together);

    let (part, notes) = parts(view, &groups, &options.mode)?;
    let representative = classes.smallest_relations();
    let pair =
        |found: &Found| (representative[found.classes.0 as usize], representative[found.classes.1 as usize]);
    let report = |found: &Found| {
        let (one, other) = pair(found);
        found.report(view, one, other)
    };
    let told = |all: &[Found]| all.iter().map(report).collect();
    let detected = found.counted.iter().map(pair).collect();
    let found = report::Pairs { inverses: told(&found.counted), suspected: told(&found.suspected) };
    let report = report::report(view, &part, &groups, notes, found);
    Ok(Split { part, group: groups.of, detected, report })
}

/// What nobody declared.
#[derive(Debug, Default)]
struct Undeclared {
    /// Pairs that count as inverse.
    counted: Vec<Found>,
    /// Pairs that look so.
    suspected: Vec<Found>,
}

/// All pairs of classes that stay together as inverses, and those among them that nobody declared.
fn inverses(
    view: &View,
    classes: &Classes,
    options: &Options,
) -> Result<(Vec<(u32, u32)>, Undeclared), Refused> {
    let mut known = relation::declared(view, classes);
    let mut found = Undeclared::default();
    if let Some(share) = options.detect_inverses.filter(|&share| !(share > 0.0 && share <= 1.0)) {
        let why =
            format!("detect_inverses = {share}: expected a share above 0 and at most 1, for example 0.97");
        return Err(Refused::new(why));
    }
    let suspicion = options.suspicion.filter(|_| options.mode != Mode::All);
    if options.detect_inverses.is_none() && suspicion.is_none() {
        return Ok((known, found));
    }
    let counts = detect::count(view, classes);
    let all = classes.relation_names.len();
    let new = |mut found: Vec<Found>, known: &mut Vec<(u32, u32)>| {
        let orientation = Orientation::new(all, known);
        found.retain(|found| !orientation.inverse(found.classes.0, found.classes.1));
        known.extend(found.iter().map(|found| found.classes));
        found
    };
    if let Some(share) = options.detect_inverses {
        found.counted = new(detect::inverses(&counts, share), &mut known);
    }
    if let Some(suspicion) = &suspicion {
        let mut suspected = detect::suspects(&counts, suspicion);
        if let Mode::Official(official) = &options.mode
            && let Some(stated) = official.stated_parts(view.triples().len())
        {
            suspected.extend(detect::held_suspects(view, classes, &stated, suspicion, &counts));
            suspected.sort_unstable_by_key(|found| found.classes);
            suspected.dedup_by_key(|found| found.classes);
        }
        found.suspected = new(suspected, &mut known);
    }
    Ok((known, found))
}

fn parts(view: &View, groups: &Groups, mode: &Mode) -> Result<(Vec<Part>, report::Notes), Refused> {
    match mode {
        Mode::All => Ok((vec![Part::Train; view.triples().len()], report::Notes::default())),
        Mode::Ratio(by) => Ok(by_ratio(view, groups, by)),
        Mode::Official(official) => {
            let expected = view.triples().len();
            let part = official.parts(&groups.of).ok_or_else(|| {
                let found = official.len();
                let why = format!(
                    "{found} official parts for {expected} triples; read them from the same triple table"
                );
                Refused::new(why)
            })?;
            Ok((part, report::Notes { stated_twice: official.twice(), ..report::Notes::default() }))
        }
    }
}

fn by_ratio(view: &View, groups: &Groups, by: &ByRatio) -> (Vec<Part>, report::Notes) {
    let hashes: Vec<u64> = groups.names.iter().map(|&name| ratio::hash(name, by.seed)).collect();
    let mut part_of_group: Vec<Part> = hashes.iter().map(|&hash| by.ratios.part(hash)).collect();
    let mut notes = report::Notes::default();
    if by.cover == Cover::Train {
        let order = |group: u32| (hashes[group as usize], groups.names[group as usize]);
        (notes.moved_groups, notes.moved_triples) =
            cover::move_to_train(view, groups, &mut part_of_group, order);
    }
    (groups.of.iter().map(|&group| part_of_group[group as usize]).collect(), notes)
}
