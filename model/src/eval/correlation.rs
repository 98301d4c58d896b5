//! How well numbers follow numbers: Pearson, Spearman, mean squared error.

use super::{Error, at_least, finite, mean, mid_ranks, same_length};

/// A correlation coefficient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coefficient {
    /// From -1 to 1; 0 where one side is constant.
    pub value: f64,
    /// Whether one side is constant, so that there is no correlation and `value` is 0 by agreement.
    pub constant: bool,
}

/// Pearson's correlation.
///
/// # Errors
/// When lengths differ, there are fewer than two samples, or a value is not finite.
pub fn pearson(truth: &[f64], predicted: &[f64]) -> Result<Coefficient, Error> {
    check(truth, predicted, 2)?;
    Ok(coefficient(truth, predicted))
}

/// Spearman's correlation: Pearson's of the ranks, equal values sharing the mean of theirs.
///
/// # Errors
/// As [`pearson`].
pub fn spearman(truth: &[f64], predicted: &[f64]) -> Result<Coefficient, Error> {
    check(truth, predicted, 2)?;
    Ok(coefficient(&mid_ranks(truth), &mid_ranks(predicted)))
}

/// Mean of the squared differences.
///
/// # Errors
/// When lengths differ, there is no sample, or a value is not finite.
pub fn mean_squared_error(truth: &[f64], predicted: &[f64]) -> Result<f64, Error> {
    check(truth, predicted, 1)?;
    let squares = truth.iter().zip(predicted).map(|(a, b)| (a - b) * (a - b));
    Ok(squares.sum::<f64>() / truth.len() as f64)
}

fn check(truth: &[f64], predicted: &[f64], least: usize) -> Result<(), Error> {
    same_length("truth", truth, "predicted", predicted)?;
    at_least("samples", truth.len(), least)?;
    finite("truth", truth)?;
    finite("predicted", predicted)
}

fn coefficient(a: &[f64], b: &[f64]) -> Coefficient {
    // Equal values have a mean that rounding may part from them, so constants are told by comparing.
    let same = |values: &[f64]| values.iter().all(|value| *value == values[0]);
    if same(a) || same(b) {
        return Coefficient { value: 0.0, constant: true };
    }
    // Deviations in units of the largest one, so that no square is beyond the largest number or below the smallest.
    let deviations = |values: &[f64]| {
        let largest = values.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
        let scaled: Vec<f64> = values.iter().map(|value| value / largest).collect();
        let center = mean(&scaled);
        let off: Vec<f64> = scaled.iter().map(|value| value - center).collect();
        let most = off.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        off.into_iter().map(|value| if most > 0.0 { value / most } else { 0.0 }).collect::<Vec<f64>>()
    };
    let (mut product, mut squares_a, mut squares_b) = (0.0, 0.0, 0.0);
    for (a, b) in deviations(a).into_iter().zip(deviations(b)) {
        product += a * b;
        squares_a += a * a;
        squares_b += b * b;
    }
    let scale = squares_a.sqrt() * squares_b.sqrt();
    if scale == 0.0 {
        return Coefficient { value: 0.0, constant: true };
    }
    Coefficient { value: (product / scale).clamp(-1.0, 1.0), constant: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anscombes_quartet_has_its_published_correlation() {
        let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        assert!((pearson(&x, &y).unwrap().value - 0.816_420_516_345).abs() < 1e-9);
        assert!((spearman(&x, &y).unwrap().value - 0.818_181_818_182).abs() < 1e-9);
        assert_eq!(mean_squared_error(&[1.0, 2.0], &[2.0, 4.0]), Ok(2.5));
    }

    #[test]
    fn a_constant_has_no_correlation_and_says_so() {
        let flat = [0.1; 3];
        for found in
            [pearson(&[1.0, 2.0, 4.0], &flat), spearman(&flat, &[1.0, 2.0, 4.0]), pearson(&flat, &flat)]
        {
            assert_eq!(found, Ok(Coefficient { value: 0.0, constant: true }));
        }
        let perfect = pearson(&[1.0, 2.0, 4.0], &[-0.1, -0.2, -0.4]).unwrap();
        assert!(!perfect.constant && (perfect.value + 1.0).abs() < 1e-12);
        for size in [1e200, 1e-200, 1e308] {
            let found = pearson(&[size, -size], &[1.0, 2.0]).unwrap();
            assert!(!found.constant && (found.value + 1.0).abs() < 1e-12, "{found:?}");
        }
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        assert!(matches!(pearson(&[1.0], &[1.0]), Err(Error::Few { least: 2, .. })));
        assert!(matches!(pearson(&[1.0, 2.0], &[1.0]), Err(Error::Lengths { .. })));
        let infinite = spearman(&[1.0, 2.0], &[1.0, f64::INFINITY]);
        assert!(matches!(infinite, Err(Error::NotANumber { what: "predicted", index: 1, .. })));
        assert!(matches!(mean_squared_error(&[], &[]), Err(Error::Few { least: 1, .. })));
    }
}
