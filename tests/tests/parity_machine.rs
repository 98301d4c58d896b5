//! Trainings and answers against golden numbers computed with PyTorch (parts a, b, e, f, g and j), by the machine that `ENGRAFT_GOLDENS_DEVICE` names: what the
//! other parity tests compare operation by operation on the CPU, as a trainer or a predictor says it.
//!
//! The folder is `ENGRAFT_GOLDENS`, or `tests/fixtures/golden`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use batch::rows::{Known, Rows};
use batch::task::{Answer, Task};
use batch::{Batch, Targets};
use candle_core::{D, Device, Tensor};
use engraft_tests::golden::{Golden, device, folder, json, minilm, training};
use model::attention::Chosen;
use model::attention::label::{LabelAttention, Mode};
use model::checkpoint;
use model::encoder::pool::Pooling;
use model::head::importance::{AcrossLayers, Importance, Method, WithinLayer};
use model::head::mask::Mask;
use model::output::shards::{self, Alphas, OutputConfig, Sizes};
use model::output::{self, Decoder, Outline, Output, OutputDropout};
use model::predict::Predictor;
use model::train::{Setup, Trainer};

use crate::parity_kam::settings;

/// Part b's ways to measure heads, by their golden names.
pub(crate) const METHODS: [(&str, Method); 4] = [
    ("per_sample", Method::PerSample),
    ("per_batch", Method::PerBatch),
    ("hf_accumulated_grad_bug", Method::Accumulated),
    ("michel_token_level", Method::TokenLevel),
];

/// A training from a checkpoint, without dropout and without a schedule.
fn setup(dir: &Path, outline: Outline) -> Result<Setup> {
    Ok(Setup {
        encoder: checkpoint::load(dir, &Device::Cpu)?.config,
        outline,
        attention: Chosen::default(),
        train: training(1e-4),
        mask: None,
        gates: None,
    })
}

/// One classification of rows, pooled as BERT does.
fn one_class(classes: usize) -> Outline {
    let task =
        output::Task { name: "task".into(), output: Output::OneClass { classes, weights: None }, alpha: 1.0 };
    Outline {
        tasks: vec![task],
        pooling: Pooling::LearnedPooler,
        dropout: 0.0,
        thinned: OutputDropout::ElementWise,
        labels: None,
        knowledge: None,
    }
}

/// A trainer whose outputs begin with the golden numbers that `stored` names, where it names some.
fn trainer(golden: &Golden, outline: Outline, stored: impl Fn(&str) -> Option<String>) -> Result<Trainer> {
    let dir = folder().join("model");
    let mut trainer = Trainer::from_checkpoint(setup(&dir, outline)?, &dir, &device()?)?;
    let names = trainer.params().iter().map(|(name, _)| name.to_owned());
    let outputs = names.filter(|name| name.starts_with("outputs."));
    let stored = outputs.filter_map(|name| Some((stored(&name)?, name)));
    let with = stored.map(|(stored, name)| Ok((name, golden.get(&stored)?.clone())));
    trainer.begin(&with.collect::<Result<BTreeMap<_, _>>>()?)?;
    Ok(trainer)
}

/// The encoder of a checkpoint, as it answers.
fn answering(dir: &Path) -> Result<Predictor> {
    let trainer = Trainer::from_checkpoint(setup(dir, one_class(2))?, dir, &device()?)?;
    Ok(trainer.predictor().clone())
}

/// One number as a golden tensor has it.
fn scalar(number: f64) -> Result<Tensor> {
    Ok(Tensor::new(number, &Device::Cpu)?)
}

fn matrix(rows: &[Vec<f32>]) -> Result<Tensor> {
    let width = rows.first().map_or(0, Vec::len);
    Ok(Tensor::from_vec(rows.concat(), (rows.len(), width), &Device::Cpu)?)
}

