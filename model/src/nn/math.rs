//! Scalar functions in a form that compilers turn into vector code.

/// The nearest f32.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the model computes in f32; constants come in f64")]
pub(crate) fn single(x: f64) -> f32 {
    x as f32
}

/// e^x in f32 within 2 units in the last place, 0 below -87.3 (Cephes polynomial).
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    /// Adding and taking away 1.5 * 2^23 rounds to the nearest whole number.
    const ROUND: f32 = 12_582_912.0;
    let clamped = x.clamp(-87.3, 88.3);
    let n = (clamped * std::f32::consts::LOG2_E + ROUND) - ROUND;
    let r = clamped - n * 0.693_359_4 - n * -2.121_944_4e-4;
    let p = 1.987_569_1e-4;
    let p = p * r + 1.398_2e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_6e-1;
    let p = p * r + 0.5;
    let value = p * r * r + r + 1.0;
    let exponent = ((n + ROUND).to_bits() << 23).wrapping_add(0x3f80_0000);
    if x < -87.3 { 0.0 } else { value * f32::from_bits(exponent) }
}

/// erf(x) in f32 within about 4e-7 (rational approximation on [-4, 4]; beyond it erf is 1 in f32).
#[inline(always)]
pub(crate) fn erf(x: f32) -> f32 {
    let x = x.clamp(-4.0, 4.0);
    let s = x * x;
    let p = -2.726_142_3e-10;
    let p = p * s + 2.770_681_5e-8;
    let p = p * s - 2.101_024e-6;
    let p = p * s - 5.692_506_5e-5;
    let p = p * s - 7.349_906_3e-4;
    let p = p * s - 2.954_6e-3;
    let p = p * s - 1.609_603_3e-2;
    let q = -1.456_607_2e-5;
    let q = q * s - 2.133_740_6e-4;
    let q = q * s - 1.682_827e-3;
    let q = q * s - 7.373_329_4e-3;
    let q = q * s - 1.426_473_9e-2;
    x * p / q
}

/// Sum of `f(x)` in 16 fixed lanes, so that vector code adds in the same order everywhere. Floating-point addition is not associative, so a compiler may not
/// make lanes of one running sum by itself; 16 are as many as the widest vectors hold, and narrower ones take them in turns.
#[inline(always)]
pub(crate) fn sum(x: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0_f32; 16];
    let (blocks, rest) = x.as_chunks::<16>();
    for block in blocks {
        for (lane, &x) in lanes.iter_mut().zip(block) {
            *lane += f(x);
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        *lane += f(x);
    }
    lanes.iter().sum()
}

/// Sum of `f(x, y)` over two slices of one length, in the order of [`sum`].
#[inline(always)]
pub(crate) fn sum2(x: &[f32], y: &[f32], f: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [0.0_f32; 16];
    let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<16>(), y.as_chunks::<16>());
    for (x, y) in x.iter().zip(y) {
        lanes.iter_mut().zip(x.iter().zip(y)).for_each(|(lane, (&x, &y))| *lane += f(x, y));
    }
    lanes.iter_mut().zip(x_rest.iter().zip(y_rest)).for_each(|(lane, (&x, &y))| *lane += f(x, y));
    lanes.iter().sum()
}

/// The largest number, minus infinity of none; NaN is skipped.
#[inline(always)]
pub(crate) fn top(x: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let mut lanes = [f32::NEG_INFINITY; 16];
    let (blocks, rest) = x.as_chunks::<16>();
    for block in blocks {
        lanes.iter_mut().zip(block).for_each(|(lane, &x)| *lane = larger(*lane, x));
    }
    lanes.iter_mut().zip(rest).for_each(|(lane, &x)| *lane = larger(*lane, x));
    lanes.into_iter().fold(f32::NEG_INFINITY, larger)
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Tensor};

    use super::*;

    #[test]
    fn exp_is_close_to_the_exact_one() {
        for i in -8700..=8800 {
            let x = i as f32 / 100.0;
            let exact = f64::from(x).exp();
            assert!((f64::from(exp(x)) / exact - 1.0).abs() < 2.5e-7, "exp({x}) = {}", exp(x));
        }
        assert_eq!(exp(-1e9), 0.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(0.0), 1.0);
    }

    #[test]
    fn erf_is_close_to_the_exact_one() {
        let x: Vec<f64> = (-5000..=5000).map(|i| f64::from(i) / 1000.0).collect();
        let exact = Tensor::new(x.as_slice(), &Device::Cpu).unwrap().erf().unwrap().to_vec1::<f64>().unwrap();
        for (x, exact) in x.iter().zip(exact) {
            assert!((f64::from(erf(single(*x))) - exact).abs() < 4e-7, "erf({x}) = {}", erf(single(*x)));
        }
    }
}
