//! The reference of all settings as Markdown, from the schema: what stands in docs/config.md.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::schema::{self, Choice, Shape, shape};

/// A table of every key: what it takes, what it is without one, and what it means.
pub(crate) fn markdown() -> String {
    let text = String::from("| key | takes | default | meaning |\n|---|---|---|---|\n");
    let mut rows = Rows { text, seen: HashMap::new() };
    rows.keys("", schema::schema());
    rows.text
}

/// The paragraph of a description that says where a default is from.
const SOURCE: &str = "Source: ";

/// Tables of fewer keys are told again where they stand again.
const FEW: usize = 3;

struct Rows {
    text: String,
    /// Where tables were told, by their keys.
    seen: HashMap<String, String>,
}

impl Rows {
    /// The keys of a table.
    fn keys(&mut self, key: &str, node: &Value) {
        let Shape::Struct(known) = shape(node) else { return };
        let required: Vec<&str> = schema::required(node).collect();
        let (alternatives, is_needed) = schema::alternatives(node);
        if known.len() > FEW && self.was_told(key, &node["properties"]) {
            return;
        }
        for (name, node) in known.iter().filter(|(_, node)| node["const"].is_null()) {
            let key = schema::below(key, name);
            let without = match name.as_str() {
                name if required.contains(&name) => "*required*".to_owned(),
                name if alternatives.contains(&name) => {
                    let names = alternatives.join("`, `");
                    format!("*{} of* `{names}`", if is_needed { "one" } else { "at most one" })
                }
                _ => default(node),
            };
            self.row(&key, node, &without);
            self.below(&key, node);
        }
    }

    /// Whether the same was told of another key; then that is said.
    fn was_told(&mut self, key: &str, what: &Value) -> bool {
        let what = what.to_string();
        if let Some(before) = self.seen.get(&what) {
            let _ = writeln!(self.text, "| `{key}.*` | | | as `{before}.*` |");
            return true;
        }
        self.seen.insert(what, key.to_owned());
        false
    }

    fn row(&mut self, key: &str, node: &Value, default: &str) {
        let (about, source) = described(node);
        let source = source.map(|source| format!(" *Default: {source}*")).unwrap_or_default();
        self.line(key, node, default, &(about + &source));
    }

    fn line(&mut self, key: &str, node: &Value, default: &str, about: &str) {
        let _ =
            writeln!(self.text, "| `{key}` | {} | {} | {} |", takes(node), escaped(default), escaped(about));
    }

    fn below(&mut self, key: &str, node: &Value) {
        match shape(node) {
            Shape::Struct(_) => self.keys(key, node),
            Shape::Names(each) => self.below(&format!("{key}.NAME"), each),
            Shape::List(each) => self.below(key, each),
            Shape::OneOf(among) => {
                let cases = if node["oneOf"].is_array() { &node["oneOf"] } else { &node["anyOf"] };
                let has_tables = among.iter().any(|choice| !matches!(choice, Choice::Word(..)));
                if has_tables && among.len() > FEW && self.was_told(key, cases) {
                    return;
                }
                for choice in among {
                    match choice {
                        Choice::Word(..) => {}
                        Choice::Keyed(name, node, about) => {
                            let key = format!("{key}.{name}");
                            self.line(&key, node, "", &unlinked(&about.replace('\n', " ")));
                            self.below(&key, node);
                        }
                        Choice::Tagged(_, _, node) | Choice::Plain(node) => self.keys(key, node),
                    }
                }
            }
            _ => {}
        }
    }
}

/// What a setting is where it is left out. Tables tell it key by key.
fn default(node: &Value) -> String {
    match &node["default"] {
        Value::Null | Value::Object(_) => String::new(),
        default => format!("`{default}`"),
    }
}

