//! How sure a number is: bootstrap intervals over samples, t intervals over seeds.
//!
//! A replicate is a function of the seed and its number alone, so intervals are the same for any number of threads.

use base::rng::CounterRng;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::special::{normal, normal_quantile, student_quantile};
use super::{Error, at_least, finite, mean};

/// How the bootstrap is done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// Samples of samples that are drawn.
    pub replicates: u32,
    /// Another seed, other draws.
    pub seed: u64,
    /// Share of intervals that should hold the true value, such as 0.95.
    pub level: f64,
    /// How the interval follows from the replicates.
    pub method: Method,
}

/// How an interval follows from replicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Their quantiles (Efron 1979).
    Percentile,
    /// Their quantiles, corrected for bias and for a spread that changes with the value (Efron 1987).
    Bca,
}

/// A number and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The number for the samples as they are.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Replicates for which the metric was undefined (one class alone); they are in no quantile.
    pub undefined: u32,
}

/// A metric of the samples with these numbers, of which some may be there several times; `None` where it is undefined.
pub type Statistic<'a> = &'a (dyn Fn(&[usize]) -> Option<f64> + Sync);

const WHAT: &str = "the bootstrap interval";

/// The interval of a metric over `samples` samples.
///
/// # Errors
/// When there are fewer than two samples, a setting is out of range, or the metric is undefined for the samples, for all but one replicate,
/// or, with [`Method::Bca`], without one of the samples.
pub fn bootstrap(samples: usize, config: &Bootstrap, metric: Statistic<'_>) -> Result<Interval, Error> {
    with_replicates(samples, config, metric).map(|(interval, _)| interval)
}

/// The interval, and the defined replicates in rising order.
pub(super) fn with_replicates(
    samples: usize,
    config: &Bootstrap,
    metric: Statistic<'_>,
) -> Result<(Interval, Vec<f64>), Error> {
    at_least("samples", samples, 2)?;
    at_least("replicates", usize::try_from(config.replicates).unwrap_or(usize::MAX), 2)?;
    within(config.level)?;
    let all: Vec<usize> = (0..samples).collect();
    let value = metric(&all).ok_or(UNDEFINED)?;
    let mut found: Vec<f64> = replicates(samples, config, metric).into_iter().flatten().collect();
    let undefined = config.replicates - u32::try_from(found.len()).unwrap_or(config.replicates);
    if found.len() < 2 {
        return Err(Error::Undefined { what: WHAT, why: "the metric is, for almost all replicates" });
    }
    finite("replicates", &found)?;
    found.sort_by(f64::total_cmp);
    let tail = (1.0 - config.level) / 2.0;
    let (low, high) = match config.method {
        Method::Percentile => (tail, 1.0 - tail),
        Method::Bca => corrected(&found, value, tail, acceleration(&all, metric)?)?,
    };
    let (low, high) = (quantile(&found, low), quantile(&found, high));
    Ok((Interval { value, low, high, undefined }, found))
}

const UNDEFINED: Error = Error::Undefined { what: WHAT, why: "the metric is, for the samples as they are" };

fn within(level: f64) -> Result<(), Error> {
    if level > 0.0 && level < 1.0 {
        return Ok(());
    }
    Err(Error::Setting { what: "level", found: level, expected: "a number between 0 and 1, such as 0.95" })
}

/// The metric of every replicate, in their order.
fn replicates(samples: usize, config: &Bootstrap, metric: Statistic<'_>) -> Vec<Option<f64>> {
    let chance = CounterRng::new(config.seed).named("bootstrap");
    let replicate = |drawn: &mut Vec<usize>, number: u32| {
        let chance = chance.branch(u64::from(number));
        drawn.clear();
        drawn.extend((0..samples as u64).map(|draw| below(chance.bits(draw), samples)));
        metric(drawn)
    };
    (0..config.replicates).into_par_iter().map_init(Vec::new, replicate).collect()
}

