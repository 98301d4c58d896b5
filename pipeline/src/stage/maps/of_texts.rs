//! Maps of any texts, of benchmarks and of questions: which can be made, and with what.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use base::read::ReadError;
use base::self_check;
use batch::maps::expand::Map;
use batch::maps::sample::Sample;
use downstream::encode::Framed;
use kg::table::schema::Table;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tasks::maps::config::{Config as Samples, Entities, Graph, Phrases, Terms};
use tasks::maps::generators::Limits;
use tasks::maps::piece::Piece;
use tasks::maps::tools::Tools;
use tasks::token::encode::Vocabulary;
use text::count;
use text::file::Format;
use text::pmi::MATRIX;

use super::{Mapping, load};
use crate::engine::context::Context;
use crate::engine::describe::{self, Description};
use crate::engine::digest::Digest;
use crate::engine::stage::Stage as _;

/// What maps are made with besides a vocabulary's entries: the same with the same gives the same maps of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MadeWith {
    /// How they are made: settings of a config by their keys, and the version of how samples are made.
    pub settings: BTreeMap<String, Value>,
    /// The files of artifacts that they are made with, `STAGE/FILE`.
    pub files: BTreeMap<String, Digest>,
}

/// What is marked in texts that maps are made of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Marks<'a> {
    /// What files of this format say of a benchmark's texts, if there are any.
    Parsed(Option<&'a Format>),
    /// Nothing: texts with masked words, since an annotator has seen the words.
    Hidden,
    /// Nothing: a line that a model is asked about.
    Line,
}

/// The first key whose value is not the same, or is there on one side only.
#[must_use]
pub(crate) fn differing<'k, V: PartialEq>(
    here: &'k BTreeMap<String, V>,
    there: &'k BTreeMap<String, V>,
) -> Option<&'k str> {
    let keys = here.keys().chain(there.keys());
    keys.filter(|key| here.get(*key) != there.get(*key)).min().map(String::as_str)
}

/// Rows of some texts with maps, in their order.
#[derive(Debug)]
pub(crate) struct MappedRows {
    made: Vec<Sample>,
    maps: Vec<Map>,
}

impl MappedRows {
    /// Rows that were made of texts, to be read with these maps.
    ///
    /// # Errors
    /// When the numbers of one do not fit each other.
    pub(crate) fn new(made: Vec<Sample>, maps: &[Map]) -> Result<Self, ReadError> {
        made.iter().try_for_each(|sample| sample.row().check())?;
        Ok(Self { made, maps: maps.to_vec() })
    }

    /// Adds the row of the text at `place`.
    ///
    /// # Errors
    /// When there is none, or its numbers do not fit the rows before.
    pub(crate) fn push(&self, place: usize, rows: &mut Framed) -> anyhow::Result<()> {
        let sample = self.made.get(place).with_context(|| format!("there are no maps of text {place}"))?;
        Ok(rows.known(&sample.row(), &self.maps, sample.cut as usize)?)
    }
}

/// A row of words that are tagged, before anything is known of them.
#[derive(Debug)]
pub(crate) struct WordRow {
    /// All words of its example, a space between them: what an annotator may have seen.
    pub whole: Arc<str>,
    /// The words of the row in it, in bytes.
    pub bytes: Range<usize>,
    /// The words of the row as a text.
    pub text: String,
    /// The tokens of the row, which are spelt word by word.
    pub ids: Vec<u32>,
}

impl WordRow {
    /// A row of a text of which nothing else is known.
    #[must_use]
    pub(crate) fn alone(text: String, ids: Vec<u32>) -> Self {
        let whole: Arc<str> = text.as_str().into();
        Self { bytes: 0..whole.len(), whole, text, ids }
    }
}

impl MappedRows {
    /// Rows of tagged words by what is known of their text; also of how many nothing is, since its words as a text have other tokens (words that cannot be
    /// spelt, or are longer than a row).
    ///
    /// # Errors
    /// When a text cannot be encoded.
    pub(crate) fn of_words(
        tools: &Tools,
        limits: Limits,
        rows: &[WordRow],
        maps: &[Map],
    ) -> anyhow::Result<(Self, u64)> {
        let piece = |row: &WordRow| (tools.marked_part(&row.whole, &row.bytes, &row.text), None);
        let texts: Vec<(Piece, Option<Piece>)> = rows.iter().map(piece).collect();
        let (mut made, _) = tools.rows_of(limits, &texts).map_err(|(text, error)| {
            let text = rows.get(text).map_or("", |row| row.text.as_str());
            anyhow::Error::new(error).context(format!("{text:?}"))
        })?;
        let mut unknown = 0;
        for (sample, row) in made.iter_mut().zip(rows) {
            if !sample.is_of(&row.ids) {
                *sample = Sample::unknown(&row.ids);
                unknown += 1;
            }
        }
        Ok((Self::new(made, maps)?, unknown))
    }

