//! Knowledge Graph Exchange (github.com/biolink/kgx), as two tables of tab-separated columns, as JSON lines, or as one JSON document.
//!
//! `nodes.tsv` has `id`, `category`, `name` and, where given, `synonym`, `description`, `same_as`, `equivalent_identifiers`, `xref`, `deprecated`;
//! `edges.tsv` has `subject`, `predicate`, `object` and, where given, `primary_knowledge_source` (or `knowledge_source`) and
//! `negated` and `deprecated`. Columns are found by their names, in any order; others are not read. Several values of a field are separated by `|`.
//!
//! As JSON (names that end in `.jsonl`, `.json`) nodes and edges are objects with the same keys, and several values are lists.
//!
//! Ids are CURIEs: `UMLS:C0000005` becomes the key `umls:C0000005`. A predicate loses its prefix `biolink:`. Edges that are negated
//! are no triples; they, deprecated edges and edges of a node that is deprecated or that the nodes lack are dropped and counted. A node may be
//! listed twice only in the same words.

mod nodes;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::BufRead;
use std::path::Path;

use base::funnel::{BLANK_LINES, Tally};
use base::read::ReadError;
use base::setting::InvalidSetting;
use base::share::Share;
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::nodes::{Met, Nodes, Roles};
use super::code::{is_code, words};
use super::curie;
use super::files::{Files as Found, Input, Location, Slot};
use super::funnel::Funnel;
use super::json_rows::{self, Kind, List};
use super::named::each_fitting;
use super::naming::{Naming, Untexted};
pub use super::ontology::Obsolete;
use super::separated::{Column, NoRow, Record, Records, Shape};
use super::unfit::{UNFIT, Unfit};
pub use super::xref::Xref;
use super::{Source, SourceReport, check_level, not_kept};
use crate::table::builder::{DraftOrigin, DraftRelation};
use crate::table::{Builder, Origin};

/// A KGX graph: where it lies and how it is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The nodes: `nodes.tsv`, `nodes.jsonl`, or a document with both, `graph.json`; also packed (`.gz`).
    #[serde(skip_serializing)]
    pub nodes: Location,
    /// The edges, likewise; of a document the same file.
    #[serde(skip_serializing)]
    pub edges: Location,
    /// How to interpret the column `xref` of the nodes.
    ///
    /// Source: ours: because publishers differ in what they mean by it, and a wrong identity merges entities.
    #[serde(default)]
    pub xref: Xref,
    /// What to do with nodes and edges that are `deprecated`.
    ///
    /// Source: ours: because the graph itself no longer uses them.
    #[serde(default)]
    pub obsolete: Obsolete,
    /// Column of the edges with a number that says how strongly an edge holds; an empty field has none.
    pub weight: Option<String>,
    /// Pairs of predicates, without `biolink:`, that are inverses of each other. A predicate paired with itself is symmetric.
    ///
    /// Source: ours: because nothing in an edge says which predicates are inverse.
    #[serde(default)]
    pub inverses: Vec<[String; 2]>,
    /// Licence level of the whole source, texts and triples: 0 to 9, as the source restriction levels of UMLS. Without it, the source has
    /// no level.
    pub level: Option<u8>,
    /// The share of nodes in triples that may have no `name`, and of predicates that may be codes (`RO:0002211`), and then go by their ids, 0 to 1.
    ///
    /// Source: ours: because a missing name is more often a wrong or truncated file than a nameless node.
    #[serde(default)]
    pub max_untexted: Share,
    /// The share of a file's rows that may be dropped as malformed (another width, no CURIE or predicate, a node that is there already in other words), 0 to 1. With
    /// 0 the first such row is an error. Of JSON, a record that cannot be read is an error all the same.
    ///
    /// Source: ours: because a malformed row more often means a damaged file than a slip.
    #[serde(default)]
    pub max_unfit: Share,
}

impl Source for Options {
    fn check(&self, _: &str) -> Result<(), InvalidSetting> {
        if self.weight.as_ref().is_some_and(|name| name.trim().is_empty()) {
            return Err(InvalidSetting::new("weight", "empty", "the name of a column"));
        }
        check_level("level", self.level)
    }

    fn slots(&self) -> Vec<Slot<'_>> {
        vec![Slot::file("nodes", &self.nodes), Slot::file("edges", &self.edges)]
    }

    fn inverses(&self) -> &[[String; 2]] {
        &self.inverses
    }

    fn read(&self, name: &str, files: &Found<'_>, builder: &mut Builder) -> Result<SourceReport, ReadError> {
        let files = Files { nodes: files.open("nodes")?, edges: files.open("edges")? };
        let stated = read(files, name, self, builder)?;
        let mut report = SourceReport::new(stated.funnel);
        report.note("nodes_without_name", json!(stated.without_name));
        report.naming = Some(stated.naming);
        Ok(report)
    }
}

