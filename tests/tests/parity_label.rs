//! Label-embedding attention and its losses against golden numbers computed with PyTorch (part f).
//!
//! The folder is `ENGRAFT_GOLDENS`, or `tests/fixtures/golden`.

use anyhow::{Context, Result};
use batch::rows::Rows;
use batch::task::Task as Graph;
use candle_core::{Device, Tensor};
use engraft_tests::golden::{self, Golden, folder, json};
use std::sync::Arc;

use model::attention::label::begin::{ClassMeans, of_keywords};
use model::attention::label::{LabelAttention, Mode};
use model::attention::{Attention, Composed};
use model::checkpoint;
use model::encoder::config::Config;
use model::encoder::pool::Pooling;
use model::encoder::tokens::Tokens;
use model::encoder::{Encoder, Pass};
use model::nn::gradients::gradients;
use model::output::{Batch, Outline, Output, OutputDropout, Outputs, Targets, Task};
use model::params::Params;

/// The encoder, its classifier and its labels, all variables.
struct Scene {
    config: Config,
    params: Params,
    encoder: Encoder,
    outputs: Outputs,
    attention: Arc<dyn Attention>,
}

/// Where the golden classifier and embeddings go.
const NAMES: [(&str, &str); 3] = [
    ("outputs.task.weight", "classifier.weight"),
    ("outputs.task.bias", "classifier.bias"),
    ("outputs.label_attention.embeddings", "label_embeddings"),
];

impl Scene {
    fn new(golden: &Golden, (mode, init): (Mode, &str), lambda: f64) -> Result<Self> {
        let checkpoint::Checkpoint { config, params, .. } =
            checkpoint::load(&folder().join("model"), &Device::Cpu)?;
        let classes = golden.get("classifier.bias")?.dim(0)?;
        let task =
            Task { name: "task".into(), output: Output::OneClass { classes, weights: None }, alpha: 1.0 };
        let labels = Some(LabelAttention { mode, lambda });
        let (tasks, pooling) = (vec![task], Pooling::LearnedPooler);
        let outline = Outline {
            tasks,
            pooling,
            dropout: 0.0,
            thinned: OutputDropout::ElementWise,
            labels,
            knowledge: None,
        };
        outline.check()?;
        let stored = |name: &str| match name {
            "outputs.label_attention.embeddings" => golden.get(&format!("init.{init}")).cloned(),
            _ => golden.get(&name.replace("outputs.task.", "classifier.")).cloned(),
        };
        let specs = outline.specs(&config);
        let tensors = specs.iter().map(|s| Ok((s.name.clone(), stored(&s.name)?))).collect::<Result<_>>()?;
        let params = params.with(Params::from_tensors(&specs, tensors)?);
        let (encoder, outputs) = (Encoder::new(&config, &params)?, Outputs::new(&outline, &config, &params)?);
        let attention = outline.attention().sibling().build(&config, &params)?;
        Ok(Scene { config, params, encoder, outputs, attention })
    }

    /// Everything that the golden set holds of one run, compared.
    fn compare(&self, golden: &mut Golden, run: &str) -> Result<()> {
        let mut batch = golden.batch("", Graph::Relation, model_targets())?;
        if run.starts_with("repo.") {
            // The released behaviour is stored for rows without padding.
            batch.attention_mask.fill(1);
            batch = batch.one_per_row();
        }
        let tokens = golden::tokens(&[&batch], &self.config)?;
        let pass = Pass { attention: &*self.attention, ..Pass::PLAIN };
        let hidden = self.encoder.forward(&self.config, &tokens, &pass)?;
        let last_nd = hidden.last().context("an encoder has hidden states")?;
        let real: Vec<u32> = (0..)
            .zip(&batch.attention_mask)
            .filter_map(|(cell, mask)| (*mask == 1).then_some(cell))
            .collect();
        let name = format!("{run}.last_hidden");
        let expected = golden.get(&name)?.flatten(0, 1)?;
        golden.compare(&name, last_nd, &expected.index_select(&Tensor::new(real, &Device::Cpu)?, 0)?)?;
        let inputs = &hidden[..self.config.num_hidden_layers];
        let layers = self.encoder.inspect(inputs, &tokens, &*self.attention)?;
        for (l, Composed { probs_bhtt, .. }) in layers.iter().enumerate() {
            let name = format!("{run}.cls_attention_row.{l}");
            let golden_bht = golden.get(&name)?.clone();
            for (row, span) in tokens.spans.iter().enumerate() {
                let found = probs_bhtt.get(row)?.narrow(1, 0, 1)?.squeeze(1)?.narrow(1, 0, span.len)?;
                golden.compare(&name, &found, &golden_bht.get(row)?.narrow(1, 0, span.len)?)?;
            }
        }
        self.losses(golden, run, (last_nd, &tokens))
    }

