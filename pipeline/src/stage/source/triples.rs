//! Triples of any origin in a config.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use anyhow::Context as _;
use base::share::Share;
use kg::source::naming::Allowed;
use kg::source::triples::{
    self, Column, Columns, Fields, Layout, Options, RESERVED, Statements, TextColumns, Things, kg_bert,
};
use kg::table::{self, Builder};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::texts::{TextFile, Texts};
use super::{Source, Told, open};
use crate::config::range::{MANY, whole};
use crate::engine::context::Context;
use crate::stage::location::{Location, Place, Places};

/// A source of triples: one of `kg_bert`, `table` and `parquet`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Prefixes of ids that are CURIEs: `["UMLS", "MESH"]`.
    #[serde(default)]
    pub curies: BTreeSet<String>,
    /// Relations that say the same the other way round; twice the same: symmetric.
    #[serde(default)]
    pub inverses: Vec<[String; 2]>,
    /// Licence level of it all.
    pub level: Option<u8>,
    /// A folder in KG-BERT's layout, with its official split.
    #[serde(skip_serializing)]
    pub kg_bert: Option<Location>,
    /// Tables of text.
    pub table: Option<Table>,
    /// Parquet files.
    pub parquet: Option<Parquet>,
    /// Texts of entities; not beside `kg_bert`.
    pub entity_texts: Option<Texts>,
    /// Texts of relations.
    pub relation_texts: Option<Texts>,
    /// Definitions of entities.
    pub definitions: Option<Texts>,
    /// Where there are texts: entities, or relations, that may be without one and are then called by their ids, as a share; none without it.
    #[serde(default)]
    pub max_untexted: Share,
    /// Texts of each file that may be of ids in no triple, as a share; none without it.
    #[serde(default)]
    pub max_unused_texts: Share,
    /// Rows of each file that are left out if they do not fit, as a share; none without it.
    #[serde(default)]
    pub max_unfit: Share,
}

impl Config {
    /// Whether columns are counted from 1; `key` is where they stand.
    pub(super) fn ranges(&self, key: &str) -> anyhow::Result<()> {
        let files = [
            ("entity_texts", &self.entity_texts),
            ("relation_texts", &self.relation_texts),
            ("definitions", &self.definitions),
        ];
        for (name, file) in files {
            let layout = file.as_ref().and_then(Texts::layout);
            for (column, place) in layout.iter().flat_map(|layout| positions(&layout.columns)) {
                whole(format!("{key}.{name}.layout.columns.{column}"), place, 1..=MANY)?;
            }
        }
        let Some(table) = &self.table else { return Ok(()) };
        let Columns { subject, relation, object, weight, active } = &table.layout.columns;
        let columns = [("subject", subject), ("relation", relation), ("object", object)];
        for (name, column) in columns
            .into_iter()
            .chain(weight.iter().map(|column| ("weight", column)))
            .chain(active.iter().map(|column| ("active", column)))
        {
            if let Column::Position(place) = column {
                whole(format!("{key}.table.layout.columns.{name}"), *place as u64, 1..=MANY)?;
            }
        }
        Ok(())
    }
}

/// The columns of a file of texts that are said by number.
fn positions(columns: &TextColumns) -> Vec<(&'static str, u64)> {
    let TextColumns { id, text, active } = columns;
    let named = [("id", Some(id)), ("text", Some(text)), ("active", active.as_ref())];
    let number = |column: &Column| match column {
        Column::Position(place) => Some(*place as u64),
        Column::Name(_) => None,
    };
    named.into_iter().filter_map(|(name, column)| Some((name, number(column?)?))).collect()
}

/// Tables of text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The files.
    pub files: Vec<Piece>,
    /// How they are laid out.
    pub layout: Layout,
}

/// Parquet files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parquet {
    /// The files.
    pub files: Vec<Piece>,
    /// Their columns.
    pub columns: Fields,
}

/// A file of triples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    /// The file.
    #[serde(skip_serializing)]
    pub path: Location,
    /// The part of an official split that it is: `train`, `dev` or `valid`, `test`.
    pub part: Option<String>,
}

