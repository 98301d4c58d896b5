//! How well an order mixes: numbers beside those of a perfect shuffle.

use serde::Serialize;

use super::order::{Order, Place};

/// How well the items of one epoch are mixed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quality {
    /// Correlation between an item's place in the files and in the order: 1 is no shuffle, a perfect one comes near 0.
    pub correlation: f64,
    /// Share of neighbours in the order that come from the same row group, over what a perfect shuffle gives.
    pub neighbours: f64,
    /// Variance of the mean place in the files of a batch, over what a perfect shuffle gives: how much a batch is of one piece, 1 at
    /// best.
    pub batches: f64,
}

/// Measures an epoch of `order` in batches of `batch` items. None where there are not two whole batches.
#[must_use]
pub fn of(order: &Order, epoch: u64, batch: usize) -> Option<Quality> {
    let mut shown: Vec<(u32, f64)> = Vec::new();
    while let Some(window) = order.window(epoch, shown.len() as u64) {
        let place = |&Place { group, item }: &Place| (group, order.before(group) as f64 + f64::from(item));
        shown.extend(window.items.iter().map(place));
    }
    let (n, batch) = (shown.len() as f64, batch.max(1));
    if shown.len() < 2 * batch {
        return None;
    }
    let middle = (n - 1.0) / 2.0;
    let variance = (n * n - 1.0) / 12.0;
    let products = shown.iter().enumerate().map(|(at, (_, place))| (at as f64 - middle) * (place - middle));
    let correlation = products.sum::<f64>() / n / variance;
    let same = shown.windows(2).filter(|pair| pair[0].0 == pair[1].0).count() as f64 / (n - 1.0);
    let sizes = (0_u32..).map(|group| order.in_group(group)).take_while(|&items| items > 0);
    let by_chance: f64 = sizes.map(|items| (items as f64 / n).powi(2)).sum();
    let means: Vec<f64> = shown
        .chunks_exact(batch)
        .map(|items| items.iter().map(|(_, place)| place - middle).sum::<f64>() / batch as f64)
        .collect();
    let spread = means.iter().map(|mean| mean * mean).sum::<f64>() / means.len() as f64;
    // Drawn without putting back.
    let perfect = variance / batch as f64 * (n - batch as f64) / (n - 1.0);
    Some(Quality { correlation, neighbours: same / by_chance, batches: spread / perfect })
}

#[cfg(test)]
mod tests {
    use super::super::order::Shuffle;
    use super::*;
    use base::rng::RngKey;

    #[test]
    fn larger_windows_mix_better_and_all_groups_together_perfectly() {
        let quality = |shuffle| of(&Order::new(vec![100; 64], shuffle, RngKey::new(2)), 0, 32).unwrap();
        let files = quality(Shuffle::None);
        assert!((files.correlation - 1.0).abs() < 1e-9 && files.batches > 25.0, "{files:?}");
        let [one, eight, all] = [1, 8, 64].map(|groups| quality(Shuffle::Window(groups)));
        assert!(one.neighbours > 60.0 && one.batches > 20.0, "{one:?}");
        assert!(eight.batches < one.batches / 3.0 && eight.neighbours < one.neighbours / 6.0, "{eight:?}");
        assert!(all.correlation.abs() < 0.05, "{all:?}");
        assert!((0.8..1.25).contains(&all.batches) && (0.8..1.25).contains(&all.neighbours), "{all:?}");
        assert_eq!(of(&Order::new(vec![5], Shuffle::None, RngKey::new(1)), 0, 3), None);
    }
}
