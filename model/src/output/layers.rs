//! The last layers over their parameters: from hidden states to logits and losses.

use base::rng::CounterRng;
use candle_core::{D, DType, Error as TensorError, Result as TensorResult, Tensor};

use super::masked_lm::MaskedLm;
use super::tag::{self, gather};
use super::targets::{Batch, Targets};
use super::{Outline, Output, OutputDropout, Task, dropout, loss, pool_name, translation};
use crate::attention::Attention;
use crate::encoder::config::Config;
use crate::encoder::pool::Pool;
use crate::encoder::tokens::{Span, Tokens};
use crate::nn::cross_entropy::cross_entropy;
use crate::nn::dropout::Dropout;
use crate::nn::linear::Linear;
use crate::params::Params;

/// The last layers over their parameters.
#[derive(Debug, Clone)]
pub struct Outputs {
    outline: Outline,
    pool: Pool,
    layers: Vec<Layer>,
}

#[derive(Debug, Clone)]
enum Layer {
    /// The vectors as they are.
    None,
    /// The same, and a vector for each relation, `[r, d]`.
    Relations(Tensor),
    Linear(Linear),
    MaskedLm(MaskedLm),
}

impl Layer {
    fn forward(&self, x_md: &Tensor) -> TensorResult<Tensor> {
        match self {
            Layer::None | Layer::Relations(_) => Ok(x_md.clone()),
            Layer::Linear(linear) => linear.forward(x_md),
            Layer::MaskedLm(masked_lm) => masked_lm.forward(x_md),
        }
    }
}

/// The loss of one batch with what it was computed from.
#[derive(Debug)]
pub struct Loss {
    /// What training makes small, no axes: a mean over samples, rows or numbers as the output has it.
    pub loss: Tensor,
    /// Logits `[m, c]` of the rows, or of the tokens that are asked about or all tokens, in the batch's order.
    pub logits_mc: Tensor,
    /// Where one class is asked for: that of each row of the logits, none of tokens that nothing is asked of.
    pub classes: Option<Vec<Option<u32>>>,
}

impl Loss {
    /// How many of the classes that are asked for have the largest logit, no axes, where classes are. It stays on the device.
    ///
    /// # Errors
    /// When the tensor library fails.
    pub fn hits(&self) -> TensorResult<Option<Tensor>> {
        let Some(classes) = &self.classes else { return Ok(None) };
        let best_m = self.logits_mc.detach().argmax(D::Minus1)?;
        let classes: Vec<u32> = classes.iter().map(|class| class.unwrap_or(u32::MAX)).collect();
        let classes_m = Tensor::new(classes, best_m.device())?;
        Ok(Some(best_m.eq(&classes_m)?.to_dtype(DType::F32)?.sum_all()?))
    }
}

impl Outputs {
    /// Outputs over `params`, which they share.
    ///
    /// # Errors
    /// When a parameter is missing.
    pub fn new(outline: &Outline, encoder: &Config, params: &Params) -> TensorResult<Self> {
        let layers = outline.tasks.iter().map(|task| match &task.output {
            Output::Translation { .. } => {
                params.get(&format!("{}.weight", task.layer())).map(Layer::Relations)
            }
            output if output.is_vector() => Ok(Layer::None),
            _ if task.is_shared() => MaskedLm::new(params, &task.layer(), encoder).map(Layer::MaskedLm),
            _ => Linear::new(params, &task.layer()).map(Layer::Linear),
        });
        Ok(Outputs {
            outline: outline.clone(),
            pool: Pool::new(outline.pooling, params, &pool_name())?,
            layers: layers.collect::<TensorResult<_>>()?,
        })
    }

