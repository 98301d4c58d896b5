//! Edge lists whose rows name and type what they join, such as PrimeKG, with tables of nodes beside them where names lie there; as tables of text, as JSON lines
//! (`.jsonl`) or as a document of JSON (`.json`: `{"nodes": [...], "edges": [...]}`).
//!
//! A thing is known by its id, within the namespace that a column gives it: `x_source` MONDO and `x_id` 5148 are `mondo:5148`. Its first name, in
//! the tables of nodes and then in the edges, is its text, other names are synonyms, and all its types are kept. Files are read twice: names come anywhere.

mod options;
mod rows;
mod said;
mod told;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use base::funnel::Tally;
use base::read::ReadError;
use base::setting::InvalidSetting;

pub use self::options::{End, Layout, Nodes, Options, Relation};
use self::rows::{Reading, Rows};
use self::said::Said;
use super::active::{Activity, INACTIVE};
use super::curie::{self, Curie};
use super::files::{Files, Reopened, Slot, together};
use super::json_rows::BETWEEN;
use super::named::Used;
use super::ontology::{Link, Listed, NO_NODE, Ontology, Wording};
use super::separated::{Column, NoRow, Record};
use super::{Source, SourceReport};
use crate::table::Builder;

/// What to do about a row that is not as the columns ask.
const REMEDY: &str = "fix the row, or say in the config which column is which";

impl Source for Options {
    fn check(&self, name: &str) -> Result<(), InvalidSetting> {
        self.check_all(name)
    }

    fn slots(&self) -> Vec<Slot<'_>> {
        let nodes = self.nodes.iter().enumerate();
        Slot::list("files", &self.files)
            .chain(nodes.map(|(n, of)| Slot::file(format!("nodes.{n}.path"), &of.path)))
            .collect()
    }

    fn inverses(&self) -> &[[String; 2]] {
        &self.inverses
    }

    fn read(&self, name: &str, files: &Files<'_>, builder: &mut Builder) -> Result<SourceReport, ReadError> {
        let nodes = (0..self.nodes.len()).map(|number| files.given(&format!("nodes.{number}.path")));
        let lists =
            Lists { edges: files.list("files", self.files.len())?, nodes: nodes.collect::<Result<_, _>>()? };
        read(&lists, name, self, builder)
    }
}

/// The files, in the order of the options.
#[derive(Debug)]
pub struct Lists<'f> {
    /// Edges.
    pub edges: Vec<Reopened<'f>>,
    /// Tables of nodes.
    pub nodes: Vec<Reopened<'f>>,
}

/// Where the columns of an end are.
#[derive(Debug, Clone, Copy)]
struct Places {
    id: usize,
    name: Option<usize>,
    kind: Option<usize>,
    namespace: Option<usize>,
}

impl Places {
    fn new(end: &End, records: &mut Rows<'_>) -> Result<Self, ReadError> {
        let mut place = |column: &Column, role: &str| records.column(column, role);
        let id = place(&end.id, "id")?;
        let name = end.name.as_ref().map(|column| place(column, "name")).transpose()?;
        let kind = end.kind.as_ref().map(|column| place(column, "type")).transpose()?;
        let namespace = end.namespace.as_ref().map(|column| place(column, "namespace")).transpose()?;
        Ok(Self { id, name, kind, namespace })
    }

    fn used(&self) -> impl Iterator<Item = usize> {
        [Some(self.id), self.name, self.kind, self.namespace].into_iter().flatten()
    }
}

/// Where the columns of a table of nodes are.
struct NodeColumns {
    node: Places,
    active: Activity,
}

impl Used for NodeColumns {
    fn used(&self) -> Vec<usize> {
        self.node.used().chain(self.active.column()).collect()
    }
}

impl Used for Columns {
    fn used(&self) -> Vec<usize> {
        let ends = self.subject.used().chain(self.object.used());
        ends.chain(self.relation).chain(self.text).chain(self.active.column()).collect()
    }
}

/// All things, in the order in which they are first met.
struct Things<'o> {
    source: &'o str,
    options: &'o Options,
    said: HashMap<String, Said>,
    order: Vec<String>,
    /// What `namespaces` names and no row has had so far.
    unmet: BTreeSet<&'o str>,
    /// What is told of first lines.
    guessed: Vec<String>,
}

impl<'o> Things<'o> {
    fn new(source: &'o str, options: &'o Options) -> Self {
        let unmet = options.namespaces.keys().map(String::as_str).collect();
        Self { source, options, said: HashMap::new(), order: Vec::new(), unmet, guessed: Vec::new() }
    }