/// The rows of a padded golden `[b, t, d]` that a batch has tokens for.
fn real(golden: &Tensor, batch: &Batch) -> Result<Tensor> {
    let cells = (0_u32..).zip(&batch.attention_mask).filter(|(_, mask)| **mask == 1);
    let cells: Vec<u32> = cells.map(|(cell, _)| cell).collect();
    Ok(golden.flatten(0, 1)?.index_select(&Tensor::new(cells, &Device::Cpu)?, 0)?)
}

#[test]
fn answers_with_and_without_gates() -> Result<()> {
    let mut golden = Golden::open("a_encoder")?;
    let batch = golden.batch("", Task::Relation, Targets::Classes(vec![]))?;
    let rows = batch.ragged()?.0;
    let model = answering(&folder().join("model"))?;
    for (variant, gates) in
        [("plain", None), ("hardmask", Some("head_mask.hard")), ("softmask", Some("head_mask.soft"))]
    {
        let model = match gates {
            None => model.clone(),
            Some(name) => {
                let gates_lh = golden.get(name)?;
                let [layers, heads] = gates_lh.dims2()?.into();
                model.clone().with_gates(Mask::new([layers, heads], gates_lh.flatten_all()?.to_vec1()?)?)?
            }
        };
        let name = format!("{variant}.hidden.{}", model.config().num_hidden_layers);
        let expected = real(golden.get(&name)?, &batch)?;
        golden.compare(&name, &matrix(&model.hidden(&rows)?)?, &expected)?;
        let pooled = matrix(&model.pooled(&rows, Pooling::LearnedPooler)?)?;
        golden.compare_all(&format!("{variant}.pooled"), &pooled)?;
    }
    golden.complete(|name| name.ends_with(".pooled"));
    Ok(())
}

#[test]
fn importances_of_heads_by_every_method() -> Result<()> {
    let mut golden = Golden::open("b_importance")?;
    let outline = one_class(golden.get("classifier.bias")?.dim(0)?);
    let stored = |name: &str| Some(name.replace("outputs.task.", "classifier."));
    let model = trainer(&golden, outline, stored)?.predictor().clone();
    let shape = [model.config().num_hidden_layers, model.config().num_attention_heads];
    let ones = Mask::all_kept(shape);
    let mut batches = vec![];
    for i in 0..golden.get("labels")?.dim(0)? {
        for field in ["input_ids", "attention_mask", "token_type_ids", "labels"] {
            let of_batch = golden.get(field)?.get(i)?;
            golden.tensors.insert(format!("{i}.{field}"), of_batch);
        }
        let rows = golden.batch(&format!("{i}."), Task::Relation, Targets::Classes(vec![]))?.ragged()?.0;
        let targets = output::Targets::Classes(golden.integers(&format!("{i}.labels"))?);
        batches.push(output::Batch { task: 0, rows, targets });
    }
    for (name, method) in METHODS {
        let mut importance = Importance::new(method, shape);
        batches.iter().try_for_each(|batch| model.measure(&mut importance, &ones, batch))?;
        for (kind, within) in [("raw", WithinLayer::Raw), ("layer_l2", WithinLayer::L2)] {
            let values = importance.finish(within, AcrossLayers::Raw)?;
            let found = Tensor::from_vec(values, (shape[0], shape[1]), &Device::Cpu)?;
            golden.compare_all(&format!("importance.{name}.{kind}"), &found)?;
        }
    }
    Ok(())
}

/// The four batches of a layout of part e.
fn graph(golden: &Golden, outline: &Outline, layout: &str) -> Result<Vec<output::Batch>> {
    let batch = |task: Task| {
        let prefix = format!("{layout}.{}.", task.name());
        let targets = match task.answer() {
            Answer::Tokens => Targets::Tokens(golden.integers(&format!("{prefix}mlm_labels"))?),
            _ => Targets::Classes(golden.integers(&format!("{prefix}labels"))?),
        };
        Ok(shards::batch(outline, &golden.batch(&prefix, task, targets)?)?)
    };
    Task::GRAPH.into_iter().map(batch).collect()
}

