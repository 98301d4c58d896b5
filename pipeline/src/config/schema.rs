//! The schema of a config, as its types have it: which keys there are, what they take and what they are without one.
//!
//! It is what messages, the layers of configs, `engraft config` and the reference are made by, so that no key can be read without being documented.

use std::sync::OnceLock;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::Config;

/// The JSON Schema of a config (draft 2020-12), without references.
pub(crate) fn schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
        let mut schema = settings.into_generator().into_root_schema_for::<Config>().to_value();
        put_alternatives(&mut schema);
        schema
    })
}

/// Where a table has one of several keys beside others (an enum that is flattened into a struct), puts these keys among the others, and leaves that
/// only one of them may be there.
fn put_alternatives(node: &mut Value) {
    match node {
        Value::Array(items) => items.iter_mut().for_each(put_alternatives),
        Value::Object(keys) => {
            keys.values_mut().for_each(put_alternatives);
            of_table(keys);
        }
        _ => {}
    }
}

fn of_table(node: &mut Map<String, Value>) {
    if !node.contains_key("properties") {
        return;
    }
    let is_optional = |case: &Value| case["type"] == "null" || case.as_object().is_some_and(Map::is_empty);
    for word in [TAGGED, "anyOf"] {
        let Some(Value::Array(cases)) = node.remove(word) else { continue };
        // One that may be left out is an alternative to nothing.
        let inner = cases.iter().filter_map(|case| case[TAGGED].as_array()).flatten();
        let all: Vec<Value> =
            cases.iter().filter(|case| case["properties"].is_object()).chain(inner).cloned().collect();
        let mut names = Vec::new();
        for case in all {
            let (about, Some(known)) = (case["description"].clone(), case["properties"].as_object()) else {
                continue;
            };
            for (name, below) in known {
                let mut below = below.clone();
                // The alternative says more than its type.
                if let (Some(below), false) = (below.as_object_mut(), about.is_null()) {
                    below.insert("description".to_owned(), about.clone());
                }
                node.entry("properties").or_insert_with(|| json!({}))[name] = below;
                names.push(name.clone());
            }
        }
        let mut each: Vec<Value> = names.iter().map(|name| json!({"required": [name]})).collect();
        if cases.iter().any(is_optional) {
            each.push(json!({"not": {"anyOf": each.clone()}}));
        }
        node.insert(TAGGED.to_owned(), Value::Array(each));
    }
}

/// Keys of a table of which one alone may be there, and whether one must be.
pub(crate) fn alternatives(node: &Value) -> (Vec<&str>, bool) {
    let cases = node[TAGGED].as_array().filter(|_| node["properties"].is_object());
    let names = cases.into_iter().flatten().filter_map(|case| case["required"].as_array()?.first()?.as_str());
    let is_optional = cases.is_some_and(|cases| cases.iter().any(|case| case["not"].is_object()));
    (names.collect(), !is_optional)
}

/// Where the schema has cases that a key or a word tells apart; untagged ones stand elsewhere.
const TAGGED: &str = "oneOf";

/// What a place of a config takes.
pub(crate) enum Shape<'s> {
    /// A table of these keys.
    Struct(&'s Map<String, Value>),
    /// A table of any names, all of one kind.
    Names(&'s Value),
    /// A list.
    List(&'s Value),
    /// One of several.
    OneOf(Vec<Choice<'s>>),
    Text,
    Whole,
    Number,
    Switch,
    /// Anything; no setting is so.
    Any,
}

/// One of several that a place may take.
#[derive(Clone, Copy)]
pub(crate) enum Choice<'s> {
    /// This word, and what it means.
    Word(&'s str, &'s str),
    /// A table of this key alone, and what it means.
    Keyed(&'s str, &'s Value, &'s str),
    /// A table in which this key has this word, beside others.
    Tagged(&'s str, &'s str, &'s Value),
    /// Something of another shape.
    Plain(&'s Value),
}

/// What `node` of the schema takes. Whether it may be left out is not said here: TOML has no null.
pub(crate) fn shape(node: &Value) -> Shape<'_> {
    if let Some(words) = node["enum"].as_array() {
        return Shape::OneOf(
            words.iter().filter_map(Value::as_str).map(|word| Choice::Word(word, "")).collect(),
        );
    }
    for key in [TAGGED, "anyOf"] {
        let Some(cases) = node[key].as_array().filter(|_| !node["properties"].is_object()) else { continue };
        let cases: Vec<&Value> = cases.iter().filter(|case| case["type"] != "null").collect();
        return match cases.as_slice() {
            [one] if key != TAGGED => shape(one),
            _ => Shape::OneOf(cases.into_iter().flat_map(|case| choices(case, key)).collect()),
        };
    }
    if let Some(types) = node["type"].as_array() {
        let kind = types.iter().filter_map(Value::as_str).find(|kind| *kind != "null");
        return of_kind(node, kind.unwrap_or_default());
    }
    of_kind(node, node["type"].as_str().unwrap_or_default())
}

fn of_kind<'s>(node: &'s Value, kind: &str) -> Shape<'s> {
    match kind {
        "object" => match (node["properties"].as_object(), &node["additionalProperties"]) {
            (Some(known), _) => Shape::Struct(known),
            (None, each @ Value::Object(_)) => Shape::Names(each),
            _ => Shape::Any,
        },
        "array" => Shape::List(&node["items"]),
        "string" => Shape::Text,
        "integer" => Shape::Whole,
        "number" => Shape::Number,
        "boolean" => Shape::Switch,
        _ => Shape::Any,
    }
}

fn choices<'s>(case: &'s Value, key: &str) -> Vec<Choice<'s>> {
    let about = case["description"].as_str().unwrap_or_default();
    if let Some(word) = case["const"].as_str() {
        return vec![Choice::Word(word, about)];
    }
    if let Some(words) = case["enum"].as_array() {
        return words.iter().filter_map(Value::as_str).map(|word| Choice::Word(word, about)).collect();
    }
    if let (true, Some(known)) = (key == TAGGED, case["properties"].as_object()) {
        let tag = known.iter().find_map(|(key, value)| Some((key.as_str(), value["const"].as_str()?)));
        if let Some((tag, word)) = tag {
            return vec![Choice::Tagged(tag, word, case)];
        }
        if let (Some((key, value)), 1) = (known.iter().next(), known.len()) {
            return vec![Choice::Keyed(key, value, about)];
        }
    }
    vec![Choice::Plain(case)]
}