/// A number below `bound` from 64 random bits.
fn below(bits: u64, bound: usize) -> usize {
    // The high half of the product is below `bound`.
    usize::try_from((u128::from(bits) * bound as u128) >> 64).unwrap_or(0)
}

/// A quantile of sorted values, linear between them (R's type 7).
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len() - 1;
    let place = share * last as f64;
    // The value at or in front of the place; numbers of values are found by halving, as no float becomes an index.
    let (mut index, mut behind) = (0, last.max(1));
    while behind - index > 1 {
        let middle = usize::midpoint(index, behind);
        if middle as f64 <= place { index = middle } else { behind = middle }
    }
    let next = (index + 1).min(last);
    sorted[index] + (sorted[next] - sorted[index]) * (place - index as f64)
}

/// Shares of the replicates at which the corrected interval ends.
fn corrected(sorted: &[f64], value: f64, tail: f64, acceleration: f64) -> Result<(f64, f64), Error> {
    let below = sorted.partition_point(|&replicate| replicate < value);
    let not_above = sorted.partition_point(|&replicate| replicate <= value);
    let bias = normal_quantile((below + not_above) as f64 / (2 * sorted.len()) as f64);
    if bias.is_infinite() {
        let why = "all replicates lie on one side of the value; take Method::Percentile";
        return Err(Error::Undefined { what: WHAT, why });
    }
    let share = |tail: f64| {
        let shifted = bias + normal_quantile(tail);
        normal(bias + shifted / (1.0 - acceleration * shifted))
    };
    Ok((share(tail), share(1.0 - tail)))
}

/// How fast the spread changes with the value, from the metric without each sample; 0 where no sample matters.
fn acceleration(all: &[usize], metric: Statistic<'_>) -> Result<f64, Error> {
    let without = |sample: usize| {
        let others: Vec<usize> = all.iter().copied().filter(|&other| other != sample).collect();
        metric(&others)
    };
    let why = "the metric is, without one of the samples; take Method::Percentile";
    let values: Option<Vec<f64>> = (0..all.len()).into_par_iter().map(without).collect();
    let values = values.ok_or(Error::Undefined { what: WHAT, why })?;
    finite("values without one sample", &values)?;
    let center = mean(&values);
    let (mut squares, mut cubes) = (0.0, 0.0);
    for value in &values {
        let away = center - value;
        squares += away * away;
        cubes += away * away * away;
    }
    Ok(if squares > 0.0 { cubes / (6.0 * squares.powf(1.5)) } else { 0.0 })
}

/// The mean over runs that differ by their seed, and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Runs {
    /// The mean.
    pub mean: f64,
    /// Standard deviation of the runs (over n - 1).
    pub deviation: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The mean of a metric over runs with Student's t interval: it holds the mean over all seeds that there could be, on the same samples.
