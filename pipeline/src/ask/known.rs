//! What is known of the words of lines, for models that attend by it: their rows with maps. Knows no model.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tasks::downstream::encode::Framed;
use tasks::maps::expand::Map;
use tasks::maps::generators::Limits;
use tasks::token::encode::Case;

use super::lines::Input;
use super::task_file::TaskFile;
use crate::stage::finetune::prepared::PairOrder;
use crate::stage::maps::Mapping;
use crate::stage::maps::tools::{Made, Tools};

/// Where what maps are made with is looked for, should a model ask for it.
#[derive(Clone, Copy)]
pub struct Around<'a> {
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

/// The rows of some lines, in their order, by the most tokens that they have.
pub(super) type Rows = BTreeMap<usize, Vec<Made>>;

impl Known {
    /// What makes the maps of a model, if it attends by any.
    ///
    /// # Errors
    /// When that is not at hand, or is not what its maps were made with.
    pub(super) fn open(
        file: &TaskFile,
        vocabulary: (&Path, Case),
        around: Around<'_>,
    ) -> anyhow::Result<Option<Self>> {
        let Some(knowledge) = &file.knowledge else { return Ok(None) };
        let (maps, artifact) = (knowledge.maps.clone(), |name: &str| Ok((around.artifact)(name)));
        let found =
            (around.mapping)().and_then(|mapping| Ok((mapping.made_with(&maps, &artifact)?, mapping)));
        let (here, mapping) = found.context(GIVE)?;
        if let Some(difference) = here.differs(&knowledge.made_with) {
            anyhow::bail!("{GIVE}: {difference}, where it was fine-tuned");
        }
        let lengths: BTreeSet<usize> = file.tasks.iter().map(|task| file.most(task)).collect();
        let limits = lengths.into_iter().map(|most| Ok((most, mapping.limits_of(most)?)));
        let limits = limits.collect::<anyhow::Result<_>>()?;
        let tools = mapping.tools_with(&maps, vocabulary, &artifact)?;
        Ok(Some(Self { tools, maps, pairs: file.pairs, limits }))
    }

    /// The rows of some lines.
    ///
    /// # Errors
    /// Names the line whose text cannot be encoded.
    pub(super) fn rows(&self, inputs: &[Input]) -> anyhow::Result<Rows> {
        let texts: Vec<(&str, Option<&str>)> = inputs.iter().map(|input| self.in_order(input)).collect();
        let of = |(&most, &limits): (&usize, &Limits)| {
            let (rows, _) = self.tools.rows(limits, &texts).map_err(|(text, error)| {
                let line = inputs.get(text).map_or(0, |input| input.line);
                anyhow::Error::new(error).context(format!("line {line}"))
            })?;
            Ok((most, rows))
        };
        self.limits.iter().map(of).collect()
    }

    /// Adds such a row; gives its number.
    ///
    /// # Errors
    /// When its numbers do not fit each other.
    pub(super) fn push(&self, (sample, cut): &Made, rows: &mut Framed) -> anyhow::Result<usize> {
        sample.row().check()?;
        rows.known(&sample.row(), &self.maps, *cut)?;
        Ok(rows.rows.len() - 1)
    }

    fn in_order<'i>(&self, input: &'i Input) -> (&'i str, Option<&'i str>) {
        match input.pair.as_deref() {
            None => (&input.text, None),
            Some(pair) => {
                let (first, second) = self.pairs.of((input.text.as_str(), pair));
                (first, Some(second))
            }
        }
    }
}

/// What a user is to do.
const GIVE: &str = "this model attends by maps of what is known, and those of new texts are made with what its own were made with: give the config that it was fine-tuned with (--config, with its --data and --set) and the folder of that run (--out)";
