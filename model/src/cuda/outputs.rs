//! The tasks' last layers on the tape: rows or tokens picked and pooled, logits, losses, and back to the hidden states.

mod asked;
mod backward;
mod forward;

use super::arenas::{Arenas, Parameter};
use super::args::Address;
use super::encoder::{Labels, Linear, Norm};
use super::feed::{At, Drop, Feed, number};
use super::memory::Bump;
use super::stretches;
use crate::Error;
use crate::checkpoint::masked_lm::NAME as MASKED_LM;
use crate::encoder::config::Config;
use crate::encoder::pool::Pooling;
use crate::encoder::tokens::{Span, Tokens};
use crate::nn::dropout::Dropout;
use crate::nn::single;
use crate::output::{Batch, Outline, Output, OutputDropout, Targets, tag};
use crate::params::of_outputs;
use asked::Asked;
pub(crate) use backward::Into;
use base::rng::CounterRng;
pub(crate) use forward::Slot;

/// The layer from vectors to logits.
#[derive(Debug, Clone, Copy)]
enum Layer {
    Linear(Linear),
    MaskedLm { dense: Linear, norm: Norm, table: Parameter, bias: Parameter },
}

/// The outputs of all tasks over their arenas.
#[derive(Debug)]
pub(crate) struct Outputs {
    outline: Outline,
    layers: Vec<Layer>,
    /// BERT's pooler, where rows are pooled by it.
    pooler: Option<Linear>,
    d: usize,
    vocabulary: usize,
    epsilon: f32,
}

/// What the host says of one task's batch.
#[derive(Debug)]
pub(crate) struct Fed {
    pub(crate) task: usize,
    /// Rows of logits.
    pub(crate) m: usize,
    /// Tokens of the step.
    n: usize,
    /// Classes, and numbers from a row of logits to the next.
    pub(crate) c: usize,
    pub(crate) stride: usize,
    /// The token of each row of logits.
    index: At,
    /// Rows that share a mask of dropout, where they do.
    mask_rows: Option<At>,
    dropout: Drop,
    /// For each token, the rows of logits that it is: where they begin, and which they are.
    sources: Option<[At; 2]>,
    /// None where only logits are wanted.
    asked: Option<Losses>,
    /// Whether its vectors are the embeddings of labels, not hidden states of rows.
    pub(crate) of_labels: bool,
}

/// What is asked of a batch.
#[derive(Debug)]
struct Losses {
    asked: Asked,
    /// By what gradients are multiplied, f32, and losses, f64.
    scales: [At; 2],
    /// 0 as u32: the ring is one slot.
    zero: At,
}

/// Memory of one task's batch.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Picked hidden states, `[m, d]`; behind dropout where no pooler comes next.
    picked: Address,
    /// Behind the pooler's tanh, and behind its dropout.
    pooled: [Address; 2],
    /// Of a masked-LM output: before and after GELU, and normalised, `[m, d]`; mean and inverse deviation.
    transformed: [Address; 3],
    statistics: [Address; 2],
    /// `[m, stride]`, then their gradient.
    pub(crate) logits: Address,
    /// f64, u32 for each row.
    losses: Address,
    hits: Address,
    /// Gradients, `[m, d]` each, and partial sums; not of a pass that only answers.
    back: [Address; 2],
    partials: Address,
    /// Gradient of the embeddings of labels, `[m, d]`, if these are its vectors.
    pub(crate) of_labels: Address,
}

/// Whether rows are pooled on CUDA in this way.
///
/// # Errors
/// When they are not.
pub(crate) fn check(outline: &Outline) -> Result<(), Error> {
    match outline.pooling {
        Pooling::Cls | Pooling::LearnedPooler => Ok(()),
        pooling => Err(Error::Misfit(format!(
            "rows are pooled by {found}, which has no kernels for CUDA yet; take the pooling cls or learned_pooler, or the device cpu",
            found = pooling.name()
        ))),
    }
}