    fn losses(&self, golden: &mut Golden, run: &str, (x_nd, tokens): (&Tensor, &Tokens)) -> Result<()> {
        let logits_mc = self.outputs.logits(x_nd, &tokens.spans, 0, None)?;
        golden.compare_all(&format!("{run}.logits"), &logits_mc)?;
        let embeddings_md = self.params.get("outputs.label_attention.embeddings")?;
        let own = self.outputs.logits_of_vectors(&embeddings_md)?;
        golden.compare_all(&format!("{run}.label_logits"), &own)?;
        let classes = golden.integers("labels")?;
        let rows = Rows::default();
        let batch = Batch { task: 0, rows, targets: Targets::Classes(classes) };
        let (of_task, of_labels) = (
            self.outputs.loss(x_nd, &tokens.spans, &batch, None)?.loss,
            self.outputs.own_loss(&*self.attention)?,
        );
        let of_labels = of_labels.context("there are labels")?;
        golden.compare_all(&format!("{run}.L_c"), &of_task)?;
        let lambda = json("f_label")?["lambda"].as_f64().context("lambda is a number")?;
        golden.compare_all(&format!("{run}.L_label"), &(&of_labels / lambda)?)?;
        let total = (of_task + of_labels)?;
        golden.compare_all(&format!("{run}.L_final"), &total)?;
        let found = gradients(&total)?;
        for (name, param) in self.params.iter() {
            let stored = NAMES.iter().find(|(ours, _)| *ours == name).map_or(name, |(_, stored)| stored);
            let stored = format!("{run}.grad.{stored}");
            if golden.get(&stored).is_err() {
                continue;
            }
            match found.get(param) {
                Some(grad) => golden.compare_all(&stored, grad)?,
                None => golden.compare_all(&stored, &param.zeros_like()?)?,
            }
        }
        Ok(())
    }
}

/// A graph's batch wants targets; these are never looked at.
fn model_targets() -> batch::Targets {
    batch::Targets::Classes(vec![])
}

#[test]
fn states_losses_and_gradients_in_both_modes() -> Result<()> {
    let mut golden = Golden::open("f_label")?;
    let all = json("f_label")?;
    let lambda = all["lambda"].as_f64().context("lambda is a number")?;
    for run in all["runs"].as_object().context("runs is an object")?.keys() {
        let (mode, init) = run.split_once('.').context("a run is mode.init")?;
        let mode = if mode == "paper" { Mode::Paper } else { Mode::Repo };
        Scene::new(&golden, (mode, init), lambda)?.compare(&mut golden, run).context(run.clone())?;
    }
    golden.complete(|name| name.starts_with("paper.") || name.starts_with("repo."));
    Ok(())
}

#[test]
fn what_embeddings_begin_with() -> Result<()> {
    let mut golden = Golden::open("f_label")?;
    let checkpoint::Checkpoint { config, params, .. } =
        checkpoint::load(&folder().join("model"), &Device::Cpu)?;
    let keywords: Vec<Vec<u32>> = serde_json::from_value(json("f_label")?["keyword_token_ids"].clone())?;
    let table_vd = params.get("embeddings.word_embeddings.weight")?;
    golden.compare_all("init.keyword", &of_keywords(&table_vd, &keywords)?)?;
    let batch = golden.batch("support.", Graph::Relation, model_targets())?;
    let tokens = golden::tokens(&[&batch], &config)?;
    let hidden = Encoder::new(&config, &params)?.forward(&config, &tokens, &Pass::PLAIN)?;
    let states = hidden.last().context("an encoder has hidden states")?.to_vec2::<f32>()?;
    let classes: Vec<u32> = golden.integers("support.labels")?;
    let mut means = ClassMeans::new(golden.get("classifier.bias")?.dim(0)?, config.hidden_size);
    for (span, class) in tokens.spans.iter().zip(classes) {
        means.add(class, &states[span.start])?;
    }
    golden.compare_all("init.classmean_cls", &means.embeddings(&Device::Cpu)?)?;
    Ok(())
}