/// The files.
#[derive(Debug)]
pub struct Files<R> {
    /// `nodes.tsv`.
    pub nodes: Input<R>,
    /// `edges.tsv`.
    pub edges: Input<R>,
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stated {
    /// The edges; `supporting` has the nodes.
    pub funnel: Funnel,
    /// Nodes of triples without a name; their text is their id.
    pub without_name: u64,
    /// Which nodes those are.
    pub naming: Naming,
}

/// The keys of nodes, the last of which is read if it is asked for, and of edges.
const NODES: [(&str, Option<&str>); 9] = [
    ("id", None),
    ("category", None),
    ("name", None),
    ("synonym", None),
    ("description", None),
    ("same_as", None),
    ("equivalent_identifiers", None),
    (DEPRECATED, None),
    ("xref", None),
];
const EDGES: [(&str, Option<&str>); 6] = [
    ("subject", None),
    ("predicate", None),
    ("object", None),
    ("primary_knowledge_source", Some("knowledge_source")),
    (NEGATED, None),
    (DEPRECATED, None),
];

/// What to do about a record that is none.
const REMEDY: &str = "fix the record, or write the file anew with kgx";

const NEGATED: &str = "negated";
const DEPRECATED: &str = "deprecated";
const NO_NODE: &str = "no_node";

/// Reads the files into `builder`, as the source `name`.
///
/// # Errors
/// When a file is damaged or of another kind; `builder` then holds a part of it.
pub fn read<R: BufRead>(
    files: Files<R>,
    name: &str,
    options: &Options,
    builder: &mut Builder,
) -> Result<Stated, ReadError> {
    for [one, other] in &options.inverses {
        builder.declare_inverse(one, other);
    }
    let xref = if options.xref == Xref::SameAs { NODES.len() } else { NODES.len() - 1 };
    let list = List { key: "nodes", columns: &NODES[..xref], remedy: REMEDY };
    let none = &mut BTreeSet::new();
    let read = |file: Input<Box<dyn BufRead + '_>>| Nodes::read(file, name, options);
    let nodes = json_rows::read(files.nodes, &list, none, read, |nodes| &mut nodes.tally)?;
    let weight = options.weight.iter().map(|name| (name.as_str(), None));
    let columns: Vec<_> = EDGES.into_iter().chain(weight).collect();
    let label = files.edges.label.clone();
    let list = List { key: "edges", columns: &columns, remedy: REMEDY };
    let is_json = Kind::of(&label) != Kind::Table;
    let mut missing = options.weight.iter().filter(|_| is_json).cloned().collect();
    let read = |file: Input<Box<dyn BufRead + '_>>| {
        let mut edges = Edges::new(name, options, nodes, &label);
        edges.read(file, builder)?;
        Ok(edges)
    };
    let edges = json_rows::read(files.edges, &list, &mut missing, read, |edges| &mut edges.tally)?;
    if edges.tally.read > 0 {
        json_rows::met(&missing, &label)?;
    }
    let mut relations = BTreeMap::new();
    let unnamed = edges.relations.values().map(|used| &used.key).filter(|key| is_code(key));
    let unnamed: BTreeSet<String> = unnamed.cloned().collect();
    for used in edges.relations.into_values() {
        *relations.entry(used.key).or_insert(0) += used.rows;
    }
    let [subjects, objects] = edges.nodes.ends();
    let (nodes, without_name) = edges.nodes.settle();
    let entities = Untexted { without: without_name, all: nodes.kept };
    let without_name = entities.without.len() as u64;
    let relations_named = Untexted { without: unnamed.into_iter().collect(), all: relations.len() as u64 };
    let naming = Naming::of_names(name.to_owned(), options.max_untexted, entities, relations_named);
    let (source, triples, supporting) = (name.to_owned(), edges.tally, vec![nodes]);
    let funnel = Funnel { source, triples, supporting, subjects, objects, relations };
    Ok(Stated { funnel, without_name, naming })
}

/// A predicate and how often it was used.
#[derive(Debug)]
struct Used {
    draft: DraftRelation,
    key: String,
    rows: u64,
}

/// The edges while they are read.
#[derive(Debug)]
struct Edges<'o> {
    name: &'o str,
    options: &'o Options,
    nodes: Nodes<'o>,
    relations: HashMap<String, Used>,
    origins: HashMap<String, DraftOrigin>,
    tally: Tally,
}