impl Outputs {
    /// Outputs over arenas.
    ///
    /// # Errors
    /// When a parameter is missing.
    pub(crate) fn new(arenas: &Arenas, outline: &Outline, config: &Config) -> Result<Self, Error> {
        let layer = |task: &crate::output::Task| {
            if task.output != (Output::Vocabulary { decoder: crate::output::Decoder::MaskedLm }) {
                return Linear::new(arenas, &of_outputs(&task.name)).map(Layer::Linear);
            }
            let name = of_outputs(MASKED_LM);
            Ok(Layer::MaskedLm {
                dense: Linear::new(arenas, &format!("{name}.dense"))?,
                norm: Norm::new(arenas, &format!("{name}.LayerNorm"))?,
                table: arenas.parameter(crate::encoder::embedding::TOKEN)?,
                bias: arenas.parameter(&format!("{name}.decoder.bias"))?,
            })
        };
        let pools = outline.pooling == Pooling::LearnedPooler;
        Ok(Outputs {
            layers: outline.tasks.iter().map(layer).collect::<Result<_, _>>()?,
            pooler: pools.then(|| Linear::new(arenas, "pooler.dense")).transpose()?,
            outline: outline.clone(),
            d: config.hidden_size,
            vocabulary: config.vocab_size,
            epsilon: single(config.layer_norm_eps),
        })
    }

    fn output(&self, task: usize) -> Result<(&crate::output::Task, &Layer), Error> {
        let layer = self
            .layers
            .get(task)
            .ok_or_else(|| Error::Misfit(format!("there is no task number {task}; report it")))?;
        Ok((self.outline.task(task)?, layer))
    }

    /// Whether rows of a task go through the pooler.
    fn pooler_of(&self, fed: &Fed) -> Option<&Linear> {
        let of_tokens = self.outline.tasks.get(fed.task).is_some_and(|task| task.output.is_of_tokens());
        self.pooler.as_ref().filter(|_| !of_tokens)
    }

    /// What the host says of the batch `number` of a step. `share` is what its loss counts, 0 where no gradient is wanted.
    ///
    /// # Errors
    /// When targets and rows do not belong together.
    pub(crate) fn feed(
        &self,
        feed: &mut Feed,
        tokens: &Tokens,
        number_of_batch: usize,
        batch: &Batch,
        dropout: Option<CounterRng>,
        share: Option<f64>,
    ) -> Result<Fed, Error> {
        let (of, _) = self.output(batch.task)?;
        let of_tokens = of.output.is_of_tokens();
        let rows = if of_tokens { tokens.samples(number_of_batch) } else { tokens.own(number_of_batch) };
        let (index, classes) = picked(&of.output, rows, &batch.targets)?;
        let c = of.output.width(self.vocabulary);
        let (asked, total) = Asked::new(feed, &of.output, &batch.targets, classes.as_deref())?;
        let drop = dropout.map(|key| Dropout::new(key.named(&of.name), self.outline.dropout));
        let variational =
            self.outline.thinned == OutputDropout::Variational && matches!(of.output, Output::Tag { .. });
        let mask_rows = (variational && drop.is_some()).then(|| {
            let of_rows = (0_u32..).zip(rows).flat_map(|(row, span)| std::iter::repeat_n(row, span.len));
            feed.put(&of_rows.collect::<Vec<u32>>())
        });
        let sources = share.map(|_| sources(feed, &index, tokens.count())).transpose()?;
        let scale = share.unwrap_or(0.0) * of.alpha / total;
        Ok(Fed {
            task: batch.task,
            m: index.len(),
            n: tokens.count(),
            c,
            stride: c.next_multiple_of(8),
            index: feed.put(&index),
            mask_rows,
            dropout: Drop::new(feed, drop),
            sources,
            asked: Some(Losses {
                asked,
                scales: [feed.put(&[single(scale)]), feed.put(&[1.0 / total])],
                zero: feed.put(&[0_u32]),
            }),
            of_labels: false,
        })
    }

    /// What the host says of the labels' own loss: label m is of class m of the one task (`attention/label.rs`).
    ///
    /// # Errors
    /// When there are too many.
    pub(crate) fn feed_labels(&self, feed: &mut Feed, labels: &Labels, share: f64) -> Result<Fed, Error> {
        let (of, _) = self.output(0)?;
        let m = labels.m;
        let index: Vec<u32> = (0..number(m)?).collect();
        let classes: Vec<Option<u32>> = index.iter().copied().map(Some).collect();
        let output = Output::OneClass { classes: m, weights: None };
        let (asked, total) = Asked::new(feed, &output, &Targets::Classes(index.clone()), Some(&classes))?;
        let weight = labels.settings.weight(m);
        Ok(Fed {
            task: 0,
            m,
            n: m,
            c: m,
            stride: m.next_multiple_of(8),
            index: feed.put(&index),
            mask_rows: None,
            dropout: Drop::new(feed, None),
            sources: Some(sources(feed, &index, m)?),
            asked: Some(Losses {
                asked,
                scales: [feed.put(&[single(share * of.alpha * weight / total)]), feed.put(&[weight / total])],
                zero: feed.put(&[0_u32]),
            }),
            of_labels: true,
        })
    }

