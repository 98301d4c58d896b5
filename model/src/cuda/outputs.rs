//! The tasks' last layers on the tape: rows or tokens picked and pooled, logits, losses, and back to the hidden states.

mod asked;
mod backward;
mod forward;
mod pool;

use super::arenas::{Arenas, Parameter};
use super::args::Address;
use super::encoder::{Labels, Linear, Norm};
use super::feed::{At, Drop, Feed, number};
use super::memory::Bump;
use super::model::Share;
use super::stretches;
use crate::Error;
use crate::checkpoint::masked_lm::NAME as MASKED_LM;
use crate::encoder::config::Config;
use crate::encoder::tokens::{Span, Tokens};
use crate::nn::dropout::Dropout;
use crate::nn::single;
use crate::output::{Batch, Outline, Output, OutputDropout, Targets, tag};
use crate::params::of_outputs;
use asked::Asked;
pub(crate) use backward::Into;
use base::rng::CounterRng;
pub(crate) use forward::Slot;
use pool::{Picks, Pool};

/// The layer from vectors to logits.
#[derive(Debug, Clone, Copy)]
enum Layer {
    /// The vectors as they are.
    None,
    Linear(Linear),
    MaskedLm {
        dense: Linear,
        norm: Norm,
        table: Parameter,
        bias: Parameter,
    },
}

/// The outputs of all tasks over their arenas.
#[derive(Debug)]
pub(crate) struct Outputs {
    outline: Outline,
    layers: Vec<Layer>,
    pool: Pool,
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
    picks: Picks,
    dropout: Drop,
    /// None where only logits are wanted.
    asked: Option<Losses>,
    /// Whether its vectors are the embeddings of labels, not hidden states of rows.
    pub(crate) of_labels: bool,
}

/// What is wanted of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Answers,
    Gradient,
}

/// What the losses of a batch count.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Counting {
    /// Their mean, times the task's alpha.
    Mean(Share),
    /// Each of a row, a token or a group once, whatever its class weighs.
    Once,
}

/// A batch whose loss is wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asking<'a> {
    /// Its number among those of the tokens.
    pub(crate) at: usize,
    pub(crate) batch: &'a Batch,
    pub(crate) counting: Counting,
    pub(crate) wanted: Wanted,
}

/// Logits that are wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question<'a> {
    /// The task's number.
    pub(crate) task: usize,
    /// The tokens, in their order, of an output that speaks of tokens; all of them where none are named.
    pub(crate) tokens: Option<&'a [u32]>,
}

/// What is asked of a batch.
#[derive(Debug)]
struct Losses {
    asked: Asked,
    /// Whether each sample is told from its own rows only.
    alone: bool,
    /// By what gradients are multiplied, f32, and losses, f64.
    scales: [At; 2],
    /// 0 as u32: the ring is one slot.
    zero: At,
}

/// Memory of one task's batch.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Picked or pooled hidden states, `[m, d]`; behind dropout where no pooler comes next.
    picked: Address,
    /// Of rows weighted by scores: weights and gradients of the scores, f32 `[n]` each; of rows' maxima: their tokens, u32 `[m, d]`.
    scores: [Address; 2],
    places: Address,
    /// Behind the pooler's tanh, and behind its dropout.
    pooled: [Address; 2],
    /// Of a masked-LM output: before and after GELU, and normalised, `[m, d]`; mean and inverse deviation.
    transformed: [Address; 3],
    statistics: [Address; 2],
    /// `[m, stride]`, then their gradient.
    pub(crate) logits: Address,
    /// Of an embedding and a metric: inverse norms, f32 `[m]`; cosines and their gradients, f32 `[anchors, m]`.
    cosines: [Address; 3],
    /// Of a metric: bounds, f32 `[m, 2]`; counts, u32 `[m]`.
    hard: [Address; 2],
    /// f64, u32 for each loss.
    losses: Address,
    hits: Address,
    /// Gradients, `[m, d]` each, and partial sums; not of a pass that only answers.
    back: [Address; 2],
    partials: Address,
    /// Gradient of the embeddings of labels, `[m, d]`, if these are its vectors.
    pub(crate) of_labels: Address,
}

