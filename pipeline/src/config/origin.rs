//! Where a config comes from, and so where each of its settings stands: a line of the file, or a `--set`.

use toml::de::{DeTable, DeValue};

use super::set;

/// The text of a config and what `--set` made of it.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Origin {
    /// The file, or `the embedded default`.
    pub(super) name: String,
    pub(super) text: String,
    pub(super) sets: Vec<String>,
    /// All together.
    pub(super) whole: toml::Table,
}

impl std::fmt::Debug for Origin {
    /// Without the text, which may hold signed URLs.
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Origin").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Origin {
    /// Adds where the setting stands that a message begins with, as messages about settings do: `finetune.settings.batch is 0, ...`.
    #[must_use]
    pub(crate) fn locate(&self, error: anyhow::Error) -> anyhow::Error {
        let text = format!("{error:#}");
        let first = text.split([' ', ':', '=']).next().unwrap_or_default();
        match self.place(first.trim_matches(['[', ']'])) {
            Some(place) => error.context(place),
            None => error,
        }
    }

    /// `FILE:LINE`, or the `--set` with which the setting came; none of one that is not there.
    pub(super) fn place(&self, key: &str) -> Option<String> {
        let key = in_numbers(&self.whole, key.split('.'))?;
        let set = self.sets.iter().rev().find(|of| {
            let parts = of.split('=').next().unwrap_or_default().trim().split('.');
            in_numbers(&self.whole, parts).is_some_and(|parts| key.starts_with(&parts))
        });
        if let Some(set) = set {
            return Some(format!("--set {}", set::shown(set)));
        }
        let document = DeTable::parse(&self.text).ok()?;
        let start = start(document.get_ref(), &key)?;
        let line = 1 + self.text.get(..start)?.matches('\n').count();
        Some(format!("{}:{line}", self.name))
    }
}

/// The parts of a key with items of lists by their places, whether it has them by name or by place.
fn in_numbers<'k>(table: &toml::Table, key: impl Iterator<Item = &'k str>) -> Option<Vec<String>> {
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
        let text = "version = 4\n[[recipes]]\nname = \"a\"\n[[recipes]]\nname = \"b\"\n\n[recipes.settings]\nepochs = 0\n\
                    [finetune]\nfixed = { ranking = { negatives = 0 } }\n";
        let mut whole = toml::Value::Table(text.parse().unwrap());
        let sets = vec!["recipes.1.batch=7".to_owned(), "finetune.seeds=[1, 2]".to_owned()];
        for set in &sets {
            let (key, value) = set::split(set).unwrap();
            set::put(&mut whole, &key, value).unwrap();
        }
        let toml::Value::Table(whole) = whole else { panic!() };
        let origin = Origin { name: "x.toml".to_owned(), text: text.to_owned(), sets, whole };
        let place = |key: &str| origin.place(key);
        assert_eq!(place("recipes.b.settings.epochs").as_deref(), Some("x.toml:8"));
        assert_eq!(place("recipes.1.settings").as_deref(), Some("x.toml:7"));
        assert_eq!(place("finetune.fixed.ranking.negatives").as_deref(), Some("x.toml:10"));
        assert_eq!(place("recipes.b.batch").as_deref(), Some("--set recipes.1.batch=7"));
        assert_eq!(place("finetune.seeds.1").as_deref(), Some("--set finetune.seeds=[1, 2]"));
        assert_eq!(place("finetune.on"), None);
        let told = |text: &str| format!("{:#}", origin.locate(anyhow::anyhow!("{text}")));
        assert_eq!(told("recipes.b.settings.epochs is 0"), "x.toml:8: recipes.b.settings.epochs is 0");
        assert_eq!(told("[finetune] has nothing"), "x.toml:9: [finetune] has nothing");
        assert_eq!(told("something else"), "something else");
    }
}
