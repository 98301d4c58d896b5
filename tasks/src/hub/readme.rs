//! README.md: one config per set of rows as `datasets` reads them, and the parts of a text for people.

use std::fmt::Write as _;

use super::column::{Column, Shape};
use super::{Set, split};
use crate::shard::index::{FileIndex, PartIndex, Tokenizer};

/// The part that machines read: YAML between two lines of dashes.
pub(crate) fn front(title: &str, sets: &[Set<'_>]) -> String {
    let mut yaml = format!("---\npretty_name: {title}\nlicense: other\nlicense_name: by-source\nconfigs:\n");
    for set in sets {
        put(&mut yaml, format_args!("- config_name: {}\n  data_files:\n", set.named.name));
        for (part, _) in &set.parts {
            let (name, path) = (split(part.part), set.pattern(part));
            put(&mut yaml, format_args!("  - split: {name}\n    path: {path}\n"));
        }
    }
    yaml.push_str("dataset_info:\n");
    for set in sets {
        put(&mut yaml, format_args!("- config_name: {}\n  features:\n", set.named.name));
        set.columns.iter().for_each(|column| feature(column, &mut yaml));
        yaml.push_str("  splits:\n");
        let (mut on_disk, mut in_memory) = (0, 0);
        for (part, size) in &set.parts {
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
    yaml
}

/// A column as `datasets` has its features.
fn feature(Column { name, kind, shape, classes, .. }: &Column, yaml: &mut String) {
    let key = if *shape == Shape::List { "list" } else { "dtype" };
    put(yaml, format_args!("  - name: {name}\n    {key}:"));
    if classes.is_empty() {
        return put(yaml, format_args!(" {}\n", kind.datasets));
    }
    put(yaml, format_args!("\n      class_label:\n        names:\n"));
    for (class, name) in classes.iter().enumerate() {
        put(yaml, format_args!("          '{class}': \"{}\"\n", escaped(name)));
    }
}

/// A name between the quotes of YAML, in which nothing is markup or steers a terminal: it is read as it was.
fn escaped(name: &str) -> String {
    let each = name.chars().map(|c| match u32::from(c) {
        _ if c.is_alphanumeric() || " -_.,;:/()+'%".contains(c) => c.to_string(),
        code @ ..=0xffff => format!("\\u{code:04x}"),
        code => format!("\\U{code:08x}"),
    });
    each.collect()
}

/// The vocabulary that ids belong to: sentences.
pub(crate) fn vocabulary(tokenizer: &Tokenizer) -> String {
    let special = tokenizer.special;
    format!(
        "Token ids belong to the vocabulary with the BLAKE3 digest `{}`: {} entries, padding {}, unknown {}, [CLS] {}, [SEP] {}, \
         [MASK] {}. Another vocabulary gives nonsense.",
        tokenizer.blake3,
        tokenizer.size,
        special.padding,
        special.unknown,
        special.cls,
        special.sep,
        special.blank,
    )
}

/// A chapter for a set: its parts and its columns.
pub(crate) fn set_text(set: &Set<'_>) -> String {
    let mut text = format!(
        "\n## {}\n\n{}.\n\n| split | part | items | rows | tokens | tokens of the longest row | files | bytes |\n\
         |---|---|--:|--:|--:|--:|--:|--:|\n",
        set.named.name, set.named.about
    );
    for (part, _) in &set.parts {
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
    for column in &set.columns {
        let (shown, meaning) = (column.shown(), cell(&column.meaning));
        put(&mut text, format_args!("| `{}` | {shown} | {meaning} |\n", column.name));
    }
    text
}

/// Settings as they stand in the index.
pub(crate) fn block(value: &serde_json::Value) -> String {
    format!("```json\n{value:#}\n```\n")
}

fn bytes(part: &PartIndex) -> u64 {
    part.files.iter().map(|file: &FileIndex| file.bytes).sum()
}

/// Text in a cell of a table.
pub(crate) fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

pub(crate) fn put(to: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing into a string does not fail.
    let _always = to.write_fmt(what);
}
