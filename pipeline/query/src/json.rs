//! Tables of JSON records: which records a document consists of, and their columns.

use std::collections::BTreeMap;
use std::path::Path;

use base::visible::shortened;
use polars::prelude::{
    Column, DataFrame, DataType, Int64Type, IntoColumn, IntoSeries, ListBuilderTrait,
    ListPrimitiveChunkedBuilder, ListStringChunkedBuilder, PlSmallStr,
};
use serde_json::{Map, Value, json};

use crate::catalog::{Field, Type};
use crate::error::Error;

/// Where a record of a recipe has the benchmark that it is about, which the stage's name does not tell.
pub(crate) const BENCHMARK: &str = "@benchmark";

/// What is known of a record from where it stands, by `@name`.
pub(crate) type About = BTreeMap<&'static str, String>;

/// The record is the document.
pub(crate) fn whole(value: &Value) -> Vec<Value> {
    vec![value.clone()]
}

/// Every element of a list is a record.
pub(crate) fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn list_at(value: &Value, pointer: &str) -> Vec<Value> {
    value.pointer(pointer).map(list).unwrap_or_default()
}

fn map_at<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = (&'v String, &'v Value)> {
    value.pointer(pointer).and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

pub(crate) fn relations(value: &Value) -> Vec<Value> {
    list_at(value, "/relations")
}

pub(crate) fn hubs(value: &Value) -> Vec<Value> {
    list_at(value, "/hubs")
}

pub(crate) fn cells(value: &Value) -> Vec<Value> {
    list_at(value, "/cells")
}

/// Names by number.
pub(crate) fn classes(value: &Value) -> Vec<Value> {
    list_at(value, "/classes").into_iter().enumerate().map(|(class, name)| json!([class, name])).collect()
}

/// Every number of a document under its path, but those within lists.
pub(crate) fn leaves(value: &Value) -> Vec<Value> {
    fn walk(path: &str, value: &Value, found: &mut Vec<Value>) {
        match value {
            Value::Number(number) => found.push(json!([path, number])),
            Value::Object(fields) => {
                for (name, value) in fields {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    walk(&path, value, found);
                }
            }
            _ => {}
        }
    }
    let mut found = vec![];
    walk("", value, &mut found);
    found
}

/// The files of an index of shards.
pub(crate) fn shards(value: &Value) -> Vec<Value> {
    let mut found = vec![];
    for task in list_at(value, "/tasks") {
        for part in list_at(&task, "/parts") {
            for file in list_at(&part, "/files") {
                let sum = |of: &str| {
                    list_at(&file, "/groups").iter().filter_map(|group| group[of].as_u64()).sum::<u64>()
                };
                found.push(json!({
                    "task": task["task"], "part": part["part"], "path": file["path"], "bytes": file["bytes"],
                    "items": sum("items"), "rows": sum("rows"),
                }));
            }
        }
    }
    found
}

/// What became of the rows of each file of each source.
pub(crate) fn funnel(value: &Value) -> Vec<Value> {
    let mut found = vec![];
    for source in list_at(value, "/read") {
        let triples = source.get("triples").map(|file| ("triples", file.clone()));
        let supporting = list_at(&source, "/supporting").into_iter().map(|file| ("supporting", file));
        for (of, file) in triples.into_iter().chain(supporting) {
            let mut row = |outcome: &str, reason: Option<&String>, rows: &Value| {
                found.push(json!({
                    "source": source["source"], "file": file["file"], "of": of, "outcome": outcome,
                    "reason": reason, "rows": rows,
                }));
            };
            row("read", None, &file["read"]);
            row("kept", None, &file["kept"]);
            map_at(&file, "/dropped").for_each(|(reason, rows)| row("dropped", Some(reason), rows));
            map_at(&file, "/mended").for_each(|(reason, rows)| row("changed", Some(reason), rows));
        }
    }
    found
}

/// The tasks of a line of metrics.
pub(crate) fn tasks(value: &Value) -> Vec<Value> {
    let row = |(task, of): (&String, &Value)| json!({"step": value["step"], "task": task, "of": of});
    map_at(value, "/tasks").map(row).collect()
}

/// The metrics of a fine-tuning, or of all benchmarks of a recipe; nothing of the table over all seeds.
pub(crate) fn seed_scores(value: &Value) -> Vec<Value> {
    let Some(fields) = value.as_object() else { return vec![] };
    if !fields.contains_key("seed") {
        let of = |(benchmark, scores): (&String, &Value)| metrics(scores, Some(benchmark));
        return fields.iter().flat_map(of).collect();
    }
    metrics(value, None)
}

fn metrics(scores: &Value, benchmark: Option<&String>) -> Vec<Value> {
    let mut found = vec![];
    for part in ["dev", "test"] {
        let of = &scores[part];
        let mut row = |metric: &Value, value: &Value, main: bool| {
            let mut row = json!({
                "seed": scores["seed"], "steps": scores["steps"], "settings": scores["settings"], "part": part,
                "samples": of["samples"], "metric": metric, "value": value, "main": main,
            });
            if let Some(benchmark) = benchmark {
                row[BENCHMARK] = json!(benchmark);
            }
            found.push(row);
        };
        if of.is_object() {
            row(&of["metric"], &of["value"], true);
            map_at(of, "/others").for_each(|(metric, value)| row(&json!(metric), value, false));
        }
    }
    found
}

/// A value for each head, stored layer after layer.
pub(crate) fn importance(value: &Value) -> Vec<Value> {
    let heads = value["heads"].as_u64().unwrap_or(1).max(1);
    let place = |(at, value): (u64, Value)| json!([at / heads, at % heads, value]);
    (0..).zip(list_at(value, "/values")).map(place).collect()
}

/// A value for each head, stored as a list for each layer.
pub(crate) fn keep(value: &Value) -> Vec<Value> {
    let layers = list_at(value, "/keep").into_iter().enumerate();
    let heads = |(layer, heads): (usize, Value)| {
        list(&heads).into_iter().enumerate().map(move |(head, value)| json!([layer, head, value]))
    };
    layers.flat_map(heads).collect()
}

/// The columns `fields` of `records`, all of which come from `file`.
pub(crate) fn frame(
    file: &Path,
    about: &About,
    fields: &[Field],
    records: &[Value],
) -> Result<DataFrame, Error> {
    let columns = fields.iter().map(|field| column(file, about, *field, records));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    Ok(DataFrame::new(records.len(), columns)?)
}

fn column(file: &Path, about: &About, field: Field, records: &[Value]) -> Result<Column, Error> {
    let Field { name, at, of } = field;
    let told = |record: &Value| {
        let value = if at.starts_with('@') {
            record.get(at).cloned().or_else(|| about.get(at).map(|text| json!(text)))
        } else {
            record.pointer(at).cloned()
        };
        value.filter(|value| !value.is_null())
    };
    let strange = |row: usize, value: &Value| {
        Error::new(format!(
            "{}: record {}: `{at}` is {}, expected {}: another version of engraft may have written it; run its stage again",
            file.display(),
            row + 1,
            shortened(&value.to_string()),
            of.expected()
        ))
    };
    let values = records.iter().map(told).enumerate();
    let name = PlSmallStr::from_static(name);
    Ok(match of {
        Type::Text => Column::new(name, typed(values, |v| v.as_str().map(str::to_owned), strange)?),
        Type::Int => Column::new(name, typed(values, Value::as_i64, strange)?),
        Type::Float => Column::new(name, typed(values, Value::as_f64, strange)?),
        Type::Bool => Column::new(name, typed(values, Value::as_bool, strange)?),
        Type::Json => Column::new(name, typed(values, |v| Some(v.to_string()), strange)?),
        Type::Texts => {
            let mut built = ListStringChunkedBuilder::new(name, records.len(), records.len());
            let texts = |v: &Value| each(v, |v| v.as_str().map(str::to_owned));
            for list in typed(values, texts, strange)? {
                match list {
                    Some(list) => built.append_values_iter(list.iter().map(String::as_str)),
                    None => built.append_null(),
                }
            }
            built.finish().into_series().into_column()
        }
        Type::Ints => {
            let (size, of) = (records.len(), DataType::Int64);
            let mut built = ListPrimitiveChunkedBuilder::<Int64Type>::new(name, size, size, of);
            for list in typed(values, |v| each(v, Value::as_i64), strange)? {
                match list {
                    Some(list) => built.append_slice(&list),
                    None => built.append_null(),
                }
            }
            built.finish().into_series().into_column()
        }
    })
}

impl Type {
    fn expected(self) -> &'static str {
        match self {
            Type::Text => "a text",
            Type::Int => "a whole number",
            Type::Float => "a number",
            Type::Bool => "true or false",
            Type::Texts => "a list of texts",
            Type::Ints => "a list of whole numbers",
            Type::Json => "JSON",
        }
    }
}

fn each<T>(value: &Value, of: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    value.as_array()?.iter().map(of).collect()
}

fn typed<T>(
    values: impl Iterator<Item = (usize, Option<Value>)>,
    of: impl Fn(&Value) -> Option<T>,
    strange: impl Fn(usize, &Value) -> Error,
) -> Result<Vec<Option<T>>, Error> {
    let one = |(row, value): (usize, Option<Value>)| match value {
        None => Ok(None),
        Some(value) => of(&value).map(Some).ok_or_else(|| strange(row, &value)),
    };
    values.map(one).collect()
}