#[test]
fn losses_of_every_layout_pooling_and_decoder() -> Result<()> {
    let mut golden = Golden::open("e_kg_losses")?;
    let layouts = golden.tensors.keys().filter_map(|name| Some(name.split_once(".loss.")?.0.to_owned()));
    let layouts: std::collections::BTreeSet<String> = layouts.collect();
    let sizes = Sizes { relations: golden.get("head.relation.weight")?.dim(0)?, tags: 0 };
    let stored = |name: &str| Some(name.replace("outputs.", "head.").replace("masked_lm.", "mlm."));
    let all = Pooling::ALL.map(|pooling| (pooling, Decoder::Linear));
    for (pooling, entity) in all.into_iter().chain([(Pooling::Cls, Decoder::MaskedLm)]) {
        let outline = OutputConfig { pooling, entity, dropout: 0.0 }.outline(&Alphas::default(), sizes);
        let trainer = trainer(&golden, outline.clone(), stored)?;
        for layout in &layouts {
            let losses = trainer.evaluate(&graph(&golden, &outline, layout)?)?;
            for task in Task::GRAPH {
                let name = match (task.answer(), entity) {
                    (Answer::Tokens, Decoder::Linear) => task.name().to_owned(),
                    (Answer::Tokens, Decoder::MaskedLm) => format!("{}_hf_mlm_head", task.name()),
                    _ => format!("{}.{}", task.name(), pooling.name()),
                };
                golden.compare_all(&format!("{layout}.loss.{name}"), &scalar(losses[task.name()].loss)?)?;
            }
        }
    }
    golden.complete(|name| name.contains(".loss."));
    Ok(())
}

#[test]
fn a_step_with_labels_has_the_losses_and_the_gradient_of_the_reference() -> Result<()> {
    let mut golden = Golden::open("f_label")?;
    let all = json("f_label")?;
    let lambda = all["lambda"].as_f64().context("lambda is a number")?;
    let (classes, mut norms) = (golden.get("classifier.bias")?.dim(0)?, 0);
    for run in all["runs"].as_object().context("runs is an object")?.keys() {
        let (mode, init) = run.split_once('.').context("a run is mode.init")?;
        let mode = if mode == "paper" { Mode::Paper } else { Mode::Repo };
        let outline = Outline { labels: Some(LabelAttention { mode, lambda }), ..one_class(classes) };
        let stored = |name: &str| match name {
            "outputs.label_attention.embeddings" => Some(format!("init.{init}")),
            _ => Some(name.replace("outputs.task.", "classifier.")),
        };
        let mut trainer = trainer(&golden, outline, stored)?;
        let mut batch = golden.batch("", Task::Relation, Targets::Classes(vec![]))?;
        if mode == Mode::Repo {
            // The released behaviour is stored for rows without padding.
            batch.attention_mask.fill(1);
            batch = batch.one_per_row();
        }
        let rows = batch.ragged()?.0;
        let model = trainer.predictor();
        let name = format!("{run}.last_hidden");
        let expected = real(golden.get(&name)?, &batch)?;
        golden.compare(&name, &matrix(&model.hidden(&rows)?)?, &expected)?;
        golden.compare_all(&format!("{run}.logits"), &matrix(&model.logits(0, &rows)?)?)?;
        let targets = output::Targets::Classes(golden.integers("labels")?);
        let record = trainer.step(0, &[output::Batch { task: 0, rows, targets }])?;
        golden.compare_all(&format!("{run}.L_c"), &scalar(record.tasks["task"].loss)?)?;
        let of_labels = record.labels.context("the labels have a loss")?;
        golden.compare_all(&format!("{run}.L_label"), &scalar(of_labels / lambda)?)?;
        golden.compare_all(&format!("{run}.L_final"), &scalar(record.loss)?)?;
        // Where all gradients are stored, their norm is the step's.
        let stored = golden.tensors.iter().filter(|(name, _)| name.starts_with(&format!("{run}.grad.")));
        let stored: Vec<_> = stored.collect();
        if stored.len() < trainer.params().iter().count() {
            continue;
        }
        norms += 1;
        let squares =
            stored.into_iter().map(|(_, grad)| Ok(f64::from(grad.sqr()?.sum_all()?.to_scalar::<f32>()?)));
        let norm = squares.sum::<Result<f64>>()?.sqrt();
        ensure!((record.grad_norm / norm - 1.0).abs() < 1e-4, "{run}: {} {norm}", record.grad_norm);
    }
    ensure!(norms > 0, "no run has all its gradients stored");
    golden.complete(|name| name.contains(".L_") || name.ends_with(".logits"));
    Ok(())
}

