//! Whether the tables of a grafting go together.

use anyhow::Context as _;
use model::head::importance::AcrossLayers;
use model::range::RATE;

use super::{Around, Config, Row};
use crate::config::range::{inside, number};
use crate::stage::benchmark as tried;
use crate::stage::finetune::quirks::ChosenOn;

impl Config {
    /// Refuses tables that contradict each other.
    pub(super) fn check(&self, around: &Around<'_>) -> anyhow::Result<()> {
        anyhow::ensure!(
            around.recipes.is_empty() && around.attentions.is_empty(),
            "[[recipes]] and [[attentions]] begin with the encoder of [encoder], [graft] compares grafted ones: take them into a config of their own, whose encoder.path is a grafted one (out/retrain-ROW/model)"
        );
        let names: Vec<&str> = around.benchmarks.iter().map(String::as_str).collect();
        around.finetuning.check(&names)?;
        around.check_trained_on()?;
        around.check_quirks()?;
        anyhow::ensure!(
            around.finetuning.fixed.quirks.chosen_on == ChosenOn::Dev,
            "finetune.quirks.chosen_on is test, and [graft] compares encoders by that part: leave one of them out"
        );
        anyhow::ensure!(
            around.finetuning.from.is_none(),
            "finetune.from names one encoder, but [graft] compares several, and each row says what it begins with: leave finetune.from out"
        );
        anyhow::ensure!(
            around.finetuning.curve.is_empty(),
            "finetune.curve is for one encoder, and [graft] compares several: leave it out, or set finetune.max_examples.train_share"
        );
        anyhow::ensure!(
            around.finetuning.on.is_none(),
            "finetune.on names some benchmarks, but [graft] compares rows on all: leave it out"
        );
        anyhow::ensure!(
            names.contains(&self.mask_benchmark.as_str()),
            "graft.mask_benchmark is {:?}, but [[benchmarks]] has {}",
            self.mask_benchmark,
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        );
        if let Some(on) = around.trained_on(&self.mask_benchmark) {
            anyhow::bail!(
                "graft.mask_benchmark is {:?}, which has no model of its own: name {on:?}",
                self.mask_benchmark
            );
        }
        for (place, name) in self.mask_also.iter().enumerate() {
            let of = around.tables.iter().find(|of| of.name == *name);
            anyhow::ensure!(
                of.is_some_and(|of| of.trained_on.as_ref() == Some(&self.mask_benchmark)),
                "graft.mask_also has {name:?}: expected a benchmark whose trained_on is {:?}, for masks are of one model",
                self.mask_benchmark
            );
            anyhow::ensure!(
                of.is_some_and(tried::Config::has_mask_search),
                "graft.mask_also has {name:?}, which has no part mask_search: give it a share (held_out.mask_search)"
            );
            anyhow::ensure!(!self.mask_also[..place].contains(name), "graft.mask_also has {name:?} twice");
        }
        self.check_own_masks(around)?;
        self.check_rows(around)
    }

