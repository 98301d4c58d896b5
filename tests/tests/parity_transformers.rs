//! A checkpoint that engraft wrote, read by `transformers.AutoModel`.
//!
//! `ENGRAFT_TORCH` names a Python with tests/python/requirements-torch.txt; without it the test is skipped.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use batch::family::Family;
use batch::task::Task;
use batch::{Batch, Targets};
use candle_core::{Device, Tensor};
use model::checkpoint;
use model::encoder::config::Config;
use model::encoder::pool::{Pool, Pooling};
use model::encoder::{Encoder, Pass};
use model::params::Params;

/// Sizes without a pattern, and weights large enough that attention is far from uniform.
const CONFIG: Config = Config {
    vocab_size: 61,
    hidden_size: 24,
    num_hidden_layers: 3,
    num_attention_heads: 3,
    intermediate_size: 40,
    max_position_embeddings: 17,
    type_vocab_size: 2,
    hidden_dropout_prob: 0.1,
    attention_probs_dropout_prob: 0.1,
    initializer_range: 0.3,
    layer_norm_eps: 1e-12,
    pad_token_id: 0,
    family: Family::Bert,
};

/// Three rows of 9, 4 and 1 tokens.
fn batch() -> Batch {
    let (rows, width) = (3, 9);
    let cell = |f: &dyn Fn(u32, u32) -> u32| (0..27).map(|i| f(i / 9, i % 9)).collect::<Vec<u32>>();
    let real = |row: u32, t: u32| t < [9, 4, 1][row as usize];
    Batch {
        task: Task::Relation,
        rows,
        width,
        input_ids: cell(&|row, t| if real(row, t) { (row * 31 + t * 17 + 2) % 61 } else { 0 }),
        attention_mask: cell(&|row, t| u32::from(real(row, t))),
        token_type_ids: cell(&|row, t| u32::from(real(row, t) && t > 2)),
        position_ids: vec![],
        segment_ids: vec![],
        samples: vec![],
        targets: Targets::Classes(vec![0; rows]),
    }
    .one_per_row()
}

/// Hidden states of real tokens at their cells, 0 elsewhere.
fn spread(x_nd: &Tensor, batch: &Batch) -> Result<Tensor> {
    let mut next = x_nd.to_vec2::<f32>()?.into_iter();
    let mut cells = Vec::new();
    for mask in &batch.attention_mask {
        let row =
            if *mask == 1 { next.next().context("a row per token")? } else { vec![0.0; CONFIG.hidden_size] };
        cells.extend(row);
    }
    Ok(Tensor::from_vec(cells, (batch.rows, batch.width, CONFIG.hidden_size), &Device::Cpu)?)
}

fn case(path: &Path, params: &Params) -> Result<()> {
    let batch = batch();
    let tokens = engraft_tests::golden::tokens(&[&batch], &CONFIG)?;
    let hidden = Encoder::new(&CONFIG, params)?.forward(&CONFIG, &tokens, &Pass::PLAIN)?;
    let last = hidden.last().context("hidden states")?;
    let pooled = Pool::new(Pooling::LearnedPooler, params, "")?.forward(last, &tokens.spans)?;
    let last = spread(last, &batch)?;
    let shape = (batch.rows, batch.width);
    let matrix = |values: Vec<u32>| Tensor::from_vec(values, shape, &Device::Cpu);
    let tensors = HashMap::from([
        ("input_ids", matrix(batch.input_ids)?),
        ("attention_mask", matrix(batch.attention_mask)?),
        ("token_type_ids", matrix(batch.token_type_ids)?),
        ("last_hidden_state", last),
        ("pooled", pooled),
    ]);
    Ok(candle_core::safetensors::save(&tensors, path)?)
}

#[test]
fn auto_model_loads_a_checkpoint_and_computes_the_same() -> Result<()> {
    let Some(python) = engraft_tests::python::interpreter("ENGRAFT_TORCH") else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let params = Params::fresh(&Encoder::specs(&CONFIG), 11, &Device::Cpu)?;
    checkpoint::save(dir.path(), &CONFIG, params.iter())?;
    let stored = dir.path().join("case.safetensors");
    case(&stored, &params)?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/auto_model.py");
    let old = tempfile::tempdir()?;
    let output = Command::new(python).arg(script).arg(dir.path()).arg(&stored).arg(old.path()).output()?;
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    as_published_before_safetensors(dir.path(), old.path(), &params)
}

/// The weights in the folder `old` as PyTorch saved them are read to the same bits, and damaged ones are refused.
fn as_published_before_safetensors(dir: &Path, old: &Path, params: &Params) -> Result<()> {
    let config = std::fs::read(dir.join(checkpoint::CONFIG_FILE))?;
    base::whole::write_whole(&old.join(checkpoint::CONFIG_FILE), &config)?;
    let loaded = checkpoint::load(old, &Device::Cpu)?;
    assert_eq!(loaded.left_out, ["cls.predictions.bias"]);
    for ((name, tensor), (found_name, found)) in params.iter().zip(loaded.params.iter()) {
        assert_eq!(name, found_name);
        assert_eq!(tensor.flatten_all()?.to_vec1::<f32>()?, found.flatten_all()?.to_vec1::<f32>()?, "{name}");
    }
    let file = old.join(checkpoint::PICKLE_FILE);
    let whole = std::fs::read(&file)?;
    for length in [0, 10, whole.len() / 2, whole.len() - 30] {
        base::whole::write_whole(&file, &whole[..length])?;
        let text = match checkpoint::load(old, &Device::Cpu) {
            Ok(_) => anyhow::bail!("{length} of {} bytes were taken for whole", whole.len()),
            Err(error) => error.to_string(),
        };
        assert!(text.contains("pytorch_model.bin") && text.contains("since PyTorch 1.6"), "{length}: {text}");
    }
    Ok(())
}
