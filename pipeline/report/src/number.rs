//! Numbers for people.

/// `1234567` as `1,234,567`.
#[must_use]
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A share as percent with as many places as it takes to show that it is neither nothing nor all.
#[must_use]
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let close = percent.min(100.0 - percent);
    match close {
        c if c <= 0.0 || c >= 1.0 => format!("{percent:.1} %"),
        c if c >= 0.01 => format!("{percent:.2} %"),
        _ => format!("{percent:.4} %"),
    }
}

/// A number for an axis: `20k`, `1.5M`, `0.05`, `2e-4`.
#[must_use]
pub fn compact(number: f64) -> String {
    let (scaled, unit) = match number.abs() {
        n if n >= 1e9 => (number / 1e9, "G"),
        n if n >= 1e6 => (number / 1e6, "M"),
        n if n >= 1e3 => (number / 1e3, "k"),
        n if n > 0.0 && n < 1e-2 => {
            // A tick is a round number but for its last bits.
            let text = format!("{number:.2e}");
            let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
            return format!("{}e{power}", digits.trim_end_matches('0').trim_end_matches('.'));
        }
        _ => (number, ""),
    };
    let text = format!("{scaled:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}{unit}")
}

/// With so many places, and a minus that is one.
#[must_use]
pub fn fixed(value: f64, places: usize) -> String {
    let text = format!("{value:.places$}");
    let nothing = !text.contains(|c: char| ('1'..='9').contains(&c)) && value.is_finite();
    match text.strip_prefix('-') {
        Some(rest) if nothing => rest.to_owned(),
        Some(rest) => format!("−{rest}"),
        None => text,
    }
}

/// As [`fixed`], with a plus above 0.
#[must_use]
pub fn signed(value: f64, places: usize) -> String {
    let text = fixed(value, places);
    let nothing = !text.contains(|c: char| ('1'..='9').contains(&c));
    if value > 0.0 && !nothing { format!("+{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        let shown = [0, 999, 1_000, 12_345, 1_234_567, u64::MAX].map(thousands);
        assert_eq!(shown, ["0", "999", "1,000", "12,345", "1,234,567", "18,446,744,073,709,551,615"]);
    }

    #[test]
    fn almost_nothing_and_almost_all_are_not_rounded_away() {
        assert_eq!(
            [0.0, 1.0, 0.125, 0.0004, 0.00002, 0.9996].map(percent),
            ["0.0 %", "100.0 %", "12.5 %", "0.04 %", "0.0020 %", "99.96 %"]
        );
    }

    #[test]
    fn axis_numbers_are_short() {
        assert_eq!(
            [0.0, 0.05, 20.0, 2_500.0, 1e5, 1.5e6, 2e9, 2.0 * 1e-4, 3.0 * 5e-6, -0.001].map(compact),
            ["0", "0.05", "20", "2.5k", "100k", "1.5M", "2G", "2e-4", "1.5e-5", "-1e-3"]
        );
    }

    #[test]
    fn numbers_have_their_sign_only_where_they_are_more_than_nothing() {
        assert_eq!([1.25, -0.5, -0.001, 0.0].map(|x| fixed(x, 2)), ["1.25", "−0.50", "0.00", "0.00"]);
        assert_eq!([1.25, -0.5, 0.001, 0.0].map(|x| signed(x, 2)), ["+1.25", "−0.50", "0.00", "0.00"]);
    }
}
