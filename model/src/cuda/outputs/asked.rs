//! Targets as kernels of losses take them.

use super::super::feed::{At, Feed, number};
use crate::Error;
use crate::nn::single;
use crate::output::{Anchor, Ends, Group, Identity, Output, PairLoss, RankLoss, Targets};

/// What is asked of the rows of logits.
#[derive(Debug)]
pub(super) enum Asked {
    /// One class of each row, -1 of those that nothing is asked of; classes may have weights.
    One { classes: At, weights: Option<At> },
    /// Any classes: where each row's begin, and which; positives may have weights.
    Any { starts: At, classes: At, positive: Option<At> },
    /// A score of each row.
    Score { targets: At },
    /// The right row of each of `count` groups, by each column of scores: where groups begin, and for each column the right rows.
    Groups { starts: At, rights: Vec<At>, count: usize },
    /// The match of each anchor among the rows of the batch.
    Anchors(Anchors),
    /// What each row of a metric names.
    Metric(Metric),
}

/// The right row of a group of which nothing is asked, as in `kernels_output.h`.
const NONE: u32 = u32::MAX;

/// Samples of an embedding.
#[derive(Debug, Clone, Copy)]
pub(super) struct Anchors {
    /// Where their rows begin, and the sample of each row.
    pub(super) starts: At,
    pub(super) samples: At,
    /// Rows that are not told from an anchor's match: where each anchor's begin, and which.
    pub(super) left_starts: At,
    pub(super) left_rows: At,
    pub(super) count: usize,
    pub(super) scale: f32,
}

/// Rows of a metric.
#[derive(Debug, Clone, Copy)]
pub(super) struct Metric {
    pub(super) classes: At,
    /// What rows may name as well: where each row's begin, and which.
    pub(super) also_starts: At,
    pub(super) also_classes: At,
    pub(super) loss: PairLoss,
    /// Infinite where all pairs are trained.
    pub(super) margin: f32,
}

impl Asked {
    /// The targets of a batch. `classes` are those of the m rows of logits, where one class is asked for.
    pub(super) fn new(
        feed: &mut Feed,
        output: &Output,
        targets: &Targets,
        classes: Option<&[Option<u32>]>,
        m: usize,
    ) -> Result<Self, Error> {
        match (output, targets, classes) {
            (Output::OneClass { weights, .. }, _, Some(classes)) => {
                let weights = weights.as_ref().map(|weights| feed.put(weights));
                Ok(Asked::One { classes: put(feed, classes)?, weights })
            }
            (Output::Tag { .. } | Output::Vocabulary { .. }, _, Some(classes)) => {
                Ok(Asked::One { classes: put(feed, classes)?, weights: None })
            }
            (Output::AnyClasses { positive, .. }, Targets::Sets(sets), _) => {
                let positive = positive.as_ref().map(|positive| feed.put(positive));
                let (starts, classes) = put_sets(feed, sets)?;
                Ok(Asked::Any { starts, classes, positive })
            }
            (Output::Score, Targets::Scores(scores), _) => Ok(Asked::Score { targets: feed.put(scores) }),
            (Output::Rank { loss: RankLoss::Softmax }, Targets::Groups(groups), _) => {
                let starts = starts_of(groups.iter().map(|group| group.rows))?;
                let right =
                    groups.iter().map(|group| number(group.right)).collect::<Result<Vec<u32>, _>>()?;
                let (starts, rights) = (feed.put(&starts), vec![feed.put(&right)]);
                Ok(Asked::Groups { starts, rights, count: groups.len() })
            }
            (Output::Span, Targets::Spans(rows), _) => put_spans(feed, rows, m),
            (Output::Embedding { scale }, Targets::Anchors(anchors), _) => {
                put_anchors(feed, anchors, *scale).map(Asked::Anchors)
            }
            (Output::Metric { loss, margin }, Targets::Identities(rows), _) => {
                let margin = margin.map_or(f32::INFINITY, single);
                put_identities(feed, rows, *loss, margin).map(Asked::Metric)
            }
            (Output::Rank { loss: RankLoss::Binary }, Targets::Groups(groups), _) => {
                let of_row = |group: &Group, row| if row == group.right { vec![0] } else { vec![] };
                let sets: Vec<Vec<u32>> = groups
                    .iter()
                    .flat_map(|group| (0..group.rows).map(move |row| of_row(group, row)))
                    .collect();
                let (starts, classes) = put_sets(feed, &sets)?;
                Ok(Asked::Any { starts, classes, positive: None })
            }
            _ => Err(Error::Misfit("targets of another kind than the output's; report it".to_owned())),
        }
    }

