//! What is known of the words of examples: their rows with auxiliary terms and maps. Knows no encoder and no answer.

use serde_json::json;
use tasks::downstream::encode::Framed;
use tasks::downstream::example::Examples;
use tasks::maps::expand::Map;
use tasks::maps::sample::Sample;

use super::config::Fixed;
use crate::engine::context::Context;
use crate::stage::maps::Mapping;

/// Examples by what is known of their words, in their order.
pub(super) struct Known {
    rows: Vec<Row>,
    maps: Vec<Map>,
}

/// An example's row, and the tokens that were cut of it.
struct Row {
    sample: Sample,
    cut: usize,
}

impl Known {
    /// Makes the rows of examples, of at most `max_tokens` tokens besides auxiliary terms; the ledger counts what is known of how many.
    ///
    /// # Errors
    /// When what maps are made with is missing or damaged, or a text cannot be encoded.
    pub(super) fn of(
        examples: &Examples,
        mapping: &Mapping,
        (fixed, maps): (&Fixed, &[Map]),
        context: &Context,
    ) -> anyhow::Result<Self> {
        let limits = mapping.limits_of(fixed.max_tokens)?;
        let tools = mapping.tools_for(maps, context)?;
        let texts =
            examples.examples.iter().map(|of| fixed.prepared.pairs.of_texts(&of.text, of.pair.as_deref()));
        let texts: Vec<_> = texts.collect();
        let (made, counts) = tools.rows(limits, &texts).map_err(|(text, error)| {
            let id = examples.examples.get(text).map_or("?", |of| of.id.as_str());
            anyhow::Error::new(error).context(format!("{}, example {id}", examples.name))
        })?;
        let mut rows = Vec::with_capacity(made.len());
        for (sample, cut) in made {
            sample.row().check()?;
            rows.push(Row { sample, cut });
        }
        let tokens = rows.iter().map(|row| row.sample.input_ids.len() as u64).sum();
        let [samples, found] = crate::stage::maps::told(&counts, tokens);
        // Of a recipe each benchmark has its own.
        context.record(&format!("known.{}", examples.name), json!({"samples": samples, "found": found}));
        Ok(Self { rows, maps: maps.to_vec() })
    }

    /// Adds the row of the example at `place`.
    ///
    /// # Errors
    /// When its numbers do not fit each other.
    pub(super) fn push(&self, place: usize, rows: &mut Framed) -> anyhow::Result<()> {
        let Row { sample, cut } = &self.rows[place];
        Ok(rows.known(&sample.row(), &self.maps, *cut)?)
    }
}
