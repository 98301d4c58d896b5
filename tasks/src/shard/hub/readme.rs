//! README.md of a shard folder: one config per task as `datasets` reads them, then a text for people. Knows no row.

use std::fmt::Write as _;

use serde_json::json;

use super::super::index::{FILE, FileIndex, Index, PartIndex, Source, TaskIndex};
use super::super::schema::{FORMAT, VERSION};
use super::column::{self, Column, Shape};
use super::{CROISSANT, Error, licence, pattern, split};
use crate::builder::Form;
use crate::task::Task;

/// The whole file.
///
/// # Errors
/// When the index cannot be described.
pub(super) fn text(index: &Index) -> Result<String, Error> {
    let mut text = front(&index.tasks, index.layout.form)?;
    text.push_str(&about(index));
    text.push_str(&sources(&index.sources));
    if index.tasks.iter().any(|task| !task.task.is_graph()) {
        put(&mut text, format_args!("\n{}\n", licence::TEXTS));
    }
    for task in &index.tasks {
        text.push_str(&task_text(task, index.layout.form)?);
    }
    text.push_str(&made(index)?);
    Ok(text)
}

/// The part that machines read: YAML between two lines of dashes.
pub(super) fn front(tasks: &[TaskIndex], form: Form) -> Result<String, Error> {
    let mut yaml =
        "---\npretty_name: engraft shards\nlicense: other\nlicense_name: by-source\nconfigs:\n".to_owned();
    for task in tasks {
        put(&mut yaml, format_args!("- config_name: {}\n  data_files:\n", task.task.name()));
        for part in &task.parts {
            let (name, path) = (split(part.part), pattern(task, part));
            put(&mut yaml, format_args!("  - split: {name}\n    path: {path}\n"));
        }
    }
    yaml.push_str("dataset_info:\n");
    for task in tasks {
        put(&mut yaml, format_args!("- config_name: {}\n  features:\n", task.task.name()));
        let columns = column::all(task.task, form)?;
        for Column { name, kind, shape, .. } in &columns {
            let key = if *shape == Shape::List { "list" } else { "dtype" };
            put(&mut yaml, format_args!("  - name: {name}\n    {key}: {}\n", kind.datasets));
        }
        yaml.push_str("  splits:\n");
        let (mut on_disk, mut in_memory) = (0, 0);
        for part in &task.parts {
            let size: u64 = columns.iter().map(|column| column.bytes(part.rows, part.tokens)).sum();
            let (name, rows) = (split(part.part), part.rows);
            put(
                &mut yaml,
                format_args!("  - name: {name}\n    num_bytes: {size}\n    num_examples: {rows}\n"),
            );
            on_disk += bytes(part);
            in_memory += size;
        }
        put(&mut yaml, format_args!("  download_size: {on_disk}\n  dataset_size: {in_memory}\n"));
    }
    yaml.push_str("---\n");
    Ok(yaml)
}

fn about(index: &Index) -> String {
    let mut text = format!(
        "\n# engraft shards\n\nTriples of knowledge graphs and texts as encoded training samples, one folder and one config per task. \
         `{FILE}` (`{FORMAT}`, version {VERSION}) lists every file with its checksums, `{CROISSANT}` describes them as Croissant.\n\n"
    );
    if let Some(task) = index.tasks.first().map(|task| task.task.name()) {
        put(
            &mut text,
            format_args!(
                "```python\nload_dataset(FOLDER, {task:?}, split=\"train\", streaming=True)\n```\n\n"
            ),
        );
    }
    let tokenizer = &index.tokenizer;
    let special = tokenizer.special;
    put(
        &mut text,
        format_args!(
            "Token ids belong to the vocabulary with the BLAKE3 digest `{}`: {} entries, padding {}, unknown {}, [CLS] {}, [SEP] {}, \
             [MASK] {}. Another vocabulary gives nonsense. The first classes of task relation are: {}.\n",
            tokenizer.blake3,
            tokenizer.size,
            special.padding,
            special.unknown,
            special.cls,
            special.sep,
            special.blank,
            first(&index.relations)
        ),
    );
    if !index.classes.is_empty() {
        put(&mut text, format_args!("Classes of task tagging: {}.\n", index.classes.join(", ")));
    }
    text
}

