//! What a config says of a source of triples: where its files lie, how they are laid out, how much may not fit.

use std::collections::BTreeSet;
use std::fmt;

use base::setting::InvalidSetting;
use base::share::Share;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::layout::{Columns, Layout, TextColumns, TextLayout};
use super::parquet::Fields;
use crate::source::files::Location;
use crate::source::naming::Allowed;
use crate::source::separated::{Column, FirstLine};
use crate::source::{check_level, check_name, curie};
use crate::unmet;

/// A source of triples.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Options {
    /// Prefixes of ids that are keys of other sources, in upper or lower case: `["UMLS", "MESH"]`. An id with another prefix, or none,
    /// belongs to this source alone.
    ///
    /// Source: ours: because a prefix alone does not say that an id is meant as another source's key.
    #[serde(default)]
    pub curies: BTreeSet<String>,
    /// Pairs of relations that are inverses of each other: `["treats", "treated_by"]`. A relation paired with itself is symmetric.
    ///
    /// Source: ours: because nothing in a triple says which relations are inverse.
    #[serde(default)]
    pub inverses: Vec<[String; 2]>,
    /// Licence level of the whole source, texts and triples: 0 to 9, as the source restriction levels of UMLS. Without it, the source has
    /// no level.
    pub level: Option<u8>,
    /// The files of triples.
    #[serde(flatten)]
    pub rows: Rows,
    /// Texts of entities; not with `kg_bert`, which has its own. Lines of `id<TAB>text` without a header, or whatever `layout` describes.
    pub entity_texts: Option<Texts>,
    /// Texts of relations; not with `kg_bert`. The files are as for `entity_texts`.
    pub relation_texts: Option<Texts>,
    /// Definitions of entities; not with `kg_bert`. The files are as for `entity_texts`.
    pub definitions: Option<Texts>,
    /// Where `entity_texts` or `relation_texts` (or KG-BERT's files) are given: the share of entities, or of relations, that may have no
    /// text in any source and then go by their ids, 0 to 1. Where no texts are given, ids serve as names.
    ///
    /// Source: ours: because a missing name is more often a wrong or truncated file than a nameless entity.
    #[serde(default)]
    pub max_untexted: Share,
    /// The share of a file's texts whose ids may appear in no triple (and no list of ids), 0 to 1.
    ///
    /// Source: ours: because texts that no triple uses mostly mean that the ids of two files do not match.
    #[serde(default)]
    pub max_unused_texts: Share,
    /// The share of a file's rows that may be dropped as malformed (wrong width, empty id, not a number, unlisted id), 0 to 1. With 0 the
    /// first such row is an error.
    ///
    /// Source: ours: because a malformed row more often means a wrong layout than a damaged row.
    #[serde(default)]
    pub max_unfit: Share,
}

/// The files of triples of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rows {
    /// A folder in KG-BERT's layout, read with its official split; or else `table` or `parquet`. Where a part has a fourth column (WN11,
    /// FB13), rows labelled 1 are facts and rows labelled -1 are kept as published negatives in `negatives.parquet`; any other label is an
    /// error.
    KgBert(#[serde(skip_serializing)] Location),
    /// Tables of text: a triple per row.
    Table(Table),
    /// Parquet files: a triple per row. Pages may be uncompressed or use Snappy, gzip, LZ4_RAW or zstd; Brotli, LZO and Hadoop's LZ4 are
    /// refused.
    Parquet(Parquet),
}

impl Default for Rows {
    fn default() -> Self {
        Self::KgBert(Location::default())
    }
}

/// Tables of text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The files, which all have the same layout.
    pub files: Vec<Piece>,
    /// How the files are laid out.
    #[serde(default)]
    pub layout: Layout,
}

/// Parquet files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parquet {
    /// The files, which all have the same columns.
    pub files: Vec<Piece>,
    /// Which columns are read, by name.
    pub columns: Fields,
}

/// A file of triples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    /// Location of the file.
    #[serde(skip_serializing)]
    pub path: Location,
    /// The part of an official split that the file is: `train`, `dev` (or `valid`, `validation`) or `test`. Without it, the file has no
    /// part.
    pub part: Option<String>,
}

/// A file of triples with its key, and how it is read.
pub(super) struct Keyed<'o> {
    pub(super) key: String,
    pub(super) of: &'o Piece,
    pub(super) from: From<'o>,
}

