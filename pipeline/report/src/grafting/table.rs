//! A table with a caption, and numbers as the page writes them.

use std::fmt::Write as _;

use crate::svg::escape;

/// A column: its title, and whether it holds numbers (`n`) or words (`w`).
pub(super) type Column = (&'static str, char);

/// A table of cells that are markup already; the first of each row names it.
pub(super) fn table(caption: &str, columns: &[Column], rows: impl Iterator<Item = Vec<String>>) -> String {
    let caption = escape(caption);
    let mut html = format!(
        "<div class=\"wide\" tabindex=\"0\"><table><caption><span>{caption}</span></caption><thead><tr>"
    );
    for (title, kind) in columns {
        let _ = write!(html, "<th scope=\"col\" class=\"{kind}\">{}</th>", escape(title));
    }
    html.push_str("</tr></thead><tbody>");
    for row in rows {
        html.push_str("<tr>");
        for (place, (cell, (_, kind))) in row.iter().zip(columns).enumerate() {
            let _ = match place {
                0 => write!(html, "<th scope=\"row\" class=\"{kind}\">{cell}</th>"),
                _ => write!(html, "<td class=\"{kind}\">{cell}</td>"),
            };
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
    html
}

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

/// What a name of the machine says in words.
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
