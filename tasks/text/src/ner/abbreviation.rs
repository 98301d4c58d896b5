//! Abbreviations that a text defines: `chronic obstructive pulmonary disease (COPD)`.
//!
//! By the algorithm of Schwartz and Hearst (2003): the characters of the short form are looked for in the words in front of the parenthesis, from the last one
//! back, and the first of them must begin a word. Where the parenthesis has the long form, the word in front of it is the short one.

use std::ops::Range;

/// Characters that a short form has.
const LENGTHS: std::ops::RangeInclusive<usize> = 2..=10;

/// The most words of a short form.
const WORDS: usize = 2;

/// Bytes in front of a parenthesis, and in it, that are looked at: more than any name has, however long a sentence is.
const AROUND: usize = 1 << 10;

/// Where a text says what it abbreviates, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The name.
    pub long: Range<usize>,
    /// What stands for it.
    pub short: Range<usize>,
}

/// The definitions in a sentence of `text`, in order.
pub fn definitions(text: &str, sentence: Range<usize>, found: &mut Vec<Definition>) {
    let mut from = sentence.start;
    while let Some(open) = text[from..sentence.end].find(['(', '[']).map(|at| from + at) {
        let close = if text[open..].starts_with('(') { ')' } else { ']' };
        let inner = open + 1;
        // One parenthesis may stand in another.
        from = inner;
        let most = text.floor_char_boundary(sentence.end.min(inner + AROUND));
        let Some(end) = text[inner..most].find(close).map(|at| inner + at) else { continue };
        let start = text.ceil_char_boundary(sentence.start.max(open.saturating_sub(AROUND)));
        found.extend(definition(text, start..open, inner..end));
    }
}

/// What the parenthesis `inner` defines together with what is `before` it.
fn definition(text: &str, before: Range<usize>, inner: Range<usize>) -> Option<Definition> {
    let end = text[inner.clone()].find([',', ';', '(']).map_or(inner.end, |at| inner.start + at);
    let short = trimmed(text, inner.start..end);
    if is_short_form(&text[short.clone()]) {
        let long = long_form(text, &before, &text[short.clone()])?;
        return Some(Definition { long, short });
    }
    let word = trimmed(text, before);
    let spaces = text[word.clone()].rmatch_indices(char::is_whitespace);
    let start = spaces.map(|(at, space)| word.start + at + space.len()).next().unwrap_or(word.start);
    let short = start..word.end;
    let inner = trimmed(text, inner);
    if !is_short_form(&text[short.clone()]) || !is_upper_case(&text[short.clone()]) {
        return None;
    }
    let long = long_form(text, &inner, &text[short.clone()])?;
    // The parenthesis is the long form as a whole, or none.
    (long.start == inner.start).then_some(Definition { long, short })
}

/// A range of `text` without the white space at its ends.
fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let piece = &text[range.clone()];
    let start = range.start + piece.len() - piece.trim_start().len();
    start..start + piece.trim().len()
}

fn is_short_form(text: &str) -> bool {
    LENGTHS.contains(&text.chars().count())
        && text.split_whitespace().count() <= WORDS
        && text.chars().next().is_some_and(char::is_alphanumeric)
        && text.chars().any(char::is_alphabetic)
}

/// Whether most of its letters are upper case: what stands in front of a parenthesis is mostly a word.
fn is_upper_case(text: &str) -> bool {
    let letters = || text.chars().filter(|c| c.is_alphabetic());
    letters().filter(|c| c.is_uppercase()).count() * 2 > letters().count()
}

