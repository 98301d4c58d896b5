//! One `--set KEY=VALUE`: its key, its value, and a config with it.

use store::location::is_address;

use crate::toml_text;

/// Most parts of a key; no config has one of more than ten.
const MOST_PARTS: usize = 32;
/// Most characters of a `--set` that a message shows.
const MOST_SHOWN: usize = 200;

/// How messages name a `--set`: without a value that may be a signed URL or hold credentials, and not at any length.
pub(crate) fn shown(set: &str) -> String {
    let key = set.split('=').next().unwrap_or_default();
    let value = set.split_once('=').map_or("", |(_, value)| value).trim_start_matches([' ', '"', '\'']);
    let shown = if is_address(key) {
        "...".to_owned()
    } else if set.contains("://") || is_address(value) {
        format!("{key}=...")
    } else {
        set.to_owned()
    };
    match shown.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}...", &shown[..end]),
        None => shown,
    }
}

/// The parts of a key, and what is to stand there.
///
/// # Errors
/// When there is no key, it has too many parts, or the value is nested too deeply.
pub(crate) fn split(set: &str) -> Result<(Vec<&str>, toml::Value), String> {
    let (key, value) = set.split_once('=').ok_or("expected KEY=VALUE")?;
    let (key, value) = (key.trim(), value.trim());
    let among = key.split('.').count();
    // A table is made for each part, and whatever walks over tables walks by recursion.
    if among > MOST_PARTS {
        return Err(format!("the key has {among} parts, expected at most {MOST_PARTS}"));
    }
    if key.rsplit('.').next().is_none_or(str::is_empty) {
        return Err("the key is empty".to_owned());
    }
    Ok((key.split('.').collect(), self::value(value)?))
}

/// Refuses keys that are read before any `--set`: their change would have no effect.
///
/// # Errors
/// With what to do instead.
pub(super) fn check(key: &[&str]) -> Result<(), String> {
    match key {
        ["data"] => Err("use --data LOCATION".to_owned()),
        ["out"] => Err("use --out FOLDER".to_owned()),
        ["extends"] => {
            Err("expected in a config file: write one that extends both, and name it by --config".to_owned())
        }
        _ => Ok(()),
    }
}

/// TOML, or else a plain text.
fn value(text: &str) -> Result<toml::Value, String> {
    let line = format!("value = {text}");
    toml_text::bounded(&line)?;
    let Ok(mut parsed) = line.parse::<toml::Table>() else { return Ok(toml::Value::String(text.to_owned())) };
    let value = parsed.remove("value").ok_or("no value")?;
    match parsed.keys().next() {
        None => Ok(value),
        Some(other) => {
            Err(format!("the value is followed by another key, `{other}`: give each its own --set"))
        }
    }
}

/// Puts `value` under the key of these parts, which are keys of tables and names or places of items of lists.
///
/// # Errors
/// When something that has no parts is in the way, or a list has no such item.
pub(super) fn put(config: &mut toml::Value, key: &[&str], value: toml::Value) -> Result<(), String> {
    let Some((last, above)) = key.split_last() else { return Err("the key is empty".to_owned()) };
    let mut at = config;
    for part in above {
        at = match at {
            toml::Value::Table(table) => {
                table.entry(*part).or_insert_with(|| toml::Value::Table(toml::Table::new()))
            }
            other => item(other, part)?,
        };
    }
    match at {
        toml::Value::Table(table) => {
            table.insert((*last).to_owned(), value);
        }
        other => *item(other, last)? = value,
    }
    Ok(())
}

/// The item of a list that has `name`, or else the one at that place, from 0.
fn item<'a>(list: &'a mut toml::Value, name: &str) -> Result<&'a mut toml::Value, String> {
    let toml::Value::Array(items) = list else {
        return Err(format!(
            "`{name}` cannot be below a value that is no table and no list, but a {}",
            list.type_str()
        ));
    };
    let named = |item: &toml::Value| item.get("name").and_then(toml::Value::as_str).map(str::to_owned);
    let names: Vec<String> = items.iter().filter_map(named).collect();
    let place =
        items.iter().position(|item| named(item).as_deref() == Some(name)).or_else(|| name.parse().ok());
    let among = items.len();
    place.and_then(|place| items.get_mut(place)).ok_or_else(|| match names.as_slice() {
        [] => format!("there is no item `{name}` among {among}, which are counted from 0"),
        names => format!("there is no item `{name}` among {among}, whose names are: {}", names.join(", ")),
    })
}
