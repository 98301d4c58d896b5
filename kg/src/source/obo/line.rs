//! One line of an OBO file: `tag: value {modifiers} ! comment`, and its escapes.

use base::line::Line;
use base::read::ReadError;

/// What to do about a line that is not as the format asks.
const DAMAGED: &str = "fix the line, or write the file anew (robot convert --format obo)";

/// A tag with its value as it stands, modifiers and comment included.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tagged<'a> {
    pub(super) tag: &'a str,
    value: &'a str,
    /// Where the value begins, in letters from 1.
    column: usize,
    line: Line<'a>,
}

/// A text in double quotes, and what follows.
pub(super) struct Quoted<'a> {
    pub(super) text: String,
    pub(super) rest: &'a str,
}

/// The tags that are read, for messages.
const TAGS: [&str; 14] = [
    "id",
    "name",
    "namespace",
    "def",
    "synonym",
    "xref",
    "alt_id",
    "is_a",
    "relationship",
    "is_obsolete",
    "replaced_by",
    "inverse_of",
    "is_symmetric",
    "ontology",
];

impl<'a> Tagged<'a> {
    /// The parts of a line, whose text is `text`; none of one that is blank or a comment.
    pub(super) fn parse(line: Line<'a>, text: &'a str) -> Result<Option<Self>, ReadError> {
        if text.trim().is_empty() || text.starts_with('!') {
            return Ok(None);
        }
        let is_tag = |tag: &&str| {
            !tag.is_empty() && tag.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
        };
        let Some(tag) = text.split(':').next().filter(|tag| tag.len() < text.len()).filter(is_tag) else {
            let place = line.place(Some((1, "tag")));
            return Err(ReadError::text(place, text, "`tag: value` or a stanza's name in brackets", DAMAGED));
        };
        let rest = &text[tag.len() + 1..];
        let value = rest.trim_start();
        let column = tag.len() + 1 + rest.chars().count() - value.chars().count() + 1;
        Ok(Some(Self { tag, value, column, line }))
    }

    /// The value without modifiers and comment, its escapes resolved.
    pub(super) fn plain(&self) -> Result<String, ReadError> {
        let value = bare(self.value).trim_end();
        if value.is_empty() {
            return Err(self.wrong("a value"));
        }
        unescape(value).ok_or_else(|| self.wrong("a letter behind each backslash"))
    }

    /// Whether what stands behind the value in braces has one of these words.
    pub(super) fn has_modifier(&self, words: &[&str]) -> bool {
        let modifiers = self.value.get(bare(self.value).len()..).unwrap_or_default();
        words.iter().any(|word| modifiers.contains(word))
    }

    /// The words of the value.
    pub(super) fn words<const N: usize>(&self, expected: &str) -> Result<[String; N], ReadError> {
        let words: Option<Vec<String>> = bare(self.value).split_whitespace().map(unescape).collect();
        words.and_then(|words| words.try_into().ok()).ok_or_else(|| self.wrong(expected))
    }

    /// Whether the value is `true`.
    pub(super) fn is_true(&self) -> Result<bool, ReadError> {
        match bare(self.value).trim() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.wrong("true or false")),
        }
    }

    /// A value that begins with a text in double quotes.
    pub(super) fn quoted(&self) -> Result<Quoted<'a>, ReadError> {
        let wrong = || self.wrong("a text in double quotes");
        let inside = self.value.strip_prefix('"').ok_or_else(wrong)?;
        let mut escaped = false;
        let end = inside.find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let end = end.ok_or_else(wrong)?;
        let text = unescape(&inside[..end]).ok_or_else(wrong)?;
        Ok(Quoted { text, rest: inside[end + 1..].trim_start() })
    }

    /// That the value is not what its tag asks.
    pub(super) fn wrong(&self, expected: &str) -> ReadError {
        let name = TAGS.into_iter().find(|tag| *tag == self.tag).unwrap_or("value");
        ReadError::text(self.line.place(Some((self.column, name))), self.value, expected, DAMAGED)
    }

    /// That the value contradicts another line.
    pub(super) fn twice(&self, found: String, expected: &str) -> ReadError {
        let name = TAGS.into_iter().find(|tag| *tag == self.tag).unwrap_or("value");
        let remedy = "remove one of the two";
        ReadError::new(self.line.place(Some((self.column, name))), found, expected, remedy)
    }
}

