//! The nodes of a KGX graph: kept as printed until an edge needs them.

use std::collections::HashMap;
use std::io::BufRead;

use base::funnel::{BLANK_LINES, Tally};
use base::read::ReadError;

use super::super::code::is_own_code;
use super::super::files::Input;
use super::super::json_rows::{BETWEEN, Kind};
use super::super::named::each_fitting;
use super::super::same;
use super::super::separated::{Column, NoRow, Records, Shape};
use super::super::unfit::Unfit;
use super::{DEPRECATED, Obsolete, Options, Xref, count_unfit, is_flagged, node_key};
use crate::table::builder::{DraftEntity, DraftTermOrigin, OfferKind};
use crate::table::{Builder, SemanticType, TermKind, TermOrigin};

const REPEATED: &str = "repeated";
const IN_NO_TRIPLE: &str = "in_no_triple";

/// The nodes, and the ends of edges that are none.
#[derive(Debug)]
pub(super) struct Nodes<'o> {
    name: &'o str,
    options: &'o Options,
    columns: Columns,
    nodes: HashMap<String, Node>,
    missing: HashMap<String, Roles>,
    terms: Option<DraftTermOrigin>,
    without_name: Vec<(DraftEntity, String)>,
    pub(super) tally: Tally,
}

#[derive(Debug)]
struct Node {
    row: String,
    line: u64,
    met: Roles,
    is_deprecated: bool,
    entity: Option<DraftEntity>,
}

/// What an edge meets by an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Met {
    Node,
    /// A node that is left out.
    Deprecated,
    Nothing,
}

/// Where an id stands in edges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Roles {
    subject: bool,
    object: bool,
}

impl Roles {
    pub(super) const SUBJECT: Self = Self { subject: true, object: false };
    pub(super) const OBJECT: Self = Self { subject: false, object: true };

    fn add(&mut self, other: Self) {
        self.subject |= other.subject;
        self.object |= other.object;
    }
}

/// Where the columns of the nodes are, as far as there are such.
#[derive(Debug)]
struct Columns {
    category: Option<usize>,
    name: Option<usize>,
    synonym: Option<usize>,
    description: Option<usize>,
    deprecated: Option<usize>,
    same: Vec<usize>,
}

impl<'o> Nodes<'o> {
    pub(super) fn read<R: BufRead>(
        file: Input<R>,
        name: &'o str,
        options: &'o Options,
    ) -> Result<Self, ReadError> {
        let mut records = Records::new(file.reader, &file.label, Shape::TABS)?;
        let id = records.column(&Column::Name("id".to_owned()), "id")?;
        let xref = (options.xref == Xref::SameAs).then(|| records.optional(&["xref"])).flatten();
        let same = [records.optional(&["same_as"]), records.optional(&["equivalent_identifiers"]), xref];
        let columns = Columns {
            category: records.optional(&["category"]),
            name: records.optional(&["name"]),
            synonym: records.optional(&["synonym"]),
            description: records.optional(&["description"]),
            deprecated: records.optional(&[DEPRECATED]),
            same: same.into_iter().flatten().collect(),
        };
        // As JSON it has no line of names.
        let (unit, above) = match Kind::of(&file.label) {
            Kind::Table => ("line", 0),
            Kind::Lines => ("line", 1),
            Kind::Document => ("node", 1),
        };
        let mut nodes: HashMap<String, Node> = HashMap::new();
        let mut tally = Tally::new(&file.label, &[BLANK_LINES, REPEATED, DEPRECATED, IN_NO_TRIPLE]);
        let left_out = each_fitting(&mut records, Unfit::new(options.max_unfit), |record| {
            let key = node_key(record, id, "id")?;
            let (row, place) = (record.line(), record.place(Some((id, "id"))));
            match nodes.get(&key) {
                None => {
                    let is_deprecated = is_flagged(record, columns.deprecated, DEPRECATED)?
                        && options.obsolete == Obsolete::Drop;
                    let (row, line, met) = (row.to_owned(), place.line, Roles::default());
                    nodes.insert(key, Node { row, line, met, is_deprecated, entity: None });
                }
                Some(before) if before.row == row => tally.drop(REPEATED),
                Some(before) => {
                    let found =
                        format!("the node {key} stands in {unit} {} with other fields", before.line - above);
                    let expected = "one line for a node";
                    let remedy = "merge them (kgx merge)";
                    return Err(NoRow::Unfit(ReadError::new(place, found, expected, remedy)));
                }
            }
            Ok(())
        })?;
        count_unfit(&mut tally, left_out);
        records.account(&mut tally);
        let maybe =
            [columns.category, columns.name, columns.synonym, columns.description, columns.deprecated];
        let maybe = maybe.into_iter().flatten().chain(columns.same.iter().copied());
        let used: Vec<usize> = [id].into_iter().chain(maybe).collect();
        tally.columns_not_used = records.unused(&used);
        let (missing, terms, without_name) = (HashMap::new(), None, Vec::new());
        Ok(Self { name, options, columns, nodes, missing, terms, without_name, tally })
    }

