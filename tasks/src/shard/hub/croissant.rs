//! croissant.json of a shard folder: Croissant 1.1 as JSON-LD. One file set and one record set per task; a record's part is read from
//! the name of its file. Knows no row.

use kg::split::Part;
use serde_json::{Value, json};

use super::super::index::{FileIndex, Index, Source, TaskIndex};
use super::super::schema::VERSION;
use super::column::{self, Column, Shape};
use super::{Error, README, licence, pattern, readme};
use crate::builder::Form;

const PARQUET: &str = "application/x-parquet";

/// The record set of parts, to which the field `part` of every record refers.
const PARTS: &str = "parts";

/// The whole file.
///
/// # Errors
/// When the index cannot be described.
pub(super) fn text(index: &Index) -> Result<String, Error> {
    let records: Result<Vec<Value>, Error> =
        index.tasks.iter().map(|task| record_set(task, index.layout.form)).collect();
    let mut sets = vec![parts(index)];
    sets.extend(records?);
    // The columns decide how it is read, the contents whether it is the same.
    let version = format!("{VERSION}.0.0+{}", index.digest().get(..16).unwrap_or_default());
    let value = json!({
        "@context": context(),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": "engraft shards",
        "description": description(index),
        "version": version,
        "license": licences(&index.sources),
        "usageInfo": { "@type": "sc:CreativeWork", "name": "licence levels", "text": licence::ABOUT },
        "distribution": distribution(&index.tasks),
        "recordSet": sets,
    });
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

/// The terms of Croissant 1.1, as its specification lists them.
fn context() -> Value {
    let mut context = json!({
        "@language": "en",
        "@vocab": "https://schema.org/",
        "cr": "http://mlcommons.org/croissant/",
        "rai": "http://mlcommons.org/croissant/RAI/",
        "dct": "http://purl.org/dc/terms/",
        "sc": "https://schema.org/",
        "conformsTo": "dct:conformsTo",
        "data": { "@id": "cr:data", "@type": "@json" },
        "dataType": { "@id": "cr:dataType", "@type": "@vocab" },
        "description": { "@container": "@language" },
        "examples": { "@id": "cr:examples", "@type": "@json" },
        "name": { "@container": "@language" },
    });
    let own = [
        "arrayShape",
        "citeAs",
        "column",
        "containedIn",
        "equivalentProperty",
        "extract",
        "field",
        "fileObject",
        "fileProperty",
        "fileSet",
        "format",
        "includes",
        "isArray",
        "isLiveDataset",
        "jsonPath",
        "key",
        "md5",
        "parentField",
        "path",
        "recordSet",
        "references",
        "regex",
        "repeated",
        "replace",
        "samplingRate",
        "separator",
        "source",
        "subField",
        "transform",
    ];
    for term in own {
        context[term] = json!(format!("cr:{term}"));
    }
    context
}

fn description(index: &Index) -> String {
    let rows: u64 = index.tasks.iter().flat_map(|task| &task.parts).map(|part| part.rows).sum();
    let tasks: Vec<&str> = index.tasks.iter().map(|task| task.task.name()).collect();
    format!(
        "Triples of knowledge graphs and texts as {rows} encoded training samples of the tasks {}. Token ids belong to the vocabulary \
         with the BLAKE3 digest {}. {README} says more.",
        tasks.join(", "),
        index.tokenizer.blake3
    )
}

/// A licence per source, with its levels in words.
pub(super) fn licences(sources: &[Source]) -> Value {
    let licence = |source: &Source| {
        let levels = source.levels.iter();
        let levels: Vec<String> = levels
            .map(|(level, triples)| format!("level {level} ({triples} triples): {}", licence::meaning(level)))
            .collect();
        json!({ "@type": "sc:CreativeWork", "name": source.name, "description": levels.join("; ") })
    };
    match sources {
        [] => json!("The index names no source."),
        _ => sources.iter().map(licence).collect(),
    }
}

pub(super) fn distribution(tasks: &[TaskIndex]) -> Vec<Value> {
    let file = |file: &FileIndex| {
        json!({
            "@type": "cr:FileObject",
            "@id": file.path,
            "name": file.path,
            "contentUrl": file.path,
            "contentSize": format!("{} B", file.bytes),
            "encodingFormat": PARQUET,
            "sha256": file.sha256,
        })
    };
    let set = |task: &TaskIndex| {
        let patterns: Vec<String> = task.parts.iter().map(|part| pattern(task, part)).collect();
        json!({
            "@type": "cr:FileSet",
            "@id": set_id(task),
            "name": set_id(task),
            "description": format!("all files of task {}", task.task.name()),
            "encodingFormat": PARQUET,
            "includes": patterns,
        })
    };
    let files = tasks.iter().flat_map(|task| &task.parts).flat_map(|part| &part.files);
    files.map(file).chain(tasks.iter().map(set)).collect()
}

fn set_id(task: &TaskIndex) -> String {
    format!("{}-files", task.task.name())
}

/// The parts, with the names that Croissant has for what they are for.
fn parts(index: &Index) -> Value {
    let row = |part: Part| {
        let means = match part {
            Part::Train => "cr:TrainingSplit",
            Part::Valid => "cr:ValidationSplit",
            _ => "cr:TestSplit",
        };
        json!({ "parts/name": part.name(), "parts/url": means })
    };
    let rows: Vec<Value> = index.parts().into_iter().map(row).collect();
    json!({
        "@type": "cr:RecordSet",
        "@id": PARTS,
        "name": PARTS,
        "dataType": "cr:Split",
        "key": { "@id": "parts/name" },
        "field": [
            { "@type": "cr:Field", "@id": "parts/name", "name": "name", "dataType": "sc:Text", "description": "the part as files name it" },
            { "@type": "cr:Field", "@id": "parts/url", "name": "url", "dataType": "sc:URL", "description": "what it is for" },
        ],
        "data": rows,
    })
}

pub(super) fn record_set(task: &TaskIndex, form: Form) -> Result<Value, Error> {
    let name = task.task.name();
    let names: Vec<&str> = task.parts.iter().map(|part| part.part.name()).collect();
    let mut fields = vec![json!({
        "@type": "cr:Field",
        "@id": format!("{name}/part"),
        "name": "part",
        "description": "the part that the row is in",
        "dataType": "sc:Text",
        "source": {
            "fileSet": { "@id": set_id(task) },
            "extract": { "fileProperty": "fullpath" },
            // A reader that joins with the parts applies it a second time, to the part alone.
            "transform": { "regex": format!("^(?:{name}/)?({})(?:-.*)?$", names.join("|")) },
        },
        "references": { "field": { "@id": "parts/name" } },
    })];
    fields.extend(column::all(task.task, form)?.iter().map(|column| field(task, column)));
    let rows: u64 = task.parts.iter().map(|part| part.rows).sum();
    Ok(json!({
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": format!("{}: {rows} rows.", readme::asks(task.task)),
        "field": fields,
    }))
}

fn field(task: &TaskIndex, column: &Column) -> Value {
    let mut field = json!({
        "@type": "cr:Field",
        "@id": format!("{}/{}", task.task.name(), column.name),
        "name": column.name,
        "description": column.meaning,
        "dataType": column.kind.croissant,
        "source": { "fileSet": { "@id": set_id(task) }, "extract": { "column": column.name } },
    });
    if column.shape == Shape::List {
        field["isArray"] = json!(true);
        field["arrayShape"] = json!("-1");
    }
    field
}
