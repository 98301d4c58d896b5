//! Logarithms, powers, sines and cosines with the same bits on every machine: those of the system's C library differ in their last digit from version to version. What
//! ends up in an artifact is computed by these.

/// The natural logarithm.
#[must_use]
pub fn ln(x: f64) -> f64 {
    libm::log(x)
}

/// `x` to the power of `y`.
#[must_use]
pub fn pow(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}

/// The logarithm to base 10.
#[must_use]
pub fn log10(x: f64) -> f64 {
    libm::log10(x)
}

/// The sine of an angle in radians.
#[must_use]
pub fn sin(x: f64) -> f64 {
    libm::sin(x)
}

/// The cosine of an angle in radians.
#[must_use]
pub fn cos(x: f64) -> f64 {
    libm::cos(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bits are constants: another machine, or another version of the library, that comes to others fails here.
    #[test]
    fn bits_are_those_of_every_machine() {
        let (mut sum, mut x) = (0_u64, 0.137_f64);
        for _ in 0..10_000 {
            x = (x * 1.618_033_988_749_895 + 0.1) % 700.0;
            for bits in [ln(x), log10(x), pow(x, 0.75), sin(x), cos(x)].map(f64::to_bits) {
                sum = sum.rotate_left(5) ^ bits;
            }
        }
        assert_eq!(sum, SUM, "{sum:#x}");
    }

    const SUM: u64 = 0x3259_9e37_5691_8f00;

    #[test]
    fn they_are_what_they_are_called() {
        for x in [0.1, 0.5, 1.0, 2.5, 1e9] {
            assert!((ln(x) - x.ln()).abs() < 1e-14 * x.ln().abs().max(1.0));
            assert!((pow(x, 0.75) / x.powf(0.75) - 1.0).abs() < 1e-14);
            assert!((cos(x) - x.cos()).abs() < 1e-14 && (sin(x) - x.sin()).abs() < 1e-14);
            assert!((log10(x) - x.log10()).abs() < 1e-14 * x.log10().abs().max(1.0));
        }
        assert_eq!((ln(1.0), pow(3.0, 0.0), cos(0.0), sin(0.0)), (0.0, 1.0, 1.0, 0.0));
        assert!((-9..20).all(|power| log10(pow(10.0, f64::from(power))) == f64::from(power)));
    }
}