    /// The key of the thing in these columns of a row.
    fn key(&mut self, record: &Record<'_>, places: Places) -> Result<String, NoRow> {
        let id = record.field(places.id).trim();
        let wrong = |column: usize, role: &'static str| {
            let place = record.place(Some((column, role)));
            NoRow::Unfit(ReadError::text(place, record.field(column), "a value", REMEDY))
        };
        if !is_one(id) {
            return Err(wrong(places.id, "id"));
        }
        let namespaces: &'o BTreeMap<String, String> = &self.options.namespaces;
        Ok(match (places.namespace, curie::split(id)) {
            (Some(column), _) => {
                let found = record.field(column).trim();
                if !is_one(found) {
                    return Err(wrong(column, "namespace"));
                }
                self.unmet.remove(found);
                let own = found.replace(' ', "_");
                in_namespace(namespaces.get(found).unwrap_or(&own), id)
            }
            (None, Some(Curie { prefix, id })) if namespaces.contains_key(prefix) => {
                self.unmet.remove(prefix);
                in_namespace(&namespaces[prefix], id)
            }
            _ => format!("{}:{id}", self.source),
        })
    }

    /// What is said of the thing of this key.
    fn said(&mut self, key: String) -> &mut Said {
        if !self.said.contains_key(&key) {
            self.order.push(key.clone());
        }
        self.said.entry(key).or_default()
    }

    /// Takes a row of a table of nodes; says whether it is left out.
    fn node(&mut self, record: &Record<'_>, columns: &NodeColumns) -> Result<bool, NoRow> {
        let key = self.key(record, columns.node)?;
        let is_left_out = columns.active.leaves_out(record)?;
        // A table that says nothing of validity says nothing against another that does.
        if columns.active.column().is_some() {
            self.said(key.clone()).rows[usize::from(!is_left_out)] = true;
        }
        if !is_left_out {
            self.describe(key, record, columns.node);
        }
        Ok(is_left_out)
    }

    /// Takes what a row says of the thing of this key.
    fn describe(&mut self, key: String, record: &Record<'_>, places: Places) {
        let said = self.said(key);
        // Where JSON has a list each of it is one.
        let values = |column: Option<usize>| {
            let field = column.map_or("", |at| record.field(at));
            field.split(BETWEEN).map(str::trim).filter(|text| !text.is_empty())
        };
        said.name(values(places.name));
        said.kinds(values(places.kind));
    }

    /// The keys of what an edge joins, and its relation.
    fn edge<'r>(&mut self, record: &'r Record<'_>, columns: &Columns) -> Result<([String; 2], &'r str), NoRow>
    where
        Self: 'r,
    {
        let ends = [self.key(record, columns.subject)?, self.key(record, columns.object)?];
        let options: &'o Options = self.options;
        let relation = match (columns.relation, &options.relation.is) {
            (Some(column), _) => record.field(column).trim(),
            (None, is) => is.as_deref().unwrap_or_default(),
        };
        if !is_one(relation) {
            let place = record.place(columns.relation.map(|column| (column, "relation")));
            return Err(NoRow::Unfit(ReadError::text(place, relation, "a relation", REMEDY)));
        }
        Ok((ends, relation))
    }
}

/// Whether a value is there, and no list of JSON.
fn is_one(value: &str) -> bool {
    !value.is_empty() && !value.contains(BETWEEN)
}

/// The key of an id in a namespace as a config names it: `mondo`, or `mondo:0000000`, whose zeros say how many digits its ids have.
fn in_namespace(namespace: &str, id: &str) -> String {
    let (prefix, zeros) = namespace.split_once(':').unwrap_or((namespace, ""));
    let is_number = id.bytes().all(|b| b.is_ascii_digit());
    let id = if is_number { format!("{id:0>width$}", width = zeros.len()) } else { id.to_owned() };
    Curie { prefix, id: &id }.key()
}

/// Where the columns of edges are.
struct Columns {
    subject: Places,
    object: Places,
    relation: Option<usize>,
    text: Option<usize>,
    active: Activity,
}

impl Columns {
    fn find(options: &Options, records: &mut Rows<'_>, active: Activity) -> Result<Self, ReadError> {
        let (subject, object) =
            (Places::new(&options.subject, records)?, Places::new(&options.object, records)?);
        let Relation { column, text, .. } = &options.relation;
        let relation = column.as_ref().map(|column| records.column(column, "relation")).transpose()?;
        let text = text.as_ref().map(|column| records.column(column, "relation's words")).transpose()?;
        Ok(Self { subject, object, relation, text, active })
    }
}

