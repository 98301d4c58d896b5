//! Which masks and retrained encoders a table of results is about.

use super::Results;
use crate::engine::context::Context;
use crate::stage::graft::group::Group;
use crate::stage::graft::{Row, mask, retraining};
use ::report::grafting::facts::Facts;

impl Results {
    /// Stages of masks, and what the page calls these.
    pub(super) fn masks(&self) -> Vec<(String, String)> {
        let mut masks = vec![];
        for stage in [mask::HARD, mask::SOFT] {
            let kind = stage.trim_start_matches("mask-");
            let under = |row: &&Row| row.mask() == Some(stage);
            if !self.rows.iter().any(|row| under(&row)) {
                continue;
            }
            let taus = self.taus.as_deref().unwrap_or(&[]);
            let trained = self.rows.iter().filter(under).any(|row| row.mode().is_some());
            for group in Group::all(&self.own_masks) {
                let of: Vec<&str> = group.benchmark().into_iter().collect();
                let called = |more: Option<String>| {
                    let all: Vec<String> = of.iter().map(|of| (*of).to_owned()).chain(more).collect();
                    if all.is_empty() { kind.to_owned() } else { format!("{kind} ({})", all.join(", ")) }
                };
                masks.push((group.named(stage), called(None)));
                for &tau in taus.iter().filter(|_| trained) {
                    masks.push((group.with_tau(stage, tau), called(Some(format!("tau {tau}")))));
                }
            }
        }
        masks
    }

    /// The stages that retrained encoders, each with its row and the benchmark that its mask is of, if that has one of its own.
    pub(super) fn retrained(&self) -> Vec<(Row, Group<'_>, String)> {
        let rows = self.rows.iter().copied().filter(|row| row.mode().is_some());
        let each = |row: Row| {
            Group::of_row(row, &self.own_masks).map(move |group| (row, group, group.retrained(row)))
        };
        rows.flat_map(each).collect()
    }

    /// What trials of retraining chose: the mask of each row, and a note.
    pub(super) fn chosen(
        &self,
        context: &Context,
        masks: &[(String, String)],
        facts: &mut Facts,
    ) -> anyhow::Result<()> {
        if self.taus.is_none() {
            return Ok(());
        }
        let mut told = vec![];
        for (row, of, stage) in self.retrained() {
            let chosen = retraining::chosen(context.artifact(&stage)?)?;
            told.push(format!("{stage}: trial {}", chosen.trial));
            let called = chosen.mask.and_then(|mask| masks.iter().find(|(stage, _)| *stage == mask));
            if of == Group::SHARED
                && let Some(found) = facts.rows.iter_mut().find(|own| own.name == row.name())
            {
                found.mask = called.map(|(_, called)| called.clone());
            }
        }
        facts.notes.push(format!(
            "Settings of retraining were searched, by scores on the part dev. Chosen: {}.",
            told.join("; ")
        ));
        Ok(())
    }
}