/// A few names and how many more there are.
fn first(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let shown: Vec<&str> = names.iter().take(SHOWN).map(String::as_str).collect();
    let more = names.len().saturating_sub(SHOWN);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", shown.join(", "))
}

pub(super) fn sources(sources: &[Source]) -> String {
    if sources.is_empty() {
        return "\n## Sources\n\nThe index names no source.\n".to_owned();
    }
    let mut text = format!(
        "\n## Sources and their licence levels\n\n{}\n\n| source | level | triples | what the level allows |\n\
         |---|---|--:|---|\n",
        licence::ABOUT
    );
    for source in sources {
        for (level, triples) in &source.levels {
            let (name, allows) = (cell(&source.name), licence::meaning(level));
            put(&mut text, format_args!("| {name} | {level} | {triples} | {allows} |\n"));
        }
    }
    text
}

pub(super) fn task_text(task: &TaskIndex, form: Form) -> Result<String, Error> {
    let name = task.task.name();
    let mut text = format!(
        "\n## {name}\n\n{}.\n\n| split | part | items | rows | tokens | tokens of the longest row | files | bytes |\n\
         |---|---|--:|--:|--:|--:|--:|--:|\n",
        asks(task.task)
    );
    for part in &task.parts {
        let (items, rows, tokens, longest) = (part.items, part.rows, part.tokens, part.longest());
        let (split, part_name, files, bytes) =
            (split(part.part), part.part.name(), part.files.len(), bytes(part));
        put(
            &mut text,
            format_args!(
                "| {split} | {part_name} | {items} | {rows} | {tokens} | {longest} | {files} | {bytes} |\n"
            ),
        );
    }
    text.push_str("\n| column | type | meaning |\n|---|---|---|\n");
    for column in column::all(task.task, form)? {
        let (shown, meaning) = (column.shown(), cell(&column.meaning));
        put(&mut text, format_args!("| `{}` | {shown} | {meaning} |\n", column.name));
    }
    Ok(text)
}

/// What a task asks for.
pub(super) fn asks(task: Task) -> &'static str {
    match task {
        Task::Subject => "Predict all tokens of the subject from relation and object",
        Task::Object => "Predict all tokens of the object from subject and relation",
        Task::Relation => "Predict the relation from subject and object",
        Task::Triplet => "Tell stated triples from corrupted ones",
        Task::MaskedLm => "Predict the blanks of a text",
        Task::Tagging => "Give every word of a text its tag",
    }
}

/// The settings behind the rows, as they stand in the index.
fn made(index: &Index) -> Result<String, Error> {
    let mut text = format!("\n## How it was made\n\nLayout:\n\n{}", block(&json!(index.layout))?);
    if index.tasks.iter().any(|task| task.task == Task::Triplet) {
        let (seed, config, counts) =
            (index.negatives.seed, json!(index.negatives.config), json!(index.negatives.counts));
        put(&mut text, format_args!("\nNegatives, drawn with seed {seed}:\n\n{}", block(&config)?));
        put(&mut text, format_args!("\nWhat became of what was proposed, by part:\n\n{}", block(&counts)?));
    }
    Ok(text)
}

fn block(value: &serde_json::Value) -> Result<String, Error> {
    Ok(format!("```json\n{}\n```\n", serde_json::to_string_pretty(value)?))
}

fn bytes(part: &PartIndex) -> u64 {
    part.files.iter().map(|file: &FileIndex| file.bytes).sum()
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

fn put(to: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing into a string does not fail.
    let _always = to.write_fmt(what);
}