/// Reads the files into `builder`, as the source `name`.
///
/// # Errors
/// When a file is damaged or of another layout; `builder` then holds a part of it.
pub fn read(
    lists: &Lists<'_>,
    name: &str,
    options: &Options,
    builder: &mut Builder,
) -> Result<SourceReport, ReadError> {
    for [one, other] in &options.inverses {
        builder.declare_inverse(one, other);
    }
    let mut things = Things::new(name, options);
    let supporting = read_nodes(lists, &mut things)?;
    let mut reading = Reading::edges(options);
    for file in &lists.edges {
        reading.rows(
            file,
            |records, active| Columns::find(options, records, active),
            |columns, record| {
                let ([subject, object], _) = things.edge(record, columns)?;
                if columns.active.leaves_out(record)? {
                    return Ok(());
                }
                things.describe(subject, record, columns.subject);
                things.describe(object, record, columns.object);
                Ok(())
            },
        )?;
    }
    lists.edges.last().map_or(Ok(()), |file| reading.met(file))?;
    things.guessed.append(&mut reading.guessed);
    let told = [things.renamed(), things.prefixed(), things.unmet(), things.guessed()];
    let label = together(&lists.edges);
    let listed = Listed { name: "things", reasons: &[], stranger: NO_NODE };
    let mut ontology = Ontology::new(name, options.taken(), &label, listed, builder);
    for (at, key) in (1..).zip(std::mem::take(&mut things.order)) {
        let said = things.said.remove(&key).unwrap_or_default();
        // Keys are there once.
        let _ = ontology.term(said.term(key), at);
    }
    ontology.settle();
    let mut report = state(lists, &mut things, ontology)?;
    report.funnel.supporting.extend(supporting);
    report.warnings.extend(told.into_iter().flatten());
    Ok(report)
}

/// Reads the tables of nodes.
fn read_nodes(lists: &Lists<'_>, things: &mut Things<'_>) -> Result<Vec<Tally>, ReadError> {
    let (options, mut supporting) = (things.options, Vec::new());
    for (file, nodes) in lists.nodes.iter().zip(&options.nodes) {
        let mut read = [0; 2];
        let mut reading = Reading::nodes(options, nodes);
        let mut tally = reading.rows(
            file,
            |records, active| Ok(NodeColumns { node: Places::new(&nodes.columns, records)?, active }),
            |columns, record| {
                read[usize::from(things.node(record, columns)?)] += 1;
                Ok(())
            },
        )?;
        reading.met(file)?;
        things.guessed.append(&mut reading.guessed);
        let [kept, left_out] = read;
        (0..kept).for_each(|_| tally.keep());
        if left_out > 0 {
            tally.drop_all(INACTIVE, left_out);
        }
        supporting.push(tally);
    }
    Ok(supporting)
}

/// States the rows of all edges.
fn state(
    lists: &Lists<'_>,
    things: &mut Things<'_>,
    mut ontology: Ontology<'_, '_>,
) -> Result<SourceReport, ReadError> {
    let options = things.options;
    let (mut worded, mut all) = (HashMap::<String, String>::new(), Tally::new(&together(&lists.edges), &[]));
    for file in &lists.edges {
        let tally = Reading::edges(options).rows(
            file,
            |records, active| Columns::find(options, records, active),
            |columns, record| {
                let ([subject, object], relation) = things.edge(record, columns)?;
                if columns.active.leaves_out(record)? {
                    ontology.leave_out_row_of(relation, INACTIVE);
                    return Ok(());
                }
                let words =
                    columns.text.map(|column| record.field(column).trim()).filter(|text| !text.is_empty());
                if let Some(text) = words {
                    if !is_one(text) {
                        let place = record.place(columns.text.map(|column| (column, "relation's words")));
                        return Err(NoRow::Unfit(ReadError::text(place, text, "one text", REMEDY)));
                    }
                    match worded.get(relation) {
                        Some(known) if known == text => {}
                        Some(known) => {
                            let place = record.place(columns.text.map(|column| (column, "relation's words")));
                            let expected =
                                format!("{known:?} as before: a relation has the same words in all rows");
                            let remedy = "name the column with the words as relation.column, or leave relation.text out";
                            return Err(ReadError::text(place, text, expected, remedy).into());
                        }
                        None => {
                            let wording = Wording { text: Some(text.to_owned()), inverses: BTreeSet::new() };
                            ontology.word(relation, wording);
                            worded.insert(relation.to_owned(), text.to_owned());
                        }
                    }
                }
                Ok(ontology.row(&subject, &Link { relation: relation.to_owned(), object })?)
            },
        )?;
        all.add(&tally);
    }
    ontology.leave_out_rows(&all);
    let mut report = ontology.finish(all.lines, all.bytes)?;
    report.funnel.triples.columns_not_used = all.columns_not_used;
    Ok(report)
}

#[cfg(test)]
mod tests;
