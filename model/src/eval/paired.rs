//! Whether one of two systems is better than the other on the same samples: paired bootstrap, swapping, McNemar.
//!
//! All p values are for both directions, and never 0: so many draws as there were cannot show more than 1 / (draws + 1).

use base::rng::CounterRng;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::interval::{Bootstrap, Interval, with_replicates};
use super::special::{beta, erfc};
use super::{Error, at_least, finite, same_length};

/// Values of a metric for two systems on the samples with these numbers; `None` where it is undefined for one of them.
pub type Both<'a> = &'a (dyn Fn(&[usize]) -> Option<(f64, f64)> + Sync);

/// What the paired bootstrap says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// The second system's value minus the first's, and its interval.
    pub interval: Interval,
    /// How likely so large a difference is if there is none: twice the smaller share of replicates on a side of 0, at most 1.
    pub p: f64,
}

/// The difference of two systems over samples that are drawn for both together (Efron and Tibshirani 1993; Berg-Kirkpatrick 2012 on its
/// use for benchmarks).
///
/// # Errors
/// As [`bootstrap`](super::interval::bootstrap).
pub fn paired_bootstrap(samples: usize, config: &Bootstrap, metric: Both<'_>) -> Result<Difference, Error> {
    let difference = |drawn: &[usize]| metric(drawn).map(|(first, second)| second - first);
    let (interval, drawn) = with_replicates(samples, config, &difference)?;
    let not_above = drawn.iter().filter(|&&value| value <= 0.0).count();
    let not_below = drawn.iter().filter(|&&value| value >= 0.0).count();
    let share = (not_above.min(not_below) + 1) as f64 / (drawn.len() + 1) as f64;
    Ok(Difference { interval, p: (2.0 * share).min(1.0) })
}

/// How a test by swapping is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Swapping {
    /// Swaps that are drawn; where there are no more than so many, each is tried once.
    pub draws: u32,
    /// Another seed, other draws.
    pub seed: u64,
}

/// What a test by swapping says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Swapped {
    /// The second system's value minus the first's.
    pub difference: f64,
    /// How likely a difference that large, in either direction, is if it does not matter which system said what.
    pub p: f64,
    /// Whether all swaps were tried, so that `p` is exact.
    pub exact: bool,
    /// Draws for which the metric was undefined; they are in no share.
    pub undefined: u32,
}

/// Differences this close to the observed one, relative to the values that they are of, are equal to it: sums in another order round differently.
const ROUNDING: f64 = 1e-12;

/// Values of a metric for two systems when, for each sample, their answers are swapped or not; `None` where it is undefined for one of
/// them, which a draw may be.
pub type WhenSwapped<'a> = &'a (dyn Fn(&[bool]) -> Option<(f64, f64)> + Sync);

/// Swaps the two systems' answers sample by sample (approximate randomisation, Noreen 1989).
///
/// # Errors
/// When there is no sample or no draw, or the metric is undefined without swaps.
pub fn swap(samples: usize, config: &Swapping, metric: WhenSwapped<'_>) -> Result<Swapped, Error> {
    let scale = metric(&vec![false; samples]).map_or(0.0, |(first, second)| first.abs() + second.abs());
    test(samples, config, scale, &|swapped| metric(swapped).map(|(first, second)| second - first))
}

/// The test for metrics that are means over samples: the sign of each sample's difference is as good as a coin's.
///
/// # Errors
/// When lengths differ, there is no sample or no draw, or a value is not finite.
pub fn sign_flip(first: &[f64], second: &[f64], config: &Swapping) -> Result<Swapped, Error> {
    same_length("first", first, "second", second)?;
    finite("first", first)?;
    finite("second", second)?;
    let differences: Vec<f64> = first.iter().zip(second).map(|(first, second)| second - first).collect();
    let mean = |swapped: &[bool]| {
        let signed =
            differences.iter().zip(swapped).map(|(value, &swapped)| if swapped { -value } else { *value });
        Some(signed.sum::<f64>() / differences.len() as f64)
    };
    let scale = differences.iter().map(|value| value.abs()).sum::<f64>() / differences.len().max(1) as f64;
    test(differences.len(), config, scale, &mean)
}