/// Where the columns of the edges are.
#[derive(Debug, Clone, Copy)]
struct Columns {
    subject: usize,
    predicate: usize,
    object: usize,
    source: Option<usize>,
    negated: Option<usize>,
    deprecated: Option<usize>,
    weight: Option<usize>,
}

impl<'o> Edges<'o> {
    fn new(name: &'o str, options: &'o Options, nodes: Nodes<'o>, label: &Path) -> Self {
        let tally = Tally::new(label, &[BLANK_LINES, NEGATED, DEPRECATED, NO_NODE]);
        Self { name, options, nodes, relations: HashMap::new(), origins: HashMap::new(), tally }
    }

    fn read<R: BufRead>(&mut self, file: Input<R>, builder: &mut Builder) -> Result<(), ReadError> {
        let mut records = Records::new(file.reader, &file.label, Shape::TABS)?;
        let columns = Columns::new(&mut records, self.options)?;
        let unfit = Unfit::new(self.options.max_unfit);
        let left_out = each_fitting(&mut records, unfit, |record| self.edge(record, columns, builder))?;
        count_unfit(&mut self.tally, left_out);
        records.account(&mut self.tally);
        self.tally.columns_not_used = records.unused(&columns.used());
        Ok(())
    }

    fn edge(&mut self, record: &Record<'_>, columns: Columns, builder: &mut Builder) -> Result<(), NoRow> {
        let subject = node_key(record, columns.subject, "subject")?;
        let object = node_key(record, columns.object, "object")?;
        let predicate = record.field(columns.predicate).trim();
        if predicate.is_empty() || record.is_wrapped(columns.predicate) {
            return Err(wrong(record, columns.predicate, "predicate", "a predicate without quotes"));
        }
        let weight = weight(record, columns.weight)?;
        let is_negated = is_flagged(record, columns.negated, NEGATED)?;
        let is_deprecated = is_flagged(record, columns.deprecated, DEPRECATED)?;
        let met = [self.nodes.meet(&subject, Roles::SUBJECT), self.nodes.meet(&object, Roles::OBJECT)];
        let left_out = [
            (NEGATED, is_negated),
            (DEPRECATED, is_deprecated && self.options.obsolete == Obsolete::Drop),
            (NO_NODE, met.contains(&Met::Nothing)),
            (DEPRECATED, met.contains(&Met::Deprecated)),
        ];
        if let Some((reason, _)) = left_out.into_iter().find(|(_, is_so)| *is_so) {
            self.tally.drop(reason);
            return Ok(());
        }
        let ends = [self.nodes.entity(&subject, builder), self.nodes.entity(&object, builder)];
        let [Some(subject), Some(object)] = ends else { return Ok(()) };
        self.tally.keep();
        let relation = self.relation(predicate, builder);
        let vocabulary = columns.source.map(|column| record.field(column).trim()).unwrap_or_default();
        let origin = self.origin(vocabulary, weight, builder);
        let stated = builder.triple(subject, relation, object, origin);
        Ok(stated.map_err(|error| not_kept(self.name, &error))?)
    }

    fn relation(&mut self, predicate: &str, builder: &mut Builder) -> DraftRelation {
        if let Some(used) = self.relations.get_mut(predicate) {
            used.rows += 1;
            return used.draft;
        }
        let key = match curie::split(predicate) {
            Some(curie) if curie.prefix == "biolink" => curie.id.to_owned(),
            Some(curie) => curie.key(),
            None => predicate.to_owned(),
        };
        let draft = builder.relation(self.name, &key, &words(&key));
        self.relations.insert(predicate.to_owned(), Used { draft, key, rows: 1 });
        draft
    }

    /// The origin of an edge; that of a knowledge source is asked for once, unless edges have weights.
    fn origin(&mut self, vocabulary: &str, weight: Option<f64>, builder: &mut Builder) -> DraftOrigin {
        let named = Some(vocabulary.to_owned()).filter(|vocabulary| !vocabulary.is_empty());
        let (source, level) = (self.name.to_owned(), self.options.level);
        let origin = Origin { source, vocabulary: named, weight, count: None, level };
        if weight.is_some() {
            return builder.origin(origin);
        }
        if let Some(&origin) = self.origins.get(vocabulary) {
            return origin;
        }
        let draft = builder.origin(origin);
        self.origins.insert(vocabulary.to_owned(), draft);
        draft
    }
}