impl Outputs {
    /// Outputs over arenas.
    ///
    /// # Errors
    /// When a parameter is missing.
    pub(crate) fn new(arenas: &Arenas, outline: &Outline, config: &Config) -> Result<Self, Error> {
        let layer = |task: &crate::output::Task| {
            if task.output.is_vector() {
                return Ok(Layer::None);
            }
            if !task.is_shared() {
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
        Ok(Outputs {
            layers: outline.tasks.iter().map(layer).collect::<Result<_, _>>()?,
            pool: Pool::new(arenas, outline.pooling)?,
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

    /// Numbers of all tasks and of the labels in a slot, two of each.
    pub(crate) fn places(&self) -> usize {
        2 * (self.outline.tasks.len() + 1)
    }

    /// Which two of them are a batch's.
    pub(crate) fn place(&self, fed: &Fed) -> usize {
        if fed.of_labels { self.outline.tasks.len() } else { fed.task }
    }

    /// What the host says of a batch.
    ///
    /// # Errors
    /// When targets and rows do not belong together.
    pub(crate) fn feed(
        &self,
        feed: &mut Feed,
        tokens: &Tokens,
        Asking { at, batch, counting, wanted }: Asking<'_>,
        dropout: Option<CounterRng>,
    ) -> Result<Fed, Error> {
        let (of, _) = self.output(batch.task)?;
        let of_tokens = of.output.is_of_tokens();
        let rows = if of_tokens { tokens.samples(at) } else { tokens.own(at) };
        let (c, stride) = self.width(of);
        let total = batch.targets.weight(&of.output);
        let dropout = dropout.filter(|_| !of.output.is_vector());
        let drop = dropout.map(|key| Dropout::new(key.named(&of.name), self.outline.dropout));
        let variational = self.outline.thinned == OutputDropout::Variational
            && matches!(of.output, Output::Tag { .. } | Output::Span);
        let mask_rows = (variational && drop.is_some()).then(|| {
            let of_rows = (0_u32..).zip(rows).flat_map(|(row, span)| std::iter::repeat_n(row, span.len));
            feed.put(&of_rows.collect::<Vec<u32>>())
        });
        let (m, picks, classes) = if of_tokens {
            let (mut index, mut classes) = places(&of.output, rows, &batch.targets)?;
            // Of what is more, nothing is asked. It is taken from one token after the other, since one thread adds up what a token is asked for.
            let (real, more) = (index.len(), feed.sizes().of(index.len()));
            index.extend((real..more).map(|at| (at % tokens.count().max(1)) as u32));
            if let Some(classes) = &mut classes {
                classes.resize(more, None);
            }
            (index.len(), Picks::tokens(feed, &index, tokens.count(), wanted, mask_rows)?, classes)
        } else {
            (rows.len(), self.picks(feed, tokens, rows, wanted)?, batch.targets.classes())
        };
        let [scale, of_loss] = match counting {
            Counting::Mean(share) => [share.gradient * of.alpha / total, share.loss / total],
            Counting::Once => [1.0, 1.0],
        };
        let unweighted = match (counting, &of.output) {
            (Counting::Once, Output::OneClass { classes, .. }) => {
                Some(Output::OneClass { classes: *classes, weights: None })
            }
            _ => None,
        };
        let output = unweighted.as_ref().unwrap_or(&of.output);
        let asked = Asked::new(feed, output, &batch.targets, classes.as_deref(), m)?;
        Ok(Fed {
            task: batch.task,
            m,
            n: tokens.count(),
            c,
            stride,
            picks,
            dropout: Drop::new(feed, drop),
            asked: Some(Losses {
                asked,
                alone: matches!(counting, Counting::Once),
                scales: [feed.put(&[single(scale)]), feed.put(&[of_loss])],
                zero: feed.put(&[0_u32]),
            }),
            of_labels: false,
        })
    }

    /// What the host says of the labels' own loss: label m is of class m of the one task (`attention/label.rs`).
    ///
    /// # Errors
    /// When there are too many.
    pub(crate) fn feed_labels(&self, feed: &mut Feed, labels: &Labels, share: Share) -> Result<Fed, Error> {
        let (of, _) = self.output(0)?;
        let m = labels.m;
        let index: Vec<u32> = (0..number(m)?).collect();
        let classes: Vec<Option<u32>> = index.iter().copied().map(Some).collect();
        let output = Output::OneClass { classes: m, weights: None };
        let targets = Targets::Classes(index.clone());
        let (asked, total) =
            (Asked::new(feed, &output, &targets, Some(&classes), m)?, targets.weight(&output));
        let weight = labels.settings.weight(m);
        Ok(Fed {
            task: 0,
            m,
            n: m,
            c: m,
            stride: m.next_multiple_of(8),
            picks: Picks::tokens(feed, &index, m, Wanted::Gradient, None)?,
            dropout: Drop::new(feed, None),
            asked: Some(Losses {
                asked,
                alone: false,
                scales: [
                    feed.put(&[single(share.gradient * of.alpha * weight / total)]),
                    feed.put(&[share.loss * weight / total]),
                ],
                zero: feed.put(&[0_u32]),
            }),
            of_labels: true,
        })
    }

    /// What the host says where only the logits of a task are wanted: of each row, or of tokens.
    ///
    /// # Errors
    /// When there is no such task.
    pub(crate) fn ask(&self, feed: &mut Feed, tokens: &Tokens, of: Question<'_>) -> Result<Fed, Error> {
        let Question { task, tokens: places } = of;
        let (of, _) = self.output(task)?;
        let (m, picks) = if of.output.is_of_tokens() {
            let all: Vec<u32> =
                if places.is_none() { (0..number(tokens.count())?).collect() } else { vec![] };
            let places = places.unwrap_or(&all);
            (places.len(), Picks::tokens(feed, places, tokens.count(), Wanted::Answers, None)?)
        } else {
            let rows = tokens.own(0);
            (rows.len(), self.picks(feed, tokens, rows, Wanted::Answers)?)
        };
        let (c, stride) = self.width(of);
        Ok(Fed {
            task,
            m,
            n: tokens.count(),
            c,
            stride,
            picks,
            dropout: Drop::new(feed, None),
            asked: None,
            of_labels: false,
        })
    }

    /// Numbers of a row of a task's logits, and from one row to the next.
    fn width(&self, of: &crate::output::Task) -> (usize, usize) {
        if of.output.is_vector() {
            return (self.d, self.d);
        }
        let c = of.output.width(self.vocabulary);
        (c, c.next_multiple_of(8))
    }

    /// Lays out what a batch computes; `bytes` are those of a number.
    pub(crate) fn memory(&self, bump: &mut Bump, fed: &Fed, bytes: usize) -> Memory {
        let (m, vectors) = (fed.m, fed.m * self.d * bytes);
        let layer = self.layers.get(fed.task);
        let (wide, none) =
            (matches!(layer, Some(Layer::MaskedLm { .. })), matches!(layer, Some(Layer::None)));
        let mut some = |wanted: bool, bytes: usize| if wanted { bump.take(bytes) } else { 0 };
        let (pools, backward) = (self.pooler_of(fed).is_some(), fed.picks.have_gradient());
        let (weighted, maximum) = (self.is_weighted(fed), self.is_maximum(fed));
        // Sums of columns of stretches of rows, or of each row what it adds to the scores' vector and bias.
        let stretched = stretches(m) * (3 * self.d).max(fed.stride);
        let partials = if weighted { stretched.max(m * (self.d + 1)) } else { stretched };
        let (anchors, mined) = fed.asked.as_ref().map_or((0, false), |of| of.asked.anchors(m));
        let losses = fed.asked.as_ref().map_or(m, |of| of.asked.losses(m).max(m));
        let [picked, pooled] = [true, pools].map(|wanted| some(wanted, vectors));
        Memory {
            picked,
            scores: [some(weighted, 4 * fed.n), some(weighted && backward, 4 * fed.n)],
            places: some(maximum && backward, 4 * m * self.d),
            pooled: [pooled, some(pools && fed.dropout.is_active(), vectors)],
            transformed: [some(wide, vectors), some(wide, vectors), some(wide, vectors)],
            statistics: [some(wide, 4 * m), some(wide, 4 * m)],
            // Of no layer the vectors, which nothing is dropped of.
            logits: match none {
                true if pools => pooled,
                true => picked,
                false => some(true, m * fed.stride * bytes),
            },
            cosines: [
                some(anchors > 0, 4 * m),
                some(anchors > 0, 4 * anchors * m),
                some(anchors > 0, 4 * anchors * m),
            ],
            hard: [some(mined, 8 * m), some(mined, 4 * m)],
            losses: some(true, 8 * losses),
            hits: some(true, 4 * losses),
            back: [some(backward, vectors), some(backward, vectors)],
            partials: some(backward, 4 * partials),
            of_labels: some(fed.of_labels, vectors),
        }
    }
}

/// Tokens, and the classes that are asked of them.
type Places = (Vec<u32>, Option<Vec<Option<u32>>>);

/// The tokens of rows that an output speaks of, and the class that is asked of each, where one is.
fn places(output: &Output, rows: &[Span], targets: &Targets) -> Result<Places, Error> {
    let (places, classes) = match (output, targets) {
        (Output::Vocabulary { .. }, Targets::Tokens(words)) => {
            let (places, words) = tag::asked(rows, words)?;
            (places, Some(words))
        }
        _ => {
            let places = rows.iter().flat_map(|row| row.start..row.start + row.len);
            (places.map(number).collect::<Result<_, _>>()?, targets.classes())
        }
    };
    Ok((places, classes))
}