/// The end of `range` for which the short form stands.
fn long_form(text: &str, range: &Range<usize>, short: &str) -> Option<Range<usize>> {
    let characters = short.chars().filter(|c| c.is_alphanumeric()).count();
    let whole = trimmed(text, range.clone());
    let most = (characters + 5).min(2 * characters);
    let start = words_back(text, &whole, most);
    let long: Vec<(usize, char)> =
        text[start..whole.end].char_indices().map(|(at, c)| (start + at, c)).collect();
    let mut left = long.len();
    let mut wanted = short.chars().filter(|c| c.is_alphanumeric()).rev().peekable();
    while let Some(c) = wanted.next() {
        let is_first = wanted.peek().is_none();
        loop {
            left = left.checked_sub(1)?;
            let begins = left == 0 || !long[left - 1].1.is_alphanumeric();
            if same(long[left].1, c) && (begins || !is_first) {
                break;
            }
        }
    }
    // A word is taken whole, with what hangs on it by a hyphen.
    while left > 0 && !long[left - 1].1.is_whitespace() {
        left -= 1;
    }
    let found = unquoted(text, long.get(left)?.0..whole.end);
    let words = || text[found.clone()].split_whitespace();
    let fits =
        text[found.clone()].chars().count() > short.chars().count() && words().all(|word| word != short);
    fits.then_some(found)
}

/// A range of `text` without the marks that open and close quotations and brackets around it.
fn unquoted(text: &str, range: Range<usize>) -> Range<usize> {
    let opens = |c: char| matches!(c, '(' | '[' | '{' | '"' | '\'' | '\u{201c}' | '\u{2018}' | '\u{ab}');
    let closes = |c: char| matches!(c, '"' | '\'' | '\u{201d}' | '\u{2019}' | '\u{bb}' | ',' | ';' | ':');
    let piece = &text[range.clone()];
    let start = range.start + piece.len() - piece.trim_start_matches(opens).len();
    start..start.max(range.start + piece.trim_end_matches(closes).len())
}

/// Where the last `most` words of a range begin.
fn words_back(text: &str, range: &Range<usize>, most: usize) -> usize {
    let spaces = text[range.clone()].rmatch_indices(char::is_whitespace);
    let mut starts = spaces.map(|(at, space)| range.start + at + space.len());
    // Several spaces between two words are counted as so many words: the range is the smaller for it.
    most.checked_sub(1).and_then(|last| starts.nth(last)).unwrap_or(range.start)
}

fn same(one: char, other: char) -> bool {
    one == other || one.to_lowercase().eq(other.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(&str, &str)> {
        let mut all = Vec::new();
        definitions(text, 0..text.len(), &mut all);
        all.into_iter().map(|Definition { long, short }| (&text[long], &text[short])).collect()
    }

    #[test]
    fn the_words_before_a_parenthesis_are_what_it_stands_for() {
        for (text, expected) in [
            (
                "A case of chronic obstructive pulmonary disease (COPD).",
                ("chronic obstructive pulmonary disease", "COPD"),
            ),
            ("Heat shock protein (HSP) and others", ("Heat shock protein", "HSP")),
            ("with alpha-fetoprotein (AFP)", ("alpha-fetoprotein", "AFP")),
            ("of tumour necrosis factor [TNF, see above]", ("tumour necrosis factor", "TNF")),
            ("HSF (heat shock factor) is", ("heat shock factor", "HSF")),
            ("the œsophago-gastric junction (ŒGJ)", ("œsophago-gastric junction", "ŒGJ")),
            ("interleukin 2 (IL-2)", ("interleukin 2", "IL-2")),
            ("(chronic heart failure [CHF])", ("chronic heart failure", "CHF")),
            ("[Chronic heart failure (CHF). A review]", ("Chronic heart failure", "CHF")),
            ("\"heart failure\" (HF)", ("heart failure", "HF")),
            ("a\u{a0}b\u{2009}HF (heart\u{a0}failure)", ("heart\u{a0}failure", "HF")),
        ] {
            assert_eq!(found(text), [expected], "{text}");
        }
    }

    #[test]
    fn what_is_no_definition_is_none() {
        for text in [
            "aspirin (75 mg) daily",
            "given 5\u{a0}mg (n = 12 patients)",
            "\u{3000}(a b c)",
            "in adults (n = 12)",
            "a fever (see above)",
            "the drug (a)",
            "a result (COPD)",
            "open (never closed",
            "()",
            "COPD (COPD)",
            "(AB)",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }

    #[test]
    fn long_forms_are_no_longer_than_short_forms_allow() {
        let text = format!("a {}b (AB)", "word ".repeat(9));
        assert_eq!(found(&text), []);
        assert_eq!(found("an a of b (AB) and c d (CD)"), [("a of b", "AB"), ("c d", "CD")]);
    }
}