impl Columns {
    fn new<R: BufRead>(records: &mut Records<'_, R>, options: &Options) -> Result<Self, ReadError> {
        let mut named = |name: &str, role: &str| records.column(&Column::Name(name.to_owned()), role);
        let subject = named("subject", "subject")?;
        let predicate = named("predicate", "predicate")?;
        let object = named("object", "object")?;
        let weight = options.weight.as_ref().map(|name| named(name, "weight")).transpose()?;
        let source = records.optional(&["primary_knowledge_source", "knowledge_source"]);
        let [negated, deprecated] = [NEGATED, DEPRECATED].map(|name| records.optional(&[name]));
        Ok(Self { subject, predicate, object, source, negated, deprecated, weight })
    }

    fn used(self) -> Vec<usize> {
        let maybe = [self.source, self.negated, self.deprecated, self.weight].into_iter().flatten();
        [self.subject, self.predicate, self.object].into_iter().chain(maybe).collect()
    }
}

/// The key of the node that a field names.
fn node_key(record: &Record<'_>, column: usize, name: &'static str) -> Result<String, NoRow> {
    let curie = curie::split(record.field(column).trim()).filter(|_| !record.is_wrapped(column));
    curie
        .map(curie::Curie::key)
        .ok_or_else(|| wrong(record, column, name, "a CURIE (PREFIX:id), without quotes"))
}

fn weight(record: &Record<'_>, column: Option<usize>) -> Result<Option<f64>, NoRow> {
    let Some(column) = column else { return Ok(None) };
    match record.field(column).trim() {
        "" => Ok(None),
        text => match text.parse::<f64>() {
            Ok(weight) if weight.is_finite() => Ok(Some(weight)),
            _ => Err(wrong(record, column, "weight", "a finite number, or nothing")),
        },
    }
}

fn is_flagged(record: &Record<'_>, column: Option<usize>, name: &'static str) -> Result<bool, NoRow> {
    let Some(column) = column else { return Ok(false) };
    match record.field(column).trim().to_ascii_lowercase().as_str() {
        "" | "false" | "0" => Ok(false),
        "true" | "1" => Ok(true),
        _ => Err(wrong(record, column, name, "true or false")),
    }
}

fn wrong(record: &Record<'_>, column: usize, name: &'static str, expected: &str) -> NoRow {
    let (place, found) = (record.place(Some((column, name))), record.field(column));
    NoRow::Unfit(ReadError::text(place, found, expected, "fix the line, or write the file anew with kgx"))
}

