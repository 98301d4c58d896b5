//! Every setting of a merged config against the schema: unknown keys, missing ones, values of another kind, all of them at once.

use serde_json::{Map, Value};
use toml::{Table, Value as Toml};

use super::schema::{self, Choice, Shape, below, shape};

/// Most faults that one message lists.
const LISTED: usize = 20;
/// Most words that a message lists of a setting that is missing.
const FEW: usize = 6;
/// Tables below one in which a name that it lacks is looked for.
const DEEPER: usize = 2;

/// What is wrong with one setting.
#[derive(Debug, PartialEq)]
pub(super) struct Fault {
    /// The setting, `finetune.seeds`; items of lists by their places.
    pub(super) key: String,
    /// What is wrong with it, without its key.
    pub(super) problem: String,
}

/// All that is wrong with `config`, in the order of the schema.
pub(super) fn faults(config: &Table) -> Vec<Fault> {
    let mut faults = Faults(Vec::new());
    faults.table("", config, schema::schema());
    faults.0.truncate(LISTED);
    faults.0
}

struct Faults(Vec<Fault>);

impl Faults {
    fn add(&mut self, key: &str, problem: String) {
        self.0.push(Fault { key: key.to_owned(), problem });
    }

    fn table(&mut self, key: &str, table: &Table, node: &Value) {
        let Shape::Struct(known) = shape(node) else { return };
        for name in table.keys().filter(|name| !known.contains_key(*name)) {
            self.add(&below(key, name), unknown(name, known, key));
        }
        let missing: Vec<&str> = schema::required(node).filter(|name| !table.contains_key(*name)).collect();
        if !missing.is_empty() {
            let place = if key.is_empty() { "the config".to_owned() } else { format!("[{key}]") };
            let each = missing.iter().map(|name| {
                let node = &known[*name];
                format!("`{name}` ({}{})", about(node), words(node))
            });
            let each: Vec<String> = each.collect();
            self.add(key, format!("misses {}: add to {place}", each.join(" and ")));
        }
        self.alternatives(key, table, node);
        for (name, value) in table {
            if let Some(node) = known.get(name) {
                self.value(&below(key, name), value, node);
            }
        }
    }

    /// Of several keys that say the same thing in different ways, one may be there.
    fn alternatives(&mut self, key: &str, table: &Table, node: &Value) {
        let (names, is_needed) = schema::alternatives(node);
        let all = || listed(&names, "and");
        let given: Vec<&str> = names.iter().copied().filter(|name| table.contains_key(*name)).collect();
        match given.as_slice() {
            [] if is_needed && !names.is_empty() => {
                self.add(key, format!("misses one of {}: add it to [{key}]", all()));
            }
            [] | [_] => {}
            [.., last] => {
                let problem = format!(
                    "is given beside {}, expected only one of {}: leave the other out",
                    listed(&given[..given.len() - 1], "and"),
                    all()
                );
                self.add(&below(key, last), problem);
            }
        }
    }

    fn value(&mut self, key: &str, value: &Toml, node: &Value) {
        match (shape(node), value) {
            (Shape::Struct(_), Toml::Table(table)) => self.table(key, table, node),
            (Shape::Names(each), Toml::Table(table)) => {
                table.iter().for_each(|(name, value)| self.value(&below(key, name), value, each));
            }
            (Shape::List(each), Toml::Array(items)) => {
                let (least, most) = (node["minItems"].as_u64(), node["maxItems"].as_u64());
                if let Some(number) =
                    least.filter(|least| items.len() as u64 != *least && least == &most.unwrap_or(0))
                {
                    self.add(key, format!("has {} items, expected {number}", items.len()));
                }
                items
                    .iter()
                    .enumerate()
                    .for_each(|(i, item)| self.value(&below(key, &i.to_string()), item, each));
            }
            (Shape::OneOf(among), _) => self.choice(key, value, &among),
            (Shape::Whole, Toml::Integer(number)) if *number < 0 && node["minimum"] == 0 => {
                self.add(key, format!("is {number}, expected {}", schema::expected(node)));
            }
            (Shape::Text, Toml::String(_))
            | (Shape::Whole, Toml::Integer(_))
            | (Shape::Number, Toml::Integer(_) | Toml::Float(_))
            | (Shape::Switch, Toml::Boolean(_))
            | (Shape::Any, _) => {}
            _ => self.add(key, format!("is {}, expected {}", shown(value), schema::expected(node))),
        }
    }

    fn choice(&mut self, key: &str, value: &Toml, among: &[Choice<'_>]) {
        match schema::choose(among, value) {
            Some((Choice::Word(..), _)) => {}
            Some((Choice::Keyed(name, node, _), Some(inside))) => self.value(&below(key, name), inside, node),
            Some((Choice::Tagged(tag, _, node), Some(Toml::Table(table)))) => {
                self.tagged(key, tag, table, node);
            }
            Some((Choice::Plain(node), Some(value))) => self.value(key, value, node),
            _ => match (tag(among), value) {
                (Some((tag, words)), Toml::Table(table)) => match table.get(tag) {
                    Some(found) => {
                        self.add(&below(key, tag), format!("is {}, expected {words}", shown(found)));
                    }
                    None => self.add(key, format!("misses `{tag}`, expected {words}: add to [{key}]")),
                },
                _ => self.add(key, mischosen(value, among)),
            },
        }
    }

    /// As [`Faults::table`]; that the tag is known does not have to be said.
    fn tagged(&mut self, key: &str, tag: &str, table: &Table, node: &Value) {
        let mut rest = table.clone();
        rest.remove(tag);
        let mut node = node.clone();
        if let Some(required) = node["required"].as_array_mut() {
            required.retain(|name| name != tag);
        }
        self.table(key, &rest, &node);
    }
}

/// Names as a message lists them.
fn listed(names: &[&str], word: &str) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [before @ .., last] if !before.is_empty() => format!("{} {word} {last}", before.join(", ")),
        names => names.concat(),
    }
}

