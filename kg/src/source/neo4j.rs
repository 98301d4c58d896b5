//! Graphs as Neo4j takes and gives them in CSV: files for `neo4j-admin database import`, and exports by `apoc.export.csv`.
//!
//! | column | what it is |
//! |---|---|
//! | `:ID`, `code:ID(Disease)`, `_id` | a node's id, within its id space |
//! | `:LABEL`, `_labels` | its labels, which become types |
//! | `:START_ID`, `:END_ID`, `_start`, `_end` | the ends of a relationship, in their id spaces |
//! | `:TYPE`, `_type` | its relation |
//! | `name`, `name:string`, ... | a property: those that are asked for are name, synonyms, definition and key of a node |
//!
//! Nodes and relationships may stand in one file, as in exports. Files are read twice: relationships may come before their nodes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use base::funnel::Tally;
use base::read::ReadError;
use base::setting::InvalidSetting;
use base::share::Share;
use serde::{Deserialize, Serialize};

use super::curie::{self, Curie};
use super::files::{Files, Location, Reopened, Slot};
use super::named::{Used, rows};
use super::ontology::{Link, Listed, NO_NODE, Ontology, Scope, Synonym, Taken, Term};
use super::separated::{FirstLine, NoRow, Quotes, Record, Separator, Shape};
use super::unfit::{UNFIT, Unfit};
use super::{Source, SourceReport, check_level, check_name};
use crate::table::{Builder, SemanticType};

/// A graph in Neo4j's CSV: where it lies and what is taken of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The files, each with the names of its columns in its first line; they may be packed (`.gz`). A header in a file of its own goes in front of
    /// its rows first (`cat`).
    #[serde(skip_serializing)]
    pub files: Vec<Location>,
    /// The character between columns; fields may stand in double quotes.
    ///
    /// Source: Neo4j's operations manual, `neo4j-admin database import`: its default.
    #[serde(default = "Options::comma")]
    pub separator: Separator,
    /// The property that is a node's name.
    ///
    /// Source: ours: what most graphs call it.
    #[serde(default = "Options::default_name")]
    pub name: String,
    /// Properties that are synonyms; of a list, each value is one.
    #[serde(default)]
    pub synonyms: Vec<String>,
    /// The property that is a node's definition.
    pub definition: Option<String>,
    /// The property with an id that others know, such as `DOID:4`. Without it, or where a node has none, it is the node's own id.
    pub key: Option<String>,
    /// Namespaces of keys by the prefixes of ids: `{ DOID = "doid" }`. An id with another prefix, or none, belongs to this source alone.
    #[serde(default)]
    pub namespaces: BTreeMap<String, String>,
    /// The relations to keep, as `:TYPE` has them. Without it, all of them.
    pub relations: Option<BTreeSet<String>>,
    /// Pairs of relations that are inverses of each other. A relation paired with itself is symmetric.
    ///
    /// Source: ours: because nothing in a relationship says which relations are inverse.
    #[serde(default)]
    pub inverses: Vec<[String; 2]>,
    /// Licence level of the whole source, texts and triples: 0 to 9, as the source restriction levels of UMLS. Without it, the source has
    /// no level.
    pub level: Option<u8>,
    /// The share of nodes in triples that may have no name and then go by their keys, 0 to 1.
    ///
    /// Source: ours: because a missing name is more often another property than a nameless node.
    #[serde(default)]
    pub max_untexted: Share,
    /// The share of a file's rows that may be dropped as malformed (another width, no id or type, a node that is there already), 0 to 1. With 0 the first such row
    /// is an error.
    ///
    /// Source: ours: because a malformed row more often means another separator than a slip.
    #[serde(default)]
    pub max_unfit: Share,
}

impl Options {
    fn comma() -> Separator {
        Separator::Comma
    }

    fn default_name() -> String {
        "name".to_owned()
    }

    /// The properties that are read.
    fn properties(&self) -> impl Iterator<Item = &str> {
        let one = [Some(&self.name), self.definition.as_ref(), self.key.as_ref()].into_iter().flatten();
        one.chain(&self.synonyms).map(String::as_str)
    }

    fn taken(&self) -> Taken<'_> {
        Taken {
            relations: self.relations.as_ref(),
            level: self.level,
            max_untexted: self.max_untexted,
            relation_key: str::to_owned,
            ..Taken::default()
        }
    }
}

