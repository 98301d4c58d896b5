//! Cosines of vectors: products of unit vectors.

/// Divides a vector by its length; one of zeros stays as it is.
pub fn unit(vector: &mut [f32]) {
    let length = dot(vector, vector).sqrt();
    vector.iter_mut().for_each(|number| *number /= length.max(f32::MIN_POSITIVE));
}

/// The sum of products, in eight strands that are added at the end: the same on every machine.
#[must_use]
pub fn dot(one: &[f32], other: &[f32]) -> f32 {
    let (ones, others) = (one.chunks_exact(8), other.chunks_exact(8));
    let rest: f32 = ones.remainder().iter().zip(others.remainder()).map(|(a, b)| a * b).sum();
    let mut sums = [0.0_f32; 8];
    for (one, other) in ones.zip(others) {
        for ((sum, a), b) in sums.iter_mut().zip(one).zip(other) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_unit_vectors_are_cosines() {
        let mut one: Vec<f32> = (0_u8..19).map(f32::from).collect();
        let mut other = one.iter().map(|x| -2.0 * x).collect::<Vec<f32>>();
        unit(&mut one);
        unit(&mut other);
        assert!((dot(&one, &one) - 1.0).abs() < 1e-6 && (dot(&one, &other) + 1.0).abs() < 1e-6);
        let mut none = vec![0.0; 19];
        unit(&mut none);
        assert_eq!(dot(&none, &one), 0.0);
    }
}
