//! One training step of an encoder, measured, for `just bench-model` and for anyone who wants to see what a shape costs.
//!
//! `train_step '{"layers": 6, "hidden": 384, "heads": 12, "feed_forward": 1536, "vocabulary": 30522, "dropout": 0.0, "threads": 2, "lengths": [64, 64],
//! "warmup": 3, "steps": 10, "frozen": 0, "attention": "plain", "dtype": "f32", "pooling": "cls"}'`, `lengths` being the tokens of each row and `frozen` how many layers, from the embeddings on, are not
//! trained (0: the embeddings are trained too). The loss is the cross entropy of a linear layer on a row's first hidden state (`cls`) or on the mean of them (`mean`); then come
//! the gradients' norm, clipping and AdamW. `attention` is `plain`, `labels` (four of them, with their loss), or `kam` (three maps, a convolution). Prints one JSON object: milliseconds of each step by part, and of the processor.
#![allow(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use batch::family::Family;

use base::rng::CounterRng;
use batch::task::Task;
use batch::{Batch, Targets};
use candle_core::{Device, Tensor};
use model::attention::kam::{Auxiliary, Kam, Merge, Settings, Skip};
use model::attention::label::{LabelAttention, Labels, Mode};
use model::attention::plain::Plain;
use model::attention::{Attention, Sibling};
use model::device::ActivationDtype;
use model::encoder::config::Config;
use model::encoder::pool::{Pool, Pooling};
use model::encoder::tokens::{Knowledge, Tokens};
use model::encoder::{Encoder, Pass, Read};
use model::nn::cross_entropy::cross_entropy;
use model::nn::gradients::gradients;
use model::nn::linear::Linear;
use model::optim::adamw::{AdamW, AdamWConfig, Update};
use model::optim::clip;
use model::params::{Init, Params, Spec};
use serde::Deserialize;
use serde_json::json;

use crate::process::{peak_mib, processor_ms};

/// What to measure.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Measured {
    layers: usize,
    hidden: usize,
    heads: usize,
    feed_forward: usize,
    vocabulary: usize,
    dropout: f64,
    threads: usize,
    lengths: Vec<usize>,
    warmup: usize,
    steps: usize,
    frozen: usize,
    attention: Kind,
    dtype: ActivationDtype,
    pooling: Pooling,
}

/// How tokens attend.
#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Plain,
    Labels,
    Kam,
}

/// Labels, and maps of a row.
const LABELS: usize = 4;
const MAPS: usize = 3;

/// KAM-BERT's attention as it is published.
const KAM: Settings = Settings {
    maps: MAPS,
    alpha: 0.2,
    skip: Skip::PostAdd,
    auxiliary: Auxiliary::ZeroPad,
    merge: Merge::Convolution,
};

/// What a step is made with.
struct Model {
    config: Config,
    params: Params,
    encoder: Encoder,
    pool: Pool,
    /// Whether no state but the first of a row is read.
    of_first: bool,
    output: Linear,
    attention: Arc<dyn Attention>,
    /// Maps of the rows, none without KAM-BERT's attention.
    maps: Vec<f32>,
    optimiser: AdamW,
    frozen: Vec<String>,
}

/// What the first lines of this file say.
pub(crate) fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let of: Measured = serde_json::from_str(arguments.first().ok_or("expected one JSON object")?)?;
    rayon::ThreadPoolBuilder::new().num_threads(of.threads).build_global()?;
    let batch = batch(&of)?;
    let mut model = model(&of)?;
    let classes = (0..of.lengths.len()).map(|row| u32::try_from(row % LABELS).map(Some));
    let classes: Vec<Option<u32>> = classes.collect::<Result<_, _>>()?;
    let (mut times, mut losses, mut spent) = ([const { vec![] }; 4], vec![], vec![]);
    for step in 0..of.warmup + of.steps {
        let before = processor_ms()?;
        // On a thread of the pool, as the trainer makes steps.
        let made = rayon::scope(|_| model.step(step, &batch, &classes).map_err(|error| error.to_string()));
        let (loss, at) = made?;
        spent.push(processor_ms()? - before);
        losses.push(loss);
        if step >= of.warmup {
            let parts = [at[1] - at[0], at[2] - at[1], at[3] - at[2], at[3] - at[0]];
            times.iter_mut().zip(parts).for_each(|(times, ms)| times.push(ms));
        }
    }
    let mut told = json!({ "tokens": of.lengths.iter().sum::<usize>(), "peak_mib": peak_mib()?, "processor": spent[of.warmup..] });
    told["losses"] = json!([losses.first(), losses.last()]);
    for (name, times) in ["forward", "backward", "optimiser", "total"].into_iter().zip(&mut times) {
        told[name] = json!(times.clone());
        times.sort_by(f64::total_cmp);
        told["medians"][name] = json!(times.get(times.len() / 2));
    }
    println!("{told}");
    Ok(())
}