impl Source for Options {
    fn check(&self, name: &str) -> Result<(), InvalidSetting> {
        check_name(name)?;
        for (key, empty) in [
            ("files", self.files.is_empty()),
            ("name", self.name.trim().is_empty()),
            ("relations", self.relations.as_ref().is_some_and(BTreeSet::is_empty)),
        ] {
            if empty {
                return Err(InvalidSetting::new(key, "empty", "one at least"));
            }
        }
        check_level("level", self.level)
    }

    fn slots(&self) -> Vec<Slot<'_>> {
        Slot::list("files", &self.files).collect()
    }

    fn inverses(&self) -> &[[String; 2]] {
        &self.inverses
    }

    fn read(&self, name: &str, files: &Files<'_>, builder: &mut Builder) -> Result<SourceReport, ReadError> {
        let files = files.list("files", self.files.len())?;
        read(&files, name, self, builder)
    }
}

/// What to do about a row that is none.
const REMEDY: &str = "fix the row, or export the graph anew";

/// Where a file's columns are.
#[derive(Debug, Default)]
struct Columns {
    id: Option<End>,
    labels: Option<usize>,
    start: Option<End>,
    end: Option<End>,
    kind: Option<usize>,
    /// Properties that are asked for, by their names.
    properties: BTreeMap<String, usize>,
}

/// A column of ids.
#[derive(Debug, Clone)]
struct End {
    column: usize,
    /// The id space, "" where there is none.
    space: String,
}

impl Columns {
    /// Finds them by the names in the first line.
    fn find(names: &[String], options: &Options, file: &Reopened<'_>) -> Result<Self, ReadError> {
        let mut columns = Self::default();
        let asked: BTreeSet<&str> = options.properties().collect();
        for (column, name) in names.iter().enumerate() {
            let (property, kind) = match name.split_once(':') {
                Some((property, kind)) => (property.trim(), kind.trim()),
                None => (name.as_str(), ""),
            };
            let (kind, space) = match kind.split_once('(') {
                Some((kind, space)) => (kind, space.trim_end_matches(')')),
                None => (kind, ""),
            };
            let end = || Some(End { column, space: space.to_owned() });
            match (property, kind) {
                (_, "ID") | ("_id", "") => columns.id = end(),
                (_, "LABEL") | ("_labels", "") => columns.labels = Some(column),
                (_, "START_ID") | ("_start", "") => columns.start = end(),
                (_, "END_ID") | ("_end", "") => columns.end = end(),
                (_, "TYPE") | ("_type", "") => columns.kind = Some(column),
                _ => {}
            }
            if asked.contains(property) && !property.is_empty() && kind != "IGNORE" {
                columns.properties.insert(property.to_owned(), column);
            }
        }
        let relationships = [columns.start.is_some(), columns.end.is_some(), columns.kind.is_some()];
        let is_whole = relationships == [true; 3] || (relationships == [false; 3] && columns.id.is_some());
        if !is_whole {
            let expected = "columns :ID of nodes, or :START_ID, :END_ID and :TYPE of relationships (or _id, _start, _end and _type)";
            return Err(ReadError::text(&file.label, &names.join(","), expected, REMEDY));
        }
        Ok(columns)
    }

    fn property<'r>(&self, record: &Record<'r>, name: &str) -> Option<&'r str> {
        let value = record.field(*self.properties.get(name)?).trim();
        Some(value).filter(|value| !value.is_empty())
    }

    /// Whether a row is a relationship: in a file that has nodes as well, one with an end or a type.
    fn is_relationship(&self, record: &Record<'_>) -> bool {
        let is_there = |column: usize| !record.field(column).trim().is_empty();
        let ends = [&self.start, &self.end].into_iter().flatten().map(|end| end.column);
        self.id.is_none() || ends.chain(self.kind).any(is_there)
    }
}

impl Used for Columns {
    fn used(&self) -> Vec<usize> {
        let ends = [&self.id, &self.start, &self.end].into_iter().flatten().map(|end| end.column);
        let plain = [self.labels, self.kind].into_iter().flatten();
        ends.chain(plain).chain(self.properties.values().copied()).collect()
    }
}