/// Lists rows that do not fit among those that are dropped, where there are any.
fn count_unfit(tally: &mut Tally, rows: u64) {
    if rows > 0 {
        tally.drop_all(UNFIT, rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::{Canon, Policy};
    use crate::table::{Direction, SemanticType, read as table};

    const NODES: &str = "xref\tname\tid\tcategory\tsame_as\tsynonym\tdescription\n\
        MESH:D000009\tAspirin\tCHEBI:15365\tbiolink:Drug|biolink:SmallMolecule\tUMLS:C0004057|MESH:D001241\tASA|Acetylsalicylic acid\tA pill.\n\
        \t\tMONDO:1\tbiolink:Disease\t\t\t\n\
        \tHeadache\tUMLS:C0018681\tbiolink:Disease\tMESH:D006261\t\t\n\
        \tunused\tX:1\t\t\t\t\n\
        \tunused\tX:1\t\t\t\t\n";
    const EDGES: &str = "object\tsubject\tpredicate\tprimary_knowledge_source\tscore\tnegated\n\
        UMLS:C0018681\tCHEBI:15365\tbiolink:treats\tinfores:one\t0.5\t\n\
        UMLS:C0018681\tCHEBI:15365\tbiolink:treats\tinfores:two\t\tFalse\n\
        MONDO:1\tCHEBI:15365\tRO:0001\t\t2\tfalse\n\
        MONDO:1\tCHEBI:15365\tbiolink:treats\t\t\ttrue\n\
        NO:1\tCHEBI:15365\tbiolink:treats\t\t\t\n";

    fn options() -> Options {
        Options {
            nodes: Location::default(),
            edges: Location::default(),
            xref: Xref::Ignore,
            obsolete: Obsolete::Drop,
            weight: Some("score".to_owned()),
            inverses: Vec::new(),
            level: Some(0),
            max_untexted: Share::default(),
            max_unfit: Share::default(),
        }
    }

    fn parse(nodes: &str, edges: &str, options: &Options) -> Result<(Stated, Canon), String> {
        let mut builder = Builder::new();
        let files = Files {
            nodes: Input::new(nodes.as_bytes(), "kg/nodes.tsv"),
            edges: Input::new(edges.as_bytes(), "kg/edges.tsv"),
        };
        let stated = read(files, "kgx", options, &mut builder).map_err(|e| e.to_string())?;
        Ok((stated, crate::canon::merge(builder, &Policy::standard()).map_err(|e| e.to_string())?))
    }

    #[test]
    fn edges_become_triples_between_canonical_nodes() {
        let (stated, canon) = parse(NODES, EDGES, &options()).unwrap();
        let graph = canon.graph().unwrap();
        let keys: Vec<&str> = graph.entities().iter().map(|entity| entity.key.as_str()).collect();
        assert_eq!(keys, ["mondo:1", "umls:C0004057", "umls:C0018681"]);
        let texts: Vec<&str> = graph.entities().iter().map(|entity| entity.text.as_str()).collect();
        assert_eq!(texts, ["mondo:1", "Aspirin", "Headache"]);
        let kind = |name: &str| SemanticType { code: None, name: name.to_owned() };
        assert_eq!(graph.entities()[1].types, [kind("Drug"), kind("SmallMolecule")]);
        assert!(graph.entities()[1].same_as.contains(&"chebi:15365".to_owned()));
        let relations: Vec<_> = graph.relations().iter().map(|r| (r.key.as_str(), r.text.as_str())).collect();
        assert_eq!(relations, [("ro:0001", "ro:0001"), ("treats", "treats")]);
        let origins: Vec<_> =
            graph.origins(1).map(|o| (o.vocabulary.as_deref(), o.weight, o.level)).collect();
        assert_eq!(
            origins,
            [(Some("infores:one"), Some(0.5), Some(0)), (Some("infores:two"), None, Some(0))]
        );
        assert!(graph.directions(1).all(|direction| direction == Direction::Stated));
        assert_eq!((stated.without_name, stated.funnel.subjects, stated.funnel.objects), (1, 1, 3));
    }

    #[test]
    fn every_row_is_accounted_for() {
        let (stated, _) = parse(NODES, EDGES, &options()).unwrap();
        let edges = &stated.funnel.triples;
        assert_eq!((edges.read, edges.kept, edges.lines, edges.bytes), (5, 3, 6, EDGES.len() as u64));
        assert_eq!(
            edges.dropped,
            BTreeMap::from([
                ("blank_lines", 0),
                ("deprecated", 0),
                ("negated", 1),
                ("no_node", 1),
                ("repeated_header", 0)
            ])
        );
        let nodes = &stated.funnel.supporting[0];
        assert_eq!((nodes.read, nodes.kept, nodes.bytes), (5, 3, NODES.len() as u64));
        assert_eq!(
            nodes.dropped,
            BTreeMap::from([
                ("blank_lines", 0),
                ("deprecated", 0),
                ("in_no_triple", 1),
                ("repeated", 1),
                ("repeated_header", 0)
            ])
        );
        let relations = BTreeMap::from([("ro:0001".to_owned(), 1), ("treats".to_owned(), 2)]);
        assert_eq!(stated.funnel.relations, relations);
    }

    #[test]
    fn what_is_deprecated_is_left_out_and_counted_unless_it_is_to_be_kept() {
        let nodes = "id\tname\tdeprecated\nA:1\ta\tFalse\nB:1\tb\ttrue\nC:1\tc\t\nD:1\td\ttrue\n";
        let edges = "subject\tpredicate\tobject\tdeprecated\nA:1\tr\tB:1\t\nA:1\tr\tC:1\t\nC:1\tr\tA:1\ttrue\nB:1\tr\tZ:1\t\n";
        let options = Options { weight: None, ..options() };
        let (stated, canon) = parse(nodes, edges, &options).unwrap();
        assert_eq!(canon.graph().unwrap().triples().len(), 1);
        let (rows, of) = (&stated.funnel.triples, &stated.funnel.supporting[0]);
        assert_eq!((rows.read, rows.kept), (4, 1));
        assert_eq!((rows.dropped["deprecated"], rows.dropped["no_node"]), (2, 1));
        assert_eq!((of.read, of.kept, of.dropped["deprecated"], of.dropped["in_no_triple"]), (4, 2, 2, 0));
        let (stated, _) = parse(nodes, edges, &Options { obsolete: Obsolete::Keep, ..options }).unwrap();
        assert_eq!((stated.funnel.triples.kept, stated.funnel.supporting[0].kept), (3, 3));
        let error = parse(&nodes.replace("False", "perhaps"), edges, &tests::options()).unwrap_err();
        assert!(
            error.contains("line 2, column 3 (deprecated): found \"perhaps\", expected true or false"),
            "{error}"
        );
    }

    #[test]
    fn rows_that_do_not_fit_are_left_out_and_counted_where_the_config_allows_some() {
        let nodes = "id\tname\tcategory\nA:1\ta\tx\nB:1\tb\nC:1\tc\tx\nC:1\tother\tx\n";
        let edges = "subject\tpredicate\tobject\nA:1\tr\tB:1\nA:1\tr\tC:1\nA:1\tr\n \tr\tC:1\n";
        let with =
            |share: f64| Options { weight: None, max_unfit: Share::try_from(share).unwrap(), ..options() };
        let (stated, canon) = parse(nodes, edges, &with(0.5)).unwrap();
        assert_eq!(canon.graph().unwrap().triples().len(), 1);
        let (rows, of) = (&stated.funnel.triples, &stated.funnel.supporting[0]);
        assert_eq!((rows.read, rows.kept, rows.dropped["unfit"], rows.dropped["no_node"]), (4, 1, 2, 1));
        assert_eq!((of.read, of.kept, of.dropped["unfit"]), (4, 2, 2));
        let error = parse(nodes, edges, &with(0.4)).unwrap_err();
        assert!(
            error.contains("kg/nodes.tsv: line 3") && error.contains("2 of 4 rows of the file do not fit"),
            "{error}"
        );
    }

    #[test]
    fn names_synonyms_and_descriptions_become_terms() {
        let (_, canon) = parse(NODES, EDGES, &options()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        canon.write(folder.path()).unwrap();
        let mut terms = Vec::new();
        table::terms(folder.path(), |term| {
            terms.push(format!("{} {}", term.kind.name(), term.text));
            Ok(())
        })
        .unwrap();
        terms.sort();
        let expected = [
            "definition A pill.",
            "preferred Aspirin",
            "preferred Headache",
            "synonym ASA",
            "synonym Acetylsalicylic acid",
        ];
        assert_eq!(terms, expected);
    }

    #[test]
    fn xref_says_what_is_the_same_only_if_asked() {
        let nodes = "id\tname\txref\nA:1\ta\tMESH:D000001\nB:1\tb\tMESH:D000002|OTHER:1\n";
        let edges = "subject\tpredicate\tobject\nA:1\tr\tB:1\n";
        let options = Options { weight: None, ..options() };
        let keys = |options: &Options| {
            let graph = parse(nodes, edges, options).unwrap().1.graph().unwrap();
            graph.entities().iter().map(|entity| entity.key.clone()).collect::<Vec<_>>()
        };
        assert_eq!(keys(&options), ["a:1", "b:1"]);
        assert_eq!(keys(&Options { xref: Xref::SameAs, ..options }), ["mesh:D000001", "mesh:D000002"]);
    }

    #[test]
    fn silent_02_nodes_without_a_name_are_refused_unless_another_source_names_them() {
        let (stated, canon) = parse(NODES, EDGES, &options()).unwrap();
        let message = stated.naming.clone().settle(&canon).unwrap_err().to_string();
        assert!(
            message.starts_with("kgx: 1 of 3 entities have no text") && message.contains("\"mondo:1\""),
            "{message}"
        );
        let options = Options { max_untexted: Share::try_from(0.5).unwrap(), ..options() };
        let (stated, canon) = parse(NODES, EDGES, &options).unwrap();
        let told = stated.naming.settle(&canon).unwrap();
        let expected = [
            "kgx: 1 of 3 entities have no text and are called by their ids (\"mondo:1\")",
            "kgx: 1 of 2 relations have no text and are called by their ids (\"ro:0001\")",
        ];
        assert_eq!(told, expected);
        // Or all that is said of it is left out, and counted.
        let mut builder = Builder::new();
        let files = Files {
            nodes: Input::new(NODES.as_bytes(), "kg/nodes.tsv"),
            edges: Input::new(EDGES.as_bytes(), "kg/edges.tsv"),
        };
        let stated = read(files, "kgx", &tests::options(), &mut builder).unwrap();
        stated.naming.leave_out(&mut builder);
        let policy = Policy { unnamed: crate::canon::Unnamed::Drop, ..Policy::standard() };
        let canon = crate::canon::merge(builder, &policy).unwrap();
        let told = stated.naming.settle(&canon).unwrap();
        assert_eq!(
            told,
            [
                "kgx: 1 of 3 entities have no text, and their statements are dropped (\"mondo:1\")",
                "kgx: 1 of 2 relations have no text, and their statements are dropped (\"ro:0001\")"
            ]
        );
        let counted = &canon.report().sources["kgx"];
        assert_eq!((counted.rows, counted.unnamed, canon.report().triples), (3, 1, 1));
        assert!(canon.graph().unwrap().entities().iter().all(|entity| entity.key != "mondo:1"));
        // One that is another source's thing is called as that is.
        let (stated, canon) = parse(
            &NODES.replace("MONDO:1\tbiolink:Disease\t", "MONDO:1\tbiolink:Disease\tUMLS:C0018681"),
            &EDGES.replace("RO:0001", "biolink:affects"),
            &tests::options(),
        )
        .unwrap();
        assert!(stated.naming.settle(&canon).unwrap().is_empty());
    }

    #[test]
    fn bad_files_are_refused_with_line_column_and_remedy() {
        let cases = [
            (
                NODES.replace("MONDO:1", "MONDO"),
                EDGES.to_owned(),
                "kg/nodes.tsv: line 3, column 3 (id): found \"MONDO\", expected a CURIE",
            ),
            (
                NODES.replace("\tid\t", "\tkey\t"),
                EDGES.to_owned(),
                "kg/nodes.tsv: line 1: found \"xref name key",
            ),
            (
                format!("{NODES}\tother\tX:1\t\t\t\t\n"),
                EDGES.to_owned(),
                "line 7, column 3 (id): the node x:1 stands in line 5 with other fields",
            ),
            (
                NODES.to_owned(),
                EDGES.replace("NO:1", ""),
                "kg/edges.tsv: line 6, column 1 (object): found \"\", expected a CURIE",
            ),
            (
                NODES.to_owned(),
                EDGES.replace("RO:0001", " "),
                "line 4, column 3 (predicate): found \" \", expected a predicate",
            ),
            (
                NODES.to_owned(),
                EDGES.replace("0.5", "inf"),
                "line 2, column 5 (weight): found \"inf\", expected a finite number",
            ),
            (
                NODES.to_owned(),
                EDGES.replace("\ttrue", "\tmaybe"),
                "line 5, column 6 (negated): found \"maybe\", expected true or false",
            ),
            (NODES.to_owned(), EDGES.replace("score", "strength"), "kg/edges.tsv: line 1: found"),
            (NODES.to_owned(), EDGES[..EDGES.len() - 3].to_owned(), "line 6: 4 columns, expected 6"),
            (
                NODES.to_owned(),
                EDGES.replace("NO:1", "\"NO:1\""),
                "line 6, column 1 (object): found \"\\\"NO:1\\\"\", expected a CURIE (PREFIX:id), without quotes",
            ),
            (
                NODES.to_owned(),
                String::new(),
                "kg/edges.tsv: the file is empty, expected a first line with the names of its columns, subject among them",
            ),
        ];
        for (nodes, edges, expected) in cases {
            let message = parse(&nodes, &edges, &options()).unwrap_err();
            assert!(message.contains(expected), "{message}\nlacks {expected}");
        }
        let message = Options { level: Some(11), ..options() }.check("kgx").unwrap_err().to_string();
        assert_eq!(message, "level is 11, expected at most 9");
    }

    /// The nodes and edges as JSON lines, as kgx writes them.
    fn lines() -> [String; 2] {
        let list = |text: &str| -> serde_json::Value { text.split('|').collect::<Vec<_>>().into() };
        let records = |table: &str, lists: &[&str], key: &str| {
            let mut rows = table.lines().map(|line| line.split('\t').collect::<Vec<_>>());
            let names = rows.next().unwrap();
            let records: String = rows
                .map(|row| {
                    let mut record = serde_json::Map::new();
                    for (name, value) in names.iter().zip(row).filter(|(_, value)| !value.is_empty()) {
                        let value = match (lists.contains(name), value.to_lowercase().as_str()) {
                            (true, _) => list(value),
                            (false, "true" | "false") => (value.to_lowercase() == "true").into(),
                            _ => value.into(),
                        };
                        record.insert((*name).to_owned(), value);
                    }
                    record.insert(key.to_owned(), json!({"any": 1}));
                    serde_json::Value::Object(record).to_string() + "\n"
                })
                .collect();
            records
        };
        [
            records(NODES, &["category", "synonym", "same_as", "xref"], "provided_by"),
            records(EDGES, &[], "id"),
        ]
    }

    fn parse_named(names: [&str; 2], texts: [&str; 2]) -> Result<(Stated, Canon), String> {
        let mut builder = Builder::new();
        let [nodes, edges] = [0, 1].map(|i| Input::new(texts[i].as_bytes(), names[i]));
        let stated =
            read(Files { nodes, edges }, "kgx", &options(), &mut builder).map_err(|e| e.to_string())?;
        Ok((stated, crate::canon::merge(builder, &Policy::standard()).map_err(|e| e.to_string())?))
    }

    #[test]
    fn json_lines_and_a_document_are_what_the_tables_are() {
        let files = |canon: &Canon| {
            let folder = tempfile::tempdir().unwrap();
            canon.write(folder.path()).unwrap();
            let mut names: Vec<_> =
                std::fs::read_dir(folder.path()).unwrap().map(|f| f.unwrap().path()).collect();
            names.sort();
            names.iter().map(|name| std::fs::read(name).unwrap()).collect::<Vec<_>>()
        };
        let (tables, canon) = parse(NODES, EDGES, &options()).unwrap();
        let expected = files(&canon);
        let [nodes, edges] = lines();
        let list = |lines: &str| lines.trim_end().replace('\n', ",");
        let document = format!("\u{feff}{{\"nodes\": [{}], \"edges\": [{}]}}", list(&nodes), list(&edges));
        for (names, texts) in [
            (["nodes.jsonl", "edges.jsonl"], [nodes.as_str(), edges.as_str()]),
            (["graph.json"; 2], [document.as_str(); 2]),
        ] {
            let (stated, canon) = parse_named(names, texts).unwrap();
            assert!(files(&canon) == expected, "{names:?}");
            let (found, of) = (&stated.funnel.triples, &tables.funnel.triples);
            assert_eq!(
                (found.read, found.kept, found.dropped["negated"]),
                (of.read, of.kept, of.dropped["negated"])
            );
            assert_eq!(
                (found.bytes, &found.columns_not_used[..]),
                (texts[1].len() as u64, &["id".to_owned()][..])
            );
            assert_eq!(
                stated.funnel.supporting[0].columns_not_used,
                ["provided_by", "xref"].map(str::to_owned)
            );
        }
    }

    #[test]
    fn a_record_that_is_none_is_named() {
        let [nodes, edges] = lines();
        let broken = |text: &str, from: &str, to: &str| text.replacen(from, to, 1);
        for (nodes, edges, found) in [
            (
                broken(&nodes, "\"Aspirin\"", "{}"),
                edges.clone(),
                "nodes.jsonl: line 1 (name): found an object, expected a text",
            ),
            (
                broken(&nodes, "MONDO:1", "MONDO"),
                edges.clone(),
                "nodes.jsonl: line 2 (id): found \"MONDO\", expected a CURIE",
            ),
            (nodes.clone(), broken(&edges, "{", "["), "edges.jsonl: line 1: "),
            (
                nodes.clone(),
                broken(&edges, "\"subject\"", "\"subjekt\""),
                "edges.jsonl: line 1 (subject): found \"\"",
            ),
            (nodes.clone(), broken(&edges, "0.5", "much"), "edges.jsonl: line 1 (weight): found \"much\""),
        ] {
            let error = parse_named(["nodes.jsonl", "edges.jsonl"], [&nodes, &edges]).unwrap_err();
            assert!(error.contains(found), "{found}: {error}");
        }
        let error =
            parse_named(["nodes.jsonl", "edges.jsonl"], [&nodes, &edges.replace("\"score\"", "\"scroe\"")])
                .unwrap_err();
        assert!(error.contains("edges.jsonl: no record has the key \"score\""), "{error}");
        let error =
            parse_named(["nodes.jsonl", "edges.jsonl"], [&nodes, "{\"source\": \"A:1\"}\n"]).unwrap_err();
        assert!(
            error.contains("edges.jsonl: line 1: the record has none of the keys that are read"),
            "{error}"
        );
        let twice = nodes.lines().next().unwrap().replace("Aspirin", "Other") + "\n";
        let error =
            parse_named(["nodes.jsonl", "edges.jsonl"], [&format!("{nodes}{twice}"), &edges]).unwrap_err();
        assert!(
            error.contains(
                "nodes.jsonl: line 6 (id): the node chebi:15365 stands in line 1 with other fields"
            ),
            "{error}"
        );
        let error = parse_named(["graph.json"; 2], ["{\"nodes\": []}"; 2]).unwrap_err();
        assert!(error.contains("graph.json: the document has no list \"edges\""), "{error}");
        let error = parse_named(["graph.json"; 2], ["{\"nodes\": [3], \"edges\": []}"; 2]).unwrap_err();
        assert!(error.contains("graph.json: line 1, column 13"), "{error}");
    }
}