    /// Tokens of the row at `place`, those of auxiliary terms included.
    #[must_use]
    pub(crate) fn tokens_of(&self, place: usize) -> usize {
        self.made.get(place).map_or(0, |sample| sample.input_ids.len())
    }
}

impl Mapping {
    /// Whether these maps can be made of texts in which so much is marked: a map that nothing is known for is no map.
    ///
    /// # Errors
    /// Names the setting that takes a file's marks, or that leaves a map empty.
    pub(crate) fn can_make(&self, maps: &[Map], marks: Marks<'_>) -> anyhow::Result<()> {
        let samples = &self.config.samples;
        for (map, field, none) in [
            (Map::Entity, "entities", samples.entities == Entities::None),
            (Map::Phrase, "phrases", samples.phrases == Phrases::None),
            (Map::Term, "terms", samples.terms == Terms::None),
            (Map::Graph, "graph", samples.graph == Graph::None || samples.entities == Entities::None),
        ] {
            anyhow::ensure!(
                !none || !maps.contains(&map),
                "knowledge.maps has {:?}, but [maps] leaves it empty (maps.{field} is none): say there how it is made, or leave it out",
                map.name()
            );
        }
        let says = |of: fn(&Format) -> bool| matches!(marks, Marks::Parsed(Some(format)) if of(format));
        let (entities, phrases) = (samples.entities == Entities::Marked, samples.phrases == Phrases::Marked);
        for (map, field, marked, said, other) in [
            (Map::Entity, "entities", entities, says(Format::has_spans), "dictionary"),
            (Map::Graph, "entities", entities, says(Format::has_spans), "dictionary"),
            (Map::Phrase, "phrases", phrases, says(Format::has_phrases), "neighbours"),
        ] {
            let remedy = match marks {
                Marks::Parsed(_) => {
                    "bring what an annotator says of the benchmark's texts (benchmarks.NAME.parsed), or set it to "
                }
                Marks::Hidden => "an annotator saw the masked words: set it to ",
                Marks::Line => "a line is all that is known of it; ask a model whose maps were made with ",
            };
            anyhow::ensure!(
                !marked || said || !maps.contains(&map),
                "maps.{field} = \"marked\" takes what a file marks, and nothing marks {field} here: {remedy}{other} or none"
            );
        }
        Ok(())
    }

    /// Whether anything is taken from what files mark.
    #[must_use]
    pub(crate) fn takes_marks(&self) -> bool {
        self.config.samples.entities == Entities::Marked || self.config.samples.phrases == Phrases::Marked
    }

    /// How long rows of any texts are, which have at most so many tokens besides auxiliary terms.
    ///
    /// # Errors
    /// When there is no row so short or so long.
    pub(crate) fn limits_of(&self, most: usize) -> anyhow::Result<Limits> {
        let limits = Limits { tokens: most, ..self.config.samples.limits };
        limits.check().map_err(|error| {
            anyhow::anyhow!("finetune.max_tokens, or max_tokens_of, with maps.limits: {error}")
        })?;
        Ok(limits)
    }

    /// Loads what these maps of any texts are made with while a stage runs that has declared [`Mapping::inputs_of_tools`].
    ///
    /// # Errors
    /// When something is missing or damaged.
    pub(crate) fn tools_for(&self, maps: &[Map], context: &Context) -> anyhow::Result<Tools> {
        let artifact = |name: &str| Ok(context.artifact(name)?.to_owned());
        let vocabulary = self.vocabulary.0.load(context, self.vocabulary.1)?;
        let mut tools = self.tools_with(maps, vocabulary, &artifact)?;
        if let Some(parsed) = &self.parsed {
            let mut pieces = vec![];
            let (_, told) = parsed.read(context, |_, document| {
                pieces.push(tools.piece(document));
                Ok(())
            })?;
            told.record(context);
            tools.annotate(pieces);
        }
        Ok(tools)
    }

