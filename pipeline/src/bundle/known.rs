//! What is known of the words of lines, for models that attend by it: their rows with maps.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use base::cancel::CancelToken;
use batch::maps::expand::Map;
use batch::maps::sample::Sample;
use downstream::encode::Framed;
use serde_json::Value;
use tasks::maps::generators::Limits;
use tasks::maps::tools::Tools;
use tasks::token::encode::Vocabulary;

use super::lines::Input;
use super::task_file::{Knowledge, TaskFile};
use crate::engine::digest::Digest;
use crate::stage::finetune::quirks::PairOrder;
use crate::stage::maps::Mapping;
use crate::stage::maps::of_texts::{MappedRows, Marks, WordRow, differing};

/// Where what maps are made with is looked for, should a model ask for it.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    /// How maps are made, as a config says.
    pub mapping: &'a dyn Fn() -> anyhow::Result<Mapping>,
    /// Where a stage's artifact lies.
    pub artifact: &'a dyn Fn(&str) -> PathBuf,
}

/// Makes rows with maps.
#[derive(Debug)]
pub(super) struct Known {
    tools: Tools,
    maps: Vec<Map>,
    pairs: PairOrder,
    /// How long rows are, by the most tokens besides auxiliary terms.
    limits: BTreeMap<usize, Limits>,
}

/// Rows by the most tokens that they have.
type ByLength = BTreeMap<usize, MappedRows>;

/// The rows of some lines, in their order.
#[derive(Debug)]
pub(super) struct Rows {
    /// One for each.
    whole: ByLength,
    /// Two for each, of its text and of its `pair`, where a task reads them apart.
    apart: ByLength,
}

/// Which rows of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// That of the whole line.
    Whole,
    /// Those of its text and of its `pair`, for a task that reads them apart.
    Apart,
}

/// What a user is to do whose config makes other maps.
const CONFIG: &str = "this model attends by maps of what is known: give the config that it was fine-tuned with (--config, with its --data and --set)";
/// What a user is to do who has not what maps are made with.
const FOLDER: &str =
    "this model attends by maps of what is known: give the folder of the run that fine-tuned it (--out)";

impl Known {
    /// What makes the maps of a model for rows of these lengths, `vocabulary` being its own.
    ///
    /// # Errors
    /// When that is not at hand, or is not what its own maps were made with.
    pub(super) fn open(
        file: &TaskFile,
        knowledge: &Knowledge,
        lengths: &BTreeSet<usize>,
        vocabulary: Vocabulary,
        around: Around<'_>,
    ) -> anyhow::Result<Self> {
        let (maps, there) = (&knowledge.maps, &knowledge.made_with);
        let mapping = (around.mapping)().context(CONFIG)?;
        mapping.can_make(maps, Marks::Line)?;
        let here = mapping.settings()?;
        if let Some(key) = differing(&here, &there.settings) {
            let said =
                |of: &BTreeMap<String, Value>| of.get(key).map_or("left out".to_owned(), Value::to_string);
            anyhow::bail!("{key} is {}, and was {} then: {CONFIG}", said(&here), said(&there.settings));
        }
        let artifact = |name: &str| Ok((around.artifact)(name));
        let digest = |path: &Path| Digest::of_file(path, &CancelToken::NEVER);
        let files = mapping.files(maps, &artifact, &digest).context(FOLDER)?;
        if let Some(file) = differing(&files, &there.files) {
            anyhow::bail!(
                "{file} is not what it was then: {FOLDER}; if that was made again since, fine-tune again (`engraft run`)"
            );
        }
        let limits = lengths.iter().map(|&most| Ok((most, mapping.limits_of(most)?)));
        let limits = limits.collect::<anyhow::Result<_>>()?;
        let tools = mapping.tools_with(maps, vocabulary, &artifact)?;
        Ok(Self { tools, maps: maps.clone(), pairs: file.pairs, limits })
    }

    /// The rows of some lines.
    ///
    /// # Errors
    /// Names the line whose text cannot be encoded.
    pub(super) fn rows(&self, inputs: &[Input], of: &[Of]) -> anyhow::Result<Rows> {
        let texts = inputs.iter().map(|input| self.pairs.of_texts(&input.text, input.pair.as_deref()));
        let texts: Vec<_> = texts.collect();
        let whole = if of.contains(&Of::Whole) { self.of(inputs, &texts, 1)? } else { ByLength::new() };
        let apart = if of.contains(&Of::Apart) { self.apart(inputs)? } else { ByLength::new() };
        Ok(Rows { whole, apart })
    }

