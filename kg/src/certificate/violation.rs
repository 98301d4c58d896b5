//! The triples that break their relation's direction, in memory and on disk.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray, UInt32Array};
use serde::{Deserialize, Serialize};

use super::direction::contradicted;
use super::schema;
use super::signature::{Fit, Signatures};
use crate::table::id::dense;
use crate::table::parquet_file::{Error, Writer};
use crate::table::{Graph, Triple};

/// Rows of a row group, and rows that are turned into columns at a time.
const GROUP_ROWS: usize = 1 << 16;

/// How a triple breaks the direction of its relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The table holds its exchange as well, though the relation is not symmetric.
    Contradicted,
    /// Its subject is its object.
    SelfLoop,
    /// The types of its ends are lawful only the other way round.
    Reversed,
    /// The types of its ends are lawful neither way.
    Rare,
}

impl Kind {
    /// All kinds, in their order.
    pub const ALL: [Kind; 4] = [Kind::Contradicted, Kind::SelfLoop, Kind::Reversed, Kind::Rare];

    /// The name on disk.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Contradicted => "contradicted",
            Kind::SelfLoop => "self_loop",
            Kind::Reversed => "reversed",
            Kind::Rare => "rare",
        }
    }
}

/// One triple and what is wrong with it; a triple may have several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// Its row in `triples.parquet`.
    pub triple: u32,
    /// What is wrong.
    pub kind: Kind,
}

/// All violations of `graph`, sorted.
#[must_use]
pub fn find(graph: &Graph, signatures: &Signatures) -> Vec<Violation> {
    let exchanged = contradicted(graph.entities().len(), graph.triples());
    let mut found = Vec::new();
    for (row, (triple, exchanged)) in graph.triples().iter().zip(exchanged).enumerate() {
        let mut add = |kind| found.push(Violation { triple: dense(row), kind });
        if exchanged && !graph.relations()[triple.relation.index()].symmetric {
            add(Kind::Contradicted);
        }
        if triple.subject == triple.object {
            add(Kind::SelfLoop);
        }
        match signatures.fit(graph, row) {
            Fit::Reversed => add(Kind::Reversed),
            Fit::Rare => add(Kind::Rare),
            Fit::Oriented | Fit::EitherWay | Fit::Untyped => {}
        }
    }
    found
}

/// Writes the violations of `graph` to [`schema::FILE`] in `folder`, whole. Equal violations give equal bytes.
///
/// # Errors
/// When the folder is missing or the disk refuses.
pub fn write(violations: &[Violation], graph: &Graph, folder: &Path) -> Result<(), Error> {
    let file = folder.join(schema::FILE);
    let mut writer = Writer::create(&file, schema::columns(), GROUP_ROWS, &schema::footer())?;
    for rows in violations.chunks(GROUP_ROWS) {
        writer.write_columns(columns(rows, graph))?;
    }
    writer.finish()
}

fn columns(rows: &[Violation], graph: &Graph) -> Vec<ArrayRef> {
    let texts = |value: &dyn Fn(&Triple) -> String| -> ArrayRef {
        let values = rows.iter().map(|row| value(&graph.triples()[row.triple as usize]));
        Arc::new(StringArray::from_iter_values(values))
    };
    let entity = |place: usize| graph.entities()[place].key.clone();
    vec![
        Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.triple))) as ArrayRef,
        texts(&|triple| graph.relations()[triple.relation.index()].key.clone()),
        texts(&|triple| entity(triple.subject.index())),
        texts(&|triple| entity(triple.object.index())),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.kind.name()))),
    ]
}