    /// The same with the vocabulary of a file; `artifact` says where a stage's artifact lies.
    ///
    /// # Errors
    /// When something is missing or damaged.
    pub(crate) fn tools_with(
        &self,
        maps: &[Map],
        vocabulary: Vocabulary,
        artifact: &dyn Fn(&str) -> anyhow::Result<PathBuf>,
    ) -> anyhow::Result<Tools> {
        let samples = Samples { terms: self.terms_of(maps), ..self.config.samples.clone() };
        load(&samples, vocabulary, self.vocabulary.1, artifact)
    }

    /// What these maps of any texts are made with, while a stage runs that has declared [`Mapping::inputs_of_tools`].
    ///
    /// # Errors
    /// When a file is missing or cannot be read.
    pub(crate) fn made_with(&self, maps: &[Map], context: &Context) -> anyhow::Result<MadeWith> {
        let artifact = |name: &str| Ok(context.artifact(name)?.to_owned());
        let files = self.files(maps, &artifact, &|path| context.digest(path))?;
        Ok(MadeWith { settings: self.settings()?, files })
    }

    /// How maps of any texts are made: settings by their keys.
    ///
    /// # Errors
    /// When a setting cannot be put into words.
    pub(crate) fn settings(&self) -> anyhow::Result<BTreeMap<String, Value>> {
        let mut description = Description::new(self.version());
        self.describe_tools(&mut description);
        // Words are split by it, whatever a vocabulary does with their letters.
        describe::config(&mut description, "vocabulary.case", &self.vocabulary.1);
        match description.unfit.first_key_value() {
            None => Ok(description.fields),
            Some((path, why)) => anyhow::bail!("{path} cannot be put into words: {why}"),
        }
    }

    /// The digests of all files that these maps of any texts are made with; `artifact` says where a stage's artifact lies.
    ///
    /// # Errors
    /// When one is missing or cannot be read.
    pub(crate) fn files(
        &self,
        maps: &[Map],
        artifact: &dyn Fn(&str) -> anyhow::Result<PathBuf>,
        digest: &dyn Fn(&Path) -> io::Result<Digest>,
    ) -> anyhow::Result<BTreeMap<String, Digest>> {
        let mut files = BTreeMap::new();
        let mut add = |stage: &str, folder: &Path, file: &str| {
            let path = folder.join(file);
            let digest = digest(&path).with_context(|| path.display().to_string())?;
            files.insert(format!("{stage}/{file}"), digest);
            anyhow::Ok(())
        };
        if self.config.samples.needs_graph() {
            let folder = artifact("triples")?;
            for table in [Table::Entities, Table::Terms, Table::Triples] {
                add("triples", &folder, table.file())?;
            }
        }
        if self.config.samples.needs_counts() {
            let folder = artifact("counts")?;
            // Its sums are in no table.
            add("counts", &folder, count::INDEX)?;
            add("counts", &folder, count::Table::Words.file())?;
            let index: count::Index = self_check::read(&folder.join(count::INDEX))?;
            if let Some(table) = index.config.neighbours() {
                add("counts", &folder, table.file())?;
            }
        }
        if self.terms_of(maps) == Terms::Relevance {
            add("pmi", &artifact("pmi")?, MATRIX)?;
        }
        Ok(files)
    }

    /// Auxiliary terms are what the map of terms brings along: without it they would have no score of their own.
    fn terms_of(&self, maps: &[Map]) -> Terms {
        if maps.contains(&Map::Term) { self.config.samples.terms } else { Terms::None }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_differs_is_said_by_name() {
        let of = |all: &[(&str, u64)]| -> BTreeMap<String, Value> {
            all.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect()
        };
        let here = of(&[("a", 1), ("b", 2), ("c", 3)]);
        assert_eq!(differing(&here, &here), None);
        for (there, expected) in [
            (of(&[("a", 1), ("b", 3), ("c", 4)]), "b"),
            (of(&[("a", 1), ("c", 3)]), "b"),
            (of(&[("a", 1), ("aa", 1), ("b", 2), ("c", 4)]), "aa"),
        ] {
            assert_eq!(differing(&here, &there), Some(expected));
            assert_eq!(differing(&there, &here), Some(expected));
        }
    }
}
