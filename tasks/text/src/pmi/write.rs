//! Scores computed from counts and put on disk.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, Float64Array, UInt32Array, UInt64Array};
use base::self_check;
use base::whole::write_whole;
use kg::table::parquet_file::{self, Writer};

use super::csr::Rows;
use super::keep::Best;
use super::schema::{FORMAT, Funnel, INDEX, Index, MATRIX, Table, VERSION};
use super::score::{Marginals, Scorer};
use super::{Config, Measure, Relevance, Words};
use crate::count::table::{self, BATCH_ROWS, GROUP_ROWS};
use crate::count::{self, Error, Order, Pair, Read};

/// Why pairs are left out.
const REASONS: [&str; 5] =
    ["same word", "word left out", "count below min_pair_count", "score not positive", "beyond top_k"];

/// Scores the pairs of `counts` and writes words, pairs and matrix into `folder`, the index last.
///
/// # Errors
/// When the config is invalid, the counts cannot be read, or the disk refuses.
pub fn score(counts: &Read, config: &Config, folder: &Path) -> Result<Index, Error> {
    config.check()?;
    let (keep, words) = kept(counts, config);
    let marginals = Marginals::of(counts, count::Table::Pairs, &keep)?;
    let scorer = Scorer::new(config, marginals, &keep);
    let mut ranks = vec![0u32; keep.len()];
    keep.iter()
        .zip(&mut ranks)
        .filter(|(keep, _)| **keep)
        .zip(0..)
        .for_each(|((_, rank), next)| *rank = next);
    let mut pass = Pass {
        counts,
        config,
        keep,
        ranks,
        scorer,
        symmetric: counts.index.config.order() == Order::Symmetric,
        best: Best::new(0, None),
        scale: 1.0,
    };
    pass.survey()?;
    pass.write_words(folder)?;
    let (pairs, rows) = pass.write_pairs(folder)?;
    let kept = pass.keep.iter().zip(&counts.words).filter(|(keep, _)| **keep);
    let letters: Vec<&str> = kept.map(|(_, word)| word.letters.as_str()).collect();
    let entries = rows.entries();
    let matrix = folder.join(MATRIX);
    write_whole(&matrix, &rows.encode(&letters)).map_err(|source| Error::Io {
        path: matrix,
        done: "cannot be written",
        source,
    })?;
    let mut index = Index {
        format: FORMAT.to_owned(),
        version: VERSION,
        xxh3: String::new(),
        config: config.clone(),
        counts: counts.index.clone(),
        words,
        pairs,
        scale: pass.scale,
        entries,
    };
    self_check::write(&folder.join(INDEX), &mut index)?;
    Ok(index)
}

fn create(folder: &Path, table: Table) -> Result<Writer, parquet_file::Error> {
    Writer::create(&folder.join(table.file()), table.columns(), GROUP_ROWS, &table.footer())
}

/// Which words may have a score.
fn kept(counts: &Read, config: &Config) -> (Vec<bool>, Funnel) {
    let mut funnel = Funnel::new(&["below min_count", "no letter", "beyond max_words"]);
    let mut room = config.max_words.unwrap_or(usize::MAX);
    let keep = counts.words.iter().map(|word| {
        let reason = if word.occurrences < config.min_count {
            "below min_count"
        } else if config.words == Words::Lettered && !word.letters.chars().any(char::is_alphabetic) {
            "no letter"
        } else if room == 0 {
            "beyond max_words"
        } else {
            room -= 1;
            funnel.keep();
            return true;
        };
        funnel.drop(reason);
        false
    });
    (keep.collect(), funnel)
}

/// What both passes over the pairs need.
struct Pass<'c> {
    counts: &'c Read,
    config: &'c Config,
    keep: Vec<bool>,
    /// The rank among kept words.
    ranks: Vec<u32>,
    scorer: Scorer,
    symmetric: bool,
    best: Best,
    scale: f64,
}

/// A pair's scores: as it stands, and with its words in each other's place where that differs.
#[derive(Clone, Copy)]
struct Scored {
    score: f64,
    turned: Option<f64>,
}

