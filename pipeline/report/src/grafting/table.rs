//! Numbers and names as the page writes them.

/// With so many places, and a minus that is one.
pub(super) fn fixed(value: f64, places: usize) -> String {
    let text = format!("{value:.places$}");
    let nothing = !text.contains(|c: char| ('1'..='9').contains(&c)) && value.is_finite();
    match text.strip_prefix('-') {
        Some(rest) if nothing => rest.to_owned(),
        Some(rest) => format!("−{rest}"),
        None => text,
    }
}

/// As [`fixed`], with a plus above 0.
pub(super) fn signed(value: f64, places: usize) -> String {
    let text = fixed(value, places);
    let nothing = !text.contains(|c: char| ('1'..='9').contains(&c));
    if value > 0.0 && !nothing { format!("+{text}") } else { text }
}

/// A name of the machine, formatted for people.
pub(super) fn words(name: &str) -> String {
    name.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_sign_only_where_they_are_more_than_nothing() {
        assert_eq!([1.25, -0.5, -0.001, 0.0].map(|x| fixed(x, 2)), ["1.25", "−0.50", "0.00", "0.00"]);
        assert_eq!([1.25, -0.5, 0.001, 0.0].map(|x| signed(x, 2)), ["+1.25", "−0.50", "0.00", "0.00"]);
    }
}
