//! Reads a graph back and checks that it is one.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt8Type, UInt32Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use base::read::ReadError;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use super::graph::{Graph, Parts};
use super::id::{EntityId, RelationId, dense};
use super::parquet_file::noted;
use super::row::{
    Direction, Entity, Inverse, Negative, Origin, Relation, SemanticType, Term, TermKind, TermOrigin, Triple,
};
use super::schema::{FORMAT, Table, VERSION};

/// What to do about a file that is damaged or of another version.
const AGAIN: &str = "build the triple table again";

impl Graph {
    /// Reads the graph that [`Graph::write`] put into `folder`.
    ///
    /// # Errors
    /// When a file is missing, has another format version, is damaged, or breaks the order and the ids that the format promises.
    pub fn read(folder: &Path) -> Result<Self, ReadError> {
        let mut parts = Parts::empty();
        let mut plain = HashMap::new();
        read(folder, Table::Entities, |batch| entities(batch, &mut parts.entities))?;
        read(folder, Table::Relations, |batch| relations(batch, &mut parts.relations))?;
        read(folder, Table::Triples, |batch| triples(batch, &mut parts, &mut plain))?;
        Ok(Graph::new(parts))
    }
}

fn read(
    folder: &Path,
    table: Table,
    mut take: impl FnMut(&RecordBatch) -> Result<(), String>,
) -> Result<(), ReadError> {
    let file = folder.join(table.file());
    let mut row = 0;
    for batch in open(&file, table)? {
        let batch = batch.map_err(|e| damaged(&file, row, &e.to_string()))?;
        take(&batch).map_err(|problem| damaged(&file, row, &problem))?;
        row += batch.num_rows();
    }
    Ok(())
}

/// A file that is no Parquet, cut short, fails a page's CRC, or breaks what the format promises behind `row` rows.
pub(super) fn damaged(file: &Path, row: usize, problem: &str) -> ReadError {
    let place = format!("{}: row {row}", file.display());
    ReadError::new(place, problem, "", format!("the file is damaged, {AGAIN}"))
}

fn open(file: &Path, table: Table) -> Result<ParquetRecordBatchReader, ReadError> {
    let opened = File::open(file).map_err(|error| {
        ReadError::new(file, format!("cannot open it: {error}"), "", "build the triple table first")
    })?;
    let damaged = |e: parquet::errors::ParquetError| damaged(file, 0, &e.to_string());
    let builder = ParquetRecordBatchReaderBuilder::try_new(opened).map_err(damaged)?;
    let other = |expected: String, found: String| {
        ReadError::new(file, format!("found {found}"), expected, format!("{AGAIN} with this version"))
    };
    let value = |key: &str| noted(builder.metadata(), key);
    for (key, expected) in table.footer() {
        if value(key) != expected {
            let expected = format!("{FORMAT} version {VERSION}, table {}", table.name());
            let (format, version, table) =
                (value("engraft.format"), value("engraft.version"), value("engraft.table"));
            return Err(other(expected, format!("{format} version {version}, table {table}")));
        }
    }
    if builder.schema().fields() != table.columns().fields() {
        return Err(other(
            format!("the columns {}", table.columns().fields().len()),
            format!("{:?}", builder.schema().fields()),
        ));
    }
    builder.build().map_err(damaged)
}

fn entities(batch: &RecordBatch, entities: &mut Vec<Entity>) -> Result<(), String> {
    check_ids(batch.column(0), entities.len())?;
    for row in 0..batch.num_rows() {
        let types = batch.column(4).as_list::<i32>().value(row);
        let (codes, names) = (types.as_struct().column(0), types.as_struct().column(1));
        let types = (0..types.len())
            .map(|i| SemanticType { code: optional_text(codes, i), name: text(names, i) })
            .collect();
        let entity = Entity {
            key: text(batch.column(1), row),
            text: text(batch.column(2), row),
            level: level(batch.column(3), row),
            types,
            same_as: texts(batch.column(5), row),
            origins: texts(batch.column(6), row),
        };
        check_order(entities.last().map(|last| &last.key), &entity.key)?;
        entities.push(entity);
    }
    Ok(())
}

