//! One walk over everything that shapes an artifact. What it yields is hashed into the fingerprint, kept in the ledger and compared by `why`, so a fingerprint
//! cannot change without a field to name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::digest::Digest;

/// Is told every field of a stage's settings, by path.
pub(crate) trait Describe {
    /// The field at `path` (`world.scale`) has this value.
    fn field(&mut self, path: &str, value: Value);

    /// The field at `path` cannot be put into words, so the stage must not run.
    fn unfit(&mut self, path: &str, why: String);
}

/// Describes every field of `config` below `path`. Tables are walked into; so are lists that hold tables.
pub(crate) fn config(to: &mut dyn Describe, path: &str, config: &impl Serialize) {
    config_but(to, path, config, &[]);
}

/// The same without some keys of `config`, which shape no artifact.
pub(crate) fn config_but(to: &mut dyn Describe, path: &str, config: &impl Serialize, but: &[&str]) {
    match serde_json::to_value(config) {
        Ok(mut value) => {
            if let Value::Object(table) = &mut value {
                table.retain(|key, _| !but.contains(&key.as_str()));
            }
            walk(to, path, value);
        }
        Err(error) => to.unfit(path, error.to_string()),
    }
}

/// Where what describes itself by the same paths several times goes: everything below `path`.
pub(crate) fn under(to: &mut dyn Describe, path: &str, of: impl FnOnce(&mut dyn Describe)) {
    of(&mut Under { to, path });
}

fn walk(to: &mut dyn Describe, path: &str, value: Value) {
    let mut under = Under { to, path };
    match value {
        Value::Object(table) if !table.is_empty() => {
            table.into_iter().for_each(|(key, value)| walk(&mut under, &key, value));
        }
        Value::Array(list) if list.iter().any(|item| item.is_object() || item.is_array()) => {
            list.into_iter().enumerate().for_each(|(i, value)| walk(&mut under, &i.to_string(), value));
        }
        // An optional setting that is not there is not described, so that adding one to a stage changes nothing for those without.
        Value::Null => {}
        leaf => under.to.field(path, leaf),
    }
}

/// Describes what lies one level further down.
struct Under<'a> {
    to: &'a mut dyn Describe,
    path: &'a str,
}

impl Describe for Under<'_> {
    fn field(&mut self, path: &str, value: Value) {
        self.to.field(&format!("{}.{path}", self.path), value);
    }

    fn unfit(&mut self, path: &str, why: String) {
        self.to.unfit(&format!("{}.{path}", self.path), why);
    }
}

/// Everything that shapes one artifact. Two runs with equal descriptions make equal files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Description {
    /// The stage's version.
    pub version: u32,
    /// Every described field, by path.
    pub fields: BTreeMap<String, Value>,
    /// The contents of every outside file, by label; of a folder, by label and path within it.
    pub files: BTreeMap<String, Digest>,
    /// The contents of every input artifact, by stage.
    pub artifacts: BTreeMap<String, Digest>,
    /// Fields that could not be described, with the reason.
    #[serde(skip)]
    pub unfit: BTreeMap<String, String>,
}

impl Description {
    /// Nothing described yet.
    pub(crate) fn new(version: u32) -> Self {
        Self {
            version,
            fields: BTreeMap::new(),
            files: BTreeMap::new(),
            artifacts: BTreeMap::new(),
            unfit: BTreeMap::new(),
        }
    }

    /// The fingerprint of a run of `stage` so described.
    pub(crate) fn fingerprint(&self, stage: &str) -> Digest {
        let mut hasher = Framed(blake3::Hasher::new());
        hasher.part("engraft stage 1");
        hasher.part(stage);
        hasher.part(&self.version.to_string());
        hasher.table(&self.fields);
        hasher.table(&self.files);
        hasher.table(&self.artifacts);
        Digest::from(hasher.0.finalize())
    }
}

impl Describe for Description {
    fn field(&mut self, path: &str, value: Value) {
        if self.fields.insert(path.to_owned(), value).is_some() {
            self.unfit(path, "it is described twice".to_owned());
        }
    }

    fn unfit(&mut self, path: &str, why: String) {
        self.unfit.insert(path.to_owned(), why);
    }
}

/// Hashes parts with their lengths, so that no two lists of parts run together to the same bytes.
struct Framed(blake3::Hasher);

impl Framed {
    fn part(&mut self, text: &str) {
        self.0.update(&(text.len() as u64).to_le_bytes());
        self.0.update(text.as_bytes());
    }

    fn table(&mut self, table: &BTreeMap<String, impl ToString>) {
        self.part(&table.len().to_string());
        for (key, value) in table {
            self.part(key);
            self.part(&value.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn describe(value: &Value) -> Description {
        let mut description = Description::new(1);
        config(&mut description, "train", value);
        description
    }

    #[test]
    fn every_field_is_reached_by_path_in_tables_and_lists_of_tables() {
        let value = json!({"lr": 0.1, "sources": [{"kind": "hsdn"}, {"kind": "umls", "only": []}], "tags": [1, 2], "none": {}});
        let paths: Vec<_> =
            describe(&value).fields.into_iter().map(|(path, value)| format!("{path}={value}")).collect();
        let expected = [
            "train.lr=0.1",
            "train.none={}",
            "train.sources.0.kind=\"hsdn\"",
            "train.sources.1.kind=\"umls\"",
            "train.sources.1.only=[]",
            "train.tags=[1,2]",
        ];
        assert_eq!(paths, expected);
    }

    #[test]
    fn the_fingerprint_sees_every_part_but_not_the_order_of_fields() {
        let base = describe(&json!({"a": 1, "b": 2})).fingerprint("s");
        assert_eq!(describe(&json!({"b": 2, "a": 1})).fingerprint("s"), base);
        let others = [
            describe(&json!({"a": 1, "b": 3})).fingerprint("s"),
            describe(&json!({"a": 1, "c": 2})).fingerprint("s"),
            describe(&json!({"a": "1", "b": 2})).fingerprint("s"),
            describe(&json!({"a": 1, "b": 2})).fingerprint("t"),
            Description { version: 2, ..describe(&json!({"a": 1, "b": 2})) }.fingerprint("s"),
        ];
        assert!(!others.contains(&base));
        let mut moved = describe(&json!({"a": 1, "b": 2}));
        moved.files.insert("x".to_owned(), Digest::of(b"x"));
        let mut as_artifact = describe(&json!({"a": 1, "b": 2}));
        as_artifact.artifacts.insert("x".to_owned(), Digest::of(b"x"));
        assert_ne!(moved.fingerprint("s"), as_artifact.fingerprint("s"));
    }

    #[test]
    fn what_cannot_be_described_or_is_described_twice_is_said() {
        let mut description = Description::new(1);
        config(&mut description, "map", &BTreeMap::from([((1, 2), 3)]));
        assert!(description.unfit.contains_key("map"));
        description.field("a", json!(1));
        description.field("a", json!(1));
        assert!(description.unfit.contains_key("a"));
    }
}
