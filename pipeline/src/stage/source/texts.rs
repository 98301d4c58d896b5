//! A file of texts in a config: where it lies, and how it is laid out if that is said.

use std::fmt;

use kg::source::triples::TextLayout;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::stage::location::{Location, Place, Places};

/// `"PATH"`, of lines `id<TAB>text`, or `{ path, layout }`.
#[derive(Debug, Clone, PartialEq)]
pub struct Texts {
    path: Location,
    layout: Option<TextLayout>,
}

impl Texts {
    /// How it is laid out, if that is said.
    pub(super) fn layout(&self) -> Option<&TextLayout> {
        self.layout.as_ref()
    }
}

/// The longer form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Laid {
    path: Location,
    layout: TextLayout,
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Texts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a path, or { path, layout }")
            }

            fn visit_str<E: de::Error>(self, path: &str) -> Result<Texts, E> {
                Ok(Texts { path: Location(path.to_owned()), layout: None })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Texts, A::Error> {
                let Laid { path, layout } = Laid::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Texts { path, layout: Some(layout) })
            }
        }

        deserializer.deserialize_any(Either)
    }
}

/// As it is described: files are described by their contents, wherever they lie.
impl Serialize for Texts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.layout.serialize(serializer)
    }
}

/// A file of texts that a stage can open.
#[derive(Debug)]
pub(super) struct TextFile {
    pub(super) place: Place,
    pub(super) layout: Option<TextLayout>,
}

impl Texts {
    /// Where it lies; `key` is its config key.
    pub(super) fn file(&self, key: &str, places: &Places<'_>) -> anyhow::Result<TextFile> {
        Ok(TextFile { place: self.path.place(key, places)?, layout: self.layout.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize, Serialize)]
    struct Config {
        texts: Texts,
    }

    #[test]
    fn silent_16_a_file_of_texts_is_a_path_or_has_a_layout() {
        let plain: Config = toml::from_str("texts = \"a.txt\"").unwrap();
        assert_eq!(plain.texts, Texts { path: Location("a.txt".to_owned()), layout: None });
        let laid = "texts = { path = \"a.tsv\", layout = { separator = \"tab\", first_line = \"names\", \
                    columns = { id = \"code\", text = 3 } } }";
        let config: Config = toml::from_str(laid).unwrap();
        assert_eq!(config.texts.path, Location("a.tsv".to_owned()));
        let described = serde_json::to_value(&config).unwrap();
        assert_eq!(described["texts"]["columns"]["text"], 3, "{described}");
        assert!(!described.to_string().contains("a.tsv"), "{described}");
        for (wrong, expected) in [
            ("texts = 3", "a path, or { path, layout }"),
            ("texts = { path = \"a\", layuot = 1 }", "layuot"),
            ("texts = { path = \"a\" }", "layout"),
        ] {
            let message = toml::from_str::<Config>(wrong).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