    /// How many losses there are of m rows of logits.
    pub(super) fn losses(&self, m: usize) -> usize {
        match self {
            Asked::Groups { count, rights, .. } => rights.len() * count,
            Asked::Anchors(Anchors { count, .. }) => *count,
            _ => m,
        }
    }

    /// Rows that are told from others of m, by their cosines, and whether only hard pairs of them are trained.
    pub(super) fn anchors(&self, m: usize) -> (usize, bool) {
        match self {
            Asked::Anchors(of) => (of.count, false),
            Asked::Metric(_) => (m, true),
            _ => (0, false),
        }
    }

    /// Whether the largest logit is a hit or none.
    pub(super) fn has_hits(&self) -> bool {
        matches!(self, Asked::One { .. })
    }
}

fn put(feed: &mut Feed, classes: &[Option<u32>]) -> Result<At, Error> {
    let of = |class: &Option<u32>| class.map_or(Ok(-1), |class| number(class as usize).map(u32::cast_signed));
    Ok(feed.put(&classes.iter().map(of).collect::<Result<Vec<i32>, _>>()?))
}

/// The first and the last token of each row's answer. The last group are tokens of no row, which make the batch one of a few sizes.
fn put_spans(feed: &mut Feed, rows: &[Ends], m: usize) -> Result<Asked, Error> {
    let mut starts = starts_of(rows.iter().map(|row| row.tokens))?;
    starts.push(number(m)?);
    let mut put = |end: fn(&Ends) -> usize| {
        let of_rows = rows.iter().map(|row| number(end(row)));
        let right: Vec<u32> = of_rows.chain([Ok(NONE)]).collect::<Result<_, _>>()?;
        Ok::<_, Error>(feed.put(&right))
    };
    let rights = vec![put(|row| row.first)?, put(|row| row.last)?];
    Ok(Asked::Groups { starts: feed.put(&starts), rights, count: rows.len() + 1 })
}

fn put_anchors(feed: &mut Feed, anchors: &[Anchor], scale: f64) -> Result<Anchors, Error> {
    let (mut starts, mut samples) = (vec![0_u32], vec![]);
    for (anchor, sample) in anchors.iter().zip(0_u32..) {
        samples.extend(std::iter::repeat_n(sample, anchor.rows()));
        starts.push(number(samples.len())?);
    }
    let left = anchors.iter().map(|anchor| {
        let mut rows = anchor.also_match.iter().map(|row| number(*row)).collect::<Result<Vec<u32>, _>>()?;
        rows.sort_unstable();
        Ok(rows)
    });
    let (left_starts, left_rows) = put_sets(feed, &left.collect::<Result<Vec<_>, Error>>()?)?;
    let (starts, samples) = (feed.put(&starts), feed.put(&samples));
    Ok(Anchors { starts, samples, left_starts, left_rows, count: anchors.len(), scale: single(scale) })
}

fn put_identities(feed: &mut Feed, rows: &[Identity], loss: PairLoss, margin: f32) -> Result<Metric, Error> {
    let also: Vec<Vec<u32>> = rows.iter().map(|row| row.also.clone()).collect();
    let (also_starts, also_classes) = put_sets(feed, &also)?;
    let classes: Vec<u32> = rows.iter().map(|row| row.class).collect();
    Ok(Metric { classes: feed.put(&classes), also_starts, also_classes, loss, margin })
}

fn put_sets(feed: &mut Feed, sets: &[Vec<u32>]) -> Result<(At, At), Error> {
    let starts = starts_of(sets.iter().map(Vec::len))?;
    Ok((feed.put(&starts), feed.put(&sets.concat())))
}

/// Where runs of so many rows begin, and where the last one ends.
fn starts_of(lengths: impl Iterator<Item = usize>) -> Result<Vec<u32>, Error> {
    let mut end = 0;
    let ends = lengths.map(|length| {
        end += length;
        number(end)
    });
    std::iter::once(Ok(0)).chain(ends).collect()
}