/// How a file of triples is read.
#[derive(Clone, Copy)]
pub(super) enum From<'o> {
    Table(&'o Layout),
    Parquet(&'o Fields),
}

fn keyed<'o>(table: &str, files: &'o [Piece], from: From<'o>) -> impl Iterator<Item = Keyed<'o>> {
    let files = files.iter().enumerate();
    files.map(move |(i, of)| Keyed { key: format!("{table}.files.{i}.path"), of, from })
}

/// Names of the parts of an official split.
const PARTS: [&str; 5] = ["train", "dev", "valid", "validation", "test"];

impl Options {
    /// The key of an entity of the source `name`.
    pub(super) fn key(&self, name: &str, id: &str) -> String {
        let listed = |prefix: &str| self.curies.iter().any(|curie| curie.eq_ignore_ascii_case(prefix));
        match curie::split(id) {
            Some(curie) if listed(curie.prefix) => curie.key(),
            _ => format!("{name}:{id}"),
        }
    }

    /// What is told of `curies` that none of `ids` has.
    pub(super) fn unmet_curies<'i>(&self, name: &str, ids: impl Iterator<Item = &'i str>) -> Option<String> {
        if self.curies.is_empty() {
            return None;
        }
        let prefixes = ids.filter_map(|id| Some(curie::split(id)?.prefix.to_ascii_lowercase()));
        let met: BTreeSet<String> = prefixes.collect();
        let unmet = self.curies.iter().filter(|prefix| !met.contains(&prefix.to_ascii_lowercase()));
        let setting = format!("sources.triples.{name}.curies");
        unmet::prefixes(&setting, "no id has the prefix", unmet.map(String::as_str))
    }

    /// How much may not fit.
    pub(super) fn allowed(&self) -> Allowed {
        let Self { max_untexted, max_unused_texts, max_unfit, .. } = *self;
        Allowed { max_untexted, max_unused_texts, max_unfit }
    }

    /// The files of triples, but for those of `kg_bert`.
    pub(super) fn pieces(&self) -> impl Iterator<Item = Keyed<'_>> {
        let pieces = match &self.rows {
            Rows::KgBert(_) => None,
            Rows::Table(Table { files, layout }) => Some(keyed("table", files, From::Table(layout))),
            Rows::Parquet(Parquet { files, columns }) => {
                Some(keyed("parquet", files, From::Parquet(columns)))
            }
        };
        pieces.into_iter().flatten()
    }

    /// The files of texts, by their keys.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&'static str, &Texts)> {
        let texts = [
            ("entity_texts", &self.entity_texts),
            ("relation_texts", &self.relation_texts),
            ("definitions", &self.definitions),
        ];
        texts.into_iter().filter_map(|(key, texts)| Some((key, texts.as_ref()?)))
    }

    pub(super) fn check_name(&self, name: &str) -> Result<(), InvalidSetting> {
        check_name(name)?;
        check_level("level", self.level)
    }

    /// Whether there are files, and what may stand beside them.
    pub(super) fn check_files(&self) -> Result<(), InvalidSetting> {
        let (key, files) = match (&self.rows, self.texts().next()) {
            (Rows::KgBert(_), Some((key, _))) => {
                let expected = "left out: with `kg_bert` the texts that lie there are taken";
                return Err(InvalidSetting::new(key, "given", expected));
            }
            (Rows::KgBert(_), None) => return Ok(()),
            (Rows::Table(of), _) => ("table.files", &of.files),
            (Rows::Parquet(of), _) => ("parquet.files", &of.files),
        };
        if files.is_empty() {
            return Err(InvalidSetting::new(key, "empty", "at least one file"));
        }
        for (i, file) in files.iter().enumerate() {
            if let Some(part) = file.part.as_deref().filter(|part| !PARTS.contains(part)) {
                let expected = format!("one of {}", PARTS.join(", "));
                return Err(InvalidSetting::new(format!("{key}.{i}.part"), format!("{part:?}"), expected));
            }
        }
        Ok(())
    }

    /// Whether it may say which triples are held out: as KG-BERT's folder does, or by files of parts.
    #[must_use]
    pub fn has_parts(&self) -> bool {
        matches!(self.rows, Rows::KgBert(_)) || self.pieces().any(|piece| piece.of.part.is_some())
    }

    /// Whether columns are counted from 1, and have a name where the first line has names.
    pub(super) fn check_columns(&self) -> Result<(), InvalidSetting> {
        let mut all: Vec<(String, &Column, FirstLine)> = Vec::new();
        for (file, texts) in self.texts() {
            let Some(layout) = &texts.layout else { continue };
            let TextLayout { columns: TextColumns { id, text, active }, first_line, .. } = layout;
            let named = [("id", Some(id)), ("text", Some(text)), ("active", active.as_ref())];
            let named = named.into_iter().filter_map(|(name, column)| Some((name, column?)));
            all.extend(named.map(|(name, of)| (format!("{file}.layout.columns.{name}"), of, *first_line)));
        }
        if let Rows::Table(Table { layout, .. }) = &self.rows {
            let Columns { subject, relation, object, weight, active } = &layout.columns;
            let named = [("subject", subject), ("relation", relation), ("object", object)];
            let named = named.into_iter().chain(weight.iter().map(|column| ("weight", column)));
            let named = named.chain(active.iter().map(|column| ("active", column)));
            all.extend(
                named.map(|(name, of)| (format!("table.layout.columns.{name}"), of, layout.first_line)),
            );
        }
        all.into_iter().try_for_each(|(key, column, first_line)| match column {
            Column::Name(name) if name.trim().is_empty() => {
                Err(InvalidSetting::new(key, "empty", "the name of a column, or its position from 1"))
            }
            Column::Name(name) if first_line == FirstLine::Row => {
                let expected = "its position from 1, for `first_line = \"row\"` says that no line has names";
                Err(InvalidSetting::new(key, format!("{name:?}"), expected))
            }
            Column::Position(0) => Err(InvalidSetting::new(key, 0, format!("at least 1 and at most {MANY}"))),
            Column::Position(place) if *place > MANY => {
                Err(InvalidSetting::new(key, place, format!("from 1 to {MANY}")))
            }
            _ => Ok(()),
        })
    }
}