fn relations(batch: &RecordBatch, relations: &mut Vec<Relation>) -> Result<(), String> {
    check_ids(batch.column(0), relations.len())?;
    for row in 0..batch.num_rows() {
        let declared = batch.column(4).as_list::<i32>().value(row);
        let columns = declared.as_struct().columns();
        let inverses = (0..declared.len())
            .map(|i| Inverse { key: text(&columns[0], i), text: text(&columns[1], i) })
            .collect();
        let relation = Relation {
            key: text(batch.column(1), row),
            text: text(batch.column(2), row),
            inverse: optional_text(batch.column(3), row),
            inverses,
            symmetric: batch.column(5).as_boolean().value(row),
            origins: texts(batch.column(6), row),
        };
        check_order(relations.last().map(|last| &last.key), &relation.key)?;
        relations.push(relation);
    }
    Ok(())
}

/// Origins without weight and count, which many triples share.
type Plain = HashMap<(String, Option<String>, Option<u8>), u32>;

fn triples(batch: &RecordBatch, parts: &mut Parts, plain: &mut Plain) -> Result<(), String> {
    let column = |place: usize| batch.column(place).as_primitive::<UInt32Type>();
    let (subjects, relations, objects) = (column(0), column(1), column(2));
    for row in 0..batch.num_rows() {
        let triple = Triple {
            subject: EntityId(subjects.value(row)),
            relation: RelationId(relations.value(row)),
            object: EntityId(objects.value(row)),
        };
        let known = triple.subject.index().max(triple.object.index()) < parts.entities.len()
            && triple.relation.index() < parts.relations.len();
        if !known {
            return Err(format!("{triple:?} names an entity or relation that the other files lack"));
        }
        check_order(parts.triples.last(), &triple)?;
        let origins = batch.column(3).as_list::<i32>().value(row);
        let before = parts.origin_of.len();
        for place in 0..origins.len() {
            let columns = origins.as_struct().columns();
            parts.origin_of.push(place_of(origin(columns, place), &mut parts.origins, plain));
            parts.direction_of.push(direction(columns[5].as_string::<i32>().value(place))?);
        }
        if parts.origin_of.len() == before {
            return Err(format!("{triple:?} has no origin"));
        }
        parts.triples.push(triple);
        parts.starts.push(parts.origin_of.len());
    }
    Ok(())
}

fn origin(columns: &[ArrayRef], row: usize) -> Origin {
    let (weights, counts) =
        (columns[2].as_primitive::<Float64Type>(), columns[3].as_primitive::<UInt32Type>());
    Origin {
        source: text(&columns[0], row),
        vocabulary: optional_text(&columns[1], row),
        weight: weights.is_valid(row).then(|| weights.value(row)),
        count: counts.is_valid(row).then(|| counts.value(row)),
        level: level(&columns[4], row),
    }
}

fn direction(name: &str) -> Result<Direction, String> {
    let all = [Direction::Stated, Direction::Inverse, Direction::Both];
    let known = all.into_iter().find(|direction| direction.name() == name);
    known.ok_or_else(|| format!("the direction {name:?} is none of stated, inverse, both"))
}

/// Reads the terms that lie beside the graph in `folder`, in their order, and hands each to `take`; an error of `take` ends it.
///
/// # Errors
/// As [`Graph::read`].
pub fn terms(folder: &Path, mut take: impl FnMut(Term) -> Result<(), String>) -> Result<(), ReadError> {
    read(folder, Table::Terms, |batch| {
        let entities = batch.column(0).as_primitive::<UInt32Type>();
        for row in 0..batch.num_rows() {
            let name = batch.column(1).as_string::<i32>().value(row);
            let kinds = [TermKind::Preferred, TermKind::Synonym, TermKind::Definition];
            let kind = kinds.into_iter().find(|kind| kind.name() == name);
            take(Term {
                entity: EntityId(entities.value(row)),
                kind: kind.ok_or_else(|| format!("the kind {name:?} is none of a term"))?,
                text: text(batch.column(2), row),
                origin: TermOrigin {
                    source: text(batch.column(3), row),
                    vocabulary: optional_text(batch.column(4), row),
                    language: optional_text(batch.column(5), row),
                    level: level(batch.column(6), row),
                },
            })?;
        }
        Ok(())
    })
}