    /// Notes that an edge has the id; says what it is of.
    pub(super) fn meet(&mut self, key: &str, role: Roles) -> Met {
        if let Some(node) = self.nodes.get_mut(key) {
            node.met.add(role);
            return if node.is_deprecated { Met::Deprecated } else { Met::Node };
        }
        match self.missing.get_mut(key) {
            Some(met) => met.add(role),
            None => {
                self.missing.insert(key.to_owned(), role);
            }
        }
        Met::Nothing
    }

    /// The entity of a node, if there is such a node.
    pub(super) fn entity(&mut self, key: &str, builder: &mut Builder) -> Option<DraftEntity> {
        let node = self.nodes.get_mut(key)?;
        if let Some(entity) = node.entity {
            return Some(entity);
        }
        let terms = *self.terms.get_or_insert_with(|| {
            let (source, level) = (self.name.to_owned(), self.options.level);
            builder.term_origin(TermOrigin { source, vocabulary: None, language: None, level })
        });
        let fields: Vec<&str> = node.row.split('\t').collect();
        let printed = Printed { key, fields: &fields, columns: &self.columns };
        let entity = printed.state(self.name, self.options.level, terms, builder);
        if printed.name().is_none() {
            self.without_name.push((entity, key.to_owned()));
        }
        node.entity = Some(entity);
        Some(entity)
    }

    /// Different subjects and objects of all edges.
    pub(super) fn ends(&self) -> [u64; 2] {
        let met = || self.nodes.values().map(|node| node.met).chain(self.missing.values().copied());
        let [subjects, objects] =
            [met().filter(|met| met.subject).count(), met().filter(|met| met.object).count()];
        [subjects as u64, objects as u64]
    }

    /// What became of the nodes, and which of triples have no name.
    pub(super) fn settle(mut self) -> (Tally, Vec<(DraftEntity, String)>) {
        let all = self.nodes.len() as u64;
        let count = |of: fn(&Node) -> bool| self.nodes.values().filter(|node| of(node)).count() as u64;
        let (kept, deprecated) = (count(|node| node.entity.is_some()), count(|node| node.is_deprecated));
        self.tally.read += all;
        self.tally.kept += kept;
        *self.tally.dropped.entry(DEPRECATED).or_insert(0) += deprecated;
        *self.tally.dropped.entry(IN_NO_TRIPLE).or_insert(0) += all - kept - deprecated;
        (self.tally, self.without_name)
    }
}

/// A node as printed.
struct Printed<'a> {
    key: &'a str,
    fields: &'a [&'a str],
    columns: &'a Columns,
}

impl<'a> Printed<'a> {
    fn field(&self, column: Option<usize>) -> &'a str {
        column.and_then(|column| self.fields.get(column)).map(|field| field.trim()).unwrap_or_default()
    }

    fn values(&self, column: Option<usize>) -> impl Iterator<Item = &'a str> {
        let field = self.field(column);
        let between = if field.contains(BETWEEN) { BETWEEN } else { '|' };
        field.split(between).map(str::trim).filter(|value| !value.is_empty())
    }

    fn name(&self) -> Option<&'a str> {
        Some(self.field(self.columns.name)).filter(|name| !name.is_empty() && !is_own_code(name, self.key))
    }

    fn state(
        &self,
        source: &str,
        level: Option<u8>,
        terms: DraftTermOrigin,
        builder: &mut Builder,
    ) -> DraftEntity {
        let name = self.name();
        let text = name.unwrap_or(self.key);
        let entity = match name {
            Some(name) => builder.entity(source, self.key, name),
            None => builder.nameless(source, self.key, self.key),
        };
        if let Some(level) = level {
            builder.set_level(entity, level);
        }
        for category in self.values(self.columns.category) {
            let name = category.strip_prefix("biolink:").unwrap_or(category).to_owned();
            builder.add_type(entity, SemanticType { code: None, name });
        }
        if let Some(name) = name {
            builder.term(entity, TermKind::Preferred, name, terms);
            builder.offer(name, self.key, name, OfferKind::Preferred);
        }
        for synonym in self.values(self.columns.synonym) {
            builder.term(entity, TermKind::Synonym, synonym, terms);
            builder.offer(synonym, self.key, text, OfferKind::Synonym);
        }
        let description = self.field(self.columns.description);
        if !description.is_empty() {
            builder.term(entity, TermKind::Definition, description, terms);
        }
        let same = self.columns.same.iter().flat_map(|&column| self.values(Some(column)));
        // A row counts once, whatever it is elsewhere.
        let _ = same::state(source, self.key, &same.filter_map(same::elsewhere).collect(), builder);
        entity
    }
}
