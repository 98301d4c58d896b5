//! The vectors of names and mentions, and which names are nearest.

use downstream::encode::{Cut, Frame, Framed, Texts};
use model::encoder::pool::Pooling;
use model::eval::cosine;
use model::eval::nearest::{Found, Nearest};
use model::predict::Predictor;
use tasks::token::encode::Vocabulary;

use super::names::{BEST, Names};
use super::{Asked, Left};
use crate::engine::context::Context;

/// Names whose vectors are in memory at a time.
const BLOCK: usize = 1 << 16;
/// Tokens that pass through the encoder together.
const TOKENS: usize = 4096;

/// How an encoder is asked.
pub(super) struct Encoding<'a> {
    pub(super) vocabulary: &'a Vocabulary,
    pub(super) predictor: &'a Predictor,
    pub(super) context: &'a Context,
    pub(super) pooling: Pooling,
    pub(super) max_tokens: usize,
}

impl Encoding<'_> {
    /// The entities with the nearest names, of each mention of each set, and how many names were cut.
    pub(super) fn nearest(
        &self,
        names: &Names,
        sets: &[(Vec<Asked>, Left)],
    ) -> anyhow::Result<(Vec<Found>, u64)> {
        let mut all = vec![];
        for (asked, _) in sets {
            let texts: Vec<&str> = asked.iter().map(|one| one.text.as_str()).collect();
            all.push(Nearest::new(self.vectors(&texts)?.0, self.predictor.config().hidden_size, BEST));
        }
        let mut cut = 0;
        for (texts, entities) in names.blocks(BLOCK) {
            let (vectors, of_block) = self.vectors(&texts)?;
            cut += of_block;
            for nearest in &mut all {
                nearest.compare(&vectors, entities)?;
            }
        }
        Ok((all.into_iter().map(Nearest::found).collect(), cut))
    }

    /// The vectors of texts, of length 1 and one after the other, and how many texts were cut.
    fn vectors(&self, texts: &[&str]) -> anyhow::Result<(Vec<f32>, u64)> {
        let special = self.vocabulary.special();
        let encoded = Texts::new(self.vocabulary, texts, self.max_tokens)?;
        let frame = Frame { special, most: self.max_tokens, cut: Cut::Longest };
        let (mut all, mut rows) = (vec![], Framed::new(frame)?);
        let mut cut = 0;
        let mut flush = |rows: &Framed| -> anyhow::Result<()> {
            self.context.check()?;
            self.context.progress().add_rows(rows.rows.len() as u64);
            let mut vectors = self.predictor.pooled(&rows.rows, self.pooling)?;
            for vector in &mut vectors {
                cosine::unit(vector);
                all.extend_from_slice(vector);
            }
            cut += rows.cuts.cut;
            Ok(())
        };
        for text in 0..texts.len() {
            rows.single(encoded.get(text));
            if rows.rows.ids.len() >= TOKENS {
                flush(&rows)?;
                rows = Framed::new(frame)?;
            }
        }
        if !rows.rows.is_empty() {
            flush(&rows)?;
        }
        Ok((all, cut))
    }
}