///
/// # Errors
/// When there are fewer than two runs, a value is not finite, or `level` is not between 0 and 1.
pub fn across_seeds(values: &[f64], level: f64) -> Result<Runs, Error> {
    at_least("runs", values.len(), 2)?;
    finite("runs", values)?;
    within(level)?;
    let center = mean(values);
    let freedom = (values.len() - 1) as f64;
    let squares: f64 = values.iter().map(|value| (value - center) * (value - center)).sum();
    let deviation = (squares / freedom).sqrt();
    let half =
        student_quantile(f64::midpoint(1.0, level), freedom) * deviation / (values.len() as f64).sqrt();
    Ok(Runs { mean: center, deviation, low: center - half, high: center + half })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::correlation::pearson;

    const CONFIG: Bootstrap = Bootstrap { replicates: 4000, seed: 1, level: 0.9, method: Method::Percentile };

    /// The law schools of Efron 1979: mean test scores and grades of 15 classes.
    const LSAT: [f64; 15] = [
        576.0, 635.0, 558.0, 578.0, 666.0, 580.0, 555.0, 661.0, 651.0, 605.0, 653.0, 575.0, 545.0, 572.0,
        594.0,
    ];
    const GPA: [f64; 15] =
        [3.39, 3.30, 2.81, 3.03, 3.44, 3.07, 3.00, 3.43, 3.36, 3.13, 3.12, 2.74, 2.76, 2.88, 2.96];

    fn law_schools(drawn: &[usize]) -> Option<f64> {
        let pick = |of: &[f64]| drawn.iter().map(|&school| of[school]).collect::<Vec<_>>();
        let found = pearson(&pick(&LSAT), &pick(&GPA)).unwrap();
        (!found.constant).then_some(found.value)
    }

    #[test]
    fn the_law_schools_have_the_intervals_that_are_published() {
        // Efron 1987 and Efron and Tibshirani 1993: .776, percentile about (.53, .95), corrected (.43, .92).
        let found = bootstrap(15, &CONFIG, &law_schools).unwrap();
        assert!((found.value - 0.776).abs() < 5e-4, "{found:?}");
        assert!((found.low - 0.53).abs() < 0.02 && (found.high - 0.95).abs() < 0.01, "{found:?}");
        let found = bootstrap(15, &Bootstrap { method: Method::Bca, ..CONFIG }, &law_schools).unwrap();
        assert!((found.low - 0.43).abs() < 0.03 && (found.high - 0.92).abs() < 0.015, "{found:?}");
    }

    #[test]
    fn intervals_follow_from_the_seed_alone() {
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                bootstrap(15, &Bootstrap { method: Method::Bca, ..CONFIG }, &law_schools).unwrap()
            })
        };
        assert_eq!(with(1), with(3));
        assert_ne!(with(1), bootstrap(15, &Bootstrap { seed: 2, ..CONFIG }, &law_schools).unwrap());
    }

    #[test]
    fn quantiles_are_linear_between_values() {
        let sorted = [1.0, 2.0, 4.0, 8.0];
        assert_eq!([0.0, 0.5, 1.0].map(|share| quantile(&sorted, share)), [1.0, 3.0, 8.0]);
        assert!((quantile(&sorted, 0.9) - 6.8).abs() < 1e-12);
        assert_eq!(quantile(&[3.0], 0.9), 3.0);
    }

    #[test]
    fn undefined_replicates_are_counted_and_undefined_metrics_refused() {
        let both = |drawn: &[usize]| (drawn.contains(&0) && drawn.contains(&1)).then_some(1.0);
        let found = bootstrap(2, &CONFIG, &both).unwrap();
        assert!((1_800..2_200).contains(&found.undefined), "{found:?}");
        assert_eq!((found.low, found.high), (1.0, 1.0));
        let corrected =
            bootstrap(2, &Bootstrap { method: Method::Bca, ..CONFIG }, &both).unwrap_err().to_string();
        assert!(corrected.contains("without one of the samples; take Method::Percentile"), "{corrected}");
        assert!(matches!(bootstrap(2, &CONFIG, &|_| None), Err(Error::Undefined { .. })));
        assert!(matches!(bootstrap(1, &CONFIG, &|_| Some(1.0)), Err(Error::Few { .. })));
        let level = bootstrap(2, &Bootstrap { level: 95.0, ..CONFIG }, &both).unwrap_err().to_string();
        assert_eq!(level, "level is 95, expected a number between 0 and 1, such as 0.95");
    }

    #[test]
    fn a_t_interval_by_hand() {
        // Mean 3, deviation sqrt(2.5), 4 degrees of freedom: t = 2.776445.
        let runs = across_seeds(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95).unwrap();
        let half = 2.776_445_105 * (2.5_f64 / 5.0).sqrt();
        assert!((runs.mean - 3.0).abs() < 1e-12 && (runs.deviation - 2.5_f64.sqrt()).abs() < 1e-12);
        assert!((runs.low - (3.0 - half)).abs() < 1e-8 && (runs.high - (3.0 + half)).abs() < 1e-8);
        assert!(matches!(across_seeds(&[1.0], 0.95), Err(Error::Few { .. })));
        assert!(matches!(across_seeds(&[1.0, f64::NAN], 0.95), Err(Error::NotANumber { .. })));
    }
}
