//! The rows of a file of edges or nodes, be it a table or JSON.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};

use base::funnel::Tally;
use base::read::ReadError;
use base::share::Share;

use super::{Activity, End, Layout, Nodes, Options, REMEDY};
use crate::source::active::{ACTIVE, Inactive};
use crate::source::files::{Input, Reopened, unopened};
use crate::source::json_rows::{self, Kind, List};
use crate::source::named::{Used, rows_of};
use crate::source::separated::{Column, NoRow, Record, Records, Shape};
use crate::source::unfit::Unfit;

/// Rows as their reader sees them.
pub(super) type Rows<'r> = Records<'r, Box<dyn BufRead + 'r>>;

/// How the rows of files of one kind are read.
pub(super) struct Reading<'o> {
    /// Their list in a document of JSON.
    list: &'static str,
    layout: &'o Layout,
    /// The columns that are asked for.
    columns: Vec<&'o Column>,
    max_unfit: Share,
    /// Keys that no record of JSON has had so far.
    missing: BTreeSet<String>,
    /// Records of JSON so far.
    records: u64,
    /// What is told of first lines.
    pub(super) guessed: Vec<String>,
}

impl<'o> Reading<'o> {
    /// That of edges.
    pub(super) fn edges(options: &'o Options) -> Self {
        let relation = [&options.relation.column, &options.relation.text];
        let ends = [&options.subject, &options.object].into_iter().flat_map(End::columns);
        Self::new("edges", &options.layout, ends.chain(relation.into_iter().flatten()), options.max_unfit)
    }

    /// That of nodes.
    pub(super) fn nodes(options: &'o Options, nodes: &'o Nodes) -> Self {
        Self::new("nodes", &nodes.layout, nodes.columns.columns(), options.max_unfit)
    }

    fn new(
        list: &'static str,
        layout: &'o Layout,
        columns: impl Iterator<Item = &'o Column>,
        max_unfit: Share,
    ) -> Self {
        let columns: Vec<&Column> = columns.collect();
        let named = columns.iter().copied().chain(&layout.active).filter_map(name);
        // What `inactive` speaks of has to be there.
        let active = layout.active.is_none() && layout.inactive == Some(Inactive::Drop);
        let missing = named.chain(active.then_some(ACTIVE[0])).map(str::to_owned).collect();
        Self { list, layout, columns, max_unfit, missing, records: 0, guessed: Vec::new() }
    }

    /// Hands on each row of a file, see [`rows_of`]; a record of JSON is one.
    ///
    /// # Errors
    /// As [`rows_of`], and when a column of a record is asked for by its position.
    pub(super) fn rows<C: Used>(
        &mut self,
        file: &Reopened<'_>,
        find: impl FnOnce(&mut Rows<'_>, Activity) -> Result<C, ReadError>,
        take: impl FnMut(&C, &Record<'_>) -> Result<(), NoRow>,
    ) -> Result<Tally, ReadError> {
        let opened = (file.open)().map_err(|error| unopened(&file.label, &error))?;
        let input = Input::new(BufReader::new(opened), &file.label);
        let is_table = Kind::of(&file.label) == Kind::Table;
        let Layout { active, inactive, .. } = self.layout;
        let asked = self.columns.iter().copied().chain(active);
        let position = asked.clone().find(|column| name(column).is_none());
        if let (false, Some(Column::Position(position))) = (is_table, position) {
            let found = format!("a column is asked for as number {position}");
            return Err(ReadError::new(&file.label, found, "a key, since it is JSON", "fix the config"));
        }
        let shape = if is_table { self.layout.shape() } else { Shape::TABS };
        // Who says which are active means something by it, whether or not the config asks.
        let names = asked.filter_map(name).chain(active.is_none().then_some(ACTIVE[0]));
        let names: BTreeSet<&str> = names.collect();
        let columns: Vec<_> = names.into_iter().map(|name| (name, None)).collect();
        let list = List { key: self.list, columns: &columns, remedy: REMEDY };
        let (unfit, guessed) = (Unfit::new(self.max_unfit), &mut self.guessed);
        let read = |input: Input<Box<dyn BufRead + '_>>| {
            let records = Records::new(input.reader, &input.label, shape)?;
            let find = |records: &mut Rows<'_>| {
                let active = Activity::new(records, active.as_ref(), *inactive)?;
                // A record has the keys that it has something to say by.
                let found = find(records, if is_table { active } else { active.sparse() })?;
                guessed.extend(records.guessed());
                Ok(found)
            };
            rows_of(records, unfit, find, take)
        };
        let tally = json_rows::read(input, &list, &mut self.missing, read, |tally| tally)?;
        if !is_table {
            self.records += tally.lines;
        }
        Ok(tally)
    }

    /// Fails if a key that is asked for is in no record of the files, of which `file` is the last.
    ///
    /// # Errors
    /// Names the first such key.
    pub(super) fn met(&self, file: &Reopened<'_>) -> Result<(), ReadError> {
        if self.records > 0 { json_rows::met(&self.missing, &file.label) } else { Ok(()) }
    }
}

/// The name of a column; positions are of tables alone.
fn name(column: &Column) -> Option<&str> {
    match column {
        Column::Name(name) => Some(name),
        Column::Position(_) => None,
    }
}
