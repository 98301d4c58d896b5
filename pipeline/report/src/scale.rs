//! From numbers to places on paper, and the numbers to write beside an axis.

use base::exact;

/// A range of numbers, laid out evenly or by powers of ten.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// From 0 to this.
    Linear {
        /// The end; above 0.
        to: f64,
    },
    /// Between these, below 0 or above.
    Range {
        /// The beginning.
        from: f64,
        /// The end; above the beginning.
        to: f64,
    },
    /// Between these, both above 0, by powers of ten.
    Log {
        /// The beginning.
        from: f64,
        /// The end; above the beginning.
        to: f64,
    },
}

impl Scale {
    /// From 0 to at least `most`, ending at a tick.
    #[must_use]
    pub fn linear(most: f64) -> Self {
        let most = if most > 0.0 { most } else { 1.0 };
        let step = step(most);
        Scale::Linear { to: (most / step).ceil() * step }
    }

    /// From at most `least` to at least `most`, beginning and ending at a tick; a range of nothing gets room on both sides.
    #[must_use]
    pub fn range(least: f64, most: f64) -> Self {
        // Ticks so close to each other would be the same number.
        let nothing = most - least <= least.abs().max(most.abs()) * 1e-9;
        let room = if nothing { least.abs().max(1.0) * 0.05 } else { 0.0 };
        let (least, most) = (least - room, least.max(most) + room);
        let round = |apart: f64| {
            // What is a tick but for rounding stays where it is.
            ((least / apart + 1e-9).floor() * apart, (most / apart - 1e-9).ceil() * apart)
        };
        // A range that has grown to ticks may have them farther apart.
        let (mut from, mut to) = round(step(most - least));
        for _ in 0..3 {
            (from, to) = round(step(to - from));
        }
        Scale::Range { from, to }
    }

    /// Whole powers of ten around the range from `least` to `most`; a range of nothing gets one power.
    #[must_use]
    pub fn log(least: f64, most: f64) -> Self {
        let least = if least > 0.0 { least } else { 1.0 };
        let from = exact::log10(least).floor();
        let to = exact::log10(most.max(least)).ceil().max(from + 1.0);
        Scale::Log { from: exact::pow(10.0, from), to: exact::pow(10.0, to) }
    }

    /// Where `value` lies, from 0 at the beginning to 1 at the end; what lies outside is put at the edge.
    #[must_use]
    pub fn place(self, value: f64) -> f64 {
        let place = match self {
            Scale::Linear { to } => value / to,
            Scale::Range { from, to } => (value - from) / (to - from),
            Scale::Log { from, to } => exact::log10(value.max(from) / from) / exact::log10(to / from),
        };
        place.clamp(0.0, 1.0)
    }

    /// Numbers to write, in order: at most about `most`, round.
    #[must_use]
    pub fn ticks(self, most: usize) -> Vec<f64> {
        match self {
            Scale::Linear { to } => {
                let step = step(to);
                let mut ticks: Vec<f64> = (0..)
                    .map(|i| f64::from(i) * step)
                    .take_while(|tick| *tick <= to * (1.0 + 1e-9))
                    .collect();
                while ticks.len() > most.max(2) {
                    ticks = ticks.into_iter().step_by(2).collect();
                }
                ticks
            }
            Scale::Range { from, to } => {
                let step = step(to - from);
                let (first, last) = ((from / step).round(), (to / step).round());
                let mut ticks: Vec<f64> = (0..)
                    .map(|i| first + f64::from(i))
                    .take_while(|tick| *tick <= last)
                    // Adding 0 makes a 0 without sign.
                    .map(|tick| tick * step + 0.0)
                    .collect();
                while ticks.len() > most.max(2) {
                    // 0 stays, where it is one of them.
                    let skip = ticks.iter().position(|tick| *tick == 0.0).unwrap_or(0) % 2;
                    ticks = ticks.into_iter().skip(skip).step_by(2).collect();
                }
                ticks
            }
            Scale::Log { from, to } => {
                let (from, to) = (exact::log10(from).round(), exact::log10(to).round());
                let powers = (0..).map(|i| from + f64::from(i)).take_while(|power| *power <= to + 0.5);
                let powers: Vec<f64> = powers.collect();
                let skip = powers.len().div_ceil(most.max(2)).max(1);
                powers.into_iter().step_by(skip).map(|power| exact::pow(10.0, power)).collect()
            }
        }
    }
}

/// A step of 1, 2 or 5 times a power of ten that goes four to ten times into `most`; never below one for counts of at least four.
fn step(most: f64) -> f64 {
    let power = exact::pow(10.0, exact::log10(most / 4.0).floor());
    let rough = most / 4.0 / power;
    let round = match rough {
        r if r >= 5.0 => 5.0,
        r if r >= 2.0 => 2.0,
        _ => 1.0,
    };
    round * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_scales_begin_at_zero_and_end_at_a_tick() {
        for most in [0.3, 1.0, 4.0, 7.0, 33.0, 99.0, 147_978.0, 2.5e6] {
            let scale = Scale::linear(most);
            let ticks = scale.ticks(12);
            assert!((4..=12).contains(&ticks.len()), "{most}: {ticks:?}");
            assert_eq!(ticks[0], 0.0);
            assert!(*ticks.last().unwrap() >= most * (1.0 - 1e-9), "{most}: {ticks:?}");
            assert!((scale.place(*ticks.last().unwrap()) - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn logarithmic_scales_have_powers_of_ten() {
        let scale = Scale::log(3.0, 42_000.0);
        assert_eq!(scale, Scale::Log { from: 1.0, to: 100_000.0 });
        assert_eq!(scale.ticks(8).len(), 6);
        assert_eq!(scale.ticks(3).len(), 3);
        assert!((scale.place(1_000.0) - 0.6).abs() < 1e-9);
        assert_eq!((scale.place(0.0), scale.place(1e9)), (0.0, 1.0));
        assert_eq!(Scale::log(1.0, 1.0), Scale::Log { from: 1.0, to: 10.0 });
    }

    #[test]
    fn ranges_begin_and_end_at_ticks_and_keep_zero() {
        for (least, most) in [
            (0.71, 0.83),
            (-0.3, 0.12),
            (-4.0, 9.0),
            (0.5, 0.5),
            (1e-7, 3e-7),
            (-5.0, -2.0),
            (1e9, 1e9 + 1e-6),
        ] {
            let scale = Scale::range(least, most);
            let Scale::Range { from, to } = scale else { panic!("another scale") };
            assert!(from <= least + 1e-12 && to >= most - 1e-12 && from < to, "{scale:?}");
            let ticks = scale.ticks(12);
            assert!((3..=12).contains(&ticks.len()), "{least} to {most}: {ticks:?}");
            assert!((scale.place(ticks[0])).abs() < 1e-9, "{ticks:?}");
            let zero = from < 0.0 && to > 0.0;
            assert!(
                scale.ticks(5).len() <= 5 && scale.ticks(5).contains(&0.0) == zero,
                "{:?}",
                scale.ticks(5)
            );
        }
        assert_eq!(Scale::range(0.0, 1.0), Scale::Range { from: 0.0, to: 1.0 });
    }

    #[test]
    fn nothing_has_an_axis_too() {
        assert_eq!(Scale::linear(0.0), Scale::linear(1.0));
        assert_eq!(Scale::log(0.0, 0.0), Scale::Log { from: 1.0, to: 10.0 });
    }
}
