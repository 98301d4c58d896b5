//! Weights that make rare classes count as much as frequent ones.

use tasks::Error;

use super::Variant;

/// Weights of classes of which a sample has one: all samples over the classes' number and the class's samples (scikit-learn's `balanced`).
///
/// # Errors
/// When a class has no sample.
pub fn balanced(counts: &[u64]) -> Result<Vec<f64>, Error> {
    if let Some(absent) = counts.iter().position(|&count| count == 0) {
        let remedy = "leave it out, or take more samples";
        return Err(Error::Unfit(format!(
            "class {absent} has no sample, so no weight makes it count: {remedy}"
        )));
    }
    let share = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    Ok(counts.iter().map(|&count| share / count as f64).collect())
}

/// Weights of the positive side of classes of which a sample has any number, by how many of `samples` have each.
///
/// As in the reference code, they are those of [`balanced`] with a sample more in every class, as if the classes shut each other out; fixed, negative
/// samples over positive ones, and 1 where no sample or every sample has the class.
#[must_use]
pub fn positive(counts: &[u64], samples: u64, variant: Variant) -> Vec<f64> {
    match variant {
        Variant::Reference => {
            let more: Vec<u64> = counts.iter().map(|count| count + 1).collect();
            let share = more.iter().sum::<u64>() as f64 / more.len().max(1) as f64;
            more.iter().map(|&count| share / count as f64).collect()
        }
        Variant::Fixed => {
            let weight = |&count: &u64| match samples.saturating_sub(count) {
                0 => 1.0,
                _ if count == 0 => 1.0,
                negative => negative as f64 / count as f64,
            };
            counts.iter().map(weight).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_weighs_the_same_in_all() {
        let weights = balanced(&[10, 30]).unwrap();
        assert_eq!(weights, [2.0, 2.0 / 3.0]);
        assert!(balanced(&[3, 0]).unwrap_err().to_string().starts_with("class 1 has no sample"));
    }

    #[test]
    fn positive_sides_weigh_as_released_or_as_their_negatives() {
        assert_eq!(positive(&[0, 2], 4, Variant::Reference), [2.0, 2.0 / 3.0]);
        assert_eq!(positive(&[0, 1, 4], 4, Variant::Fixed), [1.0, 3.0, 1.0]);
    }
}