impl Pass<'_> {
    /// Scores a pair, or says why it is left out.
    fn scored(&self, pair: Pair) -> Result<Scored, &'static str> {
        if pair.left == pair.right {
            return Err(REASONS[0]);
        }
        if !(self.keep[pair.left as usize] && self.keep[pair.right as usize]) {
            return Err(REASONS[1]);
        }
        if pair.count < self.config.min_pair_count.saturating_mul(self.counts.index.weight_unit) {
            return Err(REASONS[2]);
        }
        let turn = Pair { left: pair.right, right: pair.left, ..pair };
        let turned = (self.symmetric && self.scorer.is_turned()).then(|| self.scorer.score(turn));
        let score = self.scorer.score(pair);
        if self.config.measure == Measure::Ppmi && score.max(turned.unwrap_or(score)) <= 0.0 {
            return Err(REASONS[3]);
        }
        Ok(Scored { score, turned })
    }

    /// Finds the best pairs of each word, and the scale.
    fn survey(&mut self) -> Result<(), Error> {
        let mut best = Best::new(self.keep.len(), self.config.top_k);
        let (mut highest, mut positive) = (0f64, Vec::new());
        self.counts.pairs(count::Table::Pairs, |pair| {
            let Ok(scored) = self.scored(pair) else { return Ok(()) };
            best.offer(pair.left, pair.right, scored.score);
            if self.symmetric {
                best.offer(pair.right, pair.left, scored.turned.unwrap_or(scored.score));
            }
            for score in [Some(scored.score), scored.turned].into_iter().flatten().filter(|s| *s > 0.0) {
                highest = highest.max(score);
                if matches!(self.config.relevance, Relevance::Quantile(_)) {
                    positive.push(score);
                }
            }
            Ok::<(), Error>(())
        })?;
        self.scale = match self.config.relevance {
            Relevance::Npmi => 1.0,
            Relevance::Max => highest,
            Relevance::Quantile(quantile) => nearest(&mut positive, quantile),
        };
        self.best = best;
        Ok(())
    }

    fn relevance(&self, pair: Pair, score: f64) -> f32 {
        let value = match self.config.relevance {
            Relevance::Npmi => self.scorer.npmi(pair),
            _ if score <= 0.0 => 0.0,
            _ => score / self.scale,
        };
        #[allow(clippy::cast_possible_truncation, reason = "the nearest f32 of a number in [0, 1]")]
        let nearest = value.clamp(0.0, 1.0) as f32;
        nearest
    }

    fn write_words(&self, folder: &Path) -> Result<(), Error> {
        let words = self.keep.iter().zip(&self.counts.words).filter(|(keep, _)| **keep);
        let words = words.map(|(_, word)| (word.letters.as_str(), word.occurrences, word.units));
        Ok(table::write_words(create(folder, Table::Words)?, words)?)
    }

    fn write_pairs(&self, folder: &Path) -> Result<(Funnel, Rows), Error> {
        let mut writer = create(folder, Table::Pairs)?;
        let mut funnel = Funnel::new(&REASONS);
        let mut rows = Rows::new(self.keep.iter().filter(|keep| **keep).count());
        let mut batch = Columns::default();
        self.counts.pairs(count::Table::Pairs, |pair| {
            let scored = match self.scored(pair) {
                Ok(scored) => scored,
                Err(reason) => {
                    funnel.drop(reason);
                    return Ok(());
                }
            };
            let back = scored.turned.unwrap_or(scored.score);
            let stays = self.best.has(pair.left, pair.right, scored.score)
                || self.symmetric && self.best.has(pair.right, pair.left, back);
            if !stays {
                funnel.drop(REASONS[4]);
                return Ok(());
            }
            funnel.keep();
            let [left, right] = [pair.left, pair.right].map(|rank| self.ranks[rank as usize]);
            let relevance = self.relevance(pair, scored.score);
            let turned = scored.turned.map(|score| (score, self.relevance(pair, score)));
            rows.push(left, right, relevance);
            if self.symmetric {
                rows.push(right, left, turned.map_or(relevance, |(_, relevance)| relevance));
            }
            batch.push(Pair { left, right, ..pair }, scored.score, relevance, turned);
            if batch.count.len() == BATCH_ROWS {
                writer.write_columns(batch.take())?;
            }
            Ok::<(), Error>(())
        })?;
        writer.write_columns(batch.take())?;
        writer.finish()?;
        Ok((funnel, rows))
    }
}

/// The smallest number that a share of `quantile` of all numbers does not exceed; 1 where there is none.
fn nearest(numbers: &mut [f64], quantile: f64) -> f64 {
    if numbers.is_empty() {
        return 1.0;
    }
    let rank = (quantile * numbers.len() as f64).ceil().max(1.0);
    // Between 1 and the length.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive whole number below 2^52"
    )]
    let at = (rank as usize).min(numbers.len()) - 1;
    *numbers.select_nth_unstable_by(at, f64::total_cmp).1
}

#[derive(Default)]
struct Columns {
    left: Vec<u32>,
    right: Vec<u32>,
    count: Vec<u64>,
    score: Vec<f64>,
    relevance: Vec<f32>,
    turned: Vec<Option<(f64, f32)>>,
}

impl Columns {
    fn push(&mut self, pair: Pair, score: f64, relevance: f32, turned: Option<(f64, f32)>) {
        self.left.push(pair.left);
        self.right.push(pair.right);
        self.count.push(pair.count);
        self.score.push(score);
        self.relevance.push(relevance);
        self.turned.push(turned);
    }

    fn take(&mut self) -> Vec<ArrayRef> {
        let all = std::mem::take(self);
        let (scores, relevances): (Vec<_>, Vec<_>) =
            all.turned.into_iter().map(|turned| (turned.map(|t| t.0), turned.map(|t| t.1))).unzip();
        vec![
            Arc::new(UInt32Array::from(all.left)),
            Arc::new(UInt32Array::from(all.right)),
            Arc::new(UInt64Array::from(all.count)),
            Arc::new(Float64Array::from(all.score)),
            Arc::new(Float32Array::from(all.relevance)),
            Arc::new(Float64Array::from(scores)),
            Arc::new(Float32Array::from(relevances)),
        ]
    }
}
