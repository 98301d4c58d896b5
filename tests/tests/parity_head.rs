//! Head importance, the mask search and retraining under a mask against golden numbers computed with PyTorch (parts b, c and d).
//!
//! The folder is `ENGRAFT_GOLDENS`, or `tests/fixtures/golden`.

mod importance;
mod retrain;
mod search;

use anyhow::{Context, Result};
use batch::task::Task;
use batch::{Batch, Targets};
use candle_core::{Device, Tensor};
use engraft_tests::golden::{self, Golden};
use model::attention::plain::Plain;
use model::checkpoint;
use model::encoder::config::Config;
use model::encoder::pool::{Pool, Pooling};
use model::encoder::tokens::Tokens;
use model::encoder::{Encoder, Gates, Pass, Read};
use model::head::importance::{Importance, Probe};
use model::head::mask::Mask;
use model::nn::cross_entropy::cross_entropy;
use model::nn::linear::linear;

/// A classifier on the pooled output of an encoder that needs no gradients of its weights.
struct Classifier {
    config: Config,
    encoder: Encoder,
    pooler: Pool,
    weight_cd: Tensor,
    bias_c: Tensor,
}

impl Classifier {
    fn new(golden: &Golden, checkpoint: checkpoint::Checkpoint) -> Result<Self> {
        let checkpoint::Checkpoint { config, params, .. } = checkpoint;
        let params = params.freeze(|_| true);
        Ok(Classifier {
            encoder: Encoder::new(&config, &params)?,
            pooler: Pool::new(Pooling::LearnedPooler, &params, "")?,
            config,
            weight_cd: golden.get("classifier.weight")?.clone(),
            bias_c: golden.get("classifier.bias")?.clone(),
        })
    }

    fn shape(&self) -> [usize; 2] {
        [self.config.num_hidden_layers, self.config.num_attention_heads]
    }

    fn probe<'a>(&'a self, mask: &'a Mask) -> Probe<'a> {
        Probe { encoder: &self.encoder, config: &self.config, attention: &Plain, mask, read: Read::All }
    }

    fn logits(&self, x_nd: &Tensor, tokens: &Tokens) -> candle_core::Result<Tensor> {
        linear(&self.pooler.forward(x_nd, &tokens.spans)?, &self.weight_cd, &self.bias_c)
    }

    /// The sum of all samples' losses.
    fn loss(&self, x_nd: &Tensor, Labelled(tokens, classes): &Labelled) -> candle_core::Result<Tensor> {
        cross_entropy(&self.logits(x_nd, tokens)?, classes)? * classes.len() as f64
    }

    fn measure(&self, importance: &mut Importance, mask: &Mask, batch: &Labelled) -> Result<()> {
        Ok(importance.add(&self.probe(mask), &batch.0, |x_nd| self.loss(x_nd, batch))?)
    }

    /// The logits of a batch under the gates of a mask.
    fn gated(&self, mask: &Mask, batch: &Labelled) -> Result<Tensor> {
        let gates = mask.gates(&Device::Cpu)?;
        let pass = Pass { gates: Gates::Shared(&gates), ..Pass::PLAIN };
        let hidden = self.encoder.forward(&self.config, &batch.0, &pass)?;
        Ok(self.logits(hidden.last().context("an encoder has hidden states")?, &batch.0)?)
    }
}

/// Samples and their classes.
struct Labelled(Tokens, Vec<Option<u32>>);

impl Labelled {
    /// The samples `rows` of the `[b, t]` matrices of a batch.
    fn new(config: &Config, [ids, mask, types]: [&Tensor; 3], labels: &Tensor) -> Result<Self> {
        let numbers = |t: &Tensor| -> Result<Vec<u32>> {
            let values = t.flatten_all()?.to_vec1::<i64>()?;
            values.into_iter().map(|v| Ok(u32::try_from(v)?)).collect()
        };
        let (rows, width) = ids.dims2()?;
        let batch = Batch {
            task: Task::Relation,
            rows,
            width,
            input_ids: numbers(ids)?,
            attention_mask: numbers(mask)?,
            token_type_ids: numbers(types)?,
            position_ids: vec![],
            segment_ids: vec![],
            samples: vec![],
            targets: Targets::Classes(vec![]),
        };
        let tokens = golden::tokens(&[&batch.one_per_row()], config)?;
        Ok(Labelled(tokens, numbers(labels)?.into_iter().map(Some).collect()))
    }
}

fn tensor(values: &[f64], shape: [usize; 2]) -> Result<Tensor> {
    Ok(Tensor::from_slice(values, (shape[0], shape[1]), &Device::Cpu)?)
}