/// How many ways of swapping have a difference at least as large as that without. `scale` is how large the values are that it is of.
fn test(
    samples: usize,
    config: &Swapping,
    scale: f64,
    difference: &(dyn Fn(&[bool]) -> Option<f64> + Sync),
) -> Result<Swapped, Error> {
    at_least("samples", samples, 1)?;
    at_least("draws", usize::try_from(config.draws).unwrap_or(usize::MAX), 1)?;
    let Some(observed) = difference(&vec![false; samples]) else {
        let why = "the metric is, for the samples as they are";
        return Err(Error::Undefined { what: "the test by swapping", why });
    };
    finite("the observed difference", &[observed])?;
    let least = observed.abs() - scale * ROUNDING;
    let ways =
        u32::try_from(samples).ok().and_then(|n| 1_u32.checked_shl(n)).filter(|&ways| ways <= config.draws);
    let chance = CounterRng::new(config.seed).named("swap");
    let tried = |swapped: &mut Vec<bool>, number: u32| {
        let number = u64::from(number);
        let bits = |word: u64| if ways.is_some() { number } else { chance.branch(number).bits(word) };
        swapped.clear();
        swapped.extend((0..samples as u64).map(|sample| (bits(sample / 64) >> (sample % 64)) & 1 == 1));
        difference(swapped)
    };
    let all = ways.unwrap_or(config.draws);
    let found: Vec<Option<f64>> = (0..all).into_par_iter().map_init(Vec::new, tried).collect();
    let defined: Vec<f64> = found.into_iter().flatten().collect();
    finite("the differences of draws", &defined)?;
    // Both are at most `all`.
    let number = |count: usize| u32::try_from(count).unwrap_or(all);
    let large = number(defined.iter().filter(|value| value.abs() >= least).count());
    let defined = number(defined.len());
    // Among all ways is the one that was observed; among draws it counts once more.
    let observed_again = u32::from(ways.is_none());
    let p = f64::from(large + observed_again) / f64::from(defined + observed_again);
    Ok(Swapped { difference: observed, p, exact: ways.is_some(), undefined: all - defined })
}

/// What McNemar's test says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct McNemar {
    /// Samples that only the first system has right.
    pub only_first: u64,
    /// Samples that only the second has right.
    pub only_second: u64,
    /// The exact binomial probability; 1 where both are right on the same samples.
    pub p: f64,
    /// That of the chi-squared statistic with Edwards' correction, as many papers give it.
    pub p_chi_squared: f64,
}

