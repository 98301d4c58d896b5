//! One config over another: tables key by key, lists of named tables by their names (an empty list takes the place of all of them), everything else as a
//! whole.

use serde_json::Value;
use toml::{Table, Value as Toml};

use super::schema::{self, Choice, Shape, shape};

/// Puts `over` over `under`.
pub(super) fn merge(under: &mut Table, over: Table) {
    table(under, over, Some(schema::schema()));
}

fn table(under: &mut Table, over: Table, node: Option<&Value>) {
    let shape = node.map(shape);
    // Of alternatives, the one above takes the place of the one below.
    let alternatives = node.map(|node| schema::alternatives(node).0).unwrap_or_default();
    if alternatives.iter().any(|name| over.contains_key(*name)) {
        under.retain(|key, _| !alternatives.contains(&key) || over.contains_key(key));
    }
    for (key, value) in over {
        let below = match &shape {
            Some(Shape::Struct(known)) => known.get(&key),
            Some(Shape::Names(each)) => Some(*each),
            _ => None,
        };
        match under.get_mut(&key) {
            Some(old) => put(old, value, below),
            None => {
                under.insert(key, value);
            }
        }
    }
}

fn put(under: &mut Toml, over: Toml, node: Option<&Value>) {
    match (under, over) {
        (Toml::Table(old), Toml::Table(new)) => match node.map(shape) {
            Some(Shape::OneOf(among)) => alternative(old, new, &among),
            _ => table(old, new, node),
        },
        (Toml::Array(old), Toml::Array(new)) if !new.is_empty() && are_named(old) && are_named(&new) => {
            let each = node.map(shape).and_then(|shape| match shape {
                Shape::List(each) => Some(each),
                _ => None,
            });
            for item in new {
                match old.iter_mut().find(|old| name(old) == name(&item)) {
                    Some(old) => put(old, item, each),
                    None => old.push(item),
                }
            }
        }
        (under, over) => *under = over,
    }
}

/// Where a table is one of several, another one replaces it, and the same one is merged with it.
fn alternative(old: &mut Table, new: Table, among: &[Choice<'_>]) {
    let whole = Toml::Table(new);
    let chosen = schema::choose(among, &whole);
    let Toml::Table(new) = whole.clone() else { return };
    match chosen {
        Some((Choice::Keyed(key, node, _), _)) => match (old.get_mut(key), new.get(key)) {
            (Some(below), Some(value)) => put(below, value.clone(), Some(node)),
            _ => *old = new,
        },
        Some((Choice::Tagged(tag, _, node), _)) if old.get(tag) == new.get(tag) => {
            table(old, new, Some(node));
        }
        Some((Choice::Plain(node), _)) => table(old, new, Some(node)),
        Some(_) => *old = new,
        // Without its tag it is about the one that is there.
        None if among.iter().any(|choice| matches!(choice, Choice::Tagged(..))) => {
            let there = Toml::Table(old.clone());
            let node = match schema::choose(among, &there) {
                Some((Choice::Tagged(_, _, node), _)) => Some(node),
                _ => None,
            };
            table(old, new, node);
        }
        None => *old = new,
    }
}

fn name(item: &Toml) -> Option<&str> {
    item.get("name").and_then(Toml::as_str)
}

fn are_named(items: &[Toml]) -> bool {
    items.iter().all(|item| name(item).is_some())
}
