//! Settings that may be wrong: of every setting of a config, values at and beyond its bounds, of other kinds, of other words; and keys that the
//! config leaves out.
use serde_json::Value;
use toml::{Table, Value as Toml};

/// One `--set` of a setting.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mutation {
    /// The key by the names of its tables alone, without places in lists.
    pub(super) general: String,
    /// `KEY=VALUE`.
    pub(super) set: String,
}

impl Mutation {
    /// The value, as TOML.
    pub(super) fn value(&self) -> &str {
        self.set.split_once('=').map_or("", |(_, value)| value)
    }
}

/// All mutations of a resolved config.
pub(super) fn mutations(config: &Table, schema: &Value) -> Vec<Mutation> {
    let mut found = Vec::new();
    table(config, &expanded(schema), ("", ""), &mut found);
    found
}

fn join(above: &str, name: &str) -> String {
    if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") }
}

fn table(table: &Table, nodes: &[&Value], (key, general): (&str, &str), found: &mut Vec<Mutation>) {
    for (name, value) in table {
        let below = (join(key, name), join(general, name));
        mutate(value, &under(nodes, name), (&below.0, &below.1), found);
    }
    let known = nodes.iter().filter_map(|node| node["properties"].as_object()).flatten();
    for (name, node) in known.filter(|(name, _)| !table.contains_key(*name)) {
        for value in seeds(node) {
            found
                .push(Mutation { general: join(general, name), set: format!("{}={value}", join(key, name)) });
        }
    }
}

fn mutate(value: &Toml, nodes: &[&Value], (key, general): (&str, &str), found: &mut Vec<Mutation>) {
    let mut others: Vec<String> = nodes.iter().flat_map(|node| words(node)).collect();
    others.extend(of_value(value));
    others.sort();
    others.dedup();
    let now = value.to_string();
    for other in others.into_iter().filter(|other| *other != now) {
        found.push(Mutation { general: general.to_owned(), set: format!("{key}={other}") });
    }
    match value {
        Toml::Table(inside) => table(inside, nodes, (key, general), found),
        Toml::Array(items) => {
            let of_items = under(nodes, "0");
            for (place, item) in items.iter().enumerate() {
                mutate(item, &of_items, (&join(key, &place.to_string()), general), found);
            }
        }
        _ => {}
    }
}

/// Other values in place of one, whatever its key.
fn of_value(value: &Toml) -> Vec<String> {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    match value {
        Toml::Integer(number) => {
            let near = [number - 1, number + 1, number.saturating_mul(2), number / 2];
            let bounds = [0, -1, 1, 2, 3, 5, 7, 100, 1000, 65_534, 65_535, 1_000_000, 1_000_001, i64::MAX];
            let mut all: Vec<String> = near.iter().chain(&bounds).map(i64::to_string).collect();
            all.extend(["0.5", "true", "\"x\"", "[]", "{}", "1e300"].map(str::to_owned));
            all
        }
        Toml::Float(_) => texts(&[
            "0", "-1", "-0.5", "1", "2", "1e-300", "0.999999", "0.5", "1e-12", "1e30", "1e308", "nan",
            "1000.1", "true", "\"x\"", "[]",
        ]),
        Toml::Boolean(now) => vec![(!now).to_string(), "1".to_owned(), "\"true\"".to_owned()],
        Toml::String(text) => {
            let mut all: Vec<String> =
                texts(&["\"\"", "\" \"", "\"nowhere\"", "\"../x\"", "3", "true", "[]", "{}"]);
            if text.starts_with("world:") {
                all.extend(["\"world:nowhere\"", "\"world:\"", "\"world:../x\""].map(str::to_owned));
            }
            all
        }
        Toml::Array(items) => {
            let mut all: Vec<String> =
                texts(&["[]", "{}", "3", "\"x\"", "[[]]", "[\"\"]", "[-1]", "[0]", "[\"nowhere\"]"]);
            let written = |items: &[Toml]| Toml::Array(items.to_vec()).to_string();
            if let Some(first) = items.first() {
                all.push(written(&[first.clone(), first.clone()]));
                all.push(written(&items[..1]));
                let mut turned = items.clone();
                turned.reverse();
                all.push(written(&turned));
            }
            all
        }
        Toml::Table(_) => texts(&["{}", "3", "\"x\"", "[]", "{ nowhere = 1 }"]),
        Toml::Datetime(_) => vec![],
    }
}

/// A node of the schema with all that it may be.
fn expanded(node: &Value) -> Vec<&Value> {
    let mut all = vec![node];
    for cases in ["oneOf", "anyOf"] {
        all.extend(node[cases].as_array().into_iter().flatten().flat_map(expanded));
    }
    all
}

/// The nodes of what is called `name` in a table, or is an item of a list.
fn under<'s>(nodes: &[&'s Value], name: &str) -> Vec<&'s Value> {
    let each = nodes.iter().flat_map(|node| {
        let children = [&node["properties"][name], &node["additionalProperties"], &node["items"]];
        children.into_iter().filter(|child| child.is_object())
    });
    each.flat_map(expanded).collect()
}

/// Words and alternatives that may stand somewhere.
fn words(node: &Value) -> Vec<String> {
    let word = |word: &Value| word.as_str().map(|word| format!("\"{word}\""));
    let mut all: Vec<String> = node["enum"].as_array().into_iter().flatten().filter_map(word).collect();
    all.extend(word(&node["const"]));
    all.extend(keyed(node));
    all
}

/// `{ key = ... }` of an alternative with one key.
fn keyed(node: &Value) -> Vec<String> {
    let (Some(known), Some(required)) = (node["properties"].as_object(), node["required"].as_array()) else {
        return vec![];
    };
    match (known.iter().next(), known.len(), required.len()) {
        (Some((name, below)), 1, 1) => {
            seeds(below).into_iter().map(|seed| format!("{{ {name} = {seed} }}")).collect()
        }
        _ => vec![],
    }
}

/// Values that a setting which is left out may have.
fn seeds(node: &Value) -> Vec<String> {
    let all = expanded(node);
    let mut seeds: Vec<String> = all.iter().flat_map(|node| words(node)).collect();
    let is = |kind: &str| {
        all.iter().any(|node| {
            node["type"] == kind || node["type"].as_array().is_some_and(|of| of.iter().any(|of| of == kind))
        })
    };
    for (kind, values) in [
        ("integer", &["0", "1", "3"][..]),
        ("number", &["0.5", "2", "-1"]),
        ("boolean", &["true"]),
        ("string", &["\"\"", "\"nowhere\""]),
        ("object", &["{}"]),
        ("array", &["[]", "[\"nowhere\"]"]),
    ] {
        if is(kind) {
            seeds.extend(values.iter().map(|value| (*value).to_owned()));
        }
    }
    seeds
}
