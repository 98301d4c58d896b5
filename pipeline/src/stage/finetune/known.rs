//! What is known of the words of texts that are put together by a benchmark: the pairs of a ranking, and rows of tagged words.

use batch::maps::expand::Map;
use tasks::downstream::encode::Framed;
use tasks::maps::generators::Limits;

use super::attention::{Attending, Kept};
use super::config::Fixed;
use crate::engine::context::Context;
use crate::stage::maps::of_texts::{MappedRows, WordRow};
use crate::stage::maps::tools::Tools;

/// Makes rows with maps.
pub(super) struct Known {
    tools: Tools,
    limits: Limits,
    maps: Vec<Map>,
}

impl Known {
    /// What makes the maps that `attending` goes by, if it goes by any.
    ///
    /// # Errors
    /// When what they are made with is missing or damaged.
    pub(super) fn of(
        attending: &Attending,
        fixed: &Fixed,
        context: &Context,
    ) -> anyhow::Result<Option<Self>> {
        let Attending::Knowledge(knowledge, mapping, Kept::WithTexts) = attending else { return Ok(None) };
        let maps = knowledge.maps.clone();
        let (tools, limits) = (mapping.tools_for(&maps, context)?, mapping.limits_of(fixed.max_tokens)?);
        Ok(Some(Self { tools, limits, maps }))
    }

    /// Rows of tagged words, and of how many nothing is known.
    ///
    /// # Errors
    /// When one cannot be encoded.
    pub(super) fn of_words(&self, rows: &[WordRow]) -> anyhow::Result<(MappedRows, u64)> {
        MappedRows::of_words(&self.tools, self.limits, rows, &self.maps)
    }

    /// Adds the row of each text or pair.
    ///
    /// # Errors
    /// When one cannot be encoded.
    pub(super) fn push(&self, texts: &[(&str, Option<&str>)], rows: &mut Framed) -> anyhow::Result<()> {
        let (made, _) = self.tools.rows(self.limits, texts).map_err(|(text, error)| {
            let (text, _) = texts.get(text).copied().unwrap_or_default();
            anyhow::Error::new(error).context(format!("{text:?}"))
        })?;
        let mapped = MappedRows::new(made, &self.maps)?;
        (0..texts.len()).try_for_each(|place| mapped.push(place, rows))
    }
}