    fn apart(&self, inputs: &[Input]) -> anyhow::Result<ByLength> {
        let pair = |input: &Input| input.pair.clone().unwrap_or_default();
        let pairs: Vec<String> = inputs.iter().map(pair).collect();
        let texts = inputs.iter().zip(&pairs);
        let texts = texts.flat_map(|(input, pair)| [(input.text.as_str(), None), (pair.as_str(), None)]);
        self.of(inputs, &texts.collect::<Vec<_>>(), 2)
    }

    /// Adds rows of tagged words.
    ///
    /// # Errors
    /// When one cannot be encoded, or no rows are as long.
    pub(super) fn push_words(&self, words: &[WordRow], rows: &mut Framed) -> anyhow::Result<()> {
        let most = rows.most();
        let limits = self.limits.get(&most).with_context(|| format!("no rows of {most} tokens have maps"))?;
        let (mapped, _) = MappedRows::of_words(&self.tools, *limits, words, &self.maps)?;
        (0..words.len()).try_for_each(|place| mapped.push(place, rows))
    }

    /// The sample of each text with masks, of which nothing is known.
    ///
    /// # Errors
    /// When one cannot be encoded: its number; or when no rows are as long.
    pub(super) fn masked(&self, most: usize, texts: &[&str]) -> Result<Vec<Sample>, (usize, anyhow::Error)> {
        let limits = self.limits.get(&most).with_context(|| format!("no rows of {most} tokens have maps"));
        let made = self.tools.with_masks(*limits.map_err(|error| (0, error))?, texts);
        made.map_err(|(text, error)| (text, error.into()))
    }

    /// The limits of rows of at most so many tokens besides those of auxiliary terms.
    ///
    /// # Errors
    /// When no rows are as long.
    pub(super) fn limits(&self, most: usize) -> anyhow::Result<Limits> {
        self.limits.get(&most).copied().with_context(|| format!("no rows of {most} tokens have maps"))
    }

    /// Which maps, in the order in which rows have them.
    pub(super) fn maps(&self) -> &[Map] {
        &self.maps
    }

    /// What maps are made with.
    pub(super) fn tools(&self) -> &Tools {
        &self.tools
    }

    /// Adds a sample as a row.
    ///
    /// # Errors
    /// When its numbers do not fit the rows before.
    pub(super) fn push_sample(&self, sample: &Sample, rows: &mut batch::rows::Rows) -> anyhow::Result<()> {
        Ok(rows.push_known(&sample.row(), &self.maps)?)
    }

    /// So many rows for each line.
    fn of(&self, inputs: &[Input], texts: &[(&str, Option<&str>)], rows: usize) -> anyhow::Result<ByLength> {
        let of = |(&most, &limits): (&usize, &Limits)| {
            let (rows, _) = self.tools.rows(limits, texts).map_err(|(text, error)| {
                let line = inputs.get(text / rows).map_or(0, |input| input.line);
                anyhow::Error::new(error).context(format!("line {line}"))
            })?;
            Ok((most, MappedRows::new(rows, &self.maps)?))
        };
        self.limits.iter().map(of).collect()
    }
}

impl Rows {
    /// Adds the row of a line by its place among them; gives the row's number.
    ///
    /// # Errors
    /// When there is no row of this length, or its numbers do not fit the rows before.
    pub(super) fn push(&self, place: usize, most: usize, rows: &mut Framed) -> anyhow::Result<usize> {
        let made = self.whole.get(&most).with_context(|| format!("no rows of {most} tokens have maps"))?;
        made.push(place, rows)?;
        Ok(rows.rows.len() - 1)
    }

    /// Adds the rows of a line's text and of its `pair`; gives the number of the first.
    ///
    /// # Errors
    /// As [`Rows::push`].
    pub(super) fn push_apart(&self, place: usize, most: usize, rows: &mut Framed) -> anyhow::Result<usize> {
        let made = self.apart.get(&most).with_context(|| format!("no rows of {most} tokens have maps"))?;
        let first = rows.rows.len();
        (2 * place..2 * place + 2).try_for_each(|place| made.push(place, rows))?;
        Ok(first)
    }
}
