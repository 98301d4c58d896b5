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
//! Nodes and relationships may stand in one file, as in exports; a header may have a file of its own, and labels and types may be given for a file, as
//! `neo4j-admin` takes them. Files are read twice: relationships may come before their nodes.

mod node;
mod options;
mod table;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use base::funnel::Tally;
use base::read::ReadError;
use base::setting::InvalidSetting;

pub use self::options::{Group, Options};
pub use self::table::Table;
use super::active::{ACTIVE, Activity, INACTIVE, Rule};
use super::curie;
use super::files::{Files, Slot, together};
use super::named::{Used, rows};
use super::ontology::{Link, Listed, NO_NODE, Ontology, Term};
use super::separated::{FirstLine, NoRow, Quotes, Record, Records, Shape};
use super::unfit::{UNFIT, Unfit};
use super::{Inactive, Source, SourceReport, check_level, check_name};
use crate::table::{Builder, SemanticType};
use crate::unmet;

impl Source for Options {
    fn check(&self, name: &str) -> Result<(), InvalidSetting> {
        check_name(name)?;
        for (key, empty) in [
            ("files", self.files.is_empty() && self.groups.is_empty()),
            ("name", self.name.trim().is_empty()),
            ("active", self.active.as_ref().is_some_and(|name| name.trim().is_empty())),
            ("relations", self.relations.as_ref().is_some_and(BTreeSet::is_empty)),
        ] {
            if empty {
                return Err(InvalidSetting::new(key, "empty", "one at least"));
            }
        }
        for (number, Group { files, labels, kind }) in self.groups.iter().enumerate() {
            let is_blank = |text: &String| text.trim().is_empty();
            if let Some(several) = labels.iter().find(|label| label.contains(':')) {
                let key = format!("groups.{number}.labels");
                return Err(InvalidSetting::new(
                    key,
                    format!("{several:?}"),
                    "one label each, without \":\"",
                ));
            }
            for (key, empty) in [
                ("files", files.is_empty()),
                ("labels", labels.iter().any(is_blank)),
                ("type", kind.as_ref().is_some_and(is_blank)),
            ] {
                if empty {
                    return Err(InvalidSetting::new(
                        format!("groups.{number}.{key}"),
                        "empty",
                        "one at least",
                    ));
                }
            }
        }
        if self.array_delimiter == self.separator {
            let found = format!("{:?}, which stands between columns", self.separator.character());
            return Err(InvalidSetting::new("array_delimiter", found, "another character than `separator`"));
        }
        check_level("level", self.level)
    }

    fn slots(&self) -> Vec<Slot<'_>> {
        let groups = self.groups.iter().enumerate();
        let grouped = groups.flat_map(|(number, of)| {
            Slot::list(&format!("groups.{number}.files"), &of.files).collect::<Vec<_>>()
        });
        Slot::list("files", &self.files).chain(grouped).collect()
    }

    fn inverses(&self) -> &[[String; 2]] {
        &self.inverses
    }

    fn read(&self, name: &str, files: &Files<'_>, builder: &mut Builder) -> Result<SourceReport, ReadError> {
        let mut tables: Vec<Table<'_>> =
            files.list("files", self.files.len())?.into_iter().map(Table::of_file).collect();
        for (number, group) in self.groups.iter().enumerate() {
            tables.push(Table::of_group(
                files.list(&format!("groups.{number}.files"), group.files.len())?,
                group,
            ));
        }
        read(&tables, name, self, builder)
    }
}

/// What to do about a row that is none.
const REMEDY: &str = "fix the row, or export the graph anew";