/// The source.
#[derive(Debug)]
pub(super) struct Triples {
    options: Options,
    input: Input,
    entity_texts: Option<TextFile>,
    relation_texts: Option<TextFile>,
    definitions: Option<TextFile>,
}

#[derive(Debug)]
enum Input {
    KgBert { files: Vec<Place>, definitions: Option<Place> },
    Table { layout: Layout, files: Vec<(Place, Option<String>)> },
    Parquet { fields: Fields, files: Vec<(Place, Option<String>)> },
}

/// Whether a name is that of another source.
pub(super) fn is_taken(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// The files of KG-BERT's layout that must be there, in the order of [`kg_bert::Files`].
const NEEDED: [&str; 7] = [
    "train.tsv",
    "dev.tsv",
    "test.tsv",
    "entities.txt",
    "relations.txt",
    "entity2text.txt",
    "relation2text.txt",
];
/// Names of the parts of an official split.
const PARTS: [&str; 5] = ["train", "dev", "valid", "validation", "test"];
const LONG_TEXTS: &str = "entity2textlong.txt";

impl Triples {
    pub(super) fn new(name: &str, config: &Config, places: &Places<'_>) -> anyhow::Result<Self> {
        let key = format!("sources.triples.{name}");
        let place = |location: &Location, below: &str| location.place(&format!("{key}.{below}"), places);
        let texts = |texts: &Option<Texts>, below: &str| {
            texts.as_ref().map(|texts| texts.file(&format!("{key}.{below}"), places)).transpose()
        };
        let pieces = |files: &[Piece], below: &str| -> anyhow::Result<Vec<_>> {
            let piece = |(i, piece): (usize, &Piece)| {
                let known = piece.part.as_deref().is_none_or(|part| PARTS.contains(&part));
                let at = format!("{below}.files.{i}");
                anyhow::ensure!(known, "{key}.{at}.part: expected one of {}", PARTS.join(", "));
                Ok((place(&piece.path, &format!("{at}.path"))?, piece.part.clone()))
            };
            anyhow::ensure!(!files.is_empty(), "{key}.{below}.files is empty: name at least one file");
            files.iter().enumerate().map(piece).collect()
        };
        let input = match (&config.kg_bert, &config.table, &config.parquet) {
            (Some(folder), None, None) => Input::kg_bert(&place(folder, "kg_bert")?)?,
            (None, Some(table), None) => {
                Input::Table { layout: table.layout.clone(), files: pieces(&table.files, "table")? }
            }
            (None, None, Some(parquet)) => {
                Input::Parquet { fields: parquet.columns.clone(), files: pieces(&parquet.files, "parquet")? }
            }
            _ => anyhow::bail!("[{key}] needs exactly one of `kg_bert`, `table` and `parquet`"),
        };
        let given = [&config.entity_texts, &config.relation_texts, &config.definitions];
        anyhow::ensure!(
            config.kg_bert.is_none() || given.iter().all(|text| text.is_none()),
            "[{key}] with `kg_bert` takes the texts that lie there: leave out entity_texts, relation_texts and definitions"
        );
        anyhow::ensure!(
            !is_taken(name),
            "[{key}]: the name is that of another source; choose one of your own"
        );
        let options = Options {
            name: name.to_owned(),
            curies: config.curies.clone(),
            inverses: config.inverses.clone(),
            level: config.level,
            allowed: Allowed {
                max_untexted: config.max_untexted,
                max_unused_texts: config.max_unused_texts,
                max_unfit: config.max_unfit,
            },
        };
        Ok(Self {
            options,
            input,
            entity_texts: texts(&config.entity_texts, "entity_texts")?,
            relation_texts: texts(&config.relation_texts, "relation_texts")?,
            definitions: texts(&config.definitions, "definitions")?,
        })
    }

    fn statements(&self, context: &Context, builder: &mut Builder) -> anyhow::Result<triples::Stated> {
        if let Input::KgBert { files, definitions } = &self.input {
            return self.kg_bert((files, definitions.as_ref()), context, builder);
        }
        let mut statements = Statements::new(&self.options, builder)?;
        for (texts, things) in
            [(&self.entity_texts, Things::Entities), (&self.relation_texts, Things::Relations)]
        {
            let Some(texts) = texts else { continue };
            let mut file = open::at(&texts.place, context)?;
            statements.texts(things, open::labelled(&mut file), texts.layout.as_ref())?;
        }
        if let Some(texts) = &self.definitions {
            let mut file = open::at(&texts.place, context)?;
            statements.definitions(open::labelled(&mut file), texts.layout.as_ref())?;
        }
        match &self.input {
            Input::Table { layout, files } => {
                for (place, part) in files {
                    let mut file = open::at(place, context)?;
                    statements.table(open::labelled(&mut file), layout, part.as_deref(), builder)?;
                }
            }
            Input::Parquet { fields, files } => {
                for (place, part) in files {
                    let path = place.path(context)?;
                    let file =
                        File::open(&path).with_context(|| format!("{}: cannot open it", path.display()))?;
                    statements.parquet((file, &place.shown(&path)), fields, part.as_deref(), builder)?;
                }
            }
            Input::KgBert { .. } => {}
        }
        Ok(statements.finish(Path::new(&self.options.name)))
    }

    fn kg_bert(
        &self,
        (files, definitions): (&[Place], Option<&Place>),
        context: &Context,
        builder: &mut Builder,
    ) -> anyhow::Result<triples::Stated> {
        let mut opened: Vec<_> =
            files.iter().map(|place| open::at(place, context)).collect::<anyhow::Result<_>>()?;
        let mut long = open::maybe(definitions, context)?;
        let [train, dev, test, entities, relations, entity_texts, relation_texts] = opened.as_mut_slice()
        else {
            anyhow::bail!("{}: KG-BERT's layout has {} files", self.options.name, NEEDED.len());
        };
        let files = kg_bert::Files {
            // Where it lies must not reach the funnel.
            folder: Path::new(&self.options.name),
            parts: [train, dev, test].map(open::labelled),
            entities: open::labelled(entities),
            relations: open::labelled(relations),
            entity_texts: open::labelled(entity_texts),
            definitions: long.as_mut().map(open::labelled),
            relation_texts: open::labelled(relation_texts),
        };
        Ok(kg_bert::read(files, &self.options, builder)?)
    }
}

impl Input {
    fn kg_bert(folder: &Place) -> anyhow::Result<Self> {
        let files = NEEDED.map(|name| folder.file(name)).to_vec();
        let definitions = folder.has(LONG_TEXTS)?.then(|| folder.file(LONG_TEXTS));
        Ok(Self::KgBert { files, definitions })
    }

    fn places(&self) -> Vec<&Place> {
        match self {
            Input::KgBert { files, definitions, .. } => files.iter().chain(definitions).collect(),
            Input::Table { files, .. } | Input::Parquet { files, .. } => {
                files.iter().map(|(place, _)| place).collect()
            }
        }
    }
}

impl Source for Triples {
    fn places(&self) -> Vec<&Place> {
        let texts = self.entity_texts.iter().chain(&self.relation_texts).chain(&self.definitions);
        self.input.places().into_iter().chain(texts.map(|texts| &texts.place)).collect()
    }

    fn read(&self, context: &Context, builder: &mut Builder) -> anyhow::Result<Told> {
        let stated = self.statements(context, builder)?;
        let mut told = Told::plain(stated.funnel);
        told.naming = Some(stated.naming);
        if let Some(rows) = told.funnel.triples.dropped.get(triples::NEGATIVE) {
            let kept = json!({"rows": rows, "kept_in": table::schema::Table::Negatives.file()});
            told.notes.insert("published_negatives".to_owned(), kept);
        }
        told.notes.insert("tables".to_owned(), json!(stated.tables));
        told.notes.insert("entities_without_text".to_owned(), json!(stated.entities_without_text));
        told.notes.insert("relations_without_text".to_owned(), json!(stated.relations_without_text));
        Ok(told)
    }
}
