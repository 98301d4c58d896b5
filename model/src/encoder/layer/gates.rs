//! The gates of one layer's heads, and which tokens a row of them is for.

use candle_core::{Result, Tensor};

use crate::encoder::tokens::Tokens;

/// Gates `[r, h]` of a layer of h heads.
#[derive(Debug, Clone)]
pub(crate) struct LayerGates {
    pub(crate) gates_rh: Tensor,
    pub(crate) row: Row,
}

/// What a row of gates is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Row {
    /// All tokens: there is one row.
    All,
    /// The tokens of one sample.
    Sample,
    /// One token.
    Token,
}

impl LayerGates {
    /// One row for all tokens, or one for each: `[1, h]` or `[n, h]`.
    pub(crate) fn of_tokens(&self, tokens: &Tokens) -> Result<Tensor> {
        match self.row {
            Row::All | Row::Token => Ok(self.gates_rh.clone()),
            Row::Sample => self.gates_rh.index_select(&tokens.sample_of_token()?, 0),
        }
    }
}
