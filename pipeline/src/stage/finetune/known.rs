//! What is known of the words of examples: their rows with auxiliary terms and maps.

use batch::maps::expand::Map;
use serde_json::json;
use tasks::downstream::encode::Framed;
use tasks::downstream::example::Examples;

use super::config::Fixed;
use crate::engine::context::Context;
use crate::stage::maps::Mapping;
use crate::stage::maps::of_texts::MappedRows;

/// Examples by what is known of their words, in their order.
pub(super) struct Known(MappedRows);

impl Known {
    /// Makes the rows of examples, of at most `max_tokens` tokens besides auxiliary terms; the ledger counts what is known of how many.
    ///
    /// # Errors
    /// When what maps are made with is missing or damaged, or a text cannot be encoded.
    pub(super) fn of(
        examples: &Examples,
        mapping: &Mapping,
        fixed: &Fixed,
        maps: &[Map],
        context: &Context,
    ) -> anyhow::Result<Self> {
        let limits = mapping.limits_of(fixed.max_tokens)?;
        let tools = mapping.tools_for(maps, context)?;
        let texts =
            examples.examples.iter().map(|of| fixed.quirks.pairs.of_texts(&of.text, of.pair.as_deref()));
        let texts: Vec<_> = texts.collect();
        let (made, counts) = tools.rows(limits, &texts).map_err(|(text, error)| {
            let id = examples.examples.get(text).map_or("?", |of| of.id.as_str());
            anyhow::Error::new(error).context(format!("{}, example {id}", examples.name))
        })?;
        let rows = MappedRows::new(made, maps)?;
        let [samples, found] = crate::stage::maps::told(&counts, rows.tokens());
        // Of a recipe each benchmark has its own.
        context.record(&format!("known.{}", examples.name), json!({"samples": samples, "found": found}));
        Ok(Self(rows))
    }

    /// Adds the row of the example at `place`.
    ///
    /// # Errors
    /// When its numbers do not fit each other.
    pub(super) fn push(&self, place: usize, rows: &mut Framed) -> anyhow::Result<()> {
        self.0.push(place, rows)
    }
}