/// What a setting means, with its words; and where its default is from.
fn described(node: &Value) -> (String, Option<String>) {
    let text = node["description"].as_str().unwrap_or_default();
    let (source, about): (Vec<&str>, Vec<&str>) =
        text.split("\n\n").map(str::trim).partition(|part| part.starts_with(SOURCE));
    let mut about = about.join(" ").replace('\n', " ");
    if let Shape::OneOf(among) = shape(node) {
        for choice in among {
            if let Choice::Word(word, means) = choice
                && !means.is_empty()
            {
                let _ = write!(about, " `{word}`: {}", means.replace('\n', " "));
            }
        }
    }
    let source = source.first().map(|source| source.trim_start_matches(SOURCE).replace('\n', " "));
    (unlinked(&about), source)
}

/// A text without links into the API docs, which say nothing here.
fn unlinked(text: &str) -> String {
    text.replace("[`", "`").replace("`]", "`")
}

fn takes(node: &Value) -> String {
    match shape(node) {
        Shape::Struct(_) => "table".to_owned(),
        Shape::Names(_) => "table of names".to_owned(),
        Shape::List(each) => format!("list of {}", takes(each)),
        Shape::OneOf(among) => {
            let each = among.iter().map(|choice| match choice {
                Choice::Word(word, _) => format!("`\"{word}\"`"),
                Choice::Keyed(name, ..) => format!("`{{ {name} = }}`"),
                Choice::Tagged(tag, word, _) => format!("`{tag} = \"{word}\"`"),
                Choice::Plain(node) => takes(node),
            });
            each.collect::<Vec<_>>().join(", ")
        }
        Shape::Text => "text".to_owned(),
        Shape::Whole => "whole number".to_owned(),
        Shape::Number => "number".to_owned(),
        Shape::Switch => "`true`, `false`".to_owned(),
        Shape::Any => "value".to_owned(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "<!-- keys: made by `engraft config --reference` -->\n";
    const END: &str = "<!-- end of keys -->\n";

    /// `docs/config.md` and `docs/config.schema.json` are what the code says; ENGRAFT_REFERENCE=write writes them.
    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "the one who changes a setting asks for the files to be written anew"
    )]
    fn the_reference_says_what_the_code_does() {
        let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        let (page, file) = (docs.join("config.md"), docs.join("config.schema.json"));
        let text = std::fs::read_to_string(&page).unwrap();
        let (before, rest) = text.split_once(BEGIN).expect("where the keys begin");
        let (_, after) = rest.split_once(END).expect("where the keys end");
        let page_now = format!("{before}{BEGIN}{}{END}{after}", markdown());
        let schema_now = serde_json::to_string_pretty(schema::schema()).unwrap() + "\n";
        if std::env::var_os("ENGRAFT_REFERENCE").is_some() {
            base::whole::write_whole(&page, page_now.as_bytes()).unwrap();
            base::whole::write_whole(&file, schema_now.as_bytes()).unwrap();
        }
        let hint = "run this test with ENGRAFT_REFERENCE=write";
        assert!(
            std::fs::read_to_string(&page).unwrap() == page_now,
            "docs/config.md is not what the code says: {hint}"
        );
        assert!(
            std::fs::read_to_string(&file).unwrap_or_default() == schema_now,
            "docs/config.schema.json: {hint}"
        );
    }

    #[test]
    fn every_setting_is_documented() {
        let missing: Vec<String> = markdown()
            .lines()
            .skip(2)
            .filter(|row| !row.contains(".*` | | | as"))
            .filter(|row| {
                row.split(" | ").nth(3).is_none_or(|about| about.trim_matches([' ', '|']).is_empty())
            })
            .map(str::to_owned)
            .collect();
        assert!(missing.is_empty(), "{missing:#?}");
    }

    /// An empty list and an empty text choose nothing, and a table is told by its keys.
    #[test]
    fn every_default_has_a_source() {
        let text = markdown();
        let missing: Vec<&str> = text
            .lines()
            .skip(2)
            .filter(|row| {
                let default = row.split(" | ").nth(2).unwrap_or_default();
                default.starts_with('`') && !["`[]`", "`\"\"`"].contains(&default)
            })
            .filter(|row| !row.contains(" *Default: "))
            .filter_map(|row| row.split(" | ").next())
            .collect();
        assert!(
            missing.is_empty(),
            "add a paragraph `Source: ...` to the docs of these, which says where the default is from: {missing:#?}"
        );
    }
}