/// The samples of a set of inputs of part g, with what is known of them.
fn known(golden: &Golden, inputs: &str, maps: usize) -> Result<Rows> {
    let count = |name: &str| golden.integers::<usize>(&format!("{inputs}.{name}"));
    let (real, auxiliary) = (count("n_real")?, count("n_aux")?);
    let ids = golden.get(&format!("{inputs}.input_ids"))?;
    let (mut rows, mut numbers) = (Rows::default(), vec![]);
    for (row, length) in real.iter().zip(&auxiliary).map(|(real, auxiliary)| real + auxiliary).enumerate() {
        let ids = ids.get(row)?.narrow(0, 0, length)?.to_vec1::<i64>()?;
        rows.push(ids.into_iter().map(|id| Ok((u32::try_from(id)?, 0))).collect::<Result<Vec<_>>>()?);
        let of_row = golden.get(&format!("{inputs}.maps"))?.get(row)?;
        let of_row = of_row.narrow(1, 0, length)?.narrow(2, 0, length)?;
        numbers.extend(of_row.flatten_all()?.to_vec1::<f32>()?);
    }
    rows.known = Some(Known { maps, real, numbers });
    Ok(rows)
}

#[test]
fn states_by_maps_of_knowledge_are_those_of_the_reference() -> Result<()> {
    let mut golden = Golden::open("g_kam")?;
    let all = json("g_kam")?;
    let alpha = all["alpha"].as_f64().context("alpha is a number")?;
    for variant in all["runs"].as_object().context("runs is an object")?.keys() {
        let (settings, inputs) = settings(variant, alpha)?;
        let rows = known(&golden, inputs, settings.maps)?;
        let stored = |name: &str| {
            let name = name.strip_prefix("outputs.knowledge.layer.")?;
            Some(format!("kam.{}", name.replace("convolution", "conv")))
        };
        let outline = Outline { knowledge: Some(settings), ..one_class(2) };
        let model = trainer(&golden, outline, stored)?;
        let hidden = matrix(&model.predictor().hidden(&rows)?)?;
        let (name, mut first) = (format!("{variant}.last_hidden_real_rows"), 0);
        let expected = golden.get(&name)?.clone();
        let of = rows.known.as_ref().context("something is known")?;
        for (row, (real, length)) in of.real.iter().zip(&rows.lengths).enumerate() {
            let found = hidden.narrow(0, first, *real)?;
            golden.compare(&name, &found, &expected.get(row)?.narrow(0, 0, *real)?)?;
            first += length;
        }
    }
    golden.complete(|name| name.ends_with(".last_hidden_real_rows"));
    Ok(())
}

#[test]
fn a_published_checkpoint_answers_what_transformers_answers() -> Result<()> {
    let Some(minilm) = minilm() else { return Ok(()) };
    let mut golden = Golden::open("j_minilm")?;
    let model = answering(&minilm)?;
    let batch = golden.batch("", Task::Relation, Targets::Classes(vec![]))?;
    let rows = batch.ragged()?.0;
    let expected = real(golden.get("last_hidden_state_masked")?, &batch)?;
    golden.compare("last_hidden_state_masked", &matrix(&model.hidden(&rows)?)?, &expected)?;
    golden.compare_all("pooler_output", &matrix(&model.pooled(&rows, Pooling::LearnedPooler)?)?)?;
    let mean_bd = matrix(&model.pooled(&rows, Pooling::Mean)?)?;
    let length_b1 = mean_bd.sqr()?.sum_keepdim(D::Minus1)?.sqrt()?;
    golden.compare_all("mean_pooled_l2_normalised", &mean_bd.broadcast_div(&length_b1)?)
}
