//! Rows picked or pooled on the tape: the vectors that a task's logits are of.

use super::super::arenas::Arenas;
use super::super::args::{
    self, Address, Gather, GatherBackward, PoolBackward, PoolForward, PoolScoresBackward, PoolWeights,
    TanhBackward, TanhForward,
};
use super::super::encoder::Linear;
use super::super::feed::{At, Feed, Sent, number};
use super::super::product::{Matrices, Onto};
use super::super::{Cuda, Launch};
use super::{Fed, Into, Memory, Outputs, Wanted};
use crate::Error;
use crate::encoder::pool::{POOLER, Pooling};
use crate::encoder::tokens::{Span, Tokens};
use crate::output::pool_name;

/// How rows become vectors.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pool {
    First,
    Mean,
    Maximum,
    /// By a softmax of learned scores.
    Weighted(Linear),
    /// BERT's pooler behind the first token.
    Pooler(Linear),
}

/// Which tokens go into the vectors of a batch.
#[derive(Debug)]
pub(super) enum Picks {
    /// One token each.
    Tokens {
        index: At,
        /// Rows that share a mask of dropout, where they do.
        mask_rows: Option<At>,
        /// For each token, the vectors that it is: where they begin, and which they are. None where no gradient is wanted.
        sources: Option<[At; 2]>,
    },
    /// All tokens of a row: first token and number of each, and the row of each token of the step, -1 of the others, where a gradient is wanted.
    Rows { spans: At, row_of: Option<At> },
}

impl Pool {
    pub(super) fn new(arenas: &Arenas, pooling: Pooling) -> Result<Self, Error> {
        Ok(match pooling {
            Pooling::Cls => Pool::First,
            Pooling::Mean => Pool::Mean,
            Pooling::Max => Pool::Maximum,
            Pooling::LearnedAttn => Pool::Weighted(Linear::new(arenas, &pool_name())?),
            Pooling::LearnedPooler => Pool::Pooler(Linear::new(arenas, POOLER)?),
        })
    }

    /// As kernels call it, of those that pool rows.
    fn how(&self) -> Option<u32> {
        match self {
            Pool::First | Pool::Pooler(_) => None,
            Pool::Mean => Some(args::POOL_MEAN),
            Pool::Maximum => Some(args::POOL_MAXIMUM),
            Pool::Weighted(_) => Some(args::POOL_WEIGHTED),
        }
    }
}

impl Picks {
    /// One token each, of n tokens.
    ///
    /// # Errors
    /// When there are too many.
    pub(super) fn tokens(
        feed: &mut Feed,
        index: &[u32],
        n: usize,
        wanted: Wanted,
        mask_rows: Option<At>,
    ) -> Result<Self, Error> {
        let sources = (wanted == Wanted::Gradient).then(|| sources(feed, index, n)).transpose()?;
        Ok(Picks::Tokens { index: feed.put(index), mask_rows, sources })
    }

    /// All tokens of each row.
    ///
    /// # Errors
    /// When there are too many.
    fn rows(feed: &mut Feed, rows: &[Span], n: usize, wanted: Wanted) -> Result<Self, Error> {
        let spans = rows.iter().flat_map(|row| [row.start, row.len]).map(number);
        let spans = feed.put(&spans.collect::<Result<Vec<u32>, _>>()?);
        let row_of = (wanted == Wanted::Gradient).then(|| {
            let mut row_of = vec![-1_i32; n];
            for (row, span) in (0..).zip(rows) {
                row_of[span.start..span.start + span.len].fill(row);
            }
            feed.put(&row_of)
        });
        Ok(Picks::Rows { spans, row_of })
    }

    /// Whether a gradient is wanted.
    pub(super) fn have_gradient(&self) -> bool {
        matches!(self, Picks::Tokens { sources: Some(_), .. } | Picks::Rows { row_of: Some(_), .. })
    }
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

impl Outputs {
    /// How a batch becomes vectors. Tokens that are asked of by themselves are as they are; labels' embeddings are rows of one token, which are their own mean.
    fn pool_of(&self, fed: &Fed) -> Pool {
        let of_tokens = self.outline.tasks.get(fed.task).is_some_and(|task| task.output.is_of_tokens());
        let alone = matches!(fed.picks, Picks::Tokens { .. }) && self.pool.how().is_some();
        if of_tokens || alone { Pool::First } else { self.pool }
    }

