//! Where a config comes from, and so where each of its settings stands: a line of a file, a preset, or a `--set`.

use toml::Table;
use toml::de::{DeTable, DeValue};

use super::layer::Layer;
use super::set;

/// The texts of a config and what `--set` made of them.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Origin {
    /// The texts, later ones over earlier ones.
    pub(super) layers: Vec<Layer>,
    pub(super) sets: Vec<String>,
    /// All together.
    pub(super) whole: Table,
}

/// Where a setting stands.
enum Spot<'o> {
    Set(String),
    At { name: &'o str, line: usize, column: usize },
}

impl std::fmt::Debug for Origin {
    /// Without the texts, which may hold signed URLs.
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Origin").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl Origin {
    /// The config's own file, or `the embedded default`.
    pub(super) fn name(&self) -> &str {
        self.layers.last().map_or("the config", |layer| &layer.name)
    }

    /// Whether a text or a `--set` has this table or key.
    pub(crate) fn has(&self, key: &str) -> bool {
        in_numbers(&self.whole, key.split('.')).is_some()
    }

    /// Adds where the setting stands that a message begins with, as messages about settings do: `finetune.batch is 0, ...`.
    #[must_use]
    pub(crate) fn locate(&self, error: anyhow::Error) -> anyhow::Error {
        let text = format!("{error:#}");
        let first = text.split([' ', ':', '=']).next().unwrap_or_default();
        match self.place(first.trim_matches(['[', ']'])) {
            Some(place) => error.context(place),
            None => error,
        }
    }

    /// `FILE:LINE:COLUMN`, or the `--set` with which the setting came; none of one that is not there.
    pub(super) fn place(&self, key: &str) -> Option<String> {
        self.spot(key).map(|spot| match spot {
            Spot::Set(set) => set,
            Spot::At { name, line, column } => format!("{name}:{line}:{column}"),
        })
    }

    /// The same without the column, for lists of settings.
    pub(super) fn line(&self, key: &str) -> Option<String> {
        self.spot(key).map(|spot| match spot {
            Spot::Set(set) => set,
            Spot::At { name, line, .. } => format!("{name}:{line}"),
        })
    }

    fn spot(&self, key: &str) -> Option<Spot<'_>> {
        let key = in_numbers(&self.whole, key.split('.'))?;
        let set = self.sets.iter().rev().find(|of| {
            let parts = of.split('=').next().unwrap_or_default().trim().split('.');
            in_numbers(&self.whole, parts).is_some_and(|parts| key.starts_with(&parts))
        });
        if let Some(set) = set {
            return Some(Spot::Set(format!("--set {}", set::shown(set))));
        }
        let named = in_names(&self.whole, &key);
        self.layers.iter().rev().find_map(|layer| {
            let key = in_numbers(&layer.table, named.iter().map(String::as_str))?;
            let document = DeTable::parse(&layer.text).ok()?;
            let start = start(document.get_ref(), &key)?;
            let before = layer.text.get(..start)?;
            let line_start = before.rfind('\n').map_or(0, |end| end + 1);
            let (line, column) = (1 + before.matches('\n').count(), 1 + before[line_start..].chars().count());
            Some(Spot::At { name: &layer.name, line, column })
        })
    }
}

/// The parts of a key of `whole` with items of lists by their names, as far as they have some: an item may stand at another place in each text.
fn in_names(whole: &Table, key: &[String]) -> Vec<String> {
    let mut at: Option<&toml::Value> = None;
    let parts = key.iter().map(|part| {
        let (named, next) = match at {
            None => (None, whole.get(part)),
            Some(toml::Value::Array(items)) => {
                let item = part.parse().ok().and_then(|place: usize| items.get(place));
                (item.and_then(|item| item.get("name")).and_then(toml::Value::as_str), item)
            }
            Some(other) => (None, other.get(part)),
        };
        at = next;
        named.unwrap_or(part).to_owned()
    });
    parts.collect()
}