    /// The rows of a batch as a task's logits are of them: whole for tags, without auxiliary tokens where a row is pooled.
    #[must_use]
    pub fn rows<'t>(&self, tokens: &'t Tokens, batch: usize, task: usize) -> &'t [Span] {
        match self.outline.tasks.get(task) {
            Some(of) if of.output.is_of_tokens() => tokens.samples(batch),
            _ => tokens.own(batch),
        }
    }

    /// Tokens whose last hidden states the losses of some batches read, which are all of `tokens`; none where it is all of them.
    ///
    /// # Errors
    /// When the targets are not those of the rows.
    pub(crate) fn read_by_losses(
        &self,
        tokens: &Tokens,
        batches: &[&Batch],
    ) -> TensorResult<Option<Vec<u32>>> {
        let each = batches.iter().enumerate().map(|(at, batch)| {
            let rows = self.rows(tokens, at, batch.task);
            match (&self.layer(batch.task)?.0.output, &batch.targets) {
                (Output::Vocabulary { .. }, Targets::Tokens(words)) => Ok(Some(tag::asked(rows, words)?.0)),
                _ => self.pooled_from(rows, batch.task),
            }
        });
        together(tokens, each)
    }

    /// The same of the logits that some tasks have of all rows of the one batch.
    ///
    /// # Errors
    /// When there is no such task.
    pub(crate) fn read_by_logits(&self, tokens: &Tokens, tasks: &[usize]) -> TensorResult<Option<Vec<u32>>> {
        let each = tasks.iter().map(|&task| self.pooled_from(self.rows(tokens, 0, task), task));
        together(tokens, each)
    }

    /// The first tokens of rows of which a task reads no more.
    fn pooled_from(&self, rows: &[Span], task: usize) -> TensorResult<Option<Vec<u32>>> {
        let is_of_tokens = self.layer(task)?.0.output.is_of_tokens();
        Ok((!is_of_tokens).then(|| self.pool.reads(rows)).flatten())
    }

    /// The logits `[m, c]` that the first task has of vectors `[m, d]`: each pooled as a row of one token, through the linear layer, without dropout.
    ///
    /// # Errors
    /// When the tensor library fails.
    pub fn logits_of_vectors(&self, vectors_md: &Tensor) -> TensorResult<Tensor> {
        let rows = (0..vectors_md.dim(0)?).map(|start| Span { start, len: 1 });
        self.logits(vectors_md, &rows.collect::<Vec<_>>(), 0, None)
    }

    /// What the attention adds to the loss of the one task, no axes, if it adds anything.
    ///
    /// # Errors
    /// When the tensor library fails.
    pub fn own_loss(&self, attention: &dyn Attention) -> TensorResult<Option<Tensor>> {
        attention.own_loss(&|vectors_md| self.logits_of_vectors(vectors_md))
    }

    /// The logits `[m, c]` of the rows of a task, given the last hidden states: pooled, behind `dropout`, through its layer. Of tokens those of each
    /// token of the rows, row after row, not pooled; of an embedding or a metric the vectors `[m, d]`, without dropout.
    ///
    /// # Errors
    /// When a row lies outside `x_nd` or there is no such task.
    pub fn logits(
        &self,
        x_nd: &Tensor,
        rows: &[Span],
        task: usize,
        dropout: Option<CounterRng>,
    ) -> TensorResult<Tensor> {
        let (of, layer) = self.layer(task)?;
        let pooled_md =
            if of.output.is_of_tokens() { of_rows(x_nd, rows)? } else { self.pool.forward(x_nd, rows)? };
        let Some(key) = dropout.filter(|_| !of.output.is_vector()) else {
            return layer.forward(&pooled_md);
        };
        let drop = Dropout::new(key.named(&of.name), self.outline.dropout);
        let dropped_md = match self.outline.thinned {
            OutputDropout::Variational if of.output.is_of_tokens() => {
                dropout::by_rows(drop, &pooled_md, rows)?
            }
            OutputDropout::Variational | OutputDropout::ElementWise => drop.apply(&pooled_md)?,
        };
        layer.forward(&dropped_md)
    }

    /// The logits `[m, c]` of a task of tokens at some of them, `[m, d]`, without dropout.
    ///
    /// # Errors
    /// When there is no such task.
    pub(crate) fn logits_of_tokens(&self, x_md: &Tensor, task: usize) -> TensorResult<Tensor> {
        self.layer(task)?.1.forward(x_md)
    }

    fn layer(&self, task: usize) -> TensorResult<(&Task, &Layer)> {
        match (self.outline.tasks.get(task), self.layers.get(task)) {
            (Some(of), Some(layer)) => Ok((of, layer)),
            _ => candle_core::bail!("there is no task number {task}"),
        }
    }

    /// The loss of a batch, whose `rows` are those of [`Outputs::rows`], given the last hidden states. The targets have been checked
    /// ([`Targets::check`]).
    ///
    /// # Errors
    /// When rows, targets and output do not belong together.
    pub fn loss(
        &self,
        x_nd: &Tensor,
        rows: &[Span],
        batch: &Batch,
        dropout: Option<CounterRng>,
    ) -> TensorResult<Loss> {
        let (of, layer) = self.layer(batch.task)?;
        let (logits_mc, classes) = match (&of.output, &batch.targets) {
            (Output::Vocabulary { .. }, Targets::Tokens(words)) => {
                let (places, words) = tag::asked(rows, words)?;
                let x_md = gather(x_nd, &places)?;
                let drop = dropout.map(|key| Dropout::new(key.named(&of.name), self.outline.dropout));
                let dropped_md = drop.map_or(Ok(x_md.clone()), |drop| drop.apply(&x_md))?;
                (layer.forward(&dropped_md)?, Some(words))
            }
            (_, targets) => (self.logits(x_nd, rows, batch.task, dropout)?, targets.classes()),
        };
        let loss = match (&of.output, &classes, layer, &batch.targets) {
            (Output::Vocabulary { .. }, Some(words), ..) => cross_entropy(&logits_mc, words)?,
            (Output::Translation { margin, .. }, _, Layer::Relations(moves_rd), Targets::Links(links)) => {
                translation::loss(&logits_mc, moves_rd, links, *margin)?
            }
            (output, .., targets) => loss::mean(output, &logits_mc, targets)?,
        };
        Ok(Loss { loss, logits_mc, classes })
    }

    /// The sum over a batch's samples (rows, or groups of them) of the loss that each would have alone, no axes: what head importance takes
    /// apart. The weights of classes play no part then, those of positives do.
    ///
    /// # Errors
    /// When logits, targets and output do not belong together.
    pub fn sample_losses(&self, logits_mc: &Tensor, batch: &Batch) -> TensorResult<Tensor> {
        match self.outline.tasks.get(batch.task) {
            Some(task) => loss::sum_of_samples(&task.output, logits_mc, &batch.targets),
            None => candle_core::bail!("there is no task number {}", batch.task),
        }
    }

    /// What the outputs are.
    #[must_use]
    pub fn outline(&self) -> &Outline {
        &self.outline
    }
}