    /// What the host says where only the logits of a task are wanted: of each row, or of each token.
    ///
    /// # Errors
    /// When there is no such task.
    pub(crate) fn ask(&self, feed: &mut Feed, tokens: &Tokens, task: usize) -> Result<Fed, Error> {
        let (of, _) = self.output(task)?;
        let index: Vec<usize> = if of.output.is_of_tokens() {
            (0..tokens.count()).collect()
        } else {
            check(&self.outline)?;
            tokens.own(0).iter().map(|row| row.start).collect()
        };
        let index = index.into_iter().map(number).collect::<Result<Vec<u32>, _>>()?;
        let c = of.output.width(self.vocabulary);
        Ok(Fed {
            task,
            m: index.len(),
            n: tokens.count(),
            c,
            stride: c.next_multiple_of(8),
            index: feed.put(&index),
            mask_rows: None,
            dropout: Drop::new(feed, None),
            sources: None,
            asked: None,
            of_labels: false,
        })
    }

    /// Lays out what a batch computes; `bytes` are those of a number.
    pub(crate) fn memory(&self, bump: &mut Bump, fed: &Fed, bytes: usize) -> Memory {
        let (m, vectors) = (fed.m, fed.m * self.d * bytes);
        let wide = matches!(self.layers.get(fed.task), Some(Layer::MaskedLm { .. }));
        let mut some = |wanted: bool, bytes: usize| if wanted { bump.take(bytes) } else { 0 };
        let (pools, backward) = (self.pooler_of(fed).is_some(), fed.sources.is_some());
        let width = (3 * self.d).max(fed.stride);
        Memory {
            picked: some(true, vectors),
            pooled: [some(pools, vectors), some(pools && fed.dropout.is_active(), vectors)],
            transformed: [some(wide, vectors), some(wide, vectors), some(wide, vectors)],
            statistics: [some(wide, 4 * m), some(wide, 4 * m)],
            logits: some(true, m * fed.stride * bytes),
            losses: some(true, 8 * m),
            hits: some(true, 4 * m),
            back: [some(backward, vectors), some(backward, vectors)],
            partials: some(backward, 4 * stretches(m) * width),
            of_labels: some(fed.of_labels, vectors),
        }
    }
}

/// Tokens, and the classes that are asked of them.
type Picked = (Vec<u32>, Option<Vec<Option<u32>>>);

/// The token of each row of logits, and the class that is asked of each, where one is.
fn picked(output: &Output, rows: &[Span], targets: &Targets) -> Result<Picked, Error> {
    if let (Output::Vocabulary { .. }, Targets::Tokens(words)) = (output, targets) {
        let (places, words) = tag::asked(rows, words)?;
        return Ok((places, Some(words)));
    }
    let places: Vec<usize> = if output.is_of_tokens() {
        rows.iter().flat_map(|row| row.start..row.start + row.len).collect()
    } else {
        rows.iter().map(|row| row.start).collect()
    };
    Ok((places.into_iter().map(number).collect::<Result<_, _>>()?, targets.classes()))
}

/// For each of n tokens, the rows that it is: where they begin `[n + 1]`, and which they are, rising.
fn sources(feed: &mut Feed, index: &[u32], n: usize) -> Result<[At; 2], Error> {
    let mut of_tokens: Vec<u32> = (0..number(index.len())?).collect();
    of_tokens.sort_by_key(|row| index[*row as usize]);
    let mut starts = vec![0_u32; n + 1];
    for token in index {
        starts[*token as usize + 1] += 1;
    }
    for token in 0..n {
        starts[token + 1] += starts[token];
    }
    Ok([feed.put(&starts), feed.put(&of_tokens)])
}
