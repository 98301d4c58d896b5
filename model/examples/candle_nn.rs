//! candle-nn around this crate's encoder: its `VarBuilder` and initialisers make a layer for two classes, its cross entropy and its AdamW train both together.
//!
//! ```text
//! cargo run --release -p engraft-model --example candle_nn
//! ```
//!
//! The encoder's parameters are candle's variables under their published names, and its layers hand gradients on, so that whatever trains candle's models trains
//! this one. `Trainer` does more: its bits are the same for any number of threads, it resumes exactly and accounts for every gradient. On the CPU; on CUDA the encoder
//! runs by `Trainer` and `Predictor`.

#![allow(clippy::print_stdout, reason = "an example says what it found")]

use std::collections::HashMap;

use batch::family::Family;
use batch::rows::Rows;
use candle_core::{DType, Device, Module, Result, Tensor, Var, bail};
use candle_nn::{AdamW, Optimizer, ParamsAdamW, VarBuilder, VarMap, linear, loss};
use model::encoder::config::Config;
use model::encoder::tokens::Tokens;
use model::encoder::{Encoder, Pass};
use model::params::Params;

/// BERT in small; `model::checkpoint::load` reads a folder in its place.
const CONFIG: Config = Config {
    vocab_size: 40,
    hidden_size: 32,
    num_hidden_layers: 2,
    num_attention_heads: 4,
    intermediate_size: 64,
    max_position_embeddings: 16,
    type_vocab_size: 2,
    hidden_dropout_prob: 0.0,
    attention_probs_dropout_prob: 0.0,
    initializer_range: 0.1,
    layer_norm_eps: 1e-12,
    pad_token_id: 0,
    family: Family::Bert,
};

fn main() -> Result<()> {
    let device = Device::Cpu;
    let params = Params::fresh(&Encoder::specs(&CONFIG), 1, &device).map_err(candle_core::Error::wrap)?;
    let encoder = Encoder::new(&CONFIG, &params)?;
    let head = VarMap::new();
    let classes =
        linear(CONFIG.hidden_size, 2, VarBuilder::from_varmap(&head, DType::F32, &device).pp("classes"))?;

    // The encoder's parameters are there for candle-nn's layers, too.
    let named: HashMap<String, Tensor> =
        params.iter().map(|(name, tensor)| (name.to_owned(), tensor.clone())).collect();
    let norm = candle_nn::layer_norm(
        CONFIG.hidden_size,
        CONFIG.layer_norm_eps,
        VarBuilder::from_tensors(named, DType::F32, &device).pp("embeddings.LayerNorm"),
    )?;
    println!("gain of the first norm: {:?}", norm.weight().dims());

    // Rows of any lengths, one behind the other, whose class is whether their second token is an even number.
    let mut rows = Rows::default();
    for number in 10..30_u32 {
        rows.push([2, number, 3].into_iter().chain((0..number % 4).map(|_| 5)).map(|id| (id, 0)));
    }
    let labels: Vec<u32> = (10..30).map(|number| number % 2).collect();
    let labels = Tensor::new(labels, &device)?;
    let tokens = Tokens::new(&[("even", &rows)], &CONFIG, &device).map_err(candle_core::Error::wrap)?;
    let starts = tokens.spans.iter().map(|span| u32::try_from(span.start));
    let starts = starts.collect::<std::result::Result<Vec<u32>, _>>().map_err(candle_core::Error::wrap)?;
    let starts = Tensor::new(starts, &device)?;

    let vars: Vec<Var> = params.iter().map(|(_, tensor)| Var::from_tensor(tensor)).collect::<Result<_>>()?;
    let all = vars.into_iter().chain(head.all_vars()).collect();
    let mut optimiser = AdamW::new(all, ParamsAdamW { lr: 3e-3, ..ParamsAdamW::default() })?;
    let mut losses = vec![];
    for _ in 0..60 {
        let Some(x_nd) = encoder.forward(&CONFIG, &tokens, &Pass::PLAIN)?.pop() else { bail!("no layer") };
        let loss = loss::cross_entropy(&classes.forward(&x_nd.index_select(&starts, 0)?)?, &labels)?;
        optimiser.backward_step(&loss)?;
        losses.push(loss.to_scalar::<f32>()?);
    }
    let (first, last) = (losses[0], losses[losses.len() - 1]);
    println!("loss {first:.4} before, {last:.4} after {} steps of candle-nn's AdamW", losses.len());
    if last > first / 4.0 {
        bail!("the loss did not fall: no gradient comes through");
    }
    Ok(())
}