/// Compares which samples two systems have right.
///
/// # Errors
/// When lengths differ or there is no sample.
pub fn mcnemar(first_right: &[bool], second_right: &[bool]) -> Result<McNemar, Error> {
    same_length("first_right", first_right, "second_right", second_right)?;
    at_least("samples", first_right.len(), 1)?;
    let pairs = || first_right.iter().zip(second_right);
    let only_first = pairs().filter(|&(&first, &second)| first && !second).count() as u64;
    let only_second = pairs().filter(|&(&first, &second)| !first && second).count() as u64;
    let (fewer, apart) = (only_first.min(only_second) as f64, (only_first + only_second) as f64);
    // P(X <= k) of n fair coins is I_1/2(n - k, k + 1).
    let tail = if apart > 0.0 { beta(0.5, apart - fewer, fewer + 1.0) } else { 1.0 };
    let excess = ((only_first.abs_diff(only_second) as f64) - 1.0).max(0.0);
    let p_chi_squared = if apart > 0.0 { erfc((excess * excess / apart / 2.0).sqrt()) } else { 1.0 };
    Ok(McNemar { only_first, only_second, p: (2.0 * tail).min(1.0), p_chi_squared })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::interval::Method;

    const SWAPPING: Swapping = Swapping { draws: 20_000, seed: 1 };

    #[test]
    fn few_samples_are_swapped_in_all_ways() {
        // All five differences have one sign: of 32 ways, this and its mirror are as large.
        let (first, second) = ([0.1, 0.2, 0.3, 0.4, 0.5], [0.2, 0.4, 0.6, 0.8, 1.0]);
        let found = sign_flip(&first, &second, &SWAPPING).unwrap();
        assert!(found.exact && (found.difference - 0.3).abs() < 1e-12, "{found:?}");
        assert_eq!(found.p, 2.0 / 32.0);
        assert_eq!(sign_flip(&first, &first, &SWAPPING).unwrap().p, 1.0);
        // A difference that is 0 but for rounding.
        let none = sign_flip(&[0.0; 5], &[-0.1, 0.4, -0.5, 0.1, 0.1], &SWAPPING).unwrap();
        assert_eq!((none.p, none.exact, none.undefined), (1.0, true, 0));
    }

    #[test]
    fn draws_without_a_value_are_counted_and_those_that_are_no_numbers_refused() {
        let first_only = |swapped: &[bool], else_: Option<(f64, f64)>| {
            if swapped[0] && swapped[1] { else_ } else { Some((0.0, 1.0)) }
        };
        let found = swap(3, &SWAPPING, &|swapped| first_only(swapped, None)).unwrap();
        assert_eq!((found.undefined, found.p), (2, 1.0));
        let refused = swap(3, &SWAPPING, &|swapped| first_only(swapped, Some((0.0, f64::NAN)))).unwrap_err();
        assert!(refused.to_string().contains("is NaN, expected a finite number"), "{refused}");
    }

    #[test]
    fn darwins_maize_has_fishers_probability() {
        // Fisher 1935, section 21: of 2^15 ways, 863 x 2 are at least as far from 0.
        let differences = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48].map(f64::from);
        let exact = sign_flip(&[0.0; 15], &differences, &Swapping { draws: 1 << 15, seed: 1 }).unwrap();
        assert!(exact.exact);
        assert!((exact.p - 1_726.0 / 32_768.0).abs() < 1e-9, "{exact:?}");
        let drawn = sign_flip(&[0.0; 15], &differences, &SWAPPING).unwrap();
        assert!(!drawn.exact && (drawn.p - exact.p).abs() < 0.006, "{drawn:?}");
    }

    #[test]
    fn metrics_that_are_no_means_are_swapped_as_wholes() {
        // Median of three: swapped in all ways.
        let (first, second) = ([1.0, 2.0, 3.0], [2.0, 3.0, 4.0]);
        let median = |swapped: &[bool]| {
            let pick = |system: bool| {
                let value =
                    |sample: usize| if swapped[sample] == system { first[sample] } else { second[sample] };
                let mut values = [value(0), value(1), value(2)];
                values.sort_by(f64::total_cmp);
                values[1]
            };
            Some((pick(false), pick(true)))
        };
        let found = swap(3, &SWAPPING, &median).unwrap();
        assert_eq!((found.difference, found.exact), (1.0, true));
        assert!(swap(3, &SWAPPING, &|_| None).is_err());
    }

    #[test]
    fn the_paired_bootstrap_tells_a_shift_from_noise() {
        let config = Bootstrap { replicates: 2_000, seed: 3, level: 0.95, method: Method::Percentile };
        let noise = |sample: usize| CounterRng::new(7).normal(sample as u64);
        let mean = |drawn: &[usize], of: &dyn Fn(usize) -> f64| {
            drawn.iter().map(|&sample| of(sample)).sum::<f64>() / drawn.len() as f64
        };
        let shift =
            |drawn: &[usize]| Some((mean(drawn, &noise), mean(drawn, &|s| noise(s) + 0.5 + noise(s + 500))));
        let found = paired_bootstrap(200, &config, &shift).unwrap();
        assert!(found.interval.low > 0.0 && found.p <= 2.0 / 2_001.0 + 1e-12, "{found:?}");
        let same =
            |drawn: &[usize]| Some((mean(drawn, &noise), mean(drawn, &|s| noise(s) + 0.01 * noise(s + 900))));
        let found = paired_bootstrap(200, &config, &same).unwrap();
        assert!(found.interval.low < 0.0 && found.interval.high > 0.0 && found.p > 0.05, "{found:?}");
    }

    #[test]
    fn mcnemar_by_hand() {
        // 10 coins, at most 1 on one side: 2 x 11 / 1024. Chi-squared (9 - 1 - 1)^2 / 10 = 4.9.
        let first = [[true; 1].as_slice(), &[false; 9], &[true; 5]].concat();
        let second = [[false; 1].as_slice(), &[true; 9], &[true; 5]].concat();
        let found = mcnemar(&first, &second).unwrap();
        assert_eq!((found.only_first, found.only_second), (1, 9));
        assert!((found.p - 22.0 / 1024.0).abs() < 1e-12, "{found:?}");
        assert!((found.p_chi_squared - 0.026_856_695).abs() < 1e-6, "{found:?}");
        let same = mcnemar(&first, &first).unwrap();
        assert_eq!((same.p, same.p_chi_squared), (1.0, 1.0));
        assert!(matches!(mcnemar(&first, &second[1..]), Err(Error::Lengths { .. })));
        assert!(matches!(mcnemar(&[], &[]), Err(Error::Few { .. })));
    }
}