/// Where a file's columns are.
#[derive(Debug)]
struct Columns {
    id: Option<End>,
    labels: Option<usize>,
    start: Option<End>,
    end: Option<End>,
    kind: Option<usize>,
    /// Properties that are asked for, by their names.
    properties: BTreeMap<String, usize>,
    active: Activity,
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
    fn find(names: &[String], options: &Options, table: &Table<'_>) -> Result<Self, ReadError> {
        let mut columns = Self {
            id: None,
            labels: None,
            start: None,
            end: None,
            kind: None,
            properties: BTreeMap::new(),
            active: Activity::of_property(None, Rule::Keep),
        };
        let mut active = None;
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
            let is_active = |asked: &String| asked == property;
            if options.active.as_ref().map_or(ACTIVE.contains(&property), is_active) && kind != "IGNORE" {
                active = Some(column);
            }
            if asked.contains(property) && !property.is_empty() && kind != "IGNORE" {
                columns.properties.insert(property.to_owned(), column);
            }
        }
        columns.active = Activity::of_property(active, Rule::new(options.active.as_ref(), options.inactive));
        let has_type = columns.kind.is_some() || (table.kind.is_some() && columns.start.is_some());
        let relationships = [columns.start.is_some(), columns.end.is_some(), has_type];
        let is_whole = relationships == [true; 3] || (relationships == [false; 3] && columns.id.is_some());
        if !is_whole {
            let expected = "columns :ID of nodes, or :START_ID, :END_ID and :TYPE of relationships (or _id, _start, _end and _type)";
            let between = options.separator.character();
            let remedy = format!(
                "export the graph anew, say what stands between columns (separator) if it is not {between:?}, or give a header in a file of its own, and a type that is in no column, by `groups`"
            );
            let found = names.join(&between.to_string());
            return Err(ReadError::text(&table.file.label, &found, expected, remedy));
        }
        table.check(&columns)?;
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
        let plain = [self.labels, self.kind, self.active.column()].into_iter().flatten();
        ends.chain(plain).chain(self.properties.values().copied()).collect()
    }
}

/// Hands on each row of a file, of which so many did not fit when it was read before.
fn each(
    table: &Table<'_>,
    options: &Options,
    before: u64,
    take: impl FnMut(&Columns, &Record<'_>) -> Result<(), NoRow>,
) -> Result<Tally, ReadError> {
    let (separator, quotes, first_line) = (options.separator, Some(Quotes::Double), FirstLine::Names);
    let shape = Shape { separator, quotes, first_line };
    let unfit = Unfit::after(options.max_unfit, before);
    let find = |records: &mut Records<'_, _>| Columns::find(&records.unused(&[]), options, table);
    rows(&table.file, shape, unfit, find, take).map_err(|error| table.located(error))
}

/// A graph while its files are read: first for nodes, then for relationships.
struct Reading<'r, 'o, 'b> {
    name: &'r str,
    options: &'r Options,
    ontology: Ontology<'o, 'b>,
    /// Keys by id spaces and ids.
    keys: HashMap<String, String>,
    /// Files with a property that says which of their rows are valid.
    with_validity: u64,
    /// Prefixes that `namespaces` names and no node has had so far, and properties that are asked for.
    unmet: BTreeSet<&'r str>,
    without: BTreeSet<&'r str>,
}

impl<'r, 'o, 'b> Reading<'r, 'o, 'b> {
    fn new(name: &'r str, options: &'r Options, ontology: Ontology<'o, 'b>) -> Self {
        let unmet = options.namespaces.keys().map(String::as_str).collect();
        let without = options.properties().collect();
        Self { name, options, ontology, keys: HashMap::new(), with_validity: 0, unmet, without }
    }

    /// What is told of settings that speak of what no node has.
    fn told(&self) -> Vec<String> {
        let Options { key, definition, synonyms, .. } = self.options;
        let one = [("key", key), ("definition", definition)].map(|(key, of)| (key, of.iter()));
        let asked = one.into_iter().flat_map(|(key, of)| of.map(move |of| (key, of)));
        let asked = asked.chain(synonyms.iter().map(|of| ("synonyms", of)));
        let setting = |key: &str| format!("sources.neo4j.{}.{key}", self.name);
        let unmet = self.unmet.iter().copied();
        let prefixes = unmet::prefixes(&setting("namespaces"), "no id of a node has the prefix", unmet);
        let lacking = asked.filter(|(_, property)| self.without.contains(property.as_str()));
        let properties = lacking.filter_map(|(key, property)| {
            let names = std::iter::once(property.as_str());
            unmet::prefixes(&setting(key), "no file has nodes with a property", names)
        });
        properties.chain(prefixes).collect()
    }

    /// Takes the nodes of a file, and counts those that do not fit.
    fn nodes(&mut self, table: &Table<'_>) -> Result<u64, ReadError> {
        let (mut no_node, mut has_validity) = (0, false);
        each(table, self.options, 0, |columns, record| {
            has_validity = columns.active.column().is_some();
            let (Some(id), false) = (&columns.id, columns.is_relationship(record)) else { return Ok(()) };
            let node = self.node(id, columns, record, table.labels);
            no_node += u64::from(node.is_err());
            node
        })?;
        self.with_validity += u64::from(has_validity);
        (0..no_node).for_each(|_| self.ontology.leave_out(UNFIT));
        Ok(no_node)
    }

