//! What is known of the words of examples: their rows with auxiliary terms and maps. Knows no encoder and no answer.

use tasks::downstream::encode::Framed;
use tasks::downstream::example::Examples;
use tasks::maps::expand::Map;
use tasks::maps::sample::Sample;

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
    /// Makes the rows of examples, of at most so many tokens besides auxiliary terms; the ledger counts what is known of how many.
    ///
    /// # Errors
    /// When what maps are made with is missing or damaged, or a text cannot be encoded.
    pub(super) fn of(
        examples: &Examples,
        mapping: &Mapping,
        (most, maps): (usize, &[Map]),
        context: &Context,
    ) -> anyhow::Result<Self> {
        let tools = mapping.tools_for(most, context)?;
        let texts: Vec<(&str, Option<&str>)> =
            examples.examples.iter().map(|of| (of.text.as_str(), of.pair.as_deref())).collect();
        let (made, counts) = tools.rows(&texts)?;
        let mut rows = Vec::with_capacity(made.len());
        for (sample, cut) in made {
            sample.row().check()?;
            rows.push(Row { sample, cut });
        }
        crate::stage::maps::record(
            context,
            &counts,
            rows.iter().map(|row| row.sample.input_ids.len() as u64).sum(),
        );
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
