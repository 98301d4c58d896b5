//! Texts of files as messages show them: no terminal obeys them, and no list of names is longer than the reader's patience.

/// Characters of a text that are shown.
const MOST: usize = 300;
/// Characters of a name, and names of a list.
const OF_NAME: usize = 100;
const NAMES: usize = 8;

/// A text with what is no letter of any script escaped, cut where it is long.
#[must_use]
pub fn shown(text: &str) -> String {
    cut(text, MOST)
}

/// The first of some names, and how many more there are.
#[must_use]
pub fn names<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    let mut names = names.into_iter();
    let first: Vec<String> = names.by_ref().take(NAMES).map(|name| cut(name, OF_NAME)).collect();
    let first = first.join(", ");
    match names.count() {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

fn cut(text: &str, most: usize) -> String {
    let mut shown = String::new();
    for (place, character) in text.chars().enumerate() {
        match character {
            _ if place == most => {
                shown.push_str(" ...");
                break;
            }
            '"' | '\'' | '\\' => shown.push(character),
            _ => shown.extend(character.escape_debug()),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_18_texts_of_files_are_escaped_and_cut() {
        assert_eq!(shown("layer.0 \"é\"\u{1b}[31m\u{7}\u{202e}"), "layer.0 \"é\"\\u{1b}[31m\\u{7}\\u{202e}");
        assert_eq!(shown(&"x".repeat(1000)).len(), MOST + 4);
        let many: Vec<String> = (0..100_000).map(|i| format!("x{i}")).collect();
        assert_eq!(names(&many), "x0, x1, x2, x3, x4, x5, x6, x7 and 99992 more");
        assert_eq!(names(&many[..2]), "x0, x1");
    }
}