/// The triples that sources publish as false, which lie beside the graph in `folder`.
///
/// # Errors
/// As [`Graph::read`].
pub fn negatives(folder: &Path) -> Result<Vec<Negative>, ReadError> {
    let mut negatives = Vec::new();
    read(folder, Table::Negatives, |batch| {
        let three = |first: usize, row| [0, 1, 2].map(|end| text(batch.column(first + end), row));
        negatives.extend((0..batch.num_rows()).map(|row| Negative {
            keys: three(0, row),
            texts: three(3, row),
            source: text(batch.column(6), row),
            part: optional_text(batch.column(7), row),
        }));
        Ok(())
    })?;
    Ok(negatives)
}

/// By key that a source gave up: the key of what took its place, of the table in `folder`.
///
/// # Errors
/// As [`Graph::read`].
pub fn retired(folder: &Path) -> Result<HashMap<String, String>, ReadError> {
    let mut retired = HashMap::new();
    read(folder, Table::Retired, |batch| {
        retired.extend(
            (0..batch.num_rows()).map(|row| (text(batch.column(0), row), text(batch.column(1), row))),
        );
        Ok(())
    })?;
    Ok(retired)
}

fn place_of(origin: Origin, origins: &mut Vec<Origin>, plain: &mut Plain) -> u32 {
    let next = dense(origins.len());
    if origin.weight.is_some() || origin.count.is_some() {
        origins.push(origin);
        return next;
    }
    *plain.entry((origin.source, origin.vocabulary, origin.level)).or_insert_with_key(|key| {
        let (source, vocabulary, level) = key.clone();
        origins.push(Origin { source, vocabulary, weight: None, count: None, level });
        next
    })
}

fn check_ids(ids: &ArrayRef, first: usize) -> Result<(), String> {
    match ids.as_primitive::<UInt32Type>().values().iter().zip(first..).find(|&(&id, row)| id != dense(row)) {
        Some((id, row)) => Err(format!("id {id} stands in row {row}")),
        None => Ok(()),
    }
}

fn check_order<T: Ord + std::fmt::Debug>(last: Option<&T>, next: &T) -> Result<(), String> {
    match last {
        Some(last) if last >= next => Err(format!("{next:?} follows {last:?}, out of order")),
        _ => Ok(()),
    }
}

fn text(column: &ArrayRef, row: usize) -> String {
    column.as_string::<i32>().value(row).to_owned()
}

fn optional_text(column: &ArrayRef, row: usize) -> Option<String> {
    column.is_valid(row).then(|| text(column, row))
}

fn level(column: &ArrayRef, row: usize) -> Option<u8> {
    column.is_valid(row).then(|| column.as_primitive::<UInt8Type>().value(row))
}