    fn node(
        &mut self,
        id: &End,
        columns: &Columns,
        record: &Record<'_>,
        labels: &[String],
    ) -> Result<(), NoRow> {
        let own = id.within(record)?;
        let place = record.place(Some((id.column, "id")));
        if self.keys.contains_key(&own) {
            let twice = ReadError::text(place, record.field(id.column), "an id once", REMEDY);
            return Err(NoRow::Unfit(twice));
        }
        if let Some(curie) = curie::split(columns.known(self.options, record)) {
            self.unmet.remove(curie.prefix);
        }
        self.without.retain(|property| !columns.properties.contains_key(*property));
        let is_obsolete = columns.active.leaves_out(record)?;
        let mut term = Term { is_obsolete, ..columns.term(self.name, self.options, record, &own) };
        let label = |name: &String| SemanticType { code: None, name: name.trim().to_owned() };
        term.types.extend(labels.iter().map(label));
        // What refers to it by its id means the one that has its key.
        self.keys.insert(own, term.key.clone());
        let line = place.line;
        self.ontology.term(term, line).map_err(|before| {
            let found = format!("the node of line {before} has the same key");
            NoRow::Unfit(ReadError::new(place, found, "a key for each node", REMEDY))
        })
    }

    /// Refuses to leave out what no file says anything of.
    fn check_activity(&self, label: &Path) -> Result<(), ReadError> {
        let Options { active, inactive, .. } = self.options;
        let by_default = (*inactive == Some(Inactive::Drop)).then_some(ACTIVE[0]);
        match active.as_deref().or(by_default) {
            Some(named) if self.with_validity == 0 => {
                let found = format!("no file has rows with a property {named:?}");
                let remedy = "fix `active` and `inactive` of the source, or leave them out";
                Err(ReadError::new(label, found, "a property that says whether rows are valid", remedy))
            }
            _ => Ok(()),
        }
    }

    /// States the relationships of a file, of which so many rows are nodes that do not fit.
    fn relationships(&mut self, table: &Table<'_>, no_node: u64) -> Result<Tally, ReadError> {
        // Rows of another width are no nodes and no relationships: they are counted with these.
        each(table, self.options, no_node, |columns, record| {
            let (Some(start), Some(end)) = (&columns.start, &columns.end) else { return Ok(()) };
            if !columns.is_relationship(record) {
                return Ok(());
            }
            let own = columns.kind.map(|kind| record.field(kind).trim()).filter(|kind| !kind.is_empty());
            let relation = own.or(table.kind).unwrap_or_default();
            if relation.is_empty() {
                let place = record.place(columns.kind.map(|kind| (kind, "type")));
                return Err(NoRow::Unfit(ReadError::text(place, relation, "a relation", REMEDY)));
            }
            let ends = [start.within(record)?, end.within(record)?];
            if columns.active.leaves_out(record)? {
                self.ontology.leave_out_row_of(relation, INACTIVE);
                return Ok(());
            }
            let [subject, object] = ends
                .map(|own| self.keys.get(&own).cloned().unwrap_or_else(|| format!("{}:{own}", self.name)));
            Ok(self.ontology.row(&subject, &Link { relation: relation.to_owned(), object })?)
        })
    }
}