/// More columns are a slip.
const MANY: usize = 1_000_000;

/// A file of texts: `"PATH"`, of lines `id<TAB>text`, or `{ path, layout }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Texts {
    /// Where it lies.
    pub path: Location,
    /// How it is laid out, if that is said.
    pub layout: Option<TextLayout>,
}

impl schemars::JsonSchema for Texts {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Texts".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let (path, laid) = (generator.subschema_for::<Location>(), generator.subschema_for::<Laid>());
        schemars::json_schema!({ "anyOf": [path, laid] })
    }
}

/// The longer form: the file, and how it is laid out.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Laid {
    /// Location of the file.
    path: Location,
    /// How the file is laid out.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    #[derive(Debug, Deserialize, Serialize, schemars::JsonSchema)]
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

    #[test]
    fn what_cannot_be_meant_is_named() {
        let folder = Options::default;
        let told = |options: &Options, name: &str| options.check(name).unwrap_err().to_string();
        assert_eq!(folder().check("mine-2"), Ok(()));
        assert!(told(&folder(), "Mine").contains("\"Mine\", expected small letters, digits, _ and -"));
        let high = Options { level: Some(10), ..folder() };
        assert_eq!(told(&high, "mine"), "level is 10, expected at most 9");
        let twice =
            Options { definitions: Some(Texts { path: Location::default(), layout: None }), ..folder() };
        assert!(told(&twice, "mine").starts_with("definitions is given, expected left out"));
        let piece = Piece { path: Location::default(), part: Some("trial".to_owned()) };
        let mut layout = Layout::three();
        let table =
            |files, layout| Options { rows: Rows::Table(Table { files, layout }), ..Options::default() };
        let message = told(&table(Vec::new(), layout.clone()), "mine");
        assert_eq!(message, "table.files is empty, expected at least one file");
        let message = told(&table(vec![piece], layout.clone()), "mine");
        assert_eq!(
            message,
            "table.files.0.part is \"trial\", expected one of train, dev, valid, validation, test"
        );
        layout.columns.object = Column::Position(0);
        let piece = Piece { path: Location::default(), part: None };
        let message = told(&table(vec![piece], layout), "mine");
        assert_eq!(message, "table.layout.columns.object is 0, expected at least 1 and at most 1000000");
    }
}