fn texts(lists: &ArrayRef, row: usize) -> Vec<String> {
    let list = lists.as_list::<i32>().value(row);
    (0..list.len()).map(|i| text(&list, i)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::table::Builder;
    use crate::table::parquet_file::Writer;
    use base::whole::write_whole;

    fn sample() -> Graph {
        let mut builder = Builder::new();
        let names = ["fever", "Ménière's disease", "flu", "cough, dry"];
        let entities: Vec<_> =
            names.iter().map(|name| builder.entity("s", &format!("name:{name}"), name)).collect();
        for (code, name) in [(Some("T047"), "Disease or Syndrome"), (None, "disease")] {
            let code = code.map(str::to_owned);
            builder.add_type(entities[1], SemanticType { code, name: name.to_owned() });
        }
        let (has, treats) =
            (builder.relation("s", "has_symptom", "has symptom"), builder.relation("t", "treats", "treats"));
        for (i, subject) in entities.iter().enumerate() {
            let weight = (i > 1).then_some(0.1 * i as f64);
            let vocabulary = (i % 2 == 0).then(|| "MSH".to_owned());
            let (s, t) = ("s".to_owned(), "t".to_owned());
            let plain = Origin {
                source: s,
                vocabulary: vocabulary.clone(),
                weight: None,
                count: None,
                level: Some(3),
            };
            let plain = builder.origin(plain);
            let strong =
                builder.origin(Origin { source: t, vocabulary, weight, count: Some(7), level: None });
            for object in &entities {
                builder.triple(*subject, has, *object, plain).unwrap();
                builder.triple(*subject, treats, *object, plain).unwrap();
                builder.triple(*subject, treats, *object, strong).unwrap();
            }
        }
        crate::canon::merge(builder, &crate::canon::Policy::standard()).unwrap().graph().unwrap()
    }

    type Everything = (Vec<Entity>, Vec<Relation>, Vec<(Triple, Vec<Origin>)>);

    fn everything(graph: &Graph) -> Everything {
        let triples = graph.triples().iter().enumerate();
        let triples = triples.map(|(row, triple)| (*triple, graph.origins(row).cloned().collect())).collect();
        (graph.entities().to_vec(), graph.relations().to_vec(), triples)
    }

    fn files(folder: &Path) -> Vec<Vec<u8>> {
        let tables = [Table::Entities, Table::Relations, Table::Triples];
        tables.iter().map(|table| fs::read(folder.join(table.file())).unwrap()).collect()
    }

    #[test]
    fn what_is_written_is_read_and_written_again_the_same() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let graph = sample();
        graph.write(one.path()).unwrap();
        let again = Graph::read(one.path()).unwrap();
        assert_eq!(everything(&graph), everything(&again));
        assert_eq!(again.triples().len(), 24);
        again.write(two.path()).unwrap();
        assert_eq!(files(one.path()), files(two.path()));
    }

    #[test]
    fn an_empty_graph_is_a_graph() {
        let folder = tempfile::tempdir().unwrap();
        crate::canon::merge(Builder::new(), &crate::canon::Policy::standard())
            .unwrap()
            .graph()
            .unwrap()
            .write(folder.path())
            .unwrap();
        assert_eq!(Graph::read(folder.path()).unwrap().triples().len(), 0);
    }

    #[test]
    fn a_missing_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = Graph::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("entities.parquet") && error.contains("build the triple table"), "{error}");
    }

    #[test]
    fn damage_is_found_wherever_a_page_has_it() {
        let folder = tempfile::tempdir().unwrap();
        sample().write(folder.path()).unwrap();
        let file = folder.path().join("triples.parquet");
        let whole = fs::read(&file).unwrap();
        for (name, bytes) in [
            ("cut", whole[..whole.len() / 2].to_vec()),
            ("empty", Vec::new()),
            ("bit", {
                let mut bytes = whole.clone();
                bytes[60] ^= 1;
                bytes
            }),
        ] {
            write_whole(&file, &bytes).unwrap();
            let error = Graph::read(folder.path()).unwrap_err().to_string();
            assert!(error.contains("triples.parquet") && error.contains("damaged"), "{name}: {error}");
        }
    }

    #[test]
    fn another_version_or_table_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        sample().write(folder.path()).unwrap();
        let file = folder.path().join("relations.parquet");
        let mut footer = Table::Relations.footer();
        footer[1].1 = "999".to_owned();
        Writer::create(&file, Table::Relations.columns(), 10, &footer).unwrap().finish().unwrap();
        let error = Graph::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("version 999") && error.contains("again with this version"), "{error}");
        fs::copy(folder.path().join("entities.parquet"), &file).unwrap();
        let error = Graph::read(folder.path()).unwrap_err().to_string();
        let found = format!("found engraft-triples version {VERSION}, table entities");
        assert!(error.contains(&found), "{error}");
    }

    #[test]
    fn triples_of_another_graph_do_not_fit() {
        let (big, small) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        sample().write(big.path()).unwrap();
        crate::canon::merge(Builder::new(), &crate::canon::Policy::standard())
            .unwrap()
            .graph()
            .unwrap()
            .write(small.path())
            .unwrap();
        fs::copy(big.path().join("triples.parquet"), small.path().join("triples.parquet")).unwrap();
        let error = Graph::read(small.path()).unwrap_err().to_string();
        assert!(error.contains("that the other files lack"), "{error}");
    }
}
