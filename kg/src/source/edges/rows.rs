//! The rows of a file of edges or nodes, be it a table or JSON.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};

use base::funnel::Tally;
use base::read::ReadError;

use super::{Activity, End, Layout, Nodes, Options, REMEDY};
use crate::source::active::{ACTIVE, Inactive};
use crate::source::files::{Input, Reopened, unopened};
use crate::source::json_rows::{self, Kind, List};
use crate::source::named::{Used, rows_of};
use crate::source::separated::{Column, NoRow, Record, Records, Shape};
use crate::source::unfit::Unfit;

/// Rows as their reader sees them.
pub(super) type Rows<'r> = Records<'r, Box<dyn BufRead + 'r>>;

/// How the rows of a file are read.
pub(super) struct Reading<'o> {
    /// Its list in a document of JSON.
    list: &'static str,
    layout: &'o Layout,
    /// The columns that are asked for.
    columns: Vec<&'o Column>,
    unfit: Unfit,
}

impl<'o> Reading<'o> {
    /// That of edges.
    pub(super) fn edges(options: &'o Options) -> Self {
        let relation = [&options.relation.column, &options.relation.text];
        let ends = [&options.subject, &options.object].into_iter().flat_map(End::columns);
        let columns = ends.chain(relation.into_iter().flatten()).collect();
        Self { list: "edges", layout: &options.layout, columns, unfit: Unfit::new(options.max_unfit) }
    }

    /// That of nodes.
    pub(super) fn nodes(options: &'o Options, nodes: &'o Nodes) -> Self {
        let columns = nodes.columns.columns().collect();
        Self { list: "nodes", layout: &nodes.layout, columns, unfit: Unfit::new(options.max_unfit) }
    }

    /// Hands on each row of the file, see [`rows_of`]; a record of JSON is one.
    ///
    /// # Errors
    /// As [`rows_of`], and when a key that is asked for is in no record.
    pub(super) fn rows<C: Used>(
        self,
        file: &Reopened<'_>,
        find: impl FnOnce(&mut Rows<'_>, Activity) -> Result<C, ReadError>,
        take: impl FnMut(&C, &Record<'_>) -> Result<(), NoRow>,
    ) -> Result<Tally, ReadError> {
        let opened = (file.open)().map_err(|error| unopened(&file.label, &error))?;
        let input = Input::new(BufReader::new(opened), &file.label);
        let is_table = Kind::of(&file.label) == Kind::Table;
        let shape = if is_table { self.layout.shape() } else { Shape::TABS };
        let Layout { active, inactive, .. } = self.layout;
        let asked: BTreeSet<&str> = self.columns.iter().copied().chain(active).filter_map(name).collect();
        // What `inactive` speaks of has to be there; else it is looked for, since who has it means something by it.
        let is_needed = active.is_none() && *inactive == Some(Inactive::Drop);
        let needed: Vec<&str> = asked.iter().copied().chain(is_needed.then_some(ACTIVE[0])).collect();
        let all: BTreeSet<&str> = asked.into_iter().chain(active.is_none().then_some(ACTIVE[0])).collect();
        let columns: Vec<_> = all.into_iter().map(|name| (name, None)).collect();
        let list = List { key: self.list, columns: &columns, needed, remedy: REMEDY };
        let read = |input: Input<Box<dyn BufRead + '_>>| {
            let records = Records::new(input.reader, &input.label, shape)?;
            let find = |records: &mut Rows<'_>| {
                let active = Activity::new(records, active.as_ref(), *inactive)?;
                // A record has the keys that it has something to say by.
                find(records, if is_table { active } else { active.sparse() })
            };
            rows_of(records, self.unfit, find, take)
        };
        json_rows::read(input, &list, read, |tally| tally)
    }
}

/// The name of a column; positions are of tables alone.
fn name(column: &Column) -> Option<&str> {
    match column {
        Column::Name(name) => Some(name),
        Column::Position(_) => None,
    }
}