/// What stands in front of modifiers and comment. Neither sign counts inside a word or behind a backslash, for names have both.
fn bare(value: &str) -> &str {
    let (mut escaped, mut blank) = (false, true);
    for (at, c) in value.char_indices() {
        let begins = blank && !escaped;
        if begins && (c == '!' || c == '{' && is_modifiers(&value[at..])) {
            return &value[..at];
        }
        escaped = c == '\\' && !escaped;
        blank = c.is_whitespace();
    }
    value
}

/// Whether a text is `{name=value, ...}`, with a comment behind it perhaps.
fn is_modifiers(text: &str) -> bool {
    let (mut escaped, mut quoted) = (false, false);
    let end = text.find(|c| {
        let ends = c == '}' && !quoted && !escaped;
        quoted ^= c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.is_some_and(|end| {
        let after = text[end + 1..].trim_start();
        text[..end].contains('=') && (after.is_empty() || after.starts_with('!'))
    })
}

/// A text with its escapes resolved; none if it ends inside one.
fn unescape(text: &str) -> Option<String> {
    let mut letters = text.chars();
    let mut plain = String::with_capacity(text.len());
    while let Some(letter) = letters.next() {
        plain.push(match letter {
            '\\' => match letters.next()? {
                'n' => '\n',
                't' => '\t',
                'W' => ' ',
                other => other,
            },
            other => other,
        });
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use base::line::Lines;

    use super::*;

    fn with<T>(text: &str, read: impl Fn(&Tagged<'_>) -> Result<T, ReadError>) -> Result<T, String> {
        let mut lines = Lines::new(text.as_bytes(), Path::new("x.obo"));
        let line = lines.next_line().unwrap().unwrap();
        let tagged = Tagged::parse(line, line.text).map_err(|e| e.to_string())?.unwrap();
        read(&tagged).map_err(|e| e.to_string())
    }

    #[test]
    fn modifiers_and_comments_are_no_part_of_a_value() {
        for (line, expected) in [
            ("is_a: GO:1", "GO:1"),
            ("is_a: GO:1 ! mitochondrion", "GO:1"),
            ("is_a: GO:1 {is_inferred=\"true\", source=\"a } ! b\"} ! x", "GO:1"),
            ("name: alpha{2} beta! gamma", "alpha{2} beta! gamma"),
            ("name: a {b} c", "a {b} c"),
            ("name: five\\! \\{x\\} \\\\ a\\nb\\Wc", "five! {x} \\ a\nb c"),
            ("name:tight", "tight"),
        ] {
            assert_eq!(with(line, |line| line.plain()).unwrap(), expected, "{line}");
        }
        let quoted = with("def: \"A \\\"b\\\" ! {c}.\\nD\" [GOC:x] {y=\"z\"} ! e", |line| line.quoted_text());
        assert_eq!(quoted.unwrap(), "A \"b\" ! {c}.\nD");
    }

    #[test]
    fn what_is_no_line_is_named_with_its_column() {
        for (line, expected) in [
            ("no tag here", "x.obo: line 1, column 1 (tag): found \"no tag here\", expected `tag: value`"),
            (
                "name:  ! only a comment",
                "line 1, column 8 (name): found \"! only a comment\", expected a value",
            ),
            ("name: x\\", "column 7 (name): found \"x\\\\\", expected a letter behind each backslash"),
        ] {
            let message = with(line, |line| line.plain()).unwrap_err();
            assert!(message.contains(expected), "{message}\nlacks {expected}");
        }
        let message = with("def: \"open [x]", |line| line.quoted_text()).unwrap_err();
        assert!(
            message.contains("column 6 (def): found \"\\\"open [x]\", expected a text in double quotes"),
            "{message}"
        );
    }

    impl Tagged<'_> {
        fn quoted_text(&self) -> Result<String, ReadError> {
            Ok(self.quoted()?.text)
        }
    }
}