/// The parts of a key with items of lists by their places, whether it has them by name or by place.
fn in_numbers<'k>(table: &Table, key: impl Iterator<Item = &'k str>) -> Option<Vec<String>> {
    let (mut parts, mut at): (_, Option<&toml::Value>) = (vec![], None);
    for part in key {
        let (part, next) = match at {
            None => (part.to_owned(), table.get(part)?),
            Some(toml::Value::Array(items)) => {
                let named = |item: &toml::Value| item.get("name").and_then(toml::Value::as_str) == Some(part);
                let place = items.iter().position(named).or_else(|| part.parse().ok())?;
                (place.to_string(), items.get(place)?)
            }
            Some(other) => (part.to_owned(), other.get(part)?),
        };
        parts.push(part);
        at = Some(next);
    }
    Some(parts)
}

/// Where in the text the last part of a key begins.
fn start(document: &DeTable<'_>, key: &[String]) -> Option<usize> {
    let (first, below) = key.split_first()?;
    let (name, value) = document.get_key_value(first.as_str())?;
    let (mut start, mut at) = (name.span().start, value);
    for part in below {
        match at.get_ref() {
            DeValue::Table(table) => {
                let (name, value) = table.get_key_value(part.as_str())?;
                (start, at) = (name.span().start, value);
            }
            DeValue::Array(items) => {
                at = items.get(part.parse::<usize>().ok()?)?;
                start = at.span().start;
            }
            _ => return None,
        }
    }
    Some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_25_a_setting_is_found_where_the_user_wrote_it() {
        let text = "version = 5\n[[recipes]]\nname = \"a\"\n[[recipes]]\nname = \"b\"\n\n[recipes.then]\nepochs = 0\n\
                    [finetune]\nquirks = { tags = { scheme = \"bilou\" } }\n";
        let under = "[finetune]\nepochs = 3\n[[recipes]]\nname = \"b\"\nbatch = 7\n[[recipes]]\nname = \"c\"\nbatch = 9\n";
        let layer = |name: &str, text: &str| Layer {
            name: name.to_owned(),
            text: text.to_owned(),
            table: text.parse().unwrap(),
        };
        let layers = vec![layer("under.toml", under), layer("x.toml", text)];
        let mut whole = Table::new();
        layers.iter().for_each(|layer| crate::config::merge::merge(&mut whole, layer.table.clone()));
        let mut whole = toml::Value::Table(whole);
        let sets = vec!["recipes.b.dropout=0.2".to_owned(), "finetune.seeds=[1, 2]".to_owned()];
        for set in &sets {
            let (key, value) = set::split(set).unwrap();
            set::put(&mut whole, &key, value).unwrap();
        }
        let toml::Value::Table(whole) = whole else { panic!() };
        let origin = Origin { layers, sets, whole };
        let place = |key: &str| origin.place(key);
        assert_eq!(place("recipes.b.then.epochs").as_deref(), Some("x.toml:8:1"));
        assert_eq!(place("recipes.0.then").as_deref(), Some("x.toml:7:10"));
        assert_eq!(place("recipes.b.batch").as_deref(), Some("under.toml:5:1"));
        assert_eq!(place("recipes.c.batch").as_deref(), Some("under.toml:8:1"));
        assert_eq!(place("finetune.quirks.tags.scheme").as_deref(), Some("x.toml:10:21"));
        assert_eq!(place("finetune.epochs").as_deref(), Some("under.toml:2:1"));
        assert_eq!(place("recipes.b.dropout").as_deref(), Some("--set recipes.b.dropout=0.2"));
        assert_eq!(place("finetune.seeds.1").as_deref(), Some("--set finetune.seeds=[1, 2]"));
        assert_eq!(place("finetune.on"), None);
        let told = |text: &str| format!("{:#}", origin.locate(anyhow::anyhow!("{text}")));
        assert_eq!(told("recipes.b.then.epochs is 0"), "x.toml:8:1: recipes.b.then.epochs is 0");
        assert_eq!(told("[finetune] has nothing"), "x.toml:9:2: [finetune] has nothing");
        assert_eq!(told("something else"), "something else");
    }
}