    /// BERT's pooler, where a batch goes through it.
    pub(super) fn pooler_of(&self, fed: &Fed) -> Option<Linear> {
        match self.pool_of(fed) {
            Pool::Pooler(pooler) => Some(pooler),
            _ => None,
        }
    }

    /// Whether they are weighted.
    pub(super) fn is_weighted(&self, fed: &Fed) -> bool {
        matches!(self.pool_of(fed), Pool::Weighted(_))
    }

    /// Whether they are the maxima of their columns.
    pub(super) fn is_maximum(&self, fed: &Fed) -> bool {
        matches!(self.pool_of(fed), Pool::Maximum)
    }

    /// The tokens of pooled rows.
    ///
    /// # Errors
    /// When there are too many.
    pub(super) fn picks(
        &self,
        feed: &mut Feed,
        tokens: &Tokens,
        rows: &[Span],
        wanted: Wanted,
    ) -> Result<Picks, Error> {
        if self.pool.how().is_some() {
            return Picks::rows(feed, rows, tokens.count(), wanted);
        }
        let first = rows.iter().map(|row| number(row.start)).collect::<Result<Vec<u32>, _>>()?;
        Picks::tokens(feed, &first, tokens.count(), wanted, None)
    }

    /// The vectors of a batch, given the last hidden states `[n, d]`.
    ///
    /// # Errors
    /// When the driver refuses a launch.
    pub(super) fn pooled(
        &self,
        cuda: &mut Cuda,
        Sent { fed, base }: Sent<'_, Fed>,
        hidden: Address,
        memory: &Memory,
    ) -> Result<(), Error> {
        let (m, d) = (fed.m as u64, self.d as u32);
        let (y, dropout, how) = (memory.picked, fed.dropout.on(base), Launch::tiles(fed.m, self.d));
        let pool = self.pool_of(fed);
        let (index, mask_rows) = match &fed.picks {
            Picks::Tokens { index, mask_rows, .. } => (base.of(*index), base.of_some(*mask_rows)),
            Picks::Rows { spans, .. } => {
                let (x, spans, [weights, _], places) =
                    (hidden, base.of(*spans), memory.scores, memory.places);
                if let Pool::Weighted(scores) = pool {
                    let vector = scores.weight.master;
                    let args = PoolWeights { x, spans, vector, weights, d, unused: 0 };
                    cuda.launch_on_numbers("pool_weights", Launch::of(fed.m, 256), &args)?;
                }
                let of = pool.how().unwrap_or_default();
                let args = PoolForward { x, spans, weights, places, y, dropout, m, d, how: of };
                return cuda.launch_on_numbers("pool_forward", how, &args);
            }
        };
        let Pool::Pooler(pooler) = pool else {
            let args = Gather { x: hidden, index, mask_rows, y, dropout, m, d, unused: 0 };
            return cuda.launch_on_numbers("gather", how, &args);
        };
        let args = Gather { x: hidden, index, mask_rows, y, dropout: args::Dropout::NONE, m, d, unused: 0 };
        cuda.launch_on_numbers("gather", how, &args)?;
        let [t, y] = memory.pooled;
        let of = Matrices { x: memory.picked, weight: pooler.weight.product, y: t };
        cuda.product(fed.m, [self.d, self.d], of, 0)?;
        let args = TanhForward { x: t, bias: pooler.bias.master, t, y, dropout, m, d, unused: 0 };
        cuda.launch_on_numbers("tanh_forward", how, &args)
    }