/// Reads the files into `builder`, as the source `name`.
///
/// # Errors
/// When a file is damaged or of another kind; `builder` then holds a part of it.
pub fn read(
    tables: &[Table<'_>],
    name: &str,
    options: &Options,
    builder: &mut Builder,
) -> Result<SourceReport, ReadError> {
    for [one, other] in &options.inverses {
        builder.declare_inverse(one, other);
    }
    let label = together(tables.iter().map(|table| &table.file));
    let listed = Listed { name: "nodes", reasons: &[], stranger: NO_NODE };
    let ontology = Ontology::new(name, options.taken(), &label, listed, builder);
    let mut reading = Reading::new(name, options, ontology);
    let no_nodes = tables.iter().map(|table| reading.nodes(table)).collect::<Result<Vec<_>, _>>()?;
    reading.check_activity(&label)?;
    reading.ontology.settle();
    let mut all = Tally::new(&label, &[]);
    for (table, no_node) in tables.iter().zip(no_nodes) {
        all.add(&reading.relationships(table, no_node)?);
    }
    let warnings = reading.told();
    let mut ontology = reading.ontology;
    ontology.leave_out_rows(&all);
    let mut report = ontology.finish(all.lines, all.bytes)?;
    report.funnel.triples.columns_not_used = all.columns_not_used;
    report.warnings.extend(warnings);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::{Canon, Policy, merge};
    use crate::source::files::Reopened;
    use crate::source::testing::{self, reopened};
    use crate::table::Entity;

    fn parse(texts: &[&str], more: &serde_json::Value) -> Result<(SourceReport, Canon), String> {
        let mut options = serde_json::json!({"files": ["a"], "synonyms": ["aliases"]});
        options.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let options: Options = serde_json::from_value(options).map_err(|e| e.to_string())?;
        let files = texts.iter().enumerate();
        let files: Vec<_> =
            files.map(|(number, text)| Table::of_file(reopened(&format!("{number}.csv"), text))).collect();
        let mut builder = Builder::new();
        let report = read(&files, "graph", &options, &mut builder).map_err(|e| e.to_string())?;
        Ok((report, merge(builder, &Policy::standard()).map_err(|e| e.to_string())?))
    }

    fn triples(canon: &Canon) -> Vec<String> {
        let end = |entity: &Entity| format!("{}={}", entity.key, entity.text);
        testing::triples(canon, end, |relation| relation.key.clone())
    }

    #[test]
    fn a_header_may_have_a_file_of_its_own_and_labels_and_types_stand_in_no_column() {
        let group = |labels: &[&str], kind: Option<&str>| Group {
            files: Vec::new(),
            labels: labels.iter().map(|&label| label.to_owned()).collect(),
            kind: kind.map(str::to_owned),
        };
        fn files<'t>(texts: &[&'t str]) -> Vec<Reopened<'t>> {
            texts.iter().map(|text| reopened("part.csv", text)).collect()
        }
        let groups =
            [group(&["Disease"], None), group(&["Drug", "Chemical"], None), group(&[], Some("TREATS"))];
        let parse = |of: [usize; 3]| {
            let texts = [
                vec!["code:ID,name", "\u{feff}d1,Fever\n", "", "d2,Cough"],
                vec!["code:ID,name,:LABEL\nc1,Aspirin,Old\n"],
                vec![":START_ID,:END_ID,:TYPE\n", "c1,d1,\nc1,d2,EASES\n"],
            ];
            let tables: Vec<_> =
                texts.iter().zip(of).map(|(texts, of)| Table::of_group(files(texts), &groups[of])).collect();
            let options: Options = serde_json::from_value(serde_json::json!({"groups": []})).unwrap();
            let mut builder = Builder::new();
            let report = read(&tables, "graph", &options, &mut builder).map_err(|e| e.to_string())?;
            merge(builder, &Policy::standard()).map(|canon| (report, canon)).map_err(|e| e.to_string())
        };
        let (report, canon) = parse([0, 1, 2]).unwrap();
        assert_eq!(
            triples(&canon),
            ["graph:c1=Aspirin EASES graph:d2=Cough", "graph:c1=Aspirin TREATS graph:d1=Fever"]
        );
        let types = |at: usize| -> Vec<String> {
            canon.graph().unwrap().entities()[at].types.iter().map(|kind| kind.name.clone()).collect()
        };
        assert_eq!(
            (types(0), types(1)),
            (["Chemical", "Drug", "Old"].map(str::to_owned).to_vec(), vec!["Disease".to_owned()])
        );
        assert_eq!(report.funnel.triples.kept, 2);
        // Errors are of the file that they stand in.
        let options: Options = serde_json::from_value(serde_json::json!({"groups": []})).unwrap();
        let torn = [
            reopened("h.csv", "code:ID,name"),
            reopened("p.csv", "d1,Fever\n"),
            reopened("q.csv", "d2,Cough\nd3,a,b\n"),
        ];
        let torn = Table::of_group(torn.into(), &groups[0]);
        let error = read(&[torn], "graph", &options, &mut Builder::new()).unwrap_err().to_string();
        assert!(error.starts_with("q.csv: line 2"), "{error}");
        let wrong = |of: [usize; 3]| parse(of).unwrap_err();
        assert!(
            wrong([2, 1, 2]).contains("a type, and no columns :START_ID and :END_ID"),
            "{}",
            wrong([2, 1, 2])
        );
        assert!(wrong([0, 1, 0]).contains("labels, and no column :ID"), "{}", wrong([0, 1, 0]));
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
    fn another_separator_leaves_another_delimiter_of_lists_to_be_said() {
        let text = DISEASES.replace(';', "|").replace("\"pain, low\"", "pain").replace(',', ";");
        let of = |more: serde_json::Value| {
            parse(&[&text, ":START_ID(Disease);:END_ID(Disease);:TYPE\n7;DOID:4;IS\n"], &more)
        };
        let found = of(serde_json::json!({})).unwrap_err();
        assert!(found.contains("say what stands between columns (separator) if it is not ','"), "{found}");
        let asked = serde_json::json!({"separator": "semicolon", "array_delimiter": "pipe"});
        let (_, canon) = of(asked).unwrap();
        let graph = canon.graph().unwrap();
        let disease = graph.entities().iter().find(|entity| entity.text == "disease").unwrap();
        assert_eq!(disease.types.len(), 2, "{:?}", disease.types);
        let options = serde_json::json!({"files": ["a"], "separator": "semicolon"});
        let options: Options = serde_json::from_value(options).unwrap();
        let refused = options.check("graph").unwrap_err().to_string();
        assert!(refused.contains("array_delimiter is ';', which stands between columns"), "{refused}");
    }

    #[test]
    fn inactive_nodes_and_relationships_are_left_out_and_counted_or_refused_while_nobody_says_so() {
        let nodes = ":ID,name,active:boolean\n1,one,true\n2,two,false\n3,three,true\n";
        // A property that is not set is left empty.
        let rows = ":START_ID,:END_ID,:TYPE,active:boolean\n1,2,R,true\n1,3,R,\n3,1,R,false\n";
        let (report, canon) = parse(&[nodes, rows], &serde_json::json!({"active": "active"})).unwrap();
        assert_eq!(triples(&canon), ["graph:1=one R graph:3=three"]);
        let of_rows = &report.funnel.triples;
        assert_eq!((of_rows.read, of_rows.kept), (3, 1));
        assert_eq!((of_rows.dropped["inactive"], of_rows.dropped["obsolete"]), (1, 1));
        let of_nodes = &report.funnel.supporting[0];
        assert_eq!((of_nodes.read, of_nodes.kept, of_nodes.dropped["obsolete"]), (3, 2, 1));
        let (report, _) = parse(&[nodes, rows], &serde_json::json!({"inactive": "keep"})).unwrap();
        assert_eq!(report.funnel.triples.kept, 3);
        // That there is such a relation is known even if no row of it is kept.
        let old = rows.replace("3,1,R", "3,1,OLD");
        let asked = serde_json::json!({"active": "active", "relations": ["OLD"]});
        assert_eq!(parse(&[nodes, &old], &asked).unwrap().0.funnel.relations["OLD"], 0);
        let error = parse(&[nodes, rows], &serde_json::json!({})).unwrap_err();
        assert!(error.contains("0.csv: line 3, column 3 (active): found \"false\", expected 1"), "{error}");
        for (asked, named) in [
            (serde_json::json!({"active": "valid"}), "valid"),
            (serde_json::json!({"inactive": "drop"}), "active"),
        ] {
            let error = parse(&[DISEASES, ROWS], &asked).unwrap_err();
            assert!(error.contains(&format!("no file has rows with a property {named:?}")), "{error}");
        }
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
    fn nodes_without_a_name_are_refused_by_their_ids() {
        let rows = ":START_ID,:END_ID,:TYPE\n1,2,EASES\n1,3,EASES\n";
        let nodes = ":ID,name\n1,Aspirin\n2,\n3,3\n";
        let refused = testing::unnamed(parse(&[nodes, rows], &serde_json::json!({})).unwrap()).unwrap_err();
        assert!(refused.contains("2 of 3 entities have no text") && refused.contains("graph:2"), "{refused}");
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

    #[test]
    fn properties_and_prefixes_that_no_node_has_are_told() {
        let nodes = ":ID,name,xref,:LABEL\n1,Fever,MESH:D1,Sign\n";
        let others = ":ID,name,def,:LABEL\n2,Aspirin,a drug,Drug\n";
        let rows = ":START_ID,:END_ID,:TYPE,doid\n2,1,TREATS,DOID:1\n";
        let asked = serde_json::json!({
            "synonyms": ["xref", "aliases"], "definition": "def", "key": "doid",
            "namespaces": {"MESH": "mesh", "DOID": "doid"},
        });
        let (report, _) = parse(&[nodes, others, rows], &asked).unwrap();
        assert_eq!(
            report.warnings,
            [
                "sources.neo4j.graph.key: no file has nodes with a property \"doid\": fix it or leave it out",
                "sources.neo4j.graph.synonyms: no file has nodes with a property \"aliases\": fix it or leave it out",
                "sources.neo4j.graph.namespaces: no id of a node has the prefix \"DOID\", \"MESH\": fix it or leave it out"
            ]
        );
        let asked = serde_json::json!({"synonyms": [], "key": "xref", "namespaces": {"MESH": "mesh"}});
        assert!(parse(&[nodes, others, rows], &asked).unwrap().0.warnings.is_empty());
    }
}