fn model(of: &Measured) -> Result<Model, Box<dyn Error>> {
    let config = Config {
        vocab_size: of.vocabulary,
        hidden_size: of.hidden,
        num_hidden_layers: of.layers,
        num_attention_heads: of.heads,
        intermediate_size: of.feed_forward,
        max_position_embeddings: 512,
        type_vocab_size: 2,
        hidden_dropout_prob: of.dropout,
        attention_probs_dropout_prob: of.dropout,
        initializer_range: 0.02,
        layer_norm_eps: 1e-12,
        pad_token_id: 0,
        family: Family::Bert,
    };
    config.check()?;
    let mut specs =
        [Encoder::specs(&config), Spec::linear("output", [LABELS, of.hidden], 0.02).to_vec()].concat();
    match of.attention {
        Kind::Plain => {}
        Kind::Labels => specs.push(Spec::new("labels".to_owned(), &[LABELS, of.hidden], Init::Normal(0.02))),
        Kind::Kam => specs.extend(KAM.specs(&config)),
    }
    let mut frozen: Vec<String> = (0..of.frozen).map(|layer| format!("encoder.layer.{layer}.")).collect();
    frozen.push("pooler.".to_owned());
    if of.attention == Kind::Kam {
        frozen.extend(KAM.unreached(of.layers).into_iter().map(|(name, _)| name));
    }
    frozen.extend((of.frozen > 0).then(|| "embeddings.".to_owned()));
    let trained = |name: &str| !frozen.iter().any(|prefix| name.starts_with(prefix));
    let params = Params::fresh(&specs, 1, &Device::Cpu)?.freeze(|name| !trained(name));
    let adamw = AdamWConfig { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.01 };
    Ok(Model {
        optimiser: AdamW::new(adamw, &params, trained)?,
        encoder: Encoder::new(&config, &params)?.with_dtype(of.dtype),
        pool: Pool::new(of.pooling, &params, "")?,
        of_first: of.pooling == Pooling::Cls,
        output: Linear::new(&params, "output")?,
        attention: match of.attention {
            Kind::Plain => Arc::new(Plain),
            // The mean over the labels times as many is their sum, which the paper has: a lambda of 1 over that many is the mean.
            Kind::Labels => Arc::new(Labels {
                embeddings_md: params.get("labels")?,
                settings: LabelAttention { mode: Mode::Paper, lambda: 1.0 / LABELS as f64 },
            }),
            Kind::Kam => Arc::new(Kam::new(&KAM, &config, &params)?),
        },
        maps: if of.attention == Kind::Kam { maps(of) } else { vec![] },
        frozen,
        config,
        params,
    })
}

/// Maps of the rows, of which each cell in ten has a number.
fn maps(of: &Measured) -> Vec<f32> {
    let cells: usize = of.lengths.iter().map(|length| MAPS * length * length).sum();
    let chance = CounterRng::new(2);
    (0..cells as u64).map(|cell| if chance.bits(cell).is_multiple_of(10) { 0.5 } else { 0.0 }).collect()
}

/// Rows of the lengths asked for, of random tokens.
fn batch(of: &Measured) -> Result<Batch, Box<dyn Error>> {
    let (rows, width) = (of.lengths.len(), of.lengths.iter().copied().max().ok_or("no lengths")?);
    let real = |cell: usize| cell % width < of.lengths[cell / width];
    let (chance, vocabulary) = (CounterRng::new(1), of.vocabulary as u64);
    let id =
        |cell: usize| if real(cell) { u32::try_from(chance.bits(cell as u64) % vocabulary) } else { Ok(0) };
    Ok(Batch {
        task: Task::Relation,
        rows,
        width,
        input_ids: (0..rows * width).map(id).collect::<Result<_, _>>()?,
        attention_mask: (0..rows * width).map(|cell| u32::from(real(cell))).collect(),
        token_type_ids: vec![0; rows * width],
        position_ids: vec![],
        segment_ids: vec![],
        samples: vec![],
        targets: Targets::Classes(vec![]),
    }
    .one_per_row())
}

impl Model {
    /// The loss, and milliseconds at the beginning and after forward, backward and update.
    fn step(
        &mut self,
        step: usize,
        batch: &Batch,
        classes: &[Option<u32>],
    ) -> Result<(f32, [f64; 4]), Box<dyn Error>> {
        let (start, now) = (Instant::now(), |start: Instant| start.elapsed().as_secs_f64() * 1e3);
        let mut tokens = Tokens::new(&[("rows", &batch.ragged()?.0)], &self.config, &Device::Cpu)?;
        // Every batch has maps of its own, which are copied into it.
        if !self.maps.is_empty() {
            let lengths = tokens.spans.iter().map(|span| span.len).collect();
            let known = Knowledge::new(self.maps.clone(), MAPS, lengths, &tokens.spans, &Device::Cpu)?;
            tokens.knowledge = Some(known);
        }
        let attention = &*self.attention;
        let firsts = tokens.spans.iter().map(|span| u32::try_from(span.start));
        let firsts = firsts.collect::<Result<Vec<_>, _>>()?;
        let read = if self.of_first { Read::Of(&firsts) } else { Read::All };
        let dropout = Some(CounterRng::new(1).branch(step as u64));
        let pass = Pass { attention, dropout, read, ..Pass::PLAIN };
        let hidden = self.encoder.forward(&self.config, &tokens, &pass)?;
        let x_nd = hidden.last().ok_or("no hidden states")?;
        let logits_bc = self.output.forward(&self.pool.forward(x_nd, &tokens.spans)?)?;
        let mut loss = cross_entropy(&logits_bc, classes)?;
        if let Some(own) = attention.own_loss(&|embeddings_md| self.output.forward(embeddings_md))? {
            loss = (loss + own)?;
        }
        let value = loss.to_scalar()?;
        let forward = now(start);
        let mut store = gradients(&loss)?;
        let trained = |name: &str| !self.frozen.iter().any(|prefix| name.starts_with(prefix));
        let params = self.params.iter().filter(|(name, _)| trained(name));
        let grads: BTreeMap<String, Tensor> =
            params.filter_map(|(name, param)| Some((name.to_owned(), store.remove(param)?))).collect();
        drop((store, loss, logits_bc, hidden));
        let backward = now(start);
        let scale = clip::factor(clip::global_norm(&grads)?, 1.0);
        self.optimiser.step(&self.params, grads, Update { rate: 1e-4, scale })?;
        Ok((value, [0.0, forward, backward, now(start)]))
    }
}