    /// Adds the gradients of what pools, given that of the vectors in the memory's first of two, and writes or adds that of the hidden states `[n, d]`.
    ///
    /// # Errors
    /// When the driver refuses a launch.
    pub(super) fn pooled_backward(
        &self,
        cuda: &mut Cuda,
        sent: Sent<'_, Fed>,
        memory: &Memory,
        into: Into,
    ) -> Result<(), Error> {
        let Sent { fed, base } = sent;
        let (n, d, how) = (fed.n as u64, self.d as u32, Launch::tiles(fed.n, self.d));
        let (dx, accumulate, [mut dy, _]) = (into.gradient, u32::from(into.adds), memory.back);
        let mut dropout = fed.dropout.on(base);
        match fed.picks {
            Picks::Tokens { mask_rows, sources: Some([starts, sources]), .. } => {
                if let Some(pooler) = self.pooler_of(fed) {
                    dy = self.pooler_backward(cuda, sent, memory, &pooler)?;
                    dropout = args::Dropout::NONE;
                }
                let (starts, sources) = (base.of(starts), base.of(sources));
                let mask_rows = base.of_some(mask_rows);
                let args = GatherBackward { dy, starts, sources, mask_rows, dx, dropout, n, d, accumulate };
                cuda.launch_on_numbers("gather_backward", how, &args)
            }
            Picks::Rows { spans, row_of: Some(row_of) } => {
                let (rows, spans, places) = (base.of(row_of), base.of(spans), memory.places);
                let ([weights, d_scores], of) = (memory.scores, self.pool.how().unwrap_or_default());
                let mut vector = 0;
                if let Pool::Weighted(scores) = self.pool {
                    vector = scores.weight.master;
                    self.scores_backward(cuda, sent, memory, into.hidden)?;
                }
                let args = PoolBackward {
                    dy,
                    rows,
                    spans,
                    weights,
                    d_scores,
                    vector,
                    places,
                    dx,
                    dropout,
                    n,
                    d,
                    how: of,
                    accumulate,
                    unused: 0,
                };
                cuda.launch_on_numbers("pool_backward", how, &args)
            }
            Picks::Tokens { sources: None, .. } | Picks::Rows { row_of: None, .. } => Ok(()),
        }
    }

    /// Back through BERT's pooler; where the gradient of the picked tokens stands.
    fn pooler_backward(
        &self,
        cuda: &mut Cuda,
        Sent { fed, base }: Sent<'_, Fed>,
        memory: &Memory,
        pooler: &Linear,
    ) -> Result<Address, Error> {
        let (m, d, [dy, dx], [t, _]) = (fed.m, self.d, memory.back, memory.pooled);
        let (dropout, m_of, d_of) = (fed.dropout.on(base), m as u64, d as u32);
        let args = TanhBackward { dy, t, dx: dy, dropout, m: m_of, d: d_of, unused: 0 };
        cuda.launch_on_numbers("tanh_backward", Launch::tiles(m, d), &args)?;
        cuda.weight([m, d, d], pooler, memory.picked, dy)?;
        self.bias(cuda, [m, d], [dy, memory.partials], pooler.bias.gradient)?;
        cuda.input([m, d, d], Matrices { x: dx, weight: pooler.weight.product, y: dy }, Onto::Nothing)?;
        Ok(dx)
    }

    /// Of the scores of hidden states `[n, d]` by which rows are weighted.
    fn scores_backward(
        &self,
        cuda: &mut Cuda,
        Sent { fed, base }: Sent<'_, Fed>,
        memory: &Memory,
        x: Address,
    ) -> Result<(), Error> {
        let (Pool::Weighted(scores), Picks::Rows { spans, .. }) = (self.pool, &fed.picks) else {
            return Ok(());
        };
        let ([weights, d_scores], [dy, _]) = (memory.scores, memory.back);
        let (d_vector, d_bias) = (memory.partials, memory.partials + 4 * (fed.m * self.d) as u64);
        let args = PoolScoresBackward {
            x,
            dy,
            spans: base.of(*spans),
            weights,
            d_scores,
            d_vector,
            d_bias,
            dropout: fed.dropout.on(base),
            d: self.d as u32,
            unused: 0,
        };
        cuda.launch_on_numbers("pool_scores_backward", Launch::of(fed.m, 256), &args)?;
        cuda.finish(d_vector, [scores.weight.gradient, 0, 0], [fed.m, 1, self.d])?;
        cuda.finish(d_bias, [scores.bias.gradient, 0, 0], [fed.m, 1, 1])
    }
}