/// The first sentence of what a setting is.
fn about(node: &Value) -> String {
    let about = node["description"].as_str().unwrap_or_default();
    let first = about.split(". ").next().unwrap_or_default().split('\n').next().unwrap_or_default();
    first.trim_end_matches('.').to_owned()
}

/// The words that a setting takes, where it takes a few words alone.
fn words(node: &Value) -> String {
    match shape(node) {
        Shape::OneOf(among)
            if among.len() <= FEW && among.iter().all(|choice| matches!(choice, Choice::Word(..))) =>
        {
            format!(": {}", schema::one_of(&among))
        }
        _ => String::new(),
    }
}

/// A key that there is not.
fn unknown(name: &str, known: &Map<String, Value>, key: &str) -> String {
    let table = if key.is_empty() { "a config".to_owned() } else { format!("[{key}]") };
    let near = nearest(name, known.keys().map(String::as_str)).map(str::to_owned);
    match near.or_else(|| deeper(name, known, DEEPER)) {
        Some(near) => format!("is no key of {table}; did you mean `{near}`?"),
        None => {
            let known: Vec<String> = known.keys().map(|key| format!("`{key}`")).collect();
            format!("is no key of {table}, expected one of {}", known.join(", "))
        }
    }
}

/// Where a name stands in one of some tables, or in theirs: `stream.batching.tokens` of `tokens`.
fn deeper(name: &str, known: &Map<String, Value>, tables: usize) -> Option<String> {
    let below = |(key, node): (&String, &Value)| Some(format!("{key}.{}", inside(name, node, tables)?));
    known.iter().find_map(below)
}

fn inside(name: &str, node: &Value, tables: usize) -> Option<String> {
    match shape(node) {
        Shape::Struct(known) if known.contains_key(name) => Some(name.to_owned()),
        Shape::Struct(known) if tables > 1 => deeper(name, known, tables - 1),
        Shape::OneOf(among) => among.iter().any(|choice| is_keyed(choice, name)).then(|| name.to_owned()),
        _ => None,
    }
}

fn is_keyed(choice: &Choice<'_>, name: &str) -> bool {
    matches!(choice, Choice::Keyed(key, ..) if *key == name)
}

/// The name that was probably meant.
fn nearest<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let near = known.map(|other| (strsim::jaro_winkler(name, other), other));
    near.filter(|(near, _)| *near > 0.8)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, other)| other)
}

/// Whether a description says that this is another name.
fn is_also_called(about: &str, name: &str) -> bool {
    let others = about.split_once("(also called ").and_then(|(_, behind)| behind.split_once(')'));
    let mut others = others.into_iter().flat_map(|(others, _)| others.split(" and "));
    others.any(|other| other.eq_ignore_ascii_case(name))
}

/// A value that is none of the choices.
fn mischosen(value: &Toml, among: &[Choice<'_>]) -> String {
    let mut near = String::new();
    if let Toml::String(found) = value {
        let words = among.iter().filter_map(|choice| match choice {
            Choice::Word(word, about) => Some((*word, *about)),
            _ => None,
        });
        // Another name of one, which its description gives, may look more like that of another: IOB2 is "bio".
        let named = words.clone().find(|(_, about)| is_also_called(about, found)).map(|(word, _)| word);
        if let Some(word) = named.or_else(|| nearest(found, words.map(|(word, _)| word))) {
            near = format!("; did you mean \"{word}\"?");
        }
    }
    if let Toml::Table(table) = value {
        let keyed = |name: &String| among.iter().any(|choice| is_keyed(choice, name));
        let both: Vec<String> =
            table.keys().filter(|name| keyed(name)).map(|name| format!("`{name}`")).collect();
        if both.len() > 1 {
            return format!("has {}, expected only one of them", both.join(" and "));
        }
        let below = |choice: &Choice<'_>| match choice {
            Choice::Keyed(key, node, _) => {
                let below = table.keys().find_map(|name| inside(name, node, DEEPER))?;
                Some(format!("; did you mean `{key}.{below}`?"))
            }
            _ => None,
        };
        near = among.iter().find_map(below).unwrap_or_default();
    }
    format!("is {}, expected {}{near}", shown(value), schema::one_of(among))
}

/// The key that tells alternatives apart, and its words.
fn tag<'s>(among: &[Choice<'s>]) -> Option<(&'s str, String)> {
    let tags = among.iter().map(|choice| match choice {
        Choice::Tagged(tag, word, _) => Some((*tag, format!("\"{word}\""))),
        _ => None,
    });
    let tags: Vec<(&str, String)> = tags.collect::<Option<_>>()?;
    let words: Vec<&str> = tags.iter().map(|(_, word)| word.as_str()).collect();
    Some((tags.first()?.0, words.join(" or ")))
}

/// A value as a message shows it: never at any length, and no URL, which may be signed.
pub(super) fn shown(value: &Toml) -> String {
    let text = match value {
        Toml::Table(table) => {
            let keys: Vec<&str> = table.keys().map(String::as_str).take(5).collect();
            return format!(
                "a table of {}",
                if keys.is_empty() { "nothing".to_owned() } else { keys.join(", ") }
            );
        }
        Toml::Array(_) => return "a list".to_owned(),
        Toml::String(text) if text.contains("://") || store::location::is_address(text) => {
            return "a URL".to_owned();
        }
        other => other.to_string(),
    };
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