/// Hands on each row of a file, of which so many did not fit when it was read before.
fn each(
    file: &Reopened<'_>,
    options: &Options,
    before: u64,
    take: impl FnMut(&Columns, &Record<'_>) -> Result<(), NoRow>,
) -> Result<Tally, ReadError> {
    let (separator, quotes, first_line) = (options.separator, Some(Quotes::Double), FirstLine::Names);
    let shape = Shape { separator, quotes, first_line };
    let unfit = Unfit::after(options.max_unfit, before);
    rows(file, shape, unfit, |records| Columns::find(&records.unused(&[]), options, file), take)
}

/// Reads the files into `builder`, as the source `name`.
///
/// # Errors
/// When a file is damaged or of another kind; `builder` then holds a part of it.
pub fn read(
    files: &[Reopened<'_>],
    name: &str,
    options: &Options,
    builder: &mut Builder,
) -> Result<SourceReport, ReadError> {
    for [one, other] in &options.inverses {
        builder.declare_inverse(one, other);
    }
    let label = files.first().map(|file| file.label.clone()).unwrap_or_default();
    let listed = Listed { name: "nodes", reasons: &[], stranger: NO_NODE };
    let mut ontology = Ontology::new(name, options.taken(), &label, listed, builder);
    // Keys by id spaces and ids.
    let mut keys: HashMap<String, String> = HashMap::new();
    let mut no_nodes = Vec::new();
    for file in files {
        let mut no_node = 0;
        each(file, options, 0, |columns, record| {
            let (Some(id), false) = (&columns.id, columns.is_relationship(record)) else { return Ok(()) };
            let node = within(id, record).and_then(|own| {
                let place = record.place(Some((id.column, "id")));
                let term = term(name, options, columns, record, &own);
                if keys.contains_key(&own) {
                    let twice = ReadError::text(place, record.field(id.column), "an id once", REMEDY);
                    return Err(NoRow::Unfit(twice));
                }
                // What refers to it by its id means the one that has its key.
                keys.insert(own, term.key.clone());
                let line = place.line;
                ontology.term(term, line).map_err(|before| {
                    let found = format!("the node of line {before} has the same key");
                    NoRow::Unfit(ReadError::new(place, found, "a key for each node", REMEDY))
                })
            });
            no_node += u64::from(node.is_err());
            node
        })?;
        (0..no_node).for_each(|_| ontology.leave_out(UNFIT));
        no_nodes.push(no_node);
    }
    ontology.settle();
    let mut all = Tally::new(&label, &[]);
    for (file, no_node) in files.iter().zip(no_nodes) {
        // Rows of another width are no nodes and no relationships: they are counted with these.
        let tally = each(file, options, no_node, |columns, record| {
            let (Some(start), Some(end), Some(kind)) = (&columns.start, &columns.end, columns.kind) else {
                return Ok(());
            };
            if !columns.is_relationship(record) {
                return Ok(());
            }
            let relation = record.field(kind).trim();
            if relation.is_empty() {
                let place = record.place(Some((kind, "type")));
                return Err(NoRow::Unfit(ReadError::text(place, relation, "a relation", REMEDY)));
            }
            let [subject, object] = [within(start, record)?, within(end, record)?];
            let [subject, object] = [subject, object]
                .map(|own| keys.get(&own).cloned().unwrap_or_else(|| format!("{name}:{own}")));
            Ok(ontology.row(&subject, &Link { relation: relation.to_owned(), object })?)
        })?;
        all.add(&tally);
    }
    ontology.leave_out_rows(&all);
    let mut report = ontology.finish(all.lines, all.bytes)?;
    report.funnel.triples.columns_not_used = all.columns_not_used;
    Ok(report)
}

/// An id within its space.
fn within(end: &End, record: &Record<'_>) -> Result<String, NoRow> {
    let id = record.field(end.column).trim();
    if id.is_empty() {
        let place = record.place(Some((end.column, "id")));
        return Err(NoRow::Unfit(ReadError::text(place, id, "an id", REMEDY)));
    }
    Ok(if end.space.is_empty() { id.to_owned() } else { format!("{}:{id}", end.space) })
}

fn term(name: &str, options: &Options, columns: &Columns, record: &Record<'_>, own: &str) -> Term {
    let id = columns.id.as_ref().map(|id| record.field(id.column).trim()).unwrap_or_default();
    let known = options.key.as_ref().and_then(|key| columns.property(record, key)).unwrap_or(id);
    let key = match curie::split(known) {
        Some(Curie { prefix, id }) if options.namespaces.contains_key(prefix) => {
            Curie { prefix: &options.namespaces[prefix], id }.key()
        }
        _ => format!("{name}:{own}"),
    };
    let labels = columns.labels.map(|column| record.field(column)).unwrap_or_default();
    let labels: BTreeSet<&str> =
        labels.split([';', ':']).map(str::trim).filter(|label| !label.is_empty()).collect();
    let text = columns.property(record, &options.name);
    let synonyms = options.synonyms.iter().filter_map(|property| columns.property(record, property));
    let synonyms = synonyms.flat_map(listed).filter(|synonym| Some(synonym.as_str()) != text);
    let definition = options.definition.as_ref().and_then(|property| columns.property(record, property));
    Term {
        key,
        name: text.map(str::to_owned),
        definition: definition.map(str::to_owned),
        types: labels.into_iter().map(|name| SemanticType { code: None, name: name.to_owned() }).collect(),
        synonyms: synonyms.map(|text| Synonym { text, scope: Scope::Exact }).collect(),
        ..Term::default()
    }
}

/// The values of a property: a list stands between `;`, or as JSON in exports.
fn listed(value: &str) -> Vec<String> {
    match serde_json::from_str::<Vec<String>>(value) {
        Ok(list) => list,
        Err(_) => {
            value.split(';').map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::{Canon, Policy, merge};
    use crate::source::testing::{self, reopened};
    use crate::table::Entity;

    fn parse(texts: &[&str], more: &serde_json::Value) -> Result<(SourceReport, Canon), String> {
        let mut options = serde_json::json!({"files": ["a"], "synonyms": ["aliases"]});
        options.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let options: Options = serde_json::from_value(options).map_err(|e| e.to_string())?;
        let files = texts.iter().enumerate();
        let files: Vec<_> = files.map(|(number, text)| reopened(&format!("{number}.csv"), text)).collect();
        let mut builder = Builder::new();
        let report = read(&files, "graph", &options, &mut builder).map_err(|e| e.to_string())?;
        Ok((report, merge(builder, &Policy::standard()).map_err(|e| e.to_string())?))
    }

    fn triples(canon: &Canon) -> Vec<String> {
        let end = |entity: &Entity| format!("{}={}", entity.key, entity.text);
        testing::triples(canon, end, |relation| relation.key.clone())
    }

    const DISEASES: &str = "code:ID(Disease),name:string,aliases:string[],:LABEL,score:float\n\
        DOID:4,disease,illness;sickness,Disease;Thing,1\n7,\"pain, low\",,Disease,2\n";
    const DRUGS: &str = ":ID(Drug),name,:LABEL\n7,Aspirin,Drug\n";
    const ROWS: &str = ":START_ID(Drug),:END_ID(Disease),:TYPE\n7,7,TREATS\n7,DOID:4,TREATS\n7,8,TREATS\n\n";

    #[test]
    fn files_for_the_import_are_read_whatever_their_order() {
        let namespaces = serde_json::json!({"namespaces": {"DOID": "doid"}});
        let (report, canon) = parse(&[ROWS, DISEASES, DRUGS], &namespaces).unwrap();
        let expected = [
            "graph:Drug:7=Aspirin TREATS doid:4=disease",
            "graph:Drug:7=Aspirin TREATS graph:Disease:7=pain, low",
        ];
        assert_eq!(triples(&canon), expected);
        let rows = &report.funnel.triples;
        assert_eq!((rows.read, rows.kept), (4, 2));
        assert_eq!((rows.dropped["no_node"], rows.dropped["blank_lines"]), (1, 1));
        assert_eq!(
            (rows.bytes, &rows.columns_not_used[..]),
            (
                [ROWS, DISEASES, DRUGS].map(str::len).iter().sum::<usize>() as u64,
                &["score:float".to_owned()][..]
            )
        );
        let graph = canon.graph().unwrap();
        let disease = graph.entities().iter().find(|entity| entity.key == "doid:4").unwrap();
        let kinds: Vec<&str> = disease.types.iter().map(|kind| kind.name.as_str()).collect();
        assert_eq!(kinds, ["Disease", "Thing"]);
        assert_eq!(report.funnel.supporting[1].kept, 5, "three names, two synonyms");
    }

    #[test]
    fn an_export_has_nodes_and_relationships_in_one_file() {
        let export = "\"_id\",\"_labels\",\"name\",\"aliases\",\"xref\",\"_start\",\"_end\",\"_type\",\"since\"\n\
            \"0\",\":Disease\",\"Fever\",\"[\"\"Pyrexia\"\",\"\"High; temperature\"\"]\",\"MESH:D005334\",,,,\n\
            \"1\",\":Sign:Thing\",\"Sign\",\"\",\"\",,,,\n\
            ,,,,,\"0\",\"1\",\"IS_A\",\"2020\"\n";
        let more = serde_json::json!({"key": "xref", "namespaces": {"MESH": "mesh"}});
        let (report, canon) = parse(&[export], &more).unwrap();
        assert_eq!(triples(&canon), ["mesh:D005334=Fever IS_A graph:1=Sign"]);
        assert_eq!(report.funnel.supporting[1].kept, 4);
    }

    #[test]
    fn what_is_no_such_file_is_refused_with_its_place() {
        let none = serde_json::json!({});
        for (files, found) in [
            (
                ["id,name\n1,x\n".to_owned(), ROWS.to_owned()],
                "0.csv: found \"id,name\", expected columns :ID",
            ),
            ([DISEASES.to_owned(), ROWS.replace(":TYPE", "type")], "1.csv: found"),
            (
                [format!("{DISEASES}7,again,,,\n"), ROWS.to_owned()],
                "0.csv: line 4, column 1 (id): found \"7\", expected an id once",
            ),
            ([DISEASES.to_owned(), ROWS.replace("7,7,TREATS", "7,7, ")], "1.csv: line 2, column 3 (type)"),
            ([DISEASES.to_owned(), ROWS.replace("7,7,TREATS", "7,,TREATS")], "1.csv: line 2, column 2 (id)"),
        ] {
            let error = parse(&[&files[0], &files[1]], &none).unwrap_err();
            assert!(error.contains(found), "{found}: {error}");
        }
    }
    #[test]
    fn rows_that_do_not_fit_are_dropped_and_counted_where_the_config_allows_some() {
        let nodes = format!("{DISEASES}7,again,,,\n9,short\n");
        let rows = format!("{ROWS}7,,TREATS\n7,7, \n,7,TREATS\n");
        let (report, canon) = parse(&[&nodes, &rows, DRUGS], &serde_json::json!({"max_unfit": 0.5})).unwrap();
        assert_eq!(triples(&canon).len(), 2);
        let of_rows = &report.funnel.triples;
        // The short row may be a node or none: it is counted with the relationships.
        assert_eq!((of_rows.read, of_rows.kept, of_rows.dropped["unfit"]), (8, 2, 4));
        assert_eq!(report.funnel.supporting[0].dropped["unfit"], 1, "{:?}", report.funnel.supporting);
        let error = parse(&[&nodes, &rows, DRUGS], &serde_json::json!({"max_unfit": 0.4})).unwrap_err();
        assert!(
            error.contains("0.csv: line 4") && error.contains("2 of 4 rows of the file do not fit"),
            "{error}"
        );
    }
    #[test]
    fn rows_of_an_export_that_do_not_fit_are_counted_together_and_a_second_node_of_a_key_is_the_first() {
        let export = "_id,_labels,name,xref,_start,_end,_type\n\
            0,:Sign,Fever,MESH:D1,,,\n1,:Sign,Again,MESH:D1,,,\n2,:Sign,Pain,,,,\n\
            ,,,,1,2,IS_A\n,,,,,2,IS_A\n,,,,2,0,\n";
        let with = |share: f64| serde_json::json!({"key": "xref", "namespaces": {"MESH": "mesh"}, "max_unfit": share});
        let (report, canon) = parse(&[export], &with(0.5)).unwrap();
        assert_eq!(triples(&canon), ["mesh:D1=Fever IS_A graph:2=Pain"]);
        let (rows, nodes) = (&report.funnel.triples, &report.funnel.supporting[0]);
        assert_eq!((rows.read, rows.kept, rows.dropped["unfit"]), (3, 1, 2));
        assert_eq!((nodes.kept, nodes.dropped["unfit"]), (2, 1));
        let error = parse(&[export], &with(0.4)).unwrap_err();
        assert!(error.contains("3 of 6 rows of the file do not fit"), "{error}");
    }
}
