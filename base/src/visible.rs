//! Texts from data where people read them: on a terminal, in HTML and in Markdown. A name may hold anything; it must neither steer what shows it
//! nor become markup.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character steers what shows it instead of being seen: controls (C0, DEL, C1) but newline and tab, embeddings, overrides and
/// isolates of writing direction, separators of lines and paragraphs.
#[must_use]
pub fn steers(c: char) -> bool {
    let control = c.is_control() && c != '\n' && c != '\t';
    control || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

/// `text` with every character that steers spelt out as JSON spells it, `\u001b`. JSON stays the same JSON, since these stand in its strings only.
#[must_use]
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    text.chars().for_each(|c| put(&mut shown, c));
    Cow::Owned(shown)
}

/// Characters of a text, and of a name in a list, that a message shows; names that a list shows.
const LONGEST_TEXT: usize = 300;
const LONGEST_NAME: usize = 100;
const NAMES: usize = 8;

/// `text` on one line of a message: as [`shown`], line ends and tabs spelt out too, and cut where it is long.
#[must_use]
pub fn shortened(text: &str) -> String {
    cut(text, LONGEST_TEXT)
}

/// The first of some names, each as [`shortened`], and how many more there are.
#[must_use]
pub fn names<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    let mut names = names.into_iter();
    let first: Vec<String> = names.by_ref().take(NAMES).map(|name| cut(name, LONGEST_NAME)).collect();
    let first = first.join(", ");
    match names.count() {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

fn cut(text: &str, most: usize) -> String {
    let mut shown = String::new();
    for (place, c) in text.chars().enumerate() {
        if place == most {
            shown.push_str(" ...");
            break;
        }
        if matches!(c, '\n' | '\t') { spell(&mut shown, c) } else { put(&mut shown, c) }
    }
    shown
}

/// `text` as it must stand in HTML and XML, inside and outside of quotes. Line ends and tabs become spaces, what steers is spelt out.
#[must_use]
pub fn html(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // XML has no place for them.
            '\n' | '\r' | '\t' | '\u{fffe}' | '\u{ffff}' => safe.push(' '),
            c => put(&mut safe, c),
        }
    }
    safe
}

/// `text` within a line or a cell of Markdown, as nothing but itself: no HTML, no emphasis, link or code, and not the end of a cell.
#[must_use]
pub fn markdown(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut in_word = false;
    while let Some(c) = chars.next() {
        match c {
            // Within a word it is no emphasis: `has_symptom`.
            '_' if in_word && chars.peek().is_some_and(|next| next.is_alphanumeric()) => safe.push(c),
            '\\' | '|' | '`' | '*' | '_' | '[' | ']' | '~' => safe.extend(['\\', c]),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '\n' | '\r' | '\t' => safe.push(' '),
            // A backslash before a letter is a backslash.
            c => put(&mut safe, c),
        }
        in_word = c.is_alphanumeric();
    }
    safe
}

fn put(to: &mut String, c: char) {
    if steers(c) { spell(to, c) } else { to.push(c) }
}

fn spell(to: &mut String, c: char) {
    // All that steers has four digits; writing to a string cannot fail.
    let _ = write!(to, "\\u{:04x}", u32::from(c));
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str =
        "\u{1b}]0;pwned\u{7}\u{9b}31m \u{202e}txt.exe\u{2066}\u{2028}\u{2029}\r\u{8}\u{7f}\u{0}";

    #[test]
    fn silent_22_what_steers_a_terminal_is_spelt_out_and_all_else_stays() {
        let expected = "\\u001b]0;pwned\\u0007\\u009b31m \\u202etxt.exe\\u2066\\u2028\\u2029\\u000d\\u0008\\u007f\\u0000";
        assert_eq!(shown(HOSTILE), expected);
        let plain = "a\tb\nc ü 漢 e\u{301} \u{200f}ע\u{200d}😀 \\u001b";
        assert!(matches!(shown(plain), Cow::Borrowed(text) if text == plain));
        for c in ('\0'..=char::MAX).filter(|&c| steers(c)) {
            assert!(u32::from(c) <= 0xffff, "four digits are enough for {c:?}");
        }
    }

    #[test]
    fn silent_22_no_text_becomes_markup() {
        assert_eq!(
            html("<a href=\"x\" b='c'>&\n\u{202e}\u{0}"),
            "&lt;a href=&quot;x&quot; b=&#39;c&#39;&gt;&amp; \\u202e\\u0000"
        );
        let text =
            "<script>alert(1)</script> [a](javascript:b) | x | `c` *d* _e_ g_h __i ~~f~~ \\|\n# g \u{1b}";
        assert_eq!(
            markdown(text),
            "&lt;script&gt;alert(1)&lt;/script&gt; \\[a\\](javascript:b) \\| x \\| \\`c\\` \\*d\\* \\_e\\_ g_h \\_\\_i \\~\\~f\\~\\~ \\\\\\| # g \\u001b"
        );
    }

    #[test]
    fn silent_18_texts_and_lists_in_messages_are_spelt_out_and_cut() {
        assert_eq!(
            shortened("layer.0 \"é\"\u{1b}[31m\u{7}\u{202e}\n"),
            "layer.0 \"é\"\\u001b[31m\\u0007\\u202e\\u000a"
        );
        assert_eq!(shortened(&"x".repeat(1000)).len(), LONGEST_TEXT + 4);
        let many: Vec<String> = (0..100_000).map(|i| format!("x{i}")).collect();
        assert_eq!(names(&many), "x0, x1, x2, x3, x4, x5, x6, x7 and 99992 more");
        assert_eq!(names(&many[..2]), "x0, x1");
    }
}