/// The places that several read together; none where one of them reads all tokens.
fn together(
    tokens: &Tokens,
    each: impl Iterator<Item = TensorResult<Option<Vec<u32>>>>,
) -> TensorResult<Option<Vec<u32>>> {
    let each = each.collect::<TensorResult<Vec<_>>>()?;
    let each: Option<Vec<Vec<u32>>> = each.into_iter().collect();
    Ok(each.and_then(|each| some_of(tokens, each.concat())))
}

/// Places in ascending order, if they are some of the tokens and not all.
pub(crate) fn some_of(tokens: &Tokens, mut places: Vec<u32>) -> Option<Vec<u32>> {
    places.sort_unstable();
    places.dedup();
    (!places.is_empty() && places.len() < tokens.count()).then_some(places)
}

/// The hidden states of the tokens of some rows, row after row.
fn of_rows(x_nd: &Tensor, rows: &[Span]) -> TensorResult<Tensor> {
    let places = rows.iter().flat_map(|row| row.start..row.start + row.len);
    if places.clone().eq(0..x_nd.dim(0)?) {
        return Ok(x_nd.clone());
    }
    let places = places.map(u32::try_from).collect::<Result<Vec<u32>, _>>().map_err(TensorError::wrap)?;
    gather(x_nd, &places)
}
