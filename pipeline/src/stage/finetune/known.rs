//! What is known of the words of texts that are put together by a benchmark: the pairs of a ranking, rows of tagged words, texts with masked words, and questions beside passages.

use std::collections::BTreeSet;

use batch::maps::expand::Map;
use downstream::encode::Framed;
use serde_json::json;
use tasks::maps::generators::Limits;
use tasks::maps::tools::Tools;
use tasks::token::encode::{Case, Vocabulary};

use batch::maps::sample::Sample;

use super::attention::{Attending, Kept};
use super::config::Fixed;
use crate::engine::context::Context;
use crate::stage::maps::of_texts::{MappedRows, WordRow};
use crate::stage::maps::placed::{self, Counted, Part, Placed};

/// Makes rows with maps, or of a text alone where heads attend by none.
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

    /// What makes rows, whether or not `attending` goes by maps.
    ///
    /// # Errors
    /// When what maps are made with is missing or damaged.
    pub(super) fn or_plain(
        attending: &Attending,
        vocabulary: Vocabulary,
        case: Case,
        fixed: &Fixed,
        context: &Context,
    ) -> anyhow::Result<Self> {
        if let Some(known) = Self::of(attending, fixed, context)? {
            return Ok(known);
        }
        let limits = Limits { tokens: fixed.max_tokens, terms: 0, auxiliary: 0 };
        Ok(Self { tools: Tools::plain(vocabulary, case)?, limits, maps: vec![] })
    }

    /// Says how many different texts of the benchmark `name` an annotator has a document of, where one was brought.
    ///
    /// # Errors
    /// When there is none of any: the annotations are not the benchmark's.
    pub(super) fn covered<Texts: Iterator<Item = String>>(
        &self,
        name: &str,
        texts: impl FnOnce() -> Texts,
        context: &Context,
    ) -> anyhow::Result<()> {
        if !self.tools.has_annotated() {
            return Ok(());
        }
        let texts: BTreeSet<String> = texts().collect();
        let annotated = texts.iter().filter(|text| self.tools.is_annotated(text)).count();
        let facts = json!({"texts": texts.len(), "annotated": annotated});
        context.record(&format!("annotated.{name}"), facts);
        anyhow::ensure!(
            annotated > 0 || texts.is_empty(),
            "benchmarks.{name}.parsed: none of its documents has a text of the benchmark: annotate passages and questions as they stand, and tagged words with a space between them"
        );
        Ok(())
    }

    /// What rows are made with.
    pub(super) fn tools(&self) -> &Tools {
        &self.tools
    }

    /// How long rows are.
    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    /// The words of each text.
    ///
    /// # Errors
    /// When one cannot be encoded.
    pub(super) fn counted(&self, texts: &[&str]) -> anyhow::Result<Vec<Vec<Counted>>> {
        let counted = placed::counted(&self.tools, texts);
        counted.map_err(|(text, error)| anyhow::Error::new(error).context(format!("{:?}", texts[text])))
    }

    /// The rows of questions beside passages.
    ///
    /// # Errors
    /// When one cannot be encoded.
    pub(super) fn placed(&self, pairs: &[[Part<'_>; 2]]) -> anyhow::Result<Vec<Placed>> {
        placed::placed(&self.tools, self.limits, pairs).map_err(|(_, error)| error.into())
    }

    /// Adds the row of a text or pair.
    ///
    /// # Errors
    /// When its numbers do not fit each other.
    pub(super) fn push_sample(&self, sample: &Sample, rows: &mut Framed) -> anyhow::Result<()> {
        if self.maps.is_empty() {
            rows.unmapped(&sample.row());
            return Ok(());
        }
        Ok(rows.known(&sample.row(), &self.maps, sample.cut as usize)?)
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