/// The key of `name` in the table `key`; the whole config is "".
pub(crate) fn below(key: &str, name: &str) -> String {
    if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") }
}

/// What there must be in a table.
pub(crate) fn required(node: &Value) -> impl Iterator<Item = &str> {
    node["required"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The node of `value` among several choices, with the part of the value that it is about; nothing if none takes it.
pub(crate) fn choose<'s, 'v>(
    choices: &[Choice<'s>],
    value: &'v toml::Value,
) -> Option<(Choice<'s>, Option<&'v toml::Value>)> {
    choices.iter().find_map(|choice| match (choice, value) {
        (Choice::Word(word, _), toml::Value::String(found)) if word == found => Some((*choice, None)),
        (Choice::Keyed(key, ..), toml::Value::Table(table)) if table.len() == 1 => {
            table.get(*key).map(|below| (*choice, Some(below)))
        }
        (Choice::Tagged(tag, word, _), toml::Value::Table(table)) => {
            (table.get(*tag).and_then(toml::Value::as_str) == Some(word)).then_some((*choice, Some(value)))
        }
        (Choice::Plain(node), _) => fits(&shape(node), value).then_some((*choice, Some(value))),
        _ => None,
    })
}

/// Whether a value is of the kind, whatever is inside.
fn fits(shape: &Shape<'_>, value: &toml::Value) -> bool {
    match shape {
        Shape::Struct(_) | Shape::Names(_) => value.is_table(),
        Shape::List(_) => value.is_array(),
        Shape::OneOf(among) => choose(among, value).is_some(),
        Shape::Text => value.is_str(),
        Shape::Whole => value.is_integer(),
        Shape::Number => value.is_integer() || value.is_float(),
        Shape::Switch => value.is_bool(),
        Shape::Any => true,
    }
}

/// What a place takes, formatted for a message.
pub(crate) fn expected(node: &Value) -> String {
    match shape(node) {
        Shape::Struct(known) => {
            let keys: Vec<String> = known.keys().map(|key| format!("`{key}`")).collect();
            format!("a table with keys among {}", keys.join(", "))
        }
        Shape::Names(_) => "a table of names".to_owned(),
        Shape::List(items) => format!("a list of {}", items_of(items)),
        Shape::OneOf(among) => one_of(&among),
        Shape::Text => "text in quotes".to_owned(),
        Shape::Whole if node["minimum"] == 0 => "a whole number, 0 or more".to_owned(),
        Shape::Whole => "a whole number".to_owned(),
        Shape::Number => "a number".to_owned(),
        Shape::Switch => "true or false".to_owned(),
        Shape::Any => "a value".to_owned(),
    }
}

fn items_of(node: &Value) -> String {
    match shape(node) {
        Shape::Text => "texts in quotes".to_owned(),
        Shape::Whole => "whole numbers".to_owned(),
        Shape::Number => "numbers".to_owned(),
        Shape::Struct(_) => "tables".to_owned(),
        Shape::List(items) => format!("lists of {}", items_of(items)),
        _ => format!("{} each", expected(node)),
    }
}

pub(crate) fn one_of(among: &[Choice<'_>]) -> String {
    let each = among.iter().map(|choice| match choice {
        Choice::Word(word, _) => format!("\"{word}\""),
        Choice::Keyed(key, ..) => format!("{{ {key} = ... }}"),
        Choice::Tagged(tag, word, _) => format!("{{ {tag} = \"{word}\", ... }}"),
        Choice::Plain(node) => expected(node),
    });
    let each: Vec<String> = each.collect();
    match each.as_slice() {
        [one] => one.clone(),
        [before @ .., last] => format!("{} or {last}", before.join(", ")),
        [] => "nothing".to_owned(),
    }
}