    /// Whether the benchmarks with masks of their own can have them.
    fn check_own_masks(&self, around: &Around<'_>) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.own_masks.is_empty() || self.rows.iter().any(|row| row.mask().is_some()),
            "graft.own_masks names benchmarks, but no row of graft.rows has a mask: leave it out"
        );
        for (place, name) in self.own_masks.iter().enumerate() {
            let of = around.tables.iter().find(|of| of.name == *name);
            let of = of.with_context(|| {
                format!(
                    "graft.own_masks has {name:?}, but [[benchmarks]] has {}",
                    around.benchmarks.join(", ")
                )
            })?;
            anyhow::ensure!(
                *name != self.mask_benchmark,
                "graft.own_masks has {name:?}, which is graft.mask_benchmark, whose masks the others share: leave it out"
            );
            if let Some(on) = &of.trained_on {
                anyhow::bail!("graft.own_masks has {name:?}, which has no model of its own: name {on:?}");
            }
            anyhow::ensure!(
                of.has_mask_search(),
                "graft.own_masks has {name:?}, which has no part mask_search: give it a share"
            );
            anyhow::ensure!(
                !self.own_masks[..place].contains(name),
                "graft.own_masks has {name:?} twice: leave one out"
            );
        }
        Ok(())
    }

    /// Whether the table `[align]` and the row of it go together.
    fn check_aligning(&self, around: &Around<'_>) -> anyhow::Result<()> {
        let Some((align, _)) = &around.aligning else {
            anyhow::ensure!(
                !self.rows.contains(&Row::Synonyms),
                "graft.rows has `synonyms`, which is aligned by the graph's synonyms: add the table [align]"
            );
            return Ok(());
        };
        anyhow::ensure!(
            self.rows.contains(&Row::Synonyms),
            "[align] is for the row `synonyms`, which graft.rows has not: add it, or leave [align] out"
        );
        anyhow::ensure!(
            align.answers.is_none(),
            "[align.answers] learns triples, and row `synonyms` of graft.rows is aligned by synonyms: leave [align.answers] or the row out"
        );
        anyhow::ensure!(
            align.heads.is_none() && align.from.is_none(),
            "[graft] says how row `synonyms` is masked and what it begins with: leave align.heads and align.from out"
        );
        anyhow::ensure!(
            self.retrain_search.is_none(),
            "graft.retrain_search searches settings of [retrain], and row `synonyms` has those of [align]: leave one of them out"
        );
        Ok(())
    }

    /// Whether row `lora` can be made.
    fn check_adapters(&self, around: &Around<'_>) -> anyhow::Result<()> {
        if !self.rows.contains(&Row::Lora) {
            let given =
                [("lora", self.lora.is_some()), ("lora_learning_rate", self.lora_learning_rate.is_some())];
            let given = given.into_iter().find(|(_, given)| *given);
            return given.map_or(Ok(()), |(key, _)| {
                anyhow::bail!(
                    "graft.{key} is for row `lora`, which graft.rows has not: add it, or leave {key} out"
                )
            });
        }
        inside("graft", self.lora.clone().unwrap_or_default().check(around.sizes.as_ref()))?;
        let frozen = around.retraining.as_ref().is_some_and(|(retraining, _)| !retraining.frozen.is_empty());
        anyhow::ensure!(
            !frozen,
            "graft.rows has `lora`, which trains adapters in the place of the whole encoder, and retrain.frozen says what of it is trained: leave one of them out"
        );
        let Some(rate) = self.lora_learning_rate else { return Ok(()) };
        number("graft.lora_learning_rate", rate, &RATE)?;
        anyhow::ensure!(
            self.retrain_search.is_none(),
            "graft.lora_learning_rate is given, and graft.retrain_search draws the rates of all rows: leave one of them out"
        );
        Ok(())
    }

    /// Whether the rows can be made, and their masks searched.
    fn check_rows(&self, around: &Around<'_>) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.rows.contains(&Row::Base),
            "graft.rows has no `base`: what every other row is compared with, and what masks are searched on"
        );
        for (place, row) in self.rows.iter().enumerate() {
            let name = row.name();
            anyhow::ensure!(
                !self.rows[..place].contains(row),
                "graft.rows has `{name}` twice: leave one out"
            );
            anyhow::ensure!(
                row.mode().is_none() || *row == Row::Synonyms || around.retraining.is_some(),
                "graft.rows has `{name}`, which is retrained on the graph: add the table [retrain]"
            );
        }
        self.check_aligning(around)?;
        self.check_adapters(around)?;
        anyhow::ensure!(
            self.retrain_search.is_none() || self.rows.iter().any(|row| row.mode().is_some()),
            "graft.retrain_search is given, but no row of graft.rows is retrained: leave it out"
        );
        if let Some((retraining, _)) = &around.retraining {
            anyhow::ensure!(
                retraining.heads.is_none(),
                "[retrain.heads] says how the one training is masked, [graft] how each row is: leave [retrain.heads] out"
            );
            anyhow::ensure!(
                retraining.lora.is_none(),
                "[retrain.lora] says that the one training is of adapters, and with [graft] row `lora` is: leave [retrain.lora] out, and say in [graft.lora] how"
            );
        }
        let heads = around.sizes.as_ref().map_or(usize::MAX, |sizes| sizes.num_attention_heads);
        anyhow::ensure!(
            self.search.keep_per_layer < heads,
            "graft.search.keep_per_layer is {}, and a layer has {heads} heads, so that no mask could free one: expected at most {}",
            self.search.keep_per_layer,
            heads - 1
        );
        anyhow::ensure!(
            !self.rows.contains(&Row::Soft) || self.importance.across_layers == AcrossLayers::MinMax,
            "graft.rows has `soft`, whose gates are importances from 0 to 1, but graft.importance.across_layers is `raw`: set it to \"min_max\""
        );
        Ok(())
    }
}
