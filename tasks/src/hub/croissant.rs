//! croissant.json: Croissant 1.1 as JSON-LD. One file set and one record set for each set of rows; a record's part is read from the name of its file.

use kg::split::Part;
use serde_json::{Value, json};

use super::Set;
use super::column::{Column, Shape};
use crate::shard::index::FileIndex;

const PARQUET: &str = "application/x-parquet";

/// The record set of parts, to which the field `part` of every record refers.
const PARTS: &str = "parts";

/// What a folder is as a whole.
#[derive(Debug)]
pub(crate) struct Whole {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it holds.
    pub(crate) description: String,
    /// The version of its format and its contents.
    pub(crate) version: String,
    /// Its licences.
    pub(crate) license: Value,
    /// What else is to be said of its use.
    pub(crate) usage: Value,
}

/// The whole file.
pub(crate) fn text(whole: &Whole, sets: &[Set<'_>]) -> String {
    let records = std::iter::once(parts(sets)).chain(sets.iter().map(record_set)).collect::<Vec<Value>>();
    let value = json!({
        "@context": context(),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": whole.name,
        "description": whole.description,
        "version": whole.version,
        "license": whole.license,
        "usageInfo": whole.usage,
        "distribution": distribution(sets),
        "recordSet": records,
    });
    format!("{value:#}\n")
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

pub(crate) fn distribution(sets: &[Set<'_>]) -> Vec<Value> {
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
    let set = |set: &Set<'_>| {
        let patterns: Vec<String> = set.parts.iter().map(|(part, _)| set.pattern(part)).collect();
        json!({
            "@type": "cr:FileSet",
            "@id": set_id(set),
            "name": set_id(set),
            "description": format!("all files of {}", set.named.called),
            "encodingFormat": PARQUET,
            "includes": patterns,
        })
    };
    let files = sets.iter().flat_map(|set| &set.parts).flat_map(|(part, _)| &part.files);
    files.map(file).chain(sets.iter().map(set)).collect()
}

fn set_id(set: &Set<'_>) -> String {
    format!("{}-files", set.named.name)
}

/// The parts, with the names that Croissant has for what they are for.
fn parts(sets: &[Set<'_>]) -> Value {
    let row = |part: Part| {
        let means = match part {
            Part::Train => "cr:TrainingSplit",
            Part::Valid => "cr:ValidationSplit",
            _ => "cr:TestSplit",
        };
        json!({ "parts/name": part.name(), "parts/url": means })
    };
    let has = |part: &Part| sets.iter().flat_map(|set| &set.parts).any(|(found, _)| found.part == *part);
    let rows: Vec<Value> = Part::ALL.into_iter().filter(has).map(row).collect();
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

pub(crate) fn record_set(set: &Set<'_>) -> Value {
    let name = set.named.name;
    let names: Vec<&str> = set.parts.iter().map(|(part, _)| part.part.name()).collect();
    let below = if set.named.below.is_empty() { String::new() } else { format!("(?:{})?", set.named.below) };
    let mut fields = vec![json!({
        "@type": "cr:Field",
        "@id": format!("{name}/part"),
        "name": "part",
        "description": "the part that the row is in",
        "dataType": "sc:Text",
        "source": {
            "fileSet": { "@id": set_id(set) },
            "extract": { "fileProperty": "fullpath" },
            // A reader that joins with the parts applies it a second time, to the part alone.
            "transform": { "regex": format!("^{below}({})(?:-.*)?$", names.join("|")) },
        },
        "references": { "field": { "@id": "parts/name" } },
    })];
    fields.extend(set.columns.iter().map(|column| field(set, column)));
    let rows: u64 = set.parts.iter().map(|(part, _)| part.rows).sum();
    json!({
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": format!("{}: {rows} rows.", set.named.about),
        "field": fields,
    })
}

fn field(set: &Set<'_>, column: &Column) -> Value {
    let mut field = json!({
        "@type": "cr:Field",
        "@id": format!("{}/{}", set.named.name, column.name),
        "name": column.name,
        "description": column.meaning,
        "dataType": column.kind.croissant,
        "source": { "fileSet": { "@id": set_id(set) }, "extract": { "column": column.name } },
    });
    if column.shape == Shape::List {
        field["isArray"] = json!(true);
        field["arrayShape"] = json!("-1");
    }
    field
}
