//! A config with every setting stated, and where each comes from: what `engraft config` prints.

use serde_json::Value;
use toml::{Table, Value as Toml};

use super::Config;
use super::schema::{self, Choice, Shape, below, shape};

impl Config {
    /// The whole config as TOML, every default stated; with `origin`, each line ends with where its value comes from.
    pub(crate) fn resolved(&self, origin: Origins) -> String {
        let mut text = Text { config: self, origin, text: String::new() };
        text.table("", "", &self.whole());
        text.text
    }

    /// The same as JSON.
    ///
    /// # Errors
    /// When a number has no form in JSON.
    pub(crate) fn resolved_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(&self.whole())
    }

    /// The whole config with every default of the tables that it has; those about a graph are had by a config with one, or that names them.
    fn whole(&self) -> Table {
        let written = &self.origin.whole;
        let mut whole = written.clone();
        fill(&mut whole, schema::schema());
        if !written.contains_key("sources") {
            let other = |table: &str| !OF_GRAPH.contains(&table);
            whole.retain(|table, _| other(table) || written.contains_key(table));
        }
        whole
    }
}

/// Tables that have defaults wherever there is a graph, and are refused where there is none.
const OF_GRAPH: [&str; 4] = ["canon", "split", "summary", "shards"];

/// Whether to say where values come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origins {
    Said,
    Unsaid,
}

/// States the defaults of all tables that there are.
fn fill(table: &mut Table, node: &Value) {
    let Shape::Struct(known) = shape(node) else { return };
    for (key, node) in known {
        if !table.contains_key(key)
            && let Some(default) = as_toml(&node["default"])
        {
            table.insert(key.clone(), default);
        }
        if let Some(value) = table.get_mut(key) {
            fill_value(value, node);
        }
    }
}

fn fill_value(value: &mut Toml, node: &Value) {
    match (shape(node), value) {
        (Shape::Struct(_), Toml::Table(table)) => fill(table, node),
        (Shape::Names(each), Toml::Table(table)) => {
            table.iter_mut().for_each(|(_, value)| fill_value(value, each));
        }
        (Shape::List(each), Toml::Array(items)) => items.iter_mut().for_each(|item| fill_value(item, each)),
        (Shape::OneOf(among), value) => {
            match schema::choose(&among, &value.clone()).map(|(choice, _)| choice) {
                Some(Choice::Keyed(key, node, _)) => {
                    if let Some(below) = value.get_mut(key) {
                        fill_value(below, node);
                    }
                }
                Some(Choice::Tagged(_, _, node)) => {
                    if let Toml::Table(table) = value {
                        fill(table, node);
                    }
                }
                Some(Choice::Plain(node)) => fill_value(value, node),
                _ => {}
            }
        }
        _ => {}
    }
}

/// A default of the schema; what is null in it is left out, as TOML has no null.
fn as_toml(value: &Value) -> Option<Toml> {
    match value {
        Value::Null => None,
        Value::Object(keys) => Some(Toml::Table(
            keys.iter().filter_map(|(key, value)| Some((key.clone(), as_toml(value)?))).collect(),
        )),
        value => Toml::try_from(value).ok(),
    }
}

struct Text<'c> {
    config: &'c Config,
    origin: Origins,
    text: String,
}

impl Text<'_> {
    /// Its values, then its tables, then its lists of tables, as TOML must have them. `header` is `key` without the places of items.
    fn table(&mut self, key: &str, header: &str, table: &Table) {
        for (name, value) in table.iter().filter(|(_, value)| !is_section(value)) {
            self.line(&format!("{} = {value}", quoted(name)), &below(key, name));
        }
        for (name, value) in table.iter().filter(|(_, value)| is_section(value)) {
            let (key, header) = (below(key, name), below(header, &quoted(name)));
            match value {
                Toml::Table(inside) => {
                    if inside.is_empty() || inside.values().any(|value| !is_section(value)) {
                        self.text += &format!("\n[{header}]\n");
                    }
                    self.table(&key, &header, inside);
                }
                Toml::Array(items) => {
                    for (i, inside) in items.iter().filter_map(Toml::as_table).enumerate() {
                        self.text += &format!("\n[[{header}]]\n");
                        self.table(&below(&key, &i.to_string()), &header, inside);
                    }
                }
                _ => {}
            }
        }
    }

    fn line(&mut self, line: &str, key: &str) {
        self.text += line;
        if self.origin == Origins::Said {
            let place = self.config.origin.line(key);
            let place =
                place.or_else(|| self.config.origin.has(key).then(|| "follows from others".to_owned()));
            self.text += &format!("  # {}", place.as_deref().unwrap_or("default"));
        }
        self.text.push('\n');
    }
}

/// Whether a value has a section of its own.
fn is_section(value: &Toml) -> bool {
    match value {
        Toml::Table(_) => true,
        Toml::Array(items) => !items.is_empty() && items.iter().all(Toml::is_table),
        _ => false,
    }
}

/// A key as TOML writes it.
fn quoted(name: &str) -> String {
    let is_bare = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if is_bare && !name.is_empty() { name.to_owned() } else { Toml::String(name.to_owned()).to_string() }
}
